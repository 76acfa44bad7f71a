//! The encodings, one file each.
//!
//! A decoder fills the caller's slice, whose length is the number of values: that is known before a payload is read. It
//! takes the payload as an [`Input`](super::Input), which knows the absolute offset of its bytes. With the feature `encode`, each file
//! has the plain encoder, too.

pub mod alp;
pub mod bit_packing;
pub mod boolean;
pub mod delta;
pub mod fastpfor;
pub mod float_dictionary;
pub mod front_coding;
pub mod fsst;
pub mod integers;
pub mod morton;
pub mod plain;
pub mod rans;
pub mod rle;
pub mod strings;
pub mod varint;
pub mod vertices;
mod word;

pub use word::Word;

#[cfg(feature = "encode")]
use std::collections::HashMap;
#[cfg(feature = "encode")]
use std::hash::Hash;

use bytemuck::Pod;

use super::MltFault;
use crate::buffer::grow;
use crate::error::{Error, ErrorKind, Part};
use crate::kernels::{Kernels, RansSlot};

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
    /// Tables of rANS.
    pub(crate) slots: Vec<RansSlot>,
    /// Morton codes; symbols of rANS.
    pub(crate) vertices: Vec<u32>,
    /// Payloads whose bytes had to be moved.
    pub(crate) bytes: Vec<u8>,
}

impl Scratch {
    /// None so far.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// A floating-point type of a column: `f32` or `f64`.
pub trait Float: Pod + private::Sealed {
    #[doc(hidden)]
    fn scale(kernels: Kernels, integers: &[u64], base: i64, up: f64, down: f64, out: &mut [Self]);
    #[doc(hidden)]
    fn gather(kernels: Kernels, table: &[Self], codes: &[u32], out: &mut [Self]) -> Option<usize>;
    #[doc(hidden)]
    #[cfg(feature = "encode")]
    fn to_f64(self) -> f64;
    #[doc(hidden)]
    #[cfg(feature = "encode")]
    fn from_f64(value: f64) -> Self;
    #[doc(hidden)]
    #[cfg(feature = "encode")]
    fn bits(self) -> u64;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! float {
    ($($float:ty: $scale:ident, $gather:ident;)*) => {$(
        impl Float for $float {
            fn scale(kernels: Kernels, integers: &[u64], base: i64, up: f64, down: f64, out: &mut [Self]) {
                kernels.$scale(integers, base, up, down, out);
            }
            fn gather(kernels: Kernels, table: &[Self], codes: &[u32], out: &mut [Self]) -> Option<usize> {
                kernels.$gather(bytemuck::cast_slice(table), codes, bytemuck::cast_slice_mut(out))
            }
            #[cfg(feature = "encode")]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[cfg(feature = "encode")]
            #[allow(clippy::cast_possible_truncation, reason = "rounded on purpose")]
            fn from_f64(value: f64) -> Self {
                value as Self
            }
            #[cfg(feature = "encode")]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}
float!(f32: alp_f32, gather_u32; f64: alp_f64, gather_u64;);

/// An error of an encoding.
#[cold]
pub(crate) fn fault(fault: MltFault, part: Part) -> Error {
    Error::new(ErrorKind::Mlt(fault), part)
}

/// Makes `values` exactly `len` long; what they are is unspecified.
pub(crate) fn exactly<T: bytemuck::Zeroable + Copy>(values: &mut Vec<T>, len: usize) -> Result<(), Error> {
    grow(values, len)?;
    values.truncate(len);
    Ok(())
}

/// Room for `n` values in scratch memory, which keeps what it has; what is in them is unspecified.
pub(crate) fn room<T: bytemuck::Zeroable + Copy>(scratch: &mut Vec<T>, n: usize) -> &mut [T] {
    if scratch.len() < n {
        scratch.resize(n, T::zeroed());
    }
    &mut scratch[..n]
}

/// Distinct values in the order in which each comes first, and for each value the number of its own.
///
/// # Panics
/// If there are 2^32 distinct ones or more.
#[cfg(feature = "encode")]
fn distinct<T: Copy + Eq + Hash>(values: impl IntoIterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let (mut entries, mut numbers) = (Vec::new(), HashMap::new());
    let codes = values.into_iter().map(|value| {
        *numbers.entry(value).or_insert_with(|| {
            entries.push(value);
            u32::try_from(entries.len() - 1).expect("fewer than 2^32 distinct values")
        })
    });
    let codes = codes.collect();
    (entries, codes)
}

/// Sorts distinct values by a key, and numbers the codes anew.
#[cfg(feature = "encode")]
fn sort_entries<T: Copy, K: Ord>(entries: &mut [T], codes: &mut [u32], mut key: impl FnMut(&T) -> K) {
    let mut order: Vec<u32> = (0..).take(entries.len()).collect();
    order.sort_by_cached_key(|&old| key(&entries[old as usize]));
    let (before, mut numbers) = (entries.to_vec(), vec![0; entries.len()]);
    for ((entry, &old), new) in entries.iter_mut().zip(&order).zip(0..) {
        (*entry, numbers[old as usize]) = (before[old as usize], new);
    }
    for code in codes {
        *code = numbers[*code as usize];
    }
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

    /// What `decode` gives on every level: the same values, or the same error.
    pub(crate) fn alike<T: PartialEq + std::fmt::Debug>(
        mut decode: impl FnMut(&Options) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut results = levels().map(|options| decode(&options));
        let first = results.next().unwrap();
        for result in results {
            match (&first, result) {
                (Ok(first), Ok(other)) => assert_eq!(*first, other),
                (Err(first), Err(other)) => assert_eq!(first.to_string(), other.to_string()),
                (first, other) => panic!("{first:?}, {other:?}"),
            }
        }
        first
    }
}
