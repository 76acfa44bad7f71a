//! Every row against plain indexed loops, bit for bit.
//!
//! Sources lie in allocations of exactly their size, so that a sanitizer sees a read of one byte too many; results
//! lie between canaries.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the data are made here, from random bits"
)]

mod codes;
mod packed;
mod values;

use std::fmt::Debug;
use std::sync::LazyLock;

use proptest::prelude::*;
use tilekern_kernels::{CountsSeen, GapsSeen, Kernels, Level, Store};

const STORES: [Store; 2] = [Store::Cached, Store::Streaming];

/// The rows of this CPU, and one of a user's.
fn rows() -> &'static [Kernels] {
    static ROWS: LazyLock<Vec<Kernels>> = LazyLock::new(|| {
        let user = Kernels::custom("user", Kernels::auto())
            .gaps(naive::gaps)
            .counts_i32(naive::counts)
            .unpack_u32(packed::naive::unpack)
            .deltas_u64(packed::naive::deltas)
            .prefixed(values::naive::prefixed)
            .varints_u32(codes::naive::varints_u32)
            .zigzag_deltas_u32(codes::naive::zigzag_deltas)
            .morton(codes::naive::morton)
            .fsst(codes::naive::fsst)
            .alp_f64(codes::naive::alp_f64)
            .spread_bits(codes::naive::spread_bits)
            .rans_symbols(codes::naive::rans_symbols)
            .rans_vertices(codes::naive::rans_vertices)
            .build();
        Kernels::available().chain([user]).collect()
    });
    &ROWS
}

/// 0 to 130, and around the powers of two up to 2^16.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=130).chain((8..=16).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]))
}

/// The offsets of sources and results to try at a length: all of 0 to 63 for both, in pairs that change with the
/// length, where that is quick.
fn offsets(len: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = if len <= 130 { 1 } else { 9 };
    (0..64).step_by(step).map(move |offset| (offset, (offset * 37 + len) % 64))
}

/// What the bytes of a pair of planes look like.
#[derive(Clone, Copy, Debug)]
enum Content {
    Zeros,
    Max,
    /// Low bytes of 1 to 20, high bytes of 0.
    Small,
    /// As `Small`, with a zero or a large value here and there.
    Rare,
    Garbage,
}

const CONTENTS: [Content; 5] = [Content::Zeros, Content::Max, Content::Small, Content::Rare, Content::Garbage];

/// A pair of planes in allocations of their own, each `offset` bytes in.
struct Planes {
    lo: Box<[u8]>,
    hi: Box<[u8]>,
    offset: usize,
}

impl Planes {
    fn new(content: Content, len: usize, offset: usize, random: &mut Random) -> Planes {
        let (mut lo, mut hi) = (vec![0xa5; offset + len], vec![0x5a; offset + len]);
        for (lo, hi) in lo.iter_mut().zip(&mut hi).skip(offset) {
            let bits = random.next();
            [*lo, *hi] = match content {
                Content::Zeros => [0, 0],
                Content::Max => [255, 255],
                Content::Small => [1 + (bits % 20) as u8, 0],
                Content::Rare if bits.is_multiple_of(97) => [0, (bits >> 40) as u8 & (bits >> 48) as u8],
                Content::Rare => [1 + (bits % 20) as u8, 0],
                Content::Garbage => [bits as u8, (bits >> 8) as u8],
            };
        }
        Planes { lo: lo.into_boxed_slice(), hi: hi.into_boxed_slice(), offset }
    }

    fn get(&self) -> (&[u8], &[u8]) {
        (&self.lo[self.offset..], &self.hi[self.offset..])
    }
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

/// The same operations as a plain reference would write them.
mod naive {
    use super::*;

