//! Runs to values.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn repeat_u32(values: &[u32], runs: &[u32], out: &mut [u32]) -> u64 {
    scalar::runs::repeat_u32(values, runs, out)
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn repeat_u64(values: &[u64], runs: &[u32], out: &mut [u64]) -> u64 {
    scalar::runs::repeat_u64(values, runs, out)
}
