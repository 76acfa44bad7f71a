//! Map tiles of every encoding, written and read again on every kernel level; what the writer refuses.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;

use bodies::mlt_build::draw;
use proptest::prelude::*;
use tilekern::ErrorKind;
use tilekern::mlt::encode::{
    Child, Floats, Geometry, GeometryCoding, Integers, LayerWriter, Member, Nested, Presence, Shape, Strings, Truths,
    Values, Version, Vertices, Words,
};
use tilekern::mlt::{Decoder, Options, StringLayout, Tile, TileData};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn drawn_tiles(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
        bodies::mlt_round_trip(&bytes);
    }
}

/// What random bytes draw has all there is to a tile.
#[test]
fn drawn_tiles_have_everything() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..3000 {
        for layer in draw(&bodies::seeds::noise(seed, 500), None).layers {
            let version = layer.version;
            let columns = layer.columns.iter().chain(&layer.m_values).chain(&layer.nested);
            seen.extend(columns.flat_map(|column| &column.cells).map(|cell| {
                let kind = format!("{cell:?}");
                format!("{version} {}", kind.split(['(', ' ']).next().unwrap_or_default())
            }));
            let parts = [
                ("ids", layer.ids.is_some()),
                ("z", layer.z.is_some()),
                ("triangles", layer.triangles.as_ref().is_some_and(|triangles| !triangles.is_empty())),
                ("triangles alone", layer.shapes.is_none()),
                ("m-values", layer.m_values.iter().any(|column| !column.cells.is_empty())),
                ("many", layer.columns.iter().any(|column| column.cells.len() > 400)),
            ];
            seen.extend(parts.iter().filter(|part| part.1).map(|part| format!("{version} {}", part.0)));
            for shape in layer.shapes.iter().flatten() {
                let kind = format!("{shape:?}");
                seen.insert(format!("{version} {}", kind.split('(').next().unwrap_or_default()));
            }
        }
    }
    let both = ["Null", "Bool", "Int", "UInt", "Float", "Double", "Text", "ids", "triangles", "many", "Point"];
    let both = both.into_iter().chain(["LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"]);
    let mut expected: Vec<String> = both.flat_map(|kind| [1, 2].map(|version| format!("{version} {kind}"))).collect();
    expected.extend(["2 List", "2 Entries", "2 z", "2 triangles alone", "2 m-values"].map(str::to_owned));
    for kind in expected {
        assert!(seen.contains(&kind), "{kind} is not in {seen:?}");
    }
}

fn points(n: i32) -> Vec<Shape> {
    (0..n).map(|i| Shape::Point([7 * i % 50, 3 * i % 40])).collect()
}

fn writer(version: Version, n: i32) -> LayerWriter {
    LayerWriter::new(version, "layer", 4096, n as usize).expect("a sound layer")
}

/// Every way to store integers, at lengths around the blocks of FastPFOR.
#[test]
fn integers_of_every_length() {
    let of_words = |words| {
        [Integers::Values(words), Integers::Delta(words), Integers::Delta2(words), Integers::Rle(words)]
            .into_iter()
            .chain([Integers::DeltaRle(words)])
    };
    let codings: Vec<Integers> = [Words::Plain, Words::VarInt, Words::FastPfor]
        .into_iter()
        .flat_map(of_words)
        .chain([Integers::BitPacked])
        .collect();
    for n in [0, 1, 2, 31, 127, 128, 129, 255, 256, 257, 300, 512, 700] {
        let signed: Vec<i32> = (0..n).map(|i| (i * i - 300) * if i % 40 == 0 { 4_001 } else { 1 }).collect();
        let long: Vec<u64> = signed.iter().map(|&value| (i64::from(value) << 7).cast_unsigned()).collect();
        for version in [Version::V1, Version::V2] {
            for &coding in &codings {
                let mut layer = writer(version, n);
                let geometry = Geometry::new(&points(n)).expect("few points");
                layer.geometry(&geometry, &GeometryCoding::default()).expect("points");
                let ways = [
                    layer.column("signed", Presence::All, Values::Int32(&signed, coding)),
                    layer.column("long", Presence::All, Values::UInt64(&long, coding)),
                ];
                let written = ways
                    .map(|way| way.map_err(|error| assert!(matches!(error.kind(), ErrorKind::Unsupported(_)))).is_ok());
                let second = matches!(coding, Integers::Delta2(_) | Integers::BitPacked);
                assert_eq!(written[0], version == Version::V2 || !second, "{version:?} {coding:?}");
                let mut tile = Vec::new();
                layer.finish(&mut tile).expect("a sound layer");
                for kernels in tilekern::kernels::Kernels::available() {
                    let options = Options::with_kernels(kernels);
                    let mut data = TileData::new();
                    let opened = Tile::open(&tile, &options).expect("a tile that was written");
                    Decoder::with_options(options).tile(&opened, &mut data).expect("a tile that was written");
                    let layer = &data.layers()[0];
                    if written[0] {
                        let read = layer.property("signed").expect("the column").values;
                        assert_eq!(read, tilekern::mlt::Values::Int32(&signed), "{version:?} {coding:?} {n}");
                    }
                    if written[1] {
                        let read = layer.property("long").expect("the column").values;
                        assert_eq!(read, tilekern::mlt::Values::UInt64(&long), "{version:?} {coding:?} {n}");
                    }
                }
            }
        }
    }
}

