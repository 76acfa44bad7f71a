//! Decoded layers as JSON: all values exactly, floating-point numbers as their bits; or digests of them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tilekern::mlt::{Geometry, MValues, Nested, NestedKind, NestedNode, Paths, Property, Shape, Value, Values};
use tilekern::{Error, ErrorKind, Limit, Part};

use super::Parts;

/// A layer as JSON.
pub struct LayerJson<'a> {
    pub parts: &'a Parts<'a>,
    /// Digests in place of long lists, of so many bytes.
    pub digest: Option<&'a Allowance>,
}

/// Bytes of text that may be made of a tile. Few bytes of it can mean any number of them: a long string for each of many
/// features, maps in maps.
#[derive(Debug)]
pub struct Allowance {
    limit: u64,
    needed: Cell<u64>,
}

impl Allowance {
    pub fn new(limit: u64) -> Allowance {
        Allowance { limit, needed: Cell::new(0) }
    }

    /// The error of more text than is allowed, once somebody wanted to write it.
    pub fn exceeded(&self) -> Option<Error> {
        let (needed, limit) = (self.needed.get(), self.limit);
        let kind = ErrorKind::LimitExceeded { needed, limit, what: Limit::OutputBytes };
        (needed > limit).then(|| Error::new(kind, Part::Object))
    }

    /// A writer of text that counts.
    pub fn to<W>(&self, out: W) -> Allowed<'_, W> {
        Allowed { out, allowance: self }
    }
}

/// Hands on what is allowed.
#[derive(Debug)]
pub struct Allowed<'a, W> {
    out: W,
    allowance: &'a Allowance,
}

impl<W: Write> Write for Allowed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Allowance { limit, needed } = self.allowance;
        let left = limit.saturating_sub(needed.get());
        needed.set(needed.get().saturating_add(bytes.len() as u64));
        let allowed = usize::try_from(left).map_or(bytes, |left| &bytes[..bytes.len().min(left)]);
        self.out.write_all(allowed)?;
        if allowed.len() < bytes.len() {
            return Err(io::Error::other("more text than is allowed"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Serialize for LayerJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Parts { layer, ids, geometry, columns, m_values, nested } = self.parts;
        let list = |list| Listed { list, digest: self.digest };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", layer.name())?;
        map.serialize_entry("version", &layer.version())?;
        map.serialize_entry("extent", &layer.extent())?;
        map.serialize_entry("feature_count", &layer.features())?;
        if let Some(ids) = ids {
            map.serialize_entry("ids", &ids.as_ref().map(|ids| list(List::Column(ids))))?;
        }
        let columns: Vec<ColumnJson<'_>> = columns
            .iter()
            .map(|column| ColumnJson {
                name: column.name,
                kind: type_name(&column.values),
                nulls: self.digest.map(|_| column.nulls),
                values: list(List::Column(column)),
            })
            .collect();
        // The order of the two forms.
        let geometry_entry = geometry.map(|geometry| list(List::Shapes(geometry)));
        if self.digest.is_some() {
            geometry_entry.as_ref().map_or(Ok(()), |entry| map.serialize_entry("geometry", entry))?;
            map.serialize_entry("columns", &columns)?;
        } else {
            map.serialize_entry("columns", &columns)?;
            geometry_entry.as_ref().map_or(Ok(()), |entry| map.serialize_entry("geometry", entry))?;
        }
        if let Some((offsets, indices)) = geometry.and_then(Geometry::triangles).filter(|_| self.digest.is_none()) {
            map.serialize_entry("triangles", &Triangles { offsets, indices })?;
        }
        if let Some((geometry, (step, z))) = geometry.and_then(|geometry| Some((geometry, geometry.z()?))) {
            let step_exponent = i16::from(step) - 3;
            map.serialize_entry("z", &Z { step_exponent, values: list(List::Z(geometry, z)) })?;
        }
        if !m_values.is_empty() {
            let json = |column| MValueJson::of(column, list(List::MValues(column)));
            map.serialize_entry("m_values", &m_values.iter().map(json).collect::<Vec<_>>())?;
        }
        if !nested.is_empty() {
            let json = |column| NestedJson::of(column, list(List::Nested(column)));
            map.serialize_entry("nested", &nested.iter().map(json).collect::<Vec<_>>())?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct ColumnJson<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    nulls: Option<usize>,
    values: Listed<'a>,
}

#[derive(Serialize)]
struct Triangles<'a> {
    offsets: &'a [u32],
    indices: &'a [u32],
}

#[derive(Serialize)]
struct Z<'a> {
    step_exponent: i16,
    values: Listed<'a>,
}

#[derive(Serialize)]
struct MValueJson<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    values: Listed<'a>,
}

