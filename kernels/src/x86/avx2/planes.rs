//! Byte planes to words.

// Stores around the caches take raw pointers.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use bytemuck::{Pod, must_cast};

use crate::blocks::{by_planes, eight_planes};
use crate::x86::stream::{self, Line};
use crate::{CountsSeen, Store, scalar};

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn words(planes: &[u8], stride: usize, k: usize, out: &mut [u8]) {
    let n = out.len() / k;
    // What compilers make of these loops is no slower than the registers below.
    if n < 32 || matches!(k, 1..=4) {
        return scalar::planes::words(planes, stride, k, out);
    }
    let mut first = 0;
    while first < k {
        // The last eight planes may be partly those before.
        first = first.min(k.saturating_sub(8));
        by_planes::<8, 32>(eight_planes(planes, (stride, k, n), first), k, &mut out[first..], |planes| {
            must_cast(eights(planes.map(|bytes| must_cast(*bytes))))
        });
        first += 8;
    }
}

/// 32 words of eight bytes.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn eights([a, b, c, d, e, f, g, h]: [__m256i; 8]) -> [__m256i; 8] {
    let (low, high) = (fours([a, b, c, d]), fours([e, f, g, h]));
    let first: [__m256i; 4] = core::array::from_fn(|i| _mm256_unpacklo_epi32(low[i], high[i]));
    let second: [__m256i; 4] = core::array::from_fn(|i| _mm256_unpackhi_epi32(low[i], high[i]));
    core::array::from_fn(|i| {
        let (a, b) = (first[i % 4], second[i % 4]);
        if i < 4 { _mm256_permute2x128_si256::<0x20>(a, b) } else { _mm256_permute2x128_si256::<0x31>(a, b) }
    })
}

/// 32 words of four bytes, in fours of places: 0 and 4 in the halves of the first register, 1 and 5 in those of the
/// second, and so on.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn fours([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let ([ab_low, ab_high], [cd_low, cd_high]) = (pairs(a, b), pairs(c, d));
    [
        _mm256_unpacklo_epi16(ab_low, cd_low),
        _mm256_unpackhi_epi16(ab_low, cd_low),
        _mm256_unpacklo_epi16(ab_high, cd_high),
        _mm256_unpackhi_epi16(ab_high, cd_high),
    ]
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_i32(lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
    counts::<2, i32>(lo, hi, out, store, i32::from, |lo, hi| must_cast(widened(pairs(lo, hi))))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_f32(lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
    counts::<2, f32>(lo, hi, out, store, f32::from, |lo, hi| must_cast(floats(widened(pairs(lo, hi)))))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_u16(lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
    counts::<1, u16>(lo, hi, out, store, u16::from, |lo, hi| must_cast(in_order(pairs(lo, hi))))
}

/// Counts in blocks of 32, each made by `block`.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn counts<const LINES: usize, T: Pod>(
    lo: &[u8],
    hi: &[u8],
    out: &mut [T],
    store: Store,
    widen: impl Fn(u16) -> T,
    block: impl Fn(__m256i, __m256i) -> [T; 32],
) -> CountsSeen {
    let mut least = _mm256_set1_epi8(-1);
    let block = |lo: &[u8; 32], hi: &[u8; 32]| {
        let (lo, hi) = (must_cast(*lo), must_cast(*hi));
        least = _mm256_min_epu8(least, _mm256_or_si256(lo, hi));
        block(lo, hi)
    };
    let ends = stream::counts::<32, LINES, T>((lo, hi, out), store, widen, block, |to, from| store_line(to, from));
    CountsSeen { zero: ends.zero | (_mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_setzero_si256())) != 0) }
}

/// 32 words, in eights of places: 0 and 2 in the halves of the first register, 1 and 3 in those of the second.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn pairs(lo: __m256i, hi: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(lo, hi), _mm256_unpackhi_epi8(lo, hi)]
}

/// Such words in order.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn in_order([a, b]: [__m256i; 2]) -> [__m256i; 2] {
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

/// Such words in order, as 32-bit integers.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn widened([a, b]: [__m256i; 2]) -> [__m256i; 4] {
    [
        _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
        _mm256_cvtepu16_epi32(_mm256_castsi256_si128(b)),
        _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(a)),
        _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(b)),
    ]
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn floats([a, b, c, d]: [__m256i; 4]) -> [__m256; 4] {
    [_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b), _mm256_cvtepi32_ps(c), _mm256_cvtepi32_ps(d)]
}

/// Stores a line around the caches.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn store_line(to: &mut Line, from: &[u8; 64]) {
    let halves: &mut [__m256i; 2] = bytemuck::must_cast_mut(to);
    for (to, from) in halves.iter_mut().zip(must_cast::<_, [__m256i; 2]>(*from)) {
        // SAFETY: `to` is a reference, hence writable and aligned. Into 64 MB this takes 0.12 ns a value where
        // stores through the caches take 0.15 (counts; AMD Zen 5 VM, 2026-11).
        unsafe { _mm256_stream_si256(to, from) }
    }
}
