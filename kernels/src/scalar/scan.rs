//! Gaps to indices: a prefix sum that starts anew in each cell.

use crate::{GapsSeen, Store};

/// Values that both loops take in turn, so that they find them in the first-level cache.
const STRETCH: usize = 1024;

/// Cells below this gain nothing from two loops.
const SHORT: usize = 24;

/// Two planes of gaps to indices, cell by cell.
pub fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], _store: Store) -> GapsSeen {
    let mut seen = GapsSeen::default();
    let (mut lo, mut hi, mut out) = (lo, hi, out);
    for cell in bounds.windows(2) {
        let len = usize::try_from(cell[1] - cell[0]).unwrap_or(0);
        let (out_cell, out_rest) = out.split_at_mut(len);
        seen = seen.and(gaps_of_cell(&lo[..len], &hi[..len], out_cell));
        (lo, hi, out) = (&lo[len..], &hi[len..], out_rest);
    }
    seen
}

/// Two loops over each stretch of a cell: one that compilers make many words at once of, one that adds them up.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "indices wrap")]
fn gaps_of_cell(lo: &[u8], hi: &[u8], out: &mut [i32]) -> GapsSeen {
    let (mut last, mut zeros) = (0u64, 0u64);
    if out.len() < SHORT {
        for ((out, &lo), &hi) in out.iter_mut().zip(lo).zip(hi) {
            let gap = u16::from_le_bytes([lo, hi]);
            zeros += u64::from(gap == 0);
            last += u64::from(gap);
            *out = (last as u32).cast_signed();
        }
        return seen(last, zeros, lo, hi);
    }
    for ((out, lo), hi) in out.chunks_mut(STRETCH).zip(lo.chunks(STRETCH)).zip(hi.chunks(STRETCH)) {
        let mut zeros_here = 0u16; // as wide as a gap, and wider than a stretch is long
        for ((out, &lo), &hi) in out.iter_mut().zip(lo).zip(hi) {
            let gap = u16::from_le_bytes([lo, hi]);
            zeros_here += u16::from(gap == 0);
            *out = gap.into();
        }
        zeros += u64::from(zeros_here);
        for out in out {
            last += u64::from(out.cast_unsigned());
            *out = (last as u32).cast_signed();
        }
    }
    seen(last, zeros, lo, hi)
}

#[inline(always)]
fn seen(last: u64, zeros: u64, lo: &[u8], hi: &[u8]) -> GapsSeen {
    let first_is_zero = lo.first() == Some(&0) && hi.first() == Some(&0);
    GapsSeen { last, repeated: zeros > u64::from(first_is_zero) }
}
