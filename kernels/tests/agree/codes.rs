//! Variable-length integers, ZigZag codes, Morton codes, symbols, values at their places.

use std::fmt::Debug;

use proptest::prelude::*;
use tilekern_kernels::{ExpandedSeen, Kernels, RansSeen, RansSlot, RansTable, VarintsSeen};

use crate::{Random, assert_same, between_canaries, lengths, offsets, rows};

/// One value after the other, as the texts of the formats put it.
pub mod naive {
    use super::*;

    /// Values of up to `bits` bits; `marked` is bit 7 of the bytes that another follows.
    pub fn varints(src: &[u8], out: &mut [u64], bits: usize, marked: bool) -> VarintsSeen {
        let mut seen = VarintsSeen::default();
        for out in out {
            let mut value = 0u128;
            let mut bytes = src[seen.bytes..].iter().take(bits.div_ceil(7)).enumerate();
            let end = bytes.find(|&(i, &byte)| {
                value |= u128::from(byte & 0x7f) << (7 * i);
                (byte >= 0x80) != marked
            });
            let Some((last, _)) = end.filter(|_| value >> bits == 0) else { break };
            *out = value as u64;
            seen.values += 1;
            seen.bytes += last + 1;
        }
        seen
    }

    pub fn varints_u32(src: &[u8], out: &mut [u32]) -> VarintsSeen {
        let mut wide = vec![0; out.len()];
        let seen = varints(src, &mut wide, 32, true);
        out.iter_mut().zip(wide).for_each(|(out, value)| *out = value as u32);
        seen
    }

    /// `order` 0: the codes alone.
    pub fn zigzag<T: Copy>(words: &mut [T], stride: usize, order: usize, back: fn(T) -> T, add: fn(T, T) -> T) {
        words.iter_mut().for_each(|word| *word = back(*word));
        for _ in 0..order {
            for i in stride..words.len() {
                words[i] = add(words[i - stride], words[i]);
            }
        }
    }

    pub fn zigzag_deltas(words: &mut [u32], stride: usize) {
        zigzag(words, stride, 1, super::back32, u32::wrapping_add);
    }

    pub fn morton(words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
        let mut code = 0u32;
        for i in 0..words.len() {
            code = code.wrapping_add(words[i]);
            let (mut x, mut y) = (0u32, 0u32);
            for bit in 0..bits {
                x |= (code >> (2 * bit) & 1) << bit;
                y |= (code >> (2 * bit + 1) & 1) << bit;
            }
            out[2 * i] = x.wrapping_sub(shift) as i32;
            out[2 * i + 1] = y.wrapping_sub(shift) as i32;
        }
    }

    pub fn fsst(symbols: &[u64; 256], lengths: &[u8; 256], count: usize, codes: &[u8], out: &mut [u8]) -> ExpandedSeen {
        let mut seen = ExpandedSeen::default();
        while let Some(&code) = codes.get(seen.read) {
            let code = usize::from(code);
            let (bytes, took) = if code < count {
                (symbols[code].to_le_bytes()[..usize::from(lengths[code]).min(8)].to_vec(), 1)
            } else if let (255, Some(&byte)) = (code, codes.get(seen.read + 1)) {
                (vec![byte], 2)
            } else {
                break;
            };
            let Some(to) = out.get_mut(seen.written..seen.written + bytes.len()) else { break };
            to.copy_from_slice(&bytes);
            seen.read += took;
            seen.written += bytes.len();
        }
        seen
    }

