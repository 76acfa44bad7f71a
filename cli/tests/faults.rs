//! Disks that are full, names that are odd, processes that meet: what conversions and repairs leave then.
#![cfg(target_os = "linux")]

mod support;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use support::{Run, command, files, names, tilekern};
use tempfile::tempdir;

/// Writes a Matrix Market folder of `cells` x 60.
fn folder(path: &Path, cells: usize) {
    fs::create_dir_all(path).unwrap();
    let entries = (0..cells).flat_map(|cell| (0..20).map(move |i| (cell, (cell * 7 + i * 3) % 60)));
    let lines: String = entries.map(|(cell, gene)| format!("{} {} {}\n", gene + 1, cell + 1, 1 + cell % 9)).collect();
    let head = format!("%%MatrixMarket matrix coordinate integer general\n60 {cells} {}\n", cells * 20);
    fs::write(path.join("matrix.mtx"), head + &lines).unwrap();
    fs::write(path.join("features.tsv"), (0..60).map(|i| format!("gene{i}\n")).collect::<String>()).unwrap();
    fs::write(path.join("barcodes.tsv"), (0..cells).map(|i| format!("cell{i}\n")).collect::<String>()).unwrap();
}

/// Runs the command where no file can grow above so many blocks of 512 bytes, as if the disk were full there.
fn limited(blocks: u32, arguments: &[&OsStr]) -> Run {
    let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", &blocks.to_string(), env!("CARGO_BIN_EXE_tilekern")]).args(arguments);
    let output = shell.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn words<'a>(list: &[&'a str]) -> Vec<&'a OsStr> {
    list.iter().map(|word| OsStr::new(*word)).collect()
}

#[test]
fn a_full_disk_leaves_nothing_wrong() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("in"), 400);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (input, whole, out) = (path("in"), path("whole"), path("out"));
    for extra in [&[][..], &["--shuffle", "3"]] {
        let convert = |out: &str, more: &[&str]| -> Vec<String> {
            let base = ["convert", &input, out, "--tile-size", "150", "--profile", "quick"];
            base.iter().chain(extra).chain(more).map(|word| (*word).to_owned()).collect()
        };
        assert_eq!(tilekern(convert(&whole, &[])).code, Some(0));
        let sound = files(Path::new(&whole));
        let largest = sound.iter().map(|(_, bytes)| bytes.len()).max().unwrap();
        let (mut failures, mut blocks) = (0, 0);
        loop {
            let list = convert(&out, &[]);
            let run = limited(blocks, &list.iter().map(OsStr::new).collect::<Vec<_>>());
            if run.code == Some(0) {
                assert!(files(Path::new(&out)) == sound, "{blocks} blocks");
                break;
            }
            failures += 1;
            assert!(run.code == Some(1) && run.stderr.contains("[io]"), "{blocks} blocks: {run:?}");
            assert!(run.stderr.contains(&out), "it names the file: {run:?}");
            assert!(!Path::new(&out).exists(), "{blocks} blocks");
            // With room it goes on, or starts anew.
            assert_eq!(tilekern(convert(&out, &["--resume"])).code, Some(0), "{blocks} blocks");
            assert!(files(Path::new(&out)) == sound, "{blocks} blocks, then more");
            fs::remove_dir_all(&out).unwrap();
            blocks += 1 + blocks / 6;
        }
        assert!(failures > 5, "{failures} failures, the largest file has {largest} bytes");

        // The same of repairs.
        let damage = || {
            fs::remove_file(format!("{out}/var_names.txt")).unwrap();
            fs::write(format!("{out}/tiles/tile_000001.dct"), "").unwrap();
            fs::remove_dir_all(format!("{out}/obs")).unwrap();
        };
        damage();
        let repair = words(&["repair", &out, "--from", &input]);
        let mut blocks = 0;
        loop {
            let run = limited(blocks, &repair);
            for (name, bytes) in files(Path::new(&out)) {
                let expected = sound.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes);
                assert!(bytes.is_empty() || Some(&bytes) == expected, "{} with {blocks} blocks", name.display());
            }
            if run.code == Some(0) {
                break;
            }
            assert!(run.code == Some(1) && run.stderr.contains("[io]"), "{blocks} blocks: {run:?}");
            blocks += 1 + blocks / 3;
        }
        assert!(blocks > 2 && files(Path::new(&out)) == sound);
        assert_eq!(names(temp.path()), ["in", "out", "whole"]);
        fs::remove_dir_all(&out).unwrap();
        fs::remove_dir_all(&whole).unwrap();
    }
}

