//! Values of any length: offsets and bytes.

use std::ops::Range;

use crate::buffer::grow;
use crate::error::{Error, Limit, Part};
use crate::kernels::{Kernels, LengthsSeen};
use crate::limits::Limits;

/// Values of any length, behind each other: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
///
/// It keeps its memory over [`ByteArrays::clear`]; hand it to every decode. Offsets are those of Arrow's `Utf8` and
/// `Binary`, so it holds less than 2 GiB: take values in batches, and clear it between them.
#[derive(Clone, Debug)]
pub struct ByteArrays {
    /// The offsets in use are the first `len + 1`; what lies behind is kept so that it need not be zeroed again.
    offsets: Vec<i32>,
    len: usize,
    /// The bytes in use are the first `offsets[len]`.
    bytes: Vec<u8>,
}

impl Default for ByteArrays {
    fn default() -> ByteArrays {
        ByteArrays { offsets: vec![0], len: 0, bytes: Vec::new() }
    }
}

impl ByteArrays {
    /// No values.
    pub fn new() -> ByteArrays {
        ByteArrays::default()
    }

    /// Values that are there already, for encoders and dictionaries.
    ///
    /// # Panics
    /// If they have 2 GiB or more.
    pub fn from_values<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> ByteArrays {
        let mut arrays = ByteArrays::new();
        for value in values {
            arrays.bytes.extend_from_slice(value.as_ref());
            arrays.offsets.push(i32::try_from(arrays.bytes.len()).expect("less than 2 GiB"));
            arrays.len += 1;
        }
        arrays
    }

    /// Forgets the values, and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where values start, and in the end where the last one ends: one more than values, from 0.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets[..=self.len]
    }

    /// The bytes of all values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..at(self.offsets[self.len])]
    }

    /// The bytes of value `i`.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.span(i)]
    }

    /// Where value `i` lies in [`ByteArrays::bytes`].
    pub(crate) fn span(&self, i: usize) -> Range<usize> {
        let offsets = &self.offsets()[i..i + 2];
        at(offsets[0])..at(offsets[1])
    }

    /// The values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len).map(|i| self.get(i))
    }

    /// Offsets and bytes, for Arrow.
    pub fn into_parts(mut self) -> (Vec<i32>, Vec<u8>) {
        let bytes = self.bytes().len();
        self.bytes.truncate(bytes);
        self.offsets.truncate(self.len + 1);
        (self.offsets, self.bytes)
    }

    /// Makes room for `more` values that are likely to follow, of at most `bytes` bytes in all and as long as those before.
    /// That there is no memory for it is no error.
    #[cfg(feature = "parquet-files")]
    pub(crate) fn expect(&mut self, more: usize, bytes: usize) {
        let offsets = (self.len + 1).saturating_add(more.min(bytes / 4)).saturating_sub(self.offsets.len());
        let _ = self.offsets.try_reserve(offsets);
        let used = self.bytes().len();
        let likely = (used as u128 * more as u128 * 17 / (16 * self.len.max(1)) as u128).min(bytes as u128);
        let end = used.saturating_add(usize::try_from(likely).unwrap_or(0)).min(i32::MAX as usize);
        let _ = self.bytes.try_reserve(end.saturating_sub(self.bytes.len()));
    }

    /// Makes room for values of such lengths and notes where they end; [`ByteArrays::append`] must follow. Lengths may be
    /// anything: the caller judges them by what is returned.
    pub(crate) fn lay_out(
        &mut self,
        kernels: Kernels,
        lengths: &[u32],
        limits: &Limits,
        part: Part,
    ) -> Result<LengthsSeen, Error> {
        let start = self.offsets[self.len].cast_unsigned();
        let len = self.len + lengths.len();
        let needed = u64::from(start) + 4 * (len as u64 + 1);
        Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, part)?;
        grow(&mut self.offsets, len + 1)?;
        let offsets: &mut [u32] = bytemuck::cast_slice_mut(&mut self.offsets[self.len + 1..=len]);
        Ok(kernels.offsets_u32(lengths, start, offsets))
    }

    /// Appends the `n` values that were laid out, `total` bytes in all. Their bytes are returned, to be filled.
    pub(crate) fn append(&mut self, n: usize, total: u64, limits: &Limits, part: Part) -> Result<&mut [u8], Error> {
        let start = at(self.offsets[self.len]);
        let (len, end) = (self.len + n, start as u64 + total);
        let needed = end + 4 * (len as u64 + 1);
        Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, part)?;
        Limits::check(end, i32::MAX as u64, Limit::OutputBytes, part)?;
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        grow(&mut self.bytes, end)?;
        self.len = len;
        Ok(&mut self.bytes[start..end])
    }

    /// Room for `n` values of `most` bytes in all at most, or of fewer where the limits allow no more: where the first of
    /// them starts, their ends, their bytes. [`ByteArrays::keep`] says how many bytes they took.
    pub(crate) fn room(
        &mut self,
        n: usize,
        most: usize,
        limits: &Limits,
        part: Part,
    ) -> Result<(u32, &mut [u32], &mut [u8]), Error> {
        let (start, len) = (at(self.offsets[self.len]), self.len + n);
        let offsets = 4 * (len as u64 + 1);
        Limits::check(start as u64 + offsets, limits.max_output_bytes, Limit::OutputBytes, part)?;
        let allowed = (limits.max_output_bytes - offsets).min(i32::MAX as u64) - start as u64;
        let most = most.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        grow(&mut self.offsets, len + 1)?;
        grow(&mut self.bytes, start + most)?;
        let ends = bytemuck::cast_slice_mut(&mut self.offsets[self.len + 1..=len]);
        Ok((u32::try_from(start).unwrap_or(u32::MAX), ends, &mut self.bytes[start..start + most]))
    }

    /// Appends the `n` values whose ends and bytes were written to [`ByteArrays::room`].
    pub(crate) fn keep(&mut self, n: usize) {
        self.len += n;
    }

    /// The bytes of all values and `more` behind them, which are any, for kernels that copy more than a value has.
    pub(crate) fn bytes_and(&self, more: usize) -> &[u8] {
        &self.bytes[..self.bytes.len().min(self.bytes().len() + more)]
    }

    /// Makes so many bytes behind the values.
    pub(crate) fn pad(&mut self, more: usize) -> Result<(), Error> {
        let end = self.bytes().len() + more;
        grow(&mut self.bytes, end)
    }

    /// Both, for lengths that are known to be sound.
    pub(crate) fn extend(
        &mut self,
        kernels: Kernels,
        lengths: &[u32],
        limits: &Limits,
        part: Part,
    ) -> Result<&mut [u8], Error> {
        let seen = self.lay_out(kernels, lengths, limits, part)?;
        self.append(lengths.len(), seen.total, limits, part)
    }
}

/// Offsets are not negative.
fn at(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

impl PartialEq for ByteArrays {
    fn eq(&self, other: &ByteArrays) -> bool {
        self.offsets() == other.offsets() && self.bytes() == other.bytes()
    }
}

impl Eq for ByteArrays {}
