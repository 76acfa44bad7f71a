//! DELTA_BINARY_PACKED: INT32 and INT64 as differences.
//!
//! Source: Parquet format, Encodings.md, "Delta Encoding". A header of varints: values of a block, miniblocks of a block,
//! values in all, the first value. Then blocks: the smallest difference, a width for every miniblock, and those miniblocks
//! that hold values, whole, with each difference less the smallest in so many bits. Sums wrap.

use bytemuck::Pod;

use super::{Sealed, fault, finish, unpack_from};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::Kernels;
use crate::parquet::options::{Leniency, Options};

/// The integers that are stored as differences.
pub trait Delta: Pod + Sealed + std::fmt::Display {
    /// Bits of the type.
    const BITS: u32;
    #[doc(hidden)]
    fn deltas(
        kernels: Kernels,
        packed: &[u8],
        widths: &[u8],
        per: usize,
        least: Self,
        before: Self,
        out: &mut [Self],
    ) -> Self;
    #[doc(hidden)]
    fn from_i64(value: i64) -> Option<Self>;
    #[doc(hidden)]
    fn cut(value: i64) -> Self;
    #[doc(hidden)]
    fn widen(self) -> i64;
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
}

macro_rules! delta {
    ($($int:ty, $word:ty: $deltas:ident),*) => {$(
        impl Delta for $int {
            const BITS: u32 = <$int>::BITS;
            #[inline]
            fn deltas(
                kernels: Kernels,
                packed: &[u8],
                widths: &[u8],
                per: usize,
                least: $int,
                before: $int,
                out: &mut [$int],
            ) -> $int {
                let out: &mut [$word] = bytemuck::cast_slice_mut(out);
                let (least, before) = (least.cast_unsigned(), before.cast_unsigned());
                kernels.$deltas(packed, widths, per, least, before, out).cast_signed()
            }
            #[inline]
            fn from_i64(value: i64) -> Option<$int> {
                value.try_into().ok()
            }
            #[allow(clippy::cast_possible_truncation, reason = "cut on purpose")]
            #[inline]
            fn cut(value: i64) -> $int {
                value as $int
            }
            #[inline]
            fn widen(self) -> i64 {
                self.into()
            }
            #[inline]
            fn plus(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
        }
    )*};
}
delta!(i32, u32: deltas_u32, i64, u64: deltas_u64);

/// What the header states, after its checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) block: u64,
    pub(crate) miniblocks: u64,
    /// Values of a miniblock.
    per: u64,
    pub(crate) total: u64,
    pub(crate) first: i64,
}

/// The parts of a stream, by which its errors and steps are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) header: Part,
    block: Part,
    miniblock: Part,
}

impl Parts {
    pub(crate) const fn of(stream: &'static str) -> Parts {
        let [header, block, miniblock] = ["header", "block", "miniblock"];
        Parts {
            header: Part::Values(stream, header),
            block: Part::Values(stream, block),
            miniblock: Part::Values(stream, miniblock),
        }
    }
}

impl Header {
    fn read(input: &mut Input<'_>, leniency: &Leniency, part: Part) -> Result<Header, Error> {
        let start = input.offset();
        let block = input.uleb(if leniency.block_sizes { 64 } else { 32 }, part)?;
        let multiple = if leniency.block_sizes { 1 } else { 128 };
        if block == 0 || !block.is_multiple_of(multiple) {
            return Err(fault(EncodingFault::BlockSize { found: block }, part).at(start));
        }
        let start = input.offset();
        let mut miniblocks = input.uleb(32, part)?;
        if miniblocks == 0 {
            if !leniency.no_miniblocks {
                return Err(fault(EncodingFault::NoMiniblocks, part).at(start));
            }
            miniblocks = 1;
        }
        let per = block / miniblocks;
        let multiple = if leniency.block_sizes { 1 } else { 32 };
        // What fits no address cannot be counted here.
        if !block.is_multiple_of(miniblocks)
            || per == 0
            || !per.is_multiple_of(multiple)
            || usize::try_from(per).is_err()
        {
            return Err(fault(EncodingFault::MiniblockSize { block, miniblocks }, part).at(start));
        }
        let total = input.uleb(32, part)?;
        let first = input.zigzag(part)?;
        Ok(Header { block, miniblocks, per, total, first })
    }
}

/// A block, and where its parts lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) start: u64,
    pub(crate) least: i64,
    /// Of all miniblocks, those without values too.
    pub(crate) widths: &'a [u8],
    /// The bodies of the miniblocks that hold values.
    pub(crate) body: &'a [u8],
    /// Absolute offset of `body`.
    pub(crate) body_start: u64,
    /// Values in this block.
    pub(crate) values: usize,
}

