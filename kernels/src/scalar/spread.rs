//! Values that are there, to their places among those that are not.

use super::bits::packed_len;

/// Values of 4 bytes.
#[inline(always)]
pub fn spread_u32(values: &[u32], present: &[u8], out: &mut [u32]) -> usize {
    spread(values, present, out)
}

/// Values of 8 bytes.
#[inline(always)]
pub fn spread_u64(values: &[u64], present: &[u8], out: &mut [u64]) -> usize {
    spread(values, present, out)
}

#[inline(always)]
fn spread<T: Copy + Default>(values: &[T], present: &[u8], out: &mut [T]) -> usize {
    let mut taken = 0;
    for (out, &bits) in out.chunks_mut(8).zip(present) {
        match (out.first_chunk_mut::<8>(), values.get(taken..).and_then(<[T]>::first_chunk::<8>)) {
            // Absent values come in runs: a branch that is mostly foreseen.
            (Some(out), _) if bits == 0 => *out = [T::default(); 8],
            // Values are there for all eight: no branch that depends on a bit.
            (Some(out), Some(values)) => {
                let mut next = 0;
                for (bit, out) in out.iter_mut().enumerate() {
                    let set = bits >> bit & 1;
                    *out = if set == 1 { values[next & 7] } else { T::default() };
                    next += usize::from(set);
                }
                taken += next;
            }
            _ => {
                for (bit, out) in out.iter_mut().enumerate() {
                    let set = bits >> bit & 1 == 1;
                    *out = values.get(taken).copied().filter(|_| set).unwrap_or_default();
                    taken += usize::from(set);
                }
            }
        }
    }
    taken
}

/// Values of one bit.
#[inline(always)]
pub fn spread_bits(values: &[u8], present: &[u8], n: usize, out: &mut [u8]) -> usize {
    let mut taken = 0;
    by_words(present, n, out, |present| {
        let values = bits_from(values, taken);
        taken += present.count_ones() as usize;
        deposit(values, present)
    });
    taken
}

/// `n` bits, 64 at a time, from `present` to `out`; `word` is given those of a word, and 0 behind the last.
#[inline(always)]
pub(crate) fn by_words(present: &[u8], n: usize, out: &mut [u8], mut word: impl FnMut(u64) -> u64) {
    let whole = n / 64 * 8;
    let (words, rest) = present.split_at(whole);
    let (out_words, out_rest) = out.split_at_mut(whole);
    for (out, bits) in out_words.as_chunks_mut().0.iter_mut().zip(words.as_chunks().0) {
        *out = word(u64::from_le_bytes(*bits)).to_le_bytes();
    }
    if !n.is_multiple_of(64) {
        let mut last = [0; 8];
        let bytes = packed_len(n % 64, 1);
        last[..bytes].copy_from_slice(&rest[..bytes]);
        let bits = word(u64::from_le_bytes(last) & ((1 << (n % 64)) - 1));
        out_rest.copy_from_slice(&bits.to_le_bytes()[..bytes]);
    }
}

/// The 64 bits from bit `at` on; 0 behind the last.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "cut to 64 bits on purpose")]
pub(crate) fn bits_from(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at / 8..).unwrap_or(&[]);
    let window = match bytes.first_chunk() {
        Some(window) => *window,
        None => {
            let mut window = [0; 16];
            window[..bytes.len()].copy_from_slice(bytes);
            window
        }
    };
    (u128::from_le_bytes(window) >> (at % 8)) as u64
}

/// The low bits of `values` to the places of the bits of `places`.
#[inline(always)]
fn deposit(mut values: u64, mut places: u64) -> u64 {
    let mut out = 0;
    while places != 0 {
        let place = places & places.wrapping_neg();
        out |= place & (values & 1).wrapping_neg();
        values >>= 1;
        places ^= place;
    }
    out
}
