//! The RLE / bit-packing hybrid: levels, truth values, indices.
//!
//! Source: Parquet format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid". A section is a sequence of runs. Each
//! starts with a varint, whose lowest bit tells a packed run (of so many eights of numbers) from a repeated number (so
//! often), which follows in whole bytes.

use super::{Slot, fault, finish, unpack_from};
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::packed_len;
use crate::parquet::options::{Leniency, Options};

/// Values of a run at most.
const LONGEST: u64 = i32::MAX as u64;

const RUN: Part = Part::Values("", "run");

/// A run. Its values are not cut to those that the page has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run<'a> {
    Repeated { value: u32, values: usize },
    Packed { body: &'a [u8], values: usize },
}

/// What a run is and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) run: Run<'a>,
    /// Absolute offset of its header.
    pub(crate) start: u64,
}

/// Numbers of a width that is known from outside.
#[derive(Clone, Debug)]
pub struct Hybrid<'a> {
    input: Input<'a>,
    width: u32,
    remaining: usize,
    /// What is left of the run at hand: its values from `at` on.
    run: Run<'a>,
    at: usize,
    /// Absolute offset of its body.
    body: u64,
    options: Options,
}

impl<'a> Hybrid<'a> {
    /// `count` numbers of `width` bits in a bare sequence of runs, as dictionary indices behind their width byte and the
    /// levels of version 2 pages are.
    ///
    /// # Errors
    /// A width above 32.
    pub fn new(input: Input<'a>, count: usize, width: u32, options: &Options) -> Result<Hybrid<'a>, Error> {
        if width > 32 {
            let part = Part::Values("", "bit width");
            return Err(fault(EncodingFault::BitWidth { found: width, max: 32 }, part).at(input.offset()));
        }
        let run = Run::Repeated { value: 0, values: 0 };
        Ok(Hybrid { input, width, remaining: count, run, at: 0, body: input.offset(), options: *options })
    }

    /// `count` numbers of `width` bits in runs behind their length in bytes, as truth values and the levels of version 1
    /// pages are. Takes them from `input`; without values there may be nothing at all.
    ///
    /// # Errors
    /// Truncated, or a width above 32.
    pub fn with_length(
        input: &mut Input<'a>,
        count: usize,
        width: u32,
        options: &Options,
    ) -> Result<Hybrid<'a>, Error> {
        if count == 0 && input.bytes().is_empty() {
            return Hybrid::new(*input, 0, width, options);
        }
        let part = Part::Values("", "length");
        let length = input.u32(part)?;
        let start = input.offset();
        let runs = input.take(length.into(), part)?;
        Hybrid::new(Input::at(runs, start), count, width, options)
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    pub(crate) fn leniency(&self) -> Leniency {
        self.options.leniency
    }

    /// Where the run behind the one at hand starts.
    pub(crate) fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Bits of a number.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The next run, if there are values left. The one at hand must have been used up.
    pub(crate) fn next_run(&mut self) -> Result<Option<Placed<'a>>, Error> {
        while self.remaining > 0 {
            let start = self.input.offset();
            let header = self.input.uleb(64, RUN)?;
            let body = self.input.offset();
            let repeated = header & 1 == 0;
            let found = if repeated { header >> 1 } else { (header >> 1).saturating_mul(8) };
            if found > LONGEST {
                return Err(fault(EncodingFault::RunTooLong { found, max: LONGEST }, RUN).at(start));
            }
            let values = usize::try_from(found).unwrap_or(usize::MAX);
            let run = if repeated {
                Run::Repeated { value: self.repeated()?, values }
            } else {
                Run::Packed { body: self.packed(values)?, values }
            };
            if values == 0 {
                if !self.options.leniency.empty_runs {
                    return Err(fault(EncodingFault::EmptyRun, RUN).at(start));
                }
                continue;
            }
            (self.run, self.at, self.body) = (run, 0, body);
            return Ok(Some(Placed { run, start }));
        }
        Ok(None)
    }

