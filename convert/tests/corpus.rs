//! The conversion on the corpora: the expected matrix in the source's columns, or a refusal.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{Matrix, files, fixtures, run, switched_on};
use tilekern::deltacel::dataset::Dataset;
use tilekern_convert::{Options, RepairOptions, repair};

fn main() {
    let arguments = Arguments::from_args();
    let root = fixtures();
    let mut trials = Vec::new();
    for (folder, list) in [("fixtures/deltacel/inputs", inputs as fn(&Path) -> Vec<Trial>), ("data", data)] {
        let folder = root.join(folder);
        if folder.is_dir() {
            trials.extend(list(&folder));
        } else {
            let message = format!("no corpus at {}; set TILEKERN_FIXTURES", folder.display());
            let missing = Trial::test(format!("corpus {}", folder.display()), move || Err(Failed::from(message)));
            trials.push(missing.with_ignored_flag(!switched_on("TILEKERN_REQUIRE_FIXTURES")));
        }
    }
    libtest_mimic::run(&arguments, trials).exit()
}

/// Whether files with this name are converted.
fn is_input(name: &str) -> bool {
    [".h5ad", ".h5", ".csv.gz"].iter().any(|end| name.ends_with(end)) || name.contains("mtx")
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn inputs(folder: &Path) -> Vec<Trial> {
    let entries = json(&folder.join("expected.json")).as_array().expect("a list").clone();
    let trial = |entry: Value| {
        let file = entry["file"].as_str().expect("a file").to_owned();
        let slot = entry["slot"].as_str().unwrap_or_default().to_owned();
        let path = folder.join(&file);
        is_input(&file).then(|| {
            Trial::test(format!("inputs {file} {slot}"), move || match entry["convert"].as_str() {
                Some("ok") => converts(&path, &slot, &entry),
                _ => refuses(&path, &slot),
            })
        })
    };
    let (parts, kinds) =
        (["join_part0.h5ad", "join_part1.h5ad"].map(|name| folder.join(name)), folder.join("obs_kinds.h5ad"));
    let csc = folder.join("csc.h5ad");
    let more = [
        Trial::test("inputs join_part0 and join_part1 as one", move || joined(&parts)),
        Trial::test("repair obs_kinds.h5ad", move || repaired(&kinds)),
        Trial::test("repair csc.h5ad", move || repaired(&csc)),
    ];
    entries.into_iter().filter_map(trial).chain(more).collect()
}

/// Codes mean the same in every tile, whichever input's vocabulary they are from.
fn joined(parts: &[PathBuf; 2]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out");
    run(&[&parts[0], &parts[1]], &output, &Options { tile_size: 4, ..Options::default() })?;
    let dataset = Dataset::open(&output)?;
    let table = dataset.obs()?.ok_or("a table of cells")?;
    let categories: Vec<String> =
        table.schema().column("batch").ok_or("batch")?.categories.iter().map(ToString::to_string).collect();
    same("categories", &Value::from(categories), &Value::from(vec!["x", "y", "z"]))?;
    for (categories, cells) in [("'x'", 0..9), ("'z'", 9..18)] {
        let expected: Vec<u64> = cells.step_by(2).collect();
        same("cells", &Value::from(table.filter(&format!("batch == {categories}"))?), &Value::from(expected))?;
    }
    same("y", &Value::from(table.filter("batch == 'y'")?.len()), &Value::from(8))
}

/// All of a dataset but its manifest is made again, to the last byte.
fn repaired(input: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out");
    for shuffle in [None, Some(3)] {
        run(&[input], &output, &Options { tile_size: 4, shuffle, ..Options::default() })?;
        let sound = files(&output);
        let lost = sound.keys().filter(|name| !name.ends_with("manifest.json"));
        lost.clone().try_for_each(|name| fs::remove_file(output.join(name)))?;
        let found = repair(&[input.to_owned()], &output, &RepairOptions::default(), &())?;
        same("files", &Value::from(found.files.len()), &Value::from(lost.count()))?;
        if files(&output) != sound {
            return Err("other bytes".into());
        }
        fs::remove_dir_all(&output)?;
    }
    Ok(())
}

fn data(folder: &Path) -> Vec<Trial> {
    let expected = json(&folder.join("expected.json"));
    let mut trials = Vec::new();
    for (file, slots) in expected.as_object().expect("an object").clone() {
        if !is_input(&file) {
            continue;
        }
        for (slot, entry) in slots.as_object().expect("an object").clone() {
            let path = folder.join(&file);
            trials.push(Trial::test(format!("data {file} {slot}"), move || match entry["counts"].as_bool() {
                Some(true) => converts(&path, &slot, &entry),
                _ => refuses(&path, &slot),
            }));
        }
    }
    let csv = folder.join("celltypist/sample_cell_by_gene_first20.csv.gz");
    trials.push(Trial::test("data celltypist", move || refuses(&csv, "")));
    trials
}

/// The options that ask for a slot: a matrix, and perhaps the features of one type in it.
fn options(slot: &str) -> Options {
    let (matrix, rest) = slot.split_once("[feature_type=").map_or((slot, None), |(matrix, rest)| (matrix, Some(rest)));
    let feature_type = rest.map(|rest| rest.trim_end_matches(']').to_owned());
    Options {
        matrix: (!matrix.is_empty()).then(|| matrix.replace("raw.X", "raw/X")),
        feature_type,
        tile_size: 4,
        ..Options::default()
    }
}

fn converts(path: &Path, slot: &str, expected: &Value) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out");
    // As it is, and in an order and tiles that nothing of it suggests.
    for shuffled in [false, true] {
        let options = Options { shuffle: shuffled.then_some(5), ..options(slot) };
        run(&[path], &output, &options)?;
        let found = Matrix::of(&output);
        let nnz: usize = found.rows.iter().map(Vec::len).sum();
        let sum: u64 = found.sums().iter().sum();
        for (key, found) in
            [("n_cells", found.rows.len() as u64), ("n_genes", found.n_genes as u64), ("nnz", nnz as u64), ("sum", sum)]
        {
            same(key, &Value::from(found), &expected[key])?;
        }
        let digests = found.digests();
        for (key, digest) in ["indptr", "indices", "data"].into_iter().zip(&digests).filter(|_| !shuffled) {
            same(key, &Value::from(digest.as_str()), &expected["sha256"][key])?;
        }
        if let Some(names) = expected["var_names"].as_array() {
            let dataset = Dataset::open(&output)?;
            let (order, found) = (dataset.gene_order()?.ok_or("an order")?, dataset.var_names()?.ok_or("names")?);
            for (gene, name) in order.iter().zip(found.iter()) {
                same("var_names", &Value::from(name), &names[*gene as usize])?;
            }
        }
        fs::remove_dir_all(&output)?;
    }
    Ok(())
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found}, expected {expected}").into()) }
}

/// The refusal says where, and nothing is left.
fn refuses(path: &Path, slot: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out");
    match run(&[path], &output, &options(slot)) {
        Ok(summary) => Err(format!("converted: {summary:?}").into()),
        Err(error) if !error.path().is_some_and(|found| found.starts_with(path)) => {
            Err(format!("does not name the file: {error}").into())
        }
        Err(_) => {
            let left: Vec<PathBuf> =
                fs::read_dir(folder.path())?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            if left.is_empty() { Ok(()) } else { Err(format!("left behind: {left:?}").into()) }
        }
    }
}
