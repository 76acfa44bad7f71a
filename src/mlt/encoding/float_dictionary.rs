//! Floating-point numbers: as they are, or as codes into the distinct ones.
//!
//! Source: the encodings page, "Plain Floats" and "Float Dictionary". Numbers are little-endian. Entries of a dictionary
//! are distinct by their bits.

use super::{Float, Scratch, fault};
use crate::buffer::grow;
use crate::error::{Error, Part};
use crate::input::Input;
use crate::mlt::{MltFault, Options};

const FLOATS: Part = Part::Values("", "numbers");
const CODE: Part = Part::Values("", "code");

/// Plain floats, whose bytes `input` has exactly.
///
/// # Errors
/// [`MltFault::Length`].
pub fn plain<T: Float>(input: Input<'_>, out: &mut [T]) -> Result<(), Error> {
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    if input.bytes().len() != out.len() {
        let kind = MltFault::Length { found: input.bytes().len() as u64, expected: out.len() as u64 };
        return Err(fault(kind, FLOATS).at(input.offset()));
    }
    out.copy_from_slice(input.bytes());
    Ok(())
}

/// Values by their codes, from a dictionary of so many entries. `codes_at` is the offset of the stream of codes, for
/// errors.
///
/// # Errors
/// [`MltFault::Length`] of the dictionary, [`MltFault::Code`].
///
/// # Panics
/// If `codes` and `out` differ in length.
pub fn decode<T: Float>(
    codes: &[u32],
    codes_at: u64,
    dictionary: Input<'_>,
    entries: usize,
    out: &mut [T],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    // In words that are aligned as kernels want them.
    let words = (entries * size_of::<T>()).div_ceil(8);
    grow(&mut scratch.long_words, words)?;
    let table: &mut [T] = &mut bytemuck::cast_slice_mut(&mut scratch.long_words[..words])[..entries];
    plain(dictionary, table)?;
    match T::gather(options.kernels, table, codes, out) {
        None => Ok(()),
        Some(i) => {
            let kind = MltFault::Code { found: codes[i], entries: entries as u64 };
            Err(fault(kind, CODE).at(codes_at).index(i as u64))
        }
    }
}
