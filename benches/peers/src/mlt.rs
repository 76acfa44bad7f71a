//! MapLibre Tiles, one thread: whole tiles beside mlt-core, kernels beside the crates fastpfor, fsst-rs and
//! integer-encoding.
//!
//! Tiles go to decoded columns: ids, geometry, all properties. Both sides keep what they can from tile to tile: tilekern
//! its outline, scratch and columns, mlt-core the scratch of its `Decoder` (its columns are new for each tile). mlt-core
//! leaves out the slots of nulls, tilekern gives each feature one.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use fastpfor::{AnyLenCodec, FastPFor128, FastPForSimd128};
use integer_encoding::VarInt;
use serde_json::{Value, json};
use tilekern::kernels::Kernels;
use tilekern::mlt::encoding::{fastpfor as ours, fsst as our_fsst, varint};
use tilekern::mlt::{Decoder, Input, Options, Outline, Packing, Scratch, Tile, TileData};

use crate::oracle;
use crate::turns::{median, ratio, take_turns};

pub const HELP: &str = "
  mlt        MapLibre Tiles: whole tiles of version 1 beside mlt-core, kernels beside fastpfor, fsst-rs and
             integer-encoding. Tiles are read from TILEKERN_FIXTURES [default: ../shared]
             --rounds N        rounds of each case [default: 15]
             CASE...           these cases alone
";

const CORE: &str = "mlt-core 0.12.5";

/// Tiles of a case: files of the corpus by how their names start.
const TILES: [(&str, &str); 3] = [("tile_v1_omt", "omt_"), ("tile_v1_bing", "bing_"), ("tile_v1_amazon", "amazon_")];

/// Bits of the values of FastPFOR cases.
const WIDTHS: [u32; 13] = [0, 1, 2, 3, 4, 5, 8, 10, 13, 16, 20, 24, 32];

/// Values of a kernel's case: results of a second-level cache's size.
const VALUES: usize = 1 << 16;

/// A kernel level on a case, beside the quickest of the peers.
pub struct Row {
    case: String,
    kernel: &'static str,
    /// Encoded bytes per second, in millions.
    mb_per_s: f64,
    /// Values per second in millions; of strings their bytes; tiles have none.
    m_values_per_s: Option<f64>,
    peer: String,
    peer_mb_per_s: f64,
    x_peer: f64,
}

impl Row {
    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case,
            "kernel": self.kernel,
            "mb_per_s": self.mb_per_s,
            "m_values_per_s": self.m_values_per_s,
            "peer": self.peer,
            "peer_mb_per_s": self.peer_mb_per_s,
            "x_peer": self.x_peer,
        })
    }
}

pub fn print(rows: &[Row]) {
    println!("{:<16} {:<8} {:>10} {:>10} {:>7}  {:>10} peer", "case", "kernel", "MB/s", "M values/s", "x peer", "MB/s");
    for row in rows {
        let values = row.m_values_per_s.map_or("-".to_owned(), |values| format!("{values:.0}"));
        println!(
            "{:<16} {:<8} {:>10.1} {:>10} {:>7.2}  {:>10.1} {}",
            row.case, row.kernel, row.mb_per_s, values, row.x_peer, row.peer_mb_per_s, row.peer
        );
    }
}

/// All cases, or those that are named.
pub fn run(arguments: &[String]) -> Result<Vec<Row>, String> {
    let (mut rounds, mut named) = (15, Vec::new());
    let mut arguments = arguments.iter().skip(1).filter(|argument| *argument != "--json");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => {
                let number = arguments.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                rounds = number.ok_or("--rounds needs a number above 0")?;
            }
            case => named.push(case.to_owned()),
        }
    }
    let widths = WIDTHS.map(|width| format!("fastpfor_{width}"));
    let all: Vec<&str> = TILES
        .iter()
        .map(|(case, _)| *case)
        .chain(widths.iter().map(String::as_str))
        .chain(["fsst_names", "varint_u32"])
        .collect();
    if let Some(case) = named.iter().find(|case| !all.contains(&case.as_str())) {
        return Err(format!("no case {case:?}"));
    }
    let mut rows = Vec::new();
    for case in all.into_iter().filter(|case| named.is_empty() || named.iter().any(|name| name == case)) {
        let tiles = TILES.iter().find(|(name, _)| *name == case);
        rows.extend(match (tiles, case.strip_prefix("fastpfor_")) {
            (Some((_, prefix)), _) => tiles_case(case, &tiles_of(prefix)?, rounds),
            (None, Some(width)) => fastpfor_case(case, width.parse().expect("a width"), rounds),
            (None, None) if case == "fsst_names" => fsst_case(rounds),
            (None, None) => varint_case(rounds),
        });
    }
    Ok(rows)
}

