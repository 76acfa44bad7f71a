//! Definition and repetition levels: which values are null, and where lists start.
//!
//! Source: Parquet format, README.md, "Nested Encoding" and "Data Pages"; Encodings.md.

use super::super::encoding::bit_packed::BitPacked;
use super::super::encoding::fault;
use super::super::encoding::hybrid::Hybrid;
use crate::buffer::grow;
use crate::error::{EncodingFault, Error, ErrorKind, Limit, Part, Unsupported};
use crate::input::Input;
use crate::limits::Limits;
use crate::parquet::options::Options;
use crate::parquet::payload::Encoding;

/// Levels that are decoded before more memory is taken.
const STEP: usize = 1 << 16;

/// The levels of some values.
#[derive(Clone, Copy, Debug)]
pub enum Levels<'p> {
    /// All are the same.
    Same {
        /// The level.
        level: u8,
        /// How many there are.
        len: usize,
    },
    /// One for each value.
    Each(&'p [u8]),
}

impl<'p> Levels<'p> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Levels::Same { len, .. } => *len,
            Levels::Each(levels) => levels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The level of value `i`.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn get(&self, i: usize) -> u8 {
        match self {
            Levels::Same { level, len } => {
                assert!(i < *len, "level {i} of {len}");
                *level
            }
            Levels::Each(levels) => levels[i],
        }
    }

    /// How many are `level`.
    pub fn count(&self, level: u8) -> usize {
        match self {
            Levels::Same { level: same, len } => {
                if *same == level {
                    *len
                } else {
                    0
                }
            }
            // Sums of bytes, which vectorise; they do not overflow in so many.
            Levels::Each(levels) => levels
                .chunks(255)
                .map(|levels| usize::from(levels.iter().map(|&found| u8::from(found == level)).sum::<u8>()))
                .sum(),
        }
    }

    /// The `n` from `at` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn part(&self, at: usize, n: usize) -> Levels<'p> {
        match self {
            Levels::Same { level, len } => {
                assert!(at <= *len && n <= len - at, "{n} levels from {at} on of {len}");
                Levels::Same { level: *level, len: n }
            }
            Levels::Each(levels) => Levels::Each(&levels[at..at + n]),
        }
    }

    /// Appends them.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Levels::Same { level, len } => out.resize(out.len() + len, *level),
            Levels::Each(levels) => out.extend_from_slice(levels),
        }
    }
}

/// How a section of levels is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    /// In a page of version 1, behind its length or not.
    V1(Encoding),
    /// In a page of version 2, of so many bytes.
    V2(u64),
}

/// Bits of a level up to `max`.
pub(super) fn width(max: u8) -> u32 {
    u8::BITS - max.leading_zeros()
}

/// Takes the `count` levels of a section up to `max`; there is no section if `max` is 0. They are kept in `buffer`.
pub(super) fn read<'p>(
    input: &mut Input<'_>,
    section: Section,
    count: usize,
    max: u8,
    buffer: &'p mut Vec<u8>,
    options: &Options,
    stream: &'static str,
) -> Result<Levels<'p>, Error> {
    let section_start = input.offset();
    let mut own = match section {
        Section::V2(len) => {
            let start = input.offset();
            Input::at(input.take(len, Part::Page(stream))?, start)
        }
        Section::V1(_) => *input,
    };
    if max == 0 {
        // A page of version 2 states a length all the same.
        if let bytes @ 1.. = own.bytes().len()
            && matches!(section, Section::V2(_))
            && !options.leniency.trailing_bytes
        {
            let kind = EncodingFault::Trailing { bytes: bytes as u64 };
            return Err(fault(kind, Part::Page(stream)).at(own.offset()));
        }
        return Ok(Levels::Same { level: 0, len: count });
    }
    let levels = match section {
        Section::V1(Encoding::Rle) => Hybrid::with_length(input, count, width(max), options)
            .and_then(|hybrid| runs(hybrid, count, buffer, &options.limits)),
        Section::V1(Encoding::BitPacked) => BitPacked::new(&mut own, count, width(max), options)
            .and_then(|packed| bits(packed, count, buffer, &options.limits))
            .inspect(|_| *input = own),
        Section::V1(_) => {
            Err(Error::new(ErrorKind::Unsupported(Unsupported::Encoding), Part::Page(stream)).at(own.offset()))
        }
        Section::V2(_) => {
            Hybrid::new(own, count, width(max), options).and_then(|hybrid| runs(hybrid, count, buffer, &options.limits))
        }
    };
    let levels = levels.map_err(|error| error.in_stream(stream))?;
    check(levels, max, Part::Page(stream)).map_err(|error| error.at(section_start))?;
    Ok(levels)
}

/// None may be above `max`.
fn check(levels: Levels<'_>, max: u8, part: Part) -> Result<(), Error> {
    let index = match levels {
        Levels::Same { len: 0, .. } => None,
        Levels::Same { level, .. } => (level > max).then_some(0),
        Levels::Each(levels) => {
            let largest = levels.iter().fold(0, |largest, &level| largest.max(level));
            if largest > max { levels.iter().position(|&level| level > max) } else { None }
        }
    };
    match index {
        Some(index) => {
            let found = levels.get(index).into();
            let kind = ErrorKind::OutOfRange { found, min: 0, max: max.into() };
            Err(Error::new(kind, part).index(index as u64))
        }
        None => Ok(()),
    }
}

fn runs<'p>(
    mut hybrid: Hybrid<'_>,
    count: usize,
    buffer: &'p mut Vec<u8>,
    limits: &Limits,
) -> Result<Levels<'p>, Error> {
    if count == 0 {
        hybrid.finish()?;
        return Ok(Levels::Same { level: 0, len: 0 });
    }
    // Most often nothing is null.
    if hybrid.left_of_run()? == count
        && let Some((level, len)) = hybrid.take_repeated(count)?
    {
        hybrid.finish()?;
        return Ok(Levels::Same { level: u8::try_from(level).unwrap_or(u8::MAX), len });
    }
    let levels = fill(count, buffer, limits, |out| hybrid.decode::<u8>(out))?;
    hybrid.finish()?;
    Ok(levels)
}

fn bits<'p>(
    mut packed: BitPacked<'_>,
    count: usize,
    buffer: &'p mut Vec<u8>,
    limits: &Limits,
) -> Result<Levels<'p>, Error> {
    let mut wide = [0u16; 256];
    fill(count, buffer, limits, |out| {
        for out in out.chunks_mut(wide.len()) {
            let wide = &mut wide[..out.len()];
            packed.decode(wide)?;
            // The width is 8 bits at most.
            out.iter_mut().zip(&*wide).for_each(|(out, wide)| *out = wide.to_le_bytes()[0]);
        }
        Ok(())
    })
}

/// Fills the front of a buffer, which grows with what is there.
fn fill<'p>(
    count: usize,
    buffer: &'p mut Vec<u8>,
    limits: &Limits,
    mut decode: impl FnMut(&mut [u8]) -> Result<(), Error>,
) -> Result<Levels<'p>, Error> {
    Limits::check(count as u64, limits.max_scratch_bytes, Limit::ScratchBytes, Part::Values("", "levels"))?;
    for start in (0..count).step_by(STEP) {
        let end = count.min(start + STEP);
        grow(buffer, end)?;
        decode(&mut buffer[start..end])?;
    }
    Ok(Levels::Each(&buffer[..count]))
}
