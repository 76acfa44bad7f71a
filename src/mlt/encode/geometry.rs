//! Geometry: features made levels of lengths, vertices made streams.

use super::super::encoding::morton;
use super::super::encoding::vertices::{self, Order};
use super::super::{Logical, MltFault};
use super::coding::{GeometryCoding, Integers, Version, Vertices};
use super::stream::{Header, Streams, role};
use super::{broken, count, length, refused};
use crate::error::Error;
use crate::output::push_uleb;

/// A position in the tile's coordinates.
pub type Position = [i32; 2];

/// A feature's geometry. Rings are not closed: their first position is not repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A position.
    Point(Position),
    /// A line.
    LineString(Vec<Position>),
    /// Rings, the outer one first.
    Polygon(Vec<Vec<Position>>),
    /// Positions.
    MultiPoint(Vec<Position>),
    /// Lines.
    MultiLineString(Vec<Vec<Position>>),
    /// Polygons.
    MultiPolygon(Vec<Vec<Vec<Position>>>),
}

impl Shape {
    fn code(&self) -> u8 {
        match self {
            Shape::Point(_) => 0,
            Shape::LineString(_) => 1,
            Shape::Polygon(_) => 2,
            Shape::MultiPoint(_) => 3,
            Shape::MultiLineString(_) => 4,
            Shape::MultiPolygon(_) => 5,
        }
    }
}

/// Corners of a triangle: vertices, counted from the layer's first.
pub type Triangle = [u32; 3];

/// The geometry of all features of a layer.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    types: Vec<u8>,
    /// Lengths where the level is there.
    geometries: Option<Vec<u32>>,
    parts: Option<Vec<u32>>,
    rings: Option<Vec<u32>>,
    /// Vertices up to each item of the deepest level, and all.
    runs: Vec<u32>,
    vertices: Vec<Position>,
    z: Option<(u8, Vec<i32>)>,
    /// Of each feature.
    triangles: Option<Vec<Vec<Triangle>>>,
    /// Vertices up to each feature, and all.
    bounds: Vec<usize>,
    without_outlines: bool,
}

impl Geometry {
    /// The geometry of these features, with the levels that they need.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) for 2^32 or more of anything.
    pub fn new(shapes: &[Shape]) -> Result<Geometry, Error> {
        let any = |codes: &[u8]| shapes.iter().any(|shape| codes.contains(&shape.code()));
        let (multi, linear, rings) = (any(&[3, 4, 5]), any(&[1, 2, 4, 5]), any(&[2, 5]));
        let mut geometry = Geometry {
            geometries: multi.then(Vec::new),
            parts: linear.then(Vec::new),
            rings: rings.then(Vec::new),
            runs: vec![0],
            bounds: vec![0],
            ..Geometry::default()
        };
        for shape in shapes {
            geometry.push(shape)?;
        }
        Ok(geometry)
    }

    /// Features that are triangles alone: polygons, or multipolygons if `multi`. Version 2.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) for 2^32 or more of anything.
    pub fn of_triangles(vertices: &[Position], triangles: Vec<Vec<Triangle>>, multi: bool) -> Result<Geometry, Error> {
        let n = length(vertices.len())?;
        Ok(Geometry {
            types: vec![if multi { 5 } else { 2 }; triangles.len()],
            vertices: vertices.to_vec(),
            bounds: vec![0; triangles.len() + 1],
            triangles: Some(triangles),
            runs: (0..=n).collect(),
            without_outlines: true,
            ..Geometry::default()
        })
    }

    /// The same with an elevation for each vertex, in steps of 10^(`step` - 3) m from -10000 m on. Version 2.
    #[must_use]
    pub fn with_z(self, step: u8, values: Vec<i32>) -> Geometry {
        Geometry { z: Some((step, values)), ..self }
    }

    /// The same with triangles for each feature; those of other features than polygons have none. There must be a polygon.
    #[must_use]
    pub fn with_triangles(self, triangles: Vec<Vec<Triangle>>) -> Geometry {
        Geometry { triangles: Some(triangles), ..self }
    }

