//! Kernels side by side: every level of this CPU, the same loop as a plain reference would write it, and a copy of as
//! many bytes as the results have. All data stay in the caches, but for `store=streaming`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern_kernels::{Kernels, RansSlot, RansTable, Store};

/// Values of one call: a chunk's worth of cells, whose 240 KB of results fit the second-level cache.
const VALUES: usize = 60_000;

/// Planes of gaps and their cells of `mean` values, half to one and a half of it each.
struct Gaps {
    lo: Vec<u8>,
    hi: Vec<u8>,
    bounds: Vec<i64>,
}

impl Gaps {
    /// Gaps as they are among 33,000 genes: most are small, a few above 255.
    fn new(mean: usize, values: usize) -> Gaps {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        let mut gaps = Gaps { lo: Vec::new(), hi: Vec::new(), bounds: vec![0] };
        let common = (16_000 / mean).clamp(2, 400);
        while gaps.lo.len() < values {
            for _ in 0..(mean - mean / 2 + random(mean / 2 * 2 + 1)).min(values - gaps.lo.len()) {
                let gap = if random(200) == 0 { 256 } else { 1 + random(common) };
                gaps.lo.push(gap.to_le_bytes()[0]);
                gaps.hi.push(gap.to_le_bytes()[1]);
            }
            gaps.bounds.push(i64::try_from(gaps.lo.len()).unwrap_or(i64::MAX));
        }
        gaps
    }
}

/// The indexed loop of a plain reference.
#[inline(never)]
#[expect(clippy::needless_range_loop, reason = "this very loop is measured")]
fn naive_gaps(gaps: &Gaps, out: &mut [i32]) {
    for cell in gaps.bounds.windows(2) {
        let mut gene = 0;
        for i in usize::try_from(cell[0]).unwrap_or(0)..usize::try_from(cell[1]).unwrap_or(0) {
            gene += i32::from(gaps.lo[i]) | i32::from(gaps.hi[i]) << 8;
            out[i] = gene;
        }
    }
}

/// The indexed loop of a plain reference, cell by cell.
#[inline(never)]
#[expect(clippy::needless_range_loop, reason = "this very loop is measured")]
fn naive_counts<T: From<u16>>(gaps: &Gaps, out: &mut [T]) {
    for cell in gaps.bounds.windows(2) {
        for i in usize::try_from(cell[0]).unwrap_or(0)..usize::try_from(cell[1]).unwrap_or(0) {
            out[i] = T::from(u16::from(gaps.lo[i]) | u16::from(gaps.hi[i]) << 8);
        }
    }
}

fn group<'c>(c: &'c mut Criterion, op: &str, values: usize, bytes: usize) -> BenchmarkGroup<'c, WallTime> {
    let mut group = c.benchmark_group(format!("op={op}"));
    group.throughput(Throughput::ElementsAndBytes { elements: values as u64, bytes: bytes as u64 });
    group
}

fn id(level: &str, n: usize) -> BenchmarkId {
    BenchmarkId::from_parameter(format!("level={level}/n={n}"))
}

