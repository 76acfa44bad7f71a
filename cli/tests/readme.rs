//! What the README says of Parquet and map tiles: the commands are run as they stand there, and the code is that of the
//! example.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::names;
use tempfile::{TempDir, tempdir};

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../examples/column.rs");

/// The code blocks of a language in a section.
fn blocks(section: &str, language: &str) -> Vec<&'static str> {
    let (_, section) = README.split_once(&format!("\n## {section}\n")).expect("a section");
    let (section, _) = section.split_once("\n## ").expect("its end");
    let parts = section.split("\n```").skip(1).step_by(2);
    parts.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// A folder with the files that the section names.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    support::parquet::orders(&folder.path().join("orders.parquet"));
    let section = [0x80, 0x01, 0x04, 0x05, 0x0e, 0x04, 0x00, 0x00, 0x00, 0x00];
    fs::write(folder.path().join("ids.bin"), section).unwrap();
    folder
}

/// Runs the commands of a section in a folder. Returns what they say.
#[cfg(unix)]
fn run(section: &str, folder: &Path) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_tilekern")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let blocks = blocks(section, "sh");
    assert_eq!(blocks.len(), 1);
    let output = Command::new("sh").args(["-euc", blocks[0]]).current_dir(folder).env("PATH", path).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
#[cfg(all(unix, feature = "archives"))]
fn commands_on_map_tiles_run() {
    let folder = tempdir().unwrap();
    // With a layer that is called as in tiles of OpenMapTiles.
    let mut tile = support::mlt::tile();
    let name = tile.windows(7).position(|bytes| bytes == b"\x06places").unwrap();
    tile.splice(name..name + 7, *b"\x05place");
    tile[0] -= 1;
    fs::write(folder.path().join("tile.mlt"), tile).unwrap();
    let archive = folder.path().join("tiles.pmtiles");
    support::mlt::pmtiles(&archive, pmtiles::TileType::Mlt, pmtiles::Compression::Gzip);
    let said = run("MapLibre Tiles", folder.path());
    for words in ["MLT, 2 layers, 3 features", "2 Point", "layer areas", ": sound", "column name", "2 tiles", "a, bc"] {
        assert!(said.contains(words), "{words:?} is not in what it said:\n{said}");
    }
    assert_eq!(names(folder.path()), ["place.arrow", "tile.geojson", "tile.mlt", "tiles.pmtiles"]);
}

#[test]
#[cfg(unix)]
fn commands_run() {
    let folder = folder();
    let said = run("Parquet", folder.path());
    for words in
        ["600 rows, 7 columns", "DICTIONARY_PAGE", "1000, 1001", "554b", "block 0, miniblock 0", ": sound", "\n15\n"]
    {
        assert!(said.contains(words), "{words:?} is not in what it said:\n{said}");
    }
    assert_eq!(names(folder.path()), ["ids.bin", "orders.arrow", "orders.parquet", "trace.html"]);
}

#[test]
fn code_is_that_of_the_example() {
    let blocks = blocks("Parquet", "rust");
    assert_eq!(blocks.len(), 1);
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n");
    assert!(lines(EXAMPLE).contains(lines(blocks[0]).trim()), "{}", blocks[0]);
}

#[test]
fn the_example_runs() {
    let folder = folder();
    let binaries = Path::new(env!("CARGO_BIN_EXE_tilekern")).parent().unwrap();
    // Built with the tests; where only this test is asked for, as `cargo build -p tilekern-cli --examples` does.
    let example = binaries.join("examples").join(format!("column{}", std::env::consts::EXE_SUFFIX));
    let output = Command::new(example).current_dir(folder.path()).output().expect("the example is built");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for words in ["400 rows, the first ids [1000, 1001, 1002]", "block 0, miniblock 0: 0 bits", "[7, 9, 11, 13, 15]"] {
        assert!(said.contains(words), "{words:?} is not in what it said:\n{said}");
    }
}
