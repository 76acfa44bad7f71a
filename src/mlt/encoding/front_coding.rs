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
