//! Truth values: Bitmap, Runs, Sparse, Boolean RLE.
//!
//! Source: MapLibre Tile specification, Encodings, "Boolean Streams". All give a bitmap, of which bit `i % 8` of byte
//! `i / 8` is value `i`. Bits behind the last value are ignored where they are stored, and are 0 in results.
//!
//! - Bitmap: the bytes of the bitmap.
//! - Runs: lengths of alternating runs as varints, the first of zeros; they sum to the number of values, and end there.
//! - Sparse: a bit for each byte of the bitmap which says that it is not 0, in whole bytes, then these bytes.
//! - Boolean RLE (version 1): the bytes of the bitmap in runs. A control byte `c` below 128 repeats the next byte `c + 3`
//!   times; any other has the next `256 - c` bytes follow as they are.
//!
//! The first three end where their values do: version 2 stores no length. Boolean RLE takes all its payload.

use std::ops::Range;

use super::{fault, varint};
use crate::error::{Error, Part};
use crate::input::Input;
use crate::mlt::{Logical, MltFault};

const BITMAP: Part = Part::Values("", "bitmap");
const RUNS: Part = Part::Values("", "runs of truth values");
const SUMMARY: Part = Part::Values("", "summary");
const BYTES: Part = Part::Values("", "stored bytes");
const BYTE_RUNS: Part = Part::Values("", "byte runs");

/// Takes `count` truth values from `input`; as a bitmap of `count.div_ceil(8)` bytes.
///
/// # Errors
/// Truncated; runs that do not sum to `count`, or do not expand to exactly the bitmap; a summary with bits behind the
/// last byte; a stored byte that is 0.
///
/// # Panics
/// If `out` has another length, or `logical` is no encoding of truth values.
pub fn decode(logical: Logical, input: &mut Input<'_>, count: usize, out: &mut [u8]) -> Result<(), Error> {
    assert!(out.len() == count.div_ceil(8), "{} bytes for {count} truth values", out.len());
    match logical {
        Logical::Bitmap => out.copy_from_slice(input.take(out.len() as u64, BITMAP)?),
        Logical::BooleanRuns => {
            out.fill(0);
            runs(input, count, |run| {
                if run.value {
                    set(out, run.values);
                }
            })?;
        }
        Logical::Sparse => {
            let Sparse { summary, stored } = Sparse::read(input, count)?;
            let mut stored = stored.iter();
            for (out, &summary) in out.chunks_mut(8).zip(summary) {
                out.fill(0);
                let mut left = summary;
                while left != 0 {
                    // `read` has checked the number of bytes, and that the bits lie inside.
                    out[left.trailing_zeros() as usize] = stored.next().copied().unwrap_or(0);
                    left &= left - 1;
                }
            }
        }
        Logical::BooleanRle => byte_runs(input, out)?,
        other => panic!("{other:?} of truth values"),
    }
    if let Some(last) = out.last_mut() {
        *last &= mask(count);
    }
    Ok(())
}

/// As [`decode`], of a payload that has its own length.
///
/// # Errors
/// As [`decode`], or bytes follow the last value.
///
/// # Panics
/// As [`decode`].
pub fn decode_payload(logical: Logical, payload: Input<'_>, count: usize, out: &mut [u8]) -> Result<(), Error> {
    let mut rest = payload;
    decode(logical, &mut rest, count, out)?;
    if rest.bytes().is_empty() {
        return Ok(());
    }
    let (found, expected) = (payload.bytes().len() as u64, rest.offset() - payload.offset());
    Err(fault(MltFault::Length { found, expected }, BITMAP).at(rest.offset()))
}

/// Passes over `count` truth values of version 2. Returns how many are set.
///
/// # Errors
/// As [`decode`].
///
/// # Panics
/// If `logical` is not [`Logical::Bitmap`], [`Logical::BooleanRuns`] or [`Logical::Sparse`].
pub fn skip(logical: Logical, input: &mut Input<'_>, count: usize) -> Result<usize, Error> {
    let last = count.div_ceil(8).saturating_sub(1);
    let padding = |byte: Option<&u8>| byte.map_or(0, |byte| (byte & !mask(count)).count_ones() as usize);
    match logical {
        Logical::Bitmap => {
            let bytes = input.take(count.div_ceil(8) as u64, BITMAP)?;
            Ok(ones(bytes) - padding(bytes.last()))
        }
        Logical::BooleanRuns => {
            let mut ones = 0;
            runs(input, count, |run| ones += if run.value { run.values.len() } else { 0 })?;
            Ok(ones)
        }
        Logical::Sparse => {
            let Sparse { summary, stored } = Sparse::read(input, count)?;
            let has_last = summary.get(last / 8).is_some_and(|byte| byte >> (last % 8) & 1 != 0);
            Ok(ones(stored) - if has_last { padding(stored.last()) } else { 0 })
        }
        other => panic!("{other:?} of truth values without a length"),
    }
}

