//! Decimal numbers as integers.

/// 64-bit numbers.
#[inline(always)]
pub fn alp_f64(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f64]) {
    for (out, &offset) in out.iter_mut().zip(offsets) {
        *out = scaled(offset, base, up, down);
    }
}

/// 32-bit numbers, computed as 64-bit ones.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
pub fn alp_f32(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f32]) {
    for (out, &offset) in out.iter_mut().zip(offsets) {
        *out = scaled(offset, base, up, down) as f32;
    }
}

#[inline(always)]
fn scaled(offset: u64, base: i64, up: f64, down: f64) -> f64 {
    base.wrapping_add(offset.cast_signed()) as f64 * up * down
}
