//! The verbs on Parquet files that are made here.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use support::parquet::orders;
use support::{Run, names, tile, tilekern, tilekern_with};
use tempfile::{TempDir, tempdir};

/// A folder with such a file.
fn made() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("orders.parquet");
    orders(&path);
    (folder, path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The command, with these words around the path.
fn run(verb: &str, path: &Path, options: &str) -> Run {
    tilekern([verb, text(path)].into_iter().chain(options.split(' ').filter(|word| !word.is_empty())))
}

/// What it prints as JSON, if it ends with 0.
fn sound(verb: &str, path: &Path, options: &str) -> Value {
    let run = run(verb, path, &format!("--json {options}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{verb} {options}: {run:?}");
    run.json()
}

/// The kind and the part of the fault with which it ends.
fn fault(verb: &str, path: &Path, options: &str) -> (String, String) {
    let run = run(verb, path, &format!("--json {options}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{verb} {options}: {run:?}");
    let error = &run.json()["error"];
    let word = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (word("kind"), word("part"))
}

#[test]
fn info_tells_columns_and_sizes() {
    let (_folder, path) = made();
    let info = sound("info", &path, "");
    assert_eq!((&info["kind"], &info["num_rows"]), (&json!("parquet"), &json!(600)));
    assert_eq!(info["row_groups"].as_array().map(Vec::len), Some(2));
    assert_eq!(info["metadata"], json!(["origin"]));
    let column = |n: usize| &info["columns"][n];
    let facts = |n: usize| ["name", "column", "physical_type", "logical_type", "repetition"].map(|key| &column(n)[key]);
    assert_eq!(facts(0), [&json!("id"), &json!("id"), &json!("INT64"), &Value::Null, &json!("required")]);
    assert_eq!(facts(1)[2..], [&json!("BYTE_ARRAY"), &json!("STRING"), &json!("optional")]);
    assert_eq!(facts(3)[..2], [&json!("tags"), &json!("tags.list.item")]);
    assert_eq!(facts(3)[4], "repeated");
    assert_eq!(facts(4)[..2], [&json!("place.x"), &json!("place.x")]);
    assert_eq!((&column(0)["encodings"], &column(0)["dictionary"]), (&json!(["DELTA_BINARY_PACKED"]), &Value::Null));
    assert_eq!((&column(1)["dictionary"], &column(1)["codecs"]), (&json!("whole"), &json!(["SNAPPY"])));
    assert_eq!(
        (&column(6)["encodings"], &column(6)["dictionary"]),
        (&json!(["RLE_DICTIONARY", "PLAIN"]), &json!("fallback"))
    );
    // Bytes as PLAIN: all values of 8, all that are not null of 4 and two letters, all of 4.
    assert_eq!([0, 1, 2].map(|n| column(n)["plain_bytes"].as_u64()), [4800, 3000, 2400].map(Some));
    let stored: i64 = (0..7).filter_map(|n| column(n)["compressed_bytes"].as_i64()).sum();
    let groups: i64 = (0..2).filter_map(|n| info["row_groups"][n]["compressed_bytes"].as_i64()).sum();
    assert!(stored == groups && stored < info["bytes"].as_i64().unwrap());
    let text = run("info", &path, "");
    for words in ["Parquet, 600 rows, 7 columns, 2 row groups", "metadata: origin", "(dictionary fallback)", "SNAPPY"] {
        assert!(text.stdout.contains(words), "{words}: {text:?}");
    }
}

#[test]
fn pages_are_listed() {
    let (_folder, path) = made();
    let all = sound("pages", &path, "");
    let all = all["pages"].as_array().unwrap();
    let country = sound("pages", &path, "country --row-group 1");
    let country = country["pages"].as_array().unwrap();
    assert_eq!(country.len(), 2);
    assert!(country.iter().all(|page| all.contains(page) && page["rg"] == 1 && page["col"] == 1));
    let facts = ["page", "type", "encoding", "codec"].map(|key| &country[1][key]);
    assert_eq!(facts, [&json!(1), &json!("DATA_PAGE"), &json!("RLE_DICTIONARY"), &json!("SNAPPY")]);
    assert_eq!((&country[1]["num_values"], &country[1]["non_null"]), (&json!(200), &json!(166)));
    // Behind each other, without gaps, in each chunk.
    for two in all.windows(2).filter(|two| two[0]["col"] == two[1]["col"] && two[0]["rg"] == two[1]["rg"]) {
        assert_eq!(two[0]["body_end"], two[1]["header_start"]);
    }
    // By name, by path, by number; a field with several columns is all of them.
    for word in ["tags", "tags.list.item", "3"] {
        assert_eq!(sound("pages", &path, word), sound("pages", &path, "tags"), "{word}");
    }
    let place = sound("pages", &path, "place");
    let columns: Vec<_> = place["pages"].as_array().unwrap().iter().map(|page| page["column"].as_str()).collect();
    assert!(columns.contains(&Some("place.x")) && columns.contains(&Some("place.y")), "{columns:?}");
    let text = run("pages", &path, "country");
    assert_eq!((text.code, text.stdout.lines().count()), (Some(0), 6), "{text:?}");
    assert_eq!(fault("pages", &path, "none"), ("missing".to_owned(), "columns".to_owned()));
    assert_eq!(fault("pages", &path, "--row-group 2"), ("out_of_range".to_owned(), "row groups".to_owned()));
    assert!(run("pages", &path, "none").stderr.contains("id, country, weight"));
    assert!(run("pages", &path, "--row-group 2").stderr.contains("choose one of 0 to 1"));
}

/// The values of a row in their JSON form.
fn row(i: usize) -> Value {
    let country = if i % 6 == 5 { Value::Null } else { json!(["554b", "4445", "4652"][i % 3]) };
    let tags = match i % 4 {
        0 => Value::Null,
        1 => json!([]),
        2 => json!(["61", null]),
        _ => json!(["62"]),
    };
    let there = !i.is_multiple_of(7);
    json!({
        "id": (1000 + i).to_string(),
        "country": country,
        "weight": format!("0x{:08x}", (i as f32 / 2.0).to_bits()),
        "tags": tags,
        "place.x": if there { json!(i) } else { Value::Null },
        "place.y": if there { json!(i.is_multiple_of(2)) } else { Value::Null },
        "note": format!("note {i}").bytes().map(|byte| format!("{byte:02x}")).collect::<String>(),
    })
}

#[test]
fn values_are_decoded() {
    let (folder, path) = made();
    let decoded = sound("decode", &path, "");
    assert_eq!(decoded["num_rows"], 600);
    let columns = decoded["columns"].as_array().unwrap();
    for column in columns {
        let name = column["name"].as_str().unwrap();
        let expected: Vec<Value> = (0..600).map(|i| row(i)[name].clone()).collect();
        assert_eq!(column["values"].as_array(), Some(&expected), "{name}");
    }
    let some = sound("decode", &path, "--column place --column id --row-group 1");
    let some = some["columns"].as_array().unwrap();
    let names_of: Vec<_> = some.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names_of, ["place.x", "place.y", "id"]);
    assert_eq!(some[2]["values"][0], "1400");
    // Rows, to standard output and to a file.
    let lines = run("decode", &path, "-o -");
    let rows: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows, (0..600).map(row).collect::<Vec<_>>());
    let out = folder.path().join("out.jsonl");
    let written = sound("decode", &path, &format!("-o {}", text(&out)));
    assert_eq!(fs::read_to_string(&out).unwrap(), lines.stdout);
    assert_eq!((&written["num_rows"], &written["n_columns"]), (&json!(600), &json!(7)));
    assert_eq!((&written["format"], &written["bytes"]), (&json!("jsonl"), &json!(lines.stdout.len())));
    let said = run("decode", &path, &format!("-o {} --column id", text(&out)));
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    assert!(said.stderr.contains("600 rows of 1 column"), "{said:?}");
    let summary = run("decode", &path, "");
    assert_eq!((summary.code, summary.stdout.lines().count()), (Some(0), 8), "{summary:?}");
    assert!(summary.stdout.contains("1000, 1001, 1002, 1003, 1004, …"), "{summary:?}");
    // The same through a pipe.
    let piped = tilekern_with(["decode", "-", "--json"], &fs::read(&path).unwrap());
    assert_eq!((piped.code, &piped.json()["columns"]), (Some(0), &decoded["columns"]));
    // Every kind of kernels gives the same.
    for level in tilekern::kernels::Kernels::available() {
        assert_eq!(sound("decode", &path, &format!("--kernel {}", level.name())), decoded);
    }
    assert_eq!(names(folder.path()), ["orders.parquet", "out.jsonl"]);
}

/// The rows of an Arrow file, in one batch.
fn batch(path: &Path) -> RecordBatch {
    let reader = FileReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

#[test]
fn arrow_files_hold_what_another_reader_gives() {
    let (folder, path) = made();
    let out = folder.path().join("out.arrow");
    let written = sound("decode", &path, &format!("-o {}", text(&out)));
    assert_eq!(
        (&written["num_rows"], &written["n_columns"], &written["format"]),
        (&json!(600), &json!(7), &json!("arrow"))
    );
    let found = batch(&out);
    let other = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path).unwrap()).unwrap();
    let schema = other.schema().clone();
    let batches: Vec<RecordBatch> = other.build().unwrap().map(Result::unwrap).collect();
    let expected = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
    assert_eq!(found.num_columns(), 6);
    for (column, expected) in expected.columns().iter().enumerate() {
        assert_eq!(found.column(column), expected, "{}", schema.field(column).name());
    }
    // Some fields of one row group.
    sound("decode", &path, &format!("--column tags --column place --row-group 1 -o {}", text(&out)));
    let found = batch(&out);
    let names_of: Vec<_> = found.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!((found.num_rows(), names_of), (200, vec!["tags".to_owned(), "place".to_owned()]));
    let part = run("decode", &path, &format!("--column place.x -o {}", text(&out)));
    assert!(part.code == Some(2) && part.stderr.contains("--column place"), "{part:?}");
    assert_eq!(names(folder.path()), ["orders.parquet", "out.arrow"]);
}