impl<'a> MValueJson<'a> {
    fn of(column: &MValues<'a>, values: Listed<'a>) -> MValueJson<'a> {
        MValueJson { name: column.name, kind: type_name(&column.values), values }
    }
}

#[derive(Serialize)]
struct NestedJson<'a> {
    name: &'a str,
    /// None: it is too large.
    shape: Option<ShapeOf<'a>>,
    values: Listed<'a>,
}

impl<'a> NestedJson<'a> {
    fn of(column: &Nested<'a>, values: Listed<'a>) -> NestedJson<'a> {
        let shape = Some(shape_of(&column.root)).filter(|shape| shape.size() <= SHAPE);
        NestedJson { name: column.name, shape, values }
    }
}

/// The type of values in a word.
pub fn type_name(values: &Values<'_>) -> &'static str {
    match values {
        Values::Bool(_) => "bool",
        Values::Int8(_) => "i8",
        Values::UInt8(_) => "u8",
        Values::Int32(_) => "i32",
        Values::UInt32(_) => "u32",
        Values::Int64(_) => "i64",
        Values::UInt64(_) => "u64",
        Values::Float(_) => "f32",
        Values::Double(_) => "f64",
        _ => "str",
    }
}

/// Types that a shape has at most: a few nested maps, each with a few keys, are of very many.
const SHAPE: usize = 1 << 20;

/// What a nested column's values are like. In maps of maps the inner one is written for each key of the outer one, but is
/// in memory once.
enum ShapeOf<'a> {
    List(Box<ShapeOf<'a>>),
    Struct(BTreeMap<&'a str, ShapeOf<'a>>),
    Map(BTreeSet<&'a str>, Box<ShapeOf<'a>>),
    Value(&'static str),
}

impl ShapeOf<'_> {
    /// Types that are written.
    fn size(&self) -> usize {
        match self {
            ShapeOf::Value(_) => 1,
            ShapeOf::List(element) => element.size(),
            ShapeOf::Struct(fields) => fields.values().fold(0, |sum, field| sum.saturating_add(field.size())),
            ShapeOf::Map(keys, value) => keys.len().saturating_mul(value.size()),
        }
    }
}

impl Serialize for ShapeOf<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Keys<'a>(&'a BTreeSet<&'a str>, &'a ShapeOf<'a>);

        impl Serialize for Keys<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_map(self.0.iter().map(|key| (key, self.1)))
            }
        }

        match self {
            ShapeOf::List(element) => to.collect_map([("list", element)]),
            ShapeOf::Struct(fields) => to.collect_map([("map", fields)]),
            ShapeOf::Map(keys, value) => to.collect_map([("map", Keys(keys, value))]),
            ShapeOf::Value(name) => to.serialize_str(name),
        }
    }
}

fn shape_of<'a>(node: &NestedNode<'a>) -> ShapeOf<'a> {
    match node.kind() {
        NestedKind::Struct(fields) => ShapeOf::Struct(fields.map(|field| (field.name(), shape_of(&field))).collect()),
        NestedKind::List { element, .. } => ShapeOf::List(Box::new(shape_of(&element))),
        NestedKind::Map { offsets, keys, value } => {
            let entries = offsets.last().map_or(0, |&end| end as usize);
            let mut distinct = BTreeSet::new();
            distinct.extend((0..entries).map(|entry| keys.get(entry)));
            ShapeOf::Map(distinct, Box::new(shape_of(&value)))
        }
        NestedKind::Values(values) => ShapeOf::Value(type_name(&values)),
        _ => ShapeOf::Value(""),
    }
}

/// A list that may be long.
enum List<'a> {
    Column(&'a Property<'a>),
    Shapes(&'a Geometry),
    Z(&'a Geometry, &'a [i32]),
    MValues(&'a MValues<'a>),
    Nested(&'a Nested<'a>),
}

