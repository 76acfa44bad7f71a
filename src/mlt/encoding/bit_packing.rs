//! Bit Packing: every word in as many bits as the largest needs.
//!
//! Source: MapLibre Tile specification, Encodings, "Bit Packing". A byte that holds the width, 1 to 32, then the words,
//! lowest bit first, end to end. Bits behind the last word are ignored, bytes are not.

use super::fault;
use super::word::Word;
use crate::error::{Error, Part};
use crate::input::Input;
use crate::mlt::{MltFault, Options};

/// Unpacks a payload.
///
/// # Errors
/// A width that is not 1 to 32, or another length than width and words make.
pub fn decode<W: Word>(payload: Input<'_>, out: &mut [W], options: &Options) -> Result<(), Error> {
    let (width, packed) = packed(payload, out.len() as u64)?;
    W::unpack(options.kernels, packed, width, out);
    Ok(())
}

/// The width of a payload of so many words, and what is packed.
pub(crate) fn packed(payload: Input<'_>, words: u64) -> Result<(u32, &[u8]), Error> {
    let found = payload.bytes().len() as u64;
    let length = |expected| {
        let kind = MltFault::BitPackedLength { found, expected };
        fault(kind, Part::Values("", "packed words")).at(payload.offset())
    };
    let Some((&width, packed)) = payload.bytes().split_first() else {
        return Err(length(1));
    };
    if !(1..=32).contains(&width) {
        return Err(fault(MltFault::BitWidth { found: width }, Part::Values("", "width")).at(payload.offset()));
    }
    let expected = words.saturating_mul(width.into()).div_ceil(8);
    if packed.len() as u64 != expected {
        return Err(length(expected.saturating_add(1)));
    }
    Ok((width.into(), packed))
}

/// Appends a payload.
///
/// # Panics
/// If a word has more than 32 bits.
#[cfg(feature = "encode")]
pub fn encode<W: Word>(words: &[W], out: &mut Vec<u8>) {
    let width = words.iter().map(|word| 64 - word.widen().leading_zeros()).max().unwrap_or(0).max(1);
    assert!(width <= 32, "{width} bits");
    out.push(width.to_le_bytes()[0]);
    crate::output::pack(words.iter().map(|word| word.widen()), width, out);
}
