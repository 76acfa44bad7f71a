//! Columns of the table of cells on the local disk: an Arrow IPC file each, with one record batch for each tile.
//!
//! Source: DELTACEL file format, "Obs", "Local cache"; the Arrow columnar format, "IPC File Format".

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::FileWriter;
use arrow_ipc::{Block, Precision, Type};
use arrow_schema::{ArrowError, Field, Schema};

use super::schema::{ObsColumn, ObsKind, ObsType};
use super::shards::check_values;
use crate::error::{Error, ErrorKind, Limit, Part, SyntaxFault};
use crate::limits::Limits;
use crate::mmap::MappedDirectory;
use crate::source::{Directory, Object, Source};

/// The environment's variable for the folder of the cache.
const VARIABLE: &str = "DELTACELLS_CACHE";
/// The name of that folder where the variable is not set.
const FOLDER: &str = "deltacells";

const MAGIC: &[u8; 6] = b"ARROW1";

/// Hands over the values of a column for each tile in turn.
type Fetch<'a> = dyn FnMut(&mut dyn FnMut(ArrayRef) -> Result<(), Error>) -> Result<(), Error> + 'a;

/// A folder that keeps columns, for all datasets and all processes of a machine.
///
/// A column is `<folder>/<fingerprint>/obs/<name>.arrow`, its name quoted as in a URL. It is fetched by the first process
/// that asks for it, while others wait, and appears whole or not at all. A file that is damaged, or does not have the
/// rows of the dataset, is deleted and fetched again.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    mapped: Option<MappedDirectory>,
}

impl Cache {
    /// In a folder, which is made when the first column is fetched. Files are read into memory.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), mapped: None }
    }

    /// In the folder of the machine's user: `$DELTACELLS_CACHE`, else `$XDG_CACHE_HOME/deltacells`, else
    /// `~/.cache/deltacells`. `None` where there is none of these.
    pub fn of_user() -> Option<Cache> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable(VARIABLE)
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join(FOLDER)))
            .or_else(|| Some(std::env::home_dir()?.join(".cache").join(FOLDER)))?;
        Some(Cache::at(folder))
    }

    /// In a folder whose files are mapped into memory in place of being read. What [`MappedDirectory::new`] asks for
    /// holds for all who use the cache: they replace files, but never change them.
    pub fn mapped(folder: MappedDirectory) -> Cache {
        Cache { folder: folder.path(""), mapped: Some(folder) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a column of the table with this fingerprint is, if it is there.
    pub fn path(&self, fingerprint: &str, column: &str) -> PathBuf {
        self.folder.join(name(fingerprint, column))
    }

    /// The values of a column for each tile, which has so many rows: fetched tile by tile by `fetch` unless they are
    /// there.
    ///
    /// # Errors
    /// Those of `fetch`; [`ErrorKind::Io`] for a folder that cannot be used.
    pub(super) fn column(
        &self,
        fingerprint: &str,
        column: &ObsColumn,
        rows: &[u64],
        limits: &Limits,
        fetch: &mut Fetch<'_>,
    ) -> Result<Vec<ArrayRef>, Error> {
        let name = name(fingerprint, &column.name);
        // What is damaged here may be whole as soon as the lock is ours.
        if let Ok(arrays) = self.load(&name, column, rows, limits) {
            return Ok(arrays);
        }
        let path = self.folder.join(&name);
        let io = |error| Error::io(error, &path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(with_suffix(&path, ".lock"));
        let lock = lock.map_err(io)?;
        lock.lock().map_err(io)?; // the system frees it, whatever becomes of this process
        match self.load(&name, column, rows, limits) {
            Ok(arrays) => return Ok(arrays),
            Err(error) if error.kind() == ErrorKind::Io(io::ErrorKind::NotFound) => {}
            Err(_) => fs::remove_file(&path).map_err(io)?,
        }
        // One that an ended process left is overwritten: the lock is ours.
        let temporary = with_suffix(&path, ".tmp");
        let written = write(&temporary, column, fetch).and_then(|()| fs::rename(&temporary, &path).map_err(io));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary); // the first error is the one to tell
            return Err(error);
        }
        self.load(&name, column, rows, limits)
    }

    fn load(&self, name: &str, column: &ObsColumn, rows: &[u64], limits: &Limits) -> Result<Vec<ArrayRef>, Error> {
        let source: Box<dyn Source> = match &self.mapped {
            Some(mapped) => Box::new(mapped.clone()),
            None => Box::new(Directory::new(&self.folder)?),
        };
        let loaded = contents(source.open(name)?, limits).and_then(|bytes| read(&bytes, column, rows));
        loaded.map_err(|error| error.in_path(source.path(name)))
    }
}

