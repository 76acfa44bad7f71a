//! The tables of cells and genes: what is written is read, by any way; what is wrong is refused where it lies.
#![cfg(target_endian = "little")]

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray, UInt8Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use proptest::prelude::*;
use tilekern::deltacel::dataset::obs::{
    Cache, Category, Filter, ObsColumn, ObsKind, ObsSchema, ObsType, ObsUnion, Value, getter,
};
use tilekern::deltacel::dataset::{Dataset, Event, INDEX_NAME, Writer, var_index, verify};
use tilekern::deltacel::{CsrView, Decoder};
use tilekern::{Directory, Error, ErrorKind, Limits, MappedDirectory, Object, Part, Source, SyntaxFault, Unsupported};

/// The columns of [`rows`].
fn schema() -> ObsSchema {
    ObsSchema {
        columns: vec![
            ObsColumn::category("cell_type", ["T", "B cell", "NK \"x\" \u{e9}\u{1F9EC}"].map(Category::from)),
            ObsColumn::category("stage", [1, 2, 40].map(Category::Int)),
            ObsColumn::category("kept", [true, false].map(Category::Bool)),
            ObsColumn::category("dose", [0.5, 1e-7, 1e22].map(Category::Float)),
            ObsColumn::category("nothing", []),
            ObsColumn::plain("n_counts", ObsType::Int64),
            ObsColumn::plain("score", ObsType::Float),
            ObsColumn::plain("big", ObsType::UInt64),
            ObsColumn::plain("doublet", ObsType::Bool),
            ObsColumn::plain("bar code/..", ObsType::String),
        ],
    }
}

/// The rows of some cells, each the same whatever else is asked for.
fn rows(cells: Range<i64>) -> RecordBatch {
    fn column<T>(cells: &Range<i64>, value: impl Fn(i64) -> T) -> Vec<T> {
        cells.clone().map(value).collect()
    }
    let code = |n: i64| move |cell: i64| i8::try_from(cell % (n + 1) - 1).expect("small");
    fn unless<T>(missing: bool, value: T) -> Option<T> {
        (!missing).then_some(value)
    }
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(column(&cells, code(3)))),
        Arc::new(Int8Array::from(column(&cells, code(3)))),
        Arc::new(Int8Array::from(column(&cells, code(2)))),
        Arc::new(Int8Array::from(column(&cells, code(3)))),
        Arc::new(Int8Array::from(column(&cells, |_| -1))),
        Arc::new(Int64Array::from(column(&cells, |c| unless(c % 7 == 6, c * 100)))),
        Arc::new(Float32Array::from(column(&cells, |c| {
            unless(c % 5 == 4, if c % 11 == 3 { f32::NAN } else { c as f32 / 10.0 })
        }))),
        Arc::new(UInt64Array::from(column(&cells, |c| u64::MAX - c.unsigned_abs()))),
        Arc::new(BooleanArray::from(column(&cells, |c| unless(c % 9 == 8, c % 2 == 0)))),
        Arc::new(StringArray::from(column(&cells, |c| unless(c % 13 == 12, format!("AAA{c}\u{e9}-1"))))),
    ];
    RecordBatch::try_new(Arc::new(schema().arrow()), arrays).expect("columns of the schema")
}

/// Genes `g0`, `g1`, … with ids that are twice the same.
fn var(n_genes: usize) -> RecordBatch {
    let names: ArrayRef = Arc::new(StringArray::from((0..n_genes).map(|gene| format!("g{gene}")).collect::<Vec<_>>()));
    let ids: ArrayRef =
        Arc::new(StringArray::from((0..n_genes).map(|gene| format!("ID{}", gene / 2)).collect::<Vec<_>>()));
    let kinds: DictionaryArray<Int8Type> =
        (0..n_genes).map(|gene| (gene % 3 > 0).then_some(["x", "y"][gene % 2])).collect();
    let totals: ArrayRef =
        Arc::new(UInt32Array::from((0..n_genes).map(|gene| (gene % 2 == 0).then_some(7)).collect::<Vec<_>>()));
    RecordBatch::try_from_iter_with_nullable([
        ("symbol", names, false),
        ("id", ids, true),
        ("kind", Arc::new(kinds) as ArrayRef, true),
        ("total", totals, true),
    ])
    .expect("columns")
}

const N_GENES: u32 = 5;

/// Writes a dataset of so many cells; a cell has no or one nonzero. The cells are pushed in pieces.
fn write(path: &Path, n_cells: i64, tile_size: u64, tiles_per_file: u64, piece: i64) -> Result<(), Error> {
    let names = (0..N_GENES).map(|gene| format!("g{gene}"));
    let builder = Writer::builder(N_GENES).tile_size(tile_size).var_names(names).var(var(N_GENES as usize));
    let mut writer = builder.obs(schema(), tiles_per_file).create(path)?;
    let mut start = 0;
    while start < n_cells {
        let cells = start..(start + piece).min(n_cells);
        let indptr: Vec<i64> = (cells.start..=cells.end).map(|cell| cell / 2 - cells.start / 2).collect();
        let nnz = usize::try_from(indptr[indptr.len() - 1]).expect("positive");
        let (indices, values) = (vec![3; nnz], vec![1; nnz]);
        let matrix = CsrView { n_genes: N_GENES, indptr: &indptr, indices: &indices, values: &values };
        writer.push_with_obs(&matrix, &rows(cells.clone()))?;
        start = cells.end;
    }
    writer.finish().map(drop)
}

fn written(n_cells: i64, tile_size: u64, tiles_per_file: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    write(&path, n_cells, tile_size, tiles_per_file, 7).expect("written");
    (folder, path)
}

