//! One schema for the tables of several inputs, and their rows in its terms.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::DataType;

use super::schema::{Category, ObsColumn, ObsKind, ObsSchema, ObsType};
use super::values::{Getter, Value, getter};
use crate::error::{Error, ErrorKind, Part, Unsupported};

/// Categories of a column, above which it is stored as text, unless another bound is asked for.
const MAX_CATEGORIES: usize = 20_000;

/// Puts the tables of several inputs under one schema: columns, and categories of a column, in the order in which they
/// are first seen. Categories that no cell has are kept.
///
/// Arrow dictionaries are columns of categories, everything else keeps its kind. Where inputs differ:
///
/// - a column that an input lacks is missing in its cells
/// - integers and numbers get a type that holds both; a value that it does not hold exactly is refused when it comes
/// - categories in one input and text in another become text, as do more categories than
///   [`ObsUnion::max_categories`]
/// - any other two kinds under one name are refused
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, DictionaryArray, Int8Array, RecordBatch, types::Int32Type};
/// use tilekern::deltacel::dataset::obs::ObsUnion;
///
/// let table = |values: [&str; 2]| {
///     let column: DictionaryArray<Int32Type> = values.into_iter().collect();
///     RecordBatch::try_from_iter([("cell_type", Arc::new(column) as ArrayRef)])
/// };
/// let (first, second) = (table(["T", "B"])?, table(["NK", "T"])?);
/// let mut union = ObsUnion::new();
/// union.add(&first)?;
/// union.add(&second)?;
/// let mut encoder = union.finish();
/// let rows = encoder.encode(&second)?;
/// assert_eq!(rows.column(0).as_ref(), &Int8Array::from(vec![2, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ObsUnion {
    max_categories: usize,
    columns: Vec<Draft>,
}

/// What is known of a column so far.
#[derive(Clone, Debug)]
struct Draft {
    name: String,
    /// None while there were missing values only.
    kind: Option<Kind>,
    categories: Vec<Category>,
    /// The code of each category, by its JSON.
    codes: HashMap<String, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Category,
    Plain(ObsType),
}

impl Default for ObsUnion {
    fn default() -> ObsUnion {
        ObsUnion { max_categories: MAX_CATEGORIES, columns: Vec::new() }
    }
}

impl ObsUnion {
    /// Of no table yet.
    pub fn new() -> ObsUnion {
        ObsUnion::default()
    }

    /// Categories of a column, above which it is stored as text; 20,000 unless it is set.
    #[must_use]
    pub fn max_categories(mut self, max: usize) -> ObsUnion {
        self.max_categories = max;
        self
    }

    /// Takes in the columns of a table, or of some rows of it: its dictionaries must be whole, its values do not matter.
    ///
    /// # Errors
    /// [`Unsupported::Kind`] for a type that no column can have; [`ErrorKind::WrongType`] where another table has
    /// another kind under the same name, and for a category that is no text, boolean or finite number;
    /// [`ErrorKind::Repeated`] for a name that the table has twice.
    pub fn add(&mut self, table: &RecordBatch) -> Result<(), Error> {
        let mut names = HashMap::new();
        for ((n, field), array) in (0u32..).zip(table.schema_ref().fields()).zip(table.columns()) {
            let about = format!("column {:?} of type {}", field.name(), field.data_type());
            let wrong = |kind, field| Error::new(kind, Part::Column(n, field)).caused_by(about.clone());
            if let Some(first) = names.insert(field.name(), n) {
                return Err(wrong(ErrorKind::Repeated { first: first.into() }, "name"));
            }
            let kind = match field.data_type() {
                DataType::Null => None,
                DataType::Dictionary(..) => Some(Kind::Category),
                DataType::LargeUtf8 | DataType::Utf8View => Some(Kind::Plain(ObsType::String)),
                other => match ObsType::of(other) {
                    Some(stored) => Some(Kind::Plain(stored)),
                    None => return Err(wrong(ErrorKind::Unsupported(Unsupported::Kind), "arrow_type")),
                },
            };
            let draft = self.draft(field.name());
            draft.kind = merge(draft.kind, kind).ok_or_else(|| {
                let before = draft.kind.map_or("unknown", Kind::name);
                let why = format!("{about}, {before} in another input; convert one of them");
                Error::new(ErrorKind::WrongType, Part::Column(n, "arrow_type")).caused_by(why)
            })?;
            if let Some(dictionary) = array.as_any_dictionary_opt() {
                let values = dictionary.values();
                let get =
                    getter(values).ok_or_else(|| wrong(ErrorKind::Unsupported(Unsupported::Kind), "arrow_type"))?;
                for row in (0..values.len()).filter(|&row| get(row) != Value::Null) {
                    let category = get(row).to_category();
                    let category =
                        category.ok_or_else(|| wrong(ErrorKind::WrongType, "categories").index(row as u64))?;
                    draft.add(category);
                }
            }
        }
        Ok(())
    }

