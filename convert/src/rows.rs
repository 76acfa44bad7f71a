//! Rows as they were found, turned into rows of counts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, RowBlock, Values};

/// What was changed on the way, all of it told to the person who converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Stored zeros that were dropped.
    pub zeros: u64,
    /// Nonzeros that named the same gene as another one of their cell and were added to it.
    pub duplicates: u64,
    /// Cells whose genes were not in ascending order.
    pub unsorted_cells: u64,
    /// Values that were rounded to the nearest whole number.
    pub rounded: u64,
}

impl Changes {
    /// Adds those of another part.
    pub fn add(&mut self, other: &Changes) {
        self.zeros += other.zeros;
        self.duplicates += other.duplicates;
        self.unsorted_cells += other.unsorted_cells;
        self.rounded += other.rounded;
    }
}

/// Rows of counts: genes ascend, counts are 1 to 2^31 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub indptr: Vec<i64>,
    pub indices: Vec<i32>,
    pub values: Vec<i32>,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }
}

impl Rows {
    pub fn n_cells(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn clear(&mut self) {
        self.indptr.truncate(1);
        self.indices.clear();
        self.values.clear();
    }

    /// The genes and counts of one row.
    pub fn row(&self, row: usize) -> (&[i32], &[i32]) {
        // Bounds of a vector's parts fit its length.
        let at = |bound: i64| usize::try_from(bound).unwrap_or(usize::MAX);
        let span = at(self.indptr[row])..at(self.indptr[row + 1]);
        (&self.indices[span.clone()], &self.values[span])
    }

    /// Ends the row to which genes and counts were added.
    pub fn end_row(&mut self) {
        self.indptr.push(self.indices.len() as i64);
    }

    /// Adds a row whose genes become `columns[gene]`, in any order.
    pub fn push_mapped(&mut self, genes: &[i32], counts: &[i32], columns: &[u32], scratch: &mut Vec<u64>) {
        scratch.clear();
        scratch.extend(genes.iter().zip(counts).map(|(&gene, &count)| {
            u64::from(columns[gene.unsigned_abs() as usize]) << 32 | u64::from(count.unsigned_abs())
        }));
        scratch.sort_unstable();
        let (columns, counts) = (scratch.iter().map(|&key| high(key)), scratch.iter().map(|&key| low(key)));
        self.indices.extend(columns);
        self.values.extend(counts);
        self.end_row();
    }
}

/// The upper half of a key of column and count, both below 2^31.
fn high(key: u64) -> i32 {
    i32::try_from(key >> 32).unwrap_or(i32::MAX)
}

fn low(key: u64) -> i32 {
    i32::try_from(key & 0xffff_ffff).unwrap_or(i32::MAX)
}

/// The column that each gene of an input becomes.
#[derive(Clone, Copy)]
pub enum Columns<'a> {
    /// That of its own number, of so many genes, at most 2^31.
    Same(u64),
    /// One for each gene; distinct, below 2^31.
    Others(&'a [u32]),
}

impl Columns<'_> {
    fn of(self, gene: u32) -> Option<u32> {
        match self {
            Columns::Same(n) => (u64::from(gene) < n).then_some(gene),
            Columns::Others(columns) => columns.get(gene as usize).copied(),
        }
    }

    fn len(self) -> u64 {
        match self {
            Columns::Same(n) => n,
            Columns::Others(columns) => columns.len() as u64,
        }
    }

    /// The gene that became a column.
    fn gene(self, column: i32) -> u64 {
        match self {
            Columns::Same(_) => column.unsigned_abs().into(),
            Columns::Others(columns) => {
                columns.iter().position(|&other| i64::from(other) == i64::from(column)).unwrap_or(0) as u64
            }
        }
    }
}

/// Makes rows of counts of what an input hands over.
pub struct Cleaner<'a> {
    columns: Columns<'a>,
    round: bool,
    pub changes: Changes,
    scratch: Vec<u64>,
}

