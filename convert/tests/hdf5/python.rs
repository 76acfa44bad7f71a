//! Files that Python's libraries make, and what they read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use tempfile::TempDir;
use tilekern_convert::{Options, Step, convert};

use super::matrix::Summary;
use super::{open, same, tables};

/// Whether the scripts can run.
pub fn is_there() -> bool {
    let found = Command::new("python3").args(["-c", "import numpy, scipy, h5py, anndata"]).output();
    found.is_ok_and(|output| output.status.success())
}

/// What a script prints.
fn script(name: &str, arguments: &[&Path]) -> Result<Value, Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5").join(name);
    let output = Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(path).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

pub fn trials(corpora: Option<&Path>) -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let mut trials = match script("make.py", &[folder.path()]) {
        Ok(entries) => {
            let entries = entries.as_array().expect("a list").clone();
            entries.into_iter().map(|entry| made(&folder, entry)).collect()
        }
        Err(error) => vec![Trial::test("make.py", move || Err(error))],
    };
    if let Some(root) = corpora {
        let pairs = archives(root);
        trials.push(Trial::test("tables of the corpora as anndata reads them", move || as_anndata(&pairs)));
    }
    trials
}

fn made(folder: &Arc<TempDir>, entry: Value) -> Trial {
    let (file, slot) =
        (entry["file"].as_str().expect("a file").to_owned(), entry["slot"].as_str().unwrap_or_default().to_owned());
    let folder = folder.clone();
    Trial::test(format!("made {file} {slot}"), move || check(&folder.path().join(&file), &slot, &entry))
}

fn check(path: &Path, slot: &str, entry: &Value) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    if !entry["refused"].is_null() {
        let matrix = (!slot.is_empty()).then(|| slot.to_owned());
        let options = Options { matrix, ..Options::default() };
        let output = scratch.path().join("out");
        return match convert(&[path.to_owned()], &output, &options, Step::Whole, &()) {
            Ok(summary) => Err(format!("converted: {summary:?}").into()),
            Err(error) => mentions(&error.to_string(), &entry["refused"]),
        };
    }
    if !entry["table_refused"].is_null() {
        return match open(path, slot, 1 << 30, scratch.path())?.obs() {
            Ok(_) => Err("the table was read".into()),
            Err(error) => mentions(&error.to_string(), &entry["table_refused"]),
        };
    }
    let expected = &entry["matrix"];
    let n_genes = usize::try_from(expected["n_genes"].as_u64().ok_or("no n_genes")?)?;
    // Enough for one cell, before features are left out.
    let little = if slot.contains('[') { 4000 } else { 64 * n_genes };
    for (memory, parts) in [(1 << 30, 1), (little, 1), (little, 5)] {
        let mut input = open(path, slot, memory.max(16 << 10), scratch.path())?;
        let Summary(found) = Summary::of(&mut *input, memory, parts)?;
        same(&format!("matrix, {memory} bytes, {parts} parts"), &found, expected)?;
        for (name, table) in [("obs", input.obs()?), ("var", input.var()?)] {
            if !entry[name].is_null() {
                same_table(name, &tables::as_json(&table), &entry[name])?;
            }
        }
        mentions(&input.notes().join("\n"), &entry["notes"])?;
    }
    Ok(())
}

fn mentions(text: &str, words: &Value) -> Result<(), Failed> {
    for word in words.as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !text.contains(word) {
            return Err(format!("{word:?} not in: {text}").into());
        }
    }
    Ok(())
}

fn same_table(name: &str, found: &Value, expected: &Value) -> Result<(), Failed> {
    same(&format!("{name}, index"), &found["index"], &expected["index"])?;
    same(&format!("{name}, index name"), &found["index_name"], &expected["index_name"])?;
    let list = |table: &Value| table["columns"].as_array().cloned().unwrap_or_default();
    let names = |table: &Value| list(table).iter().map(|column| column["name"].clone()).collect::<Vec<_>>();
    same(&format!("{name}, columns"), &names(found), &names(expected))?;
    for (found, expected) in list(found).iter().zip(&list(expected)) {
        let what = format!("{name}, column {}", found["name"]);
        same(&format!("{what}, categories"), &found["categories"], &expected["categories"])?;
        let values = |column: &Value| column["values"].as_array().cloned().unwrap_or_default();
        let (found, expected) = (values(found), values(expected));
        same(&format!("{what}, entries"), &found.len(), &expected.len())?;
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            same(&format!("{what}, entry {at}"), found, expected)?;
        }
    }
    Ok(())
}

/// The h5ad files of the corpora that anndata can read, with each of their matrices' tables.
fn archives(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let data = [
        ("anndata/v0.5.0_adata.h5ad", "X"),
        ("anndata/v0.5.0_adata.h5ad", "raw.X"),
        ("anndata/v0.7.0_adata.h5ad", "X"),
        ("anndata/v0.7.0_adata.h5ad", "raw/X"),
        ("anndataR/example.h5ad", "X"),
        ("bpcells/mini_mat.anndata-v0.6.22.h5ad", "X"),
        ("bpcells/mini_mat.anndata-v0.7.h5ad", "X"),
        ("bpcells/mini_mat.anndata-v0.10.9.h5ad", "X"),
        ("bpcells/mini_mat_int_64.anndata-v0.12.6.h5ad", "X"),
        ("scvi/pbmc_10k_protein_v3.h5ad", "X"),
        ("scvi/brainlarge_dataset_test.h5ad", "X"),
    ]
    .map(|(file, slot)| (root.join("data").join(file), slot));
    let inputs = ["obs_kinds.h5ad", "obs_kinds_nullable_string_index.h5ad", "slots.h5ad", "join_part0.h5ad"]
        .map(|file| (root.join("fixtures/deltacel/inputs").join(file), "X"));
    data.into_iter().chain(inputs).collect()
}

fn as_anndata(pairs: &[(PathBuf, &str)]) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let arguments: Vec<&Path> = pairs.iter().flat_map(|(path, slot)| [path.as_path(), Path::new(slot)]).collect();
    let expected = script("tables.py", &arguments)?;
    for ((path, slot), expected) in pairs.iter().zip(expected.as_array().ok_or("a list")?) {
        let mut input = open(path, slot, 1 << 30, scratch.path())?;
        for (name, table) in [("obs", input.obs()?), ("var", input.var()?)] {
            same_table(&format!("{} {slot}, {name}", path.display()), &tables::as_json(&table), &expected[name])?;
        }
    }
    Ok(())
}
