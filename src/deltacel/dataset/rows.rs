//! Rows of a dataset by global cell number: any list, or a range.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Dataset, TileBuffer};
use crate::deltacel::csr::{Count, Csr};
use crate::deltacel::decode::{CsrMut, Decoded, Decoder};
use crate::deltacel::tile::Tile;
use crate::error::{Error, ErrorKind, Part};

/// Decodes rows of a dataset. It keeps its buffers from call to call, and may be shared by threads.
pub struct Reader<'a, T: Count> {
    dataset: &'a Dataset,
    decoder: &'a Decoder,
    tiles: Pool<TileBuffer>,
    spans: Pool<Csr<T>>,
    /// Spans with a count that `T` does not hold exactly.
    wide: Pool<Csr<i32>>,
    gathers: Pool<Gather<T>>,
}

/// Things that no thread uses at the moment. The lock is held only while one is taken or put back.
struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool(Mutex::default())
    }
}

impl<T: Default> Pool<T> {
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut thing = idle.unwrap_or_default();
        let result = work(&mut thing);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
        result
    }

    /// All of them, while no thread uses one.
    fn idle(&mut self) -> &mut [T] {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cell that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    /// Its global number.
    cell: u64,
    /// Its row in the results.
    at: usize,
}

/// What one call for a list of rows needs besides its results.
struct Gather<T> {
    requests: Vec<Request>,
    arenas: Pool<Arena<T>>,
    sources: Vec<Row>,
}

/// Rows that a thread has decoded, one behind the other.
struct Arena<T> {
    indices: Vec<i32>,
    values: Vec<T>,
    /// Each row that was asked for: its row in the results, and its nonzeros here.
    rows: Vec<(usize, Range<usize>)>,
}

/// Nonzeros in an arena.
#[derive(Clone, Default)]
struct Row {
    arena: usize,
    nonzeros: Range<usize>,
}

impl<T> Default for Gather<T> {
    fn default() -> Gather<T> {
        Gather { requests: Vec::new(), arenas: Pool::default(), sources: Vec::new() }
    }
}

impl<T> Default for Arena<T> {
    fn default() -> Arena<T> {
        Arena { indices: Vec::new(), values: Vec::new(), rows: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// Gathers rows of a decoded span, each once, for all who asked for it. `convert` is told how many they are.
    ///
    /// # Errors
    /// The row of the span that has a count which does not convert.
    fn take<U: Count>(
        &mut self,
        requests: &[Request],
        row: impl Fn(&Request) -> usize,
        span: &Csr<U>,
        mut convert: impl FnMut(&U, usize) -> Option<T>,
    ) -> Result<(), usize> {
        for same in requests.chunk_by(|a, b| a.cell == b.cell) {
            let at = row(&same[0]);
            let from = usize::try_from(span.indptr()[at]).unwrap_or(0);
            let to = usize::try_from(span.indptr()[at + 1]).unwrap_or(0);
            let start = self.indices.len();
            self.indices.extend_from_slice(&span.indices()[from..to]);
            for count in &span.values()[from..to] {
                self.values.push(convert(count, same.len()).ok_or(at)?);
            }
            self.rows.extend(same.iter().map(|request| (request.at, start..self.indices.len())));
        }
        Ok(())
    }
}

/// A run of rows of the results, and where they come from.
struct Block<'a, T> {
    rows: &'a [Row],
    indices: &'a mut [i32],
    values: &'a mut [T],
}

/// The cells of one tile that a range has, and where their results go.
struct Stretch<'a, T> {
    tile: u32,
    cells: Range<usize>,
    opened: Option<Tile<'a>>,
    /// Nonzeros of the results before these.
    before: usize,
    /// The results' indptr entries behind each of the cells.
    indptr: &'a mut [i64],
    indices: &'a mut [i32],
    values: &'a mut [T],
}

