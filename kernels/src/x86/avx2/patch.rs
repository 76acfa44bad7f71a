//! Exceptions.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn add(out: &mut [i32], delta: i32) {
    scalar::patch::add(out, delta);
}
