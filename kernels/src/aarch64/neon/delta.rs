//! Running sums.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use super::bits::{FOURS, PAIRS, fours, narrowed, pairs, words_by_fours, words_by_pairs};
use crate::blocks::by_windows;
use crate::scalar;

#[target_feature(enable = "neon")]
pub(crate) fn deltas_u32(packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
    let least = vdupq_n_u32(least);
    let mut packed = packed;
    let mut sum = vdupq_n_u32(before);
    let mut add = |[a, b]: [uint32x4_t; 2]| {
        let (a, b) = (scan32(vaddq_u32(a, least)), scan32(vaddq_u32(b, least)));
        let a = vaddq_u32(a, sum);
        let b = vaddq_u32(b, vdupq_laneq_u32::<3>(a));
        sum = vdupq_laneq_u32::<3>(b);
        must_cast([a, b])
    };
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        if u32::from(width) <= FOURS {
            let fours = fours(width.into());
            by_windows::<32, 8, _>(packed, width.into(), out, |bits| add(words_by_fours(fours, bits)));
        } else {
            let pairs = pairs(width.into());
            by_windows::<64, 8, _>(packed, width.into(), out, |bits| add(narrowed(words_by_pairs(pairs, bits))));
        }
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    out.last().copied().unwrap_or(before)
}

#[target_feature(enable = "neon")]
pub(crate) fn deltas_u64(packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
    let mut packed = packed;
    let mut last = before;
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        if u32::from(width) <= PAIRS {
            let (pairs, least) = (pairs(width.into()), vdupq_n_u64(least));
            let mut sum = vdupq_n_u64(last);
            by_windows::<64, 8, _>(packed, width.into(), out, |bits| {
                let mut words = words_by_pairs(pairs, bits);
                for word in &mut words {
                    let deltas = vaddq_u64(*word, least);
                    let sums = vaddq_u64(deltas, vextq_u64::<1>(vdupq_n_u64(0), deltas));
                    *word = vaddq_u64(sums, sum);
                    sum = vdupq_laneq_u64::<1>(*word);
                }
                must_cast(words)
            });
            last = out.last().copied().unwrap_or(last);
        } else {
            scalar::bits::unpack_u64(packed, width.into(), out);
            for value in out {
                last = last.wrapping_add(least).wrapping_add(*value);
                *value = last;
            }
        }
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    last
}

/// Running sums of 4 words.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn scan32(x: uint32x4_t) -> uint32x4_t {
    let zero = vdupq_n_u32(0);
    let x = vaddq_u32(x, vextq_u32::<3>(zero, x));
    vaddq_u32(x, vextq_u32::<2>(zero, x))
}
