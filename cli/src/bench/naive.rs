//! The plain reference: a tile decoded as the format's text reads, one indexed loop per step.
//!
//! It is what the kernels are compared with, so it must stay naive: value by value, with the checks that the format
//! demands where they arise. (What the compiler makes of loops that it can vectorise is the scalar row.) It reuses its
//! memory, as they do.

use std::ops::Range;

use tilekern::Stream;
use tilekern::deltacel::Tile;

pub struct Naive {
    zstd: zstd_safe::DCtx<'static>,
    planes: Vec<u8>,
}

impl Naive {
    pub fn new() -> Naive {
        Naive { zstd: zstd_safe::DCtx::create(), planes: Vec::new() }
    }

    /// Decodes a sound tile without exceptions into buffers of the right lengths.
    pub fn decode(&mut self, bytes: &[u8], tile: &Tile<'_>, indices: &mut [i32], values: &mut [i32]) {
        for n in 0..tile.n_chunks() {
            let chunk = tile.chunk(n);
            let nonzeros = as_usize(&chunk.nonzeros);
            let bounds: Vec<usize> = as_usize(&chunk.cells)
                .chain([usize::try_from(chunk.cells.end).unwrap_or(0)])
                .map(|cell| usize::try_from(tile.indptr(cell)).unwrap_or(0) - nonzeros.start)
                .collect();
            self.planes.resize(2 * nonzeros.len(), 0);
            assert!(decompress(&mut self.zstd, bytes, tile, n, Stream::Gaps, &mut self.planes), "a sound tile");
            let (lo, hi) = self.planes.split_at(nonzeros.len());
            assert!(gaps(lo, hi, &bounds, tile.n_genes(), &mut indices[nonzeros.clone()]), "a sound tile");
            assert!(decompress(&mut self.zstd, bytes, tile, n, Stream::Vals, &mut self.planes), "a sound tile");
            let (lo, hi) = self.planes.split_at(nonzeros.len());
            assert!(counts(lo, hi, &mut values[nonzeros]), "a sound tile");
        }
    }
}

/// Decompresses a stream of a chunk of a sound tile. False where libzstd does not take the frame as it is.
pub fn decompress(
    zstd: &mut zstd_safe::DCtx<'_>,
    bytes: &[u8],
    tile: &Tile<'_>,
    chunk: u32,
    stream: Stream,
    out: &mut [u8],
) -> bool {
    let (offset, len) = tile.chunk(chunk).span(stream);
    let frame = &bytes[as_usize(&(offset..offset + len))];
    zstd.decompress(out, frame) == Ok(out.len())
}

fn as_usize(range: &Range<u64>) -> Range<usize> {
    usize::try_from(range.start).unwrap_or(0)..usize::try_from(range.end).unwrap_or(0)
}

/// Each gene is checked as it is made, as the format demands.
#[allow(clippy::needless_range_loop)] // indexed on purpose
#[inline(never)]
pub fn gaps(lo: &[u8], hi: &[u8], bounds: &[usize], n_genes: u32, out: &mut [i32]) -> bool {
    for cell in 0..bounds.len() - 1 {
        let mut gene = 0;
        for i in bounds[cell]..bounds[cell + 1] {
            let gap = u32::from(lo[i]) | u32::from(hi[i]) << 8;
            gene += gap;
            if gene >= n_genes || gap == 0 && i > bounds[cell] {
                return false;
            }
            out[i] = gene.cast_signed();
        }
    }
    true
}

/// Each count is checked as it is made.
#[allow(clippy::needless_range_loop)] // indexed on purpose
#[inline(never)]
pub fn counts(lo: &[u8], hi: &[u8], out: &mut [i32]) -> bool {
    for i in 0..out.len() {
        let count = i32::from(lo[i]) | i32::from(hi[i]) << 8;
        if count == 0 {
            return false;
        }
        out[i] = count;
    }
    true
}