/// The bits of the last byte that are values.
fn mask(count: usize) -> u8 {
    0xff >> (count.wrapping_neg() % 8)
}

fn ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word).count_ones());
    words.chain(rest.iter().map(|byte| byte.count_ones())).map(|ones| ones as usize).sum()
}

/// A run of truth values.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Absolute offset of its length.
    pub start: u64,
    pub value: bool,
    pub values: Range<usize>,
}

/// Visits the runs of `count` values.
pub(crate) fn runs(input: &mut Input<'_>, count: usize, mut visit: impl FnMut(Run)) -> Result<(), Error> {
    let (mut at, mut value) = (0, false);
    while at < count {
        let start = input.offset();
        let length = varint::next(input, 64)?;
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length)).filter(|&end| end <= count);
        let Some(end) = end else {
            let found = length.saturating_add(at as u64);
            return Err(fault(MltFault::BooleanRunSum { found, expected: count as u64 }, RUNS).at(start));
        };
        visit(Run { start, value, values: at..end });
        (at, value) = (end, !value);
    }
    Ok(())
}

fn set(out: &mut [u8], values: Range<usize>) {
    if values.is_empty() {
        return;
    }
    let (first, last) = (values.start / 8, (values.end - 1) / 8);
    let (head, tail) = (0xff << (values.start % 8), mask(values.end));
    if first == last {
        out[first] |= head & tail;
    } else {
        out[first] |= head;
        out[first + 1..last].fill(0xff);
        out[last] |= tail;
    }
}

/// The parts of sparse values: as many stored bytes as the summary has bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sparse<'a> {
    pub summary: &'a [u8],
    pub stored: &'a [u8],
}

impl<'a> Sparse<'a> {
    pub(crate) fn read(input: &mut Input<'a>, count: usize) -> Result<Sparse<'a>, Error> {
        let bytes = count.div_ceil(8);
        let summary = input.take(bytes.div_ceil(8) as u64, SUMMARY)?;
        if summary.last().is_some_and(|last| last & !mask(bytes) != 0) {
            return Err(fault(MltFault::SparseSummary, SUMMARY).at(input.offset() - 1));
        }
        let start = input.offset();
        let stored = input.take(ones(summary) as u64, BYTES)?;
        match stored.iter().position(|&byte| byte == 0) {
            Some(at) => Err(fault(MltFault::SparseZero, BYTES).at(start + at as u64)),
            None => Ok(Sparse { summary, stored }),
        }
    }
}

/// A run of bytes of Boolean RLE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteRun<'a> {
    /// Absolute offset of its control byte.
    pub start: u64,
    pub repeated: bool,
    /// Bytes that it expands to.
    pub length: usize,
    /// The byte to repeat, or the bytes as they are; fewer where the payload ends.
    pub bytes: &'a [u8],
}

/// The next run of bytes, unless the payload has ended.
pub(crate) fn next_byte_run<'a>(input: &mut Input<'a>) -> Option<ByteRun<'a>> {
    let start = input.offset();
    let control = *input.take(input.bytes().len().min(1) as u64, BYTE_RUNS).ok()?.first()?;
    let repeated = control < 128;
    let length = if repeated { usize::from(control) + 3 } else { 256 - usize::from(control) };
    let stored = if repeated { 1 } else { length };
    let bytes = input.take(stored.min(input.bytes().len()) as u64, BYTE_RUNS).unwrap_or(&[]);
    Some(ByteRun { start, repeated, length, bytes })
}

fn byte_runs(input: &mut Input<'_>, out: &mut [u8]) -> Result<(), Error> {
    let (expected, mut filled) = (out.len(), 0);
    let wrong = |found: usize, at| {
        let kind = MltFault::BooleanRleLength { found: found as u64, expected: expected as u64 };
        Err(fault(kind, BYTE_RUNS).at(at))
    };
    while let Some(ByteRun { start, repeated, length, bytes }) = next_byte_run(input) {
        let Some(these) = out.get_mut(filled..filled + length) else {
            return wrong(filled + length, start);
        };
        match bytes {
            &[byte] if repeated => these.fill(byte),
            bytes if bytes.len() == length => these.copy_from_slice(bytes),
            _ => return wrong(filled + bytes.len(), start),
        }
        filled += length;
    }
    if filled == expected { Ok(()) } else { wrong(filled, input.offset()) }
}

