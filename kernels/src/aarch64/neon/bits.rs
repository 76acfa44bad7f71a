//! Packed bits to words: a table look-up brings the bytes where a value lies to its word, a shift its bits down.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::blocks::by_windows;
use crate::scalar;
use crate::scalar::bits::ones;

#[target_feature(enable = "neon")]
pub(crate) fn unpack_u8(packed: &[u8], width: u32, out: &mut [u8]) {
    let bit = vmulq_n_u16(must_cast([0u16, 1, 2, 3, 4, 5, 6, 7]), low_16(width));
    let byte = vshrq_n_u16::<3>(bit);
    let from = vaddq_u16(vorrq_u16(byte, vshlq_n_u16::<8>(byte)), vdupq_n_u16(0x100));
    let down = vnegq_s16(vreinterpretq_s16_u16(vandq_u16(bit, vdupq_n_u16(7))));
    let ones = vdupq_n_u16(low_16(u32::from(must_cast::<u64, [u8; 8]>(ones(width))[0])));
    by_windows::<16, 8, _>(packed, width as usize, out, |bits| {
        let pairs = vqtbl1q_u8(must_cast(*bits), vreinterpretq_u8_u16(from));
        must_cast(vmovn_u16(vandq_u16(vshlq_u16(vreinterpretq_u16_u8(pairs), down), ones)))
    });
}

#[target_feature(enable = "neon")]
pub(crate) fn unpack_u16(packed: &[u8], width: u32, out: &mut [u16]) {
    let fours = fours(width);
    by_windows::<32, 8, _>(packed, width as usize, out, |bits| {
        let [a, b] = words_by_fours(fours, bits);
        must_cast(vmovn_high_u32(vmovn_u32(a), b))
    });
}

#[target_feature(enable = "neon")]
pub(crate) fn unpack_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    if width <= FOURS {
        let fours = fours(width);
        by_windows::<32, 8, _>(packed, width as usize, out, |bits| must_cast(words_by_fours(fours, bits)));
    } else {
        let pairs = pairs(width);
        by_windows::<64, 8, _>(packed, width as usize, out, |bits| must_cast(narrowed(words_by_pairs(pairs, bits))));
    }
}

#[target_feature(enable = "neon")]
pub(crate) fn unpack_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    if width <= PAIRS {
        let pairs = pairs(width);
        by_windows::<64, 8, _>(packed, width as usize, out, |bits| must_cast(words_by_pairs(pairs, bits)));
    } else {
        scalar::bits::unpack_u64(packed, width, out);
    }
}

/// The largest width of which four bytes hold a value wherever it starts in the first.
pub(super) const FOURS: u32 = 25;

/// The largest width of which eight bytes hold a value wherever it starts in the first.
pub(super) const PAIRS: u32 = 57;

#[target_feature(enable = "neon")]
#[inline]
fn low_16(value: u32) -> u16 {
    must_cast::<u32, [u16; 2]>(value)[usize::from(cfg!(target_endian = "big"))]
}

/// How eight words of up to 25 bits are taken out of twice 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Fours {
    /// Where the second 16 bytes are.
    second: usize,
    /// For each value the four bytes from that one on where it starts.
    from: [uint8x16_t; 2],
    /// The bit of the first byte where it starts, negative.
    down: [int32x4_t; 2],
    ones: uint32x4_t,
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn fours(width: u32) -> Fours {
    let bit = vmulq_n_u32(must_cast([0u32, 1, 2, 3]), width);
    // An odd width's fifth value starts in the middle of a byte.
    let bits = [bit, vaddq_u32(bit, vdupq_n_u32(4 * (width % 2)))];
    Fours {
        second: width as usize / 2,
        from: bits.map(|bit| {
            let byte = vmulq_n_u32(vshrq_n_u32::<3>(bit), 0x0101_0101);
            vreinterpretq_u8_u32(vaddq_u32(byte, vdupq_n_u32(0x0302_0100)))
        }),
        down: bits.map(|bit| vnegq_s32(vreinterpretq_s32_u32(vandq_u32(bit, vdupq_n_u32(7))))),
        ones: vreinterpretq_u32_u64(vdupq_n_u64(ones(width) << 32 | ones(width))),
    }
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn words_by_fours(fours: Fours, bits: &[u8; 32]) -> [uint32x4_t; 2] {
    let second = bits[fours.second.min(16)..].as_chunks::<16>().0[0];
    let first = bits.as_chunks::<16>().0[0];
    let mut words = [must_cast(first), must_cast(second)];
    for (word, (from, down)) in words.iter_mut().zip(fours.from.into_iter().zip(fours.down)) {
        let bytes = vqtbl1q_u8(vreinterpretq_u8_u32(*word), from);
        *word = vandq_u32(vshlq_u32(vreinterpretq_u32_u8(bytes), down), fours.ones);
    }
    words
}

/// How eight words of up to 57 bits are taken out of four times 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    /// Where each 16 bytes are.
    at: [usize; 4],
    /// For each value the eight bytes from that one on where it starts.
    from: [uint8x16_t; 4],
    /// The bit of the first byte where it starts, negative.
    down: [int64x2_t; 4],
    ones: uint64x2_t,
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn pairs(width: u32) -> Pairs {
    let second = [0, u64::from(width)];
    let starts = [0, 2 * width, 4 * width, 6 * width];
    let bits = starts.map(|start| vaddq_u64(must_cast(second), vdupq_n_u64(u64::from(start % 8))));
    Pairs {
        at: starts.map(|start| start as usize / 8),
        from: bits.map(|bit| {
            let byte = vmulq_n_u32(vreinterpretq_u32_u64(vshrq_n_u64::<3>(bit)), 0x0101_0101);
            let byte = vtrn1q_u32(byte, byte);
            vaddq_u8(vreinterpretq_u8_u32(byte), must_cast([0u8, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]))
        }),
        down: bits.map(|bit| vnegq_s64(vreinterpretq_s64_u64(vandq_u64(bit, vdupq_n_u64(7))))),
        ones: vdupq_n_u64(ones(width)),
    }
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn words_by_pairs(pairs: Pairs, bits: &[u8; 64]) -> [uint64x2_t; 4] {
    let mut words = [vdupq_n_u64(0); 4];
    for (i, word) in words.iter_mut().enumerate() {
        let bytes = must_cast(bits[pairs.at[i].min(48)..].as_chunks::<16>().0[0]);
        let bytes = vreinterpretq_u64_u8(vqtbl1q_u8(bytes, pairs.from[i]));
        *word = vandq_u64(vshlq_u64(bytes, pairs.down[i]), pairs.ones);
    }
    words
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn narrowed([a, b, c, d]: [uint64x2_t; 4]) -> [uint32x4_t; 2] {
    [vmovn_high_u64(vmovn_u64(a), b), vmovn_high_u64(vmovn_u64(c), d)]
}
