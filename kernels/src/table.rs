//! The dispatcher: one row of function pointers per CPU level, and the handle through which all calls go.
//!
//! A row is the best mix that was measured for its CPUs. A new kernel is a file in the level's folder and a line here.

// The only calls through `unsafe fn` pointers of this crate.
#![allow(unsafe_code)]

use crate::custom::{Custom, CustomUnchecked};
use crate::level::{Level, NoSuchKernel};
use crate::scalar;
#[cfg(target_arch = "aarch64")]
use crate::{aarch64, level};
#[cfg(target_arch = "x86_64")]
use crate::{level, x86};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Through the caches: right while the output is read again soon or is small.
    Cached,
    /// Around the caches where the row can: right for outputs larger than the last-level cache.
    Streaming,
}

/// What [`Kernels::gaps`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapsSeen {
    /// The largest exact sum of a cell's gaps, that is its last index before any wrap; 0 without values.
    pub last: u64,
    /// Whether a gap other than a cell's first was 0, that is an index was repeated.
    pub repeated: bool,
}

impl GapsSeen {
    /// What two parts saw together.
    #[inline(always)]
    pub(crate) fn and(self, other: GapsSeen) -> GapsSeen {
        GapsSeen { last: self.last.max(other.last), repeated: self.repeated | other.repeated }
    }
}

/// What the `counts_*` operations saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountsSeen {
    /// Whether a count was 0.
    pub zero: bool,
}

pub(crate) type Gaps = unsafe fn(&[u8], &[u8], &[i64], &mut [i32], Store) -> GapsSeen;
pub(crate) type Counts<T> = unsafe fn(&[u8], &[u8], &mut [T], Store) -> CountsSeen;

/// One row: one pointer per operation.
#[derive(Clone, Copy)]
pub(crate) struct Ops {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) words: unsafe fn(&[u8], usize, &mut [u8]),
    pub(crate) gaps: Gaps,
    pub(crate) counts_i32: Counts<i32>,
    pub(crate) counts_f32: Counts<f32>,
    pub(crate) counts_u16: Counts<u16>,
    pub(crate) add: unsafe fn(&mut [i32], i32),
}

const SCALAR: Ops = Ops {
    name: Level::Scalar.name(),
    level: Level::Scalar,
    words: scalar::planes::words,
    gaps: scalar::scan::gaps,
    counts_i32: scalar::planes::counts_i32,
    counts_f32: scalar::planes::counts_f32,
    counts_u16: scalar::planes::counts_u16,
    add: scalar::patch::add,
};

/// The plain loops are compiled with NEON as they are, since every AArch64 target has it.
#[cfg(target_arch = "aarch64")]
fn neon(_: level::aarch64::Neon) -> &'static Ops {
    static ROW: Ops = Ops {
        name: Level::Neon.name(),
        level: Level::Neon,
        // Not timed, for want of the hardware. 34 instructions for 16 values, against 10 for each in the plain loop.
        gaps: aarch64::neon::scan::gaps,
        ..SCALAR
    };
    &ROW
}

/// ns a value here and below, in the caches, beside the plain loop compiled for the same level: AMD Zen 5 VM, rustc 1.95,
/// 2026-11. Not timed on Intel CPUs.
#[cfg(target_arch = "x86_64")]
fn avx2(_: level::x86::Avx2) -> &'static Ops {
    static ROW: Ops = Ops {
        name: Level::Avx2.name(),
        level: Level::Avx2,
        // The plain loop: 0.011 a byte for k = 2, 0.023 for 4, 0.047 for 8; the scalar row's 0.021, 0.054, 0.123.
        words: x86::avx2::planes::words,
        // Cells of 2,700 values: 0.105, plain 0.39. Of 300: 0.11, 0.41; of 30: 0.18, 0.45; of 1 to 3: 2.1, 2.9.
        gaps: x86::avx2::scan::gaps,
        // 0.023, plain 0.059.
        counts_i32: x86::avx2::planes::counts_i32,
        // 0.030, plain 0.069.
        counts_f32: x86::avx2::planes::counts_f32,
        // 0.015, plain 0.035.
        counts_u16: x86::avx2::planes::counts_u16,
        // The plain loop: 0.021; the scalar row's 0.048.
        add: x86::avx2::patch::add,
    };
    &ROW
}