impl<'a, T: Count> Reader<'a, T> {
    pub(super) fn new(dataset: &'a Dataset, decoder: &'a Decoder) -> Reader<'a, T> {
        Reader {
            dataset,
            decoder,
            tiles: Pool::default(),
            spans: Pool::default(),
            wide: Pool::default(),
            gathers: Pool::default(),
        }
    }

    /// Decodes cells by their global numbers, in any order, with repeats; `out` has a row for each in that order.
    ///
    /// Each tile is opened and read once, and only the chunks that hold those cells are decoded, once each, on the
    /// decoder's threads. Beside the results it takes memory for as many nonzeros again, and for a tile and a chunk
    /// for each thread.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] in [`Part::Cells`] with the index of the first cell that there is not;
    /// [`ErrorKind::LimitExceeded`] for results above the decoder's limits, before they are decoded; else what is wrong
    /// with the first of the tiles that cannot be read, and with the first cell in it. It is the same on any number of
    /// threads. What `out` holds is then unspecified.
    pub fn rows(&self, cells: &[u64], out: &mut Csr<T>) -> Result<Decoded, Error> {
        let manifest = &self.dataset.manifest;
        if let Some(index) = cells.iter().position(|&cell| cell >= manifest.n_cells) {
            let (found, max) = (cells[index].into(), i128::from(manifest.n_cells) - 1);
            return Err(Error::new(ErrorKind::OutOfRange { found, min: 0, max }, Part::Cells).index(index as u64));
        }
        self.gathers.with(|gather| {
            let Gather { requests, arenas, sources } = gather;
            requests.clear();
            requests.extend(cells.iter().enumerate().map(|(at, &cell)| Request { cell, at }));
            requests.sort_unstable();
            for arena in arenas.idle() {
                arena.indices.clear();
                arena.values.clear();
                arena.rows.clear();
            }
            let size = manifest.tile_size;
            let tiles: Vec<&[Request]> = requests.chunk_by(|a, b| a.cell / size == b.cell / size).collect();

            let nnz = AtomicU64::new(0);
            let split = self.split(tiles.len());
            let rows_of_tile = |requests: &[Request]| self.rows_of_tile(requests, cells.len(), &nnz, arenas, split);
            let found = self.decoder.map(tiles, rows_of_tile);
            // Every tile that could be opened has added its part, so this does not depend on who was first.
            self.check_output(cells.len() as u64, nnz.into_inner())?;
            let inexact = found.into_iter().sum::<Result<usize, Error>>()?;
            let nnz = self.assemble(cells.len(), arenas.idle(), sources, out)?;
            Ok(Decoded { cells: cells.len(), nnz, inexact })
        })
    }

    /// Decodes the rows of one tile, unless all results together turn out to be too large.
    ///
    /// Returns the number of inexact counts, those of a repeated cell counted as often as it is asked for.
    fn rows_of_tile(
        &self,
        requests: &[Request],
        n_cells: usize,
        nnz: &AtomicU64,
        arenas: &Pool<Arena<T>>,
        split: bool,
    ) -> Result<usize, Error> {
        let size = self.dataset.manifest.tile_size;
        let Ok(n) = u32::try_from(requests[0].cell / size) else { return Ok(0) };
        // Once the tile is open its indptr is in memory, and so a row's number fits.
        let row = |request: &Request| usize::try_from(request.cell % size).unwrap_or(usize::MAX);
        self.with_tile(|buffer| {
            let of_chunks = |tile: &Tile<'_>| {
                let mut chunks = Vec::new();
                let mut rest = requests;
                while let Some(first) = rest.first() {
                    let at = row(first) as u64;
                    let chunk = tile.chunks_of(at..at + 1).start;
                    let end = tile.chunk(chunk).cells.end;
                    let (these, others) = rest.split_at(rest.partition_point(|request| (row(request) as u64) < end));
                    chunks.push((chunk, these));
                    rest = others;
                }
                chunks
            };
            let numbers = |tile: &Tile<'_>| of_chunks(tile).into_iter().map(|(chunk, _)| chunk).collect();
            let tile = self.dataset.tile_for(n, numbers, buffer)?;
            let these = requests.iter().map(|request| row_len(&tile, row(request))).fold(0, u64::saturating_add);
            let add = |sum: u64| Some(sum.saturating_add(these));
            let before = nnz.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap_or(u64::MAX);
            if self.check_output(n_cells as u64, before.saturating_add(these)).is_err() {
                return Ok(0);
            }
            let rows_of_chunk =
                |(_, requests): (u32, &[Request])| arenas.with(|arena| self.rows_of_chunk(&tile, requests, row, arena));
            let inexact: Vec<_> = match split {
                true => self.decoder.map(of_chunks(&tile), rows_of_chunk),
                false => of_chunks(&tile).into_iter().map(rows_of_chunk).collect(),
            };
            inexact.into_iter().sum::<Result<usize, Error>>().map_err(|error| self.dataset.in_tile(n, error))
        })
    }

    /// Decodes the rows of one chunk, at once from the first to the last. A fault in a row between is one of the chunk, but
    /// a count that the type does not hold matters only in a row that was asked for.
    fn rows_of_chunk(
        &self,
        tile: &Tile<'_>,
        requests: &[Request],
        row: impl Fn(&Request) -> usize,
        arena: &mut Arena<T>,
    ) -> Result<usize, Error> {
        let cells = row(&requests[0])..row(&requests[requests.len() - 1]) + 1;
        let whole = self.spans.with(|span| {
            let exact = self.decoder.decode_cells(tile, cells.clone(), span).is_ok_and(|decoded| decoded.inexact == 0);
            if exact {
                arena.take(requests, |request| row(request) - cells.start, span, |count, _| Some(*count))?;
            }
            Ok::<bool, usize>(exact)
        });
        if whole == Ok(true) {
            return Ok(0);
        }
        self.wide.with(|span| {
            self.decoder.decode_cells(tile, cells.clone(), span)?;
            let mut inexact = 0;
            let convert = |&count: &i32, times: usize| {
                inexact += times * usize::from(count.cast_unsigned() > T::EXACT_TO);
                T::from_exception(count.cast_unsigned())
            };
            match arena.take(requests, |request| row(request) - cells.start, span, convert) {
                Ok(()) => Ok(inexact),
                Err(at) => {
                    // The first row with such a count, by itself, says what is wrong.
                    let row = cells.start + at;
                    self.spans.with(|span| self.decoder.decode_cells(tile, row..row + 1, span)).map(|_| inexact)
                }
            }
        })
    }

    /// Puts all rows where they were asked for. Returns the number of nonzeros.
    fn assemble(
        &self,
        n_cells: usize,
        arenas: &[Arena<T>],
        sources: &mut Vec<Row>,
        out: &mut Csr<T>,
    ) -> Result<usize, Error> {
        sources.clear();
        sources.resize(n_cells, Row::default());
        for (n, arena) in arenas.iter().enumerate() {
            for (at, nonzeros) in &arena.rows {
                sources[*at] = Row { arena: n, nonzeros: nonzeros.clone() };
            }
        }
        out.n_genes = self.dataset.n_genes();
        out.indptr.try_resize(n_cells + 1)?;
        out.indptr[0] = 0;
        let mut nnz = 0;
        for (bound, row) in out.indptr[1..].iter_mut().zip(&*sources) {
            nnz += row.nonzeros.len();
            *bound = i64::try_from(nnz).unwrap_or(i64::MAX); // all of it lies in memory
        }
        out.indices.try_resize(nnz)?;
        out.values.try_resize(nnz)?;
        out.counted = true;

        let (mut indices, mut values) = (&mut out.indices[..], &mut out.values[..]);
        let per_block = n_cells.div_ceil(4 * self.decoder.threads()).max(64);
        let blocks = sources.chunks(per_block).map(|rows| {
            let len = rows.iter().map(|row| row.nonzeros.len()).sum();
            Block {
                rows,
                indices: indices.split_off_mut(..len).unwrap_or_default(),
                values: values.split_off_mut(..len).unwrap_or_default(),
            }
        });
        self.decoder.map(blocks.collect(), |mut block: Block<'_, T>| {
            for Row { arena, nonzeros } in block.rows {
                let Some(arena) = arenas.get(*arena) else { continue }; // every row has one: its chunk was decoded
                let indices = block.indices.split_off_mut(..nonzeros.len()).unwrap_or_default();
                indices.copy_from_slice(&arena.indices[nonzeros.clone()]);
                let values = block.values.split_off_mut(..nonzeros.len()).unwrap_or_default();
                values.copy_from_slice(&arena.values[nonzeros.clone()]);
            }
        });
        Ok(nnz)
    }

    /// Decodes the cells of a range of global numbers, straight into `out`.
    ///
    /// Each tile is opened and read once, on the decoder's threads; of the first and the last one only the chunks that
    /// are needed are decoded. Beside the results it takes memory for a tile for each thread.
    ///
    /// # Errors
    /// As [`Reader::rows`].
    pub fn range(&self, cells: Range<u64>, out: &mut Csr<T>) -> Result<Decoded, Error> {
        let manifest = &self.dataset.manifest;
        if cells.start > cells.end || cells.end > manifest.n_cells {
            let (found, min, max) = (cells.end.into(), cells.start.into(), manifest.n_cells.into());
            return Err(Error::new(ErrorKind::OutOfRange { found, min, max }, Part::Cells));
        }
        self.with_tile(|first| self.with_tile(|last| self.range_with(cells, out, first, last)))
    }

    fn range_with(
        &self,
        cells: Range<u64>,
        out: &mut Csr<T>,
        first: &mut TileBuffer,
        last: &mut TileBuffer,
    ) -> Result<Decoded, Error> {
        let manifest = &self.dataset.manifest;
        let stretches = self.stretches(&cells);
        let first = self.open_if_cut(stretches.first(), first)?;
        let last = match self.open_if_cut(stretches.get(1..).and_then(<[_]>::last), last) {
            Ok(last) => last,
            // A fault of an earlier tile comes first, and shows when those before the last are read.
            Err(error) => {
                let last = stretches.last().map_or(0, |(_, cells)| cells.len() as u64);
                return Err(self.range(cells.start..cells.end - last, out).err().unwrap_or(error));
            }
        };
        let opened = |k: usize| if k == 0 { first } else { last.filter(|_| k + 1 == stretches.len()) };
        let nnz_of = |k: usize, (tile, cells): &(u32, Range<usize>)| match opened(k) {
            Some(tile) => (tile.indptr(cells.end) - tile.indptr(cells.start)).unsigned_abs(),
            None => manifest.tile_nnz[*tile as usize],
        };
        let counts: Vec<u64> = stretches.iter().enumerate().map(|(k, stretch)| nnz_of(k, stretch)).collect();
        let n_cells = cells.end - cells.start;
        // Their sum is at most that of the manifest, which was checked.
        self.check_output(n_cells, counts.iter().sum())?;

        let len = |n: u64| usize::try_from(n).unwrap_or(usize::MAX); // the limits let it pass
        out.n_genes = self.dataset.n_genes();
        out.indptr.try_resize(len(n_cells).saturating_add(1))?;
        out.indices.try_resize(len(counts.iter().sum()))?;
        out.values.try_resize(out.indices.len())?;
        out.counted = true;
        out.indptr[0] = 0;
        let mut before = 0;
        let (mut indptr, mut indices, mut values) = (&mut out.indptr[1..], &mut out.indices[..], &mut out.values[..]);
        let jobs = stretches.iter().zip(&counts).enumerate().map(|(k, ((tile, cells), &nnz))| {
            let nnz = len(nnz);
            let job = Stretch {
                tile: *tile,
                cells: cells.clone(),
                opened: opened(k),
                before,
                indptr: indptr.split_off_mut(..cells.len()).unwrap_or_default(),
                indices: indices.split_off_mut(..nnz).unwrap_or_default(),
                values: values.split_off_mut(..nnz).unwrap_or_default(),
            };
            before += nnz;
            job
        });
        let split = self.split(stretches.len());
        let decoded = self.decoder.map(jobs.collect(), |job| self.decode_stretch(job, split));
        decoded.into_iter().try_fold(Decoded::default(), |sum, decoded| {
            let decoded = decoded?;
            Ok(Decoded {
                cells: sum.cells + decoded.cells,
                nnz: sum.nnz + decoded.nnz,
                inexact: sum.inexact + decoded.inexact,
            })
        })
    }

    /// The tiles that have cells of a range, each with those cells.
    fn stretches(&self, cells: &Range<u64>) -> Vec<(u32, Range<usize>)> {
        let manifest = &self.dataset.manifest;
        let mut stretches = Vec::new();
        let mut next = cells.start;
        while next < cells.end
            && let Some((tile, row)) = manifest.locate(next)
        {
            let end = manifest.tile_limit(tile).min(cells.end);
            let len = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            stretches.push((tile, len(row)..len(row + (end - next))));
            next = end;
        }
        stretches
    }

    /// Opens the tile of a stretch that is not the whole tile: it alone knows how many nonzeros those cells have.
    fn open_if_cut<'b>(
        &self,
        stretch: Option<&(u32, Range<usize>)>,
        buffer: &'b mut TileBuffer,
    ) -> Result<Option<Tile<'b>>, Error> {
        match stretch {
            Some((tile, cells)) if cells.len() as u64 != self.dataset.manifest.tile_cells(*tile) => {
                self.open_for(*tile, cells, buffer).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn open_for<'b>(&self, tile: u32, cells: &Range<usize>, buffer: &'b mut TileBuffer) -> Result<Tile<'b>, Error> {
        let cells = cells.start as u64..cells.end as u64;
        self.dataset.tile_for(tile, |tile| tile.chunks_of(cells.clone()).collect(), buffer)
    }

    fn decode_stretch(&self, job: Stretch<'_, T>, split: bool) -> Result<Decoded, Error> {
        self.with_tile(|buffer| {
            let tile = match job.opened {
                Some(tile) => tile,
                None => self.open_for(job.tile, &job.cells, buffer)?,
            };
            self.spans.with(|span| {
                span.indptr.try_resize(job.cells.len() + 1)?;
                let out = CsrMut { indptr: &mut span.indptr, indices: job.indices, values: Some(job.values) };
                let decoded = self.decoder.decode_with(&tile, job.cells, out, split);
                let before = i64::try_from(job.before).unwrap_or(i64::MAX);
                for (bound, own) in job.indptr.iter_mut().zip(&span.indptr[1..]) {
                    *bound = before + own;
                }
                decoded.map_err(|error| self.dataset.in_tile(job.tile, error))
            })
        })
    }

    /// Whether threads share the chunks of a tile, too. Where there are tiles enough they do not: a thread that waits for
    /// others would take up the next tile, and more tiles would be in memory than there are threads.
    fn split(&self, tiles: usize) -> bool {
        tiles < 2 * self.decoder.threads()
    }

    /// Lends a buffer for a tile; the tile's object is closed afterwards.
    fn with_tile<R>(&self, work: impl FnOnce(&mut TileBuffer) -> R) -> R {
        self.tiles.with(|buffer| {
            let result = work(buffer);
            buffer.object = None;
            result
        })
    }

    fn check_output(&self, cells: u64, nnz: u64) -> Result<(), Error> {
        self.decoder.check_output::<T>(cells, nnz, true).map_err(|error| error.in_part(Part::Cells))
    }
}

/// Nonzeros of a row of an opened tile.
fn row_len(tile: &Tile<'_>, row: usize) -> u64 {
    (tile.indptr(row + 1) - tile.indptr(row)).unsigned_abs() // its bounds were checked not to decrease
}
