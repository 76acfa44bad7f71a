//! Parquet files for the tests.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

fn write(path: &Path, batch: &RecordBatch, properties: WriterPropertiesBuilder) {
    let file = File::create(path).expect("created");
    // The schema of Arrow is long, and says nothing that matters here.
    let options = parquet::arrow::arrow_writer::ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

/// 600 rows in two row groups: numbers, texts with nulls, floats, lists, a group of two, and texts that are too many for
/// their dictionary.
pub fn orders(path: &Path) {
    let n = 600usize;
    let number = |i: usize| i32::try_from(i).expect("small");
    let mut tags = ListBuilder::new(StringBuilder::new());
    for i in 0..n {
        match i % 4 {
            2 => {
                tags.values().append_value("a");
                tags.values().append_null();
            }
            3 => tags.values().append_value("b"),
            _ => {}
        }
        tags.append(i % 4 != 0);
    }
    let place = Fields::from(vec![Field::new("x", DataType::Int32, false), Field::new("y", DataType::Boolean, false)]);
    let inside: Vec<ArrayRef> = vec![
        Arc::new((0..n).map(|i| Some(number(i))).collect::<Int32Array>()),
        Arc::new((0..n).map(|i| Some(i % 2 == 0)).collect::<BooleanArray>()),
    ];
    let there = NullBuffer::from((0..n).map(|i| i % 7 != 0).collect::<Vec<_>>());
    let countries = (0..n).map(|i| (i % 6 != 5).then(|| ["UK", "DE", "FR"][i % 3]));
    let columns: Vec<(Field, ArrayRef)> = vec![
        (
            Field::new("id", DataType::Int64, false),
            Arc::new((0..n).map(|i| Some(1000 + i64::from(number(i)))).collect::<Int64Array>()),
        ),
        (Field::new("country", DataType::Utf8, true), Arc::new(countries.collect::<StringArray>())),
        (
            Field::new("weight", DataType::Float32, false),
            Arc::new((0..n).map(|i| Some(i as f32 / 2.0)).collect::<Float32Array>()),
        ),
        (Field::new_list("tags", Field::new_list_field(DataType::Utf8, true), true), Arc::new(tags.finish())),
        (Field::new_struct("place", place.clone(), true), Arc::new(StructArray::new(place, inside, Some(there)))),
        (
            Field::new("note", DataType::Utf8, false),
            Arc::new((0..n).map(|i| Some(format!("note {i}"))).collect::<StringArray>()),
        ),
    ];
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns");
    let column = |name: &str| ColumnPath::from(name);
    let properties = WriterProperties::builder()
        .set_created_by("tests of tilekern".to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new("origin".to_owned(), "a test".to_owned())]))
        .set_max_row_group_row_count(Some(400))
        .set_dictionary_page_size_limit(512)
        .set_write_batch_size(64)
        .set_data_page_row_count_limit(200)
        .set_column_dictionary_enabled(column("id"), false)
        .set_column_encoding(column("id"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(column("weight"), false)
        .set_column_encoding(column("weight"), Encoding::BYTE_STREAM_SPLIT)
        .set_column_compression(column("country"), Compression::SNAPPY);
    write(path, &batch, properties);
}

/// One column of texts, as PLAIN.
pub fn strings(path: &Path, strings: &[&str]) {
    let schema = Schema::new(vec![Field::new("text", DataType::Utf8, false)]);
    let array: ArrayRef = Arc::new(StringArray::from(strings.to_vec()));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a column");
    write(path, &batch, WriterProperties::builder().set_dictionary_enabled(false).set_data_page_size_limit(1 << 24));
}

/// So many rows of a long text and a number, in row groups of 20,000.
pub fn long(path: &Path, rows: usize) {
    let fields = vec![Field::new("text", DataType::Utf8, false), Field::new("n", DataType::Int64, true)];
    let texts: ArrayRef = Arc::new((0..rows).map(|i| Some(format!("{i:0>200}"))).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new((0..rows).map(|i| i64::try_from(i).ok()).collect::<Int64Array>());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![texts, numbers]).expect("columns");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::default()))
        .set_max_row_group_row_count(Some(20_000));
    write(path, &batch, properties);
}

/// A file of a few hundred bytes: a dictionary with nulls, and lists of numbers.
pub fn small(path: &Path) {
    let mut lists = ListBuilder::new(arrow_array::builder::Int32Builder::new());
    for list in [Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(7)])] {
        match list {
            Some(items) => lists.append_value(items),
            None => lists.append(false),
        }
    }
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("UK"), None, Some("UK"), Some("DE")]));
    let fields = vec![
        Field::new("t", DataType::Utf8, true),
        Field::new_list("l", Field::new_list_field(DataType::Int32, true), true),
    ];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![texts, Arc::new(lists.finish())]);
    let properties = WriterProperties::builder()
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .set_created_by("t".to_owned());
    write(path, &batch.expect("columns"), properties);
}

/// One row: two columns `x`, one `a.b`, and the `b` of a group `a`.
pub fn same_names(path: &Path) {
    let number = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
    let inside = Fields::from(vec![Field::new("b", DataType::Float64, false)]);
    let field = |name: &str| Field::new(name, DataType::Float64, false);
    let fields = vec![field("x"), field("x"), field("a.b"), Field::new_struct("a", inside.clone(), false)];
    let group: ArrayRef = Arc::new(StructArray::new(inside, vec![number(4.0)], None));
    let arrays = vec![number(1.0), number(2.0), number(3.0), group];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns");
    write(path, &batch, WriterProperties::builder());
}

/// Pages of version 2.
pub fn version_2(path: &Path) {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let schema = Schema::new(vec![Field::new("n", DataType::Int32, true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a column");
    let version = parquet::file::properties::WriterVersion::PARQUET_2_0;
    write(path, &batch, WriterProperties::builder().set_writer_version(version));
}

/// One row of so many columns.
pub fn wide(path: &Path, columns: usize) {
    let fields: Vec<Field> = (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Int32, false)).collect();
    let arrays = (0..).take(columns).map(|i| -> ArrayRef { Arc::new(Int32Array::from(vec![i])) }).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns");
    write(path, &batch, WriterProperties::builder().set_dictionary_enabled(false));
}
