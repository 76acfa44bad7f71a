//! `tilekern convert`: what only the command shows. What conversions come to is tested beside the library.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

#[cfg(target_os = "linux")]
use support::peak;
use support::{command, files, tilekern};
use tempfile::tempdir;

/// Writes a Matrix Market folder of `cells` x `genes` in which each cell has `per_cell` counts; in the order of genes, so
/// that each cell's lie all over the file.
fn folder(path: &Path, cells: usize, genes: usize, per_cell: usize) {
    fs::create_dir_all(path).unwrap();
    let mut text = format!("%%MatrixMarket matrix coordinate integer general\n{genes} {cells} {}\n", cells * per_cell);
    for i in 0..per_cell {
        for cell in 0..cells {
            // One gene of each of `per_cell` stretches.
            let stretch = genes / per_cell;
            let gene = i * stretch + (cell * 7919 + i * 31) % stretch;
            writeln!(text, "{} {} {}", gene + 1, cell + 1, 1 + (cell + i) % 4).unwrap();
        }
    }
    fs::write(path.join("matrix.mtx"), text).unwrap();
    let lines = |n: usize, name: &str| (0..n).map(|i| format!("{name}{i}\n")).collect::<String>();
    fs::write(path.join("features.tsv"), lines(genes, "gene")).unwrap();
    fs::write(path.join("barcodes.tsv"), lines(cells, "cell")).unwrap();
}

