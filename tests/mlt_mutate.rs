//! What the fuzzer makes of map tiles: each of its changes leaves sizes and counts right, and is made.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;

use std::collections::BTreeSet;

use bodies::mlt_build::Dice;
use bodies::mlt_mutate::{Change, cross_inputs, mutate, mutate_input};
use tilekern::Error;
use tilekern::kernels::Kernels;
use tilekern::mlt::{Decoder, Kind, Options, Tile, TileData, Traced, trace};

fn options() -> Options {
    Options::with_kernels(Kernels::auto())
}

/// Tiles of one layer, of a version.
fn of_version(version: u8) -> Vec<Vec<u8>> {
    let mut layers = Vec::new();
    for tile in bodies::mlt::tiles() {
        let opened = Tile::open(&tile, &options()).expect("a drawn tile");
        let spans = opened.frames().filter(|frame| frame.tag() == version).map(|frame| frame.span());
        layers.extend(spans.map(|span| tile[span.start as usize..span.end as usize].to_vec()));
    }
    layers
}

/// Whether frames fill all bytes.
fn framed(tile: &[u8]) -> bool {
    let mut rest = tile;
    while !rest.is_empty() {
        let Some(len) = rest.iter().position(|byte| byte & 0x80 == 0) else { return false };
        let size = rest[..=len].iter().rev().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
        match rest[len + 1..].split_at_checked(size) {
            Some((frame, behind)) if !frame.is_empty() => rest = behind,
            _ => return false,
        }
    }
    true
}

/// Changes of tiles, each its own donor, from so many seeds.
fn changed(tiles: &[Vec<u8>], change: Change, seeds: u32) -> impl Iterator<Item = (&[u8], Vec<u8>)> {
    let all = tiles.iter().flat_map(move |tile| (0..seeds).map(move |seed| (&tile[..], seed)));
    all.filter_map(move |(tile, seed)| Some((tile, change.make(tile, tile, &mut Dice::of(seed))?)))
}

#[test]
fn every_change_is_made_and_keeps_frames() {
    for version in [1, 2] {
        let tiles = of_version(version);
        for change in Change::ALL {
            let mut made = 0;
            for (tile, changed) in changed(&tiles[..10], change, 12) {
                assert!(changed != tile && framed(&changed), "{change:?}: {changed:?}");
                made += 1;
            }
            assert!(made >= 30, "version {version}, {change:?}: {made}");
        }
    }
    // All of them come from `mutate`, too, and the same from the same seed.
    let tiles = bodies::mlt::tiles();
    let made: BTreeSet<Option<Vec<u8>>> = (0..200).map(|seed| mutate(&tiles[3], &tiles[5], seed)).collect();
    assert!(made.len() > 100 && made == (0..200).map(|seed| mutate(&tiles[3], &tiles[5], seed)).collect());
}

/// A column that is left out leaves a tile of the others.
#[test]
fn columns_are_left_out() {
    let names = |tile: &[u8]| -> Result<Vec<(Kind, String)>, Error> {
        let opened = Tile::open(tile, &options())?;
        let columns = opened.layers().flat_map(|layer| layer.columns());
        Ok(columns.map(|column| (column.kind(), column.name().into_owned())).collect())
    };
    for version in [1, 2] {
        let mut left_out = Vec::new();
        for (tile, changed) in changed(&of_version(version), Change::Drop, 30) {
            let (all, Ok(left)) = (names(tile).expect("a drawn tile"), names(&changed)) else { continue };
            let without = |n: usize| (0..=all.len() - n).find(|&i| [&all[..i], &all[i + n..]].concat() == left);
            let n = all.len() - left.len();
            if let Some(at) = (n > 0).then(|| without(n)).flatten() {
                assert!(n == 1 || all[at].0 == Kind::SharedDictionary, "{n} columns");
                left_out.push(all[at].0);
            }
        }
        let kinds = [Kind::Id, Kind::Property, Kind::SharedDictionary, Kind::Child];
        let second = [Kind::MValue, Kind::Nested];
        for kind in kinds.iter().chain(second.iter().filter(|_| version == 2)) {
            assert!(left_out.contains(kind), "version {version}: {kind:?} of {left_out:?}");
        }
    }
}

