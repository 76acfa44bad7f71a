//! Decoded layers as GeoJSON: in tile coordinates, or in degrees where it is known which tile it is.

use std::collections::HashMap;
use std::f64::consts::PI;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tilekern::mlt::{Geometry, Path, Paths, Shape, Value};

use super::Parts;
use super::json::{OfVertices, Slot};
use crate::archive::Place;

/// A feature of a layer.
struct Feature<'a> {
    parts: &'a Parts<'a>,
    /// Where columns have names in common.
    shared: Option<&'a Shared>,
    feature: usize,
    /// The tile, where coordinates are to be degrees.
    place: Option<Place>,
    /// Whether the layer's own name, and extent, have a key.
    own: [bool; 2],
}

impl Serialize for Feature<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("type", "Feature")?;
        let ids = self.parts.ids.as_ref().and_then(Option::as_ref);
        if let Some(ids) = ids.filter(|ids| ids.is_valid(self.feature)) {
            map.serialize_entry("id", &Plain(ids.get(self.feature)))?;
        }
        map.serialize_entry("properties", &Properties(self))?;
        if let Some(geometry) = self.parts.geometry {
            map.serialize_entry("geometry", &Located { geometry, feature: self })?;
        }
        map.end()
    }
}

/// A value as JSON has it; words for numbers that it has not.
struct Plain<'a>(Value<'a>);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let word = |value: f64| match value {
            value if value.is_nan() => "NaN",
            value if value > 0.0 => "Infinity",
            _ => "-Infinity",
        };
        match self.0 {
            Value::Bool(value) => to.serialize_bool(value),
            Value::Int(value) => to.serialize_i64(value),
            Value::UInt(value) => to.serialize_u64(value),
            Value::Float(value) if value.is_finite() => to.serialize_f32(value),
            Value::Float(value) => to.serialize_str(word(value.into())),
            Value::Double(value) if value.is_finite() => to.serialize_f64(value),
            Value::Double(value) => to.serialize_str(word(value)),
            Value::String(value) => to.serialize_str(value),
            _ => to.serialize_unit(),
        }
    }
}

/// Which columns of a layer have one name.
struct Shared {
    /// For each column the number of its name.
    names: Vec<usize>,
    n_names: usize,
}

impl Shared {
    /// None where all are different, as version 2 demands.
    fn of(parts: &Parts<'_>) -> Option<Shared> {
        let mut numbers = HashMap::new();
        let mut number = |name| {
            let next = numbers.len();
            *numbers.entry(name).or_insert(next)
        };
        let names: Vec<usize> = parts.columns.iter().map(|column| number(column.name)).collect();
        let n_names = numbers.len();
        (n_names < names.len()).then_some(Shared { names, n_names })
    }

    /// Of each name the last column that has a value for the feature.
    fn last(&self, parts: &Parts<'_>, feature: usize) -> Vec<usize> {
        let mut last = vec![0; self.n_names];
        for (at, name) in self.names.iter().enumerate().filter(|(at, _)| parts.columns[*at].is_valid(feature)) {
            last[*name] = at;
        }
        last
    }
}

/// The properties of a feature, of which those that it has not are left out. Values of vertices are lists.
struct Properties<'a>(&'a Feature<'a>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Feature { parts, shared, feature, own, .. } = *self.0;
        let mut map = to.serialize_map(None)?;
        if own[0] {
            map.serialize_entry(OWN[0], parts.layer.name())?;
        }
        if own[1] {
            map.serialize_entry(OWN[1], &parts.layer.extent())?;
        }
        // A key is there once.
        let last = shared.map(|shared| (shared, shared.last(parts, feature)));
        let stands = |at: usize| last.as_ref().is_none_or(|(shared, last)| last[shared.names[at]] == at);
        for (at, column) in parts.columns.iter().enumerate() {
            if column.is_valid(feature) && stands(at) {
                map.serialize_entry(column.name, &Plain(column.get(feature)))?;
            }
        }
        for column in parts.nested.iter().filter(|column| column.root.is_valid(feature)) {
            map.serialize_entry(column.name, &Slot { node: column.root, slot: feature, value: Plain })?;
        }
        for column in &parts.m_values {
            if column.get(feature).is_some() {
                map.serialize_entry(column.name, &OfVertices { column, feature, value: Plain })?;
            }
        }
        map.end()
    }
}

/// A position as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Position {
    Tile([i32; 2]),
    High(i32, i32, f64),
    Degrees([f64; 2]),
    DegreesHigh([f64; 3]),
}

/// Which side a ring has its polygon on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ring {
    Outline,
    Hole,
}

#[derive(Clone, Copy)]
struct Located<'a> {
    geometry: &'a Geometry,
    feature: &'a Feature<'a>,
}

