//! What an input is to the conversion: a matrix of cells x genes that hands over its rows as it has them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use crate::Result;

/// A file or folder that was opened: the matrices that it has, of which one is converted.
pub trait Source: Send {
    /// The names of its matrices, as `--matrix` takes them, the usual one first: `X`, `raw/X`, `layers/counts`, a genome.
    fn slots(&self) -> Vec<String>;

    /// Opens one of them.
    ///
    /// # Errors
    /// What is wrong with the source, in that slot; a slot that it does not have.
    fn open(&self, slot: &str, options: &InputOptions) -> Result<Box<dyn Input>>;
}

/// How to open a matrix.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// Only the features of this type (10x); all of them without.
    pub feature_type: Option<String>,
    /// Bytes that opening may take.
    pub memory: usize,
    /// A directory for temporary files that is removed with all it holds when the conversion ends.
    pub scratch: PathBuf,
    /// Whether tables of cells and genes are going to be asked for.
    pub tables: bool,
}

/// One matrix of one source. Cells are rows, whatever the file calls them.
pub trait Input: Send {
    /// The file or folder.
    fn path(&self) -> &Path;

    /// Which of its matrices this is.
    fn slot(&self) -> &str;

    /// Rows.
    fn n_cells(&self) -> u64;

    /// Columns; at least 1.
    fn n_genes(&self) -> u64;

    /// The table of cells: one row per cell. Its first column is the index (text), and the schema's metadata has that
    /// column's name in the source under [`INDEX_NAME`](crate::INDEX_NAME) where it has one. Categories are dictionary arrays.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn obs(&mut self) -> Result<RecordBatch>;

    /// The table of genes, likewise: one row per column of the matrix. Ids and types that the source keeps apart from the
    /// names are further columns: `gene_ids`, `feature_types`.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn var(&mut self) -> Result<RecordBatch>;

    /// What a person should know: features that were left out, parts that are not converted. One sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the input says of itself, as the text of a JSON object: the metadata in the manifest of a dataset.
    fn metadata(&self) -> Option<&str> {
        None
    }

    /// Whether genes of a row are out of order because the input numbers them anew, not because its file has them so.
    fn reorders(&self) -> bool {
        false
    }

    /// Hands over consecutive blocks of the rows of `cells`, in order, each needing at most about `memory` bytes. Inputs
    /// that store every value leave the zeros out: a zero in a block counts as one that the source stores beside others.
    ///
    /// # Errors
    /// What is wrong with the matrix, with the row; and whatever `visit` returns.
    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()>;
}

/// Some consecutive rows as they were found: genes may be unsorted and repeated, values may be 0 or no counts at all.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBlock {
    /// The number of the first one in the matrix.
    pub first_cell: u64,
    /// Where each row starts in the other arrays, and where the last one ends; from 0, never decreasing.
    pub indptr: Vec<i64>,
    /// Genes, each below the number of genes.
    pub indices: Vec<u32>,
    /// As many values.
    pub values: Values,
}

impl RowBlock {
    /// Rows.
    pub fn n_cells(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }
}

/// Values, exactly as the source has them: narrower types are widened without loss.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Signed integers.
    I64(Vec<i64>),
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Half and single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::I64(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
