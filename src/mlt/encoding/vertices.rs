//! Vertices: signed words, x and y (and z) in turn.
//!
//! Source: the encodings page, "Vertex Streams"; "MLT v2 container", 4.1, for z. Words are the coordinates in zigzag
//! code, differences over the flat sequence, differences to the same coordinate of the vertex before or between these,
//! differences of Morton codes, or rANS codes. A dictionary is a stream of distinct vertices and one of offsets into it.

use super::integers::{self, Coding};
use super::{Scratch, fault, morton, rans, room};
use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::input::Input;
#[cfg(feature = "encode")]
use crate::mlt::Physical;
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
            let found = room(&mut codes, out.len() / 2);
            let done =
                words(false, found, scratch).and_then(|()| morton::decode(options.kernels, found, bits, shift, out));
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

/// Appends a vertex stream. `runs` are those of rANS, as for [`rans::decode`].
///
/// # Panics
/// If vertices of so many coordinates have no such encoding, or those of Morton codes are not sorted by them.
#[cfg(feature = "encode")]
pub fn encode(
    physical: Physical,
    logical: Logical,
    vertices: &[i32],
    components: u8,
    runs: Option<&[u32]>,
    out: &mut Vec<u8>,
) {
    if logical == Logical::Rans {
        assert!(components == 2, "rANS is for vertices of two coordinates");
        return rans::encode(vertices, runs, out);
    }
    let stride = usize::from(components);
    let zigzag = |value: i32| (value << 1 ^ value >> 31).cast_unsigned();
    let differences = |values: &[i32], stride: usize| -> Vec<i32> {
        let before = std::iter::repeat_n(&0, stride).chain(values);
        values.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before)).collect()
    };
    let words: Vec<u32> = match logical {
        Logical::None => vertices.iter().map(|&value| zigzag(value)).collect(),
        Logical::Delta => differences(vertices, 1).into_iter().map(zigzag).collect(),
        Logical::ComponentwiseDelta => differences(vertices, stride).into_iter().map(zigzag).collect(),
        Logical::ComponentwiseDelta2 if stride == 2 => {
            differences(&differences(vertices, stride), stride).into_iter().map(zigzag).collect()
        }
        Logical::Morton { shift, .. } if stride == 2 => {
            let mut before = 0;
            let code = |vertex: &[i32; 2]| {
                let code = morton::code(vertex[0], vertex[1], shift);
                code.checked_sub(std::mem::replace(&mut before, code)).expect("vertices are sorted by their codes")
            };
            vertices.as_chunks().0.iter().map(code).collect()
        }
        _ => panic!("vertices of {components} coordinates have no encoding {logical:?}"),
    };
    integers::encode_words(physical, &words, out);
}

/// How a dictionary of vertices is sorted.
#[cfg(feature = "encode")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Along a Hilbert curve, so that neighbours are near each other: for differences.
    Hilbert,
    /// By Morton code with such a shift: for Morton codes.
    Morton {
        /// What is added to both coordinates.
        shift: u32,
    },
}

/// The distinct vertices of `N` coordinates, 2 or 3, and the offset of each vertex among them. Only x and y order them.
///
/// # Panics
/// If `vertices` holds no whole number of them.
#[cfg(feature = "encode")]
pub fn dictionary<const N: usize>(vertices: &[i32], order: Order) -> (Vec<i32>, Vec<u32>) {
    let (vertices, rest) = vertices.as_chunks::<N>();
    assert!(rest.is_empty(), "vertices of {N} coordinates");
    let (mut entries, mut offsets) = super::distinct(vertices.iter().copied());
    super::sort_entries(&mut entries, &mut offsets, |vertex| match order {
        Order::Hilbert => hilbert(vertex[0], vertex[1]),
        Order::Morton { shift } => morton::code(vertex[0], vertex[1], shift).into(),
    });
    (entries.into_flattened(), offsets)
}

