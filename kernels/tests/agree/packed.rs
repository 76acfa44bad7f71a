//! Packed bits.

use std::fmt::Debug;

use proptest::prelude::*;
use tilekern_kernels::{Kernels, packed_len};

use crate::{Random, assert_same, between_canaries, rows};

/// A word that values are unpacked to.
pub trait Word: Copy + PartialEq + Debug + Default {
    const BITS: u32;
    fn cut(bits: u64) -> Self;
    fn wide(self) -> u64;
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            fn cut(bits: u64) -> $word {
                bits as $word
            }
            fn wide(self) -> u64 {
                self.into()
            }
        }
    )*};
}
words!(u8 u16 u32 u64);

/// Bit by bit.
pub mod naive {
    use super::*;

    pub fn value(packed: &[u8], at: usize, width: u32) -> u64 {
        (0..width as usize).fold(0, |value, i| {
            let bit = at + i;
            value | u64::from(packed[bit / 8] >> (bit % 8) & 1) << i
        })
    }

    pub fn unpack<T: Word>(packed: &[u8], width: u32, out: &mut [T]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = T::cut(value(packed, i * width as usize, width));
        }
    }

    /// Collects each lane's bytes first.
    pub fn lanes<T: Word>(packed: &[u8], width: u32, out: &mut [T]) {
        let bytes = T::BITS as usize / 8;
        let lanes = 16 / bytes;
        for (group, out) in out.chunks_mut(128).enumerate() {
            let packed = &packed[group * 16 * width as usize..][..16 * width as usize];
            for lane in 0..lanes {
                let own: Vec<u8> = packed.chunks(bytes).skip(lane).step_by(lanes).flatten().copied().collect();
                for row in 0..128 / lanes {
                    out[row * lanes + lane] = T::cut(value(&own, row * width as usize, width));
                }
            }
        }
    }

    pub fn deltas<T: Word>(packed: &[u8], widths: &[u8], per: usize, least: T, before: T, out: &mut [T]) -> T {
        let (mut bit, mut sum) = (0, before.wide());
        for (i, out) in out.iter_mut().enumerate() {
            let width = widths[i / per];
            sum = sum.wrapping_add(least.wide()).wrapping_add(value(packed, bit, width.into()));
            *out = T::cut(sum);
            bit += usize::from(width);
        }
        T::cut(sum)
    }
}

/// Random bytes, or ones, in an allocation of exactly `offset + len` bytes.
fn bytes(len: usize, offset: usize, random: &mut Random) -> Box<[u8]> {
    let ones = random.below(5) == 0;
    (0..offset + len).map(|_| if ones { 0xff } else { random.next() as u8 }).collect()
}

/// Around the sizes of registers, and enough for the main loops of all widths.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=70).chain([95, 96, 97, 127, 128, 129, 200, 256, 511, 1000])
}

/// All widths, lengths, and sources that end with the last value or any number of bytes behind it.
fn check_unpack<T: Word>(run: impl Fn(Kernels, &[u8], u32, &mut [T])) {
    let mut random = Random(11);
    for width in 0..=T::BITS {
        for len in lengths() {
            for slack in [0, 1 + random.below(16), random.below(140)] {
                let (source, target) = (random.below(64), random.below(64));
                let packed = bytes(packed_len(len, width as usize) + slack, source, &mut random);
                let packed = &packed[source..];
                let canary = T::cut(0xa5a5_a5a5_a5a5_a5a5);
                let want = between_canaries(len, target, canary, |out| naive::unpack(packed, width, out));
                for &row in rows() {
                    let got = between_canaries(len, target, canary, |out| run(row, packed, width, out));
                    assert_same(&got, &want, || format!("{row:?} {len} of {width} bits, {slack} bytes behind"));
                }
            }
        }
    }
}

#[test]
fn unpack_u8() {
    check_unpack::<u8>(|row, packed, width, out| row.unpack_u8(packed, width, out));
}

#[test]
fn unpack_u16() {
    check_unpack::<u16>(|row, packed, width, out| row.unpack_u16(packed, width, out));
}

