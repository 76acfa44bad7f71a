//! DELTA_BYTE_ARRAY: values that share their first bytes with the one before.
//!
//! Source: Parquet format, Encodings.md, "Delta Strings". Two streams of DELTA_BINARY_PACKED, the shared lengths and the
//! lengths of what is new, then all that is new. Values of a fixed length are stored the same way.

use bytemuck::Pod;

use super::delta_binary_packed::{DeltaBinaryPacked, Parts};
use super::{BATCH, Scratch, bytes_of, fault, finish};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::options::Options;

pub(crate) const PREFIXES: &str = "prefix lengths";
pub(crate) const SUFFIXES: &str = "suffix lengths";
const PREFIX: Part = Part::Values("", PREFIXES);
const SUFFIX: Part = Part::Values("", SUFFIXES);
const BYTES: Part = Part::Values("", "suffix bytes");

/// Values of any or of a fixed length.
#[derive(Debug)]
pub struct DeltaByteArray<'a, 's> {
    pub(crate) streams: Streams<'a>,
    /// The value before the next one.
    before: &'s mut Vec<u8>,
}

/// The streams, and how far they are read.
#[derive(Clone, Debug)]
pub(crate) struct Streams<'a> {
    pub(crate) prefixes: DeltaBinaryPacked<'a, i32>,
    pub(crate) lengths: DeltaBinaryPacked<'a, i32>,
    pub(crate) suffixes: Input<'a>,
    count: usize,
    /// Length of the value before the next one.
    before: u64,
    options: Options,
}

/// Lengths of some values, checked: shared, new, and both.
struct Lengths {
    prefixes: [i32; BATCH],
    suffixes: [i32; BATCH],
    values: [u32; BATCH],
}

impl Lengths {
    const NONE: Lengths = Lengths { prefixes: [0; BATCH], suffixes: [0; BATCH], values: [0; BATCH] };

    fn prefixes(&self, n: usize) -> &[u32] {
        bytemuck::cast_slice(&self.prefixes[..n])
    }

    fn suffixes(&self, n: usize) -> &[u32] {
        bytemuck::cast_slice(&self.suffixes[..n])
    }
}

impl<'a> Streams<'a> {
    pub(crate) fn new(input: Input<'a>, count: usize, options: &Options) -> Result<Streams<'a>, Error> {
        let absent = count == 0 && input.bytes().is_empty();
        let prefixes = DeltaBinaryPacked::stream(input, count, options, Parts::of(PREFIXES), absent)?;
        let input = prefixes.clone().rest()?;
        let lengths = DeltaBinaryPacked::stream(input, count, options, Parts::of(SUFFIXES), absent)?;
        let suffixes = lengths.clone().rest()?;
        let count = prefixes.remaining().min(lengths.remaining());
        Ok(Streams { prefixes, lengths, suffixes, count, before: 0, options: *options })
    }

    fn done(&self) -> usize {
        // Where the streams hold different numbers of values, those that only one has are never taken.
        let (prefixes, lengths) = (self.prefixes.remaining(), self.lengths.remaining());
        prefixes.min(lengths)
    }

    /// Takes the next `n` lengths, and the bytes of their suffixes.
    fn batch(&mut self, n: usize, lengths: &mut Lengths) -> Result<&'a [u8], Error> {
        let before = self.clone();
        self.prefixes.decode(&mut lengths.prefixes[..n])?;
        self.lengths.decode(&mut lengths.suffixes[..n])?;
        if self.options.leniency.clamped_prefixes {
            let mut longest = self.before;
            for (prefix, suffix) in lengths.prefixes[..n].iter_mut().zip(&lengths.suffixes) {
                *prefix = (*prefix).min(i32::try_from(longest).unwrap_or(i32::MAX));
                longest = u64::from(prefix.cast_unsigned()) + u64::from(suffix.cast_unsigned());
            }
        }
        let (prefixes, suffixes) = (&lengths.prefixes[..n], &lengths.suffixes[..n]);
        let values = &mut lengths.values[..n];
        // Each loop is one that compilers make wide.
        let mut all = 0;
        for ((&prefix, &suffix), value) in prefixes.iter().zip(suffixes).zip(&mut *values) {
            all |= prefix | suffix;
            // Of values that are not negative, sums below 2^32 are right.
            *value = prefix.cast_unsigned().wrapping_add(suffix.cast_unsigned());
        }
        let new: u64 = suffixes.iter().map(|&suffix| u64::from(suffix.cast_unsigned())).sum();
        let mut long = prefixes.first().is_some_and(|&first| u64::from(first.cast_unsigned()) > self.before);
        for (&prefix, &before) in prefixes.iter().skip(1).zip(&*values) {
            long |= prefix.cast_unsigned() > before;
        }
        if all < 0 || long || new > self.suffixes.bytes().len() as u64 {
            return Err(before.judge(prefixes, suffixes));
        }
        if n > 0 {
            self.before = lengths.values[n - 1].into();
        }
        self.suffixes.take(new, BYTES)
    }

    /// The first fault of a batch that has one.
    #[cold]
    fn judge(mut self, prefixes: &[i32], suffixes: &[i32]) -> Error {
        let first = self.count - self.done();
        for (i, (&prefix, &suffix)) in prefixes.iter().zip(suffixes).enumerate() {
            let index = (first + i) as u64;
            let (Ok(found), Ok(new)) = (u64::try_from(prefix), u64::try_from(suffix)) else {
                let (found, stream, part) =
                    if prefix < 0 { (prefix, &self.prefixes, PREFIX) } else { (suffix, &self.lengths, SUFFIX) };
                let kind = EncodingFault::NegativeLength { found: found.into() };
                return fault(kind, part).at(stream.clone().place_of(i)).index(index);
            };
            if found > self.before {
                let kind = EncodingFault::Prefix { found, max: self.before };
                return fault(kind, PREFIX).at(self.prefixes.clone().place_of(i)).index(index);
            }
            if let Err(error) = self.suffixes.take(new, BYTES) {
                return error.index(index);
            }
            self.before = found + new;
        }
        self.suffixes.truncated(0, BYTES)
    }
}

