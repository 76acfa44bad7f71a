//! Writing a tile: checks, chunks, exceptions, layout.

use std::ops::Range;
#[cfg(feature = "parallel")]
use std::sync::Mutex;

use super::chunk::ENTRY_LEN;
use super::csr::CsrView;
use super::header::{HEADER_LEN, Header, MAX_GENES};
use super::profile::{Framer, Profile};
use crate::error::{Error, ErrorKind, Part};

/// What stands in a stream where the value is larger and has an exception.
const ESCAPE: u32 = 65_535;

/// Nonzeros of a chunk that the writer aims at, at most: its two byte planes then stay in a second-level cache of 1 MiB.
const CHUNK_NONZEROS: usize = 500_000;

/// How a tile is cut into chunks: the units that decode in parallel, or alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunks {
    /// About equal ones of a quarter to one million nonzeros. A cell is never cut.
    #[default]
    Auto,
    /// So many with about equal nonzeros, but none without a cell.
    Count(u32),
}

/// How many values above 65535 a tile may hold. Each costs a decoder about 35 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExceptionPolicy {
    /// At most max(1024, nonzeros / 200) of either kind: more are a sign that these are no raw counts.
    #[default]
    Rare,
    /// Any number.
    Any,
}

impl ExceptionPolicy {
    fn max(self, nnz: u64) -> u64 {
        match self {
            ExceptionPolicy::Rare => (nnz / 200).max(1024),
            ExceptionPolicy::Any => u64::MAX,
        }
    }
}

/// What a tile came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodeReport {
    /// Rows.
    pub n_cells: u64,
    /// Nonzeros.
    pub nnz: u64,
    /// Chunks.
    pub n_chunks: u32,
    /// Counts above 65535.
    pub count_exceptions: u64,
    /// Gaps above 65535.
    pub gap_exceptions: u64,
    /// Bytes of the header and the chunk table.
    pub header_bytes: u64,
    /// Bytes of the cell bounds.
    pub indptr_bytes: u64,
    /// Bytes of the frames of gaps.
    pub gaps_bytes: u64,
    /// Bytes of the frames of counts.
    pub vals_bytes: u64,
    /// Bytes of the frames of exceptions.
    pub exception_bytes: u64,
    /// Bytes of the tile; also those between frames.
    pub total_bytes: u64,
}

/// Settings of an [`Encoder`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EncoderBuilder {
    profile: Profile,
    chunks: Chunks,
    exceptions: ExceptionPolicy,
    threads: usize,
}

impl EncoderBuilder {
    /// How frames are made.
    pub fn profile(mut self, profile: Profile) -> EncoderBuilder {
        self.profile = profile;
        self
    }

    /// How the tile is cut.
    pub fn chunks(mut self, chunks: Chunks) -> EncoderBuilder {
        self.chunks = chunks;
        self
    }

    /// How many exceptions are taken.
    pub fn exceptions(mut self, exceptions: ExceptionPolicy) -> EncoderBuilder {
        self.exceptions = exceptions;
        self
    }

    /// Threads to use: 0 for those of rayon's current pool, 1 for the calling thread alone. The tile is the same.
    ///
    /// Without the feature `parallel` it is always the calling thread.
    pub fn threads(mut self, threads: usize) -> EncoderBuilder {
        self.threads = threads;
        self
    }

    /// The encoder.
    ///
    /// # Errors
    ///
    /// `OutOfRange` for a level that zstd does not have or for 0 chunks, `Io` if the threads do not start.
    pub fn build(self) -> Result<Encoder, Error> {
        self.profile.check()?;
        if self.chunks == Chunks::Count(0) {
            let kind = ErrorKind::OutOfRange { found: 0, min: 1, max: u32::MAX.into() };
            return Err(Error::new(kind, Part::Option("chunks")));
        }
        #[cfg(feature = "parallel")]
        let pool = match self.threads {
            0 | 1 => None,
            n => Some(rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(|error| {
                Error::new(ErrorKind::Io(std::io::ErrorKind::Other), Part::Option("threads")).caused_by(error)
            })?),
        };
        Ok(Encoder {
            settings: self,
            workers: Vec::new(),
            jobs: Vec::new(),
            starts: Vec::new(),
            #[cfg(feature = "parallel")]
            pool,
        })
    }
}

