//! Byte planes to words: plane `p` of `k` planes holds byte `p` of every word.

use crate::{CountsSeen, Store};

/// `k` planes, each `stride` bytes behind the one before, to little-endian words of `k` bytes.
#[inline(always)]
pub fn words(planes: &[u8], stride: usize, k: usize, out: &mut [u8]) {
    match k {
        1 => out.copy_from_slice(&planes[..out.len()]),
        2 => words_of::<2>(planes, stride, out),
        4 => words_of::<4>(planes, stride, out),
        8 => words_of::<8>(planes, stride, out),
        _ => {
            for p in 0..k {
                for (word, &byte) in out.chunks_exact_mut(k).zip(&planes[p * stride..]) {
                    word[p] = byte;
                }
            }
        }
    }
}

#[inline(always)]
fn words_of<const K: usize>(planes: &[u8], stride: usize, out: &mut [u8]) {
    let (out, _) = out.as_chunks_mut::<K>();
    let n = out.len();
    let mut plane = [planes; K];
    for (p, plane) in plane.iter_mut().enumerate() {
        *plane = &planes[p * stride..][..n];
    }
    for (i, word) in out.iter_mut().enumerate() {
        *word = std::array::from_fn(|p| plane[p][i]);
    }
}

/// Two planes to counts as 32-bit integers.
#[inline(always)]
pub fn counts_i32(lo: &[u8], hi: &[u8], out: &mut [i32], _store: Store) -> CountsSeen {
    counts(lo, hi, out, i32::from)
}

/// Two planes to counts as 32-bit floats.
#[inline(always)]
pub fn counts_f32(lo: &[u8], hi: &[u8], out: &mut [f32], _store: Store) -> CountsSeen {
    counts(lo, hi, out, f32::from)
}

/// Two planes to counts as 16-bit integers.
#[inline(always)]
pub fn counts_u16(lo: &[u8], hi: &[u8], out: &mut [u16], _store: Store) -> CountsSeen {
    counts(lo, hi, out, |count| count)
}

#[inline(always)]
pub(crate) fn counts<T>(lo: &[u8], hi: &[u8], out: &mut [T], widen: impl Fn(u16) -> T) -> CountsSeen {
    let mut zero = false;
    for ((out, &lo), &hi) in out.iter_mut().zip(lo).zip(hi) {
        let count = u16::from_le_bytes([lo, hi]);
        zero |= count == 0;
        *out = widen(count);
    }
    CountsSeen { zero }
}
