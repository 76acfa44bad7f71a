//! What a map tile is: its layers, columns and streams, how they are encoded, how large they are.

use std::collections::BTreeMap;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::mlt::{Column, Geometry, Layer, Logical, Options, Physical, Stream, StringLayout};

use super::{Item, Reader, open, repeated};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::MLT;
use crate::table::{Align, Table};
use crate::text::{counted, quoted};

/// Rows of a table that are shown to people who do not ask for all.
const ROWS: usize = 40;

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    /// Of the tile itself, unpacked.
    bytes: u64,
    n_features: u64,
    layers: Vec<LayerRecord<'a>>,
    /// Of frames whose tag is not known.
    unknown: Vec<UnknownRecord>,
    /// What is odd but keeps nobody from reading it.
    warnings: Vec<Fault>,
}

#[derive(Serialize)]
struct UnknownRecord {
    tag: u8,
    start: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct LayerRecord<'a> {
    name: &'a str,
    version: u8,
    extent: u32,
    n_features: usize,
    start: u64,
    bytes: u64,
    /// How many features of each type; none where the geometry cannot be decoded.
    geometry_types: Option<Vec<TypeRecord>>,
    geometry: PartRecord,
    shared_presence: Vec<StreamRecord>,
    columns: Vec<ColumnRecord>,
}

#[derive(Serialize)]
struct TypeRecord {
    #[serde(rename = "type")]
    name: &'static str,
    n_features: u64,
}

#[derive(Serialize)]
struct PartRecord {
    bytes: u64,
    streams: Vec<StreamRecord>,
}

#[derive(Serialize)]
struct ColumnRecord {
    name: String,
    kind: &'static str,
    #[serde(rename = "type")]
    data_type: Option<&'static str>,
    nullable: bool,
    /// The number of the shared presence field that tells which features have a value.
    shared_presence: Option<usize>,
    /// How strings are stored.
    strings: Option<&'static str>,
    /// Metadata and data.
    bytes: u64,
    streams: Vec<StreamRecord>,
}

#[derive(Serialize)]
struct StreamRecord {
    role: &'static str,
    logical: String,
    physical: &'static str,
    count: u32,
    start: u64,
    header_bytes: u64,
    bytes: u64,
}

fn len(span: std::ops::Range<u64>) -> u64 {
    span.end.saturating_sub(span.start)
}

/// The encoding of values as words, with its parameters.
fn logical(logical: Logical) -> String {
    let name = match logical {
        Logical::None => "None",
        Logical::Delta => "Delta",
        Logical::Delta2 => "Delta2",
        Logical::Rle { runs } => return format!("RLE({runs} runs)"),
        Logical::RlePairs => "RLE",
        Logical::DeltaRle { runs } => return format!("DeltaRLE({runs} runs)"),
        Logical::DeltaRlePairs => "DeltaRLE",
        Logical::BitPacked => "BitPacked",
        Logical::ComponentwiseDelta => "ComponentwiseDelta",
        Logical::ComponentwiseDelta2 => "ComponentwiseDelta2",
        Logical::Morton { bits, shift } => return format!("Morton({bits} bits, shift {shift})"),
        Logical::Rans => "rANS",
        Logical::Alp { scale, base } => return format!("ALP(scale {scale}, base {base})"),
        Logical::FloatDictionary => "FloatDictionary",
        Logical::Bitmap => "Bitmap",
        Logical::BooleanRuns => "BooleanRuns",
        Logical::Sparse => "Sparse",
        Logical::BooleanRle => "BooleanRLE",
        Logical::FrontCoded => "FrontCoded",
        _ => "unknown",
    };
    name.to_owned()
}

fn physical(physical: Physical) -> &'static str {
    match physical {
        Physical::None => "None",
        Physical::VarInt => "VarInt",
        Physical::FastPfor256 => "FastPFOR-256",
        Physical::FastPfor128 => "FastPFOR-128",
        _ => "unknown",
    }
}

fn layout(layout: StringLayout) -> &'static str {
    match layout {
        StringLayout::Plain => "plain",
        StringLayout::Dictionary => "dictionary",
        StringLayout::Fsst => "FSST",
        StringLayout::FsstDictionary => "FSST dictionary",
        _ => "unknown",
    }
}

/// How many features of each type there are, of those that there are.
pub fn types(geometry: &Geometry) -> BTreeMap<&'static str, u64> {
    let mut types = BTreeMap::new();
    for i in 0..geometry.len() {
        *types.entry(geometry.geometry_type(i).name()).or_default() += 1;
    }
    types
}

impl StreamRecord {
    fn of(stream: &Stream) -> StreamRecord {
        StreamRecord {
            role: stream.role.name(),
            logical: logical(stream.logical),
            physical: physical(stream.physical),
            count: stream.count,
            start: stream.header_span().start,
            header_bytes: len(stream.header_span()),
            bytes: len(stream.payload_span()),
        }
    }

    fn all(streams: &[Stream]) -> Vec<StreamRecord> {
        streams.iter().map(StreamRecord::of).collect()
    }

    /// Role, encoding and size, for people.
    fn line(&self) -> String {
        let encoding: Vec<&str> = [&*self.logical, self.physical].into_iter().filter(|name| *name != "None").collect();
        let encoding = if encoding.is_empty() { "plain".to_owned() } else { encoding.join("/") };
        format!("{} {encoding} {}", self.role, HumanCount(self.bytes))
    }
}

