//! A Parquet file: a row group for each piece.

use std::io::Write;
use std::path::Path;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{ArrowError, DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::tables::{self, Tables};
use crate::fault::{Fault, Stop};
use crate::selection::Selection;

/// Writes the file. Returns the number of nonzeros.
pub fn write(
    out: impl Write + Send,
    selection: &Selection<'_>,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<u64, Stop> {
    let mut tables = Tables::new(selection, path, notes, plain)?;
    if tables.schema.fields().iter().any(|field| matches!(field.data_type(), DataType::Dictionary(..))) {
        notes.push("of a column's categories only those that occur are kept".to_owned());
    }
    let failed = |error| failed(error, path);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(None)
        .build();
    let mut writer = ArrowWriter::try_new(out, tables.schema.clone(), Some(properties)).map_err(failed)?;
    let mut nnz = 0;
    selection.each(|piece, rows| {
        nnz += rows.indices.len() as u64;
        let batch = tables.batch(piece, rows, plain)?;
        writer.write(&batch).and_then(|()| writer.flush()).map_err(failed)
    })?;
    writer.close().map_err(failed)?;
    Ok(nnz)
}

/// The array as Parquet stores it: of categories that are no text the values themselves.
fn plain(_: &Field, array: ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) if **values != DataType::Utf8 => {
            let dictionary = array.as_any_dictionary();
            arrow_select::take::take(&**dictionary.values(), dictionary.keys(), None)
        }
        _ => Ok(array),
    }
}

fn failed(error: ParquetError, path: &Path) -> Stop {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => Stop::write(*error, path),
            Err(other) => Fault::new("io", path, other.to_string()).into(),
        },
        ParquetError::ArrowError(text) => tables::failed(ArrowError::ParquetError(text), path),
        other => Fault::new("io", path, other.to_string()).into(),
    }
}
