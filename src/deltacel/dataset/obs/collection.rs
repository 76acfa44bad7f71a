//! The tables of cells of several datasets as one.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use arrow_select::interleave::interleave;

use super::encode::{ObsEncoder, ObsUnion};
use super::filter::Filter;
use super::schema::{ObsKind, ObsSchema};
use super::table::{ObsTable, vocabulary};
use super::{Cache, no_such_column};
use crate::deltacel::dataset::Collection;
use crate::deltacel::dataset::rows::check_cells;
use crate::error::{Error, ErrorKind, Part};

/// Cells whose rows a filter looks at together.
const FILTERED: u64 = 1 << 16;

/// The tables of cells of a [`Collection`] under one schema: columns and categories united as [`ObsUnion`] says, so that
/// a code means the same in every dataset. What a dataset lacks is missing in its cells. It may be shared by threads.
pub struct ObsCollection<'a> {
    collection: &'a Collection,
    schema: ObsSchema,
    /// The categories of each column, as an array.
    vocabularies: Vec<ArrayRef>,
    /// For each dataset its table, where it has one, and what puts its rows in terms of the schema.
    tables: Vec<Option<ObsTable<'a>>>,
    encoders: Vec<Mutex<ObsEncoder>>,
}

impl Collection {
    /// The tables of cells, or `None` if no dataset has one. The schemas are read, and nothing else.
    ///
    /// # Errors
    /// With the path of the dataset: as [`Dataset::obs`](super::super::Dataset::obs), and as [`ObsUnion::add`] for
    /// columns of one name that do not go together.
    pub fn obs(&self) -> Result<Option<ObsCollection<'_>>, Error> {
        let tables = self.datasets().map(|dataset| dataset.obs()).collect::<Result<Vec<_>, Error>>()?;
        if tables.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut union = ObsUnion::new();
        for (dataset, table) in self.datasets().zip(&tables) {
            let Some(table) = table else { continue };
            let columns: Vec<&str> = table.schema().columns.iter().map(|column| &*column.name).collect();
            let added = table.values(&columns, &[]).and_then(|none| union.add(&none));
            added.map_err(|error| error.in_path(dataset.source.path("")))?;
        }
        let encoder = union.finish();
        let encoders = tables.iter().map(|_| Mutex::new(encoder.clone())).collect();
        let schema = encoder.schema().clone();
        let vocabularies = schema.columns.iter().map(|column| vocabulary(&column.categories)).collect();
        Ok(Some(ObsCollection { collection: self, schema, vocabularies, tables, encoders }))
    }
}

