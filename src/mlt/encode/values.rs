//! Values of columns, flat and nested.

use std::collections::BTreeSet;

use super::super::{DataType, MltFault};
use super::coding::{Floats, Integers, Strings, Truths, Version};
use super::stream::{Streams, role};
use super::{broken, count, refused, total};
use crate::error::Error;

/// The values that are present, and how they are stored.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Truth values.
    Bool(&'a [bool], Truths),
    /// Signed, 8 bits. Version 2.
    Int8(&'a [i8], Integers),
    /// Unsigned, 8 bits. Version 2.
    UInt8(&'a [u8], Integers),
    /// Signed, 32 bits.
    Int32(&'a [i32], Integers),
    /// Unsigned, 32 bits.
    UInt32(&'a [u32], Integers),
    /// Signed, 64 bits.
    Int64(&'a [i64], Integers),
    /// Unsigned, 64 bits.
    UInt64(&'a [u64], Integers),
    /// IEEE 754, 32 bits.
    Float(&'a [f32], Floats),
    /// IEEE 754, 64 bits.
    Double(&'a [f64], Floats),
    /// Strings.
    Strings(&'a [&'a str], Strings),
}

impl Values<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::Bool(values, _) => values.len(),
            Values::Int8(values, _) => values.len(),
            Values::UInt8(values, _) => values.len(),
            Values::Int32(values, _) => values.len(),
            Values::UInt32(values, _) => values.len(),
            Values::Int64(values, _) => values.len(),
            Values::UInt64(values, _) => values.len(),
            Values::Float(values, _) => values.len(),
            Values::Double(values, _) => values.len(),
            Values::Strings(values, _) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their type.
    pub fn data_type(&self) -> DataType {
        match self {
            Values::Bool(..) => DataType::Bool,
            Values::Int8(..) => DataType::Int8,
            Values::UInt8(..) => DataType::UInt8,
            Values::Int32(..) => DataType::Int32,
            Values::UInt32(..) => DataType::UInt32,
            Values::Int64(..) => DataType::Int64,
            Values::UInt64(..) => DataType::UInt64,
            Values::Float(..) => DataType::Float,
            Values::Double(..) => DataType::Double,
            Values::Strings(..) => DataType::String,
        }
    }
}

/// The type's code in a version.
pub(super) fn code(data_type: DataType, version: Version) -> Result<u8, Error> {
    let (first, second) = match data_type {
        DataType::Id => (Some(0), 0),
        DataType::LongId => (Some(2), 1),
        DataType::Bool => (Some(10), 2),
        DataType::Int8 => (None, 3),
        DataType::UInt8 => (None, 4),
        DataType::Int32 => (Some(16), 5),
        DataType::UInt32 => (Some(18), 6),
        DataType::Int64 => (Some(20), 7),
        DataType::UInt64 => (Some(22), 8),
        DataType::Float => (Some(24), 9),
        DataType::Double => (Some(26), 10),
        DataType::String => (Some(28), 11),
        DataType::Struct => (None, 12),
        DataType::List => (None, 13),
        DataType::Map => (None, 14),
    };
    match version {
        Version::V1 => first.ok_or_else(|| refused(data_type.name())),
        Version::V2 => Ok(second),
    }
}

/// A value of a nested column: what each of the values handed down to it is.
#[derive(Clone, Debug)]
pub enum Nested<'a> {
    /// Values of a flat type.
    Values(Values<'a>),
    /// Named members, each of which is handed all.
    Struct(Vec<(&'a str, Member<'a>)>),
    /// Elements, so many each.
    List {
        /// How many.
        lengths: &'a [u32],
        /// How those are stored.
        coding: Integers,
        /// The elements.
        element: Box<Member<'a>>,
    },
    /// Keys and values, so many each.
    Map {
        /// How many.
        lengths: &'a [u32],
        /// How those are stored.
        coding: Integers,
        /// Their keys.
        keys: &'a [&'a str],
        /// How those are stored.
        key_coding: Strings,
        /// Their values.
        value: Box<Member<'a>>,
    },
}

/// A part of a nested value, and which of those handed down have it.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// One for each that is handed down; nothing if all have it.
    pub present: Option<(&'a [bool], Truths)>,
    /// Of those that have it.
    pub node: Nested<'a>,
}

/// Levels of nested values, the root included.
const DEPTH: u8 = 8;

impl Nested<'_> {
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Nested::Values(values) => values.data_type(),
            Nested::Struct(_) => DataType::Struct,
            Nested::List { .. } => DataType::List,
            Nested::Map { .. } => DataType::Map,
        }
    }
}

impl Streams {
    /// The data streams of values.
    pub fn values(&mut self, values: &Values<'_>, implied: Option<usize>) -> Result<(), Error> {
        let data = role::DATA;
        match *values {
            Values::Bool(values, coding) => self.truths(data, values, coding, implied),
            Values::Int8(values, coding) => {
                let words: Vec<u32> = values.iter().map(|&value| i32::from(value).cast_unsigned()).collect();
                self.integers(data, &words, true, coding, implied, 0)
            }
            Values::UInt8(values, coding) => {
                let words: Vec<u32> = values.iter().copied().map(u32::from).collect();
                self.integers(data, &words, false, coding, implied, 0)
            }
            Values::Int32(values, coding) => {
                self.integers::<u32>(data, bytemuck::cast_slice(values), true, coding, implied, 0)
            }
            Values::UInt32(values, coding) => self.integers(data, values, false, coding, implied, 0),
            Values::Int64(values, coding) => {
                self.integers::<u64>(data, bytemuck::cast_slice(values), true, coding, implied, 0)
            }
            Values::UInt64(values, coding) => self.integers(data, values, false, coding, implied, 0),
            Values::Float(values, coding) => self.floats(values, coding, implied),
            Values::Double(values, coding) => self.floats(values, coding, implied),
            Values::Strings(values, coding) => self.strings(values, &coding, implied),
        }
    }

    /// The body of a nested value that is handed `n`. Below a list or map, readers cannot tell how many: `counted`.
    pub(super) fn nested(&mut self, nested: &Nested<'_>, n: usize, counted: bool, depth: u8) -> Result<(), Error> {
        if depth > DEPTH {
            return Err(broken(MltFault::Depth { max: DEPTH }, "nested values"));
        }
        match nested {
            Nested::Values(values) => {
                count(values.len(), n, "nested values")?;
                self.values(values, (!counted).then_some(n))
            }
            Nested::Struct(fields) => {
                let distinct: BTreeSet<&str> = fields.iter().map(|(name, _)| *name).collect();
                if fields.is_empty() || distinct.len() < fields.len() {
                    let fault = if fields.is_empty() { MltFault::Empty } else { MltFault::RepeatedName };
                    return Err(broken(fault, "fields"));
                }
                self.number(fields.len());
                for (name, member) in fields {
                    self.member(member, Some(name), n, counted, depth + 1)?;
                }
                Ok(())
            }
            Nested::List { lengths, coding, element } => {
                count(lengths.len(), n, "list lengths")?;
                self.integers(role::DATA, lengths, false, *coding, None, 0)?;
                self.member(element, None, total(lengths)?, true, depth + 1)
            }
            Nested::Map { lengths, coding, keys, key_coding, value } => {
                count(lengths.len(), n, "map lengths")?;
                count(keys.len(), total(lengths)?, "map keys")?;
                self.integers(role::DATA, lengths, false, *coding, None, 0)?;
                self.strings(keys, key_coding, None)?;
                self.member(value, None, keys.len(), true, depth + 1)
            }
        }
    }

    fn member(
        &mut self,
        member: &Member<'_>,
        name: Option<&str>,
        handed: usize,
        counted: bool,
        depth: u8,
    ) -> Result<(), Error> {
        let data_type = member.node.data_type();
        self.byte(code(data_type, self.version)? | u8::from(member.present.is_some()) << 4);
        if let Some(name) = name {
            self.text(name);
        }
        let counted = counted || matches!(data_type, DataType::List | DataType::Map);
        let mut n = handed;
        if let Some((present, coding)) = member.present {
            count(present.len(), handed, "presence")?;
            self.truths(role::PRESENT, present, coding, (!counted).then_some(handed))?;
            n = present.iter().filter(|&&present| present).count();
        }
        self.nested(&member.node, n, counted, depth)
    }
}
