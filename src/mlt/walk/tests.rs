//! Every rule of headers, with the fault's kind and place.

use crate::error::Error;
use crate::kernels::Kernels;
use crate::limits::Limits;
use crate::mlt::{DataType, Kind, LayerPlace, Logical, Options, Outline, Physical, Role, StringLayout, Tile};

/// Bytes from hexadecimal digits; other characters are passed over.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| u8::try_from(d).unwrap()).collect();
    assert_eq!(digits.len() % 2, 0, "{hex}");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A frame of less than 128 bytes.
fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let size = u8::try_from(body.len() + 1).unwrap();
    assert!(size < 128);
    [&[size, tag], body].concat()
}

/// A tile of a layer of version 1: name, extent, then these bytes from the column count on, which stands at byte 6.
fn v1(hex: &str) -> Vec<u8> {
    frame(1, &[bytes("01 61 80 20"), bytes(hex)].concat())
}

/// The geometry of two points in version 1.
const POINTS: &str = "02 | 10 02 02 02 00 00 | 13 42 04 04 00 00 00 00";

/// A tile of a layer of version 2 with two points, then these bytes from the column count on, which stands at byte 12.
fn v2(hex: &str) -> Vec<u8> {
    frame(2, &[bytes("01 61 16 02 00 | 08 04 00 00 00 00"), bytes(hex)].concat())
}

fn open(tile: &[u8]) -> Result<Tile<'_>, Error> {
    Tile::open(tile, &Options::with_kernels(Kernels::auto()))
}

