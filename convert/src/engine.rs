//! The conversion: a pass that checks and counts, a pass that writes tiles, and the dataset put together of them.

mod record;
mod repair;
mod selection;
mod state;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use arrow_select::interleave::interleave_record_batch;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tilekern::deltacel::dataset::obs::ObsUnion;
use tilekern::deltacel::dataset::{Dataset, Writer};
use tilekern::deltacel::{Chunks, CsrView, Encoder, Profile};

pub use self::repair::{Repair, RepairOptions, Repaired, repair};

use self::record::{Record, RecordedInput};
use self::selection::Selection;
use self::state::state;
use crate::genes::{self, Genes};
use crate::open::{choices, choose, open, other_counts};
use crate::rows::{Cleaner, Columns, Rows};
use crate::shuffle::{self, BUCKETS};
use crate::spool::Spool;
use crate::stage::Stage;
use crate::{Changes, Error, ErrorKind, GeneOrder, Input, InputOptions, MatchGenes, Result, RowBlock, Source, table};

/// Bytes that a nonzero of a tile needs while tiles are made: one tile grows while another is encoded.
const BYTES_PER_NONZERO: u64 = 24;

/// The key of what a conversion did, in the metadata of a dataset.
const CONVERTED: &str = "converted";

/// The column that says from which input a cell came, where there are several.
const SOURCE_COLUMN: &str = "source_file";

/// What is converted, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cells of each tile but the last.
    pub tile_size: u64,
    /// How the frames of tiles are made.
    pub profile: Profile,
    /// How tiles are cut.
    pub chunks: Chunks,
    /// The order of genes.
    pub gene_order: GeneOrder,
    /// Whether the tables of cells are converted, too.
    pub obs: bool,
    /// Tiles of each file of the table of cells.
    pub obs_tiles_per_file: u64,
    /// Which matrix of the inputs; without it the only one that holds counts.
    pub matrix: Option<String>,
    /// Only the features of this type.
    pub feature_type: Option<String>,
    /// Only the cells in these ranges of the only input; ranges ascend and do not overlap.
    pub cells: Option<Vec<Range<u64>>>,
    /// Only the cells that pass this filter on their input's table of cells (see
    /// [`Filter`](tilekern::deltacel::dataset::obs::Filter)).
    pub filter: Option<String>,
    /// Cells in a random order, by this seed.
    pub shuffle: Option<u64>,
    /// Round values to the nearest whole number.
    pub round: bool,
    /// How genes of inputs are matched; without it they must be the same.
    pub match_genes: Option<MatchGenes>,
    /// Threads that encode; 0 is one per CPU.
    pub threads: usize,
    /// Bytes that the matrix may take, whatever its size. On top come the tables of cells and genes of all inputs, eight
    /// bytes for each cell with a shuffle, and the lists of genes that are as long as the tables.
    pub memory: u64,
    /// Go on with a conversion that was interrupted, or start.
    pub resume: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            tile_size: 10_000,
            profile: Profile::default(),
            chunks: Chunks::default(),
            gene_order: GeneOrder::default(),
            obs: true,
            obs_tiles_per_file: 1000,
            matrix: None,
            feature_type: None,
            cells: None,
            filter: None,
            shuffle: None,
            round: false,
            match_genes: None,
            threads: 0,
            memory: 1 << 30,
            resume: false,
        }
    }
}

/// One of several parts of the same conversion, which processes can do side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything.
    Whole,
    /// The first pass over a part.
    Count(Shard),
    /// The tiles of a part, once all parts are counted.
    Tiles(Shard),
    /// Put together what so many parts made.
    Merge(u32),
}

/// What is being done at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Cells of a dataset that is there are verified.
    Verifying,
    /// Cells are checked and counted.
    Counting,
    /// Cells are written as tiles.
    Writing,
}

/// Is told how a conversion proceeds.
pub trait Progress: Sync {
    /// A phase of so many cells starts, or goes on after some that were done before.
    fn start(&self, phase: Phase, done: u64, cells: u64);
    /// So many more cells are done.
    fn advance(&self, cells: u64);
    /// Takes the step that completes the result, once. Who handles signals can keep them from coming in between.
    ///
    /// # Errors
    /// Those of the step.
    fn complete(&self, step: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        step()
    }
}

