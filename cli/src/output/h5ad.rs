//! An AnnData file: counts as CSR in `X`, the tables of cells and genes in `obs` and `var`.
//!
//! Source: the on-disk format of AnnData, versions 0.1.0 (matrices) and 0.2.0 (tables).

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, StringArray, UInt32Array};
use arrow_schema::DataType;
use rust_hdf5::types::{HBool, VarLenUnicode};
use rust_hdf5::{H5Dataset, H5File, H5Group, H5Type, Hdf5Error};
use tilekern::deltacel::dataset::obs::{Value, getter};
use tilekern::deltacel::dataset::var_index;

use super::tables::{Obs, names};
use crate::fault::{Fault, Stop};
use crate::selection::Selection;
use crate::text::shown;

/// How the index of a table without a name is called.
const INDEX: &str = "_index";

/// Elements of a chunk of texts, which are the only arrays whose size in the file is not known from the start.
const CHUNK: usize = 4096;

/// Groups that every reader expects, and that are empty here.
const EMPTY: [&str; 6] = ["layers", "obsm", "obsp", "uns", "varm", "varp"];

/// Writes the file at `at`, which is called `path` in faults. Returns the number of nonzeros.
pub fn write(at: &Path, selection: &Selection<'_>, path: &Path, notes: &mut Vec<String>) -> Result<u64, Stop> {
    // Nobody else knows the file yet, and not every file system has locks.
    let file = H5File::options().no_locking().create(at).map_err(|error| failed(error, path))?;
    let mut writer = Writer { path, notes };
    match writer.whole(&file, selection) {
        // The caller syncs it.
        Ok(nnz) => file.close_no_sync().map(|()| nnz).map_err(|error| failed(error, path)),
        Err(stop) => {
            // Dropped, it would finish the file, and print where that fails too.
            std::mem::forget(file);
            Err(stop)
        }
    }
}

struct Writer<'a> {
    path: &'a Path,
    notes: &'a mut Vec<String>,
}

/// Hands over the values of a column, piece by piece.
type Pieces<'a> = dyn FnMut(&mut dyn FnMut(&ArrayRef) -> Result<(), Stop>) -> Result<(), Stop> + 'a;

/// A column of a table.
struct Column<'a> {
    name: String,
    data_type: DataType,
    /// All categories, whichever of them rows have.
    vocabulary: Option<ArrayRef>,
    /// Whether their order has a meaning.
    ordered: bool,
    pieces: Box<Pieces<'a>>,
}

