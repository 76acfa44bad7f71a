//! The order of bytes in words.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn swap_words(src: &[u8], out: &mut [u8]) {
    scalar::swap::swap_words(src, out);
}
