//! The trace of a tile.

use std::fmt::Write;

use super::chunk::{self, Chunk, ENTRY_LEN};
use super::exceptions::Exceptions;
use super::header::{self, HEADER_LEN, Header};
use super::tile::{Frames, STREAMS, Tile};
use crate::buffer::Buffer;
use crate::error::{Error, ErrorKind, FrameFault, Limit, Part, Stream};
use crate::input::Input;
use crate::limits::Limits;
use crate::trace::Trace;
use crate::zstd::{Decompressor, frame};

/// What a step takes, its text included, and how many a block can have.
const STEP_BYTES: u64 = 256;
const STEPS_OF_BLOCK: u64 = 3;

/// Values that a step shows of a list.
const SHOWN: usize = 12;

/// Shows each step of reading a tile: header fields, chunk table, indptr, each frame with its blocks and their
/// sections, the first values, and exceptions; of all chunks, or of one.
///
/// The walk goes on as far as the structure is sound, past a wrong CRC too. Its fault is the one that opening the tile
/// and decoding its frames would meet first; what the values mean is the decoder's to judge.
pub fn trace(bytes: &[u8], chunk: Option<u32>, limits: &Limits) -> Trace {
    let mut trace = Trace::default();
    let tile = match Tile::read_header(bytes) {
        Ok(tile) => tile,
        Err(error) => {
            trace.fault = Some(error);
            return trace;
        }
    };
    if let Some(n) = chunk.filter(|&n| n >= tile.n_chunks()) {
        let max = i128::from(tile.n_chunks()) - 1;
        let kind = ErrorKind::OutOfRange { found: n.into(), min: 0, max };
        trace.fault = Some(Error::new(kind, Part::Option("chunk")));
        return trace;
    }
    header_steps(&mut trace, tile.header());
    let crc = tile.check_crc();
    let structure = walk(&mut trace, &tile, chunk, limits);
    trace.fault = crc.and(structure).err();
    trace
}

fn walk(trace: &mut Trace, tile: &Tile<'_>, only: Option<u32>, limits: &Limits) -> Result<(), Error> {
    tile.check_sizes()?;
    tile.check_indptr()?;
    tile.check_chunks()?;
    let chunks = only.map_or(0..tile.n_chunks(), |n| n..n + 1);
    let part = Part::ChunkTable;
    Limits::check(STEP_BYTES * chunks.len() as u64, limits.max_output_bytes, Limit::OutputBytes, part)?;
    for n in chunks.clone() {
        let Chunk { cells, nonzeros, .. } = tile.chunk(n);
        let start = chunk::field_offset(n, 0);
        let mut detail = format!("cells {}..{}, nonzeros {}..{}", cells.start, cells.end, nonzeros.start, nonzeros.end);
        for stream in STREAMS {
            match tile.chunk(n).span(stream) {
                (_, 0) => {}
                (offset, len) => _ = write!(detail, ", {} {len} bytes at {offset}", stream.name()),
            }
        }
        trace.step(format!("chunk table, entry {n}"), start..start + ENTRY_LEN as u64, detail);
    }
    let start = tile.header().indptr_off;
    let bounds = (0..tile.n_cells() + 1).map(|cell| tile.indptr(cell));
    trace.step("indptr", start..start + 8 * (tile.n_cells() as u64 + 1), list(bounds));
    let mut zstd = Decompressor::new();
    let mut frames = Frames::default();
    for n in chunks {
        let chunk = tile.chunk(n);
        for stream in STREAMS {
            tile.check_stream(n, &chunk, stream, &mut frames)?;
            // Blocks can be as short as their headers, and steps are not.
            let steps = trace.steps.len() as u64 + STEPS_OF_BLOCK * frames.blocks();
            let part = Part::Chunk(n, stream);
            Limits::check(steps * STEP_BYTES, limits.max_output_bytes, Limit::OutputBytes, part)?;
            if let Some(input) = tile.stream(&chunk, stream) {
                stream_steps(trace, &mut zstd, n, stream, input, limits)?;
            }
        }
    }
    Ok(())
}

fn header_steps(trace: &mut Trace, header: &Header) {
    trace.step("header", 0..HEADER_LEN as u64, "");
    let values = [
        "DELTACEL".to_owned(),
        header::VERSION.to_string(),
        "0".to_owned(),
        header.n_cells.to_string(),
        header.nnz.to_string(),
        header.n_genes.to_string(),
        header.n_chunks.to_string(),
        header.indptr_off.to_string(),
        header.total_size.to_string(),
        format!("{:#010x}", header.crc32),
        "0".to_owned(),
    ];
    trace.inside(|trace| {
        let ends = header::FIELDS.iter().skip(1).map(|&(_, offset)| offset).chain([HEADER_LEN as u64]);
        for ((&(name, start), end), value) in header::FIELDS.iter().zip(ends).zip(values) {
            trace.step(name, start..end, value);
        }
    });
}

