//! Map tiles of a few bytes that mean very much: memory, time and text are bounded.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::mlt::bytes::{frame, varint};
use support::mlt::tile;
use support::{Run, command, names, tilekern};
use tempfile::{TempDir, tempdir};

fn run(verb: &str, path: &Path, options: &str) -> Run {
    let path = path.to_str().expect("text");
    tilekern([verb, path].into_iter().chain(options.split_whitespace()))
}

/// Runs the command with so many KiB of addresses.
#[cfg(target_os = "linux")]
fn narrow(kib: u32, verb: &str, path: &Path, options: &str) -> Run {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v \"$1\"; shift; exec \"$@\"", "sh", &kib.to_string()]);
    shell.arg(command().get_program()).arg(verb).arg(path).args(options.split_whitespace());
    let output = shell.output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A folder with these bytes as a file of this name.
fn written(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

/// Bytes behind their number.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&varint(bytes.len())[..], bytes].concat()
}

/// A layer of version 1 of so many points at one place, all of which have the same long text.
fn long_texts(features: usize, length: usize) -> Vec<u8> {
    let n = varint(features);
    // One run of zeros.
    let run = |kind: u8| [&[kind, 0x62, 2][..], &varint(n.len() + 1), &[1], &n, &n, &[0]].concat();
    let column = [
        &[3, 0x36, 0x02, 1][..],
        &sized(&varint(length)),
        &run(0x22),
        &[0x11, 0x00, 1],
        &sized(&b"text".repeat(length / 4)),
    ];
    let geometry = [&[3][..], &run(0x30), &run(0x20), &[0x13, 0x42, 2, 2, 0, 0]].concat();
    frame(1, &[&b"\x01l\x80\x20\x02\x04\x1c\x01s"[..], &geometry, &column.concat()].concat())
}

/// A layer of version 2 of one point, and a column from its type on.
fn one_point(column: &[u8]) -> Vec<u8> {
    frame(2, &[&b"\x01l\x16\x01\x00\x08\x02\x00\x00\x01"[..], column].concat())
}

/// Maps in maps, of so many keys each.
fn maps(keys: u8) -> Vec<u8> {
    let mut column = b"\x0e\x01m".to_vec();
    for depth in 0..7u8 {
        if depth > 0 {
            column.push(0x0e);
        }
        // The first of each has all the keys, the others none.
        let rows = if depth == 0 { 1 } else { keys };
        let mut lengths = vec![0; rows.into()];
        lengths[0] = keys;
        column.extend([&[0x88, rows, rows][..], &lengths].concat());
        column.extend([&[0x88, keys, keys][..], &vec![1; keys.into()]].concat());
        column.extend([&[0x04, keys][..], &(b'!'..b'!' + keys).collect::<Vec<_>>()].concat());
    }
    column.extend([&[0x05, 0x88, keys, keys][..], &vec![2; keys.into()]].concat());
    one_point(&column)
}

/// A list of so many times the same long text.
fn long_list(elements: usize, length: usize) -> Vec<u8> {
    let n = varint(elements);
    let parts = [
        &b"\x0d\x01l"[..],
        &[0x88, 1],
        &sized(&n),
        // Codes in runs, the length of the one entry, and the entry.
        &[0x0b, 0xa1],
        &n,
        &sized(&[&n[..], &[0]].concat()),
        &[0x88, 1],
        &sized(&varint(length)),
        &[0x04],
        &sized(&b"text".repeat(length / 4)),
    ];
    one_point(&parts.concat())
}

/// That text ends with an error and not as if it were whole; and that there is none of it in a file.
fn ends_early(path: &Path, options: &str, limit: usize) {
    let cut = run("decode", path, options);
    assert_eq!(cut.code, Some(1), "{options}");
    assert!(cut.stderr.contains("[limit_exceeded]") && cut.stderr.contains("--max-output"), "{}", cut.stderr);
    assert!(cut.stderr.contains(&format!("the limit is {limit};")), "{}", cut.stderr);
    assert!(cut.stdout.len() <= limit + 1, "{options}: {} bytes", cut.stdout.len());
    assert!(serde_json::from_str::<Value>(&cut.stdout).is_err(), "{options} looks whole");
    let folder = tempdir().expect("a folder");
    let output = folder.path().join("out");
    let told = run("decode", path, &format!("{options} -o {}", output.display()));
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""), "{told:?}");
    assert!(told.stderr.contains("[limit_exceeded]"), "{told:?}");
    assert!(names(folder.path()).is_empty(), "{options}");
}