impl<'a> Cleaner<'a> {
    pub fn new(columns: Columns<'a>, round: bool) -> Cleaner<'a> {
        Cleaner { columns, round, changes: Changes::default(), scratch: Vec::new() }
    }

    /// Adds some rows of a block to `out`.
    ///
    /// # Errors
    /// `NotCounts` for the first value that is none; `OutOfRange` for a gene that there is not and for duplicates whose
    /// sum is too large; `Inconsistent` where the arrays do not fit each other.
    pub fn clean(&mut self, block: &RowBlock, rows: Range<usize>, out: &mut Rows) -> Result<()> {
        match &block.values {
            Values::I64(values) => self.clean_values(block, values, rows, out),
            Values::U64(values) => self.clean_values(block, values, rows, out),
            Values::F32(values) => self.clean_values(block, values, rows, out),
            Values::F64(values) => self.clean_values(block, values, rows, out),
        }
    }

    fn clean_values<T: Value>(
        &mut self,
        block: &RowBlock,
        values: &[T],
        rows: Range<usize>,
        out: &mut Rows,
    ) -> Result<()> {
        let bad = || Error::new(ErrorKind::Inconsistent, "indptr, indices and data do not fit each other");
        if block.indices.len() != values.len() {
            return Err(bad());
        }
        let first = block.first_cell + rows.start as u64;
        let indptr = block.indptr.get(rows.start..=rows.end).ok_or_else(bad)?;
        for (cell, bounds) in (first..).zip(indptr.windows(2)) {
            let at = |bound: i64| usize::try_from(bound).map_err(|_| bad());
            let span = at(bounds[0])?..at(bounds[1])?;
            let genes = block.indices.get(span.clone()).ok_or_else(bad)?;
            let values = values.get(span).ok_or_else(bad)?;
            self.row(cell, genes, values, out)?;
        }
        Ok(())
    }

    fn row<T: Value>(&mut self, cell: u64, genes: &[u32], values: &[T], out: &mut Rows) -> Result<()> {
        self.scratch.clear();
        // As the source has it; the columns may ask for another order all the same.
        if !genes.is_sorted() {
            self.changes.unsorted_cells += 1;
        }
        for (&gene, &value) in genes.iter().zip(values) {
            let count = match value.count() {
                Some(count) => count,
                None => {
                    let rounded = value.rounded();
                    let fault =
                        || Error::not_a_count(cell, gene.into(), value.text(), !self.round && rounded.is_some());
                    self.changes.rounded += 1;
                    rounded.filter(|_| self.round).ok_or_else(fault)?
                }
            };
            let Some(column) = self.columns.of(gene) else {
                let message = format!("there are only {} genes", self.columns.len());
                return Err(Error::new(ErrorKind::OutOfRange, message).in_part(format!("cell {cell}, gene {gene}")));
            };
            if count == 0 {
                self.changes.zeros += 1;
            } else {
                self.scratch.push(u64::from(column) << 32 | u64::from(count));
            }
        }
        if !self.scratch.is_sorted() {
            self.scratch.sort_unstable();
        }
        let start = out.indices.len();
        for &key in &self.scratch {
            let (column, count) = (high(key), low(key));
            match (out.indices[start..].last(), out.values.last_mut()) {
                (Some(&last), Some(sum)) if last == column => {
                    self.changes.duplicates += 1;
                    let more = sum.checked_add(count).ok_or_else(|| {
                        let gene = self.columns.gene(column);
                        let message = "the sum of the counts that the cell has of this gene is above 2147483647";
                        Error::new(ErrorKind::OutOfRange, message).in_part(format!("cell {cell}, gene {gene}"))
                    })?;
                    *sum = more;
                }
                _ => {
                    out.indices.push(column);
                    out.values.push(count);
                }
            }
        }
        out.end_row();
        Ok(())
    }
}

/// A number that may be a count.
trait Value: Copy {
    /// The count from 0 to 2^31 - 1 that it is, if it is one.
    fn count(self) -> Option<u32>;
    /// The count that is nearest to it, if it is a number in that range.
    fn rounded(self) -> Option<u32>;
    fn text(self) -> String;
}

const MAX: u32 = i32::MAX.unsigned_abs();

impl Value for i64 {
    fn count(self) -> Option<u32> {
        u32::try_from(self).ok().filter(|&count| count <= MAX)
    }

