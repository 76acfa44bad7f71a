//! RLE_DICTIONARY and PLAIN_DICTIONARY, which are the same: indices into a dictionary.
//!
//! Source: Parquet format, Encodings.md, "Dictionary Encoding". The dictionary is a page of PLAIN values. A data page holds
//! a byte with the width of an index, then the indices as an RLE / bit-packing hybrid.

use bytemuck::Pod;

use super::hybrid::{Hybrid, repeat};
use super::plain::{Plain, PlainBooleans, PlainByteArrays};
use super::{BATCH, bytes_of, fault};
use crate::buffer::grow;
use crate::error::{EncodingFault, Error, Limit, Part};
use crate::input::Input;
use crate::kernels::Kernels;
use crate::limits::Limits;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::options::Options;
use crate::parquet::payload::PhysicalType;

const WIDTH: Part = Part::Values("", "bit width");
const INDEX: Part = Part::Values("", "index");

/// Bytes of an entry up to which room is made for as many to each value, and bytes that kernels copy too many.
const SHORT: usize = 256;
const MORE: usize = 64;

/// The values of a dictionary page. Keeps its memory; read the dictionaries of all chunks into the same.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    len: usize,
    /// 0: values of any length.
    width: usize,
    /// Values of a fixed width, in words so that they are aligned.
    words: Vec<u64>,
    values: ByteArrays,
    /// Bytes of the longest of these.
    longest: usize,
}

impl Dictionary {
    /// No values.
    pub fn new() -> Dictionary {
        Dictionary::default()
    }

    /// Reads a dictionary page of `count` values of `width` bytes.
    ///
    /// # Errors
    /// Those of [`Plain`], or more than the limits allow.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn read_fixed(&mut self, input: Input<'_>, count: usize, width: usize, options: &Options) -> Result<(), Error> {
        let mut plain = Plain::new(input, count, width, options)?;
        plain.decode(self.fixed(count, width, &options.limits)?)?;
        plain.finish().map(drop)
    }

    /// Reads a dictionary page of `count` truth values.
    ///
    /// # Errors
    /// Those of [`PlainBooleans`], or more than the limits allow.
    pub fn read_booleans(&mut self, input: Input<'_>, count: usize, options: &Options) -> Result<(), Error> {
        let mut plain = PlainBooleans::new(input, count, options)?;
        plain.decode(self.fixed(count, 1, &options.limits)?)?;
        plain.finish().map(drop)
    }

    /// Reads a dictionary page of `count` values of any length.
    ///
    /// # Errors
    /// Those of [`PlainByteArrays`], or more than the limits allow.
    pub fn read_byte_arrays(&mut self, input: Input<'_>, count: usize, options: &Options) -> Result<(), Error> {
        let mut plain = PlainByteArrays::new(input, count, options)?;
        (self.len, self.width) = (0, 0);
        self.values.clear();
        plain.decode(count, &mut self.values)?;
        self.values.pad(MORE)?;
        self.longest = self.values.iter().map(<[u8]>::len).max().unwrap_or(0);
        self.len = count;
        plain.finish().map(drop)
    }

    /// Reads a dictionary page of this type to its end, which tells how many values there are; of truth values eight times
    /// as many as bytes.
    ///
    /// # Errors
    /// Those of the decoders of PLAIN; bytes that are no whole number of values.
    pub fn read_whole(&mut self, input: Input<'_>, kind: PhysicalType, options: &Options) -> Result<(), Error> {
        let bytes = input.bytes().len();
        match kind.width() {
            Some(width) => self.read_fixed(input, bytes / width, width, options),
            None if kind == PhysicalType::Boolean => self.read_booleans(input, bytes.saturating_mul(8), options),
            None => self.read_byte_arrays(input, PlainByteArrays::count(input, options)?, options),
        }
    }

    /// Room for values of a fixed width.
    fn fixed(&mut self, count: usize, width: usize, limits: &Limits) -> Result<&mut [u8], Error> {
        let needed = (count * width) as u64;
        Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, Part::Values("", "dictionary"))?;
        (self.len, self.width) = (count, width);
        grow(&mut self.words, (count * width).div_ceil(8))?;
        Ok(&mut bytemuck::cast_slice_mut(&mut self.words)[..count * width])
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of a value, if all have as many. Truth values have one.
    pub fn width(&self) -> Option<usize> {
        (self.width > 0).then_some(self.width)
    }

    /// The bytes of its values, if they have a fixed width.
    pub fn bytes(&self) -> Option<&[u8]> {
        (self.width > 0).then(|| self.table())
    }

    /// Its values, if they have any length.
    pub fn byte_arrays(&self) -> Option<&ByteArrays> {
        (self.width == 0).then_some(&self.values)
    }

    /// Looks up entries of a fixed width. Returns the place of the first index that is outside.
    fn gather(&self, kernels: Kernels, indices: &[u32], out: &mut [u8]) -> Option<usize> {
        if self.width == 4
            && let Ok(out) = bytemuck::try_cast_slice_mut(out)
        {
            return kernels.gather_u32(self.table(), indices, out);
        }
        if self.width == 8
            && let Ok(out) = bytemuck::try_cast_slice_mut(out)
        {
            return kernels.gather_u64(self.table(), indices, out);
        }
        kernels.gather_bytes(self.table(), self.width, indices, out)
    }

    fn table<T: Pod>(&self) -> &[T] {
        &bytemuck::cast_slice(&self.words)[..self.len * self.width / size_of::<T>()]
    }
}