/// Values stored as differences.
#[derive(Clone, Debug)]
pub struct DeltaBinaryPacked<'a, T> {
    input: Input<'a>,
    header: Header,
    /// Absolute offset of the header.
    start: u64,
    parts: Parts,
    options: Options,
    /// Values of the page that are left.
    remaining: usize,
    /// Values that the stream holds behind the block at hand.
    behind: u64,
    /// The first value has not been given yet.
    first: bool,
    /// The value before the next one.
    before: T,
    least: T,
    /// What is left of the block at hand: widths from the miniblock at hand on, the values of that which are done, and the
    /// values left.
    widths: &'a [u8],
    /// All bytes from the miniblock at hand on: kernels are quicker where more follows than they need.
    body: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a, T: Delta> DeltaBinaryPacked<'a, T> {
    /// `count` values. Without values there may be nothing at all.
    ///
    /// # Errors
    /// Truncated, a header that the format does not allow, or another number of values.
    pub fn new(input: Input<'a>, count: usize, options: &Options) -> Result<DeltaBinaryPacked<'a, T>, Error> {
        DeltaBinaryPacked::stream(input, count, options, Parts::of(""), count == 0)
    }

    /// One of several streams, which may be `absent`, that is have no header.
    pub(crate) fn stream(
        mut input: Input<'a>,
        count: usize,
        options: &Options,
        parts: Parts,
        absent: bool,
    ) -> Result<DeltaBinaryPacked<'a, T>, Error> {
        let start = input.offset();
        let header = if absent && input.bytes().is_empty() {
            Header { block: 128, miniblocks: 4, per: 32, total: 0, first: 0 }
        } else {
            Header::read(&mut input, &options.leniency, parts.header)?
        };
        let remaining = if header.total == count as u64 {
            count
        } else if options.leniency.declared_counts {
            usize::try_from(header.total).unwrap_or(count).min(count)
        } else {
            let kind = EncodingFault::Count { found: header.total, expected: count as u64 };
            return Err(fault(kind, parts.header).at(start));
        };
        let before = Self::narrow(header.first, &options.leniency, parts.header, start)?;
        Ok(DeltaBinaryPacked {
            input,
            header,
            start,
            parts,
            options: *options,
            remaining,
            behind: header.total.saturating_sub(1),
            first: header.total > 0,
            before,
            least: T::zeroed(),
            widths: &[],
            body: &[],
            at: 0,
            left: 0,
        })
    }

    fn narrow(value: i64, leniency: &Leniency, part: Part, start: u64) -> Result<T, Error> {
        match T::from_i64(value) {
            Some(value) => Ok(value),
            None if leniency.wide_int32 => Ok(T::cut(value)),
            None => Err(fault(EncodingFault::Range { found: value }, part).at(start)),
        }
    }

    /// Values left. With [`Leniency::declared_counts`], as many as the section states may be fewer than asked for.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Where the next block, or what follows the stream, starts.
    pub(crate) fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Values of a miniblock.
    pub(crate) fn per(&self) -> usize {
        // Checked with the header.
        usize::try_from(self.header.per).unwrap_or(usize::MAX)
    }

    /// Takes the next block, if there is one. The one at hand must have been used up.
    pub(crate) fn next_block(&mut self) -> Result<Option<Block<'a>>, Error> {
        if self.behind == 0 {
            return Ok(None);
        }
        let start = self.input.offset();
        let least = self.input.zigzag(self.parts.block)?;
        self.least = Self::narrow(least, &self.options.leniency, self.parts.block, start)?;
        let widths_start = self.input.offset();
        let widths = self.input.take(self.header.miniblocks, self.parts.block)?;
        let body_start = self.input.offset();
        let values = self.behind.min(self.header.block);
        let max = if self.options.leniency.wide_int32 { 64 } else { T::BITS };
        let full = self.input.bytes();
        // Most blocks are full, and nothing is wrong with them.
        let (most, sum) = widths.iter().fold((0, 0), |(most, sum), &width| (width.max(most), sum + u64::from(width)));
        let whole = (self.header.per / 8).saturating_mul(sum);
        let sound = values == self.header.block
            && u32::from(most) <= max
            && self.header.per.is_multiple_of(8)
            && whole <= full.len() as u64;
        let len = if sound { whole } else { self.body_len(widths, widths_start, values, max)? };
        let body = self.input.take(len, self.parts.miniblock)?;
        self.behind -= values;
        // No more than the bytes present can hold, or than the caller asks for.
        let values = usize::try_from(values).unwrap_or(usize::MAX);
        (self.widths, self.body, self.at, self.left) = (widths, full, 0, values);
        Ok(Some(Block { start, least, widths, body, body_start, values }))
    }

    /// Bytes of the miniblocks of a block of so many values.
    fn body_len(&mut self, widths: &[u8], widths_start: u64, values: u64, max: u32) -> Result<u64, Error> {
        let full = self.input.bytes();
        // Only miniblocks that hold values have bodies, and widths that mean something.
        let (mut left, mut len) = (values, 0u64);
        for (i, &width) in widths.iter().enumerate() {
            if left == 0 {
                break;
            }
            let width = u32::from(width);
            if width > max {
                let kind = EncodingFault::BitWidth { found: width, max };
                return Err(fault(kind, self.parts.block).at(widths_start + i as u64));
            }
            if width > 0 && !self.header.per.is_multiple_of(8) {
                // Let pass so far, but where such a miniblock would end is anybody's guess.
                let Header { block, miniblocks, .. } = self.header;
                return Err(fault(EncodingFault::MiniblockSize { block, miniblocks }, self.parts.header).at(self.start));
            }
            let these = left.min(self.header.per);
            let mut bytes = (self.header.per / 8).saturating_mul(width.into());
            let present = full.len() as u64 - len;
            if bytes > present {
                let exact = (these / 8).saturating_mul(width.into()) + (these % 8 * u64::from(width)).div_ceil(8);
                let last = these == left && values == self.behind;
                if self.options.leniency.cut_miniblock && last && exact <= present {
                    bytes = present;
                } else {
                    self.input.take(len, self.parts.miniblock)?;
                    return Err(self.input.truncated(bytes, self.parts.miniblock));
                }
            }
            len += bytes;
            left -= these;
        }
        Ok(len)
    }

    /// The next values.
    ///
    /// # Errors
    /// Truncated, or a width or smallest difference that the type does not allow.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for.
    pub fn decode(&mut self, out: &mut [T]) -> Result<(), Error> {
        assert!(out.len() <= self.remaining, "{} of {} values", out.len(), self.remaining);
        self.remaining -= out.len();
        let mut out = out;
        if self.first && !out.is_empty() {
            self.first = false;
            out[0] = self.before;
            out = &mut out[1..];
        }
        while !out.is_empty() {
            if self.left == 0 {
                self.next_block()?;
            }
            let (these, rest) = out.split_at_mut(out.len().min(self.left));
            self.values(these);
            out = rest;
        }
        Ok(())
    }

    /// Values of the block at hand.
    fn values(&mut self, out: &mut [T]) {
        let per = self.per();
        self.left -= out.len();
        let kernels = self.options.kernels;
        let mut out = out;
        // The rest of a miniblock, and all where kernels do not know them.
        let odd = !per.is_multiple_of(32) || self.options.leniency.wide_int32;
        while !out.is_empty() && (self.at != 0 || odd) {
            let (these, rest) = out.split_at_mut(out.len().min(per - self.at));
            self.piece(these);
            out = rest;
        }
        if out.is_empty() {
            return;
        }
        self.before = T::deltas(kernels, self.body, self.widths, per, self.least, self.before, out);
        if self.left == 0 {
            self.at = 0;
            return;
        }
        let (whole, at) = (out.len() / per, out.len() % per);
        let used: usize = self.widths[..whole].iter().map(|&width| per / 8 * usize::from(width)).sum();
        self.at = at;
        self.widths = &self.widths[whole..];
        self.body = self.body.get(used..).unwrap_or(&[]);
    }

    /// Values of the miniblock at hand.
    fn piece(&mut self, out: &mut [T]) {
        let (per, width, kernels) = (self.per(), self.widths[0], self.options.kernels);
        let at = self.at;
        self.at += out.len();
        if u32::from(width) > T::BITS {
            let mut packed = [0u64; 64];
            for (i, out) in out.chunks_mut(64).enumerate() {
                let packed = &mut packed[..out.len()];
                unpack_from(kernels, self.body, width.into(), at + 64 * i, packed);
                for (out, packed) in out.iter_mut().zip(packed) {
                    self.before = self.before.plus(self.least).plus(T::cut(packed.cast_signed()));
                    *out = self.before;
                }
            }
        } else {
            // Kernels start at whole bytes: up to seven values before are unpacked once more.
            let inside = at % 8;
            let (head, rest) = out.split_at_mut(if inside == 0 { 0 } else { out.len().min(8 - inside) });
            let mut first = at / 8 * usize::from(width);
            if !head.is_empty() {
                let mut eight = [T::zeroed(); 8];
                let eight = &mut eight[..inside + head.len()];
                let zero = T::zeroed();
                let sum = T::deltas(kernels, &self.body[first..], &[width], 32, self.least, zero, eight);
                // Sums from the eight's start on; those of the values that are done are taken off.
                let done = eight[inside - 1].widen().wrapping_neg();
                let shift = self.before.plus(T::cut(done));
                for (out, value) in head.iter_mut().zip(&eight[inside..]) {
                    *out = value.plus(shift);
                }
                self.before = sum.plus(shift);
                first += usize::from(width);
            }
            if !rest.is_empty() {
                let run = rest.len().next_multiple_of(32);
                self.before = T::deltas(kernels, &self.body[first..], &[width], run, self.least, self.before, rest);
            }
        }
        if self.at == per {
            let used = per / 8 * usize::from(width);
            (self.at, self.widths, self.body) = (0, &self.widths[1..], self.body.get(used..).unwrap_or(&[]));
        }
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// As [`DeltaBinaryPacked::decode`].
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        if n == self.remaining {
            // Nobody needs the sums.
            while self.next_block()?.is_some() {}
            (self.remaining, self.left, self.first) = (0, 0, false);
            return Ok(());
        }
        let mut dropped = [T::zeroed(); 256];
        let mut n = n;
        while n > 0 {
            let these = n.min(dropped.len());
            self.decode(&mut dropped[..these])?;
            n -= these;
        }
        Ok(())
    }

    /// Where value `n` from here on is stored: its miniblock's body, or the header.
    pub(crate) fn place_of(mut self, n: usize) -> u64 {
        if self.first && n == 0 {
            return self.start;
        }
        // The caller has decoded that far.
        let found = self.skip(n).and_then(|()| if self.left == 0 { self.next_block().map(|_| ()) } else { Ok(()) });
        found.map_or(self.start, |()| self.input.end() - self.body.len() as u64)
    }

    /// What follows the stream, whose values need not have been taken.
    pub(crate) fn rest(mut self) -> Result<Input<'a>, Error> {
        while self.next_block()?.is_some() {}
        Ok(self.input)
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`DeltaBinaryPacked::decode`], or bytes follow the last miniblock.
    pub fn finish(self) -> Result<u64, Error> {
        let leniency = self.options.leniency;
        finish(self.rest()?, &leniency)
    }

    /// The differences of a block, for its trace: those of miniblock `m` that are values.
    pub(crate) fn deltas_of(&self, block: &Block<'a>, m: usize) -> Vec<i64> {
        let per = self.per();
        let from: usize = block.widths[..m].iter().map(|&width| per / 8 * usize::from(width)).sum();
        let mut packed = vec![0u64; per.min(block.values - m * per)];
        let width = block.widths[m].into();
        unpack_from(self.options.kernels, &block.body[from..], width, 0, &mut packed);
        packed.into_iter().map(|packed| block.least.wrapping_add(packed.cast_signed())).collect()
    }
}