/// The name of a column's file in the folder.
fn name(fingerprint: &str, column: &str) -> String {
    let mut quoted = String::new();
    for byte in column.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{fingerprint}/obs/{quoted}.arrow")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes the file of a column, whose values come tile by tile.
fn write(path: &Path, column: &ObsColumn, fetch: &mut Fetch<'_>) -> Result<(), Error> {
    let file = File::create(path).map_err(|error| Error::io(error, path))?;
    write_to(BufWriter::new(file), column, fetch).map_err(|error| error.in_path(path))
}

fn write_to(out: impl Write, column: &ObsColumn, fetch: &mut Fetch<'_>) -> Result<(), Error> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => Error::new(ErrorKind::Io(error.kind()), Part::Object).caused_by(error),
        other => damaged(other.to_string()),
    };
    let schema = Schema::new(vec![field(column)]);
    let mut writer = FileWriter::try_new(out, &schema).map_err(failed)?;
    let schema = Arc::new(schema);
    fetch(&mut |array| {
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).map_err(failed)?;
        writer.write(&batch).map_err(failed)
    })?;
    writer.finish().map_err(failed)?;
    writer.flush().map_err(failed)
}

/// The bytes of the file that keeps a column in a [`Cache`], from its stored values for each tile.
///
/// # Errors
/// [`SyntaxFault::ArrowIpc`] for values of another type.
pub fn to_ipc(column: &ObsColumn, tiles: &[ArrayRef]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    write_to(&mut bytes, column, &mut |put| tiles.iter().cloned().try_for_each(put))?;
    Ok(bytes)
}

/// The stored values of a column for each tile, which have so many rows, from the bytes of the file that keeps it in a
/// [`Cache`]. Nothing is copied.
///
/// # Errors
/// [`SyntaxFault::ArrowIpc`] for a file that is damaged, compressed, or of another column or other tiles;
/// [`ErrorKind::OutOfRange`] and [`ErrorKind::Missing`] for codes that the column cannot have.
pub fn from_ipc(column: &ObsColumn, bytes: Vec<u8>, rows: &[u64]) -> Result<Vec<ArrayRef>, Error> {
    read(&bytes.into(), column, rows)
}

fn field(column: &ObsColumn) -> Field {
    Field::new(&column.name, column.arrow_type.arrow(), column.kind != ObsKind::Category)
}

/// An object's bytes, borrowed where they lie in memory.
fn contents(mut object: Box<dyn Object>, limits: &Limits) -> Result<Buffer, Error> {
    struct Owner(Box<dyn Object>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.bytes().unwrap_or_default()
        }
    }
    if object.bytes().is_some() {
        return Ok(bytes::Bytes::from_owner(Owner(object)).into());
    }
    let size = object.size();
    Limits::check(size, limits.max_input_bytes, Limit::InputBytes, Part::Object)?;
    let mut bytes = MutableBuffer::from_len_zeroed(usize::try_from(size).map_err(|_| damaged("too large".into()))?);
    object.read_at(0, bytes.as_slice_mut())?;
    Ok(bytes.into())
}

fn damaged(why: String) -> Error {
    Error::new(ErrorKind::Syntax(SyntaxFault::ArrowIpc), Part::Object).caused_by(why)
}

