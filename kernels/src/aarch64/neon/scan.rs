//! Gaps to indices, 16 values at a time.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::blocks::by_blocks;
use crate::{GapsSeen, Store};

/// Two planes of gaps to indices, cell by cell.
#[target_feature(enable = "neon")]
pub(crate) fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], _store: Store) -> GapsSeen {
    let zero = vdupq_n_u8(0);
    let mut run = Run {
        carry: vdupq_n_u16(0),
        lo_sums: vdupq_n_u64(0),
        hi_sums: vdupq_n_u64(0),
        ignore: zero,
        least: vdupq_n_u8(u8::MAX),
    };
    let begin = |run: &mut Run| begin(run);
    let block =
        |run: &mut Run, lo: &[u8; 16], hi: &[u8; 16], len| must_cast(block(run, must_cast(*lo), must_cast(*hi), len));
    let end = |run: &Run| end(run);
    let last = by_blocks((lo, hi, bounds, out), &mut run, begin, block, end);
    GapsSeen { last, repeated: vminvq_u8(run.least) == 0 }
}

/// What goes from block to block.
#[derive(Clone, Copy)]
struct Run {
    /// Running sum before the block, in every word.
    carry: uint16x8_t,
    /// Sums of the cell's low bytes so far, in two parts.
    lo_sums: uint64x2_t,
    /// The same of its high bytes.
    hi_sums: uint64x2_t,
    /// All ones where a zero gap is no evidence.
    ignore: uint8x16_t,
    /// The least `lo | hi` of every lane so far, over all cells.
    least: uint8x16_t,
}

#[target_feature(enable = "neon")]
#[inline]
fn begin(run: &mut Run) {
    run.carry = vdupq_n_u16(0);
    run.lo_sums = vdupq_n_u64(0);
    run.hi_sums = vdupq_n_u64(0);
    run.ignore = vsetq_lane_u8::<0>(u8::MAX, vdupq_n_u8(0));
}

#[target_feature(enable = "neon")]
#[inline]
fn end(run: &Run) -> u64 {
    vaddvq_u64(vaddq_u64(run.lo_sums, vshlq_n_u64::<8>(run.hi_sums)))
}

/// 16 gaps, of which the first `len` count, to 16 indices.
///
/// The scan runs over the 8 sums of neighbours; an even place's index is then its pair's less the odd gap.
#[target_feature(enable = "neon")]
#[inline]
fn block(run: &mut Run, lo: uint8x16_t, hi: uint8x16_t, len: u8) -> [uint32x4_t; 4] {
    let places = must_cast([0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let valid = vcltq_u8(places, vdupq_n_u8(len));
    let lo = vandq_u8(valid, lo);
    let hi = vandq_u8(valid, hi);
    run.lo_sums = vpadalq_u32(run.lo_sums, vpaddlq_u16(vpaddlq_u8(lo)));
    run.hi_sums = vpadalq_u32(run.hi_sums, vpaddlq_u16(vpaddlq_u8(hi)));
    let any = vorrq_u8(vorrq_u8(lo, hi), vornq_u8(run.ignore, valid));
    run.least = vminq_u8(run.least, any);
    run.ignore = vdupq_n_u8(0);

    // Even and odd places of both planes, as words.
    let even = vreinterpretq_u16_u8(vtrn1q_u8(lo, hi));
    let odd = vreinterpretq_u16_u8(vtrn2q_u8(lo, hi));

    let zero = vdupq_n_u16(0);
    let x = vaddq_u16(even, odd);
    let x = vaddq_u16(x, vextq_u16::<7>(zero, x));
    let x = vaddq_u16(x, vextq_u16::<6>(zero, x));
    let x = vaddq_u16(x, vextq_u16::<4>(zero, x));
    let after_odd = vaddq_u16(x, run.carry);
    let after_even = vsubq_u16(after_odd, odd);
    run.carry = vaddq_u16(run.carry, vdupq_laneq_u16::<7>(x));

    let first = vzip1q_u16(after_even, after_odd);
    let second = vzip2q_u16(after_even, after_odd);
    [vmovl_u16(vget_low_u16(first)), vmovl_high_u16(first), vmovl_u16(vget_low_u16(second)), vmovl_high_u16(second)]
}
