//! Matrices in pieces: compressed by rows or by columns, or dense, to rows as they are.

use std::ops::Range;
use std::path::Path;

use super::columns::Columns;
use super::file::{Array, Folder, integers, numbers};
use crate::{Error, ErrorKind, Result, RowBlock, Values};

/// Bytes that an entry of a sparse matrix takes on its way: as read, widened, and in the block.
pub(super) const BYTES_PER_ENTRY: usize = 40;
/// Bytes that an element of a dense matrix takes on its way, if it is not 0.
const BYTES_PER_ELEMENT: usize = 40;
/// Elements of a dense matrix that are read at once, at most.
const ELEMENTS_AT_ONCE: u64 = 8 << 20;
/// Bounds of an indptr that are read at once, at most.
pub(super) const BOUNDS_AT_ONCE: u64 = 1 << 16;
/// The largest number of genes that a dataset can have.
const MAX_GENES: u64 = 1 << 31;

/// A matrix of cells x genes.
pub(super) struct Matrix {
    pub n_cells: u64,
    pub n_genes: u64,
    layout: Layout,
}

enum Layout {
    /// Compressed: a list of genes for each cell.
    Rows(Sparse),
    /// Compressed: a list of cells for each gene.
    Columns(Columns),
    /// A rectangle, with a row for each cell or, `transposed`, for each gene.
    Dense { array: Array, transposed: bool },
}

impl Matrix {
    /// A matrix of which each cell, or each gene if `scratch` is given, has a list in `folder`. What is stored gene by gene
    /// is turned with the help of files in `scratch`, where it is larger than that many bytes.
    ///
    /// # Errors
    /// Lists that are absent, of the wrong type, or whose lengths do not fit each other.
    pub fn compressed(folder: &Folder, n_cells: u64, n_genes: u64, scratch: Option<(&Path, usize)>) -> Result<Matrix> {
        let by_columns = scratch.is_some();
        check_genes(n_genes).map_err(|error| error.in_part(folder.name.as_str()))?;
        let (lists, bound) = if by_columns { (n_genes, n_cells) } else { (n_cells, n_genes) };
        let sparse = Sparse {
            indptr: folder.need("indptr")?,
            indices: folder.need("indices")?,
            data: folder.need("data")?,
            lists,
            bound,
            by_columns,
        };
        sparse.check()?;
        let layout = match scratch {
            Some((scratch, memory)) => Layout::Columns(Columns::new(sparse, scratch, memory)),
            None => Layout::Rows(sparse),
        };
        Ok(Matrix { n_cells, n_genes, layout })
    }

    /// A dense matrix, with a row for each cell or, `transposed`, for each gene.
    pub fn dense(array: Array, transposed: bool) -> Result<Matrix> {
        let (n_cells, n_genes) = match (array.shape(), transposed) {
            (&[cells, genes], false) | (&[genes, cells], true) => (cells, genes),
            (shape, _) => {
                return Err(array.error(ErrorKind::WrongType, format!("a matrix is needed, not the shape {shape:?}")));
            }
        };
        check_genes(n_genes).map_err(|error| error.in_part(array.name.as_str()))?;
        array.check_number()?;
        Ok(Matrix { n_cells, n_genes, layout: Layout::Dense { array, transposed } })
    }

    /// See [`Input::rows`](crate::Input::rows).
    pub fn rows(
        &mut self,
        cells: Range<u64>,
        memory: usize,
        visit: &mut dyn FnMut(RowBlock) -> Result<()>,
    ) -> Result<()> {
        if cells.start > cells.end || cells.end > self.n_cells {
            let message = format!("cells {cells:?} of {}", self.n_cells);
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        match &mut self.layout {
            Layout::Rows(sparse) => rows_of_lists(sparse, cells, memory, visit),
            Layout::Columns(columns) => columns.rows(cells, memory, visit),
            Layout::Dense { array, transposed: false } => rows_of_rectangle(array, self.n_genes, cells, memory, visit),
            Layout::Dense { array, transposed: true } => rows_of_transposed(array, self.n_genes, cells, memory, visit),
        }
    }
}

fn check_genes(n_genes: u64) -> Result<()> {
    match n_genes {
        0 => Err(Error::new(ErrorKind::OutOfRange, "the matrix has no genes; a dataset needs at least one")),
        1..=MAX_GENES => Ok(()),
        _ => Err(Error::new(ErrorKind::OutOfRange, format!("{n_genes} genes are more than the 2147483648 possible"))),
    }
}

/// Lists of indices and values, one after the other.
pub(super) struct Sparse {
    indptr: Array,
    pub indices: Array,
    pub data: Array,
    /// How many lists: cells, or genes if `by_columns`.
    pub lists: u64,
    /// Indices are below this.
    pub bound: u64,
    by_columns: bool,
}

impl Sparse {
    /// What one list belongs to.
    fn owner(&self) -> &'static str {
        if self.by_columns { "gene" } else { "cell" }
    }

