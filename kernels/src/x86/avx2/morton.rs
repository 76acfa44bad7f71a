//! Differences of Morton codes to coordinates.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::delta::scan32;
use crate::scalar;

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn morton(words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
    let ones = _mm256_set1_epi32((1 << bits) - 1);
    let shifts = _mm256_set1_epi32(shift.cast_signed());
    let mut code = _mm256_setzero_si256();
    let ((blocks, rest), (out_blocks, out_rest)) = (words.as_chunks::<8>(), out.as_chunks_mut::<16>());
    for (out, block) in out_blocks.iter_mut().zip(blocks) {
        let codes = _mm256_add_epi32(scan32(must_cast(*block)), code);
        code = _mm256_permutevar8x32_epi32(codes, _mm256_set1_epi32(7));
        let [x, y] = axes(codes).map(|axis| _mm256_sub_epi32(_mm256_and_si256(axis, ones), shifts));
        let (low, high) = (_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
        let halves = [_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high)];
        *out = must_cast(halves);
    }
    scalar::morton::from(_mm256_cvtsi256_si32(code).cast_unsigned(), rest, bits, shift, out_rest);
}

/// The even bits of each code, and the odd ones, put together. Those of a byte lie in a table of 16, for each half of it.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn axes(codes: __m256i) -> [__m256i; 2] {
    // Of four bits, the even ones in bits 0 and 1 of the result, the odd ones in bits 4 and 5.
    let table = _mm256_broadcastsi128_si256(must_cast([
        0u8, 0x01, 0x10, 0x11, 0x02, 0x03, 0x12, 0x13, 0x20, 0x21, 0x30, 0x31, 0x22, 0x23, 0x32, 0x33,
    ]));
    let fours = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, fours));
    let high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(codes), fours));
    // Bytes of four even bits, then four odd ones.
    let bytes = _mm256_or_si256(low, _mm256_slli_epi16::<2>(high));
    [bytes, _mm256_srli_epi16::<4>(bytes)].map(|bytes| {
        // Four bits of each byte to eight of each word, then to sixteen.
        let pairs = _mm256_maddubs_epi16(_mm256_and_si256(bytes, fours), _mm256_set1_epi16(0x1001));
        _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0100_0001))
    })
}
