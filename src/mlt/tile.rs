//! A tile whose headers have been walked, and views of its layers and columns.

use std::borrow::Cow;
use std::ops::Range;

use super::options::Options;
use super::outline::{
    ColumnKind, ColumnOutline, DataType, Frame, GeometryOutline, Indices, LayerOutline, LayerPlace, Node, Outline,
    Presence, Span, StringLayout,
};
use super::stream::Stream;
use super::walk;
use crate::error::Error;
use crate::input::Input;

/// A tile: its bytes, and where everything in them is.
///
/// Opening walks the headers of the whole tile, once, and checks all that they say; payloads are left to the decoders, but
/// for the presence fields and Bool streams of version 2, which end only where their values do.
///
/// ```
/// # fn main() -> Result<(), tilekern::Error> {
/// use tilekern::mlt::{Options, Tile};
///
/// // A layer of version 2, of two points without properties.
/// let bytes = [13, 2, 1, b'a', 0x16, 2, 0, 8, 4, 0, 0, 0, 0, 0];
/// let tile = Tile::open(&bytes, &Options::new()?)?;
/// let layer = tile.layers().next().expect("a layer");
/// assert_eq!((layer.name(), layer.extent(), layer.features()), ("a", 4096, 2));
///
/// // The next tile is opened in the memory of this one.
/// let next = Tile::open_with(&[], tile.into_outline(), &Options::new()?)?;
/// assert_eq!(next.layers().len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tile<'a> {
    bytes: &'a [u8],
    outline: Outline,
}

impl<'a> Tile<'a> {
    /// Walks the headers of a tile. No bytes at all are a tile of no layers. Tiles in files and archives are often packed
    /// with gzip or zstd: that is taken off before.
    ///
    /// # Errors
    /// A rule of the containers that the tile breaks, with its absolute offset, its layer and column; or the outline would
    /// be larger than `options.limits.max_scratch_bytes`.
    pub fn open(bytes: &'a [u8], options: &Options) -> Result<Tile<'a>, Error> {
        Tile::open_with(bytes, Outline::default(), options)
    }

    /// The same with the memory of an outline that is no longer needed: see [`Tile::into_outline`]. The first is
    /// [`Outline::default`].
    ///
    /// # Errors
    /// As [`Tile::open`]; the outline's memory is given up then.
    pub fn open_with(bytes: &'a [u8], mut outline: Outline, options: &Options) -> Result<Tile<'a>, Error> {
        walk::tile(bytes, &mut outline, options, &mut ())?;
        Ok(Tile { bytes, outline })
    }

    /// Opens what of a tile is sound, and tells the faults of the other layers: their first ones, since nothing is known of what
    /// lies behind. [`FrameView::layer`] is none of these layers, and [`Tile::layers`] has one of version 0 without anything in
    /// place of each, so that the others have the numbers that they have in the tile. Where frames themselves are at fault, that
    /// is the last fault, and what lies behind is not there.
    pub fn open_sound(bytes: &'a [u8], options: &Options, mut tell: impl FnMut(Error)) -> Tile<'a> {
        let mut outline = Outline::default();
        let walked = walk::frames(bytes, &mut outline, options, &mut (), |error| {
            tell(error);
            Ok(())
        });
        walked.unwrap_or_else(tell);
        Tile { bytes, outline }
    }

    /// Gives the outline back, for the next tile.
    pub fn into_outline(self) -> Outline {
        self.outline
    }

    /// The bytes of the whole tile.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All frames in the order of the tile: layers, and what has another tag.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = FrameView<'_>> {
        self.outline.frames.iter().map(|frame| FrameView { tile: self.view(), frame })
    }

    /// The layers in the order of the tile.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = Layer<'_>> {
        let tile = self.view();
        self.outline.layers.iter().enumerate().map(move |(number, outline)| Layer { tile, outline, number })
    }

    /// A layer by its number.
    pub fn layer(&self, number: usize) -> Option<Layer<'_>> {
        let outline = self.outline.layers.get(number)?;
        Some(Layer { tile: self.view(), outline, number })
    }

    fn view(&self) -> View<'_> {
        View { bytes: self.bytes, outline: &self.outline }
    }
}

/// What all views look into.
#[derive(Clone, Copy, Debug)]
struct View<'t> {
    bytes: &'t [u8],
    outline: &'t Outline,
}

impl<'t> View<'t> {
    /// Bytes by a span of the outline, whose spans all lie in the tile.
    fn bytes(self, span: &Span) -> &'t [u8] {
        let range = usize::try_from(span.start).unwrap_or(usize::MAX)..usize::try_from(span.end).unwrap_or(usize::MAX);
        self.bytes.get(range).unwrap_or_default()
    }

    /// A name, of which the walk has seen that it is UTF-8.
    fn name(self, span: &Span) -> &'t str {
        std::str::from_utf8(self.bytes(span)).unwrap_or_default()
    }

    fn streams(self, indices: &Indices) -> &'t [Stream] {
        self.outline.streams.get(indices.start as usize..indices.end as usize).unwrap_or_default()
    }
}