/// Reading a column does not look at all the others again: that took minutes.
#[test]
fn many_columns_are_read_in_a_moment() {
    let folder = tempdir().unwrap();
    let (path, output) = (folder.path().join("wide.parquet"), folder.path().join("wide.arrow"));
    support::parquet::wide(&path, 20_000);
    let start = std::time::Instant::now();
    sound("decode", &path, &format!("-o {}", text(&output)));
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    let batch = FileReader::try_new(fs::File::open(output).unwrap(), None).unwrap().next().unwrap().unwrap();
    assert_eq!((batch.num_columns(), batch.column(19_999).as_primitive::<Int32Type>().value(0)), (20_000, 19_999));
}

#[test]
fn decoding_ends_in_faults_and_leaves_nothing() {
    let (folder, path) = made();
    assert_eq!(fault("decode", &path, "--column none").0, "missing");
    assert_eq!(fault("decode", &path, "--max-output 1000").0, "limit_exceeded");
    let mut bytes = fs::read(&path).unwrap();
    let pages = sound("pages", &path, "id --row-group 1");
    let at = usize::try_from(pages["pages"][0]["body_start"].as_u64().unwrap()).unwrap();
    bytes[at..at + 10].fill(0xff);
    let broken = folder.path().join("broken.parquet");
    fs::write(&broken, &bytes).unwrap();
    let (kind, part) = fault("decode", &broken, "");
    assert_eq!(
        (kind.as_str(), part.starts_with("row group 1, column 0, page 0, ")),
        ("varint_overflow", true),
        "{part}"
    );
    let out = folder.path().join("out.jsonl");
    assert_eq!(fault("decode", &broken, &format!("-o {}", text(&out))).0, "varint_overflow");
    assert!(!out.exists());
    // What is sound is there all the same.
    let run = run("decode", &broken, "--json");
    let found = run.json();
    assert_eq!(found["columns"][0]["values"].as_array().map(Vec::len), Some(400));
}

