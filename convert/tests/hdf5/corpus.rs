//! The HDF5 files of the corpora.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use tilekern_convert::{Options, Step, convert};

use super::matrix::Summary;
use super::{open, same, tables};

/// What a refusal must mention, where the file's name or the way it is wrong says so.
const REASONS: &[(&str, &[&str])] = &[
    ("refuse_2e31.h5ad", &["cell", "gene", "2147483648"]),
    ("refuse_u64_max.h5ad", &["cell", "18446744073709551615"]),
    ("refuse_negative.h5ad", &["cell", "-"]),
    ("refuse_negative_f32.h5ad", &["cell", "-"]),
    ("refuse_fraction.h5ad", &["cell", "1.5"]),
    ("refuse_near_integer.h5ad", &["cell", "0.999999999999999"]),
    ("refuse_nan.h5ad", &["cell", "NaN"]),
    ("refuse_inf.h5ad", &["cell", "inf"]),
    ("refuse_1e300.h5ad", &["cell", "1e300"]),
    ("refuse_indptr_wrapped.h5ad", &["X/indptr", "cell", "ends at -", "wrapped"]),
    ("refuse_indptr_decreasing.h5ad", &["X/indptr", "cell", "before its start"]),
    ("refuse_indptr_short.h5ad", &["X/indptr", "one more"]),
    ("refuse_indptr_past_end.h5ad", &["X/indptr", "cell", "data has 59 entries"]),
    ("refuse_index_eq_n_vars.h5ad", &["X/indices", "entry", "30 is an index of 30 genes"]),
    ("refuse_index_negative.h5ad", &["X/indices", "entry", "-1"]),
    ("refuse_indices_short.h5ad", &["X/indices", "data has"]),
    ("refuse_no_x.h5ad", &["neither X nor raw/X nor layers"]),
    ("refuse_no_genes.h5ad", &["no genes"]),
    ("refuse_truncated.h5ad", &["damaged"]),
    ("slots.h5ad", &["not a count", "raw/X", "layers/counts"]),
    ("tenx_v2_two_genomes.h5", &["hg19", "mm10", "--matrix"]),
    ("refuse_molecule_info.h5", &["molecule_info"]),
    ("anndata/v0.5.0_adata.h5ad X", &["cell 0", "not a count"]),
    ("anndata/v0.5.0_adata.h5ad raw.X", &["cell 0", "not a count"]),
    ("anndata/v0.7.0_adata.h5ad layers/array", &["not a count", "X", "raw/X"]),
    ("anndata/v0.7.0_adata.h5ad layers/sparse", &["not a count", "X", "raw/X"]),
    ("anndataR/example.h5ad X", &["not a count", "layers/counts"]),
    ("anndataR/example.h5ad layers/dense_X", &["not a count", "layers/counts"]),
];

pub fn trials(root: &Path) -> Vec<Trial> {
    let read = |path: &Path| -> Value {
        let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&text).expect("JSON")
    };
    let mut trials = Vec::new();
    let inputs = root.join("fixtures/deltacel/inputs");
    for entry in read(&inputs.join("expected.json")).as_array().expect("a list") {
        let file = entry["file"].as_str().expect("a file");
        if is_hdf5(file) {
            let slot = entry["slot"].as_str().unwrap_or_default();
            trials.push(trial(file.to_owned(), inputs.join(file), slot, entry, entry["convert"] == "ok"));
        }
    }
    let data = root.join("data");
    for (file, slots) in read(&data.join("expected.json")).as_object().expect("an object") {
        let slots = slots.as_object().expect("an object").iter().filter(|_| is_hdf5(file));
        for (slot, entry) in slots {
            let name = format!("{file} {slot}");
            trials.push(trial(name, data.join(file), slot, entry, entry["counts"] == true));
        }
    }
    trials.push(Trial::test("several matrices hold counts", {
        let path = data.join("anndata/v0.7.0_adata.h5ad");
        move || refused(&path, "", &["several", "--matrix X", "--matrix raw/X"])
    }));
    trials.push(Trial::test("the usual matrix holds none", {
        let path = inputs.join("slots.h5ad");
        move || refused(&path, "", &["not a count", "--matrix raw/X", "--matrix layers/counts"])
    }));
    trials.push(Trial::test("no matrix of that name", {
        let path = inputs.join("slots.h5ad");
        move || refused(&path, "layers/none", &["layers/none", "X, raw/X, layers/counts"])
    }));
    trials.push(Trial::test("no feature of that type", {
        let path = inputs.join("tenx_v3_antibody.h5");
        move || refused(&path, "matrix[feature_type=CRISPR]", &["CRISPR", "Gene Expression", "Antibody Capture"])
    }));
    trials.push(Trial::test("features are left out", {
        let path = inputs.join("tenx_v3_antibody.h5");
        move || features(&path)
    }));
    let new = ["obsm (array, df, sparse)", "varm (array, df, sparse)", "obsp (array, sparse)", "uns (O_recarray)"];
    let new = [&["X is converted, not raw/X, layers/array, layers/sparse"][..], &new].concat();
    let old = vec!["X is converted, not ", "obsm, varm, ", "uns (bulk_labels_colors, louvain"];
    for (file, words) in [("v0.7.0_adata.h5ad", new), ("v0.5.0_adata.h5ad", old)] {
        let path = data.join("anndata").join(file);
        trials.push(Trial::test(format!("what is not converted of {file}"), move || not_converted(&path, &words)));
    }
    trials.push(Trial::test("cut files", move || cut(&inputs)));
    trials
}

fn is_hdf5(file: &str) -> bool {
    file.ends_with(".h5ad") || file.ends_with(".h5")
}

