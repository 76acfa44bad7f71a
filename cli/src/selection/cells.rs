//! The cells that were asked for, as ranges, and these as pieces that are decoded at once.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use tilekern::Limits;
use tilekern::deltacel::dataset::obs::{Filter, ObsKind, ObsTable, Value, getter};

use super::Cells;
use super::numbers::{Numbers, flags, numbers};
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::CellRange;
use crate::source::Source;

/// Cells that lie in several tiles, or in no order, are decoded at least so many at a time.
const FEW: u64 = 1024;

/// Cells whose barcodes are looked at together.
const MANY: u64 = 1 << 16;

/// Some of the cells, which are decoded at once.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// In the order asked for; none is empty.
    runs: Vec<Range<u64>>,
}

impl Piece {
    /// The numbers of its cells.
    pub fn cells(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().cloned().flatten()
    }

    /// The cells, where they are a range.
    pub(super) fn run(&self) -> Option<Range<u64>> {
        if let [run] = &self.runs[..] { Some(run.clone()) } else { None }
    }

    /// From the first of its cells to the last one.
    pub(super) fn span(&self) -> Range<u64> {
        let start = self.runs.iter().map(|run| run.start).min().unwrap_or(0);
        start..self.runs.iter().map(|run| run.end).max().unwrap_or(start)
    }

    fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }
}

/// The cells asked for, as ranges that are not empty.
///
/// The table of cells is opened where it is needed, unless there is one already.
pub fn chosen(
    source: &Source,
    choice: &Cells,
    n_cells: u64,
    limits: &Limits,
    table: Option<&ObsTable<'_>>,
    console: &Console,
) -> Result<Vec<Range<u64>>, Stop> {
    let path = source.path();
    let opened = match (table, source.dataset()) {
        (None, Some(dataset)) if choice.cells_file.is_some() || choice.filter.is_some() => dataset.obs()?,
        _ => None,
    };
    let table = table.or(opened.as_ref());
    let mut runs: Vec<Range<u64>> = Vec::new();
    if let Some(file) = &choice.cells_file {
        let out_of_range = |cell: u64| {
            let message = format!("lists cell {cell}, but there are {n_cells} cells, numbered from 0");
            Fault::new("out_of_range", file, message)
        };
        match Numbers::read(file, limits)? {
            Numbers::Flags(flags_of) => flags(&flags_of, n_cells, "cells", file)?.for_each(|cell| add(&mut runs, cell)),
            Numbers::List(list) => list.into_iter().for_each(|cell| add(&mut runs, cell)),
            Numbers::Text(text) => {
                let listed = match (numbers(&text, file), table) {
                    (Err(_), Some(table)) => barcodes(&text, file, table, n_cells)?,
                    (listed, _) => listed?,
                };
                listed.into_iter().for_each(|cell| add(&mut runs, cell));
            }
        }
        if let Some(run) = runs.iter().find(|run| run.end > n_cells) {
            return Err(out_of_range(run.start.max(n_cells)).into());
        }
    } else if choice.cells.is_empty() {
        runs.push(0..n_cells);
    } else {
        let ranges = choice.cells.iter().map(|range: &CellRange| range.within_or_fault(n_cells, path));
        runs = ranges.collect::<Result<_, _>>()?;
    }
    if let Some(filter) = &choice.filter {
        let Some(table) = table else {
            let why = "has no table of cells: leave --where out";
            return Err(Fault::new("unsupported", path, why).into());
        };
        let fault = |error| Fault::of(error, path);
        for (column, value) in Filter::parse(table.schema(), filter).map_err(fault)?.absent_categories() {
            let column = &table.schema().columns[*column].name;
            console.note(format_args!("note: {value:?} is no category of the column {column:?}"));
        }
        let passing = table.filter(filter).map_err(fault)?;
        let all = std::mem::take(&mut runs);
        for run in all {
            let first = passing.partition_point(|&cell| cell < run.start);
            let these = passing[first..].iter().take_while(|&&cell| cell < run.end);
            these.for_each(|&cell| add(&mut runs, cell));
        }
        if runs.is_empty() {
            console.note("note: no cell passes the filter");
        }
    }
    runs.retain(|run| !run.is_empty());
    Ok(runs)
}

