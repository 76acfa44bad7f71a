//! Parquet files: footer, pages, column chunks.
//!
//! [`File`] is a file's bytes with its footer, which a library has read. A [`ColumnReader`] takes the pages of a column
//! chunk one by one, unpacks them, and gives levels and values in batches; [`ColumnData`] holds those of a whole chunk.
//! Where there is no footer, the same readers work on bytes: [`Pages`] on headers alone, [`ColumnReader::new`] on a chunk.
//!
//! ```no_run
//! use tilekern::parquet::Options;
//! use tilekern::parquet::file::{Buffers, File};
//!
//! let bytes = std::fs::read("orders.parquet").expect("a file");
//! let file = File::open(&bytes, &Options::new()?)?;
//! let mut buffers = Buffers::new(); // keeps its memory; hand it to every chunk
//! for group in 0..file.metadata().row_groups.len() {
//!     let mut chunk = file.column(group, 0, &mut buffers)?;
//!     let mut values = [0i64; 1024];
//!     while let Some(mut page) = chunk.next_page()? {
//!         while page.remaining() > 0 {
//!             let batch = page.take(page.remaining().min(values.len())); // levels
//!             page.decode(&mut values[..batch.values])?; // the values that are not null
//!         }
//!         page.finish()?; // nothing follows
//!     }
//! }
//! # Ok::<(), tilekern::Error>(())
//! ```

#[cfg(feature = "arrow")]
mod arrow;
mod codec;
mod column;
mod footer;
mod levels;
mod page_header;
mod pages;
mod spans;
mod trace;

#[cfg(feature = "arrow")]
pub use arrow::Strings;
pub use codec::Codec;
pub use column::{Batch, Buffers, ColumnData, ColumnReader, ColumnType, Page, PageInfo};
pub use footer::{Column, ColumnChunk, LogicalType, Metadata, Node, NodeKind, Repetition, RowGroup, Schema, TimeUnit};
pub use levels::Levels;
pub use page_header::{DataHeader, DataV2Header, DictionaryHeader, PageHeader, PageKind};
pub use pages::{Pages, RawPage};
pub use spans::ValueSpans;
pub use trace::{Origin, PageTrace};

use column::Expected;

use super::options::Options;
use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;

/// A file: its bytes, and what its footer says.
#[derive(Clone, Debug)]
pub struct File<'a> {
    bytes: &'a [u8],
    metadata: Metadata,
    options: Options,
}

impl<'a> File<'a> {
    /// Reads the footer of a file.
    ///
    /// Files that an old parquet-mr wrote (PARQUET-246) are read with
    /// [`carried_prefixes`](super::Leniency::carried_prefixes); those of fastparquet, which writes eight bytes behind the
    /// values of a page, with [`trailing_bytes`](super::Leniency::trailing_bytes).
    ///
    /// # Errors
    /// [`ErrorKind::BadMagic`] and others of a file that is none; [`ErrorKind::Syntax`] of a footer that the library
    /// refuses; [`Unsupported::Encrypted`](crate::Unsupported::Encrypted),
    /// [`Unsupported::SchemaDepth`](crate::Unsupported::SchemaDepth).
    pub fn open(bytes: &'a [u8], options: &Options) -> Result<File<'a>, Error> {
        let metadata = Metadata::read(bytes, &options.limits)?;
        let mut options = *options;
        let created_by = metadata.created_by.as_deref();
        options.leniency.carried_prefixes |= carries_prefixes(created_by);
        options.leniency.trailing_bytes |= created_by.is_some_and(|by| by.starts_with("fastparquet"));
        Ok(File { bytes, metadata, options })
    }

    /// What the footer says.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How it is read.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The bytes of a column chunk, and what must be known to read it.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`] if there is no such row group or column; out of range, where it lies outside the file;
    /// unsupported, where it is encrypted or in another file.
    pub fn chunk(&self, row_group: usize, column: usize) -> Result<(Input<'a>, ColumnType), Error> {
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        let part = Part::RowGroup(number(row_group), number(column));
        let missing = || Error::new(ErrorKind::Missing, part);
        let group = self.metadata.row_groups.get(row_group).ok_or_else(missing)?;
        let leaf = self.metadata.schema.columns.get(column).ok_or_else(missing)?;
        let chunk = group.columns.get(column).ok_or_else(missing)?;
        let span = chunk.span(self.metadata.span.start, part)?;
        let pages = Input::new(self.bytes).slice(span.start, span.end - span.start).ok_or_else(missing)?;
        let column = ColumnType {
            physical_type: leaf.physical_type,
            max_definition: leaf.max_definition,
            max_repetition: leaf.max_repetition,
            codec: chunk.codec,
        };
        Ok((pages, column))
    }

    /// A reader of a column chunk.
    ///
    /// # Errors
    /// As [`File::chunk`].
    pub fn column<'b>(
        &self,
        row_group: usize,
        column: usize,
        buffers: &'b mut Buffers,
    ) -> Result<ColumnReader<'a, 'b>, Error> {
        let (pages, kind) = self.chunk(row_group, column)?;
        let group = &self.metadata.row_groups[row_group];
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        let expected = Expected {
            place: Some((number(row_group), number(column))),
            num_values: Some(group.columns[column].num_values),
            num_rows: Some(group.num_rows),
        };
        Ok(ColumnReader::expecting(pages, kind, buffers, &self.options, expected))
    }

    /// The trace of each page of a column chunk. For long chunks, ask [`ColumnReader::next_trace`] page by page.
    ///
    /// # Errors
    /// As [`File::chunk`] and [`ColumnReader::next_trace`].
    pub fn trace(&self, row_group: usize, column: usize, buffers: &mut Buffers) -> Result<Vec<PageTrace>, Error> {
        let mut reader = self.column(row_group, column, buffers)?;
        std::iter::from_fn(|| reader.next_trace().transpose()).collect()
    }

    /// What is known of each page of a column chunk. Levels are decoded, values are not.
    ///
    /// # Errors
    /// As [`File::chunk`] and [`ColumnReader::next_info`].
    pub fn pages(&self, row_group: usize, column: usize, buffers: &mut Buffers) -> Result<Vec<PageInfo>, Error> {
        let mut reader = self.column(row_group, column, buffers)?;
        std::iter::from_fn(|| reader.next_info().transpose()).collect()
    }
}

/// Whether a file's DELTA_BYTE_ARRAY pages may go on from the page before: those of parquet-mr before 1.8.0, and of one
/// that does not say its version.
fn carries_prefixes(created_by: Option<&str>) -> bool {
    let Some(version) = created_by.and_then(|by| by.strip_prefix("parquet-mr")) else { return false };
    let version = version.trim_start().trim_start_matches("version").trim_start();
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (1, 8),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_that_carry_prefixes() {
        for by in
            ["parquet-mr version 1.6.0 (build x)", "parquet-mr version 1.7.0", "parquet-mr", "parquet-mr version x"]
        {
            assert!(carries_prefixes(Some(by)), "{by}");
        }
        for by in
            ["parquet-mr version 1.8.0", "parquet-mr version 1.10.1 (build y)", "parquet-cpp version 1.5.1", "x", ""]
        {
            assert!(!carries_prefixes(Some(by)), "{by}");
        }
        assert!(!carries_prefixes(None));
    }
}
