//! Some cells of an input: those in ranges, those that pass a filter on their table.

use std::ops::Range;
use std::path::Path;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use tilekern::deltacel::dataset::obs::{Filter, ObsUnion};

use crate::{Error, ErrorKind, Input, Result, RowBlock, table};

/// An input with some of its cells only.
pub struct Selection {
    input: Box<dyn Input>,
    /// Of the input's cells; they ascend and do not touch.
    ranges: Vec<Range<u64>>,
    /// How many cells lie in the ranges before each, and in all.
    starts: Vec<u64>,
    /// That nothing passed the filter.
    note: Option<String>,
}

impl Selection {
    /// The cells in `ranges`, or all, that pass `filter`.
    ///
    /// # Errors
    /// Ranges that do not ascend or go beyond the input's cells; a filter that does not go with its table of cells.
    pub fn of(mut input: Box<dyn Input>, ranges: Option<&[Range<u64>]>, filter: Option<&str>) -> Result<Selection> {
        let n = input.n_cells();
        let refuse = |message: String| Err(Error::new(ErrorKind::OutOfRange, message).in_part("cells"));
        let mut chosen: Vec<Range<u64>> = Vec::new();
        let mut before = 0;
        let all = 0..n;
        for range in ranges.unwrap_or(std::slice::from_ref(&all)) {
            let Range { start, end } = *range;
            if start > end || end > n {
                let message = format!("{start}..{end} is not within 0..{n}: choose cells that are there");
                return refuse(message).map_err(|error| error.in_path(input.path()));
            }
            if start < before {
                let message = format!("{start}..{end} starts before the end of the range before it, {before}");
                return refuse(message).map_err(|error| error.in_path(input.path()));
            }
            before = end;
            add(&mut chosen, start..end);
        }
        if let Some(filter) = filter {
            chosen = passing(&mut *input, &chosen, filter).map_err(|error| error.in_path(input.path()))?;
        }
        let sums = chosen.iter().scan(0, |sum, range| {
            *sum += range.end - range.start;
            Some(*sum)
        });
        let starts = [0].into_iter().chain(sums).collect();
        let none = filter.filter(|_| chosen.is_empty() && n > 0);
        let note = none.map(|filter| format!("no cell of {} passes the filter {filter}", input.path().display()));
        Ok(Selection { input, ranges: chosen, starts, note })
    }
}

/// Adds a range behind others; what touches becomes one.
fn add(ranges: &mut Vec<Range<u64>>, next: Range<u64>) {
    match ranges.last_mut() {
        _ if next.is_empty() => {}
        Some(last) if last.end == next.start => last.end = next.end,
        _ => ranges.push(next),
    }
}

/// The cells of some ranges that pass a filter.
fn passing(input: &mut dyn Input, ranges: &[Range<u64>], filter: &str) -> Result<Vec<Range<u64>>> {
    let table = input.obs()?;
    let mut union = ObsUnion::new();
    union.add(&table)?;
    let mut encoder = union.finish();
    let rows = encoder.encode(&table)?;
    let passes = Filter::parse(encoder.schema(), filter)?.matches(encoder.schema(), &rows)?;
    let mut found = Vec::new();
    for cell in ranges.iter().flat_map(Clone::clone) {
        if usize::try_from(cell).ok().and_then(|cell| passes.get(cell)) == Some(&true) {
            add(&mut found, cell..cell + 1);
        }
    }
    Ok(found)
}

impl Input for Selection {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn slot(&self) -> &str {
        self.input.slot()
    }

    fn n_cells(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn n_genes(&self) -> u64 {
        self.input.n_genes()
    }

    fn obs(&mut self) -> Result<RecordBatch> {
        let whole = self.input.obs()?;
        if self.ranges.is_empty() {
            // The kernel below would drop the categories.
            return Ok(whole.slice(0, 0));
        }
        let mut keep = vec![false; whole.num_rows()];
        let at = |cell: u64| usize::try_from(cell).unwrap_or(usize::MAX).min(keep.len());
        for range in self.ranges.iter().map(|range| at(range.start)..at(range.end)).collect::<Vec<_>>() {
            keep[range].fill(true);
        }
        filter_record_batch(&whole, &BooleanArray::from(keep)).map_err(table::fault)
    }

    fn var(&mut self) -> Result<RecordBatch> {
        self.input.var()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.input.notes();
        notes.extend(self.note.clone());
        notes
    }

    fn metadata(&self) -> Option<&str> {
        self.input.metadata()
    }

    fn reorders(&self) -> bool {
        self.input.reorders()
    }

    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()> {
        let first = self.starts.partition_point(|&start| start <= cells.start).saturating_sub(1);
        for (range, &start) in self.ranges.iter().zip(&self.starts).skip(first) {
            let end = start + (range.end - range.start);
            let within = cells.start.clamp(start, end)..cells.end.clamp(start, end);
            if within.is_empty() {
                if start >= cells.end {
                    break;
                }
                continue;
            }
            // The input's number of the cell whose number here is 0 in this range.
            let theirs = range.start..range.end;
            let shifted = theirs.start + (within.start - start)..theirs.start + (within.end - start);
            self.input.rows(shifted, memory, &mut |block| {
                visit(RowBlock { first_cell: block.first_cell - range.start + start, ..block })
            })?;
        }
        Ok(())
    }
}
