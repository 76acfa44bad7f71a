//! `tilekern info`: what something is, how large, and how it is cut.

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::deltacel::dataset::{Dataset, TileBuffer};
use tilekern::deltacel::{ChunkOutline, Header, Outline, Tile};
use tilekern::{Limits, Stream};

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::obs::ColumnRecord;
use crate::options::MapTiles;
use crate::source::{AnyInput, Found, Source};
use crate::table::{Align, Table};
use crate::{Verdict, mlt, parquet};

/// Rows of a table that are shown to people who do not ask for all.
const ROWS: usize = 40;

/// Tell what a tile, dataset, Parquet file or map tile is: sizes, chunks, exceptions, settings; columns and their encodings
///
/// Checks manifest, headers, bounds and tables, and of a single tile the CRC; the rest is for `verify`. Of the tiles of
/// a dataset only the small part is read that tells how they are cut. Of a Parquet file the encodings are those that its
/// pages have; nulls and texts are decoded to tell how large it would be if all values were PLAIN. Of a map tile each stream
/// of each column is told with its encoding and size; of an archive of map tiles, what it holds.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern info counts                       a dataset
  tilekern info counts/tiles/tile_000000.dct one tile, chunk by chunk
  tilekern info counts --json | jq .nnz
  tilekern info orders.parquet               columns, types, encodings, codecs, sizes
  tilekern info tile.mlt                     layers, columns, streams, encodings, sizes
  tilekern info planet.pmtiles               an archive: format, zooms, bounds, tiles
  tilekern info planet.pmtiles#14/8529/5975  a tile of it
  curl -s URL | tilekern info - --as mlt     a map tile on standard input")]
pub struct Args {
    #[command(flatten)]
    input: AnyInput,

    /// Show every chunk, tile or column, not only the first 40
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    map_tiles: MapTiles,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    n_cells: u64,
    n_genes: u32,
    #[serde(flatten)]
    totals: Totals,
    bytes_per_cell: Option<f64>,
    bytes_per_nonzero: Option<f64>,
    /// A tile does not state them.
    encoder: Option<EncoderRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Vec<ChunkRecord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<DatasetRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiles: Option<Vec<TileRecord>>,
}

/// What a dataset's manifest says of its writer's settings.
#[derive(Serialize)]
struct EncoderRecord {
    n_chunks: Option<i64>,
    zstd_level: Option<i64>,
}

#[derive(Serialize)]
struct DatasetRecord<'a> {
    tile_size: u64,
    n_tiles: u32,
    has_gene_order: bool,
    has_var_names: bool,
    has_var_table: bool,
    has_obs: bool,
    /// The columns of the table of cells, where there is one.
    obs: Option<Vec<ColumnRecord<'a>>>,
}

#[derive(Serialize)]
struct ChunkRecord {
    chunk: u32,
    cells: [u64; 2],
    nnz: u64,
    stream_bytes: Streams,
    exceptions: Exceptions,
}

#[derive(Serialize)]
struct TileRecord {
    tile: u32,
    cells: [u64; 2],
    #[serde(flatten)]
    totals: Totals,
}

/// Sizes that add up over tiles.
#[derive(Clone, Copy, Default, Serialize)]
struct Totals {
    nnz: u64,
    bytes: u64,
    n_chunks: u64,
    indptr_bytes: u64,
    stream_bytes: Streams,
    exceptions: Exceptions,
}

/// Bytes of the frames.
#[derive(Clone, Copy, Default, Serialize)]
struct Streams {
    gaps: u64,
    vals: u64,
    gexc: u64,
    vexc: u64,
}

/// Values above 65535.
#[derive(Clone, Copy, Default, Serialize)]
struct Exceptions {
    gaps: u64,
    counts: u64,
}

/// Sizes that a file states can be beyond all measure.
fn add(sum: &mut u64, n: u64) {
    *sum = sum.saturating_add(n);
}

