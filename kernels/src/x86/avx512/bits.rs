//! Packed bits to words: a register holds the bits of as many values as another holds words.

// Masked loads and stores take raw pointers.
#![allow(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "widths are at most 64, lengths that are cast below 64")]

use core::arch::x86_64::*;

use bytemuck::{NoUninit, Pod, must_cast};

use crate::scalar::bits::ones;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn unpack_u8(packed: &[u8], width: u32, out: &mut [u8]) {
    // Eight values are `width` bytes: they go to a word of their own, from which each byte takes its bits.
    let words = must_cast([[0u16; 4], [1; 4], [2; 4], [3; 4], [4; 4], [5; 4], [6; 4], [7; 4]]);
    let bytes = _mm512_set1_epi64(0x0706_0504_0302_0100);
    let from = _mm512_add_epi8(_mm512_mullo_epi16(words, _mm512_set1_epi16(0x101 * width as i16)), bytes);
    let bit = _mm512_mullo_epi16(bytes, _mm512_set1_epi16(width as i16));
    let ones = _mm512_set1_epi8(ones(width) as i8);
    blocks::<64, _>(packed, 8 * width as usize, out, |bits| {
        _mm512_and_si512(_mm512_multishift_epi64_epi8(bit, _mm512_permutexvar_epi8(from, bits)), ones)
    });
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn unpack_u16(packed: &[u8], width: u32, out: &mut [u16]) {
    let places = _mm512_cvtepu8_epi16(must_cast(PLACES));
    let bit = _mm512_mullo_epi16(places, _mm512_set1_epi16(width as i16));
    let low = _mm512_srli_epi16::<4>(bit);
    let high = _mm512_add_epi16(low, _mm512_set1_epi16(1));
    let ones = _mm512_set1_epi16(ones(width) as i16);
    blocks::<32, _>(packed, 4 * width as usize, out, |bits| {
        let (low, high) = (_mm512_permutexvar_epi16(low, bits), _mm512_permutexvar_epi16(high, bits));
        _mm512_and_si512(_mm512_shrdv_epi16(low, high, bit), ones)
    });
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn unpack_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    let cut = cut32(width);
    blocks::<16, _>(packed, 2 * width as usize, out, |bits| words32(cut, bits));
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn unpack_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    let cut = cut64(width);
    blocks::<8, _>(packed, width as usize, out, |bits| words64(cut, bits));
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn unpack_lanes_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    let lane = must_cast([0u64, 1, 0, 1, 0, 1, 0, 1]);
    let rows = _mm512_mul_epu32(must_cast([0u64, 0, 1, 1, 2, 2, 3, 3]), _mm512_set1_epi64(width.into()));
    let ones = _mm512_set1_epi64(ones(width).cast_signed());
    lanes64(packed, width, out, |first, low, high| {
        let bit = _mm512_add_epi64(rows, _mm512_set1_epi64(first.into()));
        let place = _mm512_or_si512(_mm512_slli_epi64::<1>(_mm512_srli_epi64::<6>(bit)), lane);
        let (low, high) = (_mm512_permutexvar_epi64(place, low), _mm512_permutexvar_epi64(place, high));
        _mm512_and_si512(_mm512_shrdv_epi64(low, high, bit), ones)
    });
}

/// Groups of 128 values over two lanes, four rows of them at a time. `words` is given the bit where the first row
/// starts in the first word of a lane, four words of every lane from that one on, and four from the one after.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn lanes64(packed: &[u8], width: u32, out: &mut [u64], words: impl Fn(u32, __m512i, __m512i) -> __m512i) {
    let mut packed = packed;
    for group in out.as_chunks_mut::<128>().0 {
        let mut bit = 0;
        for out in group.as_chunks_mut::<8>().0 {
            let vector = (bit / 64 * 16) as usize;
            let low = packed.get(vector..).unwrap_or(&[]);
            store(out, words(bit % 64, load(low), load(low.get(16..).unwrap_or(&[]))));
            bit += 4 * width;
        }
        packed = packed.get(16 * width as usize..).unwrap_or(&[]);
    }
}

