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

/// Values as integers.
#[cfg(feature = "encode")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The exponent and the factor.
    pub scale: u8,
    /// The smallest integer.
    pub base: i64,
    /// The integers less the base.
    pub integers: Vec<u64>,
}

/// Finds the scale whose integers span the least, of those the one with the smallest exponent and factor. None if there
/// is none that gives back every value to the bit.
#[cfg(feature = "encode")]
pub fn encode<T: Float>(values: &[T]) -> Option<Scaled> {
    let bounds_at = |scale| {
        let mut bounds = (i64::MAX, i64::MIN);
        for &value in values {
            let integer = integer(value, scale)?;
            bounds = (bounds.0.min(integer), bounds.1.max(integer));
        }
        Some(if values.is_empty() { (0, 0) } else { bounds })
    };
    let all = (0..=MAX_SCALE).filter_map(|scale| Some((scale, bounds_at(scale)?)));
    let (scale, (base, _)) = all.min_by_key(|(_, (least, most))| most.abs_diff(*least))?;
    let integers = values.iter().map(|&value| Some(integer(value, scale)?.abs_diff(base))).collect::<Option<_>>()?;
    Some(Scaled { scale, base, integers })
}

/// The integer that stands for a value, if it gives the value back to the bit.
#[cfg(feature = "encode")]
#[expect(clippy::cast_possible_truncation, reason = "a number that is cut does not scale back")]
fn integer<T: Float>(value: T, scale: u8) -> Option<i64> {
    let (exponent, factor) = exponents(scale)?;
    let (e, f) = (usize::from(exponent), usize::from(factor));
    let integer = (value.to_f64() * UP[e] * DOWN[f]).round_ties_even() as i64;
    (T::from_f64(integer as f64 * UP[f] * DOWN[e]).bits() == value.bits()).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On every level.
    fn decoded<T: Float + std::fmt::Debug + PartialEq>(scale: u8, base: i64, integers: &[u64]) -> Vec<T> {
        let mut first = vec![T::zeroed(); integers.len()];
        decode(Kernels::auto(), scale, base, integers, &mut first).unwrap();
        for kernels in Kernels::available() {
            let mut out = vec![T::zeroed(); integers.len()];
            decode(kernels, scale, base, integers, &mut out).unwrap();
            assert!(bytemuck::cast_slice::<_, u8>(&out) == bytemuck::cast_slice::<_, u8>(&first), "{}", kernels.name());
        }
        first
    }

    #[test]
    fn scales() {
        for scale in 0..=MAX_SCALE {
            let exponent = (((8.0 * f64::from(scale) + 1.0).sqrt() - 1.0) / 2.0).floor() as u8;
            let factor = u16::from(scale) - u16::from(exponent) * (u16::from(exponent) + 1) / 2;
            assert_eq!(exponents(scale), Some((exponent, factor as u8)));
        }
        assert_eq!(exponents(MAX_SCALE), Some((18, 18)));
        for scale in MAX_SCALE + 1..=u8::MAX {
            let error = decode::<f64>(Kernels::auto(), scale, 0, &[], &mut []).unwrap_err();
            assert_eq!(error.kind().name(), "alp_scale");
        }
    }

    #[test]
    fn powers() {
        for i in 0..=MAX {
            assert_eq!(UP[i], format!("1e{i}").parse::<f64>().unwrap());
            assert_eq!(DOWN[i], format!("1e-{i}").parse::<f64>().unwrap());
        }
    }

    #[test]
    fn worked_example() {
        let values = [-0.75, 0.25, 1.5, -2.25];
        assert_eq!(decoded::<f64>(3, -225, &[150, 250, 375, 0]), values);
        assert_eq!(decoded::<f32>(3, -225, &[150, 250, 375, 0]), values.map(|value| value as f32));
    }

    /// The sum is one of integers; it wraps.
    #[test]
    fn sums() {
        assert_eq!(decoded::<f64>(0, -2, &[0, (1 << 53) + 1]), [-2.0, 9_007_199_254_740_991.0]);
        assert_eq!(decoded::<f64>(0, i64::MAX, &[1, u64::MAX]), [i64::MIN as f64, i64::MAX as f64]);
    }

    /// Each product is rounded, then the result to 32 bits: (i * 10^f) * 10^-e.
    #[test]
    fn rounding() {
        let integers: Vec<u64> = (0..1000u64).map(|i| i * i * 987_654_321).collect();
        for (scale, (exponent, factor)) in (0..=MAX_SCALE).map(|scale| (scale, exponents(scale).unwrap())) {
            let up: f64 = format!("1e{factor}").parse().unwrap();
            let down: f64 = format!("1e-{exponent}").parse().unwrap();
            let expected: Vec<f64> = integers.iter().map(|&i| (i as i64 - 7) as f64 * up * down).collect();
            assert_eq!(decoded::<f64>(scale, -7, &integers), expected);
            let expected: Vec<f32> = expected.iter().map(|&value| value as f32).collect();
            assert_eq!(decoded::<f32>(scale, -7, &integers), expected);
        }
    }

    #[cfg(feature = "encode")]
    fn round_trip<T: Float + std::fmt::Debug + PartialEq>(values: &[T]) -> Scaled {
        let scaled = encode(values).unwrap();
        let out = decoded::<T>(scaled.scale, scaled.base, &scaled.integers);
        assert!(out.iter().zip(values).all(|(a, b)| a.bits() == b.bits()), "{scaled:?}");
        scaled
    }

    #[cfg(feature = "encode")]
    #[test]
    fn encodes() {
        let scaled = round_trip(&[-0.75, 0.25, 1.5, -2.25]);
        assert_eq!(scaled, Scaled { scale: 3, base: -225, integers: vec![150, 250, 375, 0] });
        round_trip::<f64>(&[]);
        round_trip(&[5e9, 7e9, 1e10]);
        round_trip(&[i64::MIN as f64, 0.0]);
        round_trip(&(0..1000).map(|i| f64::from(i * 37 % 1000) / 100.0).collect::<Vec<_>>());
        round_trip(&(0..1000).map(|i| (i * 37 % 1000) as f32 / 10.0).collect::<Vec<_>>());
        for value in [-0.0, f64::NAN, f64::INFINITY, 1e300, f64::MIN_POSITIVE, std::f64::consts::PI * 1e-9] {
            assert_eq!(encode(&[1.0, value]), None, "{value}");
        }
        for value in [-0.0, f32::NAN, f32::NEG_INFINITY, f32::MAX] {
            assert_eq!(encode(&[1.0, value]), None, "{value}");
        }
    }
}
