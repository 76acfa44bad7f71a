//! The archive of numpy arrays that `scipy.sparse.save_npz` writes of a CSR matrix, and `load_npz` reads.
//!
//! The arrays follow each other, so the tiles are decoded three times: for the indptr, the genes and the counts. In
//! return no more than one tile is in memory.

use std::io::{self, Seek, Write};

use bytemuck::NoUninit;
use tilekern::deltacel::Csr;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::Selection;
use crate::fault::Stop;

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
        selection.each(|tile, cells| {
            let first = tile.indptr(cells.start);
            let end = |cell| nnz + (tile.indptr(cell) - first).unsigned_abs();
            ends.clear();
            ends.extend((cells.start + 1..=cells.end).map(end));
            nnz = ends.last().copied().unwrap_or(nnz);
            self.values(&ends)
        })?;

        let mut csr = Csr::<i32>::new();
        self.array("indices", "<i4", Some(nnz), 4 * nnz)?;
        selection.each(|tile, cells| {
            selection.decoder.decode_indices(tile, cells, &mut csr)?;
            self.values(csr.indices())
        })?;
        self.array("data", "<i4", Some(nnz), 4 * nnz)?;
        selection.each(|tile, cells| {
            selection.decoder.decode_cells(tile, cells, &mut csr)?;
            self.values(csr.values())
        })?;
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
        let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
        // Magic, version and length take ten bytes; the values start at a multiple of 64.
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let header_len = u16::try_from(header.len()).expect("a short header");
        self.zip.start_file(format!("{name}.npy"), options).map_err(|e: ZipError| (self.failed)(e.into()))?;
        self.values(b"\x93NUMPY\x01\x00")?;
        self.values(&header_len.to_le_bytes())?;
        self.values(header.as_bytes())
    }

    /// Adds values to the array.
    fn values<T: NoUninit>(&mut self, values: &[T]) -> Result<(), Stop> {
        self.zip.write_all(bytemuck::cast_slice(values)).map_err(&self.failed)
    }
}
