//! Running sums.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::bits::{cut32, cuts64, narrow, narrow_words, widened, words32, words64};
use crate::blocks::by_windows;

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn deltas_u32(packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
    let least = _mm256_set1_epi32(least.cast_signed());
    let mut packed = packed;
    let mut sum = _mm256_set1_epi32(before.cast_signed());
    let mut add = |deltas: __m256i| {
        let sums = scan32(_mm256_add_epi32(deltas, least));
        let values = _mm256_add_epi32(sums, sum);
        sum = _mm256_add_epi32(sum, _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7)));
        must_cast(values)
    };
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        if width <= 16 {
            let cut = narrow(width.into());
            by_windows::<16, 8, _>(packed, width.into(), out, |bits| add(narrow_words(cut, must_cast(*bits))));
        } else {
            let cut = cut32(width.into());
            by_windows::<32, 8, _>(packed, width.into(), out, |bits| add(words32(cut, must_cast(*bits))));
        }
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    out.last().copied().unwrap_or(before)
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn deltas_u64(packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
    let least = _mm256_set1_epi64x(least.cast_signed());
    let mut packed = packed;
    let mut sum = _mm256_set1_epi64x(before.cast_signed());
    let mut add = |deltas: [__m256i; 2]| {
        must_cast(deltas.map(|deltas| {
            let sums = scan64(_mm256_add_epi64(deltas, least));
            let values = _mm256_add_epi64(sums, sum);
            sum = _mm256_add_epi64(sum, _mm256_permute4x64_epi64::<0xff>(sums));
            values
        }))
    };
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        if width <= 16 {
            let cut = narrow(width.into());
            by_windows::<16, 8, _>(packed, width.into(), out, |bits| add(widened(narrow_words(cut, must_cast(*bits)))));
        } else if width <= 32 {
            let cut = cut32(width.into());
            by_windows::<32, 8, _>(packed, width.into(), out, |bits| add(widened(words32(cut, must_cast(*bits)))));
        } else {
            let cuts = cuts64(width.into());
            by_windows::<64, 8, _>(packed, width.into(), out, |bits| add(words64(cuts, bits)));
        }
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    out.last().copied().unwrap_or(before)
}

/// Running sums of 8 words.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn scan32(x: __m256i) -> __m256i {
    let x = _mm256_add_epi32(x, _mm256_bslli_epi128::<4>(x));
    let x = _mm256_add_epi32(x, _mm256_bslli_epi128::<8>(x));
    // The last word of the low half onto the high half.
    let low = _mm256_permute2x128_si256::<0x08>(x, x);
    _mm256_add_epi32(x, _mm256_shuffle_epi32::<0xff>(low))
}

/// Running sums of 4 words.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn scan64(x: __m256i) -> __m256i {
    let x = _mm256_add_epi64(x, _mm256_bslli_epi128::<8>(x));
    let low = _mm256_permute2x128_si256::<0x08>(x, x);
    _mm256_add_epi64(x, _mm256_unpackhi_epi64(low, low))
}
