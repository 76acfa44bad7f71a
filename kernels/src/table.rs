//! The dispatcher: one row of function pointers per CPU level, and the handle through which all calls go.
//!
//! A row is the best mix that was measured for its CPUs. A new kernel is a file in the level's folder and a line here.

// The only calls through `unsafe fn` pointers of this crate.
#![allow(unsafe_code)]

use crate::custom::{Custom, CustomUnchecked};
use crate::level::{Level, NoSuchKernel};
use crate::scalar;
use crate::scalar::bits::packed_len;
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

/// What [`Kernels::offsets_u32`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthsSeen {
    /// The largest length; one of 2^31 or more was negative, if lengths are signed.
    pub largest: u32,
    /// The exact sum of all lengths.
    pub total: u64,
}

impl LengthsSeen {
    /// What two parts saw together.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn and(self, other: LengthsSeen) -> LengthsSeen {
        LengthsSeen { largest: self.largest.max(other.largest), total: self.total + other.total }
    }
}

/// What [`Kernels::entries`] has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntriesSeen {
    /// Values.
    pub done: usize,
    /// Their bytes.
    pub bytes: usize,
}

/// What [`Kernels::varints_u32`] and its like have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VarintsSeen {
    /// Values.
    pub values: usize,
    /// Their bytes.
    pub bytes: usize,
}

/// What [`Kernels::fsst`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpandedSeen {
    /// Bytes of codes.
    pub read: usize,
    /// Bytes of what they stand for.
    pub written: usize,
}

/// The table of a context of [`Kernels::rans_symbols`]: `2^precision` slots, from the one at `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RansTable {
    /// Where its slots start among all.
    pub start: u32,
    /// Bits of a slot's number; of more than 31, those of 32 are taken away.
    pub precision: u32,
}

impl RansTable {
    /// No table: its slots lie outside.
    pub const NONE: RansTable = RansTable { start: u32::MAX, precision: 0 };
}

/// A slot of a [`RansTable`].
// In fields that a load each takes: packed into 32 bits, what it took to unpack them was 0.2 to 0.5 ns a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RansSlot {
    /// Whose slot it is.
    pub symbol: u16,
    /// Its number, from 0, among the symbol's.
    pub nth: u16,
    /// How many the symbol has.
    pub count: u32,
}

/// What [`Kernels::rans_symbols`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RansSeen {
    /// Vertices.
    pub vertices: usize,
    /// Words taken from each lane.
    pub words: [usize; 4],
    /// The lanes' states behind the last vertex.
    pub states: [u32; 4],
}

/// What the `counts_*` operations saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountsSeen {
    /// Whether a count was 0.
    pub zero: bool,
}

pub(crate) type Gaps = unsafe fn(&[u8], &[u8], &[i64], &mut [i32], Store) -> GapsSeen;
pub(crate) type Counts<T> = unsafe fn(&[u8], &[u8], &mut [T], Store) -> CountsSeen;
pub(crate) type Unpack<T> = unsafe fn(&[u8], u32, &mut [T]);
pub(crate) type Deltas<T> = unsafe fn(&[u8], &[u8], usize, T, T, &mut [T]) -> T;
pub(crate) type Gather<T> = unsafe fn(&[T], &[u32], &mut [T]) -> Option<usize>;
pub(crate) type GatherBytes = unsafe fn(&[u8], usize, &[u32], &mut [u8]) -> Option<usize>;
pub(crate) type Repeat<T> = unsafe fn(&[T], &[u32], &mut [T]) -> u64;
pub(crate) type Offsets = unsafe fn(&[u32], u32, &mut [u32]) -> LengthsSeen;
pub(crate) type Entries = unsafe fn(&[u8], &[u32], &[u32], u32, &mut [u32], &mut [u8]) -> EntriesSeen;
pub(crate) type Spans = unsafe fn(&[u8], &[u32], &[u32], &mut [u8]) -> usize;
pub(crate) type Prefixed = unsafe fn(&[u8], &[u32], &[u32], &[u8], &mut [u8]) -> usize;
pub(crate) type Varints<T> = unsafe fn(&[u8], &mut [T]) -> VarintsSeen;
pub(crate) type Fsst = unsafe fn(&[u64; 256], &[u8; 256], usize, &[u8], &mut [u8]) -> ExpandedSeen;
pub(crate) type Alp<T> = unsafe fn(&[u64], i64, f64, f64, &mut [T]);
pub(crate) type Patch<T> = unsafe fn(&[u8], &[T], u32, &mut [T]);
pub(crate) type Spread<T> = unsafe fn(&[T], &[u8], &mut [T]) -> usize;
pub(crate) type RansSymbols =
    unsafe fn(&[RansSlot], &[RansTable; 14], u32, &[&[u8]; 4], &[u32; 4], &[u8], &mut [[u16; 2]]) -> RansSeen;
pub(crate) type RansVertices = unsafe fn(&[[u16; 2]], u32, &[u8], &mut [i32]) -> u64;

