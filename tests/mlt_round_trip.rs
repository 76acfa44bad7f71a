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
use tilekern::mlt::{Decoder, Options, StringLayout, Tile, TileData, Values as Stored};

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

fn decoded(tile: &[u8]) -> TileData {
    let (options, mut data) = (Options::new().expect("kernels"), TileData::new());
    let opened = Tile::open(tile, &options).expect("a tile that was written");
    Decoder::with_options(options).tile(&opened, &mut data).expect("a tile that was written");
    data
}

/// Layers of no features have every encoding of vertices.
#[test]
fn no_features() {
    let words = Words::VarInt;
    let ways = [
        Vertices::Values(words),
        Vertices::Delta(words),
        Vertices::ComponentwiseDelta(words),
        Vertices::ComponentwiseDelta2(words),
        Vertices::Rans,
    ];
    let none = || Geometry::new(&[]).expect("no features");
    let alone = |n| Geometry::of_triangles(&vec![[3, 4]; n], Vec::new(), true).expect("no features");
    for geometry in [none(), Geometry::default(), alone(0), alone(5)] {
        for vertices in ways {
            let mut layer = writer(Version::V2, 0);
            let coding = GeometryCoding { vertices, ..GeometryCoding::default() };
            layer.geometry(&geometry, &coding).expect("no features");
            let mut tile = Vec::new();
            layer.finish(&mut tile).expect("a sound layer");
            assert_eq!(decoded(&tile).layers()[0].geometry().len(), 0, "{vertices:?}");
        }
    }
}

/// Vertices that differ in their elevation alone are different ones of a dictionary, too.
#[test]
fn elevations_in_a_dictionary() {
    let line = [[5, 6], [7, 8], [5, 6], [7, 8], [5, 6]];
    let z = vec![1, i32::MIN, 2, i32::MIN, 1];
    let words = Words::VarInt;
    for vertices in [Vertices::Values(words), Vertices::Delta(words), Vertices::ComponentwiseDelta(words)] {
        for dictionary in [None, Some(Integers::Values(words)), Some(Integers::BitPacked)] {
            let mut layer = writer(Version::V2, 1);
            let geometry = Geometry::new(&[Shape::LineString(line.to_vec())]).expect("a line").with_z(7, z.clone());
            let coding = GeometryCoding { vertices, dictionary, ..GeometryCoding::default() };
            layer.geometry(&geometry, &coding).expect("a line");
            let mut tile = Vec::new();
            layer.finish(&mut tile).expect("a sound layer");
            let stored = Tile::open(&tile, &Options::new().expect("kernels")).expect("a tile that was written");
            let counts: Vec<u32> =
                stored.layers().flat_map(|layer| layer.geometry_streams()).map(|stream| stream.count).collect();
            assert_eq!(counts[1..], if dictionary.is_some() { vec![3, 5] } else { vec![5] });
            let data = decoded(&tile);
            let read = data.layers()[0].geometry();
            assert_eq!((read.vertices(), read.z()), (&line[..], Some((7, &z[..]))), "{coding:?}");
        }
    }
    let geometry = || Geometry::new(&[Shape::LineString(line.to_vec())]).expect("a line").with_z(7, z.clone());
    for vertices in [Vertices::Morton(words), Vertices::ComponentwiseDelta2(words), Vertices::Rans] {
        let coding = GeometryCoding { vertices, dictionary: Some(Integers::default()), ..GeometryCoding::default() };
        let refused = writer(Version::V2, 1).geometry(&geometry(), &coding).map_err(|error| error.kind().name());
        assert_eq!(refused, Err("unsupported"), "{vertices:?}");
    }
}