    fn draft(&mut self, name: &str) -> &mut Draft {
        let at = self.columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
            let (categories, codes) = (Vec::new(), HashMap::new());
            self.columns.push(Draft { name: name.to_owned(), kind: None, categories, codes });
            self.columns.len() - 1
        });
        &mut self.columns[at]
    }

    /// The schema of them all, and what puts their rows in its terms.
    pub fn finish(self) -> ObsEncoder {
        let column = |draft: Draft| {
            let column = match draft.kind {
                Some(Kind::Category) if draft.categories.len() <= self.max_categories => {
                    ObsColumn::category(draft.name, draft.categories)
                }
                Some(Kind::Plain(stored)) => ObsColumn::plain(draft.name, stored),
                Some(Kind::Category) | None => ObsColumn::plain(draft.name, ObsType::String),
            };
            (column, draft.codes)
        };
        let (columns, codes): (Vec<_>, Vec<_>) = self.columns.into_iter().map(column).unzip();
        let maps = codes.into_iter().map(|codes| Codes { codes: Arc::new(codes), last: None }).collect();
        ObsEncoder { schema: ObsSchema { columns }, maps }
    }
}

impl Draft {
    fn add(&mut self, category: Category) {
        let next = self.categories.len();
        self.codes.entry(category.to_json()).or_insert_with(|| {
            self.categories.push(category);
            next
        });
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Category => "category",
            Kind::Plain(stored) => stored.name(),
        }
    }
}

/// The kind that holds the values of two; `None` if there is none.
fn merge(before: Option<Kind>, now: Option<Kind>) -> Option<Option<Kind>> {
    let text = Kind::Plain(ObsType::String);
    Some(match (before, now) {
        (None, kind) | (kind, None) => kind,
        (Some(a), Some(b)) if a == b => Some(a),
        (Some(Kind::Category), Some(b)) if b == text => Some(text),
        (Some(a), Some(Kind::Category)) if a == text => Some(text),
        (Some(Kind::Plain(a)), Some(Kind::Plain(b))) => Some(Kind::Plain(wider(a, b)?)),
        _ => return None,
    })
}

/// The type that holds the numbers of two types: exactly, unless one of them is of 64 bits.
fn wider(a: ObsType, b: ObsType) -> Option<ObsType> {
    let ((a, b), signed) = ((number(a)?, number(b)?), [ObsType::Int8, ObsType::Int16, ObsType::Int32, ObsType::Int64]);
    Some(match (a, b) {
        (Number::Unsigned(a), Number::Unsigned(b)) => {
            [ObsType::UInt8, ObsType::UInt16, ObsType::UInt32, ObsType::UInt64][a.max(b)]
        }
        (Number::Signed(a), Number::Signed(b)) => signed[a.max(b)],
        (Number::Signed(s), Number::Unsigned(u)) | (Number::Unsigned(u), Number::Signed(s)) => {
            signed[s.max(u + 1).min(3)]
        }
        (Number::Float(a), Number::Float(b)) => float(a.max(b)),
        // A number of n bits has exact integers of n / 2 bits, a little less than that of the narrowest one.
        (Number::Float(f), Number::Signed(i) | Number::Unsigned(i))
        | (Number::Signed(i) | Number::Unsigned(i), Number::Float(f)) => float(f.max((i + 1).min(3))),
    })
}

/// A type of numbers and its width: 2^n bytes.
enum Number {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
}

fn number(stored: ObsType) -> Option<Number> {
    Some(match stored {
        ObsType::Int8 => Number::Signed(0),
        ObsType::Int16 => Number::Signed(1),
        ObsType::Int32 => Number::Signed(2),
        ObsType::Int64 => Number::Signed(3),
        ObsType::UInt8 => Number::Unsigned(0),
        ObsType::UInt16 => Number::Unsigned(1),
        ObsType::UInt32 => Number::Unsigned(2),
        ObsType::UInt64 => Number::Unsigned(3),
        ObsType::HalfFloat => Number::Float(1),
        ObsType::Float => Number::Float(2),
        ObsType::Double => Number::Float(3),
        ObsType::Bool | ObsType::String => return None,
    })
}