    fn repeated(&mut self) -> Result<u32, Error> {
        let start = self.input.offset();
        let four = self.input.bytes().first_chunk();
        let bytes = self.input.take(self.width.div_ceil(8).into(), RUN)?;
        let found = match four {
            Some(four) => {
                u32::from_le_bytes(*four) & u32::MAX.checked_shr(32 - self.width.div_ceil(8) * 8).unwrap_or(0)
            }
            None => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)),
        };
        if u64::from(found) >> self.width != 0 && !self.options.leniency.wide_runs {
            return Err(fault(EncodingFault::Width { found, width: self.width }, RUN).at(start));
        }
        Ok(found)
    }

    fn packed(&mut self, values: usize) -> Result<&'a [u8], Error> {
        let whole = packed_len(values, self.width as usize) as u64;
        let present = self.input.bytes().len();
        // Some writers cut the last run behind the bytes that its values need.
        let cut = values >= self.remaining && present >= packed_len(self.remaining, self.width as usize);
        self.input.take(if cut { whole.min(present as u64) } else { whole }, RUN)
    }

    /// Values that the run at hand has left of those that the page has.
    fn left(&self) -> usize {
        let (Run::Repeated { values, .. } | Run::Packed { values, .. }) = self.run;
        (values - self.at).min(self.remaining)
    }

    fn advance(&mut self, n: usize) {
        self.at += n;
        self.remaining -= n;
    }

    /// Values left of the run at hand or, after its end, of the next one.
    pub(crate) fn left_of_run(&mut self) -> Result<usize, Error> {
        if self.left() == 0 {
            self.next_run()?;
        }
        Ok(self.left())
    }

    /// The next values.
    ///
    /// # Errors
    /// Truncated, a run that is empty or too long, or a repeated number that its width or `T` cannot hold.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for, or the width is above that of `T`.
    pub fn decode<T: Slot>(&mut self, out: &mut [T]) -> Result<(), Error> {
        assert!(out.len() <= self.remaining, "{} of {} values", out.len(), self.remaining);
        assert!(self.width <= T::BITS, "{} bits of {}", self.width, T::BITS);
        let mut out = out;
        while !out.is_empty() {
            let n = self.left_of_run()?.min(out.len());
            match self.run {
                Run::Repeated { value, .. } => repeat(self.narrow(value)?, n, out),
                Run::Packed { body, .. } => unpack_from(self.options.kernels, body, self.width, self.at, &mut out[..n]),
            }
            self.advance(n);
            out = &mut out[n..];
        }
        Ok(())
    }

    fn narrow<T: Slot>(&self, value: u32) -> Result<T, Error> {
        let kind = EncodingFault::Width { found: value, width: T::BITS };
        T::from_u32(value).ok_or_else(|| fault(kind, RUN).at(self.body))
    }

    /// If the next values are all the same, that value and their number, `most` at most.
    pub(crate) fn take_repeated(&mut self, most: usize) -> Result<Option<(u32, usize)>, Error> {
        let n = self.left_of_run()?.min(most);
        match self.run {
            Run::Repeated { value, .. } => {
                self.advance(n);
                Ok(Some((value, n)))
            }
            Run::Packed { .. } => Ok(None),
        }
    }

    /// Where the body of the run lies that holds value `n` from here on.
    pub(crate) fn body_of(mut self, n: usize) -> u64 {
        match self.skip(n).and_then(|()| self.left_of_run()) {
            Ok(_) => self.body,
            // The caller has decoded that far.
            Err(error) => error.offset().unwrap_or(self.body),
        }
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// Truncated, or a run that is empty or too long.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        let mut n = n;
        while n > 0 {
            let these = self.left_of_run()?.min(n);
            self.advance(these);
            n -= these;
        }
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`Hybrid::skip`], or bytes follow the last run.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining)?;
        finish(self.input, &self.options.leniency)
    }
}

/// Fills the first `n` values of `out`. Most runs are short: a block is stored where there is room for one, and what
/// follows writes over what was too much.
#[inline]
pub(crate) fn repeat<T: Copy>(value: T, n: usize, out: &mut [T]) {
    match out.first_chunk_mut::<16>() {
        Some(block) if n <= 16 => *block = [value; 16],
        _ => out[..n].fill(value),
    }
}

/// Values of a packed run that [`encode`] appends at most: as many as a header of one byte can state.
#[cfg(feature = "encode")]
const PACKED: usize = 63 * 8;

/// Appends a sequence of runs: eight and more of a number are repeated, the others packed, 504 at most in a run, as
/// writers do.
///
/// # Panics
/// If a number has more bits than `width`, or `width` is above 32.
#[cfg(feature = "encode")]
pub fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    assert!(width <= 32 && values.iter().all(|&value| u64::from(value) >> width == 0), "{width} bits");
    let same = |from: usize| values[from..].iter().take_while(|&&value| value == values[from]).count();
    let mut at = 0;
    while at < values.len() {
        let repeated = same(at);
        if repeated >= 8 {
            super::push_uleb(repeated as u64 * 2, out);
            out.extend_from_slice(&values[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            at += repeated;
            continue;
        }
        // Eights, up to one that starts a run worth repeating.
        let mut end = at;
        while end < values.len() && end - at < PACKED && same(end) < 8 {
            end += 8;
        }
        let groups = (end - at) / 8;
        super::push_uleb(groups as u64 * 2 + 1, out);
        let packed = &values[at..end.min(values.len())];
        let padding = std::iter::repeat_n(0, end - at - packed.len());
        super::pack(packed.iter().map(|&value| value.into()).chain(padding), width, out);
        at = end;
    }
}

/// Appends a sequence of runs behind its length.
///
/// # Panics
/// As [`encode`], or if it has 4 GiB or more.
#[cfg(feature = "encode")]
pub fn encode_with_length(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    encode(values, width, out);
    let length = u32::try_from(out.len() - start - 4).expect("less than 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
