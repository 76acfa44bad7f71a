//! Geometries: types, the levels of offsets, vertices, elevations, triangles.
//!
//! Source: version 1 container, section 6; version 2 container, section 4.

use std::ops::Range;

use super::MltFault;
use super::data::Kept;
use super::decoder::{Core, Memory, counted};
use super::encoding::integers::Coding;
use super::encoding::{fault, vertices};
use super::outline::GeometryOutline;
use super::stream::{Logical, Role, Stream};
use super::tile::{Kind, Layer};
use crate::error::{Error, Part};
use crate::kernels::Kernels;

const TOPOLOGY: Part = Part::Values("", "topology");

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
/// Rings do not repeat their first vertex, and run in whichever direction they are stored: the first of a polygon is its
/// outline. Coordinates are those of the tile, x to the east and y to the south of its north-west corner, in units of which
/// a side has [`Layer::extent`]; they may lie outside.
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

    /// No features; their memory is kept.
    pub(crate) fn clear(&mut self) {
        self.types.clear();
        (self.levels, self.z, self.tessellated, self.tessellated_only) = ([false; 3], None, false, false);
        for words in [
            &mut self.geometries,
            &mut self.parts,
            &mut self.rings,
            &mut self.z_words,
            &mut self.triangles,
            &mut self.corners,
        ] {
            words.clear();
        }
        self.vertices.clear();
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

    /// The elevation of a vertex in metres, if the layer has them: the number nearest to the decimal one.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn elevation(&self, vertex: usize) -> Option<f64> {
        self.z().map(|(step, z)| metres(z[vertex], step))
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
        let whole = || {
            let range = self.vertex_range(i).unwrap_or_default();
            Path { vertices, start: range.start, len: range.len(), corners: None }
        };
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
    /// Those of the layer.
    vertices: &'a [[i32; 2]],
    /// Into `corners`, if there are some, else into `vertices`.
    start: usize,
    len: usize,
    corners: Option<&'a [u32]>,
}

impl<'a> Path<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Vertex `i`: x and y.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn get(&self, i: usize) -> [i32; 2] {
        self.vertices[self.index(i)]
    }

    /// The number of vertex `i` among those of the layer: [`Geometry::vertices`], [`Geometry::z`].
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn index(&self, i: usize) -> usize {
        assert!(i < self.len, "vertex {i} of {}", self.len);
        self.corners.map_or(self.start + i, |corners| corners[self.start + i] as usize)
    }

    /// The vertices as they are stored.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = [i32; 2]> + Clone + use<'a> {
        let path = *self;
        (0..self.len).map(move |i| path.get(i))
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
        let (start, end) = (start as usize, end as usize);
        Some(Path { vertices: self.vertices, start, len: end - start, corners: self.corners })
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

/// The elevation of so many steps. Formed as an integer of the smaller unit, and then divided: so it is rounded once.
fn metres(z: i32, step: u8) -> f64 {
    let unit = 10f64.powi((i32::from(step) - 3).abs());
    let z = f64::from(z);
    if step < 3 { (z - 10_000.0 * unit) / unit } else { z * unit - 10_000.0 }
}

/// A set of types, by their codes.
type Types = u8;

const LINES: Types = 1 << 1 | 1 << 4;
pub(crate) const POLYGONS: Types = 1 << 2 | 1 << 5;
const SEVERAL: Types = 1 << 3 | 1 << 4 | 1 << 5;

/// The lengths of a level of the topology, and what of them there is to say in errors.
struct Lengths<'a> {
    words: &'a [u32],
    stream: &'a Stream,
}

impl Core {
    /// Decodes the geometries of a layer; of `topology_only`, without vertices and triangles.
    pub(crate) fn geometry(&mut self, layer: Layer<'_>, topology_only: bool, out: &mut Geometry) -> Result<(), Error> {
        let mut memory = std::mem::take(&mut self.memory);
        let result = self.try_geometry(layer, topology_only, &mut memory, out);
        self.memory = memory;
        result.map_err(|e| {
            let column = layer.columns().find(|column| column.kind() == Kind::Geometry);
            e.near(layer.geometry_span().start).in_layer(layer.place(column.map(|column| column.index())))
        })
    }