/// The ends of every type, and what of floating-point numbers has no value of its own, in every way that holds them.
#[test]
fn extremes() {
    let words = [Words::Plain, Words::VarInt, Words::FastPfor];
    let integers: Vec<Integers> = words
        .into_iter()
        .flat_map(|words| {
            [Integers::Values(words), Integers::Delta(words), Integers::Delta2(words), Integers::Rle(words)]
                .into_iter()
                .chain([Integers::DeltaRle(words)])
        })
        .chain([Integers::BitPacked])
        .collect();
    let long = [i64::MIN, i64::MAX, -1, 0, 1, i64::MIN, i64::MIN + 1, i64::MAX];
    let short = long.map(|value| (value >> 32) as i32);
    let tiny = long.map(|value| (value >> 56) as i8);
    let bits = [0, 1 << 63, 1, u64::MAX, 0x7ff0_0000_0000_0001, 0xfff8_0000_0000_1234, 0x7ff0 << 48, 0xfff0 << 48];
    let doubles = bits.map(f64::from_bits);
    let floats = bits.map(|bits| f32::from_bits((bits >> 32) as u32 | bits as u32 & 1));
    let texts = ["", "", "\u{10ffff}", "a", "", "\0", "e\u{301}", ""];
    let layouts = [StringLayout::Plain, StringLayout::Dictionary, StringLayout::Fsst, StringLayout::FsstDictionary];
    for version in [Version::V1, Version::V2] {
        // Some have a value, all, and none.
        for n in [8, 0] {
            let mut layer = writer(version, 9);
            layer.geometry(&Geometry::new(&points(9)).expect("points"), &GeometryCoding::default()).expect("points");
            let present: Vec<bool> = (0..9).map(|i| n > 0 && i != 4).collect();
            let mut expected = Vec::new();
            let mut add = |values: Values<'_>, bytes: Vec<u8>| {
                let name = expected.len().to_string();
                let written = layer.column(&name, Presence::Own(&present, Truths::Bitmap), values);
                match written {
                    Ok(()) => expected.push(bytes),
                    Err(error) => assert_eq!(error.kind().name(), "unsupported", "{version:?} {values:?}"),
                }
            };
            let of_long = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let of_short = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
            for &coding in &integers {
                let unsigned = long.map(i64::cast_unsigned);
                let narrow = short.map(i32::cast_unsigned);
                add(Values::Int64(&long[..n], coding), of_long(&long[..n]));
                add(Values::UInt64(&unsigned[..n], coding), of_long(&long[..n]));
                add(Values::Int32(&short[..n], coding), of_short(&short[..n]));
                add(Values::UInt32(&narrow[..n], coding), of_short(&short[..n]));
                add(Values::Int8(&tiny[..n], coding), tiny[..n].iter().map(|value| value.cast_unsigned()).collect());
                add(Values::UInt8(&tiny.map(i8::cast_unsigned)[..n], coding), {
                    tiny[..n].iter().map(|value| value.cast_unsigned()).collect()
                });
            }
            for coding in [Floats::Plain, Floats::Dictionary(Words::FastPfor), Floats::Alp(Words::Plain)] {
                add(Values::Double(&doubles[..n], coding), of_long(&bits.map(u64::cast_signed)[..n]));
                add(Values::Float(&floats[..n], coding), floats[..n].iter().flat_map(|it| it.to_le_bytes()).collect());
            }
            for (layout, front_coded) in layouts.into_iter().flat_map(|layout| [(layout, false), (layout, true)]) {
                let coding = Strings { front_coded, ..Strings::new(layout) };
                add(
                    Values::Strings(&texts[..n], coding),
                    texts[..n].iter().flat_map(|text| [text, "|"].concat().into_bytes()).collect(),
                );
            }
            // 64 bits are too many for the FastPFOR of version 1 and for bit packing, and these numbers no decimals for ALP.
            let all = match (version, n) {
                (Version::V1, _) => 4 * 12 - 2 * 4 + 2 + 4,
                (Version::V2, 0) => 6 * 16 + 6 + 6,
                (Version::V2, _) => 6 * 16 - 2 + 4 + 6,
            };
            assert_eq!(expected.len(), all, "{version:?} {n}");
            let mut tile = Vec::new();
            layer.finish(&mut tile).expect("a sound layer");
            let data = decoded(&tile);
            for (column, expected) in data.layers()[0].properties().zip(&expected) {
                let stored = |i: usize| match column.values {
                    Stored::Int8(values) => values[i].to_le_bytes().to_vec(),
                    Stored::UInt8(values) => vec![values[i]],
                    Stored::Int32(values) => values[i].to_le_bytes().to_vec(),
                    Stored::UInt32(values) => values[i].to_le_bytes().to_vec(),
                    Stored::Int64(values) => values[i].to_le_bytes().to_vec(),
                    Stored::UInt64(values) => values[i].to_le_bytes().to_vec(),
                    Stored::Float(values) => values[i].to_le_bytes().to_vec(),
                    Stored::Double(values) => values[i].to_le_bytes().to_vec(),
                    Stored::Strings(texts) => [texts.get(i), "|"].concat().into_bytes(),
                    other => panic!("{other:?}"),
                };
                let there = (0..9).filter(|&i| column.is_valid(i));
                let place = format!("{version:?}, {n} of column {}, {:?}", column.name, column.data_type);
                assert_eq!((column.nulls, there.flat_map(stored).collect()), (9 - n, expected.clone()), "{place}");
            }
        }
    }
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
    // No presence field of any number that is not there.
    let flat = Values::Bool(&[], Truths::Bitmap);
    for field in [0, 7, 251, 252, 255, 256, usize::MAX] {
        let presence = Presence::Shared(field);
        let nested = Nested::Struct(vec![("field", Member { present: None, node: Nested::Values(flat) })]);
        let child = Child { name: "", presence, values: &[], codes: Integers::default() };
        assert_eq!(name(second.ids(presence, Values::UInt32(&[], Integers::default()))), "unsupported", "{field}");
        assert_eq!(name(second.column("s", presence, flat)), "unsupported", "{field}");
        assert_eq!(name(second.nested("s", presence, &nested)), "unsupported", "{field}");
        assert_eq!(name(second.m_values("s", presence, flat)), "unsupported", "{field}");
        assert_eq!(name(second.shared_dictionary("s", &[child], &Strings::default())), "unsupported", "{field}");
    }
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
