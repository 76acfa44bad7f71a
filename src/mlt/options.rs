//! How tiles are decoded: kernels, limits, and which layout of FastPFOR blocks.

use crate::error::Error;
use crate::kernels::Kernels;
use crate::limits::Limits;

/// What every decoder of tiles is given. Copy it freely.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The kernels in use.
    pub kernels: Kernels,
    /// Bounds on what is allocated for results.
    pub limits: Limits,
    /// How the FastPFOR blocks of version 2 are packed.
    pub packing: Packing,
}

/// How the FastPFOR blocks of version 2 are packed. Sizes are equal, so nothing in the bytes tells which it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packing {
    /// Over the lanes of a 128-bit register, as the format says; 64-bit words, too.
    #[default]
    Interleaved,
    /// 32 values at a time, and the offsets of ALP as 32-bit words: what mlt-core wrote up to 0.22.1.
    Sequential,
}

impl Options {
    /// The default limits, and the kernels that `TILEKERN_KERNEL` names, else this CPU's best.
    ///
    /// # Errors
    /// [`ErrorKind::KernelUnavailable`](crate::ErrorKind::KernelUnavailable) if the variable names no kernels of this CPU.
    pub fn new() -> Result<Options, Error> {
        Ok(Options::with_kernels(Kernels::from_env()?))
    }

    /// The default limits and these kernels.
    pub fn with_kernels(kernels: Kernels) -> Options {
        Options { kernels, limits: Limits::default(), packing: Packing::Interleaved }
    }

    /// The same with other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Options {
        Options { limits, ..self }
    }

    /// The same with another packing.
    #[must_use]
    pub fn packing(self, packing: Packing) -> Options {
        Options { packing, ..self }
    }
}
