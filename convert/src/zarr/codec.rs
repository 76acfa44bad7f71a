//! What was done to the bytes of a chunk, undone.

use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde_json::Value;

use super::blosc;
use crate::Error;

/// Bytes, or what is wrong with those that were given.
pub type Unpacked = Result<Vec<u8>, Trouble>;

/// Why bytes cannot be unpacked.
#[derive(Debug)]
pub enum Trouble {
    /// They are not what they should be.
    Damaged(String),
    /// They may be sound, and are stored in this way.
    Unsupported(String),
}

impl Trouble {
    pub fn error(self) -> Error {
        match self {
            Trouble::Damaged(message) => super::bad(message),
            Trouble::Unsupported(what) => super::unsupported(&what, super::REWRITE),
        }
    }
}

impl From<String> for Trouble {
    fn from(message: String) -> Trouble {
        Trouble::Damaged(message)
    }
}

impl From<&str> for Trouble {
    fn from(message: &str) -> Trouble {
        Trouble::Damaged(message.to_owned())
    }
}

/// A step from bytes to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Blosc,
    Crc32c,
    Gzip,
    Lz4,
    Zlib,
    Zstd,
}

impl Codec {
    /// The codec of that name, as either version of zarr calls it.
    pub fn of(name: &str) -> Option<Codec> {
        Some(match name {
            "blosc" | "numcodecs.blosc" => Codec::Blosc,
            "crc32c" | "numcodecs.crc32c" => Codec::Crc32c,
            "gzip" | "numcodecs.gzip" => Codec::Gzip,
            "lz4" | "numcodecs.lz4" => Codec::Lz4,
            "zlib" | "numcodecs.zlib" => Codec::Zlib,
            "zstd" | "numcodecs.zstd" => Codec::Zstd,
            _ => return None,
        })
    }

    /// Undoes it; the result has at most `limit` bytes.
    pub fn undo(self, bytes: &[u8], limit: usize) -> Unpacked {
        match self {
            Codec::Blosc => blosc::unpack(bytes, limit),
            Codec::Gzip => read(MultiGzDecoder::new(bytes), limit),
            Codec::Zlib => zlib(bytes, limit),
            Codec::Zstd => zstd(bytes, limit),
            Codec::Lz4 => {
                let (size, block) = bytes.split_first_chunk().ok_or("a chunk is too short")?;
                let size = u32::from_le_bytes(*size) as usize;
                if size > limit {
                    return Err(format!("a chunk unpacks to {size} bytes").into());
                }
                Ok(lz4_flex::block::decompress(block, size).map_err(|error| error.to_string())?)
            }
            Codec::Crc32c => {
                let (content, stored) = bytes.split_last_chunk().ok_or("a chunk is too short")?;
                if crc32c(content) == u32::from_le_bytes(*stored) {
                    Ok(content.to_vec())
                } else {
                    Err("the checksum of a chunk is wrong".into())
                }
            }
        }
    }
}

/// The name of a codec in the metadata of version 2 or 3.
pub fn name(codec: &Value) -> &str {
    codec["id"].as_str().or(codec["name"].as_str()).or(codec.as_str()).unwrap_or_default()
}

pub fn zlib(bytes: &[u8], limit: usize) -> Unpacked {
    read(ZlibDecoder::new(bytes), limit)
}

pub fn zstd(bytes: &[u8], limit: usize) -> Unpacked {
    read(zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?, limit)
}

fn read(from: impl Read, limit: usize) -> Unpacked {
    let mut unpacked = Vec::new();
    from.take(limit as u64 + 1).read_to_end(&mut unpacked).map_err(|error| error.to_string())?;
    if unpacked.len() > limit {
        Err(format!("a chunk unpacks to more than {limit} bytes").into())
    } else {
        Ok(unpacked)
    }
}

/// CRC-32C (Castagnoli), bit by bit: it covers the indices of shards and little else.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums() {
        // The check value that the catalogue of CRCs states.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