#[test]
fn unpack_u32() {
    check_unpack::<u32>(|row, packed, width, out| row.unpack_u32(packed, width, out));
}

#[test]
fn unpack_u64() {
    check_unpack::<u64>(|row, packed, width, out| row.unpack_u64(packed, width, out));
}

fn check_lanes<T: Word>(run: impl Fn(Kernels, &[u8], u32, &mut [T])) {
    let mut random = Random(12);
    for width in 0..=T::BITS {
        for groups in [0, 1, 1, 2, 3, 7] {
            let (source, target) = (random.below(64), random.below(64));
            let packed = bytes(groups * 16 * width as usize, source, &mut random);
            let packed = &packed[source..];
            let canary = T::cut(0xa5a5_a5a5_a5a5_a5a5);
            let want = between_canaries(groups * 128, target, canary, |out| naive::lanes(packed, width, out));
            for &row in rows() {
                let got = between_canaries(groups * 128, target, canary, |out| run(row, packed, width, out));
                assert_same(&got, &want, || format!("{row:?} {groups} groups of {width} bits"));
            }
        }
    }
}

#[test]
fn unpack_lanes_u32() {
    check_lanes::<u32>(|row, packed, width, out| row.unpack_lanes_u32(packed, width, out));
}

#[test]
fn unpack_lanes_u64() {
    check_lanes::<u64>(|row, packed, width, out| row.unpack_lanes_u64(packed, width, out));
}

fn check_deltas<T: Word>(run: impl Fn(Kernels, &[u8], &[u8], usize, T, T, &mut [T]) -> T) {
    let mut random = Random(13);
    let bits = T::BITS as usize;
    for round in 0..20 {
        for per in [32, 64, 96, 128, 256] {
            for len in lengths() {
                // One width for all, or any for each run; more widths than are used, of any size.
                let one = random.below(bits + 1);
                let used = len.div_ceil(per);
                let mut widths: Vec<u8> =
                    (0..used).map(|_| if round < 3 { one } else { random.below(bits + 1) } as u8).collect();
                let rest = len - used.saturating_sub(1) * per;
                let mut need = packed_len(rest, widths.last().map_or(0, |&width| width.into()));
                for &width in widths.iter().rev().skip(1) {
                    need += packed_len(per, width.into());
                }
                widths.extend([255, 77].iter().take(random.below(3)));
                let source = random.below(64);
                let slack = if random.below(2) == 0 { 0 } else { random.below(140) };
                let packed = bytes(need + slack, source, &mut random);
                let packed = &packed[source..];
                let least = T::cut([0, u64::MAX, 1 << (bits - 1), random.next()][random.below(4)]);
                let before = T::cut(random.next());
                let target = random.below(64);
                let canary = T::cut(0xa5a5_a5a5_a5a5_a5a5);
                let want = between_canaries(len, target, canary, |out| {
                    naive::deltas(packed, &widths, per, least, before, out)
                });
                for &row in rows() {
                    let got =
                        between_canaries(len, target, canary, |out| run(row, packed, &widths, per, least, before, out));
                    assert_same(&got, &want, || format!("{row:?} {len} in runs of {per}, widths {widths:?}"));
                }
            }
        }
    }
}

#[test]
fn deltas_u32() {
    check_deltas::<u32>(|row, packed, widths, per, least, before, out| {
        row.deltas_u32(packed, widths, per, least, before, out)
    });
}

#[test]
fn deltas_u64() {
    check_deltas::<u64>(|row, packed, widths, per, least, before, out| {
        row.deltas_u64(packed, widths, per, least, before, out)
    });
}

