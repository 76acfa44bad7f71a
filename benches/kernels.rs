//! Kernels side by side: every level of this CPU, the same loop as a plain reference would write it, and a copy of as
//! many bytes as the results have. All data stay in the caches, but for `store=streaming`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern_kernels::{Kernels, Store};

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
    targets = gaps, all_counts, words, add, large
}
criterion_main!(benches);
