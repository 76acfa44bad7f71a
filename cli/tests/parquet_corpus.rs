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
        let mut trials = sections(&corpus);
        trials.extend(files(&corpus));
        trials
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

/// Files of Parquet, through the verbs that read them.
fn files(corpus: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for folder in ["", "matrix", "special", "handmade", "writers", "parquet-testing", "bad_data"] {
        let entries = fs::read_dir(corpus.join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            trials.push(Trial::test(format!("{folder} {name}"), move || match (folder, name.as_str()) {
                // A number in its first header has another type; and it is cut: its other columns lie behind its end.
                ("bad_data", "ARROW-RS-GH-6229-DICTHEADER") => {
                    damaged(&path, &["wrong_type", "out_of_range", "out_of_range", "out_of_range"])
                }
                ("bad_data", "ARROW-RS-GH-6229-LEVELS") => damaged(&path, &["truncated"]),
                ("bad_data", "ARROW-GH-41317") => damaged(&path, &["syntax"]),
                ("bad_data", "ARROW-GH-45185") => damaged(&path, &["out_of_range"]),
                // Indices of no bits, which are sound.
                ("bad_data", "ARROW-GH-43605") => run("verify", &path, &[], 0).map(drop),
                (_, "rle-dict-uncompressed-corrupt-checksum") => damaged(&path, &["checksum"; 2]),
                _ => sound(&path),
            }));
        }
    }
    trials
}