#[test]
fn names_that_several_columns_share_are_refused() {
    let folder = tempdir().unwrap();
    let (path, out) = (folder.path().join("same.parquet"), folder.path().join("out.jsonl"));
    support::parquet::same_names(&path);
    for (verb, options) in [("decode", "--column x"), ("decode", "--column a.b"), ("pages", "x"), ("trace", "a.b")] {
        assert_eq!(fault(verb, &path, options), ("ambiguous".to_owned(), "columns".to_owned()), "{verb} {options}");
    }
    assert!(run("pages", &path, "x").stderr.contains("give a number, of 0, 1 "));
    assert!(run("pages", &path, "a.b").stderr.contains("give a number, of 2, 3 "));
    assert_eq!(fault("decode", &path, &format!("-o {}", text(&out))), ("ambiguous".to_owned(), "columns".to_owned()));
    assert!(!out.exists());
    // Numbers name one column each; a group of one column has the group's name.
    let rows = run("decode", &path, "--column 1 --column 3 -o -");
    assert_eq!(rows.stdout, "{\"x\":\"0x4000000000000000\",\"a\":\"0x4010000000000000\"}\n");
    let both = run("decode", &path, "--column x,y");
    assert!(both.stderr.contains("give --column again for each"), "{both:?}");
}

#[test]
fn summaries_stay_short() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    support::parquet::strings(&path, &["x".repeat(300).as_str()]);
    let run = run("decode", &path, "");
    assert!(run.stdout.contains("xxx…") && run.stdout.lines().all(|line| line.chars().count() < 100), "{run:?}");
}

