//! What no tile of the corpus has: nested columns whose rows have shapes, layers of triangles alone, and tiles that are to
//! take more memory or time than they may.

#[path = "support/bytes.rs"]
mod bytes;
mod support;

use bytes::varint;
use serde_json::{Value as Json, json};
use support::mlt;
use tilekern::kernels::Kernels;
use tilekern::mlt::{Decoder, LayerPlace, Options, PropertyData, Tile, TileData};
use tilekern::{Error, Limits};

/// A layer of version 2 of three points, and one column.
fn points(column: &[u8]) -> Vec<u8> {
    let head = [1, b'l', 0x16, 3, 0x00, 0x28, 6, 2, 2, 2, 2, 2, 2, 1];
    frame(&[&head[..], column].concat())
}

fn frame(body: &[u8]) -> Vec<u8> {
    let size = u8::try_from(1 + body.len()).expect("a short frame");
    assert!(size < 128, "a size of one byte");
    [&[size, 2][..], body].concat()
}

/// What `look` sees, or the name of the fault; the same on all levels.
fn decoded(bytes: &[u8], look: impl Fn(&TileData) -> Json) -> Json {
    let mut results = Kernels::available().map(|kernels| {
        let options = Options::with_kernels(kernels);
        let (mut decoder, mut data) = (Decoder::with_options(options), TileData::new());
        let done = Tile::open(bytes, &options).and_then(|tile| decoder.tile(&tile, &mut data));
        done.map_or_else(|error| error.kind().name().into(), |()| look(&data))
    });
    let first = results.next().expect("a level");
    results.for_each(|result| assert_eq!(result, first));
    first
}

fn nested(column: &[u8]) -> Json {
    decoded(&points(column), |data| mlt::nested_values(&data.layers()[0].nested().next().expect("a column")))
}

#[test]
fn structs() {
    // Rows 0 and 2 are there. Shape 0 has field a, shape 1 a and b.
    let column = |ids: [u8; 2]| {
        let head = [0x1c, 1, b's', 0b101, 0x40, 2, 0x80, 4, 0b1101, 0x08, 2, ids[0], ids[1]];
        // Counts of fields are stated: only the shapes would tell them.
        let a = [0x06, 1, b'a', 0x88, 2, 2, 5, 6];
        let b = [0x0b, 1, b'b', 0x88, 1, 1, 2, 0x04, 2, b'x', b'y'];
        [&head[..], &a, &b].concat()
    };
    assert_eq!(nested(&column([1, 0])), json!([{ "a": 5, "b": "xy" }, null, { "a": 6 }]));
    assert_eq!(nested(&column([0, 1])), json!([{ "a": 5 }, null, { "a": 6, "b": "xy" }]));
    assert_eq!(nested(&column([2, 0])), "code_out_of_dictionary");
    // Both rows have b then, for which there is one value.
    assert_eq!(nested(&column([1, 1])), "count_mismatch");
}

#[test]
fn maps() {
    // Shape 0 has key p, shape 1 p and q.
    let column = |ids: [u8; 3], keys: &[u8]| {
        let head = [0x0e, 1, b'm', 0x40];
        let shapes = [0x80, 4, 0b1101, 0x88, 3, 3, ids[0], ids[1], ids[2]];
        let values = [0x06, 0x88, 5, 5, 1, 2, 3, 4, 5];
        [&head[..], keys, &shapes, &values].concat()
    };
    let plain = [0x88, 2, 2, 1, 1, 0x04, 2, b'p', b'q'];
    let rows = json!([{ "p": 1, "q": 2 }, { "p": 3 }, { "p": 4, "q": 5 }]);
    assert_eq!(nested(&column([1, 0, 1], &plain)), rows);
    assert_eq!(nested(&column([1, 0, 0], &plain)), "count_mismatch");
    // The keys in a dictionary of their own, in the other order.
    let dictionary = [0x89, 2, 2, 1, 0, 0x88, 2, 2, 1, 1, 0x04, 2, b'q', b'p'];
    assert_eq!(nested(&column([1, 0, 1], &dictionary)), rows);
}

#[test]
fn triangles_alone() {
    // Two polygons of two triangles and one; four vertices; a tree of two triangles, one of one.
    let tile = |uniform: u8, last: u8| {
        frame(&[
            1, b'l', uniform, 2, 0x0c, // name, header, features, layout
            0x08, 2, 2, 1, // triangles of each
            0x88, 3, 3, 1, 0, 0, // symbols
            0x88, 7, 7, 0, 1, 3, 2, 0, 2, last, // cycles
            0xa8, 4, 8, 0, 0, 20, 0, 0, 20, 19, 0, // vertices
            0, // no columns
        ])
    };
    let look = |data: &TileData| {
        let geometry = data.layers()[0].geometry();
        let (offsets, corners) = geometry.triangles().expect("triangles");
        json!([mlt::geometry(geometry), offsets, corners, geometry.tessellated_only()])
    };
    let [a, b, c, d] = [[0, 0], [10, 0], [10, 10], [0, 10]];
    // Entered over (0, 1) with apex 2; its left child over (2, 1) with apex 3.
    let polygons = json!([["MultiPolygon", [[[a, b, c, a]], [[c, b, d, c]]]], ["MultiPolygon", [[[a, c, d, a]]]],]);
    let expected = json!([polygons, [0, 2, 3], [0, 1, 2, 2, 1, 3, 0, 2, 3], true]);
    assert_eq!(decoded(&tile(0x36, 3), look), expected);
    assert_eq!(decoded(&tile(0x36, 4), look), "triangles");
    assert_eq!(decoded(&tile(0x26, 3), look), "geometry_type");
}

