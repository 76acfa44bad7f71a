//! The archive of numpy arrays that `scipy.sparse.save_npz` writes of a CSR matrix, and `load_npz` reads.
//!
//! The arrays follow each other, so the tiles are decoded three times: for the indptr, the genes and the counts. In
//! return no more than one tile is in memory.

use std::io::{self, Seek, Write};

use bytemuck::NoUninit;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::npy;
use crate::fault::Stop;
use crate::selection::Selection;

/// Writes the archive. Returns the number of nonzeros.
pub fn write(
    file: impl Write + Seek,
    selection: &Selection<'_>,
    compress: bool,
    failed: impl Fn(io::Error) -> Stop,
) -> Result<u64, Stop> {
    let mut npz = Npz { zip: ZipWriter::new(file), compress, failed };
    match npz.arrays(selection) {
        Ok(nnz) => npz.zip.finish().map(|_| nnz).map_err(|e| (npz.failed)(e.into())),
        Err(stop) => {
            // Dropped, it would finish the archive, and print where that fails too.
            std::mem::forget(npz.zip);
            Err(stop)
        }
    }
}

struct Npz<W: Write + Seek, F> {
    zip: ZipWriter<W>,
    compress: bool,
    failed: F,
}

impl<W: Write + Seek, F: Fn(io::Error) -> Stop> Npz<W, F> {
    /// All arrays of the matrix.
    fn arrays(&mut self, selection: &Selection<'_>) -> Result<u64, Stop> {
        self.array("format", "|S3", None, 3)?;
        self.values(b"csr")?;
        self.array("shape", "<i8", Some(2), 16)?;
        self.values(&[selection.n_cells(), selection.n_genes().into()])?;

        let bounds = selection.n_cells() + 1;
        self.array("indptr", "<i8", Some(bounds), 8 * bounds)?;
        self.values(&[0u64])?;
        let mut nnz = 0;
        let mut ends = Vec::new();
        selection.each_length(|lengths| {
            ends.clear();
            ends.extend(lengths.iter().map(|length| {
                nnz += length;
                nnz
            }));
            self.values(&ends)
        })?;

        self.array("indices", "<i4", Some(nnz), 4 * nnz)?;
        selection.each_indices(|indices| self.values(indices))?;
        self.array("data", "<i4", Some(nnz), 4 * nnz)?;
        selection.each(|_, rows| self.values(rows.values))?;
        Ok(nnz)
    }

    /// Starts an array: its member of the archive and its npy header. Without a length it is a single value.
    fn array(&mut self, name: &str, dtype: &str, len: Option<u64>, bytes: u64) -> Result<(), Stop> {
        let method = if self.compress { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .compression_level(self.compress.then_some(1))
            // Deflate may add a little, and the header counts.
            .large_file(bytes + bytes / 1000 + 4096 > u32::MAX.into());
        let shape = len.map_or_else(String::new, |len| format!("{len},"));
        self.zip.start_file(format!("{name}.npy"), options).map_err(|e: ZipError| (self.failed)(e.into()))?;
        self.values(&npy::header(dtype, &shape))
    }

    /// Adds values to the array.
    fn values<T: NoUninit>(&mut self, values: &[T]) -> Result<(), Stop> {
        self.zip.write_all(bytemuck::cast_slice(values)).map_err(&self.failed)
    }
}
