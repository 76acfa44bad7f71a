//! What scipy makes of the files that `tilekern decode` writes.
//!
//! Without python3, numpy and scipy there is one test: ignored, or failing where `TILEKERN_REQUIRE_PYTHON` is set.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{fixtures, switched_on, tile, tilekern};
use tempfile::tempdir;

/// Reads files as scipy does, and prints of each the summary that `tilekern decode --json` prints.
const SCRIPT: &str = r#"
import hashlib, json, sys
import numpy as np, scipy.io, scipy.sparse

def sha256(array, dtype):
    return hashlib.sha256(array.astype(dtype).tobytes()).hexdigest()

def summary(path):
    if path.endswith(".npz"):
        matrix = scipy.sparse.load_npz(path)
        assert matrix.format == "csr", matrix.format
        assert matrix.data.dtype == np.int32, matrix.data.dtype
    else:
        matrix = scipy.io.mmread(path).tocsr()
        assert np.issubdtype(matrix.dtype, np.integer), matrix.dtype
        matrix.sort_indices()
    assert matrix.has_canonical_format or matrix.nnz == 0
    return {
        "n_cells": matrix.shape[0], "n_genes": matrix.shape[1], "nnz": int(matrix.nnz),
        "sum": int(matrix.data.sum(dtype=np.int64)),
        "max_count": int(matrix.data.max(initial=0)), "max_gene": int(matrix.indices.max(initial=-1)),
        "sha256": {"indptr": sha256(matrix.indptr, "<i8"), "indices": sha256(matrix.indices, "<i4"),
                   "data": sha256(matrix.data, "<i4")},
    }

json.dump([summary(path) for path in sys.argv[1:]], sys.stdout)
"#;

fn main() {
    let arguments = Arguments::from_args();
    let found = Command::new("python3").args(["-c", "import numpy, scipy"]).output();
    let trials = if found.is_ok_and(|output| output.status.success()) {
        trials()
    } else {
        let required = switched_on("TILEKERN_REQUIRE_PYTHON");
        let missing = || Err(Failed::from("no python3 with numpy and scipy"));
        vec![Trial::test("scipy", missing).with_ignored_flag(!required)]
    };
    libtest_mimic::run(&arguments, trials).exit()
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, cells, per_cell) in [("small", 20, 10), ("empty cells", 5, 0), ("no cells", 0, 0)] {
        trials.push(Trial::test(name, move || {
            let folder = tempdir()?;
            let path = folder.path().join("a.dct");
            tile(&path, cells, per_cell);
            same(&path, "..")
        }));
    }
    trials.push(Trial::test("dataset", || {
        let folder = tempdir()?;
        let path = folder.path().join("counts");
        let size = ["--cells", "90", "--genes", "3000", "--tile-size", "40", "--profile", "quick"];
        let run = tilekern(["sample", path.to_str().unwrap_or_default()].into_iter().chain(size));
        if run.code != Some(0) {
            return Err(format!("{run:?}").into());
        }
        ["..", "30..85", "40..80", "7..8", "50..50"].into_iter().try_for_each(|cells| same(&path, cells))
    }));
    let real: PathBuf = fixtures().join("fixtures/deltacel/real/pbmc1k");
    if real.is_dir() {
        trials.push(Trial::test("real pbmc1k", move || same(&real, "..")));
    }
    trials
}

/// Each kind of file holds what the summary says.
fn same(path: &Path, cells: &str) -> Result<(), Failed> {
    let folder = tempdir()?;
    let path = path.to_str().ok_or("a path that is text")?;
    let expected = tilekern(["decode", path, "--cells", cells, "--json"]).json();
    let kinds = [("a.npz", None), ("b.npz", Some("--compress")), ("a.mtx", None), ("a.mtx.gz", None)];
    let mut files = Vec::new();
    for (name, option) in kinds {
        let file = folder.path().join(name).to_str().ok_or("a path that is text")?.to_owned();
        let run = tilekern(["decode", path, "--cells", cells, "-o", &file].into_iter().chain(option));
        if run.code != Some(0) {
            return Err(format!("{name}: {run:?}").into());
        }
        files.push(file);
    }
    let output = Command::new("python3").args(["-c", SCRIPT]).args(&files).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).map_err(|e| format!("{e}: {told}"))?;
    for ((name, _), found) in kinds.iter().zip(&found) {
        if *found != expected {
            return Err(format!("{name}: {found}, expected {expected}").into());
        }
    }
    if found.len() == kinds.len() { Ok(()) } else { Err(format!("{} summaries", found.len()).into()) }
}
