//! Tiles put together by hand, sound or not: the writer checks nothing.

use std::collections::HashMap;
use std::ops::Range;

use arbitrary::{Result, Unstructured};

/// Bytes of a tile's header.
pub const HEADER: usize = 64;
/// Bytes of an entry of the chunk table.
pub const ENTRY: usize = 96;
/// What a stream holds where the value has an exception.
pub const ESCAPE: u16 = u16::MAX;

/// A tile to be written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Columns.
    pub n_genes: u32,
    /// The indptr: cells + 1 entries.
    pub bounds: Vec<u64>,
    /// The chunk table, and the frames of each chunk.
    pub chunks: Vec<Piece>,
    /// Writes equal frames once.
    pub shared: bool,
}

/// A chunk to be written.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// Its cells.
    pub cells: Range<u64>,
    /// Its nonzeros.
    pub nonzeros: Range<u64>,
    /// Its frames in the order of the table: gaps, vals, vexc, gexc. One without bytes is left out.
    pub frames: [Vec<u8>; 4],
}

impl Draft {
    /// The tile's bytes.
    pub fn write(&self) -> Vec<u8> {
        let indptr_off = HEADER + ENTRY * self.chunks.len();
        let mut tile = vec![0; indptr_off];
        tile[..8].copy_from_slice(b"DELTACEL");
        let n_cells = (self.bounds.len() as u64).saturating_sub(1);
        let nnz = self.bounds.last().copied().unwrap_or(0);
        put(&mut tile, 8, 4, 2);
        put(&mut tile, 16, 8, n_cells);
        put(&mut tile, 24, 8, nnz);
        put(&mut tile, 32, 4, self.n_genes.into());
        put(&mut tile, 36, 4, self.chunks.len() as u64);
        put(&mut tile, 40, 8, indptr_off as u64);
        tile.extend(self.bounds.iter().flat_map(|bound| bound.to_le_bytes()));
        let mut written = HashMap::new();
        for (i, piece) in self.chunks.iter().enumerate() {
            let mut fields = vec![piece.cells.start, piece.cells.end, piece.nonzeros.start, piece.nonzeros.end];
            for frame in &piece.frames {
                if frame.is_empty() {
                    fields.extend([0, 0]);
                    continue;
                }
                let at = match written.get(frame) {
                    Some(&at) if self.shared => at,
                    _ => {
                        tile.resize(tile.len().next_multiple_of(8), 0);
                        tile.extend(frame);
                        tile.len() - frame.len()
                    }
                };
                written.insert(frame, at);
                fields.extend([at as u64, frame.len() as u64]);
            }
            for (j, field) in fields.into_iter().enumerate() {
                put(&mut tile, HEADER + ENTRY * i + 8 * j, 8, field);
            }
        }
        repair(&mut tile);
        tile
    }
}

/// Makes a tile's total size and CRC right again.
pub fn repair(tile: &mut [u8]) {
    if tile.len() >= HEADER {
        put(tile, 48, 8, tile.len() as u64);
        let crc = crc32fast::hash(&tile[HEADER..]);
        put(tile, 56, 4, crc.into());
    }
}

/// Writes the low `len` bytes of a number.
pub fn put(tile: &mut [u8], at: usize, len: usize, value: u64) {
    tile[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
}

/// A stream's content: the low bytes, then the high bytes.
pub fn planes(values: &[u16]) -> Vec<u8> {
    values.iter().map(|v| v.to_le_bytes()[0]).chain(values.iter().map(|v| v.to_le_bytes()[1])).collect()
}

/// An exception stream's content: the positions, then the payloads.
pub fn exceptions(pairs: &[(u32, u32)]) -> Vec<u8> {
    pairs.iter().map(|pair| pair.0).chain(pairs.iter().map(|pair| pair.1)).flat_map(u32::to_le_bytes).collect()
}

/// A frame of raw blocks that states its size.
pub fn raw_frame(content: &[u8]) -> Vec<u8> {
    let mut frame = frame_header(content.len() as u64);
    let mut blocks = content.chunks(128 << 10).peekable();
    if content.is_empty() {
        frame.extend(block_header(0, 0, true));
    }
    while let Some(block) = blocks.next() {
        frame.extend(block_header(0, block.len() as u64, blocks.peek().is_none()));
        frame.extend(block);
    }
    frame
}

/// A frame of blocks of one repeated byte that states `stated` bytes and holds `runs`.
pub fn rle_frame(stated: u64, runs: &[(u8, u64)]) -> Vec<u8> {
    let mut frame = frame_header(stated);
    for (i, &(byte, len)) in runs.iter().enumerate() {
        frame.extend(block_header(1, len, i + 1 == runs.len()));
        frame.push(byte);
    }
    frame
}

/// The header of a frame of one segment, with a size of eight bytes.
pub fn frame_header(stated: u64) -> Vec<u8> {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xE0];
    frame.extend(stated.to_le_bytes());
    frame
}

/// The header of a block.
pub fn block_header(kind: u64, size: u64, last: bool) -> [u8; 3] {
    let [a, b, c, ..] = (size << 3 | kind << 1 | u64::from(last)).to_le_bytes();
    [a, b, c]
}

/// Any way of making a frame of `content`.
fn any_frame(u: &mut Unstructured<'_>, content: &[u8]) -> Result<Vec<u8>> {
    Ok(match u.int_in_range(0..=31)? {
        0..=3 => {
            let mut frame = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
            let compressed = zstd_safe::compress(&mut frame, content, 1 + i32::from(u.arbitrary::<u8>()? % 5));
            compressed.map_or(Vec::new(), |_| frame)
        }
        4 => rle_frame(content.len() as u64, &[(u.arbitrary()?, content.len() as u64)]),
        5 => rle_frame(u.int_in_range(0..=300)?, &[(u.arbitrary()?, content.len() as u64), (u.arbitrary()?, 1)]),
        _ => raw_frame(content),
    })
}