/// Nobody is told.
impl Progress for () {
    fn start(&self, _: Phase, _: u64, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// What a conversion came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cells that were counted or written in this step.
    pub n_cells: u64,
    /// Genes.
    pub n_genes: u64,
    /// Nonzeros.
    pub nnz: u64,
    /// Tiles; 0 where none were made in this step.
    pub n_tiles: u64,
    /// Bytes of the tiles.
    pub tile_bytes: u64,
    /// Whether the dataset is whole.
    pub complete: bool,
    /// What was changed.
    pub changes: Changes,
    /// What else a person should know. One sentence each.
    pub notes: Vec<String>,
    /// Of each input: path, matrix, cells.
    pub inputs: Vec<(PathBuf, String, u64)>,
}

/// Converts files and folders into the dataset `output`, which must not exist yet.
///
/// It works in a directory beside it, `OUT.partial`, which stays after an interruption: see [`Options::resume`].
///
/// # Errors
/// What is wrong with an input, a request or the disk. Nothing is at `output` then.
pub fn convert(
    inputs: &[PathBuf],
    output: &Path,
    options: &Options,
    step: Step,
    progress: &dyn Progress,
) -> Result<Summary> {
    check(inputs, options, step)?;
    check_apart(inputs, output)?;
    if output.symlink_metadata().is_ok() {
        let mut message = "exists already; choose another name or remove it";
        // Parts and their merger are begun again by job arrays, and a merger may have been killed behind its last step.
        let merged = match step {
            Step::Merge(parts) => Some(parts),
            Step::Count(shard) | Step::Tiles(shard) => Some(shard.count),
            Step::Whole => options.resume.then_some(1),
        };
        if let Some(parts) = merged {
            if let Some(summary) = finished(inputs, output, options, parts)? {
                return Ok(summary);
            }
            message = "exists already, but not of these inputs and options as they are now; choose another name or \
                       remove it";
        }
        return Err(Error::new(ErrorKind::Unsupported, message).in_path(output));
    }
    let shard = match step {
        Step::Whole => Shard { index: 0, count: 1 },
        Step::Count(shard) | Step::Tiles(shard) => shard,
        // A part of its own, behind those that are merged.
        Step::Merge(count) => Shard { index: count, count },
    };
    let journal = journal(inputs, options, shard.count)?;
    // What cannot be converted is refused before anything is written that a corrected command would meet.
    let sources = open_all(inputs)?;
    let go_on = options.resume || step != Step::Whole;
    let stage = Stage::open(Stage::path_for(output), shard.index, go_on, &journal)?;
    let result = Conversion::open(inputs, sources, None, options, shard, &stage, progress)
        .and_then(|mut conversion| conversion.run(step, output).map_err(|error| conversion.with_choices(error)));
    match result {
        Ok(summary) => {
            if summary.complete {
                stage.commit(output, progress)?;
            } else {
                stage.clear_scratch()?;
            }
            Ok(summary)
        }
        Err(error) if step == Step::Whole && !stage.has_tiles() => {
            stage.discard()?;
            Err(error)
        }
        Err(error) if step == Step::Whole => {
            stage.clear_scratch()?;
            Err(error.hint("what is done stays: --resume goes on from there"))
        }
        // Nor shall a first part be in the way that found out more.
        Err(error) if stage.is_untouched() => {
            stage.discard()?;
            Err(error)
        }
        Err(error) if matches!(step, Step::Merge(_)) => {
            // The parts look for their tiles where they put them.
            stage.dataset()?;
            stage.clear_scratch()?;
            Err(error)
        }
        Err(error) => {
            stage.clear_scratch()?;
            Err(error)
        }
    }
}

fn open_all(inputs: &[PathBuf]) -> Result<Vec<Box<dyn Source>>> {
    inputs.iter().map(|path| open(path)).collect()
}

/// The summary of this very conversion where it ended already: its process was killed before it could say so.
fn finished(inputs: &[PathBuf], output: &Path, options: &Options, parts: u32) -> Result<Option<Summary>> {
    let Some((dataset, record)) = Dataset::open(output).ok().and_then(|found| {
        let record = Record::read(found.manifest()).ok()?;
        Some((found, record))
    }) else {
        return Ok(None);
    };
    let manifest = dataset.manifest();
    // What only the conversion itself found out is taken as it is.
    let now = |(path, input): (&PathBuf, &RecordedInput)| {
        Ok(RecordedInput { path: path.to_string_lossy().into_owned(), state: state(path)?, ..input.clone() })
    };
    let now = inputs.iter().zip(&record.inputs).map(now).collect::<Result<Vec<_>>>()?;
    let same = Record::of(options, now, list_state(options)?, record.changes) == record;
    if !(same && inputs.len() == record.inputs.len() && manifest.tile_size() == options.tile_size) {
        return Ok(None);
    }
    let root = Stage::path_for(output);
    if root.is_dir() {
        Stage::open(root, 0, true, &journal(inputs, options, parts)?)?.discard()?;
    }
    Ok(Some(Summary {
        n_cells: manifest.n_cells(),
        n_genes: manifest.n_genes().into(),
        nnz: manifest.nnz(),
        n_tiles: manifest.n_tiles().into(),
        tile_bytes: manifest.tile_bytes().iter().sum(),
        complete: true,
        changes: record.changes,
        notes: vec!["it was complete already; nothing was left to do".to_owned()],
        inputs: inputs
            .iter()
            .zip(record.inputs)
            .map(|(path, input)| (path.clone(), input.matrix, input.n_cells))
            .collect(),
    }))
}

fn check(inputs: &[PathBuf], options: &Options, step: Step) -> Result<()> {
    let refuse = |message: &str| Err(Error::new(ErrorKind::OutOfRange, message).in_part("options"));
    match step {
        Step::Count(shard) | Step::Tiles(shard) if shard.index >= shard.count => {
            refuse("parts are numbered from 0 and there are fewer than that")
        }
        Step::Merge(0) => refuse("there must be one part at least"),
        _ if inputs.is_empty() => refuse("an input is needed"),
        _ if options.tile_size == 0 => refuse("a tile has one cell at least"),
        _ if options.cells.is_some() && inputs.len() != 1 => refuse("cells are chosen from one input only"),
        _ if options.memory < 1 << 20 => refuse("less memory than 1 MiB is not enough for anything"),
        _ => Ok(()),
    }
}

/// Refuses an output within a folder that is read: it would change the input, and be taken for a part of it.
fn check_apart(inputs: &[PathBuf], output: &Path) -> Result<()> {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that is not there, and an input, are told later.
    let Ok(parent) = fs::canonicalize(parent) else { return Ok(()) };
    let around = |input: &&PathBuf| fs::canonicalize(input).is_ok_and(|input| parent.starts_with(input));
    inputs.iter().find(around).map_or(Ok(()), |input| {
        let message = format!("lies within the input {}; choose a place outside it", input.display());
        Err(Error::new(ErrorKind::Unsupported, message).in_path(output))
    })
}

/// What decides the result, as text of one line each.
fn journal(inputs: &[PathBuf], options: &Options, parts: u32) -> Result<String> {
    let inputs = inputs.iter().map(|path| Ok(json!({"path": path.to_string_lossy(), "state": state(path)?})));
    let Options { tile_size, profile, chunks, gene_order, obs, matrix, feature_type, cells, filter, .. } = options;
    let value = json!({
        "tilekern": env!("CARGO_PKG_VERSION"),
        // What this text says, and how.
        "journal": 2,
        "inputs": inputs.collect::<Result<Vec<_>>>()?,
        "parts": parts,
        "tile_size": tile_size,
        "profile": profile.to_string(),
        "chunks": format!("{chunks:?}"),
        "gene_order": format!("{gene_order:?}"),
        "gene_order_file": list_state(options)?,
        "obs": obs,
        "obs_tiles_per_file": options.obs_tiles_per_file,
        "matrix": matrix,
        "feature_type": feature_type,
        "cells": cells,
        "where": filter,
        "shuffle": options.shuffle,
        "round": options.round,
        "match_genes": format!("{:?}", options.match_genes),
    });
    Ok(serde_json::to_string_pretty(&value).unwrap_or_default())
}

/// The state of the list of genes, if the options name one.
fn list_state(options: &Options) -> Result<Option<String>> {
    match &options.gene_order {
        GeneOrder::File(path) => state(path).map(Some),
        _ => Ok(None),
    }
}

/// What the first pass found in a part.
#[derive(Serialize, Deserialize)]
struct Counted {
    /// Sum of the counts of each gene, in the source's order.
    totals: Vec<u64>,
    cells: u64,
    nnz: u64,
    /// Nonzeros of the largest tile, where cells keep their order.
    max_tile: u64,
    /// Cells and nonzeros in each file over which cells were scattered.
    buckets: Vec<(u64, u64)>,
    changes: Changes,
}

/// The second pass's plan, from all parts.
struct Plan {
    /// The source's column of each gene of the dataset.
    order: Vec<u32>,
    buckets: Vec<shuffle::Size>,
    changes: Changes,
}

struct Conversion<'a> {
    options: &'a Options,
    /// What the dataset says of each input.
    record: Vec<RecordedInput>,
    /// What it says of the list of genes.
    list: Option<String>,
    shard: Shard,
    stage: &'a Stage,
    progress: &'a dyn Progress,
    sources: Vec<Box<dyn Source>>,
    inputs: Vec<Box<dyn Input>>,
    /// The number of the first cell of each input, and of all cells.
    starts: Vec<u64>,
    genes: Genes,
    notes: Vec<String>,
}

