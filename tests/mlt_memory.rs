//! Map tiles take memory by what they hold, not by what they state; a steady loop over tiles takes none.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;
#[path = "support/bytes.rs"]
mod bytes;
#[path = "support/counting.rs"]
mod counting;

use bytes::{frame, varint};
use counting::counted;
use tilekern::Limits;
use tilekern::mlt::encode::{
    Child, Geometry, GeometryCoding, Integers, LayerWriter, Member, Nested, Presence, Shape, Strings, Values, Version,
    Words,
};
use tilekern::mlt::{
    DataType, Decoder, Kind, LayerData, Options, Outline, PropertyData, StringLayout, Tile, TileData, Value,
};

/// Opens and decodes a tile; gives the error's name, and the largest piece of memory asked for.
fn decoded(tile: &[u8], limits: Limits) -> (Result<(), &'static str>, usize) {
    let options = Options::new().expect("kernels").limits(limits);
    let mut result = Ok(());
    let (_, largest) = counted(|| {
        let tile = Tile::open(tile, &options);
        let decode = |tile: Tile<'_>| Decoder::with_options(options).tile(&tile, &mut TileData::new());
        result = tile.and_then(decode).map_err(|error| error.kind().name());
    });
    (result, largest)
}

/// 2^32 - 1 as a varint.
const MANY: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x0f];

/// A layer of version 1 whose one column is geometry, of these streams.
fn geometry_of(streams: &[&[u8]]) -> Vec<u8> {
    let count = streams.len() as u8;
    frame(1, &[&[1, b'a', 0x80, 0x20, 1, 4, count][..], &streams.concat()].concat())
}

/// A layer of version 2 of points, of so many features, whose vertices are a run, and columns.
fn points_of(features: &[u8], columns: &[&[u8]]) -> Vec<u8> {
    // Vertices as they are with a length that is not there; none where there are no features.
    let vertices: &[u8] = if features == [0] { &[0x00] } else { &[0x28, 0] };
    let head = [&[1, b'a', 0x16][..], features, &[0], vertices, &[columns.len() as u8]].concat();
    frame(2, &[&head[..], &columns.concat()].concat())
}

/// Few bytes that state 2^32 - 1 features, values, words, or lists of them.
#[test]
fn stated_counts_are_not_believed() {
    let run =
        |kind: u8, coding: u8, words: &[u8]| [&[kind, coding, 2, words.len() as u8, 1][..], &MANY, words].concat();
    let lengths = [&MANY[..], &[0]].concat();
    let types = run(0x30, 0x62, &lengths);
    let vertices = [0x13, 0x42, 2, 2, 2, 2];
    let plain = [&[0x30, 0x02][..], &MANY, &[3, 0, 0, 0]].concat();
    let packed = [&[0x30, 0x01][..], &MANY, &[4, 0, 0, 0, 0]].concat();
    let words = [&[0x30, 0x00][..], &MANY, &[4, 0, 0, 0, 0]].concat();
    let many_parts = [run(0x30, 0x62, &[1, 1]), run(0x32, 0x62, &lengths)];
    let mut tiles = vec![
        geometry_of(&[&types]),
        geometry_of(&[&types, &vertices]),
        geometry_of(&[&plain, &vertices]),
        geometry_of(&[&packed, &vertices]),
        geometry_of(&[&words, &vertices]),
        geometry_of(&[&many_parts[0], &many_parts[1], &vertices]),
    ];
    let ids: [&[u8]; 6] = [
        &[0x00, 0x20, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 7],
        &[0x00, 0x0c, 4, 0, 0, 0, 0],
        &[0x01, 0x0c, 4, 0, 0, 0, 0],
        &[0x00, 0x40, 2, 1, 0],
        &[0x10, 0x00],
        &[0x20, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x08, 0],
    ];
    tiles.extend(ids.iter().map(|column| points_of(&MANY, &[column])));
    // Strings, dictionaries of floats, lists: counts of their own, in a layer of no features.
    let strings: [&[u8]; 4] = [
        &[0x0b, 1, b's', 0x88, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0x04, 0],
        &[0x0b, 1, b's', 0x09, 0, 0xa8, 0xff, 0xff, 0xff, 0xff, 0x0f, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0x04, 0],
        &[0x09, 1, b'f', 0x38, 0, 0x80, 0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x0d, 1, b'l', 0xa0, 0xff, 0xff, 0xff, 0xff, 0x0f, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0x05, 0x88, 0, 0],
    ];
    tiles.extend(strings.iter().map(|column| points_of(&[0], &[column])));
    for tile in &tiles {
        let (result, largest) = decoded(tile, Limits::default().with_output_bytes(1 << 20));
        assert!(result.is_err(), "{tile:x?}");
        assert!(largest <= 4 << 20, "{tile:x?}: {result:?} with {largest} bytes at once");
    }
}