#[test]
fn it_says_what_it_did() {
    let temp = tempdir().unwrap();
    let input = temp.path().join("in");
    folder(&input, 30, 50, 5);
    let mut text = fs::read_to_string(input.join("matrix.mtx")).unwrap();
    text = text.replace("50 30 150", "50 30 152");
    text.push_str("50 1 0\n50 1 0\n");
    fs::write(input.join("matrix.mtx"), text).unwrap();
    let out = temp.path().join("out");
    let [input, out] = [input, out].map(|path| path.to_str().unwrap().to_owned());
    let run = tilekern(["convert", &input, &out, "--tile-size", "20"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    for part in ["note: 2 stored zeros were dropped", "30 cells x 50 genes, 150 nonzeros in 2 tiles", "cells/s"] {
        assert!(run.stderr.contains(part), "{run:?}");
    }
    assert_eq!(tilekern(["verify", &out]).code, Some(0));
    assert_eq!(tilekern(["decode", &out, "--json"]).json()["nnz"], 150);
    let run = tilekern(["convert", &input, &out]);
    assert!(run.code == Some(1) && run.stderr.contains("exists already"), "{run:?}");
    let run = tilekern(["convert", &input, &format!("{out}2"), "--quiet"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
}

#[test]
fn refusals_say_where() {
    let temp = tempdir().unwrap();
    let input = temp.path().join("in.mtx");
    fs::write(&input, "%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 1\n3 2 0.5\n").unwrap();
    let [input, out] = [input, temp.path().join("out")].map(|path| path.to_str().unwrap().to_owned());
    let run = tilekern(["convert", &input, &out, "--json"]);
    assert_eq!(run.code, Some(1));
    let error = &run.json()["error"];
    assert_eq!(error["kind"], "not_counts");
    assert_eq!(error["path"], input.as_str());
    assert!(error["part"].as_str().unwrap().ends_with("cell 1, gene 2"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("--round"), "{error}");
    // Rounding is advised where it helps, and nowhere else; no refusal is without advice.
    let rounded = temp.path().join("rounded.mtx").to_str().unwrap().to_owned();
    for (value, helps) in [
        ("0.5", true),
        ("1e-9", true),
        ("-0.25", true),
        ("2147483647.25", true),
        ("2147483647.75", false),
        ("2147483648", false),
        ("1e300", false),
        ("-1", false),
        ("-0.75", false),
        ("nan", false),
        ("inf", false),
    ] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n3 2 1\n3 2 {value}\n");
        fs::write(&rounded, text).unwrap();
        let run = tilekern(["convert", &rounded, &out]);
        assert!(run.code == Some(1) && run.stderr.contains("is not a count"), "{value}: {run:?}");
        assert_eq!(run.stderr.contains("--round takes"), helps, "{value}: {run:?}");
        assert_eq!(run.stderr.contains("correct the value in the input"), !helps, "{value}: {run:?}");
        let run = tilekern(["convert", &rounded, &out, "--round"]);
        assert_eq!(run.code == Some(0), helps, "{value}: {run:?}");
        if helps {
            fs::remove_dir_all(&out).unwrap();
        } else {
            assert!(
                run.stderr.contains("correct the value in the input") && !run.stderr.contains("--round takes"),
                "{run:?}"
            );
        }
    }
    let run = tilekern(["convert", &input, &out, "--round"]);
    assert!(run.code == Some(0) && run.stderr.contains("note: 1 value was rounded to a whole number"), "{run:?}");
    for (wrong, told) in [
        (&["--shard", "3/3"][..], "write I/N"),
        (&["--shard", "1"], "write I/N"),
        (&["--count"], "--shard"),
        (&["--memory", "x"], "--memory"),
        (&["--cells", "5.."], "both ends"),
        (&["--threads", "100000"], "100000 is not in 0..=1024"),
        (&["--obs", "--no-obs"], "cannot be used with"),
    ] {
        let run = tilekern(["convert", &input, "x"].iter().chain(wrong));
        assert!(run.code == Some(2) && run.stderr.contains(told), "{wrong:?}: {run:?}");
    }
    for missing in [&["convert", "nothing", "x"][..], &["convert", &input, "x", "--gene-order", "nothing"]] {
        let run = tilekern(missing);
        assert!(run.code == Some(1) && run.stderr.contains("check the path"), "{missing:?}: {run:?}");
    }
    let run = tilekern(["repair", "nothing", "--from", &input]);
    assert!(run.code == Some(1) && run.stderr.contains("check the path"), "{run:?}");
    assert_eq!(tilekern(["convert", &input]).code, Some(2));
    let run = tilekern(["convert", &input, &input, "x", "--cells", "0..1"]);
    assert!(run.code == Some(2) && run.stderr.contains("from one input only"), "{run:?}");
    for verb in [&["convert", &input, "x"][..], &["repair", &out, "--from", &input]] {
        fs::remove_file(format!("{out}/var_names.txt")).unwrap_or_default();
        let run = tilekern(verb.iter().chain(&["--memory", "1k"]));
        assert!(run.code == Some(2) && run.stderr.contains("less memory than 1 MiB"), "{run:?}");
    }
}

/// Nothing is written into a dataset but by the conversion that made it.
#[test]
fn a_dataset_is_not_written_into() {
    let temp = tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    folder(&temp.path().join("in"), 30, 50, 5);
    let [input, counts, link, beside] = ["in", "counts", "link", "counts.npz"].map(path);
    assert_eq!(tilekern(["convert", &input, &counts]).code, Some(0));
    let before = files(Path::new(&counts));
    #[cfg(unix)]
    std::os::unix::fs::symlink("counts/manifest.json", &link).unwrap();
    let within = ["manifest.json", "new.npz", "tiles/tile_000000.dct"].map(|name| format!("{counts}/{name}"));
    for output in within.iter().chain(cfg!(unix).then_some(&link)) {
        let run = tilekern(["decode", &counts, "-o", output, "--to", "npz"]);
        assert!(run.code == Some(2) && run.stderr.contains("lies within the dataset"), "{run:?}");
        assert!(files(Path::new(&counts)) == before, "{output}");
    }
    assert_eq!(tilekern(["decode", &counts, "-o", &beside]).code, Some(0));
    let run = tilekern(["convert", &counts, &format!("{counts}/sub")]);
    assert!(run.code == Some(1) && run.stderr.contains("lies within the input"), "{run:?}");
    assert!(files(Path::new(&counts)) == before);
}

/// What `decode` writes as Matrix Market text is read back the same way round.
#[test]
fn decoded_text_converts_back() {
    let temp = tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    folder(&temp.path().join("in"), 30, 50, 5);
    let [input, counts, text, back] = ["in", "counts", "counts.mtx.gz", "back"].map(path);
    assert_eq!(tilekern(["convert", &input, &counts]).code, Some(0));
    assert_eq!(tilekern(["decode", &counts, "--columns", "source", "-o", &text]).code, Some(0));
    let run = tilekern(["convert", &text, &back]);
    assert!(run.code == Some(0) && run.stderr.contains("30 cells x 50 genes"), "{run:?}");
    let decoded = |path: &str| tilekern(["decode", path, "--columns", "source", "--json"]).json();
    assert_eq!(decoded(&back), decoded(&counts));
    let help = tilekern(["convert", "--help"]).stdout;
    assert!(help.contains("cells x genes"), "{help}");
}

/// Kinds of input call the names of cells by different names; in a dataset of several they are one column.
#[cfg(feature = "h5ad")]
#[test]
fn names_of_cells_are_one_column() {
    let temp = tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    folder(&temp.path().join("in"), 3, 50, 5);
    let [input, counts, h5ad, both, again, back] = ["in", "counts", "a.h5ad", "both", "both.h5ad", "back"].map(path);
    assert_eq!(tilekern(["convert", &input, &counts, "--no-obs"]).code, Some(0));
    let numbered = "note: cells are named by their numbers, for there is no table of cells";
    let run = tilekern(["decode", &counts, "--columns", "source", "-o", &h5ad]);
    assert!(run.code == Some(0) && run.stderr.contains(numbered), "{run:?}");
    let run = tilekern(["convert", &input, &h5ad, &both, "--match-genes", "name"]);
    let note = format!("the names of cells are in one column, \"barcode\", which is called \"_index\" in {h5ad}");
    assert!(run.code == Some(0) && run.stderr.contains(&note), "{run:?}");
    let run = tilekern(["decode", &both, "-o", &again]);
    assert!(run.code == Some(0) && !run.stderr.contains("named by their numbers"), "{run:?}");
    assert_eq!(tilekern(["convert", &again, &back]).code, Some(0));
    let names = tilekern(["obs", &back, "barcode", "--cells", "0..6"]).stdout;
    for name in ["cell0", "cell1", "cell2", "\t0", "\t1", "\t2"] {
        assert!(names.contains(name), "{names}");
    }
}

/// The same relative name in another folder is another input.
#[test]
fn resume_tells_folders_apart() {
    let temp = tempdir().unwrap();
    let out = temp.path().join("out");
    let run = |name: &str| {
        let mut command = command();
        command.args(["convert", "x", out.to_str().unwrap(), "--resume"]);
        command.current_dir(temp.path().join(name)).output().unwrap()
    };
    for (name, cells) in [("d1", 30), ("d2", 40)] {
        folder(&temp.path().join(name).join("x"), cells, 50, 5);
    }
    assert!(run("d1").status.success() && run("d1").status.success());
    let second = run("d2");
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    assert!(String::from_utf8(second.stderr).unwrap().contains("exists already"));
}

#[test]
fn the_usage_of_repair_can_be_followed() {
    let help = tilekern(["repair", "--help"]).stdout;
    assert!(help.contains("Usage: tilekern repair [OPTIONS] <OUT> --from <INPUT>...\n"), "{help}");
}

/// Killed again and again, at times that grow, it ends in the dataset of a conversion that nobody disturbed.
#[test]
fn a_killed_conversion_goes_on() {
    let temp = tempdir().unwrap();
    let input = temp.path().join("in");
    folder(&input, 1500, 600, 30);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    for extra in [&[][..], &["--shuffle", "3"]] {
        let start = |out: &str, more: &[&str]| {
            let base = ["convert", &path("in"), out, "--tile-size", "10", "--profile", "quick", "--quiet"];
            command().args(base).args(extra).args(more).stdin(Stdio::null()).spawn().unwrap()
        };
        let whole = path("whole");
        assert!(start(&whole, &[]).wait_with_output().unwrap().status.success());
        let out = path("out");
        let (mut kills, mut delay) = (0, 1);
        loop {
            let mut child = start(&out, &["--resume"]);
            std::thread::sleep(Duration::from_millis(delay));
            let ended = child.try_wait().unwrap();
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            if let Some(status) = ended {
                assert!(status.success(), "{output:?}");
                break;
            }
            kills += 1;
            // Not the same places in every round.
            delay += 3 + delay / 4 + kills % 5;
        }
        assert!(kills > 5, "{kills}");
        assert!(files(Path::new(&out)) == files(Path::new(&whole)), "{extra:?} after {kills} kills");
        assert!(!Path::new(&format!("{out}.partial")).exists());
        fs::remove_dir_all(out).unwrap();
        fs::remove_dir_all(whole).unwrap();
    }
}

/// Killed while it removes what it worked in, a conversion is found complete by the next one.
#[test]
fn a_conversion_killed_behind_its_end_is_complete() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("in"), 300, 60, 5);
    let [input, out, partial] = ["in", "out", "out.partial"].map(|name| temp.path().join(name));
    let start = || {
        let base = ["convert", input.to_str().unwrap(), out.to_str().unwrap(), "--tile-size", "1", "--resume"];
        command().args(base).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = start();
    let journal = loop {
        match fs::read(partial.join("journal.json")) {
            Ok(journal) => break journal,
            Err(_) => {
                // One that ended before anyone looked is begun again.
                if let Some(status) = first.try_wait().unwrap() {
                    assert!(status.success(), "{status}");
                    fs::remove_dir_all(&out).unwrap();
                    first = start();
                }
            }
        }
    };
    assert!(first.wait().unwrap().success());
    let mut kills = 0;
    for delay in (0..32).step_by(4) {
        fs::create_dir_all(partial.join("tiles")).unwrap();
        fs::write(partial.join("journal.json"), &journal).unwrap();
        (0..1000).for_each(|part| fs::write(partial.join(format!("counts-{part}.json")), "{}").unwrap());
        let mut child = start();
        std::thread::sleep(Duration::from_millis(2 + delay));
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(start().wait().unwrap().success(), "after {delay} ms");
        assert!(!partial.exists());
    }
    assert!(kills > 0);
}

/// The exit code says what there is: an interrupt that comes behind the last step changes neither it nor what is printed.
#[cfg(unix)]
#[test]
fn an_interrupt_and_the_result_agree() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("in"), 300, 60, 5);
    let [input, counts, out, file] = ["in", "counts", "out", "x.npz"].map(|name| temp.path().join(name));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    assert_eq!(tilekern(["convert", &text(&input), &text(&counts), "--tile-size", "1"]).code, Some(0));
    let cases = [
        (vec!["convert".to_owned(), text(&input), text(&out), "--tile-size".to_owned(), "1".to_owned()], &out),
        (vec!["decode".to_owned(), text(&counts), "-o".to_owned(), text(&file)], &file),
    ];
    for (args, result) in cases {
        let (mut before, mut behind) = (0, 0);
        // As soon as the result is there, and at other times.
        for delay in (0..10).map(|_| None).chain((0..20).map(|step| Some(Duration::from_millis(step * step / 2)))) {
            let mut child = command().args(&args).args(["--json", "--quiet"]).spawn().unwrap();
            match delay {
                Some(delay) => std::thread::sleep(delay),
                None => while !result.exists() && child.try_wait().unwrap().is_none() {},
            }
            let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).output();
            killed.unwrap(); // one that has ended is none
            let output = child.wait_with_output().unwrap();
            match output.status.code() {
                Some(0) => {
                    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                    assert!(told.is_object() && result.exists(), "{delay:?} {output:?}");
                    behind += 1;
                }
                // None where it had not begun to handle them.
                code => {
                    assert!(delay.is_some() && matches!(code, Some(130) | None), "{delay:?} {output:?}");
                    assert!(output.stdout.is_empty() && !result.exists(), "{delay:?} {output:?}");
                    before += 1;
                }
            }
            for left in [result.clone(), temp.path().join("out.partial")] {
                if left.is_dir() {
                    fs::remove_dir_all(left).unwrap();
                } else if left.exists() {
                    fs::remove_file(left).unwrap();
                }
            }
        }
        assert!(before > 0 && behind >= 10, "{before}, {behind}");
    }
}