/// The lower bound: results of `bytes` bytes copied.
fn copy(group: &mut BenchmarkGroup<'_, WallTime>, n: usize, bytes: usize) {
    let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
    group.bench_function(id("memcpy", n), |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
}

fn gaps(c: &mut Criterion) {
    let mut group = group(c, "gaps", VALUES, 4 * VALUES);
    for mean in [2, 30, 300, 1_500, 2_700] {
        let gaps = Gaps::new(mean, VALUES);
        let mut out = vec![0; VALUES];
        group.bench_function(id("naive", mean), |b| b.iter(|| naive_gaps(black_box(&gaps), black_box(&mut out))));
        for kernels in Kernels::available() {
            group.bench_function(id(kernels.name(), mean), |b| {
                b.iter(|| kernels.gaps(&gaps.lo, &gaps.hi, &gaps.bounds, black_box(&mut out), Store::Cached))
            });
        }
        copy(&mut group, mean, 4 * VALUES);
    }
}

/// One operation of counts, at every level.
fn counts<T: From<u16> + Copy>(c: &mut Criterion, op: &str, run: impl Fn(Kernels, &Gaps, &mut [T])) {
    let bytes = size_of::<T>();
    for n in [300, 2_700, VALUES] {
        let mut group = group(c, op, n, bytes * n);
        let planes = Gaps::new(n.min(2_700), n);
        let mut out = vec![T::from(0); n];
        group.bench_function(id("naive", n), |b| b.iter(|| naive_counts(black_box(&planes), black_box(&mut out))));
        for kernels in Kernels::available() {
            group.bench_function(id(kernels.name(), n), |b| b.iter(|| run(kernels, &planes, black_box(&mut out))));
        }
        copy(&mut group, n, bytes * n);
    }
}

fn all_counts(c: &mut Criterion) {
    counts::<i32>(c, "counts_i32", |kernels, planes, out| {
        kernels.counts_i32(&planes.lo, &planes.hi, out, Store::Cached);
    });
    counts::<f32>(c, "counts_f32", |kernels, planes, out| {
        kernels.counts_f32(&planes.lo, &planes.hi, out, Store::Cached);
    });
    counts::<u16>(c, "counts_u16", |kernels, planes, out| {
        kernels.counts_u16(&planes.lo, &planes.hi, out, Store::Cached);
    });
}

fn words(c: &mut Criterion) {
    for k in [2, 4, 8] {
        let n = 2_700;
        let mut group = group(c, &format!("words/k={k}"), n, k * n);
        let planes = vec![7; k * n];
        let mut out = vec![0; k * n];
        group.bench_function(id("naive", n), |b| {
            b.iter(|| {
                let (planes, out) = (black_box(&planes), black_box(&mut out));
                for i in 0..n {
                    for p in 0..k {
                        out[i * k + p] = planes[p * n + i];
                    }
                }
            })
        });
        for kernels in Kernels::available() {
            group.bench_function(id(kernels.name(), n), |b| b.iter(|| kernels.words(&planes, k, black_box(&mut out))));
        }
        copy(&mut group, n, k * n);
    }
}

fn add(c: &mut Criterion) {
    let n = 2_700;
    let mut group = group(c, "add", n, 4 * n);
    let mut out = vec![0; n];
    for kernels in Kernels::available() {
        group.bench_function(id(kernels.name(), n), |b| b.iter(|| kernels.add(black_box(&mut out), 3)));
    }
    copy(&mut group, n, 4 * n);
}

/// One operation on `n` values: as a plain reference would write it, at every level, and a copy of its results.
fn race<T: Copy, R>(
    c: &mut Criterion,
    (op, n): (&str, usize),
    mut out: Vec<T>,
    mut naive: impl FnMut(&mut [T]),
    run: impl Fn(Kernels, &mut [T]) -> R,
) {
    let bytes = size_of_val(&out[..]);
    let mut group = group(c, op, n, bytes);
    group.bench_function(id("naive", n), |b| b.iter(|| naive(black_box(&mut out))));
    for kernels in Kernels::available() {
        group.bench_function(id(kernels.name(), n), |b| b.iter(|| run(kernels, black_box(&mut out))));
    }
    copy(&mut group, n, bytes);
}

/// Numbers below `below`, the same in every run.
fn numbers(below: u32) -> impl Iterator<Item = u32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(((state >> 32) * u64::from(below)) >> 32).unwrap_or(0)
    })
}

fn bytes(n: usize) -> Vec<u8> {
    numbers(256).map(|byte| byte.to_le_bytes()[0]).take(n).collect()
}

/// Takes one value after the other out of a buffer that is filled byte by byte.
fn naive_unpack(packed: &[u8], width: u32, out: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let (mut buffer, mut bits, mut bytes) = (0u128, 0, packed.iter());
    let ones = (1u128 << width) - 1;
    out.map(move |_| {
        while bits < width {
            buffer |= u128::from(*bytes.next().unwrap_or(&0)) << bits;
            bits += 8;
        }
        let value = u64::try_from(buffer & ones).unwrap_or(0);
        buffer >>= width;
        bits -= width;
        value
    })
}

