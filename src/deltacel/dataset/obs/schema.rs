//! `obs/schema.json`: the columns of the table of cells, and the table's fingerprint.
//!
//! Source: DELTACEL file format, "Obs".

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use arrow_schema::{DataType, Field, Schema};
use serde_core::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::deltacel::dataset::manifest::{check_depth, hex, offset_in, syntax};
use crate::error::{Error, ErrorKind, Limit, Part, SyntaxFault, Unsupported};
use crate::limits::Limits;

const FORMAT: &str = "deltacells-obs";
const VERSION: u64 = 1;

/// What a schema may have at most: enough for more than a million categories.
pub(in crate::deltacel::dataset) const MAX_BYTES: u64 = 64 << 20;

/// The columns of the table of cells.
///
/// A table for some consecutive cells is an Arrow record batch with exactly these columns (see [`ObsSchema::arrow`]):
/// codes in place of categories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObsSchema {
    /// In the order of the shards.
    pub columns: Vec<ObsColumn>,
}

/// One column of the table of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ObsColumn {
    /// Its name, which no other column has.
    pub name: String,
    /// What its values mean.
    pub kind: ObsKind,
    /// How they are stored.
    pub arrow_type: ObsType,
    /// What code 0, 1, … of a column of categories means, for all cells of the dataset. Empty for other kinds.
    pub categories: Vec<Category>,
}

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObsKind {
    /// Codes of categories; -1 is a missing value.
    Category,
    /// Numbers; null is a missing value.
    Numeric,
    /// Booleans; null is a missing value.
    Bool,
    /// Text; null is a missing value.
    String,
}

/// How the values of a column are stored, under the names that Arrow gives its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObsType {
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `halffloat`
    HalfFloat,
    /// `float`, of 32 bits
    Float,
    /// `double`
    Double,
    /// `bool`
    Bool,
    /// `string`
    String,
}

/// What a code means: a scalar of JSON. (A missing value is no category.)
#[derive(Clone, Debug, PartialEq)]
pub enum Category {
    /// Text, as nearly always.
    String(String),
    /// A boolean.
    Bool(bool),
    /// An integer that an `i64` or a `u64` holds.
    Int(i128),
    /// A finite number.
    Float(f64),
}

impl ObsKind {
    const ALL: [ObsKind; 4] = [ObsKind::Category, ObsKind::Numeric, ObsKind::Bool, ObsKind::String];

    /// The word that the schema has for it.
    pub const fn name(self) -> &'static str {
        match self {
            ObsKind::Category => "category",
            ObsKind::Numeric => "numeric",
            ObsKind::Bool => "bool",
            ObsKind::String => "string",
        }
    }

    /// Whether values of this kind can be stored as `stored`.
    pub const fn allows(self, stored: ObsType) -> bool {
        match self {
            ObsKind::Category => matches!(stored, ObsType::Int8 | ObsType::Int16 | ObsType::Int32),
            ObsKind::Numeric => !matches!(stored, ObsType::Bool | ObsType::String),
            ObsKind::Bool => matches!(stored, ObsType::Bool),
            ObsKind::String => matches!(stored, ObsType::String),
        }
    }
}

/// Every type, the word that the schema has for it, and Arrow's type.
const TYPES: [(ObsType, &str, DataType); 13] = [
    (ObsType::Int8, "int8", DataType::Int8),
    (ObsType::Int16, "int16", DataType::Int16),
    (ObsType::Int32, "int32", DataType::Int32),
    (ObsType::Int64, "int64", DataType::Int64),
    (ObsType::UInt8, "uint8", DataType::UInt8),
    (ObsType::UInt16, "uint16", DataType::UInt16),
    (ObsType::UInt32, "uint32", DataType::UInt32),
    (ObsType::UInt64, "uint64", DataType::UInt64),
    (ObsType::HalfFloat, "halffloat", DataType::Float16),
    (ObsType::Float, "float", DataType::Float32),
    (ObsType::Double, "double", DataType::Float64),
    (ObsType::Bool, "bool", DataType::Boolean),
    (ObsType::String, "string", DataType::Utf8),
];

impl ObsType {
    /// The word that the schema has for it.
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    /// Arrow's type.
    pub fn arrow(self) -> DataType {
        TYPES[self as usize].2.clone()
    }

