//! Datasets that are converted again: to other tiles, with another profile, a part of them, several as one.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use tilekern::deltacel::dataset::{Dataset, INDEX_NAME, var_index};
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
    /// Passes a manifest whose cells are there: a tile has 8 bytes for each.
    fn check_cells(&self) -> Result<()> {
        let manifest = self.dataset.manifest();
        for (tile, &stated) in (0..).zip(manifest.tile_bytes()) {
            let path = self.dataset.tile_path(tile);
            let size = std::fs::metadata(&path).map_err(|error| Error::io(error, &path))?.len();
            if size != stated || size / 8 < manifest.tile_cells(tile) {
                let cells = manifest.tile_cells(tile);
                let message = format!("has {size} bytes where its manifest states {stated} for {cells} cells");
                return Err(Error::new(ErrorKind::Inconsistent, message).hint("verify it").in_path(path));
            }
        }
        Ok(())
    }

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
        let n_cells = usize::try_from(self.n_cells()).unwrap_or(usize::MAX);
        let Some(table) = self.dataset.obs()? else {
            let options = RecordBatchOptions::new().with_row_count(Some(n_cells));
            let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
            return empty.map_err(table::fault);
        };
        self.check_cells()?;
        let cells: Vec<u64> = (0..self.n_cells()).collect();
        let columns: Vec<&str> = table.schema().columns.iter().map(|column| column.name.as_str()).collect();
        Ok(table.values(&columns, &cells)?)
    }

    fn var(&mut self) -> Result<RecordBatch> {
        let found = self.dataset.var()?;
        let index = found.as_ref().and_then(|table| Some((table, var_index(table)?)));
        let table = match index {
            Some((table, index)) => {
                let others = (0..table.num_columns()).filter(|&column| column != index);
                let columns: Vec<_> = [index].into_iter().chain(others).collect();
                let table = table.project(&columns).map_err(table::fault)?;
                let schema = table.schema();
                let fields = schema.fields().clone();
                let name = fields[0].name().clone();
                // What pandas calls an index without a name.
                let named = !(name.starts_with("__index_level_") && name.ends_with("__"));
                let metadata: HashMap<_, _> = named.then(|| (INDEX_NAME.to_owned(), name)).into_iter().collect();
                let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
                RecordBatch::try_new(schema, table.columns().to_vec()).map_err(table::fault)?
            }
            None => {
                let names = match self.dataset.var_names()? {
                    Some(names) => names.iter().map(str::to_owned).collect(),
                    None => (0..self.n_genes()).map(|gene| gene.to_string()).collect(),
                };
                table::of_text(None, vec![("gene", names)])?
            }
        };
        self.in_source_order(&table)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.columns.is_none() {
            notes.push(format!("{}: gene_order.npy counts from the columns of this dataset", self.path.display()));
        }
        notes
    }

    fn metadata(&self) -> Option<&str> {
        self.dataset.manifest().metadata()
    }

    fn reorders(&self) -> bool {
        // Cells of tiles are sorted, or the decoder refuses them.
        true
    }

    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()> {
        let manifest = self.dataset.manifest();
        // A piece of a tile at a time, by what its cells have on average: both the decoder's result and the block.
        let mut csr = Csr::<i32>::new();
        let reader = self.dataset.reader(&self.decoder);
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