#[expect(clippy::cast_possible_truncation, reason = "widths are those of the words")]
fn packed(c: &mut Criterion) {
    let n = 4_096;
    let packed = bytes(8 * n + 64);
    let naive = |width, n| naive_unpack(&packed, width, 0..n as u64);
    for width in [1, 3] {
        let op = format!("unpack_u8/width={width}");
        let plain = |out: &mut [u8]| out.iter_mut().zip(naive(width, n)).for_each(|(out, value)| *out = value as u8);
        race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.unpack_u8(&packed, width, out));
    }
    for width in [4, 10, 20, 31] {
        let op = format!("unpack_u32/width={width}");
        let plain = |out: &mut [u32]| out.iter_mut().zip(naive(width, n)).for_each(|(out, value)| *out = value as u32);
        race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.unpack_u32(&packed, width, out));
        let op = format!("unpack_lanes_u32/width={width}");
        let group = &packed[..16 * width as usize];
        race(c, (&op, 128), vec![0; 128], plain, |kernels, out| kernels.unpack_lanes_u32(group, width, out));
    }
    for width in [10, 47] {
        let op = format!("unpack_u64/width={width}");
        let plain = |out: &mut [u64]| out.iter_mut().zip(naive(width, n)).for_each(|(out, value)| *out = value);
        race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.unpack_u64(&packed, width, out));
    }
    // Blocks of four runs, one call for each.
    for (name, widths) in [("6", [6; 4]), ("20", [20; 4]), ("any", [3, 17, 9, 30])] {
        let op = format!("deltas_u32/width={name}");
        let plain = |out: &mut [u32]| {
            let (mut packed, mut sum) = (&packed[..], 7u32);
            for (out, &width) in out.chunks_mut(32).zip(widths.iter().cycle()) {
                for (out, delta) in out.iter_mut().zip(naive_unpack(packed, width.into(), 0..32)) {
                    sum = sum.wrapping_add(3).wrapping_add(delta as u32);
                    *out = sum;
                }
                packed = &packed[4 * usize::from(width)..];
            }
        };
        race(c, (&op, n), vec![0; n], plain, |kernels, out| {
            let (mut packed, mut last) = (&packed[..], 7);
            for out in out.chunks_mut(128) {
                last = kernels.deltas_u32(packed, &widths, 32, 3, last, out);
                packed = &packed[widths.iter().map(|&width| 4 * usize::from(width)).sum()..];
            }
        });
    }
}

fn tables(c: &mut Criterion) {
    let n = 1_024;
    for entries in [8, 100, 1_000, 100_000] {
        let table: Vec<u32> = numbers(u32::MAX).take(entries).collect();
        let wide: Vec<u64> = table.iter().map(|&entry| u64::from(entry) << 20).collect();
        let indices: Vec<u32> = numbers(u32::try_from(entries).unwrap_or(0)).take(n).collect();
        let plain =
            |out: &mut [u32]| out.iter_mut().zip(&indices).for_each(|(out, &index)| *out = table[index as usize]);
        race(c, (&format!("gather_u32/entries={entries}"), n), vec![0; n], plain, |kernels, out| {
            kernels.gather_u32(&table, &indices, out)
        });
        let plain =
            |out: &mut [u64]| out.iter_mut().zip(&indices).for_each(|(out, &index)| *out = wide[index as usize]);
        race(c, (&format!("gather_u64/entries={entries}"), n), vec![0; n], plain, |kernels, out| {
            kernels.gather_u64(&wide, &indices, out)
        });
    }
}

