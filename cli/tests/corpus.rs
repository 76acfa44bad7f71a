//! The command on the DELTACEL conformance corpus.

mod support;

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{fixtures, switched_on, tilekern};

/// Oracle words for faults inside tables of cells and genes, whose content this version does not read: that nothing
/// breaks is all that is asked.
const TABLES: [&str; 4] = ["obs_schema", "obs_shard", "obs_value", "var_table"];

fn main() {
    let arguments = Arguments::from_args();
    let corpus = fixtures().join("fixtures/deltacel");
    let trials = if corpus.is_dir() {
        trials(&corpus)
    } else {
        let message = format!("no corpus at {}; set TILEKERN_FIXTURES", corpus.display());
        let required = switched_on("TILEKERN_REQUIRE_FIXTURES");
        vec![Trial::test("corpus deltacel", move || Err(Failed::from(message))).with_ignored_flag(!required)]
    };
    libtest_mimic::run(&arguments, trials).exit()
}

fn trials(corpus: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (folder, key, sound) in [
        ("valid", "tile", true),
        ("datasets", "dataset", true),
        ("invalid", "tile", false),
        ("datasets_invalid", "dataset", false),
    ] {
        for entry in entries(&corpus.join(folder).join("index.json")) {
            let name = entry["name"].as_str().expect("a name").to_owned();
            let path = corpus.join(folder).join(entry[key].as_str().unwrap_or(&name));
            trials.push(Trial::test(format!("{folder} {name}"), move || {
                if sound { valid(&path, &entry) } else { invalid(&path, &entry) }
            }));
        }
    }
    let many = corpus.join("valid/n_genes_max.dct");
    trials.push(Trial::test("outputs of many genes", move || many_genes(&many)));
    let real = corpus.join("real");
    trials.push(Trial::test("real pbmc1k", move || {
        let expected: Value = serde_json::from_slice(&fs::read(real.join("pbmc1k.json"))?)?;
        valid(&real.join("pbmc1k"), &expected["decoded"])
    }));
    trials
}

fn entries(path: &Path) -> Vec<Value> {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every verb takes it, and the summary is the expected one.
fn valid(path: &Path, expected: &Value) -> Result<(), Failed> {
    let path = path.to_str().ok_or("a path that is text")?;
    let run = tilekern(["decode", path, "--json"]);
    let found: Value = serde_json::from_str(&run.stdout).map_err(|e| format!("{e}: {run:?}"))?;
    for key in ["n_cells", "n_genes", "nnz", "sum", "max_count", "max_gene", "sha256"] {
        if found[key] != expected[key] {
            return Err(format!("{key}: {}, expected {}", found[key], expected[key]).into());
        }
    }
    let n_cells = found["n_cells"].as_u64().unwrap_or(0);
    let halves = [0..n_cells / 2, n_cells / 2..n_cells].map(|cells| {
        let run = tilekern(["decode", path, "--json", "--cells", &format!("{}..{}", cells.start, cells.end)]);
        run.json()["sum"].as_u64()
    });
    if halves[0].zip(halves[1]).map(|(a, b)| a + b) != found["sum"].as_u64() {
        return Err(format!("halves: {halves:?} of {}", found["sum"]).into());
    }
    let stats = tilekern(["stats", path, "--json"]).json();
    // Sums of two billion genes are too many.
    if stats["error"]["kind"] != "limit_exceeded" || found["n_genes"].as_u64() < Some(1 << 26) {
        for (key, expected) in [("nnz", &found["nnz"]), ("sum", &found["sum"]), ("n_genes", &found["n_genes"])] {
            if stats[key] != *expected {
                return Err(format!("stats: {key} {}, expected {expected}", stats[key]).into());
            }
        }
    }
    for verb in ["verify", "info", "head"] {
        let run = tilekern([verb, path]);
        if run.code != Some(0) || !run.stderr.is_empty() {
            return Err(format!("{verb}: {run:?}").into());
        }
    }
    if path.ends_with(".dct") {
        let run = tilekern(["trace", path]);
        if run.code != Some(0) || !run.stdout.contains("total_size") {
            return Err(format!("trace: {run:?}").into());
        }
    }
    Ok(())
}

/// Tiles that state two billion genes in a few bytes: what would need memory for each of them is refused.
fn many_genes(path: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for (name, code) in [("a.npy", 1), ("a.h5ad", 1), ("a.npz", 0), ("a.arrow", 0), ("a.parquet", 0), ("a.svg", 1)] {
        let output = folder.path().join(name);
        let verb = if name == "a.svg" { "stats" } else { "decode" };
        let run = tilekern([
            verb,
            path.to_str().ok_or("a path that is text")?,
            "--json",
            "-o",
            output.to_str().ok_or("text")?,
        ]);
        if run.code != Some(code)
            || (code == 1) != (run.json()["error"]["kind"] == "limit_exceeded")
            || output.exists() != (code == 0)
        {
            return Err(format!("{name}: {run:?}").into());
        }
    }
    Ok(())
}

/// `verify` tells where; no verb crashes, and none that decodes takes it.
fn invalid(path: &Path, entry: &Value) -> Result<(), Failed> {
    let path = path.to_str().ok_or("a path that is text")?;
    let run = tilekern(["verify", path]);
    if run.code == Some(0) && TABLES.contains(&entry["kind"].as_str().unwrap_or_default()) {
        return Ok(());
    }
    let faults = run.stdout.lines().count().saturating_sub(1);
    if run.code != Some(1) || faults == 0 || !run.stdout.lines().take(faults).all(|line| line.ends_with(']')) {
        return Err(format!("verify: {run:?}").into());
    }
    let is_tile = path.ends_with(".dct");
    let run = tilekern(["verify", path, "--json"]);
    let error = &run.json()["error"];
    if run.code != Some(1) || !error["part"].is_string() && error["kind"] != "unsupported" {
        return Err(format!("verify --json: {run:?}").into());
    }
    if is_tile && !error["offset"].is_u64() {
        return Err(format!("verify --json: {run:?}").into());
    }
    for (verb, must_fail) in
        [("decode", is_tile), ("stats", is_tile), ("head", false), ("info", false), ("trace", false)]
    {
        let run = tilekern([verb, path, "--json"]);
        let json: Value = serde_json::from_str(&run.stdout).map_err(|e| format!("{verb}: {e}: {run:?}"))?;
        if run.code != Some(0) && (run.code != Some(1) || !json["error"].is_object()) {
            return Err(format!("{verb}: {run:?}").into());
        }
        if must_fail && run.code != Some(1) {
            return Err(format!("{verb} takes it: {run:?}").into());
        }
    }
    Ok(())
}
