//! ALP: FLOAT and DOUBLE as decimal numbers, with exceptions. A preview of the format: it may still change.
//!
//! Source: Parquet format, AlpEncoding.md (August 2026). A header, the offset of every vector, then vectors: how their
//! numbers are scaled, the integers less the smallest, packed, and those values that are no such number as they are.

use std::fmt::Debug;

use bytemuck::Pod;

use super::{Scratch, Sealed, Slot, fault, finish, unpack_from};
use crate::buffer::grow;
use crate::error::{EncodingFault, Error, Part};
use crate::input::Input;
use crate::kernels::{Kernels, packed_len};
use crate::parquet::options::Options;

const HEADER: Part = Part::Values("", "header");
const OFFSETS: Part = Part::Values("", "offsets");
const VECTOR: Part = Part::Values("", "vector");

/// FLOAT or DOUBLE.
pub trait Decimal: Pod + Sealed + PartialEq + Debug {
    /// The largest exponent.
    const MAX_EXPONENT: u8;
    #[doc(hidden)]
    type Packed: Slot;
    /// Scales `packed + base`, which wraps.
    #[doc(hidden)]
    fn scale(packed: &[Self::Packed], base: i64, exponent: u8, factor: u8, out: &mut [Self]);
    /// The integer that stands for a value, if scaling it gives the value to the bit.
    #[doc(hidden)]
    fn integer(self, exponent: u8, factor: u8) -> Option<i64>;
}

/// Integers of 32 bits times such powers are rounded once each, in the type's own precision.
macro_rules! decimal {
    ($float:ty, $int:ty, $word:ty, $max:literal, [$($up:literal),*], [$($down:literal),*]) => {
        impl Decimal for $float {
            const MAX_EXPONENT: u8 = $max;
            type Packed = $word;
            #[allow(clippy::cast_possible_truncation, reason = "the base was read as such an integer")]
            fn scale(packed: &[$word], base: i64, exponent: u8, factor: u8, out: &mut [$float]) {
                let (base, up, down) = (base as $int, UP[usize::from(factor)], DOWN[usize::from(exponent)]);
                for (out, packed) in out.iter_mut().zip(packed) {
                    *out = packed.cast_signed().wrapping_add(base) as $float * up * down;
                }
            }
            #[allow(clippy::cast_possible_truncation, reason = "a number that is cut does not scale back")]
            fn integer(self, exponent: u8, factor: u8) -> Option<i64> {
                let (e, f) = (usize::from(exponent), usize::from(factor));
                let integer = (self * UP[e] * DOWN[f]).round_ties_even() as $int;
                let back = integer as $float * UP[f] * DOWN[e];
                (back.to_bits() == self.to_bits()).then_some(integer.into())
            }
        }
        const UP: &[$float] = &[$($up),*];
        const DOWN: &[$float] = &[$($down),*];
    };
}

mod float {
    use super::Decimal;
    decimal!(
        f32,
        i32,
        u32,
        10,
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10],
        [1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10]
    );
}

mod double {
    use super::Decimal;
    decimal!(
        f64,
        i64,
        u64,
        18,
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18],
        [
            1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
            1e-16, 1e-17, 1e-18
        ]
    );
}

/// A vector, checked but for its exceptions' positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'a> {
    pub(crate) start: u64,
    pub(crate) exponent: u8,
    pub(crate) factor: u8,
    pub(crate) base: i64,
    pub(crate) width: u8,
    packed: &'a [u8],
    positions_start: u64,
    pub(crate) positions: &'a [[u8; 2]],
    exact: &'a [u8],
    pub(crate) values: usize,
}

/// FLOAT or DOUBLE.
#[derive(Debug)]
pub struct Alp<'a, 's> {
    pub(crate) vectors: Vectors<'a>,
    remaining: usize,
    /// The vector at hand, of which `at` values are done.
    current: Option<Vector<'a>>,
    at: usize,
    /// Its values stand in scratch.
    ready: bool,
    options: Options,
    scratch: &'s mut Scratch,
}