    /// The type that is stored as Arrow's `stored`, if there is one.
    pub fn of(stored: &DataType) -> Option<ObsType> {
        TYPES.iter().find(|(_, _, arrow)| arrow == stored).map(|known| known.0)
    }

    /// The type in which codes of so many categories are written.
    pub const fn for_codes(categories: usize) -> ObsType {
        match categories {
            0..=127 => ObsType::Int8,
            128..=32_767 => ObsType::Int16,
            _ => ObsType::Int32,
        }
    }

    /// How many codes it holds.
    const fn max_categories(self) -> u64 {
        match self {
            ObsType::Int8 => 1 << 7,
            ObsType::Int16 => 1 << 15,
            _ => 1 << 31,
        }
    }
}

impl Category {
    /// As the schema's text has it; no two categories of one column have the same.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        match self {
            Category::String(string) => quote(&mut text, string),
            Category::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Category::Int(value) => write!(text, "{value}").expect("strings grow"),
            Category::Float(value) => text = float(*value),
        }
        text
    }
}

impl std::fmt::Display for Category {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Category::String(string) => f.write_str(string),
            other => f.write_str(&other.to_json()),
        }
    }
}

impl From<&str> for Category {
    fn from(text: &str) -> Category {
        Category::String(text.to_owned())
    }
}