/// Sound tiles of a few bytes that mean very much meet the limits.
#[test]
fn what_grows_meets_the_limits() {
    let n = 1 << 20;
    let same = vec![7i64; n];
    let points = vec![Shape::Point([1, 1]); n];
    let runs = Integers::Rle(Words::VarInt);
    let coding = GeometryCoding {
        types: runs,
        dictionary: Some(runs),
        vertices: tilekern::mlt::encode::Vertices::Delta(Words::VarInt),
        ..GeometryCoding::default()
    };
    let long = "x".repeat(60_000);
    let texts = vec![&long[..]; 400];
    for version in [Version::V1, Version::V2] {
        let mut layer = LayerWriter::new(version, "runs", 4096, n).expect("a sound layer");
        layer.geometry(&Geometry::new(&points).expect("points"), &coding).expect("points");
        layer.column("same", Presence::All, Values::Int64(&same, runs)).expect("runs");
        let mut tile = Vec::new();
        layer.finish(&mut tile).expect("a sound layer");
        assert!(tile.len() < 200, "{} bytes", tile.len());
        let (result, largest) = decoded(&tile, Limits::default().with_output_bytes(1 << 20));
        assert_eq!(result, Err("limit_exceeded"));
        assert!(largest <= 4 << 20, "{largest} bytes at once");
        assert_eq!(decoded(&tile, Limits::default()).0, Ok(()));
        let mut limits = Limits::default();
        limits.max_values = 1 << 12;
        let (result, largest) = decoded(&tile, limits);
        assert_eq!(result, Err("limit_exceeded"));
        assert!(largest <= 4 << 20, "{largest} bytes at once");

        // One long string often, in symbols of 8 bytes: what a byte of the corpus means at most.
        for layout in [StringLayout::Fsst, StringLayout::FsstDictionary] {
            let mut layer = LayerWriter::new(version, "strings", 4096, texts.len()).expect("a sound layer");
            layer.geometry(&Geometry::new(&points[..texts.len()]).expect("points"), &coding).expect("points");
            let strings = Strings { codes: runs, lengths: runs, ..Strings::new(layout) };
            layer.column("text", Presence::All, Values::Strings(&texts, strings)).expect("strings");
            let mut tile = Vec::new();
            layer.finish(&mut tile).expect("a sound layer");
            let (result, largest) = decoded(&tile, Limits::default().with_output_bytes(1 << 20));
            // A dictionary stays one: there its entry is there once.
            let expected = if layout == StringLayout::Fsst { Err("limit_exceeded") } else { Ok(()) };
            assert_eq!(result, expected, "{layout:?}");
            assert!(largest <= 4 << 20, "{largest} bytes at once");
        }
    }
    // Lists of lists, each of which is as long as its lengths say.
    let lengths = vec![1024u32; 1024];
    let elements = vec![1i64; 1 << 20];
    let inner = Nested::List {
        lengths: &lengths,
        coding: runs,
        element: Box::new(Member { present: None, node: Nested::Values(Values::Int64(&elements, runs)) }),
    };
    let outer =
        Nested::List { lengths: &[1024], coding: runs, element: Box::new(Member { present: None, node: inner }) };
    let mut layer = LayerWriter::new(Version::V2, "lists", 4096, 1).expect("a sound layer");
    layer.geometry(&Geometry::new(&points[..1]).expect("a point"), &GeometryCoding::default()).expect("a point");
    layer.nested("lists", Presence::All, &outer).expect("lists");
    let mut tile = Vec::new();
    layer.finish(&mut tile).expect("a sound layer");
    assert!(tile.len() < 100, "{} bytes", tile.len());
    let (result, largest) = decoded(&tile, Limits::default().with_output_bytes(1 << 20));
    assert_eq!(result, Err("limit_exceeded"));
    assert!(largest <= 4 << 20, "{largest} bytes at once");
    assert_eq!(decoded(&tile, Limits::default()).0, Ok(()));
}