/// The walk over a section's vectors.
#[derive(Clone, Debug)]
pub(crate) struct Vectors<'a> {
    input: Input<'a>,
    /// Where offsets count from.
    origin: u64,
    pub(crate) offsets: &'a [[u8; 4]],
    next: usize,
    pub(crate) size: usize,
    pub(crate) count: usize,
    /// Bytes of a value.
    width: usize,
    max_exponent: u8,
}

impl<'a> Vectors<'a> {
    fn new<T: Decimal>(mut input: Input<'a>, count: usize) -> Result<Vectors<'a>, Error> {
        let empty = count == 0 && input.bytes().is_empty();
        for _ in 0..if empty { 0 } else { 2 } {
            let at = input.offset();
            let found = input.byte(HEADER)?;
            if found != 0 {
                return Err(fault(EncodingFault::AlpMode { found }, HEADER).at(at));
            }
        }
        let mut log = 10;
        if !empty {
            let at = input.offset();
            log = input.byte(HEADER)?;
            if !(3..=15).contains(&log) {
                return Err(fault(EncodingFault::AlpVectorSize { found: log }, HEADER).at(at));
            }
            let at = input.offset();
            let found = input.u32(HEADER)?.cast_signed();
            let kind = match u64::try_from(found) {
                Ok(stated) if stated == count as u64 => None,
                Ok(stated) => Some(EncodingFault::Count { found: stated, expected: count as u64 }),
                Err(_) => Some(EncodingFault::CountNegative { found: found.into() }),
            };
            if let Some(kind) = kind {
                return Err(fault(kind, HEADER).at(at));
            }
        }
        let size = 1usize << log;
        let origin = input.offset();
        let n = count.div_ceil(size) as u64;
        let offsets = input.take(4 * n, OFFSETS)?.as_chunks().0;
        let mut expected = 4 * n;
        for (i, &offset) in offsets.iter().enumerate() {
            let found = u64::from(u32::from_le_bytes(offset));
            // The first is known exactly, and so is each later one once the vector before it has been read.
            if found < expected || i == 0 && found > expected || origin + found > input.end() {
                return Err(fault(EncodingFault::AlpOffset { found, expected }, OFFSETS).at(origin + 4 * i as u64));
            }
            expected = found + 1;
        }
        let max_exponent = T::MAX_EXPONENT;
        Ok(Vectors { input, origin, offsets, next: 0, size, count, width: size_of::<T>(), max_exponent })
    }

    pub(crate) fn header_end(&self) -> u64 {
        self.origin
    }

    pub(crate) fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Takes the next vector, if there is one.
    pub(crate) fn next_vector(&mut self) -> Result<Option<Vector<'a>>, Error> {
        let Some(&offset) = self.offsets.get(self.next) else { return Ok(None) };
        let values = self.size.min(self.count - self.next * self.size);
        let start = self.input.offset();
        let (found, expected) = (u64::from(u32::from_le_bytes(offset)), start - self.origin);
        if found != expected {
            let at = self.origin + 4 * self.next as u64;
            return Err(fault(EncodingFault::AlpOffset { found, expected }, OFFSETS).at(at));
        }
        let exponent = self.scale(self.max_exponent)?;
        let factor = self.scale(exponent)?;
        let at = self.input.offset();
        let exceptions = u16::from_le_bytes(self.input.array(VECTOR)?);
        if usize::from(exceptions) > values {
            let values = u32::try_from(values).unwrap_or(u32::MAX);
            return Err(fault(EncodingFault::AlpException { found: exceptions.into(), values }, VECTOR).at(at));
        }
        let base = match self.width {
            4 => i32::from_le_bytes(self.input.array(VECTOR)?).into(),
            _ => i64::from_le_bytes(self.input.array(VECTOR)?),
        };
        let at = self.input.offset();
        let (width, max) = (self.input.byte(VECTOR)?, 8 * u32::try_from(self.width).unwrap_or(8));
        if u32::from(width) > max {
            return Err(fault(EncodingFault::BitWidth { found: width.into(), max }, VECTOR).at(at));
        }
        let packed = self.input.take(packed_len(values, width.into()) as u64, VECTOR)?;
        let positions_start = self.input.offset();
        let positions = self.input.take(2 * u64::from(exceptions), VECTOR)?.as_chunks().0;
        let exact = self.input.take(self.width as u64 * u64::from(exceptions), VECTOR)?;
        self.next += 1;
        Ok(Some(Vector { start, exponent, factor, base, width, packed, positions_start, positions, exact, values }))
    }