/// A stream of blocks gives what one call gives.
#[test]
fn deltas_carry_from_call_to_call() {
    let mut random = Random(14);
    for _ in 0..200 {
        let (blocks, width) = (1 + random.below(6), random.below(33));
        let packed = bytes(blocks * packed_len(128, width), 0, &mut random);
        let (least, first) = (random.next() as u32, random.next() as u32);
        let mut want = vec![0; blocks * 128];
        let last = naive::deltas(&packed, &[width as u8; 24], 32, least, first, &mut want);
        for &row in rows() {
            let (mut got, mut carry, mut from) = (vec![0; blocks * 128], first, &packed[..]);
            for out in got.chunks_mut(128) {
                carry = row.deltas_u32(from, &[width as u8; 4], 32, least, carry, out);
                from = &from[packed_len(128, width)..];
            }
            assert_eq!((&got, carry), (&want, last), "{row:?}");
        }
    }
}

#[test]
#[should_panic(expected = "width")]
fn a_width_above_the_word_is_refused() {
    Kernels::auto().unpack_u32(&[0; 64], 33, &mut [0; 8]);
}

#[test]
#[should_panic(expected = "lengths")]
fn too_few_packed_bytes_are_refused() {
    Kernels::auto().unpack_u32(&[0; 12], 9, &mut [0; 11]);
}

#[test]
#[should_panic(expected = "lengths")]
fn a_short_group_is_refused() {
    Kernels::auto().unpack_lanes_u32(&[0; 143], 9, &mut [0; 128]);
}

#[test]
#[should_panic(expected = "width")]
fn a_used_width_above_the_word_is_refused() {
    Kernels::auto().deltas_u32(&[0; 512], &[3, 33], 32, 0, 0, &mut [0; 33]);
}

#[test]
#[should_panic(expected = "runs")]
fn runs_of_other_than_thirty_two_values_are_refused() {
    Kernels::auto().deltas_u32(&[0; 512], &[3, 3], 48, 0, 0, &mut [0; 60]);
}

#[test]
#[should_panic(expected = "widths")]
fn too_few_widths_are_refused() {
    Kernels::auto().deltas_u32(&[0; 512], &[3], 32, 0, 0, &mut [0; 33]);
}

#[test]
#[should_panic(expected = "lengths")]
fn too_few_differences_are_refused() {
    Kernels::auto().deltas_u32(&[0; 21], &[3, 8], 32, 0, 0, &mut [0; 42]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_packed_bits(packed in proptest::collection::vec(any::<u8>(), 0..2_000), width in 1usize..65, spare in 0usize..9) {
        let len = (packed.len() * 8 / width).saturating_sub(spare);
        let width = width as u32;
        let mut want = vec![0u64; len];
        naive::unpack(&packed, width, &mut want);
        for &row in rows() {
            let mut words = vec![0u64; len];
            row.unpack_u64(&packed, width, &mut words);
            prop_assert_eq!(&words, &want);
            if width <= 32 {
                let mut words = vec![0u32; len];
                row.unpack_u32(&packed, width, &mut words);
                prop_assert!(words.iter().zip(&want).all(|(got, want)| u64::from(*got) == *want));
            }
        }
    }

    #[test]
    fn any_differences(
        packed in proptest::collection::vec(any::<u8>(), 4_096..4_300),
        widths in proptest::collection::vec(0u8..65, 8),
        runs in 1usize..3,
        least in any::<u64>(),
        before in any::<u64>(),
        len in 0usize..513,
    ) {
        let per = 32 * runs;
        let len = len.min(8 * per);
        let mut want = vec![0u64; len];
        let last = naive::deltas(&packed, &widths, per, least, before, &mut want);
        let narrow: Vec<u8> = widths.iter().map(|width| width % 33).collect();
        let mut want_narrow = vec![0u32; len];
        let last_narrow = naive::deltas(&packed, &narrow, per, least as u32, before as u32, &mut want_narrow);
        for &row in rows() {
            let mut values = vec![0u64; len];
            prop_assert_eq!(row.deltas_u64(&packed, &widths, per, least, before, &mut values), last);
            prop_assert_eq!(&values, &want);
            let mut values = vec![0u32; len];
            let got = row.deltas_u32(&packed, &narrow, per, least as u32, before as u32, &mut values);
            prop_assert_eq!((got, &values), (last_narrow, &want_narrow));
        }
    }
}
