//! Byte planes to words.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::blocks::{by_planes, eight_planes};
use crate::scalar;

#[target_feature(enable = "neon")]
pub(crate) fn words(planes: &[u8], stride: usize, k: usize, out: &mut [u8]) {
    let n = out.len() / k;
    if n < 16 {
        return scalar::planes::words(planes, stride, k, out);
    }
    match k {
        1 | 3 => scalar::planes::words(planes, stride, k, out),
        2 => {
            let (low, high) = (&planes[..n], &planes[stride..][..n]);
            by_planes::<2, 16>([low, high], k, out, |[low, high]| {
                let (low, high) = (must_cast(*low), must_cast(*high));
                must_cast([vzip1q_u8(low, high), vzip2q_u8(low, high)])
            });
        }
        4 => {
            let [a, b, c, d, ..] = eight_planes(planes, (stride, k, n), 0);
            by_planes::<4, 16>([a, b, c, d], k, out, |planes| must_cast(fours(planes.map(|bytes| must_cast(*bytes)))));
        }
        _ => {
            let mut first = 0;
            while first < k {
                // The last eight planes may be partly those before.
                first = first.min(k.saturating_sub(8));
                by_planes::<8, 16>(eight_planes(planes, (stride, k, n), first), k, &mut out[first..], |planes| {
                    must_cast(eights(planes.map(|bytes| must_cast(*bytes))))
                });
                first += 8;
            }
        }
    }
}

/// 16 words of eight bytes.
#[target_feature(enable = "neon")]
#[inline]
fn eights([a, b, c, d, e, f, g, h]: [uint8x16_t; 8]) -> [uint32x4_t; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (fours([a, b, c, d]), fours([e, f, g, h]));
    [
        vzip1q_u32(a, e),
        vzip2q_u32(a, e),
        vzip1q_u32(b, f),
        vzip2q_u32(b, f),
        vzip1q_u32(c, g),
        vzip2q_u32(c, g),
        vzip1q_u32(d, h),
        vzip2q_u32(d, h),
    ]
}

/// 16 words of four bytes.
#[target_feature(enable = "neon")]
#[inline]
fn fours([a, b, c, d]: [uint8x16_t; 4]) -> [uint32x4_t; 4] {
    let ab = [vreinterpretq_u16_u8(vzip1q_u8(a, b)), vreinterpretq_u16_u8(vzip2q_u8(a, b))];
    let cd = [vreinterpretq_u16_u8(vzip1q_u8(c, d)), vreinterpretq_u16_u8(vzip2q_u8(c, d))];
    [
        vreinterpretq_u32_u16(vzip1q_u16(ab[0], cd[0])),
        vreinterpretq_u32_u16(vzip2q_u16(ab[0], cd[0])),
        vreinterpretq_u32_u16(vzip1q_u16(ab[1], cd[1])),
        vreinterpretq_u32_u16(vzip2q_u16(ab[1], cd[1])),
    ]
}
