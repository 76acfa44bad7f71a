//! Variable-length integers: all that end in 64 bytes, their bytes put into words by one permutation for each register.

// Masked loads and stores.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::VarintsSeen;
use crate::blocks::{VARINTS, by_bytes, by_ends, by_words, first_bits};
use crate::scalar::bits::ones;
use crate::scalar::varint::{LAST_MARKED, all, low};

/// The values in fewer bytes take as long one after the other.
const FEW: usize = 4;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn varints_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u32::<0>(block, ends, out);
    by_ends::<0, 32, _>(src, out, |block| !tops(block), block, (FEW, |src, out| Some(short_u32::<0>(src, out))), low)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn varints_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u64::<0>(block, ends, out);
    by_ends::<0, 64, _>(src, out, |block| !tops(block), block, (FEW, |src, out| Some(short_u64::<0>(src, out))), all)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn vbytes_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u32::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 32, _>(
        src,
        out,
        |block| tops(block),
        block,
        (FEW, |src, out| Some(short_u32::<LAST_MARKED>(src, out))),
        low,
    )
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn vbytes_u64(src: &[u8], out: &mut [u64]) -> VarintsSeen {
    let block = |block: &_, ends, out: &mut _| block_u64::<1>(block, ends, out);
    by_ends::<LAST_MARKED, 64, _>(
        src,
        out,
        |block| tops(block),
        block,
        (FEW, |src, out| Some(short_u64::<LAST_MARKED>(src, out))),
        all,
    )
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn bytes(block: &[u8; VARINTS]) -> __m512i {
    must_cast(block.as_chunks::<64>().0[0])
}

/// Bit 7 of each of the first 64 bytes.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn tops(block: &[u8; VARINTS]) -> u64 {
    _mm512_movepi8_mask(bytes(block))
}

/// The next bytes, 64 at most, and which of them are the last of a value that there is room for.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn few<const FLIP: u8>(src: &[u8], room: usize) -> (__m512i, u64) {
    let there = ones(u32::try_from(src.len()).unwrap_or(64));
    // SAFETY: bytes whose bits are clear, which are those behind the end of `src`, are not touched. Ten values with this
    // and the stores below: 7 ns; by way of copies 25.
    let bytes = unsafe { _mm512_maskz_loadu_epi8(there, src.as_ptr().cast()) };
    let tops = _mm512_movepi8_mask(bytes);
    (bytes, first_bits(if FLIP == 0 { !tops } else { tops } & there, room))
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn short_u32<const FLIP: u8>(src: &[u8], out: &mut [u32]) -> (usize, usize) {
    let (bytes, ends) = few::<FLIP>(src, out.len());
    let (blocks, rest) = out.as_chunks_mut::<16>();
    let [low, high, ..] = ones(u32::try_from(rest.len()).unwrap_or(16)).to_le_bytes();
    let (mut blocks, there) = (blocks.iter_mut(), u16::from_le_bytes([low, high]));
    let done = words_u32(bytes, ends, |words| match blocks.next() {
        Some(block) => *block = must_cast(words),
        // SAFETY: words whose bits are clear, which are those behind the end of `rest`, are not touched. Measured with `few`.
        None => unsafe { _mm512_mask_storeu_epi32(rest.as_mut_ptr().cast(), there, words) },
    });
    done.unwrap_or((0, 0))
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn short_u64<const FLIP: u8>(src: &[u8], out: &mut [u64]) -> (usize, usize) {
    let (bytes, ends) = few::<FLIP>(src, out.len());
    let (blocks, rest) = out.as_chunks_mut::<8>();
    let (mut blocks, there) = (blocks.iter_mut(), ones(u32::try_from(rest.len()).unwrap_or(8)).to_le_bytes()[0]);
    let done = words_u64(bytes, ends, |words| match blocks.next() {
        Some(block) => *block = must_cast(words),
        // SAFETY: as in `short_u32`. Measured with `few`.
        None => unsafe { _mm512_mask_storeu_epi64(rest.as_mut_ptr().cast(), there, words) },
    });
    done.unwrap_or((0, 0))
}

/// Where the values that end at `ends` have their first and their last bytes, in the order of the values.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn bounds(ends: u64) -> (__m512i, __m512i) {
    let places = must_cast(PLACES);
    (_mm512_maskz_compress_epi8(ends << 1 | 1, places), _mm512_maskz_compress_epi8(ends, places))
}

const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut i = 0u8;
    while i < 64 {
        places[i as usize] = i;
        i += 1;
    }
    places
};

/// The groups in every four bytes, put together; what the values' bytes have in bit 7 is cleared.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn fours(bytes: __m512i) -> __m512i {
    let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001u16.cast_signed()), bytes);
    _mm512_madd_epi16(pairs, _mm512_set1_epi32(1 | 1 << (16 + 14)))
}

/// One copy for each caller, into which it is inlined: called, it was half as quick again.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn block_u32<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u32; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, low);
    }
    let mut blocks = out.as_chunks_mut::<16>().0.iter_mut();
    let store = |words| {
        if let Some(block) = blocks.next() {
            *block = must_cast(words);
        }
    };
    match words_u32(bytes(block), ends, store) {
        Some(done) => done,
        None => by_words::<32, _>(block, ends, out, |word| groups(word), low),
    }
}

