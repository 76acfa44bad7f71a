//! What a Parquet file is: its columns, how they are encoded and compressed, how large they are.

use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::Error;
use tilekern::parquet::file::{Buffers, File, LogicalType, PageKind, Pages, TimeUnit};
use tilekern::parquet::{ByteArrays, Encoding, Options, PhysicalType};

use super::{names, open, type_length};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::PARQUET;
use crate::table::{Align, Table};
use crate::text::{counted, quoted};

/// Rows of a table that are shown to people who do not ask for all.
const ROWS: usize = 40;

/// Values of any length that are decoded at a time.
const BATCH: usize = 1 << 14;

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    bytes: u64,
    created_by: Option<&'a str>,
    num_rows: i64,
    /// The names of what the footer carries beside the columns.
    metadata: Vec<&'a str>,
    columns: Vec<ColumnRecord<'a>>,
    row_groups: Vec<GroupRecord>,
}

#[derive(Serialize)]
struct ColumnRecord<'a> {
    name: &'a str,
    column: String,
    physical_type: &'static str,
    type_length: Option<usize>,
    logical_type: Option<String>,
    repetition: &'static str,
    max_def: u8,
    max_rep: u8,
    codecs: Vec<&'static str>,
    encodings: Vec<&'static str>,
    /// `whole`, `fallback` where some pages go without, or none.
    dictionary: Option<&'static str>,
    n_pages: u64,
    num_values: i64,
    compressed_bytes: i64,
    uncompressed_bytes: i64,
    /// None where pages cannot be read.
    plain_bytes: Option<u64>,
}

#[derive(Serialize)]
struct GroupRecord {
    row_group: usize,
    num_rows: i64,
    compressed_bytes: i64,
    uncompressed_bytes: i64,
}

/// What the pages of a column say.
#[derive(Default)]
struct Seen {
    codecs: Vec<&'static str>,
    encodings: Vec<Encoding>,
    pages: u64,
    /// Values that are not null, and their bytes where they have any length; none where a page cannot be read.
    plain: Option<Plain>,
}

#[derive(Default)]
struct Plain {
    values: u64,
    bytes: u64,
}

impl Seen {
    /// Of a column in all row groups.
    fn of(file: &File<'_>, column: usize, buffers: &mut Buffers) -> Seen {
        let mut seen = Seen { plain: Some(Plain::default()), ..Seen::default() };
        for (group, row_group) in file.metadata().row_groups.iter().enumerate() {
            let Some(chunk) = row_group.columns.get(column) else { continue };
            add(&mut seen.codecs, chunk.codec.name());
            let looked = seen.look(file, group, column, buffers);
            if looked.is_err() {
                seen.plain = None;
            }
        }
        seen
    }

    fn look(&mut self, file: &File<'_>, group: usize, column: usize, buffers: &mut Buffers) -> Result<(), Error> {
        let (chunk, kind) = file.chunk(group, column)?;
        let (mut stated, mut has_dictionary) = (0, false);
        for page in Pages::new(chunk) {
            let page = page?;
            self.pages += 1;
            has_dictionary |= page.number == 0 && matches!(page.header.kind, PageKind::Dictionary(_));
            if let PageKind::Data(_) | PageKind::DataV2(_) = page.header.kind {
                let (encoding, values) = match page.header.kind {
                    PageKind::Data(header) => (header.encoding, header.num_values),
                    PageKind::DataV2(header) => (header.encoding, header.num_values),
                    _ => continue,
                };
                add(&mut self.encodings, encoding);
                stated += u64::try_from(values).unwrap_or(0);
            }
        }
        let Some(plain) = &mut self.plain else { return Ok(()) };
        if kind.physical_type != PhysicalType::ByteArray && kind.max_definition == 0 {
            plain.values += stated;
            return Ok(());
        }
        let mut reader = file.column(group, column, buffers)?;
        // Of long texts that many values share, only the lengths are needed.
        let mut lengths: Vec<u64> = Vec::new();
        if has_dictionary && kind.physical_type == PhysicalType::ByteArray {
            reader.next_info()?;
            let entries = reader.dictionary().and_then(|dictionary| dictionary.byte_arrays());
            lengths.extend(entries.into_iter().flat_map(|entries| entries.iter().map(|entry| entry.len() as u64)));
        }
        let (mut values, mut indices) = (ByteArrays::new(), vec![0; BATCH]);
        while let Some(mut page) = reader.next_page()? {
            plain.values += page.values_left() as u64;
            let of_dictionary = page.info().encoding.is_some_and(|encoding| is_indices(&encoding));
            while of_dictionary && !lengths.is_empty() && page.values_left() > 0 {
                let indices = &mut indices[..page.values_left().min(BATCH)];
                page.decode_indices(indices)?;
                let entry = |&index: &u32| usize::try_from(index).ok().and_then(|index| lengths.get(index));
                plain.bytes = plain.bytes.saturating_add(indices.iter().filter_map(entry).sum());
            }
            while kind.physical_type == PhysicalType::ByteArray && page.values_left() > 0 {
                values.clear();
                page.decode_byte_arrays(page.values_left().min(BATCH), &mut values)?;
                plain.bytes += values.bytes().len() as u64;
            }
        }
        Ok(())
    }