/// What is wrong with a column: the field, the element of its list, the fault.
type Fault = (&'static str, Option<usize>, ErrorKind);

impl ObsColumn {
    /// A column of categories, with codes of the type that its vocabulary needs.
    pub fn category(name: impl Into<String>, categories: impl IntoIterator<Item = Category>) -> ObsColumn {
        let categories: Vec<Category> = categories.into_iter().collect();
        let arrow_type = ObsType::for_codes(categories.len());
        ObsColumn { name: name.into(), kind: ObsKind::Category, arrow_type, categories }
    }

    /// A column of numbers, booleans or text, by its type.
    pub fn plain(name: impl Into<String>, arrow_type: ObsType) -> ObsColumn {
        let kind = match arrow_type {
            ObsType::Bool => ObsKind::Bool,
            ObsType::String => ObsKind::String,
            _ => ObsKind::Numeric,
        };
        ObsColumn { name: name.into(), kind, arrow_type, categories: Vec::new() }
    }

    fn fault(&self) -> Option<Fault> {
        if !self.kind.allows(self.arrow_type) {
            return Some(("arrow_type", None, ErrorKind::WrongType));
        }
        if self.kind != ObsKind::Category {
            return (!self.categories.is_empty()).then_some(("categories", None, ErrorKind::WrongType));
        }
        let (found, max) = (self.categories.len() as u64, self.arrow_type.max_categories());
        if found > max {
            let kind = ErrorKind::OutOfRange { found: found.into(), min: 0, max: max.into() };
            return Some(("categories", None, kind));
        }
        let mut seen = HashMap::new();
        for (index, category) in self.categories.iter().enumerate() {
            let sound = match category {
                Category::Int(value) => (i64::MIN.into()..=u64::MAX.into()).contains(value),
                Category::Float(value) => value.is_finite(),
                _ => true,
            };
            if !sound {
                return Some(("categories", Some(index), ErrorKind::WrongType));
            }
            if let Some(first) = seen.insert(category.to_json(), index) {
                return Some(("categories", Some(index), ErrorKind::Repeated { first: first as u64 }));
            }
        }
        None
    }
}

impl ObsSchema {
    /// Reads and checks the text of a schema.
    ///
    /// # Errors
    /// The first of [`ObsSchema::faults`].
    pub fn from_json(text: &[u8]) -> Result<ObsSchema, Error> {
        ObsSchema::parse(text).map_err(|mut faults| faults.swap_remove(0)) // there is at least one
    }

    /// Every fault of the text of a schema: of each column the first. The part names the key or the column, and the
    /// offset is that of the value at fault, or of the place where the text stops being JSON.
    ///
    /// - [`ErrorKind::Syntax`]: not UTF-8, no JSON (`NaN` is none), nested too deeply, a key twice
    /// - [`ErrorKind::Missing`], [`ErrorKind::WrongType`]: also of a type that the column's kind does not allow
    /// - [`ErrorKind::BadMagic`] and [`ErrorKind::Version`] of format and version
    /// - [`Unsupported::Kind`]: a kind that there is not
    /// - [`ErrorKind::OutOfRange`]: more categories than the type has codes
    /// - [`ErrorKind::Repeated`]: a name of a column, or a category, that was there before
    /// - [`ErrorKind::LimitExceeded`]: more than 64 MiB
    pub fn faults(text: &[u8]) -> Vec<Error> {
        ObsSchema::parse(text).err().unwrap_or_default()
    }

    pub(in crate::deltacel::dataset) fn parse(text: &[u8]) -> Result<ObsSchema, Vec<Error>> {
        let mut reader = Reader { text: utf8(text).map_err(|error| vec![error])?, faults: Vec::new() };
        let schema = reader.schema();
        match schema {
            Some(schema) if reader.faults.is_empty() => Ok(schema),
            _ => Err(reader.faults),
        }
    }

    /// Passes a schema that was put together by hand.
    ///
    /// # Errors
    /// As [`ObsSchema::from_json`], without offsets; [`ErrorKind::Missing`] for a schema without columns, which Parquet
    /// cannot store.
    pub fn check(&self) -> Result<(), Error> {
        if self.columns.is_empty() {
            return Err(Error::new(ErrorKind::Missing, Part::Schema(Some("columns"))));
        }
        let mut names = HashMap::new();
        for (n, column) in (0..).zip(&self.columns) {
            let repeated = names.insert(&*column.name, n).map(|first| ("name", None, repeated(first)));
            if let Some(fault) = repeated.or_else(|| column.fault()) {
                return Err(column_error(n, fault).caused_by(named(&column.name)));
            }
        }
        Ok(())
    }

    /// The number of the column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&ObsColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Arrow's schema of the stored table: codes for categories. Codes are never null.
    pub fn arrow(&self) -> Schema {
        let field =
            |column: &ObsColumn| Field::new(&column.name, column.arrow_type.arrow(), column.kind != ObsKind::Category);
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }

    /// The text of the schema, as `json.dumps` of Python writes it.
    pub fn to_json(&self) -> String {
        let mut text = format!("{{\"format\": \"{FORMAT}\", \"version\": {VERSION}, \"columns\": [");
        for (n, column) in self.columns.iter().enumerate() {
            text.push_str(if n == 0 { "{\"name\": " } else { ", {\"name\": " });
            quote(&mut text, &column.name);
            let (kind, stored) = (column.kind.name(), column.arrow_type.name());
            write!(text, ", \"kind\": \"{kind}\", \"arrow_type\": \"{stored}\", \"categories\": ")
                .expect("strings grow");
            if column.kind == ObsKind::Category {
                let categories: Vec<String> = column.categories.iter().map(Category::to_json).collect();
                write!(text, "[{}]}}", categories.join(", ")).expect("strings grow");
            } else {
                text.push_str("null}");
            }
        }
        text.push_str("]}");
        text
    }
}

/// The first 24 digits of the SHA-256 of `{"schema": …, "shards": […], "tile_cells": […]}`, as `json.dumps` of Python
/// writes it with sorted keys; the schema is a string with the exact text of the file.
pub(in crate::deltacel::dataset) fn fingerprint(
    schema: &str,
    shards: &[[u8; 32]],
    tile_cells: impl Iterator<Item = u64>,
) -> String {
    let mut text = String::from("{\"schema\": ");
    quote(&mut text, schema);
    let shards: Vec<String> = shards.iter().map(|digest| format!("\"{}\"", hex(digest))).collect();
    let cells: Vec<String> = tile_cells.map(|cells| cells.to_string()).collect();
    write!(text, ", \"shards\": [{}], \"tile_cells\": [{}]}}", shards.join(", "), cells.join(", "))
        .expect("strings grow");
    hex(&Sha256::digest(text.as_bytes())[..12])
}

/// Appends a JSON string in ASCII.
fn quote(out: &mut String, string: &str) {
    out.push('"');
    for c in string.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("strings grow");
                }
            }
        }
    }
    out.push('"');
}

/// A number as Python prints it: the shortest digits that mean it, with an exponent below 1e-4 and from 1e16 on.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    match scientific.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{value:?}"),
    }
}

