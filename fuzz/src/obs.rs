//! Tables of cells in.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int8Array, Int64Array, RecordBatch, StringArray};
use serde_json::Value as Json;
use tilekern::deltacel::dataset::obs::{
    Category, Filter, ObsColumn, ObsKind, ObsSchema, ObsType, Value, from_ipc, getter, to_ipc,
};
use tilekern::{Error, ErrorKind, Part};

/// Any bytes as `obs/schema.json`: an error with a place in it, or columns that another reader of JSON finds, too, and
/// that come back from the text that is written of them.
pub fn obs_schema(data: &[u8]) {
    let faults = ObsSchema::faults(data);
    for fault in &faults {
        assert!(fault.offset().is_some_and(|at| at <= data.len() as u64), "no place in the text: {fault}");
    }
    let schema = match ObsSchema::from_json(data) {
        Ok(schema) => schema,
        Err(error) => {
            assert_eq!(faults.first().map(Error::to_string), Some(error.to_string()));
            return;
        }
    };
    assert!(faults.is_empty(), "read, though {faults:?}");
    let json: Json = serde_json::from_slice(data).expect("JSON");
    let columns = json["columns"].as_array().expect("a list");
    assert_eq!(columns.len(), schema.columns.len());
    for (column, json) in schema.columns.iter().zip(columns) {
        assert_eq!(json["name"].as_str(), Some(&*column.name));
        assert_eq!(json["kind"].as_str(), Some(column.kind.name()));
        assert_eq!(json["arrow_type"].as_str(), Some(column.arrow_type.name()));
        assert!(column.kind.allows(column.arrow_type));
        let n = json["categories"].as_array().map_or(0, Vec::len);
        assert_eq!(n, column.categories.len());
        assert!(column.kind == ObsKind::Category || n == 0);
    }
    let checked = schema.check();
    assert!(checked.is_ok() || schema.columns.is_empty(), "{checked:?}");
    assert_eq!(ObsSchema::from_json(schema.to_json().as_bytes()).expect("a text of ours"), schema);
}

/// The columns of [`table`].
fn schema() -> ObsSchema {
    let texts = ["T", "B cell", "\u{e9}\"'\\"].map(Category::from);
    let columns = vec![
        ObsColumn::category("t", texts),
        ObsColumn::category("m", [Category::Int(1), Category::Bool(true), Category::Float(2.5), "x".into()]),
        ObsColumn::plain("n", ObsType::Int64),
        ObsColumn::plain("f", ObsType::Float),
        ObsColumn::plain("b", ObsType::Bool),
        ObsColumn::plain("a b`", ObsType::String),
    ];
    ObsSchema { columns }
}

const ROWS: usize = 7;

fn arrays() -> Vec<ArrayRef> {
    vec![
        Arc::new(Int8Array::from(vec![0, 1, 2, -1, 0, 1, 2])),
        Arc::new(Int8Array::from(vec![0, 1, 2, 3, -1, 3, 0])),
        Arc::new(Int64Array::from(vec![
            Some(0),
            Some(-1),
            None,
            Some(i64::MAX),
            Some(i64::MIN),
            Some(500),
            Some(1 << 53),
        ])),
        Arc::new(Float32Array::from(vec![
            Some(0.1),
            None,
            Some(f32::NAN),
            Some(-0.0),
            Some(f32::INFINITY),
            Some(2.5),
            None,
        ])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(false), None, Some(true)])),
        Arc::new(StringArray::from(vec![
            Some(""),
            Some("T"),
            None,
            Some("\u{e9}\"'\\"),
            Some("x"),
            Some("n\n\t"),
            None,
        ])),
    ]
}

fn table() -> RecordBatch {
    RecordBatch::try_new(Arc::new(schema().arrow()), arrays()).expect("the schema's columns")
}

