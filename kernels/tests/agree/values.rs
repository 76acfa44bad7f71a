//! Tables, runs and strings.

use std::fmt::Debug;

use proptest::prelude::*;
use tilekern_kernels::{EntriesSeen, Kernels, LengthsSeen};

use crate::{Random, assert_same, between_canaries, lengths, rows};

/// One value after the other.
pub mod naive {
    use tilekern_kernels::EntriesSeen;

    pub fn gather<T: Copy>(table: &[T], indices: &[u32], out: &mut [T], nothing: T) -> Option<usize> {
        let mut first = None;
        for i in 0..indices.len() {
            out[i] = nothing;
            if (indices[i] as usize) < table.len() {
                out[i] = table[indices[i] as usize];
            } else if first.is_none() {
                first = Some(i);
            }
        }
        first
    }

    pub fn repeat<T: Copy + Default>(values: &[T], runs: &[u32], out: &mut [T]) -> u64 {
        let mut at = 0;
        out.fill(T::default());
        for i in 0..values.len() {
            for _ in 0..runs[i].min(out.len() as u32) {
                if at < out.len() {
                    out[at] = values[i];
                    at += 1;
                }
            }
        }
        runs.iter().map(|&run| u64::from(run)).sum()
    }

    pub fn spans(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
        let mut at = 0;
        out.fill(0);
        for i in 0..starts.len() {
            let (start, length) = (starts[i] as usize, lengths[i] as usize);
            if start + length > data.len() || at + length > out.len() {
                return i;
            }
            out[at..at + length].copy_from_slice(&data[start..start + length]);
            at += length;
        }
        starts.len()
    }

    pub fn entries(
        data: &[u8],
        offsets: &[u32],
        indices: &[u32],
        start: u32,
        ends: &mut [u32],
        out: &mut [u8],
    ) -> EntriesSeen {
        let mut seen = EntriesSeen::default();
        for (i, &index) in indices.iter().enumerate() {
            let index = index as usize;
            if index + 1 >= offsets.len() {
                break;
            }
            let (from, length) = (offsets[index] as usize, offsets[index + 1].wrapping_sub(offsets[index]) as usize);
            if from + length > data.len() || seen.bytes + length > out.len() {
                break;
            }
            out[seen.bytes..seen.bytes + length].copy_from_slice(&data[from..from + length]);
            seen.bytes += length;
            seen.done += 1;
            ends[i] = start.wrapping_add(seen.bytes as u32);
        }
        seen
    }

    pub fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
        let mut last = before.to_vec();
        let (mut at, mut from) = (0, 0);
        out.fill(0);
        for i in 0..prefixes.len() {
            let (prefix, length) = (prefixes[i] as usize, lengths[i] as usize);
            if prefix > last.len() || from + length > suffixes.len() || at + prefix + length > out.len() {
                return i;
            }
            last.truncate(prefix);
            last.extend(&suffixes[from..from + length]);
            out[at..at + last.len()].copy_from_slice(&last);
            at += last.len();
            from += length;
        }
        prefixes.len()
    }
}

/// Tables of every size for which a row has a path of its own, and around it.
fn check_gather<T: Copy + PartialEq + Debug>(
    nothing: T,
    make: impl Fn(u64) -> T,
    run: impl Fn(Kernels, &[T], &[u32], &mut [T]) -> Option<usize>,
) {
    let mut random = Random(21);
    let sizes = (0..=20).chain([31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1_000, 1 << 16, 1 << 20]);
    for size in sizes {
        let table: Box<[T]> = (0..size).map(|_| make(random.next())).collect();
        for len in (0..=40).chain([63, 64, 65, 127, 128, 129, 1_000]) {
            // No index is outside, one is, or all may be.
            for outside in 0..3 {
                let mut indices: Vec<u32> = (0..len).map(|_| random.below(size) as u32).collect();
                if outside == 1 && len > 0 {
                    let wrong = [size as u32, size as u32 + 1, u32::MAX, 1 << 31, 1 << 30][random.below(5)];
                    indices[random.below(len)] = wrong;
                } else if outside == 2 {
                    indices.iter_mut().for_each(|index| *index = random.next() as u32 >> random.below(32));
                }
                let target = random.below(64);
                let canary = make(0xa5a5_a5a5_a5a5_a5a5);
                let want = between_canaries(len, target, canary, |out| naive::gather(&table, &indices, out, nothing));
                for &row in rows() {
                    let got = between_canaries(len, target, canary, |out| run(row, &table, &indices, out));
                    assert_same(&got, &want, || format!("{row:?} {len} of {size}, {indices:.40?}"));
                }
            }
        }
    }
}