/// As `payload --help` says.
#[test]
fn sections_are_cut_with_what_pages_shows() {
    let folder = tempdir().unwrap();
    let (path, section) = (folder.path().join("small.parquet"), folder.path().join("section"));
    for (make, column, encoding, kind) in [
        (support::parquet::small as fn(&Path), "l", "RLE_DICTIONARY", "INT32"),
        (support::parquet::version_2, "n", "RLE_DICTIONARY", "INT32"),
    ] {
        make(&path);
        let table = run("pages", &path, column).stdout;
        let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let headings = lines.next().unwrap();
        let pages: Vec<Vec<&str>> = lines.collect();
        let number = |page: usize, heading: &str| -> usize {
            // The dictionary's page has neither levels nor what comes behind its values.
            let at = headings.iter().position(|found| *found == heading).unwrap();
            pages[page][at].replace(',', "").parse().unwrap()
        };
        let bytes = fs::read(&path).unwrap();
        let cut = |page: usize, levels: usize| {
            let body = number(page, "offset") + number(page, "header");
            bytes[body + levels..body + number(page, "stored")].to_vec()
        };
        let dictionary = folder.path().join("dictionary");
        fs::write(&dictionary, cut(0, 0)).unwrap();
        fs::write(&section, cut(1, number(1, "levels"))).unwrap();
        let count = (number(1, "values") - number(1, "nulls")).to_string();
        let options = ["--encoding", encoding, "--type", kind, "--count", &count, "--dictionary", text(&dictionary)];
        let found = tilekern(["payload", text(&section)].into_iter().chain(options));
        let expected = if column == "l" { "1\n7\n" } else { "1\n3\n" };
        assert_eq!((found.code, found.stdout.as_str()), (Some(0), expected), "{table}{found:?}");
    }
}

