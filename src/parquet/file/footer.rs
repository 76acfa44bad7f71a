//! The footer of a file: its schema, and where the column chunks lie. A library reads it.

use std::ops::Range;

use parquet::basic::{self, ConvertedType, Repetition as LibraryRepetition, Type as LibraryType};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, Type};

use super::codec::Codec;
use crate::error::{Error, ErrorKind, Limit, Part, Unsupported};
use crate::input::Input;
use crate::limits::Limits;
use crate::parquet::payload::{Encoding, PhysicalType, type_length};
use crate::parquet_footer::{Footer, unsound};

const MAGIC: &[u8; 4] = b"PAR1";
const ENCRYPTED: &[u8; 4] = b"PARE";

/// What the footer of a file says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metadata {
    /// The program that wrote the file.
    pub created_by: Option<String>,
    /// Rows of the file, as stated.
    pub num_rows: i64,
    /// Its columns.
    pub schema: Schema,
    /// Its row groups.
    pub row_groups: Vec<RowGroup>,
    /// What the file carries beside its columns.
    pub key_values: Vec<(String, Option<String>)>,
    /// Where the footer lies.
    pub span: Range<u64>,
}

/// The columns of a file, as a tree and as a list of its leaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Schema {
    /// The name of the root.
    pub name: String,
    /// What lies at the top.
    pub fields: Vec<Node>,
    /// The leaves, in order.
    pub columns: Vec<Column>,
}

/// A column, or a group of them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Node {
    /// Its name.
    pub name: String,
    /// How often it is there.
    pub repetition: Repetition,
    /// What its values mean.
    pub logical: Option<LogicalType>,
    /// What it holds.
    pub kind: NodeKind,
}

/// What a node of the schema holds.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Values: those of the column of this number.
    Leaf(usize),
    /// Other nodes.
    Group(Vec<Node>),
}

/// How often a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repetition {
    /// Once.
    Required,
    /// Once or not at all: it is null.
    Optional,
    /// Any number of times.
    Repeated,
}

/// A leaf of the schema.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Column {
    /// The names from below the root down, and how often each is there.
    pub path: Vec<(String, Repetition)>,
    /// How its values are stored.
    pub physical_type: PhysicalType,
    /// What they mean.
    pub logical: Option<LogicalType>,
    /// The definition level of values that are there.
    pub max_definition: u8,
    /// The largest repetition level: lists inside each other.
    pub max_repetition: u8,
}

impl Column {
    /// The names of its path, joined by dots.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.path.iter().map(|(name, _)| name.as_str()).collect();
        names.join(".")
    }
}

/// What values mean, by either of the two ways in which a file may say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogicalType {
    /// UTF-8 text
    String,
    /// The name of one of some values
    Enum,
    /// JSON
    Json,
    /// BSON
    Bson,
    /// A UUID
    Uuid,
    /// An integer times a power of ten
    Decimal {
        /// Digits.
        precision: i32,
        /// Digits behind the point.
        scale: i32,
    },
    /// Days since 1970
    Date,
    /// Time of day
    Time {
        /// Of what.
        unit: TimeUnit,
        /// Whether in UTC.
        utc: bool,
    },
    /// Time since 1970
    Timestamp {
        /// Of what.
        unit: TimeUnit,
        /// Whether in UTC.
        utc: bool,
    },
    /// An integer
    Integer {
        /// Bits: 8, 16, 32 or 64.
        bits: u8,
        /// Whether with a sign.
        signed: bool,
    },
    /// A float of 16 bits
    Float16,
    /// Months, days and milliseconds
    Interval,
    /// Always null
    Null,
    /// A list
    List,
    /// A map
    Map,
    /// Something else
    Other,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Milliseconds
    Millis,
    /// Microseconds
    Micros,
    /// Nanoseconds
    Nanos,
}

/// A row group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowGroup {
    /// Rows, as stated.
    pub num_rows: i64,
    /// One chunk for each column.
    pub columns: Vec<ColumnChunk>,
}