/// The place of a vertex on the Hilbert curve through all.
#[cfg(feature = "encode")]
fn hilbert(x: i32, y: i32) -> u64 {
    // From the smallest coordinate on.
    let [mut x, mut y] = [x, y].map(|coordinate| coordinate.cast_unsigned() ^ 1 << 31);
    let mut place = 0;
    for bit in (0..u32::BITS).rev() {
        let (right, upper) = (x >> bit & 1, y >> bit & 1);
        place = place << 2 | u64::from((3 * right) ^ upper);
        // The lower quarters are turned, one of them the other way round.
        if upper == 0 {
            let turn = right.wrapping_neg();
            (x, y) = (y ^ turn, x ^ turn);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::super::testing::{alike, levels};
    use super::*;
    use crate::mlt::Physical;

    const CODING: Coding =
        Coding { physical: Physical::None, logical: Logical::None, words: 0, signed: false, strict: true };

    /// On every level.
    fn decoded(
        logical: Logical,
        payload: &[u8],
        components: u8,
        runs: Option<&[u32]>,
        n: usize,
    ) -> Result<Vec<i32>, Error> {
        alike(|options| {
            let (coding, mut out) = (Coding { logical, ..CODING }, vec![0; n * usize::from(components)]);
            let payload = Input::at(payload, 60);
            decode(&coding, payload, components, runs, &mut out, options, &mut Scratch::new()).map(|()| out)
        })
    }

    /// The vertices of words, and the words of vertices.
    fn check(logical: Logical, words: &[u32], components: u8, vertices: &[i32]) {
        let (mut payload, n) = (Vec::new(), vertices.len() / usize::from(components));
        for &word in words {
            payload.extend_from_slice(&word.to_le_bytes());
        }
        assert_eq!(decoded(logical, &payload, components, None, n).unwrap(), vertices, "{logical:?}");
        #[cfg(feature = "encode")]
        {
            let mut out = Vec::new();
            encode(Physical::None, logical, vertices, components, None, &mut out);
            assert_eq!(out, payload, "{logical:?}");
        }
    }

    #[test]
    fn worked_examples() {
        let vertices = [100, 200, 105, 210, 102, 215];
        check(Logical::ComponentwiseDelta, &[200, 400, 10, 20, 5, 10], 2, &vertices);
        check(Logical::ComponentwiseDelta2, &[0, 0, 140, 2, 0, 2, 0, 2], 2, &[0, 0, 70, 1, 140, 3, 210, 6]);
        check(Logical::None, &[200, 400, 210, 420, 204, 430], 2, &vertices);
        check(Logical::Delta, &[200, 200, 189, 210, 215, 226], 2, &vertices);
        check(Logical::Morton { bits: 3, shift: 0 }, &[27, 3, 15], 2, &[5, 3, 6, 3, 3, 6]);
        check(Logical::Morton { bits: 3, shift: 4 }, &[27, 3, 15], 2, &[1, -1, 2, -1, -1, 2]);
    }

    #[test]
    fn three_coordinates() {
        let vertices = [1, 2, 3, 0, 2, 5];
        check(Logical::None, &[2, 4, 6, 0, 4, 10], 3, &vertices);
        check(Logical::Delta, &[2, 2, 2, 5, 4, 6], 3, &vertices);
        check(Logical::ComponentwiseDelta, &[2, 4, 6, 1, 0, 4], 3, &vertices);
        for logical in [Logical::ComponentwiseDelta2, Logical::Morton { bits: 3, shift: 0 }, Logical::Rans] {
            let error = decoded(logical, &[0; 3], 3, None, 1).unwrap_err();
            assert_eq!((error.kind().name(), error.offset()), ("unsupported", Some(60)));
        }
    }

    #[test]
    fn faults() {
        assert_eq!(decoded(Logical::Sparse, &[0; 2], 2, None, 1).unwrap_err().kind().name(), "unsupported");
        let bits = |bits| decoded(Logical::Morton { bits, shift: 0 }, &[0; 4], 2, None, 1).map_err(|e| e.kind().name());
        assert_eq!((bits(16), bits(17)), (Ok(vec![0; 2]), Err("morton_bits")));
        assert_eq!(decoded(Logical::Delta, &[0], 2, None, 1).unwrap_err().kind().name(), "stream_length");
        let error = decoded(Logical::Rans, &[0; 10], 2, Some(&[0, 2]), 1).unwrap_err();
        assert_eq!(error.kind().name(), "rans_runs");
    }

    #[test]
    fn dictionaries() {
        let entries = [0, 0, 10, 10, 20, 20];
        let offsets = [0, 1, 2, 1, 0, 2];
        let vertices = [0, 0, 10, 10, 20, 20, 10, 10, 0, 0, 20, 20];
        for options in levels() {
            let mut out = [0; 12];
            gather(&entries, 2, &offsets, 5, &mut out, &options).unwrap();
            assert_eq!(out, vertices);
            let mut out = [0; 6];
            gather(&entries, 3, &[1, 0], 5, &mut out, &options).unwrap();
            assert_eq!(out, [10, 20, 20, 0, 0, 10]);
            let error = gather(&entries, 2, &[0, 3, 9], 5, &mut out, &options).unwrap_err();
            let place = (error.kind().name(), error.offset(), error.value_index());
            assert_eq!(place, ("vertex_offset", Some(5), Some(1)));
            gather(&[], 2, &[], 5, &mut [], &options).unwrap();
        }
        #[cfg(feature = "encode")]
        for order in [Order::Hilbert, Order::Morton { shift: 0 }] {
            assert_eq!(dictionary::<2>(&vertices, order), (entries.to_vec(), offsets.to_vec()));
        }
    }

    /// Neighbours on the curve are neighbours in the plane, and each vertex has a place of its own.
    #[cfg(feature = "encode")]
    #[test]
    fn curve() {
        let vertices: Vec<i32> = (-32..32).flat_map(|x| (-32..32).flat_map(move |y| [x, y])).collect();
        let (entries, offsets) = dictionary::<2>(&vertices, Order::Hilbert);
        let mut out = vec![0; vertices.len()];
        gather(&entries, 2, &offsets, 0, &mut out, &levels().next().unwrap()).unwrap();
        assert_eq!(out, vertices);
        let places: Vec<_> = entries.as_chunks().0.iter().map(|&[x, y]| hilbert(x, y)).collect();
        for (vertices, places) in entries.as_chunks::<2>().0.windows(2).zip(places.windows(2)) {
            let far = vertices[0][0].abs_diff(vertices[1][0]) + vertices[0][1].abs_diff(vertices[1][1]);
            assert!(far == 1 || places[1] > places[0] + 1);
        }
        assert_ne!(hilbert(i32::MIN, i32::MAX), hilbert(i32::MAX, i32::MIN));
    }
}
