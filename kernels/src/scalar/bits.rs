//! Packed bits to words. Value `i` of `width` bits starts at bit `i * width`; bit 0 is the lowest of the first byte.

use core::ops::{BitAnd, BitOr, Shl, Shr};

/// Bytes that `n` values of `width` bits take.
#[inline(always)]
pub const fn packed_len(n: usize, width: usize) -> usize {
    // In eights, so that no count of values that fits memory overflows.
    n / 8 * width + (n % 8 * width).div_ceil(8)
}

/// `width` ones.
#[inline(always)]
pub(crate) const fn ones(width: u32) -> u64 {
    if width < 64 { (1 << width) - 1 } else { u64::MAX }
}

/// Values of up to 8 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 8 bits are set")]
pub fn unpack_u8(packed: &[u8], width: u32, out: &mut [u8]) {
    unpack::<8, _>(packed, width, out, |value| value as u8);
}

/// Values of up to 16 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 16 bits are set")]
pub fn unpack_u16(packed: &[u8], width: u32, out: &mut [u16]) {
    unpack::<8, _>(packed, width, out, |value| value as u16);
}

/// Values of up to 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are set")]
pub fn unpack_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    unpack::<8, _>(packed, width, out, |value| value as u32);
}

/// Values of up to 64 bits.
#[inline(always)]
pub fn unpack_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    // Eight bytes from the one on where a value starts hold 57 of its bits at least.
    if width <= 57 {
        unpack::<8, _>(packed, width, out, |value| value)
    } else {
        unpack::<16, _>(packed, width, out, |value| value)
    }
}

/// Reads `WINDOW` bytes (8 or 16) for each value.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the window is cut to 64 bits on purpose")]
fn unpack<const WINDOW: usize, T>(packed: &[u8], width: u32, out: &mut [T], cut: impl Fn(u64) -> T) {
    let (width, ones) = (width as usize, ones(width));
    let value = |from: &[u8], i: usize| {
        let bit = i * width;
        let bytes = &from[bit / 8..][..WINDOW];
        let shift = bit % 8;
        let window = if WINDOW == 8 {
            u64::from_le_bytes(*bytes.as_chunks().0.first().unwrap_or(&[0; 8])) >> shift
        } else {
            (u128::from_le_bytes(*bytes.as_chunks().0.first().unwrap_or(&[0; 16])) >> shift) as u64
        };
        cut(window & ones)
    };
    // Eights of values start at whole bytes; those whose windows end inside the slice come first.
    let inside = packed.len().checked_sub(WINDOW + width).map_or(0, |spare| spare / width.max(1) + 1);
    let inside = if width == 0 { 0 } else { inside * 8 };
    let (first, rest) = out.split_at_mut(inside.min(out.len()));
    for (i, out) in first.iter_mut().enumerate() {
        *out = value(packed, i);
    }
    let mut at = first.len() / 8 * width;
    for out in rest.chunks_mut(8) {
        let mut eight = [0; 64 + 16];
        let bytes = packed_len(out.len(), width);
        eight[..bytes].copy_from_slice(&packed[at..at + bytes]);
        at += bytes;
        for (i, out) in out.iter_mut().enumerate() {
            *out = value(&eight, i);
        }
    }
}

/// A word of a lane.
pub(crate) trait Word:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Shl<u32, Output = Self> + Shr<u32, Output = Self>
{
    const BITS: u32;
    const BYTES: usize = Self::BITS as usize / 8;
    fn from_le(bytes: &[u8]) -> Self;
    fn ones(width: u32) -> Self;
}

impl Word for u32 {
    const BITS: u32 = 32;
    #[inline(always)]
    fn from_le(bytes: &[u8]) -> u32 {
        u32::from_le_bytes(bytes.as_chunks().0[0])
    }
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 ones are asked for")]
    fn ones(width: u32) -> u32 {
        ones(width) as u32
    }
}

impl Word for u64 {
    const BITS: u32 = 64;
    #[inline(always)]
    fn from_le(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.as_chunks().0[0])
    }
    #[inline(always)]
    fn ones(width: u32) -> u64 {
        ones(width)
    }
}

/// Groups of 128 values over four lanes of 32-bit words.
#[inline(always)]
pub fn unpack_lanes_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    lanes::<4, _>(packed, width, out);
}

/// Groups of 128 values over two lanes of 64-bit words.
#[inline(always)]
pub fn unpack_lanes_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    lanes::<2, _>(packed, width, out);
}

#[inline(always)]
fn lanes<const LANES: usize, T: Word>(packed: &[u8], width: u32, out: &mut [T]) {
    let (groups, _) = out.as_chunks_mut::<128>();
    let (last, ones) = (width.saturating_sub(1), T::ones(width));
    if width == 0 {
        return groups.as_flattened_mut().fill(ones);
    }
    // `width` vectors of 16 bytes for each group, each one word of every lane.
    for (vectors, out) in packed.as_chunks::<16>().0.chunks_exact(width as usize).zip(groups) {
        for (row, out) in (0u32..).zip(out.as_chunks_mut::<LANES>().0) {
            let bit = row * width;
            let (word, shift) = (bit / T::BITS, bit % T::BITS);
            let low = &vectors[word as usize];
            // Where the value ends in the word before, what this one adds is cut off below.
            let high = &vectors[last.min(word + 1) as usize];
            for (lane, out) in out.iter_mut().enumerate() {
                let (low, high) = (T::from_le(&low[lane * T::BYTES..]), T::from_le(&high[lane * T::BYTES..]));
                *out = (low >> shift | (high << 1) << (T::BITS - 1 - shift)) & ones;
            }
        }
    }
}
