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
