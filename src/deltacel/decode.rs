//! Tiles to CSR arrays.
//!
//! Source: DELTACEL file format, "Streams" and "Decoding a chunk".
//!
//! Each chunk is decoded by itself: gaps frame, gaps kernel, gap exceptions, counts frame, counts kernel, count
//! exceptions. The kernels return evidence; only where it is bad does a scalar walk look for the first bad value, so
//! that every kernel level and every number of threads reports the same error.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::chunk::Chunk;
use super::csr::{Count, Csr};
use super::exceptions::Exceptions;
use super::tile::Tile;
use crate::buffer::{Buffer, Pages};
use crate::error::{Error, ErrorKind, Limit, Part, Stream};
use crate::input::Input;
use crate::kernels::{Kernels, Store};
use crate::limits::Limits;
use crate::zstd::{Decompressor, frame};

/// Results larger than this are written around the caches: they would not stay there.
const STREAM_FROM: u64 = 24 << 20;

/// How results are written to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreChoice {
    /// By the size of the results.
    #[default]
    Auto,
    /// Always this way.
    Always(Store),
}

/// Decodes tiles. Build it once and use it for every tile, from as many threads as you like.
///
/// It keeps zstd contexts and scratch memory, so that after the first tile a loop which also reuses its [`Csr`]
/// allocates nothing.
///
/// ```
/// # #[cfg(feature = "encode")] {
/// use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Tile};
///
/// let counts = CsrView { n_genes: 5, indptr: &[0, 3, 3, 4], indices: &[0, 2, 4, 1], values: &[1, 2, 3, 300] };
/// let mut bytes = Vec::new();
/// Encoder::builder().build()?.encode(&counts, &mut bytes)?;
///
/// let decoder = Decoder::new()?;
/// let mut csr = Csr::<f32>::new();
/// decoder.decode(&Tile::open(&bytes)?, &mut csr)?;
/// assert_eq!(csr.values(), [1.0, 2.0, 3.0, 300.0]);
/// # }
/// # Ok::<(), tilekern::Error>(())
/// ```
pub struct Decoder {
    kernels: Kernels,
    limits: Limits,
    store: StoreChoice,
    pages: Pages,
    threads: Threads,
    /// Workers that no thread uses at the moment.
    idle: Mutex<Vec<Worker>>,
}

enum Threads {
    /// The calling thread alone.
    One,
    /// The pool in which the caller runs, which is rayon's global one by default.
    #[cfg(feature = "parallel")]
    Ambient,
    #[cfg(feature = "parallel")]
    Own(rayon::ThreadPool),
}

/// Options of a [`Decoder`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct DecoderBuilder {
    kernels: Option<Kernels>,
    limits: Limits,
    store: StoreChoice,
    pages: Pages,
    threads: usize,
}

impl DecoderBuilder {
    /// Uses these kernels, whatever `TILEKERN_KERNEL` says.
    pub fn kernels(mut self, kernels: Kernels) -> DecoderBuilder {
        self.kernels = Some(kernels);
        self
    }

    /// Bounds on what a decode may allocate.
    pub fn limits(mut self, limits: Limits) -> DecoderBuilder {
        self.limits = limits;
        self
    }

    /// How results are written.
    pub fn store(mut self, store: StoreChoice) -> DecoderBuilder {
        self.store = store;
        self
    }

    /// On which pages scratch memory lies.
    pub fn pages(mut self, pages: Pages) -> DecoderBuilder {
        self.pages = pages;
        self
    }

    /// Threads that share the chunks of a tile: 1 is the calling thread alone, 0 (the default) is rayon's pool.
    /// Without the feature `parallel` it is always the calling thread.
    pub fn threads(mut self, threads: usize) -> DecoderBuilder {
        self.threads = threads;
        self
    }

    /// The decoder.
    ///
    /// # Errors
    /// [`ErrorKind::KernelUnavailable`] if `TILEKERN_KERNEL` names no kernels of this CPU; [`ErrorKind::Io`] if threads
    /// cannot be started.
    pub fn build(self) -> Result<Decoder, Error> {
        let kernels = match self.kernels {
            Some(kernels) => kernels,
            None => Kernels::from_env()?,
        };
        #[cfg(feature = "parallel")]
        let threads = match self.threads {
            0 => Threads::Ambient,
            1 => Threads::One,
            n => Threads::Own(rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(|e| {
                Error::new(ErrorKind::Io(std::io::ErrorKind::Other), Part::Option("threads")).caused_by(e)
            })?),
        };
        #[cfg(not(feature = "parallel"))]
        let threads = Threads::One;
        Ok(Decoder {
            kernels,
            limits: self.limits,
            store: self.store,
            pages: self.pages,
            threads,
            idle: Mutex::new(Vec::new()),
        })
    }
}

