//! What is in the cells, in a few numbers, and the digests of their arrays.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::fault::Stop;
use crate::selection::Selection;
use indicatif::HumanCount;

#[derive(Serialize)]
pub struct Summary {
    n_cells: u64,
    n_genes: u32,
    pub nnz: u64,
    sum: u64,
    max_count: i32,
    /// -1 without nonzeros.
    max_gene: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Digests>,
}

/// Of the little-endian arrays, in lower-case hexadecimal.
#[derive(Serialize)]
struct Digests {
    indptr: String,
    indices: String,
    data: String,
}

/// Decodes all of the selection; hashes it too if asked to, which takes longer than the decode.
pub fn of(selection: &Selection<'_>, digests: bool) -> Result<Summary, Stop> {
    let (n_cells, n_genes) = (selection.n_cells(), selection.n_genes());
    let mut summary = Summary { n_cells, n_genes, nnz: 0, sum: 0, max_count: 0, max_gene: -1, sha256: None };
    let mut hashes = digests.then(<[Sha256; 3]>::default);
    if let Some([indptr, ..]) = &mut hashes {
        indptr.update(0i64.to_le_bytes());
    }
    selection.each(|_, rows| {
        if let Some([indptr, indices, data]) = &mut hashes {
            // Of all cells, not of this tile.
            for bounds in rows.indptr.get(1..).unwrap_or(&[]).chunks(512) {
                let bounds: Vec<u64> = bounds.iter().map(|bound| bound.unsigned_abs() + summary.nnz).collect();
                indptr.update(bytemuck::cast_slice(&bounds));
            }
            indices.update(bytemuck::cast_slice(rows.indices));
            data.update(bytemuck::cast_slice(rows.values));
        }
        summary.nnz += rows.indices.len() as u64;
        // 2^33 of the largest counts would be needed to overflow.
        let sum = rows.values.iter().fold(0, |sum, count| sum + u64::from(count.unsigned_abs()));
        summary.sum = summary.sum.saturating_add(sum);
        summary.max_count = rows.values.iter().copied().fold(summary.max_count, i32::max);
        summary.max_gene = rows.indices.iter().copied().fold(summary.max_gene, i32::max);
        Ok(())
    })?;
    summary.sha256 = hashes.map(|hashes| {
        let hex = |hash: Sha256| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let [indptr, indices, data] = hashes.map(hex);
        Digests { indptr, indices, data }
    });
    Ok(summary)
}

impl Summary {
    pub fn text(&self) -> String {
        let rows = [
            ("cells", HumanCount(self.n_cells).to_string()),
            ("genes", HumanCount(self.n_genes.into()).to_string()),
            ("nonzeros", HumanCount(self.nnz).to_string()),
            ("sum of counts", HumanCount(self.sum).to_string()),
            ("largest count", HumanCount(self.max_count.unsigned_abs().into()).to_string()),
            ("largest gene", if self.nnz == 0 { "none".to_owned() } else { self.max_gene.to_string() }),
        ];
        rows.map(|(name, value)| format!("{name:<15}{value:>15}")).join("\n")
    }

    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("plain numbers and strings")
    }
}
