//! How values are decoded: kernels, limits, and which faults are let pass.

use crate::error::Error;
use crate::kernels::Kernels;
use crate::limits::Limits;

/// What every decoder of values is given. Copy it freely.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The kernels in use.
    pub kernels: Kernels,
    /// Bounds on what is allocated for results.
    pub limits: Limits,
    /// Faults that are let pass; none by default.
    pub leniency: Leniency,
}

impl Options {
    /// Strict, with the default limits and the kernels that `TILEKERN_KERNEL` names, else this CPU's best.
    ///
    /// # Errors
    /// [`ErrorKind::KernelUnavailable`](crate::ErrorKind::KernelUnavailable) if the variable names no kernels of this CPU.
    pub fn new() -> Result<Options, Error> {
        Ok(Options::with_kernels(Kernels::from_env()?))
    }

    /// Strict, with the default limits and these kernels.
    pub fn with_kernels(kernels: Kernels) -> Options {
        Options { kernels, limits: Limits::default(), leniency: Leniency::STRICT }
    }

    /// The same with other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Options {
        Options { limits, ..self }
    }

    /// The same with another leniency.
    #[must_use]
    pub fn leniency(self, leniency: Leniency) -> Options {
        Options { leniency, ..self }
    }
}

/// Faults that some other reader lets pass, or that some writer made. Each has one right answer at most, which is what a
/// lenient decode gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leniency {
    /// Bytes after the last value are ignored.
    pub trailing_bytes: bool,
    /// A delta encoding that states fewer values than the page gives as many as it states; of more, the first.
    /// Sections alone: in a page of a file, whose levels stand for values, no answer is right.
    pub declared_counts: bool,
    /// Block sizes that are no multiple of 128, or have up to 64 bits, and miniblocks that are no multiple of 32 values;
    /// where they are no multiple of 8, without bits.
    pub block_sizes: bool,
    /// 0 miniblocks a block mean 1.
    pub no_miniblocks: bool,
    /// The last miniblock may end with its last value, without padding.
    pub cut_miniblock: bool,
    /// A delta encoding of INT32 is one of INT64, whose values are cut to 32 bits.
    pub wide_int32: bool,
    /// Repeated values may have bits above the section's width.
    pub wide_runs: bool,
    /// Runs without values are passed over.
    pub empty_runs: bool,
    /// A shared prefix that is longer than the value before it means that whole value.
    pub clamped_prefixes: bool,
    /// The first value of a DELTA_BYTE_ARRAY page may share bytes with the last one of the page before, as the parquet-mr
    /// of before 1.8 wrote them (PARQUET-246). A file that says it is one of these is read so without this.
    pub carried_prefixes: bool,
    /// Pages whose checksum is wrong are read all the same.
    pub wrong_checksums: bool,
}

impl Leniency {
    /// Nothing is let pass.
    pub const STRICT: Leniency = Leniency {
        trailing_bytes: false,
        declared_counts: false,
        block_sizes: false,
        no_miniblocks: false,
        cut_miniblock: false,
        wide_int32: false,
        wide_runs: false,
        empty_runs: false,
        clamped_prefixes: false,
        carried_prefixes: false,
        wrong_checksums: false,
    };

    /// Everything that has an answer is let pass.
    pub const LENIENT: Leniency = Leniency {
        trailing_bytes: true,
        declared_counts: true,
        block_sizes: true,
        no_miniblocks: true,
        cut_miniblock: true,
        wide_int32: true,
        wide_runs: true,
        empty_runs: true,
        clamped_prefixes: true,
        carried_prefixes: true,
        wrong_checksums: true,
    };
}