fn named(column: &str) -> String {
    format!("column {column:?}")
}

fn repeated(first: u32) -> ErrorKind {
    ErrorKind::Repeated { first: first.into() }
}

fn utf8(text: &[u8]) -> Result<&str, Error> {
    let part = Part::Schema(None);
    Limits::check(text.len() as u64, MAX_BYTES, Limit::InputBytes, part)?;
    let text = std::str::from_utf8(text).map_err(|error| {
        Error::new(ErrorKind::Syntax(SyntaxFault::Utf8), part).at(error.valid_up_to() as u64).caused_by(error)
    })?;
    check_depth(text).map_err(|error| error.in_part(part))?;
    Ok(text)
}

fn column_error(n: u32, (field, index, kind): Fault) -> Error {
    let error = Error::new(kind, Part::Column(n, field));
    match index {
        Some(index) => error.index(index as u64),
        None => error,
    }
}

/// The keys of a JSON object and the texts of their values.
type Entries<'a> = Vec<(Cow<'a, str>, &'a str)>;

struct TakeEntries;

impl<'de> Visitor<'de> for TakeEntries {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Key<'_>>()? {
            entries.push((key.0, map.next_value::<&RawValue>()?.get()));
        }
        Ok(entries)
    }
}

/// A key that is borrowed from the text where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde_core::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TakeKey;
        impl<'de> Visitor<'de> for TakeKey {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(TakeKey)
    }
}

/// Reads values and collects faults.
struct Reader<'a> {
    text: &'a str,
    faults: Vec<Error>,
}

impl<'a> Reader<'a> {
    fn fault<T>(&mut self, kind: ErrorKind, part: Part, value: &str) -> Option<T> {
        self.faults.push(Error::new(kind, part).at(offset_in(self.text, value)));
        None
    }

