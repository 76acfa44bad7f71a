//! Which cells and genes of a source a verb reads, and reading them piece by piece.

mod cells;
mod genes;
mod numbers;

use std::ops::Range;
use std::path::PathBuf;

use clap::ValueEnum;
use indicatif::ProgressBar;
use tilekern::deltacel::dataset::{Cost, Dataset, GeneColumns, GeneOrder, Manifest, Reader, TileBuffer};
use tilekern::deltacel::{Csr, Decoder, Tile};

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::CellRange;
use crate::source::Source;
pub use cells::{Piece, chosen as chosen_cells, pieces};

/// Which cells.
#[derive(clap::Args, Debug, Default)]
pub struct Cells {
    /// Only these cells, in this order: numbers from 0 and ranges A..B (up to, but without, B), between commas
    #[arg(long, value_name = "CELLS", value_delimiter = ',')]
    cells: Vec<CellRange>,

    /// Only the cells that a file lists: numbers as text, or barcodes (values of a first column of text of the table of
    /// cells), one on each line; or an npy file of integers, or of booleans, one for each cell
    #[arg(long, value_name = "FILE", conflicts_with = "cells")]
    cells_file: Option<PathBuf>,

    /// Only the cells that pass a filter on the table of cells, as `tilekern obs` takes it
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
}

impl Cells {
    /// Whether all cells are meant, since nothing is said.
    pub fn all(&self) -> bool {
        self.cells.is_empty() && self.cells_file.is_none() && self.filter.is_none()
    }
}

/// Which cells and genes.
#[derive(clap::Args, Debug, Default)]
pub struct Choice {
    #[command(flatten)]
    cells: Cells,

    /// Only these genes, between commas: all by name, or all by an id of the table of genes, or all by number from 0
    #[arg(long, value_name = "GENES", value_delimiter = ',', value_parser = trimmed)]
    genes: Vec<String>,

    /// Only the genes that a file lists: one on each line, or an npy file of integers, or of booleans, one for each gene
    #[arg(long, value_name = "FILE", conflicts_with = "genes")]
    genes_file: Option<PathBuf>,

    /// Order of the columns
    #[arg(long, value_name = "ORDER", default_value = "given")]
    columns: Order,
}

impl Choice {
    /// The first option that is given, if any is.
    pub fn given(&self) -> Option<&'static str> {
        let Cells { cells, cells_file, filter } = &self.cells;
        let given = [
            ("--cells", !cells.is_empty()),
            ("--cells-file", cells_file.is_some()),
            ("--where", filter.is_some()),
            ("--genes", !self.genes.is_empty()),
            ("--genes-file", self.genes_file.is_some()),
            ("--columns", self.columns != Order::Given),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// A name without the blanks around it.
fn trimmed(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

/// The order of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    /// As --genes gives them; without it as they are stored
    #[default]
    Given,
    /// As they are stored, mostly by decreasing counts
    Output,
    /// As they stood in the source, which gene_order.npy says; columns of the source that are not there leave no gap
    Source,
}

impl From<Order> for GeneOrder {
    fn from(order: Order) -> GeneOrder {
        match order {
            Order::Given => GeneOrder::Given,
            Order::Output => GeneOrder::Output,
            Order::Source => GeneOrder::Source,
        }
    }
}

/// Cells and genes of a source that are to be decoded, a piece of them at a time.
pub struct Selection<'a> {
    pub source: &'a Source,
    pub decoder: Decoder,
    pub progress: ProgressBar,
    pieces: Vec<Piece>,
    n_cells: u64,
    /// None where the columns are those that are stored.
    columns: Option<GeneColumns>,
    n_genes: u32,
    /// Whether every stored gene is among the columns.
    keeps_all: bool,
}

/// Rows that were decoded.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Row `r` is the nonzeros `indptr[r] .. indptr[r + 1]`; from 0.
    pub indptr: &'a [i64],
    pub indices: &'a [i32],
    /// Empty where counts were not asked for.
    pub values: &'a [i32],
}

impl<'a> Rows<'a> {
    /// The genes and the counts of each row.
    pub fn each(self) -> impl ExactSizeIterator<Item = (&'a [i32], &'a [i32])> {
        self.indptr.windows(2).map(move |bounds| {
            let at = |bound: i64| usize::try_from(bound).unwrap_or(0);
            let span = at(bounds[0])..at(bounds[1]);
            (&self.indices[span.clone()], self.values.get(span).unwrap_or(&[]))
        })
    }
}

