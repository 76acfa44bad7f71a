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