#[test]
fn gather_u32() {
    check_gather(0, |bits| bits as u32, |row, table, indices, out| row.gather_u32(table, indices, out));
}

#[test]
fn gather_u64() {
    check_gather(0, |bits| bits, |row, table, indices, out| row.gather_u64(table, indices, out));
}

fn check_gather_bytes<const K: usize>() {
    check_gather(
        [0; K],
        |bits| [0; K].map(|_: u8| bits as u8).map(|byte| byte.wrapping_mul(bits as u8 >> 3)),
        |row, table, indices, out| row.gather_bytes(table.as_flattened(), K, indices, out.as_flattened_mut()),
    );
}

#[test]
fn gather_bytes() {
    check_gather_bytes::<1>();
    check_gather_bytes::<2>();
    check_gather_bytes::<3>();
    check_gather_bytes::<4>();
    check_gather_bytes::<5>();
    check_gather_bytes::<7>();
    check_gather_bytes::<8>();
    check_gather_bytes::<12>();
    check_gather_bytes::<16>();
    check_gather_bytes::<17>();
}

/// Runs that fill the output, are too few or too many, some of 0 and some huge.
fn check_repeat<T: Copy + Default + PartialEq + Debug>(
    make: impl Fn(u64) -> T,
    run: impl Fn(Kernels, &[T], &[u32], &mut [T]) -> u64,
) {
    let mut random = Random(22);
    for len in lengths().filter(|&len| len < 5_000) {
        for longest in [1, 3, 17, 40, 300] {
            let mut runs = Vec::new();
            let mut sum = 0;
            while sum < len {
                let run = random.below(longest + 1).min(len - sum);
                sum += run;
                runs.push(run as u32);
            }
            match random.below(6) {
                0 => drop(runs.pop()),
                1 => runs.push(u32::MAX),
                2 => runs.insert(random.below(runs.len() + 1), u32::MAX - 5),
                3 => runs.extend([0, 7, 0]),
                _ => {}
            }
            let values: Vec<T> = runs.iter().map(|_| make(random.next())).collect();
            let target = random.below(64);
            let canary = make(0xa5a5_a5a5_a5a5_a5a5);
            let want = between_canaries(len, target, canary, |out| naive::repeat(&values, &runs, out));
            for &row in rows() {
                let got = between_canaries(len, target, canary, |out| run(row, &values, &runs, out));
                assert_same(&got, &want, || format!("{row:?} {len}, runs {runs:.40?}"));
            }
        }
    }
}

#[test]
fn repeat_u32() {
    check_repeat(|bits| bits as u32, |row, values, runs, out| row.repeat_u32(values, runs, out));
}

#[test]
fn repeat_u64() {
    check_repeat(|bits| bits, |row, values, runs, out| row.repeat_u64(values, runs, out));
}

#[test]
fn offsets() {
    let mut random = Random(23);
    for len in lengths() {
        for content in 0..4 {
            let length = |random: &mut Random| match content {
                0 => 0,
                1 => random.below(40) as u32,
                2 if random.below(50) == 0 => random.next() as u32,
                2 => random.below(40) as u32,
                _ => u32::MAX - random.below(3) as u32,
            };
            let lengths: Box<[u32]> = (0..len).map(|_| length(&mut random)).collect();
            let start = random.next() as u32;
            let mut seen = LengthsSeen::default();
            let mut ends = Vec::new();
            for &length in &lengths {
                seen.largest = seen.largest.max(length);
                seen.total += u64::from(length);
                ends.push(start.wrapping_add(seen.total as u32));
            }
            let want = (ends, seen);
            let target = random.below(64);
            for &row in rows() {
                let got = between_canaries(len, target, 7, |out| row.offsets_u32(&lengths, start, out));
                assert_same(&got, &want, || format!("{row:?} {len} {content}"));
            }
        }
    }
}

