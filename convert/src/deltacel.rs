//! Datasets that are converted again: to other tiles, with another profile, a part of them, several as one.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use tilekern::deltacel::dataset::Dataset;
use tilekern::deltacel::{Csr, Decoder};

use crate::{Error, ErrorKind, Input, InputOptions, Result, RowBlock, Source, Values, table};

/// The only matrix of a dataset.
const SLOT: &str = "tiles";

/// A directory that may be that of a dataset.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned() }
    }
}

impl Source for Folder {
    fn slots(&self) -> Vec<String> {
        vec![SLOT.to_owned()]
    }

    fn open(&self, slot: &str, options: &InputOptions) -> Result<Box<dyn Input>> {
        if slot != SLOT {
            let message = format!("has no {slot}; the only matrix of a dataset is called {SLOT}");
            return Err(Error::new(ErrorKind::Missing, message).in_path(&self.path));
        }
        if options.feature_type.is_some() {
            let message = "a dataset is converted with all its genes";
            return Err(Error::new(ErrorKind::Unsupported, message).in_path(&self.path));
        }
        let dataset = Dataset::open(&self.path)?;
        let mut columns = None;
        if let Some(order) = dataset.gene_order()? {
            // The source's columns, where the dataset has all of them.
            let order: Vec<u32> = order.iter().map(|gene| gene.unsigned_abs()).collect();
            let mut seen = vec![false; order.len()];
            let all = order
                .iter()
                .all(|&gene| seen.get_mut(gene as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
            columns = all.then_some(order);
        }
        Ok(Box::new(DatasetInput { path: self.path.clone(), dataset, decoder: Decoder::new()?, columns }))
    }
}

struct DatasetInput {
    path: PathBuf,
    dataset: Dataset,
    decoder: Decoder,
    /// The source's column of each gene, where the dataset has all of the source's.
    columns: Option<Vec<u32>>,
}

impl DatasetInput {
    /// Rows of a table of genes, in the source's order.
    fn in_source_order(&self, table: &RecordBatch) -> Result<RecordBatch> {
        let Some(columns) = &self.columns else { return Ok(table.clone()) };
        let mut places = vec![0; columns.len()];
        for (place, &gene) in (0_u32..).zip(columns) {
            places[gene as usize] = place;
        }
        table::take(table, &places)
    }
}

impl Input for DatasetInput {
    fn path(&self) -> &Path {
        &self.path
    }

    fn slot(&self) -> &str {
        SLOT
    }

    fn n_cells(&self) -> u64 {
        self.dataset.n_cells()
    }

    fn n_genes(&self) -> u64 {
        self.dataset.n_genes().into()
    }

    fn obs(&mut self) -> Result<RecordBatch> {
        let names = (0..self.n_cells()).map(|cell| cell.to_string()).collect();
        table::of_text(None, vec![("cell", names)])
    }

    fn var(&mut self) -> Result<RecordBatch> {
        let names = match self.dataset.var_names()? {
            Some(names) => names.iter().map(str::to_owned).collect(),
            None => (0..self.n_genes()).map(|gene| gene.to_string()).collect(),
        };
        self.in_source_order(&table::of_text(None, vec![("gene", names)])?)
    }

    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()> {
        let manifest = self.dataset.manifest();
        // A piece of a tile at a time, by what its cells have on average: both the decoder's result and the block.
        let mut csr = Csr::<i32>::new();
        let mut reader = self.dataset.reader(&self.decoder);
        let mut next = cells.start;
        while next < cells.end {
            let Some((tile, row)) = manifest.locate(next) else { break };
            let in_tile = manifest.tile_cells(tile);
            let each = manifest.tile_nnz()[tile as usize] / in_tile.max(1) + 1;
            let fit = (memory as u64 / 32 / each).max(1);
            let end = cells.end.min(next + (in_tile - row)).min(next + fit);
            reader.range(next..end, &mut csr)?;
            let gene = |&gene: &i32| {
                let gene = gene.unsigned_abs();
                self.columns.as_ref().map_or(gene, |columns| columns[gene as usize])
            };
            visit(RowBlock {
                first_cell: next,
                indptr: csr.indptr().to_vec(),
                indices: csr.indices().iter().map(gene).collect(),
                values: Values::I64(csr.values().iter().map(|&count| count.into()).collect()),
            })?;
            next = end;
        }
        Ok(())
    }
}
