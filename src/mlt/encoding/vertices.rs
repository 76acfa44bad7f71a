//! Vertices: signed words, x and y (and z) in turn.
//!
//! Source: the encodings page, "Vertex Streams"; "MLT v2 container", 4.1, for z. Words are the coordinates in zigzag
//! code, differences over the flat sequence, differences to the same coordinate of the vertex before or between these,
//! differences of Morton codes, or rANS codes. A dictionary is a stream of distinct vertices and one of offsets into it.

use super::integers::{self, Coding};
use super::{Scratch, exactly, fault, morton, rans};
use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::input::Input;
use crate::mlt::{Logical, MltFault, Options};

const VERTICES: Part = Part::Values("", "vertices");
const OFFSET: Part = Part::Values("", "vertex offset");

/// Vertices of `components` coordinates, as many as `out` has room for. Of `coding`, `words` and `signed` are not looked
/// at. `runs` are the bounds of the runs of rANS: see [`rans::decode`].
///
/// # Errors
/// Those of [`integers::decode`], [`morton::decode`] and [`rans::decode`]; [`Unsupported::Encoding`] for a logical
/// encoding that vertices of so many coordinates cannot have.
///
/// # Panics
/// If `components` is not 2 or 3, or `out` holds no whole number of vertices.
pub fn decode(
    coding: &Coding,
    payload: Input<'_>,
    components: u8,
    runs: Option<&[u32]>,
    out: &mut [i32],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let stride = usize::from(components);
    assert!((2..=3).contains(&stride) && out.len().is_multiple_of(stride), "vertices of {stride} coordinates");
    let words = |signed, out: &mut [u32], scratch: &mut Scratch| {
        let coding = Coding { logical: Logical::None, signed, ..*coding };
        integers::decode(&coding, payload, out, options, scratch)
    };
    match (coding.logical, components) {
        (Logical::None, _) => words(true, bytemuck::cast_slice_mut(out), scratch),
        (Logical::Delta | Logical::ComponentwiseDelta, _) | (Logical::ComponentwiseDelta2, 2) => {
            let out = bytemuck::cast_slice_mut(out);
            words(false, out, scratch)?;
            match coding.logical {
                Logical::Delta => options.kernels.zigzag_deltas_u32(out, 1),
                Logical::ComponentwiseDelta => options.kernels.zigzag_deltas_u32(out, stride),
                _ => options.kernels.zigzag_deltas2_u32(out, stride),
            }
            Ok(())
        }
        (Logical::Morton { bits, shift }, 2) => {
            let mut codes = std::mem::take(&mut scratch.vertices);
            exactly(&mut codes, out.len() / 2)?;
            let done = words(false, &mut codes, scratch)
                .and_then(|()| morton::decode(options.kernels, &codes, bits, shift, out));
            scratch.vertices = codes;
            done
        }
        (Logical::Rans, 2) => rans::decode(payload, runs, out, options, scratch),
        _ => Err(Error::new(ErrorKind::Unsupported(Unsupported::Encoding), VERTICES).at(payload.offset())),
    }
}

/// Vertices by their offsets into the distinct ones. `offsets_at` is where the stream of offsets is, for errors.
///
/// # Errors
/// [`MltFault::VertexOffset`].
///
/// # Panics
/// If `out` has another length than the vertices of `offsets`, or `dictionary` holds no whole number of vertices.
pub fn gather(
    dictionary: &[i32],
    components: u8,
    offsets: &[u32],
    offsets_at: u64,
    out: &mut [i32],
    options: &Options,
) -> Result<(), Error> {
    let bytes = 4 * usize::from(components);
    let (table, to) = (bytemuck::cast_slice(dictionary), bytemuck::cast_slice_mut(out));
    match options.kernels.gather_bytes(table, bytes, offsets, to) {
        None => Ok(()),
        Some(i) => {
            let kind = MltFault::VertexOffset { found: offsets[i], vertices: (table.len() / bytes) as u64 };
            Err(fault(kind, OFFSET).at(offsets_at).index(i as u64))
        }
    }
}
