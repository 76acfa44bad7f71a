//! The faults of a layer's parts: what each has, and that what parts share is decoded once.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;
#[path = "support/bytes.rs"]
mod bytes;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::{frame, varint};
use tilekern::Error;
use tilekern::mlt::{Decoder, Geometry, Kind, Layer, MValueData, NestedData, Options, PropertyData, Tile};

/// What is wrong, at which byte, in which layer and column.
type Told = (&'static str, Option<u64>, Option<(u32, Option<u32>)>);

fn told(error: &Error) -> Told {
    (error.kind().name(), error.offset(), error.layer().map(|place| (place.layer, place.column)))
}

/// What each part of a layer has, decoded by itself.
fn one_by_one(decoder: &mut Decoder, layer: Layer<'_>) -> Vec<Told> {
    let mut faults = Vec::new();
    let mut tell = |error: Error| faults.push(told(&error));
    let (mut values, mut geometry) = (PropertyData::new(), Geometry::new());
    decoder.ids(layer, &mut values).map_or_else(&mut tell, drop);
    decoder.geometry(layer, &mut geometry).unwrap_or_else(&mut tell);
    for column in layer.columns() {
        let tried = match column.kind() {
            Kind::Property | Kind::Child => decoder.property(column, &mut values),
            Kind::MValue => decoder.m_value(column, &mut MValueData::new()),
            Kind::Nested => decoder.nested(column, &mut NestedData::new()),
            _ => Ok(()),
        };
        tried.unwrap_or_else(&mut tell);
    }
    faults
}

fn at_once(decoder: &mut Decoder, layer: Layer<'_>) -> Vec<Told> {
    let mut faults = Vec::new();
    decoder.faults(layer, |error| faults.push(told(&error)));
    faults
}

/// Damaged layers have the faults of their parts, and, where a dictionary cannot be read, those of its children besides.
#[test]
fn parts_have_their_own_faults() {
    let options = Options::new().expect("kernels");
    let mut decoder = Decoder::with_options(options);
    let (mut opened, mut several, mut children) = (0, 0, 0);
    let tiles = bodies::mlt::tiles();
    for (n, tile) in tiles.iter().enumerate() {
        for at in (n % 7..tile.len()).step_by(7) {
            let mut bytes = tile.clone();
            bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
            // And what follows it at some distance.
            if let Some(byte) = bytes.get_mut(at + 40) {
                *byte ^= 0x55;
            }
            let Ok(tile) = Tile::open(&bytes, &options) else { continue };
            opened += 1;
            for layer in tile.layers() {
                let expected: BTreeSet<Told> = one_by_one(&mut decoder, layer).into_iter().collect();
                let found: BTreeSet<Told> = at_once(&mut decoder, layer).into_iter().collect();
                let dictionaries: Vec<_> = layer
                    .columns()
                    .filter(|column| matches!(column.kind(), Kind::SharedDictionary | Kind::Child))
                    .map(|column| u32::try_from(column.index()).expect("small"))
                    .collect();
                let lacking: Vec<_> = expected.difference(&found).collect();
                assert!(lacking.is_empty(), "{lacking:?} of {expected:?} is not in {found:?}");
                for more in found.difference(&expected) {
                    let column = more.2.and_then(|(_, column)| column);
                    assert!(column.is_some_and(|column| dictionaries.contains(&column)), "{more:?} is none");
                    children += 1;
                }
                several += usize::from(found.len() > 1);
            }
        }
    }
    assert!(opened > 1000 && several > 20 && children > 0, "{opened} opened, {several}, {children}");
}

/// A layer of version 1 of one point and a dictionary of one entry, which so many columns share. The codes of those that
/// `bad` says lead past it.
fn shared(entry: usize, children: usize, bad: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut body = [&b"\x01l\x80\x20\x02\x04\x1e\x00"[..], &varint(children)].concat();
    body.extend(b"\x1c\x01x".repeat(children));
    body.extend(b"\x02\x30\x02\x01\x01\x00\x13\x42\x02\x02\x00\x00");
    body.extend(varint(2 + children));
    let length = varint(entry);
    body.extend([&[0x36, 0x02, 1, length.len() as u8], &length[..], &[0x11, 0x00, 1], &length].concat());
    body.resize(body.len() + entry, b'a');
    (0..children).for_each(|child| body.extend([1, 0x22, 0x02, 1, 1, u8::from(bad(child))]));
    frame(1, &body)
}

/// The time for a layer's faults does not grow with the product of a dictionary and the columns that share it.
#[test]
fn what_is_shared_is_decoded_once() {
    let options = Options::new().expect("kernels");
    let mut decoder = Decoder::with_options(options);
    let children = 4000;
    let bytes = shared(16 << 20, children, |child| child % 1000 == 999);
    let tile = Tile::open(&bytes, &options).expect("sound headers");
    let layer = tile.layers().next().expect("a layer");
    let child = layer.columns().find(|column| column.kind() == Kind::Child).expect("a child");
    let mut data = PropertyData::new();
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    // Once to get the memory.
    decoder.property(child, &mut data).expect("sound");
    let one = time(&mut || decoder.property(child, &mut data).expect("sound"));
    let mut faults = Vec::new();
    let all = time(&mut || faults = at_once(&mut decoder, layer));
    let kinds: Vec<_> = faults.iter().map(|&(kind, _, place)| (kind, place.and_then(|(_, column)| column))).collect();
    let expected: Vec<_> = [1001, 2001, 3001, 4001].map(|column| ("code_out_of_dictionary", Some(column))).to_vec();
    assert_eq!(kinds, expected);
    // It takes hundreds of times this where each of them decodes it.
    let most = one.max(Duration::from_millis(1)) * (children as u32 / 10);
    assert!(all < most, "{all:?} for all, {one:?} for one of {children}");
}

/// One fault for a dictionary that cannot be read, and those of the columns that share it.
#[test]
fn a_dictionary_has_its_fault_once() {
    let options = Options::new().expect("kernels");
    let mut bytes = shared(5, 3, |child| child == 1);
    let text = bytes.windows(5).position(|bytes| bytes == b"aaaaa").expect("its entry");
    bytes[text + 2] = 0xff;
    // The code of the last child is cut off, of the second one no longer to be judged.
    *bytes.last_mut().expect("a code") = 0x80;
    let tile = Tile::open(&bytes, &options).expect("sound headers");
    let layer = tile.layers().next().expect("a layer");
    let mut decoder = Decoder::with_options(options);
    let place = |column| Some((0, Some(column)));
    let end = Some(bytes.len() as u64 - 1);
    let expected = [("utf8", Some(text as u64 + 2), place(1)), ("truncated", end, place(4))];
    assert_eq!(at_once(&mut decoder, layer), expected);
}