#[test]
fn steps_are_traced() {
    let (_folder, path) = made();
    let trace = sound("trace", &path, "id --row-group 1");
    let page = &trace["pages"][0];
    assert_eq!((&trace["column"], &page["encoding"]), (&json!("id"), &json!("DELTA_BINARY_PACKED")));
    assert_eq!(page["steps"][0]["label"], "header");
    let detail = page["steps"][0]["detail"].as_str().unwrap();
    assert!(detail.ends_with("200 values; the first is 1400"), "{detail}");
    assert_eq!((&page["unpacked"], &page["header_steps"][0]["label"]), (&json!(false), &json!("type")));
    // Bytes are those of the file, or of the unpacked body.
    let file = fs::read(&path).unwrap();
    let start = usize::try_from(page["steps"][0]["start"].as_u64().unwrap()).unwrap();
    assert_eq!(page["steps"][0]["bytes"].as_str().unwrap()[..4], format!("{:02x}{:02x}", file[start], file[start + 1]));
    let country = sound("trace", &path, "country --page 1");
    let page = &country["pages"][0];
    assert_eq!((&page["unpacked"], &page["levels_unpacked"]), (&json!(true), &json!(true)));
    assert_eq!(page["level_steps"][0]["label"], "definition levels: length");
    assert_eq!((&page["level_steps"][0]["start"], &page["level_steps"][0]["bytes"]), (&json!(0), &json!("21000000")));
    assert_eq!(page["steps"][0]["bytes"], "02");
    // Values with their bytes: an entry of the dictionary's unpacked body, and the run of the index.
    let values = sound("trace", &path, "country --page 1 --row-group 0 --values");
    let page = &values["pages"][0];
    assert_eq!((&page["dictionary_unpacked"], page["values"].as_array().map(Vec::len)), (&json!(true), Some(214)));
    assert_eq!((&page["values"][1]["value"], &page["values"][1]["spans"][0]), (&json!("4445"), &json!([6, 12])));
    assert_eq!(page["values"][1]["spans"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&country["pages"][0]["values"], &trace["pages"][0]["dictionary_unpacked"]),
        (&Value::Null, &Value::Null)
    );
    let all = run("trace", &path, "country");
    assert_eq!(all.code, Some(0));
    for words in ["row group 1, page 1: DATA_PAGE, RLE_DICTIONARY, SNAPPY, 200 values, 34 nulls", "unpacked body"] {
        assert!(all.stdout.contains(words), "{words}: {all:?}");
    }
    assert!(!all.stdout.contains('\u{1b}'));
    assert_eq!(fault("trace", &path, "id --page 7"), ("out_of_range".to_owned(), "pages".to_owned()));
    assert_eq!(fault("trace", &path, "place"), ("ambiguous".to_owned(), "columns".to_owned()));
    let none = run("trace", &path, "");
    assert!(none.code == Some(2) && none.stderr.contains("id, country, weight, tags, place.x"), "{none:?}");
}

