//! Morton codes of vertices: the bits of x and y in turn.
//!
//! Source: the encodings page, "Morton". A stream of unsigned words: the first code, then what each is above the one
//! before; no zigzag. The header has the bits of an axis and what was added to both coordinates.

use super::fault;
use crate::error::{Error, Part};
use crate::kernels::Kernels;
use crate::mlt::MltFault;

const BITS: Part = Part::Values("", "bits");

/// Bits of an axis at most.
pub(crate) const MAX_BITS: u32 = 16;

/// Coordinates, x and y in turn, from the differences of codes.
///
/// # Errors
/// [`MltFault::MortonBits`], without an offset: the header has them.
///
/// # Panics
/// If `out` is not twice as long as `words`.
pub fn decode(kernels: Kernels, words: &[u32], bits: u32, shift: u32, out: &mut [i32]) -> Result<(), Error> {
    if bits > MAX_BITS {
        return Err(fault(MltFault::MortonBits { found: bits }, BITS));
    }
    kernels.morton(words, bits, shift, out);
    Ok(())
}
