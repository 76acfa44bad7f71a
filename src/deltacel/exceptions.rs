//! Counts and gaps above 65535, which are listed beside their stream.
//!
//! Source: DELTACEL file format, "Exceptions".

use std::ops::RangeInclusive;

use super::csr::Count;
use crate::buffer::Buffer;
use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;
use crate::kernels::{Kernels, scalar};
use crate::zstd::{Decompressor, frame};

/// What the stream holds in place of an excepted value.
const STORED: u16 = u16::MAX;

/// The exceptions of one stream, decoded into reused memory.
#[derive(Default)]
pub(super) struct Exceptions {
    /// k positions, then k payloads.
    bytes: Buffer<u8>,
}

impl From<Buffer<u8>> for Exceptions {
    /// The content of an exception frame, unchecked.
    fn from(bytes: Buffer<u8>) -> Exceptions {
        Exceptions { bytes }
    }
}

impl Exceptions {
    /// Decodes and checks an exception frame: positions strictly increase within the chunk and name values that its
    /// planes hold as 65535, payloads lie in a range.
    pub(super) fn read(
        &mut self,
        zstd: &mut Decompressor,
        stream: Input<'_>,
        part: Part,
        (lo, hi): (&[u8], &[u8]),
        allowed: RangeInclusive<u32>,
    ) -> Result<(), Error> {
        // The tile was opened only with frames that can reach their size, of 8 bytes per nonzero at most.
        let size = frame::content_size(stream);
        self.bytes.try_resize(usize::try_from(size).unwrap_or(usize::MAX))?;
        zstd.decode(stream, &mut self.bytes, part)?;
        let fault = |kind, i: usize| Err(Error::new(kind, part).at(stream.offset()).index(i as u64));
        let mut min = 0;
        for (i, (position, payload)) in self.pairs().enumerate() {
            let stored = match (lo.get(position), hi.get(position)) {
                (Some(&lo), Some(&hi)) if position >= min => u16::from_le_bytes([lo, hi]),
                _ => {
                    return fault(
                        ErrorKind::OutOfRange { found: position as i128, min: min as i128, max: lo.len() as i128 - 1 },
                        i,
                    );
                }
            };
            if stored != STORED {
                return fault(ErrorKind::NotExcepted { found: stored.into() }, i);
            }
            if !allowed.contains(&payload) {
                let (min, max) = ((*allowed.start()).into(), (*allowed.end()).into());
                return fault(ErrorKind::OutOfRange { found: payload.into(), min, max }, i);
            }
            min = position + 1;
        }
        Ok(())
    }

    /// Position in the chunk and payload of each exception.
    pub(super) fn pairs(&self) -> impl ExactSizeIterator<Item = (usize, u32)> {
        let (positions, payloads) = self.bytes.as_chunks::<4>().0.split_at(self.bytes.len() / 8);
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        positions.iter().map(move |p| number(p) as usize).zip(payloads.iter().map(number))
    }

    /// The exceptions of the values that are asked for, which are `len` from the chunk's value `skipped` on: place
    /// among the exceptions, position within those values, payload.
    fn wanted(&self, skipped: usize, len: usize) -> impl Iterator<Item = (usize, usize, u32)> {
        self.pairs()
            .enumerate()
            .filter_map(move |(i, (position, payload))| Some((i, position.checked_sub(skipped)?, payload)))
            .take_while(move |&(_, position, _)| position < len)
    }

    /// Puts true counts in place of 65535. Returns how many the type may not hold exactly.
    ///
    /// # Errors
    /// A count that the type cannot hold, and its place among the exceptions.
    pub(super) fn replace<T: Count>(&self, values: &mut [T], skipped: usize) -> Result<usize, (ErrorKind, usize)> {
        let mut inexact = 0;
        for (i, position, count) in self.wanted(skipped, values.len()) {
            let max = T::EXACT_TO;
            let fault = ErrorKind::OutOfRange { found: count.into(), min: 1, max: max.into() };
            let value = T::from_exception(count).ok_or((fault, i))?;
            scalar::patch::replace(values, [position], [value]);
            inexact += usize::from(count > max);
        }
        Ok(inexact)
    }

    /// Adds each payload to its gene and to every later gene of the same cell; each value is touched once.
    ///
    /// # Errors
    /// A gene that the tile does not have, and the place of the exception that led there.
    pub(super) fn shift(
        &self,
        kernels: Kernels,
        indices: &mut [i32],
        bounds: &[i64],
        skipped: usize,
        n_genes: u32,
    ) -> Result<(), (ErrorKind, usize)> {
        let start = bounds.first().copied().unwrap_or(0);
        let mut exceptions = self.wanted(skipped, indices.len()).peekable();
        let mut cell = 0;
        while let Some(&(mut last, mut at, _)) = exceptions.peek() {
            // The cell that holds the exception. Bounds do not decrease, so the search only moves on.
            cell += bounds[cell + 1..].partition_point(|&bound| bound - start <= at as i64);
            let end = usize::try_from(bounds[cell + 1] - start).unwrap_or(0);
            let mut delta = 0u64;
            while at < end {
                while let Some((i, _, payload)) = exceptions.next_if(|&(_, position, _)| position == at) {
                    last = i;
                    delta += u64::from(payload);
                }
                let until = exceptions.peek().map_or(end, |&(_, position, _)| position.min(end));
                // The kernel's evidence was that every gene is below n_genes; the last of these is the largest.
                let gene = u64::from(indices[until - 1].cast_unsigned()) + delta;
                if gene >= u64::from(n_genes) {
                    let max = i128::from(n_genes) - 1;
                    return Err((ErrorKind::OutOfRange { found: gene.into(), min: 0, max }, last));
                }
                // Below n_genes, so within 31 bits.
                kernels.add(&mut indices[at..until], i32::try_from(delta).unwrap_or(i32::MAX));
                at = until;
            }
        }
        Ok(())
    }
}
