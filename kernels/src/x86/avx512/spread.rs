//! Values that are there, to their places among those that are not.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::scalar;
use crate::scalar::spread::{bits_from, by_words};

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn spread_u32(values: &[u32], present: &[u8], out: &mut [u32]) -> usize {
    let (mut taken, mut done) = (0, 0);
    for (out, &bits) in out.as_chunks_mut::<16>().0.iter_mut().zip(present.as_chunks::<2>().0) {
        let Some(block) = values.get(taken..).and_then(<[u32]>::first_chunk::<16>) else { break };
        let bits = u16::from_le_bytes(bits);
        *out = must_cast(_mm512_maskz_expand_epi32(bits, must_cast(*block)));
        (taken, done) = (taken + bits.count_ones() as usize, done + 16);
    }
    taken + scalar::spread::spread_u32(values.get(taken..).unwrap_or(&[]), &present[done / 8..], &mut out[done..])
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn spread_u64(values: &[u64], present: &[u8], out: &mut [u64]) -> usize {
    let (mut taken, mut done) = (0, 0);
    for (out, &bits) in out.as_chunks_mut::<8>().0.iter_mut().zip(present) {
        let Some(block) = values.get(taken..).and_then(<[u64]>::first_chunk::<8>) else { break };
        *out = must_cast(_mm512_maskz_expand_epi64(bits, must_cast(*block)));
        (taken, done) = (taken + bits.count_ones() as usize, done + 8);
    }
    taken + scalar::spread::spread_u64(values.get(taken..).unwrap_or(&[]), &present[done / 8..], &mut out[done..])
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn spread_bits(values: &[u8], present: &[u8], n: usize, out: &mut [u8]) -> usize {
    let mut taken = 0;
    by_words(present, n, out, |present| {
        let values = bits_from(values, taken);
        taken += present.count_ones() as usize;
        _pdep_u64(values, present)
    });
    taken
}