/// Writes tiles. Build it once and reuse it: it keeps its contexts and its scratch memory.
pub struct Encoder {
    settings: EncoderBuilder,
    /// Of earlier tiles, at most one for each thread.
    workers: Vec<Worker>,
    jobs: Vec<Job>,
    /// Where the cells of the tile start in its arrays, and where the last one ends.
    starts: Vec<usize>,
    #[cfg(feature = "parallel")]
    pool: Option<rayon::ThreadPool>,
}

/// What one thread needs to make frames.
struct Worker {
    framer: Framer,
    planes: Vec<u8>,
    /// Positions in the chunk, and payloads.
    exceptions: Vec<(u32, u32)>,
    exception_bytes: Vec<u8>,
}

/// One stream of one chunk with its exceptions, and the frames made of it.
#[derive(Default)]
struct Job {
    cells: Range<usize>,
    counts: bool,
    frame: Vec<u8>,
    /// Empty where the chunk has no exception.
    exceptions: Vec<u8>,
    failed: Option<Error>,
}

impl Encoder {
    /// The profile in use.
    pub fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// Settings to choose from.
    pub fn builder() -> EncoderBuilder {
        EncoderBuilder::default()
    }

    /// Writes `matrix` as a tile, and replaces the content of `out` by it. After an error `out` is empty.
    ///
    /// The same matrix and settings give the same bytes, for any number of threads.
    ///
    /// **Source**: File format, "Tile layout" to "Exceptions".
    ///
    /// # Errors
    ///
    /// The part says which array, or which cell and gene; the index is that of the cell or the nonzero.
    /// - `OutOfRange`: no genes or more than 2^31, a gene that the matrix does not have, a count below 1, a chunk of
    ///   2^32 or more nonzeros
    /// - `UnsortedGenes`, `RepeatedGene`, `ZeroCount`: as they say
    /// - `Inconsistent`: `indptr` is empty or decreases, or the arrays differ in length
    /// - `TooManyExceptions`: see [`ExceptionPolicy`]
    /// - `Io`: out of memory
    pub fn encode(&mut self, matrix: &CsrView<'_>, out: &mut Vec<u8>) -> Result<EncodeReport, Error> {
        out.clear();
        let mut report = check(matrix, &mut self.starts)?;
        let max = self.settings.exceptions.max(report.nnz);
        for (found, what) in [(report.count_exceptions, "counts"), (report.gap_exceptions, "gaps")] {
            if found > max {
                return Err(Error::new(ErrorKind::TooManyExceptions { found, max }, Part::Matrix(what)));
            }
        }
        let bounds = cut(&self.starts, self.settings.chunks)?;
        self.jobs.resize_with(2 * bounds.len(), Job::default);
        for (cells, jobs) in bounds.iter().zip(self.jobs.chunks_exact_mut(2)) {
            for (job, counts) in jobs.iter_mut().zip([false, true]) {
                job.cells = cells.clone();
                job.counts = counts;
            }
        }
        self.run(matrix);
        if let Some(error) = self.jobs.iter_mut().find_map(|job| job.failed.take()) {
            return Err(error);
        }
        write(matrix.n_genes, &self.starts, &self.jobs, &mut report, out);
        Ok(report)
    }

    #[cfg(feature = "parallel")]
    fn run(&mut self, matrix: &CsrView<'_>) {
        use rayon::prelude::*;

        if self.settings.threads == 1 {
            return self.run_here(matrix);
        }
        let profile = self.settings.profile;
        let idle = Mutex::new(std::mem::take(&mut self.workers));
        let idle_workers = || idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (jobs, starts) = (&mut self.jobs, &self.starts);
        let mut go = || {
            jobs.par_iter_mut().with_max_len(1).for_each(|job| {
                let worker = idle_workers().pop();
                if let Some(worker) = job.run(matrix, starts, profile, worker) {
                    idle_workers().push(worker);
                }
            });
        };
        match &self.pool {
            Some(pool) => pool.install(go),
            None => go(),
        }
        self.workers = idle.into_inner().unwrap_or_default();
    }

    #[cfg(not(feature = "parallel"))]
    fn run(&mut self, matrix: &CsrView<'_>) {
        self.run_here(matrix);
    }