fn float(width: usize) -> ObsType {
    match width {
        0 | 1 => ObsType::HalfFloat,
        2 => ObsType::Float,
        _ => ObsType::Double,
    }
}

/// Puts rows of tables in the terms of a schema: see [`ObsUnion`].
#[derive(Clone, Debug)]
pub struct ObsEncoder {
    schema: ObsSchema,
    maps: Vec<Codes>,
}

/// The codes of the categories of a column.
#[derive(Clone, Debug)]
struct Codes {
    codes: Arc<HashMap<String, usize>>,
    /// The dictionary that was met last, and the code of each of its values: most rows come with the same one.
    last: Option<(ArrayRef, Arc<[i32]>)>,
}

impl ObsEncoder {
    /// The schema, for `WriterBuilder::obs`.
    pub fn schema(&self) -> &ObsSchema {
        &self.schema
    }

    /// The rows of a table that was taken into the union, or of a part of it, as
    /// `Writer::push_with_obs` takes them.
    ///
    /// # Errors
    /// In [`Part::Column`], with the index of the row: [`ErrorKind::OutOfRange`] for a value that the column's type does
    /// not hold exactly, [`ErrorKind::WrongType`] for a value or a category that the union did not see.
    pub fn encode(&mut self, table: &RecordBatch) -> Result<RecordBatch, Error> {
        let rows = table.num_rows();
        let all: Vec<usize> = (0..self.schema.columns.len()).collect();
        let arrays = self.columns(&all, table)?;
        let schema = Arc::new(self.schema.arrow());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .map_err(|error| Error::new(ErrorKind::WrongType, Part::Object).caused_by(error))
    }
}

impl ObsEncoder {
    /// Some columns of the schema, as [`ObsEncoder::encode`] has them.
    pub(super) fn columns(&mut self, columns: &[usize], table: &RecordBatch) -> Result<Vec<ArrayRef>, Error> {
        let encoded = |&n: &usize| {
            let (column, codes) = (&self.schema.columns[n], &mut self.maps[n]);
            let encoded = match table.column_by_name(&column.name) {
                Some(array) => encode(column, codes, array),
                None => encode(column, codes, &arrow_array::new_null_array(&DataType::Null, table.num_rows())),
            };
            let part = Part::Column(u32::try_from(n).unwrap_or(u32::MAX), "values");
            encoded.map_err(|error: Error| error.in_part(part).about(&format!("column {:?}", column.name)))
        };
        columns.iter().map(encoded).collect()
    }
}

fn encode(column: &ObsColumn, codes: &mut Codes, array: &ArrayRef) -> Result<ArrayRef, Error> {
    if column.kind == ObsKind::Category {
        let map = codes.map(array)?;
        let keys = array.as_any_dictionary_opt().and_then(|dictionary| getter(dictionary.keys()));
        let code = |row: usize| match keys.as_ref().map(|keys| keys(row)) {
            Some(Value::Int(key)) => usize::try_from(key).ok().and_then(|key| map.get(key).copied()).unwrap_or(-1),
            _ => -1,
        };
        let codes = (0..array.len()).map(code);
        // The type has room for every code.
        return Ok(match column.arrow_type {
            ObsType::Int8 => Arc::new(codes.map(|code| i8::try_from(code).ok()).collect::<PrimitiveArray<Int8Type>>()),
            ObsType::Int16 => {
                Arc::new(codes.map(|code| i16::try_from(code).ok()).collect::<PrimitiveArray<Int16Type>>())
            }
            _ => Arc::new(codes.map(Some).collect::<PrimitiveArray<Int32Type>>()),
        });
    }
    if *array.data_type() == column.arrow_type.arrow() {
        return Ok(array.clone());
    }
    let wrong = || Error::new(ErrorKind::WrongType, Part::Object);
    let (get, rows) = (getter(array).ok_or_else(wrong)?, array.len());
    Ok(match column.arrow_type {
        ObsType::Int8 => integers::<Int8Type>(&get, rows, column)?,
        ObsType::Int16 => integers::<Int16Type>(&get, rows, column)?,
        ObsType::Int32 => integers::<Int32Type>(&get, rows, column)?,
        ObsType::Int64 => integers::<Int64Type>(&get, rows, column)?,
        ObsType::UInt8 => integers::<UInt8Type>(&get, rows, column)?,
        ObsType::UInt16 => integers::<UInt16Type>(&get, rows, column)?,
        ObsType::UInt32 => integers::<UInt32Type>(&get, rows, column)?,
        ObsType::UInt64 => integers::<UInt64Type>(&get, rows, column)?,
        ObsType::HalfFloat => {
            numbers::<Float16Type>(&get, rows, column, 11, <Float16Type as ArrowPrimitiveType>::Native::from_f64)?
        }
        #[allow(clippy::cast_possible_truncation)] // what is not exact was refused
        ObsType::Float => numbers::<Float32Type>(&get, rows, column, 24, |value| value as f32)?,
        ObsType::Double => numbers::<Float64Type>(&get, rows, column, 53, |value| value)?,
        ObsType::Bool => {
            let value = |row: usize| match get(row) {
                Value::Bool(value) => Ok(Some(value)),
                Value::Null => Ok(None),
                _ => Err(wrong().index(row as u64)),
            };
            Arc::new((0..rows).map(value).collect::<Result<BooleanArray, Error>>()?)
        }
        ObsType::String => {
            let value = |row: usize| match get(row) {
                Value::String(text) => Some(text.to_owned()),
                value => value.to_category().map(|category| category.to_string()),
            };
            Arc::new((0..rows).map(value).collect::<StringArray>())
        }
    })
}

