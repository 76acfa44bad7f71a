//! ZigZag codes, and differences in that form, in place.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::delta;
use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_u32(words: &mut [u32]) {
    scalar::zigzag::zigzag_u32(words);
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_u64(words: &mut [u64]) {
    scalar::zigzag::zigzag_u64(words);
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums32::<1, 1>(words),
        2 => sums32::<2, 1>(words),
        _ => sums32::<3, 1>(words),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas2_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums32::<1, 2>(words),
        2 => sums32::<2, 2>(words),
        _ => sums32::<3, 2>(words),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas_u64(words: &mut [u64]) {
    sums64::<1>(words);
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas2_u64(words: &mut [u64]) {
    sums64::<2>(words);
}

/// The last of each component, by strides, at the places of that component in the next block.
const LASTS: [[u32; 8]; 3] = [[7; 8], [6, 7, 6, 7, 6, 7, 6, 7], [5, 6, 7, 5, 6, 7, 5, 6]];

/// `ORDER` running sums of each of `STRIDE` components.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn sums32<const STRIDE: usize, const ORDER: usize>(words: &mut [u32]) {
    let places = must_cast(LASTS[STRIDE - 1]);
    let mut lasts = [_mm256_setzero_si256(); ORDER];
    let (blocks, rest) = words.as_chunks_mut::<8>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(codes, _mm256_set1_epi32(1)));
        let mut sums = _mm256_xor_si256(_mm256_srli_epi32::<1>(codes), signs);
        for last in &mut lasts {
            sums = _mm256_add_epi32(scan32::<STRIDE>(sums), *last);
            *last = _mm256_permutevar8x32_epi32(sums, places);
        }
        *block = must_cast(sums);
    }
    let lasts = lasts.map(must_cast::<_, [u32; 8]>);
    scalar::zigzag::sums(rest, &mut lasts.map(|last| *last.first_chunk::<STRIDE>().unwrap_or(&[0; STRIDE])));
}

/// Running sums of each of `STRIDE` components.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn scan32<const STRIDE: usize>(x: __m256i) -> __m256i {
    match STRIDE {
        1 => delta::scan32(x),
        2 => {
            let x = _mm256_add_epi32(x, _mm256_bslli_epi128::<8>(x));
            // The last two words of the low half onto the high half.
            let low = _mm256_permute2x128_si256::<0x08>(x, x);
            _mm256_add_epi32(x, _mm256_unpackhi_epi64(low, low))
        }
        _ => {
            let x = _mm256_add_epi32(x, _mm256_alignr_epi8::<4>(x, _mm256_permute2x128_si256::<0x08>(x, x)));
            _mm256_add_epi32(x, _mm256_bslli_epi128::<8>(_mm256_permute2x128_si256::<0x08>(x, x)))
        }
    }
}

/// `ORDER` running sums.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn sums64<const ORDER: usize>(words: &mut [u64]) {
    let mut lasts = [_mm256_setzero_si256(); ORDER];
    let (blocks, rest) = words.as_chunks_mut::<4>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(codes, _mm256_set1_epi64x(1)));
        let mut sums = _mm256_xor_si256(_mm256_srli_epi64::<1>(codes), signs);
        for last in &mut lasts {
            sums = _mm256_add_epi64(delta::scan64(sums), *last);
            *last = _mm256_permute4x64_epi64::<0xff>(sums);
        }
        *block = must_cast(sums);
    }
    scalar::zigzag::sums(rest, &mut lasts.map(|last| [must_cast::<_, [u64; 4]>(last)[0]]));
}