#[cfg(target_arch = "x86_64")]
fn avx512(_: level::x86::Avx512) -> &'static Ops {
    static ROW: Ops = Ops {
        name: Level::Avx512.name(),
        level: Level::Avx512,
        // The plain loop: 0.007 a byte for k = 2, 0.012 for 4, 0.023 for 8.
        words: x86::avx512::planes::words,
        // Cells of 2,700 values: 0.055, plain 0.39. Of 300: 0.063, 0.41; of 30: 0.18, 0.46; of 1 to 3: 2.6, 2.9.
        gaps: x86::avx512::scan::gaps,
        // 0.023, plain 0.034.
        counts_i32: x86::avx512::planes::counts_i32,
        // 0.025, plain 0.040.
        counts_f32: x86::avx512::planes::counts_f32,
        // 0.014, plain 0.018.
        counts_u16: x86::avx512::planes::counts_u16,
        // AVX2's: wider registers do not help what waits for the cache.
        add: x86::avx2::patch::add,
    };
    &ROW
}

/// A handle to one row of kernels. Copy it freely; it is a pointer.
#[derive(Clone, Copy)]
pub struct Kernels {
    ops: &'static Ops,
}

impl Kernels {
    /// The widest level that this CPU has.
    pub fn auto() -> Kernels {
        Level::ALL.into_iter().rev().find_map(Kernels::at).unwrap_or(Kernels { ops: &SCALAR })
    }

    /// The row of `level`, or `None` if this CPU lacks its features.
    pub fn at(level: Level) -> Option<Kernels> {
        let ops = match level {
            Level::Scalar => Some(&SCALAR),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => level::aarch64::Neon::try_new().map(neon),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => level::x86::Avx2::try_new().map(avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => level::x86::Avx512::try_new().map(avx512),
            _ => None,
        };
        ops.map(|ops| Kernels { ops })
    }

    /// The rows that this CPU can run, scalar first.
    pub fn available() -> impl Iterator<Item = Kernels> {
        Level::ALL.into_iter().filter_map(Kernels::at)
    }

    /// The row of that name, as `TILEKERN_KERNEL` spells it.
    ///
    /// # Errors
    /// The name is no level's, or this CPU lacks the level: never a silent fallback.
    pub fn by_name(name: &str) -> Result<Kernels, NoSuchKernel> {
        let level = Level::from_name(name);
        level.and_then(Kernels::at).ok_or_else(|| NoSuchKernel { name: name.to_owned(), known: level.is_some() })
    }

    /// The row that the environment variable `TILEKERN_KERNEL` names; [`Kernels::auto`] where it is unset or empty.
    ///
    /// # Errors
    /// As [`Kernels::by_name`].
    pub fn from_env() -> Result<Kernels, NoSuchKernel> {
        match std::env::var_os("TILEKERN_KERNEL") {
            Some(name) if !name.is_empty() => Kernels::by_name(&name.to_string_lossy()),
            _ => Ok(Kernels::auto()),
        }
    }

    /// Starts a row of the caller's own operations, for a CPU or an accelerator that this crate does not know.
    pub fn custom(name: &'static str, base: Kernels) -> Custom {
        Custom::new(Ops { name, ..*base.ops })
    }

    /// As [`Kernels::custom`], for `unsafe` functions: those with `#[target_feature]`, or behind a foreign interface.
    ///
    /// # Safety
    /// Every function that is given to the builder must be sound to call, on this CPU and from any thread, with all
    /// slices whose lengths the safe method of the same name accepts.
    ///
    /// ```
    /// use tilekern_kernels::Kernels;
    ///
    /// /// # Safety
    /// /// The device must have been opened.
    /// unsafe fn add_on_device(out: &mut [i32], delta: i32) {
    ///     out.iter_mut().for_each(|value| *value = value.wrapping_add(delta));
    /// }
    ///
    /// // SAFETY: this device needs no opening.
    /// let kernels = unsafe { Kernels::custom_unchecked("device", Kernels::auto()) }.add(add_on_device).build();
    /// let mut values = [1, i32::MAX];
    /// kernels.add(&mut values, 1);
    /// assert_eq!(values, [2, i32::MIN]);
    /// ```
    pub unsafe fn custom_unchecked(name: &'static str, base: Kernels) -> CustomUnchecked {
        CustomUnchecked::new(Ops { name, ..*base.ops })
    }

    pub(crate) fn from_row(ops: &'static Ops) -> Kernels {
        Kernels { ops }
    }

    /// The row's name: its level's, or the one given to [`Kernels::custom`].
    pub fn name(self) -> &'static str {
        self.ops.name
    }