/// A frame of a tile: a layer, or something that is skipped.
#[derive(Clone, Copy, Debug)]
pub struct FrameView<'t> {
    tile: View<'t>,
    frame: &'t Frame,
}

impl<'t> FrameView<'t> {
    /// Its tag: 1 and 2 are layers of these versions.
    pub fn tag(&self) -> u8 {
        self.frame.tag
    }

    /// Its bytes, from its size on.
    pub fn span(&self) -> Range<u64> {
        self.frame.span.clone()
    }

    /// The layer, if it is one.
    pub fn layer(&self) -> Option<Layer<'t>> {
        let number = self.frame.layer? as usize;
        Some(Layer { tile: self.tile, outline: self.tile.outline.layers.get(number)?, number })
    }
}

/// A layer of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'t> {
    tile: View<'t>,
    outline: &'t LayerOutline,
    number: usize,
}

impl<'t> Layer<'t> {
    /// Its number in the tile; frames of unknown tags do not count.
    pub fn number(&self) -> usize {
        self.number
    }

    /// 1 or 2.
    pub fn version(&self) -> u8 {
        self.outline.version
    }

    /// Its name. Layers of one tile can have the same.
    pub fn name(&self) -> &'t str {
        self.tile.name(&self.outline.name)
    }

    /// Units along an edge of the tile.
    pub fn extent(&self) -> u32 {
        self.outline.extent
    }

    /// How many features it has.
    pub fn features(&self) -> usize {
        self.outline.features as usize
    }

    /// Its bytes, from the size of its frame on.
    pub fn span(&self) -> Range<u64> {
        self.outline.span.clone()
    }

    /// The columns in the order of the tile: ids, properties, shared dictionaries and their children, nested ones, values
    /// of vertices. Geometry is among them in version 1, whose tiles have a column for it.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'t>> + Clone + use<'t> {
        let layer = *self;
        let columns = &self.tile.outline.columns[range(&self.outline.columns)];
        columns.iter().enumerate().map(move |(index, outline)| Column { layer, outline, index })
    }

    /// A column by its number in [`Layer::columns`].
    pub fn column(&self, index: usize) -> Option<Column<'t>> {
        let outline = self.tile.outline.columns.get(range(&self.outline.columns))?.get(index)?;
        Some(Column { layer: *self, outline, index })
    }

    /// The column of ids, if there is one.
    pub fn ids(&self) -> Option<Column<'t>> {
        self.column_of(self.outline.ids?)
    }

    /// A column by its index in the tile's outline.
    pub(crate) fn column_of(&self, index: u32) -> Option<Column<'t>> {
        self.column(index.checked_sub(self.outline.columns.start)? as usize)
    }

    /// The properties that are not nested, children of shared dictionaries too, in the order of the tile.
    pub fn properties(&self) -> impl Iterator<Item = Column<'t>> + Clone + use<'t> {
        self.columns().filter(|column| matches!(column.kind(), Kind::Property | Kind::Child))
    }

    /// The property of this name, of those in [`Layer::properties`].
    pub fn property(&self, name: &str) -> Option<Column<'t>> {
        self.properties().find(|column| column.name() == name)
    }

    /// The columns of a value for each vertex.
    pub fn m_values(&self) -> impl Iterator<Item = Column<'t>> + Clone + use<'t> {
        self.columns().filter(|column| column.kind() == Kind::MValue)
    }

    /// The properties that are structs, lists or maps.
    pub fn nested(&self) -> impl Iterator<Item = Column<'t>> + Clone + use<'t> {
        self.columns().filter(|column| column.kind() == Kind::Nested)
    }

    /// The bytes of the geometry: its data behind all metadata in version 1, its section in version 2.
    pub fn geometry_span(&self) -> Range<u64> {
        self.outline.geometry.span.clone()
    }

    /// The streams of the geometry, in the order of the tile.
    pub fn geometry_streams(&self) -> &'t [Stream] {
        self.tile.streams(&self.outline.geometry.streams)
    }

    /// The type of all features, where the header tells: 0 point, 1 line, 2 polygon, 3 to 5 several of these.
    pub fn uniform_type(&self) -> Option<u8> {
        self.outline.geometry.uniform
    }

    /// The presence fields that several columns can share (version 2).
    pub fn shared_presence(&self) -> &'t [Stream] {
        self.tile.streams(&self.outline.shared_presence)
    }

    pub(crate) fn geometry(&self) -> &'t GeometryOutline {
        &self.outline.geometry
    }

    /// A stream by its index in the tile's outline.
    pub(crate) fn stream(&self, index: u32) -> &'t Stream {
        &self.tile.outline.streams[index as usize]
    }

    /// Streams by their indices in the tile's outline.
    pub(crate) fn streams(&self, indices: &Indices) -> &'t [Stream] {
        self.tile.streams(indices)
    }

    /// A node of a nested column by its index in the tile's outline.
    pub(crate) fn node(&self, index: u32) -> &'t Node {
        &self.tile.outline.nodes[index as usize]
    }

    /// The payload of a stream.
    pub(crate) fn payload(&self, stream: &Stream) -> Input<'t> {
        Input::at(self.tile.bytes(&stream.payload_span()), stream.header.1)
    }

    /// A name by its span.
    pub(crate) fn text(&self, span: &Span) -> &'t str {
        self.tile.name(span)
    }

    /// This layer, and a column of it, as errors name them.
    pub(crate) fn place(&self, column: Option<usize>) -> LayerPlace {
        let cut = |number| u32::try_from(number).unwrap_or(u32::MAX);
        LayerPlace { layer: cut(self.number), column: column.map(cut) }
    }
}