fn runs(c: &mut Criterion) {
    for mean in [3, 20] {
        let n = 4_096;
        let runs: Vec<u32> = numbers(2 * mean).map(|run| run + 1).take(n / mean as usize).collect();
        let values: Vec<u32> = numbers(u32::MAX).take(runs.len()).collect();
        let plain = |out: &mut [u32]| {
            let repeated = values.iter().zip(&runs).flat_map(|(&value, &run)| std::iter::repeat_n(value, run as usize));
            out.iter_mut().zip(repeated).for_each(|(out, value)| *out = value);
        };
        race(c, (&format!("repeat_u32/mean={mean}"), n), vec![0; n], plain, |kernels, out| {
            kernels.repeat_u32(&values, &runs, out)
        });
    }
}

fn strings(c: &mut Criterion) {
    let n = 1_024;
    let lengths: Vec<u32> = numbers(30).take(n).collect();
    let plain = |out: &mut [u32]| {
        let mut end = 0;
        for (out, length) in out.iter_mut().zip(&lengths) {
            end += length;
            *out = end;
        }
    };
    race(c, ("offsets_u32", n), vec![0; n], plain, |kernels, out| kernels.offsets_u32(&lengths, 0, out));

    let starts: Vec<u32> = numbers(20_000).take(n).collect();
    let total: usize = lengths.iter().map(|&length| length as usize).sum();
    let data = bytes(20_100);
    let plain = |out: &mut [u8]| {
        let mut out = out;
        for (&start, &length) in starts.iter().zip(&lengths) {
            let (to, rest) = out.split_at_mut(length as usize);
            to.copy_from_slice(&data[start as usize..][..length as usize]);
            out = rest;
        }
    };
    race(c, ("spans", n), vec![0; total], plain, |kernels, out| kernels.spans(&data, &starts, &lengths, out));

    // A dictionary of 1,000 such values.
    let ends: Vec<u32> =
        numbers(30).take(1_000).scan(0, |end, length| Some(std::mem::replace(end, *end + length))).collect();
    let indices: Vec<u32> = numbers(999).take(n).collect();
    let entry = |index: u32| ends[index as usize] as usize..ends[index as usize + 1] as usize;
    let total: usize = indices.iter().map(|&index| entry(index).len()).sum();
    let plain = |out: &mut [u8]| {
        let mut out = out;
        for &index in &indices {
            let (to, rest) = out.split_at_mut(entry(index).len());
            to.copy_from_slice(&data[entry(index)]);
            out = rest;
        }
    };
    race(c, ("entries", n), vec![0; total + 64], plain, |kernels, out| {
        kernels.entries(&data, &ends, &indices, 0, &mut [0; 1_024], out)
    });

    // Values of about 47 bytes, as sorted addresses are.
    let (mut prefixes, mut last, mut total) = (Vec::new(), 0, 0);
    for (prefix, length) in numbers(36).map(|prefix| prefix + 18).zip(&lengths) {
        prefixes.push(prefix.min(last));
        last = prefixes[prefixes.len() - 1] + length;
        total += last as usize;
    }
    let suffixes = bytes(lengths.iter().map(|&length| length as usize).sum());
    let plain = |out: &mut [u8]| {
        let (mut last, mut at, mut rest) = (0, 0, &suffixes[..]);
        for (&prefix, &length) in prefixes.iter().zip(&lengths) {
            let (suffix, behind) = rest.split_at(length as usize);
            out.copy_within(last..last + prefix as usize, at);
            last = at;
            at += prefix as usize;
            out[at..][..suffix.len()].copy_from_slice(suffix);
            at += suffix.len();
            rest = behind;
        }
    };
    race(c, ("prefixed", n), vec![0; total], plain, |kernels, out| {
        kernels.prefixed(&[], &prefixes, &lengths, &suffixes, out)
    });
}

