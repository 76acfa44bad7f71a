//! Map tiles: kernels on words in cache, and whole tiles to columns, on every level, beside copies.

use std::hint::black_box;
use std::time::Duration;

use serde::Serialize;
use tilekern::kernels::Kernels;
use tilekern::mlt::{Decoder, LayerData, MValues, Options, Property, Tile, TileData, Values};
use tilekern::{Buffer, Error};

use super::measure::{Case, Clock, take_turns};
use super::report::cpu_name;
use crate::console::Console;
use crate::table::{Align, Table};
use crate::text::counted;

/// Words of a kernel measurement, which stay in the cache.
const WORDS: usize = 1 << 14;

#[derive(Serialize)]
pub struct Report {
    pub cpu: String,
    pub kernels: Vec<&'static str>,
    pub tiles: Vec<TileFacts>,
    pub results: Vec<TileRow>,
    pub kernel_ops: Vec<OpRow>,
}

#[derive(Serialize)]
pub struct TileFacts {
    pub name: String,
    pub bytes: usize,
    /// Of ids, values, offsets and coordinates, once decoded.
    pub decoded_bytes: u64,
    pub layers: usize,
    pub features: usize,
    pub columns: usize,
}

#[derive(Serialize)]
pub struct TileRow {
    pub tile: String,
    /// What is done with the tile: `open`, or `decode` with everything.
    pub what: &'static str,
    pub kernel: &'static str,
    pub us_per_tile: f64,
    /// Bytes of the tile.
    pub mb_per_s: f64,
    /// Speed as a multiple of that of a copy of what it decodes to.
    pub x_memcpy: f64,
}

#[derive(Serialize)]
pub struct OpRow {
    pub op: &'static str,
    pub kernel: &'static str,
    pub ns_per_value: f64,
    /// Bytes of results.
    pub gb_per_s: f64,
    /// Speed as a multiple of that of a copy of the results.
    pub x_memcpy: f64,
}

/// All figures, of tiles with their names.
pub fn measure(tiles: &[(String, Vec<u8>)], rounds: usize, console: &mut Console) -> Result<Report, Error> {
    console.note("timing whole tiles");
    let (mut facts, mut results) = (Vec::new(), Vec::new());
    for (name, bytes) in tiles {
        let tile = Tile::open(bytes, &Options::new()?)?;
        let mut data = TileData::new();
        Decoder::new()?.tile(&tile, &mut data)?;
        let decoded_bytes = data.layers().iter().map(decoded).sum();
        results.extend(levels(name, &tile, decoded_bytes, rounds)?);
        facts.push(TileFacts {
            name: name.clone(),
            bytes: bytes.len(),
            decoded_bytes,
            layers: tile.layers().len(),
            features: tile.layers().map(|layer| layer.features()).sum(),
            columns: tile.layers().map(|layer| layer.columns().len()).sum(),
        });
    }
    console.note("timing kernels");
    let kernels = Kernels::available().map(Kernels::name).collect();
    Ok(Report { cpu: cpu_name(), kernels, tiles: facts, results, kernel_ops: kernel_ops(rounds) })
}

/// Bytes of the arrays that a layer decodes to.
fn decoded(layer: &LayerData) -> u64 {
    let geometry = layer.geometry();
    let levels = [geometry.geometry_offsets(), geometry.part_offsets(), geometry.ring_offsets()];
    let offsets: usize = levels.into_iter().flatten().map(size_of_val).sum();
    let z = geometry.z().map_or(0, |(_, z)| size_of_val(z));
    let triangles = geometry.triangles().map_or(0, |(offsets, corners)| size_of_val(offsets) + size_of_val(corners));
    let shapes = geometry.types().len() + offsets + size_of_val(geometry.coordinates()) + z + triangles;
    let columns = layer
        .ids()
        .into_iter()
        .chain(layer.properties())
        .map(|column: Property<'_>| column.validity.map_or(0, <[u8]>::len) + values(&column.values));
    let m_values = layer.m_values().map(|column: MValues<'_>| {
        size_of_val(column.offsets) + column.validity.map_or(0, <[u8]>::len) + values(&column.values)
    });
    (shapes + columns.sum::<usize>() + m_values.sum::<usize>()) as u64
}

