//! RLE: runs of equal words.
//!
//! Source: MapLibre Tile specification, Encodings, "RLE" and "Delta-RLE". Version 1 has all run lengths, then all values,
//! as one sequence of words in any physical encoding; version 2 has pairs of varints, length and value, to the payload's
//! end. Lengths, some of which may be 0, sum to the number of values. What words mean (ZigZag, differences) is a matter of
//! the stream.

use super::word::Word;
use super::{fault, varint};
use crate::error::{Error, Part};
use crate::input::Input;
use crate::mlt::{MltFault, Options};

const PART: Part = Part::Values("", "runs");

/// Pairs that are expanded at once.
const BATCH: usize = 128;

/// A run of version 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Absolute offset of its length.
    pub start: u64,
    pub length: u64,
    pub value: u64,
}

/// The next run of version 2, whose words have `bits` bits.
pub(crate) fn next_run(input: &mut Input<'_>, bits: u32) -> Result<Option<Run>, Error> {
    if input.bytes().is_empty() {
        return Ok(None);
    }
    let start = input.offset();
    let length = varint::next(input, bits)?;
    if input.bytes().is_empty() {
        return Err(fault(MltFault::OddRuns, PART).at(start));
    }
    Ok(Some(Run { start, length, value: varint::next(input, bits)? }))
}

/// Expands a payload of version 2.
///
/// # Errors
/// Lengths that do not sum to the values that `out` has room for, a length without value, or what
/// [`varint::decode`] finds.
pub fn decode_pairs<W: Word>(payload: Input<'_>, out: &mut [W], options: &Options) -> Result<(), Error> {
    let expected = out.len() as u64;
    let mut words = [W::zeroed(); 2 * BATCH];
    let (mut lengths, mut values) = ([0u32; BATCH], [W::zeroed(); BATCH]);
    let (mut input, mut filled) = (payload, 0usize);
    while !input.bytes().is_empty() {
        let start = input;
        let seen = W::varints(options.kernels, input.bytes(), &mut words);
        input.take(seen.bytes as u64, PART)?;
        let pairs = words[..seen.values].as_chunks::<2>().0;
        let mut sum = 0u64;
        for ((&[length, value], l), v) in pairs.iter().zip(&mut lengths).zip(&mut values) {
            sum = sum.saturating_add(length.widen());
            (*l, *v) = (u32::cut(length.widen()), value);
        }
        let whole = seen.values == words.len() || input.bytes().is_empty() && seen.values.is_multiple_of(2);
        let end = usize::try_from(sum).ok().and_then(|sum| filled.checked_add(sum));
        let (lengths, values) = (&lengths[..pairs.len()], &values[..pairs.len()]);
        let these = end.and_then(|end| out.get_mut(filled..end)).filter(|_| whole);
        let written = these.map(|out| W::repeat(options.kernels, values, lengths, out));
        if written != Some(sum) {
            // Or a length was cut to 32 bits, and `out` has room for more.
            return Err(unsound::<W>(start, filled as u64, expected));
        }
        filled = end.unwrap_or(filled);
    }
    if filled as u64 == expected {
        return Ok(());
    }
    Err(fault(MltFault::RunSum { found: filled as u64, expected }, PART).at(payload.end()))
}

/// The first fault of runs from here on, `filled` values behind the first.
#[cold]
fn unsound<W: Word>(mut input: Input<'_>, mut filled: u64, expected: u64) -> Error {
    loop {
        match next_run(&mut input, W::BITS) {
            Ok(Some(run)) if run.length <= expected - filled => filled += run.length,
            Ok(run) => {
                let found = run.map_or(filled, |run| filled.saturating_add(run.length));
                let at = run.map_or(input.end(), |run| run.start);
                return fault(MltFault::RunSum { found, expected }, PART).at(at);
            }
            Err(error) => return error,
        }
    }
}

/// Expands runs of version 1, whose words were decoded from a payload that starts at `offset`.
///
/// # Errors
/// Lengths that do not sum to the values that `out` has room for.
///
/// # Panics
/// If there are not as many values as lengths.
pub(crate) fn expand<W: Word>(
    lengths: &[u32],
    values: &[W],
    offset: u64,
    out: &mut [W],
    options: &Options,
) -> Result<(), Error> {
    let expected = out.len() as u64;
    let found = W::repeat(options.kernels, values, lengths, out);
    if found == expected { Ok(()) } else { Err(fault(MltFault::RunSum { found, expected }, PART).at(offset)) }
}

/// The runs of words: lengths and values.
#[cfg(feature = "encode")]
pub fn runs_of<W: Word>(words: &[W]) -> (Vec<W>, Vec<W>) {
    words.chunk_by(|a, b| a == b).map(|run| (W::cut(run.len() as u64), run[0])).unzip()
}

