//! Parquet values as JSON and as text, by their physical types.

use std::fmt::{Display, LowerExp};

use serde::{Serialize, Serializer};
use tilekern::parquet::Values;

use crate::text;

/// Values in an exact JSON form: INT32 as numbers, INT64 as decimal strings, FLOAT and DOUBLE as `0x` and the digits of
/// their bits, bytes in hexadecimal, bare numbers as numbers.
pub struct Exact<'a>(pub &'a Values);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0..self.0.len()).map(|i| One(self.0, i)))
    }
}

/// One of them in that form.
pub struct One<'a>(pub &'a Values, pub usize);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let i = self.1;
        match self.0 {
            Values::Booleans(values) => to.serialize_bool(values[i] != 0),
            Values::Int32(values) => to.serialize_i32(values[i]),
            Values::Int64(values) => to.serialize_str(itoa::Buffer::new().format(values[i])),
            Values::Float(values) => to.serialize_str(&bits(&values[i].to_bits().to_be_bytes())),
            Values::Double(values) => to.serialize_str(&bits(&values[i].to_bits().to_be_bytes())),
            Values::Fixed { width, bytes } => to.serialize_str(&hex(&bytes[i * width..(i + 1) * width])),
            Values::ByteArrays(values) => to.serialize_str(&hex(values.get(i))),
            Values::Numbers(values) => to.serialize_u32(values[i]),
            other => Err(serde::ser::Error::custom(format_args!("values of a kind that is not known: {other:?}"))),
        }
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

/// The bits of a number, the first digit the highest.
fn bits(big_endian: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * big_endian.len());
    text.push_str("0x");
    push_hex(&mut text, big_endian);
    text
}

/// Each value as people read it: text as text where it is some, other bytes in hexadecimal.
pub fn lines(values: &Values) -> impl Iterator<Item = String> + '_ {
    (0..values.len()).map(|i| line(values, i))
}

/// One value as people read it.
pub fn line(values: &Values, i: usize) -> String {
    match values {
        Values::Booleans(values) => (values[i] != 0).to_string(),
        Values::Int32(values) => values[i].to_string(),
        Values::Int64(values) => values[i].to_string(),
        Values::Float(values) => number(values[i], f64::from(values[i])),
        Values::Double(values) => number(values[i], values[i]),
        Values::Fixed { width, bytes } => format!("0x{}", hex(&bytes[i * width..(i + 1) * width])),
        Values::ByteArrays(values) => readable(values.get(i)),
        Values::Numbers(values) => values[i].to_string(),
        other => format!("{other:?}"),
    }
}

/// A number of either precision, with an exponent where it would have many zeros.
fn number(value: impl Display + LowerExp, size: f64) -> String {
    match size.abs() {
        size if size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size) => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// Bytes as text if they are some, which stands in quotes where it could be mistaken.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(value) if !value.starts_with("0x") => text::quoted(value),
        Ok(value) => format!("{value:?}"),
        Err(_) => format!("0x{}", hex(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilekern::parquet::ByteArrays;

    #[test]
    fn values_are_exact_in_json_and_readable_as_text() {
        let shown = |values: Values| {
            (serde_json::to_string(&Exact(&values)).unwrap(), lines(&values).collect::<Vec<_>>().join("|"))
        };
        let strings = ByteArrays::from_values([&b"a\"b"[..], b"", b"\xff", b"0xff", b"plain"]);
        for (values, json, text) in [
            (Values::Booleans(vec![1, 0]), "[true,false]", "true|false"),
            (Values::Int32(vec![-1]), "[-1]", "-1"),
            (Values::Int64(vec![i64::MIN]), "[\"-9223372036854775808\"]", "-9223372036854775808"),
            (Values::Float(vec![-0.0, f32::NAN]), "[\"0x80000000\",\"0x7fc00000\"]", "-0|NaN"),
            (Values::Double(vec![0.1]), "[\"0x3fb999999999999a\"]", "0.1"),
            (
                Values::Double(vec![1e-310, -1e300, 1e15, 0.0, f64::INFINITY]),
                "[\"0x000012688b70e62b\",\"0xfe37e43c8800759c\",\"0x430c6bf526340000\",\"0x0000000000000000\",\"0x7ff0000000000000\"]",
                "1e-310|-1e300|1000000000000000|0|inf",
            ),
            (Values::Fixed { width: 2, bytes: vec![0, 1, 0xfe, 3] }, "[\"0001\",\"fe03\"]", "0x0001|0xfe03"),
            (
                Values::ByteArrays(strings),
                "[\"612262\",\"\",\"ff\",\"30786666\",\"706c61696e\"]",
                "\"a\\\"b\"|\"\"|0xff|\"0xff\"|plain",
            ),
            (Values::Numbers(vec![u32::MAX]), "[4294967295]", "4294967295"),
        ] {
            assert_eq!(shown(values), (json.to_owned(), text.to_owned()));
        }
    }
}