/// What the footer says of a column chunk. Numbers are as stated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ColumnChunk {
    /// How its pages are compressed.
    pub codec: Codec,
    /// Values, with nulls.
    pub num_values: i64,
    /// Bytes of its pages with their headers.
    pub compressed_size: i64,
    /// The same, unpacked.
    pub uncompressed_size: i64,
    /// Where its first data page starts.
    pub data_page_offset: i64,
    /// Where its dictionary page starts, if it has one.
    pub dictionary_page_offset: Option<i64>,
    /// The encodings of values and levels.
    pub encodings: Vec<Encoding>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Whether it lies in another file.
    pub elsewhere: bool,
}

impl ColumnChunk {
    /// Where its pages lie in a file whose pages end at `end`.
    pub(super) fn span(&self, end: u64, part: Part) -> Result<Range<u64>, Error> {
        if self.encrypted {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Encrypted), part));
        }
        if self.elsewhere {
            let kind = ErrorKind::Unsupported(Unsupported::Request);
            return Err(Error::new(kind, part).caused_by("the column lies in another file; read that one"));
        }
        // A chunk without values may lie anywhere, and the dictionary page that it may have is of no use.
        if self.num_values == 0 {
            return Ok(end..end);
        }
        let range = |found: i128| Error::new(ErrorKind::OutOfRange { found, min: 4, max: end.into() }, part);
        // Some writers state 0 where they have none.
        let dictionary = self.dictionary_page_offset.filter(|&at| at > 0);
        let start = match dictionary {
            Some(at) if at < self.data_page_offset || self.data_page_offset <= 0 => at,
            _ => self.data_page_offset,
        };
        let to = i128::from(start) + i128::from(self.compressed_size);
        match (u64::try_from(start), u64::try_from(to)) {
            (Ok(start), Ok(to)) if start >= 4 && start <= to && to <= end => Ok(start..to),
            (Ok(start), _) if (4..=end).contains(&start) => Err(range(to)),
            _ => Err(range(start.into())),
        }
    }
}

impl Metadata {
    /// Reads the footer of a file.
    pub(super) fn read(file: &[u8], limits: &Limits) -> Result<Metadata, Error> {
        let input = Input::new(file);
        Limits::check(file.len() as u64, limits.max_input_bytes, Limit::InputBytes, Part::Object)?;
        let Some((head, tail)) = file.split_at_checked(file.len().saturating_sub(8)) else {
            return Err(input.truncated(12, Part::Footer("")));
        };
        if head.len() < 4 {
            return Err(input.truncated(12, Part::Footer("")));
        }
        let end = head.len() as u64;
        let magic = |at: u64| Error::new(ErrorKind::BadMagic, Part::Footer("magic")).at(at);
        if tail[4..] == *ENCRYPTED {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Encrypted), Part::Footer("")).at(end + 4));
        }
        if tail[4..] != *MAGIC {
            let begins = head[..4] == *MAGIC;
            let cut = "it begins as a Parquet file and does not end as one: it is cut off, or was never finished";
            return Err(if begins { magic(end + 4).caused_by(cut) } else { magic(end + 4) });
        }
        if head[..4] != *MAGIC {
            return Err(Error::new(ErrorKind::BadMagic, Part::Object).at(0));
        }
        let stated = Input::at(tail, end).u32(Part::Footer("length"))?;
        let start = end.checked_sub(stated.into()).filter(|&start| start >= 4).ok_or_else(|| {
            let kind = ErrorKind::OutOfRange { found: stated.into(), min: 0, max: (end - 4).into() };
            Error::new(kind, Part::Footer("length")).at(end)
        })?;
        let footer = input.slice(start, stated.into()).unwrap_or(Input::at(&[], end));
        let footer = Footer::read(footer)?;
        let metadata = crate::guard::guarded(|| metadata(&footer, start..end));
        metadata.unwrap_or_else(|| Err(unsound("the reader gave up"))).map_err(|error| error.at(start))
    }
}

