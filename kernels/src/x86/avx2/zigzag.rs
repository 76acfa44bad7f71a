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
        _ => scalar::zigzag::sums(words, &mut [[0; 3]; 1]),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas2_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums32::<1, 2>(words),
        2 => scalar::zigzag::sums(words, &mut [[0; 2]; 2]),
        _ => scalar::zigzag::sums(words, &mut [[0; 3]; 2]),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn zigzag_deltas_u64(words: &mut [u64]) {
    let mut last = _mm256_setzero_si256();
    let (blocks, rest) = words.as_chunks_mut::<4>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(codes, _mm256_set1_epi64x(1)));
        let sums = delta::scan64(_mm256_xor_si256(_mm256_srli_epi64::<1>(codes), signs));
        *block = must_cast(_mm256_add_epi64(sums, last));
        last = _mm256_add_epi64(last, _mm256_permute4x64_epi64::<0xff>(sums));
    }
    let [last, ..] = must_cast::<_, [u64; 4]>(last);
    scalar::zigzag::sums(rest, &mut [[last]]);
}

/// The last of each component, by strides, at the places of that component in the next block.
const LASTS: [[u32; 8]; 2] = [[7; 8], [6, 7, 6, 7, 6, 7, 6, 7]];

/// `ORDER` running sums of each of `STRIDE` components, 1 or 2.
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
            let own = scan32::<STRIDE>(sums);
            sums = _mm256_add_epi32(own, *last);
            // The next block waits for this addition alone.
            *last = _mm256_add_epi32(*last, _mm256_permutevar8x32_epi32(own, places));
        }
        *block = must_cast(sums);
    }
    let lasts = lasts.map(must_cast::<_, [u32; 8]>);
    scalar::zigzag::sums(rest, &mut lasts.map(|last| *last.first_chunk::<STRIDE>().unwrap_or(&[0; STRIDE])));
}

/// Running sums of each of `STRIDE` components, 1 or 2.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn scan32<const STRIDE: usize>(x: __m256i) -> __m256i {
    if STRIDE == 1 {
        return delta::scan32(x);
    }
    let x = _mm256_add_epi32(x, _mm256_bslli_epi128::<8>(x));
    // The last two words of the low half onto the high half.
    let low = _mm256_permute2x128_si256::<0x08>(x, x);
    _mm256_add_epi32(x, _mm256_unpackhi_epi64(low, low))
}