#[test]
fn a_full_disk_under_the_cache() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("in"), 400);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (out, cache) = (path("out"), path("cache"));
    assert_eq!(tilekern(["convert", &path("in"), &out]).code, Some(0));
    let plain = tilekern(["obs", &out, "barcode"]).stdout;
    let run = limited(1, &words(&["obs", &out, "barcode", "--cache", &cache]));
    assert!(run.code == Some(1) && run.stderr.contains("barcode.arrow"), "{run:?}");
    assert_eq!(tilekern(["verify", &out, "--cache", &cache]).code, Some(0), "nothing half-written is kept");
    assert_eq!(tilekern(["obs", &out, "barcode", "--cache", &cache]).stdout, plain);
}

/// The second of two conversions to one directory is refused, and the first one is not disturbed; so are repairs.
#[test]
fn two_writers() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("in"), 4000);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (input, out) = (path("in"), path("out"));
    let convert = ["convert", &input, &out, "--tile-size", "50", "--profile", "small", "--threads", "1", "--quiet"];
    let mut first = command().args(convert).spawn().unwrap();
    let (mut refused, mut missed) = (0, 0);
    let ended = loop {
        if let Some(status) = first.try_wait().unwrap() {
            // On a busy machine it may end before anyone else is on its way: then it is done again.
            if refused > 0 || missed == 20 || !status.success() {
                break status;
            }
            missed += 1;
            fs::remove_dir_all(&out).unwrap();
            first = command().args(convert).spawn().unwrap();
        }
        if Path::new(&format!("{out}.partial/journal.json")).exists() {
            for second in [&convert[..], &[&convert[..], &["--resume"]].concat()] {
                let run = tilekern(second);
                if run.code == Some(1) {
                    let told = ["another process works on it", "one that is running", "exists already"];
                    assert!(told.iter().any(|words| run.stderr.contains(words)), "{run:?}");
                    refused += 1;
                } else {
                    // It came behind the first one's end: --resume says that it is complete.
                    assert!(run.code == Some(0) && Path::new(&out).exists(), "{run:?}");
                }
            }
            // Readers see nothing, or the whole.
            let read = tilekern(["verify", &out]);
            assert!(read.code == Some(0) || !read.stdout.contains("tile"), "{read:?}");
        }
    };
    assert!(ended.success() && refused > 0, "{refused}");
    assert_eq!(tilekern(["verify", &out]).code, Some(0));
    assert_eq!(tilekern(["decode", &out, "--json"]).json()["nnz"], 80_000);
    assert_eq!(names(temp.path()), ["in", "out"]);
    // Two repairs.
    let sound = files(Path::new(&out));
    fs::remove_dir_all(format!("{out}/tiles")).unwrap();
    let repair = ["repair", &out, "--from", &input, "--threads", "1"];
    let mut both = [0, 1].map(|_| command().args(repair).spawn().unwrap());
    let codes = both.each_mut().map(|child| child.wait().unwrap().code());
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(files(Path::new(&out)) == sound);
    assert_eq!(names(temp.path()), ["in", "out"]);
}

