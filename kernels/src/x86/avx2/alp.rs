//! Decimal numbers as integers.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::scalar;

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn alp_f64(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f64]) {
    let ((blocks, rest), (out_blocks, out_rest)) = (offsets.as_chunks::<4>(), out.as_chunks_mut::<4>());
    for (out, block) in out_blocks.iter_mut().zip(blocks) {
        *out = must_cast(scaled(*block, base, up, down));
    }
    scalar::alp::alp_f64(rest, base, up, down, out_rest);
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn alp_f32(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f32]) {
    let ((blocks, rest), (out_blocks, out_rest)) = (offsets.as_chunks::<4>(), out.as_chunks_mut::<4>());
    for (out, block) in out_blocks.iter_mut().zip(blocks) {
        *out = must_cast(_mm256_cvtpd_ps(scaled(*block, base, up, down)));
    }
    scalar::alp::alp_f32(rest, base, up, down, out_rest);
}

/// Four numbers. There is no conversion from 64-bit integers: the halves become the low bits of large numbers, from
/// which what is too much is taken exactly. Only their sum is rounded.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn scaled(offsets: [u64; 4], base: i64, up: f64, down: f64) -> __m256d {
    /// The bits of 2^52, of 2^84 + 2^63, and of both together.
    const LOW: i64 = 0x4330_0000_0000_0000;
    const HIGH: i64 = 0x4530_0000_8000_0000;
    const BOTH: i64 = 0x4530_0000_8010_0000;
    let sums = _mm256_add_epi64(must_cast(offsets), _mm256_set1_epi64x(base));
    let low = _mm256_blend_epi32::<0b1010_1010>(sums, _mm256_set1_epi64x(LOW));
    // The sign, too, is turned round, which 2^63 makes up for.
    let high = _mm256_xor_si256(_mm256_srli_epi64::<32>(sums), _mm256_set1_epi64x(HIGH));
    let high = _mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_castsi256_pd(_mm256_set1_epi64x(BOTH)));
    let numbers = _mm256_add_pd(high, _mm256_castsi256_pd(low));
    _mm256_mul_pd(_mm256_mul_pd(numbers, _mm256_set1_pd(up)), _mm256_set1_pd(down))
}