impl<'a> Selection<'a> {
    pub fn new(
        source: &'a Source,
        choice: &Choice,
        decoder: Decoder,
        console: &Console,
    ) -> Result<Selection<'a>, Stop> {
        let (n_cells, n_genes) = source.shape()?;
        let runs = cells::chosen(source, &choice.cells, n_cells, decoder.limits(), None, console)?;
        let columns = genes::chosen(source, choice, decoder.limits())?;
        let tile_size = source.dataset().map_or(n_cells, |dataset| dataset.manifest().tile_size());
        Ok(Selection {
            source,
            progress: console.progress(0, "decoding"),
            n_cells: runs.iter().map(|run| run.end - run.start).fold(0, u64::saturating_add),
            pieces: cells::pieces(&runs, tile_size),
            // They are distinct.
            n_genes: columns.as_ref().map_or(n_genes, |columns| u32::try_from(columns.len()).unwrap_or(n_genes)),
            keeps_all: columns.as_ref().is_none_or(|columns| columns.len() == n_genes as usize),
            columns,
            decoder,
        })
    }

    pub fn n_cells(&self) -> u64 {
        self.n_cells
    }

    pub fn n_genes(&self) -> u32 {
        self.n_genes
    }

    /// Keeps only the first cells.
    pub fn truncate(&mut self, n: u64) {
        let pieces = std::mem::take(&mut self.pieces);
        self.n_cells = self.n_cells.min(n);
        self.pieces = cells::first(pieces, n);
    }

    /// The pieces in their order: each at most about a tile.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The stored gene that a column is.
    pub fn stored(&self, column: u32) -> u32 {
        self.columns.as_ref().map_or(column, |columns| columns.genes()[column as usize])
    }

    /// Decodes pieces. Each thread has its own.
    pub fn worker(&self) -> Result<Worker<'_>, Stop> {
        Ok(Worker {
            selection: self,
            reader: self.source.dataset().map(|dataset| self.reader(dataset)).transpose()?,
            buffer: TileBuffer::new(),
            csr: Csr::new(),
            indptr: Vec::new(),
            indices: Vec::new(),
            values: Vec::new(),
        })
    }

    fn reader<'b>(&'b self, dataset: &'b Dataset) -> Result<Reader<'b, i32>, Stop> {
        let reader = dataset.reader(&self.decoder);
        match &self.columns {
            Some(columns) => Ok(reader.genes(columns)?),
            None => Ok(reader),
        }
    }

    /// What it takes to decode all, which little is read for.
    pub fn cost(&self) -> Result<Cost, Stop> {
        let Some(dataset) = self.source.dataset() else {
            let why = "is a tile, which is read whole: only a dataset tells what a part of it costs";
            return Err(Fault::new("unsupported", self.source.path(), why).into());
        };
        let reader = self.reader(dataset)?;
        let mut sum = Cost::default();
        self.pass(|piece| {
            let cost = reader
                .cost(&piece.cells().collect::<Vec<_>>())
                .map_err(|error| Fault::of(error, self.source.path()))?;
            sum.cells += cost.cells;
            sum.tiles += cost.tiles;
            sum.chunks += cost.chunks;
            sum.bytes_read += cost.bytes_read;
            sum.nonzeros_decoded += cost.nonzeros_decoded;
            sum.nonzeros += cost.nonzeros;
            sum.result_bytes += cost.result_bytes;
            Ok(())
        })?;
        Ok(sum)
    }

    /// Hands over the rows of the pieces, one after the other.
    pub fn each(&self, mut visit: impl FnMut(&Piece, Rows<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut worker = self.worker()?;
        self.pass(|piece| visit(piece, worker.decode(piece, true)?))
    }

    /// As [`Selection::each`], without the counts.
    pub fn each_indices(&self, mut visit: impl FnMut(&[i32]) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut worker = self.worker()?;
        self.pass(|piece| visit(worker.decode(piece, false)?.indices))
    }

    /// Hands over the number of nonzeros of each row, piece by piece.
    pub fn each_length(&self, mut visit: impl FnMut(&[u64]) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut worker = self.worker()?;
        self.pass(|piece| visit(&worker.lengths(piece)?))
    }

    /// The nonzeros of all of them.
    pub fn nnz(&self) -> Result<u64, Stop> {
        let mut worker = self.worker()?;
        let mut nnz = 0;
        self.pass(|piece| {
            nnz += match self.stated(piece) {
                Some(nnz) => nnz,
                None => worker.lengths(piece)?.iter().sum(),
            };
            Ok(())
        })?;
        Ok(nnz)
    }

    fn pass(&self, mut visit: impl FnMut(&Piece) -> Result<(), Stop>) -> Result<(), Stop> {
        self.progress.inc_length(self.pieces.len() as u64);
        self.pieces.iter().try_for_each(|piece| {
            visit(piece)?;
            self.progress.inc(1);
            Ok(())
        })
    }

    /// The nonzeros of a piece that is whole tiles, as the manifest states them.
    fn stated(&self, piece: &Piece) -> Option<u64> {
        let manifest = self.source.dataset()?.manifest();
        let run = piece.run().filter(|_| self.keeps_all)?;
        let mut tiles = tiles_of(manifest, &run);
        let whole = |(tile, cells): (u32, Range<u64>)| {
            (cells.end - cells.start == manifest.tile_cells(tile)).then(|| manifest.tile_nnz()[tile as usize])
        };
        tiles.try_fold(0u64, |nnz, part| nnz.checked_add(whole(part)?))
    }
}

/// Decodes pieces of a selection, into memory that it keeps.
pub struct Worker<'a> {
    selection: &'a Selection<'a>,
    reader: Option<Reader<'a, i32>>,
    buffer: TileBuffer,
    csr: Csr<i32>,
    /// The rows where they are not those of `csr`.
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<i32>,
}

