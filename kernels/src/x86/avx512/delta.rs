//! Running sums.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::bits::{blocks, cut32, cut64, words32, words64};

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn deltas_u32(packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
    let least = _mm512_set1_epi32(least.cast_signed());
    let mut packed = packed;
    let mut sum = _mm512_set1_epi32(before.cast_signed());
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        let cut = cut32(width.into());
        blocks::<16, _>(packed, 2 * usize::from(width), out, |bits| {
            let sums = scan32(_mm512_add_epi32(words32(cut, bits), least));
            let values = _mm512_add_epi32(sums, sum);
            sum = _mm512_add_epi32(sum, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums));
            values
        });
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    out.last().copied().unwrap_or(before)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn deltas_u64(packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
    let least = _mm512_set1_epi64(least.cast_signed());
    let mut packed = packed;
    let mut sum = _mm512_set1_epi64(before.cast_signed());
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        let cut = cut64(width.into());
        blocks::<8, _>(packed, width.into(), out, |bits| {
            let sums = scan64(_mm512_add_epi64(words64(cut, bits), least));
            let values = _mm512_add_epi64(sums, sum);
            sum = _mm512_add_epi64(sum, _mm512_permutexvar_epi64(_mm512_set1_epi64(7), sums));
            values
        });
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    out.last().copied().unwrap_or(before)
}

/// Running sums of 16 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn scan32(x: __m512i) -> __m512i {
    let x = _mm512_add_epi32(x, _mm512_bslli_epi128::<4>(x));
    let x = _mm512_add_epi32(x, _mm512_bslli_epi128::<8>(x));
    // The last word of lanes 0 and 2 onto lanes 1 and 3, then of lane 1 onto lanes 2 and 3.
    let ends = _mm512_inserti64x4::<1>(_mm512_set1_epi32(3), _mm256_set1_epi32(11));
    let x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xf0f0, ends, x));
    _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xff00, _mm512_set1_epi32(7), x))
}

/// Running sums of 8 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn scan64(x: __m512i) -> __m512i {
    let x = _mm512_add_epi64(x, _mm512_bslli_epi128::<8>(x));
    let ends = must_cast([1u64, 1, 1, 1, 5, 5, 5, 5]);
    let x = _mm512_add_epi64(x, _mm512_maskz_permutexvar_epi64(0b1100_1100, ends, x));
    _mm512_add_epi64(x, _mm512_maskz_permutexvar_epi64(0b1111_0000, _mm512_set1_epi64(3), x))
}