/// The folder of the real tiles of version 1.
pub fn corpus() -> PathBuf {
    let fixtures = std::env::var_os("TILEKERN_FIXTURES").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    fixtures.join("fixtures/mlt/v1-real")
}

/// Tiles whose file names start so, by name.
pub fn tiles_of(prefix: &str) -> Result<Vec<Vec<u8>>, String> {
    let folder = corpus();
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}; set TILEKERN_FIXTURES", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    paths.retain(|path| name(path).starts_with(prefix) && name(path).ends_with(".mlt"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no tiles {prefix}*.mlt", folder.display()));
    }
    paths.iter().map(|path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))).collect()
}

/// A way to decode a case.
struct Way<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
}

/// Times our levels and the peers by turns. `bytes` are encoded ones, `repeat` how often a run decodes them.
fn compare<'a>(
    case: &str,
    bytes: usize,
    values: Option<usize>,
    rounds: usize,
    mut ours: Vec<Way<'a>>,
    mut peers: Vec<Way<'a>>,
) -> Vec<Row> {
    let n = ours.len();
    let mut runs: Vec<&mut dyn FnMut()> = ours.iter_mut().chain(&mut peers).map(|way| &mut *way.run as _).collect();
    let times = take_turns(rounds, &mut runs);
    let (levels, others) = times.split_at(n);
    let speed = |amount: usize, times: &[f64]| amount as f64 / 1e6 / median(times.iter().copied());
    let (peer, best) = peers
        .iter()
        .zip(others)
        .min_by(|a, b| median(a.1.iter().copied()).total_cmp(&median(b.1.iter().copied())))
        .expect("a peer");
    Kernels::available()
        .zip(levels)
        .map(|(kernels, times)| Row {
            case: case.to_owned(),
            kernel: kernels.name(),
            mb_per_s: speed(bytes, times),
            m_values_per_s: values.map(|values| speed(values, times)),
            peer: peer.name.clone(),
            peer_mb_per_s: speed(bytes, best),
            x_peer: ratio(best, times),
        })
        .collect()
}

fn tiles_case(case: &str, tiles: &[Vec<u8>], rounds: usize) -> Vec<Row> {
    for tile in tiles {
        oracle::assert_same(tile);
    }
    let ours = Kernels::available().map(|kernels| {
        let options = Options::with_kernels(kernels);
        let mut decoder = Decoder::with_options(options);
        let (mut outline, mut data) = (Outline::default(), TileData::new());
        let run = move || {
            for bytes in tiles {
                let tile = Tile::open_with(bytes, std::mem::take(&mut outline), &options).expect("a sound tile");
                decoder.tile(&tile, &mut data).expect("a sound tile");
                black_box(&data);
                outline = tile.into_outline();
            }
        };
        Way { name: kernels.name().to_owned(), run: Box::new(run) }
    });
    let mut decoder = mlt_core::Decoder::with_max_size(u32::MAX);
    let core = move || {
        for bytes in tiles {
            decoder.reset_budget();
            let layers = mlt_core::Parser::with_max_size(u32::MAX).parse_layers(bytes).expect("a sound tile");
            _ = black_box(decoder.decode_all(layers).expect("a sound tile"));
        }
    };
    let peers = vec![Way { name: CORE.to_owned(), run: Box::new(core) }];
    compare(case, tiles.iter().map(Vec::len).sum(), None, rounds, ours.collect(), peers)
}

/// Numbers that are the same everywhere.
fn random() -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    })
}

/// How often a run decodes a kernel's case, so that a clock can tell.
const REPEAT: usize = 32;

