//! Shared by the tests of the command.
#![allow(dead_code)] // each test target uses its part

#[cfg(feature = "archives")]
pub mod mlt;
pub mod parquet;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int8Array, RecordBatch, StringArray, UInt64Array};
use serde_json::Value;
use tilekern::deltacel::dataset::Writer;
use tilekern::deltacel::dataset::obs::{Category, ObsColumn, ObsSchema, ObsType};
use tilekern::deltacel::{Chunks, CsrView, Encoder, Profile};

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The one JSON document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// The command, without kernels forced from outside.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilekern"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command.
pub fn tilekern<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    tilekern_with(arguments, &[])
}

/// Runs the command with bytes on standard input.
pub fn tilekern_with<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, stdin: &[u8]) -> Run {
    let mut child = command().args(arguments).stdin(Stdio::piped()).spawn().expect("it starts");
    // It may end without reading: that is for the test to judge.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The highest resident memory of a run, in bytes, as far as a look every two milliseconds shows it; what it said where
/// it fails.
#[cfg(target_os = "linux")]
pub fn peak(command: &mut Command) -> Result<u64, String> {
    let command = command.stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        if child.try_wait().expect("a child").is_some() {
            let output = child.wait_with_output().expect("it has ended");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            match (output.status.success(), peak) {
                (false, _) => return Err(told),
                // It ended before it was looked at, which says nothing.
                (true, 0) => child = command.spawn().expect("it starts"),
                (true, peak) => return Ok(peak),
            }
            status = format!("/proc/{}/status", child.id());
            continue;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A matrix of `cells` x 1000 in which each cell has `per_cell` nonzeros, the first count of the tile being 70,000.
pub fn matrix(cells: usize, per_cell: usize) -> (Vec<i64>, Vec<i32>, Vec<i32>) {
    let number = |i: usize| i32::try_from(i).expect("small");
    let indptr = (0..=cells).map(|cell| i64::from(number(cell * per_cell))).collect();
    let genes = (0..cells).flat_map(|cell| (0..per_cell).map(move |i| (cell + i * 7) % 1000));
    let mut rows: Vec<i32> = genes.map(number).collect();
    rows.chunks_mut(per_cell.max(1)).for_each(<[i32]>::sort_unstable);
    let mut counts: Vec<i32> = (0..cells * per_cell).map(|i| number(1 + i % 5)).collect();
    if let Some(first) = counts.first_mut() {
        *first = 70_000;
    }
    (indptr, rows, counts)
}

/// Writes such a matrix as a tile of two chunks.
pub fn tile(path: &Path, cells: usize, per_cell: usize) {
    let (indptr, indices, values) = matrix(cells, per_cell);
    let view = CsrView { n_genes: 1000, indptr: &indptr, indices: &indices, values: &values };
    let mut bytes = Vec::new();
    let mut encoder =
        Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(2)).build().expect("an encoder");
    encoder.encode(&view, &mut bytes).expect("a sound matrix");
    std::fs::write(path, bytes).expect("written");
}

/// Writes a dataset of five cells in tiles of two, with a table of cells.
pub fn dataset_with_obs(path: &Path) {
    let columns = vec![
        ObsColumn::category("cell type", ["T cell", "B \"x\"\t"].map(Category::from)),
        ObsColumn::plain("n", ObsType::UInt64),
        ObsColumn::plain("score", ObsType::Double),
        ObsColumn::plain("ok", ObsType::Bool),
        ObsColumn::plain("barcode", ObsType::String),
    ];
    let schema = ObsSchema { columns };
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![0, 1, -1, 0, 1])),
        Arc::new(UInt64Array::from(vec![Some(1), None, Some(3), Some(u64::MAX), Some(5)])),
        Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), None, Some(f64::NEG_INFINITY), Some(1e300)])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(false)])),
        Arc::new(StringArray::from(vec![Some("AAA-1"), Some(""), None, Some("\u{e9}"), Some("two\nlines")])),
    ];
    let rows = RecordBatch::try_new(Arc::new(schema.arrow()), arrays).expect("the schema's columns");
    let mut writer = Writer::builder(9).tile_size(2).obs(schema, 1).create(path).expect("a new dataset");
    let cells = CsrView { n_genes: 9, indptr: &[0, 1, 1, 2, 3, 4], indices: &[0, 8, 3, 3], values: &[1, 2, 3, 4] };
    writer.push_with_obs(&cells, &rows).expect("sound cells");
    writer.finish().expect("written");
}

/// Writes a dataset of one cell whose names of genes and columns, and whose texts, are not what a terminal should obey;
/// another name is very long. Returns that of the gene with the largest count, which all of them have.
pub fn odd_names(path: &Path) -> String {
    let hostile = "a\u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\tb,\"".to_owned();
    let columns = vec![
        ObsColumn::plain(&hostile, ObsType::String),
        ObsColumn::category("gene", [Category::from(hostile.as_str())]),
        ObsColumn::plain("a/b", ObsType::Bool),
        ObsColumn::plain("a_b", ObsType::Bool),
    ];
    let schema = ObsSchema { columns };
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![hostile.as_str()])),
        Arc::new(Int8Array::from(vec![0])),
        Arc::new(BooleanArray::from(vec![true])),
        Arc::new(BooleanArray::from(vec![false])),
    ];
    let rows = RecordBatch::try_new(Arc::new(schema.arrow()), arrays).expect("the schema's columns");
    let long = "\u{e9}".repeat(500_000);
    let names = [hostile.clone(), long, String::new()];
    let mut writer = Writer::builder(3).var_names(names).obs(schema, 1).create(path).expect("a new dataset");
    let cells = CsrView { n_genes: 3, indptr: &[0, 3], indices: &[0, 1, 2], values: &[9, 8, 7] };
    writer.push_with_obs(&cells, &rows).expect("sound cells");
    writer.finish().expect("written");
    hostile
}

/// The folder that holds the corpora: `TILEKERN_FIXTURES`, else `../shared` beside the checkout.
pub fn fixtures() -> PathBuf {
    match std::env::var_os("TILEKERN_FIXTURES") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    }
}

/// Whether a switch for tests is on.
pub fn switched_on(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value != "0" && !value.is_empty())
}

/// The files below a folder, by their paths in it, with their contents.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((
                    path.strip_prefix(root).expect("readable").to_owned(),
                    std::fs::read(&path).expect("readable"),
                ));
            }
        }
    }
    found.sort();
    found
}

/// Names of the files in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
