//! Bytes of many short values, put behind each other.

#![expect(clippy::cast_possible_truncation, reason = "at most 128 bytes are kept")]

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::delta::scan32;
use crate::blocks::{by_heads, few_above_64};
use crate::{EntriesSeen, LengthsSeen, scalar};

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    let mut sum = _mm256_set1_epi32(start.cast_signed());
    let (mut largest, mut total) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    let low = _mm256_set1_epi64x(u32::MAX.into());
    let ((blocks, rest), (out_blocks, out_rest)) = (lengths.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (out, lengths) in out_blocks.iter_mut().zip(blocks) {
        let lengths = must_cast(*lengths);
        largest = _mm256_max_epu32(largest, lengths);
        let pairs = _mm256_add_epi64(_mm256_and_si256(lengths, low), _mm256_srli_epi64::<32>(lengths));
        total = _mm256_add_epi64(total, pairs);
        let sums = scan32(lengths);
        *out = must_cast(_mm256_add_epi32(sums, sum));
        sum = _mm256_add_epi32(sum, _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7)));
    }
    let seen = scalar::strings::offsets_u32(rest, _mm256_cvtsi256_si32(sum).cast_unsigned(), out_rest);
    seen.and(seen_by(largest, total))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn seen_by(largest: __m256i, total: __m256i) -> LengthsSeen {
    let (largest, total): ([u32; 8], [u64; 4]) = (must_cast(largest), must_cast(total));
    LengthsSeen { largest: largest.into_iter().fold(0, u32::max), total: total.iter().sum() }
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn entries(
    data: &[u8],
    offsets: &[u32],
    indices: &[u32],
    start: u32,
    ends: &mut [u32],
    out: &mut [u8],
) -> EntriesSeen {
    scalar::strings::entries(data, offsets, indices, start, ends, out)
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn spans(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
    scalar::strings::spans(data, starts, lengths, out)
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
    let values = (before, prefixes, lengths, suffixes);
    if few_above_64(prefixes, lengths) {
        let merge = |head, new, kept| merged::<2>(head, new, kept);
        by_heads::<64, [__m256i; 2]>(values, out, |bytes| must_cast(*bytes), merge, must_cast)
    } else {
        let merge = |head, new, kept| merged::<4>(head, new, kept);
        by_heads::<128, [__m256i; 4]>(values, out, |bytes| must_cast(*bytes), merge, must_cast)
    }
}

/// The first `kept` bytes, up to 128, of `head`, the others of `new`.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn merged<const R: usize>(head: [__m256i; R], new: [__m256i; R], kept: usize) -> [__m256i; R] {
    let places: [__m256i; 4] = must_cast(PLACES);
    let last = _mm256_set1_epi8((kept as i8).wrapping_sub(1));
    core::array::from_fn(|i| _mm256_blendv_epi8(head[i], new[i], _mm256_cmpgt_epi8(places[i], last)))
}

const PLACES: [i8; 128] = {
    let mut places = [0; 128];
    let mut i = 0u8;
    while i < 128 {
        places[i as usize] = i.cast_signed();
        i += 1;
    }
    places
};