    pub fn alp_f64(offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f64]) {
        for i in 0..out.len() {
            let up = (base as u64).wrapping_add(offsets[i]) as i64 as f64 * up;
            out[i] = up * down;
        }
    }

    pub fn spread<T: Copy + Default>(values: &[T], present: &[u8], out: &mut [T]) -> usize {
        let mut set = 0;
        for i in 0..out.len() {
            out[i] = T::default();
            if present[i / 8] >> (i % 8) & 1 == 1 {
                out[i] = values.get(set).copied().unwrap_or_default();
                set += 1;
            }
        }
        set
    }

    pub fn spread_bits(values: &[u8], present: &[u8], n: usize, out: &mut [u8]) -> usize {
        let bits: Vec<u8> = (0..8 * values.len()).map(|i| values[i / 8] >> (i % 8) & 1).collect();
        let mut places = vec![0; n];
        let set = spread(&bits, present, &mut places);
        out.fill(0);
        places.iter().enumerate().for_each(|(i, bit)| out[i / 8] |= bit << (i % 8));
        set
    }

    pub fn rans_symbols(
        slots: &[RansSlot],
        tables: &[RansTable; 14],
        depth: u32,
        lanes: &[&[u8]; 4],
        states: &[u32; 4],
        starts: &[u8],
        out: &mut [[u16; 2]],
    ) -> RansSeen {
        let mut seen = RansSeen { vertices: 0, words: [0; 4], states: *states };
        for (i, out) in out.iter_mut().enumerate() {
            let (before, s) = (seen, usize::from(starts[i / 8] >> (i % 8) & 1));
            let mut context = s;
            for (axis, symbol) in out.iter_mut().enumerate() {
                let lane = 2 * (i % 2) + axis;
                let table = tables[context];
                let (mut x, precision) = (seen.states[lane], table.precision % 32);
                let place = u64::from(table.start) + u64::from(x) % (1 << precision);
                let Some(&slot) = slots.get(place as usize) else { return before };
                *symbol = slot.symbol;
                x = slot.count.wrapping_mul(x >> precision).wrapping_add(slot.nth.into());
                if x < 1 << 16 {
                    let word = lanes[lane].chunks_exact(2).nth(seen.words[lane]);
                    let Some(word) = word else { return before };
                    x = x << 16 | u32::from(word[0]) | u32::from(word[1]) << 8;
                    seen.words[lane] += 1;
                }
                seen.states[lane] = x;
                context = 2 + 2 * (usize::from(*symbol).div_ceil(2) >> depth).min(5) + s;
            }
            seen.vertices += 1;
        }
        seen
    }

    pub fn rans_vertices(symbols: &[[u16; 2]], depth: u32, raw: &[u8], out: &mut [i32]) -> u64 {
        let mut at = 0;
        let mut last = [0i32; 2];
        for (i, &symbol) in symbols.as_flattened().iter().enumerate() {
            let code = (u32::from(symbol) % 512).div_ceil(2);
            let length = code >> depth;
            if length > 0 && u32::from(symbol) % 512 <= 64 << depth {
                let kept = (length - 1).min(depth);
                let mantissa = (code & ((1 << depth) - 1)) >> (depth - kept);
                let mut magnitude = u64::from(1 << kept | mantissa);
                magnitude <<= length - 1 - kept;
                for bit in 0..length - 1 - kept {
                    let byte = raw.get(at / 8).copied().unwrap_or(0);
                    magnitude |= u64::from(byte >> (at % 8) & 1) << bit;
                    at += 1;
                }
                let delta = if symbol % 2 == 1 { magnitude as i64 } else { -(magnitude as i64) };
                last[i % 2] = last[i % 2].wrapping_add(delta as i32);
            }
            out[i] = last[i % 2];
        }
        at as u64
    }
}

fn back32(word: u32) -> u32 {
    if word & 1 == 0 { word / 2 } else { !(word / 2) }
}

fn back64(word: u64) -> u64 {
    if word & 1 == 0 { word / 2 } else { !(word / 2) }
}

/// `offset` bytes of no meaning, then `bytes`, in an allocation of exactly that size.
fn apart(offset: usize, bytes: impl IntoIterator<Item = u8>) -> Box<[u8]> {
    std::iter::repeat_n(0xa5, offset).chain(bytes).collect()
}