/// A stream: its frame, and what the frame holds.
fn stream_steps(
    trace: &mut Trace,
    zstd: &mut Decompressor,
    n: u32,
    stream: Stream,
    input: Input<'_>,
    limits: &Limits,
) -> Result<(), Error> {
    let part = Part::Chunk(n, stream);
    let size = frame::content_size(input);
    let span = input.offset()..input.end();
    trace.step(part.to_string(), span.clone(), format!("zstd frame, {} bytes to {size}", input.bytes().len()));
    trace.inside(|trace| {
        let corrupt = |fault: FrameFault| Error::new(ErrorKind::Frame(fault), part).at(input.offset());
        frame_steps(trace, input).map_err(corrupt)?;
        Limits::check(size, limits.max_scratch_bytes, Limit::ScratchBytes, part)?;
        let mut content = Buffer::new();
        content.try_resize(usize::try_from(size).unwrap_or(usize::MAX))?;
        zstd.decode(input, &mut content, part)?;
        match stream {
            Stream::Gaps | Stream::Vals => {
                let (lo, hi) = content.split_at(content.len() / 2);
                let values = lo.iter().zip(hi).map(|(&lo, &hi)| u16::from_le_bytes([lo, hi]));
                trace.step(if stream == Stream::Gaps { "gaps" } else { "counts" }, span, list(values));
            }
            Stream::Gexc | Stream::Vexc => {
                let pairs = Exceptions::from(content);
                let pairs = pairs.pairs().map(|(position, payload)| format!("[{position}] {payload}"));
                trace.step("exceptions", span, list(pairs));
            }
        }
        Ok(())
    })
}

fn frame_steps(trace: &mut Trace, frame: Input<'_>) -> Result<(), FrameFault> {
    let mut input = frame;
    let header = frame::header(&mut input)?;
    let window = if header.single_segment { "single segment".to_owned() } else { format!("window {}", header.window) };
    let checksum = if header.checksum { ", checksum" } else { "" };
    let content = header.content.unwrap_or(0);
    trace.step("frame header", frame.offset()..input.offset(), format!("{content} bytes, {window}{checksum}"));
    let mut blocks = frame::Blocks::new(input, &header);
    for (i, block) in blocks.by_ref().enumerate() {
        let block = block?;
        let last = if block.last { ", last" } else { "" };
        let kind = match block.kind {
            frame::BlockKind::Raw => "raw",
            frame::BlockKind::Rle => "one byte repeated",
            frame::BlockKind::Compressed => "compressed",
        };
        trace.step(format!("block {i}"), block.span.clone(), format!("{kind}, {} bytes{last}", block.size));
        if block.kind == frame::BlockKind::Compressed {
            let start = block.span.start + frame::BLOCK_HEADER;
            let body = frame.slice(start, block.span.end - start).ok_or(FrameFault::Truncated)?;
            trace.inside(|trace| section_steps(trace, body))?;
        }
    }
    let rest = blocks.rest();
    if header.checksum {
        trace.step("frame checksum", rest.offset()..rest.end(), hex(rest.bytes()));
    }
    Ok(())
}

fn section_steps(trace: &mut Trace, body: Input<'_>) -> Result<(), FrameFault> {
    let frame::Sections { literals, sequences } = frame::sections(body)?;
    let kind = match literals.kind {
        frame::LiteralsKind::Raw => "raw".to_owned(),
        frame::LiteralsKind::Rle => "one byte repeated".to_owned(),
        frame::LiteralsKind::Huffman => format!("Huffman, {} streams", literals.streams),
        frame::LiteralsKind::Treeless => format!("Huffman with the table before, {} streams", literals.streams),
    };
    let detail = format!("{kind}, {} bytes to {}", literals.stored, literals.regenerated);
    trace.step("literals section", literals.span, detail);
    let detail = match sequences.modes {
        None => "no sequences".to_owned(),
        Some([lengths, offsets, matches]) => format!(
            "{} sequences; literal lengths {lengths}, offsets {offsets}, match lengths {matches}",
            sequences.count
        ),
    };
    trace.step("sequences section", sequences.span, detail);
    Ok(())
}

/// The first values of a list, and how many there are.
fn list(values: impl ExactSizeIterator<Item = impl std::fmt::Display>) -> String {
    let n = values.len();
    let mut text = format!("{n} values:");
    for value in values.take(SHOWN) {
        _ = write!(text, " {value}");
    }
    if n > SHOWN {
        text.push_str(" …");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
