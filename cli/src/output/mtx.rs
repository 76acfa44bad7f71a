//! Matrix Market text, as `scipy.io.mmread` and R's `readMM` read it.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::failed;
use crate::fault::Stop;
use crate::selection::Selection;

/// Text is handed on in pieces of about this size.
const PIECE: usize = 1 << 20;

/// Writes a file, compressed if its name ends in `.gz`. Returns the number of nonzeros.
pub fn write_file(file: impl Write, path: &Path, selection: &Selection<'_>) -> Result<u64, Stop> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        let mut gz = GzEncoder::new(file, Compression::fast());
        let nnz = write(&mut gz, selection, failed(path))?;
        gz.finish().map_err(failed(path))?;
        Ok(nnz)
    } else {
        write(file, selection, failed(path))
    }
}

/// Writes cells x genes, numbered from 1. Returns the number of nonzeros.
pub fn write(mut out: impl Write, selection: &Selection<'_>, failed: impl Fn(io::Error) -> Stop) -> Result<u64, Stop> {
    let (n_cells, n_genes, nnz) = (selection.n_cells(), selection.n_genes(), selection.nnz()?);
    write!(out, "%%MatrixMarket matrix coordinate integer general\n% cells x genes, numbered from 1\n")
        .and_then(|()| writeln!(out, "{n_cells} {n_genes} {nnz}"))
        .map_err(&failed)?;
    let mut text = Vec::with_capacity(PIECE + PIECE / 4);
    let (mut cell_digits, mut gene_digits, mut count_digits) = Default::default();
    let mut cell = 0u64;
    selection.each(|_, rows| {
        for (genes, counts) in rows.each() {
            cell += 1;
            let row = itoa::Buffer::format(&mut cell_digits, cell);
            for (&gene, &count) in genes.iter().zip(counts) {
                let column = itoa::Buffer::format(&mut gene_digits, i64::from(gene) + 1);
                let count = itoa::Buffer::format(&mut count_digits, count);
                for piece in [row, " ", column, " ", count, "\n"] {
                    text.extend_from_slice(piece.as_bytes());
                }
                if text.len() >= PIECE {
                    out.write_all(&text).map_err(&failed)?;
                    text.clear();
                }
            }
        }
        Ok(())
    })?;
    out.write_all(&text).map_err(&failed)?;
    Ok(nnz)
}
