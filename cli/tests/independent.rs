//! What is written here, read by a reader in Python that shares nothing with the engine: `tests/python/dataset.py`
//! follows the format's text with numpy, zstandard and pyarrow alone. And Parquet files that pyarrow writes, read here.
//!
//! Without Python and these libraries there is one test: ignored, or failing where `TILEKERN_REQUIRE_PYTHON` is set.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{dataset_with_obs, fixtures, switched_on, tilekern};
use tempfile::tempdir;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    if libraries("numpy, zstandard, pyarrow") {
        trials.extend(
            ["small", "balanced", "fast", "quick", "plain:7"]
                .map(|profile| Trial::test(format!("simulated, {profile}"), move || simulated(profile))),
        );
        trials.push(Trial::test("a table of cells", || {
            let folder = tempdir()?;
            dataset_with_obs(&folder.path().join("counts"));
            same(&folder.path().join("counts"))
        }));
        let real: PathBuf = fixtures().join("fixtures/deltacel/real/pbmc1k");
        if real.is_dir() {
            trials.push(Trial::test("real pbmc1k", move || same(&real)));
        }
    } else {
        trials.push(missing("numpy, zstandard and pyarrow"));
    }
    if libraries("pyarrow") {
        trials.push(Trial::test("Parquet files of pyarrow", parquet_files));
    } else {
        trials.push(missing("pyarrow"));
    }
    if libraries("numpy, zstandard, pyarrow, pandas, scipy, anndata") {
        trials.push(Trial::test("an h5ad file of anndata", through_anndata));
    } else {
        trials.push(missing("anndata"));
    }
    libtest_mimic::run(&arguments, trials).exit()
}

fn libraries(names: &str) -> bool {
    let found = Command::new("python3").args(["-c", &format!("import {names}")]).output();
    found.is_ok_and(|output| output.status.success())
}

fn missing(names: &str) -> Trial {
    let message = format!("no python3 with {names}");
    let required = switched_on("TILEKERN_REQUIRE_PYTHON");
    Trial::test(format!("python with {names}"), || Err(Failed::from(message))).with_ignored_flag(!required)
}

fn simulated(profile: &str) -> Result<(), Failed> {
    let folder = tempdir()?;
    let path = folder.path().join("counts");
    let size = ["--cells", "90", "--genes", "3000", "--tile-size", "40", "--profile", profile];
    let run = tilekern(["sample", path.to_str().unwrap_or_default()].into_iter().chain(size));
    if run.code != Some(0) {
        return Err(format!("{run:?}").into());
    }
    same(&path)
}

/// Both readers find the same matrix.
fn same(path: &Path) -> Result<(), Failed> {
    let found: Value = serde_json::from_str(&script("digests.py", [path.as_os_str()])?)?;
    let expected = tilekern([Path::new("decode"), path, Path::new("--json")]).json();
    for key in ["n_cells", "n_genes", "nnz", "sum"] {
        if found[key] != expected[key] {
            return Err(format!("{key}: {}, expected {}", found[key], expected[key]).into());
        }
    }
    let digests = (&found["output"], &expected["sha256"]);
    if digests.0 == digests.1 { Ok(()) } else { Err(format!("{} and {}", digests.0, digests.1).into()) }
}

fn through_anndata() -> Result<(), Failed> {
    let folder = tempdir()?;
    let told = script("through_anndata.py", [env!("CARGO_BIN_EXE_tilekern").as_ref(), folder.path().as_os_str()])?;
    if told == "ok\n" { Ok(()) } else { Err(told.into()) }
}

/// Every encoding, type, page version and codec that pyarrow writes is read to what went in.
fn parquet_files() -> Result<(), Failed> {
    let folder = tempdir()?;
    let told = script("parquet_files.py", [env!("CARGO_BIN_EXE_tilekern").as_ref(), folder.path().as_os_str()])?;
    if told.starts_with("ok ") { Ok(()) } else { Err(told.into()) }
}

/// What a script prints.
fn script<'a>(name: &str, arguments: impl IntoIterator<Item = &'a std::ffi::OsStr>) -> Result<String, Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/python").join(name);
    let output = Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(path).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
