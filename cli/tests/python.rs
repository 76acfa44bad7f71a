//! What Python makes of the files that `tilekern decode` writes: scipy, numpy, pyarrow and anndata.
//!
//! Without python3 and these there are tests that are ignored, or fail where `TILEKERN_REQUIRE_PYTHON` is set.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{dataset_with_obs, fixtures, odd_names, switched_on, tile, tilekern};
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

/// Compares an npy, an Arrow, a Parquet and an AnnData file with the npz of the same cells and genes, and with the values
/// that `tilekern obs --json` printed.
const TABLES: &str = r#"
import json, math, sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np, pyarrow as pa, pyarrow.ipc, pyarrow.parquet, scipy.sparse

npz, npy, arrow, parquet, h5ad, obs, names = sys.argv[1:]
matrix = scipy.sparse.load_npz(npz)
cells, genes = matrix.shape
obs, (names, numbers) = json.load(open(obs)), json.load(open(names))

dense = np.load(npy)
assert dense.dtype == np.int32 and dense.flags.c_contiguous and np.array_equal(dense, matrix.toarray())

def plain(value):
    if value is None: return None
    if isinstance(value, float) and math.isnan(value): return "NaN"
    if isinstance(value, float) and math.isinf(value): return "Infinity" if value > 0 else "-Infinity"
    return value

for table in [pa.ipc.open_file(arrow).read_all(), pa.parquet.read_table(parquet)]:
    assert table.num_rows == cells
    metadata = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
    assert metadata["tilekern.n_genes"] == str(genes)
    assert json.loads(metadata.get("tilekern.var_names", "null")) == names
    for name, values in [("gene", matrix.indices), ("count", matrix.data)]:
        lists = table[name].combine_chunks()
        assert lists.type.value_type == pa.int32() and lists.null_count == 0
        assert np.array_equal(np.diff(matrix.indptr), [len(row) for row in lists])
        assert lists.flatten().to_pylist() == values.tolist()
    columns = table.column_names[2:]
    assert len(columns) == len(obs), (columns, obs)
    for name, column in zip(columns, obs):
        assert name == column["name"] or name == "obs_" + column["name"], name
        assert [plain(value) for value in table[name].to_pylist()] == column["values"], (name, column)

data = anndata.read_h5ad(h5ad)
x = data.X
assert x.format == "csr" and x.dtype == np.int32 and x.shape == matrix.shape
for part in ["indptr", "indices", "data"]:
    assert np.array_equal(getattr(x, part), getattr(matrix, part)), part
assert list(data.var_names) == (names if names is not None else [str(number) for number in numbers])
index = bool(obs) and obs[0]["kind"] == "string" and None not in obs[0]["values"]
if index: assert list(data.obs_names) == obs.pop(0)["values"]
assert len(data.obs.columns) == len(obs)
for name, column in zip(data.obs.columns, obs):
    assert name in [column["name"], "a_b" if column["name"] == "a/b" else "a_b_"], name
    values = data.obs[name]
    kind = column["kind"]
    assert (values.dtype == "category") == (kind == "category"), values.dtype
    missing = values.isna().tolist()
    expected = column["values"]
    if values.dtype.kind == "f": expected = [None if value == "NaN" else value for value in expected]
    found = [None if gone else plain(value) for value, gone in zip(values.tolist(), missing)]
    assert found == expected, (name, found, expected)
"#;

/// Makes an AnnData file with every kind of column, or compares two of them.
const ANNDATA: &str = r#"
import sys, warnings
warnings.simplefilter("ignore")
import anndata, numpy as np, pandas as pd, scipy.sparse