/// Layers, columns and nodes that hold nothing take memory, which is counted; the error says where it is too much.
#[test]
fn many_that_hold_nothing() {
    let options = Options::new().expect("kernels").limits(Limits::default().with_output_bytes(64 << 10));
    let many = |part: &[u8]| part.repeat(1000);
    let columns = |count: &[u8], columns: &[u8]| [&[1, b'a', 0x80, 0x20][..], count, columns].concat();
    // Bool columns without a name, and the geometry; their data.
    let first =
        columns(&[0xe9, 7], &[&[4][..], &many(&[10, 0]), &[1, 0x30, 0x02, 0, 0], &many(&[0x10, 0, 0, 0])].concat());
    let fields: Vec<u8> =
        (0..1000u32).flat_map(|i| [&[2, 4][..], format!("{i:04}").as_bytes(), &[0]].concat()).collect();
    let nested = [&[1, b'a', 0x16, 0, 0, 0x00, 1, 0x0c, 1, b's', 0xe8, 7][..], &fields].concat();
    for tile in [many(&frame(2, &[1, b'a', 0x16, 0, 0, 0, 0])), frame(1, &first), frame(2, &nested)] {
        let opened = Tile::open(&tile, &options).expect("a sound tile");
        let error = Decoder::with_options(options).tile(&opened, &mut TileData::new()).expect_err("too much");
        assert_eq!(error.kind().name(), "limit_exceeded");
        assert!(error.layer().is_some() && error.offset().is_some_and(|at| at > 0), "{error}");
        let whole = Options::new().expect("kernels");
        Decoder::with_options(whole).tile(&opened, &mut TileData::new()).expect("a sound tile");
    }
}

/// Some columns of a layer, of which several have one name, share one bound, and the dictionary.
#[test]
fn some_columns() {
    let n = 1000;
    let (names, numbers) = (vec!["x".repeat(5000); n], vec![7; n]);
    let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
    let runs = Integers::Rle(Words::VarInt);
    let coding = GeometryCoding { types: runs, ..GeometryCoding::default() };
    let mut layer = LayerWriter::new(Version::V1, "layer", 4096, n).expect("a sound layer");
    layer.ids(Presence::All, Values::UInt32(&vec![1; n], runs)).expect("ids");
    layer.column("a", Presence::All, Values::Int32(&numbers, runs)).expect("numbers");
    let child = |name| Child { name, presence: Presence::All, values: &names, codes: runs };
    let children: Vec<Child<'_>> = ["b", "a", "a", "a", "a", "a", "a", "a"].map(child).to_vec();
    layer.shared_dictionary("", &children, &Strings::default()).expect("a dictionary");
    layer.geometry(&Geometry::new(&vec![Shape::Point([1, 1]); n]).expect("points"), &coding).expect("points");
    let mut tile = Vec::new();
    layer.finish(&mut tile).expect("a sound layer");
    let options = Options::new().expect("kernels");
    let tile = Tile::open(&tile, &options).expect("a sound tile");
    let layer = tile.layer(0).expect("a layer");
    let (mut decoder, mut data) = (Decoder::with_options(options), LayerData::new());
    for (word, expected) in [("a", 8), ("b", 1), ("none", 0)] {
        decoder.some(layer, false, |column| column.name() == word, &mut data).expect("a sound layer");
        assert_eq!((data.properties().len(), data.ids(), data.geometry().len()), (expected, None, 0), "{word}");
        assert!(data.properties().all(|column| column.name == word && column.len == n));
        let texts = data.properties().filter(|column| column.data_type == DataType::String);
        assert!(texts.flat_map(|column| column.iter().collect::<Vec<_>>()).all(|text| text == Value::String(names[0])));
    }
    decoder.some(layer, true, |column| column.kind() == Kind::Id, &mut data).expect("a sound layer");
    assert_eq!((data.properties().len(), data.ids().map(|ids| ids.len), data.geometry().len()), (0, Some(n), n));
    // One dictionary, and codes of four bytes for each.
    let bound = |bytes| Options::new().expect("kernels").limits(Limits::default().with_output_bytes(bytes));
    for (bytes, expected) in [(60 << 10, Ok(())), (30 << 10, Err("limit_exceeded"))] {
        let mut decoder = Decoder::with_options(bound(bytes));
        let some = decoder.some(layer, false, |column| column.name() == "a", &mut data);
        assert_eq!(some.map_err(|error| error.kind().name()), expected);
        decoder.property(layer.property("b").expect("a child"), &mut PropertyData::new()).expect("one");
    }
}

