//! Shuffled mini-batches for training: an order that only seed, epoch and options decide, decoded ahead on threads.

mod order;
mod prefetch;

use std::sync::Arc;

#[cfg(feature = "obs")]
use arrow_array::RecordBatch;

use self::order::{Order, Shape, Steps};
pub use self::prefetch::{Batch, Batches};
use super::{Collection, GeneColumns, Genes};
use crate::deltacel::csr::Count;
use crate::deltacel::decode::DecoderBuilder;
use crate::error::{Error, ErrorKind, Limit, Part};
use crate::limits::Limits;

/// Where an epoch stands: all that is needed to go on with it exactly, on any number of threads and of ranks, as long as
/// cells, seed and the options of the order are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchState {
    /// What the order of all epochs depends on.
    pub seed: u64,
    /// Each epoch has an order of its own.
    pub epoch: u64,
    /// Cells that all ranks together have had in this epoch: a multiple of the batch size, or all cells. Every rank has
    /// the same number after the same number of batches, so the state of any rank is that of all.
    pub position: u64,
}

impl BatchState {
    /// The beginning of the next epoch.
    #[must_use]
    pub fn next_epoch(self) -> BatchState {
        BatchState { epoch: self.epoch.wrapping_add(1), position: 0, ..self }
    }
}

/// What happens at the end of an epoch, where the cells left do not give every rank a whole batch. Every rank has the
/// same number of batches in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remainder {
    /// They are dealt out: every cell is met exactly once by all ranks together. The last batch of a rank is smaller,
    /// those of two ranks differ by one cell at most, and where there are fewer cells than ranks some are empty.
    #[default]
    Share,
    /// They are left out of this epoch: fewer than ranks x batch size, and others in each epoch. All batches are whole.
    Drop,
    /// Cells from the beginning of the epoch fill the last batches: these are met twice, all batches are whole.
    Repeat,
}

/// Options of [`Batches`].
///
/// **Order**: cells, [`block`](BatchesBuilder::block), [`window`](BatchesBuilder::window),
/// [`lanes`](BatchesBuilder::lanes), [`batch_size`](BatchesBuilder::batch_size), [`shuffle`](BatchesBuilder::shuffle),
/// seed and epoch decide which cells stand in which batch. Everything else (ranks, threads, genes, outputs) only decides
/// who gets the batches, and in which form.
///
/// **Mixing**: blocks of consecutive cells are put in random order, and a window of them is shuffled wholly. A batch so
/// is a random sample of the `window / block` blocks of its window. Where datasets are sorted, say by cell type, the
/// share of a type in a batch varies about `1 + batch_size / (window / block)` times as much (in variance) as in a full
/// shuffle; a block of 1 is a full shuffle, and decodes nearly the whole dataset for each window. Batches of one window
/// share its blocks, so batches that follow each other are alike to the same degree.
///
/// **Cost**: the unit of decoding is the chunk, of about 100 to 400 cells in most datasets. A block that is as large wastes
/// half of the work at its two ends, one four times as large a fifth. Without
/// [`check_crc(false)`](super::DatasetBuilder::check_crc) a window also reads each of its tiles wholly.
///
/// **Memory**: two times the cells of a window times lanes, divided by the ranks (see [`BatchesBuilder::lanes`]): one
/// part is handed out while the next is decoded. 8 bytes for each nonzero (6 as `u16`) and about 100 for each cell; then
/// the batches that are ready, and a tile and a chunk for each thread.
#[derive(Clone, Debug)]
#[must_use]
pub struct BatchesBuilder {
    collection: Collection,
    cells: Option<Arc<[u64]>>,
    genes: Option<Genes>,
    #[cfg(feature = "obs")]
    obs: Vec<String>,
    decoder: DecoderBuilder,
    batch: u64,
    block: u64,
    window: Window,
    lanes: u64,
    shuffle: bool,
    state: BatchState,
    rank: u64,
    ranks: u64,
    remainder: Remainder,
    dense: bool,
    prefetch: usize,
}

#[derive(Clone, Copy, Debug)]
enum Window {
    Cells(u64),
    Bytes(u64),
}

impl BatchesBuilder {
    pub(super) fn new(collection: Collection) -> BatchesBuilder {
        BatchesBuilder {
            collection,
            cells: None,
            genes: None,
            #[cfg(feature = "obs")]
            obs: Vec::new(),
            decoder: DecoderBuilder::default(),
            batch: 512,
            block: 256,
            window: Window::Cells(16_384),
            lanes: 1,
            shuffle: true,
            state: BatchState::default(),
            rank: 0,
            ranks: 1,
            remainder: Remainder::Share,
            dense: false,
            prefetch: 4,
        }
    }

    /// Only these cells take part: strictly increasing numbers, such as those that pass a filter. All unless it is set.
    pub fn cells(mut self, cells: impl Into<Arc<[u64]>>) -> BatchesBuilder {
        self.cells = Some(cells.into());
        self
    }

    /// Only these genes are decoded.
    pub fn genes(mut self, genes: Genes) -> BatchesBuilder {
        self.genes = Some(genes);
        self
    }

