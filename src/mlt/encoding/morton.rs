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

/// The bits of an axis and the shift that the format derives from all vertices; none if it takes more than 16 bits.
#[cfg(feature = "encode")]
pub fn parameters(vertices: &[i32]) -> Option<(u32, u32)> {
    let least = vertices.iter().fold(0, |least: i32, &coordinate| least.min(coordinate));
    let most = vertices.iter().fold(least, |most, &coordinate| most.max(coordinate));
    let bits = u32::BITS - most.abs_diff(least).leading_zeros();
    (bits <= MAX_BITS).then_some((bits, least.unsigned_abs()))
}

/// The code of a vertex whose shifted coordinates have 16 bits at most.
#[cfg(feature = "encode")]
pub fn code(x: i32, y: i32, shift: u32) -> u32 {
    let spread = |coordinate: i32| {
        let bits = coordinate.cast_unsigned().wrapping_add(shift) & 0xffff;
        let bits = (bits | bits << 8) & 0x00ff_00ff;
        let bits = (bits | bits << 4) & 0x0f0f_0f0f;
        let bits = (bits | bits << 2) & 0x3333_3333;
        (bits | bits << 1) & 0x5555_5555
    };
    spread(x) | spread(y) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's.
    fn loops(code: u32, bits: u32, shift: u32) -> [i32; 2] {
        let (mut x, mut y) = (0u32, 0u32);
        for i in 0..bits {
            let mask = 1 << (2 * i);
            x |= (code & mask) >> i;
            y |= ((code >> 1) & mask) >> i;
        }
        [x.wrapping_sub(shift).cast_signed(), y.wrapping_sub(shift).cast_signed()]
    }

    #[test]
    fn worked_examples() {
        for kernels in Kernels::available() {
            let mut out = [0; 6];
            decode(kernels, &[27, 3, 15], 3, 0, &mut out).unwrap();
            assert_eq!(out[..2], [5, 3]);
            assert_eq!(out.as_chunks::<2>().0, [27, 30, 45].map(|code| loops(code, 3, 0)));
        }
        #[cfg(feature = "encode")]
        assert_eq!(code(5, 3, 0), 27);
    }

    #[test]
    fn all_bits() {
        let words: Vec<u32> = (0..500u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        for (kernels, bits) in Kernels::available().flat_map(|kernels| (0..=MAX_BITS).map(move |bits| (kernels, bits)))
        {
            for shift in [0, 77, u32::MAX] {
                let (mut out, mut code) = (vec![0; 1000], 0u32);
                decode(kernels, &words, bits, shift, &mut out).unwrap();
                for (&word, &vertex) in words.iter().zip(out.as_chunks::<2>().0) {
                    code = code.wrapping_add(word);
                    assert_eq!(vertex, loops(code, bits, shift), "{}, {bits} bits", kernels.name());
                }
            }
        }
    }

    #[test]
    fn too_many_bits() {
        for bits in [17, 32, u32::MAX] {
            let error = decode(Kernels::auto(), &[0], bits, 0, &mut [0; 2]).unwrap_err();
            assert_eq!(error.kind().name(), "morton_bits");
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn encodes() {
        assert_eq!(parameters(&[]), Some((0, 0)));
        assert_eq!(parameters(&[0, 5, 3, 7]), Some((3, 0)));
        assert_eq!(parameters(&[-4, 4, 0, 0]), Some((4, 4)));
        assert_eq!(parameters(&[0, 65535]), Some((16, 0)));
        assert_eq!(parameters(&[0, 65536]), None);
        assert_eq!(parameters(&[i32::MIN, i32::MAX]), None);
        for vertex in [[-4, 4], [0, 0], [-1, 3], [4, -4]] {
            assert_eq!(loops(code(vertex[0], vertex[1], 4), 4, 4), vertex);
        }
    }
}
