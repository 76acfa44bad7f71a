//! A matrix that is stored gene by gene, turned to rows.
//!
//! The entries of each cell are counted first. Consecutive cells then make up buckets that fit into memory; where there is
//! more than one, all entries go once to a temporary file for each bucket.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::file::numbers;
use super::matrix::{BOUNDS_AT_ONCE, BYTES_PER_ENTRY, Sparse, fitting, group, too_large, usize_of};
use crate::spool::{Blocks, Spool};
use crate::{ErrorKind, Result, RowBlock, Values};

/// Bytes of an entry in a temporary file: cell within its bucket, gene, the value's bits.
const RECORD: usize = 16;

/// Bytes that an entry takes while its bucket is in memory.
const BYTES_IN_BUCKET: usize = 20;

/// The name of the folder for temporary files.
const FOLDER: &str = "columns";

pub(super) struct Columns {
    sparse: Sparse,
    scratch: PathBuf,
    /// Bytes for buckets and for columns that pass by.
    memory: usize,
    plan: Option<Plan>,
    /// The bucket that was needed last.
    loaded: Option<RowBlock>,
}

/// Cells in buckets.
struct Plan {
    /// Entries of each cell.
    counts: Vec<u32>,
    /// The first cell of each bucket, and the number of cells.
    starts: Vec<u64>,
}

impl Columns {
    pub fn new(sparse: Sparse, scratch: &Path, memory: usize) -> Columns {
        Columns { sparse, scratch: scratch.join(FOLDER), memory, plan: None, loaded: None }
    }

    /// See [`Input::rows`](crate::Input::rows).
    pub fn rows(
        &mut self,
        cells: Range<u64>,
        memory: usize,
        visit: &mut dyn FnMut(RowBlock) -> Result<()>,
    ) -> Result<()> {
        let most = fitting(memory, BYTES_IN_BUCKET);
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => Plan::new(&self.sparse, &self.scratch, self.memory)?,
        };
        let mut bucket = plan.starts.partition_point(|&start| start <= cells.start).saturating_sub(1);
        let mut next = cells.start;
        while next < cells.end {
            let whole = plan.starts[bucket]..plan.starts[bucket + 1];
            let end = whole.end.min(cells.end);
            let block = match self.loaded.take().filter(|block| block.first_cell == whole.start) {
                Some(block) => block,
                None => plan.load(bucket, &self.sparse, &self.scratch, self.memory)?,
            };
            let bounds: Vec<u64> = block.indptr.iter().map(|bound| bound.unsigned_abs()).collect();
            while next < end {
                let from = usize_of(next - whole.start);
                let to = group(&bounds[..=usize_of(end - whole.start)], from, most);
                if to == from {
                    return Err(too_large(&self.sparse.data, next, bounds[from + 1] - bounds[from], memory));
                }
                visit(part(&block, from..to))?;
                next = whole.start + to as u64;
            }
            self.loaded = Some(block);
            bucket += 1;
        }
        self.plan = Some(plan);
        Ok(())
    }
}

/// Some rows of a block.
fn part(block: &RowBlock, rows: Range<usize>) -> RowBlock {
    let bounds = &block.indptr[rows.start..=rows.end];
    let at = |bound: i64| usize_of(bound.unsigned_abs());
    let span = at(bounds[0])..at(bounds[bounds.len() - 1]);
    RowBlock {
        first_cell: block.first_cell + rows.start as u64,
        indptr: bounds.iter().map(|bound| bound - bounds[0]).collect(),
        indices: block.indices[span.clone()].to_vec(),
        values: match &block.values {
            Values::I64(values) => Values::I64(values[span].to_vec()),
            Values::U64(values) => Values::U64(values[span].to_vec()),
            Values::F32(values) => Values::F32(values[span].to_vec()),
            Values::F64(values) => Values::F64(values[span].to_vec()),
        },
    }
}

