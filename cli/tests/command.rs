//! What holds for every verb: exit codes, which stream gets what, kinds of paths, pipes, interrupts.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
#[cfg(unix)]
use std::time::{Duration, Instant};

use support::{command, names, tile, tilekern, tilekern_with};
use tempfile::tempdir;

const READERS: [&str; 6] = ["info", "head", "stats", "verify", "decode", "trace"];

#[test]
fn sound_tiles_are_0_and_say_so_on_stdout() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    for verb in READERS {
        for json in [None, Some("--json")] {
            let run = tilekern([verb, path.to_str().unwrap()].into_iter().chain(json));
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{verb}: {run:?}");
            assert!(run.stdout.ends_with('\n') && run.stdout.len() > 20, "{verb}: {run:?}");
            assert_eq!(run.stdout.starts_with('{'), json.is_some(), "{verb}: {run:?}");
        }
    }
}

/// Paths that no verb can read, and the kind of fault.
#[test]
fn data_faults_are_1_with_an_error() {
    let folder = tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    tile(&folder.path().join("sound.dct"), 20, 10);
    let sound = fs::read(folder.path().join("sound.dct")).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let cases = [
        (folder.path().join("absent.dct"), "io"),
        (folder.path().join("absent/below.dct"), "io"),
        (file("empty", b""), "unsupported"),
        (file("empty.dct", b""), "truncated"),
        (file("text.txt", b"some text"), "unsupported"),
        (file("text.dct", b"some text that is longer than eight bytes"), "bad_magic"),
        (file("short.dct", &sound[..60]), "truncated"),
        (file("cut.dct", &sound[..sound.len() - 1]), "truncated"),
        (file("damaged", &damaged), "checksum"),
        (file("table.parquet", b""), "truncated"),
        (file("parquet", b"PAR1 and so on"), "bad_magic"),
        (file("map.mlt", b"\x01\x02"), "truncated"),
        #[cfg(unix)]
        ("/dev/zero".into(), "unsupported"),
    ];
    for verb in READERS {
        for (path, kind) in &cases {
            // Whatever is wrong with it, it holds no cells.
            let name = path.to_string_lossy();
            let other = name.ends_with("parquet") || name.ends_with("mlt");
            let kind = if other && ["head", "stats"].contains(&verb) { &"unsupported" } else { kind };
            let run = tilekern([verb, path.to_str().unwrap(), "--json"]);
            assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{verb} {path:?}: {run:?}");
            let error = &run.json()["error"];
            assert_eq!(error["kind"], *kind, "{verb} {path:?}: {run:?}");
            assert_eq!(error["path"], path.to_str().unwrap(), "{verb} {path:?}: {run:?}");
            assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{verb} {path:?}: {run:?}");
            let run = tilekern([verb, path.to_str().unwrap()]);
            assert_eq!(run.code, Some(1), "{verb} {path:?}: {run:?}");
            // Faults are what verify is asked for, and failures for every other verb.
            let told = if verb == "verify" { &run.stdout } else { &run.stderr };
            let line = told.lines().find(|line| line.contains(path.to_str().unwrap()));
            assert!(line.is_some_and(|line| line.ends_with(&format!("[{kind}]"))), "{verb} {path:?}: {run:?}");
            if verb != "verify" && verb != "trace" {
                assert_eq!(run.stdout, "", "{verb} {path:?}: {run:?}");
            }
        }
    }
    // A name that says less than the first bytes, and a user who knows better than both.
    let sound = file("sound.txt", &sound);
    assert_eq!(tilekern(["verify", sound.to_str().unwrap()]).code, Some(0));
    let run = tilekern(["verify", sound.to_str().unwrap(), "--as", "parquet", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"bad_magic".into()), "{run:?}");
    let run = tilekern(["verify", cases[4].0.to_str().unwrap(), "--as", "deltacel", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"bad_magic".into()), "{run:?}");
}

