//! Cells as rows of Arrow tables: the lists of their genes and counts, and what is known of them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, LargeListArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tilekern::deltacel::dataset::Dataset;
use tilekern::deltacel::dataset::obs::ObsTable;

use crate::fault::{Fault, Stop};
use crate::selection::{Piece, Rows, Selection};

/// The columns of genes and counts.
const GENE: &str = "gene";
const COUNT: &str = "count";

/// Keys of the metadata: the number of genes, and their names as a list in JSON, where they have some.
const N_GENES: &str = "tilekern.n_genes";
const VAR_NAMES: &str = "tilekern.var_names";

/// Values after which what was read of the table of cells is let go.
const KEPT: u64 = 1 << 21;

/// Reads the table of cells, of which it keeps little.
pub struct Obs<'a> {
    dataset: &'a Dataset,
    table: ObsTable<'a>,
    read: u64,
}

impl<'a> Obs<'a> {
    /// The table of a source that has one.
    pub fn of(selection: &Selection<'a>) -> Result<Option<Obs<'a>>, Stop> {
        let Some(dataset) = selection.source.dataset() else { return Ok(None) };
        Ok(dataset.obs()?.map(|table| Obs { dataset, table, read: 0 }))
    }

    pub fn table(&self) -> &ObsTable<'a> {
        &self.table
    }

    /// Some columns of the cells of a piece.
    pub fn values(&mut self, columns: &[&str], piece: &Piece) -> Result<RecordBatch, Stop> {
        let cells: Vec<u64> = piece.cells().collect();
        if self.read > KEPT
            && let Some(table) = self.dataset.obs()?
        {
            (self.table, self.read) = (table, 0);
        }
        self.read += (cells.len() * columns.len()) as u64;
        Ok(self.table.values(columns, &cells)?)
    }
}

/// Makes the rows of cells.
pub struct Tables<'a> {
    obs: Option<Obs<'a>>,
    columns: Vec<String>,
    pub schema: SchemaRef,
    path: &'a Path,
}

impl<'a> Tables<'a> {
    /// `path` is where they are written; what is lost on the way is told in `notes`.
    pub fn new(
        selection: &Selection<'a>,
        path: &'a Path,
        notes: &mut Vec<String>,
        stored: impl Fn(&Field, ArrayRef) -> Result<ArrayRef, ArrowError>,
    ) -> Result<Tables<'a>, Stop> {
        let mut obs = Obs::of(selection)?;
        let columns: Vec<String> = match &obs {
            Some(obs) => obs.table.schema().columns.iter().map(|column| column.name.clone()).collect(),
            None => Vec::new(),
        };
        let item = Arc::new(Field::new_list_field(DataType::Int32, false));
        let list = |name| Field::new(name, DataType::LargeList(item.clone()), false);
        let mut fields = vec![list(GENE), list(COUNT)];
        let mut taken: HashSet<String> = columns.iter().cloned().chain([GENE, COUNT].map(str::to_owned)).collect();
        if let Some(obs) = &mut obs {
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let empty = obs.table.values(&names, &[])?;
            for (field, array) in empty.schema().fields().iter().zip(empty.columns()) {
                let array = stored(field, array.clone()).map_err(|error| failed(error, path))?;
                let mut name = field.name().clone();
                if [GENE, COUNT].contains(&name.as_str()) {
                    while !taken.insert(name.clone()) {
                        name.insert_str(0, "obs_");
                    }
                    notes.push(format!("the column {:?} of the table of cells is called {name:?}", field.name()));
                }
                fields.push(Field::new(name, array.data_type().clone(), true));
            }
        }
        if selection.source.dataset().is_some_and(|dataset| dataset.manifest().has_var_table()) {
            notes.push("of the table of genes there are only the names".to_owned());
        }
        let mut metadata = HashMap::from([(N_GENES.to_owned(), selection.n_genes().to_string())]);
        if let Some(names) = names(selection)? {
            let text = serde_json::to_string(&names).map_err(|e| Stop::write(e.into(), path))?;
            metadata.insert(VAR_NAMES.to_owned(), text);
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Tables { obs, columns, schema, path })
    }

    /// The rows of a piece.
    pub fn batch(
        &mut self,
        piece: &Piece,
        rows: Rows<'_>,
        stored: impl Fn(&Field, ArrayRef) -> Result<ArrayRef, ArrowError>,
    ) -> Result<RecordBatch, Stop> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(rows.indptr.to_vec()));
        let item = Arc::new(Field::new_list_field(DataType::Int32, false));
        let list = |values: &[i32]| {
            let values = Arc::new(Int32Array::from(values.to_vec()));
            LargeListArray::try_new(item.clone(), offsets.clone(), values, None).map(|list| Arc::new(list) as ArrayRef)
        };
        let path = self.path;
        let made = |error| failed(error, path);
        let mut arrays = vec![list(rows.indices).map_err(made)?, list(rows.values).map_err(made)?];
        if let Some(obs) = &mut self.obs {
            let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
            let table = obs.values(&names, piece)?;
            for (field, array) in table.schema().fields().iter().zip(table.columns()) {
                arrays.push(stored(field, array.clone()).map_err(made)?);
            }
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(made)
    }
}

/// The name of each column, where the source says them.
pub fn names(selection: &Selection<'_>) -> Result<Option<Vec<String>>, Stop> {
    let names = match selection.source.dataset() {
        Some(dataset) => dataset.var_names()?,
        None => None,
    };
    let name = |column| names.and_then(|names| names.get(selection.stored(column) as usize)).unwrap_or_default();
    Ok(names.map(|_| (0..selection.n_genes()).map(|column| name(column).to_owned()).collect()))
}

/// A failure of Arrow, most likely one of the file below it.
pub fn failed(error: ArrowError, path: &Path) -> Stop {
    match error {
        ArrowError::IoError(_, error) => Stop::write(error, path),
        other => Fault::new("io", path, other.to_string()).into(),
    }
}
