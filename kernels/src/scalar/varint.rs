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

/// Most values are of few bytes: eight of one byte at once, others by fours and pairs out of a word, so that the place of the
/// next word does not wait for each length.
#[inline(always)]
pub(crate) fn values<const FLIP: u8, const BITS: u32, T>(
    src: &[u8],
    out: &mut [T],
    cut: impl Fn(u64) -> T,
) -> VarintsSeen {
    let mut seen = VarintsSeen::default();
    // Of 32 bits; five bytes hold 35.
    let fits = |value: u64| BITS == 64 || value >> 32 == 0;
    let longest = if BITS == 32 { 5 } else { 8 };
    while seen.values < out.len() {
        while let (Some(bytes), true) = (first(&src[seen.bytes..]), seen.values < out.len()) {
            let word = u64::from_le_bytes(bytes) ^ u64::from_le_bytes([FLIP; 8]);
            let room = &mut out[seen.values..];
            let end = !word & TOPS;
            if let (TOPS, Some(room)) = (end, room.first_chunk_mut::<8>()) {
                *room = word.to_le_bytes().map(|byte| cut(byte.into()));
                (seen.values, seen.bytes) = (seen.values + 8, seen.bytes + 8);
                continue;
            }
            let second = without_lowest(end);
            let third = without_lowest(second);
            let fourth = without_lowest(third);
            let value = compact(word & up_to(end) & !TOPS);
            let behind = |last: u64, end| compact((word & up_to(end) & !up_to(last) & !TOPS) >> (bytes_to(last) * 8));
            if let (true, Some(room)) = (fourth != 0, room.first_chunk_mut::<4>()) {
                // At most five bytes each.
                let values = [value, behind(end, second), behind(second, third), behind(third, fourth)];
                if fits(values[0] | values[1] | values[2] | values[3]) {
                    *room = values.map(&cut);
                    (seen.values, seen.bytes) = (seen.values + 4, seen.bytes + bytes_to(fourth));
                    continue;
                }
            }
            let length = bytes_to(end);
            if let (true, Some(room)) = (second != 0, room.first_chunk_mut::<2>()) {
                let (values, both) = ([value, behind(end, second)], bytes_to(second));
                if length <= longest && both - length <= longest && fits(values[0] | values[1]) {
                    *room = values.map(&cut);
                    (seen.values, seen.bytes) = (seen.values + 2, seen.bytes + both);
                    continue;
                }
            }
            let (Some(room), true) = (room.first_mut(), length <= longest && fits(value)) else {
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
fn without_lowest(bits: u64) -> u64 {
    bits & bits.wrapping_sub(1)
}

/// The bits up to the lowest one that is set, with it.
#[inline(always)]
fn up_to(bits: u64) -> u64 {
    bits ^ bits.wrapping_sub(1)
}

/// The bytes up to the one with the lowest bit that is set, with it.
#[inline(always)]
fn bytes_to(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8 + 1
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
