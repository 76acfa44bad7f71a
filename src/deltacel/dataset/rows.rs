//! Rows of a dataset, or of several as one, by global cell number: any list, or a range; of all genes or of some.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::genes::{ColumnMap, GeneColumns, Sorter};
use super::{Dataset, TileBuffer};
use crate::buffer::Buffer;
use crate::deltacel::csr::{Count, Csr};
use crate::deltacel::decode::{CsrMut, Decoded, Decoder};
use crate::deltacel::tile::Tile;
use crate::error::{Error, ErrorKind, Part};

/// Decodes rows of a dataset, or of several as one. It keeps its buffers from call to call, and may be shared by threads.
pub struct Reader<'a, T: Count> {
    pieces: Vec<Piece<'a>>,
    pub(super) n_cells: u64,
    n_columns: u32,
    decoder: &'a Decoder,
    tiles: Pool<TileBuffer>,
    spans: Pool<Csr<T>>,
    /// Spans with a count that `T` does not hold exactly.
    wide: Pool<Csr<i32>>,
    gathers: Pool<Gather<T>>,
}

/// A dataset of those that are read as one.
pub(super) struct Piece<'a> {
    pub dataset: &'a Dataset,
    /// The number of its first cell among all.
    pub first: u64,
    /// Where its columns go, unless all stay what they are.
    pub map: Option<Arc<ColumnMap>>,
}

impl Piece<'_> {
    /// The number among all of a tile's first cell.
    pub fn tile_start(&self, tile: u32) -> u64 {
        self.first + u64::from(tile) * self.dataset.manifest.tile_size
    }
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
        let mut thing = self.take();
        let result = work(&mut thing);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
        result
    }

    fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// All of them, while no thread uses one.
    fn idle(&mut self) -> &mut Vec<T> {
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

/// Rows that were decoded and not yet put into results.
pub(super) struct Gather<T> {
    requests: Vec<Request>,
    arenas: Arenas<T>,
    sources: Vec<Row>,
}

/// What the threads fill.
struct Arenas<T> {
    idle: Pool<Arena<T>>,
    /// Segments that no arena uses. They are shared: chance gives one thread more rows than another, and each arena
    /// would come to be as large as all rows together.
    spare: Pool<Segment<T>>,
}

/// Rows that a thread has decoded, one behind the other.
///
/// They lie in segments that never move: large ones are on huge pages, whose first touch costs an eighth.
struct Arena<T> {
    segments: Vec<Segment<T>>,
    /// Each row that was asked for: its row in the results, and its nonzeros here.
    rows: Vec<(usize, Stored)>,
    sorter: Sorter<T>,
}

struct Segment<T> {
    indices: Buffer<i32>,
    values: Buffer<T>,
    used: usize,
}

/// Where nonzeros lie in an arena.
#[derive(Clone, Default)]
struct Stored {
    segment: usize,
    nonzeros: Range<usize>,
}

/// A row of the results, and where it lies.
#[derive(Clone, Default)]
struct Row {
    arena: usize,
    stored: Stored,
}

impl<T: Pod> Default for Segment<T> {
    fn default() -> Segment<T> {
        Segment { indices: Buffer::new(), values: Buffer::new(), used: 0 }
    }
}

impl<T> Default for Gather<T> {
    fn default() -> Gather<T> {
        let arenas = Arenas { idle: Pool::default(), spare: Pool::default() };
        Gather { requests: Vec::new(), arenas, sources: Vec::new() }
    }
}

impl<T> Default for Arena<T> {
    fn default() -> Arena<T> {
        Arena { segments: Vec::new(), rows: Vec::new(), sorter: Sorter::default() }
    }
}

impl<T: Count> Arena<T> {
    /// Nonzeros of the first segment, and of the largest, each twice as large as the one before it.
    const SEGMENT: Range<usize> = 1 << 14..1 << 20;

    /// Room for a row.
    fn room(&mut self, nonzeros: usize, spare: &Pool<Segment<T>>) -> Result<Stored, Error> {
        if nonzeros == 0 {
            return Ok(Stored::default());
        }
        let before = self.segments.last().map_or(0, |segment| segment.indices.len());
        if self.segments.last().is_none_or(|segment| before - segment.used < nonzeros) {
            let mut segment = spare.take();
            segment.used = 0;
            if segment.indices.len() < nonzeros {
                let len = nonzeros.max((2 * before).clamp(Arena::<T>::SEGMENT.start, Arena::<T>::SEGMENT.end));
                segment.values.try_resize(len)?;
                segment.indices.try_resize(len)?;
            }
            self.segments.push(segment);
        }
        let n = self.segments.len() - 1;
        let start = self.segments[n].used;
        self.segments[n].used += nonzeros;
        Ok(Stored { segment: n, nonzeros: start..start + nonzeros })
    }

    /// Gathers rows of a decoded span, each once, for all who asked for it: what `map` keeps of them. `convert` writes
    /// their counts, and is told how many have asked; it may refuse.
    ///
    /// Returns the row of the span that was refused, if any.
    fn take<U: Count>(
        &mut self,
        requests: &[Request],
        row: impl Fn(&Request) -> usize,
        span: &mut Csr<U>,
        mut map: Option<(&ColumnMap, &mut Sorter<U>)>,
        spare: &Pool<Segment<T>>,
        mut convert: impl FnMut(&[U], &mut [T], usize) -> bool,
    ) -> Result<Option<usize>, Error> {
        for same in requests.chunk_by(|a, b| a.cell == b.cell) {
            let at = row(&same[0]);
            let nonzeros = row_of(span, at);
            let (genes, counts) = (&mut span.indices[nonzeros.clone()], &mut span.values[nonzeros]);
            let kept = match &mut map {
                None => genes.len(),
                Some((map, sorter)) => map.keep(genes, counts, sorter),
            };
            let stored = self.room(kept, spare)?;
            if let Some(segment) = self.segments.get_mut(stored.segment) {
                segment.indices[stored.nonzeros.clone()].copy_from_slice(&genes[..kept]);
                if !convert(&counts[..kept], &mut segment.values[stored.nonzeros.clone()], same.len()) {
                    return Ok(Some(at));
                }
            }
            self.rows.extend(same.iter().map(|request| (request.at, stored.clone())));
        }
        Ok(None)
    }
}

/// The nonzeros of a row.
fn row_of<U: Count>(csr: &Csr<U>, row: usize) -> Range<usize> {
    let bound = |row: usize| usize::try_from(csr.indptr()[row]).unwrap_or(0);
    bound(row)..bound(row + 1)
}

/// A run of rows of the results, and where they come from.
struct Block<'a, T> {
    rows: &'a [Row],
    indices: &'a mut [i32],
    values: &'a mut [T],
}

