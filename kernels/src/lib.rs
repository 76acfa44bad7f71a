//! Integer decoding kernels, one table of operations per CPU level, chosen at run time.
//!
//! This crate computes on slices. It knows no file format, reports no errors and allocates nothing.
//!
//! ```
//! use tilekern_kernels::{Kernels, Store};
//!
//! let kernels = Kernels::from_env()?; // TILEKERN_KERNEL, else the best row of this CPU
//! let mut counts = [0i32; 3];
//! let seen = kernels.counts_i32(&[1, 2, 44], &[0, 0, 1], &mut counts, Store::Cached);
//! assert_eq!(counts, [1, 2, 300]);
//! assert!(!seen.zero);
//! # Ok::<(), tilekern_kernels::NoSuchKernel>(())
//! ```
//!
//! # Contract of every operation
//!
//! 1. Total: any content of the slices is allowed. Lengths are exact, or at least as large where the method says so,
//!    and checked by the safe method of [`Kernels`]; a wrong length, or width, is a bug of the caller and panics.
//! 2. Reads only its sources, writes only `out`, needs no padding and no alignment.
//! 3. Gives what the scalar row gives, bit for bit, on garbage too, but for what the method calls unspecified. Arithmetic
//!    wraps.
//! 4. Allocates nothing, has no global state, does not panic on data.
//! 5. Cannot fail on data. It returns *evidence* (a largest value, how many values were written); the caller judges.
//!    Evidence never guards memory safety: a row that lies gives wrong values, nothing worse.
//!
//! # Where things are
//!
//! `table` is the only dispatcher. `scalar/` is the reference and holds every operation; a folder per level holds
//! the files that beat it, under the same names. A missing file means that the row inherits.

// Numbers from outside are converted with a check, never cut.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod blocks;
mod custom;
mod level;
pub mod scalar;
mod table;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use custom::{Custom, CustomUnchecked};
pub use level::{Level, NoSuchKernel};
pub use scalar::bits::packed_len;
pub use table::{
    CountsSeen, EntriesSeen, ExpandedSeen, GapsSeen, Kernels, LengthsSeen, RansSeen, RansSlot, RansTable, Store,
    VarintsSeen,
};
