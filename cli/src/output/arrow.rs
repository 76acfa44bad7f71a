//! An Arrow IPC file: a record batch for each piece.

use std::io::Write;
use std::path::Path;

use arrow_ipc::writer::FileWriter;

use super::tables::{Tables, failed};
use crate::fault::Stop;
use crate::selection::Selection;

/// Writes the file. Returns the number of nonzeros.
pub fn write(out: impl Write, selection: &Selection<'_>, path: &Path, notes: &mut Vec<String>) -> Result<u64, Stop> {
    let mut tables = Tables::new(selection, path, notes, |_, array| Ok(array))?;
    let mut writer = FileWriter::try_new(out, &tables.schema).map_err(|error| failed(error, path))?;
    let mut nnz = 0;
    selection.each(|piece, rows| {
        nnz += rows.indices.len() as u64;
        let batch = tables.batch(piece, rows, |_, array| Ok(array))?;
        writer.write(&batch).map_err(|error| failed(error, path))
    })?;
    writer.finish().map_err(|error| failed(error, path))?;
    Ok(nnz)
}
