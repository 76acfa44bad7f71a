//! Packed differences to values: each difference is added to a smallest one, then to the value before.

use super::bits::{packed_len, unpack_u32, unpack_u64};

/// 32-bit values.
#[inline(always)]
pub fn deltas_u32(packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
    let unpack = |packed: &[u8], width, out: &mut [u32]| unpack_u32(packed, width, out);
    deltas(packed, widths, per, out, before, unpack, |sum, delta| sum.wrapping_add(least.wrapping_add(delta)))
}

/// 64-bit values.
#[inline(always)]
pub fn deltas_u64(packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
    let unpack = |packed: &[u8], width, out: &mut [u64]| unpack_u64(packed, width, out);
    deltas(packed, widths, per, out, before, unpack, |sum, delta| sum.wrapping_add(least.wrapping_add(delta)))
}

/// Two loops over each run: one that unpacks, one that adds up.
#[inline(always)]
fn deltas<T: Copy>(
    packed: &[u8],
    widths: &[u8],
    per: usize,
    out: &mut [T],
    before: T,
    unpack: impl Fn(&[u8], u32, &mut [T]),
    add: impl Fn(T, T) -> T,
) -> T {
    let (mut packed, mut sum) = (packed, before);
    for (out, &width) in out.chunks_mut(per).zip(widths) {
        unpack(packed, width.into(), out);
        for out in out {
            sum = add(sum, *out);
            *out = sum;
        }
        packed = packed.get(packed_len(per, width.into())..).unwrap_or(&[]);
    }
    sum
}
