//! Differences in ZigZag codes, in place.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use super::delta;
use crate::scalar;

#[target_feature(enable = "neon")]
pub(crate) fn zigzag_deltas_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums::<1>(words),
        2 => sums::<2>(words),
        _ => scalar::zigzag::sums(words, &mut [[0; 3]; 1]),
    }
}

/// Running sums of each of `STRIDE` components, 1 or 2.
#[target_feature(enable = "neon")]
#[inline]
fn sums<const STRIDE: usize>(words: &mut [u32]) {
    let zero = vdupq_n_u32(0);
    let mut last = zero;
    let (blocks, rest) = words.as_chunks_mut::<4>();
    for block in blocks {
        let codes = must_cast(*block);
        let signs = vsubq_u32(zero, vandq_u32(codes, vdupq_n_u32(1)));
        let deltas = veorq_u32(vshrq_n_u32::<1>(codes), signs);
        // The last of each component, at the places of that component in the next block.
        let (sums, ends) = if STRIDE == 1 {
            let sums = delta::scan32(deltas);
            (sums, vdupq_laneq_u32::<3>(sums))
        } else {
            let sums = vaddq_u32(deltas, vextq_u32::<2>(zero, deltas));
            (sums, vreinterpretq_u32_u64(vdupq_laneq_u64::<1>(vreinterpretq_u64_u32(sums))))
        };
        *block = must_cast(vaddq_u32(sums, last));
        last = vaddq_u32(last, ends);
    }
    let lasts = must_cast::<_, [u32; 4]>(last);
    scalar::zigzag::sums(rest, &mut [*lasts.first_chunk::<STRIDE>().unwrap_or(&[0; STRIDE])]);
}
