//! Byte planes to words: plain loops, and lines around the caches.

// Stores around the caches take raw pointers.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use bytemuck::{must_cast, must_cast_mut};

use super::plain;
use crate::x86::stream::{self, Line, streams};
use crate::{CountsSeen, Store, scalar};

pub(crate) fn words(planes: &[u8], k: usize, out: &mut [u8]) {
    plain(move || scalar::planes::words(planes, k, out))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_i32(lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
    if streams(store, out.len()) {
        return stream::counts::<16, i32>(lo, hi, out, i32::from, |to, from| store_line(to, from));
    }
    plain(move || scalar::planes::counts_i32(lo, hi, out, store))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_f32(lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
    if streams(store, out.len()) {
        return stream::counts::<16, f32>(lo, hi, out, f32::from, |to, from| store_line(to, from));
    }
    plain(move || scalar::planes::counts_f32(lo, hi, out, store))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn counts_u16(lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
    if streams(store, out.len()) {
        return stream::counts::<32, u16>(lo, hi, out, u16::from, |to, from| store_line(to, from));
    }
    plain(move || scalar::planes::counts_u16(lo, hi, out, store))
}

/// Stores a line around the caches.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn store_line(to: &mut Line, from: &[u8; 64]) {
    let to: &mut [__m256i; 2] = must_cast_mut(to);
    let from: [__m256i; 2] = must_cast(*from);
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: `to` is a reference, hence writable and aligned. Measured TODO
        unsafe { _mm256_stream_si256(to, from) }
    }
}