    pub fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], _: Store) -> GapsSeen {
        let mut seen = GapsSeen::default();
        for cell in 1..bounds.len() {
            let start = (bounds[cell - 1] - bounds[0]) as usize;
            let end = (bounds[cell] - bounds[0]) as usize;
            let mut sum = 0u64;
            for i in start..end {
                let gap = u64::from(lo[i]) + 256 * u64::from(hi[i]);
                sum += gap;
                seen.repeated |= gap == 0 && i > start;
                out[i] = sum as i32;
            }
            seen.last = seen.last.max(sum);
        }
        seen
    }

    pub fn counts<T>(lo: &[u8], hi: &[u8], out: &mut [T], _: Store) -> CountsSeen
    where
        T: From<u16>,
    {
        let mut seen = CountsSeen::default();
        for i in 0..out.len() {
            let count = u16::from(lo[i]) + 256 * u16::from(hi[i]);
            seen.zero |= count == 0;
            out[i] = T::from(count);
        }
        seen
    }

    pub fn words(planes: &[u8], k: usize, out: &mut [u8]) {
        let n = out.len() / k;
        for i in 0..n {
            for p in 0..k {
                out[i * k + p] = planes[p * n + i];
            }
        }
    }
}

/// What `run` gives between canaries, `offset` values in.
#[track_caller]
fn between_canaries<T: Copy + PartialEq + Debug, S>(
    len: usize,
    offset: usize,
    canary: T,
    run: impl FnOnce(&mut [T]) -> S,
) -> (Vec<T>, S) {
    let mut buffer = vec![canary; offset + len + 64];
    let seen = run(&mut buffer[offset..offset + len]);
    assert!(buffer[..offset].iter().all(|value| *value == canary), "written before the results");
    assert!(buffer[offset + len..].iter().all(|value| *value == canary), "written after the results");
    (buffer[offset..offset + len].to_vec(), seen)
}

/// Asserts equality, without printing thousands of values.
#[track_caller]
fn assert_same<T: PartialEq + Debug, S: PartialEq + Debug>(
    got: &(Vec<T>, S),
    want: &(Vec<T>, S),
    what: impl Fn() -> String,
) {
    if got != want {
        let at = got.0.iter().zip(&want.0).position(|(got, want)| got != want);
        let values = at.map(|at| (&got.0[at], &want.0[at]));
        panic!("{}: at {at:?} {values:?}, evidence {:?} for {:?}", what(), got.1, want.1);
    }
}

/// Checks one operation of counts at all lengths, offsets and contents.
fn check_counts<T: From<u16> + Copy + PartialEq + Debug>(
    run: impl Fn(Kernels, &[u8], &[u8], &mut [T], Store) -> CountsSeen,
) {
    let mut random = Random(1);
    let rows = rows();
    // The last lengths are worth stores around the caches.
    for len in lengths().chain([20_000, 20_031]) {
        for (source, target) in offsets(len) {
            let content = CONTENTS[(source + len) % CONTENTS.len()];
            let planes = Planes::new(content, len, source, &mut random);
            let (lo, hi) = planes.get();
            let canary = T::from(0xabcd);
            let want = between_canaries(len, target, canary, |out| naive::counts(lo, hi, out, Store::Cached));
            for &row in rows {
                for store in STORES {
                    let got = between_canaries(len, target, canary, |out| run(row, lo, hi, out, store));
                    assert_same(&got, &want, || format!("{row:?} {store:?} {content:?} {len} at {source} to {target}"));
                }
            }
        }
    }
}

#[test]
fn counts_i32() {
    check_counts::<i32>(|row, lo, hi, out, store| row.counts_i32(lo, hi, out, store));
}

#[test]
fn counts_f32() {
    check_counts::<f32>(|row, lo, hi, out, store| row.counts_f32(lo, hi, out, store));
}

#[test]
fn counts_u16() {
    check_counts::<u16>(|row, lo, hi, out, store| row.counts_u16(lo, hi, out, store));
}

