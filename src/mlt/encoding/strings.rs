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

/// The distinct values and the code of each. `sorted`: as front coding has it; else in the order in which each comes
/// first.
///
/// # Panics
/// If there are 2^32 distinct ones or more.
#[cfg(feature = "encode")]
pub fn encode<'a>(values: impl IntoIterator<Item = &'a str>, sorted: bool) -> (Vec<&'a str>, Vec<u32>) {
    let (mut entries, mut codes) = super::distinct(values);
    if sorted {
        super::sort_entries(&mut entries, &mut codes, |&entry| entry);
    }
    (entries, codes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::alike;
    use super::*;
    use crate::kernels::Kernels;

    fn decoded(lengths: &[u32], blob: Blob<'_>, front_coded: bool) -> Result<Vec<String>, Error> {
        alike(|options| {
            let (mut offsets, mut text) = (vec![1; 9], "before".to_owned());
            decode(lengths, blob, front_coded, &mut offsets, &mut text, options, &mut Scratch::new())?;
            let value = |bounds: &[u32]| text[bounds[0] as usize..bounds[1] as usize].to_owned();
            Ok(offsets.windows(2).map(value).collect())
        })
    }

    fn plain(lengths: &[u32], bytes: &[u8]) -> Result<Vec<String>, Error> {
        decoded(lengths, Blob::Plain(Input::at(bytes, 30)), false)
    }

    #[test]
    fn plain_values() {
        assert_eq!(plain(&[4, 0, 6], b"OsloBergen").unwrap(), ["Oslo", "", "Bergen"]);
        assert_eq!(plain(&[3, 4], "\u{20ac}\u{1f600}".as_bytes()).unwrap(), ["\u{20ac}", "\u{1f600}"]);
        assert!(plain(&[], b"").unwrap().is_empty());
        // What is behind the last value does not matter.
        assert_eq!(plain(&[1], b"a\xff").unwrap(), ["a"]);
        assert!(plain(&[], b"\xff").unwrap().is_empty());
    }

    #[test]
    fn faults() {
        let fault = |lengths: &[u32], bytes: &[u8]| {
            let error = plain(lengths, bytes).unwrap_err();
            (error.kind().name(), error.offset(), error.value_index())
        };
        assert_eq!(fault(&[1, 2], b"a\xc3\x28"), ("utf8", Some(31), Some(1)));
        // All of it is UTF-8, but a value ends inside a character.
        assert_eq!(fault(&[1, 1, 1], "a\u{e9}".as_bytes()), ("utf8", Some(31), Some(1)));
        assert_eq!(fault(&[2, 1], "\u{20ac}".as_bytes()), ("utf8", Some(30), Some(0)));
        // Its last byte is not there.
        assert_eq!(fault(&[2], "\u{20ac}".as_bytes()), ("utf8", Some(30), Some(0)));
        assert_eq!(fault(&[2, 2, 2], b"abcde"), ("lengths_past_bytes", Some(30), Some(2)));
        assert_eq!(fault(&[u32::MAX; 3], b"abcde"), ("lengths_past_bytes", Some(30), Some(0)));
    }

    #[test]
    fn limits() {
        let options = Options::with_kernels(Kernels::auto()).limits(Limits::default().with_output_bytes(3));
        let decode = |bytes: &[u8]| {
            let (blob, mut scratch) = (Blob::Plain(Input::new(bytes)), Scratch::new());
            decode(&[bytes.len() as u32], blob, false, &mut Vec::new(), &mut String::new(), &options, &mut scratch)
        };
        decode(b"abc").unwrap();
        assert_eq!(decode(b"abcd").unwrap_err().kind().name(), "limit_exceeded");
    }

    #[test]
    fn front_coded() {
        let blob = Blob::Plain(Input::at(b"Main Street Northple Avenue", 30));
        let entries = ["Main Street", "Main Street North", "Maple Avenue"];
        assert_eq!(decoded(&[0, 11, 2, 11, 6, 10], blob, true).unwrap(), entries);
        // A prefix may split a character; entries may not.
        let [a, b] = ["\u{e9}", "\u{e8}"].map(str::as_bytes);
        let split = [a, &b[1..]].concat();
        let blob = Blob::Plain(Input::at(&split, 30));
        assert_eq!(decoded(&[0, 1, 2, 1], blob, true).unwrap(), ["\u{e9}", "\u{e8}"]);
        let error = decoded(&[0, 2, 2, 1], blob, true).unwrap_err();
        assert_eq!((error.kind().name(), error.offset(), error.value_index()), ("utf8", Some(30), Some(1)));
        assert_eq!(decoded(&[0], blob, true).unwrap_err().kind().name(), "front_coding_odd");
    }

    #[test]
    fn fsst() {
        let table = Table::read(&[2, 2], Input::new(b"abcd")).unwrap();
        let corpus = Blob::Fsst(&table, Input::at(&[0, 1, 0, 255, b'z'], 30));
        assert_eq!(decoded(&[4, 3], corpus, false).unwrap(), ["abcd", "abz"]);
        // A symbol may span values; what is left over does not matter.
        assert_eq!(decoded(&[1, 5], corpus, false).unwrap(), ["a", "bcdab"]);
        assert_eq!(decoded(&[4, 4], corpus, false).unwrap_err().kind().name(), "lengths_past_bytes");
        // But it does of front coding.
        assert_eq!(decoded(&[0, 3, 4, 3], corpus, true).unwrap(), ["abcd", "abcabz"]);
        assert_eq!(decoded(&[0, 3, 4, 2], corpus, true).unwrap_err().kind().name(), "front_coding_suffixes");
        let error = decoded(&[1], Blob::Fsst(&table, Input::at(&[255, 0xff], 30)), false).unwrap_err();
        assert_eq!((error.kind().name(), error.offset(), error.value_index()), ("utf8", Some(30), Some(0)));
        assert_eq!(
            decoded(&[1], Blob::Fsst(&table, Input::at(&[2], 30)), false).unwrap_err().kind().name(),
            "fsst_code"
        );
    }

    #[test]
    fn codes() {
        check_codes(&[], 8, 0).unwrap();
        check_codes(&[0, 1, 0, 0], 8, 2).unwrap();
        let error = check_codes(&[0, 1, 2, 3], 8, 2).unwrap_err();
        assert_eq!(
            (error.kind().name(), error.offset(), error.value_index()),
            ("code_out_of_dictionary", Some(8), Some(2))
        );
        assert_eq!(check_codes(&[0], 8, 0).unwrap_err().kind().name(), "code_out_of_dictionary");
    }

    #[cfg(feature = "encode")]
    #[test]
    fn dictionaries() {
        let values = ["Oslo", "Bergen", "Oslo", "Oslo"];
        assert_eq!(encode(values, false), (vec!["Oslo", "Bergen"], vec![0, 1, 0, 0]));
        assert_eq!(encode(values, true), (vec!["Bergen", "Oslo"], vec![1, 0, 1, 1]));
    }
}
