//! Geometries: types, the levels of offsets, vertices, elevations, triangles.
//!
//! Source: version 1 container, section 6; version 2 container, section 4.

use std::ops::Range;

use super::data::Kept;

/// What a geometry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GeometryType {
    /// One vertex.
    Point,
    /// One path.
    LineString,
    /// Rings: the outline, then holes.
    Polygon,
    /// Vertices.
    MultiPoint,
    /// Paths.
    MultiLineString,
    /// Polygons.
    MultiPolygon,
}

impl GeometryType {
    /// Of every code.
    pub(crate) const ALL: [GeometryType; 6] = [
        GeometryType::Point,
        GeometryType::LineString,
        GeometryType::Polygon,
        GeometryType::MultiPoint,
        GeometryType::MultiLineString,
        GeometryType::MultiPolygon,
    ];

    /// The name that GeoJSON and the format give it.
    pub const fn name(self) -> &'static str {
        match self {
            GeometryType::Point => "Point",
            GeometryType::LineString => "LineString",
            GeometryType::Polygon => "Polygon",
            GeometryType::MultiPoint => "MultiPoint",
            GeometryType::MultiLineString => "MultiLineString",
            GeometryType::MultiPolygon => "MultiPolygon",
        }
    }
}

/// The decoded geometries of a layer. Keeps its memory; hand it to every decode.
///
/// Three levels of offsets lead from features to vertices, each only where the layer has it. With geometries, feature `i` has
/// the items `geometry_offsets[i]..geometry_offsets[i + 1]`; without, item `i`. With parts, an item has the parts
/// `part_offsets[item]..part_offsets[item + 1]`. With rings, part `p` has the vertices
/// `ring_offsets[p]..ring_offsets[p + 1]`; without, the parts are vertices; without parts, too, the items are. An item is
/// a point, a line or a polygon; with rings, a line is one part, and a point one part of one vertex.
///
/// Rings do not repeat their first vertex. Coordinates are those of the tile and may lie outside its extent.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// Codes below 6.
    pub(crate) types: Kept<u8>,
    /// Which of the levels there are: geometries, parts, rings.
    pub(crate) levels: [bool; 3],
    pub(crate) geometries: Kept<u32>,
    pub(crate) parts: Kept<u32>,
    pub(crate) rings: Kept<u32>,
    /// Pairs of coordinates, x below y.
    pub(crate) vertices: Kept<u64>,
    pub(crate) z: Option<u8>,
    pub(crate) z_words: Kept<u32>,
    pub(crate) tessellated: bool,
    pub(crate) tessellated_only: bool,
    /// Of polygon features; cumulative.
    pub(crate) triangles: Kept<u32>,
    /// Three for each triangle.
    pub(crate) corners: Kept<u32>,
}

impl Geometry {
    /// No layer yet.
    pub fn new() -> Geometry {
        Geometry::default()
    }

    /// How many features.
    pub fn len(&self) -> usize {
        self.types.get().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of feature `i`. A layer of triangles without outlines has `MultiPolygon` alone.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn geometry_type(&self, i: usize) -> GeometryType {
        GeometryType::ALL[usize::from(self.types.get()[i])]
    }

    /// The types of all features, by their codes: the order of [`GeometryType`].
    pub fn types(&self) -> &[u8] {
        self.types.get()
    }

    /// Where the items of each feature start, and in the end where the last ones end. None: feature `i` is item `i`.
    pub fn geometry_offsets(&self) -> Option<&[u32]> {
        self.levels[0].then(|| self.geometries.get())
    }

    /// Where the parts of each item start, and in the end where the last ones end.
    pub fn part_offsets(&self) -> Option<&[u32]> {
        self.levels[1].then(|| self.parts.get())
    }

    /// Where the vertices of each part start, and in the end where the last ones end.
    pub fn ring_offsets(&self) -> Option<&[u32]> {
        self.levels[2].then(|| self.rings.get())
    }

    /// The coordinates of all vertices, as they are stored: x, y, x, y and so on.
    pub fn coordinates(&self) -> &[i32] {
        bytemuck::cast_slice(self.vertices.get())
    }

    /// The same by vertex: x and y.
    pub fn vertices(&self) -> &[[i32; 2]] {
        bytemuck::cast_slice(self.vertices.get())
    }

    /// Elevations of the vertices, if the layer has them: `-10000 + z * 10^(step - 3)` metres with `step` from 0 to 7.
    pub fn z(&self) -> Option<(u8, &[i32])> {
        self.z.map(|step| (step, bytemuck::cast_slice(self.z_words.get())))
    }

    /// Triangles, if the layer has them: where those of each feature that is a polygon start, and in the end where the
    /// last ones end; and for each triangle three vertices of the layer.
    pub fn triangles(&self) -> Option<(&[u32], &[u32])> {
        self.tessellated.then(|| (self.triangles.get(), self.corners.get()))
    }

    /// Whether triangles are all that the layer has: each is a polygon then.
    pub fn tessellated_only(&self) -> bool {
        self.tessellated_only
    }

    /// The vertices of feature `i`. Of triangles without outlines there is none: they share vertices.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn vertex_range(&self, i: usize) -> Option<Range<usize>> {
        if self.tessellated_only {
            return None;
        }
        let levels = [self.geometry_offsets(), self.part_offsets(), self.ring_offsets()];
        let down = |at: usize| levels.iter().flatten().fold(at, |at, offsets| offsets[at] as usize);
        Some(down(i)..down(i + 1))
    }