    fn try_geometry(
        &mut self,
        layer: Layer<'_>,
        topology_only: bool,
        memory: &mut Memory,
        out: &mut Geometry,
    ) -> Result<(), Error> {
        let of = layer.geometry();
        (out.z, out.tessellated, out.tessellated_only) = (None, false, of.tessellated_only);
        let seen = self.types(layer, of, memory, out)?;
        let vertices = of.offsets.or(of.vertices).map_or(0, |stream| layer.stream(stream).count as usize);
        self.topology(layer, of, seen, vertices, memory, out)?;
        if topology_only {
            return Ok(());
        }
        self.vertices(layer, of, memory, out)?;
        self.triangles(layer, of, memory, out)
    }

    /// Types of features; gives which there are.
    fn types(
        &mut self,
        layer: Layer<'_>,
        of: &GeometryOutline,
        memory: &mut Memory,
        out: &mut Geometry,
    ) -> Result<Types, Error> {
        let features = layer.features();
        if let Some(uniform) = of.uniform {
            self.budget.values(features)?;
            out.types.make(features, &mut self.budget)?.fill(uniform);
            return Ok(if features > 0 { 1 << uniform } else { 0 });
        }
        let Some(stream) = of.types else { return Err(no_lengths(layer, 0, TOPOLOGY)) };
        let stream = layer.stream(stream);
        counted(stream, features)?;
        let words = self.all_words(layer, stream, &mut memory.words)?;
        let types = out.types.make(features, &mut self.budget)?;
        let (mut seen, mut all) = (0u8, 0);
        for (out, &word) in types.iter_mut().zip(words) {
            *out = word.to_le_bytes()[0];
            seen |= 1 << (word & 7);
            all |= word;
        }
        if all > 7 || seen >= 1 << GeometryType::ALL.len() {
            let i = words.iter().position(|&word| word as usize >= GeometryType::ALL.len()).unwrap_or_default();
            let error = fault(MltFault::GeometryType { found: words[i] }, Part::Values("", "type"));
            return Err(error.at(stream.header.1).index(i as u64).in_stream(stream.role.name()));
        }
        Ok(seen)
    }

    /// Lengths to the levels of offsets. A length is stored only where it can be other than 1.
    fn topology(
        &mut self,
        layer: Layer<'_>,
        of: &GeometryOutline,
        seen: Types,
        vertices: usize,
        memory: &mut Memory,
        out: &mut Geometry,
    ) -> Result<(), Error> {
        let features = layer.features();
        if of.tessellated_only {
            // Each feature has triangles, and no levels.
            if seen & !POLYGONS != 0 {
                return Err(self.lost(layer, seen & !POLYGONS, out));
            }
            out.types.get_mut().fill(5);
            out.levels = [false; 3];
            return Ok(());
        }
        out.levels = [of.geometries, of.parts, of.rings].map(|stream| stream.is_some());
        let [geometries, parts, rings] = out.levels;
        let cannot = if geometries { 0 } else { SEVERAL }
            | if parts { 0 } else { LINES }
            | if parts && rings { 0 } else { POLYGONS };
        if seen & cannot != 0 {
            return Err(self.lost(layer, seen & cannot, out));
        }
        if let (Some(rings), None) = (of.rings, of.parts) {
            let stream = layer.stream(rings);
            let error = fault(MltFault::StreamRole { found: 0x33 }, TOPOLOGY);
            return Err(error.at(stream.header.0).in_stream(stream.role.name()));
        }
        // Elements of a level cost a length or a vertex each.
        let lengths = |stream: Option<u32>| stream.map_or(0, |stream| layer.stream(stream).count as usize);
        let most = (lengths(of.parts) + lengths(of.rings)).saturating_add(vertices);
        let kernels = self.options.kernels;
        let types = out.types.get();
        let mut elements = features;
        if let Some(stream) = of.geometries {
            let lengths = self.lengths(layer, stream, &mut memory.words)?;
            let offsets = out.geometries.make(elements + 1, &mut self.budget)?;
            elements = level(kernels, types, seen, SEVERAL, |i| i, &lengths, offsets)?;
        }
        let geometries = out.geometries.get();
        let item = |i: usize| if of.geometries.is_some() { geometries[i] as usize } else { i };
        if let Some(stream) = of.parts {
            let lengths = self.lengths(layer, stream, &mut memory.words)?;
            within(elements, most, lengths.stream)?;
            let offsets = out.parts.make(elements + 1, &mut self.budget)?;
            let takes = if of.rings.is_some() { POLYGONS } else { LINES };
            elements = level(kernels, types, seen, takes, item, &lengths, offsets)?;
        }
        let parts = out.parts.get();
        if let Some(stream) = of.rings {
            let lengths = self.lengths(layer, stream, &mut memory.words)?;
            within(elements, most, lengths.stream)?;
            let offsets = out.rings.make(elements + 1, &mut self.budget)?;
            let part = |i: usize| parts[item(i)] as usize;
            elements = level(kernels, types, seen, POLYGONS | LINES, part, &lengths, offsets)?;
        }
        if elements > vertices {
            let kind = MltFault::Vertices { found: elements as u64, available: vertices as u64 };
            let stream = of.offsets.or(of.vertices).map(|stream| layer.stream(stream));
            let (at, role) = stream.map_or((of.span.start, Role::Vertices), |stream| (stream.header.0, stream.role));
            return Err(fault(kind, TOPOLOGY).at(at).in_stream(role.name()));
        }
        Ok(())
    }