/// Every part of a layer has its own fault, whatever is wrong with the others.
#[test]
fn faults_of_all_parts() {
    let n = 3;
    let mut layer = LayerWriter::new(Version::V2, "layer", 4096, n).expect("a sound layer");
    let lines = vec![Shape::LineString(vec![[0, 0], [1, 1]]); n];
    let words = Integers::Values(Words::VarInt);
    layer.geometry(&Geometry::new(&lines).expect("lines"), &GeometryCoding::default()).expect("lines");
    layer.ids(Presence::All, Values::UInt32(&[201, 202, 203], words)).expect("ids");
    layer.column("text", Presence::All, Values::Strings(&["qq"; 3], Strings::default())).expect("text");
    let child = |name| Child { name, presence: Presence::All, values: &["zz"; 3], codes: words };
    layer.shared_dictionary("of", &["a", "b"].map(child), &Strings::default()).expect("a dictionary");
    layer.m_values("m", Presence::All, Values::UInt32(&[204; 6], words)).expect("values");
    let list = Member { present: None, node: Nested::Values(Values::Strings(&["yy"; 3], Strings::default())) };
    let list = Nested::List { lengths: &[1; 3], coding: words, element: Box::new(list) };
    layer.nested("list", Presence::All, &list).expect("lists");
    let mut tile = Vec::new();
    layer.finish(&mut tile).expect("a sound layer");
    let faults = |tile: &[u8], limits: Limits| {
        let options = Options::new().expect("kernels").limits(limits);
        let mut faults = Vec::new();
        let tile = Tile::open(tile, &options).expect("sound headers");
        Decoder::with_options(options).faults(tile.layer(0).expect("a layer"), |error| {
            assert!(error.offset().is_some(), "{error}");
            faults.push((error.layer().and_then(|place| place.column), error.kind().name()));
        });
        faults
    };
    assert_eq!(faults(&tile, Limits::default()), []);
    // Text that is none, and numbers that go on.
    for (from, to) in [(&b"qq"[..], 0xff), (b"zz", 0xff), (b"yy", 0xff), (&[0xcb, 1], 0x80), (&[0xcc, 1], 0x80)] {
        let at = tile.windows(from.len()).rposition(|bytes| bytes == from).expect("the value");
        tile[at + 1] = to;
    }
    let (text, cut) = ("utf8", "truncated");
    let of_columns = [(Some(0), cut), (Some(1), text), (Some(2), text), (Some(6), cut), (Some(5), text)];
    let mut expected = of_columns.to_vec();
    expected.sort();
    let mut found = faults(&tile, Limits::default());
    found.sort();
    assert_eq!(found, expected);
    // Codes of a dictionary that cannot be read are looked at as well as can be; without a topology there are no values.
    let mut limits = Limits::default();
    limits.max_values = 2;
    let all: Vec<_> =
        [None].into_iter().chain((0..6).filter(|at| *at != 2).map(Some)).map(|at| (at, "limit_exceeded")).collect();
    let mut found = faults(&tile, limits);
    found.retain(|(at, _)| *at != Some(2));
    found.sort();
    let mut expected = all;
    expected.sort();
    assert_eq!(found, expected);
}

