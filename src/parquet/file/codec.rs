//! Bodies of pages, unpacked by the libraries of their codecs.
//!
//! Source: Parquet format, Compression.md. The size that a header states is not believed: memory is taken where so many
//! compressed bytes can unpack to it (snappy 22 times, LZ4 255 times, zstd what its blocks can hold), else as it fills.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};

use crate::buffer::grow;
use crate::error::{CompressionFault, Error, ErrorKind, Limit, Part, Unsupported};
use crate::input::Input;
use crate::limits::Limits;
use crate::zstd::frame;

/// Bytes that an unpacked body takes before any have been seen.
const FIRST: usize = 64 << 10;

const BODY: Part = Part::Page("body");

/// How the bodies of a column chunk are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// UNCOMPRESSED
    Uncompressed,
    /// SNAPPY
    Snappy,
    /// GZIP: any number of members
    Gzip,
    /// LZO, which is not read
    Lzo,
    /// BROTLI
    Brotli,
    /// LZ4, in the frames of Hadoop, or bare as old writers of C++ had it
    Lz4,
    /// ZSTD
    Zstd,
    /// LZ4_RAW
    Lz4Raw,
}

impl Codec {
    const ALL: [Codec; 8] = [
        Codec::Uncompressed,
        Codec::Snappy,
        Codec::Gzip,
        Codec::Lzo,
        Codec::Brotli,
        Codec::Lz4,
        Codec::Zstd,
        Codec::Lz4Raw,
    ];

    /// The format's name.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Uncompressed => "UNCOMPRESSED",
            Codec::Snappy => "SNAPPY",
            Codec::Gzip => "GZIP",
            Codec::Lzo => "LZO",
            Codec::Brotli => "BROTLI",
            Codec::Lz4 => "LZ4",
            Codec::Zstd => "ZSTD",
            Codec::Lz4Raw => "LZ4_RAW",
        }
    }

    /// The codec of that name.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// Reused contexts of the codecs, made when first needed.
#[derive(Default)]
pub(super) struct Unpacker {
    snappy: Option<snap::raw::Decoder>,
    gzip: Option<Decompress>,
    zstd: Option<zstd_safe::DCtx<'static>>,
    copy: Vec<u8>,
}

impl Unpacker {
    /// Unpacks `body` into the front of `out`, which grows. It must give exactly `size` bytes.
    pub(super) fn unpack<'o>(
        &mut self,
        codec: Codec,
        body: Input<'_>,
        size: u64,
        out: &'o mut Vec<u8>,
        limits: &Limits,
    ) -> Result<&'o [u8], Error> {
        Limits::check(size, limits.max_scratch_bytes, Limit::ScratchBytes, BODY)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        // Nothing is no stream of any codec.
        if size == 0 && body.bytes().is_empty() {
            return Ok(&[]);
        }
        let place = |error: Error| error.at(body.offset());
        let found = match codec {
            Codec::Uncompressed => {
                out.clear();
                out.extend_from_slice(body.bytes());
                out.len()
            }
            Codec::Snappy => {
                let stated = snap::raw::decompress_len(body.bytes()).map_err(|error| place(corrupt(error)))?;
                if stated == size {
                    let decoder = self.snappy.get_or_insert_with(snap::raw::Decoder::new);
                    let out = room(body, size, 22, out)?;
                    decoder.decompress(body.bytes(), out).map_err(|error| place(corrupt(error)))?
                } else {
                    stated
                }
            }
            Codec::Lz4Raw => lz4(body, size, out).map_err(place)?,
            Codec::Lz4 => hadoop(body, size, out).map_err(place)?,
            Codec::Zstd => self.zstd(body, size, out)?,
            Codec::Gzip => self.gzip(body.bytes(), size, out).map_err(place)?,
            Codec::Brotli => brotli(body.bytes(), size, out).map_err(place)?,
            Codec::Lzo => return Err(place(Error::new(ErrorKind::Unsupported(Unsupported::Codec), BODY))),
        };
        if found != size {
            let fault = CompressionFault::Size { found: size as u64, expected: found as u64 };
            return Err(place(Error::new(ErrorKind::Compression(fault), BODY)));
        }
        Ok(&out[..size])
    }

    fn zstd(&mut self, body: Input<'_>, size: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
        let reach = reach(body)?;
        if size as u64 > reach {
            return Err(unreachable(size, reach).at(body.offset()));
        }
        grow(out, size)?;
        let frame = frame::narrowed(body.bytes(), &mut self.copy).unwrap_or(body.bytes());
        // In one shot a frame needs no window, however large the one that it asks for.
        let context = self.zstd.get_or_insert_with(zstd_safe::DCtx::create);
        context
            .decompress(&mut out[..size], frame)
            .map_err(|code| corrupt(zstd_safe::get_error_name(code)).at(body.offset()))
    }

    fn gzip(&mut self, body: &[u8], size: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
        let inflater = self.gzip.get_or_insert_with(|| Decompress::new(false));
        let (mut rest, mut len) = (body, 0);
        while !rest.is_empty() {
            rest = gzip_content(rest).ok_or_else(|| corrupt("not a gzip member"))?;
            inflater.reset(false);
            let start = len;
            loop {
                let to = more(out, len, size)?;
                let (read, written) = (inflater.total_in(), inflater.total_out());
                let status = inflater.decompress(rest, &mut out[len..to], FlushDecompress::None).map_err(corrupt)?;
                let read = usize::try_from(inflater.total_in() - read).unwrap_or(0);
                let written = usize::try_from(inflater.total_out() - written).unwrap_or(0);
                rest = &rest[read..];
                len += written;
                match status {
                    Status::StreamEnd => break,
                    _ if read == 0 && written == 0 => return Err(corrupt("a member does not end")),
                    _ => {}
                }
                if len > size {
                    return Ok(len);
                }
            }
            let tail = rest.split_first_chunk::<8>().ok_or_else(|| corrupt("a member is cut"))?;
            let [crc, stated] = bytemuck::cast::<[u8; 8], [[u8; 4]; 2]>(*tail.0).map(u32::from_le_bytes);
            let low = u64::try_from(len - start).unwrap_or(u64::MAX) & u64::from(u32::MAX);
            if crc != crc32fast::hash(&out[start..len]) || u64::from(stated) != low {
                return Err(corrupt("a member's checksum or size is wrong"));
            }
            rest = tail.1;
        }
        Ok(len)
    }
}

