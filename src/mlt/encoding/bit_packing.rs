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

#[cfg(test)]
mod tests {
    use super::super::testing::{at, everywhere, told};
    use super::*;

    fn fault_of(bytes: &[u8], n: usize) -> (&'static str, u64) {
        everywhere(|options| told(decode(at(bytes), &mut vec![0u32; n], options)))
    }

    #[test]
    fn worked_example() {
        let payload = [0x03, 0xcd, 0x01];
        let words = everywhere(|options| {
            let mut out = [9u32; 4];
            decode(at(&payload), &mut out, options).unwrap();
            out
        });
        assert_eq!(words, [5, 1, 7, 0]);
    }

    #[test]
    fn padding_is_ignored() {
        let words = everywhere(|options| {
            let mut out = [9u64; 4];
            decode(at(&[0x03, 0xcd, 0xf1]), &mut out, options).unwrap();
            out
        });
        assert_eq!(words, [5, 1, 7, 0]);
    }

    /// R1 and R2.
    #[test]
    fn refused() {
        assert_eq!(fault_of(&[0, 0, 0], 4), ("bit_width", 0));
        assert_eq!(fault_of(&[33; 18], 4), ("bit_width", 0));
        assert_eq!(fault_of(&[255; 18], 4), ("bit_width", 0));
        assert_eq!(fault_of(&[], 4), ("bit_packed_length", 0));
        assert_eq!(fault_of(&[3, 0xcd], 4), ("bit_packed_length", 0));
        assert_eq!(fault_of(&[3, 0xcd, 1, 0], 4), ("bit_packed_length", 0));
    }

    #[cfg(feature = "encode")]
    #[test]
    fn encoded() {
        for (words, payload) in
            [(&[5u32, 1, 7, 0][..], &[0x03, 0xcd, 0x01][..]), (&[], &[1]), (&[0; 9], &[1, 0, 0]), (&[1], &[1, 1])]
        {
            let mut out = Vec::new();
            encode(words, &mut out);
            assert_eq!(out, payload);
        }
    }
}
