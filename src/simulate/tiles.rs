//! A map tile of version 1, by which decoders are compared: the kinds of columns that tiles of streets have, in the encodings
//! that writers choose for them.

use rand_chacha::ChaCha8Rng;

use super::{below, stream};
use crate::mlt::encoding::integers;
use crate::mlt::{Logical, Physical};

/// Units along an edge of the tile.
const EXTENT: u32 = 4096;

/// A tile of three layers: 1,000 places, 4,000 streets and 6,000 buildings, with ids, texts and numbers. The same seed gives
/// the same tile.
pub fn map_tile(seed: u64) -> Vec<u8> {
    let mut random = stream(seed, 0);
    let mut tile = Vec::new();
    layer("place", 1_000, Shape::Point, &mut random, &mut tile);
    layer("street", 4_000, Shape::Line, &mut random, &mut tile);
    layer("building", 6_000, Shape::Polygon, &mut random, &mut tile);
    tile
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Point,
    Line,
    Polygon,
}

/// A small number.
fn word(n: usize) -> u32 {
    u32::try_from(n).expect("small")
}

/// A random letter, or any other byte.
fn byte(first: u8, of: usize, random: &mut ChaCha8Rng) -> u8 {
    first.wrapping_add(below(random, of).to_le_bytes()[0])
}

/// Appends an unsigned LEB128 number.
fn number(mut value: usize, out: &mut Vec<u8>) {
    loop {
        let low = value.to_le_bytes()[0] & 127;
        value >>= 7;
        out.push(if value == 0 { low } else { low | 128 });
        if value == 0 {
            return;
        }
    }
}

/// Appends a stream of bytes that are no integers.
fn bytes(kind: u8, count: usize, payload: &[u8], out: &mut Vec<u8>) {
    out.extend([kind, 0]);
    number(count, out);
    number(payload.len(), out);
    out.extend(payload);
}

/// Appends a stream of integers.
fn integers(kind: u8, logical: Logical, physical: Physical, signed: bool, values: &[u32], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    let (logical, words) = integers::encode(physical, logical, signed, values, &mut payload);
    let code = match logical {
        Logical::Delta => 0x20,
        Logical::DeltaRle { .. } => 0x2c,
        Logical::Rle { .. } => 0x60,
        _ => 0,
    };
    let width = match physical {
        Physical::None => 0,
        Physical::VarInt => 2,
        _ => 1,
    };
    out.extend([kind, code | width]);
    number(words as usize, out);
    number(payload.len(), out);
    if let Logical::Rle { runs } | Logical::DeltaRle { runs } = logical {
        number(runs as usize, out);
        number(values.len(), out);
    }
    out.extend(payload);
}

/// Appends vertices as differences of each coordinate.
fn vertices(vertices: &[[u32; 2]], out: &mut Vec<u8>) {
    let mut before = [0u32; 2];
    let mut words = Vec::with_capacity(2 * vertices.len());
    for &vertex in vertices {
        for (value, before) in vertex.into_iter().zip(&mut before) {
            let step = value.wrapping_sub(*before).cast_signed();
            words.push((step << 1 ^ step >> 31).cast_unsigned());
            *before = value;
        }
    }
    let mut payload = Vec::new();
    integers::encode_words(Physical::FastPfor256, &words, &mut payload);
    out.extend([0x13, 0x41]);
    number(words.len(), out);
    number(payload.len(), out);
    out.extend(payload);
}