impl Streams {
    /// All of them.
    fn sum(&self) -> u64 {
        [self.gaps, self.vals, self.gexc, self.vexc].into_iter().fold(0, u64::saturating_add)
    }

    fn add(&mut self, other: Streams) {
        add(&mut self.gaps, other.gaps);
        add(&mut self.vals, other.vals);
        add(&mut self.gexc, other.gexc);
        add(&mut self.vexc, other.vexc);
    }
}

impl Exceptions {
    fn add(&mut self, other: Exceptions) {
        add(&mut self.gaps, other.gaps);
        add(&mut self.counts, other.counts);
    }
}

impl Totals {
    fn of(header: &Header, chunks: &[ChunkRecord]) -> Totals {
        let mut totals = Totals {
            nnz: header.nnz,
            bytes: header.total_size,
            n_chunks: header.n_chunks.into(),
            // They lie inside the tile.
            indptr_bytes: 8 * (header.n_cells + 1),
            ..Totals::default()
        };
        for chunk in chunks {
            totals.stream_bytes.add(chunk.stream_bytes);
            totals.exceptions.add(chunk.exceptions);
        }
        totals
    }

    fn add(&mut self, other: Totals) {
        add(&mut self.nnz, other.nnz);
        add(&mut self.bytes, other.bytes);
        add(&mut self.n_chunks, other.n_chunks);
        add(&mut self.indptr_bytes, other.indptr_bytes);
        self.stream_bytes.add(other.stream_bytes);
        self.exceptions.add(other.exceptions);
    }
}

fn chunks(outline: &Outline) -> Vec<ChunkRecord> {
    let record = |(n, outline): (u32, &ChunkOutline)| {
        let chunk = &outline.chunk;
        let bytes = |stream| chunk.span(stream).1;
        ChunkRecord {
            chunk: n,
            cells: [chunk.cells.start, chunk.cells.end],
            nnz: chunk.nnz(),
            stream_bytes: Streams {
                gaps: bytes(Stream::Gaps),
                vals: bytes(Stream::Vals),
                gexc: bytes(Stream::Gexc),
                vexc: bytes(Stream::Vexc),
            },
            exceptions: Exceptions { gaps: outline.gap_exceptions, counts: outline.count_exceptions },
        }
    };
    (0..).zip(&outline.chunks).map(record).collect()
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let limits = Limits::default();
    let source = match args.input.found(&limits)? {
        Found::Parquet(bytes) => return parquet::info::run(&bytes, &args.input.path, args.all, console),
        Found::Mlt(bytes, _) => {
            let options = args.map_tiles.options(tilekern::mlt::Options::new()?);
            return mlt::info::run(&bytes, &args.input.path, args.all, options, console);
        }
        Found::Archive(archive) => return mlt::archive::info(&archive, &args.input.path, console),
        found => Source::of(found, &args.input.path, &limits)?,
    };
    let path = source.path().to_string_lossy();
    let (n_cells, n_genes) = source.shape()?;
    let table = match &source {
        Source::Dataset(_, dataset) => dataset.obs()?,
        Source::Tile(..) => None,
    };
    let mut record = Record {
        path: &path,
        kind: source.kind(),
        n_cells,
        n_genes,
        totals: Totals::default(),
        bytes_per_cell: None,
        bytes_per_nonzero: None,
        encoder: None,
        chunks: None,
        dataset: None,
        tiles: None,
    };
    match &source {
        Source::Tile(path, bytes) => {
            let tile = Tile::open(bytes).map_err(|error| Fault::of(error, path))?;
            let chunks = chunks(&tile.outline());
            record.totals = Totals::of(tile.header(), &chunks);
            record.chunks = Some(chunks);
        }
        Source::Dataset(_, dataset) => {
            let manifest = dataset.manifest();
            record.encoder = Some(EncoderRecord { n_chunks: manifest.n_chunks(), zstd_level: manifest.zstd_level() });
            record.dataset = Some(DatasetRecord {
                tile_size: manifest.tile_size(),
                n_tiles: manifest.n_tiles(),
                has_gene_order: manifest.has_gene_order(),
                has_var_names: manifest.has_var_names(),
                has_var_table: manifest.has_var_table(),
                has_obs: table.is_some(),
                obs: table.as_ref().map(|table| table.schema().columns.iter().map(ColumnRecord::of).collect()),
            });
            record.tiles = Some(tiles(dataset, &mut record.totals, console)?);
        }
    }
    record.bytes_per_cell = ratio(record.totals.bytes, n_cells);
    record.bytes_per_nonzero = ratio(record.totals.bytes, record.totals.nnz);
    if console.json {
        console.record(&record)?
    } else {
        print(&record, args.all, console)?
    }
    Ok(Verdict::Sound)
}

