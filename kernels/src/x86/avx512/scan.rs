//! Gaps to indices, 64 values at a time.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::planes::store_line;
use crate::blocks::by_blocks;
use crate::x86::stream;
use crate::{GapsSeen, Store};

/// Two planes of gaps to indices, cell by cell.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], store: Store) -> GapsSeen {
    let zero = _mm512_setzero_si512();
    let mut run = Run { carry: zero, lo_sums: zero, hi_sums: zero, ignore: zero, least: _mm512_set1_epi8(-1) };
    let streams = stream::streams(store, out.len());
    let job = (lo, hi, bounds, out);
    let begin = |run: &mut Run| begin(run);
    let block =
        |run: &mut Run, lo: &[u8; 64], hi: &[u8; 64], len| must_cast(block(run, must_cast(*lo), must_cast(*hi), len));
    let end = |run: &Run| end(run);
    let last = if streams {
        stream::gaps(job, &mut run, begin, block, end, |to, from| store_line(to, from))
    } else {
        by_blocks(job, &mut run, begin, block, end)
    };
    GapsSeen { last, repeated: _mm512_testn_epi8_mask(run.least, run.least) != 0 }
}

/// What goes from block to block.
#[derive(Clone, Copy)]
struct Run {
    /// Running sum before the block, in every word.
    carry: __m512i,
    /// Sums of the cell's low bytes so far, in eight parts.
    lo_sums: __m512i,
    /// The same of its high bytes.
    hi_sums: __m512i,
    /// All ones where a zero gap is no evidence.
    ignore: __m512i,
    /// The least `lo | hi` of every lane so far, over all cells.
    least: __m512i,
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn begin(run: &mut Run) {
    let zero = _mm512_setzero_si512();
    *run = Run { carry: zero, lo_sums: zero, hi_sums: zero, ignore: _mm512_movm_epi8(1), least: run.least };
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn end(run: &Run) -> u64 {
    let sums = _mm512_add_epi64(run.lo_sums, _mm512_slli_epi64::<8>(run.hi_sums));
    _mm512_reduce_add_epi64(sums).cast_unsigned()
}

/// 64 gaps, of which the first `len` count, to 64 indices.
///
/// The scan runs over the 32 sums of neighbours; an even place's index is then its pair's less the odd gap.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn block(run: &mut Run, lo: __m512i, hi: __m512i, len: u8) -> [__m512i; 4] {
    let zero = _mm512_setzero_si512();
    let valid = _bzhi_u64(u64::MAX, u32::from(len));
    let lo = _mm512_maskz_mov_epi8(valid, lo);
    let hi = _mm512_maskz_mov_epi8(valid, hi);
    run.lo_sums = _mm512_add_epi64(run.lo_sums, _mm512_sad_epu8(lo, zero));
    run.hi_sums = _mm512_add_epi64(run.hi_sums, _mm512_sad_epu8(hi, zero));
    let ignore = _mm512_or_si512(run.ignore, _mm512_movm_epi8(!valid));
    run.least = _mm512_min_epu8(run.least, _mm512_or_si512(_mm512_or_si512(lo, hi), ignore));
    run.ignore = zero;

    let low = _mm512_set1_epi16(0xff);
    let even = _mm512_or_si512(_mm512_and_si512(lo, low), _mm512_slli_epi16::<8>(hi));
    let odd = _mm512_or_si512(_mm512_srli_epi16::<8>(lo), _mm512_andnot_si512(low, hi));

    let local = scan(_mm512_add_epi16(even, odd));
    let after_odd = _mm512_add_epi16(local, run.carry);
    let after_even = _mm512_sub_epi16(after_odd, odd);
    run.carry = _mm512_add_epi16(run.carry, _mm512_permutexvar_epi16(_mm512_set1_epi16(31), local));

    [
        quarter::<0>(after_even, after_odd),
        quarter::<1>(after_even, after_odd),
        quarter::<2>(after_even, after_odd),
        quarter::<3>(after_even, after_odd),
    ]
}

/// The 16 indices from place `16 * Q` on, of 32 words for the even places and 32 for the odd ones.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn quarter<const Q: u16>(even: __m512i, odd: __m512i) -> __m512i {
    const ODD: u16 = 32;
    let index = const {
        let mut index = [0; 32];
        let mut word = 0;
        while word < 32 {
            index[word as usize] = 8 * Q + word / 4 + if word % 4 < 2 { 0 } else { ODD };
            word += 1;
        }
        index
    };
    _mm512_maskz_permutex2var_epi16(0x5555_5555, even, must_cast(index), odd)
}

/// Running sums of 32 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn scan(x: __m512i) -> __m512i {
    let x = _mm512_add_epi16(x, _mm512_bslli_epi128::<2>(x));
    let x = _mm512_add_epi16(x, _mm512_bslli_epi128::<4>(x));
    let x = _mm512_add_epi16(x, _mm512_bslli_epi128::<8>(x));
    // The last word of lanes 0 and 2 onto lanes 1 and 3, then of lane 1 onto lanes 2 and 3.
    let ends = _mm512_inserti64x4::<1>(_mm512_set1_epi16(7), _mm256_set1_epi16(23));
    let x = _mm512_add_epi16(x, _mm512_maskz_permutexvar_epi16(0xff00_ff00, ends, x));
    _mm512_add_epi16(x, _mm512_maskz_permutexvar_epi16(0xffff_0000, _mm512_set1_epi16(15), x))
}
