//! Runs to values.

/// Values of 4 bytes.
#[inline(always)]
pub fn repeat_u32(values: &[u32], runs: &[u32], out: &mut [u32]) -> u64 {
    repeat::<16, _>(values, runs, out)
}

/// Values of 8 bytes.
#[inline(always)]
pub fn repeat_u64(values: &[u64], runs: &[u32], out: &mut [u64]) -> u64 {
    repeat::<8, _>(values, runs, out)
}

/// Most runs are short: `BLOCK` values are stored for each, and the next run writes over what was too many.
#[inline(always)]
fn repeat<const BLOCK: usize, T: Copy + Default>(values: &[T], runs: &[u32], out: &mut [T]) -> u64 {
    let (mut total, mut out) = (0, out);
    for (&value, &run) in values.iter().zip(runs) {
        total += u64::from(run);
        let run = run as usize;
        match out.first_chunk_mut::<BLOCK>() {
            Some(block) if run <= BLOCK => {
                *block = [value; BLOCK];
                out = &mut out[run..];
            }
            _ => {
                let (these, rest) = out.split_at_mut(run.min(out.len()));
                these.fill(value);
                out = rest;
            }
        }
    }
    out.fill(T::default());
    total
}