/// Appends the first `count` truth values of a bitmap.
///
/// # Panics
/// If the bitmap has fewer, or `logical` is no encoding of truth values.
#[cfg(feature = "encode")]
pub fn encode(logical: Logical, bitmap: &[u8], count: usize, out: &mut Vec<u8>) {
    let mut bytes = bitmap[..count.div_ceil(8)].to_vec();
    if let Some(last) = bytes.last_mut() {
        *last &= mask(count);
    }
    match logical {
        Logical::Bitmap => out.extend_from_slice(&bytes),
        Logical::BooleanRuns => {
            let bits: Vec<bool> = (0..count).map(|i| bytes[i / 8] >> (i % 8) & 1 != 0).collect();
            if bits.first() == Some(&true) {
                out.push(0);
            }
            bits.chunk_by(|a, b| a == b).for_each(|run| crate::output::push_uleb(run.len() as u64, out));
        }
        Logical::Sparse => {
            let bit = |(i, &byte): (usize, &u8)| u8::from(byte != 0) << i;
            out.extend(bytes.chunks(8).map(|eight| eight.iter().enumerate().map(bit).sum::<u8>()));
            out.extend(bytes.iter().filter(|&&byte| byte != 0));
        }
        Logical::BooleanRle => encode_byte_runs(&bytes, out),
        other => panic!("{other:?} of truth values"),
    }
}

