//! Writes tiles, of either version, from typed columns. How each stream is stored is the caller's choice: this is no
//! optimiser, but a way to every encoding, for tests, samples and tools.
//!
//! ```
//! # fn main() -> Result<(), tilekern::Error> {
//! use tilekern::mlt::encode::{
//!     Geometry, GeometryCoding, Integers, LayerWriter, Presence, Shape, Strings, Truths, Values, Version, Words,
//! };
//!
//! let mut layer = LayerWriter::new(Version::V1, "places", 4096, 2)?;
//! layer.geometry(&Geometry::new(&[Shape::Point([10, 20]), Shape::Point([30, 40])])?, &GeometryCoding::default())?;
//! layer.column("rank", Presence::All, Values::UInt32(&[1, 2], Integers::Delta(Words::VarInt)))?;
//! layer.column("name", Presence::Own(&[true, false], Truths::ByteRuns), Values::Strings(&["Oslo"], Strings::default()))?;
//! let mut tile = Vec::new();
//! layer.finish(&mut tile)?; // more layers may follow
//! # Ok(())
//! # }
//! ```

mod coding;
mod geometry;
mod stream;
mod strings;
mod values;

use std::collections::BTreeSet;

use super::encoding::strings as entries;
use super::{DataType, MltFault};
use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::output::push_uleb;

pub use coding::{Floats, GeometryCoding, Integers, Strings, Truths, Version, Vertices, Words};
pub use geometry::{Geometry, Position, Shape, Triangle};
pub use values::{Member, Nested, Values};

use stream::{Streams, role};

/// Shared presence fields that a layer of version 2 can have.
const SHARED: u8 = 7;

/// Which features have a value.
#[derive(Clone, Copy, Debug)]
pub enum Presence<'a> {
    /// All.
    All,
    /// One truth value for each feature.
    Own(&'a [bool], Truths),
    /// The field that [`LayerWriter::shared_presence`] gave this number. Version 2.
    Shared(usize),
}

/// A column of strings in a shared dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// What follows the dictionary's name.
    pub name: &'a str,
    /// Which features have a value.
    pub presence: Presence<'a>,
    /// Their values.
    pub values: &'a [&'a str],
    /// How the codes are stored.
    pub codes: Integers,
}

/// What a layer of version 2 says of its geometry elsewhere.
#[derive(Clone, Debug)]
struct Placed {
    layout: u8,
    /// The type of all features.
    uniform: Option<u8>,
    /// Vertices of each feature, where those can have values.
    vertices: Option<Vec<usize>>,
}

/// Writes one layer.
#[derive(Clone, Debug)]
pub struct LayerWriter {
    version: Version,
    name: String,
    extent: u32,
    features: usize,
    shared: Vec<Vec<bool>>,
    shared_coding: Vec<Truths>,
    /// Once the geometry is there.
    placed: Option<Placed>,
    geometry: Streams,
    /// Version 1: what the columns are, and then what they hold. Version 2 has both in one.
    meta: Streams,
    data: Streams,
    columns: usize,
    m_values: Streams,
    m_columns: usize,
    has_ids: bool,
    names: BTreeSet<String>,
}

impl LayerWriter {
    /// A layer of so many features.
    ///
    /// # Errors
    /// [`ErrorKind::Mlt`] for an empty name; [`ErrorKind::OutOfRange`] for an extent of 0, in version 2 one that is no power
    /// of two from 2^6 to 2^21, and for 2^32 features or more.
    pub fn new(version: Version, name: &str, extent: u32, features: usize) -> Result<LayerWriter, Error> {
        if name.is_empty() {
            return Err(broken(MltFault::Empty, "layer name"));
        }
        length(features)?;
        let (min, max) = if version == Version::V1 { (1, u32::MAX) } else { (1 << 6, 1 << 21) };
        if !(min..=max).contains(&extent) || (version == Version::V2 && !extent.is_power_of_two()) {
            let kind = ErrorKind::OutOfRange { found: extent.into(), min: min.into(), max: max.into() };
            return Err(Error::new(kind, Part::Buffer("extent")));
        }
        let streams = Streams::new(version);
        Ok(LayerWriter {
            version,
            name: name.to_owned(),
            extent,
            features,
            shared: Vec::new(),
            shared_coding: Vec::new(),
            placed: None,
            geometry: streams.clone(),
            meta: streams.clone(),
            data: streams.clone(),
            columns: 0,
            m_values: streams,
            m_columns: 0,
            has_ids: false,
            names: BTreeSet::new(),
        })
    }

