//! PLAIN: values one after the other.
//!
//! Source: Parquet format, Encodings.md, "Plain". Numbers are little-endian; truth values take a bit, the lowest of a byte
//! first; values of any length follow their length, 32 bits.

use bytemuck::Pod;

use super::{BATCH, bytes_of, fault, finish, unpack_from};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::packed_len;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::options::{Leniency, Options};

const PART: Part = Part::Values("", "values");

/// Values of a fixed number of bytes: INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY.
#[derive(Clone, Debug)]
pub struct Plain<'a> {
    input: Input<'a>,
    remaining: usize,
    width: usize,
    leniency: Leniency,
}

impl<'a> Plain<'a> {
    /// `count` values of `width` bytes (see [`type_length`](crate::parquet::type_length)).
    ///
    /// # Errors
    /// Truncated: fewer bytes than values need.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn new(input: Input<'a>, count: usize, width: usize, options: &Options) -> Result<Plain<'a>, Error> {
        assert!(width > 0, "values of 0 bytes");
        let needed = (count as u64).saturating_mul(width as u64);
        if needed > input.bytes().len() as u64 {
            return Err(input.truncated(needed, PART));
        }
        Ok(Plain { input, remaining: count, width, leniency: options.leniency })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The next values, which are all that `out` has room for.
    ///
    /// # Errors
    /// None: `new` has checked the size.
    ///
    /// # Panics
    /// If there are fewer, or `out` holds no whole number of them.
    pub fn decode<T: Pod>(&mut self, out: &mut [T]) -> Result<(), Error> {
        let (bytes, n) = bytes_of(out, self.width);
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        bytes.copy_from_slice(self.input.take(bytes.len() as u64, PART)?);
        self.remaining -= n;
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
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        self.input.take((n * self.width) as u64, PART)?;
        self.remaining -= n;
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// Bytes follow the last value.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining)?;
        finish(self.input, &self.leniency)
    }
}

/// BOOLEAN, a bit each.
#[derive(Clone, Debug)]
pub struct PlainBooleans<'a> {
    bits: &'a [u8],
    at: usize,
    count: usize,
    rest: Input<'a>,
    options: Options,
}

impl<'a> PlainBooleans<'a> {
    /// `count` truth values.
    ///
    /// # Errors
    /// Truncated: fewer bits than values.
    pub fn new(input: Input<'a>, count: usize, options: &Options) -> Result<PlainBooleans<'a>, Error> {
        let mut rest = input;
        let bits = rest.take(packed_len(count, 1) as u64, PART)?;
        Ok(PlainBooleans { bits, at: 0, count, rest, options: *options })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.count - self.at
    }

    /// The next values, 0 or 1 each.
    ///
    /// # Errors
    /// None: `new` has checked the size.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for.
    pub fn decode(&mut self, out: &mut [u8]) -> Result<(), Error> {
        assert!(out.len() <= self.remaining(), "{} of {} values", out.len(), self.remaining());
        unpack_from(self.options.kernels, self.bits, 1, self.at, out);
        self.at += out.len();
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
    /// Bytes follow the last value.
    pub fn finish(self) -> Result<u64, Error> {
        finish(self.rest, &self.options.leniency)
    }
}

/// BYTE_ARRAY, each behind its length.
#[derive(Clone, Debug)]
pub struct PlainByteArrays<'a> {
    input: Input<'a>,
    remaining: usize,
    options: Options,
}

impl<'a> PlainByteArrays<'a> {
    /// `count` values.
    ///
    /// # Errors
    /// Truncated: fewer bytes than their lengths alone need.
    pub fn new(input: Input<'a>, count: usize, options: &Options) -> Result<PlainByteArrays<'a>, Error> {
        // Reading forward finds the fault at its place; this keeps what is declared from being believed.
        let decoder = PlainByteArrays { input, remaining: count, options: *options };
        if (count as u64).saturating_mul(4) > input.bytes().len() as u64 {
            decoder.clone().size(count)?;
        }
        Ok(decoder)
    }

    /// How many values there are up to the end of a section.
    pub(crate) fn count(input: Input<'_>, options: &Options) -> Result<usize, Error> {
        let mut walk = PlainByteArrays { input, remaining: 0, options: *options };
        let mut count = 0;
        while !walk.input.bytes().is_empty() {
            walk.next()?;
            count += 1;
        }
        Ok(count)
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Bytes of the next `n` values, without their lengths.
    ///
    /// # Errors
    /// Truncated, or a length of 2^31 or more.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn size(&self, n: usize) -> Result<u64, Error> {
        let mut walk = self.clone();
        walk.skip(n)?;
        Ok(walk.input.offset() - self.input.offset() - 4 * n as u64)
    }

    /// Takes the length of the next value, and the value.
    #[inline]
    fn next(&mut self) -> Result<&'a [u8], Error> {
        let at = self.input.offset();
        let length = self.input.u32(PART)?;
        if length > i32::MAX.cast_unsigned() {
            let found = length.cast_signed().into();
            return Err(fault(EncodingFault::NegativeLength { found }, PART).at(at));
        }
        self.input.take(length.into(), PART)
    }

    /// Appends the next `n` values to `out`.
    ///
    /// # Errors
    /// Truncated, a length of 2^31 or more, or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn decode(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        let (mut starts, mut lengths) = ([0u32; BATCH], [0u32; BATCH]);
        let mut left = n;
        while left > 0 {
            // Starts count from the batch's first length, and have 32 bits: a batch of large values ends early.
            let (batch, first) = (self.input.bytes(), self.input.offset());
            let mut len = 0;
            while len < left.min(BATCH) {
                let Ok(start) = u32::try_from(self.input.offset() - first + 4) else { break };
                let value = self.next()?;
                starts[len] = start;
                lengths[len] = u32::try_from(value.len()).unwrap_or(u32::MAX);
                len += 1;
            }
            let bytes = out.extend(self.options.kernels, &lengths[..len], &self.options.limits, PART)?;
            self.options.kernels.spans(batch, &starts[..len], &lengths[..len], bytes);
            left -= len;
            self.remaining -= len;
        }
        Ok(())
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// Truncated, or a length of 2^31 or more.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        for _ in 0..n {
            self.next()?;
        }
        self.remaining -= n;
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`PlainByteArrays::skip`], or bytes follow the last value.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining)?;
        finish(self.input, &self.options.leniency)
    }
}

/// Appends values of any fixed width.
#[cfg(feature = "encode")]
pub fn encode<T: Pod>(values: &[T], out: &mut Vec<u8>) {
    out.extend_from_slice(bytemuck::cast_slice(values));
}

/// Appends truth values, 0 or 1 each.
#[cfg(feature = "encode")]
pub fn encode_booleans(values: &[u8], out: &mut Vec<u8>) {
    super::pack(values.iter().map(|&value| u64::from(value != 0)), 1, out);
}

/// Appends values of any length.
#[cfg(feature = "encode")]
pub fn encode_byte_arrays(values: &ByteArrays, out: &mut Vec<u8>) {
    for value in values.iter() {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(value);
    }
}