#[test]
fn offsets_without_vertices() {
    // A layer of version 1, of so many points by their types and offsets; there is no stream of vertices.
    let tile = |points: u8| {
        let zeros = vec![0; points.into()];
        let head = [1, b'l', 0x80, 0x20, 1, 0x04, 2];
        let types = [&[0x10, 0x02, points, points][..], &zeros].concat();
        let offsets = [&[0x20, 0x02, points, points][..], &zeros].concat();
        bytes::frame(1, &[&head[..], &types, &offsets].concat())
    };
    let opened = |bytes: &[u8]| Tile::open(bytes, &Options::with_kernels(Kernels::auto())).map(drop);
    for points in [1, 2, 50] {
        let error = opened(&tile(points)).expect_err("offsets lead nowhere");
        let place = Some(LayerPlace { layer: 0, column: Some(0) });
        assert_eq!(
            (error.kind().name(), error.offset(), error.layer()),
            ("stream_role", Some(13 + u64::from(points)), place)
        );
    }
    // As good as none.
    let shapes = |data: &TileData| json!(data.layers()[0].geometry().shapes().count());
    assert_eq!(decoded(&tile(0), shapes), json!(0));
}

/// A layer of version 2 of three points with shared dictionaries: of each the prefix, and the rest of its children's names.
fn dictionaries(of: &[(&[u8], Vec<Vec<u8>>)]) -> Vec<u8> {
    let mut body = [&[1, b'l', 0x16, 3, 0x00, 0x28, 6, 2, 2, 2, 2, 2, 2][..], &varint(of.len())].concat();
    for (prefix, names) in of {
        body.extend([&[0x0f][..], &varint(prefix.len()), prefix, &varint(names.len())].concat());
        body.extend([0x88, 1, 1, 1, 0x04, 1, b'v']);
        for name in names {
            body.extend([&[0x0b][..], &varint(name.len()), name, &[0x09, 3, 0, 0, 0]].concat());
        }
    }
    bytes::frame(2, &body)
}

/// A prefix is stored once, and is part of as many names as the dictionary has children.
#[test]
fn many_names() {
    let names: Vec<Vec<u8>> = (0..10_000).map(|i| format!("{i}").into_bytes()).collect();
    let prefix = vec![b'p'; 10_000];
    let tile = dictionaries(&[(&prefix, names)]);
    assert!(tile.len() < 200_000);
    let of = |limits: Limits| Options::with_kernels(Kernels::auto()).limits(limits);
    let name = |error: Error| error.kind().name();
    // 100 MB of names, and about 2 MB of columns and streams.
    let mut small = Limits::default();
    small.max_scratch_bytes = 90_000_000;
    assert_eq!(Tile::open(&tile, &of(small)).map(drop).map_err(name), Err("limit_exceeded"));
    let options = of(Limits::default());
    let opened = Tile::open(&tile, &options).expect("names within the limits");
    let whole = |limits| Decoder::with_options(of(limits)).tile(&opened, &mut TileData::new()).map_err(name);
    assert_eq!(whole(Limits::default()), Ok(()));
    assert_eq!(whole(Limits::default().with_output_bytes(90_000_000)), Err("limit_exceeded"));
    // One by one they are within them.
    let few = Limits::default().with_output_bytes(20_000);
    let (mut decoder, mut out) = (Decoder::with_options(of(few)), PropertyData::new());
    let layer = opened.layer(0).expect("a layer");
    for column in layer.properties().step_by(1000) {
        decoder.property(column, &mut out).expect("one column");
        assert!(
            out.get().name.len() > 10_000 && out.get().iter().all(|value| value == tilekern::mlt::Value::String("v"))
        );
    }
    assert_eq!(decoder.tile(&opened, &mut TileData::new()).map_err(name), Err("limit_exceeded"));
}

/// Names are compared as they are when put together, wherever the prefix ends.
#[test]
fn names_of_other_prefixes() {
    let split = |at: usize, name: &str| (name.as_bytes()[..at].to_vec(), name.as_bytes()[at..].to_vec());
    let texts = ["", "a", "b", "ab", "aa", "abc", "abd", "abcabc"];
    for (one, other) in texts.iter().flat_map(|one| texts.iter().map(move |other| (one, other))) {
        for (i, j) in (0..=one.len()).flat_map(|i| (0..=other.len()).map(move |j| (i, j))) {
            let ((a, b), (c, d)) = (split(i, one), split(j, other));
            let tile = dictionaries(&[(&a, vec![b]), (&c, vec![d])]);
            let opened = Tile::open(&tile, &Options::with_kernels(Kernels::auto()));
            let found = opened.map(drop).map_err(|error| (error.kind().name(), error.layer()));
            let repeated = Err(("repeated_name", Some(LayerPlace { layer: 0, column: Some(3) })));
            assert_eq!(found, if one == other { repeated } else { Ok(()) }, "{one} at {i}, {other} at {j}");
        }
    }
}
