//! Arrow arrays of Parquet files, beside those that the `parquet` crate gives: of the corpus, and of files that it writes.

mod support;

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int32Builder, Int64Builder, ListBuilder, MapBuilder, StringBuilder, StructBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use libtest_mimic::{Failed, Trial};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use support::same;
use tilekern::parquet::Options;
use tilekern::parquet::file::{Buffers, File, Strings};

fn main() {
    let generated =
        GENERATED.iter().enumerate().map(|(i, _)| Trial::test(format!("generated {i}"), move || written(i)));
    let generated = generated.chain([Trial::test("late nulls", late_nulls)]);
    support::run_with(generated.collect(), "fixtures/parquet", |corpus| {
        let mut trials = Vec::new();
        for folder in ["", "matrix", "special", "handmade", "writers", "parquet-testing"] {
            for entry in std::fs::read_dir(corpus.join(folder)).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.extension().is_some_and(|extension| extension == "parquet") {
                    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                    trials.push(Trial::test(format!("{folder} {name}"), move || corpus_file(&path, &name)));
                }
            }
        }
        trials
    })
}

/// What the other reader refuses, or reads as what we do not.
const APART: &[(&str, &str)] = &[("dict-page-offset-zero", "Expected list element type of I64 but got I16")];

fn corpus_file(path: &Path, name: &str) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    if name == "rle-dict-uncompressed-corrupt-checksum" {
        // The other reader was built without checksums.
        let file = File::open(&bytes, &Options::new()?)?;
        return same("refused", file.read_row_group(0, Strings::Offsets, &mut Buffers::new()).is_err(), true);
    }
    let apart = APART.iter().find(|apart| apart.0 == name).map(|apart| apart.1);
    match compare(&bytes) {
        Ok(()) => same("the same as the other reader", apart, None),
        Err(error) => match apart {
            Some(why) if error.message().is_some_and(|message| message.contains(why)) => Ok(()),
            _ => Err(error),
        },
    }
}

/// Both readers give the same of every row group.
fn compare(bytes: &[u8]) -> Result<(), Failed> {
    let file = File::open(bytes, &Options::new()?)?;
    let mut buffers = Buffers::new();
    for (group, row_group) in file.metadata().row_groups.iter().enumerate() {
        let found = file.read_row_group(group, Strings::Offsets, &mut buffers)?;
        same("schema", found.schema(), file.arrow_schema(Strings::Offsets))?;
        let turned: Vec<usize> = (0..found.num_columns()).rev().collect();
        if !turned.is_empty() {
            let fields = file.read_fields(group, &turned, Strings::Offsets, &mut buffers)?;
            same("fields", fields, found.project(&turned)?)?;
        }
        let views = file.read_row_group(group, Strings::Views, &mut buffers)?;
        let keys = file.read_row_group(group, Strings::Dictionaries, &mut buffers)?;
        for ((column, views), keys) in found.columns().iter().zip(views.columns()).zip(keys.columns()) {
            other_strings(column, views)?;
            other_strings(column, keys)?;
        }
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes.to_vec()), options);
        let rows = usize::try_from(row_group.num_rows)?;
        let reader = reader?.with_row_groups(vec![group]).with_batch_size(rows.max(1));
        let expected = reader.build()?.collect::<Result<Vec<RecordBatch>, _>>()?;
        same("rows", found.num_rows(), rows)?;
        let Some(expected) = expected.first() else {
            same("rows", rows, 0)?;
            continue;
        };
        same("columns", found.num_columns(), expected.num_columns())?;
        for (i, (one, other)) in found.columns().iter().zip(expected.columns()).enumerate() {
            same(&format!("type of column {i}"), one.data_type(), other.data_type())?;
            let nullable = |batch: &RecordBatch| batch.schema().field(i).is_nullable();
            same("nullable", nullable(&found), nullable(expected))?;
            if one != other {
                return Err(format!("column {i}: {one:?}, expected {other:?}").into());
            }
        }
    }
    Ok(())
}

