//! Decoded layers as Arrow record batches, with geometry as GeoArrow has it.
//!
//! Source: GeoArrow specification 0.2, "Memory layout" and "Extension types": interleaved coordinates of `Float64`, rings
//! that repeat their first vertex. A layer of one type, or of one and that of several of it, has the extension type of
//! these; any other is ISO WKB. Coordinates stay those of the tile; elevations are metres.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array,
    ListArray, MapArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};

use super::data::{LayerData, MValues, Property, Strings, Values};
use super::geometry::{Geometry, GeometryType, Path, Shape};
use super::nested::{NestedKind, NestedNode};
use crate::error::{Error, ErrorKind, Limit, Part};

const BATCH: Part = Part::Values("", "record batch");

impl LayerData {
    /// The layer as a record batch: a row for each feature.
    ///
    /// Columns are the ids, if there are any (`id`), the geometry (`geometry`), properties, nested ones, and values of
    /// vertices as lists. Where a property has one of these two names, they get underscores in front. Strings in
    /// dictionaries stay so, and columns that share a dictionary share its array. The schema's metadata has the layer's `name` and `extent`.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] for 2^31 bytes of text, coordinates or elements, which the offsets of Arrow do not
    /// reach.
    pub fn to_record_batch(&self) -> Result<RecordBatch, Error> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        let mut add = |field: Field, array: ArrayRef| {
            fields.push(field);
            arrays.push(array);
        };
        if let Some(ids) = self.ids() {
            let array = property(&ids, &mut None)?;
            add(Field::new(self.free("id"), array.data_type().clone(), ids.nulls > 0), array);
        }
        let (extension, array) = geometry(self.geometry())?;
        let metadata = [("ARROW:extension:name", extension), ("ARROW:extension:metadata", "{}")];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let field = Field::new(self.free("geometry"), array.data_type().clone(), false);
        add(field.with_metadata(HashMap::from(metadata)), array);
        let mut shared = None;
        for column in self.properties() {
            let array = property(&column, &mut shared)?;
            add(Field::new(column.name, array.data_type().clone(), column.nulls > 0), array);
        }
        for column in self.nested() {
            let array = nested(column.root)?;
            add(Field::new(column.name, array.data_type().clone(), column.root.nulls() > 0), array);
        }
        for column in self.m_values() {
            let array = m_values(&column)?;
            add(Field::new(column.name, array.data_type().clone(), column.nulls > 0), array);
        }
        let metadata = [("name", self.name().to_owned()), ("extent", self.extent().to_string())];
        let metadata: HashMap<_, _> = metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let schema = Schema::new_with_metadata(fields, metadata);
        let rows = RecordBatchOptions::new().with_row_count(Some(self.features()));
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &rows).map_err(refused)
    }

    /// A name that no column has.
    fn free(&self, name: &str) -> String {
        let mut name = name.to_owned();
        let taken = |name: &str| {
            let others = self.m_values().map(|column| column.name).chain(self.nested().map(|column| column.name));
            self.properties().map(|column| column.name).chain(others).any(|other| other == name)
        };
        while taken(&name) {
            name.insert(0, '_');
        }
        name
    }
}

#[cold]
fn refused(error: ArrowError) -> Error {
    Error::new(ErrorKind::Missing, BATCH).caused_by(error)
}

/// Offsets as Arrow has them.
fn offsets(offsets: &[u32]) -> Result<OffsetBuffer<i32>, Error> {
    reaches(offsets.last().copied().unwrap_or(0) as usize)?;
    Ok(OffsetBuffer::new(offsets.iter().map(|offset| offset.cast_signed()).collect()))
}

/// That offsets of Arrow can count so many.
fn reaches(elements: usize) -> Result<i32, Error> {
    i32::try_from(elements).map_err(|_| {
        let (needed, limit) = (elements as u64, u64::from(i32::MAX.unsigned_abs()));
        Error::new(ErrorKind::LimitExceeded { needed, limit, what: Limit::OutputBytes }, BATCH)
    })
}

fn nulls(validity: Option<&[u8]>, len: usize) -> Option<NullBuffer> {
    validity.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_slice_ref(bits), 0, len)))
}

