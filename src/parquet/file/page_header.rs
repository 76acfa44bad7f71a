//! The header of a page, which stands in front of each.
//!
//! Source: Parquet format, parquet.thrift, "PageHeader". All its fields' bytes can be shown.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;
use crate::parquet::encoding::fault;
use crate::parquet::payload::Encoding;
use crate::thrift::{Field, Value, next_field, skip_field};
use crate::{EncodingFault, Unsupported};

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageKind {
    /// DATA_PAGE
    Data(DataHeader),
    /// DATA_PAGE_V2
    DataV2(DataV2Header),
    /// DICTIONARY_PAGE
    Dictionary(DictionaryHeader),
    /// INDEX_PAGE, or a type that is not known: they are passed over. The number stated.
    Other(i64),
}

impl PageKind {
    /// The format's name; of types without one, `UNKNOWN`.
    pub const fn name(&self) -> &'static str {
        match self {
            PageKind::Data(_) => "DATA_PAGE",
            PageKind::DataV2(_) => "DATA_PAGE_V2",
            PageKind::Dictionary(_) => "DICTIONARY_PAGE",
            PageKind::Other(1) => "INDEX_PAGE",
            PageKind::Other(_) => "UNKNOWN",
        }
    }
}

/// A data page of version 1. Numbers are as stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Values, with nulls.
    pub num_values: i64,
    /// How they are encoded.
    pub encoding: Encoding,
    /// How definition levels are encoded, where there are some.
    pub definition_encoding: Encoding,
    /// How repetition levels are encoded, where there are some.
    pub repetition_encoding: Encoding,
}

/// A data page of version 2. Numbers are as stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataV2Header {
    /// Values, with nulls.
    pub num_values: i64,
    /// Nulls.
    pub num_nulls: i64,
    /// Rows that start in the page.
    pub num_rows: i64,
    /// How the values are encoded.
    pub encoding: Encoding,
    /// Bytes of the definition levels.
    pub definition_len: i64,
    /// Bytes of the repetition levels.
    pub repetition_len: i64,
    /// Whether the values are compressed, if the chunk is.
    pub is_compressed: bool,
}

/// A dictionary page. Numbers are as stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryHeader {
    /// Entries.
    pub num_values: i64,
    /// How they are encoded: PLAIN, by either of its names.
    pub encoding: Encoding,
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageHeader {
    /// What the page holds.
    pub kind: PageKind,
    /// Bytes of the body, unpacked.
    pub uncompressed_size: u64,
    /// Bytes of the body, as it is stored.
    pub compressed_size: u64,
    /// CRC-32 of the body as it is stored.
    pub crc: Option<u32>,
}

/// What a step of a header's walk read: the field's name, its bytes, its value.
pub(super) type Seen<'n> = (&'n str, Range<u64>, Value);

/// The fields that are looked at, by their numbers.
#[derive(Default)]
struct Numbers {
    outer: [Option<i64>; 9],
    inner: [Option<i64>; 9],
    /// The number of the field that `inner` belongs to.
    kind: i16,
}

const OUTER: [&str; 9] = [
    "",
    "type",
    "uncompressed_page_size",
    "compressed_page_size",
    "crc",
    "data_page_header",
    "index_page_header",
    "dictionary_page_header",
    "data_page_header_v2",
];
const DATA: [&str; 9] =
    ["", "num_values", "encoding", "definition_level_encoding", "repetition_level_encoding", "statistics", "", "", ""];
const DICTIONARY: [&str; 9] = ["", "num_values", "encoding", "is_sorted", "", "", "", "", ""];
const DATA_V2: [&str; 9] = [
    "",
    "num_values",
    "num_nulls",
    "num_rows",
    "encoding",
    "definition_levels_byte_length",
    "repetition_levels_byte_length",
    "is_compressed",
    "statistics",
];

/// The protocol's number of a type.
const I32: u8 = 5;

const HEADER: Part = Part::PageHeader("fields");

impl PageHeader {
    /// Takes a header from `input`.
    ///
    /// # Errors
    /// Truncated, a varint of more bits than its field, a field of the wrong type, absent or out of range, an encoding
    /// that is not known.
    pub fn read(input: &mut Input<'_>) -> Result<PageHeader, Error> {
        PageHeader::walk(input, &mut |_| ())
    }

    /// The same, and each field is shown: those inside others behind them.
    pub(super) fn walk(input: &mut Input<'_>, see: &mut impl FnMut(Seen<'_>)) -> Result<PageHeader, Error> {
        let start = input.offset();
        let (mut numbers, mut last) = (Numbers::default(), 0);
        while let Some(field) = next_field(input, &mut last, HEADER)? {
            let inner = match field.id {
                5 => Some(&DATA),
                7 => Some(&DICTIONARY),
                8 => Some(&DATA_V2),
                _ => None,
            };
            let before = input.offset();
            if let (Some(names), Value::Struct) = (inner, field.value) {
                see((name(&OUTER, field.id), field.span.clone(), field.value));
                (numbers.inner, numbers.kind) = (fields(input, names, see)?, field.id);
                continue;
            }
            keep(&mut numbers.outer, &field, name(&OUTER, field.id))?;
            skip_field(input, &field, HEADER)?;
            let span = field.span.start..input.offset().max(before);
            see((name(&OUTER, field.id), span, field.value));
        }
        numbers.judge().map_err(|error| error.at(start))
    }
}