/// Appends a layer. Each column's metadata stand before the data of all.
fn layer(name: &str, features: usize, shape: Shape, random: &mut ChaCha8Rng, out: &mut Vec<u8>) {
    let mut body = vec![1];
    number(name.len(), &mut body);
    body.extend(name.as_bytes());
    number(EXTENT as usize, &mut body);
    number(6, &mut body);
    body.extend([0, 4]);
    for (kind, name) in [(29, "name"), (28, "class"), (16, "level"), (24, "size")] {
        body.push(kind);
        number(name.len(), &mut body);
        body.extend(name.as_bytes());
    }
    let ids: Vec<u32> = (0..features).map(|i| 1_000 + word(i)).collect();
    integers(0x10, Logical::DeltaRle { runs: 0 }, Physical::VarInt, false, &ids, &mut body);
    geometry(features, shape, random, &mut body);

    // Texts of which half are there.
    let present: Vec<u8> = (0..features.div_ceil(8)).map(|_| byte(0, 256, random)).collect();
    let there = (0..features).filter(|i| present[i / 8] >> (i % 8) & 1 == 1).count();
    let (mut lengths, mut text) = (Vec::new(), Vec::new());
    for _ in 0..there {
        let length = 4 + below(random, 20);
        lengths.push(word(length));
        text.extend((0..length).map(|_| byte(b'a', 26, random)));
    }
    number(3, &mut body);
    bytes(0x00, features, &present, &mut body);
    integers(0x30, Logical::None, Physical::VarInt, false, &lengths, &mut body);
    bytes(0x10, there, &text, &mut body);

    // One of a few words.
    let words = ["primary", "secondary", "residential", "service", "track", "path", "steps", "other"];
    let lengths: Vec<u32> = words.iter().map(|text| word(text.len())).collect();
    let codes: Vec<u32> = (0..features).map(|_| word(below(random, words.len()))).collect();
    number(3, &mut body);
    integers(0x36, Logical::None, Physical::VarInt, false, &lengths, &mut body);
    integers(0x22, Logical::None, Physical::FastPfor256, false, &codes, &mut body);
    bytes(0x11, words.len(), words.concat().as_bytes(), &mut body);

    let levels: Vec<u32> = (0..features).map(|_| word(below(random, 40)).wrapping_sub(8)).collect();
    integers(0x10, Logical::None, Physical::FastPfor256, true, &levels, &mut body);
    let sizes: Vec<u8> = (0..features).flat_map(|_| (below(random, 10_000) as f32 / 10.0).to_le_bytes()).collect();
    bytes(0x10, features, &sizes, &mut body);

    number(body.len(), out);
    out.extend(body);
}

fn geometry(features: usize, shape: Shape, random: &mut ChaCha8Rng, out: &mut Vec<u8>) {
    let mut all = Vec::new();
    let mut lengths = Vec::new();
    for _ in 0..features {
        let mut at = [0, 1].map(|_| word(below(random, EXTENT as usize)));
        let n = match shape {
            Shape::Point => 1,
            Shape::Line => 2 + below(random, 14),
            Shape::Polygon => 4 + below(random, 4),
        };
        lengths.push(word(n));
        for _ in 0..n {
            all.push(at);
            at = at.map(|at| at.wrapping_add(word(below(random, 64))).wrapping_sub(31));
        }
    }
    let varint =
        |kind, values: &[u32], out: &mut Vec<u8>| integers(kind, Logical::None, Physical::VarInt, false, values, out);
    let types = vec![shape as u32; features];
    let n_streams = match shape {
        Shape::Point => 2,
        Shape::Line => 3,
        Shape::Polygon => 4,
    };
    number(n_streams, out);
    integers(0x30, Logical::Rle { runs: 0 }, Physical::VarInt, false, &types, out);
    match shape {
        Shape::Point => {}
        Shape::Line => varint(0x32, &lengths, out),
        Shape::Polygon => {
            integers(0x32, Logical::Rle { runs: 0 }, Physical::VarInt, false, &vec![1; features], out);
            varint(0x33, &lengths, out);
        }
    }
    vertices(&all, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlt::{Decoder, Options, Tile, TileData};

    #[test]
    fn it_is_sound_and_the_same() {
        let bytes = map_tile(0);
        assert!(bytes == map_tile(0) && bytes != map_tile(1));
        let tile = Tile::open(&bytes, &Options::new().unwrap()).unwrap();
        let mut data = TileData::new();
        Decoder::new().unwrap().tile(&tile, &mut data).unwrap();
        let shapes: Vec<(usize, usize)> =
            data.layers().iter().map(|layer| (layer.features(), layer.properties().len())).collect();
        assert_eq!(shapes, [(1_000, 4), (4_000, 4), (6_000, 4)]);
    }
}