    fn rounded(self) -> Option<u32> {
        self.count()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn count(self) -> Option<u32> {
        u32::try_from(self).ok().filter(|&count| count <= MAX)
    }

    fn rounded(self) -> Option<u32> {
        self.count()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number in the type's range")]
    fn count(self) -> Option<u32> {
        (self.fract() == 0.0 && (0.0..=f64::from(MAX)).contains(&self)).then_some(self as u32)
    }

    fn rounded(self) -> Option<u32> {
        self.round().count()
    }

    fn text(self) -> String {
        format!("{self:?}")
    }
}

impl Value for f32 {
    fn count(self) -> Option<u32> {
        f64::from(self).count()
    }

    fn rounded(self) -> Option<u32> {
        f64::from(self).rounded()
    }

    fn text(self) -> String {
        format!("{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(indptr: &[i64], indices: &[u32], values: Values) -> RowBlock {
        RowBlock { first_cell: 7, indptr: indptr.to_vec(), indices: indices.to_vec(), values }
    }

    #[test]
    fn rows_are_sorted_summed_and_without_zeros() {
        let values = Values::F32(vec![3.0, 0.0, 2.0, 5.0, -0.0, 1.0]);
        let found = block(&[0, 4, 4, 6], &[2, 1, 0, 2, 3, 3], values);
        let mut rows = Rows::default();
        let mut cleaner = Cleaner::new(Columns::Others(&[3, 2, 1, 0]), false);
        cleaner.clean(&found, 0..found.n_cells(), &mut rows).unwrap();
        assert_eq!((&rows.indptr[..], &rows.indices[..]), (&[0, 2, 2, 3][..], &[1, 3, 0][..]));
        assert_eq!(rows.values, [8, 2, 1]);
        assert_eq!(cleaner.changes, Changes { zeros: 2, duplicates: 1, unsorted_cells: 1, rounded: 0 });
        assert_eq!(rows.row(0), (&[1, 3][..], &[8, 2][..]));
    }

    #[test]
    fn offenders_are_named() {
        let columns = Columns::Same(2);
        let error = |round, values: Values| {
            let count = i64::try_from(values.len()).unwrap();
            let found = block(&[0, 0, count], &vec![1; values.len()], values);
            Cleaner::new(columns, round).clean(&found, 0..2, &mut Rows::default()).unwrap_err().to_string()
        };
        for (values, text) in [
            (Values::I64(vec![1, -2]), "-2"),
            (Values::I64(vec![1 << 31]), "2147483648"),
            (Values::U64(vec![u64::MAX]), "18446744073709551615"),
            (Values::F32(vec![0.5]), "0.5"),
            (Values::F64(vec![0.999_999_999_999_999]), "0.999999999999999"),
            (Values::F64(vec![f64::NAN]), "NaN"),
            (Values::F64(vec![f64::INFINITY]), "inf"),
            (Values::F64(vec![1e300]), "1e300"),
        ] {
            let found = error(false, values);
            assert!(found.starts_with(&format!("cell 8, gene 1: {text} is not a count")), "{found}");
        }
        assert!(error(true, Values::F64(vec![f64::NAN])).contains("NaN"));
        assert!(error(true, Values::F64(vec![-0.6])).contains("-0.6"));
        assert!(error(false, Values::I64(vec![2_147_483_647, 1])).contains("cell 8, gene 1: the sum"));
        let outside = block(&[0, 1], &[2], Values::I64(vec![1]));
        let error = Cleaner::new(columns, false).clean(&outside, 0..1, &mut Rows::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }

    #[test]
    fn rounding_is_asked_for_and_told() {
        let found = block(&[0, 3], &[0, 1, 2], Values::F64(vec![0.999_999, 32.000_000_1, -0.2]));
        let mut rows = Rows::default();
        let mut cleaner = Cleaner::new(Columns::Same(3), true);
        cleaner.clean(&found, 0..found.n_cells(), &mut rows).unwrap();
        assert_eq!(rows.values, [1, 32]);
        assert_eq!((cleaner.changes.rounded, cleaner.changes.zeros), (3, 1));
    }
}
