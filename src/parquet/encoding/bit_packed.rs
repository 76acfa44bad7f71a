//! BIT_PACKED: levels of old files.
//!
//! Source: Parquet format, Encodings.md, "Bit-packed (Deprecated)". Numbers of a width that is known from outside, packed
//! from the highest bit of each byte on, the highest bit of a number first. There is no length in front.

use super::{BATCH, fault, finish, unpack_from};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::packed_len;
use crate::parquet::options::Options;

/// Numbers of up to 16 bits.
#[derive(Clone, Debug)]
pub struct BitPacked<'a> {
    bits: &'a [u8],
    width: u32,
    at: usize,
    count: usize,
    rest: Input<'a>,
    options: Options,
}

impl<'a> BitPacked<'a> {
    /// `count` numbers of `width` bits, which are taken from `input`.
    ///
    /// # Errors
    /// Truncated, or a width above 16.
    pub fn new(input: &mut Input<'a>, count: usize, width: u32, options: &Options) -> Result<BitPacked<'a>, Error> {
        let part = Part::Values("", "levels");
        if width > 16 {
            return Err(fault(EncodingFault::BitWidth { found: width, max: 16 }, part).at(input.offset()));
        }
        let bits = input.take(packed_len(count, width as usize) as u64, part)?;
        Ok(BitPacked { bits, width, at: 0, count, rest: *input, options: *options })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.count - self.at
    }

    /// The next values.
    ///
    /// # Errors
    /// None: `new` has checked the size.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for.
    pub fn decode(&mut self, out: &mut [u16]) -> Result<(), Error> {
        assert!(out.len() <= self.remaining(), "{} of {} values", out.len(), self.remaining());
        // Turned byte by byte, the bits are packed the usual way, but each number's are in reverse.
        let mut turned = [0u8; BATCH / 8 * 16 + 16];
        for out in out.chunks_mut(BATCH) {
            let first = self.at / 8 * self.width as usize;
            let end = packed_len(self.at + out.len(), self.width as usize);
            let turned = &mut turned[..end - first];
            for (turned, bits) in turned.iter_mut().zip(&self.bits[first..end]) {
                *turned = bits.reverse_bits();
            }
            unpack_from(self.options.kernels, turned, self.width, self.at % 8, out);
            if self.width > 0 {
                out.iter_mut().for_each(|value| *value = value.reverse_bits() >> (u16::BITS - self.width));
            }
            self.at += out.len();
        }
        Ok(())
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        self.at += n;
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// Bytes follow the last value: for sections that are not followed by others.
    pub fn finish(self) -> Result<u64, Error> {
        finish(self.rest, &self.options.leniency)
    }
}

/// Appends numbers.
///
/// # Panics
/// If `width` is above 16 or a number has more bits.
#[cfg(feature = "encode")]
pub fn encode(values: &[u16], width: u32, out: &mut Vec<u8>) {
    assert!(width <= 16 && values.iter().all(|&value| u32::from(value) >> width == 0), "{width} bits");
    let start = out.len();
    let turned = |&value: &u16| u64::from(value.reverse_bits()) >> (16 - width);
    super::pack(values.iter().map(turned), width, out);
    out[start..].iter_mut().for_each(|byte| *byte = byte.reverse_bits());
}