/// Indices, and the values that they mean.
#[derive(Clone, Debug)]
pub struct DictionaryIndices<'a> {
    pub(crate) indices: Hybrid<'a>,
    dictionary: &'a Dictionary,
    count: usize,
    options: Options,
}

impl<'a> DictionaryIndices<'a> {
    /// `count` values. Without values there may be nothing at all.
    ///
    /// # Errors
    /// Truncated, or a width above 32.
    pub fn new(
        input: Input<'a>,
        count: usize,
        dictionary: &'a Dictionary,
        options: &Options,
    ) -> Result<DictionaryIndices<'a>, Error> {
        let mut rest = input;
        let width = if count == 0 && input.bytes().is_empty() { 0 } else { rest.byte(WIDTH)? };
        if width > 32 {
            let kind = EncodingFault::BitWidth { found: width.into(), max: 32 };
            return Err(fault(kind, WIDTH).at(input.offset()));
        }
        let indices = Hybrid::new(rest, count, width.into(), options)?;
        Ok(DictionaryIndices { indices, dictionary, count, options: *options })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.indices.remaining()
    }

    /// Bits of an index.
    pub fn width(&self) -> u32 {
        self.indices.width()
    }

    /// The error of an index outside, `i` values behind where `before` stands.
    #[cold]
    fn outside(&self, before: &Hybrid<'a>, i: usize, found: u32) -> Error {
        let kind = EncodingFault::Index { found, entries: self.dictionary.len as u64 };
        let index = self.count - before.remaining() + i;
        fault(kind, INDEX).at(before.clone().body_of(i)).index(index as u64)
    }

    /// The next indices themselves, for a result that keeps the dictionary.
    ///
    /// # Errors
    /// Those of [`Hybrid::decode`], or an index past the dictionary.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for.
    pub fn decode_indices(&mut self, out: &mut [u32]) -> Result<(), Error> {
        for out in out.chunks_mut(BATCH) {
            let before = self.indices.clone();
            self.indices.decode(out)?;
            let largest = out.iter().fold(0, |largest, &index| largest.max(index));
            if largest as usize >= self.dictionary.len
                && let Some(i) = out.iter().position(|&index| index as usize >= self.dictionary.len)
            {
                return Err(self.outside(&before, i, out[i]));
            }
        }
        Ok(())
    }

    /// The next values of a dictionary of a fixed width.
    ///
    /// # Errors
    /// As [`DictionaryIndices::decode_indices`].
    ///
    /// # Panics
    /// If there are fewer than `out` has room for, it holds no whole number of them, or the dictionary's values have any
    /// length.
    pub fn decode<T: Pod>(&mut self, out: &mut [T]) -> Result<(), Error> {
        let (dictionary, kernels) = (self.dictionary, self.options.kernels);
        let width = dictionary.width;
        assert!(width > 0, "values of any length");
        let (mut out, n) = bytes_of(out, width);
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let (before, mut done, mut indices) = (self.indices.clone(), 0, [0; BATCH]);
        while done < n {
            let these = if let Some((index, these)) = self.indices.take_repeated(n - done)? {
                let entry = (index as usize).checked_mul(width).and_then(|at| dictionary.table().get(at..at + width));
                repeat_bytes(entry.ok_or_else(|| self.outside(&before, done, index))?, these, out);
                these
            } else {
                let indices = &mut indices[..self.indices.left_of_run()?.min(n - done).min(BATCH)];
                self.indices.decode(indices)?;
                if let Some(i) = dictionary.gather(kernels, indices, &mut out[..indices.len() * width]) {
                    return Err(self.outside(&before, done + i, indices[i]));
                }
                indices.len()
            };
            out = &mut out[these * width..];
            done += these;
        }
        Ok(())
    }

    /// Bytes of the next `n` values.
    ///
    /// # Errors
    /// As [`DictionaryIndices::decode_indices`], where values may have any length.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn size(&self, n: usize) -> Result<u64, Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let Some(values) = self.dictionary.byte_arrays() else {
            return Ok((n as u64).saturating_mul(self.dictionary.width as u64));
        };
        let (mut walk, mut indices, mut left, mut total) = (self.clone(), [0; BATCH], n, 0);
        while left > 0 {
            let indices = &mut indices[..left.min(BATCH)];
            walk.decode_indices(indices)?;
            total += indices.iter().map(|&index| values.span(index as usize).len() as u64).sum::<u64>();
            left -= indices.len();
        }
        Ok(total)
    }

    /// Appends the next `n` values of a dictionary of any length to `out`.
    ///
    /// # Errors
    /// As [`DictionaryIndices::decode_indices`], or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer, or the dictionary's values have a fixed width.
    pub fn decode_byte_arrays(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let values = self.dictionary.byte_arrays().expect("values of any length");
        let offsets: &[u32] = bytemuck::cast_slice(values.offsets());
        if self.dictionary.longest <= SHORT {
            return self.short_byte_arrays(n, values, offsets, out);
        }
        let (starts_of, ends_of, kernels) = (&offsets[..values.len()], &offsets[1..], self.options.kernels);
        let (mut indices, mut starts, mut lengths) = ([0; BATCH], [0; BATCH], [0; BATCH]);
        let mut left = n;
        while left > 0 {
            let len = left.min(BATCH);
            let (indices, starts, lengths) = (&mut indices[..len], &mut starts[..len], &mut lengths[..len]);
            let before = self.indices.clone();
            self.indices.decode(indices)?;
            if let Some(i) = kernels.gather_u32(starts_of, indices, starts) {
                return Err(self.outside(&before, i, indices[i]));
            }
            kernels.gather_u32(ends_of, indices, lengths);
            for (length, start) in lengths.iter_mut().zip(&*starts) {
                *length -= start;
            }
            let to = out.extend(kernels, lengths, &self.options.limits, INDEX)?;
            kernels.spans(values.bytes(), starts, lengths, to);
            left -= len;
        }
        Ok(())
    }

    /// The same from a dictionary without long entries: one pass writes offsets and bytes.
    fn short_byte_arrays(
        &mut self,
        n: usize,
        values: &ByteArrays,
        offsets: &[u32],
        out: &mut ByteArrays,
    ) -> Result<(), Error> {
        let Options { kernels, limits, .. } = self.options;
        let (mut indices, mut left) = ([0; BATCH], n);
        while left > 0 {
            let indices = &mut indices[..left.min(BATCH)];
            let before = self.indices.clone();
            self.indices.decode(indices)?;
            let most = indices.len() * self.dictionary.longest + MORE;
            let (start, ends, bytes) = out.room(indices.len(), most, &limits, INDEX)?;
            let seen = kernels.entries(values.bytes_and(MORE), offsets, indices, start, ends, bytes);
            if seen.done < indices.len() {
                if let Some(i) = indices.iter().position(|&index| index as usize >= self.dictionary.len) {
                    return Err(self.outside(&before, i, indices[i]));
                }
                // Then the limits have left no room.
                let total = indices.iter().map(|&index| values.span(index as usize).len() as u64).sum();
                out.append(indices.len(), total, &limits, INDEX)?;
            } else {
                out.keep(indices.len());
            }
            left -= indices.len();
        }
        Ok(())
    }

    /// Passes over the next `n` values. Whether the dictionary has them is not looked at.
    ///
    /// # Errors
    /// Those of [`Hybrid::skip`].
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        self.indices.skip(n)
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`DictionaryIndices::skip`], or bytes follow the last run.
    pub fn finish(self) -> Result<u64, Error> {
        self.indices.finish()
    }
}

