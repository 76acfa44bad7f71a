//! Variable-length integers: groups of 7 bits, lowest first. Bit 7 says whether another byte follows.

use crate::VarintsSeen;

/// Bit 7 of every byte.
const TOPS: u64 = 0x8080_8080_8080_8080;

/// What turns bytes whose bit 7 marks the last of a value into bytes whose bit 7 marks all but the last.
pub(crate) const LAST_MARKED: u8 = 0x80;

/// LEB128, up to 32 bits.
#[inline(always)]
pub fn varints_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    values::<0, 32, _>(src, out, low)
}

/// LEB128, up to 64 bits.
#[inline(always)]
pub fn varints_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    values::<0, 64, _>(src, out, all)
}

/// Bit 7 set in the last byte, up to 32 bits.
#[inline(always)]
pub fn vbytes_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    values::<LAST_MARKED, 32, _>(src, out, low)
}

/// Bit 7 set in the last byte, up to 64 bits.
#[inline(always)]
pub fn vbytes_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    values::<LAST_MARKED, 64, _>(src, out, all)
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are set")]
pub(crate) fn low(value: u64) -> u32 {
    value as u32
}

#[inline(always)]
pub(crate) fn all(value: u64) -> u64 {
    value
}

/// Most values are of few bytes: eight of one byte at once, others out of a word each.
#[inline(always)]
pub(crate) fn values<const FLIP: u8, const BITS: u32, T>(
    src: &[u8],
    out: &mut [T],
    cut: impl Fn(u64) -> T,
) -> VarintsSeen {
    let mut seen = VarintsSeen::default();
    while seen.values < out.len() {
        while let (Some(bytes), Some(room)) = (first(&src[seen.bytes..]), out.get_mut(seen.values..)) {
            let word = u64::from_le_bytes(bytes) ^ u64::from_le_bytes([FLIP; 8]);
            let ends = !word & TOPS;
            if let (TOPS, Some(room)) = (ends, room.first_chunk_mut::<8>()) {
                *room = word.to_le_bytes().map(|byte| cut(byte.into()));
                (seen.values, seen.bytes) = (seen.values + 8, seen.bytes + 8);
                continue;
            }
            let value = compact(word & (ends ^ ends.wrapping_sub(1)) & !TOPS);
            let longest = if BITS == 32 { 5 } else { 8 };
            let length = ends.trailing_zeros() as usize / 8 + 1;
            let (Some(room), true) = (room.first_mut(), length <= longest && (BITS == 64 || value >> 32 == 0)) else {
                break;
            };
            *room = cut(value);
            (seen.values, seen.bytes) = (seen.values + 1, seen.bytes + length);
        }
        // Near the end, long, or none.
        let (Some(room), Some((value, length))) = (out.get_mut(seen.values), one::<FLIP, BITS>(&src[seen.bytes..]))
        else {
            break;
        };
        *room = cut(value);
        (seen.values, seen.bytes) = (seen.values + 1, seen.bytes + length);
    }
    seen
}

#[inline(always)]
fn first(bytes: &[u8]) -> Option<[u8; 8]> {
    bytes.first_chunk().copied()
}

/// The groups of 7 bits in the bytes of a word, put together.
#[inline(always)]
pub(crate) fn compact(word: u64) -> u64 {
    let pairs = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0xfff_ffff | (fours >> 32) << 28
}

/// The first value and its length, byte by byte.
#[inline(always)]
pub(crate) fn one<const FLIP: u8, const BITS: u32>(src: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (i, &byte) in src.iter().take(BITS.div_ceil(7) as usize).enumerate() {
        let byte = byte ^ FLIP;
        let group = u64::from(byte & 0x7f);
        value |= group << (7 * i);
        // Of the last group of 64 bits only one bit is left.
        if BITS == 64 && i == 9 && group > 1 {
            return None;
        }
        if byte < 0x80 {
            return (BITS == 64 || value >> 32 == 0).then_some((value, i + 1));
        }
    }
    None
}