/// What is written in another encoding means the same.
#[test]
fn transcoded_streams() {
    let read = |tile: &[u8]| -> Result<Vec<_>, Error> {
        let (opened, mut data) = (Tile::open(tile, &options())?, TileData::new());
        Decoder::with_options(options()).tile(&opened, &mut data)?;
        Ok(data.layers().iter().map(bodies::mlt::read).collect())
    };
    let encodings = |tile: &[u8]| -> Vec<String> {
        let opened = Tile::open(tile, &options()).expect("a tile that was read");
        let streams = opened.layers().flat_map(|layer| layer.columns()).flat_map(|column| column.streams());
        let name = |logical| format!("{logical:?}").split(' ').next().unwrap_or_default().to_owned();
        streams.map(|it| format!("{} {:?}", name(it.logical), it.physical)).collect()
    };
    for (version, wanted) in [
        (1, &["None None", "None VarInt", "None FastPfor256", "Rle VarInt", "DeltaRle VarInt"][..]),
        (2, &["None None", "None VarInt", "None FastPfor128", "RlePairs None", "BitPacked None", "DeltaRlePairs None"]),
    ] {
        let mut made = BTreeSet::new();
        for (tile, changed) in changed(&of_version(version), Change::Transcode, 20) {
            if read(&changed).is_ok_and(|found| found == read(tile).expect("a drawn tile")) {
                let (before, after) = (encodings(tile), encodings(&changed));
                made.extend(before.into_iter().zip(after).filter(|(a, b)| a != b).map(|(_, b)| b));
            }
        }
        for wanted in wanted {
            assert!(made.contains(*wanted), "version {version}: {wanted} of {made:?}");
        }
    }
}

/// Layers of other numbers of features are found, which take counts and payloads that fit.
#[test]
fn resized_layers() {
    for version in [1, 2] {
        let features = |tile: &[u8]| -> Result<usize, Error> {
            let (opened, mut data) = (Tile::open(tile, &options())?, TileData::new());
            Decoder::with_options(options()).tile(&opened, &mut data)?;
            Ok(data.layers()[0].features())
        };
        let resized = changed(&of_version(version), Change::Resize, 20)
            .filter(|(tile, changed)| features(changed).is_ok_and(|n| n != features(tile).expect("a drawn tile")))
            .count();
        assert!(resized > 5, "version {version}: {resized}");
    }
}

/// The mutator comes from the seeds to vertex offsets without vertices, which are refused for what they are.
#[test]
fn offsets_without_vertices_are_found() {
    let seeds = bodies::seeds("mlt_tile");
    let without_vertices = |tile: &[u8]| {
        let trace = trace(tile, Traced::Tile, &options());
        let fault = trace.fault.filter(|fault| fault.kind().name() == "stream_role")?;
        // The whole column was read, and its offsets are to blame.
        let column = trace.steps.iter().rposition(|step| step.label.ends_with(": data"))?;
        let mut streams = trace.steps[column..].iter().filter(|step| step.depth == 2);
        let offsets = streams.clone().find(|step| step.label == "VertexOffsets")?;
        (fault.offset() == Some(offsets.span.start) && !streams.any(|step| step.label == "Vertices")).then_some(())
    };
    let draws = (0..DRAWS).flat_map(|draw| seeds.iter().map(move |seed| (seed, draw)));
    let found =
        draws.filter_map(|(seed, draw)| mutate(seed, seed, draw)).position(|tile| without_vertices(&tile).is_some());
    assert!(found.is_some());
}

/// Of each seed.
const DRAWS: u32 = 100;

/// What changes make, a few one upon another, keeps to all that the targets check.
#[test]
fn changed_tiles_hold() {
    let seeds = bodies::seeds("mlt_tile");
    for (i, seed) in (0..).zip(&seeds) {
        for chain in 0..3 {
            let mut input = [&[0], &seed[..]].concat();
            for draw in (chain * 4..).take(4) {
                let donor = &seeds[(i + 31 * draw) as usize % seeds.len()];
                if let Some(changed) = mutate(&input[1..], donor, i + 1000 * draw) {
                    input.splice(1.., changed);
                    bodies::mlt_tile(&input[1..]);
                    bodies::mlt_differential(&input);
                }
            }
        }
    }
}

/// No bytes are too strange, and no room is too small.
#[test]
fn any_bytes() {
    let tiles = bodies::mlt::tiles();
    let cut = tiles[..20].iter().enumerate().map(|(i, tile)| tile[..tile.len() * i / 20].to_vec());
    let noise = (0..40u8).map(|i| bodies::seeds::noise(i.into(), i.into()));
    for (i, bytes) in cut.chain(noise).enumerate() {
        for seed in 0..20 {
            let room = bytes.len() + i % 3 * 40;
            let mut data = bytes.clone();
            data.resize(room + 1, 7);
            if let Some(len) = mutate_input(&mut data, bytes.len(), room, seed, i % 2) {
                assert!(len <= room && data[..i % 2] == bytes[..i % 2] && data[room] == 7);
            }
            let mut out = vec![7; room];
            let len = cross_inputs(&bytes, &tiles[i], &mut out, seed, i % 2);
            assert!(len <= room && (len == 0 || out[..i % 2] == bytes[..i % 2]));
        }
    }
}