/// Killed again and again, a repair ends in the dataset as it was; in between each file is the old or the new one.
#[test]
fn a_killed_repair_goes_on() {
    let temp = tempdir().unwrap();
    let input = temp.path().join("in");
    folder(&input, 1500, 600, 30);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let out = path("out");
    let base = ["convert", &path("in"), &out, "--tile-size", "10", "--profile", "quick", "--shuffle", "3"];
    assert_eq!(tilekern(base).code, Some(0));
    let sound = files(Path::new(&out));
    for tile in (0..150).filter(|tile| tile % 7 != 0) {
        fs::write(format!("{out}/tiles/tile_{tile:06}.dct"), "").unwrap();
    }
    fs::remove_dir_all(format!("{out}/obs")).unwrap();
    let told = tilekern(["verify", &out]);
    let how = format!("; to mend it: tilekern repair {out} --from INPUT...\n");
    assert!(told.code == Some(1) && told.stdout.ends_with(&how), "{told:?}");
    let dry = tilekern(["repair", &out, "--from", &path("in"), "--dry-run"]);
    assert!(dry.code == Some(1) && dry.stdout.contains("130 files are to be made again"), "{dry:?}");
    let (mut kills, mut delay) = (0, 1);
    loop {
        let mut child = command().args(["repair", &out, "--from", &path("in"), "--quiet"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if let Some(status) = ended {
            assert!(status.success(), "{output:?}");
            break;
        }
        for (name, bytes) in files(Path::new(&out)) {
            let expected = sound.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes);
            assert!(bytes.is_empty() || Some(&bytes) == expected, "{} after {kills} kills", name.display());
        }
        kills += 1;
        delay += 3 + delay / 4 + kills % 5;
    }
    assert!(kills > 5, "{kills}");
    assert!(files(Path::new(&out)) == sound, "after {kills} kills");
    assert!(!Path::new(&format!("{out}.repair")).exists());
    let again = tilekern(["repair", &out, "--from", &path("in")]);
    assert!(again.code == Some(0) && again.stdout.contains("sound, nothing to repair"), "{again:?}");
}

/// A matrix of 32 MB is converted in 12 MB, beside what a tiny one takes.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    let temp = tempdir().unwrap();
    folder(&temp.path().join("tiny"), 10, 2000, 5);
    folder(&temp.path().join("large"), 40_000, 2000, 100);
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    for extra in [&[][..], &["--shuffle", "3"]] {
        let run = |name: &str| {
            let (input, out) = (path(name), path("out"));
            let base = ["convert", &input, &out, "--memory", "12M", "--tile-size", "2000", "--profile", "quick"];
            let found = peak(command().args(base).args(["--no-obs", "--threads", "1", "--quiet"]).args(extra)).unwrap();
            fs::remove_dir_all(out).unwrap();
            found
        };
        // A short run may end before its memory is looked at where it is highest.
        let (tiny, large) = ((0..3).map(|_| run("tiny")).max().unwrap(), run("large"));
        println!("{extra:?}: peak {tiny} bytes for 50 nonzeros, {large} bytes for 4,000,000");
        assert!(large <= tiny + (12 << 20), "{extra:?}: {tiny} and {large}");
    }
}