/// `between_canaries`, on every row against `naive`.
fn check_bytes(
    len: usize,
    target: usize,
    what: &str,
    naive: impl Fn(&mut [u8]) -> usize,
    run: impl Fn(Kernels, &mut [u8]) -> usize,
) {
    let want = between_canaries(len, target, 0xcd, naive);
    for &row in rows() {
        let got = between_canaries(len, target, 0xcd, |out| run(row, out));
        assert_same(&got, &want, || format!("{row:?} {what}"));
    }
}

#[test]
fn entries() {
    let mut random = Random(26);
    for round in 0..4_000 {
        let longest = [1, 8, 31, 32, 33, 64, 65, 200][random.below(8)];
        let mut offsets: Vec<u32> = vec![0];
        for _ in 0..random.below(40) {
            offsets.push(offsets[offsets.len() - 1] + random.below(longest + 1) as u32);
        }
        // Data may go on behind the last entry, or be cut.
        let end = *offsets.last().expect("one") as usize;
        let size = [end, end + 100, random.below(end + 1)][random.below(3)];
        let data: Box<[u8]> = (0..size).map(|_| random.next() as u8).collect();
        let entries = offsets.len() - 1;
        let indices: Vec<u32> = (0..random.below(60) * entries.min(1)).map(|_| random.below(entries) as u32).collect();
        let length = |&index: &u32| (offsets[index as usize + 1] - offsets[index as usize]) as usize;
        let mut len = indices.iter().map(length).sum();
        let (mut indices, at) = (indices.clone(), random.below(indices.len()));
        match round % 8 {
            0 if !indices.is_empty() => indices[at] = [entries as u32, u32::MAX, 1 << 31][random.below(3)],
            1 if entries > 0 => offsets[entries] = random.next() as u32,
            2 if entries > 0 => offsets[random.below(entries)] = random.next() as u32,
            3 => len = random.below(len + 1),
            4 => offsets.clear(),
            _ => len += random.below(100),
        }
        let (start, target) = (random.next() as u32, random.below(64));
        // What lies behind the values is nobody's.
        let run = |run: &dyn Fn(&mut [u32], &mut [u8]) -> EntriesSeen| {
            let mut ends = vec![0; indices.len()];
            let (mut out, seen) = between_canaries(len, target, 0xcd, |out| run(&mut ends, out));
            ends.truncate(seen.done);
            out.truncate(seen.bytes);
            (out, (ends, seen))
        };
        let want = run(&|ends, out| naive::entries(&data, &offsets, &indices, start, ends, out));
        for &row in rows() {
            let got = run(&|ends, out| row.entries(&data, &offsets, &indices, start, ends, out));
            assert_same(&got, &want, || format!("{row:?} {size} bytes, {offsets:?}, {indices:?}, room {len}"));
        }
    }
}

#[test]
fn spans() {
    let mut random = Random(24);
    for round in 0..4_000 {
        let size = [0, 1, 31, 32, 33, 64, 100, 1_000][random.below(8)];
        let data: Box<[u8]> = (0..size).map(|_| random.next() as u8).collect();
        let longest = [1, 8, 31, 32, 33, 64, 65, 200][random.below(8)];
        let (mut starts, mut lengths, mut len) = (Vec::new(), Vec::new(), 0);
        for _ in 0..random.below(60) {
            let length = random.below(longest + 1).min(size);
            starts.push(random.below(size - length + 1) as u32);
            lengths.push(length as u32);
            len += length;
        }
        // A span that is not inside, or an output that is too small or too large.
        let at = random.below(starts.len());
        match round % 8 {
            0 if !starts.is_empty() => starts[at] = [size as u32 + 1, u32::MAX, 1 << 31][random.below(3)],
            1 if !starts.is_empty() => lengths[at] = [size as u32 + 1, u32::MAX][random.below(2)],
            2 => len = random.below(len + 1),
            3 => len += random.below(100),
            _ => {}
        }
        check_bytes(
            len,
            random.below(64),
            &format!("{size} bytes, starts {starts:?}, lengths {lengths:?}, room {len}"),
            |out| naive::spans(&data, &starts, &lengths, out),
            |row, out| row.spans(&data, &starts, &lengths, out),
        );
    }
}