    /// Whether lengths and types fit each other.
    fn check(&self) -> Result<()> {
        let bounds = self.indptr.length()?;
        if bounds.checked_sub(1) != Some(self.lists) {
            let message = format!("it has {bounds} entries; {} {}s need one more than that", self.lists, self.owner());
            return Err(self.indptr.error(ErrorKind::Inconsistent, message));
        }
        let (indices, data) = (self.indices.length()?, self.data.length()?);
        if indices != data {
            let message = format!("it has {indices} entries, data has {data}");
            return Err(self.indices.error(ErrorKind::Inconsistent, message));
        }
        if i64::try_from(data).is_err() {
            return Err(self.data.error(ErrorKind::OutOfRange, format!("{data} entries are more than possible")));
        }
        // Chunks without a file would have zeros alone: no counts in all of a chunk, or empty lists alone before the first
        // entry. A store with such a chunk is far less likely than one that was copied in part.
        if data > 0 {
            self.data.check_whole()?;
            self.indptr.check_whole()?;
        }
        self.indptr.check_number()?;
        self.indices.check_number()?;
        self.data.check_number()?;
        let (first, last) = (self.bounds(0..1)?[0], self.bounds(self.lists..self.lists + 1)?[0]);
        if first != 0 {
            return Err(self.indptr.error(ErrorKind::Inconsistent, format!("it starts at {first}, not at 0")));
        }
        if u64::try_from(last) != Ok(data) {
            let message = if last < 0 {
                format!("it ends at {last} (a 32-bit sum that wrapped?)")
            } else {
                format!("it ends at {last}, but data has {data} entries")
            };
            let place = format!("{} {}", self.owner(), self.lists.saturating_sub(1));
            return Err(self.indptr.error(ErrorKind::Inconsistent, message).in_part(place));
        }
        self.check_indices()
    }

    /// Refuses indices that lack a file in which a list has two entries: both would be of the same index. Where each list
    /// has one there at most, all of them may be of the first index, which is told (see `h5ad::open`).
    fn check_indices(&self) -> Result<()> {
        let gaps = self.indices.absent_elements();
        if gaps.is_empty() || self.bound <= 1 {
            return Ok(());
        }
        let (mut start, mut gap) = (0, 0);
        while start < self.lists {
            let end = self.lists.min(start + BOUNDS_AT_ONCE);
            for span in self.spans(start..end)?.windows(2) {
                gap += gaps[gap..].iter().take_while(|gap| gap.end <= span[0]).count();
                let shared = gaps[gap..].iter().take_while(|gap| gap.start < span[1]);
                if shared.map(|gap| gap.end.min(span[1]) - gap.start.max(span[0])).sum::<u64>() > 1 {
                    return self.indices.check_whole();
                }
            }
            start = end;
        }
        Ok(())
    }

    /// Some bounds of lists, unchecked.
    fn bounds(&self, range: Range<u64>) -> Result<Vec<i64>> {
        let asked = range.end - range.start;
        let found = integers::<i64>(&self.indptr.part(range))?;
        if u64::try_from(found.len()) != Ok(asked) {
            return Err(self.indptr.error(ErrorKind::Truncated, "it is shorter than it says"));
        }
        Ok(found)
    }

    /// Where the lists of a range start, and where the last one ends; checked to ascend and to lie within the data.
    pub fn spans(&self, lists: Range<u64>) -> Result<Vec<u64>> {
        let found = self.bounds(lists.start..lists.end + 1)?;
        let length = self.data.length()?;
        let mut spans = Vec::with_capacity(found.len());
        let mut before = 0;
        for (list, &bound) in (lists.start..).zip(&found) {
            let wrong = |what: String| {
                // The list that ends with this bound.
                let place = format!("{} {}", self.owner(), list.saturating_sub(1));
                Err(self.indptr.error(ErrorKind::Inconsistent, what).in_part(place))
            };
            match u64::try_from(bound) {
                Err(_) => return wrong(format!("it ends at {bound} (a 32-bit sum that wrapped?)")),
                Ok(bound) if bound < before => return wrong(format!("it ends at {bound}, before its start, {before}")),
                Ok(bound) if bound > length => {
                    return wrong(format!("it ends at {bound}, but data has {length} entries"));
                }
                Ok(bound) => {
                    spans.push(bound);
                    before = bound;
                }
            }
        }
        Ok(spans)
    }

