//! Columns of tables of cells and genes, as Arrow arrays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, DictionaryArray, Int32Array, PrimitiveArray, RecordBatch, StringArray, types,
};
use arrow_schema::{DataType, Field, Schema};
use hdf5_reader::{Datatype, H5Type, StringSize};

use super::file::{
    Array, Cells, Half, NOT_UTF8, Reference, Text, Truth, describe, integers, is_boolean, is_text_of_any_length,
};
use crate::{Error, ErrorKind, INDEX_NAME, Result};

/// Elements that are read at once.
const PIECE: u64 = 1 << 16;

/// Memory that is left for a table.
pub(super) struct Budget {
    left: usize,
    whole: usize,
}

impl Budget {
    pub fn new(memory: usize) -> Budget {
        Budget { left: memory, whole: memory }
    }

    /// Takes the memory of `count` values of `size` bytes.
    pub fn take(&mut self, count: usize, size: usize) -> Result<()> {
        let bytes = count.checked_mul(size).filter(|&bytes| bytes <= self.left).ok_or_else(|| {
            let message = format!("the table needs more than {} bytes", self.whole);
            Error::new(ErrorKind::LimitExceeded, message).hint("allow more with --memory, or leave the table out")
        })?;
        self.left -= bytes;
        Ok(())
    }
}

/// A column; none where its values are of a type that tables do not have.
///
/// # Errors
/// What keeps it from being read; values of it that are damaged.
pub(super) fn column(array: &Array, budget: &mut Budget) -> Result<Option<ArrayRef>> {
    if array.shape().len() > 1 {
        return Ok(None);
    }
    if matches!(array.dtype(), Datatype::FixedPoint { .. } | Datatype::FloatingPoint { .. })
        && array.check_number().is_err()
    {
        return Ok(None);
    }
    let length = array.length()?;
    values(length, budget, |range| array.part(range)).map_err(|error| error.in_part(array.name.as_str()))
}

/// As [`column`], of elements that come piece by piece.
pub(super) fn values<C: Cells>(
    length: u64,
    budget: &mut Budget,
    piece: impl Fn(Range<u64>) -> C,
) -> Result<Option<ArrayRef>> {
    let empty = piece(0..0);
    let dtype = empty.dtype();
    let mut pieces = Pieces { length, budget, piece: &piece };
    Ok(Some(match dtype {
        Datatype::FixedPoint { size: 1, signed: true, .. } => pieces.numbers::<types::Int8Type, i8>()?,
        Datatype::FixedPoint { size: 2, signed: true, .. } => pieces.numbers::<types::Int16Type, i16>()?,
        Datatype::FixedPoint { size: 4, signed: true, .. } => pieces.numbers::<types::Int32Type, i32>()?,
        Datatype::FixedPoint { size: 8, signed: true, .. } => pieces.numbers::<types::Int64Type, i64>()?,
        Datatype::FixedPoint { size: 1, signed: false, .. } => pieces.numbers::<types::UInt8Type, u8>()?,
        Datatype::FixedPoint { size: 2, signed: false, .. } => pieces.numbers::<types::UInt16Type, u16>()?,
        Datatype::FixedPoint { size: 4, signed: false, .. } => pieces.numbers::<types::UInt32Type, u32>()?,
        Datatype::FixedPoint { size: 8, signed: false, .. } => pieces.numbers::<types::UInt64Type, u64>()?,
        Datatype::FloatingPoint { size: 2, .. } => {
            without_nan::<types::Float32Type>(&pieces.numbers::<types::Float32Type, Half>()?)
        }
        Datatype::FloatingPoint { size: 4, .. } => {
            without_nan::<types::Float32Type>(&pieces.numbers::<types::Float32Type, f32>()?)
        }
        Datatype::FloatingPoint { size: 8, .. } => {
            without_nan::<types::Float64Type>(&pieces.numbers::<types::Float64Type, f64>()?)
        }
        Datatype::String { size: StringSize::Fixed(_), .. } => {
            pieces.texts(|piece, each| piece.read::<Text>()?.into_iter().try_for_each(|text| each(&text.0)))?
        }
        other if is_text_of_any_length(other) => pieces.texts(|piece, each| {
            piece.read::<Reference>()?.iter().try_for_each(|reference| {
                let bytes = piece.resolve(reference)?;
                // C strings: h5py, too, ends them at the first zero.
                let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
                each(std::str::from_utf8(text).map_err(|_| Error::new(ErrorKind::Syntax, NOT_UTF8))?)
            })
        })?,
        other if is_boolean(other) => pieces.truths()?,
        _ => return Ok(None),
    }))
}

/// Numbers with NaN as a missing value, which it is in a pandas column.
fn without_nan<A: ArrowPrimitiveType<Native: Copy + Into<f64>>>(numbers: &ArrayRef) -> ArrayRef {
    let numbers = numbers.as_primitive::<A>();
    let known = |&value: &A::Native| !Into::<f64>::into(value).is_nan();
    if numbers.values().iter().all(known) {
        return Arc::new(numbers.clone());
    }
    Arc::new(numbers.iter().map(|value| value.filter(known)).collect::<PrimitiveArray<A>>())
}

