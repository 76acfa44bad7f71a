//! Single values of Arrow arrays of the types that tables of cells have.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::DataType;

use super::schema::Category;

/// A value of a table of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A missing one.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Int(i128),
    /// A number of any width; it may be NaN or infinite.
    Float(f64),
    /// Text.
    String(&'a str),
}

impl Value<'_> {
    /// The category that has this value, if one can.
    pub fn to_category(self) -> Option<Category> {
        match self {
            Value::Bool(value) => Some(Category::Bool(value)),
            Value::Int(value) => Some(Category::Int(value)),
            Value::Float(value) => value.is_finite().then_some(Category::Float(value)),
            Value::String(text) => Some(Category::String(text.to_owned())),
            Value::Null => None,
        }
    }
}

impl<'a> From<&'a Category> for Value<'a> {
    fn from(category: &'a Category) -> Value<'a> {
        match category {
            Category::String(text) => Value::String(text),
            Category::Bool(value) => Value::Bool(*value),
            Category::Int(value) => Value::Int(*value),
            Category::Float(value) => Value::Float(*value),
        }
    }
}

/// Gives the value of a row, which must be there.
pub type Getter<'a> = Box<dyn Fn(usize) -> Value<'a> + 'a>;

/// How to get the values of an array of booleans, numbers or text, plain or as a dictionary; `None` for other types.
pub fn getter(array: &dyn Array) -> Option<Getter<'_>> {
    fn ints<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array) -> Getter<'_> {
        let array = array.as_primitive::<T>();
        Box::new(move |row| if array.is_null(row) { Value::Null } else { Value::Int(array.value(row).into()) })
    }
    fn floats<T: ArrowPrimitiveType<Native: Into<f64>>>(array: &dyn Array) -> Getter<'_> {
        let array = array.as_primitive::<T>();
        Box::new(move |row| if array.is_null(row) { Value::Null } else { Value::Float(array.value(row).into()) })
    }
    fn text<'a>(array: &'a dyn Array, value: impl Fn(usize) -> &'a str + 'a) -> Getter<'a> {
        Box::new(move |row| if array.is_null(row) { Value::Null } else { Value::String(value(row)) })
    }
    Some(match array.data_type() {
        DataType::Int8 => ints::<Int8Type>(array),
        DataType::Int16 => ints::<Int16Type>(array),
        DataType::Int32 => ints::<Int32Type>(array),
        DataType::Int64 => ints::<Int64Type>(array),
        DataType::UInt8 => ints::<UInt8Type>(array),
        DataType::UInt16 => ints::<UInt16Type>(array),
        DataType::UInt32 => ints::<UInt32Type>(array),
        DataType::UInt64 => ints::<UInt64Type>(array),
        DataType::Float16 => floats::<Float16Type>(array),
        DataType::Float32 => floats::<Float32Type>(array),
        DataType::Float64 => floats::<Float64Type>(array),
        DataType::Utf8 => text(array, |row| array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array, |row| array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array, |row| array.as_string_view().value(row)),
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(move |row| if array.is_null(row) { Value::Null } else { Value::Bool(array.value(row)) })
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let (keys, values) = (dictionary.keys(), getter(dictionary.values())?);
            let (code, len) = (getter(keys)?, dictionary.values().len());
            Box::new(move |row| match code(row) {
                Value::Int(code) => usize::try_from(code).ok().filter(|&at| at < len).map_or(Value::Null, &values),
                _ => Value::Null,
            })
        }
        DataType::Null => Box::new(|_| Value::Null),
        _ => return None,
    })
}

/// A number rounded to 16 bits.
pub(super) fn to_half(value: f64) -> f64 {
    <Float16Type as ArrowPrimitiveType>::Native::from_f64(value).to_f64()
}
