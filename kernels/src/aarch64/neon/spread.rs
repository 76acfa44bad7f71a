//! Values that are there, to their places among those that are not.

use core::arch::aarch64::*;

use bytemuck::must_cast;

use crate::blocks::SET_BEFORE;
use crate::scalar;

#[target_feature(enable = "neon")]
pub(crate) fn spread_u32(values: &[u32], present: &[u8], out: &mut [u32]) -> usize {
    let byte = must_cast([0x0302_0100u32; 4]);
    let (mut taken, mut done) = (0, 0);
    for (out, &bits) in out.as_chunks_mut::<8>().0.iter_mut().zip(present) {
        let Some(block) = values.get(taken..).and_then(<[u32]>::first_chunk::<8>) else { break };
        let [low, high] = must_cast(*block);
        // The first byte of each value, four times; what lies outside gives 0.
        let places = vshl_n_u8::<2>(must_cast(SET_BEFORE[usize::from(bits)]));
        let twice = vzip1q_u8(vcombine_u8(places, places), vcombine_u8(places, places));
        let places = [vzip1q_u8(twice, twice), vzip2q_u8(twice, twice)];
        *out = must_cast(places.map(|places| vqtbl2q_u8(uint8x16x2_t(low, high), vaddq_u8(places, byte))));
        (taken, done) = (taken + bits.count_ones() as usize, done + 8);
    }
    taken + scalar::spread::spread_u32(values.get(taken..).unwrap_or(&[]), &present[done / 8..], &mut out[done..])
}