    /// A presence field that columns can share; returns its number. Version 2, 7 at most.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] in version 1 and for an eighth; [`ErrorKind::Mlt`] if there is not one for each feature.
    pub fn shared_presence(&mut self, present: &[bool], coding: Truths) -> Result<usize, Error> {
        self.meta.of_version_2("shared presence")?;
        count(present.len(), self.features, "shared presence")?;
        self.meta.truths_payload(present, coding)?;
        if self.shared.len() == usize::from(SHARED) {
            return Err(refused("shared presence"));
        }
        self.shared.push(present.to_vec());
        self.shared_coding.push(coding);
        Ok(self.shared.len() - 1)
    }

    /// The geometry. In version 1 its column stands where this is called.
    ///
    /// # Errors
    /// [`ErrorKind::Mlt`] for a second one, another number of features or triangles that are none of their features;
    /// [`ErrorKind::Unsupported`] for what the version does not have.
    pub fn geometry(&mut self, geometry: &Geometry, coding: &GeometryCoding) -> Result<(), Error> {
        if self.placed.is_some() {
            return Err(broken(MltFault::RepeatedColumn, "geometry"));
        }
        count(geometry.len(), self.features, "geometry")?;
        let layout = geometry.layout(coding).or_else(|e| if self.version == Version::V1 { Ok(0) } else { Err(e) })?;
        let mut streams = Streams::new(self.version);
        streams.geometry(geometry, coding)?;
        let vertices = geometry.has_values_of_vertices().then(|| geometry.vertex_counts().collect());
        self.placed = Some(Placed { layout, uniform: geometry.uniform(coding), vertices });
        if self.version == Version::V1 {
            self.meta.byte(4);
            self.columns += 1;
            self.data.out.extend_from_slice(&streams.out);
        } else {
            self.geometry = streams;
        }
        Ok(())
    }

    /// Ids: [`Values::UInt32`] or [`Values::UInt64`].
    ///
    /// # Errors
    /// As [`LayerWriter::column`]; [`ErrorKind::Mlt`] for a second one; [`ErrorKind::WrongType`] for other values.
    pub fn ids(&mut self, presence: Presence<'_>, values: Values<'_>) -> Result<(), Error> {
        let data_type = match values {
            Values::UInt32(..) => DataType::Id,
            Values::UInt64(..) => DataType::LongId,
            _ => return Err(Error::new(ErrorKind::WrongType, Part::Buffer("ids"))),
        };
        if self.has_ids {
            return Err(broken(MltFault::RepeatedColumn, "ids"));
        }
        self.flat(data_type, None, presence, &values)?;
        self.has_ids = true;
        Ok(())
    }

    /// A property: of the features that have it, the values.
    ///
    /// # Errors
    /// [`ErrorKind::Mlt`] if the values are not as many as the features that have one, and for a name that is there already
    /// (version 2); [`ErrorKind::Unsupported`] for what the version does not have, and for an encoding that cannot hold the
    /// values.
    pub fn column(&mut self, name: &str, presence: Presence<'_>, values: Values<'_>) -> Result<(), Error> {
        self.flat(values.data_type(), Some(name), presence, &values)
    }