fn metadata(footer: &Footer, span: Range<u64>) -> Result<Metadata, Error> {
    let Footer { metadata: library, encrypted } = footer;
    let file = library.file_metadata();
    let fields = fields(file.schema(), &mut 0);
    let columns: Result<Vec<Column>, Error> = file.schema_descr().columns().iter().map(|column| leaf(column)).collect();
    let mut schema = Schema { name: file.schema().name().to_owned(), fields, columns: columns? };
    paths(&schema.fields, &mut Vec::new(), &mut schema.columns);
    let row_groups = library.row_groups().iter().enumerate().map(|(group, library)| {
        let columns = library.columns().iter().enumerate();
        let columns = columns.map(|(column, chunk)| column_chunk(chunk, encrypted.contains(&(group, column))));
        RowGroup { num_rows: library.num_rows(), columns: columns.collect() }
    });
    let pairs = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    Ok(Metadata {
        created_by: file.created_by().map(str::to_owned),
        num_rows: file.num_rows(),
        schema,
        row_groups: row_groups.collect(),
        key_values: pairs.iter().map(|pair| (pair.key.clone(), pair.value.clone())).collect(),
        span,
    })
}

fn column_chunk(library: &ColumnChunkMetaData, encrypted: bool) -> ColumnChunk {
    ColumnChunk {
        codec: codec(library.compression()),
        num_values: library.num_values(),
        compressed_size: library.compressed_size(),
        uncompressed_size: library.uncompressed_size(),
        data_page_offset: library.data_page_offset(),
        dictionary_page_offset: library.dictionary_page_offset(),
        encodings: library.encodings().filter_map(|encoding| Encoding::from_id(encoding as i32)).collect(),
        encrypted,
        elsewhere: library.file_path().is_some_and(|path| !path.is_empty()),
    }
}

fn codec(library: basic::Compression) -> Codec {
    match library {
        basic::Compression::UNCOMPRESSED => Codec::Uncompressed,
        basic::Compression::SNAPPY => Codec::Snappy,
        basic::Compression::GZIP(_) => Codec::Gzip,
        basic::Compression::LZO => Codec::Lzo,
        basic::Compression::BROTLI(_) => Codec::Brotli,
        basic::Compression::LZ4 => Codec::Lz4,
        basic::Compression::ZSTD(_) => Codec::Zstd,
        basic::Compression::LZ4_RAW => Codec::Lz4Raw,
    }
}

/// The nodes of a group. The check has seen that it is not deep.
fn fields(group: &Type, columns: &mut usize) -> Vec<Node> {
    let nodes = if group.is_group() { group.get_fields() } else { &[] };
    let node = |node: &std::sync::Arc<Type>| {
        let info = node.get_basic_info();
        let repetition = match info.has_repetition().then(|| info.repetition()) {
            Some(LibraryRepetition::OPTIONAL) => Repetition::Optional,
            Some(LibraryRepetition::REPEATED) => Repetition::Repeated,
            Some(LibraryRepetition::REQUIRED) | None => Repetition::Required,
        };
        let (precision, scale) = if node.is_primitive() { (node.get_precision(), node.get_scale()) } else { (0, 0) };
        let kind = if node.is_primitive() {
            *columns += 1;
            NodeKind::Leaf(*columns - 1)
        } else {
            NodeKind::Group(fields(node, columns))
        };
        let logical = logical(info.logical_type_ref(), info.converted_type(), precision, scale);
        Node { name: node.name().to_owned(), repetition, logical, kind }
    };
    nodes.iter().map(node).collect()
}

/// Gives the leaves their paths.
fn paths(nodes: &[Node], path: &mut Vec<(String, Repetition)>, columns: &mut [Column]) {
    for node in nodes {
        path.push((node.name.clone(), node.repetition));
        match &node.kind {
            NodeKind::Leaf(column) => {
                if let Some(column) = columns.get_mut(*column) {
                    column.path.clone_from(path);
                }
            }
            NodeKind::Group(nodes) => paths(nodes, path, columns),
        }
        path.pop();
    }
}