/// What a decode gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Cells decoded.
    pub cells: usize,
    /// Nonzeros decoded.
    pub nnz: usize,
    /// Counts so large that the type asked for may not hold them exactly: above 2^24 for `f32`.
    pub inexact: usize,
}

/// Slices of the caller that take a decode's results.
#[derive(Debug)]
pub struct CsrMut<'a, T> {
    /// `cells + 1` entries, from 0.
    pub indptr: &'a mut [i64],
    /// The gene of each nonzero.
    pub indices: &'a mut [i32],
    /// The count of each nonzero; `None` leaves the counts undecoded.
    pub values: Option<&'a mut [T]>,
}

/// Scratch of one thread.
struct Worker {
    zstd: Decompressor,
    /// Two byte planes of the stream at hand.
    planes: Buffer<u8>,
    exceptions: Exceptions,
}

impl Decoder {
    /// A decoder with the kernels that `TILEKERN_KERNEL` names, else this CPU's best, on rayon's threads.
    ///
    /// # Errors
    /// As [`DecoderBuilder::build`].
    pub fn new() -> Result<Decoder, Error> {
        Decoder::builder().build()
    }

    /// Options first.
    pub fn builder() -> DecoderBuilder {
        DecoderBuilder::default()
    }

    /// The kernels in use.
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Threads that may share a tile.
    pub fn threads(&self) -> usize {
        match &self.threads {
            Threads::One => 1,
            #[cfg(feature = "parallel")]
            Threads::Ambient => rayon::current_num_threads(),
            #[cfg(feature = "parallel")]
            Threads::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Decodes a whole tile.
    ///
    /// # Errors
    /// A frame that does not decode, a value that the format forbids, or [`ErrorKind::LimitExceeded`]. What `csr` holds
    /// is then unspecified.
    pub fn decode<T: Count>(&self, tile: &Tile<'_>, csr: &mut Csr<T>) -> Result<Decoded, Error> {
        self.owned(tile, 0..tile.n_cells(), 0..tile.n_chunks(), csr, true)
    }

    /// Decodes the cells of a range, numbered within the tile. Only the chunks that hold them are touched, and checked.
    ///
    /// # Errors
    /// As [`Decoder::decode`]; [`ErrorKind::OutOfRange`] if the tile does not have those cells.
    pub fn decode_cells<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        csr: &mut Csr<T>,
    ) -> Result<Decoded, Error> {
        let chunks = chunks_of(tile, &cells);
        self.owned(tile, cells, chunks, csr, true)
    }

    /// Decodes which genes the cells of a range express, and leaves their counts undecoded.
    ///
    /// # Errors
    /// As [`Decoder::decode_cells`].
    pub fn decode_indices<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        csr: &mut Csr<T>,
    ) -> Result<Decoded, Error> {
        let chunks = chunks_of(tile, &cells);
        self.owned(tile, cells, chunks, csr, false)
    }

    /// Adds the counts to what [`Decoder::decode_indices`] gave for cells of one chunk. Returns how many are inexact.
    #[cfg(feature = "dataset")]
    pub(super) fn decode_counts<T: Count>(
        &self,
        tile: &Tile<'_>,
        chunk: u32,
        first_cell: usize,
        csr: &mut Csr<T>,
    ) -> Result<usize, Error> {
        let nnz = csr.indices.len();
        self.check_output::<T>(csr.n_cells() as u64, nnz as u64, true)?;
        csr.values.try_resize(nnz)?;
        csr.counted = true;
        let store = Store::Cached; // they are looked at next
        let job = Job { decoder: self, tile, indptr: &csr.indptr, first_cell: first_cell as u64, store };
        let mut worker = self.worker();
        let inexact = job.counts(&mut worker, chunk, &mut csr.values);
        self.put_back(worker);
        inexact
    }

