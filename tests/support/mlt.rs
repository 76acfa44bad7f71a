//! Decoded tiles in the corpus's JSON form.

use serde_json::{Map, Value as Json, json};
use tilekern::mlt::{
    DataType, Geometry, LayerData, MValues, Nested, NestedKind, NestedNode, Property, Shape, Tile, TileData, Value,
};

/// The corpus's name of a type.
pub fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Bool => "bool",
        DataType::Int8 => "i8",
        DataType::UInt8 => "u8",
        DataType::Int32 => "i32",
        DataType::UInt32 => "u32",
        DataType::Int64 => "i64",
        DataType::UInt64 => "u64",
        DataType::Float => "f32",
        DataType::Double => "f64",
        DataType::String => "str",
        other => panic!("{other:?} of values"),
    }
}

fn value(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::UInt(value) => value.into(),
        Value::Float(value) => format!("{:#010x}", value.to_bits()).into(),
        Value::Double(value) => format!("{:#018x}", value.to_bits()).into(),
        Value::String(value) => value.into(),
        other => panic!("{other:?}"),
    }
}

pub fn values(property: &Property<'_>) -> Json {
    property.iter().map(value).collect()
}

pub fn m_values(column: &MValues<'_>) -> Json {
    (0..column.len).map(|i| column.get(i).map_or(Json::Null, |values| values.map(value).collect())).collect()
}

pub fn geometry(geometry: &Geometry) -> Json {
    let path = |path: tilekern::mlt::Path<'_>| path.iter().map(|[x, y]| json!([x, y])).collect::<Json>();
    let ring = |path: tilekern::mlt::Path<'_>| path.closed().map(|[x, y]| json!([x, y])).collect::<Json>();
    let shape = |shape: Shape<'_>| {
        let name = shape.geometry_type().name();
        let coordinates: Json = match shape {
            Shape::Point([x, y]) => json!([x, y]),
            Shape::LineString(line) | Shape::MultiPoint(line) => path(line),
            Shape::Polygon(rings) => rings.map(ring).collect(),
            Shape::MultiLineString(lines) => lines.map(path).collect(),
            Shape::MultiPolygon(polygons) => polygons.map(|rings| rings.map(ring).collect::<Json>()).collect(),
        };
        json!([name, coordinates])
    };
    geometry.shapes().map(shape).collect()
}

fn shape(node: NestedNode<'_>) -> Json {
    match node.kind() {
        NestedKind::Values(_) => type_name(node.data_type().expect("values")).into(),
        NestedKind::Struct(fields) => {
            let fields: Map<String, Json> = fields.map(|field| (field.name().to_owned(), shape(field))).collect();
            json!({ "map": fields })
        }
        NestedKind::List { element, .. } => json!({ "list": shape(element) }),
        NestedKind::Map { offsets, keys, value } => {
            let entries = *offsets.last().expect("an offset") as usize;
            let keys: Map<String, Json> = (0..entries).map(|i| (keys.get(i).to_owned(), shape(value))).collect();
            json!({ "map": keys })
        }
        other => panic!("{other:?}"),
    }
}

fn nested(node: NestedNode<'_>, i: usize) -> Json {
    if !node.is_valid(i) {
        return Json::Null;
    }
    match node.kind() {
        NestedKind::Values(values) => value(values.get(i)),
        NestedKind::Struct(fields) => {
            let fields = fields.filter(|field| field.is_valid(i));
            fields.map(|field| (field.name().to_owned(), nested(field, i))).collect::<Map<_, _>>().into()
        }
        NestedKind::List { offsets, element } => {
            (offsets[i] as usize..offsets[i + 1] as usize).map(|at| nested(element, at)).collect()
        }
        NestedKind::Map { offsets, keys, value } => {
            let entries = offsets[i] as usize..offsets[i + 1] as usize;
            entries.map(|at| (keys.get(at).to_owned(), nested(value, at))).collect::<Map<_, _>>().into()
        }
        other => panic!("{other:?}"),
    }
}

pub fn nested_values(column: &Nested<'_>) -> Json {
    (0..column.root.len()).map(|i| nested(column.root, i)).collect()
}

/// A layer; in the digest form with hashes in place of values.
pub fn layer(layer: &LayerData, digest: bool) -> Json {
    let hashed = |values: Json| match values {
        Json::Array(_) if digest => format!("{:016x}", fnv(values.to_string().as_bytes())).into(),
        values => values,
    };
    let mut out = json!({
        "name": layer.name(),
        "version": layer.version(),
        "extent": layer.extent(),
        "feature_count": layer.features(),
        "ids": hashed(layer.ids().map_or(Json::Null, |ids| values(&ids))),
        "geometry": hashed(geometry(layer.geometry())),
        "columns": layer.properties().map(|column| {
            let mut out = json!({
                "name": column.name,
                "type": type_name(column.data_type),
                "values": hashed(values(&column)),
            });
            if digest {
                out["nulls"] = column.nulls.into();
            }
            out
        }).collect::<Json>(),
    });
    let geometry = layer.geometry();
    if let Some((offsets, indices)) = geometry.triangles().filter(|_| !digest) {
        out["triangles"] = json!({ "offsets": offsets, "indices": indices });
    }
    if let Some((step, z)) = geometry.z() {
        let values: Json = (0..geometry.len())
            .map(|i| geometry.vertex_range(i).map_or(Json::Null, |vertices| json!(z[vertices])))
            .collect();
        out["z"] = json!({ "step_exponent": i32::from(step) - 3, "values": values });
    }
    let columns: Vec<Json> = layer
        .m_values()
        .map(|column| json!({ "name": column.name, "type": type_name(column.data_type), "values": m_values(&column) }))
        .collect();
    if !columns.is_empty() {
        out["m_values"] = columns.into();
    }
    let columns: Vec<Json> = layer
        .nested()
        .map(|column| json!({ "name": column.name, "shape": shape(column.root), "values": nested_values(&column) }))
        .collect();
    if !columns.is_empty() {
        out["nested"] = columns.into();
    }
    out
}

/// A whole tile.
pub fn tile(tile: &Tile<'_>, data: &TileData, digest: bool) -> Json {
    let layers: Json = tile
        .frames()
        .map(|frame| match frame.layer() {
            Some(of) => layer(&data.layers()[of.number()], digest),
            None => json!({ "unknown_tag": true }),
        })
        .collect();
    json!({ "layers": layers })
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