    fn lengths<'m>(&mut self, layer: Layer<'m>, stream: u32, memory: &'m mut Kept<u32>) -> Result<Lengths<'m>, Error> {
        let stream = layer.stream(stream);
        Ok(Lengths { words: self.all_words(layer, stream, memory)?, stream })
    }

    /// The error of a feature of one of these types, which the layer has no lengths for.
    #[cold]
    fn lost(&self, layer: Layer<'_>, types: Types, out: &Geometry) -> Error {
        let i = out.types.get().iter().position(|&code| types >> code & 1 == 1).unwrap_or_default();
        no_lengths(layer, out.types.get()[i], TOPOLOGY).index(i as u64)
    }

    fn vertices(
        &mut self,
        layer: Layer<'_>,
        of: &GeometryOutline,
        memory: &mut Memory,
        out: &mut Geometry,
    ) -> Result<(), Error> {
        out.vertices.clear();
        let Some(stream) = of.vertices.map(|stream| layer.stream(stream)) else {
            return Ok(());
        };
        let components = usize::from(of.components);
        let words = stream.count as usize * components;
        // Of a block in FastPFOR less is needed than of a tail that is shorter, so the words must be those.
        let stored = if matches!(stream.logical, Logical::Morton { .. }) { stream.count as usize } else { words };
        self.enough_for(layer, stream, stored as u64)?;
        let [geometries, parts, rings] = &out.levels;
        let runs = match () {
            () if *rings => Some(out.rings.get()),
            () if *parts => Some(out.parts.get()),
            () if *geometries => Some(out.geometries.get()),
            () => None,
        };
        let strict = layer.version() == 2;
        let decode = |core: &mut Core, words: &mut [u32]| {
            let (words, options, scratch) = (bytemuck::cast_slice_mut(words), &core.options, &mut core.scratch);
            let coding = Coding::of(stream, true, strict);
            vertices::decode(&coding, layer.payload(stream), of.components, runs, words, options, scratch)
                .map_err(|e| e.in_stream(stream.role.name()))
        };
        // Straight to their place where they are neither distinct ones nor have elevations.
        let straight = components == 2;
        if of.offsets.is_none() && straight {
            let vertices = out.vertices.make(stream.count as usize, &mut self.budget)?;
            return decode(self, bytemuck::cast_slice_mut(vertices));
        }
        let stored = memory.words.scratch(words, &self.budget)?;
        decode(self, stored)?;
        let mut all: &[u32] = stored;
        if let Some(offsets) = of.offsets {
            let stream = layer.stream(offsets);
            let offsets = self.all_words(layer, stream, &mut memory.more_words)?;
            let to: &mut [u32] = if straight {
                bytemuck::cast_slice_mut(out.vertices.make(offsets.len(), &mut self.budget)?)
            } else {
                memory.symbols.scratch(offsets.len() * components, &self.budget)?
            };
            let (table, gathered) = (bytemuck::cast_slice(all), bytemuck::cast_slice_mut(to));
            vertices::gather(table, of.components, offsets, stream.header.1, gathered, &self.options)
                .map_err(|e| e.in_stream(stream.role.name()))?;
            if straight {
                return Ok(());
            }
            all = memory.symbols.get();
        }
        let n = all.len() / 3;
        let vertices = out.vertices.make(n, &mut self.budget)?;
        let z = out.z_words.make(n, &mut self.budget)?;
        for ((&[x, y, from], vertex), z) in all.as_chunks().0.iter().zip(vertices).zip(z) {
            (*vertex, *z) = (u64::from(x) | u64::from(y) << 32, from);
        }
        out.z = Some(of.z_step);
        Ok(())
    }
}

