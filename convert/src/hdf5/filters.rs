//! Filters of chunks that the HDF5 reader does not have itself: LZF and Zstandard. Others are named where they are met.

use hdf5_reader::error::{Error, Result};
use hdf5_reader::filters::FilterRegistry;
use zstd::zstd_safe;

/// `lzf` in the registry of HDF5 filters; h5py's own.
const LZF: u16 = 32000;
/// `zstd` in the registry.
const ZSTD: u16 = 32015;

/// Further filters of the registry, so that an error can name them.
const UNSUPPORTED: &[(u16, &str)] = &[
    (305, "lzo"),
    (307, "bzip2"),
    (32001, "blosc"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32017, "sz"),
    (32019, "fcidecomp"),
    (32022, "granular bitround"),
    (32024, "sz3"),
    (32026, "blosc2"),
];

/// The reader's filters and these; no chunk becomes larger than `limit` bytes.
pub(super) fn registry(limit: usize) -> FilterRegistry {
    let mut registry = FilterRegistry::new();
    let bound = move |declared: Option<&u32>| match declared.map(|&size| usize::try_from(size)) {
        // What h5py notes: the size of a chunk before the filter.
        Some(Ok(size)) if size > 0 => size.min(limit),
        _ => limit,
    };
    let decode = move |filter: &hdf5_reader::messages::filter_pipeline::FilterDescription, data: &[u8], _: usize| {
        lzf(data, bound(filter.client_data.get(2)))
    };
    registry.register(LZF, Box::new(decode));
    registry.register(ZSTD, Box::new(move |_, data, _| zstd(data, limit)));
    for &(id, name) in UNSUPPORTED {
        registry.register(id, Box::new(move |_, _, _| Err(Error::UnsupportedFilter(format!("{name} (filter {id})")))));
    }
    registry
}

fn bad(what: impl std::fmt::Display) -> Error {
    Error::DecompressionError(what.to_string())
}

/// Unpacks LZF, to at most `limit` bytes.
///
/// A byte below 32 begins a literal of as many bytes, plus one. Any other begins a copy of earlier output: three bits of
/// length, 7 of which mean that a byte with more follows; then thirteen bits of distance, less one. Lengths are less two.
fn lzf(data: &[u8], limit: usize) -> Result<Vec<u8>> {
    // 3 bytes give at most 264. Nothing is reserved that the input could not fill.
    let mut out = Vec::with_capacity(limit.min(data.len().saturating_mul(88)));
    let mut rest = data;
    let byte = |rest: &mut &[u8]| -> Result<usize> {
        let (&first, after) = rest.split_first().ok_or_else(|| bad("LZF: the input ends within a copy"))?;
        *rest = after;
        Ok(usize::from(first))
    };
    while !rest.is_empty() {
        let control = byte(&mut rest)?;
        if control < 32 {
            let length = control + 1;
            let (literal, after) = rest.split_at_checked(length).ok_or_else(|| bad("LZF: a literal is cut"))?;
            if length > limit - out.len() {
                return Err(bad(format_args!("LZF: more than {limit} bytes")));
            }
            out.extend_from_slice(literal);
            rest = after;
            continue;
        }
        let length = match control >> 5 {
            7 => 7 + byte(&mut rest)?,
            length => length,
        } + 2;
        let distance = ((control & 31) << 8 | byte(&mut rest)?) + 1;
        let start = out.len().checked_sub(distance).ok_or_else(|| bad("LZF: a copy from before the output"))?;
        if length > limit - out.len() {
            return Err(bad(format_args!("LZF: more than {limit} bytes")));
        }
        if distance >= length {
            out.extend_from_within(start..start + length);
        } else {
            // The copy overlaps what it makes.
            for at in start..start + length {
                out.push(out[at]);
            }
        }
    }
    Ok(out)
}

/// Unpacks frames of Zstandard, to at most `limit` bytes.
fn zstd(data: &[u8], limit: usize) -> Result<Vec<u8>> {
    let fault = |code| bad(format_args!("zstd: {}", zstd_safe::get_error_name(code)));
    let size = match zstd_safe::get_frame_content_size(data) {
        Ok(Some(size)) => usize::try_from(size).unwrap_or(usize::MAX),
        Ok(None) => return Err(bad("zstd: the frame does not state its size")),
        Err(_) => return Err(bad("zstd: no frame")),
    };
    if size > limit {
        return Err(bad(format_args!("zstd: more than {limit} bytes")));
    }
    // A block of 128 KiB takes at least 4 bytes: a frame cannot state more than it could hold.
    if size / (128 << 10) > data.len() / 4 {
        return Err(bad("zstd: the frame is too short for the size that it states"));
    }
    let mut out = Vec::with_capacity(size);
    zstd_safe::decompress(&mut out, data).map_err(fault)?;
    if out.len() != size {
        return Err(bad("zstd: the frame is shorter than it states"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lzf_by_hand() {
        // "abc", then 3 bytes from 3 back, then "abcabcabc" that overlaps itself, then 20 bytes from 1 back.
        let packed = [2, b'a', b'b', b'c', 1 << 5, 2, 7 << 5, 0, 2, 7 << 5, 11, 0];
        let expected = format!("{}{}{}", "abcabc", "abcabcabc", "c".repeat(20));
        assert_eq!(lzf(&packed, 35).unwrap(), expected.as_bytes());
        assert_eq!(lzf(&[], 0).unwrap(), b"");
        assert!(lzf(&packed, 34).unwrap_err().to_string().contains("more than 34 bytes"));
        for cut in 1..packed.len() {
            // Ends of whole steps give less; all others are errors.
            if ![4, 6, 9].contains(&cut) {
                assert!(lzf(&packed[..cut], 35).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn lzf_on_damaged_input() {
        assert!(lzf(&[1 << 5, 0], 100).unwrap_err().to_string().contains("before the output"));
        assert!(lzf(&[0, 7, 1 << 5, 1], 100).is_err());
        assert!(lzf(&[31], 100).is_err());
        let mut state = 1_u32;
        for length in 0..300 {
            let noise: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.to_le_bytes()[3]
                })
                .collect();
            if let Ok(out) = lzf(&noise, 1000) {
                assert!(out.len() <= 1000);
            }
        }
    }

    #[test]
    fn zstd_within_its_bounds() {
        let plain = vec![7_u8; 5000];
        let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
        zstd_safe::compress(&mut packed, &plain, 3).unwrap();
        assert_eq!(zstd(&packed, 5000).unwrap(), plain);
        assert!(zstd(&packed, 4999).is_err());
        assert!(zstd(&packed[..packed.len() - 1], 5000).is_err());
        assert!(zstd(b"no frame", 5000).is_err());
    }
}