    fn owned<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        chunks: Range<u32>,
        csr: &mut Csr<T>,
        counts: bool,
    ) -> Result<Decoded, Error> {
        self.check_scratch(tile, chunks.clone())?;
        self.reserve(tile, &cells, csr, counts)?;
        let out =
            CsrMut { indptr: &mut csr.indptr, indices: &mut csr.indices, values: counts.then_some(&mut *csr.values) };
        self.fill(tile, cells, chunks, out, true)
    }

    /// Gives `csr` the size of the results, if the limits allow it.
    fn reserve<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: &Range<usize>,
        csr: &mut Csr<T>,
        counts: bool,
    ) -> Result<(), Error> {
        let nnz = selected(tile, cells)?;
        self.check_output::<T>(cells.len() as u64, nnz as u64, counts)?;
        csr.n_genes = tile.n_genes();
        csr.indptr.try_resize(cells.len() + 1)?;
        csr.indices.try_resize(nnz)?;
        csr.values.try_resize(if counts { nnz } else { 0 })?;
        csr.counted = counts;
        Ok(())
    }

    /// Passes results of such a size if the limits do.
    pub(super) fn check_output<T: Count>(&self, cells: u64, nnz: u64, counts: bool) -> Result<(), Error> {
        let per_value = size_of::<i32>() + if counts { size_of::<T>() } else { 0 };
        let indptr = cells.saturating_add(1).saturating_mul(size_of::<i64>() as u64);
        let bytes = nnz.saturating_mul(per_value as u64).saturating_add(indptr);
        Limits::check(nnz, self.limits.max_values, Limit::Values, Part::Object)?;
        Limits::check(bytes, self.limits.max_output_bytes, Limit::OutputBytes, Part::Object)
    }

    /// Runs `work` on each item, on the threads that this decoder may use; the results stand in the items' order.
    #[cfg(feature = "dataset")]
    pub(super) fn map<I: Send, R: Send>(&self, items: Vec<I>, work: impl Fn(I) -> R + Sync + Send) -> Vec<R> {
        #[cfg(feature = "parallel")]
        use rayon::prelude::*;
        match &self.threads {
            #[cfg(feature = "parallel")]
            Threads::Ambient if items.len() > 1 => items.into_par_iter().map(work).collect(),
            #[cfg(feature = "parallel")]
            Threads::Own(pool) if items.len() > 1 => pool.install(|| items.into_par_iter().map(work).collect()),
            _ => items.into_iter().map(work).collect(),
        }
    }

    /// Decodes the cells of a range into the caller's slices; `values: None` leaves the counts undecoded.
    ///
    /// **Shapes**: `indptr` has one entry more than cells; `indices` and `values` have
    /// `tile.indptr(cells.end) - tile.indptr(cells.start)` entries each.
    ///
    /// # Errors
    /// As [`Decoder::decode_cells`]; [`ErrorKind::Inconsistent`] in [`Part::Buffer`] for a slice of another length.
    pub fn decode_into<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        out: CsrMut<'_, T>,
    ) -> Result<Decoded, Error> {
        self.decode_with(tile, cells, out, true)
    }

    /// As [`Decoder::decode_into`], but if not `split` on the calling thread alone: for callers that have tiles for all.
    pub(super) fn decode_with<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        out: CsrMut<'_, T>,
        split: bool,
    ) -> Result<Decoded, Error> {
        let chunks = chunks_of(tile, &cells);
        self.fill(tile, cells, chunks, out, split)
    }

    /// Decodes such chunks: those that hold the cells and, of a whole tile, those without cells at its ends.
    fn fill<T: Count>(
        &self,
        tile: &Tile<'_>,
        cells: Range<usize>,
        chunks: Range<u32>,
        out: CsrMut<'_, T>,
        split: bool,
    ) -> Result<Decoded, Error> {
        let nnz = selected(tile, &cells)?;
        exact("indptr", out.indptr.len(), cells.len() + 1)?;
        exact("indices", out.indices.len(), nnz)?;
        if let Some(values) = &out.values {
            exact("values", values.len(), nnz)?;
        }
        tile.copy_indptr(cells.clone(), out.indptr);
        self.check_scratch(tile, chunks.clone())?;
        let bytes = size_of_val(&*out.indices) + out.values.as_ref().map_or(0, |values| size_of_val(&**values));
        let job = Job {
            decoder: self,
            tile,
            indptr: out.indptr,
            first_cell: cells.start as u64,
            store: match self.store {
                StoreChoice::Always(store) => store,
                StoreChoice::Auto if bytes as u64 >= STREAM_FROM => Store::Streaming,
                StoreChoice::Auto => Store::Cached,
            },
        };
        let work = Work { chunks, indices: out.indices, values: out.values };
        #[cfg(not(feature = "parallel"))]
        let _ = split;
        let inexact = match &self.threads {
            Threads::One => job.run_here(work),
            #[cfg(feature = "parallel")]
            _ if !split || work.chunks.len() <= 1 => job.run_here(work),
            #[cfg(feature = "parallel")]
            Threads::Ambient => job.run_split(work),
            #[cfg(feature = "parallel")]
            Threads::Own(pool) => pool.install(|| job.run_split(work)),
        }?;
        Ok(Decoded { cells: cells.len(), nnz, inexact })
    }

    /// Decodes one chunk of an opened tile for its faults: the first of its gaps and the first of its counts.
    pub(super) fn faults(&self, tile: &Tile<'_>, n: u32) -> Vec<Error> {
        let chunk = tile.chunk(n);
        let cells = usize::try_from(chunk.cells.start).unwrap_or(0)..usize::try_from(chunk.cells.end).unwrap_or(0);
        let mut csr = Csr::<i32>::with_pages(self.pages);
        if let Err(error) = self.reserve(tile, &cells, &mut csr, true).and_then(|()| self.check_scratch(tile, n..n + 1))
        {
            return vec![error];
        }
        tile.copy_indptr(cells, &mut csr.indptr);
        let job = Job { decoder: self, tile, indptr: &csr.indptr, first_cell: chunk.cells.start, store: Store::Cached };
        let mut worker = self.worker();
        let gaps = job.gaps(&mut worker, n, &mut csr.indices).err();
        let counts = job.counts(&mut worker, n, &mut csr.values).err();
        self.put_back(worker);
        gaps.into_iter().chain(counts).collect()
    }

    /// A thread holds two planes of its chunk, and the exceptions of one stream.
    fn check_scratch(&self, tile: &Tile<'_>, chunks: Range<u32>) -> Result<(), Error> {
        for chunk in chunks {
            let entry = tile.chunk(chunk);
            let exceptions = [Stream::Gexc, Stream::Vexc].map(|stream| tile.stream(&entry, stream));
            let exceptions = exceptions.into_iter().flatten().map(frame::content_size).max().unwrap_or(0);
            let needed = entry.nnz().saturating_mul(2).saturating_add(exceptions);
            Limits::check(
                needed,
                self.limits.max_scratch_bytes,
                Limit::ScratchBytes,
                Part::Chunk(chunk, Stream::Gaps),
            )?;
        }
        Ok(())
    }

    fn worker(&self) -> Worker {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Worker {
            zstd: Decompressor::new(),
            planes: Buffer::with_pages(self.pages),
            exceptions: Exceptions::default(),
        })
    }

    fn put_back(&self, worker: Worker) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("kernels", &self.kernels).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Nonzeros of a range of cells.