#[test]
fn prefixed() {
    let mut random = Random(25);
    for round in 0..4_000 {
        let longest_before = [90, 300][random.below(2)];
        let before: Box<[u8]> = (0..random.below(longest_before)).map(|_| random.next() as u8).collect();
        let longest = [1, 8, 31, 32, 33, 64, 65, 200][random.below(8)];
        let (mut prefixes, mut lengths) = (Vec::new(), Vec::new());
        let (mut last, mut len, mut sum) = (before.len(), 0, 0);
        for _ in 0..random.below(60) {
            let (prefix, length) = (random.below(last + 1), random.below(longest + 1));
            last = prefix + length;
            len += last;
            sum += length;
            prefixes.push(prefix as u32);
            lengths.push(length as u32);
        }
        let at = random.below(prefixes.len());
        match round % 8 {
            0 if at > 0 => prefixes[at] = [prefixes[at - 1] + lengths[at - 1] + 1, u32::MAX, 1 << 31][random.below(3)],
            1 if at > 0 => lengths[at] = [u32::MAX, 1 << 31, 5_000][random.below(3)],
            2 => len = random.below(len + 1),
            3 => len += random.below(100),
            4 => sum = random.below(sum + 1),
            5 => sum += random.below(100),
            6 if !prefixes.is_empty() => prefixes[0] = before.len() as u32 + 1,
            _ => {}
        }
        let suffixes: Box<[u8]> = (0..sum).map(|_| random.next() as u8).collect();
        check_bytes(
            len,
            random.below(64),
            &format!("{} bytes before, prefixes {prefixes:?}, lengths {lengths:?}, {sum}, room {len}", before.len()),
            |out| naive::prefixed(&before, &prefixes, &lengths, &suffixes, out),
            |row, out| row.prefixed(&before, &prefixes, &lengths, &suffixes, out),
        );
    }
}

#[test]
#[should_panic(expected = "lengths")]
fn as_many_indices_as_values_are_needed() {
    Kernels::auto().gather_u32(&[1], &[0], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "lengths")]
fn part_of_an_entry_is_refused() {
    Kernels::auto().gather_bytes(&[1; 5], 3, &[0], &mut [0; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_prefixes(
        before in proptest::collection::vec(any::<u8>(), 0..50),
        values in proptest::collection::vec((0u32..80, 0u32..80), 0..40),
        suffixes in proptest::collection::vec(any::<u8>(), 0..1_500),
        len in 0usize..4_000,
    ) {
        let (prefixes, lengths): (Vec<u32>, Vec<u32>) = values.into_iter().unzip();
        check_bytes(
            len,
            3,
            "any",
            |out| naive::prefixed(&before, &prefixes, &lengths, &suffixes, out),
            |row, out| row.prefixed(&before, &prefixes, &lengths, &suffixes, out),
        );
    }

    #[test]
    fn any_spans(
        data in proptest::collection::vec(any::<u8>(), 0..500),
        values in proptest::collection::vec((0u32..500, 0u32..50), 0..60),
        len in 0usize..2_000,
    ) {
        let (starts, lengths): (Vec<u32>, Vec<u32>) = values.into_iter().unzip();
        check_bytes(
            len,
            3,
            "any",
            |out| naive::spans(&data, &starts, &lengths, out),
            |row, out| row.spans(&data, &starts, &lengths, out),
        );
    }

    #[test]
    fn any_indices(
        table in proptest::collection::vec(any::<u32>(), 0..300),
        indices in proptest::collection::vec(prop_oneof![20 => 0u32..200, 1 => any::<u32>()], 0..300),
    ) {
        let mut want = vec![0u32; indices.len()];
        let outside = naive::gather(&table, &indices, &mut want, 0);
        for &row in rows() {
            let mut entries = vec![7u32; indices.len()];
            prop_assert_eq!(row.gather_u32(&table, &indices, &mut entries), outside);
            prop_assert_eq!(&entries, &want);
        }
    }
}