fn read(bytes: &Buffer, column: &ObsColumn, rows: &[u64]) -> Result<Vec<ArrayRef>, Error> {
    let wrong = |what: &str| damaged(what.to_owned());
    let end = bytes.len().checked_sub(10).filter(|&end| end >= 8 && bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC));
    let end = end.ok_or_else(|| wrong("no Arrow file"))?;
    let len = bytes[end..].first_chunk().map(|len| i32::from_le_bytes(*len)).and_then(|len| usize::try_from(len).ok());
    let start = len.and_then(|len| end.checked_sub(len)).ok_or_else(|| wrong("no footer"))?;
    let footer = arrow_ipc::root_as_footer(&bytes[start..end]).map_err(|error| damaged(error.to_string()))?;
    let fields = footer.schema().and_then(|schema| schema.fields()).ok_or_else(|| wrong("no schema"))?;
    if fields.len() != 1 || !is_of(&fields.get(0), column) {
        return Err(wrong("another column"));
    }
    let blocks =
        footer.recordBatches().map(|blocks| blocks.iter().copied().collect::<Vec<Block>>()).unwrap_or_default();
    if blocks.len() != rows.len() || footer.dictionaries().is_some_and(|list| !list.is_empty()) {
        return Err(wrong("another number of batches"));
    }
    let mut arrays = Vec::with_capacity(rows.len());
    for (block, &rows) in blocks.iter().zip(rows) {
        let at = |n: i64| usize::try_from(n).ok();
        let meta = part(bytes, at(block.offset()), at(block.metaDataLength().into()));
        let body_start = at(block.offset()).zip(at(block.metaDataLength().into())).and_then(|(a, b)| a.checked_add(b));
        let body = part(bytes, body_start, at(block.bodyLength()));
        let (meta, body) = meta.zip(body).ok_or_else(|| wrong("a batch outside the file"))?;
        // A marker and the length of what follows; old writers had the length alone.
        let prefix = if meta.starts_with(&[0xFF; 4]) { 8 } else { 4 };
        let message = meta.get(prefix..).ok_or_else(|| wrong("no message"))?;
        let message = arrow_ipc::root_as_message(message).map_err(|error| damaged(error.to_string()))?;
        let batch = message.header_as_record_batch().ok_or_else(|| wrong("no batch"))?;
        let (nodes, buffers) = batch.nodes().zip(batch.buffers()).ok_or_else(|| wrong("an empty batch"))?;
        let rows = usize::try_from(rows).map_err(|_| wrong("too many rows"))?;
        let same = nodes.len() == 1 && at(batch.length()) == Some(rows) && at(nodes.get(0).length()) == Some(rows);
        if !same || batch.compression().is_some() {
            return Err(wrong("a batch of other rows, or compressed"));
        }
        let buffer = |n: usize| {
            let stated = (n < buffers.len()).then(|| buffers.get(n));
            stated.and_then(|stated| part(&body, at(stated.offset()), at(stated.length())))
        };
        let array = array(column.arrow_type, rows, nodes.get(0).null_count() != 0, &buffer);
        let array = array.ok_or_else(|| wrong("values that cannot be"))?;
        check_values(column, &array)?;
        arrays.push(array);
    }
    Ok(arrays)
}

/// The bytes of a buffer from `start` on, if it has so many.
fn part(bytes: &Buffer, start: Option<usize>, len: Option<usize>) -> Option<Buffer> {
    let (start, len) = (start?, len?);
    (start.checked_add(len)? <= bytes.len()).then(|| bytes.slice_with_length(start, len))
}

