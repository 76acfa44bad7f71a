//! A stream: what its header says, and where its payload is.

use std::ops::Range;

/// What a stream holds. Version 2 names; version 1 writes the role as a byte, version 2 by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Which of the features, or of the values handed down, have a value.
    Present,
    /// Values of a column that are no strings; codes of a float dictionary.
    Data,
    /// The distinct values of a float dictionary.
    FloatDictionary,
    /// Lengths of strings.
    Lengths,
    /// Bytes of strings.
    Values,
    /// Indices into a dictionary of strings.
    Codes,
    /// Lengths of dictionary entries; of a front-coded one, shared prefixes, then suffixes.
    DictLengths,
    /// Bytes of dictionary entries.
    DictValues,
    /// Lengths of FSST symbols.
    SymbolLengths,
    /// FSST symbols.
    SymbolTable,
    /// FSST codes.
    Corpus,
    /// Types of geometries.
    Types,
    /// Items of multi-part geometries.
    Geometries,
    /// Rings of polygons, or vertices of lines.
    Parts,
    /// Vertices of rings.
    Rings,
    /// Triangles of polygon features.
    Triangles,
    /// Corners of triangles, version 1.
    Indices,
    /// Shapes of triangle trees, version 2.
    TreeSymbols,
    /// Vertices of triangle trees, version 2.
    TreeCycles,
    /// Vertices.
    Vertices,
    /// Distinct vertices.
    VertexDict,
    /// Indices into the distinct vertices.
    VertexOffsets,
    /// Lengths of lists and maps.
    ListLengths,
    /// Which fields each row shape has.
    ShapeTable,
    /// The shape of each row.
    ShapeIds,
}

impl Role {
    /// The name that the format gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Present => "Present",
            Role::Data => "Data",
            Role::FloatDictionary => "FloatDictionary",
            Role::Lengths => "Lengths",
            Role::Values => "Values",
            Role::Codes => "Codes",
            Role::DictLengths => "DictLengths",
            Role::DictValues => "DictValues",
            Role::SymbolLengths => "SymbolLengths",
            Role::SymbolTable => "SymbolTable",
            Role::Corpus => "Corpus",
            Role::Types => "Types",
            Role::Geometries => "GeometryLengths",
            Role::Parts => "PartLengths",
            Role::Rings => "RingLengths",
            Role::Triangles => "TriangleLengths",
            Role::Indices => "TriangleIndices",
            Role::TreeSymbols => "TreeSymbols",
            Role::TreeCycles => "TreeCycles",
            Role::Vertices => "Vertices",
            Role::VertexDict => "VertexDict",
            Role::VertexOffsets => "VertexOffsets",
            Role::ListLengths => "ListLengths",
            Role::ShapeTable => "ShapeTable",
            Role::ShapeIds => "ShapeIds",
        }
    }
}

/// How the words of a stream are made bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Physical {
    /// Little-endian words; of what is no integer, the bytes as they are.
    None,
    /// LEB128.
    VarInt,
    /// FastPFOR of version 1: blocks of 256, big-endian, 32 values at a time. 32-bit words only.
    FastPfor256,
    /// FastPFOR of version 2: blocks of 128, little-endian, interleaved (see [`Packing`](super::Packing)).
    FastPfor128,
}

/// How the values of a stream are made words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Logical {
    /// The words are the values.
    None,
    /// Differences; of vertices one chain over the flat words.
    Delta,
    /// Differences of differences.
    Delta2,
    /// Version 1 runs: all lengths, then all values, as words of the physical encoding.
    Rle {
        /// How many.
        runs: u32,
    },
    /// Version 2 runs: pairs of varints.
    RlePairs,
    /// Differences, in runs as [`Logical::Rle`].
    DeltaRle {
        /// How many.
        runs: u32,
    },
    /// Differences, in runs as [`Logical::RlePairs`].
    DeltaRlePairs,
    /// Every word in as many bits.
    BitPacked,
    /// Differences to the same component of the vertex before.
    ComponentwiseDelta,
    /// Differences of those.
    ComponentwiseDelta2,
    /// Differences of Morton codes.
    Morton {
        /// Bits an axis.
        bits: u32,
        /// What was added to both coordinates.
        shift: u32,
    },
    /// rANS-coded componentwise differences.
    Rans,
    /// Framed, exception-free ALP.
    Alp {
        /// Exponent and factor.
        scale: u8,
        /// What the offsets are counted from.
        base: i64,
    },
    /// Codes into a float dictionary.
    FloatDictionary,
    /// A bit for each truth value.
    Bitmap,
    /// Alternating runs of truth values.
    BooleanRuns,
    /// The bytes of a bitmap that are not 0.
    Sparse,
    /// The bytes of a bitmap in runs, version 1.
    BooleanRle,
    /// Bytes of a dictionary whose entries share prefixes.
    FrontCoded,
}

/// A stream of a tile. Offsets are absolute in the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stream {
    /// What it holds.
    pub role: Role,
    /// How values are made words.
    pub logical: Logical,
    /// How words are made bytes.
    pub physical: Physical,
    /// Decoded elements: values, vertices, truth values; of bytes their number.
    pub count: u32,
    /// Words of the physical sequence, where that is no matter of the payload: version 1 states them, of runs two each.
    pub words: u32,
    /// Where the header starts, and where it ends: there the payload starts.
    pub header: (u64, u64),
    /// Where the payload ends.
    pub end: u64,
}

impl Stream {
    /// The header's bytes.
    pub fn header_span(&self) -> Range<u64> {
        self.header.0..self.header.1
    }

    /// The payload's bytes.
    pub fn payload_span(&self) -> Range<u64> {
        self.header.1..self.end
    }
}