    /// Features.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Vertices of each feature, as they are stored.
    pub(super) fn vertex_counts(&self) -> impl Iterator<Item = usize> {
        self.bounds.windows(2).map(|two| two[1] - two[0])
    }

    /// Whether a value for each vertex has a place.
    pub(super) fn has_values_of_vertices(&self) -> bool {
        !self.without_outlines && (self.geometries.is_some() || self.parts.is_some())
    }

    fn push(&mut self, shape: &Shape) -> Result<(), Error> {
        self.types.push(shape.code());
        let items = match shape {
            Shape::Point(_) | Shape::LineString(_) | Shape::Polygon(_) => None,
            Shape::MultiPoint(positions) => Some(positions.len()),
            Shape::MultiLineString(lines) => Some(lines.len()),
            Shape::MultiPolygon(polygons) => Some(polygons.len()),
        };
        if let (Some(lengths), Some(items)) = (&mut self.geometries, items) {
            lengths.push(length(items)?);
        }
        match shape {
            Shape::Point(position) => self.points(&[*position])?,
            Shape::MultiPoint(positions) => self.points(positions)?,
            Shape::LineString(line) => self.line(line)?,
            Shape::MultiLineString(lines) => lines.iter().try_for_each(|line| self.line(line))?,
            Shape::Polygon(rings) => self.polygon(rings)?,
            Shape::MultiPolygon(polygons) => polygons.iter().try_for_each(|rings| self.polygon(rings))?,
        }
        length(self.vertices.len())?;
        self.bounds.push(self.vertices.len());
        Ok(())
    }

    fn points(&mut self, positions: &[Position]) -> Result<(), Error> {
        // Where no level is deeper, the item is the feature.
        if self.parts.is_none() && self.geometries.is_some() {
            self.vertices.extend_from_slice(positions);
            self.runs.push(length(self.vertices.len())?);
            return Ok(());
        }
        for position in positions {
            self.vertices.push(*position);
            self.runs.push(length(self.vertices.len())?);
        }
        Ok(())
    }

    fn line(&mut self, line: &[Position]) -> Result<(), Error> {
        self.rings.as_mut().or(self.parts.as_mut()).expect("a level for lines").push(length(line.len())?);
        self.vertices.extend_from_slice(line);
        self.runs.push(length(self.vertices.len())?);
        Ok(())
    }

    fn polygon(&mut self, rings: &[Vec<Position>]) -> Result<(), Error> {
        self.parts.as_mut().expect("a level for polygons").push(length(rings.len())?);
        rings.iter().try_for_each(|ring| self.line(ring))
    }

    /// The layout's code in version 2.
    pub(super) fn layout(&self, coding: &GeometryCoding) -> Result<u8, Error> {
        let dictionary = coding.dictionary.is_some();
        if self.triangles.is_some() {
            return if dictionary {
                Err(refused("triangles with a vertex dictionary"))
            } else {
                Ok(if self.without_outlines { 0xc } else { 0xd })
            };
        }
        let code = match (&self.geometries, &self.parts, &self.rings) {
            (None, None, _) => 0,
            (Some(_), None, _) => 2,
            (None, Some(_), None) => 4,
            (Some(_), Some(_), None) => 6,
            (None, Some(_), Some(_)) => 8,
            (Some(_), Some(_), Some(_)) => 0xa,
        };
        Ok(code + u8::from(dictionary))
    }

    /// The type of all features, where version 2 need not store each.
    pub(super) fn uniform(&self, coding: &GeometryCoding) -> Option<u8> {
        let first = *self.types.first()?;
        (!coding.types_stream && self.types.iter().all(|&other| other == first)).then_some(first)
    }

    fn check(&self, version: Version) -> Result<(), Error> {
        if let Some((step, z)) = &self.z {
            count(z.len(), self.vertices.len(), "z")?;
            if version == Version::V1 || *step > 7 {
                return Err(refused("z"));
            }
        }
        let Some(triangles) = &self.triangles else { return Ok(()) };
        if self.rings.is_none() && !self.without_outlines {
            return Err(refused("triangles without polygons"));
        }
        count(triangles.len(), self.len(), "triangles")?;
        for ((of_feature, &kind), bounds) in triangles.iter().zip(&self.types).zip(self.bounds.windows(2)) {
            // Version 1 counts corners from the feature's first vertex.
            let vertices = if version == Version::V1 { bounds[0]..bounds[1] } else { 0..self.vertices.len() };
            for &corner in of_feature.iter().flatten() {
                if !matches!(kind, 2 | 5) || !vertices.contains(&(corner as usize)) {
                    let fault = MltFault::Triangles { found: corner.into(), expected: vertices.end as u64 };
                    return Err(broken(fault, "triangles"));
                }
            }
        }
        Ok(())
    }
}