/// LEB128 of numbers, byte by byte.
fn leb128(values: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut value in values {
        while value >= 0x80 {
            bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        bytes.push(value.to_le_bytes()[0]);
    }
    bytes
}

/// Values byte by byte, of which `more` says whether another byte follows.
fn naive_varints(src: &[u8], more: impl Fn(u8) -> bool, mut store: impl FnMut(u64)) {
    let (mut value, mut shift) = (0, 0);
    for &byte in src {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if !more(byte) {
            store(value);
            (value, shift) = (0, 0);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "values of as many bits")]
fn varints(c: &mut Criterion) {
    let n = 4_096;
    let two = |of: u32| {
        numbers(of).zip(numbers(16_000)).map(|(one, wide)| u64::from(if one == 0 { 128 + wide } else { one }))
    };
    let mixed = || numbers(u32::MAX).zip(numbers(32)).map(|(value, shift)| u64::from(value >> shift));
    let wide = || numbers(u32::MAX).zip(numbers(57)).map(|(value, shift)| (u64::from(value) << 32 | 1) >> shift);
    for (bytes, src) in [
        ("1", leb128(numbers(128).map(u64::from).take(n))),
        ("1-2", leb128(two(20).take(n))),
        ("2", leb128(numbers(16_000).map(|value| u64::from(128 + value)).take(n))),
        ("1-5", leb128(mixed().take(n))),
        ("1-9", leb128(wide().take(n))),
    ] {
        let marked: Vec<u8> = src.iter().map(|byte| byte ^ 0x80).collect();
        let leb = |byte: u8| byte >= 0x80;
        if bytes != "1-9" {
            let plain = |out: &mut [u32]| {
                let mut out = out.iter_mut();
                naive_varints(&src, leb, |value| out.next().into_iter().for_each(|out| *out = value as u32));
            };
            let op = format!("varints_u32/bytes={bytes}");
            race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.varints_u32(&src, out));
            let plain = |out: &mut [u32]| {
                let mut out = out.iter_mut();
                naive_varints(
                    &marked,
                    |byte| !leb(byte),
                    |value| out.next().into_iter().for_each(|out| *out = value as u32),
                );
            };
            let op = format!("vbytes_u32/bytes={bytes}");
            race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.vbytes_u32(&marked, out));
        }
        let plain = |out: &mut [u64]| {
            let mut out = out.iter_mut();
            naive_varints(&src, leb, |value| out.next().into_iter().for_each(|out| *out = value));
        };
        let op = format!("varints_u64/bytes={bytes}");
        race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.varints_u64(&src, out));
        let plain = |out: &mut [u64]| {
            let mut out = out.iter_mut();
            naive_varints(&marked, |byte| !leb(byte), |value| out.next().into_iter().for_each(|out| *out = value));
        };
        let op = format!("vbytes_u64/bytes={bytes}");
        race(c, (&op, n), vec![0; n], plain, |kernels, out| kernels.vbytes_u64(&marked, out));
    }
}