fn trial(name: String, path: PathBuf, slot: &str, entry: &Value, ok: bool) -> Trial {
    let (slot, entry, key) = (slot.to_owned(), entry.clone(), name.clone());
    let name = if name.ends_with(&slot) { name } else { format!("{name} {slot}") };
    Trial::test(name, move || {
        if ok {
            return equals(&path, &slot, &entry);
        }
        let reason = REASONS.iter().find(|(name, _)| *name == key);
        refused(&path, &slot, reason.ok_or("no reason is known for this refusal")?.1)
    })
}

/// Whether a matrix and its tables are those that are expected, however little memory there is.
fn equals(path: &Path, slot: &str, expected: &Value) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let n_genes = usize::try_from(expected["n_genes"].as_u64().ok_or("no n_genes")?)?;
    // Enough for one cell, before features are left out.
    let little = if slot.contains('[') { 1 << 20 } else { 64 * n_genes };
    for (memory, parts) in [(1 << 30, 1), (little, 1), (little, 7)] {
        let mut input = open(path, slot, memory, scratch.path())?;
        let Summary(found) = Summary::of(&mut *input, memory, parts)?;
        for key in ["n_cells", "n_genes", "nnz", "sum", "sha256"] {
            same(&format!("{key}, {memory} bytes"), &found[key], &expected[key])?;
        }
        let (obs, var) = (input.obs()?, input.var()?);
        if let Some(names) = expected["var_names"].as_array() {
            same("var_names", &tables::values(var.column(0)), names)?;
        }
        for (column, values) in expected["obs"].as_object().into_iter().flatten() {
            let found = match column.as_str() {
                "index" => Some(obs.column(0)),
                "cat_categories" => Some(obs.column_by_name("cat").ok_or("cat")?.as_any_dictionary().values()),
                name => obs.column_by_name(name),
            };
            let found = Value::from(tables::values(found.ok_or_else(|| format!("no column {column}"))?));
            same(column, &found, values)?;
        }
    }
    Ok(())
}

/// Whether a conversion is refused with a message that has all of some words in it.
fn refused(path: &Path, slot: &str, words: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (matrix, feature_type) = match slot.split_once("[feature_type=") {
        Some((matrix, rest)) => (matrix, Some(rest.trim_end_matches(']').to_owned())),
        None => (slot, None),
    };
    let matrix = (!matrix.is_empty()).then(|| matrix.replace("raw.X", "raw/X"));
    let options = Options { matrix, feature_type, ..Options::default() };
    let output = folder.path().join("out");
    match convert(&[path.to_owned()], &output, &options, Step::Whole, &()) {
        Ok(summary) => Err(format!("converted: {summary:?}").into()),
        Err(error) => {
            let message = error.to_string();
            let words =
                words.iter().copied().chain([path.file_name().and_then(|name| name.to_str()).ok_or("a name")?]);
            match words.filter(|word| !message.contains(word)).collect::<Vec<_>>()[..] {
                [] => Ok(()),
                ref missing => Err(format!("{missing:?} not in: {message}").into()),
            }
        }
    }
}

/// One note names what else a file holds.
fn not_converted(path: &Path, words: &[&str]) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let notes = open(path, "X", 1 << 30, scratch.path())?.notes();
    same("notes", &notes.len(), &1)?;
    match words.iter().filter(|word| !notes[0].contains(*word)).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref missing => Err(format!("{missing:?} not in: {}", notes[0]).into()),
    }
}

/// Features of one type, and what is told of the others.
fn features(path: &Path) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let mut all = open(path, "matrix", 1 << 30, scratch.path())?;
    same("notes", &all.notes().len(), &1)?;
    let Summary(whole) = Summary::of(&mut *all, 1 << 30, 1)?;
    let (mut genes, mut nnz) = (0, 0);
    for kind in ["Gene Expression", "Antibody Capture"] {
        let mut input = open(path, &format!("matrix[feature_type={kind}]"), 1 << 30, scratch.path())?;
        let Summary(found) = Summary::of(&mut *input, 1 << 30, 1)?;
        let var = input.var()?;
        same("rows", &var.num_rows(), &usize::try_from(input.n_genes())?)?;
        let types = tables::values(var.column_by_name("feature_types").ok_or("no types")?);
        same("types", &types.iter().filter(|found| **found != kind).count(), &0)?;
        same("notes", &input.notes().len(), &1)?;
        genes += input.n_genes();
        nnz += found["nnz"].as_u64().ok_or("nnz")?;
    }
    same("genes", &genes, &all.n_genes())?;
    same("nnz", &Some(nnz), &whole["nnz"].as_u64())
}

/// Files that end too early, or have a byte that is not theirs, are errors or the same, never a panic.
fn cut(inputs: &Path) -> Result<(), Failed> {
    use tilekern_convert::{Hdf5, InputOptions, Source};
    let scratch = tempfile::tempdir()?;
    let options =
        InputOptions { feature_type: None, memory: 1 << 20, scratch: scratch.path().to_owned(), tables: true };
    let read = |bytes: &[u8]| {
        let Ok(file) = Hdf5::from_bytes(bytes.to_vec()) else { return };
        for slot in file.slots() {
            if let Ok(mut input) = file.open(&slot, &options) {
                let _ = (input.obs(), input.var());
                let cells = 0..input.n_cells().min(1000);
                let _ = input.rows(cells, 1 << 16, &mut |_| Ok(()));
            }
        }
    };
    for name in ["obs_kinds.h5ad", "csc.h5ad", "csr_lzf.h5ad", "dense_gzip.h5ad", "tenx_v3.h5"] {
        let whole = fs::read(inputs.join(name))?;
        for length in (0..whole.len()).step_by(101) {
            read(&whole[..length]);
        }
        for at in (0..whole.len()).step_by(13) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            read(&bytes);
        }
    }
    Ok(())
}
