//! Files that are converted, in. The tests of `tilekern-convert` include this file, and replay seeds and past crashes.

use tilekern_convert::{Hdf5, Input, InputOptions, Source};

/// A body of a fuzz target.
pub type Body = fn(&[u8]);

/// Every target about such files, and its body.
pub const TARGETS: &[(&str, Body)] = &[("h5ad", h5ad)];

/// The seeds of one of them.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "h5ad" => SEEDS.iter().map(|seed| seed.to_vec()).collect(),
        _ => Vec::new(),
    }
}

/// Made by `fuzz/seeds/make.py`.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/h5ad/categories.h5ad"),
    include_bytes!("../seeds/h5ad/csc_gzip.h5ad"),
    include_bytes!("../seeds/h5ad/csr.h5ad"),
    include_bytes!("../seeds/h5ad/csr_lzf.h5ad"),
    include_bytes!("../seeds/h5ad/dense.h5ad"),
    include_bytes!("../seeds/h5ad/latest.h5ad"),
    include_bytes!("../seeds/h5ad/old.h5ad"),
    include_bytes!("../seeds/h5ad/small.loom"),
    include_bytes!("../seeds/h5ad/tenx.h5"),
];

/// Any bytes as an HDF5 file: errors, or tables and rows that have the shape that they should.
pub fn h5ad(data: &[u8]) {
    let Ok(file) = Hdf5::from_bytes(data.to_vec()) else { return };
    // Only what is unpacked to far more than it was needs temporary files.
    let scratch = std::env::temp_dir().join(format!("tilekern-fuzz-{}", std::process::id()));
    let options = InputOptions { feature_type: None, memory: 1 << 20, scratch, tables: true };
    for slot in file.slots().iter().take(4) {
        let Ok(mut input) = file.open(slot, &options) else { continue };
        let (n_cells, n_genes) = (input.n_cells(), input.n_genes());
        assert!((1..=1 << 31).contains(&n_genes));
        for (table, rows) in [(input.obs(), n_cells), (input.var(), n_genes)] {
            if let Ok(table) = table {
                assert_eq!(table.num_rows() as u64, rows);
            }
        }
        // A dense matrix is gone through whatever is in it; one of any size fits into a few bytes.
        if n_genes > 1 << 14 {
            continue;
        }
        rows(&mut *input, 0..n_cells.min(50));
        rows(&mut *input, n_cells.saturating_sub(3)..n_cells);
    }
}

fn rows(input: &mut dyn Input, cells: std::ops::Range<u64>) {
    let n_genes = input.n_genes();
    let mut next = cells.start;
    let read = input.rows(cells.clone(), 1 << 16, &mut |block| {
        assert_eq!(block.first_cell, next);
        next += block.n_cells() as u64;
        assert_eq!(block.indptr[0], 0);
        assert!(block.indptr.is_sorted());
        assert_eq!(block.indptr.last().copied(), i64::try_from(block.indices.len()).ok());
        assert_eq!(block.indices.len(), block.values.len());
        assert!(block.indices.iter().all(|&gene| u64::from(gene) < n_genes));
        Ok(())
    });
    if read.is_ok() {
        assert_eq!(next, cells.end);
    }
}
