//! Where everything of a tile is: its layers, columns and streams, without their values.
//!
//! One walk over the headers makes it, for decoding, for `info` and for traces. The vectors are flat, so that an outline
//! that is read into again allocates nothing; ranges are of indices into them.

use std::ops::Range;

use super::stream::Stream;

/// Indices into a vector of an [`Outline`].
pub(crate) type Indices = Range<u32>;

/// Bytes of the tile, by absolute offsets.
pub(crate) type Span = Range<u64>;

/// The outline of a tile. Keeps its memory; see [`Tile::open_with`](super::Tile::open_with).
#[derive(Clone, Debug, Default)]
pub struct Outline {
    pub(crate) frames: Vec<Frame>,
    pub(crate) layers: Vec<LayerOutline>,
    pub(crate) columns: Vec<ColumnOutline>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) streams: Vec<Stream>,
    /// Prefix and rest of the names that are looked through for repeated ones: a stack, of which structs take the top.
    pub(crate) names: Vec<(Span, Span)>,
    /// Bytes of prefixes, once for each child of a shared dictionary: whoever puts names together has as many.
    pub(crate) prefixes: u64,
}

impl Outline {
    /// Bytes that its parts take, and names that are put together.
    pub(crate) fn bytes(&self) -> u64 {
        let Outline { frames, layers, columns, nodes, streams, names, prefixes } = self;
        let parts = size_of_val(&frames[..])
            + size_of_val(&layers[..])
            + size_of_val(&columns[..])
            + size_of_val(&nodes[..])
            + size_of_val(&streams[..])
            + size_of_val(&names[..]);
        prefixes.saturating_add(parts as u64)
    }

    /// Counts the prefix of a column, if it is one of many that have it.
    pub(crate) fn add_prefix(&mut self, kind: ColumnKind, prefix: &Span) {
        if let ColumnKind::Child { .. } = kind {
            self.prefixes = self.prefixes.saturating_add(prefix.end - prefix.start);
        }
    }
}

/// A frame: a layer, or something of a tag that is not known.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub tag: u8,
    /// All of it with its size.
    pub span: Span,
    /// The layer, if it is one.
    pub layer: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LayerOutline {
    /// 1 or 2; 0 of a layer that was left out.
    pub version: u8,
    /// From the frame's size on.
    pub span: Span,
    pub name: Span,
    pub extent: u32,
    pub features: u32,
    /// Streams of the shared presence fields (version 2).
    pub shared_presence: Indices,
    pub geometry: GeometryOutline,
    /// Into `columns`: the id column, if there is one.
    pub ids: Option<u32>,
    /// Into `columns`, of all kinds, in the order of the tile. A shared dictionary is followed by its children.
    pub columns: Indices,
}

/// Streams of the geometry; indices into `streams`.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeometryOutline {
    pub span: Span,
    /// All its streams.
    pub streams: Indices,
    /// The type of all features, where no stream tells.
    pub uniform: Option<u8>,
    pub types: Option<u32>,
    pub geometries: Option<u32>,
    pub parts: Option<u32>,
    pub rings: Option<u32>,
    pub triangles: Option<u32>,
    /// Version 1.
    pub indices: Option<u32>,
    /// Version 2.
    pub tree_symbols: Option<u32>,
    pub tree_cycles: Option<u32>,
    /// Vertices, or the distinct ones if there are offsets. None: no vertex stream at all (version 1, no features).
    pub vertices: Option<u32>,
    pub offsets: Option<u32>,
    /// Words of a vertex: 2, or 3 with z.
    pub components: u8,
    pub z_step: u8,
    /// Layout C: triangles without outlines.
    pub tessellated_only: bool,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Id,
    Geometry,
    /// A property of features that is not nested.
    Property,
    /// A dictionary that the next columns share; `children` of them.
    SharedDictionary {
        children: u32,
    },
    /// One of those.
    Child {
        dictionary: u32,
    },
    /// A value for each vertex.
    MValue,
    /// A property that is a struct, list or map: `node` is its root.
    Nested {
        node: u32,
    },
}

/// Which of the values handed down a column, or node, has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    All,
    /// A stream of its own.
    Own(u32),
    /// The layer's shared field: a stream, too.
    Shared(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct ColumnOutline {
    pub kind: ColumnKind,
    /// The type byte as it is stored.
    pub code: u8,
    pub data_type: DataType,
    /// Empty for ids and geometry.
    pub name: Span,
    /// What a shared dictionary puts before the names of its children.
    pub prefix: Span,
    pub presence: Presence,
    pub strings: StringLayout,
    /// Its data streams, in the order of the tile, without presence. Of a nested column, the streams of its nodes.
    pub streams: Indices,
    /// Those, with the column's own presence before them.
    pub all_streams: Indices,
    /// Its metadata, from the type byte on.
    pub meta: Span,
    /// Its bytes behind that (version 1 has them apart).
    pub data: Span,
}

/// A node of a nested column, in preorder.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    /// The field's name in its struct; empty for others.
    pub name: Span,
    pub presence: Presence,
    /// The first node behind this one and its descendants.
    pub end: u32,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Fields follow. With shapes: the table and the ids, streams of the experiment of row shapes.
    Struct {
        fields: u32,
        shapes: Option<(u32, u32)>,
    },
    /// The element follows.
    List {
        lengths: u32,
    },
    /// The value follows.
    Map {
        lengths: Option<u32>,
        key_layout: StringLayout,
        keys: Indices,
        shapes: Option<(u32, u32)>,
    },
    Leaf {
        data_type: DataType,
        strings: StringLayout,
        streams: Indices,
    },
}

/// How strings are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StringLayout {
    /// All values' bytes.
    #[default]
    Plain,
    /// Distinct values, and codes.
    Dictionary,
    /// All values' bytes, compressed.
    Fsst,
    /// Distinct values, compressed, and codes.
    FsstDictionary,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// Ids of 32 bits.
    Id,
    /// Ids of 64 bits.
    LongId,
    /// Truth values.
    Bool,
    /// Signed, 8 bits.
    Int8,
    /// Unsigned, 8 bits.
    UInt8,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    UInt32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    UInt64,
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
    /// UTF-8.
    String,
    /// Named values.
    Struct,
    /// Values of one type, any number.
    List,
    /// Strings to values of one type.
    Map,
}

impl DataType {
    /// The name that the format gives it.
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Id => "Id",
            DataType::LongId => "LongId",
            DataType::Bool => "Bool",
            DataType::Int8 => "Int8",
            DataType::UInt8 => "UInt8",
            DataType::Int32 => "Int32",
            DataType::UInt32 => "UInt32",
            DataType::Int64 => "Int64",
            DataType::UInt64 => "UInt64",
            DataType::Float => "Float",
            DataType::Double => "Double",
            DataType::String => "String",
            DataType::Struct => "Struct",
            DataType::List => "List",
            DataType::Map => "Map",
        }
    }
}

/// Which layer and column of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerPlace {
    /// The layer's number; frames of unknown tags do not count.
    pub layer: u32,
    /// The column's number in it, as the tile has them; children of a shared dictionary count after it. None: no column.
    pub column: Option<u32>,
}

impl std::fmt::Display for LayerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "layer {}", self.layer)?;
        self.column.map_or(Ok(()), |column| write!(f, ", column {column}"))
    }
}
