//! Values that are there, to their places among those that are not.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::blocks::SET_BEFORE;
use crate::scalar;
use crate::scalar::spread::{bits_from, by_words};

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn spread_u32(values: &[u32], present: &[u8], out: &mut [u32]) -> usize {
    let (mut taken, mut done) = (0, 0);
    for (out, &bits) in out.as_chunks_mut::<8>().0.iter_mut().zip(present) {
        let Some(block) = values.get(taken..).and_then(<[u32]>::first_chunk::<8>) else { break };
        *out = must_cast(spread(must_cast(*block), SET_BEFORE[usize::from(bits)]));
        (taken, done) = (taken + bits.count_ones() as usize, done + 8);
    }
    taken + scalar::spread::spread_u32(values.get(taken..).unwrap_or(&[]), &present[done / 8..], &mut out[done..])
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn spread_u64(values: &[u64], present: &[u8], out: &mut [u64]) -> usize {
    let (mut taken, mut done) = (0, 0);
    for (out, &bits) in out.as_chunks_mut::<8>().0.iter_mut().zip(present) {
        let Some(block) = values.get(taken..).and_then(<[u64]>::first_chunk::<8>) else { break };
        let low = usize::from(bits & 15);
        let second = block[low.count_ones() as usize..].first_chunk().unwrap_or(&[0; 4]);
        let halves = [(block.first_chunk().unwrap_or(&[0; 4]), low), (second, usize::from(bits >> 4))];
        *out = must_cast(halves.map(|(&values, bits)| spread(must_cast(values), FOUR[bits])));
        (taken, done) = (taken + bits.count_ones() as usize, done + 8);
    }
    taken + scalar::spread::spread_u64(values.get(taken..).unwrap_or(&[]), &present[done / 8..], &mut out[done..])
}

/// Words by their places, 0 where that is negative.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn spread(words: __m256i, places: [i8; 8]) -> __m256i {
    let places = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(must_cast(places)));
    _mm256_andnot_si256(_mm256_srai_epi32::<31>(places), _mm256_permutevar8x32_epi32(words, places))
}

/// [`SET_BEFORE`] of four bits, each that of two words.
static FOUR: [[i8; 8]; 16] = {
    let mut places = [[-1; 8]; 16];
    let mut bits = 0;
    while bits < 16 {
        let mut word = 0;
        while word < 8 {
            let value = SET_BEFORE[bits][word / 2];
            if value >= 0 {
                places[bits][word] = 2 * value + [0, 1][word % 2];
            }
            word += 1;
        }
        bits += 1;
    }
    places
};

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn spread_bits(values: &[u8], present: &[u8], n: usize, out: &mut [u8]) -> usize {
    let mut taken = 0;
    by_words(present, n, out, |present| {
        let values = bits_from(values, taken);
        taken += present.count_ones() as usize;
        _pdep_u64(values, present)
    });
    taken
}
