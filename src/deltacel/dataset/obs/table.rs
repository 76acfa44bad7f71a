//! Reading the table of cells: any columns of any cells, and the cells that pass a filter.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, Float64Array, Int64Array, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, UInt64Array, new_empty_array,
};
use arrow_schema::{Field, Schema};
use arrow_select::interleave::interleave;

use super::cache::Cache;
use super::filter::Filter;
use super::schema::{Category, MAX_BYTES, ObsColumn, ObsKind, ObsSchema};
use super::shards::Shard;
use crate::deltacel::dataset::manifest::Obs;
use crate::deltacel::dataset::rows::check_cells;
use crate::deltacel::dataset::{Dataset, OBS_SCHEMA, once, read_file};
use crate::error::{Error, ErrorKind, Limit, Part, SyntaxFault};
use crate::limits::Limits;

/// The table of cells of a dataset. Nothing is read but what is asked for: single columns of single tiles, or with a
/// [`Cache`] whole columns, once for all processes. What was read stays in memory. It may be shared by threads.
pub struct ObsTable<'a> {
    dataset: &'a Dataset,
    stated: &'a Obs,
    schema: ObsSchema,
    cache: Option<Cache>,
    shards: Vec<OnceLock<Shard>>,
    /// The values of each column that was asked for, by tile.
    columns: Vec<OnceLock<Column>>,
    /// The categories of each column that was asked for, as an array.
    vocabularies: Vec<OnceLock<ArrayRef>>,
}

type Column = Vec<OnceLock<ArrayRef>>;