#[test]
fn text_is_bounded() {
    const LIMIT: usize = 1 << 20;
    let tiles = [("texts", long_texts(1000, 8000)), ("maps", maps(7)), ("list", long_list(1000, 8000))];
    for (name, bytes) in tiles {
        assert!(bytes.len() < 10_000, "{name}: {} bytes", bytes.len());
        let (_folder, path) = written("tile.mlt", &bytes);
        assert_eq!(run("verify", &path, "").code, Some(0), "{name}");
        ends_early(&path, &format!("--format json --max-output {LIMIT}"), LIMIT);
        // With --json the error is a line of its own.
        let cut = run("decode", &path, &format!("--json --max-output {LIMIT}"));
        assert_eq!((cut.code, cut.stderr.as_str()), (Some(1), ""), "{name}");
        let (text, error) = cut.stdout.trim_end().rsplit_once('\n').expect("two lines");
        assert!(serde_json::from_str::<Value>(text).is_err(), "{name} looks whole");
        let error: Value = serde_json::from_str(error).expect("an error");
        assert_eq!(error["error"]["kind"], "limit_exceeded", "{name}: {error}");
        if name != "maps" {
            ends_early(&path, &format!("--format geojson --max-output {LIMIT}"), LIMIT);
        }
        // The summary has the start of it.
        let summary = run("decode", &path, &format!("--max-output {LIMIT}"));
        assert_eq!(summary.code, Some(0), "{name}: {summary:?}");
        assert!(summary.stdout.len() < 1000 && summary.stdout.contains('…'), "{name}: {}", summary.stdout);
    }
}

/// Digests are made of as many bytes as are allowed; others are null, and there is an error.
#[test]
fn digests_are_bounded() {
    let bytes = [tile(), long_texts(1000, 8000), tile()].concat();
    let (_folder, path) = written("tile.mlt", &bytes);
    let found = run("decode", &path, "--digest --json --max-output 16M");
    assert_eq!(found.code, Some(0), "{found:?}");
    let whole = found.json();
    assert_eq!(whole["layers"].as_array().map(Vec::len), Some(5));
    let found = run("decode", &path, "--digest --json --max-output 1M");
    assert_eq!((found.code, found.stderr.as_str()), (Some(1), ""), "{found:?}");
    let found = found.json();
    assert_eq!(found["error"]["kind"], "limit_exceeded", "{found}");
    let layers = found["layers"].as_array().expect("a list");
    assert_eq!(layers[..2], whole["layers"].as_array().expect("a list")[..2]);
    assert_eq!((layers.len(), &layers[2]["columns"][0]["values"]), (3, &Value::Null), "{found}");
    assert_eq!(layers[2]["geometry"], whole["layers"][2]["geometry"]);
    // So is the text around them.
    let (_folder, path) = written("tile.mlt", &maps(7));
    let found = run("decode", &path, "--digest --max-output 1M");
    assert!(found.code == Some(1) && found.stderr.contains("[limit_exceeded]"), "{}", found.stderr);
}

/// A layer of one point with so many columns of one name that share a dictionary of one entry.
fn shared(entry: usize, children: usize) -> Vec<u8> {
    let parts = [
        &b"\x01l\x80\x20\x02\x04\x1e\x00"[..],
        &varint(children),
        &b"\x1c\x01x".repeat(children),
        b"\x02\x30\x02\x01\x01\x00\x13\x42\x02\x02\x00\x00",
        &varint(2 + children),
        &[0x36, 0x02, 1],
        &sized(&varint(entry)),
        &[0x11, 0x00, 1],
        &sized(&vec![b'a'; entry]),
        &b"\x01\x22\x02\x01\x01\x00".repeat(children),
    ];
    frame(1, &parts.concat())
}

