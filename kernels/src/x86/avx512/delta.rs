//! Running sums: over the sums of neighbours, of which each register then makes two.

#![expect(clippy::cast_possible_truncation, reason = "widths are at most 64")]

use core::arch::x86_64::*;

use bytemuck::{Pod, must_cast};

use super::bits::{load, store};
use crate::scalar::bits::ones;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn deltas_u32(packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
    let least = _mm512_set1_epi32(least.cast_signed());
    let mut sum = _mm512_set1_epi32(before.cast_signed());
    let whole = by_pairs::<16, _, _>(
        packed,
        widths,
        per,
        out,
        |width| cuts_32(width),
        |cuts, a, b| {
            let [even, odd] = cuts.places.map(|(low, high, bit)| {
                let (low, high) = (_mm512_permutex2var_epi32(a, low, b), _mm512_permutex2var_epi32(a, high, b));
                _mm512_add_epi32(_mm512_and_si512(_mm512_shrdv_epi32(low, high, bit), cuts.ones), least)
            });
            let sums = scan32(_mm512_add_epi32(even, odd));
            let after_odd = _mm512_add_epi32(sums, sum);
            // A place's sum is the one after it less the difference between them.
            let after_even = _mm512_sub_epi32(after_odd, odd);
            sum = _mm512_add_epi32(sum, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums));
            [
                _mm512_permutex2var_epi32(after_even, must_cast(ZIP_32[0]), after_odd),
                _mm512_permutex2var_epi32(after_even, must_cast(ZIP_32[1]), after_odd),
            ]
        },
    );
    // The next call waits for this: from a register it comes sooner than from what was just stored.
    if whole {
        return _mm_cvtsi128_si32(_mm512_castsi512_si128(sum)).cast_unsigned();
    }
    out.last().copied().unwrap_or(before)
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn deltas_u64(packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
    let least = _mm512_set1_epi64(least.cast_signed());
    let mut sum = _mm512_set1_epi64(before.cast_signed());
    let whole = by_pairs::<8, _, _>(
        packed,
        widths,
        per,
        out,
        |width| cuts_64(width),
        |cuts, a, b| {
            let [even, odd] = cuts.places.map(|(low, high, bit)| {
                let (low, high) = (_mm512_permutex2var_epi64(a, low, b), _mm512_permutex2var_epi64(a, high, b));
                _mm512_add_epi64(_mm512_and_si512(_mm512_shrdv_epi64(low, high, bit), cuts.ones), least)
            });
            let sums = scan64(_mm512_add_epi64(even, odd));
            let after_odd = _mm512_add_epi64(sums, sum);
            let after_even = _mm512_sub_epi64(after_odd, odd);
            sum = _mm512_add_epi64(sum, _mm512_permutexvar_epi64(_mm512_set1_epi64(7), sums));
            [
                _mm512_permutex2var_epi64(after_even, must_cast(ZIP_64[0]), after_odd),
                _mm512_permutex2var_epi64(after_even, must_cast(ZIP_64[1]), after_odd),
            ]
        },
    );
    if whole {
        return _mm_cvtsi128_si64(_mm512_castsi512_si128(sum)).cast_unsigned();
    }
    out.last().copied().unwrap_or(before)
}