/// One row: one pointer per operation.
#[derive(Clone, Copy)]
pub(crate) struct Ops {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) words: unsafe fn(&[u8], usize, usize, &mut [u8]),
    pub(crate) gaps: Gaps,
    pub(crate) counts_i32: Counts<i32>,
    pub(crate) counts_f32: Counts<f32>,
    pub(crate) counts_u16: Counts<u16>,
    pub(crate) add: unsafe fn(&mut [i32], i32),
    pub(crate) unpack_u8: Unpack<u8>,
    pub(crate) unpack_u16: Unpack<u16>,
    pub(crate) unpack_u32: Unpack<u32>,
    pub(crate) unpack_u64: Unpack<u64>,
    pub(crate) unpack_lanes_u32: Unpack<u32>,
    pub(crate) unpack_lanes_u64: Unpack<u64>,
    pub(crate) deltas_u32: Deltas<u32>,
    pub(crate) deltas_u64: Deltas<u64>,
    pub(crate) gather_u32: Gather<u32>,
    pub(crate) gather_u64: Gather<u64>,
    pub(crate) gather_bytes: GatherBytes,
    pub(crate) repeat_u32: Repeat<u32>,
    pub(crate) repeat_u64: Repeat<u64>,
    pub(crate) offsets_u32: Offsets,
    pub(crate) entries: Entries,
    pub(crate) spans: Spans,
    pub(crate) prefixed: Prefixed,
    pub(crate) varints_u32: Varints<u32>,
    pub(crate) varints_u64: Varints<u64>,
    pub(crate) vbytes_u32: Varints<u32>,
    pub(crate) vbytes_u64: Varints<u64>,
    pub(crate) zigzag_u32: unsafe fn(&mut [u32]),
    pub(crate) zigzag_u64: unsafe fn(&mut [u64]),
    pub(crate) zigzag_deltas_u32: unsafe fn(&mut [u32], usize),
    pub(crate) zigzag_deltas_u64: unsafe fn(&mut [u64]),
    pub(crate) zigzag_deltas2_u32: unsafe fn(&mut [u32], usize),
    pub(crate) zigzag_deltas2_u64: unsafe fn(&mut [u64]),
    pub(crate) morton: unsafe fn(&[u32], u32, u32, &mut [i32]),
    pub(crate) fsst: Fsst,
    pub(crate) alp_f64: Alp<f64>,
    pub(crate) alp_f32: Alp<f32>,
    pub(crate) patch_u32: Patch<u32>,
    pub(crate) patch_u64: Patch<u64>,
    pub(crate) swap_words: unsafe fn(&[u8], &mut [u8]),
    pub(crate) spread_u32: Spread<u32>,
    pub(crate) spread_u64: Spread<u64>,
    pub(crate) spread_bits: unsafe fn(&[u8], &[u8], usize, &mut [u8]) -> usize,
    pub(crate) rans_symbols: RansSymbols,
    pub(crate) rans_vertices: RansVertices,
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
    unpack_u8: scalar::bits::unpack_u8,
    unpack_u16: scalar::bits::unpack_u16,
    unpack_u32: scalar::bits::unpack_u32,
    unpack_u64: scalar::bits::unpack_u64,
    unpack_lanes_u32: scalar::bits::unpack_lanes_u32,
    unpack_lanes_u64: scalar::bits::unpack_lanes_u64,
    deltas_u32: scalar::delta::deltas_u32,
    deltas_u64: scalar::delta::deltas_u64,
    gather_u32: scalar::gather::gather_u32,
    gather_u64: scalar::gather::gather_u64,
    gather_bytes: scalar::gather::gather_bytes,
    repeat_u32: scalar::runs::repeat_u32,
    repeat_u64: scalar::runs::repeat_u64,
    offsets_u32: scalar::strings::offsets_u32,
    entries: scalar::strings::entries,
    spans: scalar::strings::spans,
    prefixed: scalar::strings::prefixed,
    varints_u32: scalar::varint::varints_u32,
    varints_u64: scalar::varint::varints_u64,
    vbytes_u32: scalar::varint::vbytes_u32,
    vbytes_u64: scalar::varint::vbytes_u64,
    zigzag_u32: scalar::zigzag::zigzag_u32,
    zigzag_u64: scalar::zigzag::zigzag_u64,
    zigzag_deltas_u32: scalar::zigzag::zigzag_deltas_u32,
    zigzag_deltas_u64: scalar::zigzag::zigzag_deltas_u64,
    zigzag_deltas2_u32: scalar::zigzag::zigzag_deltas2_u32,
    zigzag_deltas2_u64: scalar::zigzag::zigzag_deltas2_u64,
    morton: scalar::morton::morton,
    // Names, a byte: 0.108; with lengths that are any number, and checked by a modulus, 0.116.
    fsst: scalar::fsst::fsst,
    alp_f64: scalar::alp::alp_f64,
    alp_f32: scalar::alp::alp_f32,
    patch_u32: scalar::patch::patch_u32,
    patch_u64: scalar::patch::patch_u64,
    swap_words: scalar::swap::swap_words,
    spread_u32: scalar::spread::spread_u32,
    spread_u64: scalar::spread::spread_u64,
    spread_bits: scalar::spread::spread_bits,
    rans_symbols: scalar::rans::rans_symbols,
    rans_vertices: scalar::rans::rans_vertices,
};