    fn run_here(&mut self, matrix: &CsrView<'_>) {
        let mut worker = self.workers.pop();
        for job in &mut self.jobs {
            worker = job.run(matrix, &self.starts, self.settings.profile, worker);
        }
        self.workers.extend(worker);
    }
}

impl Job {
    /// Makes the frames, with an idle worker if there is one. Gives the worker back.
    fn run(
        &mut self,
        matrix: &CsrView<'_>,
        starts: &[usize],
        profile: Profile,
        worker: Option<Worker>,
    ) -> Option<Worker> {
        let mut worker = match worker.or_else(Worker::new) {
            Some(worker) => worker,
            None => {
                self.failed = Some(out_of_memory());
                return None;
            }
        };
        worker.fill(matrix, starts, &self.cells, self.counts);
        let made = worker.framer.planes(&worker.planes, profile, &mut self.frame).and_then(|()| {
            if worker.exceptions.is_empty() {
                self.exceptions.clear();
                return Ok(());
            }
            let (positions, payloads) = (worker.exceptions.iter().map(|e| e.0), worker.exceptions.iter().map(|e| e.1));
            worker.exception_bytes.clear();
            worker.exception_bytes.extend(positions.chain(payloads).flat_map(u32::to_le_bytes));
            worker.framer.plain(&worker.exception_bytes, profile, &mut self.exceptions)
        });
        self.failed = made.err().map(|refused| out_of_memory().caused_by(refused.name()));
        Some(worker)
    }
}

/// With room for any frame, memory is all that plain compression can lack.
fn out_of_memory() -> Error {
    Error::new(ErrorKind::Io(std::io::ErrorKind::OutOfMemory), Part::Object)
}

impl Worker {
    fn new() -> Option<Worker> {
        Some(Worker { framer: Framer::new()?, planes: Vec::new(), exceptions: Vec::new(), exception_bytes: Vec::new() })
    }

    /// Splits a stream of a chunk into byte planes, and lists what does not fit.
    fn fill(&mut self, matrix: &CsrView<'_>, starts: &[usize], cells: &Range<usize>, counts: bool) {
        let n = starts[cells.end] - starts[cells.start];
        self.exceptions.clear();
        self.planes.resize(2 * n, 0);
        let (low, high) = self.planes.split_at_mut(n);
        let mut position = 0u32; // a chunk has fewer than 2^32 nonzeros
        let mut put = |value: u32, payload: u32| {
            if value > ESCAPE {
                self.exceptions.push((position, payload));
            }
            let [lo, hi, ..] = value.min(ESCAPE).to_le_bytes();
            (low[position as usize], high[position as usize]) = (lo, hi);
            position += 1;
        };
        if counts {
            for count in &matrix.values[starts[cells.start]..starts[cells.end]] {
                put(count.unsigned_abs(), count.unsigned_abs());
            }
            return;
        }
        for cell in cells.clone() {
            let mut previous = 0;
            for &gene in &matrix.indices[starts[cell]..starts[cell + 1]] {
                let gap = gene.abs_diff(previous);
                put(gap, gap.wrapping_sub(ESCAPE));
                previous = gene;
            }
        }
    }
}

