//! The chunk table: which cells, nonzeros and streams each chunk has.
//!
//! Source: DELTACEL file format, "Chunk table entry (96 bytes)".

use std::ops::Range;

use super::header::HEADER_LEN;
use crate::error::Stream;

pub(crate) const ENTRY_LEN: usize = 96;

/// The fields of an entry, eight bytes each.
pub(crate) const FIELDS: [&str; 12] = [
    "cell_lo", "cell_hi", "nnz_lo", "nnz_hi", "gaps_off", "gaps_len", "vals_off", "vals_len", "vexc_off", "vexc_len",
    "gexc_off", "gexc_len",
];

/// The absolute offset of a field of a chunk's entry.
pub(crate) fn field_offset(chunk: u32, field: usize) -> u64 {
    HEADER_LEN as u64 + u64::from(chunk) * ENTRY_LEN as u64 + 8 * field as u64
}

/// One chunk of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its cells, numbered within the tile.
    pub cells: Range<u64>,
    /// Its nonzeros, numbered within the tile.
    pub nonzeros: Range<u64>,
    /// Absolute offset and length of each stream: gaps, vals, vexc, gexc. Length 0 means that there is none.
    spans: [(u64, u64); 4],
}

impl Chunk {
    pub(crate) fn from_bytes(bytes: &[u8; ENTRY_LEN]) -> Chunk {
        let (fields, _) = bytes.as_chunks::<8>();
        let field = |i: usize| u64::from_le_bytes(fields[i]);
        Chunk {
            cells: field(0)..field(1),
            nonzeros: field(2)..field(3),
            spans: std::array::from_fn(|i| (field(4 + 2 * i), field(5 + 2 * i))),
        }
    }

    /// Nonzeros; 0 where the bounds are swapped.
    pub fn nnz(&self) -> u64 {
        self.nonzeros.end.saturating_sub(self.nonzeros.start)
    }

    /// Absolute offset and length in bytes of a stream, as stored; a length of 0 means that the chunk has none.
    pub fn span(&self, stream: Stream) -> (u64, u64) {
        self.spans[index(stream)]
    }
}

/// Where a stream's offset stands among the four pairs of an entry.
fn index(stream: Stream) -> usize {
    match stream {
        Stream::Gaps => 0,
        Stream::Vals => 1,
        Stream::Vexc => 2,
        Stream::Gexc => 3,
    }
}

/// The number of the field that holds a stream's offset; its length is the next.
pub(crate) fn offset_field(stream: Stream) -> usize {
    4 + 2 * index(stream)
}