#[test]
fn one_zero_count_is_seen_at_every_place() {
    for len in [1, 63, 64, 65, 200, 17_000] {
        for zero in (0..len).step_by(len / 200 + 1).chain([len - 1]) {
            let (mut lo, hi) = (vec![1; len], vec![0; len]);
            lo[zero] = 0;
            for &row in rows() {
                for store in STORES {
                    let seen = row.counts_i32(&lo, &hi, &mut vec![0; len], store);
                    assert!(seen.zero, "{row:?} {store:?} {len} {zero}");
                    let seen = row.counts_i32(&hi, &lo, &mut vec![0; len], store);
                    assert!(seen.zero, "{row:?} {store:?} {len} {zero}");
                }
            }
        }
    }
}

#[test]
fn words() {
    let mut random = Random(2);
    let rows = rows();
    for k in [1, 2, 3, 4, 5, 8, 12, 16] {
        for n in lengths().filter(|&n| n <= 130 || k <= 8 && n < 10_000) {
            for (source, target) in offsets(n) {
                let planes = Planes::new(Content::Garbage, n * k, source, &mut random);
                let planes = planes.get().0;
                let want = between_canaries(n * k, target, 0xcd, |out| naive::words(planes, k, out));
                // The same planes with other bytes between them, but for the last.
                let stride = n + target % 5;
                let mut apart = vec![0x77; source];
                for (p, plane) in planes.chunks_exact(n.max(1)).enumerate() {
                    apart.resize(source + p * stride, 0x77);
                    apart.extend_from_slice(plane);
                }
                apart.resize(source + (k - 1) * stride + n, 0x77);
                let apart = &apart.into_boxed_slice()[source..];
                for &row in rows {
                    let got = between_canaries(n * k, target, 0xcd, |out| row.words(planes, k, out));
                    assert_same(&got, &want, || format!("{row:?} k {k} n {n} at {source} to {target}"));
                    let got = between_canaries(n * k, target, 0xcd, |out| row.words_apart(apart, stride, k, out));
                    assert_same(&got, &want, || format!("{row:?} k {k} n {n} apart by {stride}"));
                }
            }
        }
    }
}

#[test]
fn add() {
    let mut random = Random(3);
    let rows = rows();
    for len in lengths() {
        for (_, target) in offsets(len) {
            let values: Vec<i32> = (0..len).map(|_| random.next() as i32).collect();
            let delta = random.next() as i32;
            let want = (values.iter().map(|value| value.wrapping_add(delta)).collect(), ());
            for &row in rows {
                let got = between_canaries(len, target, i32::MIN, |out| {
                    out.copy_from_slice(&values);
                    row.add(out, delta);
                });
                assert_same(&got, &want, || format!("{row:?} {len} to {target}"));
            }
        }
    }
}

/// Checks `gaps` on given planes and cells.
#[track_caller]
fn check_gaps(rows: &[Kernels], lo: &[u8], hi: &[u8], bounds: &[i64], target: usize, what: &str) {
    let len = lo.len();
    let want = between_canaries(len, target, -7, |out| naive::gaps(lo, hi, bounds, out, Store::Cached));
    for &row in rows {
        for store in STORES {
            let got = between_canaries(len, target, -7, |out| row.gaps(lo, hi, bounds, out, store));
            assert_same(&got, &want, || format!("{row:?} {store:?} {len} values to {target}, {what}, {bounds:.40?}"));
        }
    }
}

/// Cells of about `mean` values, some empty, whose bounds start at `base`.
fn cells(len: usize, mean: usize, base: i64, random: &mut Random) -> Vec<i64> {
    let mut bounds = vec![base];
    let end = base + len as i64;
    while bounds[bounds.len() - 1] < end {
        let cell = if random.below(4) == 0 { 0 } else { random.below(2 * mean) };
        bounds.push(bounds[bounds.len() - 1].saturating_add(cell as i64).min(end));
    }
    bounds.extend(std::iter::repeat_n(end, random.below(3)));
    bounds
}