/// Passes a matrix that a tile can hold. Gives where its cells start in the arrays, and its counts for the report.
pub(super) fn check(matrix: &CsrView<'_>, starts: &mut Vec<usize>) -> Result<EncodeReport, Error> {
    let &CsrView { n_genes, indptr, indices, values } = matrix;
    let bad = |kind, part| Err(Error::new(kind, part));
    if n_genes == 0 || n_genes > MAX_GENES {
        let kind = ErrorKind::OutOfRange { found: n_genes.into(), min: 1, max: MAX_GENES.into() };
        return bad(kind, Part::Matrix("number of genes"));
    }
    let (&[first, ..], &[.., last]) = (indptr, indptr) else {
        return bad(ErrorKind::Missing, Part::Matrix("indptr"));
    };
    let (nnz, n_counts) = (indices.len() as i128, values.len() as i128);
    if n_counts != nnz {
        return bad(ErrorKind::Inconsistent { found: n_counts, expected: nnz }, Part::Matrix("number of counts"));
    }
    let end = i128::from(first) + nnz;
    starts.clear();
    let mut previous = first;
    for (index, &bound) in indptr.iter().enumerate() {
        match usize::try_from(i128::from(bound) - i128::from(first)) {
            Ok(start) if bound >= previous && start <= indices.len() => starts.push(start),
            _ => {
                let kind = ErrorKind::OutOfRange { found: bound.into(), min: previous.into(), max: end };
                return Err(Error::new(kind, Part::Matrix("indptr")).index(index as u64));
            }
        }
        previous = bound;
    }
    if i128::from(last) != end {
        let kind = ErrorKind::Inconsistent { found: last.into(), expected: end };
        return Err(Error::new(kind, Part::Matrix("indptr")).index(indptr.len() as u64 - 1));
    }
    let mut report =
        EncodeReport { n_cells: indptr.len() as u64 - 1, nnz: indices.len() as u64, ..EncodeReport::default() };
    for (cell, bounds) in starts.windows(2).enumerate() {
        let mut previous = None;
        for index in bounds[0]..bounds[1] {
            let (gene, count) = (indices[index], values[index]);
            let gap = i64::from(gene) - previous.unwrap_or(0);
            let sound = gene >= 0 && i64::from(gene) < i64::from(n_genes) && (gap > 0 || previous.is_none());
            if !sound || count < 1 {
                return Err(unsound(n_genes, cell as u64, previous, gene, count).index(index as u64));
            }
            report.gap_exceptions += u64::from(gap > i64::from(ESCAPE));
            report.count_exceptions += u64::from(count.unsigned_abs() > ESCAPE);
            previous = Some(i64::from(gene));
        }
    }
    Ok(report)
}

/// What is wrong with a nonzero that follows gene `previous` of its cell.
#[cold]
fn unsound(n_genes: u32, cell: u64, previous: Option<i64>, gene: i32, count: i32) -> Error {
    let gene = i64::from(gene);
    let (gene_of, count_of) = (Part::GeneOf { cell, gene }, Part::CountOf { cell, gene });
    let (kind, part) = match previous {
        _ if !(0..i64::from(n_genes)).contains(&gene) => {
            (ErrorKind::OutOfRange { found: gene.into(), min: 0, max: i128::from(n_genes) - 1 }, gene_of)
        }
        Some(after) if gene == after => (ErrorKind::RepeatedGene, gene_of),
        Some(after) if gene < after => (ErrorKind::UnsortedGenes { after }, gene_of),
        _ if count == 0 => (ErrorKind::ZeroCount, count_of),
        _ => (ErrorKind::OutOfRange { found: count.into(), min: 1, max: i32::MAX.into() }, count_of),
    };
    Error::new(kind, part)
}

/// Cuts the cells, given where they start and where the last one ends, into chunks of about equal nonzeros.
fn cut(starts: &[usize], chunks: Chunks) -> Result<Vec<Range<usize>>, Error> {
    let n_cells = starts.len() - 1;
    let nnz = starts[n_cells];
    let wanted = match chunks {
        Chunks::Auto => nnz.div_ceil(CHUNK_NONZEROS).max(1),
        Chunks::Count(n) => n as usize,
    };
    let n_chunks = wanted.min(n_cells);
    let mut bounds = Vec::with_capacity(n_chunks);
    let mut from = 0;
    for chunk in 1..=n_chunks {
        // In 128 bits, since nonzeros times chunks may need more than 64.
        let target = nnz as u128 * chunk as u128 / n_chunks as u128;
        let above = starts.partition_point(|&start| (start as u128) < target);
        let below = above.saturating_sub(1);
        let nearest =
            if target.abs_diff(starts[below] as u128) < target.abs_diff(starts[above] as u128) { below } else { above };
        // Every chunk has a cell: this one, and those to come.
        let to = if chunk == n_chunks { n_cells } else { nearest.clamp(from + 1, n_cells - (n_chunks - chunk)) };
        let n = starts[to] - starts[from];
        if u32::try_from(n).is_err() {
            let kind = ErrorKind::OutOfRange { found: n as i128, min: 0, max: u32::MAX.into() };
            let part = Part::ChunkEntry(u32::try_from(chunk - 1).unwrap_or(u32::MAX), "nonzeros");
            return Err(Error::new(kind, part).caused_by("ask for more chunks"));
        }
        bounds.push(from..to);
        from = to;
    }
    Ok(bounds)
}