/// Every way to store vertices, at numbers around the blocks of FastPFOR: of a block less is needed than of a tail.
#[test]
fn vertices_of_every_length() {
    let of_words = |words| {
        [
            Vertices::Values(words),
            Vertices::Delta(words),
            Vertices::ComponentwiseDelta(words),
            Vertices::ComponentwiseDelta2(words),
            Vertices::Morton(words),
        ]
    };
    let ways = [Words::Plain, Words::VarInt, Words::FastPfor].into_iter().flat_map(of_words).chain([Vertices::Rans]);
    let ways: Vec<Vertices> = ways.collect();
    let mut written = 0;
    for n in [0, 1, 2, 63, 64, 65, 127, 128, 129, 256, 257, 400] {
        let shapes: Vec<Shape> = (0..n).map(|i| Shape::Point([i * i % 301 - 90, 5 * i % 77])).collect();
        let geometry = Geometry::new(&shapes).expect("few points");
        for (version, &vertices) in [Version::V1, Version::V2].iter().flat_map(|v| ways.iter().map(move |way| (v, way)))
        {
            for dictionary in [None, Some(Integers::Delta(Words::FastPfor))] {
                let mut layer = writer(*version, n);
                let coding = GeometryCoding { vertices, dictionary, ..GeometryCoding::default() };
                if let Err(error) = layer.geometry(&geometry, &coding) {
                    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
                    continue;
                }
                written += 1;
                let mut tile = Vec::new();
                layer.finish(&mut tile).expect("a sound layer");
                for kernels in tilekern::kernels::Kernels::available() {
                    let options = Options::with_kernels(kernels);
                    let mut data = TileData::new();
                    let opened = Tile::open(&tile, &options).expect("a tile that was written");
                    let decoded = Decoder::with_options(options).tile(&opened, &mut data);
                    decoded.unwrap_or_else(|error| panic!("{error}: {version:?} {coding:?} {n}"));
                    let read = data.layers()[0].geometry().shapes();
                    let read: Vec<Shape> = read
                        .map(|shape| match shape {
                            tilekern::mlt::Shape::Point(vertex) => Shape::Point(vertex),
                            other => panic!("{other:?}"),
                        })
                        .collect();
                    assert!(read == shapes, "{version:?} {coding:?} {n}");
                }
            }
        }
    }
    // Morton codes need a dictionary, rANS must have none; second differences and rANS are of version 2.
    assert_eq!(written, 12 * (9 + 12 + 12 + 15 + 1));
}

