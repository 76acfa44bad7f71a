//! Writing the table of cells: a shard grows by a row group whenever a tile is written.
//!
//! Source: DELTACEL file format, "Obs".

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sha2::{Digest, Sha256};

use super::schema::{MAX_BYTES, ObsSchema, fingerprint};
use super::shards::check_values;
use crate::deltacel::dataset::write::{Disk, NewFile};
use crate::deltacel::dataset::{manifest, shard_name};
use crate::error::{Error, ErrorKind, Limit, Part, Unsupported};
use crate::limits::Limits;

/// Its level is that of pandas; higher ones gain little on codes and short text.
pub(in crate::deltacel::dataset) const ZSTD_LEVEL: i32 = 3;

/// Writes the shards of a table of cells, tile by tile.
pub(in crate::deltacel::dataset) struct ObsWriter {
    schema: ObsSchema,
    arrow: SchemaRef,
    text: String,
    tiles_per_file: u64,
    /// Rows whose tile is not written yet.
    pending: Vec<RecordBatch>,
    shard: Option<NewShard>,
    shard_bytes: Vec<u64>,
    shard_sha256: Vec<[u8; 32]>,
}

/// A shard under its temporary name, which is removed unless it is finished.
struct NewShard {
    /// None once it is finished.
    writer: Option<ArrowWriter<Hashed>>,
    tiles: u64,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    temporary: PathBuf,
}

/// A file whose digest is taken as it is written.
struct Hashed {
    file: Box<dyn NewFile>,
    sha256: Sha256,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl ObsWriter {
    pub fn new(schema: ObsSchema, tiles_per_file: u64) -> Result<ObsWriter, Error> {
        schema.check()?;
        if !(1..=i64::MAX.unsigned_abs()).contains(&tiles_per_file) {
            let kind = ErrorKind::OutOfRange { found: tiles_per_file.into(), min: 1, max: i64::MAX.into() };
            return Err(Error::new(kind, Part::Option("obs_tiles_per_file")));
        }
        let text = schema.to_json();
        Limits::check(text.len() as u64, MAX_BYTES, Limit::InputBytes, Part::Schema(None))?;
        let (arrow, pending) = (Arc::new(schema.arrow()), Vec::new());
        let (shard_bytes, shard_sha256) = (Vec::new(), Vec::new());
        Ok(ObsWriter { schema, arrow, text, tiles_per_file, pending, shard: None, shard_bytes, shard_sha256 })
    }

    /// The text of `obs/schema.json`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Passes rows for so many cells: the schema's columns with allowed values.
    pub fn check(&self, rows: &RecordBatch, n_cells: usize) -> Result<(), Error> {
        let part = Part::Option("obs");
        let same = |found: usize, expected: usize, why: &'static str| match found == expected {
            true => Ok(()),
            false => {
                let kind = ErrorKind::Inconsistent { found: found as i128, expected: expected as i128 };
                Err(Error::new(kind, part).caused_by(why))
            }
        };
        same(rows.num_rows(), n_cells, "one row for each cell")?;
        same(rows.num_columns(), self.schema.columns.len(), "the columns of the schema")?;
        for (n, column) in (0..).zip(&self.schema.columns) {
            let field = rows.schema_ref().field(n as usize);
            if *field.name() != column.name {
                let why = format!("column {:?} where the schema has {:?}", field.name(), column.name);
                return Err(Error::new(ErrorKind::WrongType, Part::Column(n, "name")).caused_by(why));
            }
            let checked = check_values(column, rows.column(n as usize));
            checked.map_err(|error| {
                error.in_part(Part::Column(n, "values")).about(&format!("column {:?}", column.name))
            })?;
        }
        Ok(())
    }

    /// Keeps rows, which are checked, until their tiles are written.
    pub fn keep(&mut self, rows: &RecordBatch) {
        self.pending.push(rows.clone());
    }

    /// Writes the first rows that are kept as those of the tile that was written last.
    pub fn write_tile(&mut self, disk: &Arc<dyn Disk>, root: &Path, n_cells: u64) -> Result<(), Error> {
        let result = self.row_group(disk, root, n_cells);
        if result.is_err() {
            self.shard = None;
        }
        result
    }

    fn row_group(&mut self, disk: &Arc<dyn Disk>, root: &Path, n_cells: u64) -> Result<(), Error> {
        let shard = match &mut self.shard {
            Some(shard) => shard,
            none => none.insert(NewShard::create(disk, root, self.shard_bytes.len(), self.arrow.clone())?),
        };
        let mut left = usize::try_from(n_cells).unwrap_or(usize::MAX); // they are in memory
        while left > 0 && !self.pending.is_empty() {
            let rows = &mut self.pending[0];
            let n = left.min(rows.num_rows());
            shard.write(&rows.slice(0, n), &self.arrow)?;
            left -= n;
            if n == rows.num_rows() {
                self.pending.remove(0);
            } else {
                *rows = rows.slice(n, rows.num_rows() - n);
            }
        }
        shard.end_row_group()?;
        if shard.tiles == self.tiles_per_file { self.end_shard() } else { Ok(()) }
    }

