//! Gaps to indices, 64 values at a time.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::scalar::scan::{Segment, by_cell};
use crate::{GapsSeen, Store};

/// Two planes of gaps to indices, cell by cell.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], _store: Store) -> GapsSeen {
    let mut least = _mm512_set1_epi8(-1);
    let last = by_cell(lo, hi, bounds, out, |part, lo, hi, out| segment(part, lo, hi, out, &mut least));
    GapsSeen { last, repeated: _mm512_testn_epi8_mask(least, least) != 0 }
}

/// Running state of a segment. Every register holds what the next block starts from.
struct Run {
    /// Running sum before the block, in every word.
    carry: __m512i,
    /// Sums of the bytes so far, by eighths.
    sums: [__m512i; 2],
    /// Bytes of all ones where a zero gap is no evidence.
    ignore: __m512i,
    /// The least `lo | hi` of each lane so far.
    least: __m512i,
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn segment(part: Segment, lo: &[u8], hi: &[u8], out: &mut [i32], least: &mut __m512i) -> u64 {
    let mut run = Run {
        carry: _mm512_set1_epi16(part.carry.cast_signed()),
        sums: [_mm512_setzero_si512(); 2],
        ignore: _mm512_movm_epi8(u64::from(part.first)),
        least: *least,
    };
    let (lo_blocks, _) = lo[..part.len].as_chunks::<64>();
    let (hi_blocks, _) = hi[..part.len].as_chunks::<64>();
    let (out_blocks, _) = out[..part.len].as_chunks_mut::<64>();
    for ((lo, hi), out) in lo_blocks.iter().zip(hi_blocks).zip(out_blocks) {
        *out = must_cast(block(must_cast(*lo), must_cast(*hi), &mut run));
        run.ignore = _mm512_setzero_si512();
    }
    let rest = part.len % 64;
    if rest > 0 {
        let at = part.len - rest;
        let valid = (1u64 << rest) - 1;
        let (lo, hi, out) = (&lo[at..], &hi[at..], &mut out[at..]);
        run.ignore = _mm512_or_si512(run.ignore, _mm512_movm_epi8(!valid));
        if let (Some(lo), Some(hi), Some(out)) =
            (lo.first_chunk::<64>(), hi.first_chunk::<64>(), out.first_chunk_mut::<64>())
        {
            // Lanes past the segment's end write places that later segments write again.
            let lo = _mm512_maskz_mov_epi8(valid, must_cast(*lo));
            let hi = _mm512_maskz_mov_epi8(valid, must_cast(*hi));
            *out = must_cast(block(lo, hi, &mut run));
        } else {
            let (mut lo_block, mut hi_block) = ([0u8; 64], [0u8; 64]);
            lo_block[..rest].copy_from_slice(&lo[..rest]);
            hi_block[..rest].copy_from_slice(&hi[..rest]);
            let indices: [i32; 64] = must_cast(block(must_cast(lo_block), must_cast(hi_block), &mut run));
            out[..rest].copy_from_slice(&indices[..rest]);
        }
    }
    *least = run.least;
    let sums = _mm512_add_epi64(run.sums[0], _mm512_slli_epi64::<8>(run.sums[1]));
    _mm512_reduce_add_epi64(sums).cast_unsigned()
}

/// 64 gaps to 64 indices.
///
/// The scan runs over the 32 sums of neighbours; an even place's index is then its pair's less the odd gap.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn block(lo: __m512i, hi: __m512i, run: &mut Run) -> [__m512i; 4] {
    let zero = _mm512_setzero_si512();
    run.sums[0] = _mm512_add_epi64(run.sums[0], _mm512_sad_epu8(lo, zero));
    run.sums[1] = _mm512_add_epi64(run.sums[1], _mm512_sad_epu8(hi, zero));
    let any = _mm512_or_si512(_mm512_or_si512(lo, hi), run.ignore);
    run.least = _mm512_min_epu8(run.least, any);

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
