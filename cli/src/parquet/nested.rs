//! Rows of a column from its levels and values: nulls, and lists in each other.

use std::cell::Cell;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use tilekern::parquet::file::{ColumnData, Repetition};

use super::values::One;

/// Reads rows of a column one after the other.
pub struct Cursor<'a> {
    path: &'a [(String, Repetition)],
    data: &'a ColumnData,
    max_definition: u8,
    level: Cell<usize>,
    value: Cell<usize>,
}

/// The next row. Serializing it takes it.
pub struct Row<'c, 'a>(pub &'c Cursor<'a>);

impl<'a> Cursor<'a> {
    /// A cursor at a row: so many levels and values stand before it.
    pub fn new(path: &'a [(String, Repetition)], data: &'a ColumnData, (level, value): (usize, usize)) -> Cursor<'a> {
        let optional = path.iter().filter(|(_, repetition)| *repetition != Repetition::Required).count();
        let max_definition = u8::try_from(optional).unwrap_or(u8::MAX);
        Cursor { path, data, max_definition, level: Cell::new(level), value: Cell::new(value) }
    }

    /// Levels and values that are taken.
    pub fn position(&self) -> (usize, usize) {
        (self.level.get(), self.value.get())
    }

    /// The definition level at hand.
    fn definition(&self) -> u8 {
        self.data.definitions.get(self.level.get()).copied().unwrap_or(self.max_definition)
    }

    fn take(&self) {
        self.level.set(self.level.get() + 1);
    }

    /// Whether the next level goes on with a list that lies so deep.
    fn goes_on(&self, depth: u8) -> bool {
        self.data.repetitions.get(self.level.get()).is_some_and(|&level| level >= depth)
    }
}

impl Serialize for Row<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Place { cursor: self.0, path: self.0.path, definition: 0, repetition: 0 }.serialize(to)
    }
}

/// What stands at a place of a row: the part of the path that is left, and the levels so far.
struct Place<'c, 'a> {
    cursor: &'c Cursor<'a>,
    path: &'a [(String, Repetition)],
    definition: u8,
    repetition: u8,
}

impl Serialize for Place<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Place { cursor, mut path, mut definition, repetition } = *self;
        while let Some(((_, first), rest)) = path.split_first() {
            path = rest;
            if *first == Repetition::Required {
                continue;
            }
            definition += 1;
            let absent = cursor.definition() < definition;
            match (first, absent) {
                (Repetition::Repeated, true) => {
                    cursor.take();
                    return to.serialize_seq(Some(0))?.end();
                }
                (_, true) => {
                    cursor.take();
                    return to.serialize_none();
                }
                (Repetition::Repeated, false) => {
                    let inside = Place { cursor, path, definition, repetition: repetition + 1 };
                    let mut list = to.serialize_seq(None)?;
                    // Each takes a level at least.
                    list.serialize_element(&inside)?;
                    while cursor.goes_on(inside.repetition) {
                        list.serialize_element(&inside)?;
                    }
                    return list.end();
                }
                (_, false) => {}
            }
        }
        let value = cursor.value.get();
        cursor.take();
        cursor.value.set(value + 1);
        One(&cursor.data.values, value).serialize(to)
    }
}
