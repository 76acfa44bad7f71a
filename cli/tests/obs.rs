//! The table of cells as `tilekern obs` prints it.

mod support;

use std::fs;

use serde_json::json;
use support::{command, dataset_with_obs, tilekern};
use tempfile::tempdir;

#[test]
fn columns_and_values() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("table");
    dataset_with_obs(&path);
    let path = path.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let run = tilekern(["obs", path].iter().chain(arguments));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments:?}: {run:?}");
        run
    };
    assert_eq!(
        run(&[]).stdout,
        "column     kind          stored as  missing\n\
         cell type  2 categories  int8             1\n\
         n          numeric       uint64           1\n\
         score      numeric       double           1\n\
         ok         bool          bool             1\n\
         barcode    string        string           1\n"
    );
    assert_eq!(
        run(&["barcode", "cell type", "n", "score", "ok"]).stdout,
        "cell\tbarcode\tcell type\tn\tscore\tok\n\
         0\tAAA-1\tT cell\t1\t0.5\ttrue\n\
         1\t\"\"\t\"B \\\"x\\\"\\t\"\t\tNaN\tfalse\n\
         2\t\t\t3\t\t\n\
         3\t\u{e9}\tT cell\t18446744073709551615\t-Infinity\ttrue\n\
         4\t\"two\\nlines\"\t\"B \\\"x\\\"\\t\"\t5\t1e+300\tfalse\n"
    );
    assert_eq!(run(&["n", "--cells", "1..4", "--where", "n > 2"]).stdout, "cell\tn\n2\t3\n3\t18446744073709551615\n");
    assert_eq!(run(&["--where", "`cell type` == \"T cell\" || !ok"]).stdout, "cell\n0\n1\n3\n4\n");
    assert_eq!(run(&["n", "--cells", "3,1..3,3", "--where", "n > 2"]).stdout.lines().count(), 4);
    let none = tilekern(["obs", path, "n", "--where", "ok is null && ok"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "cell\tn\n"));
    assert_eq!(none.stderr, "note: no cell passes the filter\n");
    let absent = tilekern(["obs", path, "--where", "`cell type` in [\"T cell\", \"t cell\"]"]);
    assert_eq!((absent.code, absent.stdout.as_str()), (Some(0), "cell\n0\n3\n"));
    assert_eq!(absent.stderr, "note: \"t cell\" is no category of the column \"cell type\"\n");
    assert_eq!(run(&["--cells", "2..4"]).stdout, "cell\n2\n3\n");
    assert_eq!(
        run(&["score", "cell type", "--cells", "1..4", "--json"]).json(),
        json!({
            "path": path,
            "n_cells": 3,
            "cells": [1, 2, 3],
            "columns": [
                { "name": "score", "kind": "numeric", "arrow_type": "double", "values": ["NaN", null, "-Infinity"] },
                { "name": "cell type", "kind": "category", "arrow_type": "int8", "values": ["B \"x\"\t", null, "T cell"] },
            ],
        })
    );
    let told = tilekern(["info", path]).stdout;
    assert!(told.contains("\ncolumn     kind          stored as\ncell type  2 categories  int8\n"), "{told}");
    // A fault of a filter says where it is, and accuses nobody.
    let run = tilekern(["obs", path, "--where", "n > 'x'"]);
    assert_eq!(run.code, Some(1));
    let line = ": filter at byte 4: does not go with the column (column \"n\" holds numbers, which are not compared with text) [wrong_type]\n";
    assert_eq!(run.stderr, format!("error: {path}{line}"));
}

/// Columns are kept where it is said; what is damaged there is named by `verify`, and fetched again by reading.
#[test]
fn a_cache_is_verified() {
    let folder = tempdir().unwrap();
    let (path, cache) = (folder.path().join("table"), folder.path().join("a cache"));
    dataset_with_obs(&path);
    let (path, cache_path) = (path.to_str().unwrap(), cache.to_str().unwrap());
    let plain = tilekern(["obs", path, "n", "barcode"]).stdout;
    let kept = || tilekern(["obs", path, "n", "barcode", "--cache", cache_path]);
    let verify = || tilekern(["verify", path, "--cache", cache_path, "--json"]);
    assert!(!cache.exists());
    assert_eq!((verify().code, kept().stdout == plain), (Some(0), true));
    let fingerprint = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let file = fingerprint.join("obs/n.arrow");
    let sound = fs::read(&file).unwrap();
    assert_eq!(verify().code, Some(0));
    let at = sound.windows(8).position(|bytes| bytes == u64::MAX.to_le_bytes()).unwrap();
    let other = [&sound[..at], &[7], &sound[at + 1..]].concat();
    for (damaged, heals) in [(&sound[..sound.len() - 3], true), (&[], true), (&other, false)] {
        fs::write(&file, damaged).unwrap();
        let run = verify();
        let faults = &run.json()["paths"][0]["faults"];
        assert_eq!((run.code, &faults[0]["path"]), (Some(1), &file.to_str().unwrap().into()), "{run:?}");
        assert_eq!(faults.as_array().unwrap().len(), 1, "{run:?}");
        assert_eq!(tilekern(["verify", path]).code, Some(0), "the dataset itself is sound");
        if !heals {
            // What no reading can see must be removed.
            assert!(run.stdout.contains("remove it"), "{run:?}");
            fs::remove_file(&file).unwrap();
        }
        assert_eq!(kept().stdout, plain);
        assert_eq!((fs::read(&file).unwrap() == sound, verify().code), (true, Some(0)));
    }
    // The environment names one, too.
    let elsewhere = folder.path().join("elsewhere");
    let output = command().args(["obs", path, "n"]).env("DELTACELLS_CACHE", &elsewhere).output().unwrap();
    assert!(output.status.success() && elsewhere.is_dir());
}