/// A register of `N` words from the 64 bytes at every `step`th, which is at most 64.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn blocks<const N: usize, T: Pod>(
    packed: &[u8],
    step: usize,
    out: &mut [T],
    mut words: impl FnMut(__m512i) -> __m512i,
) {
    let (mut packed, mut done, step) = (packed, 0, step.min(64));
    for out in out.chunks_exact_mut(N) {
        let Some(bytes) = packed.first_chunk::<64>() else { break };
        store(out, words(must_cast(*bytes)));
        packed = &packed[step..];
        done += N;
    }
    for out in out[done..].chunks_mut(N) {
        store(out, words(load(packed)));
        packed = packed.get(step..).unwrap_or(&[]);
    }
}

/// The first 64 bytes of a slice, zeros behind its end.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn load<T: NoUninit>(from: &[T]) -> __m512i {
    let from: &[u8] = bytemuck::cast_slice(from);
    match from.first_chunk::<64>() {
        Some(bytes) => must_cast(*bytes),
        // Such a slice may lie where no memory is; even a masked load takes hundreds of cycles there.
        None if from.is_empty() => _mm512_setzero_si512(),
        None => {
            let there = _bzhi_u64(u64::MAX, from.len() as u32);
            // SAFETY: reads no more bytes than the slice has, which are below 64. With this and the masked store, the last
            // eight packed values of a slice take 5 ns, through a padded copy 13 (AMD Zen 5 VM, 2026-11).
            unsafe { _mm512_maskz_loadu_epi8(there, from.as_ptr().cast()) }
        }
    }
}

/// As much of a register as a slice of up to 64 bytes takes.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn store<T: Pod>(to: &mut [T], value: __m512i) {
    let to: &mut [u8] = bytemuck::cast_slice_mut(to);
    if let Some(to) = to.first_chunk_mut::<64>() {
        *to = must_cast(value);
    } else if !to.is_empty() {
        let there = _bzhi_u64(u64::MAX, to.len() as u32);
        // SAFETY: writes no more bytes than the slice has, which are below 64. Measured with `load`.
        unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), there, value) }
    }
}

/// How words of some width are taken out of a register, whose first bits they are.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// For each value the place of the word where it starts.
    low: __m512i,
    /// The word behind that.
    high: __m512i,
    /// The bit where it starts, modulo the bits of a word.
    bit: __m512i,
    ones: __m512i,
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn cut32(width: u32) -> Cut {
    let places = _mm512_cvtepu8_epi32(_mm256_castsi256_si128(must_cast(PLACES)));
    let bit = _mm512_mullo_epi32(places, _mm512_set1_epi32(width.cast_signed()));
    let low = _mm512_srli_epi32::<5>(bit);
    let high = _mm512_add_epi32(low, _mm512_set1_epi32(1));
    Cut { low, high, bit, ones: _mm512_set1_epi32((ones(width) as u32).cast_signed()) }
}

/// 16 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn words32(cut: Cut, bits: __m512i) -> __m512i {
    let (low, high) = (_mm512_permutexvar_epi32(cut.low, bits), _mm512_permutexvar_epi32(cut.high, bits));
    _mm512_and_si512(_mm512_shrdv_epi32(low, high, cut.bit), cut.ones)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn cut64(width: u32) -> Cut {
    let places = _mm512_cvtepu8_epi64(_mm256_castsi256_si128(must_cast(PLACES)));
    let bit = _mm512_mul_epu32(places, _mm512_set1_epi64(width.into()));
    let low = _mm512_srli_epi64::<6>(bit);
    let high = _mm512_add_epi64(low, _mm512_set1_epi64(1));
    Cut { low, high, bit, ones: _mm512_set1_epi64(ones(width).cast_signed()) }
}

/// 8 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn words64(cut: Cut, bits: __m512i) -> __m512i {
    let (low, high) = (_mm512_permutexvar_epi64(cut.low, bits), _mm512_permutexvar_epi64(cut.high, bits));
    _mm512_and_si512(_mm512_shrdv_epi64(low, high, cut.bit), cut.ones)
}

const PLACES: [u8; 32] = {
    let mut places = [0; 32];
    let mut i = 0;
    while i < 32 {
        places[i as usize] = i;
        i += 1;
    }
    places
};