/// The values that end at `ends`, 16 at a time, unless one of them has more than 32 bits.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn words_u32(bytes: __m512i, ends: u64, mut store: impl FnMut(__m512i)) -> Option<(usize, usize)> {
    let end = 64 - ends.leading_zeros();
    let more = !ends & _bzhi_u64(u64::MAX, end);
    let pairs = more & more >> 1;
    let long = pairs & pairs >> 2;
    // Somewhere is a value of six bytes or more.
    if long & more >> 4 != 0 {
        return None;
    }
    let values = ends.count_ones() as usize;
    let (mut firsts, mut lasts) = bounds(ends);
    let block7 = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7f));
    // Byte `i` of a register is byte `i % 4` of value `i / 4`.
    let spread = must_cast(SPREAD_FOUR);
    let step = _mm512_set1_epi32(0x0302_0100);
    let mut wrong = 0;
    for _ in 0..values.div_ceil(16) {
        let first = _mm512_permutexvar_epi8(spread, firsts);
        let last = _mm512_permutexvar_epi8(spread, lasts);
        let place = _mm512_add_epi8(first, step);
        let inside = _mm512_cmple_epu8_mask(place, last);
        let mut words = fours(_mm512_maskz_permutexvar_epi8(inside, place, block7));
        if long != 0 {
            // The fifth bytes.
            let five = _mm512_cmpeq_epi8_mask(_mm512_sub_epi8(last, first), _mm512_set1_epi8(4));
            let fifth = _mm512_maskz_permutexvar_epi8(five & 0x1111_1111_1111_1111, last, block7);
            wrong |= _mm512_cmpgt_epu32_mask(fifth, _mm512_set1_epi32(15));
            words = _mm512_or_si512(words, _mm512_slli_epi32::<28>(fifth));
        }
        store(words);
        (firsts, lasts) = (_mm512_alignr_epi64::<2>(firsts, firsts), _mm512_alignr_epi64::<2>(lasts, lasts));
    }
    if wrong != 0 {
        return None;
    }
    Some((values, end as usize))
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn block_u64<const CALLER: u8>(block: &[u8; VARINTS], ends: u64, out: &mut [u64; VARINTS]) -> (usize, usize) {
    if ends == u64::MAX {
        return by_bytes(block, out, all);
    }
    let mut blocks = out.as_chunks_mut::<8>().0.iter_mut();
    let store = |words| {
        if let Some(block) = blocks.next() {
            *block = must_cast(words);
        }
    };
    match words_u64(bytes(block), ends, store) {
        Some(done) => done,
        None => by_words::<64, _>(block, ends, out, |word| groups(word), all),
    }
}

/// The values that end at `ends`, eight at a time, unless one of them has more than eight bytes.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn words_u64(bytes: __m512i, ends: u64, mut store: impl FnMut(__m512i)) -> Option<(usize, usize)> {
    let end = 64 - ends.leading_zeros();
    let more = !ends & _bzhi_u64(u64::MAX, end);
    let pairs = more & more >> 1;
    let fours_of = pairs & pairs >> 2;
    // Somewhere is a value of nine bytes or more.
    if fours_of & fours_of >> 4 != 0 {
        return None;
    }
    let values = ends.count_ones() as usize;
    let (mut firsts, mut lasts) = bounds(ends);
    let block7 = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7f));
    let spread = must_cast(SPREAD_EIGHT);
    let step = _mm512_set1_epi64(0x0706_0504_0302_0100);
    let low = _mm512_set1_epi64(0xfff_ffff);
    for _ in 0..values.div_ceil(8) {
        let place = _mm512_add_epi8(_mm512_permutexvar_epi8(spread, firsts), step);
        let inside = _mm512_cmple_epu8_mask(place, _mm512_permutexvar_epi8(spread, lasts));
        let halves = fours(_mm512_maskz_permutexvar_epi8(inside, place, block7));
        // 28 bits in each half, the upper one's moved down by 4.
        store(_mm512_ternarylogic_epi64::<0xca>(low, halves, _mm512_srli_epi64::<4>(halves)));
        (firsts, lasts) = (_mm512_alignr_epi64::<1>(firsts, firsts), _mm512_alignr_epi64::<1>(lasts, lasts));
    }
    Some((values, end as usize))
}

/// The groups of a word, put together.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn groups(word: u64) -> u64 {
    _pext_u64(word, 0x7f7f_7f7f_7f7f_7f7f)
}

/// Each byte four times, each eight times.
const SPREAD_FOUR: [u8; 64] = {
    let mut spread = PLACES;
    let mut i = 0;
    while i < 64 {
        spread[i] = PLACES[i / 4];
        i += 1;
    }
    spread
};
const SPREAD_EIGHT: [u8; 64] = {
    let mut spread = PLACES;
    let mut i = 0;
    while i < 64 {
        spread[i] = PLACES[i / 8];
        i += 1;
    }
    spread
};
