//! Strings: bytes that lengths cut into values, in any of the ways that blobs are stored, and codes of dictionaries.
//!
//! Source: the encodings page, "Strings". Each value must be UTF-8. What a blob has behind the last value is passed over,
//! but for front coding, which fills its blob.

use super::fsst::{self, Table};
use super::{Scratch, exactly, fault, front_coding};
use crate::buffer::grow;
use crate::error::{Error, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;
use crate::mlt::{MltFault, Options};

const VALUE: Part = Part::Values("", "value");
const CODE: Part = Part::Values("", "code");

/// Where the bytes of values are.
#[derive(Clone, Copy, Debug)]
pub enum Blob<'a> {
    /// As they are.
    Plain(Input<'a>),
    /// As FSST codes.
    Fsst(&'a Table, Input<'a>),
}

/// Values of such lengths: `offsets` are where in `text` each starts, and the last ends. Both are overwritten, and keep
/// their memory. Each value is UTF-8 by itself: all offsets are at the borders of characters.
///
/// With `front_coded`, lengths are those of [`front_coding`].
///
/// # Errors
/// [`MltFault::Utf8`] of a value, [`MltFault::Lengths`], those of [`fsst::expand`] and [`front_coding::decode`], or more
/// bytes than the limits allow. Where the bytes of a value are not stored as they are, the offset is that of the blob.
pub fn decode(
    lengths: &[u32],
    blob: Blob<'_>,
    front_coded: bool,
    offsets: &mut Vec<u32>,
    text: &mut String,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let mut bytes = std::mem::take(text).into_bytes();
    let stored = match blob {
        Blob::Plain(input) | Blob::Fsst(_, input) => input,
    };
    match (blob, front_coded) {
        (Blob::Plain(input), true) => front_coding::decode(lengths, input, offsets, &mut bytes, options)?,
        (Blob::Fsst(table, corpus), true) => {
            let suffixes = lengths[lengths.len() / 2..].iter().map(|&length| u64::from(length)).sum();
            fsst::expand(table, corpus, suffixes, &mut scratch.bytes, options)?;
            // What stands in it is in no place of the object.
            let input = Input::at(&scratch.bytes, corpus.offset());
            front_coding::decode(lengths, input, offsets, &mut bytes, options)?;
        }
        (Blob::Plain(input), false) => {
            let total = cut(lengths, input.bytes().len(), offsets, input.offset(), options)?;
            Limits::check(total as u64, options.limits.max_output_bytes, Limit::OutputBytes, VALUE)
                .map_err(|e| e.at(input.offset()))?;
            grow(&mut bytes, total)?;
            bytes.truncate(total);
            bytes.copy_from_slice(&input.bytes()[..total]);
        }
        (Blob::Fsst(table, corpus), false) => {
            let expected = lengths.iter().map(|&length| u64::from(length)).sum();
            fsst::expand(table, corpus, expected, &mut bytes, options)?;
            let total = cut(lengths, bytes.len(), offsets, corpus.offset(), options)?;
            bytes.truncate(total);
        }
    }
    // All at once; then no value may start or end inside a character.
    let place = |at: usize| match (blob, front_coded) {
        (Blob::Plain(_), false) => stored.offset() + at as u64,
        _ => stored.offset(),
    };
    *text = String::from_utf8(bytes).map_err(|e| judge(e.as_bytes(), offsets, place))?;
    let bytes = text.as_bytes();
    let inside = |offset: &u32| bytes.get(*offset as usize).is_some_and(|&byte| byte & 0xc0 == 0x80);
    if offsets.iter().fold(false, |any, offset| any | inside(offset)) {
        return Err(judge(bytes, offsets, place));
    }
    Ok(())
}

/// Where values of such lengths start, and the last ends.
fn cut(
    lengths: &[u32],
    available: usize,
    offsets: &mut Vec<u32>,
    blob_at: u64,
    options: &Options,
) -> Result<usize, Error> {
    exactly(offsets, lengths.len() + 1)?;
    offsets[0] = 0;
    let total = options.kernels.offsets_u32(lengths, 0, &mut offsets[1..]).total;
    match usize::try_from(total) {
        Ok(total) if total <= available && u32::try_from(total).is_ok() => Ok(total),
        _ => {
            let available = available.min(u32::MAX as usize) as u64;
            let mut end = 0;
            let first = lengths.iter().position(|&length| {
                end += u64::from(length);
                end > available
            });
            let first = first.unwrap_or(lengths.len()) as u64;
            Err(fault(MltFault::Lengths { found: end, available }, VALUE).at(blob_at).index(first))
        }
    }
}

/// The first value that is not UTF-8 where one is known to be.
#[cold]
fn judge(bytes: &[u8], offsets: &[u32], place: impl Fn(usize) -> u64) -> Error {
    for (i, bounds) in offsets.windows(2).enumerate() {
        let (start, end) = (bounds[0] as usize, bounds[1] as usize);
        if let Err(e) = std::str::from_utf8(&bytes[start..end]) {
            return fault(MltFault::Utf8, VALUE).at(place(start + e.valid_up_to())).index(i as u64);
        }
    }
    fault(MltFault::Utf8, VALUE).at(place(0))
}

/// Whether all codes name one of so many entries. `codes_at` is the offset of their stream, for errors.
///
/// # Errors
/// [`MltFault::Code`].
pub fn check_codes(codes: &[u32], codes_at: u64, entries: usize) -> Result<(), Error> {
    let largest = codes.iter().fold(0, |largest: u32, &code| largest.max(code));
    if (largest as usize) < entries {
        return Ok(());
    }
    match codes.iter().position(|&code| code as usize >= entries) {
        None => Ok(()),
        Some(i) => {
            let kind = MltFault::Code { found: codes[i], entries: entries as u64 };
            Err(fault(kind, CODE).at(codes_at).index(i as u64))
        }
    }
}
