//! Exceptions: the one step that replaces or shifts values which did not fit their stream.

/// Sets `out[positions[i]]` to `values[i]`.
///
/// # Panics
/// If the lists differ in length or a position is not below `out.len()`.
pub fn replace<T: Copy>(
    out: &mut [T],
    positions: impl IntoIterator<Item = usize>,
    values: impl IntoIterator<Item = T>,
) {
    for (position, value) in positions.into_iter().zip(values) {
        out[position] = value;
    }
}

/// Adds `delta` to every value; wraps.
#[inline(always)]
pub fn add(out: &mut [i32], delta: i32) {
    for value in out {
        *value = value.wrapping_add(delta);
    }
}

/// High bits of 32-bit words.
#[inline(always)]
pub fn patch_u32(positions: &[u8], values: &[u32], width: u32, out: &mut [u32]) {
    for (&position, value) in positions.iter().zip(values) {
        if let Some(out) = out.get_mut(usize::from(position)) {
            *out |= value.wrapping_shl(width);
        }
    }
}

/// High bits of 64-bit words.
#[inline(always)]
pub fn patch_u64(positions: &[u8], values: &[u64], width: u32, out: &mut [u64]) {
    for (&position, value) in positions.iter().zip(values) {
        if let Some(out) = out.get_mut(usize::from(position)) {
            *out |= value.wrapping_shl(width);
        }
    }
}