struct Pieces<'a, P> {
    length: u64,
    budget: &'a mut Budget,
    piece: &'a P,
}

impl<C: Cells, P: Fn(Range<u64>) -> C> Pieces<'_, P> {
    fn each(&mut self, size: usize, mut visit: impl FnMut(&C, &mut Budget) -> Result<()>) -> Result<()> {
        let mut start = 0;
        while start < self.length {
            let end = self.length.min(start + PIECE);
            self.budget.take(usize::try_from(end - start).unwrap_or(usize::MAX), size)?;
            visit(&(self.piece)(start..end), self.budget)?;
            start = end;
        }
        Ok(())
    }

    fn numbers<A, T>(&mut self) -> Result<ArrayRef>
    where
        A: ArrowPrimitiveType<Native: From<T>>,
        T: H5Type,
    {
        let mut all: Vec<A::Native> = Vec::new();
        self.each(size_of::<A::Native>(), |piece, _| {
            all.extend(piece.read::<T>()?.into_iter().map(A::Native::from));
            Ok(())
        })?;
        Ok(Arc::new(PrimitiveArray::<A>::from_iter_values(all)))
    }

    fn truths(&mut self) -> Result<ArrayRef> {
        let mut all = Vec::new();
        self.each(1, |piece, _| {
            all.extend(piece.read::<Truth>()?.into_iter().map(|truth| truth.0));
            Ok(())
        })?;
        Ok(Arc::new(BooleanArray::from(all)))
    }

    fn texts(&mut self, read: impl Fn(&C, &mut dyn FnMut(&str) -> Result<()>) -> Result<()>) -> Result<ArrayRef> {
        let mut text = String::new();
        let mut ends = Vec::new();
        self.each(size_of::<i32>(), |piece, budget| {
            read(piece, &mut |one| {
                budget.take(one.len(), 1)?;
                text.push_str(one);
                ends.push(text.len());
                Ok(())
            })
        })?;
        if i32::try_from(text.len()).is_err() {
            return Err(Error::new(ErrorKind::LimitExceeded, "the column has more than 2 GiB of text"));
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Ok(Arc::new(StringArray::from_iter_values(starts.zip(&ends).map(|(start, &end)| &text[start..end]))))
    }
}

/// A column of codes, -1 for none, with the categories that they mean.
///
/// # Errors
/// A code that has no category.
pub(super) fn categorical(codes: &Array, categories: ArrayRef, budget: &mut Budget) -> Result<ArrayRef> {
    let mut all: Vec<i32> = Vec::new();
    let mut pieces = Pieces { length: codes.length()?, budget, piece: &|range| codes.part(range) };
    pieces.each(size_of::<i32>(), |piece, _| {
        all.extend(integers::<i32>(piece)?);
        Ok(())
    })?;
    coded(&all, categories).map_err(|error| error.in_part(codes.name.as_str()))
}

/// As [`categorical`], of codes in memory.
pub(super) fn coded(codes: &[i32], categories: ArrayRef) -> Result<ArrayRef> {
    let count = categories.len();
    if let Some(at) = codes.iter().position(|&code| code < -1 || usize::try_from(code).is_ok_and(|code| code >= count))
    {
        let message = format!("entry {at} is category {}, of {count}", codes[at]);
        return Err(Error::new(ErrorKind::OutOfRange, message));
    }
    let keys = Int32Array::from_iter(codes.iter().map(|&code| (code >= 0).then_some(code)));
    let array = DictionaryArray::<Int32Type>::try_new(keys, categories);
    Ok(Arc::new(array.map_err(|error| Error::new(ErrorKind::Inconsistent, error.to_string()))?))
}

/// Values without those that a mask takes out.
///
/// # Errors
/// Different lengths.
pub(super) fn masked(values: &ArrayRef, mask: &ArrayRef) -> Result<ArrayRef> {
    let bad = |message: String| Error::new(ErrorKind::Inconsistent, message);
    let mask = mask.as_boolean_opt().ok_or_else(|| bad("the mask has no truth values".into()))?;
    if mask.len() != values.len() {
        return Err(bad(format!("{} values have a mask of {}", values.len(), mask.len())));
    }
    let valid: Vec<bool> = mask.iter().map(|missing| missing != Some(true)).collect();
    let data = values.to_data().into_builder().nulls(Some(valid.into())).build();
    Ok(arrow_array::make_array(data.map_err(|error| bad(error.to_string()))?))
}

