//! Map tiles by which decoders are compared: the kinds of columns that tiles of streets have, in the encodings that writers
//! choose for them.

use rand_chacha::ChaCha8Rng;

use super::{below, stream};
use crate::error::Error;
use crate::mlt::StringLayout;
use crate::mlt::encode::{
    Floats, Geometry, GeometryCoding, Integers, LayerWriter, Position, Presence, Shape, Strings, Truths, Values,
    Version, Vertices, Words,
};

/// Units along an edge of the tile.
const EXTENT: i32 = 4096;

/// Words that many features share.
const CLASSES: [&str; 8] = ["primary", "secondary", "residential", "service", "track", "path", "steps", "other"];

/// A tile of three layers: 1,000 places, 4,000 streets and 6,000 buildings, with ids, texts and numbers. The same seed gives
/// the same features in either version, each with its own encodings.
///
/// # Errors
/// None: features and encodings are those that the writer takes.
pub fn map_tile(seed: u64, version: Version) -> Result<Vec<u8>, Error> {
    let mut random = stream(seed, 0);
    let mut tile = Vec::new();
    for (name, features, kind) in
        [("place", 1_000, Kind::Point), ("street", 4_000, Kind::Line), ("building", 6_000, Kind::Area)]
    {
        let shapes: Vec<Shape> = (0..features).map(|_| shape(kind, &mut random)).collect();
        layer(name, &shapes, version, &mut random, &mut tile)?;
    }
    Ok(tile)
}

#[derive(Clone, Copy)]
enum Kind {
    Point,
    Line,
    Area,
}

/// Uniform from 0 on, below a small number.
fn small(below_this: i32, random: &mut ChaCha8Rng) -> i32 {
    i32::try_from(below(random, below_this.unsigned_abs() as usize)).expect("small")
}

/// A geometry whose vertices are near each other.
fn shape(kind: Kind, random: &mut ChaCha8Rng) -> Shape {
    let start = [small(EXTENT, random), small(EXTENT, random)];
    let mut path = |n: i32| -> Vec<Position> {
        let mut at = start;
        let mut next = || {
            let here = at;
            at = at.map(|at| at + small(64, random) - 31);
            here
        };
        (0..n).map(|_| next()).collect()
    };
    match kind {
        Kind::Point => Shape::Point(start),
        Kind::Line => Shape::LineString(path(2 + start[0] % 14)),
        Kind::Area => Shape::Polygon(vec![path(4 + start[0] % 4)]),
    }
}

fn layer(
    name: &str,
    shapes: &[Shape],
    version: Version,
    random: &mut ChaCha8Rng,
    tile: &mut Vec<u8>,
) -> Result<(), Error> {
    let features = shapes.len();
    let second = version == Version::V2;
    let mut layer = LayerWriter::new(version, name, EXTENT.unsigned_abs(), features)?;
    let vertices = if second { Vertices::Rans } else { Vertices::ComponentwiseDelta(Words::FastPfor) };
    let runs = Integers::Rle(Words::VarInt);
    layer.geometry(&Geometry::new(shapes)?, &GeometryCoding { types: runs, vertices, ..GeometryCoding::default() })?;
    let ids: Vec<u32> = (1_000..).take(features).collect();
    layer.ids(Presence::All, Values::UInt32(&ids, Integers::DeltaRle(Words::VarInt)))?;

    // Half have a name.
    let there: Vec<bool> = (0..features).map(|_| below(random, 2) == 1).collect();
    let mut name = || -> String { (0..4 + below(random, 20)).map(|_| char::from(letter(random))).collect() };
    let names: Vec<String> = there.iter().filter(|there| **there).map(|_| name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let present = Presence::Own(&there, Truths::Bitmap);
    let layout = if second { StringLayout::Fsst } else { StringLayout::Plain };
    layer.column("name", present, Values::Strings(&names, Strings::new(layout)))?;

    let classes: Vec<&str> = (0..features).map(|_| CLASSES[below(random, CLASSES.len())]).collect();
    let codes = if second { Integers::BitPacked } else { Integers::Values(Words::FastPfor) };
    let coding = Strings { codes, ..Strings::new(StringLayout::Dictionary) };
    layer.column("class", Presence::All, Values::Strings(&classes, coding))?;

    let levels: Vec<i32> = (0..features).map(|_| small(40, random) - 8).collect();
    layer.column("level", Presence::All, Values::Int32(&levels, Integers::Values(Words::FastPfor)))?;
    let sizes: Vec<f64> = (0..features).map(|_| f64::from(small(10_000, random)) / 10.0).collect();
    let coding = if second { Floats::Alp(Words::FastPfor) } else { Floats::Plain };
    layer.column("size", Presence::All, Values::Double(&sizes, coding))?;
    layer.finish(tile)
}

/// A letter.
fn letter(random: &mut ChaCha8Rng) -> u8 {
    b"etaoinshrdlucmfgypwbvkxqjz"[below(random, 26).min(below(random, 26))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlt::{Decoder, Options, Tile, TileData};

    #[test]
    fn they_are_sound_and_the_same() {
        let mut decoded = Vec::new();
        for version in [Version::V1, Version::V2] {
            let bytes = map_tile(0, version).unwrap();
            assert!(bytes == map_tile(0, version).unwrap() && bytes != map_tile(1, version).unwrap());
            let tile = Tile::open(&bytes, &Options::new().unwrap()).unwrap();
            let mut data = TileData::new();
            Decoder::new().unwrap().tile(&tile, &mut data).unwrap();
            let shapes: Vec<(usize, usize)> =
                data.layers().iter().map(|layer| (layer.features(), layer.properties().len())).collect();
            assert_eq!(shapes, [(1_000, 4), (4_000, 4), (6_000, 4)]);
            decoded.push(data);
        }
        for (one, other) in decoded[0].layers().iter().zip(decoded[1].layers()) {
            assert_eq!(one.geometry().coordinates(), other.geometry().coordinates());
            for (one, other) in one.properties().zip(other.properties()) {
                assert!(one.iter().eq(other.iter()), "{}", one.name);
            }
        }
    }
}