/// A struct of version 2 that begins with 64 may have row shapes or 64 fields, and which, only reading on tells. What is read
/// in vain is bounded by 64 MiB and 16 times the tile, for all such columns together; from there on they have 64 fields.
#[test]
fn looking_ahead_is_bounded() {
    const AHEAD: usize = 1 << 20;
    // Of 8 features: two fields, no shapes, and their ids, 32 bytes as they are. As one of 64 fields, the first has truth
    // values, one byte, and the next one numbers, of so many bytes that the third begins far behind in the tile.
    let column = |n: usize| {
        let name = [b'A' + (n / 26) as u8, b'A' + (n % 26) as u8];
        let mut ids = [&[0, 0x05, 0, 0x08][..], &varint(AHEAD)].concat();
        let start = 4 + 5 + ids.len();
        ids.resize(32, 0);
        let bytes =
            [&[0x0c, 2][..], &name, &[0x40, 2, 0x80, 0, 0], &ids, b"\x02\x01a\x80\x00\x02\x01b\x80\x00"].concat();
        // Where it begins to be read ahead, and where that fails.
        (bytes, 4, start + AHEAD)
    };
    let tile = |n: usize| {
        let mut columns: Vec<Vec<u8>> = (0..n).map(|n| column(n).0).collect();
        // No type of a field is 15.
        let filler = AHEAD + 8192;
        columns.push([&b"\x05\x01z\x08"[..], &varint(filler), &vec![0x0f; filler]].concat());
        points_of(&[8], &columns.iter().map(|column| &column[..]).collect::<Vec<_>>())
    };
    let (_, from, to) = column(0);
    // Its last byte is the one that fails.
    let seen = to + 1 - from;
    let read_ahead = |tile: &[u8]| ((64 << 20) + 16 * tile.len()).div_ceil(seen);
    let most = (1..).find(|&n| read_ahead(&tile(n + 1)) == n).expect("more than one");
    assert!((70..100).contains(&most), "{most}");
    let options = Options::new().expect("kernels");
    let opened = |bytes: &[u8]| {
        let mut result = Ok(());
        let (_, largest) = counted(|| result = Tile::open(bytes, &options).map(drop));
        (result, largest)
    };
    let (result, largest) = opened(&tile(most));
    result.expect("row shapes");
    assert!(largest <= 64 << 10, "{largest} bytes at once");
    // The one behind them is of 64 fields, wherever it stands.
    for more in [1, 20] {
        let bytes = tile(most + more);
        let n = read_ahead(&bytes);
        let start = bytes.windows(4).position(|bytes| bytes == &column(n).0[..4]).expect("its start");
        let (result, largest) = opened(&bytes);
        let error = result.expect_err("64 fields");
        assert_eq!((error.kind().name(), error.offset()), ("unknown_code", Some((start + to) as u64)), "{error}");
        assert_eq!(error.layer().and_then(|place| place.column), Some(n as u32));
        assert!(largest <= 64 << 10, "{largest} bytes at once");
    }
}

#[test]
fn steady_loops_allocate_nothing() {
    let options = Options::new().expect("kernels");
    let tiles = bodies::mlt::tiles();
    let (mut outline, mut decoder, mut data) = (Outline::default(), Decoder::with_options(options), TileData::new());
    let mut some = LayerData::new();
    let mut all = || {
        for bytes in &tiles {
            let tile = Tile::open_with(bytes, std::mem::take(&mut outline), &options).expect("a sound tile");
            decoder.tile(&tile, &mut data).expect("a sound tile");
            for layer in tile.layers() {
                decoder.some(layer, false, |column| column.index() % 2 == 1, &mut some).expect("a sound layer");
                assert!(some.geometry().is_empty() && some.geometry().vertices().is_empty());
            }
            outline = tile.into_outline();
        }
    };
    assert!(counted(&mut all).0 > 0, "the first time takes memory");
    // Buffers change places between columns of different tiles; once more, and each has seen its largest.
    all();
    assert_eq!(counted(&mut all).0, 0, "allocations after the first times");
}