/// What a column of a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Ids of features.
    Id,
    /// The geometry (version 1).
    Geometry,
    /// A property of features that is not nested.
    Property,
    /// A dictionary that the columns behind it share, its children; it has no values itself.
    SharedDictionary,
    /// A property whose strings stand in the shared dictionary before it.
    Child,
    /// A value for each vertex.
    MValue,
    /// A property that is a struct, list or map.
    Nested,
}

impl Kind {
    /// A short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Id => "id",
            Kind::Geometry => "geometry",
            Kind::Property => "property",
            Kind::SharedDictionary => "shared dictionary",
            Kind::Child => "shared dictionary child",
            Kind::MValue => "m-value",
            Kind::Nested => "nested",
        }
    }
}

/// A column of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Column<'t> {
    layer: Layer<'t>,
    outline: &'t ColumnOutline,
    index: usize,
}

impl<'t> Column<'t> {
    /// The layer it is of.
    pub fn layer(&self) -> Layer<'t> {
        self.layer
    }

    /// Its number in [`Layer::columns`].
    pub fn index(&self) -> usize {
        self.index
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.outline.kind {
            ColumnKind::Id => Kind::Id,
            ColumnKind::Geometry => Kind::Geometry,
            ColumnKind::Property => Kind::Property,
            ColumnKind::SharedDictionary { .. } => Kind::SharedDictionary,
            ColumnKind::Child { .. } => Kind::Child,
            ColumnKind::MValue => Kind::MValue,
            ColumnKind::Nested { .. } => Kind::Nested,
        }
    }

    /// The type of its values. None: geometry.
    pub fn data_type(&self) -> Option<DataType> {
        (self.kind() != Kind::Geometry).then_some(self.outline.data_type)
    }

    /// Its type byte, as it is stored.
    pub fn code(&self) -> u8 {
        self.outline.code
    }

    /// Its name; of a shared dictionary's child with the dictionary's prefix. Ids and geometry have none, and a shared
    /// dictionary's is its prefix.
    pub fn name(&self) -> Cow<'t, str> {
        let (prefix, name) = (self.layer.text(&self.outline.prefix), self.layer.text(&self.outline.name));
        match (prefix, name) {
            ("", name) => Cow::Borrowed(name),
            (prefix, "") => Cow::Borrowed(prefix),
            (prefix, name) => Cow::Owned([prefix, name].concat()),
        }
    }

    /// Whether features can be without a value.
    pub fn nullable(&self) -> bool {
        self.outline.presence != Presence::All
    }

    /// The number of the layer's shared presence field that says which features have a value, if one does.
    pub fn shared_presence(&self) -> Option<usize> {
        match self.outline.presence {
            Presence::Shared(stream) => Some((stream - self.layer.outline.shared_presence.start) as usize),
            _ => None,
        }
    }

    /// How its strings are stored; of a child, as in the dictionary. None: of another type.
    pub fn strings(&self) -> Option<StringLayout> {
        (self.outline.data_type == DataType::String && self.kind() != Kind::Geometry).then_some(self.outline.strings)
    }

    /// The children of a shared dictionary; none of another column.
    pub fn children(&self) -> impl ExactSizeIterator<Item = Column<'t>> + use<'t> {
        let children = match self.outline.kind {
            ColumnKind::SharedDictionary { children } => children as usize,
            _ => 0,
        };
        let (layer, first) = (self.layer, self.index + 1);
        let columns = &layer.tile.outline.columns[range(&layer.outline.columns)][first..first + children];
        columns.iter().enumerate().map(move |(child, outline)| Column { layer, outline, index: first + child })
    }

    /// All its streams in the order of the tile, presence among them where the column has its own.
    pub fn streams(&self) -> &'t [Stream] {
        self.layer.streams(&self.outline.all_streams)
    }

    /// Its metadata, from the type byte on.
    pub fn meta_span(&self) -> Range<u64> {
        self.outline.meta.clone()
    }

    /// Its bytes behind that; in version 1 they stand apart.
    pub fn data_span(&self) -> Range<u64> {
        self.outline.data.clone()
    }

    pub(crate) fn outline(&self) -> &'t ColumnOutline {
        self.outline
    }

    /// The layer and column, as errors name them.
    pub(crate) fn place(&self) -> LayerPlace {
        self.layer.place(Some(self.index))
    }
}

fn range(indices: &Indices) -> Range<usize> {
    indices.start as usize..indices.end as usize
}
