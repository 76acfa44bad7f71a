//! Tiles that are wrapped in gzip or zstd.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tilekern::{Error, ErrorKind, Limit, Part};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::fault::Fault;

const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 16;

/// How a tile is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// By the first bytes. A tile has them only where it starts with a frame of tag 139 or 181, which no version knows.
    pub fn of(bytes: &[u8]) -> Option<Packing> {
        let magic = [(GZIP, Packing::Gzip), (ZSTD, Packing::Zstd)];
        magic.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, packing)| packing)
    }
}

/// Unpacks what is packed, to no more than `limit` bytes; hands back what is not.
pub fn unpacked(bytes: Vec<u8>, limit: u64, path: &Path) -> Result<Vec<u8>, Fault> {
    match Packing::of(&bytes) {
        None => Ok(bytes),
        Some(packing) => unpack(&bytes, packing, limit, path),
    }
}

/// Unpacks to no more than `limit` bytes.
pub fn unpack(bytes: &[u8], packing: Packing, limit: u64, path: &Path) -> Result<Vec<u8>, Fault> {
    let (unpacked, name) = match packing {
        Packing::Gzip => (gzip(bytes, limit), "gzip"),
        Packing::Zstd => (zstd(bytes, limit), "zstd"),
    };
    let unpacked = unpacked.map_err(|error| {
        if error.kind() == io::ErrorKind::OutOfMemory {
            let fault = Fault::from(Error::io(error, path));
            let what = "it unpacks to more than there is memory for; the limit (--max-output) is";
            let message = format!("{}: {what} {limit} bytes", fault.message);
            return Fault { message, ..fault };
        }
        let message = format!("does not unpack as {name}: {error}; fetch it again, or pack it anew");
        Fault::new("compression", path, message)
    })?;
    if unpacked.len() as u64 > limit {
        let kind = ErrorKind::LimitExceeded { needed: unpacked.len() as u64, limit, what: Limit::OutputBytes };
        return Err(Fault::of(Error::new(kind, Part::Object), path));
    }
    Ok(unpacked)
}

/// How much bytes unpack to if they are gzip, but no more than a byte above `limit`; else how many they are.
#[cfg(feature = "archives")]
pub fn gzip_size(bytes: &[u8], limit: u64) -> u64 {
    let count = || io::copy(&mut MultiGzDecoder::new(bytes).take(limit.saturating_add(1)), &mut io::sink());
    // What is damaged is for its reader to tell.
    let unpacked = if bytes.starts_with(GZIP) { count().ok() } else { None };
    unpacked.unwrap_or(bytes.len() as u64)
}

/// At most a byte more than `limit`.
fn gzip(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    MultiGzDecoder::new(bytes).take(limit.saturating_add(1)).read_to_end(&mut out)?;
    Ok(out)
}

/// At most a step more, of one frame or several.
fn zstd(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let failed = |code| io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code));
    let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    let mut input = InBuffer::around(bytes);
    let (mut out, mut step) = (Vec::new(), vec![0; STEP]);
    loop {
        let mut piece = OutBuffer::around(&mut step[..]);
        let left = context.decompress_stream(&mut piece, &mut input).map_err(failed)?;
        let written = piece.pos();
        out.try_reserve(written).map_err(|_| io::ErrorKind::OutOfMemory)?;
        out.extend_from_slice(&step[..written]);
        let done = input.pos == bytes.len();
        if out.len() as u64 > limit || done && left == 0 {
            return Ok(out);
        }
        // Nothing more comes of a frame that is cut off.
        if done && written < STEP {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed() -> [(Packing, Vec<u8>); 2] {
        let bytes = vec![7; 1_000_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let mut zstd = Vec::with_capacity(2_000_000);
        zstd_safe::compress(&mut zstd, &bytes, 1).unwrap();
        [(Packing::Gzip, gzip.finish().unwrap()), (Packing::Zstd, zstd)]
    }

    #[test]
    fn unpacks_within_bounds() {
        let path = Path::new("x");
        for (packing, bytes) in packed() {
            assert_eq!(Packing::of(&bytes), Some(packing));
            let twice = [&bytes[..], &bytes[..]].concat();
            assert_eq!(unpacked(bytes.clone(), 1_000_000, path).unwrap(), vec![7; 1_000_000]);
            assert_eq!(unpacked(twice, 2_000_000, path).unwrap(), vec![7; 2_000_000]);
            assert_eq!(unpacked(bytes.clone(), 999_999, path).unwrap_err().kind, "limit_exceeded");
            for cut in [4, bytes.len() / 2, bytes.len() - 1] {
                assert_eq!(unpacked(bytes[..cut].to_vec(), 1_000_000, path).unwrap_err().kind, "compression", "{cut}");
            }
        }
        assert_eq!(unpacked(vec![1, 2, 3], 1, path).unwrap(), [1, 2, 3]);
        assert!(unpacked(Vec::new(), 0, path).unwrap().is_empty());
    }
}