#[test]
fn odd_names() {
    let temp = tempdir().unwrap();
    let mut odd: Vec<OsString> =
        ["a b", "new\nline", "-rf", "--json", "*?[x]", "\u{e9}\u{1F9EC}", "a'\"\\$(x)`", "%2e%2e", ".hidden", "x.mtx"]
            .map(OsString::from)
            .into();
    odd.push(OsString::from_vec(vec![b'a', 0xff, 0xfe, b'b']));
    odd.push("n".repeat(240).into());
    for name in odd {
        let here = temp.path().join("here");
        fs::create_dir(&here).unwrap();
        let out = OsString::from_vec([name.as_bytes(), b".out"].concat());
        folder(&here.join(&name), 40);
        let run = |arguments: &[&OsStr]| {
            let output = command().args(arguments).current_dir(&here).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
            output.stdout
        };
        let verb = |verb: &'static str, more: &[&OsStr]| run(&[&[OsStr::new(verb)], more].concat());
        let end = OsStr::new("--");
        // Where several names may come a dash in front is taken for an option's, even behind `--`.
        let [input, output] = [&name, &out].map(|name| OsString::from_vec([b"./", name.as_bytes()].concat()));
        verb("convert", &[OsStr::new("--tile-size"), OsStr::new("30"), &input, &output]);
        verb("info", &[end, &out]);
        verb("verify", &[end, &out]);
        verb("obs", &[end, &out, OsStr::new("barcode")]);
        verb("decode", &[OsStr::new("-o"), OsStr::new("x.npz"), end, &out]);
        fs::remove_file(here.join(&out).join("tiles/tile_000001.dct")).unwrap();
        verb("repair", &[&output, OsStr::new("--from"), &input]);
        verb("verify", &[end, &out]);
        // Converted again from there, beside a second input.
        verb("convert", &[&output, &input, OsStr::new("both")]);
        fs::remove_dir_all(here).unwrap();
    }
    // OUT.partial would be longer than a name can be.
    let input = temp.path().join("in");
    folder(&input, 4);
    let long = temp.path().join("n".repeat(250));
    let run = tilekern(["convert", input.to_str().unwrap(), long.to_str().unwrap()]);
    assert!(run.code == Some(1) && run.stderr.contains("[io]"), "{run:?}");
    assert_eq!(names(temp.path()), ["in"]);
}

#[test]
fn links() {
    let temp = tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let path = |name: &str| at(name).to_str().unwrap().to_owned();
    folder(&at("in"), 40);
    symlink("in", at("input link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    fs::create_dir(at("elsewhere")).unwrap();
    symlink("elsewhere", at("folder link")).unwrap();
    // What is there is not written over, wherever it leads.
    for taken in ["dangling", "folder link", "input link"] {
        let run = tilekern(["convert", &path("in"), &path(taken)]);
        assert!(run.code == Some(1) && run.stderr.contains("exists already"), "{run:?}");
    }
    assert!(names(&at("elsewhere")).is_empty() && !at("nowhere").exists());
    let out = path("folder link/out");
    assert_eq!(tilekern(["convert", &path("input link"), &out, "--tile-size", "15"]).code, Some(0));
    assert_eq!(names(&at("elsewhere")), ["out"]);
    let sound = files(&at("elsewhere/out"));
    // A dataset behind a link, and tiles behind links.
    symlink("elsewhere/out", at("dataset")).unwrap();
    fs::rename(at("elsewhere/out/tiles"), at("tiles")).unwrap();
    symlink("../../tiles", at("elsewhere/out/tiles")).unwrap();
    assert_eq!(tilekern(["verify", &path("dataset")]).code, Some(0));
    fs::remove_file(at("tiles/tile_000001.dct")).unwrap();
    symlink("nowhere", at("tiles/tile_000001.dct")).unwrap();
    let run = tilekern(["verify", &path("dataset"), "--json"]);
    assert!(run.code == Some(1) && run.stdout.contains("tile_000001.dct"), "{run:?}");
    let run = tilekern(["repair", &path("dataset"), "--from", &path("in")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(at("elsewhere/out/tiles").symlink_metadata().unwrap().is_symlink());
    assert!(files(&at("elsewhere/out")) == sound, "the tile is where its link was");
    // What links to itself is no input, and no dataset.
    symlink("circle", at("circle")).unwrap();
    for verb in ["info", "verify"] {
        let run = tilekern([verb, &path("circle"), "--json"]);
        assert!(run.code == Some(1) && run.stdout.contains("\"io\""), "{run:?}");
    }
    let run = tilekern(["convert", &path("circle"), &path("x"), "--json"]);
    assert!(run.code == Some(1) && run.stdout.contains("\"io\""), "{run:?}");
    assert!(!at("x").exists() && !at("x.partial").exists());
}