fn selected(tile: &Tile<'_>, cells: &Range<usize>) -> Result<usize, Error> {
    if cells.start > cells.end || cells.end > tile.n_cells() {
        let kind =
            ErrorKind::OutOfRange { found: cells.end as i128, min: cells.start as i128, max: tile.n_cells() as i128 };
        return Err(Error::new(kind, Part::Cells));
    }
    let nnz = tile.indptr(cells.end) - tile.indptr(cells.start);
    usize::try_from(nnz).map_err(|_| {
        let kind = ErrorKind::LimitExceeded { needed: tile.nnz(), limit: usize::MAX as u64, what: Limit::Values };
        Error::new(kind, Part::Indptr)
    })
}

/// The chunks that hold the cells of a range.
fn chunks_of(tile: &Tile<'_>, cells: &Range<usize>) -> Range<u32> {
    tile.chunks_of(cells.start as u64..cells.end as u64)
}

fn exact(name: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found != expected {
        let kind = ErrorKind::Inconsistent { found: found as i128, expected: expected as i128 };
        return Err(Error::new(kind, Part::Buffer(name)));
    }
    Ok(())
}

/// One decode: what all its threads share.
struct Job<'a> {
    decoder: &'a Decoder,
    tile: &'a Tile<'a>,
    /// The results' indptr, from 0.
    indptr: &'a [i64],
    /// The cell of the tile that is the results' first.
    first_cell: u64,
    store: Store,
}