/// The entries of the last dictionary, by where their offsets lie: columns that share one come one behind the other, and it
/// is copied once for all of them.
type Shared = Option<(*const u32, Arc<StringArray>)>;

fn property(column: &Property<'_>, shared: &mut Shared) -> Result<ArrayRef, Error> {
    let nulls = nulls(column.validity, column.len);
    match &column.values {
        Values::Strings(strings) => text(strings, nulls, shared),
        of => values(of, column.len, nulls),
    }
}

fn values(values: &Values<'_>, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef, Error> {
    fn numbers<T: ArrowPrimitiveType>(values: &[T::Native], nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values.to_vec()), nulls))
    }
    Ok(match *values {
        Values::Bool(bits) => {
            Arc::new(BooleanArray::new(BooleanBuffer::new(Buffer::from_slice_ref(bits), 0, len), nulls))
        }
        Values::Int8(values) => numbers::<Int8Type>(values, nulls),
        Values::UInt8(values) => numbers::<UInt8Type>(values, nulls),
        Values::Int32(values) => numbers::<Int32Type>(values, nulls),
        Values::UInt32(values) => numbers::<UInt32Type>(values, nulls),
        Values::Int64(values) => numbers::<Int64Type>(values, nulls),
        Values::UInt64(values) => numbers::<UInt64Type>(values, nulls),
        Values::Float(values) => numbers::<Float32Type>(values, nulls),
        Values::Double(values) => numbers::<Float64Type>(values, nulls),
        Values::Strings(strings) => return text(&strings, nulls, &mut None),
    })
}

fn text(strings: &Strings<'_>, nulls: Option<NullBuffer>, shared: &mut Shared) -> Result<ArrayRef, Error> {
    let of = |nulls| -> Result<StringArray, Error> {
        let bytes = Buffer::from_slice_ref(strings.text.as_bytes());
        StringArray::try_new(offsets(strings.offsets)?, bytes, nulls).map_err(refused)
    };
    let Some(codes) = strings.codes else {
        return Ok(Arc::new(of(nulls)?));
    };
    let entries = match shared {
        Some((offsets, entries)) if *offsets == strings.offsets.as_ptr() => entries.clone(),
        _ => Arc::new(of(None)?),
    };
    *shared = Some((strings.offsets.as_ptr(), entries.clone()));
    reaches(strings.offsets.len())?;
    let codes = codes.iter().map(|code| code.cast_signed()).collect();
    let keys = PrimitiveArray::<Int32Type>::new(codes, nulls);
    Ok(Arc::new(DictionaryArray::try_new(keys, entries).map_err(refused)?))
}

fn m_values(column: &MValues<'_>) -> Result<ArrayRef, Error> {
    let total = column.offsets.last().copied().unwrap_or(0) as usize;
    let items = values(&column.values, total, None)?;
    let item = Arc::new(Field::new("item", items.data_type().clone(), false));
    list(item, offsets(column.offsets)?, items, nulls(column.validity, column.len))
}

fn list(
    item: FieldRef,
    offsets: OffsetBuffer<i32>,
    items: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Error> {
    Ok(Arc::new(ListArray::try_new(item, offsets, items, nulls).map_err(refused)?))
}

fn nested(node: NestedNode<'_>) -> Result<ArrayRef, Error> {
    let nulls = nulls(node.validity(), node.len());
    let field = |name: &str, of: NestedNode<'_>, array: &ArrayRef| {
        Arc::new(Field::new(name, array.data_type().clone(), of.nulls() > 0))
    };
    Ok(match node.kind() {
        NestedKind::Values(of) => return values(&of, node.len(), nulls),
        NestedKind::Struct(fields) => {
            let of = |child: NestedNode<'_>| nested(child).map(|array| (field(child.name(), child, &array), array));
            let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) =
                fields.map(of).collect::<Result<Vec<_>, Error>>()?.into_iter().unzip();
            let of = StructArray::try_new_with_length(fields.into(), arrays, nulls, node.len());
            Arc::new(of.map_err(refused)?)
        }
        NestedKind::List { offsets: ends, element } => {
            let items = nested(element)?;
            return list(field("item", element, &items), offsets(ends)?, items, nulls);
        }
        NestedKind::Map { offsets: ends, keys, value } => {
            // Keys are no dictionary: readers of maps do not take one.
            let all = (0..ends.last().copied().unwrap_or(0) as usize).map(|i| keys.get(i));
            reaches(all.clone().map(str::len).fold(0, usize::saturating_add))?;
            let keys: ArrayRef = Arc::new(StringArray::from_iter_values(all));
            let items = nested(value)?;
            let key = Arc::new(Field::new("key", DataType::Utf8, false));
            let fields = Fields::from(vec![key, field("value", value, &items)]);
            let of = StructArray::try_new(fields.clone(), vec![keys, items], None).map_err(refused)?;
            let entry = Arc::new(Field::new("entries", DataType::Struct(fields), false));
            Arc::new(MapArray::try_new(entry, offsets(ends)?, of, nulls, false).map_err(refused)?)
        }
    })
}

