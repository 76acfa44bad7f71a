//! Tables of cells and genes for inputs that keep them as lists of text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::take::take_record_batch;

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

/// Some rows of a table, in that order.
pub fn take(table: &RecordBatch, rows: &[u32]) -> Result<RecordBatch> {
    take_record_batch(table, &UInt32Array::from(rows.to_vec())).map_err(fault)
}