impl Plan {
    /// Counts the entries of each cell, and makes buckets of them; with more than one, writes all entries to files.
    fn new(sparse: &Sparse, scratch: &Path, memory: usize) -> Result<Plan> {
        let most = fitting(memory / 2, BYTES_IN_BUCKET);
        let cells = usize_of(sparse.bound);
        if cells > memory / 4 / size_of::<u32>() {
            let needed = cells.saturating_mul(4 * size_of::<u32>());
            let message = format!("{cells} cells of a matrix that is stored gene by gene need {needed} bytes");
            return Err(sparse.data.error(ErrorKind::LimitExceeded, message).hint("allow more with --memory"));
        }
        let mut counts = vec![0_u32; cells];
        pieces(sparse, memory, |piece| {
            for cell in sparse.indices(piece.entries.clone())? {
                let count = &mut counts[cell as usize];
                *count = count.checked_add(1).ok_or_else(|| too_large(&sparse.data, cell.into(), 1 << 32, memory))?;
            }
            Ok(())
        })?;
        let (mut starts, mut entries) = (vec![0], 0);
        for (cell, &count) in (0..).zip(&counts) {
            let count = u64::from(count);
            if count > most {
                return Err(too_large(&sparse.data, cell, count, memory));
            }
            // A cell takes about as much as an entry, though it has none.
            if entries > 0 && entries + count + 1 > most {
                starts.push(cell);
                entries = 0;
            }
            entries += count + 1;
        }
        starts.push(sparse.bound);
        let plan = Plan { counts, starts };
        if plan.starts.len() > 2 {
            plan.spool(sparse, scratch, memory)?;
        }
        Ok(plan)
    }

    /// Writes all entries to the files of their buckets.
    fn spool(&self, sparse: &Sparse, folder: &Path, memory: usize) -> Result<()> {
        let mut spool = Spool::create(folder.to_owned(), self.starts.len() - 1, memory / 4)?;
        // The bucket of each cell, looked up as often as there are entries.
        let ends = &self.starts[1..];
        pieces(sparse, memory, |piece| {
            piece.each(sparse, |cell, gene, bits| {
                let bucket = ends.partition_point(|&end| end <= u64::from(cell));
                // A bucket's cells are numbered in 32 bits, as all cells are.
                let within = u32::try_from(u64::from(cell) - self.starts[bucket]).unwrap_or(u32::MAX);
                spool.append(bucket, &[&within.to_le_bytes(), &gene.to_le_bytes(), &bits.to_le_bytes()])
            })
        })?;
        spool.finish()
    }

    /// The rows of one bucket.
    fn load(&self, bucket: usize, sparse: &Sparse, folder: &Path, memory: usize) -> Result<RowBlock> {
        let cells = self.starts[bucket]..self.starts[bucket + 1];
        let mut block = Block::new(&self.counts[usize_of(cells.start)..usize_of(cells.end)]);
        let changed = || sparse.indices.error(ErrorKind::Inconsistent, "the file changed while it was read");
        if self.starts.len() == 2 {
            pieces(sparse, memory, |piece| {
                piece.each(sparse, |cell, gene, bits| block.put(cell as usize, gene, bits).ok_or_else(changed))
            })?;
        } else {
            let mut blocks = Blocks::open(folder, bucket)?;
            while let Some(bytes) = blocks.next()? {
                for record in bytes.as_chunks::<RECORD>().0 {
                    let [a, b, c, d, e, f, g, h, value @ ..] = *record;
                    let (cell, gene) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                    block.put(cell as usize, gene, u64::from_le_bytes(value)).ok_or_else(changed)?;
                }
            }
        }
        let kind = numbers(&sparse.data.part(0..0))?;
        block.finish(cells.start, &kind).ok_or_else(changed)
    }
}

/// Some consecutive entries.
struct Piece<'a> {
    entries: Range<u64>,
    /// The first entry of each gene from `first_gene`, and one past the last one's last.
    spans: &'a [u64],
    first_gene: u64,
}

impl Piece<'_> {
    /// Visits each entry: its cell, its gene, the bits of its value.
    fn each(&self, sparse: &Sparse, mut visit: impl FnMut(u32, u32, u64) -> Result<()>) -> Result<()> {
        let cells = sparse.indices(self.entries.clone())?;
        let values = numbers(&sparse.data.part(self.entries.clone()))?;
        let mut gene = self.first_gene;
        let mut ends = self.spans[1..].iter().peekable();
        for ((entry, &cell), at) in self.entries.clone().zip(&cells).zip(0..) {
            while ends.next_if(|&&end| end <= entry).is_some() {
                gene += 1;
            }
            let bits = match &values {
                Values::I64(values) => values[at].cast_unsigned(),
                Values::U64(values) => values[at],
                Values::F32(values) => values[at].to_bits().into(),
                Values::F64(values) => values[at].to_bits(),
            };
            // Genes are below 2^31.
            visit(cell, u32::try_from(gene).unwrap_or(u32::MAX), bits)?;
        }
        Ok(())
    }
}

