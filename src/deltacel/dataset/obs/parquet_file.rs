//! A Parquet file in a store: its footer, and single columns of single row groups, by reading nothing else.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FooterTail, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::pages;
use crate::error::{Error, ErrorKind, Limit, Part, SyntaxFault};
use crate::input::Input;
use crate::limits::Limits;
use crate::parquet_footer::Footer;
use crate::source::Object;

/// Bytes at the end of a file that hold the whole footer of most.
const TAIL: u64 = 64 << 10;

/// Rows that are decoded at a time.
const BATCH: usize = 1 << 16;

/// The footer of a Parquet file.
pub(in crate::deltacel::dataset) struct ParquetFile {
    size: u64,
    metadata: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Reads the footer.
    ///
    /// # Errors
    /// As [`Footer::read`]; [`SyntaxFault::Parquet`], [`ErrorKind::LimitExceeded`], [`ErrorKind::Io`].
    pub fn open(object: &mut dyn Object, limits: &Limits) -> Result<ParquetFile, Error> {
        let size = object.size();
        let start = size.saturating_sub(TAIL);
        let mut tail = read(object, start..size, limits)?;
        let end = tail.last_chunk().ok_or_else(|| unsound("it is too short").at(size))?;
        let footer = guarded(|| FooterTail::try_new(end)).map_err(|error| error.at(size - 8))?;
        let body = size - 8;
        let footer_start = body
            .checked_sub(footer.metadata_length() as u64)
            .ok_or_else(|| unsound("the footer is longer than the file").at(body))?;
        if footer_start < start {
            tail = read(object, footer_start..size, limits)?;
        }
        let in_tail = tail.len() - 8 - footer.metadata_length();
        let Footer { metadata, .. } = Footer::read(Input::at(&tail[in_tail..tail.len() - 8], footer_start))?;
        let metadata = guarded(|| {
            let metadata = Arc::new(metadata);
            let found = ArrowReaderMetadata::try_new(metadata.clone(), ArrowReaderOptions::new())?;
            match plain(found.schema()) {
                None => Ok(found),
                Some(schema) => ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new().with_schema(schema)),
            }
        });
        Ok(ParquetFile { size, metadata: metadata.map_err(|error| error.at(footer_start))? })
    }

    /// Names and types of its columns, as Arrow has them.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    pub fn row_groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }

    /// A value of the metadata that the file carries beside its columns.
    pub fn key_value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Rows of a row group.
    pub fn rows(&self, group: usize) -> u64 {
        u64::try_from(self.row_groups()[group].num_rows()).unwrap_or(0)
    }

    /// Reads one column of one row group, of a file whose columns are all flat. Only its bytes are read.
    ///
    /// # Errors
    /// [`SyntaxFault::Parquet`], [`ErrorKind::LimitExceeded`], [`ErrorKind::Io`].
    pub fn column(
        &self,
        object: &mut dyn Object,
        group: usize,
        column: usize,
        limits: &Limits,
    ) -> Result<ArrayRef, Error> {
        let (start, end) = self.chunk(group, column)?;
        let rows = self.rows(group);
        Limits::check(rows, limits.max_values, Limit::Values, Part::Object)?;
        Limits::check(rows.saturating_mul(8), limits.max_output_bytes, Limit::OutputBytes, Part::Object)?;
        let window = Window { start, bytes: read(object, start..end, limits)?, size: self.size };
        check_pages(&window.bytes, limits).map_err(|error| error.at(start))?;
        let table = self.table(window, Some((group, column)), limits).map_err(|error| error.at(start))?;
        match (table.num_columns(), table.num_rows() as u64) {
            (1, found) if found == rows => Ok(table.column(0).clone()),
            _ => Err(unsound("a column has another number of values than its row group has rows").at(start)),
        }
    }

    /// Reads the whole table.
    ///
    /// # Errors
    /// As [`ParquetFile::column`].
    pub fn whole(&self, object: &mut dyn Object, limits: &Limits) -> Result<RecordBatch, Error> {
        let rows = (0..self.row_groups().len()).map(|group| self.rows(group)).fold(0, u64::saturating_add);
        Limits::check(rows, limits.max_values, Limit::Values, Part::Object)?;
        let window = Window { start: 0, bytes: read(object, 0..self.size, limits)?, size: self.size };
        for group in 0..self.row_groups().len() {
            for column in 0..self.row_groups()[group].num_columns() {
                let (start, end) = self.chunk(group, column)?;
                let span = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(window.bytes.len());
                check_pages(&window.bytes[span(start)..span(end)], limits).map_err(|error| error.at(start))?;
            }
        }
        self.table(window, None, limits)
    }

    /// Where a column of a row group lies in the file.
    fn chunk(&self, group: usize, column: usize) -> Result<(u64, u64), Error> {
        let chunk = self.row_groups()[group].column(column);
        let stated = [chunk.compressed_size(), chunk.uncompressed_size(), chunk.data_page_offset()];
        if stated.into_iter().chain(chunk.dictionary_page_offset()).any(|n| n < 0) {
            return Err(unsound("a column has a negative size or offset"));
        }
        let (start, len) = chunk.byte_range();
        let end = start.checked_add(len).filter(|&end| end <= self.size);
        end.map(|end| (start, end)).ok_or_else(|| unsound("a column lies outside the file"))
    }

    /// Decodes the whole table, or one column of one row group.
    fn table(&self, window: Window, only: Option<(usize, usize)>, limits: &Limits) -> Result<RecordBatch, Error> {
        let max = limits.max_output_bytes;
        let batches = guarded(|| {
            let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(window, self.metadata.clone());
            if let Some((group, column)) = only {
                let mask = ProjectionMask::leaves(builder.parquet_schema(), [column]);
                builder = builder.with_projection(mask).with_row_groups(vec![group]);
            }
            let reader = builder.with_batch_size(BATCH).build()?;
            let schema = reader.schema();
            let (mut batches, mut bytes) = (Vec::new(), 0u64);
            for batch in reader {
                let batch: RecordBatch = batch?;
                // Repeated text takes little of a file, and much of the memory.
                bytes = bytes.saturating_add(batch.get_array_memory_size() as u64);
                batches.push(batch);
                if bytes > max {
                    break;
                }
            }
            Ok((schema, batches, bytes))
        });
        let (schema, batches, bytes) = batches?;
        Limits::check(bytes, max, Limit::OutputBytes, Part::Object)?;
        guarded(|| match <[RecordBatch; 1]>::try_from(batches) {
            Ok([one]) => Ok(one),
            Err(batches) => Ok(arrow_select::concat::concat_batches(&schema, &batches)?),
        })
    }
}