#[test]
fn colours_are_for_terminals() {
    let (_folder, path) = made();
    let run = |variables: &[(&str, &str)]| {
        let mut command = support::command();
        command.args(["trace", text(&path), "id"]).envs(variables.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let coloured = run(&[("CLICOLOR_FORCE", "1")]);
    assert!(coloured.contains("\u{1b}[1mheader\u{1b}[0m"), "{coloured}");
    let plain = run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
    assert!(plain.contains("  header  ") && !plain.contains('\u{1b}'), "{plain}");
    assert_eq!(run(&[("CLICOLOR_FORCE", "0")]), plain);
}

/// The data of a page of HTML.
fn data(html: &str) -> Value {
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

#[test]
fn a_trace_is_one_page_of_html() {
    let (folder, path) = made();
    let out = folder.path().join("trace.html");
    let written = sound("trace", &path, &format!("country --html {}", text(&out)));
    let html = fs::read_to_string(&out).unwrap();
    assert_eq!((&written["n_pages"], &written["bytes"]), (&json!(5), &json!(html.len())));
    // It needs nothing else.
    for word in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(word), "{word}");
    }
    assert_eq!((html.matches("<script").count(), html.matches("</script>").count()), (2, 2));
    let data = data(&html);
    let pages = data["pages"].as_array().unwrap();
    assert_eq!((pages.len(), data["left_out"].as_u64()), (5, Some(0)));
    let unhex = |text: &Value| text.as_str().unwrap().len() as u64 / 2;
    for page in pages {
        for region in page["bytes"].as_array().unwrap() {
            assert_eq!(Some(unhex(&region["hex"])), region["len"].as_u64());
        }
        for step in page["steps"].as_array().unwrap() {
            let region = &page["bytes"][usize::try_from(step["at"][0].as_u64().unwrap()).unwrap()];
            let (start, end) =
                (region["offset"].as_u64().unwrap(), region["offset"].as_u64().unwrap() + unhex(&region["hex"]));
            assert!(start <= step["at"][1].as_u64().unwrap() && step["at"][2].as_u64().unwrap() <= end, "{step}");
        }
    }
    // A value comes from its entry and from a run: in the first row group the dictionary is page 0.
    let value = &pages[1]["values"][1];
    assert_eq!((&value["text"], &value["at"][0]), (&json!("DE"), &json!([0, 1, 6, 12])));
    assert_eq!(value["at"][1].as_array().map(Vec::len), Some(4));
    assert_eq!(pages[4]["values"][0]["at"][0][0], 3, "the dictionary of its own row group");
    // One page alone has no dictionary to point to.
    sound("trace", &path, &format!("country --page 1 --row-group 0 --html {}", text(&out)));
    let alone = self::data(&fs::read_to_string(&out).unwrap());
    assert_eq!(alone["pages"][0]["values"][1]["at"].as_array().map(Vec::len), Some(1));
    // To standard output it is the same page.
    let page = run("trace", &path, "country --page 1 --row-group 0 --html -");
    assert_eq!((page.code, page.stdout), (Some(0), fs::read_to_string(&out).unwrap()));
    assert!(page.stderr.starts_with("standard output: 1 page, "), "{}", page.stderr);
    assert_eq!(names(folder.path()), ["orders.parquet", "trace.html"]);
    // What could end the script cannot.
    let odd = folder.path().join("odd.parquet");
    support::parquet::strings(&odd, &["</script><script>alert(1)</script>", "\u{2028}"]);
    sound("trace", &odd, &format!("0 --html {}", text(&out)));
    let html = fs::read_to_string(&out).unwrap();
    assert_eq!(html.matches("</script>").count(), 2);
    let odd = self::data(&html);
    assert!(odd.to_string().contains("</script><script>alert(1)</script>"));
}

#[test]
fn long_pages_are_cut_in_html() {
    let folder = tempdir().unwrap();
    let (path, out) = (folder.path().join("long.parquet"), folder.path().join("long.html"));
    let strings: Vec<String> = (0..40_000).map(|i| format!("a text that is not short, number {i}")).collect();
    support::parquet::strings(&path, &strings.iter().map(String::as_str).collect::<Vec<_>>());
    sound("trace", &path, &format!("0 --html {}", text(&out)));
    let html = fs::read_to_string(&out).unwrap();
    assert!(html.len() < 20 << 20, "{}", html.len());
    let data = data(&html);
    let notes = data["pages"].to_string();
    assert!(
        notes.contains("the first 65,536 of") && notes.contains("the first 10,000 of"),
        "{}",
        &notes[notes.len() - 500..]
    );
}

#[test]
fn all_faults_are_told() {
    let (folder, path) = made();
    let run = run("verify", &path, "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.contains(": sound, "), "{run:?}");
    // What cannot be seen is told.
    assert!(run.stdout.ends_with("; no page has a checksum: values changed there cannot be seen\n"), "{run:?}");
    let record = &sound("verify", &path, "")["paths"][0];
    let n_pages = sound("pages", &path, "")["pages"].as_array().map(Vec::len);
    assert_eq!((&record["n_pages"], &record["n_pages_without_checksum"]), (&json!(n_pages), &json!(n_pages)));
    let pages = sound("pages", &path, "");
    let pages = pages["pages"].as_array().unwrap();
    let start = |rg: u64, col: u64, page: u64| {
        let found = pages.iter().find(|p| p["rg"] == rg && p["col"] == col && p["page"] == page).unwrap();
        usize::try_from(found["body_start"].as_u64().unwrap()).unwrap()
    };
    let mut bytes = fs::read(&path).unwrap();
    for at in [start(0, 0, 0), start(1, 0, 0), start(1, 1, 0)] {
        bytes[at..at + 11].fill(0xff);
    }
    let broken = folder.path().join("broken.parquet");
    fs::write(&broken, &bytes).unwrap();
    let run = tilekern(["verify", text(&broken), "--json"]);
    let found = run.json();
    let faults = found["paths"][0]["faults"].as_array().unwrap();
    let told: Vec<_> = faults.iter().map(|f| (f["kind"].as_str().unwrap(), f["part"].as_str().unwrap())).collect();
    assert_eq!(run.code, Some(1));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].0 == "varint_overflow" && told[0].1.starts_with("row group 0, column 0, page 0, "), "{told:?}");
    assert!(told[1].0 == "varint_overflow" && told[1].1.starts_with("row group 1, column 0, page 0, "), "{told:?}");
    assert!(told[2].0 == "compression" && told[2].1.starts_with("row group 1, column 1, page 0, "), "{told:?}");
    assert_eq!(faults[0]["offset"].as_u64(), Some(start(0, 0, 0) as u64));
    // Other verbs tell the fault, after what they understood.
    for verb in ["trace", "decode", "pages"] {
        let options = if verb == "trace" { "1 --row-group 1 --json" } else { "--json" };
        let run = self::run(verb, &broken, options);
        assert!(run.code == Some(1) && run.json()["error"]["kind"].is_string(), "{verb}: {run:?}");
    }
    let info = sound("info", &broken, "");
    assert_eq!((&info["columns"][0]["plain_bytes"], &info["columns"][1]["plain_bytes"]), (&json!(4800), &Value::Null));
    assert!(self::run("info", &broken, "").stdout.contains("`tilekern verify"));
}

