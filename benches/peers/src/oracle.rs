//! Whether mlt-core reads a tile as tilekern does.

use std::fmt::Write;

use mlt_core::geo_types::{Geometry as TheirGeometry, LineString, Polygon};
use mlt_core::{LendingIterator, PropValueRef};
use tilekern::kernels::Kernels;
use tilekern::mlt::{Decoder, LayerData, Options, Path, Paths, Shape, Tile, TileData, Value};

/// Compares every layer of version 1: names, ids, geometry, all values, by every level of kernels.
///
/// # Panics
/// If a reader refuses the tile, or they differ.
pub fn assert_same(tile: &[u8]) {
    let layers = mlt_core::Parser::with_max_size(u32::MAX).parse_layers(tile).expect("a tile for mlt-core");
    let theirs = mlt_core::Decoder::with_max_size(u32::MAX).decode_all(layers).expect("a tile for mlt-core");
    let theirs: Vec<_> = theirs.into_iter().filter_map(mlt_core::Layer::into_layer01).collect();
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let (mut decoder, mut data) = (Decoder::with_options(options), TileData::new());
        let opened = Tile::open(tile, &options).expect("a sound tile");
        decoder.tile(&opened, &mut data).expect("a sound tile");
        let ours: Vec<&LayerData> = data.layers().iter().filter(|layer| layer.version() == 1).collect();
        assert_eq!(ours.len(), theirs.len(), "layers");
        for (ours, theirs) in ours.into_iter().zip(&theirs) {
            assert_eq!((ours.name(), ours.extent()), (theirs.name(), theirs.extent().get()));
            assert_eq!(ours.features(), theirs.feature_count(), "{}", ours.name());
            let names: Vec<String> = theirs.iterate_prop_names().map(|name| name.to_string()).collect();
            assert!(ours.properties().map(|property| property.name).eq(names.iter()), "{}", ours.name());
            let properties: Vec<_> = ours.properties().collect();
            let mut features = theirs.iter_features();
            let mut i = 0;
            while let Some(feature) = features.next() {
                let feature = feature.expect("a feature for mlt-core");
                let id = ours.ids().map_or(Value::Null, |ids| ids.get(i));
                assert_eq!(id, feature.id().map_or(Value::Null, Value::UInt), "{}: id {i}", ours.name());
                assert_eq!(
                    our_shape(&ours.geometry().shape(i)),
                    their_shape(feature.geometry()),
                    "{}: {i}",
                    ours.name()
                );
                for (property, theirs) in properties.iter().zip(feature.iter_all_properties()) {
                    let (ours, theirs) = (our_value(property.get(i)), their_value(theirs));
                    assert_eq!(ours, theirs, "{}: value {i}", property.name);
                }
                i += 1;
            }
            assert_eq!(i, ours.features());
        }
    }
}

/// A value as text that tells all values of all types apart.
fn our_value(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => format!("{:08x}", value.to_bits()),
        Value::Double(value) => format!("{:016x}", value.to_bits()),
        Value::String(value) => format!("{value:?}"),
        other => panic!("{other:?}"),
    }
}

fn their_value(value: Option<PropValueRef<'_>>) -> String {
    match value {
        None => "null".to_owned(),
        Some(PropValueRef::Bool(value)) => value.to_string(),
        Some(PropValueRef::I8(value)) => value.to_string(),
        Some(PropValueRef::U8(value)) => value.to_string(),
        Some(PropValueRef::I32(value)) => value.to_string(),
        Some(PropValueRef::U32(value)) => value.to_string(),
        Some(PropValueRef::I64(value)) => value.to_string(),
        Some(PropValueRef::U64(value)) => value.to_string(),
        Some(PropValueRef::F32(value)) => format!("{:08x}", value.to_bits()),
        Some(PropValueRef::F64(value)) => format!("{:016x}", value.to_bits()),
        Some(PropValueRef::Str(value)) => format!("{value:?}"),
    }
}

fn our_shape(shape: &Shape<'_>) -> String {
    let mut text = String::new();
    let line = |text: &mut String, path: &Path<'_>| write!(text, "({:?})", path.iter().collect::<Vec<_>>());
    let rings = |text: &mut String, rings: Paths<'_>| {
        rings.for_each(|ring| _ = write!(text, "({:?})", ring.closed().collect::<Vec<_>>()));
    };
    match shape {
        Shape::Point(vertex) => _ = write!(text, "point {vertex:?}"),
        Shape::LineString(path) => {
            text.push_str("line ");
            _ = line(&mut text, path);
        }
        Shape::Polygon(paths) => {
            text.push_str("polygon ");
            rings(&mut text, paths.clone());
        }
        Shape::MultiPoint(path) => {
            text.push_str("points ");
            _ = line(&mut text, path);
        }
        Shape::MultiLineString(paths) => {
            text.push_str("lines ");
            paths.clone().for_each(|path| _ = line(&mut text, &path));
        }
        Shape::MultiPolygon(polygons) => {
            text.push_str("polygons ");
            for paths in polygons.clone() {
                text.push(';');
                rings(&mut text, paths);
            }
        }
    }
    text
}

fn their_shape(geometry: &TheirGeometry<i32>) -> String {
    let mut text = String::new();
    let line = |text: &mut String, line: &LineString<i32>| {
        let positions: Vec<[i32; 2]> = line.0.iter().map(|position| [position.x, position.y]).collect();
        _ = write!(text, "({positions:?})");
    };
    // It gives a polygon without rings an empty outline, which ours does not have.
    let rings = |text: &mut String, polygon: &Polygon<i32>| {
        let rings = std::iter::once(polygon.exterior()).filter(|ring| !ring.0.is_empty());
        rings.chain(polygon.interiors()).for_each(|ring| line(text, ring));
    };
    match geometry {
        TheirGeometry::Point(point) => _ = write!(text, "point {:?}", [point.x(), point.y()]),
        TheirGeometry::LineString(path) => {
            text.push_str("line ");
            line(&mut text, path);
        }
        TheirGeometry::Polygon(polygon) => {
            text.push_str("polygon ");
            rings(&mut text, polygon);
        }
        TheirGeometry::MultiPoint(points) => {
            let positions: Vec<[i32; 2]> = points.iter().map(|point| [point.x(), point.y()]).collect();
            _ = write!(text, "points ({positions:?})");
        }
        TheirGeometry::MultiLineString(paths) => {
            text.push_str("lines ");
            paths.iter().for_each(|path| line(&mut text, path));
        }
        TheirGeometry::MultiPolygon(polygons) => {
            text.push_str("polygons ");
            for polygon in polygons {
                text.push(';');
                rings(&mut text, polygon);
            }
        }
        other => panic!("{other:?}"),
    }
    text
}

#[cfg(test)]
#[path = "../../../fuzz/src/mlt_build.rs"]
#[allow(dead_code, missing_docs)]
mod mlt_build;

#[cfg(test)]
mod tests {
    use super::mlt_build::Form;
    use super::*;

    /// Tiles of every encoding that mlt-core knows, too.
    #[test]
    fn drawn_tiles_are_those_of_mlt_core() {
        let mut state = 1u64;
        for _ in 0..1500 {
            let bytes: Vec<u8> = (0..400)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    state.to_le_bytes()[7]
                })
                .collect();
            assert_same(&mlt_build::draw(&bytes, Some(Form::Common)).tile);
        }
    }
}