/// How differences of some width are taken out of two registers, the second of which starts where the first one's
/// words end.
#[derive(Clone, Copy)]
struct Cuts {
    /// Of the values at even places, and of those at odd ones: the place of the word where each starts, of the word
    /// behind that, and the bit where it starts, modulo the bits of a word.
    places: [(__m512i, __m512i, __m512i); 2],
    ones: __m512i,
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn cuts_32(width: u32) -> Cuts {
    let second = must_cast([[0u32; 8], [16; 8]]);
    let places = [must_cast([PAIRS_32[0]; 2]), must_cast([PAIRS_32[1]; 2])].map(|places| {
        let bit = _mm512_mullo_epi32(places, _mm512_set1_epi32(width.cast_signed()));
        let low = _mm512_or_si512(_mm512_srli_epi32::<5>(bit), second);
        (low, _mm512_add_epi32(low, _mm512_set1_epi32(1)), bit)
    });
    Cuts { places, ones: _mm512_set1_epi32((ones(width) as u32).cast_signed()) }
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn cuts_64(width: u32) -> Cuts {
    let second = must_cast([0u64, 0, 0, 0, 8, 8, 8, 8]);
    let places = [must_cast([0u64, 2, 4, 6, 0, 2, 4, 6]), must_cast([1u64, 3, 5, 7, 1, 3, 5, 7])].map(|places| {
        let bit = _mm512_mul_epu32(places, _mm512_set1_epi64(width.into()));
        let low = _mm512_or_si512(_mm512_srli_epi64::<6>(bit), second);
        (low, _mm512_add_epi64(low, _mm512_set1_epi64(1)), bit)
    });
    Cuts { places, ones: _mm512_set1_epi64(ones(width).cast_signed()) }
}

/// Two registers of `N` words at a time, run by run. `words` is given the registers that start where each one's bits do.
/// Returns whether all runs were whole, that is no word was made that `out` has no room for.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn by_pairs<const N: usize, T: Pod, W: FnMut(&Cuts, __m512i, __m512i) -> [__m512i; 2]>(
    packed: &[u8],
    widths: &[u8],
    per: usize,
    out: &mut [T],
    cuts: impl Fn(u32) -> Cuts,
    mut words: W,
) -> bool {
    // Runs far from the ends of both slices; few widths change from run to run.
    let (mut packed, mut run, mut done) = (packed, 0, 0);
    let first = widths.first().copied().unwrap_or(0);
    let mut last = (first, cuts(first.into()));
    while let Some(&width) = widths.get(run) {
        let (len, step) = (per / 8 * usize::from(width), N / 8 * usize::from(width).min(8 * 64 / N));
        if packed.len() < len + 128 {
            break;
        }
        let Some(out) = out[done..].get_mut(..per) else { break };
        if width != last.0 {
            last = (width, cuts(width.into()));
        }
        let mut bits = packed;
        for out in out.chunks_exact_mut(2 * N) {
            let Some(window) = bits.first_chunk::<128>() else { break };
            let (first, second) = out.split_at_mut(N);
            let [a, b] = words(&last.1, load(window), load(&window[step..][..64]));
            store(first, a);
            store(second, b);
            bits = &bits[2 * step..];
        }
        packed = &packed[len..];
        run += 1;
        done += per;
    }
    if done == out.len() {
        return true;
    }
    // The same, with less than whole registers.
    for (out, &width) in out[done..].chunks_mut(per).zip(&widths[run..]) {
        let (cuts, step) = (cuts(width.into()), N / 8 * usize::from(width));
        let mut bits = packed;
        for out in out.chunks_mut(2 * N) {
            let behind = bits.get(step..).unwrap_or(&[]);
            let (first, second) = out.split_at_mut(N.min(out.len()));
            let [a, b] = words(&cuts, load(bits), load(behind));
            store(first, a);
            store(second, b);
            bits = behind.get(step..).unwrap_or(&[]);
        }
        packed = packed.get(per / 8 * usize::from(width)..).unwrap_or(&[]);
    }
    false
}

/// Running sums of 16 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn scan32(x: __m512i) -> __m512i {
    let x = _mm512_add_epi32(x, _mm512_bslli_epi128::<4>(x));
    let x = _mm512_add_epi32(x, _mm512_bslli_epi128::<8>(x));
    // The last word of lanes 0 and 2 onto lanes 1 and 3, then of lane 1 onto lanes 2 and 3.
    let ends = _mm512_inserti64x4::<1>(_mm512_set1_epi32(3), _mm256_set1_epi32(11));
    let x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xf0f0, ends, x));
    _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xff00, _mm512_set1_epi32(7), x))
}

/// Running sums of 8 words.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
pub(super) fn scan64(x: __m512i) -> __m512i {
    let x = _mm512_add_epi64(x, _mm512_bslli_epi128::<8>(x));
    let ends = must_cast([1u64, 1, 1, 1, 5, 5, 5, 5]);
    let x = _mm512_add_epi64(x, _mm512_maskz_permutexvar_epi64(0b1100_1100, ends, x));
    _mm512_add_epi64(x, _mm512_maskz_permutexvar_epi64(0b1111_0000, _mm512_set1_epi64(3), x))
}

/// The even places of eight, and the odd ones.
const PAIRS_32: [[u32; 8]; 2] = [[0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]];

/// The places of two registers in turn: the first halves, and the second ones.
pub(super) const ZIP_32: [[u32; 16]; 2] = [
    [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23],
    [8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31],
];

/// The same of 64-bit words.
const ZIP_64: [[u64; 8]; 2] = [[0, 8, 1, 9, 2, 10, 3, 11], [4, 12, 5, 13, 6, 14, 7, 15]];
