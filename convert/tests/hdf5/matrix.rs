//! Matrices in the form in which the corpora state their digests: sorted, duplicates summed, zeros dropped.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tilekern_convert::{Input, Values};

/// What is known of a matrix.
#[derive(Debug, PartialEq)]
pub struct Summary(pub Value);

impl Summary {
    /// Reads all rows in blocks of at most `memory` bytes, the cells in as many goes as there are `parts`.
    ///
    /// # Errors
    /// What is wrong with the matrix; the first value that is no count.
    pub fn of(input: &mut dyn Input, memory: usize, parts: u64) -> Result<Summary, Failed> {
        let (n_cells, n_genes) = (input.n_cells(), input.n_genes());
        let mut canonical = Canonical { indptr: vec![0], ..Canonical::default() };
        for part in 0..parts {
            let cells = n_cells * part / parts..n_cells * (part + 1) / parts;
            let mut next = cells.start;
            input.rows(cells.clone(), memory, &mut |block| {
                assert_eq!(block.first_cell, next, "blocks come in order");
                assert_eq!((block.indptr[0], block.indices.len()), (0, block.values.len()));
                assert_eq!(block.indptr.last().copied(), i64::try_from(block.indices.len()).ok());
                assert!(12 * block.indices.len() <= memory, "a block of {} entries", block.indices.len());
                next += block.n_cells() as u64;
                for bounds in block.indptr.windows(2) {
                    let span = usize::try_from(bounds[0]).unwrap()..usize::try_from(bounds[1]).unwrap();
                    canonical.row(span.map(|at| (block.indices[at], value(&block.values, at))), n_genes);
                }
                Ok(())
            })?;
            assert_eq!(next, cells.end, "all rows come");
        }
        canonical.summary(n_cells, n_genes)
    }
}

/// A value as a number that has room for each.
fn value(values: &Values, at: usize) -> f64 {
    // Counts are below 2^31, and what is not exact here is none.
    match values {
        Values::I64(values) => values[at] as f64,
        Values::U64(values) => values[at] as f64,
        Values::F32(values) => values[at].into(),
        Values::F64(values) => values[at],
    }
}

#[derive(Default)]
struct Canonical {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    data: Vec<i32>,
    offender: Option<f64>,
}

impl Canonical {
    fn row(&mut self, entries: impl Iterator<Item = (u32, f64)>, n_genes: u64) {
        let mut row: BTreeMap<u32, i64> = BTreeMap::new();
        for (gene, value) in entries {
            assert!(u64::from(gene) < n_genes, "gene {gene} of {n_genes}");
            if value.fract() != 0.0 || !(0.0..=2_147_483_647.0).contains(&value) {
                self.offender.get_or_insert(value);
                continue;
            }
            *row.entry(gene).or_default() += value as i64;
        }
        for (gene, count) in row.into_iter().filter(|&(_, count)| count != 0) {
            self.indices.push(i32::try_from(gene).unwrap());
            self.data.push(i32::try_from(count).unwrap());
        }
        self.indptr.push(i64::try_from(self.indices.len()).unwrap());
    }

    fn summary(self, n_cells: u64, n_genes: u64) -> Result<Summary, Failed> {
        if let Some(value) = self.offender {
            return Err(format!("{value} is no count").into());
        }
        let digest =
            |bytes: &[u8]| -> String { Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect() };
        Ok(Summary(json!({
            "n_cells": n_cells,
            "n_genes": n_genes,
            "nnz": self.indices.len(),
            "sum": self.data.iter().map(|&count| i64::from(count)).sum::<i64>(),
            "sha256": {
                "indptr": digest(bytemuck::cast_slice(&self.indptr)),
                "indices": digest(bytemuck::cast_slice(&self.indices)),
                "data": digest(bytemuck::cast_slice(&self.data)),
            },
        })))
    }
}