/// LEB128 of values whose bit lengths are below `bits`, or, for 0, of any content; in the form whose last bytes are
/// marked, too.
fn varint_bytes(values: usize, bits: usize, damage: usize, marked: bool, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..values {
        if damage > 0 && random.below(damage) == 0 {
            // Over-long, or with bits too many, or merely a piece.
            bytes.extend((0..random.below(11)).map(|_| 0x80 | (random.next() as u8 & random.next() as u8)));
            bytes.push(random.next() as u8 & 0x7f & (0x7f >> random.below(8)));
            continue;
        }
        let mut value = random.next() >> (64 - random.below(bits) - 1);
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }
    if !marked {
        bytes.iter_mut().for_each(|byte| *byte ^= 0x80);
    }
    bytes
}

fn check_varints<T: Copy + PartialEq + Debug + TryFrom<u64>>(
    bits: usize,
    marked: bool,
    run: impl Fn(Kernels, &[u8], &mut [T]) -> VarintsSeen,
) where
    T::Error: Debug,
{
    let mut random = Random(31);
    for values in (0..=130).chain([255, 1_000, 4_097]) {
        for case in 0..12 {
            // Of one byte, mostly of one, mixed, wide; whole or with something wrong.
            let widest = [7, 8, 14, 21, bits / 2, bits][case % 6];
            let damage = if case < 6 { 0 } else { 1 + values };
            let offset = random.below(64);
            let mut bytes = varint_bytes(values, widest, damage, marked, &mut random);
            if case == 11 {
                bytes.truncate(random.below(bytes.len() + 1));
            }
            let src = apart(offset, bytes);
            let src = &src[offset..];
            // Fewer than there are, or more.
            let room = (values + random.below(20)).saturating_sub(8);
            let mut want = vec![0; room];
            let seen = naive::varints(src, &mut want, bits, marked);
            let want: Vec<T> = want[..seen.values].iter().map(|&value| T::try_from(value).unwrap()).collect();
            for &row in rows() {
                let zero = T::try_from(0x55).unwrap();
                let (mut got, got_seen) = between_canaries(room, random.below(64), zero, |out| run(row, src, out));
                got.truncate(seen.values);
                assert_same(&(got, got_seen), &(want.clone(), seen), || {
                    format!("{row:?} {values} values, case {case}, room for {room}")
                });
            }
        }
    }
}

#[test]
fn varints() {
    check_varints::<u32>(32, true, |row, src, out| row.varints_u32(src, out));
    check_varints::<u64>(64, true, |row, src, out| row.varints_u64(src, out));
}

#[test]
fn vbytes() {
    check_varints::<u32>(32, false, |row, src, out| row.vbytes_u32(src, out));
    check_varints::<u64>(64, false, |row, src, out| row.vbytes_u64(src, out));
}

/// Each length that a value may have, alone and at each place of a block, behind values of one byte and one of each length, up
/// to the widest that is right and the narrowest that is not.
#[test]
fn varints_of_each_length() {
    for (before, beside) in (0..70).map(|before| (before, 0)).chain((0..9).flat_map(|n| (1..=8).map(move |m| (n, m)))) {
        for length in 1..=11 {
            for last in [0, 1, 2, 15, 16, 127] {
                let sound = before + usize::from(beside > 0);
                let beside = std::iter::repeat_n(0x81, beside).chain((beside > 0).then_some(0));
                let value = std::iter::repeat_n(0x80, length - 1).chain([last]);
                let src: Box<[u8]> = std::iter::repeat_n(7, before).chain(beside).chain(value).chain([5; 40]).collect();
                let mut wide = vec![0; before + 9];
                let seen32 = naive::varints(&src, &mut wide, 32, true);
                let seen64 = naive::varints(&src, &mut wide, 64, true);
                assert_eq!(seen64.values == sound, length > 10 || length == 10 && last > 1);
                for &row in rows() {
                    let mut got = vec![0; before + 9];
                    assert_eq!(row.varints_u32(&src, &mut got), seen32, "{row:?}");
                    assert!(got.iter().zip(&wide).take(seen32.values).all(|(&got, &want)| u64::from(got) == want));
                    let mut got = vec![0; before + 9];
                    assert_eq!(row.varints_u64(&src, &mut got), seen64, "{row:?}");
                    assert_eq!(got[..seen64.values], wide[..seen64.values], "{row:?}");
                }
            }
        }
    }
}