#[test]
fn gaps() {
    let mut random = Random(4);
    let rows = rows();
    for len in lengths() {
        for (source, target) in offsets(len) {
            let content = CONTENTS[(source + len) % CONTENTS.len()];
            let planes = Planes::new(content, len, source, &mut random);
            let mean = [1, 2, 7, 40, len, 3 * len][source % 6];
            let base = [0, 1, 5_000_000_000, i64::MAX - len as i64][source % 4];
            let bounds = if source % 8 == 0 {
                vec![base, base, base + len as i64, base + len as i64]
            } else {
                cells(len, mean.max(1), base, &mut random)
            };
            let (lo, hi) = planes.get();
            check_gaps(rows, lo, hi, &bounds, target, &format!("{content:?} at {source}"));
        }
    }
    check_gaps(rows, &[], &[], &[], 0, "no bounds");
    check_gaps(rows, &[], &[], &[3], 0, "no cell");
}

#[test]
fn gaps_around_the_caches() {
    let mut random = Random(5);
    let rows = rows();
    for target in 0..64 {
        let mean = [3, 100, 2_700, 9_000, 70_000][target % 5];
        let content = CONTENTS[target % CONTENTS.len()];
        let len = 16_384 + random.below(40_000);
        let planes = Planes::new(content, len, target, &mut random);
        let bounds = cells(len, mean, 17, &mut random);
        let (lo, hi) = planes.get();
        check_gaps(rows, lo, hi, &bounds, target, &format!("{content:?}"));
    }
}

#[test]
fn gaps_of_a_huge_cell() {
    let mut random = Random(6);
    for content in CONTENTS {
        let planes = Planes::new(content, 70_100, 1, &mut random);
        let (lo, hi) = planes.get();
        check_gaps(rows(), lo, hi, &[0, 30, 70_030, 70_030, 70_100], 3, &format!("{content:?}"));
    }
}

/// Sums around 2^16, where 16-bit lanes wrap, in cells of many lengths, with other cells before and after.
#[test]
fn gaps_of_sums_around_the_wrap() {
    let rows = rows();
    for sum in [65_534u64, 65_535, 65_536, 65_537, 131_071, 131_072, 200_000] {
        for len in (3..=140usize).chain([1_000, 4_096, 9_000]) {
            // The cell's gaps are all equal, but for one, which makes up the sum, at a place that changes.
            let each = (sum / len as u64).min(65_535);
            let mut gaps = vec![2; 5];
            gaps.extend(std::iter::repeat_n(each as u16, len));
            let rest = sum - each * (len as u64 - 1);
            gaps[5 + len * 7 / 9] = rest.min(65_535) as u16;
            gaps.extend([3; 70]);
            let lo: Vec<u8> = gaps.iter().map(|gap| *gap as u8).collect();
            let hi: Vec<u8> = gaps.iter().map(|gap| (*gap >> 8) as u8).collect();
            let bounds = [0, 5, 5 + len as i64, 5 + len as i64, 75 + len as i64];
            check_gaps(rows, &lo, &hi, &bounds, len % 64, &format!("sum {sum}"));
            // The same as the last cell, where the planes end.
            let (lo, hi) = (lo[..5 + len].to_vec(), hi[..5 + len].to_vec());
            check_gaps(rows, &lo, &hi, &bounds[..3], len % 64, &format!("sum {sum}, last"));
        }
    }
}

#[test]
fn one_zero_gap_is_seen_at_every_place_but_the_first() {
    let rows = rows();
    for len in [1usize, 2, 31, 32, 33, 63, 64, 65, 130, 300] {
        for place in 0..len {
            let lo: Vec<u8> = (0..len).map(|i| u8::from(i != place)).collect();
            let (hi, n) = (vec![0; len], len as i64);
            check_gaps(rows, &lo, &hi, &[0, n], 0, "one cell");
            check_gaps(rows, &hi, &lo, &[0, n], 0, "one cell, high");
            let middle = n / 2;
            check_gaps(rows, &lo, &hi, &[0, middle, n], 0, "two cells");
        }
    }
}

#[test]
#[should_panic(expected = "bounds")]
fn bounds_that_decrease_are_refused() {
    Kernels::auto().gaps(&[0; 2], &[0; 2], &[0, 3, 2], &mut [0; 2], Store::Cached);
}

