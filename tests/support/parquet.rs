//! Values in the JSON form of the Parquet corpus.

use serde_json::{Value, json};
use tilekern::parquet::{ByteArrays, Dictionary, Input, Options, PhysicalType, Values};

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal text.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("digits"), 16).expect("digits")).collect()
}

/// The values, each in its JSON form.
pub fn rendered(values: &Values) -> Vec<Value> {
    match values {
        Values::Booleans(values) => values.iter().map(|&value| json!(value != 0)).collect(),
        Values::Int32(values) => values.iter().map(|value| json!(value)).collect(),
        Values::Int64(values) => values.iter().map(|value| json!(value.to_string())).collect(),
        Values::Float(values) => values.iter().map(|value| json!(format!("0x{:08x}", value.to_bits()))).collect(),
        Values::Double(values) => values.iter().map(|value| json!(format!("0x{:016x}", value.to_bits()))).collect(),
        Values::Fixed { width, bytes } => bytes.chunks_exact(*width).map(|value| json!(hex(value))).collect(),
        Values::ByteArrays(values) => values.iter().map(|value| json!(hex(value))).collect(),
        Values::Numbers(values) => values.iter().map(|value| json!(value)).collect(),
        other => panic!("{other:?}"),
    }
}

/// The bytes of a value in its JSON form.
fn bytes(value: &Value, kind: PhysicalType) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    match kind {
        PhysicalType::Int32 => i32::try_from(value.as_i64().expect("a number")).expect("32 bits").to_le_bytes().into(),
        PhysicalType::Int64 => text.parse::<i64>().expect("a number").to_le_bytes().into(),
        PhysicalType::Float | PhysicalType::Double => unhex(&text[2..]).into_iter().rev().collect(),
        PhysicalType::Boolean => vec![u8::from(value.as_bool().expect("a truth value"))],
        _ => unhex(text),
    }
}

/// A dictionary of such values.
pub fn dictionary(values: &[Value], kind: PhysicalType) -> Dictionary {
    let options = Options::new().expect("kernels");
    let values: Vec<Vec<u8>> = values.iter().map(|value| bytes(value, kind)).collect();
    let mut dictionary = Dictionary::new();
    match kind.width() {
        Some(width) => {
            let page = values.concat();
            dictionary.read_fixed(Input::new(&page), values.len(), width, &options).expect("a dictionary");
        }
        None => {
            let mut page = Vec::new();
            for value in ByteArrays::from_values(values.iter()).iter() {
                page.extend_from_slice(&u32::try_from(value.len()).expect("32 bits").to_le_bytes());
                page.extend_from_slice(value);
            }
            dictionary.read_byte_arrays(Input::new(&page), values.len(), &options).expect("a dictionary");
        }
    }
    dictionary
}

/// The rows of a column from its levels: null, a value, or a list of such.
#[cfg(feature = "parquet-files")]
pub fn assemble(
    path: &[(String, tilekern::parquet::file::Repetition)],
    data: &tilekern::parquet::file::ColumnData,
    values: Vec<Value>,
) -> Vec<Value> {
    use tilekern::parquet::file::Repetition;
    struct Slot {
        definition: u8,
        repetition: u8,
        value: Value,
    }
    fn build(path: &[(String, Repetition)], definition: u8, repetition: u8, slots: &[Slot]) -> Value {
        let Some(((_, first), rest)) = path.split_first() else { return slots[0].value.clone() };
        let absent = slots[0].definition < definition + u8::from(*first != Repetition::Required);
        match first {
            Repetition::Required => build(rest, definition, repetition, slots),
            Repetition::Optional if absent => Value::Null,
            Repetition::Optional => build(rest, definition + 1, repetition, slots),
            Repetition::Repeated if absent => json!([]),
            Repetition::Repeated => {
                let inside = repetition + 1;
                let items = slots.chunk_by(|_, next| next.repetition > inside);
                items.map(|items| build(rest, definition + 1, inside, items)).collect()
            }
        }
    }
    let full = path.iter().filter(|(_, repetition)| *repetition != Repetition::Required).count();
    let mut values = values.into_iter();
    let slots: Vec<Slot> = (0..data.len)
        .map(|i| {
            let definition = data.definitions.get(i).copied().unwrap_or(0);
            let there = usize::from(definition) == full;
            let value = if there { values.next().expect("a value") } else { Value::Null };
            Slot { definition, repetition: data.repetitions.get(i).copied().unwrap_or(0), value }
        })
        .collect();
    assert!(values.next().is_none(), "values left");
    slots.chunk_by(|_, next| next.repetition > 0).map(|row| build(path, 0, 0, row)).collect()
}
