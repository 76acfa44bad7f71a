//! A small map tile, byte by byte, and archives of it.

use std::fs::File;
use std::path::Path;

use pmtiles::{Compression, PmTilesWriter, TileCoord, TileType};
use rusqlite::Connection;

/// What the library's tests make such bytes with.
#[path = "../../../tests/support/bytes.rs"]
pub mod bytes;

/// A version 1 layer: its name, then the metadata of its columns, then their data.
pub fn layer(name: &str, columns: &[&[u8]], data: &[&[u8]]) -> Vec<u8> {
    let small = |n: usize| u8::try_from(n).ok().filter(|&n| n < 128).expect("one byte");
    // Extent 4096 as a varint.
    let mut body = [&[1, small(name.len())], name.as_bytes(), &[0x80, 0x20, small(columns.len())]].concat();
    body.extend(columns.concat());
    body.extend(data.concat());
    assert!(body.len() < 1 << 14);
    let size = body.len();
    let frame = [u8::try_from(size & 127).expect("seven bits") | 128, small(size >> 7)];
    [&frame[..], &body].concat()
}

/// Two points with ids, a text and a number that one of them lacks; and a square with a hole.
pub fn tile() -> Vec<u8> {
    let places = layer(
        "places",
        &[&[0], &[4], b"\x1c\x04name", b"\x11\x04rank"],
        &[
            // Ids 7 and 9.
            &[0x10, 0x02, 2, 2, 7, 9],
            // Two points, at 10, 20 and 2048, 2048, as differences.
            &[2, 0x30, 0x02, 2, 2, 0, 0],
            &[0x13, 0x42, 4, 6, 20, 40, 0xec, 0x1f, 0xd8, 0x1f],
            // Lengths, then texts.
            &[2, 0x30, 0x02, 2, 2, 1, 2, 0x10, 0x00, 2, 3],
            b"abc",
            // The second one has a rank, which is -3.
            &[0x00, 0x00, 2, 1, 0b10, 0x10, 0x02, 1, 1, 5],
        ],
    );
    let areas = layer(
        "areas",
        &[&[4]],
        &[
            &[4, 0x30, 0x02, 1, 1, 2],
            &[0x32, 0x02, 1, 1, 2],
            &[0x33, 0x02, 2, 2, 4, 4],
            // The corners of the tile; then those of a hole, the other way round.
            &[0x13, 0x02, 16, 28],
            &[0, 0, 0x80, 0x40, 0, 0x80, 0x40, 0x80, 0x40, 0, 0x80, 0x40],
            &[0x80, 0x10, 0x80, 0x10, 0x80, 0x10, 0x80, 0x20, 0x80, 0x20, 0x80, 0x20, 0x80, 0x20, 0x80, 0x10],
        ],
    );
    [places, areas].concat()
}

/// What is rarer: a frame of an unknown tag, a triangle of a tessellated layer, and two lines of version 2 with elevations, a
/// value for each vertex and a nested column.
pub fn odd() -> Vec<u8> {
    let areas = layer(
        "triangles",
        &[&[4]],
        &[
            &[6, 0x30, 0x02, 1, 1, 2],
            &[0x32, 0x02, 1, 1, 1],
            &[0x33, 0x02, 1, 1, 3],
            &[0x34, 0x02, 1, 1, 1],
            &[0x21, 0x02, 3, 3, 0, 1, 2],
            &[0x13, 0x02, 6, 6, 0, 0, 2, 0, 2, 2],
        ],
    );
    let paths: [&[u8]; 14] = [
        b"\x02\x05paths",
        // With values of vertices, lines, of extent 4096; two of them; who has what, for several columns: the second.
        &[0xa6, 2, 0x14, 0b10],
        // Two vertices each; x, y and z as differences, with a step of 1 metre.
        &[0x08, 2, 2, 2],
        &[0xa9, 4, 12, 3],
        &[2, 4, 6, 2, 2, 2, 2, 2, 2, 2, 2, 2],
        // Two columns, and one of vertices, their bits by turns.
        &[0b110],
        b"\x46\x03ref",
        &[0x08, 1, 5],
        b"\x0c\x04meta\x02",
        b"\x05\x01n\x08\x02\x02\x04",
        b"\x0d\x04tags\x88\x02\x02\x00\x01",
        &[0x04, 0x88, 1, 1, 7],
        b"\x05\x04dist",
        &[0x88, 4, 4, 0, 2, 0, 2],
    ];
    let paths = paths.concat();
    [b"\x02\x07\x00", &areas[..], &[u8::try_from(paths.len()).expect("short")], &paths].concat()
}

/// An archive with the first of these tiles at 3/4/2, and another one, of no layers, at 3/0/0.
pub fn pmtiles(path: &Path, kind: TileType, compression: Compression) {
    let file = File::create(path).expect("a new file");
    let mut writer = PmTilesWriter::new(kind)
        .min_zoom(3)
        .max_zoom(3)
        .metadata(r#"{"vector_layers": [], "name": "some tiles"}"#)
        .bounds(-10.0, -20.0, 30.0, 40.0)
        .tile_compression(compression)
        .create(file)
        .expect("a header");
    for (x, y, bytes) in [(0, 0, Vec::new()), (4, 2, tile())] {
        // The library packs what is not to be stored as it is.
        let bytes = if bytes.is_empty() { b"\x02\x07\x00".to_vec() } else { bytes };
        writer.add_tile(TileCoord::new(3, x, y).expect("a place"), &bytes).expect("written");
    }
    writer.finalize().expect("written");
}

/// The same as a database; `packed` are the bytes of the tile at 3/4/2.
pub fn mbtiles(path: &Path, format: &str, packed: &[u8]) -> Connection {
    let database = Connection::open(path).expect("a new file");
    database
        .execute_batch(
            "CREATE TABLE metadata (name TEXT, value TEXT);
             CREATE TABLE tiles (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, tile_data BLOB);
             CREATE UNIQUE INDEX tile_index ON tiles (zoom_level, tile_column, tile_row);",
        )
        .expect("tables");
    for (name, value) in [("name", "some tiles"), ("format", format), ("bounds", "-10,-20,30,40"), ("minzoom", "3")] {
        database.execute("INSERT INTO metadata VALUES (?1, ?2)", [name, value]).expect("a row");
    }
    // Rows are counted from the south: 7 - 2.
    for (x, row, bytes) in [(0, 7, &b""[..]), (4, 5, packed)] {
        database.execute("INSERT INTO tiles VALUES (3, ?1, ?2, ?3)", (x, row, bytes)).expect("a row");
    }
    database
}
