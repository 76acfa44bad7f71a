//! Framed, exception-free ALP: floating-point numbers as scaled integers, less the smallest.
//!
//! Source: the encodings page, "Framed, Exception-Free ALP". The header has the scale, which numbers the pairs of an
//! exponent and a factor, and the base. The payload is a stream of unsigned 64-bit integers; a value is
//! `(base + integer) * 10^factor * 10^-exponent`: the sum wraps, and each product is rounded once, in 64 bits for
//! 32-bit values, too.

use super::{Float, fault};
use crate::error::{Error, Part};
use crate::kernels::Kernels;
use crate::mlt::MltFault;

const SCALE: Part = Part::Values("", "scale");

/// The largest exponent.
const MAX: usize = 18;

/// The largest scale: it numbers the pairs with a factor that is at most the exponent.
pub(crate) const MAX_SCALE: u8 = 189;

/// Powers of ten, all exact.
const UP: [f64; MAX + 1] = {
    let mut powers = [1.0; MAX + 1];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10.0;
        i += 1;
    }
    powers
};

/// The doubles that are nearest to their inverses: what dividing exact numbers gives.
const DOWN: [f64; MAX + 1] = {
    let mut powers = UP;
    let mut i = 0;
    while i < powers.len() {
        powers[i] = 1.0 / powers[i];
        i += 1;
    }
    powers
};

/// The exponent and the factor that a scale numbers; none if it is above 189.
pub fn exponents(scale: u8) -> Option<(u8, u8)> {
    let (mut exponent, mut factor) = (0, scale);
    while factor > exponent {
        exponent += 1;
        factor -= exponent;
    }
    (scale <= MAX_SCALE).then_some((exponent, factor))
}

/// Values from their integers less `base`.
///
/// # Errors
/// [`MltFault::AlpScale`], without an offset: the header has the scale.
///
/// # Panics
/// If `integers` and `out` differ in length.
pub fn decode<T: Float>(kernels: Kernels, scale: u8, base: i64, integers: &[u64], out: &mut [T]) -> Result<(), Error> {
    let (exponent, factor) = exponents(scale).ok_or_else(|| fault(MltFault::AlpScale { found: scale }, SCALE))?;
    T::scale(kernels, integers, base, UP[usize::from(factor)], DOWN[usize::from(exponent)], out);
    Ok(())
}