/// Checks an operation that works in place at all lengths and offsets, on small and on any words.
fn check_in_place<T: Copy + PartialEq + Debug + From<u8>>(
    make: impl Fn(u64) -> T,
    want: impl Fn(&mut [T]),
    run: impl Fn(Kernels, &mut [T]),
) {
    let mut random = Random(32);
    for len in lengths().filter(|&len| len <= 4_097) {
        for (narrow, target) in offsets(len).step_by(3) {
            let words: Vec<T> = (0..len).map(|_| make(random.next() >> narrow)).collect();
            let canary = T::from(0xa7);
            let want = between_canaries(len, target, canary, |out| {
                out.copy_from_slice(&words);
                want(out);
            });
            for &row in rows() {
                let got = between_canaries(len, target, canary, |out| {
                    out.copy_from_slice(&words);
                    run(row, out);
                });
                assert_same(&got, &want, || format!("{row:?} {len} to {target}"));
            }
        }
    }
}

#[test]
fn zigzag() {
    let narrow = |bits: u64| bits as u32;
    let naive = |words: &mut [u32]| naive::zigzag(words, 1, 0, back32, u32::wrapping_add);
    check_in_place(narrow, naive, |row, words| row.zigzag_u32(words));
    let naive = |words: &mut [u64]| naive::zigzag(words, 1, 0, back64, u64::wrapping_add);
    check_in_place(|bits| bits, naive, |row, words| row.zigzag_u64(words));
}

#[test]
fn zigzag_deltas() {
    for stride in 1..=3 {
        let naive = |words: &mut [u32]| naive::zigzag(words, stride, 1, back32, u32::wrapping_add);
        check_in_place(|bits| bits as u32, naive, |row, words| row.zigzag_deltas_u32(words, stride));
        let naive = |words: &mut [u32]| naive::zigzag(words, stride, 2, back32, u32::wrapping_add);
        check_in_place(|bits| bits as u32, naive, |row, words| row.zigzag_deltas2_u32(words, stride));
    }
    let naive = |words: &mut [u64]| naive::zigzag(words, 1, 1, back64, u64::wrapping_add);
    check_in_place(|bits| bits, naive, |row, words| row.zigzag_deltas_u64(words));
    let naive = |words: &mut [u64]| naive::zigzag(words, 1, 2, back64, u64::wrapping_add);
    check_in_place(|bits| bits, naive, |row, words| row.zigzag_deltas2_u64(words));
}

#[test]
fn morton() {
    let mut random = Random(33);
    for len in lengths().filter(|&len| len <= 4_097) {
        for bits in 0..=16 {
            let words: Box<[u32]> = (0..len).map(|_| random.next() as u32 >> random.below(32)).collect();
            let (shift, target) = (random.next() as u32 >> random.below(32), random.below(64));
            let want = between_canaries(2 * len, target, 7, |out| naive::morton(&words, bits, shift, out));
            for &row in rows() {
                let got = between_canaries(2 * len, target, 7, |out| row.morton(&words, bits, shift, out));
                assert_same(&got, &want, || format!("{row:?} {len} of {bits} bits"));
            }
        }
    }
}

