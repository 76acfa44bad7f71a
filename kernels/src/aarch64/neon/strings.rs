//! Bytes of many short values, put behind each other.

#![expect(clippy::cast_possible_truncation, reason = "at most 128 bytes are kept")]

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::blocks::{by_heads, few_above_64};

#[target_feature(enable = "neon")]
pub(crate) fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
    let values = (before, prefixes, lengths, suffixes);
    if few_above_64(prefixes, lengths) {
        let merge = |head, new, kept| merged::<4>(head, new, kept);
        by_heads::<64, [uint8x16_t; 4]>(values, out, |bytes| must_cast(*bytes), merge, must_cast)
    } else {
        let merge = |head, new, kept| merged::<8>(head, new, kept);
        by_heads::<128, [uint8x16_t; 8]>(values, out, |bytes| must_cast(*bytes), merge, must_cast)
    }
}

/// The first `kept` bytes of `head`, the others of `new`.
#[target_feature(enable = "neon")]
#[inline]
fn merged<const R: usize>(head: [uint8x16_t; R], new: [uint8x16_t; R], kept: usize) -> [uint8x16_t; R] {
    let mut places = must_cast([0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let kept = vdupq_n_u8(kept as u8);
    let mut merged = new;
    for (merged, head) in merged.iter_mut().zip(head) {
        *merged = vbslq_u8(vcltq_u8(places, kept), head, *merged);
        places = vaddq_u8(places, vdupq_n_u8(16));
    }
    merged
}
