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
fn unpack<const WINDOW: usize, T>(packed: &[u8], width: u32, out: &mut [T], cut: impl Fn(u64) -> T) {
    let (width, ones) = (width as usize, ones(width));
    // Eights of values start at whole bytes: where each of them does, and in which bit of that byte.
    let places: [(usize, usize); 8] = core::array::from_fn(|i| (i * width / 8, i * width % 8));
    let mut packed = packed;
    for out in out.chunks_mut(8) {
        let mut end = [0; 64 + 16];
        let from = match packed.get(..width + WINDOW) {
            Some(from) => from,
            None => {
                let bytes = packed.len().min(width);
                end[..bytes].copy_from_slice(&packed[..bytes]);
                &end[..width + WINDOW]
            }
        };
        for (out, (byte, shift)) in out.iter_mut().zip(places) {
            *out = cut(window::<WINDOW>(&from[byte..], shift) & ones);
        }
        packed = packed.get(width..).unwrap_or(&[]);
    }
}

/// The 64 bits from bit `shift` on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the window is cut to 64 bits on purpose")]
fn window<const WINDOW: usize>(bytes: &[u8], shift: usize) -> u64 {
    if WINDOW == 8 {
        u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8])) >> shift
    } else {
        (u128::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 16])) >> shift) as u64
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