/// Coordinates of vertices, and the levels of offsets above them; the last level is the one next to the coordinates.
#[derive(Debug, Default)]
struct Levels {
    coordinates: Vec<f64>,
    offsets: [Vec<i32>; 3],
}

/// What the vertices of a layer are made coordinates with.
struct Coordinates<'a> {
    geometry: &'a Geometry,
}

impl Coordinates<'_> {
    fn dimensions(&self) -> usize {
        2 + usize::from(self.geometry.z().is_some())
    }

    fn push(&self, vertex: usize, out: &mut Vec<f64>) {
        out.extend(self.geometry.vertices()[vertex].map(f64::from));
        out.extend(self.geometry.elevation(vertex));
    }

    fn path(&self, path: Path<'_>, ring: bool, out: &mut Vec<f64>) {
        let closing = usize::from(ring && !path.is_empty());
        (0..path.len()).chain(0..closing).for_each(|i| self.push(path.index(i), out));
    }
}

/// The geometries, and the name of their extension type.
fn geometry(geometry: &Geometry) -> Result<(&'static str, ArrayRef), Error> {
    let there = geometry.types().iter().fold(0u8, |there, &code| there | 1 << code);
    let only = |types: &[GeometryType]| there & !types.iter().fold(0, |all, &of| all | 1 << of as u8) == 0;
    let name = if only(&[GeometryType::Point]) {
        "geoarrow.point"
    } else if only(&[GeometryType::LineString]) {
        "geoarrow.linestring"
    } else if only(&[GeometryType::Point, GeometryType::MultiPoint]) {
        "geoarrow.multipoint"
    } else if only(&[GeometryType::Polygon]) {
        "geoarrow.polygon"
    } else if only(&[GeometryType::LineString, GeometryType::MultiLineString]) {
        "geoarrow.multilinestring"
    } else if only(&[GeometryType::Polygon, GeometryType::MultiPolygon]) {
        "geoarrow.multipolygon"
    } else {
        return Ok(("geoarrow.wkb", wkb(geometry)?));
    };
    let coordinates = Coordinates { geometry };
    let mut levels = Levels::default();
    levels.offsets.iter_mut().for_each(|offsets| offsets.push(0));
    for (i, shape) in geometry.shapes().enumerate() {
        native(&coordinates, i, shape, &mut levels)?;
    }
    let dimensions = coordinates.dimensions();
    let Levels { coordinates, offsets: [outer, middle, inner] } = levels;
    reaches(coordinates.len())?;
    let (axes, size) = if dimensions == 3 { ("xyz", 3) } else { ("xy", 2) };
    let axis = Arc::new(Field::new(axes, DataType::Float64, false));
    let values = Arc::new(Float64Array::from(coordinates));
    let mut array: ArrayRef = Arc::new(FixedSizeListArray::try_new(axis, size, values, None).map_err(refused)?);
    let above = match name {
        "geoarrow.multipoint" => vec![("points", inner)],
        "geoarrow.linestring" => vec![("vertices", inner)],
        "geoarrow.polygon" => vec![("vertices", inner), ("rings", middle)],
        "geoarrow.multilinestring" => vec![("vertices", inner), ("linestrings", middle)],
        "geoarrow.multipolygon" => vec![("vertices", inner), ("rings", middle), ("polygons", outer)],
        _ => vec![],
    };
    for (name, offsets) in above {
        let item = Arc::new(Field::new(name, array.data_type().clone(), false));
        array = list(item, OffsetBuffer::new(offsets.into()), array, None)?;
    }
    Ok((name, array))
}