    /// The indices of some entries, all below the bound.
    pub fn indices(&self, entries: Range<u64>) -> Result<Vec<u32>> {
        let start = entries.start;
        let found = integers::<u32>(&self.indices.part(entries))?;
        if let Some(at) = found.iter().position(|&index| u64::from(index) >= self.bound) {
            let of = if self.by_columns { "cells" } else { "genes" };
            let message = format!("{} is an index of {} {of}", found[at], self.bound);
            let place = format!("entry {}", start + at as u64);
            return Err(self.indices.error(ErrorKind::OutOfRange, message).in_part(place));
        }
        Ok(found)
    }
}

/// How many of something of `size` bytes fit into `memory`, at least one.
pub(super) fn fitting(memory: usize, size: usize) -> u64 {
    u64::try_from((memory / size).max(1)).unwrap_or(u64::MAX)
}

pub(super) fn usize_of(value: u64) -> usize {
    // Only of lengths of what is in memory.
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A cell alone that is more than memory was given for.
#[cold]
pub(super) fn too_large(array: &Array, cell: u64, entries: u64, memory: usize) -> Error {
    let message = format!("the cell has {entries} entries, which do not fit into {memory} bytes");
    array.error(ErrorKind::LimitExceeded, message).in_part(format!("cell {cell}")).hint("allow more with --memory")
}

/// Consecutive lists whose entries are at most `most`: ends of groups, as offsets in `spans`.
pub(super) fn group(spans: &[u64], from: usize, most: u64) -> usize {
    let full = |&end: &u64| end - spans[from] <= most;
    from + spans[from + 1..].iter().take_while(|end| full(end)).count()
}

fn rows_of_lists(
    sparse: &Sparse,
    cells: Range<u64>,
    memory: usize,
    visit: &mut dyn FnMut(RowBlock) -> Result<()>,
) -> Result<()> {
    let most = fitting(memory, BYTES_PER_ENTRY);
    let at_once = fitting(memory, 64).min(BOUNDS_AT_ONCE);
    let mut start = cells.start;
    while start < cells.end {
        let end = cells.end.min(start + at_once);
        let spans = sparse.spans(start..end)?;
        let mut from = 0;
        while from + 1 < spans.len() {
            let to = group(&spans, from, most);
            let first_cell = start + from as u64;
            if to == from {
                return Err(too_large(&sparse.data, first_cell, spans[from + 1] - spans[from], memory));
            }
            let entries = spans[from]..spans[to];
            // A difference of two i64 that ascend.
            let indptr = spans[from..=to].iter().map(|&bound| (bound - spans[from]).cast_signed()).collect();
            let indices = sparse.indices(entries.clone())?;
            let values = numbers(&sparse.data.part(entries))?;
            visit(RowBlock { first_cell, indptr, indices, values })?;
            from = to;
        }
        start = end;
    }
    Ok(())
}

/// How many of a dense matrix's rows (or columns) to read at once, of `length` elements each; and in which parts, where
/// one alone is too long.
fn extent(length: u64, memory: usize, chunk: Option<u32>) -> (u64, u64) {
    let most = fitting(memory, BYTES_PER_ELEMENT).min(ELEMENTS_AT_ONCE);
    let part = length.min(most);
    let count = (most / part).max(1);
    // Whole chunks, so that none is unpacked twice.
    let chunk = u64::from(chunk.unwrap_or(1)).max(1);
    (if count > chunk { count - count % chunk } else { count }, part)
}

/// The end of a group of rows that starts at `start`, such that the next one starts with a chunk where that is possible.
fn group_end(start: u64, count: u64, end: u64) -> u64 {
    (start - start % count + count).min(end)
}

fn rows_of_rectangle(
    array: &Array,
    n_genes: u64,
    cells: Range<u64>,
    memory: usize,
    visit: &mut dyn FnMut(RowBlock) -> Result<()>,
) -> Result<()> {
    let (count, part) = extent(n_genes, memory, array.chunks().and_then(|chunks| chunks.first().copied()));
    let mut start = cells.start;
    while start < cells.end {
        let end = group_end(start, count, cells.end);
        let mut rows = DenseRows::new(start);
        let mut gene = 0;
        // More than one part only where a row alone is too long.
        while gene < n_genes {
            let stop = n_genes.min(gene + part);
            rows.add(numbers(&array.rectangle(start..end, gene..stop))?, stop - gene, gene);
            gene = stop;
        }
        visit(rows.finish(end - start))?;
        start = end;
    }
    Ok(())
}

fn rows_of_transposed(
    array: &Array,
    n_genes: u64,
    cells: Range<u64>,
    memory: usize,
    visit: &mut dyn FnMut(RowBlock) -> Result<()>,
) -> Result<()> {
    let (count, part) = extent(n_genes, memory, array.chunks().and_then(|chunks| chunks.get(1).copied()));
    let mut start = cells.start;
    while start < cells.end {
        let end = group_end(start, count, cells.end);
        let mut rows = DenseRows::new(start);
        let mut gene = 0;
        while gene < n_genes {
            let stop = n_genes.min(gene + part);
            let found = numbers(&array.rectangle(gene..stop, start..end))?;
            let width = usize_of(end - start);
            let turned = match found {
                Values::I64(values) => Values::I64(transpose(&values, width)),
                Values::U64(values) => Values::U64(transpose(&values, width)),
                Values::F32(values) => Values::F32(transpose(&values, width)),
                Values::F64(values) => Values::F64(transpose(&values, width)),
            };
            rows.add(turned, stop - gene, gene);
            gene = stop;
        }
        visit(rows.finish(end - start))?;
        start = end;
    }
    Ok(())
}

/// A matrix with rows of `width`, turned.
fn transpose<T: Copy>(values: &[T], width: usize) -> Vec<T> {
    (0..width).flat_map(|column| values[column..].iter().step_by(width).copied()).collect()
}

/// The nonzeros of dense rows.
struct DenseRows {
    first_cell: u64,
    indptr: Vec<i64>,
    indices: Vec<u32>,
    values: Option<Values>,
}

impl DenseRows {
    fn new(first_cell: u64) -> DenseRows {
        DenseRows { first_cell, indptr: vec![0], indices: Vec::new(), values: None }
    }

    /// Adds rows of `width` genes from `gene` on: several whole ones, or a part of one.
    fn add(&mut self, found: Values, width: u64, gene: u64) {
        if gene > 0 {
            // A further part of the one row.
            self.indptr.truncate(1);
        }
        let (indptr, indices, width) = (&mut self.indptr, &mut self.indices, usize_of(width));
        let values = self.values.get_or_insert_with(|| match &found {
            Values::I64(_) => Values::I64(Vec::new()),
            Values::U64(_) => Values::U64(Vec::new()),
            Values::F32(_) => Values::F32(Vec::new()),
            Values::F64(_) => Values::F64(Vec::new()),
        });
        match (values, &found) {
            (Values::I64(to), Values::I64(from)) => nonzeros(from, width, gene, indptr, indices, to),
            (Values::U64(to), Values::U64(from)) => nonzeros(from, width, gene, indptr, indices, to),
            (Values::F32(to), Values::F32(from)) => nonzeros(from, width, gene, indptr, indices, to),
            (Values::F64(to), Values::F64(from)) => nonzeros(from, width, gene, indptr, indices, to),
            _ => {}
        }
    }

    fn finish(self, rows: u64) -> RowBlock {
        let (first_cell, mut indptr, indices) = (self.first_cell, self.indptr, self.indices);
        let values = self.values.unwrap_or(Values::I64(Vec::new()));
        indptr.resize(usize_of(rows) + 1, indices.len() as i64);
        RowBlock { first_cell, indptr, indices, values }
    }
}

fn nonzeros<T: Copy + PartialEq + Default>(
    from: &[T],
    width: usize,
    gene: u64,
    indptr: &mut Vec<i64>,
    indices: &mut Vec<u32>,
    to: &mut Vec<T>,
) {
    // Genes are below 2^31.
    let first = u32::try_from(gene).unwrap_or(u32::MAX);
    for row in from.chunks_exact(width.max(1)) {
        for (gene, &value) in (first..).zip(row) {
            // The zeros of a dense matrix mean nothing; NaN is none of them.
            if value != T::default() {
                indices.push(gene);
                to.push(value);
            }
        }
        indptr.push(indices.len() as i64);
    }
}