impl<'a, 's> DeltaByteArray<'a, 's> {
    /// `count` values.
    ///
    /// # Errors
    /// Those of the lengths' structure: see [`DeltaBinaryPacked`].
    pub fn new(
        input: Input<'a>,
        count: usize,
        options: &Options,
        scratch: &'s mut Scratch,
    ) -> Result<DeltaByteArray<'a, 's>, Error> {
        let streams = Streams::new(input, count, options)?;
        scratch.bytes.clear();
        Ok(DeltaByteArray { streams, before: &mut scratch.bytes })
    }

    /// The same for a page whose first value shares bytes with the last one of the page before, as the parquet-java of
    /// before 1.8 wrote them (PARQUET-246).
    #[must_use]
    pub fn after(mut self, before: &[u8]) -> DeltaByteArray<'a, 's> {
        self.before.clear();
        self.before.extend_from_slice(before);
        self.streams.before = before.len() as u64;
        self
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.streams.done()
    }

    /// Bytes of the next `n` values.
    ///
    /// # Errors
    /// As [`DeltaByteArray::decode`].
    ///
    /// # Panics
    /// If there are fewer.
    pub fn size(&self, n: usize) -> Result<u64, Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (mut streams, mut lengths, mut left, mut total) = (self.streams.clone(), Lengths::NONE, n, 0);
        while left > 0 {
            let len = left.min(BATCH);
            streams.batch(len, &mut lengths)?;
            total += lengths.values[..len].iter().map(|&value| u64::from(value)).sum::<u64>();
            left -= len;
        }
        Ok(total)
    }

    /// Appends the next `n` values to `out`.
    ///
    /// # Errors
    /// A negative length, a prefix that is longer than the value before, truncated, or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn decode(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (mut lengths, mut left, options) = (Lengths::NONE, n, self.streams.options);
        while left > 0 {
            let len = left.min(BATCH);
            let suffixes = self.streams.batch(len, &mut lengths)?;
            let values = &lengths.values[..len];
            let to = out.extend(options.kernels, values, &options.limits, BYTES)?;
            options.kernels.prefixed(self.before, lengths.prefixes(len), lengths.suffixes(len), suffixes, to);
            self.keep(to);
            left -= len;
        }
        Ok(())
    }

    /// The next values, which must have `width` bytes each.
    ///
    /// # Errors
    /// As [`DeltaByteArray::decode`], or a value of another length.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for, or it holds no whole number of them.
    pub fn decode_fixed<T: Pod>(&mut self, width: usize, out: &mut [T]) -> Result<(), Error> {
        let (mut out, n) = bytes_of(out, width);
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (mut lengths, kernels) = (Lengths::NONE, self.streams.options.kernels);
        while !out.is_empty() {
            let len = (out.len() / width).min(BATCH);
            let before = self.streams.clone();
            let suffixes = self.streams.batch(len, &mut lengths)?;
            if let Some(i) = lengths.values[..len].iter().position(|&value| value as usize != width) {
                let kind = EncodingFault::Length { found: lengths.values[i].into(), expected: width as u64 };
                let index = (before.count - before.done() + i) as u64;
                return Err(fault(kind, SUFFIX).at(before.lengths.place_of(i)).index(index));
            }
            let (to, rest) = out.split_at_mut(len * width);
            kernels.prefixed(self.before, lengths.prefixes(len), lengths.suffixes(len), suffixes, to);
            self.keep(to);
            out = rest;
        }
        Ok(())
    }

    /// Keeps the last of the values that were written.
    fn keep(&mut self, written: &[u8]) {
        let last = usize::try_from(self.streams.before).unwrap_or(usize::MAX);
        self.before.clear();
        self.before.extend_from_slice(&written[written.len() - last..]);
    }

    /// Passes over the next `n` values. Only the one before the next is put together.
    ///
    /// # Errors
    /// As [`DeltaByteArray::decode`], but for limits.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (mut lengths, mut left) = (Lengths::NONE, n);
        while left > 0 {
            let len = left.min(BATCH);
            let mut suffixes = self.streams.batch(len, &mut lengths)?;
            for (&prefix, &length) in lengths.prefixes(len).iter().zip(lengths.suffixes(len)) {
                let (new, rest) = suffixes.split_at(length as usize);
                self.before.truncate(prefix as usize);
                self.before.extend_from_slice(new);
                suffixes = rest;
            }
            left -= len;
        }
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`DeltaByteArray::skip`], or bytes follow the last suffix.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining())?;
        finish(self.streams.suffixes, &self.streams.options.leniency)
    }
}

/// Appends values of any length.
///
/// # Panics
/// If there are 2^32 values or more.
#[cfg(feature = "encode")]
pub fn encode(values: &ByteArrays, out: &mut Vec<u8>) {
    let (mut prefixes, mut suffixes, mut before) = (Vec::new(), Vec::new(), &[][..]);
    for value in values.iter() {
        let shared = value.iter().zip(before).take_while(|(a, b)| a == b).count();
        prefixes.push(i32::try_from(shared).expect("less than 2 GiB"));
        suffixes.push(&value[shared..]);
        before = value;
    }
    super::delta_binary_packed::encode(&prefixes, super::delta_binary_packed::usual_block::<i32>(), out);
    super::delta_length_byte_array::encode(&ByteArrays::from_values(suffixes), out);
}