/// What a verb prints as JSON about a file, if it ends so.
fn run(verb: &str, path: &Path, options: &[&str], code: i32) -> Result<Value, Failed> {
    let path = path.to_str().ok_or("a path that is text")?;
    let run = tilekern([verb, path, "--json"].into_iter().chain(options.iter().copied()));
    let found: Value = serde_json::from_str(&run.stdout).map_err(|e| format!("{verb} {path}: {e}: {run:?}"))?;
    if run.code != Some(code) {
        let (errors, faults) = (&found["error"], &found["paths"][0]["faults"]);
        return Err(format!("{verb} {path}: code {:?}, expected {code}: {errors} {faults}", run.code).into());
    }
    Ok(found)
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, Failed> {
    value[key].as_array().ok_or_else(|| format!("no list {key}").into())
}

/// A file that every verb reads, and what they say of it.
fn sound(path: &Path) -> Result<(), Failed> {
    let expected = json(&path.with_extension("json"));
    let checked = run("verify", path, &[], 0)?;
    if checked["sound"] != true || checked["paths"][0]["kind"] != "parquet" {
        return Err(checked.to_string().into());
    }
    let decoded = run("decode", path, &[], 0)?;
    let (found, columns) = (list(&decoded, "columns")?, list(&expected, "columns")?);
    if found.len() != columns.len() {
        return Err(format!("{} columns, expected {}", found.len(), columns.len()).into());
    }
    for (found, column) in found.iter().zip(columns) {
        let printed = column["form"] == "python str";
        for key in ["name", "physical_type", "type_length", "max_def", "max_rep", "values"] {
            // Some writers state a length for other types as well.
            let means_nothing = key == "type_length" && column["physical_type"] != "FIXED_LEN_BYTE_ARRAY";
            let skipped = means_nothing || printed && key == "values";
            if column.get(key).is_some() && found[key] != column[key] && !skipped {
                return Err(format!("{}: {key} differs: {}", column["name"], found[key]).into());
            }
        }
    }
    same_rows(path, &expected, found)?;
    for (column, found) in found.iter().enumerate() {
        traced(path, column, &found["name"], &expected)?;
    }
    let facts = run("pages", path, &[], 0)?;
    let (found, pages) = (list(&facts, "pages")?, list(&expected, "pages")?);
    if found.len() != pages.len() {
        return Err(format!("{} pages, expected {}", found.len(), pages.len()).into());
    }
    for (found, page) in found.iter().zip(pages) {
        let facts = page.as_object().ok_or("a page")?;
        if let Some((key, value)) = facts.iter().find(|(key, value)| found[*key] != **value) {
            return Err(format!("{key} is not {value}: {found}").into());
        }
    }
    let info = run("info", path, &[], 0)?;
    let by = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Of some the corpus has the end alone.
    let same_writer = by(&info["created_by"]).ends_with(&by(&expected["created_by"]));
    if info["num_rows"] != expected["rows"] || !same_writer {
        return Err(format!("{info}").into());
    }
    match info["columns"].as_array() {
        Some(columns) if columns.iter().all(|column| column["plain_bytes"].is_u64()) => Ok(()),
        _ => Err(format!("{info}").into()),
    }
}

/// Each page of a column has its steps, and those that the corpus holds are the same.
fn traced(path: &Path, column: usize, name: &Value, expected: &Value) -> Result<(), Failed> {
    let trace = run("trace", path, &[&column.to_string(), "--values"], 0)?;
    let pages = list(&trace, "pages")?;
    let of_column = |page: &&Value| page["col"].as_u64() == Some(column as u64);
    let known: Vec<&Value> = list(expected, "pages")?.iter().filter(of_column).collect();
    if pages.len() != known.len() {
        return Err(format!("{} pages traced, expected {}", pages.len(), known.len()).into());
    }
    for (page, known) in pages.iter().zip(known) {
        for key in ["rg", "type", "encoding", "codec", "header_start", "body_start", "body_end", "num_values"] {
            if page[key] != known[key] {
                return Err(format!("{key} is not {}: {page}", known[key]).into());
            }
        }
        let stored = if known["non_null"].is_u64() { &known["non_null"] } else { &known["num_values"] };
        let whole = stored.as_u64() == Some(list(page, "values")?.len() as u64);
        if list(page, "header_steps")?.is_empty() || page.get("error").is_some() || !whole {
            return Err(format!("{page}").into());
        }
    }
    let Some(steps) = expected["trace"].as_array().and_then(|all| all.iter().find(|one| one["column"] == *name)) else {
        return Ok(());
    };
    let data = pages.iter().find(|page| page["type"] == "DATA_PAGE").ok_or("no data page")?;
    let (found, expected) = (list(data, "steps")?, list(steps, "steps")?);
    let alike =
        |found: &Value, step: &Value| ["label", "start", "end", "detail"].iter().all(|key| found[key] == step[key]);
    if found.len() != expected.len() || !found.iter().zip(expected).all(|(found, step)| alike(found, step)) {
        return Err(format!("steps {found:?}, expected {expected:?}").into());
    }
    Ok(())
}

/// Row by row the values are those of the columns.
fn same_rows(path: &Path, expected: &Value, columns: &[Value]) -> Result<(), Failed> {
    let run = tilekern(["decode", path.to_str().ok_or("a path that is text")?, "-o", "-"]);
    let rows: Result<Vec<Value>, _> = run.stdout.lines().map(serde_json::from_str).collect();
    let rows = rows?;
    if run.code != Some(0) || Some(rows.len() as u64) != expected["rows"].as_u64() {
        return Err(format!("{} rows: code {:?} {}", rows.len(), run.code, run.stderr).into());
    }
    for column in columns {
        let (name, values) = (column["name"].as_str().ok_or("a name")?, list(column, "values")?);
        if let Some(n) = rows.iter().zip(values).position(|(row, value)| row[name] != *value) {
            return Err(format!("{name} of row {n} is {}", rows[n][name]).into());
        }
    }
    Ok(())
}

/// A file with such faults, which is not read either.
fn damaged(path: &Path, kinds: &[&str]) -> Result<(), Failed> {
    let checked = run("verify", path, &[], 1)?;
    let faults = list(&checked["paths"][0], "faults")?;
    let found: Vec<_> = faults.iter().filter_map(|fault| fault["kind"].as_str()).collect();
    if found != kinds {
        return Err(format!("{faults:?}").into());
    }
    let decoded = run("decode", path, &[], 1)?;
    if decoded["error"]["kind"] != kinds[0] || decoded["error"]["message"].as_str().is_none_or(|text| text.len() < 10) {
        return Err(format!("{}", decoded["error"]).into());
    }
    Ok(())
}
