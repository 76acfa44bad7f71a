//! Floating-point numbers: as they are, or as codes into the distinct ones.
//!
//! Source: the encodings page, "Plain Floats" and "Float Dictionary". Numbers are little-endian. Entries of a dictionary
//! are distinct by their bits.

use super::{Float, Scratch, fault, room};
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
    check_length::<T>(input, out.len())?;
    bytemuck::cast_slice_mut(out).copy_from_slice(input.bytes());
    Ok(())
}

fn check_length<T>(input: Input<'_>, values: usize) -> Result<(), Error> {
    let (found, expected) = (input.bytes().len() as u64, (values as u64).saturating_mul(size_of::<T>() as u64));
    if found == expected { Ok(()) } else { Err(fault(MltFault::Length { found, expected }, FLOATS).at(input.offset())) }
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
    // Before there is memory for as many as are stated.
    check_length::<T>(dictionary, entries)?;
    // In words that are aligned as kernels want them.
    let words = room(&mut scratch.long_words, dictionary.bytes().len().div_ceil(8));
    let table: &mut [T] = &mut bytemuck::cast_slice_mut(words)[..entries];
    plain(dictionary, table)?;
    match T::gather(options.kernels, table, codes, out) {
        None => Ok(()),
        Some(i) => {
            let kind = MltFault::Code { found: codes[i], entries: entries as u64 };
            Err(fault(kind, CODE).at(codes_at).index(i as u64))
        }
    }
}

/// The distinct values by their bits, in the order in which each comes first, and the code of each value.
///
/// # Panics
/// If there are 2^32 distinct ones or more.
#[cfg(feature = "encode")]
pub fn encode<T: Float>(values: &[T]) -> (Vec<T>, Vec<u32>) {
    let (first, codes) = super::distinct(values.iter().map(|value| value.bits()));
    let mut entries = vec![T::zeroed(); first.len()];
    for (&value, &code) in values.iter().zip(&codes) {
        entries[code as usize] = value;
    }
    (entries, codes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::alike;
    use super::*;

    /// The bytes of the values, on every level, from a dictionary at an odd address.
    fn decoded<T: Float>(codes: &[u32], dictionary: &[T], entries: usize) -> Result<Vec<u8>, Error> {
        let bytes = [&[0], bytemuck::cast_slice(dictionary)].concat();
        alike(|options| {
            let (mut scratch, mut out) = (Scratch::new(), vec![T::zeroed(); codes.len()]);
            decode(codes, 5, Input::at(&bytes[1..], 100), entries, &mut out, options, &mut scratch)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        })
    }

    #[test]
    fn worked_example() {
        let values = [1.5f32, 0.25, 1.5, 1.5, 0.25];
        let (codes, entries) = ([0, 1, 0, 0, 1], [1.5f32, 0.25]);
        assert_eq!(decoded(&codes, &entries, 2).unwrap(), bytemuck::cast_slice::<_, u8>(&values));
        #[cfg(feature = "encode")]
        assert_eq!(encode(&values), (entries.to_vec(), codes.to_vec()));
    }

    #[test]
    fn bits_are_kept() {
        let values = [0.0f64, -0.0, f64::from_bits(0x7ff8_0000_0000_0001), f64::NAN, 0.0];
        let (codes, entries) = ([0, 1, 2, 3, 0], &values[..4]);
        assert_eq!(decoded(&codes, entries, 4).unwrap(), bytemuck::cast_slice::<_, u8>(&values));
        #[cfg(feature = "encode")]
        {
            let (found, numbers) = encode(&values);
            assert_eq!(bytemuck::cast_slice::<_, u8>(&found), bytemuck::cast_slice::<_, u8>(entries));
            assert_eq!(numbers, codes);
        }
        assert!(decoded::<f32>(&[], &[], 0).unwrap().is_empty());
    }

    #[test]
    fn faults() {
        let error = decoded(&[0, 1, 2, 9], &[1.0f32, 2.0], 2).unwrap_err();
        assert_eq!(
            (error.kind().name(), error.offset(), error.value_index()),
            ("code_out_of_dictionary", Some(5), Some(2))
        );
        assert_eq!(decoded(&[0], &[0f64; 0], 0).unwrap_err().kind().name(), "code_out_of_dictionary");
        for entries in [1, 3, u32::MAX as usize] {
            let error = decoded(&[0], &[1.0f64, 2.0], entries).unwrap_err();
            assert_eq!((error.kind().name(), error.offset()), ("stream_length", Some(100)));
        }
    }
}
