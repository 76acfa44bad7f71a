//! Results written around the caches, in full lines.

// The fence is no safe function outside the levels.
#![allow(unsafe_code)]

use core::arch::x86_64::{__m512i, _mm_sfence};

use bytemuck::Pod;

use crate::blocks::{by_blocks, cells};
use crate::{CountsSeen, Store, scalar};

/// A line of the caches.
pub(crate) type Line = __m512i;

/// Values of a stage: more than a long cell, and 32 KiB.
const STAGE: usize = 8192;

/// Whether results of `len` values are stored around the caches: not where set-up and ends would weigh.
pub(crate) fn streams(store: Store, len: usize) -> bool {
    store == Store::Streaming && len >= 2 * STAGE
}

/// Orders the lines that were stored before all that follows.
pub(crate) fn fence() {
    // SAFETY: SSE is part of x86-64. The streaming stores need it once a call; their gain, measured where they stand,
    // was taken with it.
    unsafe { _mm_sfence() }
}

/// Two planes to counts in blocks of `N` values, which fill `LINES` lines, as `store` asks. What is no whole block
/// goes through the plain loop; the evidence is that of these parts alone.
#[inline(always)]
pub(crate) fn counts<const N: usize, const LINES: usize, T: Pod>(
    (lo, hi, out): (&[u8], &[u8], &mut [T]),
    store: Store,
    widen: impl Fn(u16) -> T,
    mut block: impl FnMut(&[u8; N], &[u8; N]) -> [T; N],
    line: impl Fn(&mut Line, &[u8; 64]),
) -> CountsSeen {
    if !streams(store, out.len()) {
        return cached_counts(lo, hi, out, widen, block);
    }
    let (head, lines, tail) = bytemuck::pod_align_to_mut::<T, Line>(out);
    let (blocks, lines) = lines.as_chunks_mut::<LINES>();
    let (lo_head, lo) = lo.split_at(head.len());
    let (hi_head, hi) = hi.split_at(head.len());
    let (lo_blocks, lo) = lo.split_at(blocks.len() * N);
    let (hi_blocks, hi) = hi.split_at(blocks.len() * N);
    let (lo_lines, lo_tail) = lo.split_at(lo.len() - tail.len());
    let (hi_lines, hi_tail) = hi.split_at(hi.len() - tail.len());
    for ((to, lo), hi) in blocks.iter_mut().zip(lo_blocks.as_chunks().0).zip(hi_blocks.as_chunks().0) {
        let counts = block(lo, hi);
        for (to, from) in to.iter_mut().zip(bytemuck::bytes_of(&counts).as_chunks().0) {
            line(to, from);
        }
    }
    fence();
    let mut seen = cached_counts(lo_head, hi_head, head, &widen, &mut block);
    seen.zero |= cached_counts(lo_lines, hi_lines, bytemuck::cast_slice_mut(lines), &widen, &mut block).zero;
    seen.zero |= cached_counts(lo_tail, hi_tail, tail, &widen, &mut block).zero;
    seen
}

#[inline(always)]
fn cached_counts<const N: usize, T>(
    lo: &[u8],
    hi: &[u8],
    out: &mut [T],
    widen: impl Fn(u16) -> T,
    mut block: impl FnMut(&[u8; N], &[u8; N]) -> [T; N],
) -> CountsSeen {
    let ((lo, lo_rest), (hi, hi_rest)) = (lo.as_chunks(), hi.as_chunks());
    let (out, out_rest) = out.as_chunks_mut();
    for ((out, lo), hi) in out.iter_mut().zip(lo).zip(hi) {
        *out = block(lo, hi);
    }
    scalar::planes::counts(lo_rest, hi_rest, out_rest, widen)
}

/// [`by_blocks`], around the caches. The cells go to one stage while the lines of the other leave for memory, a few
/// after every block: stores around the caches are slow, but need not be waited for.
///
/// A cell that is larger than a stage, and the last cells, are stored through the caches.
#[inline(always)]
pub(crate) fn gaps<const W: usize, S: Copy>(
    (mut lo, mut hi, mut bounds, mut out): (&[u8], &[u8], &[i64], &mut [i32]),
    state: &mut S,
    begin: impl Fn(&mut S),
    block: impl Fn(&mut S, &[u8; W], &[u8; W], u8) -> [i32; W],
    end: impl Fn(&S) -> u64,
    line: impl Fn(&mut Line, &[u8; 64]),
) -> u64 {
    let mut stages = [[0; STAGE + 64]; 2];
    let [mut stage, mut staged] = stages.each_mut();
    let mut largest = 0;
    let mut leaving: &mut [i32] = &mut [];
    while let [first, _, ..] = *bounds {
        let count = bounds[1..].iter().take_while(|&&bound| bound - first <= STAGE as i64).count().max(1);
        let len = usize::try_from(bounds[count] - first).unwrap_or(0);
        if len > STAGE || out.len() < len + W {
            let (these, rest) = out.split_at_mut(len);
            out = rest;
            let job = (&lo[..len], &hi[..len], &bounds[..=count], these);
            largest = largest.max(by_blocks::<W, S>(job, state, &begin, &block, &end));
        } else {
            let mut lines = Lines::new(staged, leaving);
            let job = (&lo[..len + W], &hi[..len + W], &bounds[..=count], &mut stage[..len + W]);
            largest = largest.max(cells::<W, S, true>(job, state, &begin, &block, &end, || lines.some(W / 16, &line)));
            lines.some(usize::MAX, &line);
            (leaving, out) = out.split_at_mut(len);
            (stage, staged) = (staged, stage);
        }
        (lo, hi, bounds) = (&lo[len..], &hi[len..], &bounds[count..]);
    }
    Lines::new(staged, leaving).some(usize::MAX, &line);
    fence();
    largest
}

/// Lines on their way from a stage to memory.
struct Lines<'a> {
    from: core::slice::Iter<'a, [u8; 64]>,
    to: core::slice::IterMut<'a, Line>,
}

impl<'a> Lines<'a> {
    /// All full lines of `to`. What it holds besides is copied now.
    #[inline(always)]
    fn new(from: &'a [i32], to: &'a mut [i32]) -> Lines<'a> {
        let from = &from[..to.len()];
        let (head, to, tail) = bytemuck::pod_align_to_mut::<i32, Line>(to);
        let (from_head, from) = from.split_at(head.len());
        let (from, from_tail) = from.split_at(from.len() - tail.len());
        head.copy_from_slice(from_head);
        tail.copy_from_slice(from_tail);
        Lines { from: bytemuck::cast_slice::<i32, u8>(from).as_chunks().0.iter(), to: to.iter_mut() }
    }

    /// Sends the next `count` lines.
    #[inline(always)]
    fn some(&mut self, count: usize, line: impl Fn(&mut Line, &[u8; 64])) {
        for (to, from) in self.to.by_ref().zip(self.from.by_ref()).take(count) {
            line(to, from);
        }
    }
}