/// The plain loops are compiled with NEON as they are, since every AArch64 target has it.
#[cfg(target_arch = "aarch64")]
fn neon(_: level::aarch64::Neon) -> &'static Ops {
    static ROW: Ops = Ops {
        name: Level::Neon.name(),
        level: Level::Neon,
        // None of these is timed, for want of the hardware. 34 instructions for 16 values, against 10 for each in the plain
        // loop.
        gaps: aarch64::neon::scan::gaps,
        // 24 shuffles for 16 words of eight bytes; the plain loop shifts each plane's bytes into place.
        words: aarch64::neon::planes::words,
        // 14 instructions for 8 values of up to 25 bits, against 6 for each.
        unpack_u8: aarch64::neon::bits::unpack_u8,
        unpack_u16: aarch64::neon::bits::unpack_u16,
        unpack_u32: aarch64::neon::bits::unpack_u32,
        unpack_u64: aarch64::neon::bits::unpack_u64,
        deltas_u32: aarch64::neon::delta::deltas_u32,
        deltas_u64: aarch64::neon::delta::deltas_u64,
        prefixed: aarch64::neon::strings::prefixed,
        // 11 instructions for the values in eight bytes, against 20 for each that is longer than one.
        varints_u32: aarch64::neon::varint::varints_u32,
        varints_u64: aarch64::neon::varint::varints_u64,
        vbytes_u32: aarch64::neon::varint::vbytes_u32,
        vbytes_u64: aarch64::neon::varint::vbytes_u64,
        // 13 for four words, of two components 11, against 5 or 6 for each. Of three components the plain loop.
        zigzag_deltas_u32: aarch64::neon::zigzag::zigzag_deltas_u32,
        // 15 for eight values, against 5 for each.
        spread_u32: aarch64::neon::spread::spread_u32,
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
        // The plain loop: 0.011 a byte for k = 2, 0.023 for 4; the scalar row's 0.021, 0.054. For 8: 0.020, plain 0.047;
        // for 16: 0.089, plain 0.24.
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
        // 0.027, 0.049, 0.036 (above 16 bits 0.063), 0.09 (above 32 bits 0.13); plain 0.29 to 0.31, of 64 bits 0.39 to 0.72.
        unpack_u8: x86::avx2::bits::unpack_u8,
        unpack_u16: x86::avx2::bits::unpack_u16,
        unpack_u32: x86::avx2::bits::unpack_u32,
        unpack_u64: x86::avx2::bits::unpack_u64,
        // Many groups: 0.018 to 0.045, of 31 bits 0.072, plain 0.033 to 0.057, 0.075; with a width that is no constant 0.14. The
        // plain loop compiled for this level: 0.027, 0.016, 0.039 and 0.058 for 1, 8, 10 and 20 bits, where this takes 0.018,
        // 0.027, 0.029 and 0.041.
        // 64-bit words: 0.30 and 0.26, plain 0.48.
        unpack_lanes_u32: x86::avx2::bits::unpack_lanes_u32,
        unpack_lanes_u64: x86::avx2::bits::unpack_lanes_u64,
        // Runs of 32 in blocks of 128: 0.21 up to 16 bits, 0.25 above, plain 0.85; 64-bit words in runs of 64: 0.37, plain
        // 0.80.
        deltas_u32: x86::avx2::delta::deltas_u32,
        deltas_u64: x86::avx2::delta::deltas_u64,
        // Tables of up to 16 entries: 0.054, plain 0.36; of 1,000: 0.19 to 0.23, 0.36; of 1,000,000: 0.52, 0.8.
        gather_u32: x86::avx2::gather::gather_u32,
        // 1,000 entries: 0.21, plain 0.34. Beyond the caches no difference.
        gather_u64: x86::avx2::gather::gather_u64,
        // 16 bytes: 0.25, plain 0.52; 12: 0.39, 0.60; 2: 0.20, 0.36. Other sizes are the plain loop.
        gather_bytes: x86::avx2::gather::gather_bytes,
        // The plain loop. Runs of 20: 0.077, the scalar row's 0.082; of 100: 0.032, 0.046.
        repeat_u32: x86::avx2::runs::repeat_u32,
        repeat_u64: x86::avx2::runs::repeat_u64,
        // 0.15 and 0.20, plain 0.27.
        offsets_u32: x86::avx2::strings::offsets_u32,
        // The plain loop: 0.89 an entry of up to 29 bytes; the scalar row's 0.93. Two gathers, `offsets_u32` and `spans`
        // took 1.1.
        entries: x86::avx2::strings::entries,
        // The plain loop: 0.70 a span of up to 32 bytes, 0.87 where some are longer; the scalar row's 0.96 and 1.3.
        spans: x86::avx2::strings::spans,
        // Values of 20 to 47 bytes: 1.6 to 1.7 each, plain 3.9 to 4.5; of 80: 2.2, 5.0.
        prefixed: x86::avx2::strings::prefixed,
        // Of one byte: 0.05, plain 0.08; of one or two: 0.25 to 0.45, plain 0.6 to 2.5; of up to five: 1.5, 2.5. The bytes of
        // 64-bit values: the same, of one 0.08, plain 0.12; of up to ten: 2.0, 2.7.
        // Ten values of one or two bytes, all in all: 20 ns, the scalar row's 28.
        varints_u32: x86::avx2::varint::varints_u32,
        varints_u64: x86::avx2::varint::varints_u64,
        vbytes_u32: x86::avx2::varint::vbytes_u32,
        vbytes_u64: x86::avx2::varint::vbytes_u64,
        // The plain loop: 0.029 and 0.065; the scalar row's 0.088 and 0.18.
        zigzag_u32: x86::avx2::zigzag::zigzag_u32,
        zigzag_u64: x86::avx2::zigzag::zigzag_u64,
        // 0.15, of two components 0.11, of 64 bits 0.25; plain 0.38, 0.26, 0.39. Of three components the plain loop.
        zigzag_deltas_u32: x86::avx2::zigzag::zigzag_deltas_u32,
        zigzag_deltas_u64: x86::avx2::zigzag::zigzag_deltas_u64,
        // 0.33, plain 0.44. Of more components the plain loop, of 64 bits the scalar row's.
        zigzag_deltas2_u32: x86::avx2::zigzag::zigzag_deltas2_u32,
        // The plain loop: 0.44; the scalar row's 0.79. Look-ups of four bits after sums in a register took 0.42.
        morton: x86::avx2::morton::morton,
        // 0.14 and 0.18, plain 0.27 and 0.30.
        alp_f64: x86::avx2::alp::alp_f64,
        alp_f32: x86::avx2::alp::alp_f32,
        // The plain loop: 0.030 a word; the scalar row's 0.12.
        swap_words: x86::avx2::swap::swap_words,
        // 0.062 and 0.12, plain 0.67 and 0.8 to 1.3.
        spread_u32: x86::avx2::spread::spread_u32,
        spread_u64: x86::avx2::spread::spread_u64,
        // 0.017, plain 0.07 to 0.55.
        spread_bits: x86::avx2::spread::spread_bits,
        // Of symbols (3.0 a vertex) and raw bits (1.9), codes (0.10 a byte, with a tenth of escapes 0.22) and exceptions
        // the plain loops gain nothing: they wait for loads.
        ..SCALAR
    };
    &ROW
}

