//! `var.parquet`: the table of genes, with the index that pandas had.
//!
//! Source: DELTACEL file format, "Obs", "var.parquet"; pandas' developer notes on its metadata in Parquet files.

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "encode")]
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
#[cfg(feature = "encode")]
use parquet::arrow::arrow_writer::{ArrowWriter, compute_leaves};
#[cfg(feature = "encode")]
use parquet::file::properties::WriterProperties;
use serde_json::Value;
#[cfg(feature = "encode")]
use serde_json::json;

#[cfg(feature = "encode")]
use super::dictionary;
use super::obs::parquet_file::ParquetFile;
use super::obs::values::{self, getter};
use super::{Dataset, VAR_TABLE, VarNames};
use crate::error::{Error, ErrorKind, Part};
use crate::limits::Limits;
use crate::source::Object;

/// The key of pandas' metadata, in Parquet files and in the schema of a record batch.
const PANDAS: &str = "pandas";

/// The key, in the metadata of the schema of a record batch, of the name that its index has in pandas. The index is the
/// first column, whose own name must differ from those of the others.
pub const INDEX_NAME: &str = "index_name";

/// How pandas calls the column of an index without a name.
#[cfg(feature = "encode")]
const UNNAMED: &str = "__index_level_0__";

const PART: Part = Part::File(VAR_TABLE);

/// Reads the table, which has a row for each gene.
pub(super) fn read(object: &mut dyn Object, n_genes: u32, limits: &Limits) -> Result<RecordBatch, Error> {
    let file = ParquetFile::open(object, limits)?;
    let rows = (0..file.row_groups().len()).map(|group| file.rows(group)).fold(0, u64::saturating_add);
    if rows != u64::from(n_genes) {
        let kind = ErrorKind::Inconsistent { found: rows.into(), expected: n_genes.into() };
        return Err(Error::new(kind, PART).caused_by("its number of rows, and n_genes in manifest.json"));
    }
    let table = file.whole(object, limits)?;
    if table.num_rows() as u64 != rows {
        let kind = ErrorKind::Inconsistent { found: table.num_rows() as i128, expected: rows.into() };
        return Err(Error::new(kind, PART).caused_by("its rows, and those that its footer states"));
    }
    let mut metadata = table.schema().metadata().clone();
    if let Some(text) = file.key_value(PANDAS) {
        metadata.insert(PANDAS.to_owned(), text.to_owned());
    }
    let pandas = metadata.get(PANDAS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    let schema = Schema::new_with_metadata(table.schema().fields().clone(), metadata);
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| {
        // The reader makes an empty text of a dictionary of nothing; the metadata knows better.
        let none = matches!(array.data_type(), DataType::Dictionary(..)) && array.null_count() == array.len();
        if none && categories(&pandas, field.name()) == Some(0) {
            return arrow_array::new_null_array(array.data_type(), array.len());
        }
        array.clone()
    };
    let columns = schema.fields().iter().zip(table.columns()).map(column).collect();
    RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|error| Error::new(ErrorKind::WrongType, PART).caused_by(error))
}

/// How many categories a column has, as the metadata of pandas says it.
fn categories(pandas: &Value, name: &str) -> Option<u64> {
    let mut columns = pandas["columns"].as_array()?.iter();
    columns.find(|column| column["field_name"] == name)?["metadata"]["num_categories"].as_u64()
}

/// The number of the column that pandas takes for the index of a table of genes; `None` where the table does not say,
/// or where the index is no column (but a range) or several.
pub fn var_index(table: &RecordBatch) -> Option<usize> {
    let metadata: Value = serde_json::from_str(table.schema_ref().metadata().get(PANDAS)?).ok()?;
    match metadata["index_columns"].as_array()?.as_slice() {
        [Value::String(name)] => table.schema_ref().index_of(name).ok(),
        _ => None,
    }
}

/// The names that the index of a dataset's table of genes has, if there is such a table with an index of text.
pub(super) fn index_names(dataset: &Dataset) -> Result<Option<VarNames>, Error> {
    let Some(table) = dataset.var()? else { return Ok(None) };
    let column = var_index(&table).map(|index| column_texts(table.column(index)));
    Ok(column.and_then(|texts| texts.into_iter().collect::<Option<Vec<String>>>()).map(VarNames::of))
}

