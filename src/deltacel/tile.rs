//! A tile that has been opened: everything but the content of its frames is checked.
//!
//! Source: DELTACEL file format, "Tile layout"; the order of the checks bounds memory by the object's size.

use std::ops::Range;

use super::chunk::{self, Chunk, ENTRY_LEN};
use super::header::{HEADER_LEN, Header};
use crate::error::{Error, ErrorKind, FrameFault, Part, Stream, Unsupported};
use crate::input::Input;
use crate::zstd::frame;

/// The streams of a chunk in the order in which a decode reads them.
pub(crate) const STREAMS: [Stream; 4] = [Stream::Gaps, Stream::Gexc, Stream::Vals, Stream::Vexc];

/// A tile: a block of consecutive cells of a count matrix, in one object.
///
/// Opening checks header, CRC, chunk table, indptr and the outline of every frame, allocates nothing, and takes time
/// proportional to the object. What can still fail in a decode is the content of frames.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    object: Input<'a>,
    header: Header,
}

/// How a tile is cut, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// The header as stored.
    pub header: Header,
    /// Chunk by chunk.
    pub chunks: Vec<ChunkOutline>,
}

/// A chunk of an [`Outline`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkOutline {
    /// Its entry in the table.
    pub chunk: Chunk,
    /// Gaps above 65535.
    pub gap_exceptions: u64,
    /// Counts above 65535.
    pub count_exceptions: u64,
}

impl<'a> Tile<'a> {
    /// Opens a tile that is the whole of `bytes`.
    ///
    /// # Errors
    /// The first fault in this order: header fields, CRC, sizes of table and indptr, indptr, chunk table, streams.
    /// [`ErrorKind::Unsupported`] on a big-endian host.
    pub fn open(bytes: &'a [u8]) -> Result<Tile<'a>, Error> {
        let tile = Tile::read_header(bytes)?;
        tile.check_crc()?;
        tile.check_structure()?;
        Ok(tile)
    }

    /// Opens a tile without computing its CRC: for bytes whose integrity something else vouches for.
    ///
    /// Every other check of [`Tile::open`] stays, so this is as safe; damage inside a frame may go unnoticed.
    ///
    /// # Errors
    /// As [`Tile::open`].
    pub fn open_without_crc(bytes: &'a [u8]) -> Result<Tile<'a>, Error> {
        let tile = Tile::read_header(bytes)?;
        tile.check_structure()?;
        Ok(tile)
    }

    /// Reads and checks the header alone.
    pub(crate) fn read_header(bytes: &'a [u8]) -> Result<Tile<'a>, Error> {
        if cfg!(target_endian = "big") {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::BigEndianHost), Part::Object));
        }
        let object = Input::new(bytes);
        Ok(Tile { object, header: Header::read(object)? })
    }

    /// The header as stored.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Cells (rows).
    pub fn n_cells(&self) -> usize {
        // `check_structure` found 8 bytes of indptr for each.
        usize::try_from(self.header.n_cells).unwrap_or(usize::MAX)
    }

    /// Genes (columns).
    pub fn n_genes(&self) -> u32 {
        self.header.n_genes
    }

    /// Stored nonzeros.
    pub fn nnz(&self) -> u64 {
        self.header.nnz
    }

    /// Chunks.
    pub fn n_chunks(&self) -> u32 {
        self.header.n_chunks
    }

    /// Bytes of the object.
    pub fn size(&self) -> u64 {
        self.object.end()
    }