#[cfg(target_arch = "x86_64")]
fn avx512(_: level::x86::Avx512) -> &'static Ops {
    static ROW: Ops = Ops {
        name: Level::Avx512.name(),
        level: Level::Avx512,
        // The plain loop: 0.007 a byte for k = 2, 0.012 for 4. For 8: 0.012, plain 0.023. Others are AVX2's.
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
        // 0.007 to 0.010, 0.016, 0.030, 0.06 to 0.08; plain 0.31, of 64 bits 0.39 to 0.72.
        unpack_u8: x86::avx512::bits::unpack_u8,
        unpack_u16: x86::avx512::bits::unpack_u16,
        unpack_u32: x86::avx512::bits::unpack_u32,
        unpack_u64: x86::avx512::bits::unpack_u64,
        // AVX2's: wider registers took as long, with one code for all widths 0.11 and 0.063. 64-bit words: 0.19 and 0.15,
        // plain 0.49.
        unpack_lanes_u32: x86::avx2::bits::unpack_lanes_u32,
        unpack_lanes_u64: x86::avx512::bits::unpack_lanes_u64,
        // Runs of 32 in blocks of 128: 0.15, plain 0.85; 64-bit words in runs of 64: 0.19, plain 0.80.
        deltas_u32: x86::avx512::delta::deltas_u32,
        deltas_u64: x86::avx512::delta::deltas_u64,
        // Tables of up to 32 entries: 0.038, plain 0.27; of up to 128: 0.070, 0.27. Larger ones are AVX2's.
        gather_u32: x86::avx512::gather::gather_u32,
        // Tables of up to 16 entries: 0.061, plain 0.32; of up to 64: 0.15, 0.32. Larger ones are AVX2's.
        gather_u64: x86::avx512::gather::gather_u64,
        // AVX2's, like some below: wider registers do not help what is bound by loads and stores of single values.
        gather_bytes: x86::avx2::gather::gather_bytes,
        repeat_u32: x86::avx2::runs::repeat_u32,
        repeat_u64: x86::avx2::runs::repeat_u64,
        // 0.092 and 0.14, plain 0.26.
        offsets_u32: x86::avx512::strings::offsets_u32,
        entries: x86::avx2::strings::entries,
        spans: x86::avx2::strings::spans,
        prefixed: x86::avx2::strings::prefixed,
        // Of one byte: 0.04, plain 0.08; of one or two: 0.14 to 0.23, plain 0.6 to 2.5; of up to five: 0.34, 2.5. Of 64 bits: 0.06,
        // 0.30 to 0.38, 0.46; of up to ten bytes 1.8, plain 2.7.
        // Ten values of one or two bytes, all in all: 7 ns, 60 of up to three bytes 30; AVX2's 20 and 60.
        varints_u32: x86::avx512::varint::varints_u32,
        varints_u64: x86::avx512::varint::varints_u64,
        vbytes_u32: x86::avx512::varint::vbytes_u32,
        vbytes_u64: x86::avx512::varint::vbytes_u64,
        // The plain loop: 0.021 and 0.038.
        zigzag_u32: x86::avx512::zigzag::zigzag_u32,
        zigzag_u64: x86::avx512::zigzag::zigzag_u64,
        // 0.085, of two components 0.069, of three 0.16, of 64 bits 0.14; plain 0.38, 0.26, 0.16 to 0.33, 0.38.
        zigzag_deltas_u32: x86::avx512::zigzag::zigzag_deltas_u32,
        zigzag_deltas_u64: x86::avx512::zigzag::zigzag_deltas_u64,
        // 0.19, of two components 0.14, of three 0.17, of 64 bits 0.29; plain 0.43, 0.25, 0.19 to 0.31, 0.48.
        zigzag_deltas2_u32: x86::avx512::zigzag::zigzag_deltas2_u32,
        zigzag_deltas2_u64: x86::avx512::zigzag::zigzag_deltas2_u64,
        // 0.23, plain 0.31.
        morton: x86::avx512::morton::morton,
        // A byte, lists of names and of files: 0.12 to 0.20, plain 0.18 to 0.32; with a third of escapes 0.31, plain 0.75.
        // With gathers 0.15 to 0.26, with masks that are stored and loaded again 0.38.
        fsst: x86::avx512::fsst::fsst,
        // The plain loop, which has instructions for all of it: 0.085 and 0.053.
        alp_f64: x86::avx512::alp::alp_f64,
        alp_f32: x86::avx512::alp::alp_f32,
        // The plain loop: 0.023 a word.
        swap_words: x86::avx512::swap::swap_words,
        // AVX2's: 0.062 and 0.12; expansions took 0.071 and 0.15.
        spread_u32: x86::avx2::spread::spread_u32,
        spread_u64: x86::avx2::spread::spread_u64,
        spread_bits: x86::avx2::spread::spread_bits,
        ..SCALAR
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
        assert!(k > 0 && planes.len() == out.len(), "words: lengths");
        self.words_apart(planes, out.len() / k, k, out);
    }

    /// Parts of longer planes, the next of which starts `stride` bytes later: `out[i * k + p] = planes[p * stride + i]`.
    ///
    /// **Shapes**: `out` holds `k * n` bytes, where `n` is `stride` at most; `planes` at least `(k - 1) * stride + n`.
    ///
    /// # Panics
    /// If `k` is 0, or the lengths are others.
    pub fn words_apart(self, planes: &[u8], stride: usize, k: usize, out: &mut [u8]) {
        assert!(k > 0 && out.len().is_multiple_of(k), "words: lengths");
        let n = out.len() / k;
        let needed = (k - 1).checked_mul(stride).and_then(|before| before.checked_add(n));
        assert!(n <= stride && needed.is_some_and(|needed| needed <= planes.len()), "words: lengths");
        // SAFETY: a row needs no more CPU features than its level, and `at` hands a row out only where the level's
        // token proves them. What a user puts on top of such a row are safe functions, or the user has vouched for
        // them for slices of the lengths just checked.
        unsafe { (self.ops.words)(planes, stride, k, out) }
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

    /// Packed bits to bytes: `out[i]` is the `width` bits from bit `i * width` on, where bit 0 is the lowest of
    /// `packed[0]`. With a width of 1, truth values.
    ///
    /// **Shapes**: `out` holds n values, `packed` at least the `n * width` bits, rounded up to bytes. What follows them
    /// may be read (rows are quicker near the end of a slice that is longer), but is not used.
    ///
    /// # Panics
    /// If `width` is above 8 or `packed` is too short.
    pub fn unpack_u8(self, packed: &[u8], width: u32, out: &mut [u8]) {
        check_packed(packed, width, 8, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_u8)(packed, width, out) }
    }

    /// Packed bits to 16-bit words, as [`Kernels::unpack_u8`].
    ///
    /// # Panics
    /// If `width` is above 16 or `packed` is too short.
    pub fn unpack_u16(self, packed: &[u8], width: u32, out: &mut [u16]) {
        check_packed(packed, width, 16, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_u16)(packed, width, out) }
    }

    /// Packed bits to 32-bit words, as [`Kernels::unpack_u8`].
    ///
    /// # Panics
    /// If `width` is above 32 or `packed` is too short.
    pub fn unpack_u32(self, packed: &[u8], width: u32, out: &mut [u32]) {
        check_packed(packed, width, 32, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_u32)(packed, width, out) }
    }

    /// Packed bits to 64-bit words, as [`Kernels::unpack_u8`].
    ///
    /// # Panics
    /// If `width` is above 64 or `packed` is too short.
    pub fn unpack_u64(self, packed: &[u8], width: u32, out: &mut [u64]) {
        check_packed(packed, width, 64, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_u64)(packed, width, out) }
    }

    /// Groups of 128 values, packed over four lanes, to 32-bit words: value `i` of a group is value `i / 4` of lane
    /// `i % 4`. A lane is packed on its own, from the lowest bit of its little-endian 32-bit words on; the group holds
    /// the first word of every lane, then the second of every lane, and so on.
    ///
    /// **Shapes**: `out` holds 128 values for each group, `packed` exactly `16 * width` bytes.
    ///
    /// # Panics
    /// If `width` is above 32 or the lengths are others.
    pub fn unpack_lanes_u32(self, packed: &[u8], width: u32, out: &mut [u32]) {
        check_lanes(packed, width, 32, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_lanes_u32)(packed, width, out) }
    }

    /// As [`Kernels::unpack_lanes_u32`], with two lanes of 64-bit words: value `i` of a group is value `i / 2` of lane
    /// `i % 2`.
    ///
    /// # Panics
    /// If `width` is above 64 or the lengths are others.
    pub fn unpack_lanes_u64(self, packed: &[u8], width: u32, out: &mut [u64]) {
        check_lanes(packed, width, 64, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.unpack_lanes_u64)(packed, width, out) }
    }

    /// Packed differences to 32-bit values. Each value is the one before, plus `least`, plus a packed difference; the
    /// one before the first is `before`. Sums wrap, so that signed values may be cast. Returns the last value, which is
    /// the next call's `before`.
    ///
    /// **Shapes**: `out` holds n values. The differences come in runs of `per`, run `r` packed with `widths[r]` bits as
    /// [`Kernels::unpack_u8`] reads them; there is a width for every run. `packed` holds the runs one after the other,
    /// of the last at least the bytes of the values that `out` takes. What follows may be read, but is not used.
    ///
    /// # Panics
    /// If `per` is no multiple of 32 or 0, a used width is above 32, or `widths` or `packed` are too short.
    pub fn deltas_u32(self, packed: &[u8], widths: &[u8], per: usize, least: u32, before: u32, out: &mut [u32]) -> u32 {
        check_deltas(packed, widths, per, 32, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.deltas_u32)(packed, widths, per, least, before, out) }
    }

    /// Packed differences to 64-bit values, as [`Kernels::deltas_u32`].
    ///
    /// # Panics
    /// As [`Kernels::deltas_u32`], with widths of up to 64.
    pub fn deltas_u64(self, packed: &[u8], widths: &[u8], per: usize, least: u64, before: u64, out: &mut [u64]) -> u64 {
        check_deltas(packed, widths, per, 64, out.len());
        // SAFETY: as in `words`.
        unsafe { (self.ops.deltas_u64)(packed, widths, per, least, before, out) }
    }

    /// Entries of a table: `out[i] = table[indices[i]]`, 0 for an index outside. Returns the place in `indices` of the
    /// first index outside.
    ///
    /// **Shapes**: `indices` and `out` hold n values, `table` any number of entries.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn gather_u32(self, table: &[u32], indices: &[u32], out: &mut [u32]) -> Option<usize> {
        assert!(indices.len() == out.len(), "gather_u32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.gather_u32)(table, indices, out) }
    }

    /// Entries of 8 bytes, as [`Kernels::gather_u32`].
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn gather_u64(self, table: &[u64], indices: &[u32], out: &mut [u64]) -> Option<usize> {
        assert!(indices.len() == out.len(), "gather_u64: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.gather_u64)(table, indices, out) }
    }

    /// Entries of `k` bytes, as [`Kernels::gather_u32`].
    ///
    /// **Shapes**: `indices` holds n values, `out` `k * n` bytes, `table` `k` bytes for each entry.
    ///
    /// # Panics
    /// If `k` is 0 or the lengths are others.
    pub fn gather_bytes(self, table: &[u8], k: usize, indices: &[u32], out: &mut [u8]) -> Option<usize> {
        assert!(
            k > 0 && table.len().is_multiple_of(k) && indices.len().checked_mul(k) == Some(out.len()),
            "gather_bytes: lengths"
        );
        // SAFETY: as in `words`.
        unsafe { (self.ops.gather_bytes)(table, k, indices, out) }
    }

    /// Runs to values: `values[0]` as often as `runs[0]` says, then `values[1]`, and so on until `out` is full; 0 in
    /// what is left of it. Returns the exact sum of `runs`.
    ///
    /// For many short runs; a single run is quicker filled with [`slice::fill`].
    ///
    /// # Panics
    /// If `values` and `runs` differ in length.
    pub fn repeat_u32(self, values: &[u32], runs: &[u32], out: &mut [u32]) -> u64 {
        assert!(values.len() == runs.len(), "repeat_u32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.repeat_u32)(values, runs, out) }
    }

    /// Runs of 8-byte values, as [`Kernels::repeat_u32`].
    ///
    /// # Panics
    /// If `values` and `runs` differ in length.
    pub fn repeat_u64(self, values: &[u64], runs: &[u32], out: &mut [u64]) -> u64 {
        assert!(values.len() == runs.len(), "repeat_u64: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.repeat_u64)(values, runs, out) }
    }

    /// Lengths to offsets: `out[i]` is where value `i` ends if the first starts at `start`. Wraps at 2^32;
    /// [`LengthsSeen::total`] is exact.
    ///
    /// **Shapes**: `lengths` and `out` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn offsets_u32(self, lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
        assert!(lengths.len() == out.len(), "offsets_u32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.offsets_u32)(lengths, start, out) }
    }

    /// Entries of any length by their indices, copied behind each other: entry `i` is the bytes of `data` from
    /// `offsets[i]` to `offsets[i + 1]`, and `ends[i]` is where value `i` ends if the first starts at `start`; wraps.
    /// Stops before the first index outside, the first entry that is not inside `data`, or for which `out` has no room.
    /// What is in `ends` and `out` behind the values written is unspecified.
    ///
    /// 32 bytes or more are copied at once where both slices have as many: leave room behind both.
    ///
    /// **Shapes**: `indices` and `ends` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn entries(
        self,
        data: &[u8],
        offsets: &[u32],
        indices: &[u32],
        start: u32,
        ends: &mut [u32],
        out: &mut [u8],
    ) -> EntriesSeen {
        assert!(indices.len() == ends.len(), "entries: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.entries)(data, offsets, indices, start, ends, out) }
    }

    /// Copies spans of `data` behind each other: for each `i` the `lengths[i]` bytes from `starts[i]` on. Stops before
    /// the first that is not inside `data`, or for which `out` has no room; fills what is left of `out` with 0. Returns
    /// the number of spans copied.
    ///
    /// 32 bytes are copied at once where both slices have as many: a span near their end takes longer.
    ///
    /// # Panics
    /// If `starts` and `lengths` differ in length.
    pub fn spans(self, data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
        assert!(starts.len() == lengths.len(), "spans: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.spans)(data, starts, lengths, out) }
    }

    /// Values that share their first bytes with the one before: value `i` is the first `prefixes[i]` bytes of the value
    /// before it (`before` for the first), then the next `lengths[i]` bytes of `suffixes`. They are written behind each
    /// other. Stops before the first whose prefix is longer than the value before, whose suffix is not there, or for
    /// which `out` has no room; fills what is left of `out` with 0. Returns the number of values written.
    ///
    /// # Panics
    /// If `prefixes` and `lengths` differ in length.
    pub fn prefixed(self, before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
        assert!(prefixes.len() == lengths.len(), "prefixed: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.prefixed)(before, prefixes, lengths, suffixes, out) }
    }

    /// LEB128 to 32-bit values: groups of 7 bits, lowest first, each in a byte whose bit 7 says that another follows.
    /// Decodes values until `out` is full. Stops before the first value that the end of `src` cuts off, that has bits
    /// past 32, or more than 5 bytes; a form that is longer than need be is accepted within those. What is in `out`
    /// behind the values is unspecified.
    pub fn varints_u32(self, src: &[u8], out: &mut [u32]) -> VarintsSeen {
        // SAFETY: as in `words`.
        unsafe { (self.ops.varints_u32)(src, out) }
    }

    /// LEB128 to 64-bit values of up to 10 bytes, as [`Kernels::varints_u32`].
    pub fn varints_u64(self, src: &[u8], out: &mut [u64]) -> VarintsSeen {
        // SAFETY: as in `words`.
        unsafe { (self.ops.varints_u64)(src, out) }
    }

    /// As [`Kernels::varints_u32`], with bit 7 set in the last byte of a value, and in no other.
    pub fn vbytes_u32(self, src: &[u8], out: &mut [u32]) -> VarintsSeen {
        // SAFETY: as in `words`.
        unsafe { (self.ops.vbytes_u32)(src, out) }
    }

    /// As [`Kernels::varints_u64`], with bit 7 set in the last byte of a value, and in no other.
    pub fn vbytes_u64(self, src: &[u8], out: &mut [u64]) -> VarintsSeen {
        // SAFETY: as in `words`.
        unsafe { (self.ops.vbytes_u64)(src, out) }
    }

    /// ZigZag codes to signed numbers, in place: `0, 1, 2, 3` to `0, -1, 1, -2`.
    pub fn zigzag_u32(self, words: &mut [u32]) {
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_u32)(words) }
    }

    /// ZigZag codes of 64 bits, as [`Kernels::zigzag_u32`].
    pub fn zigzag_u64(self, words: &mut [u64]) {
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_u64)(words) }
    }

    /// Differences in ZigZag codes to values, in place: word `i` is of component `i % stride`, each of which starts
    /// from 0. Sums wrap.
    ///
    /// # Panics
    /// If `stride` is not 1, 2 or 3.
    pub fn zigzag_deltas_u32(self, words: &mut [u32], stride: usize) {
        assert!((1..=3).contains(&stride), "zigzag_deltas: stride {stride}");
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_deltas_u32)(words, stride) }
    }

    /// Differences of 64 bits, as [`Kernels::zigzag_deltas_u32`] with a stride of 1.
    pub fn zigzag_deltas_u64(self, words: &mut [u64]) {
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_deltas_u64)(words) }
    }

    /// Differences between differences to values: as [`Kernels::zigzag_deltas_u32`], with the sums summed up again.
    ///
    /// # Panics
    /// If `stride` is not 1, 2 or 3.
    pub fn zigzag_deltas2_u32(self, words: &mut [u32], stride: usize) {
        assert!((1..=3).contains(&stride), "zigzag_deltas2: stride {stride}");
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_deltas2_u32)(words, stride) }
    }

    /// Differences between differences of 64 bits, as [`Kernels::zigzag_deltas2_u32`] with a stride of 1.
    pub fn zigzag_deltas2_u64(self, words: &mut [u64]) {
        // SAFETY: as in `words`.
        unsafe { (self.ops.zigzag_deltas2_u64)(words) }
    }

    /// Differences of Morton codes to coordinates. The running sum of `words`, which wraps, gives the codes; bit `2 * i`
    /// of a code is bit `i` of x, bit `2 * i + 1` is bit `i` of y, for each `i` below `bits`. `shift` is taken from both;
    /// wraps.
    ///
    /// **Shapes**: `words` holds n codes, `out` `2 * n` coordinates: x, y, x, y and so on.
    ///
    /// # Panics
    /// If `bits` is above 16 or the lengths are others.
    pub fn morton(self, words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
        assert!(bits <= 16, "morton: {bits} bits");
        assert!(words.len().checked_mul(2) == Some(out.len()), "morton: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.morton)(words, bits, shift, out) }
    }

    /// Codes of one byte to symbols of up to 8: code `c` stands for the first `lengths[c]` bytes, 8 at most, of
    /// `symbols[c]`, lowest first; 255 for the byte that follows it. Stops before a code that is not below `count`, an
    /// escape without its byte, or where `out` has no room. What is in `out` behind the bytes written is unspecified.
    ///
    /// Eight codes are expanded at once where 72 bytes of room are left.
    ///
    /// # Panics
    /// If `count` is above 255.
    pub fn fsst(
        self,
        symbols: &[u64; 256],
        lengths: &[u8; 256],
        count: usize,
        codes: &[u8],
        out: &mut [u8],
    ) -> ExpandedSeen {
        assert!(count <= 255, "fsst: {count} symbols");
        // SAFETY: as in `words`.
        unsafe { (self.ops.fsst)(symbols, lengths, count, codes, out) }
    }

    /// Decimal numbers as integers to floating point: `out[i] = (base + offsets[i]) as f64 * up * down`. The sum wraps;
    /// it and each product is rounded once.
    ///
    /// **Shapes**: `offsets` and `out` hold n values.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn alp_f64(self, offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f64]) {
        assert!(offsets.len() == out.len(), "alp_f64: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.alp_f64)(offsets, base, up, down, out) }
    }

    /// As [`Kernels::alp_f64`], with the results rounded to 32 bits.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn alp_f32(self, offsets: &[u64], base: i64, up: f64, down: f64, out: &mut [f32]) {
        assert!(offsets.len() == out.len(), "alp_f32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.alp_f32)(offsets, base, up, down, out) }
    }

    /// High bits of values whose packed width was too small: `out[positions[i]] |= values[i] << width`. `width` is taken
    /// modulo 32; a position outside `out` is passed over.
    ///
    /// # Panics
    /// If `positions` and `values` differ in length.
    pub fn patch_u32(self, positions: &[u8], values: &[u32], width: u32, out: &mut [u32]) {
        assert!(positions.len() == values.len(), "patch_u32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.patch_u32)(positions, values, width, out) }
    }

    /// High bits of 64-bit values, as [`Kernels::patch_u32`], with `width` modulo 64.
    ///
    /// # Panics
    /// If `positions` and `values` differ in length.
    pub fn patch_u64(self, positions: &[u8], values: &[u64], width: u32, out: &mut [u64]) {
        assert!(positions.len() == values.len(), "patch_u64: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.patch_u64)(positions, values, width, out) }
    }

    /// Reverses the bytes of each 32-bit word.
    ///
    /// **Shapes**: `src` and `out` hold `4 * n` bytes.
    ///
    /// # Panics
    /// If the lengths are others.
    pub fn swap_words(self, src: &[u8], out: &mut [u8]) {
        assert!(src.len() == out.len() && src.len().is_multiple_of(4), "swap_words: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.swap_words)(src, out) }
    }

    /// Values to their places: `out[i]` is the next of `values` where bit `i` of `present`, lowest first, is set, else 0;
    /// 0, too, once `values` are used up. Returns how many of these bits are set, so how many values there should be.
    ///
    /// **Shapes**: `out` holds n values, `present` n bits, rounded up to bytes.
    ///
    /// # Panics
    /// If `present` has another length.
    pub fn spread_u32(self, values: &[u32], present: &[u8], out: &mut [u32]) -> usize {
        assert!(present.len() == out.len().div_ceil(8), "spread_u32: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.spread_u32)(values, present, out) }
    }

    /// Values of 8 bytes, as [`Kernels::spread_u32`].
    ///
    /// # Panics
    /// If `present` has another length.
    pub fn spread_u64(self, values: &[u64], present: &[u8], out: &mut [u64]) -> usize {
        assert!(present.len() == out.len().div_ceil(8), "spread_u64: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.spread_u64)(values, present, out) }
    }

    /// Values of one bit, as [`Kernels::spread_u32`]. The bits behind the n of `out` are 0.
    ///
    /// **Shapes**: `present` and `out` hold `n` bits, rounded up to bytes, `values` any number of bytes.
    ///
    /// # Panics
    /// If `present` or `out` has another length.
    pub fn spread_bits(self, values: &[u8], present: &[u8], n: usize, out: &mut [u8]) -> usize {
        assert!(present.len() == n.div_ceil(8) && out.len() == n.div_ceil(8), "spread_bits: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.spread_bits)(values, present, n, out) }
    }

    /// Pairs of symbols, for the differences of a vertex's x and y, out of four rANS lanes. Vertex `i` takes its symbols
    /// from lanes `2 * (i % 2)` and `2 * (i % 2) + 1`, which goes for each as follows. The state's low `precision` bits
    /// are the number of a slot of the context's table. The state is divided by `2^precision`, multiplied by the slot's
    /// count, and added to its number among the symbol's. If it is then below 2^16, it is shifted up by 16 bits and takes
    /// in the lane's next little-endian 16-bit word. Arithmetic wraps.
    ///
    /// The context of an x is `s`: 1 where bit `i` of `starts`, lowest first, is set, else 0. That of a y is
    /// `2 + 2 * c + s`, where `c` is half the symbol of x, rounded up, shifted down by `depth`, and 5 at most.
    ///
    /// Stops before the first vertex for which a slot lies outside `slots` or a word outside a lane. What is in `out`
    /// behind it is unspecified.
    ///
    /// **Shapes**: `out` holds n pairs, `starts` n bits, rounded up to bytes.
    ///
    /// # Panics
    /// If `depth` is above 2, or `starts` has another length.
    #[expect(clippy::too_many_arguments, reason = "what a stream consists of")]
    pub fn rans_symbols(
        self,
        slots: &[RansSlot],
        tables: &[RansTable; 14],
        depth: u32,
        lanes: &[&[u8]; 4],
        states: &[u32; 4],
        starts: &[u8],
        out: &mut [[u16; 2]],
    ) -> RansSeen {
        assert!(depth <= 2, "rans: depth {depth}");
        assert!(starts.len() == out.len().div_ceil(8), "rans_symbols: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.rans_symbols)(slots, tables, depth, lanes, states, starts, out) }
    }

    /// Symbols and raw bits to vertices: the running sums, which wrap, of the differences. Symbol 0 is a difference of
    /// 0. Of others, `code` is half the symbol, rounded up; `code >> depth` is the bit length of the magnitude; `code`'s
    /// low bits, as many as `depth` but fewer than that length, are those behind its leading one, and the raw bits those
    /// behind these. An even symbol is a negative difference. A symbol above `64 << depth`, or of length 0, is a
    /// difference of 0. The raw bits of x, then those of y, are the next of `raw`, lowest first; 0 behind its end.
    ///
    /// Returns how many raw bits there should be.
    ///
    /// **Shapes**: `symbols` holds n pairs, `out` `2 * n` coordinates: x, y, x, y and so on.
    ///
    /// # Panics
    /// If `depth` is above 2 or the lengths are others.
    pub fn rans_vertices(self, symbols: &[[u16; 2]], depth: u32, raw: &[u8], out: &mut [i32]) -> u64 {
        assert!(depth <= 2, "rans: depth {depth}");
        assert!(symbols.len().checked_mul(2) == Some(out.len()), "rans_vertices: lengths");
        // SAFETY: as in `words`.
        unsafe { (self.ops.rans_vertices)(symbols, depth, raw, out) }
    }
}

#[inline]
fn check_packed(packed: &[u8], width: u32, bits: u32, n: usize) {
    assert!(width <= bits, "unpack: width {width}");
    assert!(packed.len() >= packed_len(n, width as usize), "unpack: lengths");
}

#[inline]
fn check_lanes(packed: &[u8], width: u32, bits: u32, n: usize) {
    assert!(width <= bits, "unpack_lanes: width {width}");
    assert!(n.is_multiple_of(128) && packed.len() == n / 8 * width as usize, "unpack_lanes: lengths");
}

#[inline]
fn check_deltas(packed: &[u8], widths: &[u8], per: usize, bits: u8, n: usize) {
    assert!(per > 0 && per.is_multiple_of(32), "deltas: runs of {per}");
    let (mut left, mut need) = (n, 0);
    for &width in widths {
        if left == 0 {
            break;
        }
        assert!(width <= bits, "deltas: width {width}");
        if left < per {
            need += packed_len(left, width.into());
            left = 0;
            break;
        }
        need += per / 8 * usize::from(width);
        left -= per;
    }
    assert!(left == 0, "deltas: widths");
    assert!(packed.len() >= need, "deltas: lengths");
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