/// Operations on ZigZag and Morton codes.
fn zigzag(c: &mut Criterion) {
    let n = 4_096;
    let codes: Vec<u32> = numbers(1_000).take(n).collect();
    let wide: Vec<u64> = codes.iter().map(|&code| u64::from(code) << 20).collect();
    let back = |code: u32| (code >> 1) ^ (code & 1).wrapping_neg();
    let wide_back = |code: u64| (code >> 1) ^ (code & 1).wrapping_neg();
    let plain = |out: &mut [u32]| out.iter_mut().for_each(|out| *out = back(*out));
    race(c, ("zigzag_u32", n), codes.clone(), plain, |kernels, out| kernels.zigzag_u32(out));
    let plain = |out: &mut [u64]| out.iter_mut().for_each(|out| *out = wide_back(*out));
    race(c, ("zigzag_u64", n), wide.clone(), plain, |kernels, out| kernels.zigzag_u64(out));
    for stride in 1..=3 {
        let plain = |out: &mut [u32]| {
            let mut last = [0u32; 3];
            for out in out.chunks_mut(stride) {
                for (out, last) in out.iter_mut().zip(&mut last) {
                    *last = last.wrapping_add(back(*out));
                    *out = *last;
                }
            }
        };
        let op = format!("zigzag_deltas_u32/stride={stride}");
        race(c, (&op, n), codes.clone(), plain, |kernels, out| kernels.zigzag_deltas_u32(out, stride));
        let plain = |out: &mut [u32]| {
            let mut last = [[0u32; 2]; 3];
            for out in out.chunks_mut(stride) {
                for (out, [delta, last]) in out.iter_mut().zip(&mut last) {
                    *delta = delta.wrapping_add(back(*out));
                    *last = last.wrapping_add(*delta);
                    *out = *last;
                }
            }
        };
        let op = format!("zigzag_deltas2_u32/stride={stride}");
        race(c, (&op, n), codes.clone(), plain, |kernels, out| kernels.zigzag_deltas2_u32(out, stride));
    }
    let plain = |out: &mut [u64]| {
        let mut last = 0u64;
        for out in out {
            last = last.wrapping_add(wide_back(*out));
            *out = last;
        }
    };
    race(c, ("zigzag_deltas_u64", n), wide.clone(), plain, |kernels, out| kernels.zigzag_deltas_u64(out));
    let plain = |out: &mut [u64]| {
        let (mut delta, mut last) = (0u64, 0u64);
        for out in out {
            delta = delta.wrapping_add(wide_back(*out));
            last = last.wrapping_add(delta);
            *out = last;
        }
    };
    race(c, ("zigzag_deltas2_u64", n), wide.clone(), plain, |kernels, out| kernels.zigzag_deltas2_u64(out));
    let plain = |out: &mut [i32]| {
        let mut code = 0u32;
        for (out, delta) in out.chunks_exact_mut(2).zip(&codes) {
            code = code.wrapping_add(*delta);
            let axis = |code: u32| (0..13).fold(0, |axis, bit| axis | (code >> (2 * bit) & 1) << bit);
            (out[0], out[1]) = (axis(code).cast_signed() - 100, axis(code >> 1).cast_signed() - 100);
        }
    };
    race(c, ("morton", n), vec![0; 2 * n], plain, |kernels, out| kernels.morton(&codes, 13, 100, out));
}

/// Decimal numbers, exceptions, the order of bytes, values at their places.
#[expect(clippy::cast_possible_truncation, reason = "32-bit numbers are asked for")]
fn columns(c: &mut Criterion) {
    let n = 4_096;
    let offsets: Vec<u64> = numbers(1_000_000).map(u64::from).take(n).collect();
    let number = |offset: u64| 5i64.wrapping_add(offset.cast_signed()) as f64 * 1e2 * 1e-5;
    let plain = |out: &mut [f64]| out.iter_mut().zip(&offsets).for_each(|(out, &offset)| *out = number(offset));
    race(c, ("alp_f64", n), vec![0.0; n], plain, |kernels, out| kernels.alp_f64(&offsets, 5, 1e2, 1e-5, out));
    let plain = |out: &mut [f32]| out.iter_mut().zip(&offsets).for_each(|(out, &offset)| *out = number(offset) as f32);
    race(c, ("alp_f32", n), vec![0.0; n], plain, |kernels, out| kernels.alp_f32(&offsets, 5, 1e2, 1e-5, out));

    let positions: Vec<u8> = (0..20).map(|i| 6 * i).collect();
    let low: Vec<u32> = numbers(1 << 20).take(20).collect();
    let wide: Vec<u64> = low.iter().map(|&value| value.into()).collect();
    let plain = |out: &mut [u32]| {
        positions.iter().zip(&low).for_each(|(&position, value)| out[usize::from(position)] |= value << 7)
    };
    race(c, ("patch_u32", 128), vec![0; 128], plain, |kernels, out| kernels.patch_u32(&positions, &low, 7, out));
    let plain = |out: &mut [u64]| {
        positions.iter().zip(&wide).for_each(|(&position, value)| out[usize::from(position)] |= value << 7)
    };
    race(c, ("patch_u64", 128), vec![0; 128], plain, |kernels, out| kernels.patch_u64(&positions, &wide, 7, out));

    let words = bytes(4 * n);
    let plain = |out: &mut [u8]| {
        for (out, word) in out.chunks_exact_mut(4).zip(words.chunks_exact(4)) {
            out.iter_mut().zip(word.iter().rev()).for_each(|(out, byte)| *out = *byte);
        }
    };
    race(c, ("swap_words", n), vec![0; 4 * n], plain, |kernels, out| kernels.swap_words(&words, out));

    let values: Vec<u32> = numbers(u32::MAX).take(n).collect();
    for percent in [10, 50, 95] {
        let present: Vec<u8> = {
            let set: Vec<bool> = numbers(100).map(|number| number < percent).take(n).collect();
            set.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
        };
        let set = |i: usize| present[i / 8] >> (i % 8) & 1 == 1;
        let plain = |out: &mut [u32]| {
            let mut next = values.iter();
            out.iter_mut().enumerate().for_each(|(i, out)| *out = if set(i) { *next.next().unwrap_or(&0) } else { 0 });
        };
        race(c, (&format!("spread_u32/set={percent}"), n), vec![0; n], plain, |kernels, out| {
            kernels.spread_u32(&values, &present, out)
        });
        let plain = |out: &mut [u64]| {
            let mut next = offsets.iter();
            out.iter_mut().enumerate().for_each(|(i, out)| *out = if set(i) { *next.next().unwrap_or(&0) } else { 0 });
        };
        race(c, (&format!("spread_u64/set={percent}"), n), vec![0; n], plain, |kernels, out| {
            kernels.spread_u64(&offsets, &present, out)
        });
        let plain = |out: &mut [u8]| {
            let mut next = 0;
            for i in 0..n {
                if set(i) {
                    out[i / 8] |= (words[next / 8] >> (next % 8) & 1) << (i % 8);
                    next += 1;
                }
            }
        };
        race(c, (&format!("spread_bits/set={percent}"), n), vec![0; n / 8], plain, |kernels, out| {
            kernels.spread_bits(&words, &present, n, out)
        });
    }
}