/// Triangles as binary trees, a new one where a triangle is no child of one before it: shapes, and vertices.
fn trees(triangles: &[Triangle], symbols: &mut Vec<u32>, cycles: &mut Vec<u32>) {
    let (first, mut next) = (symbols.len(), 0);
    symbols.resize(first + triangles.len(), 0);
    let mut open: Vec<(usize, bool)> = Vec::new();
    while next < triangles.len() {
        cycles.extend_from_slice(&triangles[next][..2]);
        open.push((next, false));
        next += 1;
        while let Some((node, left_done)) = open.pop() {
            let [from, to, apex] = triangles[node];
            let (edge, bit) = if left_done {
                cycles.push(apex);
                ([from, apex], 2)
            } else {
                open.push((node, true));
                ([apex, to], 1)
            };
            if triangles.get(next).is_some_and(|child| child[..2] == edge) {
                symbols[first + node] |= bit;
                open.push((next, false));
                next += 1;
            }
        }
    }
}

impl Streams {
    /// All streams of a geometry, after the number of them in version 1.
    pub(super) fn geometry(&mut self, geometry: &Geometry, coding: &GeometryCoding) -> Result<(), Error> {
        geometry.check(self.version)?;
        let implied = Some(geometry.len());
        let levels =
            [(role::GEOMETRIES, &geometry.geometries), (role::PARTS, &geometry.parts), (role::RINGS, &geometry.rings)];
        if self.version == Version::V1 {
            if geometry.without_outlines {
                return Err(refused("triangles without outlines"));
            }
            let levels = levels.iter().filter(|(_, lengths)| lengths.is_some()).count();
            let triangles = 2 * usize::from(geometry.triangles.is_some());
            self.number(2 + levels + triangles + usize::from(coding.dictionary.is_some()));
        }
        if self.version == Version::V1 || geometry.uniform(coding).is_none() {
            let types: Vec<u32> = geometry.types.iter().copied().map(u32::from).collect();
            self.integers(role::VAR_BINARY, &types, false, coding.types, implied, 0)?;
        }
        let all = self.version == Version::V2 && geometry.triangles.is_some() && !geometry.without_outlines;
        for (role, lengths) in levels {
            match lengths {
                Some(lengths) => self.integers(role, lengths, false, coding.lengths, implied, 0)?,
                // The one layout with triangles and outlines has all levels.
                None if all => self.integers::<u32>(role, &[], false, Integers::default(), implied, 0)?,
                None => {}
            }
        }
        if let Some(triangles) = &geometry.triangles {
            self.triangles(geometry, triangles, coding.triangles)?;
        }
        self.vertices(geometry, coding)
    }

    fn triangles(&mut self, geometry: &Geometry, triangles: &[Vec<Triangle>], coding: Integers) -> Result<(), Error> {
        let implied = Some(geometry.len());
        let polygons = triangles.iter().zip(&geometry.types).filter(|(_, kind)| matches!(kind, 2 | 5));
        let lengths: Vec<u32> = polygons.map(|(triangles, _)| length(triangles.len())).collect::<Result<_, Error>>()?;
        self.integers(role::TRIANGLES, &lengths, false, coding, implied, 0)?;
        if self.version == Version::V1 {
            let mut corners = Vec::new();
            for (triangles, first) in triangles.iter().zip(&geometry.bounds) {
                let first = length(*first)?;
                corners.extend(triangles.iter().flatten().map(|corner| corner - first));
            }
            return self.integers(role::INDEX, &corners, false, coding, implied, 0);
        }
        let (mut symbols, mut cycles) = (Vec::new(), Vec::new());
        for triangles in triangles {
            trees(triangles, &mut symbols, &mut cycles);
        }
        self.integers(role::INDEX, &symbols, false, coding, implied, 0)?;
        self.integers(role::INDEX, &cycles, false, coding, implied, 0)
    }