impl<'a, T: Count> Block<'a, T> {
    /// Cuts off the first rows.
    fn front(&mut self, rows: &'a [Row]) -> Block<'a, T> {
        let len = rows.iter().map(|row| row.stored.nonzeros.len()).sum();
        let indices = self.indices.split_off_mut(..len).unwrap_or_default();
        Block { rows, indices, values: self.values.split_off_mut(..len).unwrap_or_default() }
    }

    fn copy(&mut self, arenas: &[Arena<T>]) {
        for row in self.rows {
            let Stored { segment, nonzeros } = &row.stored;
            let out = self.front(std::slice::from_ref(row));
            // Every row that is not empty has one: its chunk was decoded.
            let Some(segment) = arenas.get(row.arena).and_then(|arena| arena.segments.get(*segment)) else { continue };
            out.indices.copy_from_slice(&segment.indices[nonzeros.clone()]);
            out.values.copy_from_slice(&segment.values[nonzeros.clone()]);
        }
    }
}

/// The cells of one tile that a range has.
#[derive(Clone)]
struct Stretch {
    /// Which of the datasets.
    piece: usize,
    tile: u32,
    cells: Range<usize>,
}

/// A stretch to be decoded, and where its results go.
struct Job<'a, T> {
    stretch: &'a Stretch,
    opened: Option<Tile<'a>>,
    /// Nonzeros of the results before these.
    before: usize,
    /// The results' indptr entries behind each of the cells.
    indptr: &'a mut [i64],
    indices: &'a mut [i32],
    values: &'a mut [T],
}