/// An Arrow file has a shared dictionary once for each column: what that takes is bounded before it is made.
#[cfg(target_os = "linux")]
#[test]
fn arrow_files_are_bounded() {
    let (folder, path) = written("tile.mlt", &shared(1_000_000, 20_000));
    let output = folder.path().join("out.arrow");
    for limit in ["", " --max-output 2M"] {
        let told = narrow(600_000, "decode", &path, &format!("-o {}{limit}", output.display()));
        assert_eq!(told.code, Some(1), "{limit}: {told:?}");
        assert!(told.stderr.contains("[limit_exceeded]") && told.stderr.contains("--max-output"), "{told:?}");
        assert_eq!(names(folder.path()), ["tile.mlt"]);
    }
    fs::write(&path, shared(1000, 20)).expect("written");
    assert_eq!(run("decode", &path, &format!("-o {}", output.display())).code, Some(0));
}

/// Any number of columns of one name that share a dictionary take no more than one column may.
#[test]
fn columns_of_one_name_are_bounded_together() {
    let (_folder, path) = written("tile.mlt", &shared(100_000, 500));
    // The layer has the dictionary once, and so have its columns.
    assert_eq!(run("decode", &path, "--max-output 1M").code, Some(0));
    assert_eq!(run("verify", &path, "--max-output 1M --quiet").code, Some(0));
    assert_eq!(run("decode", &path, "--column x --max-output 1M").code, Some(0));
    for options in ["--max-output 50K", "--max-output 1M --json", "--max-output 50K --format geojson"] {
        let told = run("decode", &path, &format!("--column x {options}"));
        assert_eq!(told.code, Some(1), "{options}: {told:?}");
        assert!((told.stdout + &told.stderr).contains("raise --max-output"), "{options}");
    }
}

/// What is long as text takes no memory.
#[cfg(target_os = "linux")]
#[test]
fn long_texts_take_no_memory() {
    for (name, bytes) in [("texts", long_texts(200_000, 8000)), ("list", long_list(200_000, 8000)), ("maps", maps(90))]
    {
        let (_folder, path) = written("tile.mlt", &bytes);
        let summary = narrow(600_000, "decode", &path, "");
        assert_eq!(summary.code, Some(0), "{name}: {summary:?}");
        let digest = narrow(600_000, "decode", &path, "--digest --max-output 20M");
        if name == "maps" {
            // Their shape, of trillions of types, is null.
            assert!(digest.code == Some(0) && digest.json()["layers"][0]["nested"][0]["shape"].is_null(), "{digest:?}");
            continue;
        }
        assert!(digest.code == Some(1) && digest.stderr.contains("[limit_exceeded]"), "{name}: {}", digest.stderr);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).expect("packed");
    writer.finish().expect("packed")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut out, bytes, 1).expect("packed");
    out
}

/// A wrapped tile that expands without end meets the limit, which the error names with the option that raises it; and where
/// there is less memory than the limit allows, an error that says so, not an abort.
#[cfg(target_os = "linux")]
#[test]
fn wrapped_tiles_are_bounded() {
    let piece = vec![0; 16 << 20];
    // A gigabyte.
    for (name, bytes) in [("bomb.mlt.gz", gzip(&piece).repeat(64)), ("bomb.mlt.zst", zstd(&piece).repeat(64))] {
        let (_folder, path) = written(name, &bytes);
        for verb in ["info", "decode", "verify", "trace"] {
            let tells = |options: &str, words: [&str; 2]| {
                let told = narrow(400_000, verb, &path, options);
                let text = told.stdout + &told.stderr;
                assert_eq!(told.code, Some(1), "{verb} {name}: {text}");
                assert!(words.iter().all(|word| text.contains(word)), "{verb} {name}: {text}");
            };
            tells(
                "",
                ["it unpacks to more than there is memory for; the limit (--max-output) is 4294967296 bytes", "[io]"],
            );
            // Memory for what is allowed is enough, though there is more.
            if ["decode", "verify"].contains(&verb) {
                let limit = "the limit is 20000000; if you trust the source, raise --max-output";
                tells("--max-output 20000000", [limit, "[limit_exceeded]"]);
            }
        }
    }
}