    fn end_shard(&mut self) -> Result<(), Error> {
        if let Some(mut shard) = self.shard.take() {
            let (bytes, sha256) = shard.finish()?;
            self.shard_bytes.push(bytes);
            self.shard_sha256.push(sha256);
        }
        Ok(())
    }

    /// Ends the last shard, and gives what the manifest says of the table.
    pub fn finish(&mut self, tile_cells: impl Iterator<Item = u64>) -> Result<manifest::Obs, Error> {
        self.end_shard()?;
        let fingerprint = fingerprint(&self.text, &self.shard_sha256, tile_cells);
        let (shard_bytes, shard_sha256) = (self.shard_bytes.clone(), self.shard_sha256.clone());
        Ok(manifest::Obs { tiles_per_file: self.tiles_per_file, shard_bytes, shard_sha256, fingerprint })
    }
}

impl NewShard {
    fn create(disk: &Arc<dyn Disk>, root: &Path, n: usize, schema: SchemaRef) -> Result<NewShard, Error> {
        let path = root.join(shard_name(n));
        let temporary = root.join(format!("{}.tmp", shard_name(n)));
        let file = disk.create(&temporary).map_err(|error| Error::io(error, &path))?;
        let mut shard = NewShard { writer: None, tiles: 0, disk: disk.clone(), path, temporary };
        let file = Hashed { file, sha256: Sha256::new(), bytes: 0 };
        // The types follow from Parquet's own; a copy of Arrow's schema would dwarf small footers.
        let options = ArrowWriterOptions::new().with_properties(properties(None)?).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, schema, options);
        shard.writer = Some(writer.map_err(|error| shard.error(error))?);
        Ok(shard)
    }

    fn write(&mut self, rows: &RecordBatch, schema: &SchemaRef) -> Result<(), Error> {
        // The names and types are those of the schema; only what is nullable may differ.
        let rows = RecordBatch::try_new(schema.clone(), rows.columns().to_vec());
        let rows = rows.map_err(|error| self.error(error.into()))?;
        let written = self.writer.as_mut().map_or(Ok(()), |writer| writer.write(&rows));
        written.map_err(|error| self.error(error))
    }

    fn end_row_group(&mut self) -> Result<(), Error> {
        self.tiles += 1;
        let ended = self.writer.as_mut().map_or(Ok(()), ArrowWriter::flush);
        ended.map_err(|error| self.error(error))
    }

    /// The file's size and digest.
    fn finish(&mut self) -> Result<(u64, [u8; 32]), Error> {
        // What is left behind when this fails is removed with the shard.
        let Some(writer) = &mut self.writer else {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Incomplete), Part::Object).in_path(&self.path));
        };
        let ended = writer.finish().and_then(|_| Ok(writer.sync()?));
        let hashed = writer.inner_mut();
        let (bytes, sha256) = (hashed.bytes, hashed.sha256.clone().finalize().into());
        let synced = ended.and_then(|()| Ok(hashed.file.sync()?));
        synced.map_err(|error| self.error(error))?;
        self.disk.rename(&self.temporary, &self.path).map_err(|error| Error::io(error, &self.path))?;
        self.writer = None;
        Ok((bytes, sha256))
    }

    fn error(&self, error: ParquetError) -> Error {
        write_error(error).in_path(&self.path)
    }
}

impl Drop for NewShard {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            let _ = self.disk.remove(&self.temporary); // nobody is there to tell
        }
    }
}

/// What is written as Parquet. Statistics are left out: no reader looks at them, and they would dominate the footer.
pub(in crate::deltacel::dataset) fn properties(pandas: Option<String>) -> Result<WriterProperties, Error> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(write_error)?;
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_created_by(concat!("tilekern version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(pandas.map(|text| vec![KeyValue::new("pandas".to_owned(), text)]))
        .build())
}

/// A failed write of a Parquet file.
pub(in crate::deltacel::dataset) fn write_error(error: ParquetError) -> Error {
    let kind = match &error {
        ParquetError::External(source) => source.downcast_ref::<io::Error>().map(io::Error::kind),
        _ => None,
    };
    let kind = kind.map_or(ErrorKind::Unsupported(Unsupported::Request), ErrorKind::Io);
    match (kind, error) {
        (ErrorKind::Io(_), ParquetError::External(source)) => Error::new(kind, Part::Object).caused_by(source),
        (_, error) => Error::new(kind, Part::Object).caused_by(error.to_string()),
    }
}