#[test]
#[should_panic(expected = "bounds")]
fn bounds_that_end_too_early_are_refused() {
    Kernels::auto().gaps(&[0; 2], &[0; 2], &[0, 1], &mut [0; 2], Store::Cached);
}

#[test]
#[should_panic(expected = "lengths")]
fn planes_of_another_length_are_refused() {
    Kernels::auto().counts_i32(&[0; 2], &[0; 3], &mut [0; 2], Store::Cached);
}

#[test]
fn names() {
    for kernels in Kernels::available() {
        assert_eq!(Kernels::by_name(kernels.name()), Ok(kernels));
        assert_eq!(Kernels::at(kernels.level()), Some(kernels));
    }
    let unknown = Kernels::by_name("avx1024").unwrap_err();
    assert!(!unknown.known && unknown.to_string().contains("is unknown; available here: scalar"), "{unknown}");
    let foreign = if cfg!(target_arch = "x86_64") { Level::Neon } else { Level::Avx2 };
    assert_eq!(Kernels::at(foreign), None);
    let unavailable = Kernels::by_name(foreign.name()).unwrap_err();
    assert!(unavailable.known && unavailable.to_string().contains("is not available"), "{unavailable}");
}

/// A lane that means to test a level says which; a level that is skipped in silence fails here.
#[test]
fn the_expected_level_is_active() {
    let active = Kernels::from_env();
    match std::env::var("TILEKERN_KERNEL") {
        Ok(name) if !name.is_empty() => assert_eq!(active, Kernels::by_name(&name)),
        _ => assert_eq!(active, Ok(Kernels::auto())),
    }
    if let Ok(expected) = std::env::var("EXPECT_KERNEL") {
        assert_eq!(active.map(|kernels| kernels.level().name()), Ok(expected.as_str()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_gaps(
        gaps in proptest::collection::vec(prop_oneof![8 => 0u16..40, 1 => any::<u16>()], 0..3_000),
        cells in proptest::collection::vec(0usize..400, 0..30),
        base in 0i64..1 << 40,
        target in 0usize..64,
    ) {
        let lo: Box<[u8]> = gaps.iter().map(|gap| *gap as u8).collect();
        let hi: Box<[u8]> = gaps.iter().map(|gap| (*gap >> 8) as u8).collect();
        let mut bounds = vec![base];
        let end = base + gaps.len() as i64;
        for cell in cells {
            bounds.push(bounds[bounds.len() - 1].saturating_add(cell as i64).min(end));
        }
        bounds.push(end);
        check_gaps(rows(), &lo, &hi, &bounds, target, "any");
    }

    #[test]
    fn any_counts(counts in proptest::collection::vec(prop_oneof![8 => 0u16..4, 1 => any::<u16>()], 0..3_000)) {
        let lo: Box<[u8]> = counts.iter().map(|count| *count as u8).collect();
        let hi: Box<[u8]> = counts.iter().map(|count| (*count >> 8) as u8).collect();
        let mut want = vec![0i32; counts.len()];
        let zero = naive::counts(&lo, &hi, &mut want, Store::Cached);
        for &row in rows() {
            let mut ints = vec![0i32; counts.len()];
            let mut floats = vec![0f32; counts.len()];
            let mut shorts = vec![0u16; counts.len()];
            prop_assert_eq!(row.counts_i32(&lo, &hi, &mut ints, Store::Cached), zero);
            prop_assert_eq!(row.counts_f32(&lo, &hi, &mut floats, Store::Cached), zero);
            prop_assert_eq!(row.counts_u16(&lo, &hi, &mut shorts, Store::Cached), zero);
            prop_assert_eq!(&ints, &want);
            prop_assert!(floats.iter().zip(&want).all(|(float, int)| *float == *int as f32));
            prop_assert!(shorts.iter().zip(&want).all(|(short, int)| i32::from(*short) == *int));
        }
    }
}