    /// Bytes of the values if all were PLAIN.
    fn plain_bytes(&self, kind: PhysicalType) -> Option<u64> {
        let plain = self.plain.as_ref()?;
        Some(match (kind, kind.width()) {
            (_, Some(width)) => plain.values.saturating_mul(width as u64),
            (PhysicalType::Boolean, None) => plain.values.div_ceil(8),
            (_, None) => plain.values.saturating_mul(4).saturating_add(plain.bytes),
        })
    }

    fn dictionary(&self) -> Option<&'static str> {
        match (self.encodings.iter().any(is_indices), self.encodings.iter().all(is_indices)) {
            (false, _) => None,
            (true, true) => Some("whole"),
            (true, false) => Some("fallback"),
        }
    }
}

fn is_indices(encoding: &Encoding) -> bool {
    matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary)
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// The type by the format's name.
fn logical(kind: LogicalType) -> String {
    let unit = |unit| match unit {
        TimeUnit::Millis => "MILLIS",
        TimeUnit::Micros => "MICROS",
        TimeUnit::Nanos => "NANOS",
    };
    let zone = |utc| if utc { "UTC" } else { "local" };
    let name = match kind {
        LogicalType::String => "STRING",
        LogicalType::Enum => "ENUM",
        LogicalType::Json => "JSON",
        LogicalType::Bson => "BSON",
        LogicalType::Uuid => "UUID",
        LogicalType::Date => "DATE",
        LogicalType::Float16 => "FLOAT16",
        LogicalType::Interval => "INTERVAL",
        LogicalType::Null => "NULL",
        LogicalType::List => "LIST",
        LogicalType::Map => "MAP",
        LogicalType::Decimal { precision, scale } => return format!("DECIMAL({precision}, {scale})"),
        LogicalType::Time { unit: of, utc } => return format!("TIME({}, {})", unit(of), zone(utc)),
        LogicalType::Timestamp { unit: of, utc } => return format!("TIMESTAMP({}, {})", unit(of), zone(utc)),
        LogicalType::Integer { bits, signed } => {
            return format!("INT({bits}, {})", if signed { "signed" } else { "unsigned" });
        }
        _ => "other",
    };
    name.to_owned()
}

pub fn run(bytes: &[u8], path: &Path, all: bool, console: &mut Console) -> Result<Verdict, Stop> {
    let file = open(bytes, &Options::new()?).map_err(|error| Fault::of(error, path))?;
    let metadata = file.metadata();
    let names = names(&metadata.schema);
    let progress = console.progress(names.len() as u64, "looking at columns");
    let mut buffers = Buffers::new();
    let sum = |of: &mut dyn Iterator<Item = i64>| of.fold(0, i64::saturating_add);
    let columns = names.iter().enumerate().map(|(i, name)| {
        let column = &metadata.schema.columns[i];
        let seen = Seen::of(&file, i, &mut buffers);
        let chunks = || metadata.row_groups.iter().filter_map(|group| group.columns.get(i));
        progress.inc(1);
        ColumnRecord {
            name,
            column: column.name(),
            physical_type: column.physical_type.name(),
            type_length: type_length(column.physical_type),
            logical_type: column.logical.map(logical),
            repetition: match (column.max_repetition, column.max_definition) {
                (1.., _) => "repeated",
                (0, 1..) => "optional",
                (0, 0) => "required",
            },
            max_def: column.max_definition,
            max_rep: column.max_repetition,
            dictionary: seen.dictionary(),
            plain_bytes: seen.plain_bytes(column.physical_type),
            n_pages: seen.pages,
            codecs: seen.codecs,
            encodings: seen.encodings.iter().map(|encoding| encoding.name()).collect(),
            num_values: sum(&mut chunks().map(|chunk| chunk.num_values)),
            compressed_bytes: sum(&mut chunks().map(|chunk| chunk.compressed_size)),
            uncompressed_bytes: sum(&mut chunks().map(|chunk| chunk.uncompressed_size)),
        }
    });
    let columns: Vec<ColumnRecord<'_>> = columns.collect();
    progress.finish_and_clear();
    let groups = metadata.row_groups.iter().enumerate().map(|(n, group)| GroupRecord {
        row_group: n,
        num_rows: group.num_rows,
        compressed_bytes: sum(&mut group.columns.iter().map(|chunk| chunk.compressed_size)),
        uncompressed_bytes: sum(&mut group.columns.iter().map(|chunk| chunk.uncompressed_size)),
    });
    let record = Record {
        path: &path.to_string_lossy(),
        kind: PARQUET,
        bytes: bytes.len() as u64,
        created_by: metadata.created_by.as_deref(),
        num_rows: metadata.num_rows,
        metadata: metadata.key_values.iter().map(|(key, _)| key.as_str()).collect(),
        columns,
        row_groups: groups.collect(),
    };
    if console.json {
        console.record(&record)?
    } else {
        print(&record, all, console)?
    }
    Ok(Verdict::Sound)
}