/// Chunks that follow each other, and where their results go.
struct Work<'a, T> {
    chunks: Range<u32>,
    indices: &'a mut [i32],
    values: Option<&'a mut [T]>,
}

impl<'a, T> Work<'a, T> {
    /// The first `chunks` chunks, which hold the first `nnz` results, and the rest.
    fn split(self, chunks: u32, nnz: usize) -> (Work<'a, T>, Work<'a, T>) {
        let middle = self.chunks.start + chunks;
        let (indices, indices_rest) = self.indices.split_at_mut(nnz);
        let (values, values_rest) = match self.values.map(|values| values.split_at_mut(nnz)) {
            Some((values, rest)) => (Some(values), Some(rest)),
            None => (None, None),
        };
        (
            Work { chunks: self.chunks.start..middle, indices, values },
            Work { chunks: middle..self.chunks.end, indices: indices_rest, values: values_rest },
        )
    }
}

impl Job<'_> {
    /// Decodes chunk by chunk on this thread. Returns the number of inexact counts.
    fn run_here<T: Count>(&self, mut work: Work<'_, T>) -> Result<usize, Error> {
        let mut worker = self.decoder.worker();
        let mut inexact = Ok(0);
        while !work.chunks.is_empty() {
            let nnz = self.results(work.chunks.start..work.chunks.start + 1);
            let (first, rest) = work.split(1, nnz);
            match self.chunk(&mut worker, first) {
                Ok(n) => inexact = inexact.map(|sum: usize| sum + n),
                Err(error) => {
                    inexact = Err(error);
                    break;
                }
            }
            work = rest;
        }
        self.decoder.put_back(worker);
        inexact
    }

    /// Halves the chunks until each is alone. The error of the lower half wins, so the lowest chunk's does.
    #[cfg(feature = "parallel")]
    fn run_split<T: Count>(&self, work: Work<'_, T>) -> Result<usize, Error> {
        let n = u32::try_from(work.chunks.len()).unwrap_or(u32::MAX);
        if n <= 1 {
            return self.run_here(work);
        }
        let half = n / 2;
        let nnz = self.results(work.chunks.start..work.chunks.start + half);
        let (low, high) = work.split(half, nnz);
        let (low, high) = rayon::join(|| self.run_split(low), || self.run_split(high));
        Ok(low? + high?)
    }

    /// The cells of a chunk which are asked for, numbered within the results.
    fn cells(&self, chunk: &Chunk) -> Range<usize> {
        let last = self.indptr.len() - 1;
        // Both ends are at most the tile's cells, which are in memory.
        let within = |cell: u64| usize::try_from(cell.saturating_sub(self.first_cell)).unwrap_or(last).min(last);
        within(chunk.cells.start)..within(chunk.cells.end)
    }

    /// How many results chunks that follow each other give.
    fn results(&self, chunks: Range<u32>) -> usize {
        let first = self.cells(&self.tile.chunk(chunks.start));
        let last = self.cells(&self.tile.chunk(chunks.end - 1));
        usize::try_from(self.indptr[last.end] - self.indptr[first.start]).unwrap_or(0)
    }

    /// Decodes one chunk: `work` has it alone, and exactly its results.
    fn chunk<T: Count>(&self, worker: &mut Worker, work: Work<'_, T>) -> Result<usize, Error> {
        let n = work.chunks.start;
        self.gaps(worker, n, work.indices)?;
        work.values.map_or(Ok(0), |values| self.counts(worker, n, values))
    }

    /// The nonzeros of chunk `n` which are asked for: how many of the chunk's come before them.
    fn skipped(&self, chunk: &Chunk) -> usize {
        let first = self.first_cell + self.cells(chunk).start as u64;
        // The indptr was checked to agree with the table, so this is not negative.
        let before = usize::try_from(first).map_or(0, |cell| self.tile.indptr(cell));
        usize::try_from(before).unwrap_or(0) - usize::try_from(chunk.nonzeros.start).unwrap_or(0)
    }

    fn gaps(&self, worker: &mut Worker, n: u32, indices: &mut [i32]) -> Result<(), Error> {
        let chunk = self.tile.chunk(n);
        let cells = self.cells(&chunk);
        let bounds = &self.indptr[cells.start..=cells.end];
        let skipped = self.skipped(&chunk);
        let wanted = skipped..skipped + indices.len();
        let (kernels, n_genes) = (self.decoder.kernels, self.tile.n_genes());

        let stream = self.planes(worker, &chunk, n, Stream::Gaps)?;
        let (lo, hi) = worker.planes.split_at(worker.planes.len() / 2);
        let (lo_wanted, hi_wanted) = (&lo[wanted.clone()], &hi[wanted]);
        let seen = kernels.gaps(lo_wanted, hi_wanted, bounds, indices, self.store);
        if seen.repeated || seen.last >= u64::from(n_genes) {
            let (kind, index) = first_bad_gap(lo_wanted, hi_wanted, bounds, n_genes);
            let part = Part::Chunk(n, Stream::Gaps);
            return Err(Error::new(kind, part).at(stream.offset()).index((skipped + index) as u64));
        }
        let Some(stream) = self.tile.stream(&chunk, Stream::Gexc) else { return Ok(()) };
        let part = Part::Chunk(n, Stream::Gexc);
        worker.exceptions.read(&mut worker.zstd, stream, part, (lo, hi), 1..=n_genes - 1)?;
        worker
            .exceptions
            .shift(kernels, indices, bounds, skipped, n_genes)
            .map_err(|(kind, index)| Error::new(kind, part).at(stream.offset()).index(index as u64))
    }

    /// Returns how many counts the type may not hold exactly.
    fn counts<T: Count>(&self, worker: &mut Worker, n: u32, values: &mut [T]) -> Result<usize, Error> {
        let chunk = self.tile.chunk(n);
        let skipped = self.skipped(&chunk);
        let wanted = skipped..skipped + values.len();

        let stream = self.planes(worker, &chunk, n, Stream::Vals)?;
        let (lo, hi) = worker.planes.split_at(worker.planes.len() / 2);
        let (lo_wanted, hi_wanted) = (&lo[wanted.clone()], &hi[wanted]);
        let seen = T::merge(self.decoder.kernels, lo_wanted, hi_wanted, values, self.store);
        if seen.zero {
            let zero = lo_wanted.iter().zip(hi_wanted).position(|(&lo, &hi)| lo | hi == 0);
            let index = (skipped + zero.unwrap_or(0)) as u64;
            let part = Part::Chunk(n, Stream::Vals);
            return Err(Error::new(ErrorKind::ZeroCount, part).at(stream.offset()).index(index));
        }
        let Some(stream) = self.tile.stream(&chunk, Stream::Vexc) else { return Ok(0) };
        let part = Part::Chunk(n, Stream::Vexc);
        let allowed = u32::from(u16::MAX) + 1..=i32::MAX.cast_unsigned();
        worker.exceptions.read(&mut worker.zstd, stream, part, (lo, hi), allowed)?;
        worker
            .exceptions
            .replace(values, skipped)
            .map_err(|(kind, index)| Error::new(kind, part).at(stream.offset()).index(index as u64))
    }

    /// Decompresses a stream of a chunk into the worker's planes.
    ///
    /// Returns where the stream lies.
    fn planes(&self, worker: &mut Worker, chunk: &Chunk, n: u32, stream: Stream) -> Result<Input<'_>, Error> {
        let part = Part::Chunk(n, stream);
        let input = self.tile.stream(chunk, stream).ok_or_else(|| Error::new(ErrorKind::Missing, part))?;
        // The frame was checked to state this size and to be able to reach it; the limit was checked too.
        let size = usize::try_from(2 * chunk.nnz()).unwrap_or(usize::MAX);
        worker.planes.try_resize(size)?;
        worker.zstd.decode(input, &mut worker.planes, part)?;
        Ok(input)
    }
}

/// The first value at which gaps are wrong: a gap of 0 after a cell's first, or a gene that the tile does not have.
#[cold]
fn first_bad_gap(lo: &[u8], hi: &[u8], bounds: &[i64], n_genes: u32) -> (ErrorKind, usize) {
    let mut i = 0;
    for cell in bounds.windows(2) {
        let mut gene = 0;
        for at in cell[0]..cell[1] {
            let gap = u64::from(u16::from_le_bytes([lo[i], hi[i]]));
            gene += gap;
            if gap == 0 && at > cell[0] {
                return (ErrorKind::RepeatedGene, i);
            }
            if gene >= u64::from(n_genes) {
                return (ErrorKind::OutOfRange { found: gene.into(), min: 0, max: i128::from(n_genes) - 1 }, i);
            }
            i += 1;
        }
    }
    // Only a user's own kernels can report a fault that is not there.
    (ErrorKind::KernelUnavailable, 0)
}