/// The cells that lines name by the values of the index of the table of cells, which is a first column of text.
fn barcodes(text: &str, file: &Path, table: &ObsTable<'_>, n_cells: u64) -> Result<Vec<u64>, Stop> {
    let wanted: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some(index) = table.schema().columns.first().filter(|column| column.kind == ObsKind::String) else {
        let why = "lists something else than numbers of cells, and no first column of text names the cells";
        return Err(Fault::new("syntax", file, why).into());
    };
    // The cells that have it: the first of them, and how many.
    let mut found: HashMap<&str, (u64, u64)> = wanted.iter().map(|&barcode| (barcode, (0, 0))).collect();
    let mut start = 0;
    while start < n_cells {
        let cells: Vec<u64> = (start..n_cells.min(start + MANY)).collect();
        start += MANY;
        let rows = table.values(&[&index.name], &cells)?;
        let Some(get) = getter(&**rows.column(0)) else { continue };
        for (row, &cell) in cells.iter().enumerate() {
            if let Value::String(barcode) = get(row)
                && let Some((first, n)) = found.get_mut(barcode)
            {
                *first = if *n == 0 { cell } else { *first };
                *n += 1;
            }
        }
    }
    let cell = |barcode: &&str| match found[*barcode] {
        (cell, 1) => Ok(cell),
        (_, 0) => {
            let why =
                format!("{barcode:?} is no number of a cell, from 0, and no value of the column {:?}", index.name);
            Err(Fault::new("missing", file, why).into())
        }
        (first, n) => {
            let why = format!("{barcode:?} names {n} cells, the first being {first}; list numbers");
            Err(Fault::new("ambiguous", file, why).into())
        }
    };
    wanted.iter().map(cell).collect()
}

fn add(runs: &mut Vec<Range<u64>>, cell: u64) {
    match runs.last_mut() {
        Some(last) if last.end == cell => last.end = cell.saturating_add(1),
        _ => runs.push(cell..cell.saturating_add(1)),
    }
}

/// Ranges as pieces: the cells of one tile that follow each other make one, and so do a few of several tiles.
pub fn pieces(runs: &[Range<u64>], tile_size: u64) -> Vec<Piece> {
    let size = tile_size.max(1);
    let mut pieces: Vec<Piece> = Vec::new();
    for run in runs {
        let mut start = run.start;
        while start < run.end {
            let end = (start / size + 1).saturating_mul(size).min(run.end);
            let part = start..end;
            start = end;
            let joined = |piece: &Piece| {
                let len = piece.len() + (part.end - part.start);
                let same = piece.runs.last().is_some_and(|last| (last.end - 1) / size == part.start / size);
                len <= FEW || same && len <= size
            };
            match pieces.last_mut().filter(|piece| joined(piece)) {
                None => pieces.push(Piece { runs: vec![part] }),
                Some(piece) => match piece.runs.last_mut() {
                    Some(last) if last.end == part.start => last.end = part.end,
                    _ => piece.runs.push(part),
                },
            }
        }
    }
    pieces
}

/// The pieces of the first `n` cells.
pub fn first(pieces: Vec<Piece>, n: u64) -> Vec<Piece> {
    let mut left = n;
    let mut cut = |piece: Piece| {
        let mut runs = piece.runs;
        for run in &mut runs {
            run.end = run.end.min(run.start.saturating_add(left));
            left -= run.end - run.start;
        }
        runs.retain(|run| !run.is_empty());
        (!runs.is_empty()).then_some(Piece { runs })
    };
    pieces.into_iter().map_while(&mut cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[Range<u64>], size: u64) -> Vec<Vec<Range<u64>>> {
        pieces(runs, size).into_iter().map(|piece| piece.runs).collect()
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn pieces_are_about_a_tile() {
        assert_eq!(of(&[0..25_000], 10_000), [vec![0..10_000], vec![10_000..20_000], vec![20_000..25_000]]);
        assert_eq!(of(&[0..2500], 2), [vec![0..1024], vec![1024..2048], vec![2048..2500]]);
        assert_eq!(of(&[5000..9000, 0..4000, 4000..5000], 10_000), [vec![5000..9000, 0..5000]]);
        assert_eq!(of(&[3..4, 90_000..90_001, 3..4], 10_000), [vec![3..4, 90_000..90_001, 3..4]]);
        // What is listed again and again is not held at once.
        let again = vec![0..1000; 5];
        assert_eq!(of(&again, 2000), [vec![0..1000; 2], vec![0..1000; 2], vec![0..1000]]);
        assert_eq!(of(&[], 10), Vec::<Vec<_>>::new());
        let start = |n| first(pieces(&[5..9, 0..3], 4), n).into_iter().flat_map(|piece| piece.runs).collect::<Vec<_>>();
        assert_eq!((start(0), start(5), start(99)), (vec![], vec![5..9, 0..1], vec![5..9, 0..3]));
        let (start, end) = (u64::MAX - 5, u64::MAX);
        assert_eq!(of(&[start..end], u64::MAX / 2), [vec![start..end]]);
    }
}