    fn scale(&mut self, max: u8) -> Result<u8, Error> {
        let at = self.input.offset();
        let found = self.input.byte(VECTOR)?;
        if found > max {
            return Err(fault(EncodingFault::AlpExponent { found, max }, VECTOR).at(at));
        }
        Ok(found)
    }
}

impl Vector<'_> {
    /// All values of the vector.
    fn decode<T: Decimal>(&self, kernels: Kernels, words: &mut Vec<u64>, out: &mut [T]) -> Result<(), Error> {
        grow(words, self.values)?;
        let packed: &mut [T::Packed] = &mut bytemuck::cast_slice_mut(words)[..self.values];
        unpack_from(kernels, self.packed, self.width.into(), 0, packed);
        T::scale(packed, self.base, self.exponent, self.factor, out);
        for (i, (position, exact)) in self.positions.iter().zip(self.exact.chunks_exact(size_of::<T>())).enumerate() {
            let position = u16::from_le_bytes(*position);
            let Some(out) = out.get_mut(usize::from(position)) else {
                let values = u32::try_from(self.values).unwrap_or(u32::MAX);
                let kind = EncodingFault::AlpException { found: position.into(), values };
                return Err(fault(kind, VECTOR).at(self.positions_start + 2 * i as u64));
            };
            *out = bytemuck::pod_read_unaligned(exact);
        }
        Ok(())
    }
}

impl<'a, 's> Alp<'a, 's> {
    /// `count` values of type `T`, which is that of all further calls.
    ///
    /// # Errors
    /// Truncated, a mode or vector size that is not known, another number of values, or offsets that are out of order.
    pub fn new<T: Decimal>(
        input: Input<'a>,
        count: usize,
        options: &Options,
        scratch: &'s mut Scratch,
    ) -> Result<Alp<'a, 's>, Error> {
        let vectors = Vectors::new::<T>(input, count)?;
        Ok(Alp { vectors, remaining: count, current: None, at: 0, ready: false, options: *options, scratch })
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// The next values. Batches of whole vectors take the shortest way.
    ///
    /// # Errors
    /// Truncated, or a vector that the format does not allow.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for, or `T` is not the type that `new` was given.
    pub fn decode<T: Decimal>(&mut self, out: &mut [T]) -> Result<(), Error> {
        assert!(out.len() <= self.remaining, "{} of {} values", out.len(), self.remaining);
        assert!(size_of::<T>() == self.vectors.width, "values of {} bytes", self.vectors.width);
        let (mut out, kernels) = (out, self.options.kernels);
        while !out.is_empty() {
            let Some(vector) = self.vector()? else { break };
            let n = out.len().min(vector.values - self.at);
            let (these, rest) = out.split_at_mut(n);
            if n == vector.values {
                vector.decode(kernels, &mut self.scratch.words, these)?;
            } else {
                grow(&mut self.scratch.values, vector.values)?;
                let values = &mut bytemuck::cast_slice_mut(&mut self.scratch.values)[..vector.values];
                if !self.ready {
                    vector.decode(kernels, &mut self.scratch.words, values)?;
                    self.ready = true;
                }
                these.copy_from_slice(&values[self.at..][..n]);
            }
            self.advance(n, vector.values);
            out = rest;
        }
        Ok(())
    }

    /// The vector at hand or, after its end, the next one.
    fn vector(&mut self) -> Result<Option<Vector<'a>>, Error> {
        if self.current.is_none() {
            self.current = self.vectors.next_vector()?;
        }
        Ok(self.current)
    }

