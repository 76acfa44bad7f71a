//! Differences of Morton codes to coordinates.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::delta::{ZIP_32, scan32};
use crate::scalar;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn morton(words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
    let ones = _mm512_set1_epi32((1 << bits) - 1);
    let shifts = _mm512_set1_epi32(shift.cast_signed());
    let mut code = _mm512_setzero_si512();
    let ((blocks, rest), (out_blocks, out_rest)) = (words.as_chunks::<16>(), out.as_chunks_mut::<32>());
    for (out, block) in out_blocks.iter_mut().zip(blocks) {
        let sums = scan32(must_cast(*block));
        let codes = _mm512_add_epi32(sums, code);
        code = _mm512_add_epi32(code, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums));
        let [x, y] = axes(codes).map(|axis| _mm512_sub_epi32(_mm512_and_si512(axis, ones), shifts));
        let halves = ZIP_32.map(|pairs| _mm512_permutex2var_epi32(x, must_cast(pairs), y));
        *out = must_cast(halves);
    }
    scalar::morton::from(_mm512_cvtsi512_si32(code).cast_unsigned(), rest, bits, shift, out_rest);
}

/// The even bits of each code, and the odd ones, put together. Those of a byte lie in a table of 16, for each half of it.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn axes(codes: __m512i) -> [__m512i; 2] {
    // Of four bits, the even ones in bits 0 and 1 of the result, the odd ones in bits 4 and 5.
    let table = _mm512_broadcast_i32x4(must_cast([
        0u8, 0x01, 0x10, 0x11, 0x02, 0x03, 0x12, 0x13, 0x20, 0x21, 0x30, 0x31, 0x22, 0x23, 0x32, 0x33,
    ]));
    let fours = _mm512_set1_epi8(0x0f);
    let low = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, fours));
    let high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16::<4>(codes), fours));
    // Bytes of four even bits, then four odd ones.
    let bytes = _mm512_or_si512(low, _mm512_slli_epi16::<2>(high));
    [bytes, _mm512_srli_epi16::<4>(bytes)].map(|bytes| {
        // Four bits of each byte to eight of each word, then to sixteen.
        let pairs = _mm512_maddubs_epi16(_mm512_and_si512(bytes, fours), _mm512_set1_epi16(0x1001));
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0100_0001))
    })
}
