//! Front coding: entries of a dictionary that share their first bytes with the entry before.
//!
//! Source: the encodings page, "Front Coding". The lengths are those of all shared prefixes, then those of all suffixes;
//! the blob has the suffixes, and nothing else. Prefixes are counted in bytes and may split a character.

use super::{exactly, fault};
use crate::buffer::grow;
use crate::error::{Error, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;
use crate::mlt::{MltFault, Options};

const LENGTHS: Part = Part::Values("", "lengths");
const PREFIX: Part = Part::Values("", "prefix length");
const SUFFIXES: Part = Part::Values("", "suffixes");
const ENTRIES: Part = Part::Values("", "entries");

/// Puts entries together: `offsets` are where each starts, and the last ends; `out` their bytes. Both are overwritten.
/// Whether they are text is not looked at.
///
/// # Errors
/// [`MltFault::OddLengths`], [`MltFault::Prefix`], [`MltFault::Suffixes`], or more bytes than the limits allow.
pub fn decode(
    lengths: &[u32],
    suffixes: Input<'_>,
    offsets: &mut Vec<u32>,
    out: &mut Vec<u8>,
    options: &Options,
) -> Result<(), Error> {
    let error = |kind, part| fault(kind, part).at(suffixes.offset());
    if !lengths.len().is_multiple_of(2) {
        return Err(error(MltFault::OddLengths { found: lengths.len() as u64 }, LENGTHS));
    }
    let (prefixes, new) = lengths.split_at(lengths.len() / 2);
    exactly(offsets, prefixes.len() + 1)?;
    let (mut before, mut end, mut total) = (0u64, 0u64, 0u64);
    for (i, ((&prefix, &suffix), offset)) in prefixes.iter().zip(new).zip(&mut offsets[1..]).enumerate() {
        let (prefix, suffix) = (u64::from(prefix), u64::from(suffix));
        if prefix > before {
            return Err(error(MltFault::Prefix { found: prefix, max: before }, PREFIX).index(i as u64));
        }
        before = prefix + suffix;
        end += before;
        total += suffix;
        // What is cut here is refused below.
        *offset = u32::try_from(end).unwrap_or(u32::MAX);
    }
    let expected = suffixes.bytes().len() as u64;
    if total != expected {
        return Err(error(MltFault::Suffixes { found: total, expected }, SUFFIXES));
    }
    let limit = options.limits.max_output_bytes.min(u32::MAX.into());
    Limits::check(end, limit, Limit::OutputBytes, ENTRIES).map_err(|e| e.at(suffixes.offset()))?;
    offsets[0] = 0;
    let end = offsets[prefixes.len()] as usize;
    grow(out, end)?;
    out.truncate(end);
    options.kernels.prefixed(&[], prefixes, new, suffixes.bytes(), out);
    Ok(())
}

/// The lengths, prefixes before suffixes, and the suffixes of entries, which should be sorted.
///
/// # Panics
/// If an entry has 2^32 bytes or more.
#[cfg(feature = "encode")]
pub fn encode<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u32>, Vec<u8>) {
    let (mut lengths, mut new, mut suffixes, mut before) = (Vec::new(), Vec::new(), Vec::new(), &[][..]);
    let length = |bytes: usize| u32::try_from(bytes).expect("less than 4 GiB");
    for entry in entries {
        let shared = entry.iter().zip(before).take_while(|(a, b)| a == b).count();
        lengths.push(length(shared));
        new.push(length(entry.len() - shared));
        suffixes.extend_from_slice(&entry[shared..]);
        before = entry;
    }
    lengths.append(&mut new);
    (lengths, suffixes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::alike;
    use super::*;

    fn decoded(lengths: &[u32], suffixes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        limited(lengths, suffixes, Limits::default())
    }

    fn limited(lengths: &[u32], suffixes: &[u8], limits: Limits) -> Result<Vec<Vec<u8>>, Error> {
        alike(|options| {
            // What was there does not matter.
            let (mut offsets, mut out) = (vec![7; 3], vec![7; 100]);
            decode(lengths, Input::at(suffixes, 10), &mut offsets, &mut out, &options.limits(limits))?;
            assert_eq!(offsets.last().map(|&end| end as usize), Some(out.len()));
            Ok(offsets.windows(2).map(|bounds| out[bounds[0] as usize..bounds[1] as usize].to_vec()).collect())
        })
    }

    #[test]
    fn worked_example() {
        let entries: [&[u8]; 3] = [b"Main Street", b"Main Street North", b"Maple Avenue"];
        let (lengths, suffixes) = ([0, 11, 2, 11, 6, 10], b"Main Street Northple Avenue");
        assert_eq!(decoded(&lengths, suffixes).unwrap(), entries);
        #[cfg(feature = "encode")]
        assert_eq!(encode(entries), (lengths.to_vec(), suffixes.to_vec()));
    }

    #[test]
    fn few_and_empty_entries() {
        assert!(decoded(&[], b"").unwrap().is_empty());
        assert_eq!(decoded(&[0, 0], b"").unwrap(), [b""]);
        assert_eq!(decoded(&[0, 0, 0, 1, 0, 1], b"ab").unwrap(), [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn faults() {
        let fault = |lengths: &[u32], suffixes: &[u8]| {
            let error = decoded(lengths, suffixes).unwrap_err();
            assert_eq!(error.offset(), Some(10));
            (error.kind().name(), error.value_index())
        };
        assert_eq!(fault(&[0, 0, 0], b""), ("front_coding_odd", None));
        assert_eq!(fault(&[1, 1], b"a"), ("prefix_too_long", Some(0)));
        assert_eq!(fault(&[0, 2, 1, 1], b"ab"), ("prefix_too_long", Some(1)));
        assert_eq!(fault(&[0, 1, 1, 1], b"abc"), ("front_coding_suffixes", None));
        assert_eq!(fault(&[0, 1, 1, 1], b"a"), ("front_coding_suffixes", None));
        assert_eq!(fault(&[0, u32::MAX, u32::MAX, u32::MAX], b"a"), ("front_coding_suffixes", None));
    }

    /// Few bytes can honestly mean many: the limits bound them.
    #[test]
    fn limits() {
        let n = 1 << 16;
        let mut lengths = vec![n; 2 * n as usize];
        lengths[0] = 0;
        lengths[n as usize + 1..].fill(0);
        let error = limited(&lengths, &vec![b'a'; n as usize], Limits::default()).unwrap_err();
        assert_eq!(error.kind().name(), "limit_exceeded");
        let error = limited(&[0, 3, 3, 0], b"abc", Limits::default().with_output_bytes(5)).unwrap_err();
        assert_eq!(error.kind().name(), "limit_exceeded");
        assert_eq!(limited(&[0, 3, 3, 0], b"abc", Limits::default().with_output_bytes(6)).unwrap(), [b"abc", b"abc"]);
    }
}