    /// The level whose features the row needs.
    pub fn level(self) -> Level {
        self.ops.level
    }

    /// `k` byte planes to little-endian words of `k` bytes: `out[i * k + p] = planes[p * n + i]`.
    ///
    /// **Shapes**: `planes` and `out` hold `k * n` bytes.
    ///
    /// # Panics
    /// If `k` is 0, the lengths differ, or they are no multiple of `k`.
    pub fn words(self, planes: &[u8], k: usize, out: &mut [u8]) {
        assert!(k > 0 && planes.len() == out.len() && out.len().is_multiple_of(k), "words: lengths");
        // SAFETY: a row needs no more CPU features than its level, and `at` hands a row out only where the level's
        // token proves them. What a user puts on top of such a row are safe functions, or the user has vouched for
        // them for slices of the lengths just checked.
        unsafe { (self.ops.words)(planes, k, out) }
    }

    /// Byte planes of gaps to indices: in each cell the running sum of its 16-bit gaps, from its first gap on.
    ///
    /// **Shapes**: `lo`, `hi` and `out` hold n values; cell `c` is the values
    /// `bounds[c] - bounds[0] .. bounds[c + 1] - bounds[0]`, so `bounds` has one entry more than there are cells, or
    /// none if there are neither cells nor values.
    ///
    /// Indices wrap at 2^32; [`GapsSeen::last`] is exact, so indices below 2^31 are right if `last` is.
    ///
    /// # Panics
    /// If the lengths differ, `bounds` decreases, or does not cover exactly n values.
    pub fn gaps(self, lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], store: Store) -> GapsSeen {
        assert!(lo.len() == out.len() && hi.len() == out.len(), "gaps: lengths");
        let covered = match bounds {
            [] => Some(0),
            [first, .., last] => last.checked_sub(*first),
            [_] => Some(0),
        };
        assert!(
            covered.and_then(|n| usize::try_from(n).ok()) == Some(out.len()) && bounds.is_sorted(),
            "gaps: bounds do not cover the values"
        );
        // SAFETY: as in `words`.
        unsafe { (self.ops.gaps)(lo, hi, bounds, out, store) }
    }

    /// Byte planes of counts to `i32`.
    ///
    /// **Shapes**: `lo`, `hi` and `out` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn counts_i32(self, lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
        assert!(lo.len() == out.len() && hi.len() == out.len(), "counts_i32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.counts_i32)(lo, hi, out, store) }
    }

    /// Byte planes of counts to `f32` (exact: a plane pair holds at most 65535).
    ///
    /// **Shapes**: `lo`, `hi` and `out` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn counts_f32(self, lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
        assert!(lo.len() == out.len() && hi.len() == out.len(), "counts_f32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.counts_f32)(lo, hi, out, store) }
    }

    /// Byte planes of counts to `u16`.
    ///
    /// **Shapes**: `lo`, `hi` and `out` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn counts_u16(self, lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
        assert!(lo.len() == out.len() && hi.len() == out.len(), "counts_u16: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.counts_u16)(lo, hi, out, store) }
    }

    /// Adds `delta` to every value; wraps.
    pub fn add(self, out: &mut [i32], delta: i32) {
        // SAFETY: as in `words`.
        unsafe { (self.ops.add)(out, delta) }
    }
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernels({})", self.name())
    }
}

impl PartialEq for Kernels {
    /// The same row.
    fn eq(&self, other: &Kernels) -> bool {
        std::ptr::eq(self.ops, other.ops)
    }
}

impl Eq for Kernels {}