impl<'a, T: Count> Reader<'a, T> {
    pub(super) fn new(pieces: Vec<Piece<'a>>, n_columns: u32, decoder: &'a Decoder) -> Reader<'a, T> {
        let n_cells = pieces.last().map_or(0, |piece| piece.first + piece.dataset.n_cells());
        Reader {
            pieces,
            n_cells,
            n_columns,
            decoder,
            tiles: Pool::default(),
            spans: Pool::default(),
            wide: Pool::default(),
            gathers: Pool::default(),
        }
    }

    /// Keeps some genes alone, in the order that they were chosen in.
    ///
    /// Everything else of a chunk is left as early as the format allows: the counts of a chunk in which no wanted cell has
    /// a kept gene are not decoded, nor looked at for faults, and rows are not looked at behind the last kept column. The
    /// frame of the gene indices of a chunk must be decoded whole. So what falls with the share of nonzeros that are kept
    /// is memory and the work that comes after. The time of a read itself falls only where most chunks have none of the
    /// genes, and rises elsewhere: by 0.8 ns a nonzero to pass them, and 4.4 ns for each that is kept in another order than
    /// the dataset's (`tilekern-peers read`, AMD Zen 5 VM, 2026-11).
    ///
    /// # Errors
    /// [`ErrorKind::Inconsistent`] in [`Part::Genes`] for columns that were found in a dataset with another number of
    /// genes.
    pub fn genes(mut self, columns: &GeneColumns) -> Result<Reader<'a, T>, Error> {
        let map = columns.map();
        if map.n_genes() as u64 != u64::from(self.n_columns) {
            let kind = ErrorKind::Inconsistent { found: map.n_genes() as i128, expected: self.n_columns.into() };
            return Err(Error::new(kind, Part::Genes).caused_by("the genes were chosen of another dataset"));
        }
        self.n_columns = map.n_columns();
        for piece in &mut self.pieces {
            piece.map = Some(piece.map.as_ref().map_or_else(|| map.clone(), |before| Arc::new(before.then(map))));
        }
        Ok(self)
    }

    /// Cells that can be asked for.
    pub fn n_cells(&self) -> u64 {
        self.n_cells
    }

    /// Columns of the results.
    pub fn n_genes(&self) -> u32 {
        self.n_columns
    }

    /// Decodes cells by their global numbers, in any order, with repeats; `out` has a row for each in that order.
    ///
    /// Each tile is opened and read once, and only the chunks that hold those cells are decoded, once each, on the
    /// decoder's threads. Beside the results it takes memory for as many nonzeros again, and for a tile and a chunk
    /// for each thread.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] in [`Part::Cells`] with the index of the first cell that there is not;
    /// [`ErrorKind::LimitExceeded`] for results above the decoder's limits, before they are decoded (of a choice of genes
    /// at most as many as each cell can have of them); else what is wrong
    /// with the first of the tiles that cannot be read, and with the first cell in it. It is the same on any number of
    /// threads. What `out` holds is then unspecified.
    pub fn rows(&self, cells: &[u64], out: &mut Csr<T>) -> Result<Decoded, Error> {
        self.check(cells)?;
        self.gathered(cells.iter().copied(), out)
    }

    /// Passes cells that there are.
    pub(super) fn check(&self, cells: &[u64]) -> Result<(), Error> {
        check_cells(cells, self.n_cells).map_err(|error| self.located(error))
    }

    /// With the dataset's path, if it is one alone.
    fn located(&self, error: Error) -> Error {
        match &self.pieces[..] {
            [piece] => piece.dataset.located(error),
            _ => error,
        }
    }

    fn gathered(&self, cells: impl Iterator<Item = u64>, out: &mut Csr<T>) -> Result<Decoded, Error> {
        self.gathers.with(|gather| {
            let inexact = self.load(cells, gather, &AtomicBool::new(false))?;
            let rows = gather.sources.len();
            let nnz = self.assemble(gather, 0..rows, out, true)?;
            Ok(Decoded { cells: rows, nnz, inexact })
        })
    }

    /// Decodes cells that there are, into memory of this reader's own. Returns the number of inexact counts.
    ///
    /// Once `stop` is true it ends soon, and what it has gathered is unspecified.
    pub(super) fn load(
        &self,
        cells: impl Iterator<Item = u64>,
        gather: &mut Gather<T>,
        stop: &AtomicBool,
    ) -> Result<usize, Error> {
        let Gather { requests, arenas, sources } = gather;
        requests.clear();
        requests.extend(cells.enumerate().map(|(at, cell)| Request { cell, at }));
        requests.sort_unstable();
        for arena in arenas.idle.idle() {
            arena.rows.clear();
            arenas.spare.idle().append(&mut arena.segments);
        }
        // The largest is taken first.
        arenas.spare.idle().sort_unstable_by_key(|segment| segment.indices.len());
        let tiles = self.by_tile(requests, |request| request.cell);
        let n_cells = requests.len();
        let nnz = AtomicU64::new(0);
        let split = self.split(tiles.len());
        let found = self.decoder.map(tiles, |(piece, tile, requests)| {
            self.rows_of_tile(piece, tile, requests, n_cells, &nnz, arenas, split, stop)
        });
        // Every tile that could be opened has added its part, so this does not depend on who was first.
        self.check_output(n_cells as u64, nnz.into_inner())?;
        let inexact = found.into_iter().sum::<Result<usize, Error>>()?;
        sources.clear();
        sources.resize(n_cells, Row::default());
        for (n, arena) in arenas.idle.idle().iter().enumerate() {
            for (at, stored) in &arena.rows {
                sources[*at] = Row { arena: n, stored: stored.clone() };
            }
        }
        Ok(inexact)
    }

    /// The tiles that hold cells, which stand in order, each with its part of them.
    pub(super) fn by_tile<'r, R>(
        &self,
        requests: &'r [R],
        cell: impl Fn(&R) -> u64,
    ) -> Vec<(&Piece<'a>, u32, &'r [R])> {
        let mut tiles = Vec::new();
        let mut rest = requests;
        while let Some(first) = rest.first() {
            let Some(piece) = self.pieces.get(self.piece_of(cell(first))) else { break };
            let Some((tile, _)) = piece.dataset.manifest.locate(cell(first) - piece.first) else { break };
            let end = piece.first + piece.dataset.manifest.tile_limit(tile);
            let (these, others) = rest.split_at(rest.partition_point(|request| cell(request) < end));
            tiles.push((piece, tile, these));
            rest = others;
        }
        tiles
    }

    /// The dataset that has a cell.
    fn piece_of(&self, cell: u64) -> usize {
        self.pieces.partition_point(|piece| piece.first <= cell).saturating_sub(1)
    }

    /// Decodes the rows of one tile, unless all results together turn out to be too large.
    ///
    /// Returns the number of inexact counts, those of a repeated cell counted as often as it is asked for.
    #[allow(clippy::too_many_arguments)] // one caller, and nothing that a struct would make clearer
    fn rows_of_tile(
        &self,
        piece: &Piece<'_>,
        n: u32,
        requests: &[Request],
        n_cells: usize,
        nnz: &AtomicU64,
        arenas: &Arenas<T>,
        split: bool,
        stop: &AtomicBool,
    ) -> Result<usize, Error> {
        let start = piece.tile_start(n);
        // Once the tile is open its indptr is in memory, and so a row's number fits.
        let row = |request: &Request| usize::try_from(request.cell - start).unwrap_or(usize::MAX);
        self.with_tile(|buffer| {
            let of_chunks = |tile: &Tile<'_>| by_chunk(tile, requests, row);
            if stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let numbers = |tile: &Tile<'_>| of_chunks(tile).into_iter().map(|(chunk, _)| chunk).collect();
            let tile = piece.dataset.tile_for(n, numbers, buffer)?;
            let most = piece.map.as_ref().map_or(u64::MAX, |map| map.n_columns().into());
            let these = requests.iter().map(|request| row_len(&tile, row(request)).min(most));
            let these = these.fold(0, u64::saturating_add);
            let add = |sum: u64| Some(sum.saturating_add(these));
            let before = nnz.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap_or(u64::MAX);
            if self.check_output(n_cells as u64, before.saturating_add(these)).is_err() {
                return Ok(0);
            }
            let map = piece.map.as_deref();
            let rows_of_chunk = |(chunk, requests): (u32, &[Request])| match stop.load(Ordering::Relaxed) {
                true => Ok(0),
                false => {
                    let spare = &arenas.spare;
                    arenas.idle.with(|arena| self.rows_of_chunk(&tile, chunk, map, requests, row, arena, spare))
                }
            };
            let inexact: Vec<_> = match split {
                true => self.decoder.map(of_chunks(&tile), rows_of_chunk),
                false => of_chunks(&tile).into_iter().map(rows_of_chunk).collect(),
            };
            inexact.into_iter().sum::<Result<usize, Error>>().map_err(|error| piece.dataset.in_tile(n, error))
        })
    }

    /// Decodes the rows of one chunk, at once from the first to the last. A fault in a row between is one of the chunk, but
    /// a count that the type does not hold matters only in a row that was asked for, and of a gene that is kept.
    #[allow(clippy::too_many_arguments)] // as above
    fn rows_of_chunk(
        &self,
        tile: &Tile<'_>,
        chunk: u32,
        map: Option<&ColumnMap>,
        requests: &[Request],
        row: impl Fn(&Request) -> usize,
        arena: &mut Arena<T>,
        spare: &Pool<Segment<T>>,
    ) -> Result<usize, Error> {
        let cells = row(&requests[0])..row(&requests[requests.len() - 1]) + 1;
        let row = |request: &Request| row(request) - cells.start;
        let whole = self.spans.with(|span| {
            let exact = match map {
                None => {
                    let decoded = self.decoder.decode_cells(tile, cells.clone(), span);
                    decoded.is_ok_and(|decoded| decoded.inexact == 0)
                }
                Some(map) => {
                    let decoded = self.decoder.decode_indices(tile, cells.clone(), span).is_ok();
                    let kept = |request: &Request| map.any(&span.indices()[row_of(span, row(request))]);
                    if decoded && !requests.iter().any(kept) {
                        arena.rows.extend(requests.iter().map(|request| (request.at, Stored::default())));
                        return Ok(true);
                    }
                    let mut counts = || self.decoder.decode_counts(tile, chunk, cells.start, span);
                    decoded && counts().is_ok_and(|inexact| inexact == 0)
                }
            };
            if exact {
                let mut sorter = std::mem::take(&mut arena.sorter);
                arena.take(requests, row, span, map.map(|map| (map, &mut sorter)), spare, |counts, out, _| {
                    out.copy_from_slice(counts);
                    true
                })?;
                arena.sorter = sorter;
            }
            Ok::<bool, Error>(exact)
        })?;
        if whole {
            return Ok(0);
        }
        // Some count is above what the type holds: this is rare, and may be slow.
        self.wide.with(|span| {
            self.decoder.decode_cells(tile, cells.clone(), span)?;
            let mut sorter = Sorter::default();
            let mut inexact = 0;
            let refused =
                arena.take(requests, row, span, map.map(|map| (map, &mut sorter)), spare, |counts, out, times| {
                    counts.iter().zip(out).all(|(count, out)| {
                        let count = count.cast_unsigned();
                        inexact += times * usize::from(count > T::EXACT_TO);
                        T::from_exception(count).map(|count| *out = count).is_some()
                    })
                })?;
            match refused {
                None => Ok(inexact),
                Some(at) => {
                    // The first row with such a count, by itself, says what is wrong.
                    let row = cells.start + at;
                    self.spans.with(|span| self.decoder.decode_cells(tile, row..row + 1, span)).map(|_| inexact)
                }
            }
        })
    }

    /// Puts some of the loaded rows into results, in the order in which they were asked for; if not `split` on the calling
    /// thread alone. Returns the number of nonzeros.
    pub(super) fn assemble(
        &self,
        gather: &mut Gather<T>,
        rows: Range<usize>,
        out: &mut Csr<T>,
        split: bool,
    ) -> Result<usize, Error> {
        let (arenas, sources) = (&**gather.arenas.idle.idle(), &gather.sources[rows]);
        let n_cells = sources.len();
        out.n_genes = self.n_columns;
        out.indptr.try_resize(n_cells + 1)?;
        out.indptr[0] = 0;
        let mut nnz = 0;
        for (bound, row) in out.indptr[1..].iter_mut().zip(sources) {
            nnz += row.stored.nonzeros.len();
            *bound = i64::try_from(nnz).unwrap_or(i64::MAX); // all of it lies in memory
        }
        out.indices.try_resize(nnz)?;
        out.values.try_resize(nnz)?;
        out.counted = true;

        let mut whole = Block { rows: sources, indices: &mut out.indices, values: &mut out.values };
        if !split {
            whole.copy(arenas);
            return Ok(nnz);
        }
        let per_block = n_cells.div_ceil(4 * self.decoder.threads()).max(64);
        let blocks = sources.chunks(per_block).map(|rows| whole.front(rows));
        self.decoder.map(blocks.collect(), |mut block: Block<'_, T>| block.copy(arenas));
        Ok(nnz)
    }

    /// Decodes the cells of a range of global numbers, straight into `out`.
    ///
    /// Each tile is opened and read once, on the decoder's threads; of the first and the last one only the chunks that
    /// are needed are decoded. Beside the results it takes memory for a tile for each thread; where columns change (a
    /// choice of genes, datasets matched by name) as [`Reader::rows`] does.
    ///
    /// # Errors
    /// As [`Reader::rows`].
    pub fn range(&self, cells: Range<u64>, out: &mut Csr<T>) -> Result<Decoded, Error> {
        check_range(&cells, self.n_cells).map_err(|error| self.located(error))?;
        if self.pieces.iter().any(|piece| piece.map.is_some()) {
            return self.gathered(cells, out);
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
        let stretches = self.stretches(&cells);
        let first = self.open_if_cut(stretches.first(), first)?;
        let last = match self.open_if_cut(stretches.get(1..).and_then(<[_]>::last), last) {
            Ok(last) => last,
            // A fault of an earlier tile comes first, and shows when those before the last are read.
            Err(error) => {
                let last = stretches.last().map_or(0, |stretch| stretch.cells.len() as u64);
                return Err(self.range(cells.start..cells.end - last, out).err().unwrap_or(error));
            }
        };
        let opened = |k: usize| if k == 0 { first } else { last.filter(|_| k + 1 == stretches.len()) };
        let nnz_of = |k: usize, Stretch { piece, tile, cells }: &Stretch| match opened(k) {
            Some(tile) => (tile.indptr(cells.end) - tile.indptr(cells.start)).unsigned_abs(),
            None => self.pieces[*piece].dataset.manifest.tile_nnz[*tile as usize],
        };
        let counts: Vec<u64> = stretches.iter().enumerate().map(|(k, stretch)| nnz_of(k, stretch)).collect();
        let n_cells = cells.end - cells.start;
        // The sum of one dataset is checked with its manifest; those of several may be too large for a number.
        let nnz = counts.iter().fold(0, |sum: u64, &nnz| sum.saturating_add(nnz));
        self.check_output(n_cells, nnz)?;

        let len = |n: u64| usize::try_from(n).unwrap_or(usize::MAX); // the limits let it pass
        out.n_genes = self.n_columns;
        out.indptr.try_resize(len(n_cells).saturating_add(1))?;
        out.indices.try_resize(len(nnz))?;
        out.values.try_resize(out.indices.len())?;
        out.counted = true;
        out.indptr[0] = 0;
        let mut before = 0;
        let (mut indptr, mut indices, mut values) = (&mut out.indptr[1..], &mut out.indices[..], &mut out.values[..]);
        let jobs = stretches.iter().zip(&counts).enumerate().map(|(k, (stretch, &nnz))| {
            let nnz = len(nnz);
            let job = Job {
                stretch,
                opened: opened(k),
                before,
                indptr: indptr.split_off_mut(..stretch.cells.len()).unwrap_or_default(),
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
    fn stretches(&self, cells: &Range<u64>) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut next = cells.start;
        while next < cells.end {
            let n = self.piece_of(next);
            let Some(piece) = self.pieces.get(n) else { break };
            let manifest = &piece.dataset.manifest;
            let Some((tile, row)) = manifest.locate(next - piece.first) else { break };
            let end = (piece.first + manifest.tile_limit(tile)).min(cells.end);
            let len = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            stretches.push(Stretch { piece: n, tile, cells: len(row)..len(row + (end - next)) });
            next = end;
        }
        stretches
    }

    /// Opens the tile of a stretch that is not the whole tile: it alone knows how many nonzeros those cells have.
    fn open_if_cut<'b>(
        &self,
        stretch: Option<&Stretch>,
        buffer: &'b mut TileBuffer,
    ) -> Result<Option<Tile<'b>>, Error> {
        match stretch {
            Some(stretch)
                if stretch.cells.len() as u64
                    != self.pieces[stretch.piece].dataset.manifest.tile_cells(stretch.tile) =>
            {
                self.open_for(stretch, buffer).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn open_for<'b>(&self, stretch: &Stretch, buffer: &'b mut TileBuffer) -> Result<Tile<'b>, Error> {
        let cells = stretch.cells.start as u64..stretch.cells.end as u64;
        let dataset = self.pieces[stretch.piece].dataset;
        dataset.tile_for(stretch.tile, |tile| tile.chunks_of(cells.clone()).collect(), buffer)
    }

    fn decode_stretch(&self, job: Job<'_, T>, split: bool) -> Result<Decoded, Error> {
        let Stretch { piece, tile: n, cells } = job.stretch;
        self.with_tile(|buffer| {
            let tile = match job.opened {
                Some(tile) => tile,
                None => self.open_for(job.stretch, buffer)?,
            };
            self.spans.with(|span| {
                span.indptr.try_resize(cells.len() + 1)?;
                let out = CsrMut { indptr: &mut span.indptr, indices: job.indices, values: Some(job.values) };
                let decoded = self.decoder.decode_with(&tile, cells.clone(), out, split);
                let before = i64::try_from(job.before).unwrap_or(i64::MAX);
                for (bound, own) in job.indptr.iter_mut().zip(&span.indptr[1..]) {
                    *bound = before + own;
                }
                decoded.map_err(|error| self.pieces[*piece].dataset.in_tile(*n, error))
            })
        })
    }

    /// Whether threads share the chunks of a tile, too. Where there are tiles enough they do not: a thread that waits for
    /// others would take up the next tile, and more tiles would be in memory than there are threads.
    fn split(&self, tiles: usize) -> bool {
        tiles < 2 * self.decoder.threads()
    }

    /// Lends a buffer for a tile; the tile's object is closed afterwards.
    pub(super) fn with_tile<R>(&self, work: impl FnOnce(&mut TileBuffer) -> R) -> R {
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

impl<T: Count> std::fmt::Debug for Reader<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("n_cells", &self.n_cells)
            .field("n_genes", &self.n_columns)
            .finish_non_exhaustive()
    }
}

/// The chunks that hold cells of a tile, which stand in order, each with its part of them.
pub(super) fn by_chunk<'r, R>(tile: &Tile<'_>, requests: &'r [R], row: impl Fn(&R) -> usize) -> Vec<(u32, &'r [R])> {
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
}

/// Passes cells that there are.
pub(super) fn check_cells(cells: &[u64], n_cells: u64) -> Result<(), Error> {
    match cells.iter().position(|&cell| cell >= n_cells) {
        None => Ok(()),
        Some(index) => {
            let (found, max) = (cells[index].into(), i128::from(n_cells) - 1);
            Err(Error::new(ErrorKind::OutOfRange { found, min: 0, max }, Part::Cells).index(index as u64))
        }
    }
}

/// Passes a range of cells that there are.
pub(super) fn check_range(cells: &Range<u64>, n_cells: u64) -> Result<(), Error> {
    if cells.start <= cells.end && cells.end <= n_cells {
        return Ok(());
    }
    let (found, min, max) = (cells.end.into(), cells.start.into(), n_cells.into());
    Err(Error::new(ErrorKind::OutOfRange { found, min, max }, Part::Cells))
}

/// Nonzeros of a row of an opened tile.
pub(super) fn row_len(tile: &Tile<'_>, row: usize) -> u64 {
    (tile.indptr(row + 1) - tile.indptr(row)).unsigned_abs() // its bounds were checked not to decrease
}