/// The error of a feature of such a type in a layer that has no lengths for it.
#[cold]
fn no_lengths(layer: Layer<'_>, code: u8, part: Part) -> Error {
    fault(MltFault::GeometryType { found: code.into() }, part).at(layer.geometry_span().start)
}

fn within(elements: usize, most: usize, stream: &Stream) -> Result<(), Error> {
    if elements <= most { Ok(()) } else { Err(unequal(elements, most, stream)) }
}

/// The error of lengths that are too few or too many.
#[cold]
fn unequal(found: usize, expected: usize, stream: &Stream) -> Error {
    let kind = MltFault::Topology { found: found as u64, expected: expected as u64 };
    fault(kind, TOPOLOGY).at(stream.header.0).in_stream(stream.role.name())
}

/// One level of offsets: of the elements of feature `i`, from `start(i)` to `start(i + 1)`, those of types that `takes` has
/// take a length each, and others are 1 long. Gives where the last one ends.
fn level(
    kernels: Kernels,
    types: &[u8],
    seen: Types,
    takes: Types,
    start: impl Fn(usize) -> usize,
    lengths: &Lengths<'_>,
    offsets: &mut [u32],
) -> Result<usize, Error> {
    let Lengths { words, stream } = *lengths;
    let Some((first, ends)) = offsets.split_first_mut() else { return Ok(0) };
    *first = 0;
    let total = if seen & !takes == 0 {
        if words.len() != ends.len() {
            return Err(unequal(ends.len(), words.len(), stream));
        }
        kernels.offsets_u32(words, 0, ends).total
    } else {
        let (mut total, mut used) = (0u64, 0);
        for (i, &code) in types.iter().enumerate() {
            let elements = &mut ends[start(i)..start(i + 1)];
            if takes >> code & 1 == 0 {
                for end in elements {
                    total += 1;
                    *end = u32::try_from(total).unwrap_or(u32::MAX);
                }
                continue;
            }
            let these = words.get(used..used + elements.len());
            let these = these.ok_or_else(|| unequal(used + elements.len(), words.len(), stream))?;
            used += elements.len();
            for (end, &length) in elements.iter_mut().zip(these) {
                total += u64::from(length);
                *end = u32::try_from(total).unwrap_or(u32::MAX);
            }
        }
        if used != words.len() {
            return Err(unequal(used, words.len(), stream));
        }
        total
    };
    match u32::try_from(total) {
        Ok(total) => Ok(total as usize),
        Err(_) => {
            let kind = MltFault::Vertices { found: total, available: u32::MAX.into() };
            Err(fault(kind, TOPOLOGY).at(stream.header.0).in_stream(stream.role.name()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::metres;

    /// Few digits are few: no sum of rounded numbers shows.
    #[test]
    fn elevations() {
        assert_eq!([metres(100_001, 2), metres(10_000_123, 0), metres(18_848_860, 0)], [0.1, 0.123, 8848.86]);
        assert_eq!(
            [metres(0, 0), metres(0, 7), metres(10_007, 3), metres(1_001, 4)],
            [-10_000.0, -10_000.0, 7.0, 10.0]
        );
    }
}