/// Faults and warnings.
fn told(source: &dyn Source) -> (Vec<String>, Vec<String>) {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let _ = verify(source, &Decoder::new().expect("a decoder"), |event| {
        match event {
            Event::Fault(fault) => faults.push(fault.to_string()),
            Event::Warning(warning) => warnings.push(warning.to_string()),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    (faults, warnings)
}

/// Every value as text, column by column.
fn texts(table: &RecordBatch) -> Vec<Vec<String>> {
    let text = |array: &ArrayRef| {
        let get = getter(array).expect("a type with values");
        (0..array.len()).map(|row| format!("{:?}", get(row))).collect()
    };
    table.columns().iter().map(text).collect()
}

/// The values of [`rows`] for a list of cells.
fn expected(cells: &[u64], columns: &[usize]) -> Vec<Vec<String>> {
    let all = texts(&rows(0..cells.iter().max().map_or(0, |&max| i64::try_from(max).expect("small") + 1)));
    let row =
        |column: usize| cells.iter().map(|&cell| all[column][usize::try_from(cell).expect("small")].clone()).collect();
    columns.iter().map(|&column| row(column)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        n_cells in 0i64..60,
        tile_size in 3u64..20,
        tiles_per_file in 1u64..5,
        piece in 1i64..30,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        columns in prop::sample::subsequence((0..10usize).collect::<Vec<_>>(), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dataset");
        write(&path, n_cells, tile_size, tiles_per_file, piece).unwrap();
        prop_assert_eq!(told(&Directory::new(&path).unwrap()), (vec![], vec![]));
        let dataset = Dataset::open(&path).unwrap();
        let table = dataset.obs().unwrap().expect("a table");
        prop_assert_eq!(table.schema(), &schema());
        let all: Vec<u64> = (0..dataset.n_cells()).collect();
        let picked: Vec<u64> = picks.iter().filter(|_| n_cells > 0).map(|pick| all[pick.index(all.len())]).collect();
        let names: Vec<&str> = columns.iter().map(|&column| &*table.schema().columns[column].name).collect();
        for cells in [&picked, &all] {
            let found = table.codes(&names, cells).unwrap();
            prop_assert_eq!(found.num_rows(), cells.len());
            prop_assert_eq!(texts(&found), expected(cells, &columns));
        }
        let written = var(N_GENES as usize);
        let read = dataset.var().unwrap().expect("a table");
        prop_assert_eq!(read.columns(), written.columns());
        prop_assert_eq!(var_index(&read), Some(0));
    }

    #[test]
    fn schemas(
        columns in prop::collection::hash_map(".{0,12}", prop::collection::hash_set(".{0,6}", 0..6), 1..6),
        numbers in prop::collection::hash_set(any::<i64>(), 0..6),
        floats in prop::collection::vec(any::<f64>().prop_filter("finite", |value| value.is_finite()), 1..20),
    ) {
        let mut schema = ObsSchema::default();
        for (name, categories) in columns {
            let categories = categories.into_iter().map(Category::String);
            let mixed = numbers.iter().map(|&number| Category::Int(number.into()));
            schema.columns.push(ObsColumn::category(name, categories.chain(mixed)));
        }
        schema.check().unwrap();
        let text = schema.to_json();
        prop_assert!(text.is_ascii());
        prop_assert_eq!(&ObsSchema::from_json(text.as_bytes()).unwrap(), &schema);
        for value in floats {
            let json = Category::Float(value).to_json();
            prop_assert_eq!(json.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", json);
            prop_assert!(json.contains(['.', 'e']), "{} would be read as an integer", json);
        }
        // Cut anywhere it is refused, at a place inside.
        for end in (0..text.len()).step_by(text.len() / 50 + 1) {
            let error = ObsSchema::from_json(&text.as_bytes()[..end]).unwrap_err();
            prop_assert!(error.offset().is_some_and(|at| at <= end as u64), "{}", error);
        }
    }
}

#[test]
fn the_schema_is_written_as_python_writes_it() {
    let text = schema().to_json();
    let start = "{\"format\": \"deltacells-obs\", \"version\": 1, \"columns\": [{\"name\": \"cell_type\", \"kind\": \"category\", \
                 \"arrow_type\": \"int8\", \"categories\": [\"T\", \"B cell\", \"NK \\\"x\\\" \\u00e9\\ud83e\\uddec\"]}, ";
    assert!(text.starts_with(start), "{text}");
    let end = "{\"name\": \"bar code/..\", \"kind\": \"string\", \"arrow_type\": \"string\", \"categories\": null}]}";
    assert!(text.ends_with(end), "{text}");
    for (value, expected) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (9_007_199_254_740_993.0, "9007199254740992.0"),
        (1e16, "1e+16"),
        (1.2345e22, "1.2345e+22"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
    ] {
        assert_eq!(Category::Float(value).to_json(), expected);
    }
}

#[test]
fn unsound_schemas_are_refused_where_they_are() {
    let sound = r#"{"format": "deltacells-obs", "version": 1, "columns": [{"name": "a", "kind": "category", "arrow_type": "int8", "categories": ["x", 2, true, 1.5]}, {"name": "b", "kind": "numeric", "arrow_type": "double", "categories": null}]}"#;
    ObsSchema::from_json(sound.as_bytes()).unwrap();
    for (from, to) in [
        ("null", "[]"),
        (", \"categories\": null", ""),
        ("{\"format\"", "{\"x\": [[{}]], \"format\""),
        ("[\"x\", 2, true, 1.5]", "[]"),
        ("int8", "int32"),
    ] {
        ObsSchema::from_json(sound.replacen(from, to, 1).as_bytes()).unwrap_or_else(|error| panic!("{to}: {error}"));
    }
    for (from, to, kind, part, at) in [
        ("deltacells-obs", "deltacells", "bad_magic", "schema, format", "\"deltacells\""),
        ("\"version\": 1", "\"version\": 1.0", "wrong_type", "schema, version", "1.0"),
        ("\"version\": 1, ", "", "missing", "schema, version", "{"),
        ("\"version\": 1", "\"version\": 1, \"version\": 1", "syntax", "schema, version", "1, \"columns"),
        ("\"columns\": [", "\"columns\": 7, \"y\": [", "wrong_type", "schema, columns", "7, "),
        ("\"a\"", "\"b\"", "repeated", "column 1, name", "\"b\", \"kind\": \"num"),
        ("\"a\"", "7", "wrong_type", "column 0, name", "7"),
        ("\"category\"", "\"datetime\"", "unsupported", "column 0, kind", "\"datetime\""),
        ("int8", "int64", "wrong_type", "column 0, arrow_type", "\"int64\""),
        ("double", "float64", "wrong_type", "column 1, arrow_type", "\"float64\""),
        ("double", "string", "wrong_type", "column 1, arrow_type", "\"string\""),
        ("\"x\"", "2", "repeated", "column 0, categories", "2, true"),
        ("\"x\"", "null", "wrong_type", "column 0, categories", "null, 2"),
        ("\"x\"", "[]", "wrong_type", "column 0, categories", "[], 2"),
        ("\"x\"", "NaN", "syntax", "schema", "NaN"),
        ("1.5", "99999999999999999999", "wrong_type", "column 0, categories", "99999999999999999999"),
        ("null", "[\"y\"]", "wrong_type", "column 1, categories", "[\"y\"]"),
        (", \"categories\": [", ", \"category\": [", "missing", "column 0, categories", "{\"name\": \"a\""),
    ] {
        let text = sound.replacen(from, to, 1);
        let error = ObsSchema::from_json(text.as_bytes()).unwrap_err();
        assert_eq!((error.kind().name(), error.part().to_string().as_str()), (kind, part), "{to}: {error}");
        let offset = usize::try_from(error.offset().expect("an offset")).unwrap();
        assert!(text[offset..].starts_with(at) || kind == "syntax", "{to}: {error}: {}", &text[offset..]);
    }
    let deep = sound.replacen("null", &"[".repeat(100_000), 1);
    assert_eq!(ObsSchema::from_json(deep.as_bytes()).unwrap_err().kind(), ErrorKind::Syntax(SyntaxFault::Depth));
    let many: Vec<String> = (0..129).map(|i| format!("\"{i}\"")).collect();
    let text = sound.replacen("\"x\", 2, true, 1.5", &many.join(", "), 1);
    let error = ObsSchema::from_json(text.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange { found: 129, min: 0, max: 128 });
    // All faults, of each column the first.
    let text =
        sound.replacen("\"x\"", "2", 1).replacen("double", "bool", 1).replacen("\"version\": 1", "\"version\": 3", 1);
    let kinds: Vec<&str> = ObsSchema::faults(text.as_bytes()).iter().map(|fault| fault.kind().name()).collect();
    assert_eq!(kinds, ["version", "repeated", "wrong_type"]);
}

#[test]
fn values_have_the_meaning_of_codes() {
    let (_folder, path) = written(20, 8, 2);
    let dataset = Dataset::open(path).unwrap();
    let table = dataset.obs().unwrap().unwrap();
    let names: Vec<&str> = table.schema().columns.iter().map(|column| &*column.name).collect();
    let values = table.values(&names, &[3, 0, 1, 3, 19]).unwrap();
    let column = |name: &str| texts(&values)[names.iter().position(|known| *known == name).unwrap()].clone();
    let nk = "String(\"NK \\\"x\\\" \u{e9}\u{1F9EC}\")";
    assert_eq!(column("cell_type"), [nk, "Null", "String(\"T\")", nk, nk]);
    assert_eq!(column("stage"), ["Int(40)", "Null", "Int(1)", "Int(40)", "Int(40)"]);
    assert_eq!(column("kept"), ["Null", "Null", "Bool(true)", "Null", "Bool(true)"]);
    assert_eq!(column("dose"), ["Float(1e22)", "Null", "Float(0.5)", "Float(1e22)", "Float(1e22)"]);
    assert_eq!(column("nothing"), ["Null"; 5]);
    assert_eq!(column("doublet"), ["Bool(false)", "Bool(true)", "Bool(false)", "Bool(false)", "Bool(false)"]);
    // Categories that no cell has stay in the vocabulary.
    let codes: &DictionaryArray<Int8Type> = values.column(0).as_any().downcast_ref().unwrap();
    assert_eq!(codes.values().len(), 3);

    let error = table.codes(&["score", "Score"], &[0]).unwrap_err();
    assert_eq!((error.kind(), error.part()), (ErrorKind::Missing, Part::Option("column")));
    assert!(error.to_string().contains("\"bar code/..\""), "{error}");
    let error = table.codes(&["score"], &[1, 20]).unwrap_err();
    assert_eq!((error.kind().name(), error.part(), error.value_index()), ("out_of_range", Part::Cells, Some(1)));
    assert_eq!(table.codes(&[], &[1, 2]).unwrap().num_rows(), 2);
}

/// The cells of [`rows`] that pass, each told by a function of the cell's number.
#[test]
fn filters() {
    let (_folder, path) = written(60, 8, 3);
    let dataset = Dataset::open(path).unwrap();
    let table = dataset.obs().unwrap().unwrap();
    type Rule = fn(u64) -> bool;
    let cases: [(&str, Rule); 40] = [
        ("cell_type == \"T\"", |c| c % 4 == 1),
        ("cell_type=='T'", |c| c % 4 == 1),
        ("cell_type == 'NK \\\"x\\\" \u{e9}\u{1F9EC}'", |c| c % 4 == 3),
        ("cell_type != 'T'", |c| c % 4 > 1),
        ("!(cell_type == 'T')", |c| c % 4 > 1),
        ("cell_type == 'none'", |_| false),
        ("cell_type in ['T', 'B cell']", |c| matches!(c % 4, 1 | 2)),
        ("cell_type not in ['T', 'B cell']", |c| c % 4 == 3),
        ("cell_type in []", |_| false),
        ("cell_type is null", |c| c % 4 == 0),
        ("!cell_type is null", |c| c % 4 != 0),
        ("cell_type is not null", |c| c % 4 != 0),
        ("stage >= 2", |c| c % 4 > 1),
        ("2 <= stage", |c| c % 4 > 1),
        ("stage in [1, 40.0, 7]", |c| matches!(c % 4, 1 | 3)),
        ("kept", |c| c % 3 == 1),
        ("!kept", |c| c % 3 == 2),
        ("kept == false", |c| c % 3 == 2),
        ("dose < 1e-6", |c| c % 4 == 2),
        ("nothing == 'x' || nothing > 3 || nothing", |_| false),
        ("nothing is null", |_| true),
        ("n_counts > 500", |c| c % 7 != 6 && c > 5),
        ("n_counts > 499.5 && n_counts <= 1e3", |c| c % 7 != 6 && (5..=10).contains(&c)),
        ("n_counts in [100, -5, 200]", |c| c == 1 || c == 2),
        ("n_counts is null", |c| c % 7 == 6),
        ("n_counts == 1 || n_counts != 1", |c| c % 7 != 6),
        ("score == 0.1", |c| c == 1),
        ("score in [0.1, 0.2]", |c| c == 1 || c == 2),
        ("score < 0.35", |c| c < 3),
        ("score != 0.1 && n_counts < 450", |c| matches!(c, 0 | 2 | 3)),
        ("score is not null", |c| c % 5 != 4),
        ("big == 18446744073709551614", |c| c == 1),
        ("big > 18446744073709551614", |c| c == 0),
        ("big < 1.8446744073709551615e19", |_| true),
        ("doublet", |c| c % 9 != 8 && c % 2 == 0),
        ("!doublet && !doublet", |c| c % 9 != 8 && c % 2 == 1),
        ("doublet || n_counts is null", |c| c % 9 != 8 && c % 2 == 0 || c % 7 == 6),
        ("doublet && n_counts > 500 || !(n_counts > 500)", |c| c % 7 != 6 && (c <= 5 || c % 9 != 8 && c % 2 == 0)),
        ("`bar code/..` in [\"AAA7\u{e9}-1\", \"AAA\", 'AAA9\u{e9}-1']", |c| c == 7 || c == 9),
        ("  ( ( `bar code/..` is null ) )  ", |c| c % 13 == 12),
    ];
    for (filter, passes) in cases {
        let found = table.filter(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert_eq!(found, (0..60).filter(|&cell| passes(cell)).collect::<Vec<_>>(), "{filter}");
    }
    // The same on rows that lie in memory.
    let filter = Filter::parse(table.schema(), cases[22].0).unwrap();
    assert_eq!(filter.columns(), [5]);
    let passing = filter.matches(table.schema(), &rows(0..60)).unwrap();
    assert_eq!(passing, (0..60).map(cases[22].1).collect::<Vec<_>>());
}

/// Whoever writes as in other languages is told how it is written here.
#[test]
fn filters_give_hints() {
    let schema = schema();
    for (filter, hint) in [
        ("n_counts = 5", "; write ==)"),
        ("n_counts > 5 & doublet", "; write &&)"),
        ("n_counts > 5 | doublet", "; write ||)"),
        ("n_counts > 5 and doublet", "; write && for and)"),
        ("n_counts > 5 or doublet", "; write || for or)"),
        ("not doublet", "; write ! for not)"),
        ("stage in (\"a\")", "(expected a list in brackets, as in [1, 2])"),
        ("stage == mature", "; text stands in quotes: \"mature\")"),
        ("stage in [mature]", "; text stands in quotes: \"mature\")"),
    ] {
        let error = Filter::parse(&schema, filter).unwrap_err();
        assert!(error.to_string().ends_with(hint), "{filter}: {error}");
        assert!(error.offset().is_some(), "{filter}");
    }
    // A column that there is not is no text.
    assert!(!Filter::parse(&schema, "absent == 1").unwrap_err().to_string().contains("quotes"));
    let absent = |filter: &str| {
        let filter = Filter::parse(&schema, filter).unwrap();
        filter.absent_categories().iter().map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    let known = schema.columns.iter().position(|column| column.name == "cell_type").unwrap();
    let Category::String(known) = &schema.columns[known].categories[0] else { panic!("a text") };
    assert_eq!(absent(&format!("cell_type == {known:?} || cell_type in [\"y\", \"x\", {known:?}]")), ["x", "y"]);
    assert_eq!(absent("cell_type != \"z\""), ["z"]);
}

#[test]
fn faults_of_filters_have_a_position() {
    let schema = schema();
    let deep = |n| format!("{}kept{}", "(".repeat(n), ")".repeat(n));
    Filter::parse(&schema, &deep(128)).unwrap();
    Filter::parse(&schema, &format!("{}kept", "!".repeat(128))).unwrap();
    Filter::parse(&schema, &vec!["kept"; 10_000].join(" && ")).unwrap();
    let not_deep = deep(100_000);
    let not_not = format!("{}kept", "!".repeat(100_000));
    for (text, kind, at) in [
        ("", "syntax", 0),
        ("  ", "syntax", 2),
        ("kept kept", "syntax", 5),
        ("stage 3", "syntax", 6),
        ("kept &&", "syntax", 7),
        ("kept & kept", "syntax", 5),
        ("(kept", "syntax", 5),
        ("kept)", "syntax", 4),
        ("stage =", "syntax", 6),
        ("stage == ", "syntax", 9),
        ("stage = 3", "syntax", 6),
        ("stage == stage", "syntax", 9),
        ("3 == 3", "syntax", 0),
        ("3", "syntax", 1),
        ("stage in 3", "syntax", 9),
        ("stage in [3", "syntax", 11),
        ("stage in [3,]", "syntax", 12),
        ("stage in [stage]", "syntax", 10),
        ("stage not 3", "syntax", 10),
        ("stage is 3", "syntax", 9),
        ("null == 3", "syntax", 0),
        ("stage == 3x", "syntax", 10),
        ("stage == 3.", "syntax", 11),
        ("stage == -", "syntax", 10),
        ("stage == 1e999", "syntax", 9),
        ("stage == 9999999999999999999999999999999999999999999", "syntax", 9),
        ("cell_type == 'T", "syntax", 15),
        ("cell_type == 'T\\x'", "syntax", 16),
        ("`cell_type", "syntax", 10),
        ("no_such > 3", "missing", 0),
        ("kept && `no such`", "missing", 8),
        ("cell_type == 3", "wrong_type", 13),
        ("cell_type < 'T'", "wrong_type", 10),
        ("cell_type", "wrong_type", 0),
        ("3 == cell_type", "wrong_type", 0),
        ("stage in [1, 'x']", "wrong_type", 13),
        ("score", "wrong_type", 0),
        ("score == true", "wrong_type", 9),
        ("doublet > false", "wrong_type", 8),
        ("\u{e9} == 3", "missing", 0),
        ("kept && \u{1F9EC}", "syntax", 8),
        (&not_deep, "syntax", 129),
        (&not_not, "syntax", 129),
    ] {
        let error = Filter::parse(&schema, text).unwrap_err();
        let name = &text[..text.char_indices().nth(60).map_or(text.len(), |(at, _)| at)];
        assert_eq!((error.kind().name(), error.offset()), (kind, Some(at)), "{name}: {error}");
        assert_eq!(error.part(), Part::Filter);
    }
}

/// What was read of which object, by all who share it.
type Reads = Arc<Mutex<Vec<(String, Range<u64>)>>>;

/// A source that keeps what was read of each object.
struct Watched {
    inner: Directory,
    reads: Reads,
}

struct WatchedObject {
    name: String,
    inner: Box<dyn Object>,
    reads: Reads,
}

impl Source for Watched {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        Ok(Box::new(WatchedObject { name: name.to_owned(), inner: self.inner.open(name)?, reads: self.reads.clone() }))
    }
}

impl Object for WatchedObject {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.reads.lock().unwrap().push((self.name.clone(), offset..offset + out.len() as u64));
        self.inner.read_at(offset, out)
    }
}

#[test]
fn only_the_footer_and_the_column_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    write(&path, 60_000, 15_000, 2, 60_000).unwrap();
    let reads = Arc::new(Mutex::new(Vec::new()));
    let source = Watched { inner: Directory::new(&path).unwrap(), reads: reads.clone() };
    let dataset = Dataset::builder().open_source(Box::new(source)).unwrap();
    let table = dataset.obs().unwrap().unwrap();
    reads.lock().unwrap().clear();
    let found = table.codes(&["cell_type"], &[59_999, 17]).unwrap();
    assert_eq!(texts(&found), expected(&[59_999, 17], &[0]));
    let seen = std::mem::take(&mut *reads.lock().unwrap());
    // The footers of both shards, and one column chunk of each.
    let files: Vec<&str> = seen.iter().map(|(name, _)| &**name).collect();
    assert_eq!(files, ["obs/obs_0000.parquet"; 2].into_iter().chain(["obs/obs_0001.parquet"; 2]).collect::<Vec<_>>());
    let sizes: Vec<u64> = seen.iter().map(|(_, range)| range.end - range.start).collect();
    assert!(sizes[0] <= 64 << 10 && sizes[2] <= 64 << 10, "{sizes:?}");
    assert!(sizes[1] < 1000 && sizes[3] < 1000, "{sizes:?}");
    let shard = std::fs::metadata(path.join("obs/obs_0000.parquet")).unwrap().len();
    assert!(shard > 200_000, "{shard}");
    // What is there is not read again.
    table.codes(&["cell_type"], &[3]).unwrap();
    assert_eq!(reads.lock().unwrap().len(), 0);
    table.codes(&["cell_type"], &[15_000]).unwrap();
    assert_eq!(reads.lock().unwrap().len(), 1);
}

#[test]
fn a_writer_refuses_what_is_not_of_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    let builder = || Writer::builder(N_GENES);
    let refused = |result: Result<Writer, Error>| {
        let error = result.expect_err("refused");
        assert!(!path.exists(), "{error}");
        (error.kind().name(), error.part().to_string())
    };
    let told = |kind: &'static str, part: &str| (kind, part.to_owned());
    assert_eq!(refused(builder().obs(ObsSchema::default(), 1).create(&path)), told("missing", "schema, columns"));
    assert_eq!(refused(builder().obs(schema(), 0).create(&path)), told("out_of_range", "option obs_tiles_per_file"));
    let mut twice = schema();
    twice.columns[4].name = "stage".to_owned();
    assert_eq!(refused(builder().obs(twice, 1).create(&path)), told("repeated", "column 4, name"));
    let mut narrow = schema();
    narrow.columns[0].categories = (0..129).map(Category::Int).collect();
    assert_eq!(refused(builder().obs(narrow, 1).create(&path)), told("out_of_range", "column 0, categories"));
    assert_eq!(refused(builder().var(var(4)).create(&path)), told("inconsistent", "option var"));
    let names = ["g0", "g1", "x", "g3", "g4"];
    assert_eq!(refused(builder().var(var(5)).var_names(names).create(&path)), told("other_genes", "var.parquet"));

    let none = CsrView { n_genes: N_GENES, indptr: &[0, 0, 0], indices: &[], values: &[] };
    let mut writer = builder().obs(schema(), 1).create(&path).unwrap();
    let table = rows(0..2);
    let with = |n: usize, array: ArrayRef| {
        let mut arrays = table.columns().to_vec();
        let mut fields: Vec<Field> = schema().arrow().fields().iter().map(|field| (**field).clone()).collect();
        fields[n] = Field::new(fields[n].name(), array.data_type().clone(), true);
        arrays[n] = array;
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    };
    for (rows, kind, part) in [
        (rows(0..3), "inconsistent", "option obs"),
        (table.project(&[0, 1]).unwrap(), "inconsistent", "option obs"),
        (table.project(&[1, 0, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap(), "wrong_type", "column 0, name"),
        (with(0, Arc::new(Int16Array::from(vec![0, 0]))), "wrong_type", "column 0, values"),
        (with(0, Arc::new(Int8Array::from(vec![0, 3]))), "out_of_range", "column 0, values"),
        (with(1, Arc::new(Int8Array::from(vec![0, -2]))), "out_of_range", "column 1, values"),
        (with(2, Arc::new(Int8Array::from(vec![None, Some(0)]))), "missing", "column 2, values"),
        (with(6, Arc::new(Float64Array::from(vec![0.5, 0.5]))), "wrong_type", "column 6, values"),
    ] {
        let error = writer.push_with_obs(&none, &rows).unwrap_err();
        assert_eq!((error.kind().name(), error.part().to_string().as_str()), (kind, part), "{error}");
        assert_eq!(writer.n_cells(), 0);
    }
    assert_eq!(writer.push(&none).unwrap_err().kind(), ErrorKind::Missing);
    writer.push_with_obs(&none, &table).unwrap();
    writer.finish().unwrap();
    assert_eq!(told_nothing(&path), (vec![], vec![]));
    let mut plain = builder().create(folder.path().join("plain")).unwrap();
    let error = plain.push_with_obs(&none, &table).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported(Unsupported::Request));
    plain.push(&none).unwrap();
    plain.finish().unwrap();
    let dataset = Dataset::open(folder.path().join("plain")).unwrap();
    assert!(dataset.obs().unwrap().is_none() && dataset.var().unwrap().is_none());
}

fn told_nothing(path: &Path) -> (Vec<String>, Vec<String>) {
    told(&Directory::new(path).unwrap())
}

#[test]
fn what_is_odd_is_a_warning() {
    let (_folder, path) = written(9, 4, 1);
    let manifest = std::fs::read_to_string(path.join("manifest.json")).unwrap();
    let fingerprint = Dataset::open(&path).unwrap().manifest().obs().unwrap().fingerprint().to_owned();
    std::fs::write(path.join("var_names.txt"), "g0\ng1\ng2\ng3\nother\n").unwrap();
    let (faults, _) = told_nothing(&path);
    assert!(faults.len() == 1 && faults[0].contains("var_names.txt: the bytes do not have the stated"), "{faults:?}");
    // Of a writer that states no digests of such files.
    let manifest = manifest.replace(&fingerprint, &"0".repeat(24)).replace("tilekern_sha256", "unknown");
    std::fs::write(path.join("manifest.json"), manifest).unwrap();
    let (faults, warnings) = told_nothing(&path);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("var.parquet: var.parquet, value 4") && warnings[0].contains("\"other\""),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("manifest.json: manifest, obs_fingerprint") && warnings[1].contains(&fingerprint));
}

#[test]
fn damaged_shards_end_in_errors() {
    let (_folder, path) = written(12, 5, 3);
    let shard = path.join("obs/obs_0000.parquet");
    let sound = std::fs::read(&shard).unwrap();
    let cells: Vec<u64> = (0..12).collect();
    let names: Vec<String> = schema().columns.into_iter().map(|column| column.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let whole = {
        let dataset = Dataset::open(&path).unwrap();
        texts(&dataset.obs().unwrap().unwrap().codes(&names, &cells).unwrap())
    };
    let (mut refused, mut told_kinds) = (0, HashSet::new());
    for at in 0..sound.len() {
        for flip in [0x01, 0xFF] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            std::fs::write(&shard, &damaged).unwrap();
            let limits = Limits::default();
            let dataset = Dataset::builder().limits(limits).open(&path).unwrap();
            let table = dataset.obs().unwrap().unwrap();
            match table.codes(&names, &cells) {
                // Plain values may have changed, but codes have their categories.
                Ok(found) => assert_eq!(texts(&found).len(), whole.len()),
                Err(error) => {
                    refused += 1;
                    assert!(error.path().is_some_and(|path| path.ends_with("obs/obs_0000.parquet")), "{error}");
                    told_kinds.insert(error.kind().name());
                }
            }
        }
    }
    for end in 0..sound.len() {
        std::fs::write(&shard, &sound[..end]).unwrap();
        let dataset = Dataset::open(&path).unwrap();
        assert!(dataset.obs().unwrap().unwrap().codes(&names, &cells).is_err(), "{end}");
    }
    assert!(refused > sound.len(), "{refused} of {}", sound.len());
    assert!(told_kinds.contains("syntax") && told_kinds.contains("truncated") | told_kinds.contains("wrong_type"));
    // Any change is found when everything is looked at.
    let mut damaged = sound.clone();
    damaged[sound.len() / 3] ^= 1;
    std::fs::write(&shard, &damaged).unwrap();
    let (faults, _) = told_nothing(&path);
    assert!(faults.iter().any(|fault| fault.contains("stated digest")), "{faults:?}");
}

#[test]
fn one_schema_for_several_inputs() {
    let dictionary = |values: &[Option<&str>]| -> ArrayRef {
        Arc::new(values.iter().copied().collect::<DictionaryArray<Int32Type>>())
    };
    let first = RecordBatch::try_from_iter([
        ("type", dictionary(&[Some("T"), None, Some("B")])),
        ("n", Arc::new(UInt8Array::from(vec![1, 2, 3])) as ArrayRef),
        ("x", Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5])) as ArrayRef),
        ("label", dictionary(&[Some("a"), Some("b"), None])),
        ("only_first", Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef),
    ])
    .unwrap();
    // A dictionary with a category that no cell has, an order of its own, and one value twice.
    let keys = Int8Array::from(vec![Some(3), Some(0), None]);
    let values = StringArray::from(vec!["NK", "unused", "T", "NK"]);
    let second = RecordBatch::try_from_iter([
        ("only_second", Arc::new(NullArray::new(3)) as ArrayRef),
        ("x", Arc::new(Int32Array::from(vec![7, 8, -9])) as ArrayRef),
        ("label", Arc::new(StringArray::from(vec![Some("z"), None, Some("a")])) as ArrayRef),
        ("n", Arc::new(Int8Array::from(vec![Some(-1), None, Some(5)])) as ArrayRef),
        ("type", Arc::new(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap()) as ArrayRef),
    ])
    .unwrap();
    let mut union = ObsUnion::new();
    union.add(&first).unwrap();
    union.add(&second).unwrap();
    let mut encoder = union.clone().finish();
    let columns: Vec<(String, ObsKind, ObsType)> =
        encoder.schema().columns.iter().map(|c| (c.name.clone(), c.kind, c.arrow_type)).collect();
    let column = |name: &str, kind, stored| (name.to_owned(), kind, stored);
    assert_eq!(
        columns,
        [
            column("type", ObsKind::Category, ObsType::Int8),
            column("n", ObsKind::Numeric, ObsType::Int16),
            column("x", ObsKind::Numeric, ObsType::Double),
            column("label", ObsKind::String, ObsType::String),
            column("only_first", ObsKind::Bool, ObsType::Bool),
            column("only_second", ObsKind::String, ObsType::String),
        ]
    );
    let categories = ["T", "B", "NK", "unused"].map(Category::from);
    assert_eq!(encoder.schema().columns[0].categories, categories);
    let text = |value: &str| format!("String({value:?})");
    let found = texts(&encoder.encode(&first).unwrap());
    assert_eq!(found[0], ["Int(0)", "Int(-1)", "Int(1)"]);
    assert_eq!(found[1], ["Int(1)", "Int(2)", "Int(3)"]);
    assert_eq!(found[2], ["Float(0.5)", "Float(1.5)", "Float(2.5)"]);
    assert_eq!(found[3], [text("a"), text("b"), "Null".into()]);
    assert_eq!(found[5], ["Null"; 3]);
    for _ in 0..2 {
        let found = texts(&encoder.encode(&second.slice(0, 3)).unwrap());
        assert_eq!(found[0], ["Int(2)", "Int(2)", "Int(-1)"]);
        assert_eq!(found[1], ["Int(-1)", "Null", "Int(5)"]);
        assert_eq!(found[2], ["Float(7.0)", "Float(8.0)", "Float(-9.0)"]);
        assert_eq!(found[3], [text("z"), "Null".into(), text("a")]);
        assert_eq!(found[4], ["Null"; 3]);
    }
    // More categories than the bound become text.
    let mut few = union.clone().max_categories(3).finish();
    assert_eq!(few.schema().columns[0].kind, ObsKind::String);
    assert_eq!(texts(&few.encode(&second).unwrap())[0], [text("NK"), text("NK"), "Null".into()]);

    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter([(name, array)]).unwrap();
    for (array, kind) in [
        (Arc::new(BooleanArray::from(vec![true])) as ArrayRef, "wrong_type"),
        (dictionary(&[Some("a")]), "wrong_type"),
        (Arc::new(arrow_array::Date32Array::from(vec![1])), "unsupported"),
    ] {
        let error = union.add(&one("n", array)).unwrap_err();
        assert_eq!((error.kind().name(), error.part().to_string().as_str()), (kind, "column 0, arrow_type"), "{error}");
        assert!(error.to_string().contains("\"n\""), "{error}");
    }
    // What the common type does not hold exactly is refused, not rounded.
    let mut union = ObsUnion::new();
    let (floats, ints) = (
        one("v", Arc::new(Float64Array::from(vec![0.5]))),
        one("v", Arc::new(Int64Array::from(vec![1, (1 << 53) + 1]))),
    );
    union.add(&floats).unwrap();
    union.add(&ints).unwrap();
    let error = union.finish().encode(&ints).unwrap_err();
    assert_eq!((error.kind().name(), error.value_index()), ("out_of_range", Some(1)), "{error}");
    // The widths of codes.
    for (n, stored) in [(127, ObsType::Int8), (128, ObsType::Int16), (32_767, ObsType::Int16), (32_768, ObsType::Int32)]
    {
        let names: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let column: DictionaryArray<Int32Type> = names.iter().map(|name| Some(name.as_str())).collect();
        let table = one("c", Arc::new(column));
        let mut union = ObsUnion::new().max_categories(100_000);
        union.add(&table).unwrap();
        let mut encoder = union.finish();
        assert_eq!(encoder.schema().columns[0].arrow_type, stored);
        let codes = encoder.encode(&table).unwrap();
        let get = getter(codes.column(0)).unwrap();
        assert!((0..n).all(|row| get(row) == Value::Int(row as i128)));
    }
}