impl<'a> Conversion<'a> {
    /// Opens the inputs; `before` is what a dataset that was made of them says of them.
    fn open(
        paths: &[PathBuf],
        sources: Vec<Box<dyn Source>>,
        before: Option<&Record>,
        options: &'a Options,
        shard: Shard,
        stage: &'a Stage,
        progress: &'a dyn Progress,
    ) -> Result<Conversion<'a>> {
        let (mut inputs, mut starts) = (Vec::new(), vec![0]);
        let mut record = Vec::new();
        let mut n_cells = 0_u64;
        let list = before.map_or_else(|| list_state(options), |before| Ok(before.options.list.clone()))?;
        for (n, (path, source)) in paths.iter().zip(&sources).enumerate() {
            let before = before.and_then(|before| before.inputs.get(n));
            let input_options = input_options(options, stage, n);
            let matrix = before.map(|input| input.matrix.as_str()).or(options.matrix.as_deref());
            let mut input = choose(&**source, path, matrix, &input_options).map_err(|error| error.in_path(path))?;
            if options.cells.is_some() || options.filter.is_some() {
                input = Box::new(Selection::of(input, options.cells.as_deref(), options.filter.as_deref())?);
            }
            let (given, state) = match before {
                Some(input) => (input.path.clone(), input.state.clone()),
                None => (path.to_string_lossy().into_owned(), state(path)?),
            };
            record.push(RecordedInput {
                path: given,
                state,
                matrix: input.slot().to_owned(),
                n_cells: input.n_cells(),
            });
            n_cells = n_cells
                .checked_add(input.n_cells())
                .ok_or_else(|| Error::new(ErrorKind::OutOfRange, "more cells than can be counted").in_path(path))?;
            starts.push(n_cells);
            inputs.push(input);
        }
        let genes = Genes::of(&mut inputs, options.match_genes)?;
        let notes = genes.notes.clone();
        Ok(Conversion { options, record, list, shard, stage, progress, sources, inputs, starts, genes, notes })
    }

    fn run(&mut self, step: Step, output: &Path) -> Result<Summary> {
        let parts = self.shard.count;
        match step {
            Step::Count(shard) => {
                let counted = self.count(shard)?;
                let Counted { cells, nnz, changes, .. } = counted;
                Ok(Summary { n_cells: cells, nnz, changes, ..self.summary() })
            }
            Step::Tiles(shard) => {
                let plan = self.plan(parts)?;
                let tiles = self.tiles_of(shard);
                let cells = self.cells_of(&tiles);
                let (n_cells, n_tiles) = (cells.end - cells.start, tiles.end - tiles.start);
                let (nnz, tile_bytes) = self.write(&plan, tiles)?;
                Ok(Summary { n_cells, n_tiles, nnz, tile_bytes, ..self.summary() })
            }
            Step::Merge(_) => self.assemble(&self.plan(parts)?, output),
            Step::Whole => {
                // Where all tiles are there, or on their way into the dataset, this moves them back.
                self.stage.dataset()?;
                if self.stage.json::<Counted>(&counts_name(0))?.is_none() {
                    if self.options.obs {
                        // A table that cannot be read is told now, not when all tiles are there.
                        self.obs()?;
                    }
                    self.count(self.shard)?;
                }
                let plan = self.plan(parts)?;
                self.write(&plan, self.tiles_of(self.shard))?;
                self.assemble(&plan, output)
            }
        }
    }

    fn summary(&self) -> Summary {
        let inputs = self.inputs.iter();
        // Inputs know more of what they left out when all of them was read.
        let mut notes: Vec<String> = Vec::new();
        for note in inputs.clone().flat_map(|input| input.notes()).chain(self.notes.iter().cloned()) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Summary {
            n_genes: self.genes.count() as u64,
            notes,
            inputs: inputs.map(|input| (input.path().to_owned(), input.slot().to_owned(), input.n_cells())).collect(),
            ..Summary::default()
        }
    }

    fn n_cells(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn n_tiles(&self) -> u64 {
        self.n_cells().div_ceil(self.options.tile_size)
    }

    /// The tiles of a part: about as many as those of any other.
    fn tiles_of(&self, shard: Shard) -> Range<u64> {
        let bound = |index: u32| {
            let bound = u128::from(self.n_tiles()) * u128::from(index) / u128::from(shard.count);
            u64::try_from(bound).unwrap_or(u64::MAX)
        };
        bound(shard.index)..bound(shard.index + 1)
    }

    fn cells_of(&self, tiles: &Range<u64>) -> Range<u64> {
        let bound = |tile: u64| tile.saturating_mul(self.options.tile_size).min(self.n_cells());
        bound(tiles.start)..bound(tiles.end)
    }

    /// A part of the memory, in bytes.
    fn memory(&self, divisor: u64) -> usize {
        usize::try_from(self.options.memory / divisor).unwrap_or(usize::MAX)
    }

    /// Checks and counts the cells of a part; with a shuffle scatters them, too.
    fn count(&mut self, shard: Shard) -> Result<Counted> {
        let cells = self.cells_of(&self.tiles_of(shard));
        self.progress.start(Phase::Counting, 0, cells.end - cells.start);
        let mut counted = Counted {
            totals: vec![0; self.genes.count()],
            cells: cells.end - cells.start,
            nnz: 0,
            max_tile: 0,
            buckets: vec![(0, 0); if self.options.shuffle.is_some() { BUCKETS } else { 0 }],
            changes: Changes::default(),
        };
        let mut scattered = match self.options.shuffle {
            Some(_) => Some(Spool::create(self.stage.cells(shard.index), BUCKETS, self.memory(4))?),
            None => None,
        };
        let memory = self.memory(32);
        let mut cleaners: Vec<_> = self
            .genes
            .columns
            .iter()
            .map(|columns| Cleaner::new(Columns::Others(columns), self.options.round))
            .collect();
        let (mut rows, mut in_tile) = (Rows::default(), 0);
        let starts = &self.starts;
        blocks(&mut self.inputs, starts, cells, memory, &mut |input, block| {
            rows.clear();
            cleaners[input].clean(&block, 0..block.n_cells(), &mut rows)?;
            for (&gene, &value) in rows.indices.iter().zip(&rows.values) {
                let total = &mut counted.totals[gene.unsigned_abs() as usize];
                *total = total.saturating_add(u64::from(value.unsigned_abs()));
            }
            counted.nnz += rows.indices.len() as u64;
            let first = starts[input] + block.first_cell;
            for (cell, row) in (first..).zip(0..rows.n_cells()) {
                let (genes, counts) = rows.row(row);
                if cell.is_multiple_of(self.options.tile_size) {
                    in_tile = 0;
                }
                in_tile += genes.len() as u64;
                counted.max_tile = counted.max_tile.max(in_tile);
                if let (Some(seed), Some(spool)) = (self.options.shuffle, &mut scattered) {
                    let key = shuffle::key(seed, cell);
                    let bucket = &mut counted.buckets[shuffle::bucket(key)];
                    *bucket = (bucket.0 + 1, bucket.1 + genes.len() as u64);
                    shuffle::scatter(spool, key, cell, genes, counts)?;
                }
            }
            self.progress.advance(rows.n_cells() as u64);
            Ok(())
        })?;
        for (cleaner, input) in cleaners.iter_mut().zip(&self.inputs) {
            if input.reorders() {
                cleaner.changes.unsorted_cells = 0;
            }
            counted.changes.add(&cleaner.changes);
        }
        if let Some(spool) = scattered {
            spool.finish()?;
        } else {
            check_memory(counted.max_tile, self.options.tile_size.min(self.n_cells()), self.options)?;
        }
        self.stage.put_json(&counts_name(shard.index), &counted)?;
        Ok(counted)
    }

    /// What all parts found.
    fn plan(&self, parts: u32) -> Result<Plan> {
        let mut totals = vec![0_u64; self.genes.count()];
        let mut buckets = vec![shuffle::Size::default(); BUCKETS];
        let (mut changes, mut missing) = (Changes::default(), Vec::new());
        for part in 0..parts {
            let Some(counted) = self.stage.json::<Counted>(&counts_name(part))? else {
                missing.push(format!("{part}/{parts}"));
                continue;
            };
            totals.iter_mut().zip(&counted.totals).for_each(|(sum, total)| *sum = sum.saturating_add(*total));
            for (size, &(cells, nonzeros)) in buckets.iter_mut().zip(&counted.buckets) {
                size.cells += cells;
                size.nonzeros += nonzeros;
            }
            changes.add(&counted.changes);
        }
        if !missing.is_empty() {
            let message = format!("not counted yet: {}; run them with --count first", missing.join(", "));
            return Err(Error::new(ErrorKind::Missing, message));
        }
        let order = self.genes.order(&self.options.gene_order, &totals)?;
        Ok(Plan { order, buckets, changes })
    }

    /// Writes the tiles of a part that are not there yet, or are damaged. Returns nonzeros and bytes of those that it wrote.
    fn write(&mut self, plan: &Plan, tiles: Range<u64>) -> Result<(u64, u64)> {
        let mut lacking: Vec<Range<u64>> = Vec::new();
        for tile in tiles.clone().filter(|&tile| !self.stage.has_sound_tile(tile)) {
            match lacking.last_mut() {
                Some(run) if run.end == tile => run.end += 1,
                _ => lacking.push(tile..tile + 1),
            }
        }
        let cells = |tiles: &Range<u64>| {
            let cells = self.cells_of(tiles);
            cells.end - cells.start
        };
        let all = cells(&tiles);
        self.progress.start(Phase::Writing, all - lacking.iter().map(cells).sum::<u64>(), all);
        let (mut nnz, mut bytes) = (0, 0);
        for run in lacking {
            let written = self.write_run(plan, run)?;
            (nnz, bytes) = (nnz + written.0, bytes + written.1);
        }
        Ok((nnz, bytes))
    }

    /// Writes tiles that follow each other.
    fn write_run(&mut self, plan: &Plan, tiles: Range<u64>) -> Result<(u64, u64)> {
        let cells = self.cells_of(&tiles);
        // The dataset's column of each of the source's.
        let mut place = vec![0_u32; plan.order.len()];
        (0..).zip(&plan.order).for_each(|(column, &gene)| place[gene as usize] = column);
        let n_genes = u32::try_from(place.len()).unwrap_or(u32::MAX);
        let mut encoder = Encoder::builder()
            .profile(self.options.profile)
            .chunks(self.options.chunks)
            .threads(self.options.threads)
            .build()?;
        let (stage, progress) = (self.stage, self.progress);
        let (mut bytes, mut nnz, mut size) = (Vec::new(), 0, 0);
        let (send, receive) = sync_channel::<(u64, Rows)>(0);
        thread::scope(|scope| {
            let feeder = scope.spawn(move || {
                let builder = Builder::new(self, tiles.start, send);
                match self.options.shuffle {
                    None => self.feed(cells, &place, builder),
                    Some(_) => self.feed_shuffled(plan, cells, &place, builder),
                }
            });
            let mut encoded = Ok(());
            for (tile, rows) in receive {
                let view = CsrView { n_genes, indptr: &rows.indptr, indices: &rows.indices, values: &rows.values };
                encoded = encoder.encode(&view, &mut bytes).map_err(Error::from).and_then(|report| {
                    (nnz, size) = (nnz + report.nnz, size + report.total_bytes);
                    stage.put_tile(tile, &bytes)
                });
                if encoded.is_err() {
                    break;
                }
                progress.advance(rows.n_cells() as u64);
            }
            let fed = feeder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            encoded.and(fed)
        })?;
        Ok((nnz, size))
    }

    fn feed(&mut self, cells: Range<u64>, place: &[u32], mut builder: Builder) -> Result<()> {
        let memory = self.memory(32);
        let compose = |columns: &Vec<u32>| columns.iter().map(|&gene| place[gene as usize]).collect::<Vec<u32>>();
        let columns: Vec<_> = self.genes.columns.iter().map(compose).collect();
        let mut cleaners: Vec<_> =
            columns.iter().map(|columns| Cleaner::new(Columns::Others(columns), self.options.round)).collect();
        blocks(&mut self.inputs, &self.starts, cells, memory, &mut |input, block| {
            let mut next = 0;
            while next < block.n_cells() {
                let end = block.n_cells().min(next.saturating_add(builder.room()));
                cleaners[input].clean(&block, next..end, &mut builder.rows)?;
                builder.send_if_full()?;
                next = end;
            }
            Ok(())
        })
    }

    fn feed_shuffled(&self, plan: &Plan, cells: Range<u64>, place: &[u32], mut builder: Builder) -> Result<()> {
        let folders: Vec<_> = (0..self.shard.count).map(|part| self.stage.cells(part)).collect();
        let memory = self.memory(4);
        let mut scratch = Vec::new();
        let mut next = 0;
        for (bucket, &size) in plan.buckets.iter().enumerate() {
            let start = next;
            next += size.cells;
            if next <= cells.start || start >= cells.end {
                continue;
            }
            let mut at = start;
            shuffle::gather(&folders, bucket, size, memory, &mut |rows| {
                for row in 0..rows.n_cells() {
                    if cells.contains(&at) {
                        let (genes, counts) = rows.row(row);
                        builder.rows.push_mapped(genes, counts, place, &mut scratch);
                        builder.send_if_full()?;
                    }
                    at += 1;
                }
                Ok(())
            })?;
            if at != next {
                let message = "the temporary files lack cells; remove the directory and convert again";
                return Err(Error::new(ErrorKind::Truncated, message).in_path(&folders[0]));
            }
        }
        Ok(())
    }

    /// Makes the dataset of its tiles and tables.
    fn assemble(&mut self, plan: &Plan, output: &Path) -> Result<Summary> {
        let folder = self.stage.dataset()?;
        let missing: Vec<_> = (0..self.n_tiles()).filter(|&tile| !self.stage.tile(tile).is_file()).collect();
        if let Some(first) = missing.first() {
            let tiles = if missing.len() == 1 { "tile is" } else { "tiles are" };
            let message =
                format!("{} {tiles} missing, the first is {first}; run the parts that lack them", missing.len());
            return Err(Error::new(ErrorKind::Missing, message).in_path(output));
        }
        let tables = if self.options.obs { self.obs()? } else { None };
        let var = table::take(&self.genes.var, &plan.order)?;
        let record = Record::of(self.options, self.record.clone(), self.list.clone(), plan.changes);
        let metadata = metadata(&self.inputs, &record, &mut self.notes)?;
        let order: Vec<i32> = plan.order.iter().map(|&gene| i32::try_from(gene).unwrap_or(i32::MAX)).collect();
        let mut builder = Writer::builder(u32::try_from(plan.order.len()).unwrap_or(u32::MAX))
            .tile_size(self.options.tile_size)
            .encoder(Encoder::builder().profile(self.options.profile))
            .gene_order(order)
            .var_names(genes::names(&var)?)
            .var(var)
            .metadata(metadata);
        if let Some(tables) = &tables {
            builder = builder.obs(tables.encoder.schema().clone(), self.options.obs_tiles_per_file);
        }
        let mut writer = builder.create(folder)?;
        let mut cells = self.output_order();
        for tile in 0..self.n_tiles() {
            let path = self.stage.tile(tile);
            let adopted = match &tables {
                None => writer.adopt(path),
                Some(tables) => {
                    let range = self.cells_of(&(tile..tile + 1));
                    let rows = tables.rows(&self.starts, range.map(&mut cells))?;
                    writer.adopt_with_obs(path, &rows)
                }
            };
            adopted.map_err(|error| match self.stage.has_sound_tile(tile) {
                true => Error::from(error),
                false => {
                    let message = "is damaged; run its part again, which makes it again";
                    Error::new(ErrorKind::Dataset(error.kind()), message)
                        .in_path(self.stage.tile(tile))
                        .caused_by(error)
                }
            })?;
        }
        let manifest = writer.finish()?;
        Ok(Summary {
            n_cells: manifest.n_cells(),
            nnz: manifest.nnz(),
            n_tiles: manifest.n_tiles().into(),
            tile_bytes: manifest.tile_bytes().iter().sum(),
            complete: true,
            changes: plan.changes,
            ..self.summary()
        })
    }

    /// Which cell of the source is at each place of the dataset.
    fn output_order(&self) -> impl FnMut(u64) -> u64 + use<> {
        let order = self.options.shuffle.map(|seed| {
            let mut order: Vec<u64> = (0..self.n_cells()).collect();
            order.sort_unstable_by_key(|&cell| shuffle::key(seed, cell));
            order
        });
        move |place| match &order {
            Some(order) => order[usize::try_from(place).unwrap_or(usize::MAX)],
            None => place,
        }
    }

    /// The tables of cells of all inputs under one schema; none where no input has a column.
    fn obs(&mut self) -> Result<Option<Tables>> {
        let mut tables = Vec::new();
        let several = self.inputs.len() > 1;
        for (input, record) in self.inputs.iter_mut().zip(&self.record) {
            let fault = |error: Error, path: &Path| error.in_part("cells").in_path(path);
            let path = input.path().to_owned();
            let mut found = input.obs().map_err(|error| fault(error, &path))?;
            if found.num_rows() as u64 != input.n_cells() {
                let message = format!("the table has {} rows for {} cells", found.num_rows(), input.n_cells());
                return Err(fault(Error::new(ErrorKind::Inconsistent, message), &path));
            }
            let schema = found.schema();
            let ordered = schema.fields().iter().filter(|field| field.dict_is_ordered() == Some(true));
            let ordered: Vec<String> = ordered.map(|field| format!("{:?}", field.name())).collect();
            if !ordered.is_empty() {
                let note = format!("that categories are ordered is not kept, their order is: {}", ordered.join(", "));
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            if several && found.column_by_name(SOURCE_COLUMN).is_some() {
                let note = format!("{} has a column {SOURCE_COLUMN} of its own, which is kept", path.display());
                self.notes.push(note);
            } else if several {
                found = with_source(&found, &record.path)?;
            }
            tables.push(found);
        }
        let own: Vec<Option<String>> = tables.iter().map(|table| table::index_name(table).map(str::to_owned)).collect();
        if let Some(name) = table::unite_indexes(&mut tables)? {
            let others = own.iter().zip(&self.inputs).filter_map(|(own, input)| {
                let own = own.as_ref().filter(|own| **own != name)?;
                Some(format!("{own:?} in {}", input.path().display()))
            });
            let others = others.collect::<Vec<_>>().join(", ");
            self.notes.push(format!("the names of cells are in one column, {name:?}, which is called {others}"));
        }
        let mut union = ObsUnion::new();
        for (table, input) in tables.iter().zip(&self.inputs) {
            union.add(table).map_err(|error| Error::from(error).in_part("cells").in_path(input.path()))?;
        }
        let mut encoder = union.finish();
        let mut parts = Vec::new();
        for (table, input) in tables.into_iter().zip(&self.inputs) {
            let part = encoder.encode(&table);
            parts.push(part.map_err(|error| Error::from(error).in_part("cells").in_path(input.path()))?);
        }
        let any = !encoder.schema().columns.is_empty();
        Ok(any.then_some(Tables { encoder, parts }))
    }

    /// Adds to a refusal of values which matrices of that input do hold counts.
    fn with_choices(&self, error: Error) -> Error {
        let of = |input: &dyn Input| error.kind() == ErrorKind::NotCounts && error.path() == Some(input.path());
        let Some(n) = self.inputs.iter().position(|input| of(&**input)) else { return error };
        let slot = self.inputs[n].slot();
        let others: Vec<_> = self.sources[n].slots().into_iter().filter(|other| other != slot).collect();
        let found = other_counts(&*self.sources[n], &others, &input_options(self.options, self.stage, n));
        let near = "--round takes the nearest whole numbers, if that is meant";
        match (found.is_empty(), error.rounds()) {
            (false, _) => error.hint(choices(&found)),
            (true, true) => error.hint(near),
            (true, false) => error.hint("correct the value in the input, or name the file that holds the counts"),
        }
    }
}

/// The metadata of the dataset: that of the only input as it is, and beside it what this conversion did. That of several
/// inputs would contradict each other; what is left out is told.
fn metadata(inputs: &[Box<dyn Input>], record: &Record, notes: &mut Vec<String>) -> Result<String> {
    type Keys = BTreeMap<String, Box<RawValue>>;
    let fault = |error: serde_json::Error| Error::new(ErrorKind::Syntax, error.to_string()).in_part("metadata");
    let keys = |input: &dyn Input| {
        let text = input.metadata().unwrap_or("{}");
        let mut keys: Keys = serde_json::from_str(text).map_err(|error| fault(error).in_path(input.path()))?;
        // How the input was made is no property of its cells.
        keys.remove(CONVERTED);
        Ok::<_, Error>(keys)
    };
    let mut own = Keys::new();
    if let [input] = inputs {
        own = keys(&**input)?;
    } else {
        for input in inputs {
            let names: Vec<_> = keys(&**input)?.keys().map(|name| format!("{name:?}")).collect();
            if !names.is_empty() {
                let (path, names) = (input.path().display(), names.join(", "));
                notes.push(format!("of several inputs no metadata is kept: {path} has {names}"));
            }
        }
    }
    own.insert(CONVERTED.to_owned(), to_raw_value(record).map_err(fault)?);
    serde_json::to_string(&own).map_err(fault)
}

fn counts_name(part: u32) -> String {
    format!("counts-{part}.json")
}

fn input_options(options: &Options, stage: &Stage, n: usize) -> InputOptions {
    InputOptions {
        feature_type: options.feature_type.clone(),
        memory: usize::try_from(options.memory / 4).unwrap_or(usize::MAX),
        scratch: stage.scratch().join(n.to_string()),
        tables: options.obs,
    }
}

/// Refuses a tile of so many cells that needs more memory than there may be.
fn check_memory(nonzeros: u64, cells: u64, options: &Options) -> Result<()> {
    let needed = nonzeros.saturating_mul(BYTES_PER_NONZERO);
    let limit = options.memory / 4 * 3;
    if needed <= limit {
        return Ok(());
    }
    let tile_size = (cells.saturating_mul(limit) / needed.max(1)).max(1);
    let memory = needed / 3 * 4;
    let message = format!(
        "a tile has {nonzeros} nonzeros or more, too many for --memory {}; take --tile-size {tile_size} or less, or \
         --memory {memory} or more",
        options.memory
    );
    Err(Error::new(ErrorKind::LimitExceeded, message))
}

/// Hands over the blocks of a range of all cells, with the number of their input. They are read on a thread of its own.
fn blocks(
    inputs: &mut [Box<dyn Input>],
    starts: &[u64],
    cells: Range<u64>,
    memory: usize,
    visit: &mut dyn FnMut(usize, RowBlock) -> Result<()>,
) -> Result<()> {
    let places: Vec<_> = inputs.iter().map(|input| (input.path().to_owned(), input.slot().to_owned())).collect();
    let place = |n: usize, error: Error| {
        let (path, slot): &(PathBuf, String) = &places[n];
        // A path that is there names the file that could not be read.
        if error.path().is_some() { error } else { error.in_part(slot.as_str()).in_path(path) }
    };
    thread::scope(|scope| {
        let (send, receive) = sync_channel(1);
        let reader = scope.spawn(|| {
            let send = send;
            for (n, input) in inputs.iter_mut().enumerate() {
                let local = |cell: u64| cell.clamp(starts[n], starts[n + 1]) - starts[n];
                let range = local(cells.start)..local(cells.end);
                if range.is_empty() {
                    continue;
                }
                let mut next = range.start;
                let read = input.rows(range.clone(), memory, &mut |block| {
                    if block.first_cell != next || block.n_cells() == 0 {
                        return Err(Error::new(ErrorKind::Inconsistent, format!("cell {next} is missing")));
                    }
                    next += block.n_cells() as u64;
                    let stopped = |_| Error::new(ErrorKind::Interrupted, "nobody wants the rest");
                    send.send((n, block)).map_err(stopped)
                });
                read.map_err(|error| place(n, error))?;
                if next != range.end {
                    let message = format!("rows end before cell {next}");
                    return Err(place(n, Error::new(ErrorKind::Truncated, message)));
                }
            }
            Ok(())
        });
        let mut visited = Ok(());
        for (n, block) in receive {
            visited = visit(n, block).map_err(|error| place(n, error));
            if visited.is_err() {
                break;
            }
        }
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        visited.and(read)
    })
}

/// Tiles as they grow.
struct Builder {
    rows: Rows,
    tile: u64,
    tile_size: u64,
    n_cells: u64,
    /// About as many nonzeros as a tile will have.
    expected: usize,
    options: Options,
    send: SyncSender<(u64, Rows)>,
}

impl Builder {
    fn new(conversion: &Conversion<'_>, tile: u64, send: SyncSender<(u64, Rows)>) -> Builder {
        Builder {
            rows: Rows::default(),
            tile,
            tile_size: conversion.options.tile_size,
            n_cells: conversion.n_cells(),
            expected: 0,
            options: conversion.options.clone(),
            send,
        }
    }

    /// Cells of the tile that grows.
    fn full(&self) -> u64 {
        self.tile_size.min(self.n_cells - self.tile * self.tile_size)
    }

    /// Cells that it lacks.
    fn room(&self) -> usize {
        usize::try_from(self.full() - self.rows.n_cells() as u64).unwrap_or(usize::MAX)
    }

    fn send_if_full(&mut self) -> Result<()> {
        check_memory(self.rows.indices.len() as u64, self.rows.n_cells() as u64, &self.options)?;
        if self.room() > 0 {
            return Ok(());
        }
        self.expected = self.expected.max(self.rows.indices.len());
        let rows = std::mem::take(&mut self.rows);
        // The next one is about as large; growing it by steps would need half as much again.
        self.rows.indices.reserve(self.expected);
        self.rows.values.reserve(self.expected);
        let sent = self.send.send((self.tile, rows));
        self.tile += 1;
        sent.map_err(|_| Error::new(ErrorKind::Interrupted, "nobody wants the rest"))
    }
}

/// Tables of cells of all inputs under one schema.
struct Tables {
    encoder: tilekern::deltacel::dataset::obs::ObsEncoder,
    parts: Vec<RecordBatch>,
}

impl Tables {
    /// The rows of some cells, numbered over all inputs.
    fn rows(&self, starts: &[u64], cells: impl Iterator<Item = u64>) -> Result<RecordBatch> {
        let place = |cell: u64| {
            let part = starts.partition_point(|&start| start <= cell) - 1;
            (part, usize::try_from(cell - starts[part]).unwrap_or(usize::MAX))
        };
        let places: Vec<_> = cells.map(place).collect();
        interleave_record_batch(&self.parts.iter().collect::<Vec<_>>(), &places).map_err(table::fault)
    }
}

/// The table with a column that names its file.
fn with_source(table: &RecordBatch, path: &str) -> Result<RecordBatch> {
    let codes = Int32Array::from(vec![0; table.num_rows()]);
    let names = StringArray::from(vec![path]);
    let column = DictionaryArray::<Int32Type>::try_new(codes, Arc::new(names)).map_err(table::fault)?;
    let schema = table.schema();
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    let mut columns: Vec<ArrayRef> = table.columns().to_vec();
    let column: ArrayRef = Arc::new(column);
    fields.push(Arc::new(Field::new(SOURCE_COLUMN, column.data_type().clone(), false)));
    columns.push(column);
    let schema = Schema::new(fields).with_metadata(schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).map_err(table::fault)
}