/// Adds feature `i`: at every level that its type has, and at those that several of it would have.
fn native(of: &Coordinates<'_>, i: usize, shape: Shape<'_>, out: &mut Levels) -> Result<(), Error> {
    let Levels { coordinates, offsets: [outer, middle, inner] } = out;
    let mut path = |path: Path<'_>, ring: bool, inner: &mut Vec<i32>| -> Result<(), Error> {
        of.path(path, ring, coordinates);
        inner.push(reaches(coordinates.len() / of.dimensions())?);
        Ok(())
    };
    match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => {
            of.geometry.vertex_range(i).unwrap_or_default().for_each(|vertex| of.push(vertex, coordinates));
            inner.push(reaches(coordinates.len() / of.dimensions())?);
        }
        Shape::LineString(line) => path(line, false, inner)?,
        Shape::MultiLineString(mut lines) => lines.try_for_each(|line| path(line, false, inner))?,
        Shape::Polygon(mut rings) => rings.try_for_each(|ring| path(ring, true, inner))?,
        Shape::MultiPolygon(polygons) => {
            for mut rings in polygons {
                rings.try_for_each(|ring| path(ring, true, inner))?;
                middle.push(reaches(inner.len() - 1)?);
            }
            outer.push(reaches(middle.len() - 1)?);
            return Ok(());
        }
    }
    middle.push(reaches(inner.len() - 1)?);
    outer.push(reaches(middle.len() - 1)?);
    Ok(())
}

/// The geometries in ISO WKB, little-endian.
fn wkb(geometry: &Geometry) -> Result<ArrayRef, Error> {
    let of = Coordinates { geometry };
    let (mut bytes, mut coordinates, mut ends) = (Vec::new(), Vec::new(), vec![0]);
    for (i, shape) in geometry.shapes().enumerate() {
        well_known(&of, i, shape, &mut coordinates, &mut bytes);
        ends.push(reaches(bytes.len())?);
    }
    let array = BinaryArray::try_new(OffsetBuffer::new(ends.into()), bytes.into(), None);
    Ok(Arc::new(array.map_err(refused)?))
}

fn well_known(of: &Coordinates<'_>, i: usize, shape: Shape<'_>, coordinates: &mut Vec<f64>, out: &mut Vec<u8>) {
    // Byte order, and the type's code: from 1 on in the order of the type; with z, 1000 more.
    let header = |geometry_type: GeometryType, out: &mut Vec<u8>| {
        out.push(1);
        out.extend((1 + geometry_type as u32 + if of.geometry.z().is_some() { 1000 } else { 0 }).to_le_bytes());
    };
    // Vertices of a layer, and so all of its parts, are counted in 32 bits.
    let count = |n: usize, out: &mut Vec<u8>| out.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
    let flush = |coordinates: &mut Vec<f64>, out: &mut Vec<u8>| {
        coordinates.drain(..).for_each(|coordinate| out.extend(coordinate.to_le_bytes()));
    };
    let mut path = |path: Path<'_>, ring: bool, out: &mut Vec<u8>| {
        of.path(path, ring, coordinates);
        count(coordinates.len() / of.dimensions(), out);
        flush(coordinates, out);
    };
    let geometry_type = shape.geometry_type();
    header(geometry_type, out);
    match shape {
        Shape::LineString(line) => path(line, false, out),
        Shape::MultiLineString(lines) => {
            count(lines.len(), out);
            for line in lines {
                header(GeometryType::LineString, out);
                path(line, false, out);
            }
        }
        Shape::Polygon(rings) => {
            count(rings.len(), out);
            rings.for_each(|ring| path(ring, true, out));
        }
        Shape::MultiPolygon(polygons) => {
            count(polygons.len(), out);
            for rings in polygons {
                header(GeometryType::Polygon, out);
                count(rings.len(), out);
                rings.for_each(|ring| path(ring, true, out));
            }
        }
        Shape::Point(_) | Shape::MultiPoint(_) => {
            let vertices = of.geometry.vertex_range(i).unwrap_or_default();
            let several = geometry_type == GeometryType::MultiPoint;
            if several {
                count(vertices.len(), out);
            }
            for vertex in vertices {
                if several {
                    header(GeometryType::Point, out);
                }
                of.push(vertex, coordinates);
                flush(coordinates, out);
            }
        }
    }
}

