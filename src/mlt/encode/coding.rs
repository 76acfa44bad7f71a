//! How each stream is stored, as the caller chooses.

use super::super::StringLayout;

/// Which version of the format a layer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Layers of tag 1.
    V1,
    /// Layers of tag 2, experimental.
    V2,
}

/// How words are made bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Words {
    /// Little-endian words.
    Plain,
    /// LEB128.
    #[default]
    VarInt,
    /// Blocks of 256 in version 1, for words of 32 bits alone; of 128 in version 2.
    FastPfor,
}

/// How integers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// As they are.
    Values(Words),
    /// Differences.
    Delta(Words),
    /// Differences of differences. Version 2.
    Delta2(Words),
    /// Runs. The words are those of version 1; version 2 has varints.
    Rle(Words),
    /// Runs of differences. The words are those of version 1; version 2 has varints.
    DeltaRle(Words),
    /// Every word in as many bits. Version 2, words of 32 bits.
    BitPacked,
}

impl Default for Integers {
    fn default() -> Integers {
        Integers::Values(Words::VarInt)
    }
}

/// How truth values are stored, and which values are present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truths {
    /// A bit for each.
    #[default]
    Bitmap,
    /// The bitmap's bytes in runs. Version 1.
    ByteRuns,
    /// Alternating runs. Version 2.
    Runs,
    /// The bitmap's bytes that are not 0. Version 2.
    Sparse,
}

/// How floating-point numbers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// As they are.
    #[default]
    Plain,
    /// Framed, exception-free ALP, for values that it gives back to the last bit. Version 2.
    Alp(Words),
    /// Distinct values, and codes in such words. Version 2.
    Dictionary(Words),
}

/// How strings are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// What streams there are.
    pub layout: StringLayout,
    /// Codes of the layouts with a dictionary.
    pub codes: Integers,
    /// Lengths of the values, or of the dictionary's entries.
    pub lengths: Integers,
    /// Lengths of FSST symbols.
    pub symbols: Integers,
    /// A dictionary whose entries are sorted and share prefixes. Version 2.
    pub front_coded: bool,
}

impl Strings {
    /// This layout, all integers as varints.
    pub fn new(layout: StringLayout) -> Strings {
        Strings { layout, ..Strings::default() }
    }
}

/// How vertices are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vertices {
    /// As they are.
    Values(Words),
    /// Differences, in one chain over the flat words.
    Delta(Words),
    /// Differences to the same component of the vertex before.
    ComponentwiseDelta(Words),
    /// Differences of those. Version 2, without z.
    ComponentwiseDelta2(Words),
    /// Differences of Morton codes: for a dictionary, which it sorts. Without z.
    Morton(Words),
    /// rANS-coded componentwise differences. Version 2, without z, for no dictionary.
    Rans,
}

impl Default for Vertices {
    fn default() -> Vertices {
        Vertices::ComponentwiseDelta(Words::VarInt)
    }
}

/// How the streams of a geometry are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeometryCoding {
    /// Types.
    pub types: Integers,
    /// Types as a stream even where all are alike. Version 1 always has it.
    pub types_stream: bool,
    /// Lengths: items, parts, rings.
    pub lengths: Integers,
    /// What triangles are made of.
    pub triangles: Integers,
    /// Vertices, or the distinct ones.
    pub vertices: Vertices,
    /// Distinct vertices, and indices into them that are stored so.
    pub dictionary: Option<Integers>,
}