/// Codes of symbols of one to eight bytes, some of them escapes.
fn fsst(c: &mut Criterion) {
    let symbols: [u64; 256] = std::array::from_fn(|i| 0x6162_6364_6566_6768 + i as u64);
    let lengths: [u8; 256] = std::array::from_fn(|i| [3, 5, 1, 2, 8, 4, 2, 3][i % 8]);
    for percent in [0, 2, 10] {
        let mut codes = Vec::new();
        for (code, escape) in numbers(255).zip(numbers(100)).take(8_192) {
            codes.push(if escape < percent { 255 } else { code.to_le_bytes()[0] });
            codes.extend((escape < percent).then_some(65));
        }
        let mut expanded = vec![0; 8 * codes.len()];
        let total = Kernels::auto().fsst(&symbols, &lengths, 255, &codes, &mut expanded).written;
        let plain = |out: &mut [u8]| {
            let (mut at, mut codes) = (0, codes.iter());
            while let Some(&code) = codes.next() {
                if code == 255 {
                    out[at] = *codes.next().unwrap_or(&0);
                    at += 1;
                } else {
                    let length = usize::from(lengths[usize::from(code)]);
                    out[at..at + length].copy_from_slice(&symbols[usize::from(code)].to_le_bytes()[..length]);
                    at += length;
                }
            }
        };
        race(c, (&format!("fsst/escapes={percent}"), total), vec![0; total + 64], plain, |kernels, out| {
            kernels.fsst(&symbols, &lengths, 255, &codes, out)
        });
    }
}

