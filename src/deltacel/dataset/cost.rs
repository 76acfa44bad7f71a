//! What a read will cost, before it is done.

use super::rows::{Reader, by_chunk, row_len};
use super::spans;
use crate::deltacel::csr::Count;
use crate::deltacel::tile::STREAMS;
use crate::error::Error;

/// What a read of some cells takes: see [`Reader::cost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Rows of the results.
    pub cells: u64,
    /// Tiles that are opened.
    pub tiles: u64,
    /// Chunks that are decoded, each once.
    pub chunks: u64,
    /// Bytes that are read; of a store whose objects lie in memory, those that are looked at.
    pub bytes_read: u64,
    /// Nonzeros of those chunks, all of which must be decompressed.
    pub nonzeros_decoded: u64,
    /// Nonzeros of the results: exactly of all genes, of a choice of genes at most.
    pub nonzeros: u64,
    /// Bytes of the results: row bounds, genes and counts. As exact as the nonzeros.
    pub result_bytes: u64,
}

impl<T: Count> Reader<'_, T> {
    /// What [`Reader::rows`] will read and decode for some cells, in any order and with repeats, with the genes and the
    /// type of counts of this reader.
    ///
    /// Of each tile it reads the head alone: header, table of chunks, bounds of cells. That is 8 bytes a cell, less than a
    /// hundredth of most tiles.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) in [`Part::Cells`](crate::Part::Cells) for a cell that
    /// there is not; what is wrong with the head of a tile; [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn cost(&self, cells: &[u64]) -> Result<Cost, Error> {
        self.check(cells)?;
        let mut cells = cells.to_vec();
        cells.sort_unstable();
        let mut cost = Cost { cells: cells.len() as u64, ..Cost::default() };
        for (piece, n, cells) in self.by_tile(&cells, |&cell| cell) {
            self.with_tile(|buffer| {
                let dataset = piece.dataset;
                let tile = dataset.part_of_tile(n, |_| Vec::new(), &[], buffer);
                let tile = tile.map_err(|error| dataset.in_tile(n, error))?;
                let start = piece.tile_start(n);
                let row = |cell: &u64| usize::try_from(cell - start).unwrap_or(usize::MAX); // its bounds are in memory
                let chunks: Vec<u32> = by_chunk(&tile, cells, row).into_iter().map(|(chunk, _)| chunk).collect();
                let most = piece.map.as_ref().map_or(u64::MAX, |map| map.n_columns().into());
                cost.tiles += 1;
                cost.chunks += chunks.len() as u64;
                cost.nonzeros_decoded += chunks.iter().map(|&chunk| tile.chunk(chunk).nnz()).sum::<u64>();
                cost.nonzeros += cells.iter().map(|cell| row_len(&tile, row(cell)).min(most)).sum::<u64>();
                cost.bytes_read += match dataset.check_crc {
                    true => tile.size(),
                    false => {
                        let head = dataset.head_guess(n).min(tile.size()).max(tile.head_len());
                        head + spans(&tile, &chunks, &STREAMS).iter().map(|(start, end)| end - start).sum::<u64>()
                    }
                };
                Ok::<(), Error>(())
            })?;
        }
        let indptr = (cost.cells + 1) * size_of::<i64>() as u64;
        cost.result_bytes = indptr + cost.nonzeros * (size_of::<i32>() + size_of::<T>()) as u64;
        Ok(cost)
    }
}
