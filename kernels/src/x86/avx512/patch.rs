//! Exceptions.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn add(out: &mut [i32], delta: i32) {
    scalar::patch::add(out, delta);
}