/// Appends the runs of words in pairs, as version 2 has them.
#[cfg(feature = "encode")]
pub fn encode_pairs<W: Word>(words: &[W], out: &mut Vec<u8>) {
    let (lengths, values) = runs_of(words);
    lengths.iter().zip(&values).for_each(|(&length, &value)| varint::encode(&[length, value], out));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, everywhere, told};
    use super::*;

    fn pairs<W: Word>(bytes: &[u8], n: usize) -> Result<Vec<W>, (&'static str, u64)> {
        everywhere(|options| {
            let mut out = vec![W::zeroed(); n];
            let result = decode_pairs(at(bytes), &mut out, options);
            if result.is_ok() { Ok(out) } else { Err(told(result)) }
        })
    }

    #[test]
    fn worked_example() {
        let values = [5, 5, 5, 3, 3, 3, 3];
        assert_eq!(pairs::<u32>(&[3, 5, 4, 3], 7), Ok(values.to_vec()));
        everywhere(|options| {
            let mut out = [0u32; 7];
            expand(&[3, 4], &[5, 3], 0, &mut out, options).unwrap();
            assert_eq!(out, values);
        });
    }

    #[test]
    fn empty_runs() {
        assert_eq!(pairs::<u32>(&[0, 9, 1, 5, 0, 1], 1), Ok(vec![5]));
        assert_eq!(pairs::<u64>(&[], 0), Ok(vec![]));
        assert_eq!(pairs::<u64>(&[0, 1], 0), Ok(vec![]));
    }

    /// More runs than are expanded at once, of all lengths, of which some are 0.
    #[test]
    fn batches() {
        let runs: Vec<(u64, u64)> = (0..3 * BATCH as u64 + 5).map(|i| (i * i % 41, i * 77)).collect();
        let mut bytes = Vec::new();
        for &(length, value) in &runs {
            for word in [length, value] {
                bytes.extend([word & 0x7f | 0x80, word >> 7 & 0x7f | 0x80, word >> 14].map(|byte| byte as u8));
            }
        }
        let expected: Vec<u64> = runs.iter().flat_map(|&(n, value)| std::iter::repeat_n(value, n as usize)).collect();
        assert_eq!(pairs(&bytes, expected.len()), Ok(expected.clone()));
        assert_eq!(pairs(&bytes, expected.len()), Ok(expected.iter().map(|&value| value as u32).collect::<Vec<_>>()));
        let last = 6 * (runs.len() as u64 - 1);
        assert_eq!(pairs::<u32>(&bytes, expected.len() - 1), Err(("run_sum", last)));
        assert_eq!(pairs::<u32>(&bytes, expected.len() + 1), Err(("run_sum", last + 6)));
    }

    /// R11 and R12, and what varints have.
    #[test]
    fn refused() {
        assert_eq!(pairs::<u32>(&[3, 5, 3, 3], 7), Err(("run_sum", 4)));
        assert_eq!(pairs::<u32>(&[3, 5, 5, 3], 7), Err(("run_sum", 2)));
        assert_eq!(pairs::<u32>(&[3, 5, 0xff, 0xff, 0xff, 0xff, 0x0f, 3], 7), Err(("run_sum", 2)));
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 3];
        assert_eq!(pairs::<u64>(&longest, 7), Err(("run_sum", 0)));
        // Its low 32 bits alone would fit.
        assert_eq!(pairs::<u64>(&[0x81, 0x80, 0x80, 0x80, 0x10, 3], 1), Err(("run_sum", 0)));
        assert_eq!(pairs::<u32>(&[3, 5, 4], 7), Err(("run_odd", 2)));
        assert_eq!(pairs::<u32>(&[3, 5, 4, 0x83], 7), Err(("truncated", 3)));
        assert_eq!(pairs::<u32>(&[3, 5, 0x84], 7), Err(("truncated", 2)));
        assert_eq!(pairs::<u32>(&[3, 5, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 7), Err(("varint_overflow", 3)));
        everywhere(|options| {
            for sums in [[3, 3], [3, 5], [u32::MAX, u32::MAX]] {
                assert_eq!(told(expand(&sums, &[5, 3], 1_000_009, &mut [0u64; 7], options)), ("run_sum", 9));
            }
        });
    }

    #[cfg(feature = "encode")]
    #[test]
    fn encoded() {
        let mut out = Vec::new();
        encode_pairs(&[5u32, 5, 5, 3, 3, 3, 3], &mut out);
        assert_eq!(out, [3, 5, 4, 3]);
        assert_eq!(runs_of(&[20u64, 2, 2, 2, 14, 0, 0]), (vec![1, 3, 1, 2], vec![20, 2, 14, 0]));
    }
}
