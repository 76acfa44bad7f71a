//! Variable-length integers: all that end in eight bytes at once.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::VarintsSeen;
use crate::blocks::{PLACES, VARINTS, by_bytes, by_ends, by_words, few, four_at_most};
use crate::scalar::varint::{LAST_MARKED, all, low};

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
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

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
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

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn vbytes_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u32::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 32, _>(src, out, |block| tops(block), block, (few(src.len(), out.len()), |_, _| None), low)
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn vbytes_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u64::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 64, _>(src, out, |block| tops(block), block, (few(src.len(), out.len()), |_, _| None), all)
}

/// Bit 7 of each of the first 64 bytes.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn tops(block: &[u8; VARINTS]) -> u64 {
    let halves = block.as_chunks::<32>().0;
    let [low, high] = [halves[0], halves[1]].map(|half| _mm256_movemask_epi8(must_cast(half)).cast_unsigned());
    u64::from(low) | u64::from(high) << 32
}

/// One copy for each caller, into which it is inlined: called, it was half as quick again.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn block_u32<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u32; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, low);
    }
    if !four_at_most(ends) {
        return by_words::<32, _>(block, ends, out, |word| groups(word), low);
    }
    eights(block, ends, |at, values| {
        if let Some(out) = out.get_mut(at..at + 8) {
            out.copy_from_slice(&must_cast::<_, [u32; 8]>(values));
        }
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn block_u64<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u64; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, all);
    }
    if !four_at_most(ends) {
        return by_words::<64, _>(block, ends, out, |word| groups(word), all);
    }
    eights(block, ends, |at, values| {
        if let Some(out) = out.get_mut(at..at + 8) {
            let halves = [_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values)];
            out.copy_from_slice(&must_cast::<_, [u64; 8]>(halves.map(|half| _mm256_cvtepu32_epi64(half))));
        }
    })
}

/// The values, none of more than four bytes, that end in the next eight bytes, over and over.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn eights(block: &[u8; VARINTS], ends: u64, mut store: impl FnMut(usize, __m256i)) -> (usize, usize) {
    let (mut values, mut at, end) = (0, 0, 64 - ends.leading_zeros());
    while at < end {
        let [here, ..] = (ends >> at).to_le_bytes();
        let word = block[at as usize..].first_chunk().map_or(0, |word| i64::from_le_bytes(*word));
        let bytes = _mm256_shuffle_epi8(_mm256_set1_epi64x(word), must_cast(PLACES[usize::from(here)]));
        let bytes = _mm256_and_si256(bytes, _mm256_set1_epi8(0x7f));
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi16(0x8001u16.cast_signed()), bytes);
        store(values, _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 | 1 << (16 + 14))));
        values += here.count_ones() as usize;
        at += 32 - u32::from(here).leading_zeros();
    }
    (values, at as usize)
}

/// The groups of a word, put together.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(crate) fn groups(word: u64) -> u64 {
    _pext_u64(word, 0x7f7f_7f7f_7f7f_7f7f)
}
