//! Apache Thrift's compact protocol, as far as headers of pages and the look into a footer need it.
//!
//! Source: Apache Thrift, "Compact protocol".

use std::ops::Range;

use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;

/// Structures inside structures; the format has no more than a handful.
const MAX_DEPTH: u32 = 16;

/// A value of a field; of those that are no numbers only that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Integer(i64),
    /// A structure, whose fields are still to be read.
    Struct,
    /// Bytes, which have been passed over: so many.
    Binary(u64),
    /// A list or set, whose elements are still to be read.
    List {
        element: u8,
        len: u64,
    },
    /// A number with a fraction, which has been passed over.
    Double,
    /// A map or identifier, which has been passed over.
    Other,
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) id: i16,
    /// The protocol's number of its type.
    pub(crate) kind: u8,
    pub(crate) value: Value,
    /// Where its bytes lie; of a structure or list only its head.
    pub(crate) span: Range<u64>,
}

/// A field of the structure at hand; `None` at its end. `last` is the number of the field before.
pub(crate) fn next_field(input: &mut Input<'_>, last: &mut i16, part: Part) -> Result<Option<Field>, Error> {
    let start = input.offset();
    let head = input.byte(part)?;
    let kind = head & 15;
    if kind == 0 {
        return Ok(None);
    }
    let id = match head >> 4 {
        0 => i16::try_from(input.zigzag(part)?).map_err(|_| wrong(part).at(start))?,
        delta => last.checked_add(delta.into()).ok_or_else(|| wrong(part).at(start))?,
    };
    *last = id;
    // In a field, a truth value is its type.
    let value = match kind {
        1 | 2 => Value::Bool(kind == 1),
        _ => value(input, kind, 0, part)?,
    };
    Ok(Some(Field { id, kind, value, span: start..input.offset() }))
}

/// A value behind its type.
fn value(input: &mut Input<'_>, kind: u8, depth: u32, part: Part) -> Result<Value, Error> {
    let start = input.offset();
    Ok(match kind {
        // In a list, a truth value takes a byte.
        1 | 2 => Value::Bool(input.byte(part)? == 1),
        3 => Value::Integer(i8::from_le_bytes(input.array(part)?).into()),
        4..=6 => Value::Integer(input.zigzag(part)?),
        7 => {
            input.take(8, part)?;
            Value::Double
        }
        8 => {
            let len = input.uleb(32, part)?;
            input.take(len, part)?;
            Value::Binary(len)
        }
        9 | 10 => {
            let head = input.byte(part)?;
            let len = if head >> 4 == 15 { input.uleb(32, part)? } else { (head >> 4).into() };
            Value::List { element: head & 15, len }
        }
        11 => {
            let len = input.uleb(32, part)?;
            if len > 0 {
                let kinds = input.byte(part)?;
                for _ in 0..len {
                    skip(input, kinds >> 4, depth + 1, part)?;
                    skip(input, kinds & 15, depth + 1, part)?;
                }
            }
            Value::Other
        }
        12 => Value::Struct,
        13 => {
            input.take(16, part)?;
            Value::Other
        }
        _ => return Err(wrong(part).at(start)),
    })
}

/// Passes over a value and all that it holds. Each element takes a byte at least, so this ends with the input.
pub(crate) fn skip(input: &mut Input<'_>, kind: u8, depth: u32, part: Part) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(wrong(part).at(input.offset()));
    }
    let value = value(input, kind, depth, part)?;
    skip_rest(input, value, depth, part)
}

/// Passes over what a field holds beyond its head.
pub(crate) fn skip_field(input: &mut Input<'_>, field: &Field, part: Part) -> Result<(), Error> {
    skip_rest(input, field.value, 0, part)
}

fn skip_rest(input: &mut Input<'_>, value: Value, depth: u32, part: Part) -> Result<(), Error> {
    match value {
        Value::Struct => {
            let mut last = 0;
            while let Some(field) = next_field(input, &mut last, part)? {
                if depth == MAX_DEPTH {
                    return Err(wrong(part).at(field.span.start));
                }
                skip_rest(input, field.value, depth + 1, part)?;
            }
            Ok(())
        }
        Value::List { element, len } => (0..len).try_for_each(|_| skip(input, element, depth + 1, part)),
        _ => Ok(()),
    }
}

/// Not a type that the protocol or the format has here.
#[cold]
fn wrong(part: Part) -> Error {
    Error::new(ErrorKind::WrongType, part)
}