/// Goes through all entries, as many at a time as fit into a part of the memory.
fn pieces(sparse: &Sparse, memory: usize, mut visit: impl FnMut(&Piece<'_>) -> Result<()>) -> Result<()> {
    let most = fitting(memory / 4, BYTES_PER_ENTRY);
    let mut gene = 0;
    while gene < sparse.lists {
        let next = sparse.lists.min(gene + BOUNDS_AT_ONCE.min(most));
        let spans = sparse.spans(gene..next)?;
        let (mut start, end) = (spans[0], spans[spans.len() - 1]);
        while start < end {
            let stop = end.min(start + most);
            visit(&Piece { entries: start..stop, spans: &spans, first_gene: gene })?;
            start = stop;
        }
        gene = next;
    }
    Ok(())
}

/// Rows that fill as the columns pass by.
struct Block {
    indptr: Vec<i64>,
    /// Where each row's next entry goes.
    next: Vec<i64>,
    indices: Vec<u32>,
    bits: Vec<u64>,
}

impl Block {
    fn new(counts: &[u32]) -> Block {
        let mut indptr = Vec::with_capacity(counts.len() + 1);
        let mut sum = 0;
        indptr.push(sum);
        for &count in counts {
            sum += i64::from(count);
            indptr.push(sum);
        }
        let entries = usize_of(sum.unsigned_abs());
        Block { next: indptr[..counts.len()].to_vec(), indptr, indices: vec![0; entries], bits: vec![0; entries] }
    }

    /// Adds an entry; none where the row is full.
    fn put(&mut self, row: usize, gene: u32, bits: u64) -> Option<()> {
        let next = self.next.get_mut(row)?;
        if *next >= self.indptr[row + 1] {
            return None;
        }
        let at = usize_of(next.unsigned_abs());
        *next += 1;
        self.indices[at] = gene;
        self.bits[at] = bits;
        Some(())
    }

    /// The rows, with values of the kind of `kind`; none where one is not full.
    fn finish(self, first_cell: u64, kind: &Values) -> Option<RowBlock> {
        if self.next != self.indptr[1..] {
            return None;
        }
        let bits = self.bits.into_iter();
        let values = match kind {
            Values::I64(_) => Values::I64(bits.map(u64::cast_signed).collect()),
            Values::U64(_) => Values::U64(bits.collect()),
            // What was widened from 32 bits.
            Values::F32(_) => Values::F32(bits.map(|b| f32::from_bits((b & 0xffff_ffff) as u32)).collect()),
            Values::F64(_) => Values::F64(bits.map(f64::from_bits).collect()),
        };
        Some(RowBlock { first_cell, indptr: self.indptr, indices: self.indices, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_and_refuse_more() {
        let mut block = Block::new(&[1, 0, 2]);
        assert!(block.put(2, 4, 7).is_some() && block.put(0, 5, 8).is_some());
        assert!(block.put(1, 6, 9).is_none() && block.put(0, 6, 9).is_none() && block.put(3, 6, 9).is_none());
        assert!(block.put(2, 9, u64::MAX).is_some());
        let rows = block.finish(10, &Values::I64(Vec::new())).unwrap();
        assert_eq!((&rows.indptr[..], &rows.indices[..]), (&[0, 1, 1, 3][..], &[5, 4, 9][..]));
        assert_eq!((rows.first_cell, &rows.values), (10, &Values::I64(vec![8, 7, -1])));
        let some = part(&rows, 1..3);
        assert_eq!((some.first_cell, &some.indptr[..], &some.indices[..]), (11, &[0, 0, 2][..], &[4, 9][..]));
        assert!(Block::new(&[1]).finish(0, &Values::I64(Vec::new())).is_none());
    }
}
