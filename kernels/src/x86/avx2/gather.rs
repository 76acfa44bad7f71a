//! Entries of a table by their indices.

use crate::scalar;

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn gather_u32(table: &[u32], indices: &[u32], out: &mut [u32]) -> Option<usize> {
    scalar::gather::gather_u32(table, indices, out)
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn gather_u64(table: &[u64], indices: &[u32], out: &mut [u64]) -> Option<usize> {
    scalar::gather::gather_u64(table, indices, out)
}

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn gather_bytes(table: &[u8], k: usize, indices: &[u32], out: &mut [u8]) -> Option<usize> {
    scalar::gather::gather_bytes(table, k, indices, out)
}