impl Worker<'_> {
    /// The rows of a piece, without counts unless they are asked for.
    pub fn decode(&mut self, piece: &Piece, counts: bool) -> Result<Rows<'_>, Stop> {
        let Selection { source, decoder, columns, .. } = self.selection;
        let columns = columns.is_some();
        let fault = |error| Fault::of(error, source.path());
        // Of a tile all rows between the first and the last one, which are picked out of them then.
        let mut picked = None;
        match source {
            Source::Tile(_, bytes) => {
                let tile = Tile::open(bytes).map_err(fault)?;
                let cells = local(&piece.span());
                decode(decoder, &tile, cells, counts, &mut self.csr).map_err(fault)?;
                picked = piece.run().is_none().then(|| piece.span().start);
            }
            Source::Dataset(_, dataset) => {
                let whole_rows = counts || columns;
                let tile = piece.run().and_then(|run| one_tile(dataset.manifest(), &run)).filter(|_| !whole_rows);
                match (tile, piece.run(), &self.reader) {
                    (Some((n, cells)), ..) => {
                        let tile = dataset.tile(n, &mut self.buffer)?;
                        decode(decoder, &tile, local(&cells), false, &mut self.csr)
                            .map_err(|error| Fault::of(error, &dataset.tile_path(n)))?;
                    }
                    (None, Some(run), Some(reader)) => reader.range(run, &mut self.csr).map(drop).map_err(fault)?,
                    (None, None, Some(reader)) => {
                        reader.rows(&piece.cells().collect::<Vec<_>>(), &mut self.csr).map(drop).map_err(fault)?;
                    }
                    (None, _, None) => {}
                }
            }
        }
        let whole = Rows { indptr: self.csr.indptr(), indices: self.csr.indices(), values: self.csr.values() };
        let Some(first) = picked else { return Ok(whole) };
        self.indptr.clear();
        self.indptr.push(0);
        self.indices.clear();
        self.values.clear();
        let all: Vec<_> = whole.each().collect();
        for cell in piece.cells() {
            let (genes, counts) = all[usize::try_from(cell - first).unwrap_or(usize::MAX)];
            self.indices.extend_from_slice(genes);
            self.values.extend_from_slice(counts);
            self.indptr.push(i64::try_from(self.indices.len()).unwrap_or(i64::MAX));
        }
        Ok(Rows { indptr: &self.indptr, indices: &self.indices, values: &self.values })
    }

    /// How many nonzeros each row has.
    fn lengths(&mut self, piece: &Piece) -> Result<Vec<u64>, Stop> {
        let of = |tile: &Tile<'_>, cells: Range<usize>| -> Vec<u64> {
            cells.map(|cell| (tile.indptr(cell + 1) - tile.indptr(cell)).unsigned_abs()).collect()
        };
        match (self.selection.source, piece.run().filter(|_| self.selection.keeps_all)) {
            (Source::Tile(path, bytes), Some(run)) => {
                let tile = Tile::open(bytes).map_err(|error| Fault::of(error, path))?;
                Ok(of(&tile, local(&run)))
            }
            (Source::Dataset(_, dataset), Some(run)) => {
                let mut lengths: Vec<u64> = Vec::new();
                for (n, cells) in tiles_of(dataset.manifest(), &run) {
                    lengths.extend(of(&dataset.tile(n, &mut self.buffer)?, local(&cells)));
                }
                Ok(lengths)
            }
            _ => Ok(self.decode(piece, false)?.each().map(|(genes, _)| genes.len() as u64).collect()),
        }
    }
}

fn decode(
    decoder: &Decoder,
    tile: &Tile<'_>,
    cells: Range<usize>,
    counts: bool,
    csr: &mut Csr<i32>,
) -> Result<(), tilekern::Error> {
    match counts {
        true => decoder.decode_cells(tile, cells, csr).map(drop),
        false => decoder.decode_indices(tile, cells, csr).map(drop),
    }
}

/// The tiles that hold the cells of a range, each with those of its cells, numbered within the tile.
fn tiles_of(manifest: &Manifest, run: &Range<u64>) -> impl Iterator<Item = (u32, Range<u64>)> {
    let size = manifest.tile_size();
    let mut start = run.start;
    let end = run.end;
    std::iter::from_fn(move || {
        let (tile, row) = manifest.locate(start).filter(|_| start < end)?;
        let len = (size - row).min(end - start);
        start += len;
        Some((tile, row..row + len))
    })
}

/// The tile in which all cells of a range lie, with these.
fn one_tile(manifest: &Manifest, run: &Range<u64>) -> Option<(u32, Range<u64>)> {
    let mut tiles = tiles_of(manifest, run);
    tiles.next().filter(|_| tiles.next().is_none())
}

/// Numbers of cells within a tile, whose bounds are in memory.
fn local(cells: &Range<u64>) -> Range<usize> {
    let within = |cell: u64| usize::try_from(cell).unwrap_or(usize::MAX);
    within(cells.start)..within(cells.end)
}