/// Lays a tile out.
fn write(n_genes: u32, starts: &[usize], jobs: &[Job], report: &mut EncodeReport, out: &mut Vec<u8>) {
    let (chunks, _) = jobs.as_chunks::<2>();
    let frames = chunks.iter().flat_map(|[gaps, vals]| [&gaps.frame, &vals.frame, &vals.exceptions, &gaps.exceptions]);
    let indptr_off = HEADER_LEN + chunks.len() * ENTRY_LEN;
    let streams_off = indptr_off + starts.len() * 8;
    out.reserve_exact(streams_off + frames.clone().map(|frame| frame.len().next_multiple_of(8)).sum::<usize>());

    out.resize(HEADER_LEN, 0);
    let mut spans = Spans { end: streams_off };
    for [gaps, vals] in chunks {
        let cells = &gaps.cells;
        let entry: [[usize; 2]; 6] = [
            [cells.start, cells.end],
            [starts[cells.start], starts[cells.end]],
            spans.next(&gaps.frame),
            spans.next(&vals.frame),
            spans.next(&vals.exceptions),
            spans.next(&gaps.exceptions),
        ];
        out.extend(entry.as_flattened().iter().flat_map(|&field| (field as u64).to_le_bytes()));
        report.gaps_bytes += gaps.frame.len() as u64;
        report.vals_bytes += vals.frame.len() as u64;
        report.exception_bytes += (gaps.exceptions.len() + vals.exceptions.len()) as u64;
    }
    out.extend(starts.iter().flat_map(|&start| (start as u64).to_le_bytes()));
    for frame in frames.filter(|frame| !frame.is_empty()) {
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend_from_slice(frame);
    }

    report.n_chunks = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    report.header_bytes = indptr_off as u64;
    report.indptr_bytes = (starts.len() * 8) as u64;
    report.total_bytes = out.len() as u64;
    let crc = crc32fast::hash(&out[HEADER_LEN..]);
    let header = Header {
        n_cells: report.n_cells,
        nnz: report.nnz,
        n_genes,
        n_chunks: report.n_chunks,
        indptr_off: report.header_bytes,
        total_size: report.total_bytes,
        crc32: crc,
    };
    out[..HEADER_LEN].copy_from_slice(&header.to_bytes());
}

/// Gives streams their places, one after the other.
struct Spans {
    end: usize,
}