/// Values of a stream: mostly small, above 0, and now and then what `specials` has.
///
/// Few bytes of `u` give long streams too, so that wide kernels meet whole vectors.
fn values(u: &mut Unstructured<'_>, n: usize, specials: &[u16]) -> Result<Vec<u16>> {
    let mut state = u.arbitrary::<u32>()? | 1;
    let spread = 1 << u.int_in_range(0..=9)?;
    let mut values: Vec<u16> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(0x9E37_79B1).rotate_left(13);
            1 + (state.to_le_bytes()[0] as u16 | (state.to_le_bytes()[1] as u16) << 8) % spread
        })
        .collect();
    for _ in 0..u.int_in_range(0..=4)? {
        if n > 0 {
            let at = u.choose_index(n)?;
            values[at] = if u.ratio(1, 8)? { u.arbitrary()? } else { *u.choose(specials)? };
        }
    }
    Ok(values)
}

/// The exceptions that a stream asks for, or nearly.
fn any_exceptions(u: &mut Unstructured<'_>, values: &[u16], payloads: Range<u32>) -> Result<Vec<(u32, u32)>> {
    let mut pairs = Vec::new();
    for (i, _) in values.iter().enumerate().filter(|&(_, &value)| value == ESCAPE) {
        if u.ratio(7, 8)? {
            let payload = if u.ratio(1, 8)? { u.arbitrary()? } else { payloads.start + u.int_in_range(0..=9)? };
            pairs.push((u32::try_from(i).unwrap_or(u32::MAX), payload.min(payloads.end)));
        }
    }
    if u.ratio(1, 16)? {
        let at = u.choose_index(pairs.len() + 1)?;
        let position = u32::try_from(u.choose_index(values.len() + 1)?).unwrap_or(u32::MAX);
        pairs.insert(at, (position, u.arbitrary()?));
    }
    Ok(pairs)
}

/// A tile that is sound or nearly so, from any bytes.
pub fn any_tile(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let n_genes = match u.int_in_range(0..=15)? {
        0 => 1,
        1 => u.int_in_range(1..=300)?,
        2 => u.int_in_range(60_000..=200_000)?,
        3 => u.arbitrary()?,
        4 => 1 << 31,
        _ => 30_000,
    };
    let lens: Vec<u64> = (0..u.int_in_range(0..=6)?)
        .map(|_| {
            let most = *u.choose(&[0, 1, 3, 40, 40, 200, 1500])?;
            u.int_in_range(0..=most)
        })
        .collect::<Result<_>>()?;
    let mut draft = Draft { n_genes, bounds: vec![0], chunks: Vec::new(), shared: u.ratio(1, 8)? };
    for len in &lens {
        draft.bounds.push(draft.bounds.last().unwrap_or(&0) + len);
    }
    let mut cell = 0;
    while cell < lens.len() {
        // Seldom a chunk without cells, and none once the bytes are used up.
        let end = match u.int_in_range(cell..=lens.len())? {
            end if end == cell && (u.is_empty() || u.ratio(7, 8)?) => lens.len(),
            end => end,
        };
        draft.chunks.push(any_piece(u, &draft.bounds, cell..end, n_genes)?);
        cell = end;
    }
    let mut tile = draft.write();
    // And a lie or two in the header or the table.
    for _ in 0..u.int_in_range(0..=9u8)?.saturating_sub(7) {
        let field = 2 + u.choose_index((HEADER + ENTRY * draft.chunks.len()) / 8 - 2)?;
        let at = 8 * field;
        let old = u64::from_le_bytes(tile[at..at + 8].try_into().unwrap_or_default());
        let new = if u.arbitrary()? { u.arbitrary()? } else { old.wrapping_add_signed(u.int_in_range(-16..=16)?) };
        put(&mut tile, at, 8, new);
    }
    repair(&mut tile);
    Ok(tile)
}

fn any_piece(u: &mut Unstructured<'_>, bounds: &[u64], cells: Range<usize>, n_genes: u32) -> Result<Piece> {
    let nonzeros = bounds[cells.start]..bounds[cells.end];
    let n = usize::try_from(nonzeros.end - nonzeros.start).unwrap_or(0);
    let gaps = values(u, n, &[0, 1, 255, 256, 65_534, ESCAPE, ESCAPE, ESCAPE])?;
    let counts = values(u, n, &[0, 1, 255, 256, 65_534, ESCAPE, ESCAPE, ESCAPE])?;
    let gexc = any_exceptions(u, &gaps, 1..n_genes)?;
    let vexc = any_exceptions(u, &counts, 65_536..u32::MAX)?;
    let mut lists = [vexc, gexc].into_iter().map(|list| {
        if list.is_empty() && u.ratio(15, 16)? { Ok(Vec::new()) } else { any_frame(u, &exceptions(&list)) }
    });
    let (vexc, gexc) = (lists.next().unwrap_or(Ok(Vec::new()))?, lists.next().unwrap_or(Ok(Vec::new()))?);
    drop(lists);
    let frames = [any_frame(u, &planes(&gaps))?, any_frame(u, &planes(&counts))?, vexc, gexc];
    Ok(Piece { cells: cells.start as u64..cells.end as u64, nonzeros, frames })
}