/// The text of a column of a dataset's table of genes, where a gene has one.
pub(super) fn texts(dataset: &Dataset, column: &str) -> Result<Vec<Option<String>>, Error> {
    let missing =
        |why: String| Error::new(ErrorKind::Missing, Part::Genes).in_path(dataset.source.path("")).caused_by(why);
    let table =
        dataset.var()?.ok_or_else(|| missing("the dataset has no table of genes; choose by index".to_owned()))?;
    table.column_by_name(column).map(column_texts).ok_or_else(|| {
        let fields = table.schema_ref().fields();
        let names: Vec<String> = fields.iter().map(|field| format!("{:?}", field.name())).collect();
        missing(format!("the table of genes has no column {column:?}; it has {}", names.join(", ")))
    })
}

/// Text as it is, and integers as text.
fn column_texts(array: &ArrayRef) -> Vec<Option<String>> {
    let Some(get) = getter(array) else { return vec![None; array.len()] };
    let text = |row| match get(row) {
        values::Value::String(text) => Some(text.to_owned()),
        values::Value::Int(value) => Some(value.to_string()),
        _ => None,
    };
    (0..array.len()).map(text).collect()
}

/// Refuses a column whose name another one has: pandas and others do not read such a table.
pub(super) fn check_columns(table: &RecordBatch, part: Part) -> Result<(), Error> {
    let mut names = HashMap::new();
    for (at, field) in (0u64..).zip(table.schema_ref().fields()) {
        if let Some(first) = names.insert(field.name(), at) {
            let why = format!("column {:?}, a name that another column has", field.name());
            return Err(Error::new(ErrorKind::Repeated { first }, part).index(at).caused_by(why));
        }
    }
    Ok(())
}

/// Where an index of text says anything else than the names of the genes.
pub(super) fn disagreement<'a>(
    table: &RecordBatch,
    index: usize,
    name: impl Fn(usize) -> Option<&'a str>,
) -> Option<Error> {
    let get = getter(table.column(index))?;
    let text = |row| match get(row) {
        values::Value::String(text) => Some(text),
        _ => None,
    };
    if !(0..table.num_rows()).all(|row| text(row).is_some()) {
        return None;
    }
    let row = (0..table.num_rows()).find(|&row| text(row) != name(row))?;
    let [found, expected] = [text(row), name(row)].map(Option::unwrap_or_default);
    let why = format!("the index has {found:?} where var_names.txt has {expected:?}");
    Some(Error::new(ErrorKind::OtherGenes, PART).index(row as u64).caused_by(why))
}

/// Passes a table to be written whose index is of other values than text, or the same as the names of the genes.
#[cfg(feature = "encode")]
pub(super) fn check_names(table: &RecordBatch, names: &[String]) -> Result<(), Error> {
    let index = if table.schema_ref().metadata().contains_key(PANDAS) { var_index(table) } else { Some(0) };
    let name = |row: usize| names.get(row).map(String::as_str);
    index.and_then(|index| disagreement(table, index, name)).map_or(Ok(()), Err)
}

/// The file's bytes.
#[cfg(feature = "encode")]
pub(super) fn to_bytes(table: &RecordBatch, n_genes: u32) -> Result<Vec<u8>, Error> {
    use super::obs::write::{properties, write_error};
    let part = Part::Option("var");
    let (found, expected) = (table.num_rows() as i128, n_genes.into());
    if found != expected {
        return Err(Error::new(ErrorKind::Inconsistent { found, expected }, part).caused_by("one row for each gene"));
    }
    if table.num_columns() == 0 {
        return Err(Error::new(ErrorKind::Missing, part).caused_by("the index is its first column"));
    }
    check_columns(table, part)?;
    let table = &plain(table).map_err(|error| Error::new(ErrorKind::WrongType, part).caused_by(error))?;
    let schema = table.schema();
    let mut metadata = schema.metadata().clone();
    let name = metadata.remove(INDEX_NAME);
    let pandas = metadata.remove(PANDAS).unwrap_or_else(|| pandas_metadata(table, name.as_deref()));
    // Readers of Arrow look for it in the copy of Arrow's schema, all others in the file's own metadata.
    metadata.insert(PANDAS.to_owned(), pandas.clone());
    let schema = Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata));
    let mut bytes = Vec::new();
    let written = RecordBatch::try_new(schema, table.columns().to_vec()).map_err(Into::into).and_then(|table| {
        let properties =
            properties(Some(pandas)).map_err(|error| parquet::errors::ParquetError::External(error.into()))?;
        write_table(&mut bytes, &table, properties)
    });
    written.map_err(|error| write_error(error).in_part(part))?;
    Ok(bytes)
}

