//! Small datasets of cells that a test knows, and what was read as such cells.
#![allow(dead_code)] // each test target uses its part

use std::path::Path;

use tilekern::deltacel::dataset::{Writer, WriterBuilder};
use tilekern::deltacel::{Csr, CsrView, Encoder, Profile};

/// Cells of (gene, count).
pub type Cells = Vec<Vec<(i32, i32)>>;

pub fn arrays(cells: &Cells) -> (Vec<i64>, Vec<i32>, Vec<i32>) {
    let mut indptr = vec![0];
    indptr.extend(cells.iter().scan(0, |sum, cell| {
        *sum += cell.len() as i64;
        Some(*sum)
    }));
    let (indices, values) = cells.iter().flatten().copied().unzip();
    (indptr, indices, values)
}

/// Writes the cells in pieces of so many each.
pub fn write(
    root: &Path,
    n_genes: u32,
    cells: &Cells,
    pieces: usize,
    options: impl Fn(WriterBuilder) -> WriterBuilder,
) {
    let quick = Writer::builder(n_genes).encoder(Encoder::builder().profile(Profile::Plain(1)));
    let mut writer = options(quick).create(root).unwrap();
    for piece in cells.chunks(pieces) {
        let (indptr, indices, values) = arrays(&piece.to_vec());
        writer.push(&CsrView { n_genes, indptr: &indptr, indices: &indices, values: &values }).unwrap();
    }
    assert_eq!(writer.n_cells(), cells.len() as u64);
    let manifest = writer.finish().unwrap();
    assert_eq!(manifest.n_cells(), cells.len() as u64);
}

/// What was read, as cells.
pub fn cells_of(csr: &Csr<i32>) -> Cells {
    let row = |bounds: &[i64]| (bounds[0] as usize..bounds[1] as usize).map(|i| (csr.indices()[i], csr.values()[i]));
    csr.indptr().windows(2).map(|bounds| row(bounds).collect()).collect()
}