#[test]
fn kinds_of_input_are_told_apart() {
    let (folder, path) = made();
    // By its first bytes under any name, or by its name; --as beats both.
    let other = folder.path().join("table.bin");
    fs::copy(&path, &other).unwrap();
    assert_eq!(sound("info", &other, "")["kind"], "parquet");
    let dct = folder.path().join("a.dct");
    tile(&dct, 20, 10);
    assert_eq!(fault("info", &dct, "--as parquet").0, "bad_magic");
    assert_eq!(fault("info", &path, "--as deltacel").0, "bad_magic");
    assert_eq!(fault("info", folder.path(), "--as parquet").0, "unsupported");
    // Counts are not in Parquet, nor pages in counts.
    for (verb, options) in [("head", ""), ("stats", ""), ("obs", ""), ("bench", "")] {
        let run = run(verb, &path, options);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{verb}: {run:?}");
        assert!(run.stderr.contains("is a Parquet file") && run.stderr.ends_with("[unsupported]\n"), "{verb}: {run:?}");
    }
    assert_eq!(fault("pages", &dct, "").0, "unsupported");
    // Options of the one kind are refused for the other.
    let cases = [
        ("decode", &path, "--cells 0..2", "--column"),
        ("decode", &path, "--genes 1", "--column"),
        ("decode", &path, "--where n>1", "--column"),
        ("decode", &path, "--cost", "leave it out"),
        ("decode", &path, "--compress -o a.arrow", "leave it out"),
        ("decode", &path, "--dtype f32 -o a.npy", "leave it out"),
        ("decode", &path, "--threads 2", "leave it out"),
        ("decode", &path, "-o a.npz", ".jsonl or .arrow"),
        ("decode", &path, "-o a.csv", "add --to with one of jsonl, arrow, summary"),
        ("decode", &path, "--to arrow", "name a file with -o"),
        ("decode", &path, "--to summary -o a.txt", "leave out -o"),
        ("decode", &path, "--to jsonl --json", "name a file with -o"),
        ("decode", &dct, "--column id", "--cells"),
        ("decode", &dct, "--row-group 0", "--cells"),
        ("decode", &dct, "-o a.jsonl", "Parquet"),
        ("trace", &path, "id --chunk 1", "--page"),
        ("trace", &path, "id --json --html -", "name a file"),
        ("trace", &dct, "id", "--chunk"),
        ("trace", &dct, "--page 1", "--chunk"),
        ("trace", &dct, "--row-group 1", "--chunk"),
        ("trace", &dct, "--html a.html", "--chunk"),
        ("trace", &dct, "--values", "--chunk"),
        ("trace", &path, "id --values", "--json"),
        ("trace", &path, "id --values --json --html a.html", "--json"),
    ];
    for (verb, path, options, says) in cases {
        let run = run(verb, path, options);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{verb} {options}: {run:?}");
        assert!(run.stderr.contains(says), "{verb} {options}: {run:?}");
    }
    let itself = run("decode", &path, &format!("--to jsonl -o {}", text(&path)));
    assert!(itself.code == Some(2) && itself.stderr.contains("is the input"), "{itself:?}");
    let itself = run("trace", &path, &format!("id --html {}", text(&path)));
    assert!(itself.code == Some(2) && itself.stderr.contains("is the input"), "{itself:?}");
}