#[test]
fn wrong_usage_is_2() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    let path = path.to_str().unwrap();
    let cases: &[&[&str]] = &[
        &[],
        &["no-such-verb"],
        &["info"],
        &["verify"],
        &["verify", "-", path, "-"],
        &["info", path, "more"],
        &["info", path, "--no-such-option"],
        &["info", path, "--as", "zip"],
        &["decode", path, "--kernel", "none"],
        &["decode", path, "--threads", "-1"],
        &["decode", path, "--threads", "many"],
        &["decode", path, "--max-output", "1.5G"],
        &["decode", path, "--cells", "5-7"],
        &["decode", path, "--cells", "5", "--cells-file", "x"],
        &["decode", path, "--genes", "1", "--genes-file", "x"],
        &["decode", path, "--to", "npy"],
        &["decode", path, "--to", "parquet", "-o", "-"],
        &["decode", path, "--dtype", "f64", "-o", "a.npy"],
        &["decode", path, "--cost", "-o", "a.npy"],
        &["decode", path, "--dtype", "u16", "-o", "a.npz"],
        &["decode", path, "--dtype", "f32"],
        &["decode", path, "--compress", "-o", "a.npy"],
        &["decode", path, "--compress", "-o", "-"],
        &["head", path, "-n", "-1"],
        &["stats", path, "--per", "gene"],
        &["stats", path, "-o", "a.svg", "--per", "gene"],
        &["stats", path, "-o", "a.tsv"],
        &["stats", path, "-o", "a.png"],
        &["decode", path, "--cells", "5..2"],
        &["decode", path, "--format", "csv"],
        &["decode", path, "--format", "npz"],
        &["decode", path, "-o", "what.csv"],
        &["decode", path, "-o", "-", "--json"],
        &["trace", path, "--chunk", "x"],
        &["sample"],
        &["sample", "out", "--profile", "slow"],
        &["completions", "tcl"],
        &["man", "no-such-verb"],
    ];
    for case in cases {
        let run = tilekern(*case);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{case:?}: {run:?}");
        assert!(run.stderr.contains("Usage:") || run.stderr.contains("--help"), "{case:?}: {run:?}");
    }
    assert!(!std::path::Path::new("what.csv").exists());
    let run = tilekern(["decode", path, "-o", "what.csv"]);
    for part in ["npz, mtx, npy, arrow, parquet", "Usage: tilekern decode [OPTIONS] <PATH>"] {
        assert!(run.stderr.contains(part), "{run:?}");
    }
    // Cells are written in one way everywhere, and every verb says how.
    for verb in ["decode", "head", "stats", "obs"] {
        let run = tilekern([verb, path, "--cells", "0..2,x"]);
        assert!(run.code == Some(2) && run.stderr.contains("between commas: 7,100..200"), "{run:?}");
    }
}

#[test]
fn requests_that_do_not_fit_the_data_are_1() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    let path = path.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["decode", path, "--cells", "0..21"], "out_of_range"),
        (&["decode", path, "--cells", "21.."], "out_of_range"),
        (&["trace", path, "--chunk", "2"], "out_of_range"),
        (&["decode", path, "--max-output", "100"], "limit_exceeded"),
        (&["verify", path, "--max-output", "100"], "limit_exceeded"),
        (&["decode", path, "-o", folder.path().to_str().unwrap(), "--format", "mtx"], "io"),
        (&["decode", path, "-o", "/no-such-folder/a.npz"], "io"),
    ];
    for (case, kind) in cases {
        let run = tilekern(case.iter().copied().chain(["--json"]));
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &(*kind).into()), "{case:?}: {run:?}");
    }
    assert_eq!(names(folder.path()), ["a.dct"]);
}

