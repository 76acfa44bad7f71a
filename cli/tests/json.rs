//! What `--json` prints is what docs/json.md says, key by key.

mod support;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use support::{dataset_with_obs, mlt, parquet, tile, tilekern};
use tempfile::tempdir;

const DOCUMENT: &str = include_str!("../../docs/json.md");

/// Path of a key, such as `chunks[].cells`, and the types that the document allows for it.
type Schema = BTreeMap<String, Vec<String>>;

/// The schema of each section of the document that has one.
fn schemas() -> BTreeMap<String, Schema> {
    let mut schemas = BTreeMap::new();
    for section in DOCUMENT.split("\n## ").skip(1) {
        let (title, body) = section.split_once('\n').expect("a title");
        let table = body.split_once("| key | type | meaning |\n|---|---|---|\n");
        let (_, table) = table.unwrap_or_else(|| panic!("{title} has no table"));
        let mut schema = Schema::new();
        for row in table.lines().take_while(|line| line.starts_with('|')) {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let (key, types) = (cells.next().expect("a key"), cells.next().expect("a type"));
            let types = types.split([' ', ',']).filter(|word| !word.is_empty() && *word != "or");
            schema.insert(key.trim_matches('`').to_owned(), types.map(str::to_owned).collect());
        }
        schemas.insert(title.to_owned(), schema);
    }
    schemas
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Passes a value whose every key is documented with its type, and which lacks no documented key.
fn check(schema: &Schema, path: &str, value: &Value) {
    if let Some(types) = schema.get(path) {
        if types.iter().any(|allowed| allowed == "any") {
            return;
        }
        let found = kind(value);
        let fits = types.iter().any(|allowed| allowed == found || (allowed == "number" && found == "integer"));
        assert!(fits, "{path} is {value}, documented as {types:?}");
    } else {
        // The whole, and elements of lists of objects, have no line of their own.
        assert!(value.is_object() && (path.is_empty() || path.ends_with("[]")), "{path} is not documented: {value}");
    }
    match value {
        Value::Object(keys) => {
            let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
            for (key, value) in keys {
                check(schema, &format!("{prefix}{key}"), value);
            }
            for (documented, types) in schema {
                let key = documented.strip_prefix(&prefix).filter(|key| !key.is_empty() && !key.contains(['.', '[']));
                let absent = key.is_some_and(|key| !keys.contains_key(key));
                assert!(!absent || types.iter().any(|t| t == "absent"), "{documented} is missing in {value}");
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| check(schema, &format!("{path}[]"), element)),
        _ => {}
    }
}

/// The keys that a value has, with elements of lists as one.
fn keys(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(keys_of) => {
            for (key, value) in keys_of {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.push(path.clone());
                keys(&path, value, found);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                found.push(format!("{path}[]"));
                keys(&format!("{path}[]"), element, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_verb_prints_what_is_documented() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    tile(&folder.path().join("a.dct"), 20, 10);
    tile(&folder.path().join("none.dct"), 0, 10);
    let mut damaged = fs::read(at("a.dct")).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(at("damaged.dct"), damaged).unwrap();
    let (a, none, damaged, absent) = (at("a.dct"), at("none.dct"), at("damaged.dct"), at("absent"));
    let (dataset, output) = (at("dataset"), at("out.mtx"));
    let (h5ad, plot) = (at("out.h5ad"), at("out.svg"));
    let (matrix, converted) = (at("matrix.mtx"), at("converted"));
    fs::write(&matrix, "%%MatrixMarket matrix coordinate integer general\n3 2 1\n1 1 1\n").unwrap();
    let broken = at("broken");
    assert_eq!(tilekern(["convert", &matrix, &broken]).code, Some(0));
    fs::remove_file(at("broken/var_names.txt")).unwrap();
    let (table, odd) = (at("table"), at("odd"));
    dataset_with_obs(table.as_ref());
    dataset_with_obs(odd.as_ref());
    // A fingerprint that is not that of the table.
    let manifest = fs::read_to_string(at("odd/manifest.json")).unwrap();
    let (before, after) = manifest.split_once("\"obs_fingerprint\": \"").unwrap();
    let odd_manifest = format!("{before}\"obs_fingerprint\": \"{:024}{}", 0, &after[24..]);
    fs::write(at("odd/manifest.json"), odd_manifest).unwrap();

    let (orders, small, torn) = (at("orders.parquet"), at("small.parquet"), at("torn.parquet"));
    parquet::orders(orders.as_ref());
    parquet::small(small.as_ref());
    let mut bytes = fs::read(&orders).unwrap();
    let pages = tilekern(["pages", &orders, "--json"]).json();
    let first = usize::try_from(pages["pages"][0]["body_start"].as_u64().unwrap()).unwrap();
    bytes[first..first + 11].fill(0xff);
    fs::write(&torn, bytes).unwrap();
    let (checked, cut_off) = (at("v2.parquet"), at("cut_off.parquet"));
    parquet::version_2(checked.as_ref());
    // A header whose first field is of no type.
    let mut bytes = fs::read(&orders).unwrap();
    bytes[4] = 0x1f;
    fs::write(&cut_off, bytes).unwrap();
    let (deltas, html, lines) = (at("deltas.bin"), at("trace.html"), at("out.jsonl"));
    fs::write(&deltas, [0x80, 0x01, 0x04, 0x05, 0x0e, 0x04, 0x00, 0x00, 0x00, 0x00]).unwrap();
    let payload = ["payload", &deltas, "--encoding", "DELTA_BINARY_PACKED", "--type", "INT64", "--count"];
    let payload =
        |more: &[&'static str]| -> Vec<String> { payload.iter().chain(more).map(|&s| s.to_owned()).collect() };
    let (whole, traced, cut) = (payload(&["5"]), payload(&["5", "--trace"]), payload(&["6", "--trace"]));
    let [whole, traced, cut] =
        [&whole, &traced, &cut].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());

    let (small_tile, odd_tile, torn_tile) = (at("tile.mlt"), at("odd.mlt"), at("torn.mlt"));
    fs::write(&small_tile, mlt::tile()).unwrap();
    fs::write(&odd_tile, mlt::odd()).unwrap();
    let mut bytes = mlt::tile();
    let text = bytes.windows(3).position(|bytes| bytes == b"abc").unwrap();
    bytes[text] = 0xff;
    fs::write(&torn_tile, bytes).unwrap();
    let twin_tile = at("twin.mlt");
    // Two columns of one name.
    let (geometry, one) = ([2, 0x30, 0x02, 1, 1, 0, 0x13, 0x42, 2, 2, 0, 0], [0x10, 0x02, 1, 1, 2]);
    let twins = mlt::layer("l", &[&[4], b"\x10\x01n", b"\x10\x01n"], &[&geometry, &one, &one]);
    fs::write(&twin_tile, twins).unwrap();
    let cut_tile = at("cut.mlt");
    fs::write(&cut_tile, &mlt::tile()[..100]).unwrap();
    let (archive, database) = (at("a.pmtiles"), at("a.mbtiles"));
    mlt::pmtiles(archive.as_ref(), pmtiles::TileType::Mlt, pmtiles::Compression::None);
    drop(mlt::mbtiles(database.as_ref(), "mlt", &mlt::tile()));
    let (tile_json, tile_html) = (at("tile.json"), at("tile.html"));

    let sample = ["sample", &dataset, "--cells", "30", "--genes", "200", "--tile-size", "20", "--profile", "quick"];
    let cases: &[(&str, i32, &[&[&str]])] = &[
        ("`tilekern sample`", 0, &[&sample]),
        (
            "Errors",
            1,
            &[
                &["info", &absent],
                &["info", &damaged],
                &["decode", &absent],
                &["decode", &damaged],
                &["decode", &table, "--genes", "none"],
                &["decode", &a, "--cost"],
                &["head", &damaged],
                &["stats", &a, "--where", "n > 3"],
                &["trace", &absent],
                &["sample", &dataset],
                &["obs", &a],
                &["obs", &dataset],
                &["obs", &table, "no such"],
                &["obs", &table, "--where", "no_such"],
                &["obs", &table, "--cells", "0..9"],
                &["repair", &absent, "--from", &matrix],
                &["head", &orders],
                &["info", &orders, "--as", "deltacel"],
                &["decode", &orders, "--column", "none"],
                &["decode", &torn, "-o", &lines],
                &["pages", &a],
                &["trace", &orders, "place"],
                &["info", &cut_tile],
                &["decode", &archive],
                &["decode", &small_tile, "--layer", "none"],
            ],
        ),
        ("`tilekern info`, Parquet", 0, &[&["info", &orders], &["info", &small], &["info", &torn]]),
        ("`tilekern pages`", 0, &[&["pages", &orders], &["pages", &small], &["pages", &checked]]),
        ("`tilekern pages`", 1, &[&["pages", &cut_off]]),
        ("`tilekern decode`, Parquet", 0, &[&["decode", &orders], &["decode", &small]]),
        ("`tilekern decode`, Parquet", 1, &[&["decode", &torn]]),
        ("`tilekern decode`, Parquet to a file", 0, &[&["decode", &orders, "-o", &lines]]),
        ("`tilekern trace`, Parquet", 0, &[&["trace", &orders, "id"], &["trace", &orders, "tags", "--values"]]),
        ("`tilekern trace`, Parquet", 1, &[&["trace", &torn, "id"]]),
        ("`tilekern trace --html`", 0, &[&["trace", &orders, "id", "--html", &html]]),
        ("`tilekern trace --html`", 1, &[&["trace", &torn, "id", "--html", &html]]),
        ("`tilekern info`, map tile", 0, &[&["info", &small_tile], &["info", &odd_tile], &["info", &twin_tile]]),
        ("`tilekern info`, archive of map tiles", 0, &[&["info", &archive], &["info", &database]]),
        (
            "`tilekern decode`, map tile",
            0,
            &[&["decode", &small_tile], &["decode", &odd_tile], &["decode", &small_tile, "--column", "rank"]],
        ),
        ("`tilekern decode`, map tile", 1, &[&["decode", &torn_tile]]),
        ("`tilekern decode --digest`", 0, &[&["decode", &small_tile, "--digest"], &["decode", &odd_tile, "--digest"]]),
        ("`tilekern decode --digest`", 1, &[&["decode", &torn_tile, "--digest"]]),
        ("`tilekern decode`, map tile to a file", 0, &[&["decode", &small_tile, "-o", &tile_json]]),
        ("`tilekern trace`, map tile", 0, &[&["trace", &small_tile], &["trace", &small_tile, "places.rank"]]),
        ("`tilekern trace`, map tile", 1, &[&["trace", &cut_tile]]),
        ("`tilekern trace --html`, map tile", 0, &[&["trace", &small_tile, "--html", &tile_html]]),
        ("`tilekern trace --html`, map tile", 1, &[&["trace", &cut_tile, "--html", &tile_html]]),
        ("`tilekern verify`", 0, &[&["verify", &small_tile, &archive, &database]]),
        ("`tilekern bench --family mlt`", 0, &[&["bench", "--family", "mlt", &small_tile, "--rounds", "1", "--quiet"]]),
        ("`tilekern payload`", 0, &[&whole, &traced]),
        ("`tilekern payload`", 1, &[&cut]),
        ("`tilekern info`, tile", 0, &[&["info", &a], &["info", &none]]),
        ("`tilekern info`, dataset", 0, &[&["info", &dataset], &["info", &table]]),
        ("`tilekern convert`", 0, &[&["convert", &matrix, &converted]]),
        ("`tilekern repair`", 1, &[&["repair", &broken, "--from", &matrix, "--dry-run"]]),
        (
            "`tilekern repair`",
            0,
            &[&["repair", &broken, "--from", &matrix], &["repair", &broken, "--from", &matrix, "--dry-run"]],
        ),
        ("`tilekern verify`", 0, &[&["verify", &a, &none, &dataset, &table], &["verify", &odd, "--quiet"]]),
        ("`tilekern verify`", 0, &[&["verify", &orders]]),
        ("`tilekern verify`", 1, &[&["verify", &damaged, &a, &absent], &["verify", &torn, &cut_off]]),
        ("`tilekern decode`, summary", 0, &[&["decode", &a], &["decode", &none], &["decode", &dataset]]),
        ("`tilekern decode`, to a file", 0, &[&["decode", &a, "-o", &output], &["decode", &table, "-o", &h5ad]]),
        (
            "`tilekern decode --cost`",
            0,
            &[&["decode", &dataset, "--cost"], &["decode", &table, "--cost", "--genes", "3"]],
        ),
        ("`tilekern head`", 0, &[&["head", &a], &["head", &none], &["head", &dataset], &["head", &table]]),
        (
            "`tilekern stats`",
            0,
            &[&["stats", &a], &["stats", &none], &["stats", &dataset], &["stats", &dataset, "-o", &plot]],
        ),
        ("`tilekern obs`, columns", 0, &[&["obs", &table]]),
        (
            "`tilekern obs`, values",
            0,
            &[
                &["obs", &table, "n", "score", "ok", "barcode", "cell type"],
                &["obs", &table, "--where", "ok"],
                &["obs", &table, "n", "--cells", "1..1"],
            ],
        ),
        ("`tilekern trace`", 0, &[&["trace", &a], &["trace", &none]]),
        ("`tilekern trace`", 1, &[&["trace", &damaged]]),
        ("`tilekern bench`", 0, &[&["bench", &a, "--rounds", "1", "--quiet"]]),
        (
            "`tilekern bench --family parquet`",
            0,
            &[&["bench", "--family", "parquet", "--values", "2000", "--rounds", "1", "--quiet"]],
        ),
        ("`tilekern demo`", 0, &[&["demo", "--quiet"]]),
    ];
    let schemas = schemas();
    let mut seen: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (title, code, commands) in cases {
        let schema = schemas.get(*title).unwrap_or_else(|| panic!("no section {title}"));
        for command in *commands {
            let run = tilekern(command.iter().copied().chain(["--json"]));
            assert_eq!((run.code, run.stderr.as_str()), (Some(*code), ""), "{command:?}: {run:?}");
            assert_eq!(run.stdout.lines().count(), 1, "{command:?}: {run:?}");
            let value = run.json();
            check(schema, "", &value);
            keys("", &value, seen.entry(title).or_default());
        }
    }
    // Each documented key was printed by some command: no line of the document is out of use.
    for (title, seen) in seen {
        for key in schemas[title].keys() {
            assert!(seen.contains(key), "{title}: {key} is documented, but no command printed it");
        }
    }
}

#[test]
fn every_kind_of_error_is_documented() {
    let source = concat!(include_str!("../../src/error.rs"), include_str!("../../src/mlt/fault.rs"));
    for (start, least) in [
        ("impl MltFault {\n", 60),
        ("impl ErrorKind {\n    /// The kind's stable, lower-case name, as in the `--json` output.\n", 20),
        ("impl EncodingFault {\n", 20),
    ] {
        let (_, names) = source.split_once(start).expect("the names of the kinds");
        let (names, _) = names.split_once("\n    }\n").expect("their end");
        let names: Vec<&str> = names.lines().filter_map(|line| line.split('"').nth(1)).collect();
        assert!(names.len() > least, "{names:?}");
        for name in names {
            assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
        }
    }
}