impl ColumnRecord {
    fn of(column: Column<'_>) -> ColumnRecord {
        ColumnRecord {
            name: column.name().into_owned(),
            kind: column.kind().name(),
            data_type: column.data_type().map(tilekern::mlt::DataType::name),
            nullable: column.nullable(),
            shared_presence: column.shared_presence(),
            strings: column.strings().map(layout),
            bytes: len(column.meta_span()) + len(column.data_span()),
            streams: StreamRecord::all(column.streams()),
        }
    }
}

impl<'a> LayerRecord<'a> {
    fn of(layer: Layer<'a>, reader: &mut Reader) -> LayerRecord<'a> {
        let columns = layer.columns().filter(|column| column.kind() != tilekern::mlt::Kind::Geometry);
        LayerRecord {
            name: layer.name(),
            version: layer.version(),
            extent: layer.extent(),
            n_features: layer.features(),
            start: layer.span().start,
            bytes: len(layer.span()),
            geometry_types: reader
                .some(layer, &[Item::Geometry])
                .ok()
                .and_then(|parts| parts.geometry.map(types))
                .map(|types| types.into_iter().map(|(name, n_features)| TypeRecord { name, n_features }).collect()),
            geometry: PartRecord {
                bytes: len(layer.geometry_span()),
                streams: StreamRecord::all(layer.geometry_streams()),
            },
            shared_presence: StreamRecord::all(layer.shared_presence()),
            columns: columns.map(ColumnRecord::of).collect(),
        }
    }
}

pub fn run(bytes: &[u8], path: &Path, all: bool, options: Options, console: &mut Console) -> Result<Verdict, Stop> {
    let tile = open(bytes, &options, path)?;
    let mut reader = Reader::new(options);
    let layers: Vec<LayerRecord<'_>> = tile.layers().map(|layer| LayerRecord::of(layer, &mut reader)).collect();
    let unknown = tile.frames().filter(|frame| frame.layer().is_none()).map(|frame| UnknownRecord {
        tag: frame.tag(),
        start: frame.span().start,
        bytes: len(frame.span()),
    });
    let record = Record {
        path: &path.to_string_lossy(),
        kind: MLT,
        bytes: bytes.len() as u64,
        n_features: layers.iter().map(|layer| layer.n_features as u64).sum(),
        layers,
        unknown: unknown.collect(),
        warnings: repeated(&tile, path),
    };
    if console.json {
        console.record(&record)?;
        return Ok(Verdict::Sound);
    }
    record.warnings.iter().for_each(|warning| console.note(format_args!("warning: {warning}")));
    let columns: usize = record.layers.iter().map(|layer| layer.columns.len()).sum();
    console.line(format_args!(
        "MLT, {}, {}, {}, {}",
        counted(record.layers.len() as u64, "layer"),
        counted(record.n_features, "feature"),
        counted(columns as u64, "column"),
        counted(record.bytes, "byte")
    ))?;
    for UnknownRecord { tag, start, bytes } in &record.unknown {
        console.line(format_args!("a frame of tag {tag}, which is not known: {start}..{}", start + bytes))?;
    }
    for layer in &record.layers {
        console.line("")?;
        text(layer, all, console)?;
    }
    Ok(Verdict::Sound)
}

fn text(layer: &LayerRecord<'_>, all: bool, console: &mut Console) -> Result<(), Stop> {
    let types = match &layer.geometry_types {
        None => "geometry unreadable: `verify` tells why".to_owned(),
        Some(types) if types.is_empty() => "no geometry".to_owned(),
        Some(types) => {
            let named = types.iter().map(|it| format!("{} {}", HumanCount(it.n_features), it.name));
            named.collect::<Vec<_>>().join(", ")
        }
    };
    let what = [
        format!("version {}", layer.version),
        format!("extent {}", HumanCount(layer.extent.into())),
        counted(layer.n_features as u64, "feature"),
        types,
        counted(layer.bytes, "byte"),
    ];
    console.line(format_args!("layer {}: {}", quoted(layer.name), what.join(", ")))?;
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("column", left),
        ("type", left),
        ("nulls", left),
        ("bytes", right),
        ("streams and their bytes", left),
    ]);
    let streams = |streams: &[StreamRecord]| streams.iter().map(StreamRecord::line).collect::<Vec<_>>().join("; ");
    let bytes = |bytes: u64| HumanCount(bytes).to_string();
    let geometry = [
        super::GEOMETRY.to_owned(),
        String::new(),
        String::new(),
        bytes(layer.geometry.bytes),
        streams(&layer.geometry.streams),
    ];
    table.row(geometry);
    for (n, stream) in layer.shared_presence.iter().enumerate() {
        let size = bytes(stream.header_bytes + stream.bytes);
        table.row([format!("(presence {n})"), String::new(), String::new(), size, stream.line()]);
    }
    let shown = if all { layer.columns.len() } else { layer.columns.len().min(ROWS) };
    for column in &layer.columns[..shown] {
        let name = if column.kind == "id" { super::IDS.to_owned() } else { quoted(&column.name) };
        let kind = match column.kind {
            "property" | "id" => column.data_type.unwrap_or_default().to_owned(),
            kind => format!("{} ({kind})", column.data_type.unwrap_or_default()),
        };
        let nulls = match (column.nullable, column.shared_presence) {
            (false, _) => String::new(),
            (true, None) => "possible".to_owned(),
            (true, Some(field)) => format!("presence {field}"),
        };
        table.row([name, kind, nulls, bytes(column.bytes), streams(&column.streams)]);
    }
    console.rows(table.lines())?;
    if shown < layer.columns.len() {
        console.line(format_args!("… {} more; --all shows them", layer.columns.len() - shown))?;
    }
    Ok(())
}