/// Text in another form is the same text. Only columns that are not nested are compared.
fn other_strings(column: &ArrayRef, other: &ArrayRef) -> Result<(), Failed> {
    same("rows", column.len(), other.len())?;
    let bytes = |array: &ArrayRef| -> Option<Vec<Option<Vec<u8>>>> {
        Some(match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().map(|v| v.map(|v| v.as_bytes().to_vec())).collect(),
            DataType::Binary => array.as_binary::<i32>().iter().map(|v| v.map(<[u8]>::to_vec)).collect(),
            DataType::Utf8View => array.as_string_view().iter().map(|v| v.map(|v| v.as_bytes().to_vec())).collect(),
            DataType::BinaryView => array.as_binary_view().iter().map(|v| v.map(<[u8]>::to_vec)).collect(),
            _ => return None,
        })
    };
    let found = match other.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = other.as_dictionary::<Int32Type>();
            let values = bytes(dictionary.values()).ok_or("a dictionary of text")?;
            Some(dictionary.keys().iter().map(|key| key.and_then(|key| values[key.as_usize()].clone())).collect())
        }
        _ => bytes(other),
    };
    match found {
        Some(_) => same("text", found == bytes(column), true),
        None if column.data_type().is_nested() => Ok(()),
        None => same("values", column, other),
    }
}

/// How a file is written: its codec, version, encoding of all columns but those that it does not suit, dictionary, rows of
/// a page.
type How = (Compression, WriterVersion, Option<Encoding>, bool, usize);

const V1: WriterVersion = WriterVersion::PARQUET_1_0;
const V2: WriterVersion = WriterVersion::PARQUET_2_0;
const GENERATED: &[fn() -> How] = &[
    || (Compression::UNCOMPRESSED, V1, None, true, 1000),
    || (Compression::SNAPPY, V1, None, true, 7),
    || (Compression::GZIP(GzipLevel::default()), V2, None, true, 64),
    || (Compression::ZSTD(ZstdLevel::default()), V2, None, false, 100),
    || (Compression::BROTLI(BrotliLevel::default()), V1, None, false, 33),
    || (Compression::LZ4_RAW, V2, None, true, 500),
    || (Compression::LZ4, V1, None, true, 500),
    || (Compression::UNCOMPRESSED, V2, Some(Encoding::DELTA_BINARY_PACKED), false, 129),
    || (Compression::SNAPPY, V2, Some(Encoding::BYTE_STREAM_SPLIT), false, 50),
    || (Compression::ZSTD(ZstdLevel::default()), V1, Some(Encoding::DELTA_BYTE_ARRAY), false, 90),
    || (Compression::LZ4_RAW, V1, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), false, 60),
];

/// Whether an encoding goes with a type; others are written as the writer likes.
fn suits(encoding: Encoding, data_type: &DataType) -> bool {
    match encoding {
        Encoding::DELTA_BINARY_PACKED => data_type.is_integer(),
        Encoding::BYTE_STREAM_SPLIT => data_type.is_floating() || data_type.is_integer(),
        Encoding::DELTA_BYTE_ARRAY | Encoding::DELTA_LENGTH_BYTE_ARRAY => {
            matches!(data_type, DataType::Utf8 | DataType::Binary)
        }
        _ => false,
    }
}

fn written(i: usize) -> Result<(), Failed> {
    let (codec, version, encoding, dictionary, page_rows) = GENERATED[i]();
    for rows in [0, 1, 17, 1000] {
        let table = table(rows, i as u64);
        let mut properties = WriterProperties::builder()
            .set_compression(codec)
            .set_writer_version(version)
            .set_dictionary_enabled(dictionary)
            .set_dictionary_page_size_limit(600)
            .set_data_page_row_count_limit(page_rows)
            .set_write_batch_size(page_rows.min(50))
            .set_max_row_group_row_count(Some(400));
        for field in table.schema().fields() {
            if let Some(encoding) = encoding.filter(|&encoding| suits(encoding, field.data_type())) {
                properties = properties.set_column_encoding(field.name().as_str().into(), encoding);
            }
        }
        let mut writer = ArrowWriter::try_new(Vec::new(), table.schema(), Some(properties.build()))?;
        writer.write(&table)?;
        compare(&writer.into_inner()?)?;
    }
    Ok(())
}