    /// The entries of an object.
    fn entries(&mut self, text: &'a str, part: Part) -> Option<Entries<'a>> {
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = (&mut json).deserialize_map(TakeEntries).and_then(|entries| json.end().map(|()| entries));
        self.parsed(text, part, parsed)
    }

    /// The texts of the elements of a list.
    fn elements(&mut self, text: &'a str, part: Part) -> Option<Vec<&'a str>> {
        let parsed = serde_json::from_str::<Vec<&RawValue>>(text);
        self.parsed(text, part, parsed).map(|elements| elements.into_iter().map(RawValue::get).collect())
    }

    fn parsed<T>(&mut self, text: &str, part: Part, parsed: Result<T, serde_json::Error>) -> Option<T> {
        let before = offset_in(self.text, text);
        let fault = |error| {
            let error = syntax(text, error).in_part(part);
            let at = before + error.offset().unwrap_or(0);
            self.faults.push(error.at(at));
        };
        parsed.map_err(fault).ok()
    }

    /// The text of a value which must be there once; `object` is where its absence is told.
    fn required(&mut self, entries: &Entries<'a>, key: &str, part: Part, object: &str) -> Option<&'a str> {
        match self.optional(entries, key, part) {
            None => self.fault(ErrorKind::Missing, part, object),
            found => found,
        }
    }

    fn optional(&mut self, entries: &Entries<'a>, key: &str, part: Part) -> Option<&'a str> {
        let mut found = entries.iter().filter(|(name, _)| name == key).map(|(_, value)| *value);
        let first = found.next();
        if let Some(second) = found.next() {
            self.fault::<()>(ErrorKind::Syntax(SyntaxFault::RepeatedKey), part, second);
        }
        first
    }

    fn string(&mut self, text: &str, part: Part) -> Option<String> {
        if !text.starts_with('"') {
            return self.fault(ErrorKind::WrongType, part, text);
        }
        let parsed = serde_json::from_str(text);
        self.parsed(text, part, parsed)
    }

    fn schema(&mut self) -> Option<ObsSchema> {
        let text = self.text;
        let entries = self.entries(text, Part::Schema(None))?;
        let mut value = |key| self.required(&entries, key, Part::Schema(Some(key)), text);
        let (format, version, columns) = (value("format"), value("version"), value("columns"));
        if let Some(value) = format {
            let part = Part::Schema(Some("format"));
            if self.string(value, part).is_some_and(|format| format != FORMAT) {
                self.fault::<()>(ErrorKind::BadMagic, part, value);
            }
        }
        if let Some(value) = version {
            let kind = match value.parse::<u64>() {
                Ok(VERSION) => None,
                Ok(found) => Some(ErrorKind::Version { found, expected: VERSION }),
                Err(_) => Some(ErrorKind::WrongType),
            };
            kind.and_then(|kind| self.fault::<()>(kind, Part::Schema(Some("version")), value));
        }
        let texts = self.elements(columns?, Part::Schema(Some("columns")))?;
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut columns = Vec::new();
        for (n, text) in (0..).zip(texts) {
            let Some((column, name)) = self.column(n, text) else { continue };
            if let Some(&first) = names.get(&column.name) {
                self.fault::<()>(repeated(first), Part::Column(n, "name"), name);
            }
            names.entry(column.name.clone()).or_insert(n);
            columns.push(column);
        }
        Some(ObsSchema { columns })
    }

    /// A column, and the text of its name.
    fn column(&mut self, n: u32, text: &'a str) -> Option<(ObsColumn, &'a str)> {
        let entries = self.entries(text, Part::Column(n, "entry"))?;
        let mut value = |key| self.required(&entries, key, Part::Column(n, key), text);
        let (name_text, kind_text, type_text) = (value("name")?, value("kind")?, value("arrow_type")?);
        let name = self.string(name_text, Part::Column(n, "name"))?;
        let before = self.faults.len();
        let about = named(&name);
        let column = self.column_of(n, text, &entries, name, kind_text, type_text);
        // What follows is about a column that has a name.
        let faults: Vec<Error> = self.faults.drain(before..).map(|fault| fault.about(&about)).collect();
        self.faults.extend(faults);
        column.map(|column| (column, name_text))
    }

    fn column_of(
        &mut self,
        n: u32,
        text: &'a str,
        entries: &Entries<'a>,
        name: String,
        kind_text: &'a str,
        type_text: &'a str,
    ) -> Option<ObsColumn> {
        let part = Part::Column(n, "kind");
        let word = self.string(kind_text, part)?;
        let Some(kind) = ObsKind::ALL.into_iter().find(|kind| kind.name() == word) else {
            return self.fault(ErrorKind::Unsupported(Unsupported::Kind), part, kind_text);
        };
        let part = Part::Column(n, "arrow_type");
        let word = self.string(type_text, part)?;
        let Some(&(arrow_type, _, _)) = TYPES.iter().find(|(_, name, _)| *name == word) else {
            return self.fault(ErrorKind::WrongType, part, type_text);
        };
        let part = Part::Column(n, "categories");
        let list_text = match kind {
            ObsKind::Category => self.required(entries, "categories", part, text),
            _ => self.optional(entries, "categories", part).filter(|text| *text != "null"),
        };
        let texts = match list_text {
            Some(text) => self.elements(text, part)?,
            None if kind == ObsKind::Category => return None,
            None => Vec::new(),
        };
        let categories = texts.iter().map(|text| self.category(text, part)).collect::<Option<Vec<_>>>()?;
        let column = ObsColumn { name, kind, arrow_type, categories };
        let Some((field, index, kind)) = column.fault() else { return Some(column) };
        let element = index.and_then(|index| texts.get(index).copied());
        let at = element.or(list_text.filter(|_| field == "categories")).unwrap_or(type_text);
        self.faults.push(column_error(n, (field, index, kind)).at(offset_in(self.text, at)));
        None
    }

    fn category(&mut self, text: &str, part: Part) -> Option<Category> {
        let wrong = |reader: &mut Reader<'a>| reader.fault(ErrorKind::WrongType, part, text);
        match text.as_bytes().first() {
            Some(b'"') => self.string(text, part).map(Category::String),
            Some(b't') => Some(Category::Bool(true)),
            Some(b'f') => Some(Category::Bool(false)),
            Some(b'-' | b'0'..=b'9') if !text.contains(['.', 'e', 'E']) => match text.parse() {
                Ok(value) => Some(Category::Int(value)), // its range is checked with the column
                Err(_) => wrong(self),
            },
            Some(b'-' | b'0'..=b'9') => match text.parse() {
                Ok(value) => Some(Category::Float(value)),
                Err(_) => wrong(self),
            },
            _ => wrong(self),
        }
    }
}