/// Checks each tile's fault and its place, and that every tile cut short is refused, too.
fn refuses(cases: &[(Vec<u8>, &str, u64, Option<u32>)]) {
    let mut others = Vec::new();
    for (tile, name, offset, column) in cases {
        let error = open(tile).map(|_| ()).expect_err(name);
        let place = Some(LayerPlace { layer: 0, column: *column });
        if (error.kind().name(), error.offset(), error.layer()) != (*name, Some(*offset), place) {
            others.push(format!("{error} [{}] is not {name} at {offset}: {tile:02x?}", error.kind().name()));
        }
        for cut in 1..tile.len() {
            assert!(open(&tile[..cut]).is_err());
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn frames() {
    assert_eq!(open(&[]).unwrap().layers().len(), 0);
    // Unknown tags are skipped; a tag alone is a frame.
    let tile = [frame(7, &[1, 2, 3]), v2("00"), frame(0, &[]), v1(&format!("01 04 {POINTS}"))].concat();
    let tile = open(&tile).unwrap();
    let frames: Vec<_> = tile.frames().map(|it| (it.tag(), it.span(), it.layer().map(|it| it.number()))).collect();
    assert_eq!(frames, [(7, 0..5, None), (2, 5..19, Some(0)), (0, 19..21, None), (1, 21..44, Some(1))]);
    assert_eq!(
        tile.layers().map(|it| (it.version(), it.features(), it.extent())).collect::<Vec<_>>(),
        [(2, 2, 4096), (1, 2, 4096)]
    );
    assert!(tile.layer(2).is_none());

    for (tile, name, offset) in [
        ("00", "frame_size", 0),
        ("01 07 00", "frame_size", 2),
        ("05 07 00", "truncated", 1),
        ("ff ff ff ff 10", "varint_overflow", 0),
        // A size of 1 in six bytes.
        ("81 80 80 80 80 00 07", "varint_overflow", 0),
        ("80", "truncated", 0),
    ] {
        let error = open(&bytes(tile)).map(|_| ()).unwrap_err();
        assert_eq!((error.kind().name(), error.offset(), error.layer()), (name, Some(offset), None), "{error}");
    }
    // In five bytes it is one.
    assert_eq!(open(&bytes("81 80 80 80 00 07")).unwrap().frames().len(), 1);
}

#[test]
fn layers_of_version_1() {
    let with = |columns: &str, before: &str, after: &str| v1(&format!("{columns} {before} {POINTS} {after}"));
    refuses(&[
        (frame(1, &bytes("00 80 20 00")), "empty", 2, None),
        (frame(1, &bytes("01 ff 80 20 00")), "utf8", 3, None),
        (frame(1, &bytes("01 61 00 00")), "out_of_range", 4, None),
        (v1("00"), "no_geometry", 6, None),
        (v1("01 00 10 02 02 02 00 00"), "no_geometry", 6, None),
        (with("02 04 04", "", POINTS), "repeated_column", 8, Some(1)),
        (with("03 00 04 03", "", ""), "repeated_column", 9, Some(2)),
        (with("02 04 05", "", ""), "unknown_code", 8, Some(1)),
        (with("02 04 1f", "", ""), "unknown_code", 8, Some(1)),
        (with("02 04 0c 00", "", ""), "unknown_code", 8, Some(1)),
        (with("02 04 10 01 c3", "", ""), "utf8", 10, Some(1)),
        // A shared dictionary's children are strings.
        (with("02 04 1e 00 01 10 00", "", ""), "unknown_code", 11, Some(2)),
        (with("01 04", "", "00"), "layer_trailing_bytes", 23, None),
        // Another number of values, or bits of presence, than features.
        (with("02 04 10 00", "", "10 02 01 01 00"), "count_mismatch", 25, Some(1)),
        (with("02 04 11 00", "", "00 60 03 02 ff 07 | 10 02 01 01 00"), "count_mismatch", 25, Some(1)),
        (with("02 00 04", "10 02 03 03 00 00 00", ""), "count_mismatch", 9, Some(0)),
    ]);
    // Two fields of a header are not longer than they can be.
    let long = frame(1, &bytes("01 61 80 a0 80 80 80 00"));
    refuses(&[(long, "varint_overflow", 4, None)]);
}

#[test]
fn streams_of_version_1() {
    // A column of 32-bit integers, whose stream starts at byte 24, behind the geometry.
    let int = |stream: &str| v1(&format!("02 04 10 00 {POINTS} {stream}"));
    // The same of another type.
    let typed = |code: &str, stream: &str| v1(&format!("02 04 {code} 00 {POINTS} {stream}"));
    let (data, vertices) = (Some(1), Some(0));
    let points = |vertices: &str| v1(&format!("01 04 02 10 02 02 02 00 00 {vertices}"));
    refuses(&[
        (int("16 02 02 02 00 00"), "unknown_code", 25, data),
        (int("24 02 02 02 00 00"), "unknown_code", 25, data),
        (int("37 02 02 02 00 00"), "unknown_code", 25, data),
        (int("40 02 02 02 00 00"), "unknown_code", 25, data),
        (int("10 03 02 02 00 00"), "unknown_code", 26, data),
        (int("10 e2 02 02 00 00"), "unknown_code", 26, data),
        (int("10 0a 02 02 00 00"), "unknown_code", 26, data),
        (int("10 42 02 02 00 00"), "encoding_not_allowed", 26, data),
        (int("10 86 02 02 00 00 00 00"), "encoding_not_allowed", 26, data),
        (int("10 62 04 04 03 02 01 01 00 00"), "run_count", 29, data),
        (int("10 00 02 07 00 00 00 00 00 00 00"), "stream_length", 28, data),
        (int("10 02 02 03 00 00"), "truncated", 29, data),
        // Truth values.
        (typed("0a", "10 02 02 01 00"), "encoding_not_allowed", 26, data),
        (typed("0a", "10 62 02 01 00"), "encoding_not_allowed", 26, data),
        (typed("0a", "10 20 02 01 00"), "encoding_not_allowed", 26, data),
        (typed("0a", "10 00 02 02 00 00"), "stream_length", 28, data),
        // 64-bit words have no FastPFOR.
        (typed("14", "10 01 02 04 00 00 00 00"), "fastpfor_64_bit", 26, data),
        (typed("16", "10 21 02 04 00 00 00 00"), "fastpfor_64_bit", 26, data),
        (typed("16", "10 00 02 08 00 00 00 00 00 00 00 00"), "stream_length", 28, data),
        // Floats.
        (typed("18", "10 02 02 02 00 00"), "encoding_not_allowed", 26, data),
        (typed("1a", "10 20 02 02 00 00"), "encoding_not_allowed", 26, data),
        (typed("18", "10 00 02 04 00 00 00 00"), "stream_length", 28, data),
        (typed("1a", "10 00 02 08 00 00 00 00 00 00 00 00"), "stream_length", 28, data),
        // Vertices, whose stream starts at byte 15.
        (points("13 62 04 04 01 02 00 00 00 00"), "encoding_not_allowed", 16, vertices),
        (points("13 42 03 03 00 00 00"), "count_mismatch", 17, vertices),
        (points("14 86 02 02 11 00 00 00"), "morton_bits", 19, vertices),
        (points("13 00 04 08 00 00 00 00 00 00 00 00"), "stream_length", 18, vertices),
    ]);
}

#[test]
fn geometry_of_version_1() {
    let geometry = |streams: &str| v1(&format!("01 04 {streams}"));
    let two = |stream: &str| geometry(&format!("02 10 02 00 00 {stream}"));
    let three = |a: &str, b: &str| geometry(&format!("03 10 02 00 00 {a} {b}"));
    let first = Some(0);
    refuses(&[
        (geometry("00"), "stream_count", 8, first),
        (two("30 02 00 00"), "stream_role", 13, first),
        (two("12 00 00 00"), "stream_role", 13, first),
        (three("31 02 00 00", "31 02 00 00"), "stream_role", 17, first),
        (three("13 02 00 00", "14 02 00 00"), "stream_role", 17, first),
        // Rings without parts, triangles without outlines, corners without their counts.
        (two("33 02 00 00"), "stream_role", 13, first),
        (two("34 02 00 00"), "stream_role", 13, first),
        (two("21 02 00 00"), "stream_role", 13, first),
    ]);
    let streams = "08 10 02 00 00 20 02 00 00 13 02 00 00 33 02 00 00 32 02 00 00 31 02 00 00 34 02 00 00 21 02 00 00";
    let tile = geometry(streams);
    let tile = open(&tile).unwrap();
    let roles: Vec<Role> = tile.layer(0).unwrap().geometry_streams().iter().map(|stream| stream.role).collect();
    use Role::*;
    assert_eq!(roles, [Types, VertexOffsets, VertexDict, Rings, Parts, Geometries, Triangles, Indices]);
}

#[test]
fn strings_of_version_1() {
    let strings = |code: &str, streams: &str| v1(&format!("02 04 {code} 00 {POINTS} {streams}"));
    let (lengths, codes, bytes_of) = ("02 02 02 00 00", "02 02 02 00 00", "00 00 00");
    let ok = [
        ("1c", format!("02 30{lengths} 10{bytes_of}"), StringLayout::Plain),
        ("1c", format!("02 36{lengths} 12{bytes_of}"), StringLayout::Plain),
        ("1d", format!("03 00 60 02 02 ff 03 30{lengths} 11{bytes_of}"), StringLayout::Plain),
        ("1c", format!("03 36 02 00 00 22{codes} 11{bytes_of}"), StringLayout::Dictionary),
        ("1c", format!("04 35 02 00 00 15{bytes_of} 36{lengths} 11{bytes_of}"), StringLayout::Fsst),
        ("1c", format!("05 35 02 00 00 15{bytes_of} 36 02 00 00 11{bytes_of} 22{codes}"), StringLayout::FsstDictionary),
    ];
    for (code, streams, layout) in ok {
        let tile = strings(code, &streams);
        let tile = open(&tile).unwrap();
        let column = tile.layer(0).unwrap().column(1).unwrap();
        assert_eq!((column.strings(), column.nullable()), (Some(layout), code == "1d"));
        assert_eq!(column.streams().len() as u64, u64::from(bytes(&streams)[0]));
    }
    let second = Some(1);
    refuses(&[
        (strings("1c", "01 30 02 02 02 00 00"), "stream_count", 25, second),
        (strings("1c", "06"), "stream_count", 25, second),
        (strings("1d", "00"), "stream_count", 25, second),
        (strings("1d", &format!("03 10 60 02 01 ff 30{lengths} 10{bytes_of}")), "stream_role", 26, second),
        (strings("1c", &format!("02 22{lengths} 10{bytes_of}")), "stream_role", 26, second),
        (strings("1c", &format!("02 30{lengths} 30{bytes_of}")), "stream_role", 32, second),
        (strings("1c", "02 30 02 02 02 00 00 10 02 00 00"), "encoding_not_allowed", 33, second),
        (strings("1c", &format!("02 30 02 01 01 00 10{bytes_of}")), "count_mismatch", 26, second),
        (strings("1c", &format!("03 36 02 00 00 22 02 01 01 00 11{bytes_of}")), "count_mismatch", 30, second),
        (strings("1c", &format!("03 22{codes} 36 02 00 00 11{bytes_of}")), "stream_role", 26, second),
    ]);
}

#[test]
fn shared_dictionaries_of_version_1() {
    let shared =
        |count: &str, streams: &str| v1(&format!("02 04 1e 01 6e 02 1c 00 1d 01 3a {POINTS} {count} {streams}"));
    let plain = "36 02 01 01 01 | 12 00 00 01 78 | 01 22 02 02 02 00 00 | 02 00 60 02 02 ff 01 22 02 01 01 00";
    // Old writers count one more.
    for count in ["05", "06"] {
        let tile = shared(count, plain);
        let tile = open(&tile).unwrap();
        let layer = tile.layer(0).unwrap();
        let dictionary = layer.column(1).unwrap();
        assert_eq!((dictionary.kind(), &*dictionary.name()), (Kind::SharedDictionary, "n"));
        let children: Vec<_> =
            dictionary.children().map(|it| (it.index(), it.name().into_owned(), it.kind())).collect();
        assert_eq!(children, [(2, "n".to_owned(), Kind::Child), (3, "n:".to_owned(), Kind::Child)]);
        assert_eq!(layer.properties().map(|column| column.streams().len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((layer.columns().len(), layer.ids().is_none()), (4, true));
    }
    let fsst = plain.replace("36 02 01 01 01 |", "35 02 00 00 15 00 00 00 36 02 01 01 01 ");
    assert_eq!(open(&shared("07", &fsst)).unwrap().layer(0).unwrap().column(1).unwrap().streams().len(), 4);
    let last = plain.len() - " 02 00 60 02 02 ff 01 22 02 01 01 00".len();
    refuses(&[
        (shared("04", plain), "stream_count", 32, Some(1)),
        (shared("07", plain), "stream_count", 32, Some(1)),
        (shared("05", "30 02 01 01 01"), "stream_role", 33, Some(1)),
        (shared("05", "36 02 01 01 01 10 00 00 01 78"), "stream_role", 38, Some(1)),
        (shared("05", &plain.replace("01 22", "02 22")), "stream_count", 43, Some(2)),
        (shared("05", &plain.replace("| 01 22", "| 01 36")), "stream_role", 44, Some(2)),
        (shared("05", &format!("{} 01 22 02 01 01 00", &plain[..last])), "stream_count", 50, Some(3)),
    ]);
}

#[test]
fn layers_of_version_2() {
    let layer = |hex: &str| frame(2, &bytes(hex));
    refuses(&[
        (layer("00 16 00 00 08 00 00 00"), "empty", 2, None),
        (layer("01 80 16 00 00"), "utf8", 3, None),
        (layer("01 61 76 00 00"), "unknown_code", 4, None),
        (layer("01 61 16 00 0e"), "unknown_code", 6, None),
        (layer("01 61 16 00 0f"), "unknown_code", 6, None),
        (layer("01 61 16 00 80"), "reserved", 6, None),
        (layer("01 61 96 00 00"), "m_value_layout", 6, None),
        (layer("01 61 96 00 01"), "m_value_layout", 6, None),
        (layer("01 61 96 00 0c"), "m_value_layout", 6, None),
        (layer("01 61 16 02 90 30"), "unknown_code", 7, None),
        (layer("01 61 16 02 90 10 03"), "boolean_run_sum", 8, None),
        (layer("01 61 16 80 80 80 80 80 00 00"), "varint_overflow", 5, None),
        (v2("00 00"), "layer_trailing_bytes", 14, None),
        (v2("01 40 00"), "shared_presence", 14, Some(0)),
        (v2("01 b2 00"), "unknown_code", 14, Some(0)),
        (v2("01 2f 00 00"), "unknown_code", 14, Some(0)),
        (v2("02 00 08 02 00 00 01"), "repeated_column", 19, Some(1)),
        (v2("02 02 01 61 00 03 05 01 61 08 02 00 00"), "repeated_name", 21, Some(1)),
        (v2("01 02 01 ff 00"), "utf8", 16, Some(0)),
    ]);
    // Columns and values of vertices are counted in one number.
    let lines = |counts: &str| layer(&format!("01 61 a6 00 04 | 08 00 08 00 | {counts}"));
    refuses(&[
        (lines("01"), "empty", 11, None),
        (lines("02 00"), "unknown_code", 12, Some(0)),
        (lines("02 0c 00"), "unknown_code", 12, Some(0)),
        (lines("02 02 00 00"), "no_count", 14, Some(0)),
    ]);
    let tile = lines("03 05 01 61 08 00 02 01 6d 80 00");
    let tile = open(&tile).unwrap();
    let layer = tile.layer(0).unwrap();
    assert_eq!(
        layer.columns().map(|it| (it.kind(), it.name().into_owned())).collect::<Vec<_>>(),
        [(Kind::Property, "a".to_owned()), (Kind::MValue, "m".to_owned())]
    );
    assert_eq!((layer.uniform_type(), layer.m_values().count()), (Some(1), 1));
}

#[test]
fn streams_of_version_2() {
    // A column of this type without a name, whose stream starts at byte 15.
    let column = |code: &str, stream: &str| v2(&format!("01 {code} 00 {stream}"));
    let int = |stream: &str| column("05", stream);
    let layer = |hex: &str| frame(2, &bytes(hex));
    let vertices = |stream: &str| layer(&format!("01 61 16 01 00 {stream}"));
    let dictionary = |stream: &str| layer(&format!("01 61 16 01 01 {stream}"));
    let data = Some(0);
    refuses(&[
        (int("68 02 00 00"), "unknown_code", 16, data),
        (int("78 02 00 00"), "unknown_code", 16, data),
        (int("09 02 00 00"), "encoding_not_allowed", 16, data),
        (int("0a 02 00 00"), "encoding_not_allowed", 16, data),
        (int("10 02 00 00"), "encoding_not_allowed", 16, data),
        (int("50 02 00 00"), "encoding_not_allowed", 16, data),
        (int("24 02 02 00"), "encoding_not_allowed", 16, data),
        (int("38 02 02 00"), "encoding_not_allowed", 16, data),
        (int("44 02 01 00"), "encoding_not_allowed", 16, data),
        (int("88 03 03 00 00 00"), "count_mismatch", 17, data),
        (int("04 07 00 00 00 00 00 00 00"), "stream_length", 17, data),
        (int("00 00 00 00 00"), "truncated", 17, data),
        (int("08 03 00 00"), "truncated", 18, data),
        (column("08", "00 00 00 00 00 00 00 00 00"), "truncated", 17, data),
        // Truth values.
        (column("02", "30 00"), "unknown_code", 16, data),
        (column("02", "04 01 00"), "encoding_not_allowed", 16, data),
        (column("02", "01 00"), "encoding_not_allowed", 16, data),
        (column("02", "10 03"), "boolean_run_sum", 17, data),
        (column("02", "20 02"), "sparse_summary", 17, data),
        (column("02", "20 01 00"), "sparse_zero", 18, data),
        // Floats.
        (column("09", "10 02 00 00"), "encoding_not_allowed", 16, data),
        (column("09", "40 02 00 00"), "unknown_code", 16, data),
        (column("09", "08 02 00 00"), "encoding_not_allowed", 16, data),
        (column("09", "20 02 00 00"), "encoding_not_allowed", 16, data),
        (column("09", "28 02 be 00 00 00"), "alp_scale", 18, data),
        (column("09", "24 08 00 00 00 00 00 00 00 00 00 00"), "stream_length", 17, data),
        (column("09", "38 02 00 00 28 00 00 00"), "encoding_not_allowed", 20, data),
        (column("09", "38 02 00 00 38 00 00 00"), "encoding_not_allowed", 20, data),
        (column("0a", "04 08 00 00 00 00 00 00 00 00"), "stream_length", 17, data),
        // Vertices.
        (vertices("68 02 00 00"), "unknown_code", 7, None),
        (vertices("0a 02 00 00"), "encoding_not_allowed", 7, None),
        (vertices("39 01 02 00 00"), "encoding_not_allowed", 7, None),
        (vertices("49 03 00 00 00"), "encoding_not_allowed", 7, None),
        (vertices("51 00 00"), "encoding_not_allowed", 7, None),
        (vertices("54 00 00"), "encoding_not_allowed", 7, None),
        (vertices("09 03 08 00 00 00"), "out_of_range", 9, None),
        (vertices("38 01 11 00 00"), "morton_bits", 9, None),
        (vertices("04 04 00 00 00 00"), "stream_length", 8, None),
        (vertices("88 ff ff ff ff 0f 00"), "limit_exceeded", 8, None),
        (dictionary("50 00 00"), "rans_on_dictionary", 7, None),
        // Types of geometries.
        (layer("01 61 06 02 00 88 03 03 00 00 00"), "count_mismatch", 8, None),
    ]);
}

#[test]
fn strings_of_version_2() {
    let strings = |streams: &str| v2(&format!("01 0b 00 {streams}"));
    let data = Some(0);
    refuses(&[
        (strings("08 02 00 00 00"), "encoding_not_allowed", 20, data),
        (strings("08 02 00 00 08 00"), "encoding_not_allowed", 20, data),
        (strings("08 02 00 00 84 00 00"), "encoding_not_allowed", 20, data),
        (strings("08 02 00 00 24 00"), "unknown_code", 20, data),
        (strings("08 02 00 00 14 00"), "front_coding_without_dictionary", 20, data),
        (strings("88 04 04 00 00 00 00 14 00"), "front_coding_without_dictionary", 23, data),
        (strings("88 03 03 00 00 00 04 00"), "count_mismatch", 17, data),
        (strings("0a 02 00 00 88 00 00 04 00 14 00"), "front_coding_without_dictionary", 25, data),
        (strings("0b 02 00 00 88 00 00 88 00 00 14 00"), "front_coding_without_dictionary", 26, data),
    ]);
    // Codes alone are those of a shared dictionary's child.
    let child = |codes: &str| v2(&format!("01 0f 00 01 88 00 00 04 00 | 0b 00 {codes}"));
    refuses(&[
        (child("08 02 00 00"), "encoding_not_allowed", 24, Some(1)),
        (child("0b 02 00 00"), "encoding_not_allowed", 24, Some(1)),
        (child("89 01 01 00"), "count_mismatch", 25, Some(1)),
        (v2("01 0f 00 01 08 00 00 04 00"), "no_count", 17, data),
        (v2("01 0f 00 01 88 00 00 04 00 | 05 00"), "unknown_code", 22, Some(1)),
        (v2("01 0f 01 6e 02 88 00 00 04 00 | 0b 01 3a 09 00 | 0b 01 3a 09 00"), "repeated_name", 30, Some(2)),
        (v2("02 0f 01 6e 01 88 00 00 04 00 | 0b 01 3a 09 00 | 0b 02 6e 3a 08 00 04 00"), "repeated_name", 30, Some(2)),
    ]);
    for (streams, layout) in [
        ("08 02 00 00 | 04 00", StringLayout::Plain),
        ("09 02 00 00 | 88 00 00 | 14 00", StringLayout::Dictionary),
        ("0a 02 00 00 | 88 00 00 | 04 00 | 04 00", StringLayout::Fsst),
        ("0b 02 00 00 | 88 00 00 | 88 00 00 | 04 00 | 14 00", StringLayout::FsstDictionary),
    ] {
        let tile = strings(streams);
        let tile = open(&tile).unwrap();
        let column = tile.layer(0).unwrap().column(0).unwrap();
        assert_eq!(column.strings(), Some(layout));
        assert_eq!(column.streams().len(), streams.split('|').count());
    }
}

#[test]
fn nested_columns() {
    let nested = |hex: &str| v2(&format!("01 {hex}"));
    let data = Some(0);
    // Structs of one field each: 8 levels are allowed with the leaf, and one more is not.
    let structs = |levels: usize| nested(&format!("0c 00 01 {} 02 00 00 01", "0c 00 01 ".repeat(levels)));
    assert!(open(&structs(6)).is_ok());
    refuses(&[
        (structs(7), "depth", 17 + 3 * 7, data),
        (nested("0c 00 00"), "empty", 16, data),
        (nested("0c 00 01 00 00"), "unknown_code", 17, data),
        (nested("0c 00 01 0f 00"), "unknown_code", 17, data),
        (nested("0c 00 01 22 00"), "unknown_code", 17, data),
        // Row shapes are those of structs and maps.
        (nested("0c 00 01 42 00"), "unknown_code", 17, data),
        (nested("0c 00 01 4d 00"), "unknown_code", 17, data),
        (nested("0c 00 02 02 01 61 00 00 02 01 61 00 00"), "repeated_name", 24, data),
        (nested("0c 00 01 02 01 ff"), "utf8", 19, data),
        (nested("0c 00 01 12 00 80 03 00 00"), "count_mismatch", 20, data),
        // From a list on, streams have their counts.
        (nested("0d 00 08 02 00 00 02 00"), "no_count", 16, data),
        (nested("0d 00 88 03 03 00 00 00 02 80 00"), "count_mismatch", 17, data),
        (nested("0d 00 88 02 02 00 00 02 00"), "no_count", 22, data),
        (nested("0d 00 88 02 02 00 00 12 00 00"), "no_count", 22, data),
        (nested("0c 00 01 1d 00 00 00"), "no_count", 19, data),
        (nested("0e 00 88 02 02 00 00 08 00 04 00"), "no_count", 21, data),
        // A leaf's count is its presence's.
        (nested("0d 00 88 02 02 00 00 15 80 03 07 | 88 02 02 00 00"), "count_mismatch", 26, data),
    ]);
    let tile = nested(
        "0c 00 03 | 02 01 61 00 01 | 15 01 62 00 01 08 01 00 | 1e 01 63 80 02 01 88 01 01 01 88 01 01 01 04 01 6b 0d 88 01 01 01 05 88 01 01 02",
    );
    let tile = open(&tile).unwrap();
    let column = tile.layer(0).unwrap().column(0).unwrap();
    assert_eq!((column.kind(), column.data_type()), (Kind::Nested, Some(DataType::Struct)));
    let roles: Vec<Role> = column.streams().iter().map(|stream| stream.role).collect();
    use Role::*;
    assert_eq!(roles, [Data, Present, Data, Present, ListLengths, Lengths, Values, ListLengths, Data]);
    assert!(!column.nullable());
}

#[test]
fn row_shapes() {
    // Two shapes of two fields, and the shape of each row; fields state their counts.
    let shapes = "02 | 80 04 0d | 08 02 00 01";
    let fields = "02 01 61 80 02 00 | 05 01 62 88 01 01 00";
    let two_fields = shapes.replacen("02 |", "", 1);
    let shaped = v2(&format!("01 0c 00 40 02 {two_fields} {fields}"));
    let tile = open(&shaped).unwrap();
    let roles = |tile: &Tile<'_>| {
        tile.layer(0).unwrap().column(0).unwrap().streams().iter().map(|it| it.role).collect::<Vec<_>>()
    };
    use Role::*;
    assert_eq!(roles(&tile), [ShapeTable, ShapeIds, Data, Data]);
    // A struct of 64 fields starts with the same byte.
    let fields: String = (0..64).map(|field| format!("02 01 {:02x} 00 ", 0x30 + field)).collect();
    let mut tile = vec![0x93, 0x02, 2];
    tile.extend(bytes(&format!(
        "01 61 16 02 00 | 08 04 00 00 00 00 | 01 0c 00 40 {}",
        fields.replace("00 ", "00 01 ")
    )));
    let len = u32::try_from(tile.len() - 2).unwrap();
    tile.splice(..2, [u8::try_from(len % 128).unwrap() | 0x80, u8::try_from(len / 128).unwrap()]);
    assert_eq!(roles(&open(&tile).unwrap()), [Data; 64]);
    // A map of two distinct keys.
    let map = v2("01 0e 00 40 | 88 02 02 01 01 04 02 61 62 | 80 04 0d | 88 02 02 00 01 | 05 88 03 03 00 00 00");
    assert_eq!(roles(&open(&map).unwrap()), [Lengths, Values, ShapeTable, ShapeIds, Data]);
    refuses(&[
        // No whole number of rows in the table; a field with its own presence, and one without its count.
        (v2("01 0e 00 40 | 88 02 02 01 01 04 02 61 62 | 80 03 05"), "count_mismatch", 26, Some(0)),
        (v2("01 0c 00 01 4c 00 01 80 01 01 | 08 02 00 00 | 12 00 80 02 03 00"), "unknown_code", 27, Some(0)),
        (v2("01 0c 00 01 4c 00 01 80 01 01 | 08 02 00 00 | 02 00 00"), "no_count", 29, Some(0)),
    ]);
}

#[test]
fn counts_of_presence() {
    // A column of its own field, and two that share one: of two features the first.
    let tile = frame(
        2,
        &bytes("01 61 16 02 10 01 | 08 04 00 00 00 00 | 03 | 15 01 61 01 08 01 07 | 45 01 62 08 01 07 | 40 08 01 07"),
    );
    let tile = open(&tile).unwrap();
    let layer = tile.layer(0).unwrap();
    let columns: Vec<_> = layer.columns().map(|it| (it.nullable(), it.shared_presence(), it.streams().len())).collect();
    assert_eq!(columns, [(true, None, 2), (true, Some(0), 1), (true, Some(0), 1)]);
    assert_eq!(layer.columns().map(|column| column.streams().last().unwrap().count).collect::<Vec<_>>(), [1; 3]);
    assert_eq!((layer.shared_presence().len(), layer.ids().unwrap().index()), (1, 2));
    let ids = layer.ids().unwrap().streams()[0];
    assert_eq!((ids.logical, ids.physical, ids.words), (Logical::None, Physical::VarInt, 1));
}

/// An outline is not larger than the limits allow, and one used again gives the same.
#[test]
fn outlines() {
    let many = frame(9, &[]).repeat(1000);
    let options = Options::with_kernels(Kernels::auto());
    let limits = Limits { max_scratch_bytes: 10_000, ..Limits::default() };
    let error = Tile::open(&many, &options.limits(limits)).map(|_| ()).unwrap_err();
    assert_eq!(error.kind().name(), "limit_exceeded");
    let outline = Tile::open(&many, &options).unwrap().into_outline();
    let one = v2("01 02 00 00 00");
    let tile = Tile::open_with(&one, outline, &options).unwrap();
    assert_eq!((tile.frames().len(), tile.layers().len(), tile.layer(0).unwrap().columns().len()), (1, 1, 1));
    assert_eq!(Outline::default().bytes(), 0);
}
