//! Entries of a table by their indices: small tables stay in registers.

#![expect(clippy::cast_possible_truncation, reason = "tables in registers have up to 128 entries")]

use core::arch::x86_64::*;

use super::bits::{load, store};
use crate::scalar::gather as plain;
use crate::x86::avx2;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn gather_u32(table: &[u32], indices: &[u32], out: &mut [u32]) -> Option<usize> {
    let all = match table.len() {
        1..=32 => {
            let (a, b) = (register::<0, _>(table), register::<1, _>(table));
            from_registers_u32(table.len(), indices, out, |indices| _mm512_permutex2var_epi32(a, indices, b))
        }
        33..=128 => {
            let a =
                [register::<0, _>(table), register::<1, _>(table), register::<2, _>(table), register::<3, _>(table)];
            let b =
                [register::<4, _>(table), register::<5, _>(table), register::<6, _>(table), register::<7, _>(table)];
            let (bit_5, bit_6) = (_mm512_set1_epi32(32), _mm512_set1_epi32(64));
            from_registers_u32(table.len(), indices, out, |indices| {
                let upper = _mm512_test_epi32_mask(indices, bit_5);
                let of = |[a, b, c, d]: [__m512i; 4]| {
                    let low = _mm512_permutex2var_epi32(a, indices, b);
                    let high = _mm512_permutex2var_epi32(c, indices, d);
                    _mm512_mask_blend_epi32(upper, low, high)
                };
                _mm512_mask_blend_epi32(_mm512_test_epi32_mask(indices, bit_6), of(a), of(b))
            })
        }
        _ => return avx2::gather::gather_u32(table, indices, out),
    };
    if all { None } else { plain::first_outside(table.len(), indices) }
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn gather_u64(table: &[u64], indices: &[u32], out: &mut [u64]) -> Option<usize> {
    let all = match table.len() {
        1..=16 => {
            let (a, b) = (register::<0, _>(table), register::<1, _>(table));
            from_registers_u64(table.len(), indices, out, |indices| _mm512_permutex2var_epi64(a, indices, b))
        }
        17..=64 => {
            let a =
                [register::<0, _>(table), register::<1, _>(table), register::<2, _>(table), register::<3, _>(table)];
            let b =
                [register::<4, _>(table), register::<5, _>(table), register::<6, _>(table), register::<7, _>(table)];
            let (bit_4, bit_5) = (_mm512_set1_epi64(16), _mm512_set1_epi64(32));
            from_registers_u64(table.len(), indices, out, |indices| {
                let upper = _mm512_test_epi64_mask(indices, bit_4);
                let of = |[a, b, c, d]: [__m512i; 4]| {
                    let low = _mm512_permutex2var_epi64(a, indices, b);
                    let high = _mm512_permutex2var_epi64(c, indices, d);
                    _mm512_mask_blend_epi64(upper, low, high)
                };
                _mm512_mask_blend_epi64(_mm512_test_epi64_mask(indices, bit_5), of(a), of(b))
            })
        }
        _ => return avx2::gather::gather_u64(table, indices, out),
    };
    if all { None } else { plain::first_outside(table.len(), indices) }
}

/// The `R`th 64 bytes of a table, zeros behind its end.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn register<const R: usize, T: bytemuck::NoUninit>(table: &[T]) -> __m512i {
    load(table.get(R * (64 / size_of::<T>())..).unwrap_or(&[]))
}

/// Whether all indices are inside.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn from_registers_u32(entries: usize, indices: &[u32], out: &mut [u32], look_up: impl Fn(__m512i) -> __m512i) -> bool {
    let end = _mm512_set1_epi32(entries as i32);
    let mut all = u16::MAX;
    let mut block = |out: &mut [u32], indices: &[u32]| {
        let indices = load(indices);
        let inside = _mm512_cmplt_epu32_mask(indices, end);
        all &= inside;
        store(out, _mm512_maskz_mov_epi32(inside, look_up(indices)));
    };
    let ((blocks, rest), (out_blocks, out_rest)) = (indices.as_chunks::<16>(), out.as_chunks_mut::<16>());
    for (out, indices) in out_blocks.iter_mut().zip(blocks) {
        block(out, indices);
    }
    block(out_rest, rest);
    all == u16::MAX
}

/// Whether all indices are inside.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn from_registers_u64(entries: usize, indices: &[u32], out: &mut [u64], look_up: impl Fn(__m512i) -> __m512i) -> bool {
    let end = _mm512_set1_epi64(entries as i64);
    let mut all = u8::MAX;
    let mut block = |out: &mut [u64], indices: &[u32]| {
        let indices = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(load(indices)));
        let inside = _mm512_cmplt_epu64_mask(indices, end);
        all &= inside;
        store(out, _mm512_maskz_mov_epi64(inside, look_up(indices)));
    };
    let ((blocks, rest), (out_blocks, out_rest)) = (indices.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (out, indices) in out_blocks.iter_mut().zip(blocks) {
        block(out, indices);
    }
    block(out_rest, rest);
    all == u8::MAX
}
