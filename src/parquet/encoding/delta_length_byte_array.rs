//! DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
//!
//! Source: Parquet format, Encodings.md, "Delta-length byte array". The lengths are a stream of DELTA_BINARY_PACKED.

use super::delta_binary_packed::{DeltaBinaryPacked, Parts};
use super::{BATCH, fault, finish};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::LengthsSeen;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::options::Options;

pub(crate) const LENGTHS: &str = "lengths";
const BYTES: Part = Part::Values("", "bytes");

/// Values of any length.
#[derive(Clone, Debug)]
pub struct DeltaLengthByteArray<'a> {
    pub(crate) lengths: DeltaBinaryPacked<'a, i32>,
    /// From the next value's bytes on.
    pub(crate) bytes: Input<'a>,
    count: usize,
    options: Options,
}

impl<'a> DeltaLengthByteArray<'a> {
    /// `count` values.
    ///
    /// # Errors
    /// Those of the lengths' structure: see [`DeltaBinaryPacked`].
    pub fn new(input: Input<'a>, count: usize, options: &Options) -> Result<DeltaLengthByteArray<'a>, Error> {
        let lengths = DeltaBinaryPacked::stream(input, count, options, Parts::of(LENGTHS), count == 0)?;
        let bytes = lengths.clone().rest()?;
        Ok(DeltaLengthByteArray { count: lengths.remaining(), lengths, bytes, options: *options })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.lengths.remaining()
    }

    /// Bytes of the next `n` values.
    ///
    /// # Errors
    /// A negative length, or truncated.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn size(&self, n: usize) -> Result<u64, Error> {
        let mut walk = self.clone();
        walk.skip(n)?;
        Ok(walk.bytes.offset() - self.bytes.offset())
    }

    /// Takes the next lengths, as many as there is room for, and their values' bytes. `sum` sees the lengths.
    fn batch<'l>(
        &mut self,
        lengths: &'l mut [i32],
        sum: impl FnOnce(&[u32]) -> Result<LengthsSeen, Error>,
    ) -> Result<(&'l [u32], &'a [u8]), Error> {
        let before = self.lengths.clone();
        self.lengths.decode(lengths)?;
        let lengths: &[u32] = bytemuck::cast_slice(lengths);
        let seen = sum(lengths)?;
        if seen.largest > i32::MAX.cast_unsigned() || seen.total > self.bytes.bytes().len() as u64 {
            return Err(self.judge(lengths, &before));
        }
        Ok((lengths, self.bytes.take(seen.total, BYTES)?))
    }

    /// The first fault of a batch that has one.
    #[cold]
    fn judge(&mut self, lengths: &[u32], before: &DeltaBinaryPacked<'a, i32>) -> Error {
        for (i, &length) in lengths.iter().enumerate() {
            let index = (self.count - before.remaining() + i) as u64;
            let found = length.cast_signed();
            if found < 0 {
                let kind = EncodingFault::NegativeLength { found: found.into() };
                return fault(kind, Part::Values("", LENGTHS)).at(before.clone().place_of(i)).index(index);
            }
            if let Err(error) = self.bytes.take(length.into(), BYTES) {
                return error.index(index);
            }
        }
        self.bytes.truncated(0, BYTES)
    }

    /// Appends the next `n` values to `out`.
    ///
    /// # Errors
    /// A negative length, truncated, or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn decode(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (mut lengths, mut left) = ([0; BATCH], n);
        let Options { kernels, limits, .. } = self.options;
        while left > 0 {
            let (lengths, bytes) =
                self.batch(&mut lengths[..left.min(BATCH)], |lengths| out.lay_out(kernels, lengths, &limits, BYTES))?;
            out.append(lengths.len(), bytes.len() as u64, &limits, BYTES)?.copy_from_slice(bytes);
            left -= lengths.len();
        }
        Ok(())
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// A negative length, or truncated.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let mut lengths = [0; BATCH];
        let mut left = n;
        while left > 0 {
            let sum = |lengths: &[u32]| {
                let largest = lengths.iter().fold(0, |largest, &length| largest.max(length));
                Ok(LengthsSeen { largest, total: lengths.iter().map(|&length| u64::from(length)).sum() })
            };
            left -= self.batch(&mut lengths[..left.min(BATCH)], sum)?.0.len();
        }
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`DeltaLengthByteArray::skip`], or bytes follow the last value.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining())?;
        finish(self.bytes, &self.options.leniency)
    }
}

/// Appends values.
///
/// # Panics
/// If there are 2^32 values or more.
#[cfg(feature = "encode")]
pub fn encode(values: &ByteArrays, out: &mut Vec<u8>) {
    let lengths: Vec<i32> = values.offsets().windows(2).map(|two| two[1] - two[0]).collect();
    super::delta_binary_packed::encode(&lengths, super::delta_binary_packed::usual_block::<i32>(), out);
    out.extend_from_slice(values.bytes());
}
