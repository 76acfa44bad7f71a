//! The threads that prepare batches, and the iterator over what they have made.
//!
//! One thread loads: it decodes the rows of a round into a load, of which there are two. The other cuts loads into
//! batches and puts these into a queue of bounded length. Each waits for the other, and both for who takes the batches.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

#[cfg(feature = "obs")]
use super::RecordBatch;
use super::{BatchState, BatchesBuilder, Plan};
use crate::buffer::Buffer;
use crate::deltacel::csr::{Count, Csr};
use crate::deltacel::dataset::Collection;
use crate::deltacel::dataset::rows::{Gather, Reader};
use crate::deltacel::decode::Decoder;
use crate::error::{Error, ErrorKind, Part};

/// Loads: one is cut into batches while the other is decoded.
const LOADS: usize = 2;

/// Mini-batches of one epoch, in an order that [`BatchesBuilder`] describes.
///
/// An error ends it: it comes in the place of the first batch that cannot be made, after all those before it.
///
/// ```
/// # #[cfg(feature = "encode")] {
/// use tilekern::deltacel::dataset::{Batches, Dataset, Writer};
/// use tilekern::deltacel::CsrView;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts");
/// let mut writer = Writer::builder(5).tile_size(4).create(&path)?;
/// for _ in 0..10 {
///     writer.push(&CsrView { n_genes: 5, indptr: &[0, 2], indices: &[0, 3], values: &[1, 2] })?;
/// }
/// writer.finish()?;
///
/// let options = Batches::builder(Dataset::open(&path)?).batch_size(4).block(2).seed(1);
/// let mut state = None;
/// for batch in options.build::<f32>()?.take(1) {
///     let batch = batch?;
///     assert_eq!((batch.cells().len(), batch.csr().nnz()), (4, 8));
///     state = Some(batch.state()); // seed, epoch, position: keep it with the model
/// }
/// let rest = options.resume(state.expect("a batch")).build::<f32>()?;
/// assert_eq!(rest.map(|batch| Ok(batch?.cells().len())).collect::<Result<Vec<_>, tilekern::Error>>()?, [4, 2]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Batches<T: Count> {
    ready: Option<Receiver<Result<Batch<T>, Error>>>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    state: BatchState,
    steps: u64,
    left: u64,
}

/// A mini-batch: counts of some cells, in the order of the epoch. Dropping it gives its memory back to the next ones.
#[derive(Debug)]
pub struct Batch<T: Count> {
    parts: Parts<T>,
    dense: bool,
    state: BatchState,
    home: Sender<Parts<T>>,
}

/// The memory of a batch.
#[derive(Debug)]
struct Parts<T: Count> {
    cells: Vec<u64>,
    csr: Csr<T>,
    dense: Buffer<T>,
    #[cfg(feature = "obs")]
    obs: Option<RecordBatch>,
}

impl<T: Count> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts {
            cells: Vec::new(),
            csr: Csr::new(),
            dense: Buffer::new(),
            #[cfg(feature = "obs")]
            obs: None,
        }
    }
}

impl<T: Count> Batch<T> {
    /// The number of each cell in the dataset or collection.
    pub fn cells(&self) -> &[u64] {
        &self.parts.cells
    }

    /// The counts, a row for each cell.
    pub fn csr(&self) -> &Csr<T> {
        &self.parts.csr
    }

    /// The counts with their zeros, row by row: cells x genes. `None` unless [`BatchesBuilder::dense`] asked for it.
    pub fn dense(&self) -> Option<&[T]> {
        self.dense.then_some(&*self.parts.dense)
    }

    /// The columns of the table of cells that were asked for, a row for each cell.
    #[cfg(feature = "obs")]
    pub fn obs(&self) -> Option<&RecordBatch> {
        self.parts.obs.as_ref()
    }

    /// Where the epoch stands after this batch and its fellows on the other ranks.
    pub fn state(&self) -> BatchState {
        self.state
    }

    /// Takes the counts. Their memory does not come back to later batches.
    pub fn into_csr(mut self) -> Csr<T> {
        std::mem::take(&mut self.parts.csr)
    }
}