#[test]
fn fsst() {
    let mut random = Random(34);
    for len in (0..=200).chain([1_000, 4_000]) {
        for case in 0..12 {
            let symbols: [u64; 256] = std::array::from_fn(|_| random.next());
            // Lengths of 0 and above 8 mean something, too.
            let lengths: [u8; 256] =
                std::array::from_fn(|_| if case % 3 == 2 { random.below(12) } else { 1 + random.below(8) } as u8);
            let count = [255, 254, 128, 127, 129, 1, 0, 200, 255, 100, 60, 255][case];
            // One in so many; 1: all, so that every other one is escaped.
            let escapes = [0, 2, 5, 20, 1][case % 5];
            let codes = (0..len).map(|_| match random.below(escapes.max(1)) {
                0 if escapes > 0 => 255,
                _ if random.below(4 * len) == 0 => random.next() as u8,
                _ => random.below(count) as u8,
            });
            let offset = len % 64;
            let codes = apart(offset, codes.collect::<Vec<_>>());
            let codes = &codes[offset..];
            let whole = naive::fsst(&symbols, &lengths, count, codes, &mut vec![0; 8 * len]);
            for room in [whole.written, whole.written + 64, random.below(whole.written + 1)] {
                let mut want = vec![0; room];
                let seen = naive::fsst(&symbols, &lengths, count, codes, &mut want);
                want.truncate(seen.written);
                let want = (want, seen);
                for &row in rows() {
                    let mut got = between_canaries(room, random.below(64), 0xee, |out| {
                        row.fsst(&symbols, &lengths, count, codes, out)
                    });
                    got.0.truncate(seen.written);
                    assert_same(&got, &want, || format!("{row:?} {len} codes, {count} symbols, room for {room}"));
                }
            }
        }
    }
}

#[test]
fn alp() {
    let mut random = Random(35);
    for len in lengths().filter(|&len| len <= 1_025) {
        for (narrow, target) in offsets(len).step_by(7) {
            let offsets: Box<[u64]> = (0..len).map(|_| random.next() >> narrow).collect();
            let base = random.next() as i64 >> random.below(64);
            let (up, down) = (10f64.powi(random.below(19) as i32), 10f64.powi(-(random.below(19) as i32)));
            let want = between_canaries(len, target, 0.5, |out| naive::alp_f64(&offsets, base, up, down, out));
            let bits = |got: (Vec<f64>, ())| got.0.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let narrow: Vec<u32> = want.0.iter().map(|&value| (value as f32).to_bits()).collect();
            let want = bits(want);
            for &row in rows() {
                let got = between_canaries(len, target, 0.5, |out| row.alp_f64(&offsets, base, up, down, out));
                assert!(bits(got) == want, "{row:?} {len} at {base}, {up}, {down}");
                let got = between_canaries(len, target, 0.5, |out| row.alp_f32(&offsets, base, up, down, out));
                let got: Vec<u32> = got.0.into_iter().map(f32::to_bits).collect();
                assert!(got == narrow, "{row:?} {len} at {base}, {up}, {down}, 32 bits");
            }
        }
    }
}

#[test]
fn patch() {
    let mut random = Random(36);
    for exceptions in 0..=256 {
        for len in [0, 1, 100, 128, 256, 300] {
            let positions = apart(0, (0..exceptions).map(|_| random.next() as u8).collect::<Vec<_>>());
            let values: Box<[u64]> = (0..exceptions).map(|_| random.next() >> random.below(64)).collect();
            let low: Box<[u32]> = values.iter().map(|&value| value as u32).collect();
            let (width, target) = (random.below(64) as u32, random.below(64));
            let want = between_canaries(len, target, 3u64, |out| {
                for i in 0..exceptions {
                    if let Some(out) = out.get_mut(usize::from(positions[i])) {
                        *out |= values[i] << width;
                    }
                }
            });
            let want32 = between_canaries(len, target, 3u32, |out| {
                for i in 0..exceptions {
                    if let Some(out) = out.get_mut(usize::from(positions[i])) {
                        *out |= low[i] << (width % 32);
                    }
                }
            });
            for &row in rows() {
                let got = between_canaries(len, target, 3, |out| row.patch_u64(&positions, &values, width, out));
                assert_same(&got, &want, || format!("{row:?} {exceptions} in {len}"));
                let got = between_canaries(len, target, 3, |out| row.patch_u32(&positions, &low, width, out));
                assert_same(&got, &want32, || format!("{row:?} {exceptions} in {len}, 32 bits"));
            }
        }
    }
}

