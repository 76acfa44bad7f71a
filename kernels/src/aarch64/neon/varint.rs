//! Variable-length integers: all that end in eight bytes at once.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::VarintsSeen;
use crate::blocks::{PLACES, VARINTS, by_bytes, by_ends, by_words, few, four_at_most};
use crate::scalar::varint::{LAST_MARKED, all, compact, low};

#[target_feature(enable = "neon")]
pub(crate) fn varints_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    by_ends::<0, 32, _>(
        src,
        out,
        |block| !tops(block),
        |block, ends, out| block_u32::<0>(block, ends, out),
        (few(src.len(), out.len()), |_, _| None),
        low,
    )
}

#[target_feature(enable = "neon")]
pub(crate) fn varints_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    by_ends::<0, 64, _>(
        src,
        out,
        |block| !tops(block),
        |block, ends, out| block_u64::<0>(block, ends, out),
        (few(src.len(), out.len()), |_, _| None),
        all,
    )
}

#[target_feature(enable = "neon")]
pub(crate) fn vbytes_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u32::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 32, _>(src, out, |block| tops(block), block, (few(src.len(), out.len()), |_, _| None), low)
}

#[target_feature(enable = "neon")]
pub(crate) fn vbytes_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u64::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 64, _>(src, out, |block| tops(block), block, (few(src.len(), out.len()), |_, _| None), all)
}

/// Bit 7 of each of the first 64 bytes.
#[target_feature(enable = "neon")]
#[inline]
fn tops(block: &[u8; VARINTS]) -> u64 {
    let bit = must_cast([1u8, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128]);
    let bytes = block.as_chunks::<16>().0;
    let [a, b, c, d] = [bytes[0], bytes[1], bytes[2], bytes[3]].map(|bytes| vandq_u8(vcltzq_s8(must_cast(bytes)), bit));
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

/// One copy for each caller, into which it is inlined.
#[target_feature(enable = "neon")]
#[inline]
fn block_u32<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u32; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, low);
    }
    if !four_at_most(ends) {
        return by_words::<32, _>(block, ends, out, compact, low);
    }
    eights(block, ends, |at, values| {
        if let Some(out) = out.get_mut(at..at + 8) {
            out.copy_from_slice(&must_cast::<_, [u32; 8]>(values));
        }
    })
}

#[target_feature(enable = "neon")]
#[inline]
fn block_u64<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u64; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, all);
    }
    if !four_at_most(ends) {
        return by_words::<64, _>(block, ends, out, compact, all);
    }
    eights(block, ends, |at, values| {
        if let Some(out) = out.get_mut(at..at + 8) {
            let wide = values.map(|four| [vmovl_u32(vget_low_u32(four)), vmovl_high_u32(four)]);
            out.copy_from_slice(&must_cast::<_, [u64; 8]>(wide));
        }
    })
}

/// The values, none of more than four bytes, that end in the next eight bytes, over and over.
#[target_feature(enable = "neon")]
#[inline]
fn eights(block: &[u8; VARINTS], ends: u64, mut store: impl FnMut(usize, [uint32x4_t; 2])) -> (usize, usize) {
    let (mut values, mut at, end) = (0, 0, 64 - ends.leading_zeros());
    while at < end {
        let [here, ..] = (ends >> at).to_le_bytes();
        let word = block[at as usize..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let bytes = must_cast([word & 0x7f7f_7f7f_7f7f_7f7f, 0]);
        let places: [uint8x16_t; 2] = must_cast(PLACES[usize::from(here)]);
        store(values, places.map(|places| groups(vqtbl1q_u8(bytes, places))));
        values += here.count_ones() as usize;
        at += 32 - u32::from(here).leading_zeros();
    }
    (values, at as usize)
}

/// The groups in every four bytes, put together.
#[target_feature(enable = "neon")]
#[inline]
fn groups(bytes: uint8x16_t) -> uint32x4_t {
    let pairs = vreinterpretq_u16_u8(bytes);
    let pairs = vreinterpretq_u32_u16(vsliq_n_u16::<7>(pairs, vshrq_n_u16::<8>(pairs)));
    vsliq_n_u32::<14>(pairs, vshrq_n_u32::<16>(pairs))
}
