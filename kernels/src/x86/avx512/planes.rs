//! Byte planes to words.

// Stores around the caches take raw pointers.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use bytemuck::{Pod, must_cast};

use crate::blocks::{by_planes, eight_planes};
use crate::x86::avx2;
use crate::x86::stream::{self, Line};
use crate::{CountsSeen, Store, scalar};

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn words(planes: &[u8], stride: usize, k: usize, out: &mut [u8]) {
    let n = out.len() / k;
    match k {
        1..=4 => scalar::planes::words(planes, stride, k, out),
        8 if n >= 64 => by_planes::<8, 64>(eight_planes(planes, (stride, k, n), 0), k, out, |planes| {
            // Pairs of places move so that they end up in order below.
            let planes = planes.map(|bytes| _mm512_permutexvar_epi16(must_cast(PAIRS), must_cast(*bytes)));
            let [a, b, c, d, e, f, g, h] = planes;
            let (low, high) = (fours([a, b, c, d]), fours([e, f, g, h]));
            let words: [[__m512i; 2]; 4] = core::array::from_fn(|i| {
                [_mm512_unpacklo_epi32(low[i], high[i]), _mm512_unpackhi_epi32(low[i], high[i])]
            });
            must_cast(words)
        }),
        _ => avx2::planes::words(planes, stride, k, out),
    }
}

/// Words of four bytes, in each 16 places on their own.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn fours([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let [ab_low, ab_high] = [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)];
    let [cd_low, cd_high] = [_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)];
    [
        _mm512_unpacklo_epi16(ab_low, cd_low),
        _mm512_unpackhi_epi16(ab_low, cd_low),
        _mm512_unpacklo_epi16(ab_high, cd_high),
        _mm512_unpackhi_epi16(ab_high, cd_high),
    ]
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn counts_i32(lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
    counts::<4, i32>(lo, hi, out, store, i32::from, |lo, hi| must_cast(widened(pairs(lo, hi))))
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn counts_f32(lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
    counts::<4, f32>(lo, hi, out, store, f32::from, |lo, hi| must_cast(floats(widened(pairs(lo, hi)))))
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn counts_u16(lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
    counts::<2, u16>(lo, hi, out, store, u16::from, |lo, hi| must_cast(pairs(lo, hi)))
}

/// Counts in blocks of 64, each made by `block`.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn counts<const LINES: usize, T: Pod>(
    lo: &[u8],
    hi: &[u8],
    out: &mut [T],
    store: Store,
    widen: impl Fn(u16) -> T,
    block: impl Fn(__m512i, __m512i) -> [T; 64],
) -> CountsSeen {
    let mut least = _mm512_set1_epi8(-1);
    let block = |lo: &[u8; 64], hi: &[u8; 64]| {
        let (lo, hi) = (must_cast(*lo), must_cast(*hi));
        least = _mm512_min_epu8(least, _mm512_or_si512(lo, hi));
        block(lo, hi)
    };
    let ends = stream::counts::<64, LINES, T>((lo, hi, out), store, widen, block, |to, from| store_line(to, from));
    CountsSeen { zero: ends.zero | (_mm512_testn_epi8_mask(least, least) != 0) }
}

/// 64 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn pairs(lo: __m512i, hi: __m512i) -> [__m512i; 2] {
    [half::<0>(lo, hi), half::<32>(lo, hi)]
}

/// The 32 words from place `FROM` on.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn half<const FROM: u8>(lo: __m512i, hi: __m512i) -> __m512i {
    const HI: u8 = 64;
    let index = const {
        let mut index = [0; 64];
        let mut byte = 0;
        while byte < 64 {
            index[byte as usize] = FROM + byte / 2 + if byte % 2 == 0 { 0 } else { HI };
            byte += 1;
        }
        index
    };
    _mm512_permutex2var_epi8(lo, must_cast(index), hi)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn widened([a, b]: [__m512i; 2]) -> [__m512i; 4] {
    [
        _mm512_cvtepu16_epi32(_mm512_castsi512_si256(a)),
        _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(a)),
        _mm512_cvtepu16_epi32(_mm512_castsi512_si256(b)),
        _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(b)),
    ]
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn floats([a, b, c, d]: [__m512i; 4]) -> [__m512; 4] {
    [_mm512_cvtepi32_ps(a), _mm512_cvtepi32_ps(b), _mm512_cvtepi32_ps(c), _mm512_cvtepi32_ps(d)]
}

/// Stores a line around the caches.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn store_line(to: &mut Line, from: &[u8; 64]) {
    // SAFETY: `to` is a reference, hence writable and aligned. Into 64 MB this takes 0.12 ns a value where stores
    // through the caches take 0.16 (counts; AMD Zen 5 VM, 2026-11).
    unsafe { _mm512_stream_si512(to, must_cast(*from)) }
}

/// Places 0, 4, 8, and so on, then 1, 5, 9, and so on.
const PAIRS: [u16; 32] = {
    let mut places = [0; 32];
    let mut i = 0;
    while i < 32 {
        places[i as usize] = i % 8 * 4 + i / 8;
        i += 1;
    }
    places
};
