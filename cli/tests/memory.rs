//! Every kind of input whose matrix is larger than the memory that a conversion may take.
//!
//! Without python3 with its libraries there is one test in their place: ignored, or failing where
//! `TILEKERN_REQUIRE_PYTHON` is set.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use support::{command, peak, switched_on, tilekern};

/// Megabytes that a conversion may take.
const MEMORY: u64 = 24;

/// Makes inputs of `cells` x 2000 with 100 counts a cell in the folder; prints their names.
const SCRIPT: &str = r#"
import os, sys
import h5py, numpy as np, scipy.sparse as sp, anndata, zarr

folder, cells = sys.argv[1], int(sys.argv[2])
os.makedirs(folder)
rng = np.random.default_rng(1)
indices = (np.arange(100) * 20 + rng.integers(0, 20, (cells, 100))).ravel()
data = rng.integers(1, 5, indices.size)
csr = sp.csr_matrix((data.astype("f4"), indices, np.arange(cells + 1) * 100), (cells, 2000))
at = lambda name: os.path.join(folder, name)

def h5ad(name, x):
    anndata.AnnData(x).write_h5ad(at(name), compression="gzip")

h5ad("csr.h5ad", csr)
h5ad("csc.h5ad", csr.tocsc())
with h5py.File(at("tenx.h5"), "w") as file:
    group = file.create_group("matrix")
    for key, values in (("data", csr.data.astype("i4")), ("indices", csr.indices.astype("i8"))):
        group.create_dataset(key, data=values, chunks=(min(len(values), 80000),), compression="gzip")
    group["indptr"], group["shape"] = csr.indptr.astype("i8"), np.array([2000, cells])
    group["barcodes"] = np.array([b"AC-1"] * cells)
    for key in ("id", "name", "feature_type"):
        group[f"features/{key}"] = np.array([b"x" if key == "feature_type" else f"{i}".encode() for i in range(2000)])

def rows(write):
    for start in range(0, cells, 1000):
        write(start, csr[start : start + 1000].toarray().astype("u1"))

def frame(file, name, n):
    group = file.create_group(name)
    group.attrs["_index"], group.attrs["encoding-type"] = "_index", "dataframe"
    group.attrs["column-order"] = np.array([], "S1")
    group["_index"] = [f"{name}{i}" for i in range(n)]

with h5py.File(at("dense.h5ad"), "w") as file:
    x = file.create_dataset("X", (cells, 2000), "u1", chunks=(min(cells, 1000), 500), compression="lzf")
    rows(lambda start, part: x.__setitem__(slice(start, start + len(part)), part))
    frame(file, "obs", cells), frame(file, "var", 2000)
with h5py.File(at("a.loom"), "w") as file:
    x = file.create_dataset("matrix", (2000, cells), "u1", chunks=(64, min(cells, 1000)), compression="gzip")
    rows(lambda start, part: x.__setitem__((slice(None), slice(start, start + len(part))), part.T))
    file.create_group("row_attrs"), file.create_group("col_attrs")
for version in (2, 3):
    anndata.settings.zarr_write_format = version
    anndata.AnnData(csr if version == 2 else csr.tocsc()).write_zarr(at(f"zarr{version}.zarr"))
"#;

const KINDS: [&str; 7] = ["csr.h5ad", "csc.h5ad", "dense.h5ad", "tenx.h5", "a.loom", "zarr2.zarr", "zarr3.zarr"];

fn main() {
    let arguments = Arguments::from_args();
    let check = ["-c", "import numpy, scipy, h5py, anndata, zarr; zarr.codecs.BloscCodec"];
    let found = Command::new("python3").args(check).output().is_ok_and(|output| output.status.success());
    let trials = if found && cfg!(target_os = "linux") {
        trials()
    } else {
        let required = switched_on("TILEKERN_REQUIRE_PYTHON") && cfg!(target_os = "linux");
        let missing = || Err(Failed::from("no python3 with numpy, scipy, h5py, anndata and zarr 3"));
        vec![Trial::test("memory", missing).with_ignored_flag(!required)]
    };
    libtest_mimic::run(&arguments, trials).exit()
}

fn trials() -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let made = Arc::new(Mutex::new(false));
    let all = KINDS.iter().map(|kind| (*kind, false)).chain([("dataset", false), ("csc.h5ad", true)]);
    all.map(|(kind, shuffled)| {
        let (folder, made) = (folder.clone(), made.clone());
        let name = if shuffled { format!("{kind}, shuffled") } else { kind.to_owned() };
        Trial::test(name, move || {
            // One at a time: others would take the disk's and the processors' time, and measure nothing else.
            let mut made = made.lock().map_err(|_| "another test failed")?;
            if !std::mem::replace(&mut *made, true) {
                make(folder.path())?;
            }
            check(folder.path(), kind, shuffled)
        })
    })
    .collect()
}

fn make(folder: &Path) -> Result<(), Failed> {
    for (name, cells) in [("tiny", "30"), ("large", "40000")] {
        let mut python = Command::new("python3");
        python.args(["-W", "ignore", "-c", SCRIPT]).arg(folder.join(name)).arg(cells);
        let output = python.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        // A dataset, of one of these.
        let [from, to] = ["csr.h5ad", "dataset"].map(|kind| folder.join(name).join(kind));
        let run = tilekern([Path::new("convert"), &from, &to, Path::new("--no-obs"), Path::new("--quiet")]);
        if run.code != Some(0) {
            return Err(format!("{run:?}").into());
        }
    }
    Ok(())
}

/// A conversion of the large one takes at most so much more than that of the tiny one.
fn check(folder: &Path, kind: &str, shuffled: bool) -> Result<(), Failed> {
    let out = folder.join("out");
    let mut peaks = Vec::new();
    for name in ["tiny", "large"] {
        let mut convert = command();
        convert.arg("convert").arg(folder.join(name).join(kind)).arg(&out);
        convert.args(["--memory", &format!("{MEMORY}M"), "--tile-size", "2000", "--profile", "quick"]);
        convert.args(["--no-obs", "--threads", "1", "--quiet"]);
        if shuffled {
            convert.args(["--shuffle", "1"]);
        }
        peaks.push(peak(&mut convert)?);
        let nnz = tilekern([Path::new("decode"), &out, Path::new("--json")]).json()["nnz"].clone();
        if nnz != if name == "tiny" { 3_000 } else { 4_000_000 } {
            return Err(format!("{name}: {nnz} nonzeros").into());
        }
        fs::remove_dir_all(&out)?;
    }
    let [tiny, large] = [peaks[0], peaks[1]].map(|bytes| bytes >> 20);
    println!("{kind}: {tiny} MiB for 3,000 nonzeros, {large} MiB for 4,000,000 (32 MB)");
    // What an allocator keeps back of freed memory comes on top, and is not the same in each run.
    let kept_back = 4;
    if large <= tiny + MEMORY + kept_back {
        Ok(())
    } else {
        Err(format!("{large} MiB, {tiny} MiB for a tiny one").into())
    }
}