/// A page of values of so many bits: tilekern decodes the format's interleaved blocks of 128, the crate its own sequential
/// ones of as many values, with the quicker of its plain and its AVX2 code; headers, widths and sizes are alike.
fn fastpfor_case(case: &str, width: u32, rounds: usize) -> Vec<Row> {
    let mask = u32::try_from((1u64 << width) - 1).expect("32 bits at most");
    let values: Vec<u32> = random().take(VALUES).map(|random| (random >> 32) as u32 & mask).collect();
    let mut payload = Vec::new();
    ours::encode_128(&values, Packing::Interleaved, &mut payload);
    let payload = &payload;
    let levels = Kernels::available().map(|kernels| {
        let options = Options::with_kernels(kernels);
        let (mut scratch, mut out) = (Scratch::new(), vec![0u32; values.len()]);
        ours::decode_128(Input::new(payload), &mut out, &options, &mut scratch).expect("a sound payload");
        assert!(out == values, "{}", kernels.name());
        let run = move || {
            for _ in 0..REPEAT {
                ours::decode_128(Input::new(payload), &mut out, &options, &mut scratch).expect("a sound payload");
                black_box(&out);
            }
        };
        Way { name: kernels.name().to_owned(), run: Box::new(run) }
    });
    let mut words = Vec::new();
    FastPFor128::default().encode(&values, &mut words).expect("values");
    let peers = vec![
        peer::<FastPFor128>("FastPFor128, sequential", &words, &values),
        peer::<FastPForSimd128>("FastPForSimd128, sequential", &words, &values),
    ];
    compare(case, REPEAT * payload.len(), Some(REPEAT * values.len()), rounds, levels.collect(), peers)
}