/// A column whose nulls begin at any place of a page, or in none.
fn late_nulls() -> Result<(), Failed> {
    for first in [0, 1, 63, 64, 100, 199, 200, 263, 300] {
        let values: Int32Array = (0..300).map(|i| (i < first || i % 3 > 0 && i < 280).then_some(i)).collect();
        let schema = Arc::new(Schema::new(vec![Field::new("late", DataType::Int32, true)]));
        let properties =
            WriterProperties::builder().set_write_batch_size(10).set_data_page_row_count_limit(100).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))?;
        writer.write(&RecordBatch::try_new(schema, vec![Arc::new(values)])?)?;
        compare(&writer.into_inner()?)?;
    }
    Ok(())
}

/// Columns of every type, some of them nested.
fn table(rows: usize, seed: u64) -> RecordBatch {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    let mut numbers = |null: u64| -> Vec<Option<u64>> {
        (0..rows).map(|_| Some(next()).filter(|n| null == 0 || n % null != 0)).collect()
    };
    fn to<T>(values: Vec<Option<u64>>, f: impl Fn(u64) -> T) -> Vec<Option<T>> {
        values.into_iter().map(|value| value.map(&f)).collect()
    }
    let text = |n: u64| {
        ["", "a", "some text", "a text that is no short one", "ü"][n as usize % 5].to_owned() + &(n % 40).to_string()
    };
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        (
            "required",
            Arc::new(Int32Array::from_iter_values(numbers(0).into_iter().map(|n| n.unwrap_or(0) as i32))),
            false,
        ),
        ("i8", Arc::new(Int8Array::from(to(numbers(3), |n| n as i8))), true),
        ("i16", Arc::new(Int16Array::from(to(numbers(5), |n| n as i16))), true),
        ("i32", Arc::new(Int32Array::from(to(numbers(4), |n| n as i32))), true),
        ("i64", Arc::new(Int64Array::from(to(numbers(2), |n| (n % 1000) as i64))), true),
        ("u8", Arc::new(UInt8Array::from(to(numbers(3), |n| n as u8))), true),
        ("u16", Arc::new(UInt16Array::from(to(numbers(3), |n| n as u16))), true),
        ("u32", Arc::new(UInt32Array::from(to(numbers(3), |n| n as u32))), true),
        ("u64", Arc::new(UInt64Array::from(to(numbers(3), |n| n << 20))), true),
        ("bool", Arc::new(BooleanArray::from(to(numbers(7), |n| n % 3 == 0))), true),
        ("f32", Arc::new(Float32Array::from(to(numbers(9), |n| n as f32 / 8.0))), true),
        ("f64", Arc::new(Float64Array::from(to(numbers(9), |n| n as f64 / 8.0))), true),
        ("utf8", Arc::new(StringArray::from(to(numbers(6), text))), true),
        ("utf8_required", Arc::new(StringArray::from_iter_values((0..rows).map(|n| text(n as u64 / 9)))), false),
        ("all_null", Arc::new(StringArray::from(vec![None::<&str>; rows])), true),
        ("date", Arc::new(Date32Array::from(to(numbers(4), |n| (n % 40_000) as i32))), true),
        ("time32", Arc::new(Time32MillisecondArray::from(to(numbers(4), |n| (n % 86_400_000) as i32))), true),
        ("time64", Arc::new(Time64MicrosecondArray::from(to(numbers(4), |n| (n % 86_400_000_000) as i64))), true),
        ("micros", Arc::new(TimestampMicrosecondArray::from(to(numbers(4), |n| n as i64)).with_timezone("UTC")), true),
        ("nanos", Arc::new(TimestampNanosecondArray::from(to(numbers(4), |n| n as i64))), true),
    ];
    let decimal = |p: u8, values: Vec<Option<i128>>| {
        Decimal128Array::from(values).with_precision_and_scale(p, 2).expect("a precision")
    };
    columns.push(("dec4", Arc::new(decimal(9, to(numbers(4), |n| i128::from(n % 100_000) - 50_000))), true));
    columns.push(("dec8", Arc::new(decimal(18, to(numbers(4), |n| i128::from(n) - (1 << 40)))), true));
    columns.push(("dec16", Arc::new(decimal(38, to(numbers(4), |n| (i128::from(n) << 60) - (1 << 100)))), true));
    let wide = Decimal256Array::from(to(numbers(4), |n| i256::from_i128(i128::from(n) - (1 << 40))));
    columns.push(("dec32", Arc::new(wide.with_precision_and_scale(60, 3).expect("a precision")), true));
    let fixed = to(numbers(5), |n| [n as u8, (n >> 8) as u8, 3]);
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3).expect("bytes");
    columns.push(("fixed", Arc::new(fixed), true));
    type Half = <Float16Type as arrow_array::ArrowPrimitiveType>::Native;
    let half = to(numbers(5), |n| Half::from_bits((n % 0x7c00) as u16));
    columns.push(("f16", Arc::new(PrimitiveArray::<Float16Type>::from(half)), true));
    columns.extend(nested(rows, &mut numbers));
    let fields: Fields =
        columns.iter().map(|(name, array, null)| Field::new(*name, array.data_type().clone(), *null)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|column| column.1).collect())
        .expect("columns")
}