/// Vertices of few bits each: their symbols, then their differences.
fn rans(c: &mut Criterion) {
    let n = 4_096;
    for precision in [8, 11] {
        let mut slots = Vec::new();
        let tables: [RansTable; 14] = std::array::from_fn(|_| {
            let start = u32::try_from(slots.len()).unwrap_or(0);
            let (mut left, mut symbol) = (1 << precision, 0u16);
            while left > 0 {
                let count = (left / 5).max(1);
                slots.extend((0..count).map(|nth| RansSlot { symbol: symbol % 40, nth, count: count.into() }));
                (left, symbol) = (left - count, symbol + 1);
            }
            RansTable { start, precision }
        });
        let words = bytes(4 * n);
        let (lanes, states) = ([&words[..]; 4], [0x1234_5678, 0x2234_5678, 0x3234_5678, 0x4234_5678]);
        let starts: Vec<u8> = numbers(32).map(|bit| if bit < 8 { 1 << bit } else { 0 }).take(n / 8).collect();
        let plain = |out: &mut [[u16; 2]]| {
            let (mut states, mut next) = (states, [0; 4]);
            for (i, out) in out.iter_mut().enumerate() {
                let start = usize::from(starts[i / 8] >> (i % 8) & 1);
                let mut context = start;
                for (axis, out) in out.iter_mut().enumerate() {
                    let (lane, table) = (2 * (i % 2) + axis, tables[context]);
                    let x = states[lane];
                    let slot = slots[(table.start + x % (1 << table.precision)) as usize];
                    let mut x = slot.count * (x >> table.precision) + u32::from(slot.nth);
                    if x < 1 << 16 {
                        x = x << 16 | u32::from(lanes[lane][next[lane]]) | u32::from(lanes[lane][next[lane] + 1]) << 8;
                        next[lane] += 2;
                    }
                    states[lane] = x;
                    *out = slot.symbol;
                    context = 2 + 2 * usize::from(out.div_ceil(2) >> 1).min(5) + start;
                }
            }
        };
        let op = format!("rans_symbols/precision={precision}");
        race(c, (&op, n), vec![[0; 2]; n], plain, |kernels, out| {
            kernels.rans_symbols(&slots, &tables, 1, &lanes, &states, &starts, out)
        });
    }
    let symbols: Vec<[u16; 2]> = numbers(40)
        .zip(numbers(35))
        .map(|(x, y)| [x, y].map(|symbol| u16::try_from(symbol).unwrap_or(0)))
        .take(n)
        .collect();
    let raw = bytes(8 * n);
    let plain = |out: &mut [i32]| {
        let (mut at, mut last) = (0, [0i32; 2]);
        for (out, symbols) in out.chunks_exact_mut(2).zip(&symbols) {
            for ((out, last), &symbol) in out.iter_mut().zip(&mut last).zip(symbols) {
                let code = u32::from(symbol.div_ceil(2));
                let length = code >> 1;
                if length > 0 {
                    let kept = (length - 1).min(1);
                    let (bits, mut low) = (length - 1 - kept, 0);
                    for bit in 0..bits {
                        low |= u32::from(raw[at / 8] >> (at % 8) & 1) << bit;
                        at += 1;
                    }
                    let magnitude = (1 << kept | (code & 1) >> (1 - kept)) << bits | low;
                    *last = last.wrapping_add(if symbol % 2 == 1 {
                        magnitude.cast_signed()
                    } else {
                        -magnitude.cast_signed()
                    });
                }
                *out = *last;
            }
        }
    };
    race(c, ("rans_vertices", n), vec![0; 2 * n], plain, |kernels, out| kernels.rans_vertices(&symbols, 1, &raw, out));
}

/// Results of 64 MB, from planes that stay in the caches as a decoder's do.
fn large(c: &mut Criterion) {
    let planes = Gaps::new(2_700, 4 * VALUES);
    let chunk = planes.lo.len();
    let values = 16_000_000 / chunk * chunk;
    let mut out = vec![0; values];
    for (name, store) in [("cached", Store::Cached), ("streaming", Store::Streaming)] {
        let mut group = group(c, &format!("gaps/store={name}"), values, 4 * values);
        group.sample_size(10);
        for kernels in Kernels::available() {
            group.bench_function(id(kernels.name(), values), |b| {
                b.iter(|| {
                    for out in black_box(&mut out).chunks_exact_mut(chunk) {
                        kernels.gaps(&planes.lo, &planes.hi, &planes.bounds, out, store);
                    }
                })
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets =
        gaps, all_counts, words, add, packed, tables, runs, strings, varints, zigzag, columns, fsst, rans, large
}
criterion_main!(benches);
