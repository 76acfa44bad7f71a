//! ZigZag codes, and differences in that form, in place.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::delta::{self, scan64};
use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_u32(words: &mut [u32]) {
    scalar::zigzag::zigzag_u32(words);
}

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_u64(words: &mut [u64]) {
    scalar::zigzag::zigzag_u64(words);
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_deltas_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums32::<1, 1>(words),
        2 => sums32::<2, 1>(words),
        _ => sums32::<3, 1>(words),
    }
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_deltas2_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums32::<1, 2>(words),
        2 => sums32::<2, 2>(words),
        _ => sums32::<3, 2>(words),
    }
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_deltas_u64(words: &mut [u64]) {
    sums64::<1>(words);
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn zigzag_deltas2_u64(words: &mut [u64]) {
    sums64::<2>(words);
}

/// The last of each component, by strides, at the places of that component in the next block.
const LASTS: [[u32; 16]; 3] = [
    [15; 16],
    [14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15],
    [13, 14, 15, 13, 14, 15, 13, 14, 15, 13, 14, 15, 13, 14, 15, 13],
];

/// `ORDER` running sums of each of `STRIDE` components.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn sums32<const STRIDE: usize, const ORDER: usize>(words: &mut [u32]) {
    let places = must_cast(LASTS[STRIDE - 1]);
    let mut lasts = [_mm512_setzero_si512(); ORDER];
    let (blocks, rest) = words.as_chunks_mut::<16>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(codes, _mm512_set1_epi32(1)));
        let mut sums = _mm512_xor_si512(_mm512_srli_epi32::<1>(codes), signs);
        for last in &mut lasts {
            let own = scan32::<STRIDE>(sums);
            sums = _mm512_add_epi32(own, *last);
            // Where a component has the same places in all blocks, the next one waits for an addition alone.
            *last = match STRIDE {
                3 => _mm512_permutexvar_epi32(places, sums),
                _ => _mm512_add_epi32(*last, _mm512_permutexvar_epi32(places, own)),
            };
        }
        *block = must_cast(sums);
    }
    let lasts = lasts.map(must_cast::<_, [u32; 16]>);
    scalar::zigzag::sums(rest, &mut lasts.map(|last| *last.first_chunk::<STRIDE>().unwrap_or(&[0; STRIDE])));
}

/// Running sums of each of `STRIDE` components.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn scan32<const STRIDE: usize>(x: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    match STRIDE {
        1 => delta::scan32(x),
        2 => {
            let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
            let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
            _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero))
        }
        _ => {
            let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<13>(x, zero));
            let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<10>(x, zero));
            _mm512_add_epi32(x, _mm512_alignr_epi32::<4>(x, zero))
        }
    }
}

/// `ORDER` running sums.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn sums64<const ORDER: usize>(words: &mut [u64]) {
    let mut lasts = [_mm512_setzero_si512(); ORDER];
    let (blocks, rest) = words.as_chunks_mut::<8>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(codes, _mm512_set1_epi64(1)));
        let mut sums = _mm512_xor_si512(_mm512_srli_epi64::<1>(codes), signs);
        for last in &mut lasts {
            let own = scan64(sums);
            sums = _mm512_add_epi64(own, *last);
            *last = _mm512_add_epi64(*last, _mm512_permutexvar_epi64(_mm512_set1_epi64(7), own));
        }
        *block = must_cast(sums);
    }
    scalar::zigzag::sums(rest, &mut lasts.map(|last| [must_cast::<_, [u64; 8]>(last)[0]]));
}