impl Codes {
    /// The code of each value of the dictionary of an array; empty for an array without one, all of which is missing.
    fn map(&mut self, array: &ArrayRef) -> Result<Arc<[i32]>, Error> {
        let wrong = || Error::new(ErrorKind::WrongType, Part::Object);
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            return if *array.data_type() == DataType::Null { Ok(Arc::new([])) } else { Err(wrong()) };
        };
        let values = dictionary.values();
        if let Some((last, map)) = &self.last
            && Arc::ptr_eq(last, values)
        {
            return Ok(map.clone());
        }
        let get = getter(values).ok_or_else(wrong)?;
        let code = |row: usize| match get(row) {
            Value::Null => Ok(-1),
            value => {
                let code = value.to_category().and_then(|category| self.codes.get(&category.to_json()));
                code.and_then(|&code| i32::try_from(code).ok()).ok_or_else(|| wrong().index(row as u64))
            }
        };
        let map: Arc<[i32]> = (0..values.len()).map(code).collect::<Result<_, Error>>()?;
        self.last = Some((values.clone(), map.clone()));
        Ok(map)
    }
}

fn integers<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(
    get: &Getter<'_>,
    rows: usize,
    column: &ObsColumn,
) -> Result<ArrayRef, Error> {
    let value = |row: usize| match get(row) {
        Value::Null => Ok(None),
        Value::Int(value) => {
            let fault = |_| inexact(column, value, row, i64::MIN.into(), i64::MAX.into());
            T::Native::try_from(value).map(Some).map_err(fault)
        }
        _ => Err(Error::new(ErrorKind::WrongType, Part::Object).index(row as u64)),
    };
    Ok(Arc::new((0..rows).map(value).collect::<Result<PrimitiveArray<T>, Error>>()?))
}

/// Numbers of a type whose mantissa has so many bits.
fn numbers<T: ArrowPrimitiveType>(
    get: &Getter<'_>,
    rows: usize,
    column: &ObsColumn,
    bits: u32,
    convert: impl Fn(f64) -> T::Native,
) -> Result<ArrayRef, Error> {
    let value = |row: usize| match get(row) {
        Value::Null => Ok(None),
        Value::Float(value) => Ok(Some(convert(value))), // of this type or a narrower one
        Value::Int(value) if value.unsigned_abs() <= 1 << bits => Ok(Some(convert(value as f64))),
        Value::Int(value) => Err(inexact(column, value, row, -1 << bits, 1 << bits)),
        _ => Err(Error::new(ErrorKind::WrongType, Part::Object).index(row as u64)),
    };
    Ok(Arc::new((0..rows).map(value).collect::<Result<PrimitiveArray<T>, Error>>()?))
}

/// A number of one input that the type for those of all inputs does not hold.
fn inexact(column: &ObsColumn, found: i128, row: usize, min: i128, max: i128) -> Error {
    let (name, stored) = (&column.name, column.arrow_type.name());
    let why = format!(
        "column {name:?} is of type {stored} over all inputs, which does not hold it exactly; make the column text in all \
         inputs, or take it out of one"
    );
    Error::new(ErrorKind::OutOfRange { found, min, max }, Part::Object).index(row as u64).caused_by(why)
}