    fn vertices(&mut self, geometry: &Geometry, coding: &GeometryCoding) -> Result<(), Error> {
        let mut header = Header {
            role: role::VERTEX,
            implied: Some(geometry.len()),
            extension: u8::from(geometry.z.is_some()),
            ..Header::default()
        };
        let mut flat = geometry.vertices.as_flattened().to_vec();
        let mut components = 2;
        if let Some((step, z)) = &geometry.z {
            components = 3;
            flat = geometry.vertices.iter().zip(z).flat_map(|(&[x, y], &z)| [x, y, z]).collect();
            header.parameters.push(*step);
        }
        let (logical, words) = match coding.vertices {
            Vertices::Values(words) => (Logical::None, Some(words)),
            Vertices::Delta(words) => {
                (header.logical1, header.logical2) = (0x20, 1);
                (Logical::Delta, Some(words))
            }
            Vertices::ComponentwiseDelta(words) => {
                (header.logical1, header.logical2) = (0x40, 2);
                (Logical::ComponentwiseDelta, Some(words))
            }
            Vertices::ComponentwiseDelta2(words) => {
                self.of_version_2("second differences")?;
                header.logical2 = 4;
                (Logical::ComponentwiseDelta2, Some(words))
            }
            Vertices::Morton(words) => {
                let parameters = morton::parameters(&flat);
                let (bits, shift) = parameters.ok_or_else(|| refused("Morton codes of so many bits"))?;
                (header.logical1, header.logical2, header.role) = (0x84, 3, role::MORTON);
                push_uleb(bits.into(), &mut header.parameters);
                push_uleb(shift.into(), &mut header.parameters);
                (Logical::Morton { bits, shift }, Some(words))
            }
            Vertices::Rans => {
                self.of_version_2("rANS")?;
                header.logical2 = 5;
                (Logical::Rans, None)
            }
        };
        let of_z = matches!(logical, Logical::None | Logical::Delta | Logical::ComponentwiseDelta);
        if components == 3 && !of_z {
            return Err(refused("z"));
        }
        let offsets = match (logical, coding.dictionary) {
            (Logical::Rans, Some(_)) => return Err(refused("rANS on a vertex dictionary")),
            (Logical::Morton { .. }, None) => return Err(refused("Morton codes without a dictionary")),
            (_, None) => None,
            (_, Some(how)) => {
                let order = match logical {
                    Logical::Morton { shift, .. } => Order::Morton { shift },
                    _ => Order::Hilbert,
                };
                let distinct = if components == 3 { vertices::dictionary::<3> } else { vertices::dictionary::<2> };
                let offsets;
                (flat, offsets) = distinct(&flat, order);
                Some((offsets, how))
            }
        };
        // Where there are no features, there are no levels.
        let runs = (logical == Logical::Rans && !geometry.is_empty()).then_some(&geometry.runs[..]);
        let physical = self.physical::<u32>(words.unwrap_or_default())?;
        let mut payload = Vec::new();
        vertices::encode(physical, logical, &flat, components, runs, &mut payload);
        header.n = flat.len() / usize::from(components);
        (header.words, header.n_words) =
            (words, if matches!(logical, Logical::Morton { .. }) { header.n } else { flat.len() });
        self.put(&header, &payload);
        if let Some((offsets, how)) = offsets {
            self.integers(role::VERTEX_OFFSET, &offsets, false, how, Some(geometry.len()), 0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_join_their_trees() {
        // The second is the left child of the first, the third the right child of the second, the fourth a tree.
        let triangles = [[0, 1, 2], [2, 1, 3], [2, 3, 4], [7, 8, 9]];
        let (mut symbols, mut cycles) = (Vec::new(), Vec::new());
        trees(&triangles, &mut symbols, &mut cycles);
        assert_eq!(symbols, [1, 2, 0, 0]);
        assert_eq!(cycles, [0, 1, 3, 4, 2, 7, 8, 9]);
    }
}
