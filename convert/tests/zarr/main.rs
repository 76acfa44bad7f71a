//! AnnData stores in zarr, which Python's libraries make in the test, come to the same datasets as the same data in h5ad.
//!
//! Without python3 with its libraries there is one test in their place: ignored, or failing where
//! `TILEKERN_REQUIRE_PYTHON` is set.

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{files, run, switched_on};
use tilekern::deltacel::dataset::Dataset;
use tilekern_convert::Options;

fn main() {
    let arguments = Arguments::from_args();
    let check = ["-c", "import numpy, scipy, h5py, anndata, numcodecs, zarr; zarr.codecs.BloscCodec"];
    let is_there = Command::new("python3").args(check).output().is_ok_and(|output| output.status.success());
    let trials = if is_there { trials() } else { vec![missing()] };
    libtest_mimic::run(&arguments, trials).exit()
}

fn missing() -> Trial {
    let what = "there is no python3 with numpy, scipy, h5py, anndata and zarr 3";
    let required = switched_on("TILEKERN_REQUIRE_PYTHON");
    Trial::test("zarr", move || Err(Failed::from(what))).with_ignored_flag(!required)
}

fn trials() -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zarr/make.py");
    let output = Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(script).arg(folder.path()).output();
    let output = output.expect("it starts");
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return vec![Trial::test("make.py", move || Err(Failed::from(message)))];
    }
    let entries: Vec<Vec<Option<String>>> = serde_json::from_slice(&output.stdout).expect("a list of lists");
    let trial = |mut entry: Vec<Option<String>>| {
        let folder = folder.clone();
        entry.resize(5, None);
        let [h5ad, store, slot, refusal, note]: [Option<String>; 5] = entry.try_into().expect("five");
        let [h5ad, store, slot] = [h5ad, store, slot].map(|part| part.expect("a name"));
        let entry = Entry { h5ad, store, slot, refusal, note };
        Trial::test(format!("{} {}", entry.store, entry.slot), move || check(folder.path(), &entry))
    };
    entries.into_iter().map(trial).collect()
}

/// See `make.py`.
struct Entry {
    h5ad: String,
    store: String,
    slot: String,
    refusal: Option<String>,
    note: Option<String>,
}

fn check(folder: &Path, entry: &Entry) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let [expected, found] = ["h5ad", "zarr"].map(|name| scratch.path().join(name));
    let matrix = (entry.slot != "X").then(|| entry.slot.clone());
    let options = Options { tile_size: 40, matrix, ..Options::default() };
    let store = folder.join(&entry.store);
    if let Some(words) = &entry.refusal {
        return match run(&[&store], &found, &options) {
            Ok(summary) => Err(format!("converted: {summary:?}").into()),
            Err(error) if error.to_string().contains(&**words) && error.path().is_some() => Ok(()),
            Err(error) => Err(format!("{words:?} not in {error}").into()),
        };
    }
    let summaries = [run(&[&folder.join(&entry.h5ad)], &expected, &options)?, run(&[&store], &found, &options)?];
    // That categories are ordered: of cells it is told, of genes it is kept.
    if !summaries.iter().all(|summary| summary.notes.iter().any(|note| note.contains("their order is: \"level\""))) {
        return Err(format!("{summaries:?}").into());
    }
    let told: Vec<_> = summaries[1].notes.iter().filter(|note| note.starts_with("X: ")).collect();
    match (&entry.note, &told[..]) {
        (None, []) => {}
        (Some(words), [told]) if told.contains(&**words) => {}
        (note, _) => return Err(format!("{note:?} expected: {told:?}").into()),
    }
    let var = Dataset::open(&found)?.var()?.ok_or("a table of genes")?;
    let pandas: Value = serde_json::from_str(&var.schema().metadata()["pandas"])?;
    let columns = pandas["columns"].as_array().ok_or("columns")?;
    if !columns.iter().any(|column| column["name"] == "rank" && column["metadata"]["ordered"] == true) {
        return Err(format!("{pandas}").into());
    }
    if contents(&expected) == contents(&found) { Ok(()) } else { Err("the datasets differ".into()) }
}

/// All files, without what the manifest says of the input.
fn contents(dataset: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files(dataset);
    let manifest = files.get_mut(Path::new("manifest.json")).expect("a manifest");
    let mut value: Value = serde_json::from_slice(manifest).expect("JSON");
    value["metadata"]["converted"]["inputs"].take();
    *manifest = value.to_string().into_bytes();
    files
}