    /// A chunk's entry in the table.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn chunk(&self, chunk: u32) -> Chunk {
        let entry = self.object.slice(chunk::field_offset(chunk, 0), ENTRY_LEN as u64).expect("a chunk of this tile");
        Chunk::from_bytes(entry.bytes().first_chunk().expect("an entry of 96 bytes"))
    }

    /// How the tile is cut.
    pub fn outline(&self) -> Outline {
        let outline = |n| {
            let chunk = self.chunk(n);
            let exceptions = |stream| self.stream(&chunk, stream).map_or(0, |input| frame::content_size(input) / 8);
            let [gap_exceptions, count_exceptions] = [Stream::Gexc, Stream::Vexc].map(exceptions);
            ChunkOutline { chunk, gap_exceptions, count_exceptions }
        };
        Outline { header: self.header, chunks: (0..self.header.n_chunks).map(outline).collect() }
    }

    /// Entry `i` of the indptr: the nonzeros before cell `i`.
    ///
    /// # Panics
    /// If `i` is above `n_cells`.
    pub fn indptr(&self, i: usize) -> i64 {
        self.indptr_entries().get(i)
    }

    /// The nonzeros before each cell of a range and after its last: entries `cells.start ..= cells.end`, less the first.
    ///
    /// # Panics
    /// If the range is outside the tile or `out` is not one longer than the range.
    pub(crate) fn copy_indptr(&self, cells: Range<usize>, out: &mut [i64]) {
        let entries = self.indptr_entries();
        assert_eq!(out.len(), cells.len() + 1);
        let first = entries.get(cells.start);
        for (out, entry) in out.iter_mut().zip(&entries.0[cells.start..=cells.end]) {
            *out = i64::from_le_bytes(*entry) - first;
        }
    }

    /// The bytes of a stream, or `None` where the chunk has none.
    pub(crate) fn stream(&self, chunk: &Chunk, stream: Stream) -> Option<Input<'a>> {
        match chunk.span(stream) {
            (_, 0) => None,
            (offset, len) => self.object.slice(offset, len),
        }
    }

    /// The chunks that hold the cells of a range, and how many.
    pub(crate) fn chunks_of(&self, cells: Range<u64>) -> Range<u32> {
        if cells.is_empty() {
            return 0..0;
        }
        // The first chunk that ends behind the range's start, and the first that starts at its end or later.
        let first = self.partition(|chunk| chunk.cells.end <= cells.start);
        first..self.partition(|chunk| chunk.cells.start < cells.end)
    }

    fn partition(&self, before: impl Fn(&Chunk) -> bool) -> u32 {
        let mut range = 0..self.header.n_chunks;
        while !range.is_empty() {
            let middle = range.start + (range.end - range.start) / 2;
            if before(&self.chunk(middle)) {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        range.start
    }

    /// Bytes up to the end of the indptr, once sizes are checked: all that a choice of chunks needs.
    #[cfg(feature = "dataset")]
    pub(super) fn head_len(&self) -> u64 {
        self.indptr_input().map_or(HEADER_LEN as u64, |input| input.end())
    }

    fn indptr_input(&self) -> Option<Input<'a>> {
        let len = self.header.n_cells.checked_add(1)?.checked_mul(8)?;
        self.object.slice(self.header.indptr_off, len)
    }

    fn indptr_entries(&self) -> Indptr<'a> {
        let input = self.indptr_input().expect("an indptr that was checked");
        Indptr(input.bytes().as_chunks().0)
    }

    pub(crate) fn check_crc(&self) -> Result<(), Error> {
        let covered = &self.object.bytes()[HEADER_LEN..];
        let crc = crc32fast::hash(covered);
        if crc != self.header.crc32 {
            let kind = ErrorKind::Checksum { found: self.header.crc32.into(), expected: crc.into() };
            return Err(Error::new(kind, Part::Header("crc32")).at(56));
        }
        Ok(())
    }

    pub(crate) fn check_structure(&self) -> Result<(), Error> {
        self.check_head()?;
        self.check_streams(0..self.header.n_chunks, &STREAMS)
    }

    /// Everything but the streams.
    pub(super) fn check_head(&self) -> Result<(), Error> {
        self.check_sizes()?;
        self.check_indptr()?;
        self.check_chunks()
    }

    /// The outline of such streams of some chunks.
    pub(super) fn check_streams(&self, chunks: impl IntoIterator<Item = u32>, streams: &[Stream]) -> Result<(), Error> {
        let mut frames = Frames::default();
        chunks.into_iter().try_for_each(|n| {
            let chunk = self.chunk(n);
            streams.iter().try_for_each(|&stream| self.check_stream(n, &chunk, stream, &mut frames))
        })
    }

    /// Table and indptr lie inside the object, one behind the other. From here on counts are bounded by its size.
    pub(super) fn check_sizes(&self) -> Result<(), Error> {
        let Header { n_cells, n_chunks, indptr_off, total_size, .. } = self.header;
        if (n_cells == 0) != (n_chunks == 0) {
            let (min, max) = if n_cells == 0 { (0, 0) } else { (1, u32::MAX.into()) };
            let kind = ErrorKind::OutOfRange { found: n_chunks.into(), min, max };
            return Err(Error::new(kind, Part::Header("n_chunks")).at(36));
        }
        let table_end = HEADER_LEN as u64 + u64::from(n_chunks) * ENTRY_LEN as u64;
        if table_end > total_size {
            let kind = ErrorKind::Truncated { needed: table_end, available: total_size };
            return Err(Error::new(kind, Part::ChunkTable).at(HEADER_LEN as u64));
        }
        if !indptr_off.is_multiple_of(8) {
            let kind = ErrorKind::Misaligned { found: indptr_off, align: 8 };
            return Err(Error::new(kind, Part::Header("indptr_off")).at(40));
        }
        if indptr_off < table_end || indptr_off > total_size {
            let kind =
                ErrorKind::OutOfRange { found: indptr_off.into(), min: table_end.into(), max: total_size.into() };
            return Err(Error::new(kind, Part::Header("indptr_off")).at(40));
        }
        if self.indptr_input().is_none() {
            let needed = n_cells.saturating_add(1).saturating_mul(8).saturating_add(indptr_off);
            let kind = ErrorKind::Truncated { needed, available: total_size };
            return Err(Error::new(kind, Part::Header("n_cells")).at(16));
        }
        Ok(())
    }

    /// From 0 to nnz without decreasing, and no cell with more nonzeros than genes.
    pub(super) fn check_indptr(&self) -> Result<(), Error> {
        let entries = self.indptr_entries();
        let at = |i: usize| self.header.indptr_off + 8 * i as u64;
        let fault = |kind, i: usize| Err(Error::new(kind, Part::Indptr).at(at(i)).index(i as u64));
        if entries.get(0) != 0 {
            return fault(ErrorKind::OutOfRange { found: entries.get(0).into(), min: 0, max: 0 }, 0);
        }
        let n_genes = i64::from(self.header.n_genes);
        let mut before = 0;
        for (i, entry) in entries.iter().enumerate().skip(1) {
            // The one before is not negative, so neither difference can wrap.
            if entry < before || entry - before > n_genes {
                let (found, min) = (i128::from(entry), i128::from(before));
                return fault(ErrorKind::OutOfRange { found, min, max: min + i128::from(n_genes) }, i);
            }
            before = entry;
        }
        if u64::try_from(before).ok() != Some(self.header.nnz) {
            let kind = ErrorKind::Inconsistent { found: self.header.nnz.into(), expected: before.into() };
            return Err(Error::new(kind, Part::Header("nnz")).at(24));
        }
        Ok(())
    }

    /// The chunks cover cells and nonzeros one behind the other, and agree with the indptr.
    pub(super) fn check_chunks(&self) -> Result<(), Error> {
        let Header { n_cells, nnz, n_chunks, .. } = self.header;
        let entries = self.indptr_entries();
        let (mut cell, mut nonzero) = (0, 0);
        for n in 0..n_chunks {
            let chunk = self.chunk(n);
            let fault = |field: usize, kind| {
                Err(Error::new(kind, Part::ChunkEntry(n, chunk::FIELDS[field])).at(chunk::field_offset(n, field)))
            };
            let same =
                |found: u64, expected: u64| ErrorKind::Inconsistent { found: found.into(), expected: expected.into() };
            let within = |found: u64, min: u64, max: u64| ErrorKind::OutOfRange {
                found: found.into(),
                min: min.into(),
                max: max.into(),
            };
            if chunk.cells.start != cell {
                return fault(0, same(chunk.cells.start, cell));
            }
            if chunk.nonzeros.start != nonzero {
                return fault(2, same(chunk.nonzeros.start, nonzero));
            }
            if chunk.cells.end < cell || chunk.cells.end > n_cells {
                return fault(1, within(chunk.cells.end, cell, n_cells));
            }
            if chunk.nonzeros.end < nonzero || chunk.nonzeros.end > nnz {
                return fault(3, within(chunk.nonzeros.end, nonzero, nnz));
            }
            if chunk.nnz() > u64::from(u32::MAX) {
                return fault(3, within(chunk.nonzeros.end, nonzero, nonzero + u64::from(u32::MAX)));
            }
            cell = chunk.cells.end;
            nonzero = chunk.nonzeros.end;
            // `cell` is at most n_cells, for which the object holds an indptr.
            let implied = usize::try_from(cell).ok().and_then(|i| u64::try_from(entries.get(i)).ok());
            if implied != Some(nonzero) {
                return fault(3, same(nonzero, implied.unwrap_or(0)));
            }
            if n + 1 == n_chunks && cell != n_cells {
                return fault(1, same(cell, n_cells));
            }
        }
        Ok(())
    }

    /// A stream lies behind the indptr, aligned, and is one frame that states a size which fits the chunk.
    ///
    /// `blocks` counts those of the frames that were walked. Streams may share bytes, so that many entries of the table
    /// could ask for a walk over the same blocks: all walks together take no longer than one over the whole object.
    pub(super) fn check_stream(&self, n: u32, chunk: &Chunk, stream: Stream, frames: &mut Frames) -> Result<(), Error> {
        let (offset, len) = chunk.span(stream);
        let field = chunk::offset_field(stream);
        let fault = |field: usize, kind| {
            Err(Error::new(kind, Part::ChunkEntry(n, chunk::FIELDS[field])).at(chunk::field_offset(n, field)))
        };
        let exceptions = matches!(stream, Stream::Gexc | Stream::Vexc);
        if len == 0 {
            let none = ErrorKind::OutOfRange { found: 0, min: 1, max: self.size().into() };
            return if exceptions { Ok(()) } else { fault(field + 1, none) };
        }
        if !offset.is_multiple_of(8) {
            return fault(field, ErrorKind::Misaligned { found: offset, align: 8 });
        }
        let indptr_end = self.indptr_input().map_or(0, |input| input.end());
        if offset < indptr_end || offset > self.size() {
            let (min, max) = (indptr_end.into(), self.size().into());
            return fault(field, ErrorKind::OutOfRange { found: offset.into(), min, max });
        }
        let Some(input) = self.object.slice(offset, len) else {
            let needed = offset.saturating_add(len);
            return fault(field + 1, ErrorKind::Truncated { needed, available: self.size() });
        };
        let part = Part::Chunk(n, stream);
        let found = frames.outline(input, part, self.size())?.content;
        // Exceptions are whole pairs of 32-bit numbers, and no more of them than nonzeros.
        let expected = if exceptions { (found / 8).min(chunk.nnz()) * 8 } else { 2 * chunk.nnz() };
        if found != expected {
            let kind = ErrorKind::Frame(FrameFault::ContentSize { found, expected });
            return Err(Error::new(kind, part).at(offset));
        }
        Ok(())
    }
}