/// The block and miniblocks that most writers choose for a type: 128 in 4 for INT32, 256 in 4 for INT64.
#[cfg(feature = "encode")]
pub const fn usual_block<T: Delta>() -> (usize, usize) {
    (if T::BITS == 32 { 128 } else { 256 }, 4)
}

/// Appends values, in blocks of `block` and so many miniblocks.
///
/// # Panics
/// If the format does not allow such blocks, or there are 2^32 values or more.
#[cfg(feature = "encode")]
pub fn encode<T: Delta>(values: &[T], (block, miniblocks): (usize, usize), out: &mut Vec<u8>) {
    assert!(block > 0 && block.is_multiple_of(128) && miniblocks > 0 && block.is_multiple_of(32 * miniblocks));
    assert!(u32::try_from(values.len()).is_ok(), "{} values", values.len());
    for field in [block, miniblocks, values.len()] {
        super::push_uleb(field as u64, out);
    }
    super::push_zigzag(values.first().map_or(0, |first| first.widen()), out);
    // Differences wrap to the type, and are signed.
    let deltas: Vec<i64> =
        values.windows(2).map(|two| T::cut(two[1].widen().wrapping_sub(two[0].widen())).widen()).collect();
    for block in deltas.chunks(block).map(|deltas| (deltas, block / miniblocks)) {
        let (deltas, per) = block;
        let least = deltas.iter().copied().min().unwrap_or(0);
        let mask = u64::MAX >> (64 - T::BITS);
        let excess: Vec<u64> = deltas.iter().map(|delta| delta.wrapping_sub(least).cast_unsigned() & mask).collect();
        let bits = |mini: &[u64]| mini.iter().map(|excess| 64 - excess.leading_zeros()).max().unwrap_or(0);
        super::push_zigzag(least, out);
        let widths: Vec<u32> = excess.chunks(per).map(bits).collect();
        out.extend((0..miniblocks).map(|m| widths.get(m).map_or(0, |&width| u8::try_from(width).unwrap_or(64))));
        for (mini, &width) in excess.chunks(per).zip(&widths) {
            let padding = std::iter::repeat_n(0, per - mini.len());
            super::pack(mini.iter().copied().chain(padding), width, out);
        }
    }
}