    /// Feature `i`.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn shape(&self, i: usize) -> Shape<'_> {
        let geometry_type = self.geometry_type(i);
        let vertices = self.vertices();
        if self.tessellated_only {
            let (offsets, corners) = (self.triangles.get(), self.corners.get());
            let corners = &corners[3 * offsets[i] as usize..3 * offsets[i + 1] as usize];
            return Shape::MultiPolygon(Polygons { vertices, of: PolygonsOf::Triangles(corners) });
        }
        let run = |range: Range<usize>| Path { vertices: &vertices[range], corners: None };
        let whole = || run(self.vertex_range(i).expect("outlines"));
        let items = match self.geometry_offsets() {
            Some(offsets) => offsets[i] as usize..offsets[i + 1] as usize,
            None => i..i + 1,
        };
        // A line is one part where there are rings.
        let paths = || {
            let parts = self.parts.get();
            let offsets = match self.ring_offsets() {
                Some(rings) => &rings[parts[items.start] as usize..=parts[items.end] as usize],
                None => &parts[items.start..=items.end],
            };
            Paths { vertices, corners: None, offsets }
        };
        match geometry_type {
            GeometryType::Point => Shape::Point(whole().get(0)),
            GeometryType::LineString => Shape::LineString(whole()),
            GeometryType::MultiPoint => Shape::MultiPoint(whole()),
            GeometryType::Polygon => Shape::Polygon(paths()),
            GeometryType::MultiLineString => Shape::MultiLineString(paths()),
            GeometryType::MultiPolygon => {
                let parts = &self.parts.get()[items.start..=items.end];
                Shape::MultiPolygon(Polygons { vertices, of: PolygonsOf::Parts { parts, rings: self.rings.get() } })
            }
        }
    }

    /// All features.
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = Shape<'_>> {
        (0..self.len()).map(|i| self.shape(i))
    }
}

/// A geometry.
#[derive(Clone, Debug)]
pub enum Shape<'a> {
    /// One vertex: x and y.
    Point([i32; 2]),
    /// A path.
    LineString(Path<'a>),
    /// Rings, that do not repeat their first vertex: the outline, then holes.
    Polygon(Paths<'a>),
    /// Vertices.
    MultiPoint(Path<'a>),
    /// Paths.
    MultiLineString(Paths<'a>),
    /// Polygons: rings of each.
    MultiPolygon(Polygons<'a>),
}

impl Shape<'_> {
    /// What it is.
    pub fn geometry_type(&self) -> GeometryType {
        match self {
            Shape::Point(_) => GeometryType::Point,
            Shape::LineString(_) => GeometryType::LineString,
            Shape::Polygon(_) => GeometryType::Polygon,
            Shape::MultiPoint(_) => GeometryType::MultiPoint,
            Shape::MultiLineString(_) => GeometryType::MultiLineString,
            Shape::MultiPolygon(_) => GeometryType::MultiPolygon,
        }
    }
}

/// Vertices in a row: of a line, a ring, or several points.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    vertices: &'a [[i32; 2]],
    /// Which of them; None: all.
    corners: Option<&'a [u32]>,
}

impl<'a> Path<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.corners.map_or(self.vertices.len(), <[u32]>::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Vertex `i`: x and y.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn get(&self, i: usize) -> [i32; 2] {
        self.vertices[self.corners.map_or(i, |corners| corners[i] as usize)]
    }

    /// The vertices as they are stored.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = [i32; 2]> + Clone + use<'a> {
        let path = *self;
        (0..self.len()).map(move |i| path.get(i))
    }

    /// The vertices of a ring with the first one again in the end.
    pub fn closed(&self) -> impl Iterator<Item = [i32; 2]> + Clone + use<'a> {
        self.iter().chain(self.iter().take(1))
    }
}

/// Lines, or the rings of a polygon.
#[derive(Clone, Debug)]
pub struct Paths<'a> {
    vertices: &'a [[i32; 2]],
    corners: Option<&'a [u32]>,
    /// One more than paths: into `corners`, if there are some, else into `vertices`.
    offsets: &'a [u32],
}

impl<'a> Iterator for Paths<'a> {
    type Item = Path<'a>;

    fn next(&mut self) -> Option<Path<'a>> {
        let [start, end, ..] = *self.offsets else { return None };
        self.offsets = &self.offsets[1..];
        let range = start as usize..end as usize;
        Some(match self.corners {
            Some(corners) => Path { vertices: self.vertices, corners: Some(&corners[range]) },
            None => Path { vertices: &self.vertices[range], corners: None },
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.offsets.len().saturating_sub(1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Paths<'_> {}

/// Polygons: the rings of each.
#[derive(Clone, Debug)]
pub struct Polygons<'a> {
    vertices: &'a [[i32; 2]],
    of: PolygonsOf<'a>,
}

#[derive(Clone, Debug)]
enum PolygonsOf<'a> {
    /// One more than polygons; into `rings`.
    Parts { parts: &'a [u32], rings: &'a [u32] },
    /// Three for each.
    Triangles(&'a [u32]),
}

impl<'a> Iterator for Polygons<'a> {
    type Item = Paths<'a>;

    fn next(&mut self) -> Option<Paths<'a>> {
        let vertices = self.vertices;
        match &mut self.of {
            PolygonsOf::Parts { parts, rings } => {
                let [start, end, ..] = **parts else { return None };
                *parts = &parts[1..];
                Some(Paths { vertices, corners: None, offsets: &rings[start as usize..=end as usize] })
            }
            PolygonsOf::Triangles(corners) => {
                let (triangle, rest) = corners.split_at_checked(3)?;
                *corners = rest;
                Some(Paths { vertices, corners: Some(triangle), offsets: &[0, 3] })
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.of {
            PolygonsOf::Parts { parts, .. } => parts.len().saturating_sub(1),
            PolygonsOf::Triangles(corners) => corners.len() / 3,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Polygons<'_> {}