impl Serialize for Located<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Located { geometry, feature } = *self;
        let shape = geometry.shape(feature.feature);
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("type", shape.geometry_type().name())?;
        let line = |path| Line { of: *self, path, ring: None };
        let rings = |rings| Rings { of: *self, rings };
        match shape {
            Shape::Point(vertex) => {
                let at = geometry.vertex_range(feature.feature).unwrap_or_default().start;
                map.serialize_entry("coordinates", &self.position(vertex, at))?;
            }
            Shape::LineString(path) | Shape::MultiPoint(path) => map.serialize_entry("coordinates", &line(path))?,
            Shape::MultiLineString(paths) => map.serialize_entry("coordinates", &Listed(paths.map(line)))?,
            Shape::Polygon(of) => map.serialize_entry("coordinates", &rings(of))?,
            Shape::MultiPolygon(of) => map.serialize_entry("coordinates", &Listed(of.map(rings)))?,
        }
        map.end()
    }
}

impl Located<'_> {
    /// The position of a vertex, by its number in the layer.
    fn position(self, vertex: [i32; 2], at: usize) -> Position {
        let Located { geometry, feature } = self;
        let Some(place) = feature.place else {
            return match geometry.elevation(at) {
                None => Position::Tile(vertex),
                Some(height) => Position::High(vertex[0], vertex[1], height),
            };
        };
        let [longitude, latitude] = degrees(place, feature.parts.layer.extent(), vertex);
        match geometry.elevation(at) {
            None => Position::Degrees([longitude, latitude]),
            Some(height) => Position::DegreesHigh([longitude, latitude, height]),
        }
    }
}

/// A list that is written as it is made.
struct Listed<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Listed<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.clone())
    }
}

/// The rings of a polygon.
struct Rings<'a> {
    of: Located<'a>,
    rings: Paths<'a>,
}

impl Serialize for Rings<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let kinds = std::iter::once(Ring::Outline).chain(std::iter::repeat(Ring::Hole));
        let rings = self.rings.clone().zip(kinds);
        to.collect_seq(rings.map(|(path, kind)| Line { of: self.of, path, ring: Some(kind) }))
    }
}

/// Positions in a row. Rings are closed; in degrees outlines are counter-clockwise and holes clockwise, as the RFC has them.
struct Line<'a> {
    of: Located<'a>,
    path: Path<'a>,
    ring: Option<Ring>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Line { of, path, ring } = *self;
        let turned = of.feature.place.is_some() && ring.is_some_and(|kind| !is_wound(path, kind));
        let closing = if ring.is_some() { path.len().min(1) } else { 0 };
        let position = |i: usize| {
            let i = i % path.len();
            let i = if turned { path.len() - 1 - i } else { i };
            of.position(path.get(i), path.index(i))
        };
        to.collect_seq((0..path.len() + closing).map(position))
    }
}

/// Whether a ring, in coordinates whose y grows to the south, runs around its polygon as the RFC has it; one of no area does.
fn is_wound(ring: Path<'_>, kind: Ring) -> bool {
    let area: i128 = ring
        .iter()
        .zip(ring.closed().skip(1))
        .map(|([x, y], [next_x, next_y])| i128::from(x) * i128::from(next_y) - i128::from(next_x) * i128::from(y))
        .sum();
    match kind {
        Ring::Outline => area <= 0,
        Ring::Hole => area >= 0,
    }
}

/// Longitude and latitude of a position in a tile of the Mercator projection of the web.
fn degrees(place: Place, extent: u32, [x, y]: [i32; 2]) -> [f64; 2] {
    let tiles = 2f64.powi(place.z.into());
    let share = |tile: u32, at: i32| (f64::from(tile) + f64::from(at) / f64::from(extent)) / tiles;
    let longitude = share(place.x, x) * 360.0 - 180.0;
    let latitude = (PI * (1.0 - 2.0 * share(place.y, y))).sinh().atan().to_degrees();
    [longitude, latitude]
}

/// The keys that every feature has beside its properties. What the tile itself has under these names stands in their place.
const OWN: [&str; 2] = ["_layer", "_extent"];

/// All features of a layer, into a list.
pub fn features<S: SerializeSeq>(parts: &Parts<'_>, place: Option<Place>, list: &mut S) -> Result<(), S::Error> {
    let own = OWN.map(|own| {
        !(parts.columns.iter().any(|column| column.name == own)
            || parts.nested.iter().any(|column| column.name == own)
            || parts.m_values.iter().any(|column| column.name == own))
    });
    let shared = Shared::of(parts);
    let shared = shared.as_ref();
    (0..parts.layer.features())
        .try_for_each(|feature| list.serialize_element(&Feature { parts, shared, feature, place, own }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_those_of_the_web() {
        let near = |found: [f64; 2], expected: [f64; 2]| {
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
        };
        let world = Place { z: 0, x: 0, y: 0 };
        let edge = 85.051_128_779_806_6;
        assert!(near(degrees(world, 4096, [0, 0]), [-180.0, edge]));
        assert!(near(degrees(world, 4096, [2048, 2048]), [0.0, 0.0]));
        assert!(near(degrees(world, 4096, [4096, 4096]), [180.0, -edge]));
        // The corner that four tiles share.
        let place = |x, y| Place { z: 3, x, y };
        let corner = degrees(place(4, 2), 512, [0, 512]);
        assert!(near(corner, degrees(place(3, 3), 4096, [4096, 0])));
        assert!(near(corner, [0.0, 40.979_898_069_620_13]));
    }
}