impl ObsCollection<'_> {
    /// Keeps columns in a folder of this machine.
    #[must_use]
    pub fn cached(mut self, cache: &Cache) -> Self {
        self.tables = self.tables.into_iter().map(|table| table.map(|table| table.cached(cache.clone()))).collect();
        self
    }

    /// All columns, with the categories of all datasets.
    pub fn schema(&self) -> &ObsSchema {
        &self.schema
    }

    /// Some columns of some cells, by their numbers in the collection; codes for categories, those of the schema.
    ///
    /// # Errors
    /// As [`ObsTable::codes`]; [`ErrorKind::OutOfRange`] with the path of the dataset for a number that the column's
    /// type over all datasets does not hold.
    pub fn codes(&self, columns: &[&str], cells: &[u64]) -> Result<RecordBatch, Error> {
        self.select(columns, cells, |_, array| array)
    }

    /// As [`ObsCollection::codes`], but categories as Arrow dictionaries with the whole vocabulary.
    ///
    /// # Errors
    /// As [`ObsCollection::codes`].
    pub fn values(&self, columns: &[&str], cells: &[u64]) -> Result<RecordBatch, Error> {
        self.select(columns, cells, |n, array| {
            super::table::dictionary(&self.schema.columns[n], &array, &self.vocabularies[n]).unwrap_or(array)
        })
    }

    fn select(
        &self,
        columns: &[&str],
        cells: &[u64],
        finish: impl Fn(usize, ArrayRef) -> ArrayRef,
    ) -> Result<RecordBatch, Error> {
        check_cells(cells, self.collection.n_cells())?;
        let position = |name: &&str| {
            self.schema.position(name).ok_or_else(|| {
                let why = no_such_column(&self.schema, name);
                Error::new(ErrorKind::Missing, Part::Option("column")).caused_by(why)
            })
        };
        let wanted = columns.iter().map(position).collect::<Result<Vec<usize>, Error>>()?;

        // The cells of each dataset, and for each cell its dataset and its place among them.
        let mut own: Vec<Vec<u64>> = vec![Vec::new(); self.tables.len()];
        let mut rows = Vec::with_capacity(cells.len());
        for (n, cell) in cells.iter().filter_map(|&cell| self.collection.locate(cell)) {
            rows.push((n, own[n].len()));
            own[n].push(cell);
        }
        let mut parts = Vec::new();
        let mut part_of = vec![0; own.len()];
        for (n, cells) in own.iter().enumerate().filter(|(_, cells)| !cells.is_empty()) {
            part_of[n] = parts.len();
            parts.push(self.part(n, &wanted, cells)?);
        }
        let rows: Vec<(usize, usize)> = rows.into_iter().map(|(n, row)| (part_of[n], row)).collect();
        if parts.is_empty() {
            parts.push(self.part(0, &wanted, &[])?);
        }

        let failed = |error: arrow_schema::ArrowError| Error::new(ErrorKind::WrongType, Part::Object).caused_by(error);
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (at, &n) in wanted.iter().enumerate() {
            let column = &self.schema.columns[n];
            let array = match &parts[..] {
                [part] => part[at].clone(), // of one dataset, and so in order
                _ => {
                    let parts: Vec<&dyn Array> = parts.iter().map(|part| &*part[at]).collect();
                    interleave(&parts, &rows).map_err(failed)?
                }
            };
            let array = finish(n, array);
            let nullable = column.kind != ObsKind::Category || *array.data_type() != column.arrow_type.arrow();
            fields.push(Field::new(&column.name, array.data_type().clone(), nullable));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(cells.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(failed)
    }

    /// Columns of cells of one dataset, in terms of the schema.
    fn part(&self, n: usize, wanted: &[usize], cells: &[u64]) -> Result<Vec<ArrayRef>, Error> {
        let read = || {
            let has = |&column: &usize| {
                let name = &*self.schema.columns[column].name;
                self.tables[n].as_ref().filter(|table| table.schema().position(name).is_some()).map(|_| name)
            };
            let names: Vec<&str> = wanted.iter().filter_map(has).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(cells.len()));
            let rows = match &self.tables[n] {
                Some(table) => table.values(&names, cells)?,
                None => RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
                    .map_err(|error| Error::new(ErrorKind::WrongType, Part::Object).caused_by(error))?,
            };
            self.encoders[n].lock().unwrap_or_else(PoisonError::into_inner).columns(wanted, &rows)
        };
        let path = || self.collection.datasets().nth(n).map(|dataset| dataset.source.path("")).unwrap_or_default();
        read().map_err(|error: Error| error.in_path(path()))
    }

    /// The numbers in the collection of the cells that pass a filter, in their order. The language is that of [`Filter`].
    ///
    /// # Errors
    /// As [`ObsTable::filter`].
    pub fn filter(&self, text: &str) -> Result<Vec<u64>, Error> {
        let filter = Filter::parse(&self.schema, text)?;
        let columns: Vec<&str> = filter.columns().iter().map(|&n| &*self.schema.columns[n].name).collect();
        let mut passing = Vec::new();
        let n_cells = self.collection.n_cells();
        let mut start = 0;
        while start < n_cells {
            let end = n_cells.min(start + FILTERED);
            let cells: Vec<u64> = (start..end).collect();
            let rows = self.codes(&columns, &cells)?;
            let arrays: Vec<&dyn Array> = rows.columns().iter().map(|array| &**array).collect();
            let passes = filter.passing(&arrays, cells.len());
            passing.extend(cells.into_iter().zip(passes).filter(|(_, passes)| *passes).map(|(cell, _)| cell));
            start = end;
        }
        Ok(passing)
    }
}

impl std::fmt::Debug for ObsCollection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.schema.columns.len();
        f.debug_struct("ObsCollection").field("datasets", self.collection).field("columns", &columns).finish()
    }
}