impl Spans {
    /// Offset and length; 0 and 0 for a stream that is not there.
    fn next(&mut self, frame: &[u8]) -> [usize; 2] {
        if frame.is_empty() {
            return [0, 0];
        }
        let start = self.end.next_multiple_of(8);
        self.end = start + frame.len();
        [start, frame.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix that owns its arrays.
    #[derive(Clone, Debug, PartialEq)]
    struct Matrix {
        n_genes: u32,
        indptr: Vec<i64>,
        indices: Vec<i32>,
        values: Vec<i32>,
    }

    impl Matrix {
        fn of(n_genes: u32, cells: &[&[(i32, i32)]]) -> Matrix {
            let mut matrix = Matrix { n_genes, indptr: vec![0], indices: Vec::new(), values: Vec::new() };
            for cell in cells {
                matrix.indices.extend(cell.iter().map(|nonzero| nonzero.0));
                matrix.values.extend(cell.iter().map(|nonzero| nonzero.1));
                matrix.indptr.push(matrix.indices.len() as i64);
            }
            matrix
        }

        fn view(&self) -> CsrView<'_> {
            CsrView { n_genes: self.n_genes, indptr: &self.indptr, indices: &self.indices, values: &self.values }
        }

        fn error(&self) -> Error {
            let mut out = vec![1, 2, 3];
            let error = Encoder::builder().build().unwrap().encode(&self.view(), &mut out).unwrap_err();
            assert!(out.is_empty(), "what an error leaves behind");
            error
        }
    }

    fn fault(matrix: Matrix, kind: ErrorKind, index: Option<u64>, message: &str) {
        let error = matrix.error();
        assert_eq!((error.kind(), error.value_index()), (kind, index), "{error}");
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn unsound_nonzeros_are_named_by_cell_and_gene() {
        let with = |gene, count| Matrix::of(10, &[&[(3, 1)], &[], &[(2, 5), (gene, count), (9, 1)]]);
        fault(
            with(2, 1),
            ErrorKind::RepeatedGene,
            Some(2),
            "matrix, cell 2, gene 2, value 2: repeats the gene of the nonzero before it (a gap of 0)",
        );
        fault(
            with(1, 1),
            ErrorKind::UnsortedGenes { after: 2 },
            Some(2),
            "matrix, cell 2, gene 1, value 2: follows gene 2; the genes of a cell must increase: sort them",
        );
        fault(
            with(10, 1),
            ErrorKind::OutOfRange { found: 10, min: 0, max: 9 },
            Some(2),
            "matrix, cell 2, gene 10, value 2: is 10, must be 0 to 9",
        );
        fault(
            with(-1, 1),
            ErrorKind::OutOfRange { found: -1, min: 0, max: 9 },
            Some(2),
            "matrix, cell 2, gene -1, value 2: is -1, must be 0 to 9",
        );
        fault(
            with(4, 0),
            ErrorKind::ZeroCount,
            Some(2),
            "matrix, cell 2, count of gene 4, value 2: a stored count is 0",
        );
        fault(
            with(4, -7),
            ErrorKind::OutOfRange { found: -7, min: 1, max: 2_147_483_647 },
            Some(2),
            "matrix, cell 2, count of gene 4, value 2: is -7, must be 1 to 2147483647",
        );
        fault(
            with(i32::MIN, i32::MIN),
            ErrorKind::OutOfRange { found: i32::MIN.into(), min: 0, max: 9 },
            Some(2),
            "matrix, cell 2, gene -2147483648, value 2: is -2147483648, must be 0 to 9",
        );
    }

    #[test]
    fn unsound_shapes_are_refused() {
        let matrix = Matrix::of(10, &[&[(3, 1)], &[(4, 1)]]);
        for n_genes in [0, MAX_GENES + 1, u32::MAX] {
            let kind = ErrorKind::OutOfRange { found: n_genes.into(), min: 1, max: MAX_GENES.into() };
            let message = format!("matrix, number of genes: is {n_genes}, must be 1 to 2147483648");
            fault(Matrix { n_genes, ..matrix.clone() }, kind, None, &message);
        }
        let with = |indptr: &[i64]| Matrix { indptr: indptr.to_vec(), ..matrix.clone() };
        fault(with(&[]), ErrorKind::Missing, None, "matrix, indptr: is absent");
        let range = |found: i64, min: i64, max| ErrorKind::OutOfRange { found: found.into(), min: min.into(), max };
        fault(with(&[0, 2, 1]), range(1, 2, 2), Some(2), "matrix, indptr, value 2: is 1, must be 2");
        fault(with(&[0, 3, 2]), range(3, 0, 2), Some(1), "matrix, indptr, value 1: is 3, must be 0 to 2");
        fault(with(&[5, -1, 2]), range(-1, 5, 7), Some(1), "matrix, indptr, value 1: is -1, must be 5 to 7");
        assert_eq!(with(&[i64::MIN, i64::MAX, 0]).error().value_index(), Some(1));
        let short = ErrorKind::Inconsistent { found: 1, expected: 2 };
        fault(with(&[0, 1, 1]), short, Some(2), "matrix, indptr, value 2: is 1 where the rest of the object implies 2");
        fault(
            Matrix { values: vec![1], ..matrix.clone() },
            short,
            None,
            "matrix, number of counts: is 1 where the rest of the object implies 2",
        );
    }

    #[test]
    fn a_chunk_has_fewer_than_2_to_the_32_nonzeros() {
        let half = 1usize << 31;
        let starts = [0, half, 2 * half];
        let error = cut(&starts, Chunks::Count(1)).unwrap_err();
        let kind = ErrorKind::OutOfRange { found: 1 << 32, min: 0, max: u32::MAX.into() };
        assert_eq!((error.kind(), error.part()), (kind, Part::ChunkEntry(0, "nonzeros")));
        assert!(error.to_string().ends_with("(ask for more chunks)"), "{error}");
        assert_eq!(cut(&starts, Chunks::Count(2)).unwrap(), [0..1, 1..2]);
        assert!(cut(&[0, half, 2 * half - 1], Chunks::Count(1)).is_ok());
        assert_eq!(cut(&starts, Chunks::Auto).unwrap(), [0..1, 1..2]);
    }
}