#[cfg(all(test, feature = "encode"))]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use crate::kernels::Kernels;
    use crate::mlt::encode::{
        Child, Geometry, GeometryCoding, Integers, LayerWriter, Member, Nested, Presence, Shape, Strings, Values,
        Version, Words,
    };
    use crate::mlt::{Decoder, LayerData, Options, StringLayout, Tile};

    /// Columns that share a dictionary share its array; others have their own.
    #[test]
    fn shared_dictionaries() {
        let (present, codes) = (Presence::All, Integers::Values(Words::VarInt));
        let child = |name, values| Child { name, presence: present, values, codes };
        let mut layer = LayerWriter::new(Version::V2, "names", 4096, 2).unwrap();
        let points = [Shape::Point([0, 0]), Shape::Point([1, 1])];
        layer.geometry(&Geometry::new(&points).unwrap(), &GeometryCoding::default()).unwrap();
        let of = Strings::default();
        layer.shared_dictionary("a", &[child("1", &["x", "y"]), child("2", &["y", "y"])], &of).unwrap();
        layer.shared_dictionary("b", &[child("1", &["z", "y"])], &of).unwrap();
        let own = Strings { codes, ..Strings::new(StringLayout::Dictionary) };
        layer.column("c", present, Values::Strings(&["x", "x"], own)).unwrap();
        let mut tile = Vec::new();
        layer.finish(&mut tile).unwrap();
        let (options, mut data) = (Options::with_kernels(Kernels::auto()), LayerData::new());
        let tile = Tile::open(&tile, &options).unwrap();
        Decoder::with_options(options).layer(tile.layer(0).unwrap(), &mut data).unwrap();
        let batch = data.to_record_batch().unwrap();
        let entries = |name: &str| batch[name].as_dictionary::<Int32Type>().values().clone();
        assert!(Arc::ptr_eq(&entries("a1"), &entries("a2")));
        assert!(!Arc::ptr_eq(&entries("a2"), &entries("b1")));
        assert!(!Arc::ptr_eq(&entries("b1"), &entries("c")));
        for (name, values) in [("a1", ["x", "y"]), ("a2", ["y", "y"]), ("b1", ["z", "y"]), ("c", ["x", "x"])] {
            let column = batch[name].as_dictionary::<Int32Type>();
            let (keys, entries) = (column.keys().values(), column.values().as_string::<i32>());
            assert_eq!([0, 1].map(|i| entries.value(keys[i] as usize)), values, "{name}");
        }
    }

    /// The keys of maps are written out: more text than offsets reach is an error, not the end of the program.
    #[test]
    fn many_long_keys() {
        let key = "x".repeat(1 << 20);
        for (n, expected) in [(0usize, None), (3, None), (2048, Some("limit_exceeded")), (5000, Some("limit_exceeded"))]
        {
            let (keys, numbers, runs) = (vec![&key[..]; n], vec![7; n], Integers::Rle(Words::VarInt));
            let map = Nested::Map {
                lengths: &[u32::try_from(n).unwrap()],
                coding: runs,
                keys: &keys,
                key_coding: Strings { codes: runs, ..Strings::new(StringLayout::Dictionary) },
                value: Box::new(Member { present: None, node: Nested::Values(Values::Int32(&numbers, runs)) }),
            };
            let mut layer = LayerWriter::new(Version::V2, "maps", 4096, 1).unwrap();
            layer.geometry(&Geometry::new(&[Shape::Point([0, 0])]).unwrap(), &GeometryCoding::default()).unwrap();
            layer.nested("map", Presence::All, &map).unwrap();
            let mut tile = Vec::new();
            layer.finish(&mut tile).unwrap();
            let (options, mut data) = (Options::with_kernels(Kernels::auto()), LayerData::new());
            let tile = Tile::open(&tile, &options).unwrap();
            Decoder::with_options(options).layer(tile.layer(0).unwrap(), &mut data).unwrap();
            let batch = data.to_record_batch();
            assert_eq!(batch.err().map(|error| error.kind().name()), expected, "{n}");
        }
    }
}
