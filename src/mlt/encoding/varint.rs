//! VarInt: words in groups of 7 bits.
//!
//! Source: MapLibre Tile specification, Encodings, "VarInt". The lowest group first; bit 7 of a byte says that another
//! follows. A word of 32 bits takes 5 bytes at most, one of 64 bits 10. Longer forms than need be are accepted within
//! those.

use super::word::Word;
use crate::error::{EncodingFault, Error, ErrorKind, Part};
use crate::input::Input;
use crate::mlt::Options;

const PART: Part = Part::Values("", "varint");

/// Takes as many words as `out` has room for.
///
/// # Errors
/// Truncated, or a varint of too many bits or bytes; with the index of its word.
pub fn decode<W: Word>(input: &mut Input<'_>, out: &mut [W], options: &Options) -> Result<(), Error> {
    let seen = W::varints(options.kernels, input.bytes(), out);
    input.take(seen.bytes as u64, PART)?;
    if seen.values < out.len() { Err(stopped::<W>(*input).index(seen.values as u64)) } else { Ok(()) }
}

/// Takes one word of `bits` bits.
pub(crate) fn next(input: &mut Input<'_>, bits: u32) -> Result<u64, Error> {
    let start = input.offset();
    let value = input.uleb(bits, PART)?;
    if input.offset() - start > bits.div_ceil(7).into() {
        return Err(overflow(bits, start));
    }
    Ok(value)
}

/// Why no word could be taken from here.
#[cold]
fn stopped<W: Word>(mut input: Input<'_>) -> Error {
    let start = input.offset();
    next(&mut input, W::BITS).err().unwrap_or_else(|| overflow(W::BITS, start))
}

#[cold]
fn overflow(bits: u32, offset: u64) -> Error {
    Error::new(ErrorKind::Encoding(EncodingFault::VarintOverflow { bits }), PART).at(offset)
}

/// Appends words.
#[cfg(feature = "encode")]
pub fn encode<W: Word>(words: &[W], out: &mut Vec<u8>) {
    words.iter().for_each(|word| crate::output::push_uleb(word.widen(), out));
}
