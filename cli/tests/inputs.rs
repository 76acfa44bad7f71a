//! The corpora's inputs, through the command: what was converted and decoded in the source's order has the digests of the
//! source.

mod support;

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{fixtures, switched_on, tilekern};

fn main() {
    let arguments = Arguments::from_args();
    let root = fixtures();
    let mut trials = Vec::new();
    for (folder, list) in
        [("fixtures/deltacel/inputs", inputs as fn(&Path, &Value) -> Vec<(String, String, Value)>), ("data", data)]
    {
        let folder = root.join(folder);
        let Ok(text) = fs::read(folder.join("expected.json")) else {
            let message = format!("no corpus at {}; set TILEKERN_FIXTURES", folder.display());
            let missing = Trial::test(format!("corpus {}", folder.display()), move || Err(Failed::from(message)));
            trials.push(missing.with_ignored_flag(!switched_on("TILEKERN_REQUIRE_FIXTURES")));
            continue;
        };
        let expected = serde_json::from_slice(&text).expect("JSON");
        for (file, slot, entry) in list(&folder, &expected) {
            let path = folder.join(&file);
            trials.push(Trial::test(format!("{file} {slot}"), move || same(&path, &slot, &entry)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit()
}

/// File, slot and what is expected of each input that converts.
fn inputs(_: &Path, expected: &Value) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = expected.as_array().expect("a list").iter().filter(|entry| entry["convert"] == "ok");
    entries.map(|entry| (text(&entry["file"]), text(&entry["slot"]), entry.clone())).collect()
}

fn data(folder: &Path, expected: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (file, slots) in expected.as_object().expect("an object") {
        let counts = slots.as_object().into_iter().flatten().filter(|(_, entry)| entry["counts"] == true);
        if folder.join(file).exists() {
            found.extend(counts.map(|(slot, entry)| (file.clone(), slot.clone(), entry.clone())));
        }
    }
    found
}

fn same(path: &Path, slot: &str, expected: &Value) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [input, out] = [path.to_owned(), folder.path().join("out")].map(|path| path.to_string_lossy().into_owned());
    let (matrix, feature_type) = slot.split_once("[feature_type=").unwrap_or((slot, ""));
    let matrix = matrix.replace("raw.X", "raw/X");
    let mut arguments = vec!["convert", &input, &out, "--quiet", "--tile-size", "400", "--profile", "quick"];
    if !matrix.is_empty() {
        arguments.extend(["--matrix", &matrix]);
    }
    if !feature_type.is_empty() {
        arguments.extend(["--feature-type", feature_type.trim_end_matches(']')]);
    }
    let run = tilekern(arguments);
    if run.code != Some(0) {
        return Err(format!("{run:?}").into());
    }
    let found = tilekern(["decode", &out, "--columns", "source", "--json"]).json();
    let keys = ["n_cells", "n_genes", "nnz", "sum", "max_count", "max_gene", "sha256"];
    for key in keys.into_iter().filter(|key| !expected[key].is_null()) {
        if found[key] != expected[key] {
            return Err(format!("{key}: {}, expected {}", found[key], expected[key]).into());
        }
    }
    if expected["sha256"]["indices"].is_string() { Ok(()) } else { Err("no digests are expected".into()) }
}