#[cfg(feature = "arrow")]
impl<T: crate::deltacel::ArrowCount> Batch<T> {
    /// Hands the counts over to Arrow, without a copy, together with the columns of the table of cells that were asked
    /// for: see [`Csr::into_arrow`] and [`Csr::into_arrow_with`].
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`](arrow_schema::ArrowError) for a column of the table that is named `gene` or
    /// `count`.
    pub fn into_arrow(mut self) -> Result<arrow_array::RecordBatch, arrow_schema::ArrowError> {
        #[cfg(feature = "obs")]
        if let Some(obs) = self.parts.obs.take() {
            return self.into_csr().into_arrow_with(&obs);
        }
        std::mem::take(&mut self.parts.csr).into_arrow()
    }
}

impl<T: Count> Drop for Batch<T> {
    fn drop(&mut self) {
        // The epoch may be over; then nobody needs it.
        let _ = self.home.send(std::mem::take(&mut self.parts));
    }
}

impl Batches<f32> {
    /// Options first. The source of the cells is a dataset or a collection of them.
    pub fn builder(source: impl Into<Collection>) -> BatchesBuilder {
        BatchesBuilder::new(source.into())
    }
}

impl<T: Count> Batches<T> {
    pub(super) fn start(plan: Plan, decoder: Decoder) -> Result<Batches<T>, Error> {
        let (state, steps) = (plan.options.state, plan.steps.len());
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, ready) = sync_channel(plan.options.prefetch.max(1));
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("tilekern batches".to_owned()).spawn(move || {
            if let Err(error) = run(plan, &decoder, &sender, &stopped) {
                let _ = sender.send(Err(error)); // unless nobody waits for it
            }
        });
        let thread = thread.map_err(|e| Error::new(ErrorKind::Io(e.kind()), Part::Option("prefetch")).caused_by(e))?;
        Ok(Batches { ready: Some(ready), thread: Some(thread), stop, state, steps, left: steps })
    }

    /// Where the epoch stands after the batches that were taken.
    pub fn state(&self) -> BatchState {
        self.state
    }

    /// Batches from where this iterator began; the same on every rank.
    pub fn n_batches(&self) -> u64 {
        self.steps
    }
}

impl<T: Count> Iterator for Batches<T> {
    type Item = Result<Batch<T>, Error>;

    fn next(&mut self) -> Option<Result<Batch<T>, Error>> {
        let next = self.ready.as_ref()?.recv();
        match next {
            Ok(Ok(batch)) => {
                (self.state, self.left) = (batch.state, self.left - 1);
                Some(Ok(batch))
            }
            Ok(Err(error)) => {
                (self.ready, self.left) = (None, 0);
                Some(Err(error))
            }
            Err(_) => {
                (self.ready, self.left) = (None, 0);
                if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                    resume_unwind(panic);
                }
                None
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error may come before the last one.
        (usize::from(self.left > 0), usize::try_from(self.left).ok())
    }
}

impl<T: Count> std::iter::FusedIterator for Batches<T> {}

impl<T: Count> Drop for Batches<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ready = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // whose panic would have shown in `next`
        }
    }
}

impl<T: Count> std::fmt::Debug for Batches<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("state", &self.state).field("left", &self.left).finish_non_exhaustive()
    }
}

/// The rows of the batches of a round.
struct Load<T> {
    /// The cells of all, one batch behind the other.
    cells: Vec<u64>,
    /// How many cells each batch has, and the state after it.
    batches: Vec<(usize, BatchState)>,
    gather: Gather<T>,
}

impl<T> Default for Load<T> {
    fn default() -> Load<T> {
        Load { cells: Vec::new(), batches: Vec::new(), gather: Gather::default() }
    }
}

/// Makes all batches. Ends early, without an error, when nobody takes them any more.
fn run<T: Count>(
    mut plan: Plan,
    decoder: &Decoder,
    ready: &SyncSender<Result<Batch<T>, Error>>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let options = plan.options.clone();
    let reader = options.collection.reader::<T>(decoder);
    let reader = match &plan.columns {
        Some(columns) => reader.genes(columns)?,
        None => reader,
    };
    #[cfg(feature = "obs")]
    let obs = options.obs_table()?;
    #[cfg(feature = "obs")]
    let columns: Vec<&str> = options.obs.iter().map(|name| &**name).collect();
    let (home, used) = channel::<Parts<T>>();
    thread::scope(|scope| {
        let (spare, spares) = channel::<Load<T>>();
        (0..LOADS).for_each(|_| _ = spare.send(Load::default()));
        let (loaded, loads) = sync_channel(0);
        let reader = &reader;
        scope.spawn(move || load_all(&mut plan, reader, &spares, &loaded, stop));
        while let Ok(load) = loads.recv() {
            let mut load: Load<T> = load?;
            let mut start = 0;
            for &(len, state) in &load.batches {
                let mut parts = used.try_recv().unwrap_or_default();
                let rows = start..start + len;
                parts.cells.clear();
                parts.cells.extend_from_slice(&load.cells[rows.clone()]);
                reader.assemble(&mut load.gather, rows, &mut parts.csr, false)?;
                if options.dense {
                    spread(&parts.csr, &mut parts.dense)?;
                }
                #[cfg(feature = "obs")]
                if let Some(obs) = &obs {
                    parts.obs = Some(obs.values(&columns, &parts.cells)?);
                }
                start += len;
                let batch = Batch { parts, dense: options.dense, state, home: home.clone() };
                if ready.send(Ok(batch)).is_err() {
                    return Ok(());
                }
            }
            let _ = spare.send(load); // the other thread may be done
        }
        Ok(())
    })
}

/// Loads round after round, until all are loaded, one fails, or nobody waits for them.
fn load_all<T: Count>(
    plan: &mut Plan,
    reader: &Reader<'_, T>,
    spares: &Receiver<Load<T>>,
    loaded: &SyncSender<Result<Load<T>, Error>>,
    stop: &AtomicBool,
) {
    let mut next = 0;
    while next < plan.steps.len() {
        let Ok(mut load) = spares.recv() else { return };
        load.cells.clear();
        load.batches.clear();
        let steps = plan.load(next);
        next = steps.end;
        for step in steps {
            let before = load.cells.len();
            plan.cells(step, &mut load.cells);
            load.batches.push((load.cells.len() - before, plan.state(step)));
        }
        let found = reader.load(load.cells.iter().copied(), &mut load.gather, stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let failed = found.is_err();
        if loaded.send(found.map(|_| load)).is_err() || failed {
            return;
        }
    }
}

/// Writes a matrix with its zeros.
fn spread<T: Count>(csr: &Csr<T>, dense: &mut Buffer<T>) -> Result<(), Error> {
    let width = usize::try_from(csr.n_genes()).unwrap_or(usize::MAX);
    dense.try_resize(width.saturating_mul(csr.n_cells()))?;
    dense.fill(T::zeroed());
    if width == 0 {
        return Ok(());
    }
    for (row, bounds) in dense.chunks_exact_mut(width).zip(csr.indptr().windows(2)) {
        let bound = |bound: i64| usize::try_from(bound).unwrap_or(0);
        let nonzeros = bound(bounds[0])..bound(bounds[1]);
        for (&gene, &count) in csr.indices()[nonzeros.clone()].iter().zip(&csr.values()[nonzeros]) {
            row[gene.cast_unsigned() as usize] = count;
        }
    }
    Ok(())
}