impl<'a> ObsTable<'a> {
    pub(in crate::deltacel::dataset) fn open(dataset: &'a Dataset, stated: &'a Obs) -> Result<ObsTable<'a>, Error> {
        let text = read_file(&*dataset.source, OBS_SCHEMA, MAX_BYTES.min(dataset.limits.max_input_bytes));
        let schema = text.and_then(|text| ObsSchema::from_json(&text));
        let in_file = |error: Error| error.in_part(Part::Schema(None)).in_path(dataset.source.path(OBS_SCHEMA));
        let schema = schema.map_err(in_file)?;
        let shards = stated.shard_bytes.iter().map(|_| OnceLock::new()).collect();
        let columns = schema.columns.iter().map(|_| OnceLock::new()).collect();
        let vocabularies = schema.columns.iter().map(|_| OnceLock::new()).collect();
        Ok(ObsTable { dataset, stated, schema, cache: None, shards, columns, vocabularies })
    }

    /// Keeps columns in a folder of this machine.
    #[must_use]
    pub fn cached(mut self, cache: Cache) -> ObsTable<'a> {
        self.cache = Some(cache);
        self
    }

    /// What is wrong with the columns that the cache keeps of this table, each with the path of its file: damage, which the
    /// next reading heals by fetching the column again, and values that are not those of the dataset, which only this call
    /// finds. It reads every column that is kept, twice.
    pub fn cache_faults(&self) -> Vec<Error> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let n_tiles = self.dataset.n_tiles();
        let rows: Vec<u64> = (0..n_tiles).map(|tile| self.dataset.manifest.tile_cells(tile)).collect();
        let mut faults = Vec::new();
        for (n, column) in self.schema.columns.iter().enumerate() {
            let fingerprint = self.stated.fingerprint();
            let checked = cache.kept(fingerprint, column, &rows, &self.dataset.limits).and_then(|kept| {
                let mut same = true;
                if let Some(kept) = kept {
                    self.fetch(n, 0..n_tiles, |tile, array| {
                        same &= *kept[tile as usize] == *array;
                        Ok(())
                    })?;
                }
                let why = "its values are not those of the dataset; remove it";
                let other = Error::new(ErrorKind::Syntax(SyntaxFault::ArrowIpc), Part::Object).caused_by(why);
                if same { Ok(()) } else { Err(other.in_path(cache.path(fingerprint, &column.name))) }
            });
            faults.extend(checked.err());
        }
        faults
    }

    /// Its columns.
    pub fn schema(&self) -> &ObsSchema {
        &self.schema
    }

    /// Some columns of some cells as they are stored, codes for categories; a row for each cell in the given order,
    /// which is free, with repeats.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`] in [`Part::Option`] for a column that there is not; [`ErrorKind::OutOfRange`] in
    /// [`Part::Cells`] with the index of the first cell that there is not; [`ErrorKind::LimitExceeded`]; what is wrong
    /// with a shard, with its path; [`ErrorKind::Io`].
    pub fn codes(&self, columns: &[&str], cells: &[u64]) -> Result<RecordBatch, Error> {
        self.select(columns, cells, |_, array| array)
    }

    /// As [`ObsTable::codes`], but categories as Arrow dictionaries with the whole vocabulary: of text, of integers, of
    /// numbers or of booleans, or of text where a vocabulary mixes them.
    ///
    /// # Errors
    /// As [`ObsTable::codes`].
    pub fn values(&self, columns: &[&str], cells: &[u64]) -> Result<RecordBatch, Error> {
        self.select(columns, cells, |n, array| {
            let column = &self.schema.columns[n];
            let vocabulary = self.vocabularies[n].get_or_init(|| vocabulary(&column.categories));
            dictionary(column, &array, vocabulary).unwrap_or(array)
        })
    }

    fn select(
        &self,
        columns: &[&str],
        cells: &[u64],
        finish: impl Fn(usize, ArrayRef) -> ArrayRef,
    ) -> Result<RecordBatch, Error> {
        let manifest = &self.dataset.manifest;
        check_cells(cells, manifest.n_cells).map_err(|error| self.dataset.located(error))?;
        let located: Vec<(u32, u64)> = cells.iter().filter_map(|&cell| manifest.locate(cell)).collect();
        let mut tiles: Vec<u32> = located.iter().map(|row| row.0).collect();
        tiles.sort_unstable();
        tiles.dedup();
        let at = |&(tile, row): &(u32, u64)| {
            let array = tiles.partition_point(|&other| other < tile);
            (array, usize::try_from(row).unwrap_or(usize::MAX)) // the tile's rows are in memory
        };
        let rows: Vec<(usize, usize)> = located.iter().map(at).collect();
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for name in columns {
            let n = self.schema.position(name).ok_or_else(|| {
                let why = super::no_such_column(&self.schema, name);
                Error::new(ErrorKind::Missing, Part::Option("column")).caused_by(why)
            })?;
            let column = &self.schema.columns[n];
            let parts = self.tiles(n, &tiles)?;
            let array = gather(column, &parts, &rows, &self.dataset.limits)?;
            let array = finish(n, array);
            let nullable = column.kind != ObsKind::Category || *array.data_type() != column.arrow_type.arrow();
            fields.push(Field::new(*name, array.data_type().clone(), nullable));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(cells.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| Error::new(ErrorKind::WrongType, Part::Object).caused_by(error))
    }

    /// The global numbers of the cells that pass a filter, in their order. The language is that of [`Filter`].
    ///
    /// # Errors
    /// Those of [`Filter::parse`]; what is wrong with a shard, with its path; [`ErrorKind::Io`].
    pub fn filter(&self, text: &str) -> Result<Vec<u64>, Error> {
        let filter = Filter::parse(&self.schema, text)?;
        let manifest = &self.dataset.manifest;
        let mut cells = Vec::new();
        for (tile, end) in (0..).zip(manifest.tile_limits()) {
            let start = end - manifest.tile_cells(tile);
            let parts = filter.columns().iter().map(|&column| Ok(self.tiles(column, &[tile])?.swap_remove(0)));
            let parts = parts.collect::<Result<Vec<ArrayRef>, Error>>()?;
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
            let rows = usize::try_from(end - start).unwrap_or(usize::MAX);
            let rows = arrays.first().map_or(rows, |array| array.len());
            let passing = filter.passing(&arrays, rows);
            cells.extend((start..end).zip(passing).filter(|(_, passes)| *passes).map(|(cell, _)| cell));
        }
        Ok(cells)
    }

    /// The values of a column for some tiles.
    fn tiles(&self, column: usize, tiles: &[u32]) -> Result<Vec<ArrayRef>, Error> {
        let n_tiles = self.dataset.n_tiles();
        let loaded = self.columns[column].get_or_init(|| (0..n_tiles).map(|_| OnceLock::new()).collect());
        if let Some(cache) = &self.cache
            && tiles.iter().any(|&tile| loaded[tile as usize].get().is_none())
        {
            let manifest = &self.dataset.manifest;
            let rows: Vec<u64> = (0..n_tiles).map(|tile| manifest.tile_cells(tile)).collect();
            let (about, limits) = (&self.schema.columns[column], &self.dataset.limits);
            let mut fetch = |put: &mut dyn FnMut(ArrayRef) -> Result<(), Error>| {
                self.fetch(column, 0..n_tiles, |_, array| put(array))
            };
            let arrays = cache.column(self.stated.fingerprint(), about, &rows, limits, &mut fetch)?;
            for (slot, array) in loaded.iter().zip(arrays) {
                slot.get_or_init(|| array);
            }
        }
        let missing: Vec<u32> = tiles.iter().copied().filter(|&tile| loaded[tile as usize].get().is_none()).collect();
        self.fetch(column, missing.into_iter(), |tile, array| {
            loaded[tile as usize].get_or_init(|| array);
            Ok(())
        })?;
        Ok(tiles.iter().filter_map(|&tile| loaded[tile as usize].get().cloned()).collect())
    }

    /// Reads a column of some tiles, in increasing order, from the shards.
    fn fetch(
        &self,
        column: usize,
        tiles: impl Iterator<Item = u32>,
        mut put: impl FnMut(u32, ArrayRef) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Dataset { source, manifest, limits, .. } = self.dataset;
        let mut open = None;
        for tile in tiles {
            let n = usize::try_from(u64::from(tile) / self.stated.tiles_per_file).unwrap_or(usize::MAX);
            if open.as_ref().is_none_or(|(shard, _)| *shard != n) {
                let mut object = None;
                once(&self.shards[n], || {
                    let (shard, opened) = Shard::open(&**source, manifest, self.stated, &self.schema, n, limits)?;
                    object = Some(opened);
                    Ok(shard)
                })?;
                let object = object.map_or_else(|| Shard::object(&**source, self.stated, n), Ok)?;
                open = Some((n, object));
            }
            if let Some((n, object)) = &mut open
                && let Some(shard) = self.shards[*n].get()
            {
                put(tile, shard.column(&**source, &mut **object, &self.schema, tile, column, limits)?)?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for ObsTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObsTable").field("dataset", self.dataset).field("columns", &self.schema.columns.len()).finish()
    }
}

/// Rows of several arrays, each given by its array and its row there.
fn gather(column: &ObsColumn, parts: &[ArrayRef], rows: &[(usize, usize)], limits: &Limits) -> Result<ArrayRef, Error> {
    let failed = |error: arrow_schema::ArrowError| Error::new(ErrorKind::WrongType, Part::Object).caused_by(error);
    let mut bytes = 8 * rows.len() as u64;
    if column.kind == ObsKind::String {
        let len = |&(part, row): &(usize, usize)| {
            u64::try_from(parts[part].as_string::<i32>().value_length(row)).unwrap_or(0)
        };
        let text = rows.iter().map(len).fold(0, u64::saturating_add);
        // Offsets of Arrow's string arrays are of 32 bits.
        Limits::check(text, i32::MAX.unsigned_abs().into(), Limit::OutputBytes, Part::Cells)?;
        bytes += text;
    }
    Limits::check(bytes, limits.max_output_bytes, Limit::OutputBytes, Part::Cells)?;
    if parts.is_empty() {
        return Ok(new_empty_array(&column.arrow_type.arrow()));
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
    interleave(&parts, rows).map_err(failed)
}

/// Codes as an Arrow dictionary; `None` for a column of another kind.
pub(super) fn dictionary(column: &ObsColumn, codes: &ArrayRef, vocabulary: &ArrayRef) -> Option<ArrayRef> {
    fn of<T: ArrowDictionaryKeyType + ArrowPrimitiveType<Native: Default + PartialOrd>>(
        codes: &ArrayRef,
        values: ArrayRef,
    ) -> Option<ArrayRef> {
        let codes = codes.as_primitive_opt::<T>()?;
        let key = |code: T::Native| (code >= T::Native::default()).then_some(code);
        let keys: PrimitiveArray<T> = codes.iter().map(|code| code.and_then(key)).collect();
        Some(Arc::new(DictionaryArray::<T>::try_new(keys, values).ok()?))
    }
    if column.kind != ObsKind::Category {
        return None;
    }
    let values = vocabulary.clone();
    match codes.data_type() {
        arrow_schema::DataType::Int8 => of::<Int8Type>(codes, values),
        arrow_schema::DataType::Int16 => of::<Int16Type>(codes, values),
        _ => of::<Int32Type>(codes, values),
    }
}

/// Categories as an array of their common type, or of text.
pub(super) fn vocabulary(categories: &[Category]) -> ArrayRef {
    fn all<'a, T>(categories: &'a [Category], get: impl Fn(&'a Category) -> Option<T>) -> Option<Vec<T>> {
        categories.iter().map(get).collect()
    }
    let int = |category: &Category| if let Category::Int(value) = category { Some(*value) } else { None };
    if categories.is_empty() {
        return Arc::new(StringArray::new_null(0));
    }
    if let Some(values) = all(categories, |category| i64::try_from(int(category)?).ok()) {
        return Arc::new(Int64Array::from(values));
    }
    if let Some(values) = all(categories, |category| u64::try_from(int(category)?).ok()) {
        return Arc::new(UInt64Array::from(values));
    }
    if let Some(values) =
        all(categories, |category| if let Category::Bool(value) = category { Some(*value) } else { None })
    {
        return Arc::new(BooleanArray::from(values));
    }
    if let Some(values) =
        all(categories, |category| if let Category::Float(value) = category { Some(*value) } else { None })
    {
        return Arc::new(Float64Array::from(values));
    }
    Arc::new(categories.iter().map(|category| Some(category.to_string())).collect::<StringArray>())
}