#[test]
fn kernels_can_be_forced() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    let path = path.to_str().unwrap();
    let expected = tilekern(["decode", path, "--json"]).stdout;
    for kernels in tilekern::kernels::Kernels::available() {
        let run = tilekern(["decode", path, "--json", "--kernel", kernels.name(), "--threads", "1"]);
        assert_eq!((run.code, &run.stdout), (Some(0), &expected), "{kernels:?}");
    }
    let forced = |name: &str, option: &[&str]| {
        let output = command().env("TILEKERN_KERNEL", name).args(["decode", path, "--json"]).args(option).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(forced("scalar", &[]), (Some(0), expected.clone()));
    let (code, stdout) = forced("none", &[]);
    assert!(code == Some(1) && stdout.contains("\"kernel_unavailable\""), "{stdout}");
    // The option wins, and what it does not need is not asked.
    assert_eq!(forced("none", &["--kernel", "scalar"]), (Some(0), expected));
    let elsewhere = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    let run = tilekern(["decode", path, "--json", "--kernel", elsewhere]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"kernel_unavailable".into()), "{run:?}");
}

#[test]
fn standard_input_is_a_tile() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    let bytes = fs::read(&path).unwrap();
    let from_file = tilekern(["decode", path.to_str().unwrap(), "--json"]);
    let from_pipe = tilekern_with(["decode", "-", "--json"], &bytes);
    assert_eq!((from_pipe.code, from_pipe.stdout), (Some(0), from_file.stdout));
    for verb in READERS {
        assert_eq!(tilekern_with([verb, "-"], &bytes).code, Some(0), "{verb}");
        let run = tilekern_with([verb, "-", "--json"], &[]);
        assert_eq!((run.code, &run.json()["error"]["path"]), (Some(1), &"-".into()), "{verb}: {run:?}");
        assert_eq!(run.json()["error"]["kind"], "unsupported", "{verb}: {run:?}");
        let run = tilekern_with([verb, "-", "--json"], &bytes[..100]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"truncated".into()), "{verb}: {run:?}");
    }
    // Nobody has to write, or to read to the end.
    let closed = command().args(["info", "-"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(closed.status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn named_pipes_are_read_and_written() {
    let folder = tempdir().unwrap();
    let (path, pipe) = (folder.path().join("a.dct"), folder.path().join("pipe"));
    tile(&path, 20, 10);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let (path, pipe) = (path.clone(), pipe.clone());
        move || fs::copy(path, pipe)
    });
    let run = tilekern(["verify", pipe.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    writer.join().unwrap().unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe)
    });
    let run = tilekern(["decode", path.to_str().unwrap(), "--format", "mtx", "-o", pipe.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(reader.join().unwrap().unwrap().starts_with("%%MatrixMarket"));
    assert_eq!(names(folder.path()), ["a.dct", "pipe"]);
    let run = tilekern(["decode", path.to_str().unwrap(), "--format", "mtx", "-o", "/dev/null"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 5_000, 40);
    let path = path.to_str().unwrap();
    let cases: [&[&str]; 4] =
        [&["decode", path, "-o", "-"], &["trace", path, "--json"], &["completions", "bash"], &["man"]];
    for case in cases {
        let mut child = command().args(case).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""), "{case:?}");
    }
    let mut child = command().args(cases[0]).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    assert_eq!(first, "%%MatrixMarket matrix coordinate integer general\n");
    drop(reader);
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
    // A verdict is the same whether or not somebody reads it.
    fs::write(folder.path().join("bad.dct"), b"bad").unwrap();
    for (name, code) in [("a.dct", 0), ("bad.dct", 1)] {
        let path = folder.path().join(name);
        let mut child = command().args(["verify", path.to_str().unwrap()]).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 5_000, 40);
    let path = path.to_str().unwrap();
    for format in ["mtx", "npy", "arrow", "parquet"] {
        let run = tilekern(["decode", path, "--to", format, "-o", "/dev/full", "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"io".into()), "{format}: {run:?}");
    }
    // A file that cannot grow: what was begun is removed.
    for name in ["a.mtx", "a.mtx.gz", "a.npz", "a.npy", "a.arrow", "a.parquet", "a.h5ad"] {
        let output = folder.path().join(name);
        let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" decode \"$1\" -o \"$2\" --json";
        let run = std::process::Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tilekern"), path, output.to_str().unwrap()])
            .output()
            .unwrap();
        let told: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!((run.status.code(), &told["error"]["kind"]), (Some(1), &"io".into()), "{name}: {told}");
        assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{name}");
        assert_eq!(names(folder.path()), ["a.dct"], "{name}");
    }
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let cases: [&[&str]; 6] = [
        &["decode", path],
        &["decode", path, "-o", "-"],
        &["info", path, "--json"],
        &["verify", path],
        &["head", path],
        &["stats", path, "--json"],
    ];
    for case in cases {
        let output = command().args(case).stdout(full()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{case:?}: {told}");
        assert!(told.starts_with("error: standard output: "), "{case:?}: {told}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_half_written() {
    let folder = tempdir().unwrap();
    tile(&folder.path().join("a.dct"), 40_000, 100);
    let cases: [(&str, &str, &[&str]); 4] = [
        ("-INT", "out.parquet", &["decode", "a.dct", "-o", "out.parquet"]),
        ("-INT", "out.mtx.gz", &["decode", "a.dct", "-o", "out.mtx.gz"]),
        ("-TERM", "out.mtx", &["decode", "a.dct", "-o", "out.mtx"]),
        ("-INT", "out", &["sample", "out", "--tile-size", "300", "--profile", "small"]),
    ];
    for (signal, output, case) in cases {
        let mut child = command().args(case).current_dir(&folder).spawn().unwrap();
        let start = Instant::now();
        while names(folder.path()).len() < 2 {
            assert!(start.elapsed() < Duration::from_secs(60), "{case:?}: no output begins");
            std::thread::sleep(Duration::from_millis(1));
        }
        let temporary = names(folder.path());
        assert!(temporary[0].starts_with(&format!(".{output}.")), "{temporary:?}");
        let kill = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{case:?}: {told}");
        assert_eq!(told, "interrupted; nothing was left half-written\n", "{case:?}");
        assert_eq!(names(folder.path()), ["a.dct"], "{case:?}");
    }
}

#[test]
fn files_are_replaced_only_by_complete_ones() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 10);
    let (path, output) = (path.to_str().unwrap(), folder.path().join("out.mtx"));
    fs::write(&output, "old").unwrap();
    let run = tilekern(["decode", path, "--max-output", "100", "-o", output.to_str().unwrap()]);
    assert_eq!((run.code, fs::read_to_string(&output).unwrap().as_str()), (Some(1), "old"), "{run:?}");
    let run = tilekern(["decode", path, "-o", output.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("20 cells x 1,000 genes, 200 nonzeros"), "{run:?}");
    assert!(fs::read_to_string(&output).unwrap().starts_with("%%MatrixMarket"));
    let run = tilekern(["decode", path, "-o", output.to_str().unwrap(), "--quiet"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(names(folder.path()), ["a.dct", "out.mtx"]);
}

#[test]
fn help_has_examples_and_pages() {
    let verbs = ["info", "verify", "repair", "decode", "obs", "sample", "trace", "demo", "bench", "completions", "man"];
    for verb in verbs {
        let run = tilekern([verb, "--help"]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{verb}");
        assert!(run.stdout.contains("Examples:\n  tilekern "), "{verb}: {}", run.stdout);
        let run = tilekern(["man", verb]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{verb}");
        assert!(run.stdout.contains(&format!(".TH tilekern-{verb} 1")), "{verb}: {}", run.stdout);
    }
    let page = tilekern(["man"]).stdout;
    assert!(page.contains(".TH tilekern 1"), "{page}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = tilekern(["completions", shell]).stdout;
        assert!(verbs.iter().all(|verb| script.contains(verb)), "{shell}");
    }
    assert_eq!(tilekern(["--version"]).stdout, concat!("tilekern ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn samples_are_the_same_for_the_same_seed() {
    let folder = tempdir().unwrap();
    let sample = |name: &str, seed: &str, threads: &str| {
        let output = folder.path().join(name);
        let size = ["--cells", "300", "--genes", "2000", "--tile-size", "128", "--profile", "quick"];
        let run = tilekern(
            ["sample", output.to_str().unwrap(), "--seed", seed, "--threads", threads].into_iter().chain(size),
        );
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
        let files = ["manifest.json", "gene_order.npy", "var_names.txt"].map(str::to_owned).into_iter();
        let tiles = names(&output.join("tiles")).into_iter().map(|tile| format!("tiles/{tile}"));
        files.chain(tiles).map(|file| (fs::read(output.join(&file)).unwrap(), file)).collect::<Vec<_>>()
    };
    let first = sample("a", "7", "1");
    assert_eq!(first.len(), 6);
    assert!(first == sample("b", "7", "3"), "the same seed gives other bytes");
    assert!(first != sample("c", "8", "1"), "another seed gives the same bytes");
    assert_eq!(names(folder.path()), ["a", "b", "c"]);
    let one = folder.path().join("a");
    let run = tilekern(["verify", one.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{run:?}");
    let run = tilekern(["decode", one.to_str().unwrap(), "--json"]).json();
    assert_eq!((&run["n_cells"], &run["n_genes"]), (&300.into(), &2000.into()));
    // Nothing that exists is touched.
    for name in ["a", "a/manifest.json"] {
        let path = folder.path().join(name);
        let run = tilekern(["sample", path.to_str().unwrap(), "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"unsupported".into()), "{name}: {run:?}");
    }
    assert!(first == sample("d", "7", "2"));
    let run = tilekern(["sample", "absent/below", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"io".into()), "{run:?}");
}

/// A dataset is a directory; one without a manifest was never finished.
#[test]
fn directories_are_datasets() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for verb in ["info", "verify", "decode"] {
        let run = tilekern([verb, path, "--json"]);
        let error = &run.json()["error"];
        assert_eq!((run.code, &error["kind"]), (Some(1), &"unsupported".into()), "{verb}: {run:?}");
        assert!(error["message"].as_str().unwrap().contains("has no manifest.json"), "{verb}: {run:?}");
        let run = tilekern([verb, path, "--json", "--as", "mlt"]);
        assert!(run.code == Some(1) && run.stdout.contains("is a folder"), "{verb}: {run:?}");
    }
    let run = tilekern(["trace", path, "--json"]);
    assert!(run.code == Some(1) && run.stdout.contains("a trace is of one tile"), "{run:?}");
}

/// A missing file of a dataset is to be fetched, any other name to be looked at.
#[test]
fn advice_for_missing_files() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = tilekern(["sample", &at("d"), "--cells", "1", "--genes", "100", "--seed", "3"]);
    assert!(made.stderr.contains("d: 1 cell x 100 genes, ") && made.stderr.contains(" in 1 tile, "), "{made:?}");
    std::fs::remove_file(at("d/tiles/tile_000000.dct")).unwrap();
    for (path, advice) in [("typo", "; check the path [io]"), ("d", "; fetch the file again [io]")] {
        let run = tilekern(["decode", &at(path)]);
        assert!(run.code == Some(1) && run.stderr.trim_end().ends_with(advice), "{run:?}");
    }
}

/// Inputs of a conversion are not told to be unknown.
#[test]
fn counts_of_other_kinds_are_to_be_converted() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("a.h5ad"), b"\x89HDF\r\n\x1a\n").unwrap();
    std::fs::write(at("b.bin"), b"\x89HDF\r\n\x1a\n").unwrap();
    std::fs::write(at("c.mtx"), b"%%MatrixMarket").unwrap();
    std::fs::create_dir(at("d")).unwrap();
    std::fs::write(at("d/matrix.mtx.gz"), b"x").unwrap();
    for name in ["a.h5ad", "b.bin", "c.mtx", "d"] {
        for verb in ["info", "decode", "verify"] {
            let run = tilekern([verb, &at(name)]);
            let told = format!("`tilekern convert {} OUT` first", at(name));
            assert!(run.code == Some(1) && (run.stderr.contains(&told) || run.stdout.contains(&told)), "{run:?}");
        }
    }
}