/// What is in memory does not grow with the file.
#[test]
#[cfg(target_os = "linux")]
fn memory_is_bounded() {
    const MORE: u64 = 24 << 20;
    // The page of HTML is made in memory, of 8 MB of data at most.
    const OF_HTML: u64 = 64 << 20;
    let folder = tempdir().unwrap();
    let [small, large, out] = ["small.parquet", "large.parquet", "out"].map(|name| folder.path().join(name));
    support::parquet::long(&small, 10);
    // 83 MB of values.
    support::parquet::long(&large, 400_000);
    for options in [
        "verify PATH",
        "info PATH",
        "pages PATH",
        "decode PATH",
        "decode PATH --column n --json",
        "decode PATH --column n --to jsonl -o OUT",
        "decode PATH --to arrow -o OUT",
        "trace PATH n --json",
        "trace PATH text --html OUT",
    ] {
        let peak = |path: &Path| {
            let words = options.split(' ').map(|word| match word {
                "PATH" => path.as_os_str().to_owned(),
                "OUT" => out.as_os_str().to_owned(),
                word => word.into(),
            });
            support::peak(support::command().args(words)).expect("it reads a sound file")
        };
        // What ends soon is looked at too early now and then.
        let (least, most) = ((0..3).map(|_| peak(&small)).max().unwrap(), peak(&large));
        let more = if options.contains("--html") { OF_HTML } else { MORE };
        assert!(most <= least + more, "{options}: {} MiB, of a small file {} MiB", most >> 20, least >> 20);
    }
}

/// Whatever is done to a file, the verbs end in 0 or 1 and print JSON.
#[test]
fn damage_is_no_surprise() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("small.parquet");
    support::parquet::small(&path);
    let sound = fs::read(&path).unwrap();
    let check = |verb: &str, bytes: &[u8], what: &str| {
        let column = if verb == "trace" { Some("0") } else { None };
        let run = tilekern_with([verb, "--as", "parquet", "--json", "-"].into_iter().chain(column), bytes);
        assert!(matches!(run.code, Some(0 | 1)), "{verb}, {what}: {run:?}");
        let only_warnings = run.stderr.lines().all(|line| line.starts_with("warning: "));
        assert!(run.json().is_object() && only_warnings, "{verb}, {what}: {run:?}");
        run.code
    };
    let verbs = ["verify", "decode", "trace", "pages", "info"];
    for verb in verbs {
        assert_eq!(check(verb, &sound, "sound"), Some(0));
    }
    for len in 0..sound.len() {
        assert_eq!(check(verbs[len % verbs.len()], &sound[..len], &format!("cut to {len}")), Some(1));
    }
    for at in 0..sound.len() {
        for (turn, flip) in [0x01, 0x80, 0xff].into_iter().enumerate() {
            let mut bytes = sound.clone();
            bytes[at] ^= flip;
            check(verbs[(at + turn) % verbs.len()], &bytes, &format!("byte {at} ^ {flip:#x}"));
        }
    }
}
