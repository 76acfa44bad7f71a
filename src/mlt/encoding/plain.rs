//! None: words as they are.
//!
//! Source: MapLibre Tile specification, Encodings, "None" of the physical encodings. Little-endian words, back to back.

use super::fault;
use super::word::Word;
use crate::error::{Error, Part};
use crate::input::Input;
use crate::mlt::MltFault;

/// Copies the words of a payload.
///
/// # Errors
/// The payload is not exactly as long as the words that `out` has room for.
pub fn decode<W: Word>(payload: Input<'_>, out: &mut [W]) -> Result<(), Error> {
    let words: &mut [u8] = bytemuck::cast_slice_mut(out);
    let bytes = payload.bytes();
    if bytes.len() != words.len() {
        let kind = MltFault::Length { found: bytes.len() as u64, expected: words.len() as u64 };
        return Err(fault(kind, Part::Values("", "words")).at(payload.offset()));
    }
    words.copy_from_slice(bytes);
    Ok(())
}

/// Appends words.
#[cfg(feature = "encode")]
pub fn encode<W: Word>(words: &[W], out: &mut Vec<u8>) {
    out.extend_from_slice(bytemuck::cast_slice(words));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, told};
    use super::*;

    #[test]
    fn words() {
        let mut out = [0u32; 2];
        decode(at(&[1, 2, 0, 0, 0, 0, 0, 0x80]), &mut out).unwrap();
        assert_eq!(out, [0x201, 0x8000_0000]);
        let mut out = [0u64; 1];
        decode(at(&[1, 2, 0, 0, 0, 0, 0, 0x80]), &mut out).unwrap();
        assert_eq!(out, [0x8000_0000_0000_0201]);
        decode::<u64>(at(&[]), &mut []).unwrap();
    }

    /// C18: neither shorter nor longer than the words.
    #[test]
    fn length() {
        for len in [0, 7, 9, 12] {
            assert_eq!(told(decode(at(&[0; 12][..len]), &mut [0u32; 2])), ("stream_length", 0));
        }
    }
}