/// Any text as a filter, or one that is made of the bytes together with what it means: an error with a place in it, or
/// rows that pass.
pub fn obs_filter(data: &[u8]) {
    let schema = schema();
    let text = String::from_utf8_lossy(data);
    match Filter::parse(&schema, &text) {
        Err(error) => {
            assert_eq!(error.part(), Part::Filter);
            let at = error.offset().and_then(|at| usize::try_from(at).ok()).expect("a place");
            assert!(text.is_char_boundary(at), "{at} in {text:?}");
        }
        Ok(filter) => {
            let passing = filter.matches(&schema, &table()).expect("rows of the schema");
            assert_eq!(passing.len(), ROWS);
            // Its negation never lets a row pass that it lets pass; with one level more it may be too deep.
            if let Ok(negated) = Filter::parse(&schema, &format!("!({text})")) {
                let others = negated.matches(&schema, &table()).expect("rows of the schema");
                assert!(passing.iter().zip(&others).all(|(a, b)| !(a & b)));
            }
        }
    }
    let Ok((text, meaning)) = expression(&mut Unstructured::new(data), 0) else { return };
    let filter = Filter::parse(&schema, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let passing = filter.matches(&schema, &table()).expect("rows of the schema");
    let expected: Vec<bool> = meaning.into_iter().map(|truth| truth == Some(true)).collect();
    assert_eq!(passing, expected, "{text}");
}

/// A filter, and what holds for each row: true, false, or neither.
type Expression = (String, Vec<Option<bool>>);

fn expression(u: &mut Unstructured<'_>, depth: usize) -> Result<Expression> {
    let choice = if depth > 6 { 0 } else { u.int_in_range(0..=7)? };
    let blank = if u.arbitrary()? { " " } else { "" };
    Ok(match choice {
        5 => {
            let (text, meaning) = expression(u, depth + 1)?;
            (format!("!{blank}({text})"), meaning.into_iter().map(|truth| truth.map(|truth| !truth)).collect())
        }
        6 | 7 => {
            let (a, b) = (expression(u, depth + 1)?, expression(u, depth + 1)?);
            let or = choice == 6;
            let both = |(a, b): (Option<bool>, Option<bool>)| match (a, b) {
                (Some(a), Some(b)) => Some(if or { a || b } else { a && b }),
                (one, other) if one == Some(or) || other == Some(or) => Some(or),
                _ => None,
            };
            let meaning = a.1.into_iter().zip(b.1).map(both).collect();
            (format!("({}){blank}{}{blank}({})", a.0, if or { "||" } else { "&&" }, b.0), meaning)
        }
        _ => test(u, blank)?,
    })
}

/// A test of one column.
fn test(u: &mut Unstructured<'_>, blank: &str) -> Result<Expression> {
    let (name, column) = *u.choose(&[("t", 0), ("n", 2), ("f", 3), ("b", 4), ("`a b```", 5)])?;
    let values = values(column);
    if u.ratio(1, 6)? {
        let wanted = u.arbitrary()?;
        let meaning = values.iter().map(|value| Some((value == "null") == wanted)).collect();
        return Ok((format!("{name} is {}null", if wanted { "" } else { "not " }), meaning));
    }
    let literals: &[(&str, &str)] = match column {
        0 | 5 => &[
            ("'T'", "T"),
            ("\"B cell\"", "B cell"),
            ("'\u{e9}\"\\'\\\\'", "\u{e9}\"'\\"),
            ("\"\"", ""),
            ("\"n\\n\\t\"", "n\n\t"),
        ],
        4 => &[("true", "true"), ("false", "false")],
        _ => &[("0", "0"), ("-1", "-1"), ("2.5", "2.5"), ("500.0", "500"), ("1e2", "100"), ("0.1", "0.1")],
    };
    let (text, literal) = *u.choose(literals)?;
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let numeric = matches!(column, 2 | 3);
    let same = |value: &str, literal: &str| if numeric { number(value) == number(literal) } else { value == literal };
    let known = |holds: &dyn Fn(&str) -> bool| -> Vec<Option<bool>> {
        values.iter().map(|value| (value != "null").then(|| holds(value))).collect()
    };
    let operators: &[&str] =
        if numeric { &["==", "!=", "<", "<=", ">", ">=", "in", "not in"] } else { &["==", "!=", "in", "not in"] };
    let operator = *u.choose(operators)?;
    let meaning = match operator {
        "==" => known(&|value| same(value, literal)),
        "!=" => known(&|value| !same(value, literal)),
        "<" => known(&|value| number(value) < number(literal)),
        "<=" => known(&|value| number(value) <= number(literal)),
        ">" => known(&|value| number(value) > number(literal)),
        ">=" => known(&|value| number(value) >= number(literal)),
        list => {
            let (other_text, other) = *u.choose(literals)?;
            let wanted = list == "in";
            let meaning = known(&|value| (same(value, literal) || same(value, other)) == wanted);
            return Ok((format!("{name} {list} [{text},{blank}{other_text}]"), meaning));
        }
    };
    Ok((format!("{name} {operator}{blank}{text}"), meaning))
}

/// The values of a column of [`table`] as text that means the same number, boolean or text.
fn values(column: usize) -> Vec<String> {
    let array = &arrays()[column];
    let get = getter(array).expect("values");
    let text = |row| match (get(row), column) {
        (Value::Null, _) | (Value::Int(-1), 0) => "null".to_owned(),
        (Value::Int(code), 0) => ["T", "B cell", "\u{e9}\"'\\"][usize::try_from(code).expect("a code")].to_owned(),
        (Value::Int(value), _) => value.to_string(),
        // The column's type has fewer digits than the literal.
        (Value::Float(value), _) if value == f64::from(0.1f32) => "0.1".to_owned(),
        (Value::Float(value), _) => value.to_string(),
        (Value::Bool(value), _) => value.to_string(),
        (Value::String(text), _) => text.to_owned(),
    };
    (0..ROWS).map(text).collect()
}

/// Any bytes as the file of a cached column: an error, or as many values as there are rows, each of the column's type.
pub fn obs_cache(data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else { return };
    let schema = schema();
    let column = &schema.columns[usize::from(choice) % schema.columns.len()];
    let rows = [5, 2];
    let Ok(tiles) = from_ipc(column, file.to_vec(), &rows) else { return };
    assert_eq!(tiles.iter().map(|array| array.len() as u64).collect::<Vec<_>>(), rows);
    for array in &tiles {
        let get = getter(array).expect("values");
        for value in (0..array.len()).map(get) {
            let fits = match (column.kind, value) {
                (ObsKind::Category, Value::Int(code)) => code >= -1 && code < column.categories.len() as i128,
                (ObsKind::Numeric, value) => matches!(value, Value::Null | Value::Int(_) | Value::Float(_)),
                (ObsKind::Bool, value) => matches!(value, Value::Null | Value::Bool(_)),
                (ObsKind::String, value) => matches!(value, Value::Null | Value::String(_)),
                _ => false,
            };
            assert!(fits, "{value:?} in {column:?}");
        }
    }
    // It is written again as it was read.
    let bytes = to_ipc(column, &tiles).expect("values of the column");
    let again = from_ipc(column, bytes, &rows)
        .unwrap_or_else(|error: Error| panic!("{error} {:?}", ErrorKind::name(&error.kind())));
    let texts = |arrays: &[ArrayRef]| arrays.iter().map(|array| format!("{array:?}")).collect::<Vec<_>>();
    assert_eq!(texts(&again), texts(&tiles));
}

/// The seeds of a target of this file.
pub(super) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "obs_schema" => {
            let text = schema().to_json();
            let kinds = text.replace("null", "[]").replace("int64", "halffloat").replace("float\"", "double\"");
            vec![text.into_bytes(), kinds.into_bytes(), ObsSchema::default().to_json().into_bytes()]
        }
        "obs_filter" => {
            let texts = [
                "t == \"B cell\" && n > 500",
                "!(t in ['T', \"x\"]) || `a b``` is null",
                "0.1 <= f && (b || !b) && m not in [1, true, 2.5, 'x'] && t is not null && b != false && n < 1e-3",
            ];
            let noise = (0..32).map(|i| super::seeds::noise(i, 80));
            texts.iter().map(|text| text.as_bytes().to_vec()).chain(noise).collect()
        }
        _ => {
            let file = |(n, array): (u8, &ArrayRef)| {
                let column = &schema().columns[usize::from(n)];
                let bytes = to_ipc(column, &[array.slice(0, 5), array.slice(5, 2)]).expect("values of the column");
                [&[n][..], &bytes].concat()
            };
            (0..).zip(&arrays()).map(file).collect()
        }
    }
}