/// The table with categories that are no text as plain values, which is all that readers of Arrow make of them in Parquet
/// (or less: of booleans some make nothing).
#[cfg(feature = "encode")]
fn plain(table: &RecordBatch) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| match array.as_any_dictionary_opt() {
        Some(column) if dictionary::of_text(array).is_none() => {
            let values = arrow_select::take::take(column.values(), column.keys(), None)?;
            let field = field.as_ref().clone().with_data_type(values.data_type().clone()).with_dict_is_ordered(false);
            Ok((Arc::new(field), values))
        }
        _ => Ok((field.clone(), array.clone())),
    };
    let schema = table.schema();
    let columns = schema.fields().iter().zip(table.columns()).map(column);
    let (fields, columns): (Vec<_>, Vec<_>) =
        columns.collect::<Result<Vec<_>, arrow_schema::ArrowError>>()?.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), columns)
}

/// Writes a table as one row group. Categories that are text keep their order, and those that no gene has are kept.
#[cfg(feature = "encode")]
fn write_table(
    bytes: &mut Vec<u8>,
    table: &RecordBatch,
    properties: WriterProperties,
) -> Result<(), parquet::errors::ParquetError> {
    let writer = ArrowWriter::try_new(bytes, table.schema(), Some(properties))?;
    let (mut file, factory) = writer.into_serialized_writer()?;
    let descriptions = file.schema_descr().columns().to_vec();
    let mut leaves = factory.create_column_writers(0)?.into_iter().zip(&descriptions);
    let mut group = file.next_row_group()?;
    for (field, array) in table.schema_ref().fields().iter().zip(table.columns()) {
        if let Some(column) = dictionary::of_text(array) {
            if let Some((_, description)) = leaves.next() {
                let (pages, close) = dictionary::chunk(column, description)?;
                group.append_column(&pages, close)?;
            }
            continue;
        }
        for (leaf, (mut writer, _)) in compute_leaves(field, array)?.iter().zip(&mut leaves) {
            writer.write(leaf)?;
            writer.close()?.append_to_row_group(&mut group)?;
        }
    }
    group.close()?;
    file.close().map(drop)
}

/// What pandas needs to restore its table: the first column is the index.
#[cfg(feature = "encode")]
fn pandas_metadata(table: &RecordBatch, index_name: Option<&str>) -> String {
    let fields = table.schema_ref().fields();
    let column = |field: &Field, name: Option<&str>| {
        let array = table.column_by_name(field.name());
        let nulls = array.is_some_and(|array| array.null_count() > 0);
        let (pandas_type, numpy_type) = pandas_type(field.data_type(), nulls);
        let categories =
            array.and_then(|array| array.as_any_dictionary_opt()).map(|dictionary| dictionary.values().len());
        let ordered = field.dict_is_ordered().unwrap_or(false);
        let metadata = categories.map(|n| json!({ "num_categories": n, "ordered": ordered }));
        let field_name = field.name();
        json!({ "name": name, "field_name": field_name, "pandas_type": pandas_type, "numpy_type": numpy_type, "metadata": metadata })
    };
    let index_name = index_name.or(Some(fields[0].name().as_str()).filter(|name| *name != UNNAMED));
    let others = fields[1..].iter().map(|field| column(field, Some(field.name())));
    let columns: Vec<Value> = others.chain([column(&fields[0], index_name)]).collect();
    let text = json!({
        "index_columns": [fields[0].name()],
        "column_indexes": [{
            "name": null, "field_name": null, "pandas_type": "unicode", "numpy_type": "object",
            "metadata": { "encoding": "UTF-8" },
        }],
        "columns": columns,
        "attributes": {},
        "creator": { "library": "tilekern", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": "2.0.0",
    });
    text.to_string()
}

/// What pandas calls a type, and the type of numpy in which it holds its values.
#[cfg(feature = "encode")]
fn pandas_type(stored: &DataType, nulls: bool) -> (&'static str, &'static str) {
    let (name, plain) = match stored {
        DataType::Dictionary(key, _) => return ("categorical", pandas_type(key, false).1),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ("unicode", "object"),
        DataType::Boolean => ("bool", if nulls { "object" } else { "bool" }),
        DataType::Int8 => ("int8", "int8"),
        DataType::Int16 => ("int16", "int16"),
        DataType::Int32 => ("int32", "int32"),
        DataType::Int64 => ("int64", "int64"),
        DataType::UInt8 => ("uint8", "uint8"),
        DataType::UInt16 => ("uint16", "uint16"),
        DataType::UInt32 => ("uint32", "uint32"),
        DataType::UInt64 => ("uint64", "uint64"),
        DataType::Float16 => ("float16", "float16"),
        DataType::Float32 => ("float32", "float32"),
        DataType::Float64 => ("float64", "float64"),
        _ => ("object", "object"),
    };
    // Integers with missing values become floating-point numbers in pandas.
    let numpy = if nulls && plain.contains("int") { "float64" } else { plain };
    (name, numpy)
}
