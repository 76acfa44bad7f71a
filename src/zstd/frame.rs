//! The structure of a zstd frame (RFC 8878, section 3.1.1): header, blocks, and the sections of a compressed block.
//!
//! One walk serves the checks that bound memory before a decode, and the trace.

use std::ops::Range;

use crate::error::{Error, ErrorKind, FrameFault, Part};
use crate::input::Input;

const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// No block regenerates more than this.
const BLOCK_MAX: u64 = 128 << 10;

/// libzstd refuses a window above 2^31 (2^30 on 32-bit hosts) even where it needs none.
const WINDOW_LOG_MAX: u8 = if usize::BITS == 32 { 30 } else { 31 };

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the header, magic included.
    pub(crate) len: u64,
    pub(crate) window: u64,
    pub(crate) single_segment: bool,
    pub(crate) content: Option<u64>,
    pub(crate) dictionary: u32,
    pub(crate) checksum: bool,
}

impl Header {
    /// What one block may hold, compressed or not.
    pub(crate) fn block_max(&self) -> u64 {
        self.window.min(BLOCK_MAX)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Raw,
    Rle,
    Compressed,
}

/// A block of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) last: bool,
    /// The size field: bytes regenerated (raw, RLE) or stored (compressed).
    pub(crate) size: u64,
    /// Absolute offsets of the block, from its 3-byte header on.
    pub(crate) span: Range<u64>,
}

/// Reads a frame's header from the start of `input` and leaves `input` behind it.
pub(crate) fn header(input: &mut Input<'_>) -> Result<Header, FrameFault> {
    let start = input.offset();
    let magic: [u8; 4] = take(input)?;
    if magic != MAGIC {
        return Err(FrameFault::Magic);
    }
    let [descriptor] = take(input)?;
    if descriptor & 0x08 != 0 {
        return Err(FrameFault::Reserved);
    }
    let single_segment = descriptor & 0x20 != 0;
    let window = match single_segment {
        true => None,
        false => {
            let [byte] = take(input)?;
            let base = 1u64 << (10 + (byte >> 3));
            Some(base + base / 8 * u64::from(byte & 7))
        }
    };
    let dictionary = match descriptor & 3 {
        0 => 0,
        1 => u32::from(take::<1>(input)?[0]),
        2 => u32::from(u16::from_le_bytes(take(input)?)),
        _ => u32::from_le_bytes(take(input)?),
    };
    let content = match descriptor >> 6 {
        0 if single_segment => Some(u64::from(take::<1>(input)?[0])),
        0 => None,
        1 => Some(u64::from(u16::from_le_bytes(take(input)?)) + 256),
        2 => Some(u64::from(u32::from_le_bytes(take(input)?))),
        _ => Some(u64::from_le_bytes(take(input)?)),
    };
    Ok(Header {
        len: input.offset() - start,
        window: window.or(content).unwrap_or(0),
        single_segment,
        content,
        dictionary,
        checksum: descriptor & 0x04 != 0,
    })
}

/// The blocks behind a frame's header, up to the last or the first fault.
pub(crate) struct Blocks<'a> {
    input: Input<'a>,
    block_max: u64,
    ended: bool,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(input: Input<'a>, header: &Header) -> Blocks<'a> {
        Blocks { input, block_max: header.block_max(), ended: false }
    }

    /// What follows the blocks yielded so far.
    pub(crate) fn rest(self) -> Input<'a> {
        self.input
    }

    fn block(&mut self) -> Result<Block, FrameFault> {
        let start = self.input.offset();
        let [a, b, c] = take(&mut self.input)?;
        let field = u32::from_le_bytes([a, b, c, 0]);
        let size = u64::from(field >> 3);
        let kind = match (field >> 1) & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Rle,
            2 => BlockKind::Compressed,
            _ => return Err(FrameFault::Reserved),
        };
        if size > self.block_max {
            return Err(FrameFault::BlockSize { found: size, max: self.block_max });
        }
        let stored = if kind == BlockKind::Rle { 1 } else { size };
        let from = self.input.offset();
        let end = self.input.end();
        self.input = from
            .checked_add(stored)
            .filter(|&to| to <= end)
            .and_then(|to| self.input.slice(to, end - to))
            .ok_or(FrameFault::Truncated)?;
        Ok(Block { kind, last: field & 1 != 0, size, span: start..self.input.offset() })
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block, FrameFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let block = self.block();
        self.ended = block.as_ref().map_or(true, |block| block.last);
        Some(block)
    }
}

/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralsKind {
    Raw,
    Rle,
    Huffman,
    /// Huffman with the table of the block before.
    Treeless,
}

/// The first section of a compressed block (RFC 8878, section 3.1.1.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    pub(crate) kind: LiteralsKind,
    pub(crate) regenerated: u64,
    /// Bytes behind the section's header.
    pub(crate) stored: u64,
    pub(crate) streams: u8,
    pub(crate) span: Range<u64>,
}

/// The second section of a compressed block (RFC 8878, section 3.1.1.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequences {
    pub(crate) count: u32,
    /// How literal lengths, offsets and match lengths are coded; `None` without sequences.
    pub(crate) modes: Option<[&'static str; 3]>,
    pub(crate) span: Range<u64>,
}

pub(crate) struct Sections {
    pub(crate) literals: Literals,
    pub(crate) sequences: Sequences,
}