    /// Columns of the table of cells that come with each batch: categories as dictionaries with the vocabulary of all
    /// datasets, so that a key means the same in every batch. Values that were read stay in memory for the epoch.
    #[cfg(feature = "obs")]
    pub fn obs<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> BatchesBuilder {
        self.obs = columns.into_iter().map(Into::into).collect();
        self
    }

    /// The decoder, with its threads and limits. Besides its threads two more prepare batches.
    pub fn decoder(mut self, decoder: DecoderBuilder) -> BatchesBuilder {
        self.decoder = decoder;
        self
    }

    /// Cells of a batch; 512 unless it is set.
    pub fn batch_size(mut self, cells: u64) -> BatchesBuilder {
        self.batch = cells;
        self
    }

    /// Cells that follow each other in the datasets and stay together in a window; 256 unless it is set.
    pub fn block(mut self, cells: u64) -> BatchesBuilder {
        self.block = cells;
        self
    }

    /// Cells that are shuffled wholly, rounded down to whole batches, but one at least; 16,384 unless it is set.
    pub fn window(mut self, cells: u64) -> BatchesBuilder {
        self.window = Window::Cells(cells);
        self
    }

    /// A window of so many bytes, counted as 8 for each nonzero that a cell has on average (or could have of the chosen
    /// genes) and 40 for the cell. The number of cells that this gives is a part of the order.
    pub fn window_bytes(mut self, bytes: u64) -> BatchesBuilder {
        self.window = Window::Bytes(bytes);
        self
    }

    /// Windows between which batches alternate; 1 unless it is set.
    ///
    /// A rank reads the windows of its batches alone. If the number of ranks divides that of lanes, each rank has lanes of
    /// its own, and together they read every block about once. If not (with one lane and two ranks, say), every rank
    /// still gets the right cells, but decodes chunks in which it has some of the cells only. The lanes are part of the
    /// order: choose once the largest number of ranks that an epoch may go on with.
    pub fn lanes(mut self, lanes: u64) -> BatchesBuilder {
        self.lanes = lanes;
        self
    }

    /// Whether anything is shuffled; without it the cells come in their order, as for an evaluation.
    pub fn shuffle(mut self, shuffle: bool) -> BatchesBuilder {
        self.shuffle = shuffle;
        self
    }

    /// The seed of the order; 0 unless it is set.
    pub fn seed(mut self, seed: u64) -> BatchesBuilder {
        self.state.seed = seed;
        self
    }

    /// The epoch, from its beginning; 0 unless it is set.
    pub fn epoch(mut self, epoch: u64) -> BatchesBuilder {
        (self.state.epoch, self.state.position) = (epoch, 0);
        self
    }

    /// Goes on from a state. The number of ranks may have changed: the cells that were not met are dealt out anew.
    pub fn resume(mut self, state: BatchState) -> BatchesBuilder {
        self.state = state;
        self
    }

    /// Which of how many processes this is. In each step, rank 0 gets the first batch of the order, rank 1 the next, and
    /// so on.
    pub fn rank(mut self, rank: u64, ranks: u64) -> BatchesBuilder {
        (self.rank, self.ranks) = (rank, ranks);
        self
    }

    /// What happens to the last cells.
    pub fn remainder(mut self, remainder: Remainder) -> BatchesBuilder {
        self.remainder = remainder;
        self
    }

    /// Whether batches also have their counts as a dense array.
    pub fn dense(mut self, dense: bool) -> BatchesBuilder {
        self.dense = dense;
        self
    }

    /// Batches that are made ahead; 4 unless it is set, and one at least.
    pub fn prefetch(mut self, batches: usize) -> BatchesBuilder {
        self.prefetch = batches;
        self
    }

