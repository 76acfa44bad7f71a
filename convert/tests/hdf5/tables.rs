//! Tables as JSON, in the form in which the scripts print what Python reads.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use serde_json::{Value, json};
use tilekern_convert::INDEX_NAME;

/// Index, its name, columns in order: name, values with null for none, and categories. Numbers that are not whole become
/// texts of their bits: parsers of JSON round.
pub fn as_json(table: &RecordBatch) -> Value {
    let schema = table.schema();
    let columns: Vec<Value> = schema
        .fields()
        .iter()
        .zip(table.columns())
        .skip(1)
        .map(|(field, column)| {
            let categories = column.as_any_dictionary_opt().map(|dictionary| exact(dictionary.values()));
            json!({"name": field.name(), "values": exact(column), "categories": categories})
        })
        .collect();
    json!({
        "index": values(table.column(0)),
        "index_name": schema.metadata().get(INDEX_NAME),
        "columns": columns,
    })
}

fn exact(column: &ArrayRef) -> Vec<Value> {
    let bits = |value: Value| match value.as_f64() {
        Some(number) if value.is_f64() => json!(format!("{:016x}", number.to_bits())),
        _ => value,
    };
    values(column).into_iter().map(bits).collect()
}

/// The values of a column, with null for none.
pub fn values(column: &ArrayRef) -> Vec<Value> {
    fn numbers<A: ArrowPrimitiveType<Native: Into<Value>>>(column: &ArrayRef) -> Vec<Value> {
        column.as_primitive::<A>().iter().map(|value| value.map_or(Value::Null, Into::into)).collect()
    }
    match column.data_type() {
        DataType::Int8 => numbers::<Int8Type>(column),
        DataType::Int16 => numbers::<Int16Type>(column),
        DataType::Int32 => numbers::<Int32Type>(column),
        DataType::Int64 => numbers::<Int64Type>(column),
        DataType::UInt8 => numbers::<UInt8Type>(column),
        DataType::UInt16 => numbers::<UInt16Type>(column),
        DataType::UInt32 => numbers::<UInt32Type>(column),
        DataType::UInt64 => numbers::<UInt64Type>(column),
        DataType::Float32 => numbers::<Float32Type>(column),
        DataType::Float64 => numbers::<Float64Type>(column),
        DataType::Boolean => column.as_boolean().iter().map(|value| json!(value)).collect(),
        DataType::Utf8 => column.as_string::<i32>().iter().map(|value| json!(value)).collect(),
        DataType::Dictionary(..) => {
            let coded = column.as_dictionary::<Int32Type>();
            let categories = values(coded.values());
            let one =
                |key: Option<i32>| key.map_or(Value::Null, |key| categories[usize::try_from(key).unwrap()].clone());
            coded.keys().iter().map(one).collect()
        }
        other => panic!("a column of type {other}"),
    }
}
