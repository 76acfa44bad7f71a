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