/// Whether a field of the file is the column, under its name and of its type.
fn is_of(field: &arrow_ipc::Field<'_>, column: &ObsColumn) -> bool {
    let int = |bits: i32, signed: bool| {
        field.type_type() == Type::Int
            && field.type_as_int().is_some_and(|int| (int.bitWidth(), int.is_signed()) == (bits, signed))
    };
    let float = |precision: Precision| {
        field.type_type() == Type::FloatingPoint
            && field.type_as_floating_point().is_some_and(|float| float.precision() == precision)
    };
    let same_type = match column.arrow_type {
        ObsType::Int8 => int(8, true),
        ObsType::Int16 => int(16, true),
        ObsType::Int32 => int(32, true),
        ObsType::Int64 => int(64, true),
        ObsType::UInt8 => int(8, false),
        ObsType::UInt16 => int(16, false),
        ObsType::UInt32 => int(32, false),
        ObsType::UInt64 => int(64, false),
        ObsType::HalfFloat => float(Precision::HALF),
        ObsType::Float => float(Precision::SINGLE),
        ObsType::Double => float(Precision::DOUBLE),
        ObsType::Bool => field.type_type() == Type::Bool,
        ObsType::String => field.type_type() == Type::Utf8,
    };
    same_type && field.name() == Some(&*column.name) && field.dictionary().is_none()
}

/// An array over the buffers of a batch, all of whose lengths and offsets are checked.
fn array(stored: ObsType, rows: usize, nulls: bool, buffer: &dyn Fn(usize) -> Option<Buffer>) -> Option<ArrayRef> {
    let bits = |n: usize| {
        let bits = buffer(n)?;
        (bits.len() >= rows.div_ceil(8)).then(|| BooleanBuffer::new(bits, 0, rows))
    };
    let nulls = if nulls { Some(NullBuffer::new(bits(0)?)) } else { None };
    fn primitive<T: ArrowPrimitiveType>(values: Buffer, rows: usize, nulls: Option<NullBuffer>) -> Option<ArrayRef> {
        let values = scalars::<T::Native>(values, rows)?;
        Some(Arc::new(PrimitiveArray::<T>::try_new(values, nulls).ok()?))
    }
    Some(match stored {
        ObsType::Int8 => primitive::<Int8Type>(buffer(1)?, rows, nulls)?,
        ObsType::Int16 => primitive::<Int16Type>(buffer(1)?, rows, nulls)?,
        ObsType::Int32 => primitive::<Int32Type>(buffer(1)?, rows, nulls)?,
        ObsType::Int64 => primitive::<Int64Type>(buffer(1)?, rows, nulls)?,
        ObsType::UInt8 => primitive::<UInt8Type>(buffer(1)?, rows, nulls)?,
        ObsType::UInt16 => primitive::<UInt16Type>(buffer(1)?, rows, nulls)?,
        ObsType::UInt32 => primitive::<UInt32Type>(buffer(1)?, rows, nulls)?,
        ObsType::UInt64 => primitive::<UInt64Type>(buffer(1)?, rows, nulls)?,
        ObsType::HalfFloat => primitive::<Float16Type>(buffer(1)?, rows, nulls)?,
        ObsType::Float => primitive::<Float32Type>(buffer(1)?, rows, nulls)?,
        ObsType::Double => primitive::<Float64Type>(buffer(1)?, rows, nulls)?,
        ObsType::Bool => Arc::new(BooleanArray::new(bits(1)?, nulls)),
        ObsType::String => {
            let offsets = scalars::<i32>(buffer(1)?, rows.checked_add(1)?)?;
            if offsets[0] < 0 || !offsets.is_sorted() {
                return None;
            }
            Arc::new(StringArray::try_new(OffsetBuffer::new(offsets), buffer(2)?, nulls).ok()?)
        }
    })
}

/// So many values at the start of a buffer, if it has them at an address that their type allows.
fn scalars<T: arrow_buffer::ArrowNativeType>(values: Buffer, len: usize) -> Option<ScalarBuffer<T>> {
    let fits =
        len.checked_mul(size_of::<T>())? <= values.len() && values.as_ptr().addr().is_multiple_of(align_of::<T>());
    fits.then(|| ScalarBuffer::new(values, 0, len))
}