#[test]
fn names_of_columns_of_var_differ() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    let table = var(5);
    let names = ["symbol", "id", "id", "total"].into_iter();
    let fields = names.zip(table.schema_ref().fields()).map(|(name, field)| field.as_ref().clone().with_name(name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let twice = RecordBatch::try_new(schema.clone(), table.columns().to_vec()).unwrap();
    let Err(error) = Writer::builder(5).var(twice.clone()).create(&path).map(drop) else { panic!("written") };
    let found = (error.kind(), error.part(), error.value_index());
    assert_eq!(found, (ErrorKind::Repeated { first: 1 }, Part::Option("var"), Some(2)), "{error}");
    // Another writer's.
    Writer::builder(5).var(var(5)).create(&path).unwrap().finish().unwrap();
    let file = std::fs::File::create(path.join("var.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap();
    writer.write(&twice).unwrap();
    writer.close().unwrap();
    let mut faults = Vec::new();
    let _ = verify(&Directory::new(&path).unwrap(), &Decoder::new().unwrap(), |event| {
        if let Event::Fault(fault) = event {
            faults.push((fault.kind(), fault.part(), fault.value_index()));
        }
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(faults, [(ErrorKind::Repeated { first: 1 }, Part::File("var.parquet"), Some(2))]);
}

/// Categories of genes come back as they were: their order, those that no gene has, and whether they have an order.
#[test]
fn categories_of_genes_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    // Not in the order in which genes have them, and one more than any of them; with and without missing values.
    let case = |rows: usize, categories: usize, used: usize, missing: usize, ordered: bool| {
        let texts: Vec<String> = (0..categories).rev().map(|n| format!("\u{e9}{n}")).collect();
        let key = |row: usize| i32::try_from(row * 7 % used.max(1)).ok().filter(|_| used > 0);
        let keys: Int32Array = (0..rows).map(|row| key(row).filter(|_| missing == 0 || row % missing > 0)).collect();
        let values: ArrayRef = Arc::new(StringArray::from(texts));
        let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, values));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|gene| gene.to_string())));
        let field = Field::new("kind", column.data_type().clone(), missing > 0 || used == 0);
        let fields = vec![Field::new("name", names.data_type().clone(), false), field.with_dict_is_ordered(ordered)];
        let table = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![names, column]).unwrap();
        let n_genes = u32::try_from(rows).unwrap();
        Writer::builder(n_genes).var(table.clone()).create(&path).unwrap().finish().unwrap();
        let read = Dataset::open(&path).unwrap().var().unwrap().unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(read.columns(), table.columns(), "{rows} {categories} {used} {missing}");
        let [found, expected] = [&read, &table].map(|table| table.column(1).as_dictionary::<Int32Type>().clone());
        assert_eq!(found.values(), expected.values(), "{rows} {categories} {used} {missing}");
        assert_eq!(found.keys(), expected.keys());
        assert_eq!(read.schema().field(1).dict_is_ordered(), Some(ordered));
    };
    for categories in [1, 2, 3, 4, 5, 16, 17, 128, 129, 255, 256, 257] {
        for used in [1, categories] {
            case(100, categories, used, 0, false);
            case(101, categories, used, 3, true);
        }
    }
    for rows in [1, 2, 7, 8, 9, 15, 16, 17, 65_535, 65_536, 65_537, 200_000] {
        case(rows, 11, 10, 0, false);
        case(rows, 11, 10, 2, false);
    }
    case(150_000, 70_000, 66_000, 5, false);
    case(20, 3, 0, 0, true);
    case(20, 1, 1, 1, false);
    case(20, 0, 0, 0, false);
    case(20, 3, 3, 1, false);
}

