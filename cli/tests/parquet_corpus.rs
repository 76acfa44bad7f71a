//! The command on the Parquet conformance corpus.

mod support;

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{fixtures, switched_on, tilekern};
use tempfile::NamedTempFile;

fn main() {
    let arguments = Arguments::from_args();
    let corpus = fixtures().join("fixtures/parquet");
    let trials = if corpus.is_dir() {
        sections(&corpus)
    } else {
        let message = format!("no corpus at {}; set TILEKERN_FIXTURES", corpus.display());
        let required = switched_on("TILEKERN_REQUIRE_FIXTURES");
        vec![Trial::test("corpus parquet", move || Err(Failed::from(message))).with_ignored_flag(!required)]
    };
    libtest_mimic::run(&arguments, trials).exit()
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn entries(path: &Path) -> Vec<Value> {
    json(path).as_array().expect("a list").clone()
}

/// `raw/` and `malformed/`, through `payload`.
fn sections(corpus: &Path) -> Vec<Trial> {
    let raw = corpus.join("raw");
    let sound = entries(&raw.join("index.json")).into_iter().map(move |entry| {
        let id = entry["id"].as_str().expect("an id").to_owned();
        let (section, expected) = (raw.join(format!("{id}.bin")), raw.join(format!("{id}.json")));
        Trial::test(format!("raw {id}"), move || decodes(&section, &json(&expected)))
    });
    let malformed = corpus.join("malformed");
    let odd = entries(&malformed.join("index.json")).into_iter().map(move |entry| {
        let section = malformed.join(entry["file"].as_str().expect("a file"));
        Trial::test(format!("malformed {}", entry["id"]), move || match entry["error"].as_str() {
            Some(kind) => fails(&section, &entry, kind),
            None => decodes(&section, &entry),
        })
    });
    sound.chain(odd).collect()
}

/// The command's words for a section, and the file that holds its dictionary.
fn words(section: &Path, case: &Value) -> Result<(Vec<String>, Option<NamedTempFile>), Failed> {
    let mut words = vec!["payload".to_owned(), section.to_str().ok_or("a path that is text")?.to_owned()];
    for (option, key) in [
        ("encoding", "encoding"),
        ("count", "count"),
        ("type", "physical_type"),
        ("type-length", "type_length"),
        ("bit-width", "bit_width"),
    ] {
        let value = match &case[key] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        words.extend([format!("--{option}"), value]);
    }
    let page = match (&case["dictionary_page"], &case["dictionary"]) {
        (Value::String(page), _) => unhex(page),
        (_, Value::Array(values)) => page(values, case["physical_type"].as_str().unwrap_or_default()),
        _ => return Ok((words, None)),
    };
    let file = NamedTempFile::new()?;
    fs::write(file.path(), page)?;
    words.extend(["--dictionary".to_owned(), file.path().to_string_lossy().into_owned()]);
    Ok((words, Some(file)))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("digits"), 16).expect("digits")).collect()
}

/// Values in the corpus's form as a PLAIN page.
fn page(values: &[Value], kind: &str) -> Vec<u8> {
    let mut page = Vec::new();
    for value in values {
        let text = value.as_str().unwrap_or_default();
        match kind {
            "INT32" => page.extend(i32::try_from(value.as_i64().expect("a number")).expect("32 bits").to_le_bytes()),
            "INT64" => page.extend(text.parse::<i64>().expect("a number").to_le_bytes()),
            "FLOAT" | "DOUBLE" => page.extend(unhex(&text[2..]).into_iter().rev()),
            "BYTE_ARRAY" => {
                page.extend(u32::try_from(text.len() / 2).expect("short").to_le_bytes());
                page.extend(unhex(text));
            }
            _ => page.extend(unhex(text)),
        }
    }
    page
}

fn decodes(section: &Path, case: &Value) -> Result<(), Failed> {
    let (words, _dictionary) = words(section, case)?;
    let run = tilekern(words.iter().map(String::as_str).chain(["--json", "--trace"]));
    let found: Value = serde_json::from_str(&run.stdout).map_err(|e| format!("{e}: {run:?}"))?;
    if run.code != Some(0) || found["values"] != case["values"] {
        return Err(format!("{words:?}: {run:?}").into());
    }
    if case["consumed"].is_u64() && case["consumed"] != found["consumed"] {
        return Err(format!("{} bytes consumed, expected {}", found["consumed"], case["consumed"]).into());
    }
    if let Some(expected) = case["steps"].as_array() {
        let steps = found["steps"].as_array().ok_or("steps")?;
        let alike =
            |found: &Value, step: &Value| ["label", "start", "end", "detail"].iter().all(|key| found[key] == step[key]);
        if steps.len() != expected.len() || !steps.iter().zip(expected).all(|(found, step)| alike(found, step)) {
            return Err(format!("steps {steps:?}, expected {expected:?}").into());
        }
    }
    Ok(())
}

fn fails(section: &Path, case: &Value, kind: &str) -> Result<(), Failed> {
    let (words, _dictionary) = words(section, case)?;
    let run = tilekern(words.iter().map(String::as_str).chain(["--json"]));
    let found: Value = serde_json::from_str(&run.stdout).map_err(|e| format!("{e}: {run:?}"))?;
    if run.code != Some(1) || found["error"]["kind"].as_str() != Some(kind) {
        return Err(format!("expected {kind}: {run:?}").into());
    }
    Ok(())
}