/// An index as text, whatever it is in the source.
pub(super) fn as_text(index: &ArrayRef) -> Result<ArrayRef> {
    fn print<A: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &ArrayRef) -> ArrayRef {
        let texts = array.as_primitive::<A>().iter().map(|value| value.map(|value| value.to_string()));
        Arc::new(texts.collect::<StringArray>())
    }
    Ok(match index.data_type() {
        DataType::Utf8 => index.clone(),
        DataType::Int8 => print::<types::Int8Type>(index),
        DataType::Int16 => print::<types::Int16Type>(index),
        DataType::Int32 => print::<types::Int32Type>(index),
        DataType::Int64 => print::<types::Int64Type>(index),
        DataType::UInt8 => print::<types::UInt8Type>(index),
        DataType::UInt16 => print::<types::UInt16Type>(index),
        DataType::UInt32 => print::<types::UInt32Type>(index),
        DataType::UInt64 => print::<types::UInt64Type>(index),
        DataType::Dictionary(..) => {
            let coded = index.as_dictionary::<Int32Type>();
            let texts = as_text(coded.values())?;
            let texts = texts.as_string::<i32>();
            let one = |code: Option<i32>| code.and_then(|code| usize::try_from(code).ok()).map(|at| texts.value(at));
            Arc::new(coded.keys().iter().map(one).collect::<StringArray>())
        }
        other => {
            let message = format!("an index of type {other} is not supported");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    })
}

/// Columns on their way into a table.
pub(super) struct Table {
    rows: u64,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
    index_name: Option<String>,
    /// What was done to columns whose name another one has.
    notes: Vec<String>,
}

impl Table {
    /// A table whose rows have the names in `index`. Pandas calls an index without a name `_index`.
    ///
    /// # Errors
    /// Another length than `rows`.
    pub fn new(rows: u64, name: &str, index: &ArrayRef) -> Result<Table> {
        let mut table = Table { rows, fields: Vec::new(), columns: Vec::new(), index_name: None, notes: Vec::new() };
        table.index_name = (name != "_index").then(|| name.to_owned());
        table.push(name, as_text(index)?)?;
        Ok(table)
    }

    /// A table whose rows have numbers for names.
    pub fn numbered(rows: u64, budget: &mut Budget) -> Result<Table> {
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        budget.take(count, 16)?;
        let numbers: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| row.to_string())));
        Table::new(rows, "_index", &numbers)
    }

    /// Adds a column. Where another one has its name, it is left out if it says the same, or else gets another name.
    ///
    /// # Errors
    /// Another length than the table's.
    pub fn push(&mut self, name: &str, values: ArrayRef) -> Result<()> {
        self.push_field(name, values, false)
    }

    /// Adds a column of categories that have an order.
    ///
    /// # Errors
    /// As [`Table::push`].
    pub fn push_ordered(&mut self, name: &str, values: ArrayRef) -> Result<()> {
        self.push_field(name, values, true)
    }

    fn push_field(&mut self, name: &str, values: ArrayRef, ordered: bool) -> Result<()> {
        if u64::try_from(values.len()) != Ok(self.rows) {
            let message = format!("it has {} entries, where {} are needed", values.len(), self.rows);
            return Err(Error::new(ErrorKind::Inconsistent, message).in_part(name));
        }
        let known = |name: &str| self.fields.iter().position(|field| field.name() == name);
        let mut free = name.to_owned();
        if let Some(at) = known(name) {
            // The index is text, whatever it was.
            let same = |texts: ArrayRef| *texts == *self.columns[at];
            if *values == *self.columns[at] || at == 0 && as_text(&values).is_ok_and(same) {
                let other = if at == 0 { "the index" } else { "the other column" };
                self.notes.push(format!("column {name:?} is left out: {other} of that name has the same values"));
                return Ok(());
            }
            while known(&free).is_some() {
                free.push('_');
            }
            self.notes.push(format!("column {name:?} is called {free:?}: another one has its name, with other values"));
        }
        let field = Field::new(free, values.data_type().clone(), values.is_nullable());
        self.fields.push(field.with_dict_is_ordered(ordered));
        self.columns.push(values);
        Ok(())
    }

    /// The table, and what there is to say of it under the name `what`.
    pub fn finish(self, what: &str, notes: &mut Vec<String>) -> Result<RecordBatch> {
        notes.extend(self.notes.iter().map(|note| format!("{what} {note}")));
        let metadata: HashMap<String, String> =
            self.index_name.map(|name| (INDEX_NAME.to_owned(), name)).into_iter().collect();
        let schema = Schema::new_with_metadata(self.fields, metadata);
        let batch = RecordBatch::try_new(Arc::new(schema), self.columns);
        batch.map_err(|error| Error::new(ErrorKind::Inconsistent, error.to_string()))
    }
}

/// Why a column is left out.
pub(super) fn left_out(table: &str, name: &str, array: &Array) -> String {
    let shape = if array.shape().len() > 1 { format!(" of shape {:?}", array.shape()) } else { String::new() };
    format!("{table} column {name:?} is left out: {}{shape} cannot be a column", describe(array.dtype()))
}
