//! The command on the corpus of map tiles.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_ipc::reader::FileReader;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use support::{Run, fixtures, switched_on, tilekern};
use tempfile::tempdir;

/// The folders whose tiles are sound.
const SOUND: [&str; 8] = [
    "v1-synthetic",
    "v1-encodings",
    "v1-real",
    "v2-encodings",
    "v2-fastpfor-page",
    "v2-fastpfor-mltcore0221",
    "fastpfor-pages",
    "hand",
];

fn main() {
    let arguments = Arguments::from_args();
    let corpus = fixtures().join("fixtures/mlt");
    let trials = if corpus.is_dir() {
        let mut trials: Vec<Trial> = SOUND.iter().chain(&["v2-real"]).flat_map(|name| folder(&corpus, name)).collect();
        trials.extend(invalid(&corpus.join("invalid")));
        trials
    } else {
        let message = format!("no corpus at {}; set TILEKERN_FIXTURES", corpus.display());
        let required = switched_on("TILEKERN_REQUIRE_FIXTURES");
        vec![Trial::test("corpus mlt", move || Err(Failed::from(message))).with_ignored_flag(!required)]
    };
    libtest_mimic::run(&arguments, trials).exit()
}

fn read(path: &Path) -> Result<Value, Failed> {
    let text = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

fn folder(corpus: &Path, name: &'static str) -> Vec<Trial> {
    let entries = fs::read_dir(corpus.join(name)).expect("a folder");
    let mut tiles: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    tiles.retain(|path| path.extension().is_some_and(|end| end == "mlt"));
    tiles.sort();
    let trial = |tile: PathBuf| {
        let stem = tile.file_stem().expect("a name").to_string_lossy().into_owned();
        Trial::test(format!("{name} {stem}"), move || sound(&tile, name))
    };
    tiles.into_iter().map(trial).collect()
}

fn run(verb: &str, tile: &Path, options: &[&str]) -> Result<Run, Failed> {
    let tile = tile.to_str().ok_or("a path that is text")?;
    Ok(tilekern([verb, tile].into_iter().chain(options.iter().copied())))
}

/// What a verb prints as JSON, if it ends with 0.
fn printed(verb: &str, tile: &Path, options: &[&str]) -> Result<Value, Failed> {
    let run = run(verb, tile, options)?;
    match run.code {
        Some(0) => Ok(serde_json::from_str(&run.stdout)?),
        _ => Err(format!("{verb} {}: {:?} {} {}", tile.display(), run.code, run.stderr, cut(&run.stdout)).into()),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.char_indices().nth(2000).map_or(text.len(), |(at, _)| at)]
}

/// A tile that every verb reads.
fn sound(tile: &Path, folder: &str) -> Result<(), Failed> {
    let mut options = vec!["--json"];
    if folder == "v2-fastpfor-mltcore0221" {
        options.extend(["--mlt-fastpfor", "sequential"]);
    }
    let whole = tile.with_extension("json");
    let digest = tile.with_extension("digest.json");
    let (expected, form) = if whole.exists() { (read(&whole)?, None) } else { (read(&digest)?, Some("--digest")) };
    let decode: Vec<&str> = options.iter().copied().chain(form).collect();
    let found = printed("decode", tile, &decode)?;
    same(&found, &expected, "")?;
    let verified = printed("verify", tile, &options)?;
    if verified["sound"] != true {
        return Err(verified.to_string().into());
    }
    let info = printed("info", tile, &options)?;
    let layers = |value: &Value| {
        value["layers"]
            .as_array()
            .map_or(0, |layers| layers.iter().filter(|layer| layer.get("unknown_tag").is_none()).count())
    };
    if layers(&info) != layers(&expected) {
        return Err(info.to_string().into());
    }
    let trace = printed("trace", tile, &options)?;
    if trace.get("error").is_some() {
        return Err(trace["error"].to_string().into());
    }
    if layers(&info) > 0 {
        arrow(tile, &options, &info["layers"][0])?;
    }
    let geojson = tile.with_extension("geojson");
    if geojson.exists() {
        let found = printed("decode", tile, &["--format", "geojson"])?;
        same_features(&found, &read(&geojson)?)?;
    }
    Ok(())
}

/// The first layer as an Arrow file has a row for each feature, and a column for each that holds values.
fn arrow(tile: &Path, options: &[&str], layer: &Value) -> Result<(), Failed> {
    let folder = tempdir()?;
    let output = folder.path().join("layer.arrow");
    let words = ["--layer", "0", "-o", output.to_str().ok_or("text")?];
    printed("decode", tile, &options.iter().copied().chain(words).collect::<Vec<_>>())?;
    let reader = FileReader::try_new(fs::File::open(&output)?, None)?;
    let columns = reader.schema().fields().len() as u64;
    let rows: usize = reader.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<_, _>>()?;
    let all = layer["columns"].as_array().ok_or("columns")?.iter();
    let expected = 1 + all.filter(|column| column["kind"] != "shared dictionary").count() as u64;
    if Some(rows as u64) != layer["n_features"].as_u64() || columns != expected {
        return Err(format!("{rows} rows, {columns} columns, expected {expected}: {layer}").into());
    }
    Ok(())
}

/// The first difference of two documents.
fn same(found: &Value, expected: &Value, at: &str) -> Result<(), Failed> {
    match (found, expected) {
        _ if found == expected => Ok(()),
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().try_for_each(|(key, value)| same(value, &b[key], &format!("{at}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().try_for_each(|(n, (a, b))| same(a, b, &format!("{at}[{n}]")))
        }
        _ => Err(format!("{at} is {}, expected {}", cut(&found.to_string()), cut(&expected.to_string())).into()),
    }
}

/// The same features; theirs are of another program, which has other words for numbers that JSON has not, and prints more
/// digits than a number of 32 bits has.
fn same_features(found: &Value, expected: &Value) -> Result<(), Failed> {
    let with = |document: &Value, change: fn(&Value) -> Value| -> Result<Value, Failed> {
        let mut document = document.clone();
        for feature in document["features"].as_array_mut().ok_or("features")? {
            let columns = feature["properties"].as_object_mut().ok_or("properties")?;
            columns.values_mut().for_each(|value| *value = change(value));
        }
        Ok(document)
    };
    let ours = |value: &Value| match value.as_str() {
        Some("NaN") => json!("NAN"),
        Some("Infinity") => json!("INFINITY"),
        Some("-Infinity") => json!("NEG_INFINITY"),
        _ => short(value),
    };
    let theirs = |value: &Value| match value.as_str().and_then(|word| word.split_once("::")) {
        Some((_, name)) => json!(name),
        None => short(value),
    };
    same(&with(found, ours)?, &with(expected, theirs)?, "")
}

/// A number as one of 32 bits, where it is not whole.
fn short(value: &Value) -> Value {
    match value.as_f64().filter(|_| value.is_f64()) {
        #[allow(clippy::cast_possible_truncation)] // that is meant
        Some(number) if (number as f32).is_finite() => json!((number as f32).to_bits()),
        _ => value.clone(),
    }
}

/// Tiles that break a rule, and a few controls.
fn invalid(folder: &Path) -> Vec<Trial> {
    let index = read(&folder.join("index.json")).unwrap_or_else(|e| panic!("{e:?}"));
    let entries = index.as_array().expect("a list").clone();
    let trial = |entry: Value| {
        let file = entry["file"].as_str().expect("a file").to_owned();
        let tile = folder.join(&file);
        Trial::test(format!("invalid {file}"), move || {
            if entry["expect"] == "accept" {
                return printed("decode", &tile, &["--json"]).map(drop);
            }
            for verb in ["decode", "verify"] {
                let run = run(verb, &tile, &["--json"])?;
                let found: Value = serde_json::from_str(&run.stdout)?;
                let fault = &found["error"];
                let told = fault["kind"].is_string() && fault["message"].as_str().is_some_and(|text| text.len() > 9);
                if run.code != Some(1) || !told {
                    return Err(format!("{verb}: {}: {run:?}", entry["reason"]).into());
                }
            }
            Ok(())
        })
    };
    entries.into_iter().map(trial).collect()
}