fn peer<'a, C: AnyLenCodec<Elem = u32> + 'a>(name: &str, words: &'a [u32], values: &[u32]) -> Way<'a> {
    let (mut codec, mut out) = (C::default(), Vec::with_capacity(values.len()));
    let n = u32::try_from(values.len()).expect("a page");
    codec.decode(words, &mut out, Some(n)).expect("its own words");
    assert!(out == values, "{name}");
    let run = move || {
        for _ in 0..REPEAT {
            out.clear();
            codec.decode(words, &mut out, Some(n)).expect("its own words");
            black_box(&out);
        }
    };
    Way { name: format!("fastpfor 0.9.1 {name}"), run: Box::new(run) }
}

/// Names such as those of streets, places and businesses: words of syllables, which repeat no more than real ones, among
/// those of many maps.
fn names(n: usize) -> Vec<String> {
    const SYLLABLES: [&str; 64] = [
        "an", "ber", "bo", "burg", "by", "cas", "cha", "cor", "dal", "den", "do", "el", "en", "er", "feld", "ford",
        "ga", "gar", "gen", "ham", "haus", "hel", "hof", "il", "in", "ka", "ker", "la", "le", "len", "lin", "lo", "lö",
        "ma", "mar", "men", "mon", "mühl", "na", "ner", "no", "on", "or", "pe", "por", "ra", "ren", "ri", "ro", "sa",
        "schön", "sen", "so", "stein", "ta", "ter", "tin", "to", "ton", "ul", "va", "ver", "wa", "wi",
    ];
    const KINDS: [&str; 24] = [
        " Street",
        " Avenue",
        " Road",
        " Lane",
        " North",
        "straße",
        "weg",
        "platz",
        " Square",
        "gatan",
        "gata",
        " Café",
        " Primary School",
        " Apotheke",
        " Parking",
        " Bridge",
        " улица",
        "路",
        "通り",
        " Park",
        " Hotel",
        "",
        "",
        "",
    ];
    const FRONTS: [&str; 12] = ["", "", "", "", "", "", "Rue ", "Via ", "Calle ", "Old ", "Saint ", "Rue de la "];
    let mut random = random();
    let mut next = |of: usize| usize::try_from(random.next().expect("no end") >> 33).expect("31 bits") % of;
    (0..n)
        .map(|_| {
            let mut name = FRONTS[next(FRONTS.len())].to_owned();
            for _ in 0..2 + next(3) {
                name.push_str(SYLLABLES[next(SYLLABLES.len())]);
            }
            name.push_str(KINDS[next(KINDS.len())]);
            if next(5) == 0 { format!("{name} {}", 1 + next(250)) } else { name }
        })
        .collect()
}

/// Names in one corpus, with one symbol table for both, which fsst-rs trains.
fn fsst_case(rounds: usize) -> Vec<Row> {
    let names = names(VALUES / 4);
    let joined = names.concat().into_bytes();
    let compressor = fsst::Compressor::train(&names.iter().map(String::as_bytes).collect());
    let corpus = compressor.compress(&joined);
    let lengths: Vec<u32> = compressor.symbol_lengths().iter().copied().map(u32::from).collect();
    let symbols: Vec<u8> = compressor
        .symbol_table()
        .iter()
        .zip(&lengths)
        .flat_map(|(symbol, &length)| symbol.to_u64().to_le_bytes().into_iter().take(length as usize))
        .collect();
    let table = our_fsst::Table::read(&lengths, Input::new(&symbols)).expect("a sound table");
    let (corpus, table, joined) = (&corpus, &table, &joined);
    let ours = Kernels::available().map(|kernels| {
        let (options, mut out) = (Options::with_kernels(kernels), Vec::new());
        let expected = joined.len() as u64;
        our_fsst::expand(table, Input::new(corpus), expected, &mut out, &options).expect("a sound corpus");
        assert!(out == *joined, "{}", kernels.name());
        let run = move || {
            for _ in 0..REPEAT {
                our_fsst::expand(table, Input::new(corpus), expected, &mut out, &options).expect("a sound corpus");
                black_box(&out);
            }
        };
        Way { name: kernels.name().to_owned(), run: Box::new(run) }
    });
    let decompressor = compressor.decompressor();
    let mut out = vec![MaybeUninit::new(0u8); decompressor.max_decompression_capacity(corpus)];
    assert!(decompressor.decompress(corpus) == *joined, "fsst-rs gives other values");
    let run = move || {
        for _ in 0..REPEAT {
            black_box(decompressor.decompress_into(corpus, &mut out));
            black_box(&out);
        }
    };
    let peers = vec![Way { name: "fsst-rs 0.7.0".to_owned(), run: Box::new(run) }];
    compare("fsst_names", REPEAT * corpus.len(), Some(REPEAT * joined.len()), rounds, ours.collect(), peers)
}

/// Varints of one to five bytes, most of them short, with the crate that mlt-core reads them with.
fn varint_case(rounds: usize) -> Vec<Row> {
    let values: Vec<u32> = random()
        .take(VALUES)
        .map(|random| {
            let bits = [4, 6, 7, 7, 9, 10, 12, 13, 14, 16, 20, 32][usize::try_from(random % 12).expect("below 12")];
            (random >> 32) as u32 >> (32 - bits)
        })
        .collect();
    let mut payload = Vec::new();
    varint::encode(&values, &mut payload);
    let (payload, n) = (&payload, values.len());
    let ours = Kernels::available().map(|kernels| {
        let options = Options::with_kernels(kernels);
        let mut out = vec![0u32; n];
        varint::decode(&mut Input::new(payload), &mut out, &options).expect("sound varints");
        assert!(out == values, "{}", kernels.name());
        let run = move || {
            for _ in 0..REPEAT {
                varint::decode(&mut Input::new(payload), &mut out, &options).expect("sound varints");
                black_box(&out);
            }
        };
        Way { name: kernels.name().to_owned(), run: Box::new(run) }
    });
    let mut out: Vec<u32> = Vec::with_capacity(n);
    let run = move || {
        for _ in 0..REPEAT {
            out.clear();
            let mut rest = &payload[..];
            while let Some((value, len)) = u32::decode_var(rest) {
                out.push(value);
                rest = &rest[len..];
            }
            assert!(out.len() == n);
            black_box(&out);
        }
    };
    let peers = vec![Way { name: "integer-encoding 4.1.0".to_owned(), run: Box::new(run) }];
    compare("varint_u32", REPEAT * payload.len(), Some(REPEAT * n), rounds, ours.collect(), peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_tiles_are_those_of_mlt_core() {
        if !corpus().is_dir() {
            assert!(std::env::var_os("TILEKERN_REQUIRE_FIXTURES").is_none(), "no corpus; set TILEKERN_FIXTURES");
            return;
        }
        for tile in tiles_of("").expect("tiles") {
            oracle::assert_same(&tile);
        }
    }
}
