//! Nonzeros and totals of cells and genes, on several threads.

use std::thread;

use super::spread::Tally;
use crate::fault::{Fault, Stop};
use crate::selection::{Piece, Selection};

/// What was counted.
#[derive(Debug, Default)]
pub struct Gathered {
    /// How often a number of nonzeros, and a total, occur among cells.
    pub nonzeros: Tally,
    pub totals: Tally,
    pub genes: Vec<Count>,
}

/// Nonzeros, and the sum of their counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub nonzeros: u64,
    pub total: u64,
}

impl Gathered {
    fn new(n_genes: u32) -> Gathered {
        Gathered { genes: vec![Count::default(); n_genes as usize], ..Gathered::default() }
    }

    fn merge(&mut self, other: Gathered) {
        self.nonzeros.merge(other.nonzeros);
        self.totals.merge(other.totals);
        for (gene, more) in self.genes.iter_mut().zip(other.genes) {
            // More than 2^33 cells with the largest count would be needed to saturate.
            gene.nonzeros = gene.nonzeros.saturating_add(more.nonzeros);
            gene.total = gene.total.saturating_add(more.total);
        }
    }

    /// The nonzeros, and the totals, of genes.
    pub fn tally_genes(&self) -> (Tally, Tally) {
        let (mut nonzeros, mut totals) = (Tally::default(), Tally::default());
        for gene in &self.genes {
            nonzeros.add(gene.nonzeros);
            totals.add(gene.total);
        }
        (nonzeros, totals)
    }
}

/// Counts all; `visit` gets the counts of the cells of each piece, in the order of the pieces.
pub fn all(
    selection: &Selection<'_>,
    mut visit: impl FnMut(&Piece, &[Count]) -> Result<(), Stop>,
) -> Result<Gathered, Stop> {
    let pieces = selection.pieces();
    let threads = match selection.decoder.threads() {
        0 => 1,
        threads => threads.min(pieces.len()).max(1),
    };
    // A tile of few bytes can state any number of genes.
    let needed = u64::from(selection.n_genes()) * size_of::<Count>() as u64 * threads as u64;
    let limit = selection.decoder.limits().max_output_bytes / 4;
    if needed > limit {
        let message = format!(
            "the sums of all genes need {needed} bytes, a quarter of --max-output is {limit}; raise it if you trust the source"
        );
        return Err(Fault::new("limit_exceeded", selection.source.path(), message).into());
    }
    let worker = |_| Ok((selection.worker()?, Gathered::new(selection.n_genes())));
    let mut workers = (0..threads).map(worker).collect::<Result<Vec<_>, Stop>>()?;
    selection.progress.inc_length(pieces.len() as u64);
    for wave in pieces.chunks(threads) {
        let done: Vec<Result<Vec<Count>, Stop>> = thread::scope(|scope| {
            let mut running = Vec::new();
            for (piece, (worker, gathered)) in wave.iter().zip(&mut workers) {
                running.push(scope.spawn(move || gathered.add(piece, worker)));
            }
            running.into_iter().map(|thread| thread.join().expect("no panic in a decode")).collect()
        });
        for (piece, cells) in wave.iter().zip(done) {
            visit(piece, &cells?)?;
            selection.progress.inc(1);
        }
    }
    let mut parts = workers.into_iter().map(|(_, gathered)| gathered);
    let mut all = parts.next().unwrap_or_default();
    parts.for_each(|part| all.merge(part));
    Ok(all)
}

impl Gathered {
    /// Counts a piece; returns the counts of its cells.
    fn add(&mut self, piece: &Piece, worker: &mut crate::selection::Worker<'_>) -> Result<Vec<Count>, Stop> {
        let rows = worker.decode(piece, true)?;
        let mut cells = Vec::with_capacity(rows.indptr.len());
        for (genes, counts) in rows.each() {
            let mut cell = Count { nonzeros: genes.len() as u64, total: 0 };
            for (&gene, &count) in genes.iter().zip(counts) {
                let count = u64::from(count.unsigned_abs());
                cell.total += count;
                let gene = &mut self.genes[usize::try_from(gene).unwrap_or(usize::MAX)];
                gene.nonzeros += 1;
                gene.total = gene.total.saturating_add(count);
            }
            self.nonzeros.add(cell.nonzeros);
            self.totals.add(cell.total);
            cells.push(cell);
        }
        Ok(cells)
    }
}