if sys.argv[1] == "make":
    rng = np.random.default_rng(3)
    n, genes = 700, 130
    x = scipy.sparse.random(n, genes, 0.1, "csr", np.int32, rng, data_rvs=lambda k: rng.integers(1, 9, k))
    x[5, 7] = 1_000_000
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), n)]
    obs = pd.DataFrame({
        "cell type": pd.Categorical(pick(["T", "B \u00e9", None]), categories=["unused", "T", "B \u00e9"]),
        "cluster": pd.Categorical(pick([3, 1, 2]), categories=[1, 2, 3]),
        "wide": pd.Categorical([f"c{i % 300}" for i in range(n)]),
        "nothing": pd.Categorical([None] * n, categories=np.array([], object)),
        "n": np.arange(n, dtype=np.uint32),
        "small": np.arange(n).astype(np.int8),
        "score": rng.random(n).astype(np.float32),
        "ratio": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
        "ok": rng.random(n) < 0.5,
        "count": pd.array(pick([1, 2, None]), dtype="Int64"),
        "flag": pd.array(pick([True, False, None]), dtype="boolean"),
        "text": [f"t{i % 500}" for i in range(n)],
    }, index=[f"cell{i}" for i in range(n)])
    var = pd.DataFrame({
        "gene_ids": [f"ENSG{i}" for i in range(genes)],
        "kind": pd.Categorical(["a", "b"] * (genes // 2)),
        "length": np.arange(genes), "mito": np.arange(genes) % 3 == 0,
    }, index=[f"g{i % 100}" for i in range(genes)])
    var.index.name = "symbol"
    anndata.AnnData(x.tocsr(), obs, var).write_h5ad(sys.argv[2])
else:
    a, b = [anndata.read_h5ad(path) for path in sys.argv[2:]]
    assert (a.X != b.X).nnz == 0 and a.X.nnz == b.X.nnz and a.shape == b.shape
    pd.testing.assert_frame_equal(a.obs, b.obs, check_exact=True)
    # Parquet, in which a dataset has its table of genes, keeps no order of categories.
    pd.testing.assert_frame_equal(a.var, b.var, check_exact=True, check_categorical=False)
"#;

fn main() {
    let arguments = Arguments::from_args();
    let python = |modules: &str| {
        let found = Command::new("python3").args(["-c", &format!("import {modules}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let mut all = Vec::new();
    for (name, modules, trials) in [
        ("scipy", "numpy, scipy", trials as fn() -> Vec<Trial>),
        ("anndata", "numpy, scipy, pyarrow, anndata", table_trials),
    ] {
        if python(modules) {
            all.extend(trials());
        } else {
            let missing = move || Err(Failed::from(format!("no python3 with {modules}")));
            let required = switched_on("TILEKERN_REQUIRE_PYTHON");
            all.push(Trial::test(name, missing).with_ignored_flag(!required));
        }
    }
    libtest_mimic::run(&arguments, all).exit()
}

fn table_trials() -> Vec<Trial> {
    let with = |name: &'static str, make: fn(&Path), choices: &'static [&'static [&'static str]]| {
        Trial::test(format!("tables {name}"), move || {
            let folder = tempdir()?;
            let path = folder.path().join("data");
            make(&path);
            choices.iter().try_for_each(|choice| same_tables(&path, choice))
        })
    };
    vec![
        with("with obs", dataset_with_obs, &[&[], &["--cells", "1..4"], &["--cells", "4,0,4,2"], &["--genes", "8,3"]]),
        with("odd names", |path| drop(odd_names(path)), &[&[], &["--genes", "1,0"], &["--cells", "0..0"]]),
        with("a tile", |path| tile(path, 20, 10), &[&[], &["--cells", "3..7"]]),
        with("empty cells", |path| tile(path, 5, 0), &[&[]]),
        with("no cells", |path| tile(path, 0, 0), &[&[]]),
        with("sample", |path| drop(sample(path)), &[&[], &["--columns", "source"], &["--cells", "85,10..50"]]),
        Trial::test("anndata there and back", || {
            let folder = tempdir()?;
            let path = |name: &str| folder.path().join(name).to_str().unwrap_or_default().to_owned();
            let [input, dataset, output] = ["in.h5ad", "dataset", "out.h5ad"].map(path);
            python(ANNDATA, &["make", &input])?;
            run(&["convert", &input, &dataset, "--tile-size", "90", "--profile", "quick"])?;
            run(&["decode", &dataset, "--columns", "source", "-o", &output])?;
            python(ANNDATA, &["compare", &input, &output])
        }),
    ]
}

fn run(arguments: &[&str]) -> Result<(), Failed> {
    let run = tilekern(arguments);
    if run.code == Some(0) { Ok(()) } else { Err(format!("{arguments:?}: {run:?}").into()) }
}

fn python(script: &str, arguments: &[&str]) -> Result<(), Failed> {
    let output = Command::new("python3").args(["-c", script]).args(arguments).output()?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(told.into()) }
}

fn sample(path: &Path) -> String {
    let path = path.to_str().unwrap_or_default();
    let size = ["--cells", "90", "--genes", "3000", "--tile-size", "40", "--profile", "quick"];
    run(&[&["sample", path][..], &size].concat()).expect("a sample");
    path.to_owned()
}

/// The files with tables hold what the npz, the names and `tilekern obs` say.
fn same_tables(path: &Path, choice: &[&str]) -> Result<(), Failed> {
    let folder = tempdir()?;
    let path = path.to_str().ok_or("a path that is text")?;
    let mut files = Vec::new();
    for name in ["a.npz", "a.npy", "a.arrow", "a.parquet", "a.h5ad"] {
        let file = folder.path().join(name).to_str().ok_or("a path that is text")?.to_owned();
        let dtype: &[&str] = if name == "a.npy" { &["--dtype", "i32"] } else { &[] };
        run(&[&["decode", path, "-o", &file], dtype, choice].concat())?;
        files.push(file);
    }
    // Values and names as `head` has them, of all cells.
    let head = tilekern([&["head", path, "-n", "1000", "--json"], choice].concat()).json();
    let cells: Vec<u64> =
        head["cells"].as_array().ok_or("cells")?.iter().filter_map(|cell| cell["cell"].as_u64()).collect();
    let columns = tilekern(["obs", path, "--json"]);
    let mut obs = Vec::new();
    if columns.code == Some(0) {
        for column in columns.json()["columns"].as_array().ok_or("columns")? {
            let name = column["name"].as_str().ok_or("a name")?;
            let values =
                tilekern(["obs", path, name, "--cells", "..", "--json"]).json()["columns"][0]["values"].clone();
            let values: Vec<&Value> = cells.iter().map(|&cell| &values[usize::try_from(cell).unwrap_or(0)]).collect();
            obs.push(serde_json::json!({ "name": name, "kind": column["kind"], "values": values }));
        }
    }
    let table = folder.path().join("genes.csv").to_str().ok_or("a path that is text")?.to_owned();
    run(&[&["stats", path, "--per", "gene", "-o", &table], choice].concat())?;
    let numbers: Vec<usize> =
        std::fs::read_to_string(&table)?.lines().filter_map(|line| line.split(',').next()?.parse().ok()).collect();
    let names: Option<Vec<String>> = std::fs::read_to_string(Path::new(path).join("var_names.txt")).ok().map(|text| {
        let names: Vec<&str> = text.strip_suffix('\n').unwrap_or(&text).split('\n').collect();
        numbers.iter().map(|&number| names[number].to_owned()).collect()
    });
    // Names may be too long for an argument.
    let mut arguments = files;
    for (name, text) in
        [("obs.json", serde_json::to_string(&obs)?), ("names.json", serde_json::to_string(&(names, &numbers))?)]
    {
        let file = folder.path().join(name);
        std::fs::write(&file, text)?;
        arguments.push(file.to_str().ok_or("a path that is text")?.to_owned());
    }
    python(TABLES, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
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
        sample(&path);
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