fn nested(rows: usize, numbers: &mut impl FnMut(u64) -> Vec<Option<u64>>) -> Vec<(&'static str, ArrayRef, bool)> {
    let (shape, values) = (numbers(4), numbers(3));
    let mut list = ListBuilder::new(Int64Builder::new());
    let mut lists = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    let inner = Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("y", DataType::Binary, true),
        Field::new("deep", DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))), true),
    ]);
    let mut structs = StructBuilder::from_fields(inner.clone(), rows);
    let mut list_of_structs = ListBuilder::new(StructBuilder::from_fields(inner, rows));
    let fill = |builder: &mut StructBuilder, n: Option<u64>| {
        let there = n.is_some();
        let n = n.unwrap_or(0);
        builder
            .field_builder::<Int32Builder>(0)
            .expect("x")
            .append_option((there && !n.is_multiple_of(3)).then_some(n as i32));
        let bytes = (there && !n.is_multiple_of(5)).then(|| n.to_le_bytes());
        builder.field_builder::<BinaryBuilder>(1).expect("y").append_option(bytes);
        let deep = builder.field_builder::<ListBuilder<Box<dyn arrow_array::builder::ArrayBuilder>>>(2).expect("deep");
        for i in 0..if there { n % 4 } else { 0 } {
            let items = deep.values().as_any_mut().downcast_mut::<Int32Builder>().expect("numbers");
            items.append_option((i != 1).then_some(i as i32));
        }
        deep.append(there && !n.is_multiple_of(7));
        builder.append(there);
    };
    for row in 0..rows {
        let n = shape[row].map_or(0, |n| n % 4) as usize;
        let some = |i: usize| values[(row + i) % rows];
        for i in 0..n {
            list.values().append_option(some(i).map(|n| n as i64));
            for j in 0..i {
                lists.values().values().append_option(some(i + j).map(|n| format!("{}", n % 50)));
            }
            lists.values().append(some(i + 1).is_some());
            map.keys().append_value(format!("key {i}"));
            map.values().append_option(some(i).map(|n| n as i32));
            fill(list_of_structs.values(), some(i));
        }
        list.append(shape[row].is_some());
        lists.append(shape[row].is_some());
        map.append(shape[row].is_some()).expect("a map");
        list_of_structs.append(shape[row].is_some());
        fill(&mut structs, some(0));
    }
    vec![
        ("list", Arc::new(list.finish()), true),
        ("lists", Arc::new(lists.finish()), true),
        ("map", Arc::new(map.finish()), true),
        ("struct", Arc::new(structs.finish()), true),
        ("list_of_structs", Arc::new(list_of_structs.finish()), true),
    ]
}
