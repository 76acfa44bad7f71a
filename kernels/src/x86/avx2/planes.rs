//! Byte planes to words: the plain loops, compiled for this level.

use crate::level::x86::Avx2;
use crate::{CountsSeen, Store, scalar};

pub(crate) fn words(planes: &[u8], k: usize, out: &mut [u8]) {
    match Avx2::try_new() {
        Some(token) => token.vectorize(move || scalar::planes::words(planes, k, out)),
        None => scalar::planes::words(planes, k, out),
    }
}

pub(crate) fn counts_i32(lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
    match Avx2::try_new() {
        Some(token) => token.vectorize(move || scalar::planes::counts_i32(lo, hi, out, store)),
        None => scalar::planes::counts_i32(lo, hi, out, store),
    }
}
pub(crate) fn counts_f32(lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
    match Avx2::try_new() {
        Some(token) => token.vectorize(move || scalar::planes::counts_f32(lo, hi, out, store)),
        None => scalar::planes::counts_f32(lo, hi, out, store),
    }
}
pub(crate) fn counts_u16(lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
    match Avx2::try_new() {
        Some(token) => token.vectorize(move || scalar::planes::counts_u16(lo, hi, out, store)),
        None => scalar::planes::counts_u16(lo, hi, out, store),
    }
}
pub(crate) fn add(out: &mut [i32], delta: i32) {
    match Avx2::try_new() {
        Some(token) => token.vectorize(move || scalar::patch::add(out, delta)),
        None => scalar::patch::add(out, delta),
    }
}