    /// Starts the threads, which end with the epoch or when the batches are dropped. `T` is the type of the counts: as `u16`
    /// a larger count is an error, as `f32` those above 2^24 are rounded, as [`Reader::rows`](super::Reader::rows) does.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] in [`Part::Option`] for a number that does not hold; in [`Part::Cells`] for cells that
    /// there are not or that do not increase, with the index; those of [`Collection::columns`] and of
    /// `Collection::obs`; [`ErrorKind::Missing`] for a column that there is not;
    /// [`ErrorKind::LimitExceeded`] for dense batches above the limits; those of [`DecoderBuilder::build`].
    pub fn build<T: Count>(&self) -> Result<Batches<T>, Error> {
        let collection = self.collection.clone();
        let decoder = self.decoder.build()?;
        let columns = self.genes.as_ref().map(|genes| collection.columns(genes)).transpose()?;
        let n_columns = columns.as_ref().map_or(u64::from(collection.n_genes()), |columns| columns.len() as u64);
        let n_cells = self.cells.as_ref().map_or(collection.n_cells(), |cells| cells.len() as u64);
        self.check_cells()?;

        // Products of these stay far below 2^64.
        const MAX: u64 = 1 << 31;
        within("batch_size", self.batch, 1, MAX)?;
        within("block", self.block, 1, i64::MAX.unsigned_abs())?;
        within("lanes", self.lanes, 1, 1 << 16)?;
        within("ranks", self.ranks, 1, 1 << 24)?;
        within("rank", self.rank, 0, self.ranks - 1)?;
        let window = self.window_cells(n_columns).min(MAX) / self.batch * self.batch;
        let shape = Shape {
            cells: n_cells,
            batch: self.batch,
            block: self.block,
            window: window.max(self.batch),
            lanes: self.lanes,
        };
        if shape.blocks() > u64::from(u32::MAX) {
            let min = n_cells.div_ceil(u32::MAX.into());
            within("block", self.block, min, i64::MAX.unsigned_abs())?;
        }
        let start = self.state.position;
        within("position", start, 0, n_cells)?;
        if start != n_cells && !start.is_multiple_of(self.batch) {
            let kind = ErrorKind::Misaligned { found: start, align: self.batch };
            return Err(Error::new(kind, Part::Option("position")).caused_by("a state of another batch size?"));
        }
        if self.dense {
            let bytes = self.batch.saturating_mul(n_columns).saturating_mul(size_of::<T>() as u64);
            Limits::check(bytes, decoder.limits().max_output_bytes, Limit::OutputBytes, Part::Option("dense"))?;
        }
        #[cfg(feature = "obs")]
        self.check_obs()?;
        let steps = Steps {
            cells: n_cells,
            batch: self.batch,
            start,
            rank: self.rank,
            ranks: self.ranks,
            remainder: self.remainder,
        };
        let order = Order::new(shape, self.shuffle, self.state.seed, self.state.epoch);
        let plan = Plan { options: self.clone(), columns, steps, order, round: shape.round() };
        Batches::start(plan, decoder)
    }

    fn check_cells(&self) -> Result<(), Error> {
        let Some(cells) = &self.cells else { return Ok(()) };
        super::rows::check_cells(cells, self.collection.n_cells())?;
        match cells.windows(2).position(|pair| pair[1] <= pair[0]) {
            None => Ok(()),
            Some(at) => {
                let (found, min) = (cells[at + 1].into(), i128::from(cells[at]) + 1);
                let kind = ErrorKind::OutOfRange { found, min, max: i128::from(self.collection.n_cells()) - 1 };
                let error = Error::new(kind, Part::Cells).index(at as u64 + 1);
                Err(error.caused_by("cells must increase; sort them, and leave out repeats"))
            }
        }
    }

    #[cfg(feature = "obs")]
    fn check_obs(&self) -> Result<(), Error> {
        if self.obs.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.obs.iter().map(|name| &**name).collect();
        self.obs_table()?.map_or(Ok(()), |table| table.values(&names, &[]).map(|_| ()))
    }

    /// The table of cells, if columns of it are wanted.
    #[cfg(feature = "obs")]
    fn obs_table(&self) -> Result<Option<super::obs::ObsCollection<'_>>, Error> {
        if self.obs.is_empty() {
            return Ok(None);
        }
        let missing =
            || Error::new(ErrorKind::Missing, Part::Option("obs")).caused_by("no dataset has a table of cells");
        self.collection.obs()?.ok_or_else(missing).map(Some)
    }

    fn window_cells(&self, n_columns: u64) -> u64 {
        match self.window {
            Window::Cells(cells) => cells,
            Window::Bytes(bytes) => {
                let nnz = self.collection.datasets().map(|dataset| u128::from(dataset.manifest().nnz())).sum::<u128>();
                let mean = nnz / u128::from(self.collection.n_cells().max(1));
                let nonzeros = u64::try_from(mean).unwrap_or(u64::MAX).min(n_columns);
                bytes / nonzeros.saturating_mul(8).saturating_add(40)
            }
        }
    }
}

fn within(option: &'static str, found: u64, min: u64, max: u64) -> Result<(), Error> {
    let kind = ErrorKind::OutOfRange { found: found.into(), min: min.into(), max: max.into() };
    if (min..=max).contains(&found) { Ok(()) } else { Err(Error::new(kind, Part::Option(option))) }
}

/// What the threads are to do.
struct Plan {
    options: BatchesBuilder,
    columns: Option<GeneColumns>,
    steps: Steps,
    order: Order,
    /// Positions of a round.
    round: u64,
}

impl Plan {
    /// The steps after `step` that are loaded together with it: those whose batches begin in the same round.
    fn load(&self, step: u64) -> std::ops::Range<u64> {
        let round = |step| self.steps.positions(step).start / self.round;
        let mut end = step + 1;
        while end < self.steps.len() && round(end) == round(step) {
            end += 1;
        }
        step..end
    }

    /// Appends the cells of a step's batch.
    fn cells(&mut self, step: u64, out: &mut Vec<u64>) {
        let start = out.len();
        self.order.cells(self.steps.positions(step), out);
        if let Some(cells) = &self.options.cells {
            for cell in &mut out[start..] {
                *cell = usize::try_from(*cell).map_or(0, |at| cells[at]); // the order is one of places in this list
            }
        }
    }

    /// The state after a step.
    fn state(&self, step: u64) -> BatchState {
        BatchState { position: self.steps.after(step), ..self.options.state }
    }
}