/// The fields of a structure inside.
fn fields(
    input: &mut Input<'_>,
    names: &'static [&'static str; 9],
    see: &mut impl FnMut(Seen<'_>),
) -> Result<[Option<i64>; 9], Error> {
    let (mut numbers, mut last) = ([None; 9], 0);
    while let Some(field) = next_field(input, &mut last, HEADER)? {
        keep(&mut numbers, &field, name(names, field.id))?;
        skip_field(input, &field, HEADER)?;
        see((name(names, field.id), field.span.start..input.offset(), field.value));
    }
    Ok(numbers)
}

fn name(names: &'static [&'static str; 9], id: i16) -> &'static str {
    let name = usize::try_from(id).ok().and_then(|id| names.get(id));
    name.filter(|name| !name.is_empty()).copied().unwrap_or("unknown")
}

/// Keeps a number, by the field's number.
fn keep(numbers: &mut [Option<i64>; 9], field: &Field, name: &'static str) -> Result<(), Error> {
    let Some(slot) = usize::try_from(field.id).ok().and_then(|id| numbers.get_mut(id)) else { return Ok(()) };
    let of_its_type = match name {
        "unknown" => true,
        "is_sorted" | "is_compressed" => matches!(field.value, Value::Bool(_)),
        "statistics" => field.value == Value::Struct,
        name if name.contains("_header") => field.value == Value::Struct,
        // All numbers are of 32 bits.
        _ => field.kind == I32,
    };
    if !of_its_type {
        return Err(Error::new(ErrorKind::WrongType, Part::PageHeader(name)).at(field.span.start));
    }
    *slot = match field.value {
        Value::Integer(number) => {
            let (min, max) = (i32::MIN.into(), i32::MAX.into());
            if i32::try_from(number).is_err() {
                let kind = ErrorKind::OutOfRange { found: number.into(), min, max };
                return Err(Error::new(kind, Part::PageHeader(name)).at(field.span.start));
            }
            Some(number)
        }
        Value::Bool(value) => Some(value.into()),
        _ => return Ok(()),
    };
    Ok(())
}

impl Numbers {
    fn judge(&self) -> Result<PageHeader, Error> {
        let outer = |id: usize| self.outer[id].ok_or_else(|| missing(OUTER[id]));
        let size = |id: usize| {
            let found = outer(id)?;
            u64::try_from(found).map_err(|_| {
                let kind = ErrorKind::OutOfRange { found: found.into(), min: 0, max: i32::MAX.into() };
                Error::new(kind, Part::PageHeader(OUTER[id]))
            })
        };
        let inner = |id: usize, names: &[&'static str; 9], kind: usize| {
            if usize::try_from(self.kind) != Ok(kind) {
                return Err(missing(OUTER[kind]));
            }
            self.inner[id].ok_or_else(|| missing(names[id]))
        };
        let encoding = |id: usize, names: &[&'static str; 9], kind: usize| {
            let found = inner(id, names, kind)?;
            let known = i32::try_from(found).ok().and_then(Encoding::from_id);
            let error = || Error::new(ErrorKind::Unsupported(Unsupported::Encoding), Part::PageHeader(names[id]));
            known.ok_or_else(|| error().caused_by(format!("encoding {found}")))
        };
        let kind = match outer(1)? {
            0 => PageKind::Data(DataHeader {
                num_values: inner(1, &DATA, 5)?,
                encoding: encoding(2, &DATA, 5)?,
                definition_encoding: encoding(3, &DATA, 5)?,
                repetition_encoding: encoding(4, &DATA, 5)?,
            }),
            2 => PageKind::Dictionary(DictionaryHeader {
                num_values: inner(1, &DICTIONARY, 7)?,
                encoding: encoding(2, &DICTIONARY, 7)?,
            }),
            3 => PageKind::DataV2(DataV2Header {
                num_values: inner(1, &DATA_V2, 8)?,
                num_nulls: inner(2, &DATA_V2, 8)?,
                num_rows: inner(3, &DATA_V2, 8)?,
                encoding: encoding(4, &DATA_V2, 8)?,
                definition_len: inner(5, &DATA_V2, 8)?,
                repetition_len: inner(6, &DATA_V2, 8)?,
                is_compressed: self.inner[7] != Some(0),
            }),
            other => PageKind::Other(other),
        };
        if let PageKind::Data(DataHeader { num_values, .. })
        | PageKind::DataV2(DataV2Header { num_values, .. })
        | PageKind::Dictionary(DictionaryHeader { num_values, .. }) = kind
            && num_values < 0
        {
            return Err(fault(EncodingFault::CountNegative { found: num_values }, Part::PageHeader("num_values")));
        }
        let crc = self.outer[4].and_then(|crc| i32::try_from(crc).ok()).map(i32::cast_unsigned);
        Ok(PageHeader { kind, uncompressed_size: size(2)?, compressed_size: size(3)?, crc })
    }
}

fn missing(name: &'static str) -> Error {
    let name = if name.is_empty() { "fields" } else { name };
    Error::new(ErrorKind::Missing, Part::PageHeader(name))
}
