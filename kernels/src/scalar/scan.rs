//! Gaps to indices: a prefix sum that starts anew in each cell.

use crate::{GapsSeen, Store};

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

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "indices wrap")]
fn gaps_of_cell(lo: &[u8], hi: &[u8], out: &mut [i32]) -> GapsSeen {
    let mut last = 0u64;
    let mut zeros = 0usize;
    for ((out, &lo), &hi) in out.iter_mut().zip(lo).zip(hi) {
        let gap = u16::from_le_bytes([lo, hi]);
        last += u64::from(gap);
        zeros += usize::from(gap == 0);
        *out = (last as u32).cast_signed();
    }
    let first_is_zero = lo.first() == Some(&0) && hi.first() == Some(&0);
    GapsSeen { last, repeated: zeros > usize::from(first_is_zero) }
}