fn values(values: &Values<'_>) -> usize {
    match *values {
        Values::Bool(values) | Values::UInt8(values) => values.len(),
        Values::Int8(values) => values.len(),
        Values::Int32(values) => size_of_val(values),
        Values::UInt32(values) => size_of_val(values),
        Values::Int64(values) => size_of_val(values),
        Values::UInt64(values) => size_of_val(values),
        Values::Float(values) => size_of_val(values),
        Values::Double(values) => size_of_val(values),
        Values::Strings(strings) => {
            strings.codes.map_or(0, size_of_val) + size_of_val(strings.offsets) + strings.text.len()
        }
        _ => 0,
    }
}

/// A tile on every level, into memory that is reused.
fn levels(name: &str, tile: &Tile<'_>, decoded_bytes: u64, rounds: usize) -> Result<Vec<TileRow>, Error> {
    let mut cases = vec![copy(usize::try_from(decoded_bytes).unwrap_or(0))];
    let mut names = Vec::new();
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let (mut outline, mut decoder, mut data) = (None, Decoder::with_options(options), TileData::new());
        let bytes = tile.bytes();
        names.push(("open", kernels.name()));
        cases.push(Case::new(Clock::Cpu, move || {
            let tile = Tile::open_with(bytes, outline.take().unwrap_or_default(), &options).expect("a sound tile");
            outline = Some(tile.into_outline());
        }));
        let mut outline = None;
        names.push(("decode", kernels.name()));
        cases.push(Case::new(Clock::Cpu, move || {
            let tile = Tile::open_with(bytes, outline.take().unwrap_or_default(), &options).expect("a sound tile");
            decoder.tile(&tile, &mut data).expect("a sound tile");
            outline = Some(tile.into_outline());
        }));
    }
    take_turns(&mut cases, rounds, Duration::from_millis(10));
    let rows = names.iter().zip(&cases[1..]).map(|(&(what, kernel), case)| TileRow {
        tile: name.to_owned(),
        what,
        kernel,
        us_per_tile: case.median() * 1e6,
        mb_per_s: tile.bytes().len() as f64 / 1e6 / case.median(),
        x_memcpy: cases[0].ratio_to(case),
    });
    Ok(rows.collect())
}

/// A copy of so many bytes.
fn copy(bytes: usize) -> Case<'static> {
    let (mut from, mut to) = (Buffer::<u8>::new(), Buffer::<u8>::new());
    from.resize(bytes);
    from.fill(1);
    to.resize(bytes);
    Case::new(Clock::Cpu, move || black_box(&mut to).copy_from_slice(black_box(&from)))
}

/// Words with as many bits as real ones: most are small, some are not.
fn words() -> Vec<u32> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    (0..WORDS).map(|_| next() >> (8 + next() % 14)).collect()
}

fn leb128(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &word in words {
        let mut rest = word;
        loop {
            let [low, ..] = rest.to_le_bytes();
            rest >>= 7;
            bytes.push(if rest == 0 { low & 127 } else { low | 128 });
            if rest == 0 {
                break;
            }
        }
    }
    bytes
}