/// Fills the first of `out` with `n` copies of a value.
fn repeat_bytes(value: &[u8], n: usize, out: &mut [u8]) {
    match value.len() {
        1 => repeat(value[0], n, out),
        4 => repeat_words::<4, u32>(value, n, out),
        8 => repeat_words::<8, u64>(value, n, out),
        width => out.chunks_exact_mut(width).take(n).for_each(|out| out.copy_from_slice(value)),
    }
}

fn repeat_words<const N: usize, T: Pod>(value: &[u8], n: usize, out: &mut [u8]) {
    let array: [u8; N] = value.try_into().unwrap_or([0; N]);
    match bytemuck::try_cast_slice_mut::<_, T>(out) {
        Ok(out) => repeat(bytemuck::pod_read_unaligned(&array), n, out),
        Err(_) => repeat(array, n, out.as_chunks_mut().0),
    }
}

/// The bits that an index into so many entries needs.
#[cfg(feature = "encode")]
pub const fn index_width(entries: usize) -> u32 {
    usize::BITS - entries.saturating_sub(1).leading_zeros()
}

/// Appends indices of `width` bits behind a byte that says so.
///
/// # Panics
/// If an index has more bits, or `width` is above 32.
#[cfg(feature = "encode")]
pub fn encode_indices(indices: &[u32], width: u32, out: &mut Vec<u8>) {
    out.push(u8::try_from(width).expect("32 bits at most"));
    super::hybrid::encode(indices, width, out);
}