/// The schema with plain columns in place of dictionaries of anything but text, if it has one: pandas writes booleans so,
/// and this reader has them as values alone.
fn plain(schema: &SchemaRef) -> Option<SchemaRef> {
    let values = |field: &Field| match field.data_type() {
        DataType::Dictionary(_, values)
            if !matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) =>
        {
            Some((**values).clone())
        }
        _ => None,
    };
    schema.fields().iter().find_map(|field| values(field))?;
    let column = |field: &Arc<Field>| match values(field) {
        Some(values) => Arc::new(field.as_ref().clone().with_data_type(values)),
        None => field.clone(),
    };
    let fields: Vec<_> = schema.fields().iter().map(column).collect();
    Some(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// Passes a column chunk whose pages can be unpacked in the memory that is allowed.
fn check_pages(chunk: &[u8], limits: &Limits) -> Result<(), Error> {
    let largest = pages::largest(chunk).ok_or_else(|| unsound("the pages of a column do not fill it"))?;
    Limits::check(largest, limits.max_scratch_bytes, Limit::ScratchBytes, Part::Object)
}

/// Fetches a part of an object.
fn read(object: &mut dyn Object, range: Range<u64>, limits: &Limits) -> Result<Bytes, Error> {
    let len = range.end - range.start;
    Limits::check(len, limits.max_input_bytes, Limit::InputBytes, Part::Object)?;
    let kind = ErrorKind::LimitExceeded { needed: len, limit: usize::MAX as u64, what: Limit::InputBytes };
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| Error::new(kind, Part::Object))?];
    object.read_at(range.start, &mut bytes)?;
    Ok(bytes.into())
}

/// The part of a file that was fetched, where the Parquet reader expects the whole.
#[derive(Clone)]
struct Window {
    start: u64,
    bytes: Bytes,
    size: u64,
}

impl Window {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        match at.filter(|&at| at <= self.bytes.len()) {
            Some(at) => Ok(self.bytes.slice(at..)),
            None => Err(ParquetError::EOF("it points outside the column".into())),
        }
    }
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Window {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(ParquetError::EOF("it points outside the column".into()));
        }
        Ok(rest.slice(..length))
    }
}

/// The Parquet library's errors as ours; what it does not foresee in damaged data ends here, too.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Error> {
    match crate::guard::guarded(work) {
        Some(result) => result.map_err(|error| unsound(error.to_string())),
        None => Err(unsound("the reader gave up")),
    }
}

fn unsound(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax(SyntaxFault::Parquet), Part::Object).caused_by(why.into())
}
