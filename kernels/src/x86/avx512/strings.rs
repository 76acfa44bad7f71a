//! Bytes of many short values, put behind each other.

use crate::{LengthsSeen, scalar};

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    scalar::strings::offsets_u32(lengths, start, out)
}

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn offsets_u64(lengths: &[u32], start: u64, out: &mut [u64]) -> LengthsSeen {
    scalar::strings::offsets_u64(lengths, start, out)
}

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn spans(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
    scalar::strings::spans(data, starts, lengths, out)
}

/// The plain loop, compiled for this level.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
    scalar::strings::prefixed(before, prefixes, lengths, suffixes, out)
}