/// A number that a file states, which nobody has checked.
fn stated(n: i64) -> String {
    u64::try_from(n).map_or_else(|_| n.to_string(), |n| HumanCount(n).to_string())
}

fn print(record: &Record<'_>, all: bool, console: &mut Console) -> Result<(), Stop> {
    let groups = counted(record.row_groups.len() as u64, "row group");
    console.line(format_args!(
        "{}: Parquet, {} rows, {}, {groups}, {}",
        record.path,
        stated(record.num_rows),
        counted(record.columns.len() as u64, "column"),
        counted(record.bytes, "byte")
    ))?;
    if let Some(by) = record.created_by {
        console.line(format_args!("written by {}", quoted(by)))?;
    }
    if !record.metadata.is_empty() {
        let names: Vec<String> = record.metadata.iter().map(|name| quoted(name)).collect();
        console.line(format_args!("metadata: {}", names.join(", ")))?;
    }
    let shown = |n: usize| if all { n } else { n.min(ROWS) };
    print_columns(&record.columns[..shown(record.columns.len())], console)?;
    let hidden = record.columns.len() - shown(record.columns.len());
    if hidden > 0 {
        console.line(format_args!("{hidden} more; --all shows them"))?;
    }
    if record.columns.iter().any(|column| column.plain_bytes.is_none()) {
        let message = format!("not all pages can be read: `tilekern verify {}` tells why", record.path);
        console.line(message)?;
    }
    if record.row_groups.len() > 1 {
        print_groups(&record.row_groups[..shown(record.row_groups.len())], console)?;
        let hidden = record.row_groups.len() - shown(record.row_groups.len());
        if hidden > 0 {
            console.line(format_args!("{hidden} more; --all shows them"))?;
        }
    }
    Ok(())
}

fn print_columns(columns: &[ColumnRecord<'_>], console: &mut Console) -> Result<(), Stop> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("column", left),
        ("type", left),
        ("logical", left),
        ("repetition", left),
        ("encodings", left),
        ("codec", left),
        ("pages", right),
        ("values", right),
        ("stored", right),
        ("unpacked", right),
        ("PLAIN", right),
        ("stored/PLAIN", right),
    ]);
    for column in columns {
        let kind = match column.type_length {
            Some(length) => format!("{}({length})", column.physical_type),
            None => column.physical_type.to_owned(),
        };
        let mut encodings = column.encodings.join(", ");
        if column.dictionary == Some("fallback") {
            encodings += " (dictionary fallback)";
        }
        let ratio = column.plain_bytes.filter(|&plain| plain > 0);
        let ratio = ratio.map(|plain| format!("{:.3}", column.compressed_bytes as f64 / plain as f64));
        table.row([
            match column.name == column.column {
                true => quoted(column.name),
                false => format!("{} ({})", quoted(column.name), quoted(&column.column)),
            },
            kind,
            column.logical_type.clone().unwrap_or_default(),
            column.repetition.to_owned(),
            encodings,
            column.codecs.join(", "),
            HumanCount(column.n_pages).to_string(),
            stated(column.num_values),
            stated(column.compressed_bytes),
            stated(column.uncompressed_bytes),
            column.plain_bytes.map_or_else(|| "?".to_owned(), |plain| HumanCount(plain).to_string()),
            ratio.unwrap_or_default(),
        ]);
    }
    console.line("")?;
    // On a narrow terminal the least telling columns go first.
    console.rows(table.fitting(console.width(), &[6, 9, 7, 10, 2, 5, 3]))
}

fn print_groups(groups: &[GroupRecord], console: &mut Console) -> Result<(), Stop> {
    let headings = ["row group", "rows", "stored", "unpacked"];
    let mut table = Table::new(headings.map(|heading| (heading, Align::Right)));
    for group in groups {
        table.row([
            group.row_group.to_string(),
            stated(group.num_rows),
            stated(group.compressed_bytes),
            stated(group.uncompressed_bytes),
        ]);
    }
    console.line("")?;
    console.rows(table.lines())
}