    fn advance(&mut self, n: usize, values: usize) {
        self.remaining -= n;
        self.at += n;
        if self.at == values {
            (self.current, self.at, self.ready) = (None, 0, false);
        }
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// As [`Alp::decode`], but for positions of exceptions.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        assert!(n <= self.remaining, "{n} of {} values", self.remaining);
        let mut n = n;
        while n > 0 {
            let Some(vector) = self.vector()? else { break };
            let these = n.min(vector.values - self.at);
            self.advance(these, vector.values);
            n -= these;
        }
        Ok(())
    }

    /// Passes over what is left. Returns where it ends.
    ///
    /// # Errors
    /// As [`Alp::skip`], or bytes follow the last vector.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.skip(self.remaining)?;
        finish(self.vectors.input, &self.options.leniency)
    }
}

/// Appends values in vectors of `2^log` each, with the exponent and factor that leave the fewest exceptions among some
/// values of each.
///
/// # Panics
/// If `log` is not 3 to 15, or there are 2^31 values or more.
#[cfg(feature = "encode")]
pub fn encode<T: Decimal>(values: &[T], log: u8, out: &mut Vec<u8>) {
    assert!((3..=15).contains(&log), "vectors of 2^{log} values");
    out.extend_from_slice(&[0, 0, log]);
    out.extend_from_slice(&i32::try_from(values.len()).expect("less than 2^31 values").to_le_bytes());
    let (origin, vectors) = (out.len(), values.chunks(1 << log));
    out.resize(origin + 4 * vectors.len(), 0);
    for (i, values) in vectors.enumerate() {
        let offset = u32::try_from(out.len() - origin).expect("less than 4 GiB");
        out[origin + 4 * i..][..4].copy_from_slice(&offset.to_le_bytes());
        encode_vector(values, out);
    }
}

#[cfg(feature = "encode")]
fn encode_vector<T: Decimal>(values: &[T], out: &mut Vec<u8>) {
    let sample: Vec<T> = values.iter().step_by(values.len().div_ceil(32).max(1)).copied().collect();
    let scales = (0..=T::MAX_EXPONENT).flat_map(|exponent| (0..=exponent).map(move |factor| (exponent, factor)));
    let missed = |&(e, f): &(u8, u8)| sample.iter().filter(|value| value.integer(e, f).is_none()).count();
    let (exponent, factor) = scales.min_by_key(missed).unwrap_or((0, 0));
    let integers: Vec<Option<i64>> = values.iter().map(|value| value.integer(exponent, factor)).collect();
    let base = integers.iter().flatten().copied().min().unwrap_or(0);
    // An exception's slot holds the smallest integer, which costs no bits.
    let mask = u64::MAX >> (64 - 8 * size_of::<T>());
    let excess = integers.iter().map(|integer| integer.unwrap_or(base).wrapping_sub(base).cast_unsigned() & mask);
    let width = excess.clone().map(|excess| 64 - excess.leading_zeros()).max().unwrap_or(0);
    let exceptions: Vec<usize> = (0..values.len()).filter(|&i| integers[i].is_none()).collect();
    out.extend_from_slice(&[exponent, factor]);
    out.extend_from_slice(&u16::try_from(exceptions.len()).expect("2^15 at most").to_le_bytes());
    out.extend_from_slice(&base.to_le_bytes()[..size_of::<T>()]);
    out.push(u8::try_from(width).expect("64 at most"));
    super::pack(excess, width, out);
    for &i in &exceptions {
        out.extend_from_slice(&u16::try_from(i).expect("below 2^15").to_le_bytes());
    }
    for &i in &exceptions {
        out.extend_from_slice(bytemuck::bytes_of(&values[i]));
    }
}
