//! Gaps to indices, 32 values at a time.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::planes::{store_line, widened};
use crate::blocks::by_blocks;
use crate::x86::stream;
use crate::{GapsSeen, Store};

/// Two planes of gaps to indices, cell by cell.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], store: Store) -> GapsSeen {
    let zero = _mm256_setzero_si256();
    let mut run = Run { carry: zero, lo_sums: zero, hi_sums: zero, ignore: zero, least: _mm256_set1_epi8(-1) };
    let streams = stream::streams(store, out.len());
    let job = (lo, hi, bounds, out);
    let begin = |run: &mut Run| begin(run);
    let block =
        |run: &mut Run, lo: &[u8; 32], hi: &[u8; 32], len| must_cast(block(run, must_cast(*lo), must_cast(*hi), len));
    let end = |run: &Run| end(run);
    let last = if streams {
        stream::gaps(job, &mut run, begin, block, end, |to, from| store_line(to, from))
    } else {
        by_blocks(job, &mut run, begin, block, end)
    };
    GapsSeen { last, repeated: _mm256_movemask_epi8(_mm256_cmpeq_epi8(run.least, zero)) != 0 }
}

/// What goes from block to block.
#[derive(Clone, Copy)]
struct Run {
    /// Running sum before the block, in every word.
    carry: __m256i,
    /// Sums of the cell's low bytes so far, in four parts.
    lo_sums: __m256i,
    /// The same of its high bytes.
    hi_sums: __m256i,
    /// All ones where a zero gap is no evidence.
    ignore: __m256i,
    /// The least `lo | hi` of every lane so far, over all cells.
    least: __m256i,
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn begin(run: &mut Run) {
    let zero = _mm256_setzero_si256();
    *run =
        Run { carry: zero, lo_sums: zero, hi_sums: zero, ignore: _mm256_setr_epi64x(0xff, 0, 0, 0), least: run.least };
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn end(run: &Run) -> u64 {
    let sums = _mm256_add_epi64(run.lo_sums, _mm256_slli_epi64::<8>(run.hi_sums));
    let halves = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let [a, b]: [u64; 2] = must_cast(halves);
    a + b
}

/// 32 gaps, of which the first `len` count, to 32 indices.
///
/// The scan runs over the 16 sums of neighbours; an even place's index is then its pair's less the odd gap.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn block(run: &mut Run, lo: __m256i, hi: __m256i, len: u8) -> [__m256i; 4] {
    let zero = _mm256_setzero_si256();
    let places = must_cast(PLACES);
    let valid = _mm256_cmpgt_epi8(_mm256_set1_epi8(len.cast_signed()), places);
    let lo = _mm256_and_si256(valid, lo);
    let hi = _mm256_and_si256(valid, hi);
    run.lo_sums = _mm256_add_epi64(run.lo_sums, _mm256_sad_epu8(lo, zero));
    run.hi_sums = _mm256_add_epi64(run.hi_sums, _mm256_sad_epu8(hi, zero));
    let ignore = _mm256_or_si256(run.ignore, _mm256_cmpeq_epi8(valid, zero));
    run.least = _mm256_min_epu8(run.least, _mm256_or_si256(_mm256_or_si256(lo, hi), ignore));
    run.ignore = zero;

    let low = _mm256_set1_epi16(0xff);
    let even = _mm256_or_si256(_mm256_and_si256(lo, low), _mm256_slli_epi16::<8>(hi));
    let odd = _mm256_or_si256(_mm256_srli_epi16::<8>(lo), _mm256_andnot_si256(low, hi));

    let x = _mm256_add_epi16(even, odd);
    let x = _mm256_add_epi16(x, _mm256_bslli_epi128::<2>(x));
    let x = _mm256_add_epi16(x, _mm256_bslli_epi128::<4>(x));
    let x = _mm256_add_epi16(x, _mm256_bslli_epi128::<8>(x));
    // The sum of each half, in all of its words, and of the other half.
    let own = _mm256_shuffle_epi8(x, _mm256_set1_epi16(0x0f0e));
    let other = _mm256_permute2x128_si256::<0x01>(own, own);
    let x = _mm256_add_epi16(x, _mm256_blend_epi32::<0xf0>(zero, other));
    let after_odd = _mm256_add_epi16(x, run.carry);
    let after_even = _mm256_sub_epi16(after_odd, odd);
    run.carry = _mm256_add_epi16(run.carry, _mm256_add_epi16(own, other));

    widened([_mm256_unpacklo_epi16(after_even, after_odd), _mm256_unpackhi_epi16(after_even, after_odd)])
}

const PLACES: [i8; 32] = {
    let mut places = [0; 32];
    let mut i = 0u8;
    while i < 32 {
        places[i as usize] = i.cast_signed();
        i += 1;
    }
    places
};