/// A dictionary that says the same twice, or nothing, has the categories that it means; text of any width is kept.
#[test]
fn categories_of_genes_are_distinct() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset");
    let texts = [Some("b"), None, Some("a"), Some("b"), Some("")];
    let arrays: [ArrayRef; 3] = [
        Arc::new(StringArray::from_iter(texts)),
        Arc::new(LargeStringArray::from_iter(texts)),
        Arc::new(StringViewArray::from_iter(texts)),
    ];
    for values in arrays {
        let keys = Int8Array::from(vec![Some(3), Some(0), None, Some(1), Some(2)]);
        let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
        let table = RecordBatch::try_from_iter_with_nullable([
            ("name", var(5).column(0).clone(), false),
            ("kind", column, true),
        ]);
        Writer::builder(5).var(table.unwrap()).create(&path).unwrap().finish().unwrap();
        let read = Dataset::open(&path).unwrap().var().unwrap().unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        let found = read.column(1).as_dictionary::<Int8Type>();
        let get = getter(found.values()).unwrap();
        let categories: Vec<_> = (0..found.values().len()).map(get).collect();
        assert_eq!(categories, ["b", "a", ""].map(Value::String));
        assert_eq!(found.keys(), &Int8Array::from(vec![Some(0), Some(0), None, None, Some(1)]));
    }
}

