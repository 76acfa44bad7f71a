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
