//! Decimal numbers as integers.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn alp_f64(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f64]) {
    scalar::alp::alp_f64(offsets, base, up, down, out);
}

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn alp_f32(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f32]) {
    scalar::alp::alp_f32(offsets, base, up, down, out);
}