#[test]
fn the_index_of_var_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let index = |metadata: &[(&str, &str)]| {
        let table = var(5);
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let metadata: std::collections::HashMap<String, String> = metadata.collect();
        let schema = Schema::new_with_metadata(table.schema().fields().clone(), metadata);
        let table = RecordBatch::try_new(Arc::new(schema), table.columns().to_vec()).unwrap();
        let path = folder.path().join("dataset");
        Writer::builder(5).var(table).create(&path).unwrap().finish().unwrap();
        let read = Dataset::open(&path).unwrap().var().unwrap().unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        let pandas: serde_json::Value = serde_json::from_str(&read.schema().metadata()["pandas"]).unwrap();
        (
            var_index(&read),
            pandas["columns"].as_array().and_then(|columns| columns.last()).map(|column| column["name"].clone()),
        )
    };
    assert_eq!(index(&[]), (Some(0), Some("symbol".into())));
    assert_eq!(index(&[(INDEX_NAME, "gene")]), (Some(0), Some("gene".into())));
    let own = r#"{"index_columns": ["id"], "columns": [{"name": "q"}]}"#;
    assert_eq!(index(&[("pandas", own)]), (Some(1), Some("q".into())));
    let none = r#"{"index_columns": [{"kind": "range"}], "columns": [{"name": "q"}]}"#;
    assert_eq!(index(&[("pandas", none)]).0, None);
}

