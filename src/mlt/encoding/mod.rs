//! The encodings, one file each.
//!
//! A decoder fills the caller's slice, whose length is the number of values: that is known before a payload is read. It
//! takes the payload as an [`Input`](super::Input), which knows the absolute offset of its bytes. With the feature `encode`, each file
//! has the plain encoder, too.

pub mod bit_packing;
pub mod boolean;
pub mod delta;
pub mod fastpfor;
pub mod integers;
pub mod plain;
pub mod rle;
pub mod varint;
mod word;

pub use word::Word;

use super::MltFault;
use crate::error::{Error, ErrorKind, Part};

/// Scratch memory of decoders, which keep it in use: hand the same to all streams of a thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Words of a stream before they become values.
    pub(crate) words: Vec<u32>,
    pub(crate) long_words: Vec<u64>,
    /// Exceptions of FastPFOR, of either width.
    pub(crate) exceptions: Vec<u32>,
    pub(crate) long_exceptions: Vec<u64>,
    /// Lengths of runs.
    pub(crate) runs: Vec<u32>,
    /// Payloads whose bytes had to be moved.
    pub(crate) bytes: Vec<u8>,
}

impl Scratch {
    /// None so far.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// An error of an encoding.
#[cold]
pub(crate) fn fault(fault: MltFault, part: Part) -> Error {
    Error::new(ErrorKind::Mlt(fault), part)
}

/// Room for `n` values in scratch memory, which keeps what it has; what is in them is unspecified.
pub(crate) fn room<T: bytemuck::Zeroable + Copy>(scratch: &mut Vec<T>, n: usize) -> &mut [T] {
    if scratch.len() < n {
        scratch.resize(n, T::zeroed());
    }
    &mut scratch[..n]
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::error::Error;
    use crate::input::Input;
    use crate::kernels::Kernels;
    use crate::mlt::Options;

    /// Payloads start here in their object, so that offsets are seen to be absolute.
    pub(crate) const START: u64 = 1_000_000;

    pub(crate) fn at(bytes: &[u8]) -> Input<'_> {
        Input::at(bytes, START)
    }

    /// The options of every level.
    pub(crate) fn levels() -> impl Iterator<Item = Options> {
        Kernels::available().map(Options::with_kernels)
    }

    /// The name of a fault, and its offset in the payload.
    pub(crate) fn told<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, u64) {
        let error = result.unwrap_err();
        (error.kind().name(), error.offset().unwrap() - START)
    }

    /// What `decode` gives on every level: the same.
    pub(crate) fn everywhere<T: PartialEq + std::fmt::Debug>(mut decode: impl FnMut(&Options) -> T) -> T {
        let mut results = levels().map(|options| decode(&options));
        let first = results.next().unwrap();
        results.for_each(|result| assert_eq!(result, first));
        first
    }
}