    /// Columns of strings that share a dictionary.
    ///
    /// # Errors
    /// As [`LayerWriter::column`].
    pub fn shared_dictionary(&mut self, name: &str, children: &[Child<'_>], coding: &Strings) -> Result<(), Error> {
        let values = children.iter().flat_map(|child| child.values.iter().copied());
        let (entries, codes) = entries::encode(values, coding.front_coded);
        let (mut meta, mut data) = self.parts();
        if self.version == Version::V1 {
            meta.byte(30);
            meta.text(name);
            meta.number(children.len());
            let nullable = children.iter().filter(|child| matches!(child.presence, Presence::Own(..))).count();
            data.number(if coding.is_fsst() { 4 } else { 2 } + children.len() + nullable);
            data.dictionary(&entries, coding, role::SHARED, None)?;
        } else {
            data.byte(0xf | u8::from(coding.is_fsst()) << 4);
            data.text(name);
            data.number(children.len());
            data.dictionary(&entries, coding, role::SHARED, None)?;
        }
        let (mut codes, mut names) = (&codes[..], BTreeSet::new());
        for child in children {
            let full = format!("{name}{}", child.name);
            if !names.insert(full.clone()) {
                self.new_name(&full, true)?;
            }
            self.new_name(&full, false)?;
            let (of_child, rest) = codes.split_at(child.values.len());
            codes = rest;
            let n = self.present(&child.presence, of_child.len())?;
            if self.version == Version::V1 {
                meta.byte(28 + u8::from(n.is_some()));
                meta.text(child.name);
                data.number(1 + usize::from(n.is_some()));
                self.put_presence(&child.presence, &mut data)?;
                data.integers(role::STRING_OFFSET, of_child, false, child.codes, None, 0)?;
            } else {
                data.byte(0xb | self.presence_nibble(&child.presence) << 4);
                data.text(child.name);
                self.put_presence(&child.presence, &mut data)?;
                data.integers(role::STRING_OFFSET, of_child, false, child.codes, Some(of_child.len()), 1)?;
            }
        }
        self.names.append(&mut names);
        self.keep(&meta, &data);
        Ok(())
    }

    /// A nested property: of the features that have it, the values. Version 2.
    ///
    /// # Errors
    /// As [`LayerWriter::column`]; [`ErrorKind::WrongType`] for a root that is flat.
    pub fn nested(&mut self, name: &str, presence: Presence<'_>, nested: &Nested<'_>) -> Result<(), Error> {
        let data_type = nested.data_type();
        if matches!(nested, Nested::Values(_)) {
            return Err(Error::new(ErrorKind::WrongType, Part::Buffer("nested values")));
        }
        let code = values::code(data_type, self.version)?;
        self.new_name(name, false)?;
        let n = self.n_present(&presence)?;
        let (meta, mut data) = self.parts();
        data.byte(code | self.presence_nibble(&presence) << 4);
        data.text(name);
        self.put_presence(&presence, &mut data)?;
        data.nested(nested, n, matches!(data_type, DataType::List | DataType::Map), 1)?;
        self.names.insert(name.to_owned());
        self.keep(&meta, &data);
        Ok(())
    }

    /// A value for each vertex of each feature that has the column. Version 2, after the geometry.
    ///
    /// # Errors
    /// As [`LayerWriter::column`]; [`ErrorKind::Unsupported`] for a layer of points or of triangles alone;
    /// [`ErrorKind::Mlt`] without a geometry.
    pub fn m_values(&mut self, name: &str, presence: Presence<'_>, values: Values<'_>) -> Result<(), Error> {
        self.meta.of_version_2("m-values")?;
        let Some(Placed { vertices, .. }) = &self.placed else { return Err(broken(MltFault::NoGeometry, "m-values")) };
        let vertices = vertices.as_ref().ok_or_else(|| refused("m-values"))?;
        let n = match self.bits(&presence)? {
            None => vertices.iter().sum(),
            Some(present) => vertices.iter().zip(present).map(|(n, &present)| if present { *n } else { 0 }).sum(),
        };
        count(values.len(), n, "m-values")?;
        self.new_name(name, false)?;
        let mut data = Streams::new(self.version);
        data.byte(values::code(values.data_type(), self.version)? | self.presence_nibble(&presence) << 4);
        data.text(name);
        self.put_presence(&presence, &mut data)?;
        data.values(&values, None)?;
        self.names.insert(name.to_owned());
        self.m_values.out.extend_from_slice(&data.out);
        self.m_columns += 1;
        Ok(())
    }

    /// Appends the layer to a tile.
    ///
    /// # Errors
    /// [`ErrorKind::Mlt`] without a geometry; [`ErrorKind::OutOfRange`] for a layer of 4 GiB or more.
    pub fn finish(self, tile: &mut Vec<u8>) -> Result<(), Error> {
        let Some(Placed { layout, uniform, .. }) = self.placed else {
            return Err(broken(MltFault::NoGeometry, "layer"));
        };
        let mut body = Streams::new(self.version);
        body.byte(if self.version == Version::V1 { 1 } else { 2 });
        body.text(&self.name);
        if self.version == Version::V1 {
            body.number(self.extent as usize);
            body.number(self.columns);
            body.out.extend_from_slice(&self.meta.out);
        } else {
            let extent = self.extent.ilog2() - 6;
            let kind = uniform.map_or(0, |kind| kind + 1);
            body.byte(u8::from(self.m_columns > 0) << 7 | kind << 4 | u8::try_from(extent).unwrap_or(0));
            body.number(self.features);
            let coded = self.shared_coding.iter().any(|&coding| coding != Truths::Bitmap);
            let shared = u8::try_from(self.shared.len()).expect("7 at most");
            body.byte(u8::from(coded) << 7 | shared << 4 | layout);
            for (present, &coding) in self.shared.iter().zip(&self.shared_coding) {
                let (code, payload) = body.truths_payload(present, coding)?;
                if coded {
                    body.byte(code);
                }
                body.out.extend_from_slice(&payload);
            }
            body.out.extend_from_slice(&self.geometry.out);
            if self.m_columns > 0 {
                // Both numbers in one, bit by bit.
                let spread = |n: usize| (0..32).fold(0, |sum, bit| sum | (n >> bit & 1) << (2 * bit));
                body.number(spread(self.columns) | spread(self.m_columns) << 1);
            } else {
                body.number(self.columns);
            }
        }
        body.out.extend_from_slice(&self.data.out);
        body.out.extend_from_slice(&self.m_values.out);
        length(body.out.len())?;
        push_uleb(body.out.len() as u64, tile);
        tile.extend_from_slice(&body.out);
        Ok(())
    }

    fn flat(
        &mut self,
        data_type: DataType,
        name: Option<&str>,
        presence: Presence<'_>,
        values: &Values<'_>,
    ) -> Result<(), Error> {
        let code = values::code(data_type, self.version)?;
        let nullable = self.present(&presence, values.len())?.is_some();
        if let Some(name) = name {
            self.new_name(name, false)?;
        }
        let (mut meta, mut data) = self.parts();
        if self.version == Version::V1 {
            meta.byte(code + u8::from(nullable));
            if let Values::Strings(_, coding) = values {
                data.number(coding.n_streams() + usize::from(nullable));
            }
        } else {
            data.byte(code | self.presence_nibble(&presence) << 4);
        }
        if let Some(name) = name {
            (if self.version == Version::V1 { &mut meta } else { &mut data }).text(name);
        }
        self.put_presence(&presence, &mut data)?;
        data.values(values, Some(values.len()))?;
        self.names.extend(name.map(str::to_owned));
        self.keep(&meta, &data);
        Ok(())
    }

    /// Where a column is written, so that one that fails leaves nothing.
    fn parts(&self) -> (Streams, Streams) {
        (Streams::new(self.version), Streams::new(self.version))
    }

    fn keep(&mut self, meta: &Streams, data: &Streams) {
        self.meta.out.extend_from_slice(&meta.out);
        self.data.out.extend_from_slice(&data.out);
        self.columns += 1;
    }

    /// Names differ in version 2; `repeated` if that is known already.
    fn new_name(&self, name: &str, repeated: bool) -> Result<(), Error> {
        if self.version == Version::V2 && (repeated || self.names.contains(name)) {
            return Err(broken(MltFault::RepeatedName, "name"));
        }
        Ok(())
    }

    fn bits<'a>(&'a self, presence: &Presence<'a>) -> Result<Option<&'a [bool]>, Error> {
        match *presence {
            Presence::All => Ok(None),
            Presence::Own(present, _) => {
                count(present.len(), self.features, "presence")?;
                Ok(Some(present))
            }
            Presence::Shared(field) => match self.shared.get(field) {
                Some(present) => Ok(Some(present)),
                None => Err(refused("shared presence")),
            },
        }
    }

    fn n_present(&self, presence: &Presence<'_>) -> Result<usize, Error> {
        let bits = self.bits(presence)?;
        Ok(bits.map_or(self.features, |bits| bits.iter().filter(|&&present| present).count()))
    }

    /// Checks the number of values; nothing if all features have one.
    fn present(&self, presence: &Presence<'_>, values: usize) -> Result<Option<usize>, Error> {
        let n = self.n_present(presence)?;
        count(values, n, "values")?;
        Ok((!matches!(presence, Presence::All)).then_some(n))
    }

    /// How version 2 says it, of a presence whose field is known to be there.
    fn presence_nibble(&self, presence: &Presence<'_>) -> u8 {
        match presence {
            Presence::All => 0,
            Presence::Own(_, Truths::Bitmap | Truths::ByteRuns) => 1,
            Presence::Own(_, Truths::Runs) => 2,
            Presence::Own(_, Truths::Sparse) => 3,
            Presence::Shared(field) => 4 + u8::try_from(*field).unwrap_or(SHARED),
        }
    }

    fn put_presence(&self, presence: &Presence<'_>, data: &mut Streams) -> Result<(), Error> {
        let Presence::Own(present, coding) = *presence else { return Ok(()) };
        if self.version == Version::V1 {
            return data.truths(role::PRESENT, present, coding, None);
        }
        let (_, payload) = data.truths_payload(present, coding)?;
        data.out.extend_from_slice(&payload);
        Ok(())
    }
}

/// What the version, or the encoding, cannot hold.
#[cold]
fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported(Unsupported::Encoding), Part::Buffer(what))
}

/// What no layer may have.
#[cold]
fn broken(fault: MltFault, what: &'static str) -> Error {
    Error::new(ErrorKind::Mlt(fault), Part::Buffer(what))
}

fn count(found: usize, expected: usize, what: &'static str) -> Result<(), Error> {
    if found != expected {
        return Err(broken(MltFault::Count { found: found as u64, expected: expected as u64 }, what));
    }
    Ok(())
}

/// Numbers of the format have 32 bits.
fn length(n: usize) -> Result<u32, Error> {
    u32::try_from(n).map_err(|_| {
        let kind = ErrorKind::OutOfRange { found: n as i128, min: 0, max: u32::MAX.into() };
        Error::new(kind, Part::Buffer("length"))
    })
}

fn total(lengths: &[u32]) -> Result<usize, Error> {
    let total: u64 = lengths.iter().copied().map(u64::from).sum();
    Ok(length(usize::try_from(total).unwrap_or(usize::MAX))? as usize)
}