#[test]
fn swap_words() {
    let mut random = Random(37);
    for len in lengths().map(|len| 4 * len).filter(|&len| len <= 4_100) {
        for (source, target) in offsets(len) {
            let src = apart(source, (0..len).map(|_| random.next() as u8).collect::<Vec<_>>());
            let src = &src[source..];
            let want: Vec<u8> = src.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
            for &row in rows() {
                let got = between_canaries(len, target, 0xcd, |out| row.swap_words(src, out));
                assert_same(&got, &(want.clone(), ()), || format!("{row:?} {len} at {source} to {target}"));
            }
        }
    }
}

/// Bits that are set by so many of 256, in bytes of which the last may hold some too many.
fn bitmap(n: usize, of_256: usize, random: &mut Random) -> Box<[u8]> {
    let mut byte = || (0..8).fold(0, |byte, bit| byte | u8::from(random.below(256) < of_256) << bit);
    (0..n.div_ceil(8)).map(|_| byte()).collect()
}

fn check_spread<T: Copy + PartialEq + Debug + Default + From<u8>>(
    make: impl Fn(u64) -> T,
    run: impl Fn(Kernels, &[T], &[u8], &mut [T]) -> usize,
) {
    let mut random = Random(38);
    for len in lengths().filter(|&len| len <= 4_097) {
        for case in 0..15 {
            let present = bitmap(len, [0, 256, 128, 20, 250][case % 5], &mut random);
            let set = naive::spread(&[], &present, &mut vec![T::default(); len]);
            // As many values as there are places, more, or fewer.
            let values = [set, set + 70, random.below(set + 1)][case % 3];
            let values: Box<[T]> = (0..values).map(|_| make(random.next())).collect();
            let target = random.below(64);
            let want = between_canaries(len, target, T::from(9), |out| naive::spread(&values, &present, out));
            for &row in rows() {
                let got = between_canaries(len, target, T::from(9), |out| run(row, &values, &present, out));
                assert_same(&got, &want, || format!("{row:?} {set} of {len}, {} values", values.len()));
            }
        }
    }
}

#[test]
fn spread() {
    check_spread(|bits| bits as u32, |row, values: &[u32], present, out| row.spread_u32(values, present, out));
    check_spread(|bits| bits, |row, values: &[u64], present, out| row.spread_u64(values, present, out));
}

#[test]
fn spread_bits() {
    let mut random = Random(39);
    for len in lengths().filter(|&len| len <= 4_097) {
        for case in 0..15 {
            let present = bitmap(len, [0, 256, 128, 20, 250][case % 5], &mut random);
            let bits = [len, len + 100, random.below(len + 1)][case % 3];
            let values = bitmap(bits, 128, &mut random);
            let (bytes, target) = (len.div_ceil(8), random.below(64));
            let want = between_canaries(bytes, target, 0xb7, |out| naive::spread_bits(&values, &present, len, out));
            for &row in rows() {
                let got = between_canaries(bytes, target, 0xb7, |out| row.spread_bits(&values, &present, len, out));
                assert_same(&got, &want, || format!("{row:?} {len} of {bits} bits"));
            }
        }
    }
}

/// Tables of all precisions, each filled with symbols of random counts.
fn rans_tables(missing: usize, random: &mut Random) -> (Vec<RansSlot>, [RansTable; 14]) {
    let mut slots = Vec::new();
    let tables = std::array::from_fn(|_| {
        if missing > 0 && random.below(missing) == 0 {
            return RansTable::NONE;
        }
        let (start, precision) = (slots.len() as u32, random.below(12) as u32);
        let mut left = 1u32 << precision;
        while left > 0 {
            let count = (1 + random.below(left as usize) as u32).min(1 + random.below(64) as u32);
            let symbol = random.below(257) as u16;
            slots.extend((0..count).map(|nth| RansSlot { symbol, nth: nth as u16, count }));
            left -= count;
        }
        RansTable { start, precision }
    });
    (slots, tables)
}