/// The frames of a tile that were walked so far, and the work that they are.
///
/// Streams may share bytes. So that reading a tile still takes time in proportion to its size and its results, a frame
/// that is shared as a whole is walked once, and the walks over bytes that are shared otherwise are bounded, as are the
/// blocks without content that a decoder would pass again and again.
#[derive(Default)]
pub(super) struct Frames {
    /// Frames met last: absolute offset, length, outline.
    known: [(u64, u64, frame::Outline); 4],
    next: usize,
    /// Blocks walked here.
    walked: u64,
    /// Blocks and bytes of content that a decoder meets.
    blocks: u64,
    content: u64,
}

impl Frames {
    /// As often as this may the bytes of a tile be shared, on average, by frames that differ or have no content.
    const SHARED: u64 = 8;

    /// Blocks of all frames so far.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    fn outline(&mut self, frame: Input<'_>, part: Part, size: u64) -> Result<frame::Outline, Error> {
        let max = Frames::SHARED * size / frame::BLOCK_HEADER;
        let (offset, len) = (frame.offset(), frame.bytes().len() as u64);
        let known = self.known.iter().find(|known| (known.0, known.1) == (offset, len)).map(|known| known.2);
        let overlap = || Error::new(ErrorKind::Frame(FrameFault::Overlap { max }), part).at(offset);
        let outline = match known {
            Some(outline) => outline,
            None if self.walked > max => return Err(overlap()),
            None => {
                let outline = frame::check(frame, part)?;
                self.walked += outline.blocks;
                self.known[self.next] = (offset, len, outline);
                self.next = (self.next + 1) % self.known.len();
                outline
            }
        };
        self.blocks += outline.blocks;
        self.content = self.content.saturating_add(outline.content);
        if self.walked > max || self.blocks > max.saturating_add(self.content) {
            return Err(overlap());
        }
        Ok(outline)
    }
}

/// The stored indptr: little-endian, at any alignment in memory.
#[derive(Clone, Copy)]
struct Indptr<'a>(&'a [[u8; 8]]);

impl Indptr<'_> {
    fn get(&self, i: usize) -> i64 {
        i64::from_le_bytes(self.0[i])
    }

    fn iter(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|entry| i64::from_le_bytes(*entry))
    }
}