#[test]
fn a_cache_keeps_columns() {
    let (folder, path) = written(23, 5, 2);
    let reads = Arc::new(Mutex::new(Vec::new()));
    let source = Watched { inner: Directory::new(&path).unwrap(), reads: reads.clone() };
    let dataset = Dataset::builder().open_source(Box::new(source)).unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let fingerprint = dataset.manifest().obs().unwrap().fingerprint();
    let names: Vec<String> = schema().columns.into_iter().map(|column| column.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cells: Vec<u64> = (0..23).rev().collect();
    let columns: Vec<usize> = (0..names.len()).collect();
    let read = |cache: &Cache| {
        let table = dataset.obs().unwrap().unwrap().cached(cache.clone());
        reads.lock().unwrap().clear();
        let found = texts(&table.codes(&names, &cells).unwrap());
        assert_eq!(found, expected(&cells, &columns));
        reads.lock().unwrap().len()
    };
    assert!(read(&cache) > 0);
    assert_eq!(read(&cache), 0);
    let quoted = folder.path().join("cache").join(fingerprint).join("obs/bar%20code%2F...arrow");
    assert_eq!(cache.path(fingerprint, "bar code/.."), quoted);
    assert!(quoted.is_file());
    // SAFETY: files in this cache are replaced by renames alone.
    #[allow(unsafe_code)]
    let mapped = Cache::mapped(unsafe { MappedDirectory::new(folder.path().join("cache")).unwrap() });
    assert_eq!(read(&mapped), 0);

    // Any damage is noticed, or harmless; what is noticed is fetched again.
    let file = cache.path(fingerprint, "cell_type");
    let sound = std::fs::read(&file).unwrap();
    let others = std::fs::read(cache.path(fingerprint, "stage")).unwrap();
    let cut = (0..sound.len()).step_by(41).map(|end| sound[..end].to_vec());
    let longer = [&sound[..], b"more"].concat();
    let low = sound.iter().map(|&byte| if byte == 2 { 9 } else { byte }).collect();
    for damaged in cut.chain([longer, others, low]) {
        std::fs::write(&file, &damaged).unwrap();
        assert!(read(&cache) > 0, "{} bytes", damaged.len());
        assert_eq!(std::fs::read(&file).unwrap(), sound);
    }
    assert_eq!(read(&cache), 0);
    // A file for another number of rows, or another split of them.
    let (_other_folder, other) = written(23, 6, 2);
    let other = Dataset::open(other).unwrap();
    let other_cache = Cache::at(folder.path().join("other"));
    other.obs().unwrap().unwrap().cached(other_cache.clone()).codes(&["cell_type"], &[0]).unwrap();
    std::fs::copy(other_cache.path(other.manifest().obs().unwrap().fingerprint(), "cell_type"), &file).unwrap();
    assert!(read(&cache) > 0);
    // A folder that cannot be made is an error, with its path.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let table = dataset.obs().unwrap().unwrap().cached(Cache::at(folder.path().join("file")));
    assert!(table.codes(&["score"], &[0]).unwrap_err().path().is_some());
}

#[test]
fn limits_hold() {
    let (_folder, path) = written(2000, 900, 2);
    let read = |limits: Limits| {
        let dataset = Dataset::builder().limits(limits).open(&path)?;
        dataset.var()?;
        dataset.obs()?.expect("a table").codes(&["bar code/.."], &[0, 1999])
    };
    read(Limits::default()).unwrap();
    let set: [fn(&mut Limits); 4] = [
        |limits| limits.max_output_bytes = 10_000,
        |limits| limits.max_values = 899,
        |limits| limits.max_scratch_bytes = 1000,
        |limits| limits.max_input_bytes = 2000,
    ];
    for set in set {
        let mut limits = Limits::default();
        set(&mut limits);
        let error = read(limits).unwrap_err();
        assert_eq!(error.kind().name(), "limit_exceeded", "{limits:?}: {error}");
        assert!(error.path().is_some(), "{error}");
    }
}