/// Single kernels.
fn kernel_ops(rounds: usize) -> Vec<OpRow> {
    let words = words();
    let varints = leb128(&words);
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(WORDS / 8 * 11).collect();
    let mut long = vec![0u64; WORDS];
    long.iter_mut().zip(&words).for_each(|(long, &word)| *long = word.into());
    let present: Vec<u8> = words.chunks(8).map(|words| words[0].to_le_bytes()[0] | 0x11).collect();
    // Symbols of 1 to 8 letters.
    let mut lengths = [0u8; 256];
    lengths.iter_mut().zip((1..=8).cycle()).for_each(|(length, of)| *length = of);
    let symbols = [u64::from_le_bytes(*b"trackway"); 256];
    let codes: Vec<u8> = words.iter().map(|word| word.to_le_bytes()[0] % 200).collect();
    let expanded: usize = codes.iter().map(|&code| usize::from(lengths[usize::from(code)])).sum();

    // The operation, the level, values and bytes of results; then what is timed. Copies come first.
    let mut facts: Vec<(&'static str, &'static str, usize, usize)> = Vec::new();
    let mut cases = Vec::new();
    let sizes = [4 * WORDS, 8 * WORDS, expanded];
    cases.extend(sizes.map(copy));
    for kernels in Kernels::available() {
        let name = kernels.name();
        let mut case = |op, bytes, run: Box<dyn FnMut()>| {
            facts.push((op, name, WORDS, bytes));
            cases.push(Case::new(Clock::Cpu, run));
        };
        let out = || vec![0u32; WORDS];
        {
            let (src, mut out) = (varints.clone(), out());
            case("varints_u32", 4 * WORDS, Box::new(move || _ = black_box(kernels.varints_u32(&src, &mut out))));
        }
        {
            let (src, mut out) = (packed.clone(), out());
            case("unpack_lanes_u32", 4 * WORDS, Box::new(move || kernels.unpack_lanes_u32(&src, 11, &mut out)));
        }
        {
            let (src, mut out) = (packed.clone(), out());
            case("unpack_u32", 4 * WORDS, Box::new(move || kernels.unpack_u32(&src, 11, &mut out)));
        }
        {
            let mut out = words.clone();
            case("zigzag_deltas_u32", 4 * WORDS, Box::new(move || kernels.zigzag_deltas_u32(&mut out, 2)));
        }
        {
            let mut out = words.clone();
            case("zigzag_deltas2_u32", 4 * WORDS, Box::new(move || kernels.zigzag_deltas2_u32(&mut out, 2)));
        }
        {
            let (src, mut out) = (words.clone(), vec![0i32; 2 * WORDS]);
            case("morton", 8 * WORDS, Box::new(move || kernels.morton(&src, 16, 0, &mut out)));
        }
        {
            let (src, present, mut out) = (words.clone(), present.clone(), out());
            case("spread_u32", 4 * WORDS, Box::new(move || _ = kernels.spread_u32(&src, &present, &mut out)));
        }
        {
            let (src, mut out) = (long.clone(), vec![0f64; WORDS]);
            case("alp_f64", 8 * WORDS, Box::new(move || kernels.alp_f64(&src, -100, 1.0, 0.01, &mut out)));
        }
        {
            let (src, mut out) = (codes.clone(), vec![0u8; expanded + 64]);
            let run = move || _ = black_box(kernels.fsst(&symbols, &lengths, 200, &src, &mut out));
            case("fsst", expanded, Box::new(run));
        }
    }
    take_turns(&mut cases, 3 * rounds, Duration::from_millis(2));
    let (copies, timed) = cases.split_at(sizes.len());
    let rows = facts.iter().zip(timed).map(|(&(op, kernel, values, bytes), case)| OpRow {
        op,
        kernel,
        ns_per_value: case.median() * 1e9 / values as f64,
        gb_per_s: bytes as f64 / 1e9 / case.median(),
        x_memcpy: sizes.iter().position(|&size| size == bytes).map_or(f64::NAN, |n| copies[n].ratio_to(case)),
    });
    rows.collect()
}

impl Report {
    /// The report for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("CPU   {}, tilekern {}", self.cpu, env!("CARGO_PKG_VERSION"))];
        lines.extend(self.tiles.iter().map(|tile| {
            let counts = [
                format!("{} once decoded", counted(tile.decoded_bytes, "byte")),
                counted(tile.layers as u64, "layer"),
                counted(tile.features as u64, "feature"),
                counted(tile.columns as u64, "column"),
            ];
            format!("tile  {}: {}, {}", tile.name, counted(tile.bytes as u64, "byte"), counts.join(", "))
        }));
        lines.push(String::new());
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("whole tile, one thread", left),
            ("", left),
            ("level", left),
            ("us/tile", right),
            ("MB/s", right),
            ("x memcpy", right),
        ]);
        for row in &self.results {
            let [time, speed] = [format!("{:.1}", row.us_per_tile), format!("{:.0}", row.mb_per_s)];
            table.row([
                row.tile.clone(),
                row.what.into(),
                row.kernel.into(),
                time,
                speed,
                format!("{:.2}", row.x_memcpy),
            ]);
        }
        lines.extend(table.lines());
        lines.push("Medians of CPU time; MB of the tile; memcpy copies what it decodes to.".to_owned());
        lines.push(String::new());
        let mut table = Table::new([
            ("kernel on words in cache", left),
            ("level", left),
            ("ns/value", right),
            ("GB/s", right),
            ("x memcpy", right),
        ]);
        for row in &self.kernel_ops {
            let [time, speed] = [format!("{:.3}", row.ns_per_value), format!("{:.2}", row.gb_per_s)];
            table.row([row.op.into(), row.kernel.into(), time, speed, format!("{:.2}", row.x_memcpy)]);
        }
        lines.extend(table.lines());
        lines
    }
}