/// What follows the header of a gzip member (RFC 1952).
fn gzip_content(member: &[u8]) -> Option<&[u8]> {
    let (head, mut rest) = member.split_first_chunk::<10>()?;
    let flags = head[3];
    if head[..3] != [0x1f, 0x8b, 8] || flags & 0xe0 != 0 {
        return None;
    }
    if flags & 4 != 0 {
        let (len, behind) = rest.split_first_chunk::<2>()?;
        rest = behind.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            rest = rest.get(rest.iter().position(|&byte| byte == 0)? + 1..)?;
        }
    }
    if flags & 2 != 0 { rest.get(2..) } else { Some(rest) }
}

/// Room for more: up to `size` and a byte, so that too much is seen.
fn more(out: &mut Vec<u8>, len: usize, size: usize) -> Result<usize, Error> {
    if len == out.len() && len <= size {
        grow(out, len.saturating_mul(2).max(FIRST).min(size.saturating_add(1)))?;
    }
    Ok(out.len().min(size.saturating_add(1)))
}

/// Room for all at once, where a byte can unpack to so many.
fn room<'o>(body: Input<'_>, size: usize, times: u64, out: &'o mut Vec<u8>) -> Result<&'o mut [u8], Error> {
    let max = (body.bytes().len() as u64).saturating_mul(times);
    if size as u64 > max {
        return Err(unreachable(size, max).at(body.offset()));
    }
    grow(out, size)?;
    Ok(&mut out[..size])
}

fn lz4(body: Input<'_>, size: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    lz4_flex::block::decompress_into(body.bytes(), room(body, size, 255, out)?).map_err(corrupt)
}

/// Frames of Hadoop: the size of what follows unpacked, then blocks behind their size, both big-endian. What is no such
/// sequence is one bare block.
fn hadoop(body: Input<'_>, size: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    let room = room(body, size, 255, out)?;
    let frames = |room: &mut [u8]| {
        let (mut rest, mut len) = (body.bytes(), 0);
        let number = |rest: &mut &[u8]| {
            let (number, behind) = rest.split_first_chunk::<4>()?;
            *rest = behind;
            usize::try_from(u32::from_be_bytes(*number)).ok()
        };
        while !rest.is_empty() {
            let end = number(&mut rest)?.checked_add(len)?;
            loop {
                let block = number(&mut rest)?;
                let block = rest.split_off(..block)?;
                let written = lz4_flex::block::decompress_into(block, room.get_mut(len..end)?).ok()?;
                len += written;
                match written {
                    _ if len == end => break,
                    0 => return None,
                    _ => {}
                }
            }
        }
        Some(len)
    };
    match frames(room) {
        Some(len) => Ok(len),
        None => lz4_flex::block::decompress_into(body.bytes(), room).map_err(corrupt),
    }
}

fn brotli(body: &[u8], size: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    let alloc = StandardAlloc::default;
    // Without the large windows that the format of pages does not have: a header may ask for 16 MiB at most.
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let (mut left, mut read, mut len, mut total) = (body.len(), 0, 0, 0);
    loop {
        let to = more(out, len, size)?;
        let (mut free, before) = (to - len, (read, len));
        match BrotliDecompressStream(
            &mut left,
            &mut read,
            body,
            &mut free,
            &mut len,
            &mut out[..to],
            &mut total,
            &mut state,
        ) {
            BrotliResult::ResultSuccess if left > 0 => return Err(corrupt("bytes follow the stream")),
            BrotliResult::ResultSuccess => return Ok(len),
            BrotliResult::NeedsMoreOutput if len <= size && before != (read, len) || to > len => {}
            BrotliResult::NeedsMoreOutput if len > size => return Ok(len),
            BrotliResult::NeedsMoreInput => return Err(corrupt("the stream does not end")),
            _ => return Err(corrupt("not a stream of this codec")),
        }
    }
}

/// What the blocks of some frames behind each other can hold.
fn reach(body: Input<'_>) -> Result<u64, Error> {
    let (mut rest, mut reach) = (body, 0u64);
    while !rest.bytes().is_empty() {
        let start = rest.offset();
        let fault = |fault| Error::new(ErrorKind::Frame(fault), BODY).at(start);
        let header = frame::header(&mut rest).map_err(fault)?;
        let mut blocks = frame::Blocks::new(rest, &header);
        for block in blocks.by_ref() {
            let block = block.map_err(fault)?;
            let compressed = block.kind == frame::BlockKind::Compressed;
            reach = reach.saturating_add(if compressed { header.block_max() } else { block.size });
        }
        rest = blocks.rest();
        if header.checksum {
            rest.take(4, BODY)?;
        }
    }
    Ok(reach)
}

#[cold]
fn corrupt(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Compression(CompressionFault::Corrupt), BODY).caused_by(why)
}

#[cold]
fn unreachable(size: usize, max: u64) -> Error {
    Error::new(ErrorKind::Compression(CompressionFault::Unreachable { found: size as u64, max }), BODY)
}