impl Writer<'_> {
    fn whole(&mut self, file: &H5File, selection: &Selection<'_>) -> Result<u64, Stop> {
        let root = file.root_group();
        file.set_attr_string("encoding-type", "anndata").map_err(|e| failed(e, self.path))?;
        file.set_attr_string("encoding-version", "0.1.0").map_err(|e| failed(e, self.path))?;
        self.genes(&root, selection)?;
        self.cells(&root, selection)?;
        let nnz = self.matrix(&root, selection)?;
        for name in EMPTY {
            self.group(&root, name, "dict", "0.1.0")?;
        }
        Ok(nnz)
    }

    fn matrix(&mut self, root: &H5Group, selection: &Selection<'_>) -> Result<u64, Stop> {
        let fault = |error| failed(error, self.path);
        let nnz = selection.nnz()?;
        let (n_cells, n_genes) = (selection.n_cells(), selection.n_genes());
        let group = self.group(root, "X", "csr_matrix", "0.1.0")?;
        let shape = [i64::try_from(n_cells).unwrap_or(i64::MAX), n_genes.into()];
        group.set_attr_array_numeric("shape", &shape).map_err(fault)?;
        let data = group.new_dataset::<i32>().shape([size(nnz)]).create("data").map_err(fault)?;
        let indices = group.new_dataset::<i32>().shape([size(nnz)]).create("indices").map_err(fault)?;
        let indptr = group.new_dataset::<i64>().shape([size(n_cells) + 1]).create("indptr").map_err(fault)?;
        indptr.write_slice(&[0], &[1], &[0i64]).map_err(fault)?;
        let (mut cells, mut before) = (0, 0i64);
        selection.each(|_, rows| {
            let start = size(before.unsigned_abs());
            put(&data, start, rows.values).map_err(fault)?;
            put(&indices, start, rows.indices).map_err(fault)?;
            let bounds: Vec<i64> = rows.indptr[1..].iter().map(|bound| before + bound).collect();
            put(&indptr, cells + 1, &bounds).map_err(fault)?;
            cells += bounds.len();
            before = bounds.last().copied().unwrap_or(before);
            Ok(())
        })?;
        Ok(nnz)
    }

    /// The table of cells. A first column of text without missing values is its index.
    fn cells(&mut self, root: &H5Group, selection: &Selection<'_>) -> Result<(), Stop> {
        let n_cells = selection.n_cells();
        let Some(obs) = Obs::of(selection)? else {
            self.notes.push("cells are named by their numbers, for there is no table of cells".to_owned());
            return self.table(root, "obs", n_cells, numbers(selection), &mut []);
        };
        let names: Vec<String> = obs.table().schema().columns.iter().map(|column| column.name.clone()).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let empty = obs.table().values(&all, &[])?;
        // The columns are read one after the other.
        let obs = RefCell::new(obs);
        let mut columns = Vec::new();
        for (name, no_rows) in names.iter().zip(empty.columns()) {
            let obs = &obs;
            let pieces = move |visit: &mut dyn FnMut(&ArrayRef) -> Result<(), Stop>| {
                selection.pieces().iter().try_for_each(|piece| {
                    let rows = obs.borrow_mut().values(&[name], piece)?;
                    visit(rows.column(0))
                })
            };
            let column = Column::of(name, no_rows.clone());
            columns.push(Column { pieces: Box::new(pieces), ..column });
        }
        let unnamed = match columns.first_mut() {
            Some(first) if first.data_type == DataType::Utf8 => match nulls(&mut first.pieces)? {
                0 => None,
                n => Some(format!("their first column, {:?}, lacks a value for {n} of them", first.name)),
            },
            Some(first) => Some(format!("their first column, {:?}, is not text", first.name)),
            None => Some("their table has no columns".to_owned()),
        };
        let index = match unnamed {
            None => columns.remove(0),
            Some(why) => {
                self.notes.push(format!("cells are named by their numbers, for {why}"));
                numbers(selection)
            }
        };
        self.table(root, "obs", n_cells, index, &mut columns)
    }

    /// The table of genes: the columns of the dataset's, or their names alone.
    fn genes(&mut self, root: &H5Group, selection: &Selection<'_>) -> Result<(), Stop> {
        // A tile of few bytes can state any number of genes.
        let (needed, limit) = (64 * u64::from(selection.n_genes()), selection.decoder.limits().max_output_bytes);
        if needed > limit {
            let message = format!(
                "the table of genes needs about {needed} bytes, the limit is {limit}; raise --max-output if you trust the source"
            );
            return Err(Fault::new("limit_exceeded", selection.source.path(), message).into());
        }
        let fault = |error| super::tables::failed(error, self.path);
        let table = match selection.source.dataset() {
            Some(dataset) => dataset.var()?,
            None => None,
        };
        let mut columns = Vec::new();
        let mut index = None;
        if let Some(table) = table {
            let stored: UInt32Array = (0..selection.n_genes()).map(|column| selection.stored(column)).collect();
            let take = |array| arrow_select::take::take(array, &stored, None);
            let arrays = table.columns().iter().map(|array| take(&**array)).collect::<Result<Vec<_>, _>>();
            let rows = RecordBatch::try_new(table.schema(), arrays.map_err(fault)?).map_err(fault)?;
            index = var_index(&table);
            for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
                let ordered = field.dict_is_ordered().unwrap_or(false);
                columns.push(Column { ordered, ..Column::of(field.name(), array.clone()) });
            }
        }
        let index = match index.map(|index| columns.remove(index)) {
            Some(mut index) => {
                // What pandas calls an index without a name.
                if index.name.starts_with("__index_level_") {
                    INDEX.clone_into(&mut index.name);
                }
                index.into_text()?
            }
            None => {
                let names = names(selection)?;
                let number = |column| selection.stored(column).to_string();
                let names = names.unwrap_or_else(|| (0..selection.n_genes()).map(number).collect());
                Column::of(INDEX, Arc::new(StringArray::from(names)))
            }
        };
        self.table(root, "var", selection.n_genes().into(), index, &mut columns)
    }

    fn table(
        &mut self,
        root: &H5Group,
        name: &str,
        rows: u64,
        mut index: Column<'_>,
        columns: &mut [Column<'_>],
    ) -> Result<(), Stop> {
        let group = self.group(root, name, "dataframe", "0.2.0")?;
        let mut taken = HashSet::from([INDEX.to_owned()]);
        let index_name = if index.name == INDEX { INDEX.to_owned() } else { self.free(name, &index.name, &mut taken) };
        group.set_attr_string("_index", &index_name).map_err(|e| failed(e, self.path))?;
        self.column(&group, &index_name, rows, &mut index)?;
        let mut order = Vec::new();
        for column in columns {
            let free = self.free(name, &column.name, &mut taken);
            if self.column(&group, &free, rows, column)? {
                order.push(free);
            } else {
                let (name, stored) = (&column.name, &column.data_type);
                self.notes
                    .push(format!("the column {name:?} is left out: h5ad has nothing for values of type {stored}"));
            }
        }
        let order: Vec<&str> = order.iter().map(String::as_str).collect();
        group.set_attr_string_array("column-order", &order).map_err(|e| failed(e, self.path))
    }

    /// The name of a column in the file, where a slash would part it, and which is there once only.
    fn free(&mut self, table: &str, name: &str, taken: &mut HashSet<String>) -> String {
        let mut free = name.replace(['/', '\0'], "_");
        while free.is_empty() || free == "." || !taken.insert(free.clone()) {
            free.push('_');
        }
        if free != name {
            self.notes.push(format!("the column {name:?} of {table} is called {free:?}"));
        }
        free
    }

    /// Writes a column; tells whether its type is one that the format has.
    fn column(&mut self, group: &H5Group, name: &str, rows: u64, column: &mut Column<'_>) -> Result<bool, Stop> {
        let pieces = &mut *column.pieces;
        match &column.data_type {
            DataType::Int8 => self.integers::<Int8Type>(group, name, rows, pieces)?,
            DataType::Int16 => self.integers::<Int16Type>(group, name, rows, pieces)?,
            DataType::Int32 => self.integers::<Int32Type>(group, name, rows, pieces)?,
            DataType::Int64 => self.integers::<Int64Type>(group, name, rows, pieces)?,
            DataType::UInt8 => self.integers::<UInt8Type>(group, name, rows, pieces)?,
            DataType::UInt16 => self.integers::<UInt16Type>(group, name, rows, pieces)?,
            DataType::UInt32 => self.integers::<UInt32Type>(group, name, rows, pieces)?,
            DataType::UInt64 => self.integers::<UInt64Type>(group, name, rows, pieces)?,
            DataType::Float16 | DataType::Float32 => {
                // Every number of 16 bits is one of 32.
                #[allow(clippy::cast_possible_truncation)]
                self.floats(group, name, rows, pieces, |value| value as f32)?;
            }
            DataType::Float64 => self.floats(group, name, rows, pieces, |value| value)?,
            DataType::Boolean => self.booleans(group, name, rows, pieces)?,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.texts(group, name, rows, pieces)?,
            DataType::Dictionary(..) => {
                let vocabulary = column.vocabulary.clone().unwrap_or_else(|| Arc::new(StringArray::new_null(0)));
                return self.categories(group, name, rows, vocabulary, column.ordered, pieces);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn integers<T: ArrowPrimitiveType<Native: H5Type + Default>>(
        &mut self,
        group: &H5Group,
        name: &str,
        rows: u64,
        pieces: &mut Pieces<'_>,
    ) -> Result<(), Stop> {
        let values = |array: &ArrayRef| {
            array.as_primitive::<T>().iter().map(Option::unwrap_or_default).collect::<Vec<T::Native>>()
        };
        if nulls(pieces)? == 0 {
            return self.array(group, name, rows, pieces, values);
        }
        let group = self.group(group, name, "nullable-integer", "0.1.0")?;
        self.array(&group, "values", rows, pieces, values)?;
        self.mask(&group, rows, pieces)
    }

    fn floats<T: H5Type>(
        &mut self,
        group: &H5Group,
        name: &str,
        rows: u64,
        pieces: &mut Pieces<'_>,
        narrow: impl Fn(f64) -> T,
    ) -> Result<(), Stop> {
        if nulls(pieces)? > 0 {
            self.notes.push(format!("missing values of {name:?} are NaN in h5ad"));
        }
        self.array(group, name, rows, pieces, |array| {
            let get = getter(&**array);
            let value = |row| match get.as_ref().map(|get| get(row)) {
                Some(Value::Float(value)) => narrow(value),
                _ => narrow(f64::NAN),
            };
            (0..array.len()).map(value).collect()
        })
    }

    fn booleans(&mut self, group: &H5Group, name: &str, rows: u64, pieces: &mut Pieces<'_>) -> Result<(), Stop> {
        let values = |array: &ArrayRef| {
            array.as_boolean().iter().map(|value| HBool::from(value.unwrap_or_default())).collect::<Vec<_>>()
        };
        if nulls(pieces)? == 0 {
            return self.array(group, name, rows, pieces, values);
        }
        let group = self.group(group, name, "nullable-boolean", "0.1.0")?;
        self.array(&group, "values", rows, pieces, values)?;
        self.mask(&group, rows, pieces)
    }

    fn texts(&mut self, group: &H5Group, name: &str, rows: u64, pieces: &mut Pieces<'_>) -> Result<(), Stop> {
        if nulls(pieces)? == 0 {
            return self.strings(group, name, rows, pieces);
        }
        let group = self.group(group, name, "nullable-string-array", "0.1.0")?;
        self.strings(&group, "values", rows, pieces)?;
        self.mask(&group, rows, pieces)
    }

    /// Codes, and the whole vocabulary.
    fn categories(
        &mut self,
        group: &H5Group,
        name: &str,
        rows: u64,
        vocabulary: ArrayRef,
        ordered: bool,
        pieces: &mut Pieces<'_>,
    ) -> Result<bool, Stop> {
        let group = self.group(group, name, "categorical", "0.2.0")?;
        group.set_attr_numeric("ordered", &HBool::from(ordered)).map_err(|e| failed(e, self.path))?;
        let codes = |array: &ArrayRef| -> Vec<i128> {
            let get = getter(array.as_any_dictionary().keys());
            let code = |row| if let Some(Value::Int(code)) = get.as_ref().map(|get| get(row)) { code } else { -1 };
            (0..array.len()).map(code).collect()
        };
        fn narrow<T: TryFrom<i128> + Default>(codes: Vec<i128>) -> Vec<T> {
            // A code is below the size of the vocabulary, by which the type is chosen.
            codes.into_iter().map(|code| T::try_from(code).unwrap_or_default()).collect()
        }
        match vocabulary.len() {
            0..=127 => self.array(&group, "codes", rows, pieces, |array| narrow::<i8>(codes(array)))?,
            128..=32_767 => self.array(&group, "codes", rows, pieces, |array| narrow::<i16>(codes(array)))?,
            _ => self.array(&group, "codes", rows, pieces, |array| narrow::<i32>(codes(array)))?,
        }
        let len = vocabulary.len() as u64;
        self.column(&group, "categories", len, &mut Column::of("categories", vocabulary))
    }

    /// Which values are missing.
    fn mask(&mut self, group: &H5Group, rows: u64, pieces: &mut Pieces<'_>) -> Result<(), Stop> {
        self.array(group, "mask", rows, pieces, |array| {
            (0..array.len()).map(|row| HBool::from(array.is_null(row))).collect()
        })
    }

    fn array<T: H5Type>(
        &mut self,
        group: &H5Group,
        name: &str,
        rows: u64,
        pieces: &mut Pieces<'_>,
        values: impl Fn(&ArrayRef) -> Vec<T>,
    ) -> Result<(), Stop> {
        let fault = |error| failed(error, self.path);
        let dataset = group.new_dataset::<T>().shape([size(rows)]).create(name).map_err(fault)?;
        self.encoding(&dataset, "array")?;
        let mut at = 0;
        pieces(&mut |array| {
            let values = values(array);
            put(&dataset, at, &values).map_err(fault)?;
            at += values.len();
            Ok(())
        })
    }

    fn strings(&mut self, group: &H5Group, name: &str, rows: u64, pieces: &mut Pieces<'_>) -> Result<(), Stop> {
        let fault = |error| failed(error, self.path);
        let dataset = group.create_appendable_vlen_dataset(name, size(rows).clamp(1, CHUNK), None).map_err(fault)?;
        self.encoding(&dataset, "string-array")?;
        pieces(&mut |array| {
            let get = getter(&**array);
            let text = |row| match get.as_ref().map(|get| get(row)) {
                Some(Value::String(text)) => text,
                _ => "",
            };
            let texts: Vec<&str> = (0..array.len()).map(text).collect();
            if let Some(text) = texts.iter().find(|text| text.contains('\0')) {
                let message =
                    format!("{text:?} has a zero character, at which texts end in HDF5: write .parquet or .arrow");
                return Err(Fault::new("unsupported", self.path, message).into());
            }
            group.append_vlen_strings(name, &texts).map_err(fault)
        })
    }

    fn group(&self, parent: &H5Group, name: &str, encoding: &str, version: &str) -> Result<H5Group, Stop> {
        let make = || {
            let group = parent.create_group(name)?;
            group.set_attr_string("encoding-type", encoding)?;
            group.set_attr_string("encoding-version", version)?;
            Ok(group)
        };
        make().map_err(|error| failed(error, self.path))
    }

    fn encoding(&self, dataset: &H5Dataset, encoding: &str) -> Result<(), Stop> {
        let set = |key, value| dataset.new_attr::<VarLenUnicode>().create(key)?.write_string(value);
        set("encoding-type", encoding)
            .and_then(|()| set("encoding-version", "0.2.0"))
            .map_err(|error| failed(error, self.path))
    }
}

impl<'a> Column<'a> {
    /// A column that is in memory.
    fn of(name: &str, array: ArrayRef) -> Column<'a> {
        let data_type = array.data_type().clone();
        let vocabulary = array.as_any_dictionary_opt().map(|dictionary| dictionary.values().clone());
        let pieces = Box::new(move |visit: &mut dyn FnMut(&ArrayRef) -> Result<(), Stop>| visit(&array));
        Column { name: name.to_owned(), data_type, vocabulary, ordered: false, pieces }
    }

    /// The same with its values as text, as an index must be.
    fn into_text(mut self) -> Result<Column<'a>, Stop> {
        let mut texts: Vec<String> = Vec::new();
        (self.pieces)(&mut |array| {
            let get = getter(&**array);
            let text = |row| match get.as_ref().map(|get| get(row)) {
                Some(Value::String(text)) => text.to_owned(),
                Some(other) => shown(other),
                None => String::new(),
            };
            texts.extend((0..array.len()).map(text));
            Ok(())
        })?;
        Ok(Column::of(&self.name, Arc::new(StringArray::from(texts))))
    }
}

/// The numbers of cells as their names.
fn numbers<'a>(selection: &'a Selection<'_>) -> Column<'a> {
    let pieces = move |visit: &mut dyn FnMut(&ArrayRef) -> Result<(), Stop>| {
        selection.pieces().iter().try_for_each(|piece| {
            let names: StringArray = piece.cells().map(|cell| Some(cell.to_string())).collect();
            visit(&(Arc::new(names) as ArrayRef))
        })
    };
    let (data_type, pieces) = (DataType::Utf8, Box::new(pieces));
    Column { name: INDEX.to_owned(), data_type, vocabulary: None, ordered: false, pieces }
}

fn nulls(pieces: &mut Pieces<'_>) -> Result<u64, Stop> {
    let mut nulls = 0;
    pieces(&mut |array| {
        nulls += array.null_count() as u64;
        Ok(())
    })?;
    Ok(nulls)
}

/// Writes values of an array from `start` on.
fn put<T: H5Type>(dataset: &H5Dataset, start: usize, values: &[T]) -> Result<(), Hdf5Error> {
    if values.is_empty() { Ok(()) } else { dataset.write_slice(&[start], &[values.len()], values) }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn failed(error: Hdf5Error, path: &Path) -> Stop {
    match error {
        Hdf5Error::Io(error) => Stop::write(error, path),
        other => Fault::new("io", path, other.to_string()).into(),
    }
}