/// Each tile of a dataset; `sum` gets their sum.
fn tiles(dataset: &Dataset, sum: &mut Totals, console: &Console) -> Result<Vec<TileRecord>, Stop> {
    let progress = console.progress(dataset.n_tiles().into(), "looking at tiles");
    let mut buffer = TileBuffer::new();
    let mut tiles = Vec::new();
    let mut start = 0;
    for (n, end) in (0..).zip(dataset.manifest().tile_limits()) {
        let outline = dataset.outline(n, &mut buffer)?;
        let totals = Totals::of(&outline.header, &chunks(&outline));
        sum.add(totals);
        tiles.push(TileRecord { tile: n, cells: [start, end], totals });
        start = end;
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(tiles)
}

fn ratio(bytes: u64, things: u64) -> Option<f64> {
    (things > 0).then(|| bytes as f64 / things as f64)
}

fn print(record: &Record<'_>, all: bool, console: &mut Console) -> Result<(), Stop> {
    let Record { totals, n_cells, n_genes, .. } = record;
    console.line(format_args!("{}: {}", record.path, record.kind.replace('_', " ").replace("deltacel", "DELTACEL")))?;
    let mut facts = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let count = |n: u64| HumanCount(n).to_string();
    let share = |bytes: u64| match totals.bytes {
        0 => String::new(),
        all => format!("{:.1} %", 100.0 * bytes as f64 / all as f64),
    };
    let each = |value: Option<f64>, what| value.map_or_else(String::new, |value| format!("{value:.3} per {what}"));
    facts.row(["cells".into(), count(*n_cells), String::new()]);
    facts.row(["genes".into(), count((*n_genes).into()), String::new()]);
    let per_cell = each(ratio(totals.nnz, *n_cells), "cell");
    facts.row(["nonzeros".into(), count(totals.nnz), per_cell]);
    let sizes = [each(record.bytes_per_cell, "cell"), each(record.bytes_per_nonzero, "nonzero")];
    facts.row(["bytes".into(), count(totals.bytes), sizes.join(", ").trim_matches([',', ' ']).to_owned()]);
    let streams = totals.stream_bytes;
    facts.row(["  of genes".into(), count(streams.gaps), share(streams.gaps)]);
    facts.row(["  of counts".into(), count(streams.vals), share(streams.vals)]);
    let exceptions = streams.gexc + streams.vexc;
    facts.row(["  of exceptions".into(), count(exceptions), share(exceptions)]);
    facts.row(["  of cell bounds".into(), count(totals.indptr_bytes), share(totals.indptr_bytes)]);
    let rest = totals.bytes.saturating_sub(streams.sum()).saturating_sub(totals.indptr_bytes);
    facts.row(["  of headers, tables".into(), count(rest), share(rest)]);
    let above = "above 65,535";
    facts.row(["exceptions".into(), count(totals.exceptions.counts), format!("counts {above}")]);
    facts.row([String::new(), count(totals.exceptions.gaps), format!("gaps between genes {above}")]);
    facts.row(["chunks".into(), count(totals.n_chunks), String::new()]);
    if let Some(dataset) = &record.dataset {
        let cells = format!("of {} cells", count(dataset.tile_size));
        facts.row(["tiles".into(), count(dataset.n_tiles.into()), cells]);
    }
    if let Some(encoder) = &record.encoder {
        let stated = |value: Option<i64>| value.map_or_else(|| "not stated".to_owned(), |value| value.to_string());
        facts.row(["written with".into(), stated(encoder.zstd_level), "as zstd level".into()]);
        facts.row([String::new(), stated(encoder.n_chunks), "chunks for each tile".into()]);
    }
    console.rows(facts.lines().skip(1))?;
    if let Some(chunks) = &record.chunks {
        let rows = chunks.iter().map(|c| (u64::from(c.chunk), c.cells, c.nnz, None, c.stream_bytes, c.exceptions));
        print_parts("chunk", rows, all, console)?;
    }
    if let Some(dataset) = &record.dataset {
        let sides = [
            ("gene order", dataset.has_gene_order),
            ("gene names", dataset.has_var_names),
            ("gene table", dataset.has_var_table),
            ("cell table", dataset.has_obs),
        ];
        let has: Vec<_> = sides.into_iter().filter(|&(_, has)| has).map(|(name, _)| name).collect();
        console
            .line(format_args!("with  {}", if has.is_empty() { "tiles alone".to_owned() } else { has.join(", ") }))?;
        if let Some(columns) = dataset.obs.as_ref().filter(|columns| !columns.is_empty()) {
            print_columns(columns, all, console)?;
        }
    }
    if let Some(tiles) = &record.tiles {
        let rows = tiles.iter().map(|TileRecord { tile, cells, totals: t }| {
            (u64::from(*tile), *cells, t.nnz, Some(t.bytes), t.stream_bytes, t.exceptions)
        });
        print_parts("tile", rows, all, console)?;
    }
    Ok(())
}

fn print_columns(columns: &[ColumnRecord<'_>], all: bool, console: &mut Console) -> Result<(), Stop> {
    let mut table = Table::new([("column", Align::Left), ("kind", Align::Left), ("stored as", Align::Left)]);
    let shown = if all { columns.len() } else { columns.len().min(ROWS) };
    for column in &columns[..shown] {
        table.row([column.name(), column.kind(), column.arrow_type().to_owned()]);
    }
    console.line("")?;
    console.rows(table.lines())?;
    tell_hidden(columns.len() - shown, console)
}

/// Number, cells, nonzeros, bytes in all where they are known, bytes of the frames, exceptions.
type Row = (u64, [u64; 2], u64, Option<u64>, Streams, Exceptions);

fn print_parts(
    what: &str,
    rows: impl ExactSizeIterator<Item = Row>,
    all: bool,
    console: &mut Console,
) -> Result<(), Stop> {
    let columns = [what, "cells", "nonzeros", "bytes", "gene bytes", "count bytes", "exceptions", "per nonzero"];
    let mut table = Table::new(columns.map(|column| (column, Align::Right)));
    let count = |n: u64| HumanCount(n).to_string();
    let hidden = if all { 0 } else { rows.len().saturating_sub(ROWS) };
    let shown = rows.len() - hidden;
    for (n, cells, nnz, bytes, streams, exceptions) in rows.take(shown) {
        let bytes = bytes.unwrap_or(streams.sum());
        table.row([
            n.to_string(),
            format!("{}..{}", cells[0], cells[1]),
            count(nnz),
            count(bytes),
            count(streams.gaps),
            count(streams.vals),
            count(exceptions.gaps + exceptions.counts),
            ratio(bytes, nnz).map_or_else(String::new, |ratio| format!("{ratio:.3}")),
        ]);
    }
    if shown > 0 {
        console.line("")?;
    }
    // On a narrow terminal the exceptions go first, then what the counts and the genes take.
    let lines = table.fitting(console.width(), &[6, 5, 4]);
    console.rows(lines.into_iter().filter(|_| shown > 0))?;
    tell_hidden(hidden, console)
}

fn tell_hidden(hidden: usize, console: &mut Console) -> Result<(), Stop> {
    if hidden > 0 {
        console.line(format_args!("{hidden} more; --all shows them"))?;
    }
    Ok(())
}
