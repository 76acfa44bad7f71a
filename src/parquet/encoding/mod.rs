//! The value encodings, one file each.
//!
//! Every decoder is made of a section of a page, the number of values that the page has in it, and [`Options`](super::Options). It then
//! gives values in batches of any size: `decode` fills the caller's memory, `skip` passes over, `remaining` says how many
//! there are, and `finish` checks that nothing follows the last. What a batch asks beyond `remaining` is the caller's
//! fault, and panics. After an error a decoder's state is unspecified; any further call ends in values or an error.
//!
//! Slices of fixed-width values are of any [`bytemuck::Pod`] type; all that counts is that they have the bytes of a
//! whole number of values. The bytes are those of the file: little-endian numbers.

pub mod alp;
pub mod bit_packed;
pub mod byte_stream_split;
pub mod delta_binary_packed;
pub mod delta_byte_array;
pub mod delta_length_byte_array;
pub mod dictionary;
pub mod hybrid;
pub mod plain;

use bytemuck::Pod;

use super::options::Leniency;
use crate::error::{EncodingFault, Error, ErrorKind, Part};
use crate::input::Input;
use crate::kernels::Kernels;
#[cfg(feature = "encode")]
pub(crate) use crate::output::{pack, push_uleb, push_zigzag};

/// Values that a batch takes through scratch memory: what fits the first cache with room for the results.
pub(crate) const BATCH: usize = 1024;

/// Scratch memory of decoders, which keep it in use: hand the same to all pages of a thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) words: Vec<u64>,
    pub(crate) values: Vec<u64>,
}

impl Scratch {
    /// None so far.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// An error of an encoding.
#[cold]
pub(crate) fn fault(fault: EncodingFault, part: Part) -> Error {
    Error::new(ErrorKind::Encoding(fault), part)
}

/// The end of a section: its absolute offset, if nothing is left of it.
pub(crate) fn finish(rest: Input<'_>, leniency: &Leniency) -> Result<u64, Error> {
    let bytes = rest.bytes().len() as u64;
    if bytes > 0 && !leniency.trailing_bytes {
        return Err(fault(EncodingFault::Trailing { bytes }, Part::Values("", "end")).at(rest.offset()));
    }
    Ok(rest.offset())
}

/// The bytes of a slice that holds values of `width` bytes, and their number.
pub(crate) fn bytes_of<T: Pod>(out: &mut [T], width: usize) -> (&mut [u8], usize) {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
    assert!(bytes.len().is_multiple_of(width), "a slice for values of {width} bytes has {} bytes", bytes.len());
    let n = bytes.len() / width;
    (bytes, n)
}

/// What can hold a packed number.
pub trait Slot: Pod + private::Sealed {
    /// Bits of a number at most.
    const BITS: u32;
    #[doc(hidden)]
    fn unpack(kernels: Kernels, packed: &[u8], width: u32, out: &mut [Self]);
    #[doc(hidden)]
    fn from_u32(value: u32) -> Option<Self>;
}

mod private {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
pub(crate) use private::Sealed;

macro_rules! slot {
    ($($slot:ty: $unpack:ident),*) => {$(
        impl Slot for $slot {
            const BITS: u32 = <$slot>::BITS;
            #[inline]
            fn unpack(kernels: Kernels, packed: &[u8], width: u32, out: &mut [$slot]) {
                kernels.$unpack(packed, width, out);
            }
            #[inline]
            fn from_u32(value: u32) -> Option<$slot> {
                value.try_into().ok()
            }
        }
    )*};
}
slot!(u8: unpack_u8, u16: unpack_u16, u32: unpack_u32, u64: unpack_u64);

/// Unpacks from number `at` on; kernels start at whole bytes.
pub(crate) fn unpack_from<T: Slot>(kernels: Kernels, packed: &[u8], width: u32, at: usize, out: &mut [T]) {
    let (first, inside) = (at / 8 * width as usize, at % 8);
    if inside == 0 {
        return T::unpack(kernels, &packed[first..], width, out);
    }
    let (head, rest) = out.split_at_mut(out.len().min(8 - inside));
    let mut eight = [T::zeroed(); 8];
    let eight = &mut eight[..inside + head.len()];
    T::unpack(kernels, &packed[first..], width, eight);
    head.copy_from_slice(&eight[inside..]);
    if !rest.is_empty() {
        T::unpack(kernels, &packed[first + width as usize..], width, rest);
    }
}