/// Reads the headers of a compressed block's two sections. `body` is the block without its header.
pub(crate) fn sections(body: Input<'_>) -> Result<Sections, FrameFault> {
    let start = body.offset();
    let first = *body.bytes().first().ok_or(FrameFault::Truncated)?;
    let kind = match first & 3 {
        0 => LiteralsKind::Raw,
        1 => LiteralsKind::Rle,
        2 => LiteralsKind::Huffman,
        _ => LiteralsKind::Treeless,
    };
    let coded = matches!(kind, LiteralsKind::Huffman | LiteralsKind::Treeless);
    // Header bytes and bits of each size, by the size format in bits 2 and 3.
    let (len, shift, bits) = match ((first >> 2) & 3, coded) {
        (0 | 2, false) => (1, 3, 5),
        (1, false) => (2, 4, 12),
        (_, false) => (3, 4, 20),
        (0 | 1, true) => (3, 4, 10),
        (2, true) => (4, 4, 14),
        (_, true) => (5, 4, 18),
    };
    let header = body.bytes().get(..len).ok_or(FrameFault::Truncated)?;
    let mut word = [0; 8];
    word[..len].copy_from_slice(header);
    let sizes = u64::from_le_bytes(word) >> shift;
    let regenerated = sizes & ((1 << bits) - 1);
    let stored = match kind {
        LiteralsKind::Raw => regenerated,
        LiteralsKind::Rle => 1,
        _ => sizes >> bits,
    };
    let middle = start + len as u64 + stored;
    let streams = if coded && (first >> 2) & 3 != 0 { 4 } else { 1 };
    let literals = Literals { kind, regenerated, stored, streams, span: start..middle };

    let left = body.end().checked_sub(middle).ok_or(FrameFault::Truncated)?;
    let mut input = body.slice(middle, left).ok_or(FrameFault::Truncated)?;
    let [first] = take(&mut input)?;
    let count = match first {
        0..=127 => u32::from(first),
        128..=254 => (u32::from(first) - 128) << 8 | u32::from(take::<1>(&mut input)?[0]),
        255 => u32::from(u16::from_le_bytes(take(&mut input)?)) + 0x7F00,
    };
    let modes =
        match count {
            0 => None,
            _ => {
                let [modes] = take(&mut input)?;
                if modes & 3 != 0 {
                    return Err(FrameFault::Reserved);
                }
                Some([6, 4, 2].map(|bit| {
                    ["predefined", "one value", "a table", "the table before"][usize::from(modes >> bit & 3)]
                }))
            }
        };
    Ok(Sections { literals, sequences: Sequences { count, modes, span: middle..body.end() } })
}

/// What a frame is without a look into its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The size that it states.
    pub(crate) content: u64,
    pub(crate) blocks: u64,
}

/// Passes `stream` if it is one whole frame without dictionary that states its size and whose blocks can reach it.
///
/// Nothing is decoded: a frame that passes can still be corrupt inside its blocks.
pub(crate) fn check(stream: Input<'_>, part: Part) -> Result<Outline, Error> {
    let fault = |fault, offset| Error::new(ErrorKind::Frame(fault), part).at(offset);
    let start = stream.offset();
    let mut input = stream;
    let header = header(&mut input).map_err(|f| fault(f, start))?;
    let content = header.content.ok_or_else(|| fault(FrameFault::NoContentSize, start))?;
    if header.dictionary != 0 {
        return Err(fault(FrameFault::Dictionary { id: header.dictionary }, start));
    }
    let mut blocks = Blocks::new(input, &header);
    let (mut reach, mut n) = (0u64, 0);
    let mut at = input.offset();
    for block in blocks.by_ref() {
        let block = block.map_err(|f| fault(f, at))?;
        at = block.span.end;
        n += 1;
        reach += if block.kind == BlockKind::Compressed { header.block_max() } else { block.size };
    }
    if content > reach {
        return Err(fault(FrameFault::Unreachable { found: content, max: reach }, start));
    }
    let mut rest = blocks.rest();
    if header.checksum {
        take::<4>(&mut rest).map_err(|f| fault(f, at))?;
    }
    match rest.bytes().len() as u64 {
        0 => Ok(Outline { content, blocks: n }),
        bytes => Err(fault(FrameFault::Trailing { bytes }, rest.offset())),
    }
}

/// The size that a frame states; 0 where it states none.
pub(crate) fn content_size(stream: Input<'_>) -> u64 {
    let mut input = stream;
    header(&mut input).ok().and_then(|header| header.content).unwrap_or(0)
}

/// A copy of `frame` in `copy` with its window cut to what libzstd takes, where the header asks for more.
///
/// A decode in one shot needs no window, and blocks of such frames are bounded by 128 KiB whatever it is.
pub(crate) fn narrowed<'a>(frame: &[u8], copy: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (&descriptor, &window) = (frame.get(4)?, frame.get(5)?);
    if descriptor & 0x20 != 0 || 10 + (window >> 3) <= WINDOW_LOG_MAX {
        return None;
    }
    copy.clear();
    copy.extend_from_slice(frame);
    copy[5] = (WINDOW_LOG_MAX - 10) << 3;
    Some(copy)
}

fn take<const N: usize>(input: &mut Input<'_>) -> Result<[u8; N], FrameFault> {
    input.array(Part::Object).map_err(|_| FrameFault::Truncated)
}
