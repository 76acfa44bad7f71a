//! Blosc's chunks, the usual compression of zarr 2: blocks of streams, shuffled.
//!
//! Source: c-blosc, README_CHUNK_FORMAT (version 2 of the format).

use super::codec::{Trouble, Unpacked, zlib, zstd};

/// Bytes before the offsets of blocks.
const HEADER: usize = 16;

const BYTE_SHUFFLE: u8 = 1;
const STORED: u8 = 2;
const BIT_SHUFFLE: u8 = 4;
/// Blocks are one stream, however many bytes an element has.
const NOT_SPLIT: u8 = 16;

/// The largest element whose bytes become streams of their own.
const MAX_SPLIT: usize = 16;

/// The smallest part of a block that is a stream of its own.
const MIN_STREAM: usize = 128;

/// Unpacks a chunk of at most `limit` bytes.
pub fn unpack(chunk: &[u8], limit: usize) -> Unpacked {
    let damaged = || Trouble::from("a Blosc chunk is damaged");
    let unsupported = |what: &str| Err(Trouble::Unsupported(what.to_owned()));
    let header = chunk.first_chunk::<HEADER>().ok_or_else(damaged)?;
    let number = |bytes: &[u8], at: usize| {
        let four = bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*four)).ok()
    };
    let [version, _, flags, element, ..] = *header;
    let (flags, element) = (flags, usize::from(element.max(1)));
    match version {
        2 => {}
        // Those of the first releases and of its successor.
        1 | 3..=5 => return unsupported(&format!("version {version} of Blosc's format")),
        _ => return Err(damaged()),
    }
    let sizes = [4, 8, 12].map(|at| number(header, at).unwrap_or(0));
    let [total, block, stored] = sizes;
    if total > limit {
        return Err(format!("a chunk unpacks to {total} bytes").into());
    }
    if stored != chunk.len() || (total > 0 && block == 0) {
        return Err(damaged());
    }
    if flags & STORED != 0 {
        let bytes = chunk.get(HEADER..HEADER + total).ok_or_else(damaged)?;
        return Ok(bytes.to_vec());
    }
    let mut unpacked = Vec::with_capacity(total);
    for (n, start) in (0..total).step_by(block.max(1)).enumerate() {
        let size = block.min(total - start);
        // The last block is one stream where it is not whole.
        let split = flags & NOT_SPLIT == 0 && element <= MAX_SPLIT && size == block && block / element >= MIN_STREAM;
        let streams = if split { element } else { 1 };
        let mut at = number(chunk, HEADER + 4 * n).ok_or_else(damaged)?;
        let mut bytes = Vec::with_capacity(size);
        for _ in 0..streams {
            let part = size / streams;
            let packed = number(chunk, at).ok_or_else(damaged)?;
            let stream = chunk.get(at + 4..).and_then(|rest| rest.get(..packed)).ok_or_else(damaged)?;
            at += 4 + packed;
            if packed == part {
                bytes.extend_from_slice(stream);
                continue;
            }
            let found = match flags >> 5 {
                0 => return unsupported("the compression blosclz, Blosc's own,"),
                // LZ4 and its slower writer.
                1 => lz4_flex::block::decompress(stream, part).map_err(|error| error.to_string())?,
                3 => zlib(stream, part)?,
                4 => zstd(stream, part)?,
                2 => return unsupported("the compression Snappy in Blosc"),
                _ => return Err(damaged()),
            };
            if found.len() != part {
                return Err(damaged());
            }
            bytes.extend_from_slice(&found);
        }
        if bytes.len() != size {
            return Err(damaged());
        }
        if flags & BYTE_SHUFFLE != 0 && element > 1 {
            unpacked.extend_from_slice(&join_bytes(&bytes, element));
        } else if flags & BIT_SHUFFLE != 0 {
            unpacked.extend_from_slice(&join_bits(&bytes, element));
        } else {
            unpacked.extend_from_slice(&bytes);
        }
    }
    Ok(unpacked)
}

/// Elements whose first bytes come first, then their second ones, and so on; what is left over is as it is.
fn join_bytes(planes: &[u8], element: usize) -> Vec<u8> {
    let count = planes.len() / element;
    let mut joined = planes.to_vec();
    for (plane, bytes) in planes.chunks_exact(count.max(1)).take(element).enumerate() {
        bytes.iter().enumerate().for_each(|(i, &byte)| joined[i * element + plane] = byte);
    }
    joined
}

/// The same of bits, the lowest one of each byte first. Only multiples of eight elements are shuffled at all.
fn join_bits(planes: &[u8], element: usize) -> Vec<u8> {
    let count = planes.len() / element;
    let mut joined = planes.to_vec();
    if !count.is_multiple_of(8) {
        return joined;
    }
    joined[..count * element].fill(0);
    for plane in 0..element * 8 {
        let (byte, bit) = (plane / 8, plane % 8);
        let row = &planes[plane * (count / 8)..(plane + 1) * (count / 8)];
        for i in 0..count {
            joined[i * element + byte] |= ((row[i / 8] >> (i % 8)) & 1) << bit;
        }
    }
    joined
}
