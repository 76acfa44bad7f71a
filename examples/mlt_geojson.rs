//! A map tile as GeoJSON, in the coordinates of the tile.
//!
//! ```text
//! cargo run --features mlt --example mlt_geojson TILE.mlt
//! ```

use serde_json::{Map, Number, Value as Json, json};
use tilekern::mlt::{Decoder, Options, Path, Paths, Shape, Tile, TileData, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which tile?")?;
    let bytes = std::fs::read(path)?;
    // Keep decoder and data, and hand them to every tile: then the next ones allocate nothing.
    let options = Options::new()?;
    let (mut decoder, mut data) = (Decoder::with_options(options), TileData::new());
    decoder.tile(&Tile::open(&bytes, &options)?, &mut data)?;

    let mut features = Vec::new();
    for layer in data.layers() {
        for (i, shape) in layer.geometry().shapes().enumerate() {
            let mut properties = Map::new();
            properties.insert("_layer".to_owned(), layer.name().into());
            for property in layer.properties().filter(|property| property.is_valid(i)) {
                properties.insert(property.name.to_owned(), json(property.get(i)));
            }
            let mut feature = json!({ "type": "Feature", "geometry": geometry(&shape), "properties": properties });
            if let Some(ids) = layer.ids().filter(|ids| ids.is_valid(i)) {
                feature["id"] = json(ids.get(i));
            }
            features.push(feature);
        }
    }
    println!("{}", json!({ "type": "FeatureCollection", "features": features }));
    Ok(())
}

fn json(value: Value<'_>) -> Json {
    // JSON has no NaN and no infinities.
    let float = |value: f64| Number::from_f64(value).map_or(Json::Null, Json::Number);
    match value {
        Value::Bool(value) => value.into(),
        Value::Int(value) => value.into(),
        Value::UInt(value) => value.into(),
        Value::Float(value) => float(value.into()),
        Value::Double(value) => float(value),
        Value::String(value) => value.into(),
        _ => Json::Null,
    }
}

fn geometry(shape: &Shape<'_>) -> Json {
    // Rings are stored without the vertex that closes them.
    let line = |path: Path<'_>| path.iter().collect::<Vec<_>>();
    let rings = |rings: Paths<'_>| rings.map(|ring| ring.closed().collect::<Vec<_>>()).collect::<Vec<_>>();
    let (kind, coordinates) = match shape {
        Shape::Point(vertex) => ("Point", json!(vertex)),
        Shape::LineString(path) => ("LineString", json!(line(*path))),
        Shape::Polygon(paths) => ("Polygon", json!(rings(paths.clone()))),
        Shape::MultiPoint(path) => ("MultiPoint", json!(line(*path))),
        Shape::MultiLineString(paths) => ("MultiLineString", json!(paths.clone().map(line).collect::<Vec<_>>())),
        Shape::MultiPolygon(polygons) => ("MultiPolygon", json!(polygons.clone().map(rings).collect::<Vec<_>>())),
    };
    json!({ "type": kind, "coordinates": coordinates })
}
