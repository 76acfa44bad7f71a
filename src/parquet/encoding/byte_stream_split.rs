//! BYTE_STREAM_SPLIT: the first bytes of all values, then their second bytes, and so on.
//!
//! Source: Parquet format, Encodings.md, "Byte Stream Split". There is neither header nor padding.

use bytemuck::Pod;

use super::{bytes_of, fault, finish};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::parquet::options::Options;

const STREAMS: Part = Part::Values("", "streams");

/// Values of any fixed width: FLOAT, DOUBLE, INT32, INT64, FIXED_LEN_BYTE_ARRAY.
#[derive(Clone, Debug)]
pub struct ByteStreamSplit<'a> {
    streams: &'a [u8],
    width: usize,
    /// Values of each stream: as many as asked for, or more where bytes that follow are ignored.
    stride: usize,
    at: usize,
    count: usize,
    rest: Input<'a>,
    options: Options,
}

impl<'a> ByteStreamSplit<'a> {
    /// `count` values of `width` bytes.
    ///
    /// # Errors
    /// Not the bytes of a whole number of values, truncated, or bytes follow: they would lie inside, not behind.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn new(input: Input<'a>, count: usize, width: usize, options: &Options) -> Result<ByteStreamSplit<'a>, Error> {
        assert!(width > 0, "values of 0 bytes");
        let streams = input.bytes();
        if !streams.len().is_multiple_of(width) {
            let kind = EncodingFault::Length { found: streams.len() as u64, expected: width as u64 };
            return Err(fault(kind, STREAMS).at(input.offset()));
        }
        let stride = streams.len() / width;
        if stride < count {
            return Err(input.truncated((count as u64).saturating_mul(width as u64), STREAMS));
        }
        let mut rest = input;
        rest.take((count * width) as u64, STREAMS)?;
        finish(rest, &options.leniency)?;
        Ok(ByteStreamSplit { streams, width, stride, at: 0, count, rest, options: *options })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.count - self.at
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
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        if n > 0 {
            self.options.kernels.words_apart(&self.streams[self.at..], self.stride, self.width, bytes);
        }
        self.at += n;
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
    /// None: `new` has checked the size.
    pub fn finish(self) -> Result<u64, Error> {
        Ok(self.rest.offset())
    }
}

/// Appends values of `width` bytes.
///
/// # Panics
/// If `width` is 0 or `values` holds no whole number of them.
#[cfg(feature = "encode")]
pub fn encode<T: Pod>(values: &[T], width: usize, out: &mut Vec<u8>) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    assert!(bytes.len().is_multiple_of(width), "{} bytes in values of {width}", bytes.len());
    for stream in 0..width {
        out.extend(bytes.iter().skip(stream).step_by(width));
    }
}