#[test]
fn rans_symbols() {
    let mut random = Random(40);
    for len in (0..=70).chain([255, 1_000, 1_001]) {
        for case in 0..12 {
            let (mut slots, tables) = rans_tables([0, 0, 40][case % 3], &mut random);
            if case == 11 {
                slots.iter_mut().for_each(|slot| {
                    let (symbol, nth) = (random.next() as u16, random.next() as u16);
                    *slot = RansSlot { symbol, nth, count: random.next() as u32 };
                });
            }
            // Enough words, or somewhat too few.
            let words = if case < 6 { 2 * len } else { random.below(len + 1) };
            let lanes: [Box<[u8]>; 4] =
                std::array::from_fn(|i| (0..words + i / 3).map(|_| random.next() as u8).collect());
            let mut lanes = lanes.each_ref().map(|lane| &lane[..]);
            let states = std::array::from_fn(|_| 1 << 16 | random.next() as u32 >> random.below(32));
            let starts = bitmap(len, 40, &mut random);
            let (depth, target) = (case as u32 % 3, random.below(64));
            if case % 4 == 1 {
                // Exactly the words that are taken: those lanes end before the vertices do.
                let mut out = vec![[0; 2]; len];
                let seen = naive::rans_symbols(&slots, &tables, depth, &lanes, &states, &starts, &mut out);
                lanes.iter_mut().zip(seen.words).for_each(|(lane, words)| *lane = &lane[..2 * words]);
            }
            let naive =
                |out: &mut [[u16; 2]]| naive::rans_symbols(&slots, &tables, depth, &lanes, &states, &starts, out);
            let mut want = between_canaries(len, target, [9, 9], naive);
            want.0.truncate(want.1.vertices);
            for &row in rows() {
                let mut got = between_canaries(len, target, [9, 9], |out| {
                    row.rans_symbols(&slots, &tables, depth, &lanes, &states, &starts, out)
                });
                got.0.truncate(want.1.vertices);
                assert_same(&got, &want, || format!("{row:?} {len}, case {case}"));
            }
        }
    }
}

#[test]
fn rans_vertices() {
    let mut random = Random(41);
    for len in lengths().filter(|&len| len <= 1_025) {
        for case in 0..12 {
            let depth = case as u32 % 3;
            let below = [20 << depth, (64 << depth) + 1, 1 << 16, 8][case / 3];
            let symbols: Box<[[u16; 2]]> =
                (0..len).map(|_| [random.below(below) as u16, random.below(below) as u16]).collect();
            let needed = naive::rans_vertices(&symbols, depth, &[], &mut vec![0; 2 * len]).div_ceil(8) as usize;
            let raw = [needed, needed + 20, random.below(needed + 1)][random.below(3)];
            let raw = apart(0, (0..raw).map(|_| random.next() as u8).collect::<Vec<_>>());
            let target = random.below(64);
            let want = between_canaries(2 * len, target, 7, |out| naive::rans_vertices(&symbols, depth, &raw, out));
            for &row in rows() {
                let got = between_canaries(2 * len, target, 7, |out| row.rans_vertices(&symbols, depth, &raw, out));
                assert_same(&got, &want, || format!("{row:?} {len}, depth {depth}"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_varints(src in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..128], 0..300), room in 0usize..300) {
        let mut want = vec![0; room];
        let seen = naive::varints(&src, &mut want, 32, true);
        for &row in rows() {
            let mut got = vec![0; room];
            prop_assert_eq!(row.varints_u32(&src, &mut got), seen);
            prop_assert!(got.iter().zip(&want).take(seen.values).all(|(&got, &want)| u64::from(got) == want));
        }
    }

    #[test]
    fn any_codes(codes: Vec<u8>, count in 0usize..=255, room in 0usize..900) {
        let symbols = std::array::from_fn(|i| 0x0101_0101_0101_0101 * i as u64);
        let lengths = std::array::from_fn(|i| i as u8 % 9);
        let mut want = vec![0; room];
        let seen = naive::fsst(&symbols, &lengths, count, &codes, &mut want);
        for &row in rows() {
            let mut got = vec![0; room];
            prop_assert_eq!(row.fsst(&symbols, &lengths, count, &codes, &mut got), seen);
            prop_assert_eq!(&got[..seen.written], &want[..seen.written]);
        }
    }
}