/// The list itself, or the digest of its JSON; null where that is longer than is allowed.
struct Listed<'a> {
    list: List<'a>,
    digest: Option<&'a Allowance>,
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(allowance) = self.digest else { return self.list.serialize(to) };
        let mut digest = Fnv::default();
        let digested = serde_json::to_writer(allowance.to(&mut digest), &self.list);
        if allowance.exceeded().is_some() {
            return to.serialize_unit();
        }
        digested.map_err(serde::ser::Error::custom)?;
        to.collect_str(&format_args!("{:016x}", digest.0))
    }
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            List::Column(column) => to.collect_seq(column.iter().map(Exact)),
            List::Shapes(geometry) => {
                to.collect_seq(geometry.shapes().map(|shape| (shape.geometry_type().name(), Coordinates(shape))))
            }
            List::Z(geometry, z) => to.collect_seq((0..geometry.len()).map(|feature| {
                // Triangles without outlines share their vertices.
                &z[geometry.vertex_range(feature).unwrap_or(0..0)]
            })),
            List::MValues(column) => {
                to.collect_seq((0..column.len).map(|feature| OfVertices { column, feature, value: Exact }))
            }
            List::Nested(column) => {
                to.collect_seq((0..column.root.len()).map(|slot| Slot { node: column.root, slot, value: Exact }))
            }
        }
    }
}

/// The values of a feature's vertices, written in some way; not collected, since there may be very many.
pub struct OfVertices<'a, F> {
    pub column: &'a MValues<'a>,
    pub feature: usize,
    pub value: F,
}

impl<'a, F: Fn(Value<'a>) -> V, V: Serialize> Serialize for OfVertices<'a, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.column.get(self.feature) {
            Some(values) => to.collect_seq(values.map(&self.value)),
            None => to.serialize_unit(),
        }
    }
}

/// A value whose floating-point numbers are their bits.
pub struct Exact<'a>(pub Value<'a>);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => to.serialize_bool(value),
            Value::Int(value) => to.serialize_i64(value),
            Value::UInt(value) => to.serialize_u64(value),
            Value::Float(value) => to.collect_str(&format_args!("0x{:08x}", value.to_bits())),
            Value::Double(value) => to.collect_str(&format_args!("0x{:016x}", value.to_bits())),
            Value::String(value) => to.serialize_str(value),
            _ => to.serialize_unit(),
        }
    }
}

/// The coordinates of a geometry, with closed rings.
struct Coordinates<'a>(Shape<'a>);

impl Serialize for Coordinates<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Shape::Point(vertex) => vertex.serialize(to),
            Shape::LineString(path) | Shape::MultiPoint(path) => to.collect_seq(path.iter()),
            Shape::MultiLineString(paths) => to.collect_seq(paths.clone().map(|path| path.iter().collect::<Vec<_>>())),
            Shape::Polygon(rings) => Rings(rings.clone()).serialize(to),
            Shape::MultiPolygon(polygons) => to.collect_seq(polygons.clone().map(Rings)),
        }
    }
}

struct Rings<'a>(Paths<'a>);

impl Serialize for Rings<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.clone().map(|ring| ring.closed().collect::<Vec<_>>()))
    }
}

/// A slot of a nested column, whose values are written in some way.
pub struct Slot<'a, F> {
    pub node: NestedNode<'a>,
    pub slot: usize,
    pub value: F,
}

impl<'a, F: Fn(Value<'a>) -> V + Copy, V: Serialize> Serialize for Slot<'a, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Slot { node, slot, value } = self;
        if !node.is_valid(slot) {
            return to.serialize_unit();
        }
        let below = |node, slot| Slot { node, slot, value };
        match node.kind() {
            NestedKind::Values(values) => value(values.get(slot)).serialize(to),
            NestedKind::Struct(fields) => {
                let there: BTreeMap<&str, _> = fields
                    .filter(|field| field.is_valid(slot))
                    .map(|field| (field.name(), below(field, slot)))
                    .collect();
                there.serialize(to)
            }
            NestedKind::List { offsets, element } => {
                let elements = offsets[slot] as usize..offsets[slot + 1] as usize;
                let mut list = to.serialize_seq(Some(elements.len()))?;
                elements.into_iter().try_for_each(|at| list.serialize_element(&below(element, at)))?;
                list.end()
            }
            NestedKind::Map { offsets, keys, value: of } => {
                let entries = offsets[slot] as usize..offsets[slot + 1] as usize;
                // One by one: of very many entries few keys may be different.
                let mut there = BTreeMap::new();
                there.extend(entries.filter(|&at| of.is_valid(at)).map(|at| (keys.get(at), below(of, at))));
                there.serialize(to)
            }
            _ => to.serialize_unit(),
        }
    }
}

/// FNV-1a of 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
