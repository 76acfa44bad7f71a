//! Tables of cells and genes for inputs that keep them as lists of text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::concat::concat;
use arrow_select::take::{take as take_array, take_record_batch};
use tilekern::deltacel::dataset::obs::{Value, getter};

use crate::{Error, ErrorKind, INDEX_NAME, Result};

/// A table of text columns, the first of which is the index.
pub fn of_text(index_name: Option<&str>, columns: Vec<(&str, Vec<String>)>) -> Result<RecordBatch> {
    let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, false)).collect();
    let metadata: HashMap<_, _> = index_name.map(|name| (INDEX_NAME.to_owned(), name.to_owned())).into_iter().collect();
    let arrays = columns.into_iter().map(|(_, values)| Arc::new(StringArray::from(values)) as ArrayRef).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields).with_metadata(metadata)), arrays).map_err(fault)
}

/// A fault of Arrow's: columns that do not go together.
pub fn fault(error: ArrowError) -> Error {
    Error::new(ErrorKind::Inconsistent, error.to_string()).caused_by(error)
}

/// The name of the column that names the rows of a table of cells: its first one, where that is text without gaps.
pub fn index_name(table: &RecordBatch) -> Option<&str> {
    let schema = table.schema_ref();
    let is_index = table.columns().first().is_some_and(|first| is_text(first.data_type()) && first.null_count() == 0);
    is_index.then(|| schema.field(0).name().as_str())
}

pub fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Gives the indexes of tables that become one the same name, that of the first which none has for another column.
/// Returns it where one of them had another name.
pub fn unite_indexes(tables: &mut [RecordBatch]) -> Result<Option<String>> {
    let names: Vec<String> = tables.iter().filter_map(|table| index_name(table).map(str::to_owned)).collect();
    let Some(first) = names.first() else { return Ok(None) };
    let is_free = |name: &str| {
        tables.iter().all(|table| {
            let others = table.schema_ref().fields().iter().skip(usize::from(index_name(table).is_some()));
            others.into_iter().all(|field| field.name() != name)
        })
    };
    let mut name = names.iter().find(|name| is_free(name)).unwrap_or(first).clone();
    while !is_free(&name) {
        name.push('_');
    }
    if names.iter().all(|known| *known == name) {
        return Ok(None);
    }
    for table in tables.iter_mut().filter(|table| index_name(table).is_some()) {
        let schema = table.schema();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields[0] = Arc::new(fields[0].as_ref().clone().with_name(&name));
        let schema = Schema::new(fields).with_metadata(schema.metadata().clone());
        *table = RecordBatch::try_new(Arc::new(schema), table.columns().to_vec()).map_err(fault)?;
    }
    Ok(Some(name))
}

/// Some rows of a table, in that order.
pub fn take(table: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    take_record_batch(table, &UInt32Array::from(rows.to_vec())).map_err(fault)
}

/// Columns of several tables as one, each of categories with the same list of them: those of the first table, then what
/// others have beside. True where all had the same list before. Keys are numbers of 32 bits.
///
/// # Errors
/// Types of which no table has categories.
pub fn unite_categories(columns: &[&ArrayRef]) -> Result<(Vec<ArrayRef>, bool)> {
    let dictionaries: Vec<_> = columns.iter().filter_map(|column| column.as_any_dictionary_opt()).collect();
    let lists: Vec<&dyn Array> = dictionaries.iter().map(|dictionary| &**dictionary.values() as &dyn Array).collect();
    let all = concat(&lists).map_err(fault)?;
    let wrong = || Error::new(ErrorKind::WrongType, format!("categories of the type {}", all.data_type()));
    let get = getter(&all).ok_or_else(wrong)?;
    let (mut kept, mut places) = (Vec::new(), HashMap::new());
    let place = |at: usize| {
        let category = get(at).to_category()?;
        let next = i32::try_from(kept.len()).ok()?;
        Some(*places.entry(category.to_json()).or_insert_with(|| {
            kept.push(u32::try_from(at).unwrap_or(u32::MAX));
            next
        }))
    };
    let places: Vec<Option<i32>> = (0..all.len()).map(place).collect();
    let values = take_array(&all, &UInt32Array::from(kept), None).map_err(fault)?;
    let mut start = 0;
    let mut same = true;
    let mut united = Vec::new();
    for dictionary in dictionaries {
        let places = &places[start..start + dictionary.values().len()];
        start += places.len();
        same &= places.len() == values.len() && places.iter().zip(0..).all(|(place, at)| *place == Some(at));
        let keys = getter(dictionary.keys()).ok_or_else(wrong)?;
        let key = |row| match keys(row) {
            Value::Int(key) => usize::try_from(key).ok().and_then(|key| *places.get(key)?),
            _ => None,
        };
        let keys: Int32Array = (0..dictionary.len()).map(key).collect();
        let array = DictionaryArray::<Int32Type>::try_new(keys, values.clone()).map_err(fault)?;
        united.push(Arc::new(array) as ArrayRef);
    }
    Ok((united, same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_get_one_name() {
        let table = |names: &[&str]| of_text(None, names.iter().map(|&name| (name, vec!["v".to_owned()])).collect());
        let unite = |tables: &[&[&str]]| {
            let mut tables = tables.iter().map(|names| table(names).unwrap()).collect::<Vec<_>>();
            let name = unite_indexes(&mut tables).unwrap();
            let firsts: Vec<_> = tables.iter().map(|table| table.schema().field(0).name().clone()).collect();
            (name, firsts.join(" "))
        };
        assert_eq!(unite(&[&["barcode", "n"], &["barcode"]]), (None, "barcode barcode".into()));
        assert_eq!(unite(&[&["barcode", "n"], &["CellID", "n"]]), (Some("barcode".into()), "barcode barcode".into()));
        // Not the name of another column.
        assert_eq!(unite(&[&["barcode"], &["_index", "barcode"]]), (Some("_index".into()), "_index _index".into()));
        assert_eq!(unite(&[&["a", "b"], &["b", "a"]]), (Some("a_".into()), "a_ a_".into()));
    }
}
