//! Gaps to indices: a prefix sum that starts anew in each cell.

use crate::{GapsSeen, Store};

/// Two planes of gaps to indices, cell by cell.
pub fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], _store: Store) -> GapsSeen {
    let mut seen = GapsSeen::default();
    let mut rest = (lo, hi, out);
    for cell in bounds.windows(2) {
        let n = usize::try_from(cell[1] - cell[0]).unwrap_or(0);
        let (lo, lo_rest) = rest.0.split_at(n);
        let (hi, hi_rest) = rest.1.split_at(n);
        let (out, out_rest) = rest.2.split_at_mut(n);
        rest = (lo_rest, hi_rest, out_rest);
        let mut gene = 0u64;
        let mut zeros = 0usize;
        for ((out, &lo), &hi) in out.iter_mut().zip(lo).zip(hi) {
            let gap = u16::from_le_bytes([lo, hi]);
            gene += u64::from(gap);
            zeros += usize::from(gap == 0);
            *out = gene as u32 as i32;
        }
        let first_is_zero = n > 0 && lo[0] | hi[0] == 0;
        seen.repeated |= zeros > usize::from(first_is_zero);
        seen.last = seen.last.max(gene);
    }
    seen
}

/// A part of one cell, for kernels which work on 16-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    /// Number of values.
    pub(crate) len: usize,
    /// Running sum before the first value, modulo 2^16.
    pub(crate) carry: u16,
    /// Whether the first value is the cell's first, which may be 0.
    pub(crate) first: bool,
}

/// Calls `segment` for each cell. It gets the planes and `out` from the segment's start on, beyond its end: it may
/// write any value to the places after the segment, since these are written again. It writes running sums modulo
/// 2^16 and returns the exact sum of the segment's gaps.
///
/// Returns the largest sum of a cell.
#[inline(always)]
pub(crate) fn by_cell(
    lo: &[u8],
    hi: &[u8],
    bounds: &[i64],
    out: &mut [i32],
    mut segment: impl FnMut(Segment, &[u8], &[u8], &mut [i32]) -> u64,
) -> u64 {
    let mut last = 0;
    let mut at = 0;
    for cell in bounds.windows(2) {
        let len = usize::try_from(cell[1] - cell[0]).unwrap_or(0);
        if len > 0 {
            let sum = segment(Segment { len, carry: 0, first: true }, &lo[at..], &hi[at..], &mut out[at..]);
            if sum > u64::from(u16::MAX) {
                carry_wraps(&mut out[at..at + len]);
            }
            last = last.max(sum);
            at += len;
        }
    }
    last
}

/// Running sums modulo 2^16 of one cell to sums modulo 2^32. A gap is below 2^16, so that a sum which is below the one
/// before it has wrapped exactly once.
#[inline(always)]
pub(crate) fn carry_wraps(cell: &mut [i32]) {
    let mut low = 0;
    let mut high = 0;
    let (blocks, rest) = cell.as_chunks_mut::<16>();
    for block in blocks {
        let mut wraps = block[0] < low;
        for i in 1..block.len() {
            wraps |= block[i] < block[i - 1];
        }
        if wraps {
            carry_each(block, &mut low, &mut high);
        } else {
            low = block[block.len() - 1];
            for sum in block {
                *sum |= high;
            }
        }
    }
    carry_each(rest, &mut low, &mut high);
}

#[inline(always)]
fn carry_each(sums: &mut [i32], low: &mut i32, high: &mut i32) {
    for sum in sums {
        if *sum < *low {
            *high = high.wrapping_add(1 << 16);
        }
        *low = *sum;
        *sum |= *high;
    }
}
