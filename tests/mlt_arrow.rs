//! Layers as Arrow record batches: every value and geometry of the MLT corpus, read back.

mod support;

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value as Json, json};
use support::{mlt, same};
use tilekern::mlt::{Decoder, LayerData, Options, Packing, Tile, TileData};

fn main() {
    support::run("fixtures/mlt", |corpus| {
        let folders = ["v1-synthetic", "v1-encodings", "v1-real", "v2-encodings", "v2-real", "hand"];
        folders
            .map(|folder| {
                let path = corpus.join(folder);
                Trial::test(folder, move || whole(&path))
            })
            .into()
    })
}

fn whole(folder: &Path) -> Result<(), Failed> {
    let (options, mut data) = (Options::new()?.packing(Packing::Interleaved), TileData::new());
    let mut decoder = Decoder::with_options(options);
    let mut extensions = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "mlt") {
            continue;
        }
        let bytes = std::fs::read(&path)?;
        decoder.tile(&Tile::open(&bytes, &options)?, &mut data)?;
        for layer in data.layers() {
            let extension = one(layer)
                .map_err(|e| format!("{} {}: {}", path.display(), layer.name(), e.message().unwrap_or("")))?;
            extensions.insert(extension);
        }
    }
    // One of each type, and layers of several.
    let all = folder.ends_with("v1-synthetic");
    same("extension types", extensions.len() == 7 || !all, true)
}

fn one(layer: &LayerData) -> Result<String, Failed> {
    let batch = layer.to_record_batch()?;
    same("rows", batch.num_rows(), layer.features())?;
    let schema = batch.schema();
    same("extent", schema.metadata()["extent"].as_str(), layer.extent().to_string().as_str())?;
    let mut columns = schema.fields().iter().zip(batch.columns());
    if let Some(ids) = layer.ids() {
        let (_, array) = columns.next().ok_or("no ids")?;
        same("ids", rows(array), mlt::values(&ids))?;
    }
    let (field, array) = columns.next().ok_or("no geometry")?;
    let extension = field.metadata()["ARROW:extension:name"].clone();
    let expected = mlt::geometry(layer.geometry());
    let expected = expected.as_array().ok_or("geometries")?;
    for (i, expected) in expected.iter().enumerate() {
        let (kind, coordinates) = (expected[0].as_str().unwrap_or(""), expected[1].clone());
        let (found, wanted) = match extension.as_str() {
            "geoarrow.wkb" => (well_known(array.as_binary::<i32>().value(i)), expected.clone()),
            name => {
                let several = name.starts_with("geoarrow.multi") && !kind.starts_with("Multi");
                (flat(&row(array, i)), if several { json!([coordinates]) } else { coordinates })
            }
        };
        same(&format!("geometry {i}"), found, wanted)?;
    }
    if let Some((step, z)) = layer.geometry().z().filter(|_| extension == "geoarrow.linestring") {
        let coordinates = array.as_list::<i32>().values().as_fixed_size_list().values();
        let coordinates = coordinates.as_primitive::<Float64Type>().values();
        for (i, &z) in z.iter().enumerate() {
            let metres = f64::from(z).mul_add(10f64.powi(i32::from(step) - 3), -10_000.0);
            same("an elevation", (coordinates[3 * i + 2] - metres).abs() < 1e-6, true)?;
        }
    }
    for (column, (field, array)) in layer.properties().zip(columns.by_ref()) {
        same("name", field.name().as_str(), column.name)?;
        same("nullable", field.is_nullable(), column.nulls > 0)?;
        same("a property", rows(array), mlt::values(&column))?;
    }
    for (column, (field, array)) in layer.nested().zip(columns.by_ref()) {
        same("name", field.name().as_str(), column.name)?;
        same("a nested column", rows(array), mlt::nested_values(&column))?;
    }
    for (column, (field, array)) in layer.m_values().zip(columns.by_ref()) {
        same("name", field.name().as_str(), column.name)?;
        same("values of vertices", rows(array), mlt::m_values(&column))?;
    }
    same("more columns", columns.count(), 0)?;
    Ok(extension)
}

/// x and y of all vertices, as whole numbers.
fn flat(json: &Json) -> Json {
    match json {
        Json::Array(items) if items.first().is_some_and(Json::is_string) => {
            let number = |item: &Json| {
                let bits = u64::from_str_radix(&item.as_str().expect("a float")[2..], 16).expect("its bits");
                f64::from_bits(bits) as i64
            };
            items.iter().take(2).map(number).collect()
        }
        Json::Array(items) => items.iter().map(flat).collect(),
        other => other.clone(),
    }
}

fn rows(array: &ArrayRef) -> Json {
    (0..array.len()).map(|i| row(array, i)).collect()
}

/// A row in the corpus's form.
fn row(array: &ArrayRef, i: usize) -> Json {
    if array.is_null(i) {
        return Json::Null;
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(i).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(i).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(i).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(i).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(i).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(i).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(i).into(),
        DataType::Float32 => format!("{:#010x}", array.as_primitive::<Float32Type>().value(i).to_bits()).into(),
        DataType::Float64 => format!("{:#018x}", array.as_primitive::<Float64Type>().value(i).to_bits()).into(),
        DataType::Utf8 => array.as_string::<i32>().value(i).into(),
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            row(array.values(), array.keys().value(i) as usize)
        }
        DataType::List(_) => rows(&array.as_list::<i32>().value(i)),
        DataType::FixedSizeList(..) => rows(&array.as_fixed_size_list().value(i)),
        DataType::Struct(fields) => {
            let there = fields.iter().zip(array.as_struct().columns()).filter(|(_, column)| column.is_valid(i));
            there.map(|(field, column)| (field.name().clone(), row(column, i))).collect::<Map<_, _>>().into()
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(i);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
            (0..entries.len()).map(|i| (keys.value(i).to_owned(), row(values, i))).collect::<Map<_, _>>().into()
        }
        other => panic!("{other}"),
    }
}

/// A geometry in WKB in the corpus's form.
fn well_known(mut bytes: &[u8]) -> Json {
    fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
        let (head, rest) = bytes.split_first_chunk().expect("more bytes");
        *bytes = rest;
        *head
    }
    fn count(bytes: &mut &[u8]) -> u32 {
        u32::from_le_bytes(take(bytes))
    }
    fn vertex(bytes: &mut &[u8], z: bool) -> Json {
        let [x, y] = [0, 1].map(|_| f64::from_le_bytes(take(bytes)) as i64);
        if z {
            take::<8>(bytes);
        }
        json!([x, y])
    }
    fn path(bytes: &mut &[u8], z: bool) -> Json {
        (0..count(bytes)).map(|_| vertex(bytes, z)).collect()
    }
    fn one(bytes: &mut &[u8]) -> (&'static str, Json) {
        assert_eq!(take(bytes), [1], "byte order");
        let code = count(bytes);
        let z = code > 1000;
        match code % 1000 {
            1 => ("Point", vertex(bytes, z)),
            2 => ("LineString", path(bytes, z)),
            3 => ("Polygon", (0..count(bytes)).map(|_| path(bytes, z)).collect()),
            code => {
                let name = ["MultiPoint", "MultiLineString", "MultiPolygon"][code as usize - 4];
                (name, (0..count(bytes)).map(|_| one(bytes).1).collect())
            }
        }
    }
    let (name, coordinates) = one(&mut bytes);
    assert!(bytes.is_empty(), "bytes are left");
    json!([name, coordinates])
}
