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

#[cfg(test)]
mod tests {
    use super::super::testing::{at, everywhere, told};
    use super::*;

    /// Name, offset, and the value's index.
    type Refusal = (&'static str, u64, Option<u64>);

    fn decoded<W: Word>(bytes: &[u8], n: usize) -> Result<(Vec<W>, u64), Refusal> {
        everywhere(|options| {
            let (mut input, mut out) = (at(bytes), vec![W::zeroed(); n]);
            let result = decode(&mut input, &mut out, options);
            let index = result.as_ref().err().and_then(Error::value_index);
            if result.is_ok() {
                return Ok((out, input.offset() - super::super::testing::START));
            }
            let (name, offset) = told(result);
            Err((name, offset, index))
        })
    }

    #[test]
    fn worked_example() {
        assert_eq!(decoded::<u32>(&[0xac, 0x02], 1), Ok((vec![300], 2)));
        assert_eq!(decoded::<u64>(&[0xac, 0x02, 0xac], 1), Ok((vec![300], 2)));
    }

    #[test]
    fn longest() {
        assert_eq!(decoded::<u32>(&[0xff, 0xff, 0xff, 0xff, 0x0f], 1), Ok((vec![u32::MAX], 5)));
        let mut bytes = [0xff; 10];
        bytes[9] = 1;
        assert_eq!(decoded::<u64>(&bytes, 1), Ok((vec![u64::MAX], 10)));
        // Longer than need be.
        assert_eq!(decoded::<u32>(&[0x81, 0x80, 0x80, 0x80, 0x00], 1), Ok((vec![1], 5)));
    }

    /// C15, and the end of the payload.
    #[test]
    fn refused() {
        assert_eq!(decoded::<u32>(&[1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00], 2), Err(("varint_overflow", 1, Some(1))));
        assert_eq!(decoded::<u32>(&[0xff, 0xff, 0xff, 0xff, 0x1f], 1), Err(("varint_overflow", 0, Some(0))));
        assert_eq!(decoded::<u64>(&[0xff; 11], 1), Err(("varint_overflow", 0, Some(0))));
        assert_eq!(decoded::<u32>(&[1, 2, 0x80], 3), Err(("truncated", 2, Some(2))));
        assert_eq!(decoded::<u32>(&[1, 2], 3), Err(("truncated", 2, Some(2))));
    }
}