/// Three and more of a byte are repeated.
#[cfg(feature = "encode")]
fn encode_byte_runs(bytes: &[u8], out: &mut Vec<u8>) {
    let control = |n: usize| n.to_le_bytes()[0];
    let mut literal: &[u8] = &[];
    let mut at = 0;
    while at < bytes.len() {
        let same = bytes[at..].iter().take(130).take_while(|&&byte| byte == bytes[at]).count();
        let from = at - literal.len();
        if same < 3 {
            at += 1;
            literal = &bytes[from..at];
        }
        if same >= 3 || literal.len() == 128 || at == bytes.len() {
            if !literal.is_empty() {
                out.push(control(256 - literal.len()));
                out.extend_from_slice(literal);
                literal = &[];
            }
            if same >= 3 {
                out.extend([control(same - 3), bytes[at]]);
                at += same;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{START, at, told};
    use super::*;

    const ALL: [Logical; 4] = [Logical::Bitmap, Logical::BooleanRuns, Logical::Sparse, Logical::BooleanRle];

    fn decoded(logical: Logical, bytes: &[u8], count: usize) -> Result<Vec<u8>, (&'static str, u64)> {
        let mut out = vec![0xaa; count.div_ceil(8)];
        let mut input = at(bytes);
        let result = decode(logical, &mut input, count, &mut out);
        // What is passed over is the same, faults too.
        if logical != Logical::BooleanRle {
            let mut skipped = at(bytes);
            match (skip(logical, &mut skipped, count), &result) {
                (Ok(set), Ok(())) => {
                    assert_eq!(set, out.iter().map(|byte| byte.count_ones() as usize).sum::<usize>());
                    assert_eq!(skipped.offset(), input.offset());
                }
                (Err(skip), Err(decode)) => assert_eq!(format!("{skip:?}"), format!("{decode:?}")),
                other => panic!("{other:?}"),
            }
        }
        if result.is_ok() { Ok(out) } else { Err(told(result)) }
    }

    #[test]
    fn worked_examples() {
        assert_eq!(decoded(Logical::Bitmap, &[0x2d], 6), Ok(vec![0x2d]));
        assert_eq!(decoded(Logical::BooleanRuns, &[2, 3, 1], 6), Ok(vec![0b01_1100]));
        assert_eq!(decoded(Logical::Sparse, &[0x02, 0x2d], 24), Ok(vec![0, 0x2d, 0]));
        let bitmap = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x2d];
        assert_eq!(decoded(Logical::BooleanRle, &[0x02, 0xff, 0xff, 0x2d], 48), Ok(bitmap));
    }

    /// Bits behind the last value are ignored, and 0 in the result.
    #[test]
    fn padding() {
        assert_eq!(decoded(Logical::Bitmap, &[0xff, 0xff], 9), Ok(vec![0xff, 1]));
        assert_eq!(decoded(Logical::Sparse, &[0x02, 0xff], 9), Ok(vec![0, 1]));
        assert_eq!(decoded(Logical::Sparse, &[0x02, 0xfe], 9), Ok(vec![0, 0]));
        assert_eq!(decoded(Logical::BooleanRle, &[0xfe, 0xff, 0xff], 9), Ok(vec![0xff, 1]));
    }

    /// They end where the values do.
    #[test]
    fn ends() {
        for (logical, bytes, end) in [
            (Logical::Bitmap, &[1, 2, 3][..], 2),
            (Logical::BooleanRuns, &[0, 4, 5, 0, 0], 3),
            (Logical::Sparse, &[2, 1, 9], 2),
        ] {
            let mut input = at(bytes);
            decode(logical, &mut input, 9, &mut [0; 2]).unwrap();
            assert_eq!(input.offset() - START, end);
            assert_eq!(told(decode_payload(logical, at(bytes), 9, &mut [0; 2])), ("stream_length", end));
        }
        for logical in ALL {
            assert_eq!(decoded(logical, &[], 0), Ok(vec![]));
        }
        decode_payload(Logical::Bitmap, at(&[1, 2]), 9, &mut [0; 2]).unwrap();
    }

    /// R13 to R16, and payloads that end too soon.
    #[test]
    fn refused() {
        for (logical, bytes, count, expected) in [
            (Logical::Bitmap, &[1][..], 9, ("truncated", 0)),
            (Logical::BooleanRuns, &[2, 3, 2], 6, ("boolean_run_sum", 2)),
            (
                Logical::BooleanRuns,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                6,
                ("boolean_run_sum", 0),
            ),
            (Logical::BooleanRuns, &[2, 3], 6, ("truncated", 2)),
            (Logical::BooleanRuns, &[2, 0x83], 6, ("truncated", 1)),
            (Logical::Sparse, &[0x0a, 0x2d, 1], 24, ("sparse_summary", 0)),
            (Logical::Sparse, &[0x02, 0], 24, ("sparse_zero", 1)),
            (Logical::Sparse, &[0x02], 24, ("truncated", 1)),
            (Logical::Sparse, &[], 24, ("truncated", 0)),
            (Logical::BooleanRle, &[0x02, 0xff, 0xfe, 0x2d, 0x2d], 48, ("boolean_rle_length", 2)),
            (Logical::BooleanRle, &[0x04, 0xff], 48, ("boolean_rle_length", 0)),
            (Logical::BooleanRle, &[0x02, 0xff], 48, ("boolean_rle_length", 2)),
            (Logical::BooleanRle, &[0x03], 48, ("boolean_rle_length", 0)),
            (Logical::BooleanRle, &[0xfa, 1, 2, 3], 48, ("boolean_rle_length", 0)),
            (Logical::BooleanRle, &[], 48, ("boolean_rle_length", 0)),
            (Logical::BooleanRle, &[0], 0, ("boolean_rle_length", 0)),
        ] {
            assert_eq!(decoded(logical, bytes, count), Err(expected), "{logical:?} {bytes:x?}");
        }
    }

    #[cfg(feature = "encode")]
    mod encoding {
        use proptest::prelude::*;

        use super::*;

        #[test]
        fn worked_examples() {
            for (logical, bitmap, count, payload) in [
                (Logical::Bitmap, &[0xed][..], 6, &[0x2d][..]),
                (Logical::BooleanRuns, &[0b01_1100], 6, &[2, 3, 1]),
                (Logical::BooleanRuns, &[1], 2, &[0, 1, 1]),
                (Logical::Sparse, &[0, 0x2d, 0], 24, &[0x02, 0x2d]),
                (Logical::BooleanRle, &[0xff, 0xff, 0xff, 0xff, 0xff, 0x2d], 48, &[0x02, 0xff, 0xff, 0x2d]),
            ] {
                let mut out = Vec::new();
                encode(logical, bitmap, count, &mut out);
                assert_eq!(out, payload, "{logical:?}");
            }
        }

        /// Runs and literals around the longest.
        #[test]
        fn long_byte_runs() {
            for n in [1, 2, 3, 126, 127, 128, 129, 130, 131, 132, 133, 260, 300] {
                for step in [0u8, 1, 3] {
                    let mut bitmap: Vec<u8> = (0..n).map(|i: usize| (i as u8 / 4 * step) ^ (i as u8 & step)).collect();
                    bitmap.extend([7; 3]);
                    let mut out = Vec::new();
                    encode(Logical::BooleanRle, &bitmap, 8 * bitmap.len(), &mut out);
                    assert_eq!(decoded(Logical::BooleanRle, &out, 8 * bitmap.len()), Ok(bitmap));
                }
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            #[test]
            fn round_trip(runs in proptest::collection::vec((0..40usize, any::<u8>()), 0..40), cut in 0..8usize) {
                let bitmap: Vec<u8> = runs.iter().flat_map(|&(n, byte)| std::iter::repeat_n(byte, n)).collect();
                let count = (8 * bitmap.len()).saturating_sub(cut);
                let mut expected = bitmap[..count.div_ceil(8)].to_vec();
                if let Some(last) = expected.last_mut() {
                    *last &= mask(count);
                }
                for logical in ALL {
                    let mut payload = Vec::new();
                    encode(logical, &bitmap, count, &mut payload);
                    prop_assert_eq!(decoded(logical, &payload, count), Ok(expected.clone()));
                    decode_payload(logical, at(&payload), count, &mut expected.clone()).unwrap();
                    for end in 0..payload.len() {
                        prop_assert!(decoded(logical, &payload[..end], count).is_err());
                    }
                }
            }

            #[test]
            fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40), count in 0..300usize) {
                for logical in ALL {
                    _ = decoded(logical, &bytes, count);
                }
            }
        }
    }
}