fn leaf(library: &ColumnDescriptor) -> Result<Column, Error> {
    let physical_type = match library.physical_type() {
        LibraryType::BOOLEAN => PhysicalType::Boolean,
        LibraryType::INT32 => PhysicalType::Int32,
        LibraryType::INT64 => PhysicalType::Int64,
        LibraryType::INT96 => PhysicalType::Int96,
        LibraryType::FLOAT => PhysicalType::Float,
        LibraryType::DOUBLE => PhysicalType::Double,
        LibraryType::BYTE_ARRAY => PhysicalType::ByteArray,
        LibraryType::FIXED_LEN_BYTE_ARRAY => {
            PhysicalType::FixedLenByteArray(type_length(library.type_length().into())?)
        }
    };
    let level = |level: i16| {
        // The check has let pass no more.
        u8::try_from(level).map_err(|_| Error::new(ErrorKind::Unsupported(Unsupported::SchemaDepth), Part::Footer("")))
    };
    Ok(Column {
        path: Vec::new(),
        physical_type,
        logical: logical(
            library.logical_type_ref(),
            library.converted_type(),
            library.type_precision(),
            library.type_scale(),
        ),
        max_definition: level(library.max_def_level())?,
        max_repetition: level(library.max_rep_level())?,
    })
}

fn unit(library: basic::TimeUnit) -> TimeUnit {
    match library {
        basic::TimeUnit::MILLIS => TimeUnit::Millis,
        basic::TimeUnit::MICROS => TimeUnit::Micros,
        basic::TimeUnit::NANOS => TimeUnit::Nanos,
    }
}

fn logical(
    library: Option<&basic::LogicalType>,
    converted: ConvertedType,
    precision: i32,
    scale: i32,
) -> Option<LogicalType> {
    use basic::LogicalType as L;
    let integer = |bits, signed| LogicalType::Integer { bits, signed };
    let time = |unit| LogicalType::Time { unit, utc: true };
    let timestamp = |unit| LogicalType::Timestamp { unit, utc: true };
    if let Some(library) = library {
        return Some(match library {
            L::String => LogicalType::String,
            L::Enum => LogicalType::Enum,
            L::Json => LogicalType::Json,
            L::Bson => LogicalType::Bson,
            L::Uuid => LogicalType::Uuid,
            L::Decimal(decimal) => LogicalType::Decimal { precision: decimal.precision, scale: decimal.scale },
            L::Date => LogicalType::Date,
            L::Time(time) => LogicalType::Time { unit: unit(time.unit), utc: time.is_adjusted_to_u_t_c },
            L::Timestamp(time) => LogicalType::Timestamp { unit: unit(time.unit), utc: time.is_adjusted_to_u_t_c },
            L::Integer(int) => integer(u8::try_from(int.bit_width).unwrap_or(0), int.is_signed),
            L::Float16 => LogicalType::Float16,
            L::Unknown => LogicalType::Null,
            L::List => LogicalType::List,
            L::Map => LogicalType::Map,
            _ => LogicalType::Other,
        });
    }
    Some(match converted {
        ConvertedType::NONE => return None,
        ConvertedType::UTF8 => LogicalType::String,
        ConvertedType::ENUM => LogicalType::Enum,
        ConvertedType::JSON => LogicalType::Json,
        ConvertedType::BSON => LogicalType::Bson,
        ConvertedType::DECIMAL => LogicalType::Decimal { precision, scale },
        ConvertedType::DATE => LogicalType::Date,
        ConvertedType::TIME_MILLIS => time(TimeUnit::Millis),
        ConvertedType::TIME_MICROS => time(TimeUnit::Micros),
        ConvertedType::TIMESTAMP_MILLIS => timestamp(TimeUnit::Millis),
        ConvertedType::TIMESTAMP_MICROS => timestamp(TimeUnit::Micros),
        ConvertedType::UINT_8 => integer(8, false),
        ConvertedType::UINT_16 => integer(16, false),
        ConvertedType::UINT_32 => integer(32, false),
        ConvertedType::UINT_64 => integer(64, false),
        ConvertedType::INT_8 => integer(8, true),
        ConvertedType::INT_16 => integer(16, true),
        ConvertedType::INT_32 => integer(32, true),
        ConvertedType::INT_64 => integer(64, true),
        ConvertedType::INTERVAL => LogicalType::Interval,
        ConvertedType::LIST => LogicalType::List,
        ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => LogicalType::Map,
    })
}