/// What a layer cannot hold is an error that says what.
#[test]
fn refusals() {
    let geometry = Geometry::new(&points(3)).expect("few points");
    let plain = GeometryCoding::default();
    let name = |result: Result<(), tilekern::Error>| result.map_or_else(|error| error.kind().name(), |()| "none");
    assert_eq!(LayerWriter::new(Version::V1, "", 4096, 0).map(|_| ()).map_err(|e| e.kind().name()), Err("empty"));
    for (version, extent) in [(Version::V1, 0), (Version::V2, 32), (Version::V2, 4095), (Version::V2, 1 << 22)] {
        let refused = LayerWriter::new(version, "layer", extent, 0).map(|_| ()).map_err(|e| e.kind().name());
        assert_eq!(refused, Err("out_of_range"), "{extent}");
    }
    for version in [Version::V1, Version::V2] {
        let mut layer = writer(version, 3);
        assert_eq!(name(layer.clone().finish(&mut Vec::new())), "no_geometry");
        assert_eq!(name(layer.geometry(&Geometry::new(&points(2)).expect("few"), &plain)), "count_mismatch");
        assert_eq!(name(layer.geometry(&geometry, &plain)), "none");
        assert_eq!(name(layer.geometry(&geometry, &plain)), "repeated_column");
        let short = Values::Bool(&[true, false], Truths::Bitmap);
        assert_eq!(name(layer.column("a", Presence::All, short)), "count_mismatch");
        assert_eq!(name(layer.column("a", Presence::Own(&[true, true], Truths::Bitmap), short)), "count_mismatch");
        assert_eq!(name(layer.column("a", Presence::Shared(0), short)), "unsupported");
        assert_eq!(name(layer.column("a", Presence::Own(&[true, false, true], Truths::Bitmap), short)), "none");
        let strings = Strings { front_coded: true, ..Strings::new(StringLayout::Plain) };
        assert_eq!(name(layer.column("b", Presence::All, Values::Strings(&["", "x", "y"], strings))), "unsupported");
        assert_eq!(name(layer.ids(Presence::All, Values::Int32(&[1, 2, 3], Integers::default()))), "wrong_type");
        let ids = Values::UInt32(&[1, 2, 3], Integers::default());
        assert_eq!(name(layer.ids(Presence::All, ids)), "none");
        assert_eq!(name(layer.ids(Presence::All, ids)), "repeated_column");
        let coding = GeometryCoding { vertices: Vertices::Morton(Words::VarInt), ..plain };
        assert_eq!(name(writer(version, 3).geometry(&geometry, &coding)), "unsupported");
    }
    let mut first = writer(Version::V1, 3);
    let doubles = Values::Double(&[0.5, 1.5, 2.5], Floats::Alp(Words::VarInt));
    assert_eq!(name(first.column("a", Presence::All, doubles)), "unsupported");
    assert_eq!(name(first.column("a", Presence::All, Values::UInt8(&[1, 2, 3], Integers::default()))), "unsupported");
    assert_eq!(first.shared_presence(&[true; 3], Truths::Bitmap).map_err(|e| e.kind().name()), Err("unsupported"));
    assert_eq!(name(first.m_values("a", Presence::All, doubles)), "unsupported");

    let mut second = writer(Version::V2, 3);
    assert_eq!(name(second.m_values("m", Presence::All, doubles)), "no_geometry");
    second.geometry(&geometry, &plain).expect("points");
    assert_eq!(name(second.m_values("m", Presence::All, doubles)), "unsupported");
    assert_eq!(name(second.column("a", Presence::All, doubles)), "none");
    assert_eq!(name(second.column("a", Presence::All, doubles)), "repeated_name");
    let third = Values::Double(&[1.0 / 3.0, f64::NAN, 1e300], Floats::Alp(Words::VarInt));
    assert_eq!(name(second.column("b", Presence::All, third)), "unsupported");
    let child = Child { name: "", presence: Presence::All, values: &["x", "x", "y"], codes: Integers::default() };
    assert_eq!(name(second.shared_dictionary("c", &[child, child], &Strings::default())), "repeated_name");
    for _ in 0..7 {
        second.shared_presence(&[true, false, true], Truths::Sparse).expect("seven");
    }
    assert_eq!(second.shared_presence(&[true; 3], Truths::Sparse).map_err(|e| e.kind().name()), Err("unsupported"));
    let mut deep = Nested::Values(doubles);
    for depth in 1..10 {
        deep = Nested::Struct(vec![("field", Member { present: None, node: deep })]);
        let expected = if depth < 8 { "none" } else { "depth" };
        assert_eq!(name(second.clone().nested("deep", Presence::All, &deep)), expected, "{depth}");
    }
}
