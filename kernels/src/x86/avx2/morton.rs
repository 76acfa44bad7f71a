//! Differences of Morton codes to coordinates.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn morton(words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
    scalar::morton::morton(words, bits, shift, out);
}
