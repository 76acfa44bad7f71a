//! Realistic single-cell counts from a seed: for samples, demonstrations and benchmarks.
//!
//! # What is modelled
//!
//! - **Genes** differ by orders of magnitude: their expected counts in a cell of middle depth are log-normal, sigma 2.0.
//! - **Cell types**, 12 of them and unequally common, each shift every gene by a log-normal factor, and a few genes
//!   dominate each type with hundreds of counts, as haemoglobin or immunoglobulin genes do.
//! - **Depth**: a cell's expected counts are scaled by a log-normal factor.
//! - **Counts** are negative binomial. The dispersion falls with a gene's mean to a floor, as it does in sequencing data.
//! - **Order**: columns are the genes by decreasing expected total, the order that makes gaps between genes small.
//!
//! All of this is per gene, so fewer genes are like a random part of the whole: a cell's nonzeros grow with the genes.
//!
//! # Marks
//!
//! What a decoder or compressor sees is held to these marks, at 10,000 cells x 33,000 genes:
//!
//! | mark | wanted | seed 0 |
//! |---|---|---|
//! | nonzeros per cell, mean | 2,699 | 2,690 |
//! | nonzeros per cell, median | 2,582 | 2,585 |
//! | counts that are 1 | 64 % | 63.9 % |
//! | counts above 255 | 0.09 % | 0.093 % |
//! | gaps that are 1 | 38 % | 37.3 % |
//! | gaps above 255 | 0.5 % | 0.52 % |
//! | bytes per nonzero: byte planes of gaps and counts, zstd level 19, 8 chunks | 0.734 | 0.721 |
//!
//! A gap is the distance to the cell's previous gene, or the gene itself where it is the cell's first. Real blood cells
//! (10x PBMC) take 0.68 bytes per nonzero. Counts off these marks would measure something else.
//!
//! # Same seed, same counts
//!
//! On every machine and in every build: the random streams are ChaCha8, and what is not rounded exactly by IEEE 754
//! (`exp`, `log` and the like) comes from the `libm` crate instead of the platform.

#[cfg(all(feature = "parquet", feature = "encode"))]
pub mod columns;
#[cfg(all(feature = "mlt", feature = "encode"))]
mod tiles;

use std::f64::consts::FRAC_1_SQRT_2;
use std::ops::Range;

use libm::{erfc, exp, log, log1p};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
#[cfg(all(feature = "mlt", feature = "encode"))]
pub use tiles::map_tile;

/// Sigma of the log-normal expected counts of the genes.
const GENE_SIGMA: f64 = 2.0;
/// Logarithm of the median gene's expected count in a cell of middle depth; sets the nonzeros per cell.
const GENE_MU: f64 = -4.1;
/// Sigma of the log-normal depths, whose median is 1; sets the mean of nonzeros per cell against the median.
const DEPTH_SIGMA: f64 = 0.53;
/// Number of cell types; type `t` has a share of cells in proportion to `1 / (t + 1)`.
const TYPES: usize = 12;
/// Sigma of the log-normal factor of a gene in a cell type.
const TYPE_SIGMA: f64 = 0.8;
/// A cell type has one dominating gene for this many genes.
const GENES_PER_DOMINANT: usize = 8_000;
/// A dominating gene is the most expressed of this many, so that it is found in most other cells too.
const DOMINANT_OF: usize = 256;
/// Expected count of a dominating gene, median and sigma of a log-normal; sets the counts above 255.
const DOMINANT_MEDIAN: f64 = 300.0;
const DOMINANT_SIGMA: f64 = 0.5;
/// Dispersion of a gene of mean `m`: `DISPERSION_FLOOR + DISPERSION_SLOPE / m`; set the gaps of 1 and the counts of 1.
const DISPERSION_FLOOR: f64 = 0.06;
const DISPERSION_SLOPE: f64 = 0.08;

/// The stream of the fixed part; cell `c` has stream `c`.
const FIXED_STREAM: u64 = u64::MAX;

/// What to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Cells that can be asked for.
    pub cells: usize,
    /// Columns. The fixed part holds 108 bytes for each, and takes about twice as many while it is made.
    pub genes: u32,
    /// Other seeds give other counts with the same marks.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { cells: 10_000, genes: 33_000, seed: 0 }
    }
}

/// Counts of consecutive cells in CSR form. Genes increase strictly within a cell; counts are at least 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cells + 1 positions in the other two, from 0.
    pub indptr: Vec<i64>,
    /// Gene of each nonzero.
    pub indices: Vec<i32>,
    /// Count of each nonzero.
    pub data: Vec<i32>,
}

/// The simulation's fixed part: genes, cell types and the order of the columns.
#[derive(Debug, Clone)]
pub struct Simulator {
    params: Params,
    /// For each type, where each column's interval ends when the expected counts at depth 1 are laid end to end.
    ends: Vec<Vec<f64>>,
    /// Inverse dispersion of each column.
    sizes: Vec<f64>,
    gene_order: Vec<i32>,
}

impl Simulator {
    /// Draws genes and cell types.
    ///
    /// # Panics
    /// If `params.genes` is above 2^31, since column numbers are `i32`.
    pub fn new(params: &Params) -> Self {
        assert!(params.genes <= 1 << 31, "at most 2^31 genes");
        let genes = params.genes as usize;
        let rng = &mut stream(params.seed, FIXED_STREAM);

        // Quantiles instead of random values: the marks then hold for every seed.
        let quantile = |gene: usize| normal_quantile((gene as f64 + 0.5) / genes as f64);
        let mut base: Vec<f64> = (0..genes).map(|gene| exp(GENE_MU + GENE_SIGMA * quantile(gene))).collect();
        for gene in (1..genes).rev() {
            base.swap(gene, below(rng, gene + 1));
        }
        let mut means = vec![base.clone(); TYPES];
        for means in &mut means {
            for mean in means.iter_mut() {
                *mean *= exp(TYPE_SIGMA * normal(rng));
            }
            for _ in 0..genes / GENES_PER_DOMINANT {
                let candidates = (0..DOMINANT_OF).map(|_| below(rng, genes));
                let gene = candidates.max_by(|&a, &b| base[a].total_cmp(&base[b])).expect("there are candidates");
                means[gene] = DOMINANT_MEDIAN * exp(DOMINANT_SIGMA * normal(rng));
            }
        }

        let total: Vec<f64> = (0..genes)
            .map(|gene| means.iter().zip(type_shares()).map(|(means, share)| means[gene] * share).sum())
            .collect();
        let mut order: Vec<usize> = (0..genes).collect();
        order.sort_by(|&a, &b| total[b].total_cmp(&total[a]));

        let ends = means
            .iter()
            .map(|means| {
                let sum = |end: &mut f64, &gene: &usize| {
                    *end += means[gene];
                    Some(*end)
                };
                order.iter().scan(0.0, sum).collect()
            })
            .collect();
        let sizes = order.iter().map(|&gene| 1.0 / (DISPERSION_FLOOR + DISPERSION_SLOPE / total[gene])).collect();
        let gene_order = order.iter().map(|&gene| i32::try_from(gene).expect("at most 2^31 genes")).collect();
        Self { params: *params, ends, sizes, gene_order }
    }

    /// Counts of the cells of `range`, the same however the cells are cut into ranges.
    ///
    /// Takes about 90 ns per nonzero on one core (AMD EPYC, rustc 1.95, 2026-11).
    ///
    /// # Panics
    /// If the range reaches beyond the cells of the parameters.
    pub fn cells(&self, range: Range<usize>) -> Counts {
        assert!(range.end <= self.params.cells, "cells {range:?} of {}", self.params.cells);
        let mut counts = Counts { indptr: vec![0], ..Counts::default() };
        for cell in range {
            self.cell(cell as u64, &mut counts);
            counts.indptr.push(counts.indices.len() as i64);
        }
        counts
    }

    /// Column `j` was gene `gene_order()[j]` before the columns were ordered by decreasing expected total.
    pub fn gene_order(&self) -> &[i32] {
        &self.gene_order
    }

    /// A name for the gene of a column, different for each gene.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn gene_name(&self, column: usize) -> String {
        format!("SIMG{:011}", self.gene_order[column])
    }

    /// Appends the nonzeros of one cell.
    fn cell(&self, cell: u64, counts: &mut Counts) {
        let rng = &mut stream(self.params.seed, cell);
        let kind = cell_type(uniform(rng));
        let depth = exp(DEPTH_SIGMA * normal(rng));
        nonzeros(&self.ends[kind], &self.sizes, depth, rng, |column, count| {
            counts.indices.push(i32::try_from(column).expect("at most 2^31 genes"));
            counts.data.push(count);
        });
    }
}

/// Draws a count for every column and gives those that are not zero, by column.
///
/// Column `j` has mean `depth * (ends[j] - ends[j - 1])` and inverse dispersion `sizes[j]`. The means are laid end to end
/// and points of a Poisson process of rate 1 are dropped on them: the first point in a column's interval, measured from
/// its start, is the exponential variate that decides the column's count. A column without a point is zero, since
/// `count` is zero for every variate above the mean, and after each column that has one the process starts anew.
/// So the work is in proportion to the nonzeros instead of the columns.
fn nonzeros(ends: &[f64], sizes: &[f64], depth: f64, rng: &mut ChaCha8Rng, mut emit: impl FnMut(usize, i32)) {
    let (mut column, mut start) = (0, 0.0);
    loop {
        let point = start - log(uniform(rng)) / depth;
        let skipped = first_above(&ends[column..], point);
        if skipped > 0 {
            column += skipped;
            start = ends[column - 1];
        }
        let Some(&end) = ends.get(column) else { return };
        let count = count((point - start) * depth, (end - start) * depth, sizes[column]);
        if count > 0 {
            emit(column, count);
        }
        start = end;
        column += 1;
    }
}

/// The negative binomial count, of the given mean and inverse dispersion, that an exponential variate stands for.
///
/// By inversion: `u = 1 - exp(-variate)` is uniform, and the counts 1, 2, … and at last 0 share out the range 0..1.
/// The count is therefore zero from the variate `-log P(0) = size * log(1 + mean / size)` on, which is at most the mean.
fn count(variate: f64, mean: f64, size: f64) -> i32 {
    let zero_from = size * log1p(mean / size);
    if variate >= zero_from {
        return 0;
    }
    let u = 1.0 - exp(-variate);
    let x = mean / (size + mean);
    let (mut count, mut k) = (1, 1.0);
    let mut probability = exp(-zero_from) * size * x;
    let mut sum = probability;
    // Rounding can leave `sum` short of a `u` at the very end of the range, so a vanishing tail ends the search too.
    while sum <= u && (k < mean || probability > f64::EPSILON / 16.0) {
        probability *= (size + k) / (k + 1.0) * x;
        sum += probability;
        k += 1.0;
        count += 1;
    }
    count
}

/// Index of the first value above `x` in values that do not decrease, or their number; fast where that is near the front.
fn first_above(values: &[f64], x: f64) -> usize {
    let mut width = 4;
    while width < values.len() && values[width - 1] <= x {
        width *= 2;
    }
    values[..width.min(values.len())].partition_point(|&value| value <= x)
}

/// Shares of the cell types, most common first.
fn type_shares() -> [f64; TYPES] {
    let weights: [f64; TYPES] = std::array::from_fn(|kind| 1.0 / (kind + 1) as f64);
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

/// The cell type that a uniform variate stands for.
fn cell_type(u: f64) -> usize {
    let mut sum = 0.0;
    let ends = type_shares().map(|share| {
        sum += share;
        sum
    });
    ends[..TYPES - 1].partition_point(|&end| end < u)
}

/// An independent random stream.
fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(stream);
    rng
}

/// Uniform above 0, up to and with 1.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Uniform below `n`, which must not be 0.
fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    usize::try_from(rng.next_u64() % n as u64).expect("below a usize")
}

/// Normal with mean 0 and variance 1 (Marsaglia's polar method).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(rng) - 1.0, 2.0 * uniform(rng) - 1.0);
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * (-2.0 * log(s) / s).sqrt();
        }
    }
}

/// What a normal variate with mean 0 and variance 1 stays below with probability `p`, by bisection.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..50 {
        let z = 0.5 * (low + high);
        if 0.5 * erfc(-z * FRAC_1_SQRT_2) < p { low = z } else { high = z }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where each cell's nonzeros are.
    fn rows(counts: &Counts) -> impl Iterator<Item = Range<usize>> {
        let at = |cell: usize| usize::try_from(counts.indptr[cell]).expect("not negative");
        (1..counts.indptr.len()).map(move |cell| at(cell - 1)..at(cell))
    }

    /// Gaps as a tile stores them: to the previous gene of the cell, or from 0.
    fn gaps(counts: &Counts) -> Vec<i32> {
        let of_cell = |genes: &[i32]| {
            let mut last = 0;
            Vec::from_iter(genes.iter().map(|&gene| gene - std::mem::replace(&mut last, gene)))
        };
        rows(counts).flat_map(|cell| of_cell(&counts.indices[cell])).collect()
    }

    #[track_caller]
    fn assert_near(what: &str, found: f64, mark: f64, tolerance: f64) {
        let off = found / mark - 1.0;
        assert!(off.abs() <= tolerance, "{what} is {found}, {:+.1} % off {mark}", 100.0 * off);
    }

    /// The marks of the module's documentation, except the compressed size. Of 600 cells instead of 10,000 the mean and
    /// the median have standard errors of 1.3 and 1.6 %, hence their tolerances.
    #[test]
    fn counts_meet_the_marks() {
        let params = Params { cells: 600, ..Params::default() };
        let counts = Simulator::new(&params).cells(0..params.cells);
        let mut per_cell: Vec<usize> = rows(&counts).map(|cell| cell.len()).collect();
        per_cell.sort_unstable();
        let share = |values: &[i32], is: fn(&i32) -> bool| {
            values.iter().filter(|value| is(value)).count() as f64 / values.len() as f64
        };
        let gaps = gaps(&counts);

        assert_near("mean", counts.data.len() as f64 / params.cells as f64, 2_699.0, 0.04);
        assert_near("median", per_cell[params.cells / 2] as f64, 2_582.0, 0.05);
        assert_near("counts of 1", share(&counts.data, |&count| count == 1), 0.64, 0.02);
        assert_near("counts above 255", share(&counts.data, |&count| count > 255), 0.0009, 0.1);
        assert_near("gaps of 1", share(&gaps, |&gap| gap == 1), 0.38, 0.03);
        assert_near("gaps above 255", share(&gaps, |&gap| gap > 255), 0.005, 0.06);
    }

    /// Fails where a platform, a build or a dependency changes what a seed means.
    #[test]
    fn a_seed_means_the_same_counts_everywhere() {
        let simulator = Simulator::new(&Params { cells: 30, genes: 10_000, seed: 7 });
        let counts = simulator.cells(0..30);
        let mut crc = crc32fast::Hasher::new();
        counts.indptr.iter().for_each(|value| crc.update(&value.to_le_bytes()));
        for values in [&counts.indices, &counts.data, simulator.gene_order()] as [&[i32]; 3] {
            values.iter().for_each(|value| crc.update(&value.to_le_bytes()));
        }
        assert_eq!((counts.data.len(), crc.finalize()), (24_684, 0xF0CC_ED01));
    }

    #[test]
    fn seeds_differ() {
        let [a, b] = [0, 1 << 63].map(|seed| Simulator::new(&Params { cells: 3, genes: 500, seed }));
        assert_ne!(a.cells(0..3), b.cells(0..3));
        assert_ne!(a.gene_order(), b.gene_order());
    }

    #[test]
    fn cells_do_not_depend_on_the_range() {
        let simulator = Simulator::new(&Params { cells: 40, genes: 3_000, seed: 3 });
        let all = simulator.cells(0..40);
        let mut joined = Counts { indptr: vec![0], ..Counts::default() };
        for range in [0..1, 1..1, 1..17, 17..40] {
            let part = simulator.cells(range);
            let base = joined.indices.len() as i64;
            joined.indptr.extend(part.indptr[1..].iter().map(|at| base + at));
            joined.indices.extend(part.indices);
            joined.data.extend(part.data);
        }
        assert_eq!(all, joined);
    }

    #[test]
    #[should_panic(expected = "of 5")]
    fn cells_beyond_the_last_are_refused() {
        Simulator::new(&Params { cells: 5, genes: 10, seed: 0 }).cells(4..6);
    }

    #[test]
    fn any_shape_is_valid_csr_and_density_stays() {
        for (cells, genes) in [(0, 0), (0, 33_000), (3, 0), (500, 1), (500, 20), (100, 2_000), (10, 100_000)] {
            let simulator = Simulator::new(&Params { cells, genes, seed: 11 });
            let counts = simulator.cells(0..cells);
            assert_eq!(counts.indptr.len(), cells + 1);
            assert_eq!((counts.indptr[0], counts.indptr[cells]), (0, counts.indices.len() as i64));
            assert!(counts.data.len() == counts.indices.len() && counts.data.iter().all(|&count| count > 0));
            for cell in rows(&counts) {
                let cell = &counts.indices[cell];
                assert!(cell.is_sorted_by(|a, b| a < b) && cell.iter().all(|gene| i64::from(*gene) < i64::from(genes)));
                assert!(cell.first().is_none_or(|&gene| gene >= 0));
            }
            if genes >= 20 && cells > 0 {
                let density = counts.data.len() as f64 / (cells as f64 * f64::from(genes));
                assert!((0.06..0.11).contains(&density), "{genes} genes: {density}");
            }
        }
    }

    #[test]
    fn columns_are_all_genes_by_decreasing_expected_total() {
        let simulator = Simulator::new(&Params { cells: 0, genes: 20_000, seed: 5 });
        let mut genes = simulator.gene_order().to_vec();
        let names: std::collections::HashSet<_> = (0..genes.len()).map(|column| simulator.gene_name(column)).collect();
        assert_eq!(names.len(), genes.len());
        genes.sort_unstable();
        assert!(genes.into_iter().eq(0..20_000));

        let mean = |ends: &Vec<f64>, column: usize| ends[column] - if column > 0 { ends[column - 1] } else { 0.0 };
        let total =
            |column| simulator.ends.iter().zip(type_shares()).map(|(ends, share)| share * mean(ends, column)).sum();
        let totals: Vec<f64> = (0..20_000).map(total).collect();
        // The ends are sums, so a mean read from them is off by their rounding.
        assert!(totals.is_sorted_by(|a, b| *a >= b - 1e-9));
    }

    #[test]
    fn counts_are_negative_binomial() {
        for (mean, size) in [(0.01, 0.1), (0.5, 2.0), (3.0, 0.4), (40.0, 12.0), (900.0, 10.0)] {
            let n = 40_000;
            let draws = (0..n).map(|i| f64::from(count(-log((f64::from(i) + 0.5) / f64::from(n)), mean, size)));
            let (mut zeros, mut sum, mut squares) = (0.0, 0.0, 0.0);
            for draw in draws {
                zeros += f64::from(u8::from(draw == 0.0));
                sum += draw;
                squares += (draw - mean).powi(2);
            }
            let n = f64::from(n);
            assert!((zeros / n - (1.0 + mean / size).powf(-size)).abs() < 1e-4, "zeros of {mean}, {size}");
            assert_near("mean", sum / n, mean, 0.01);
            assert_near("variance", squares / n, mean + mean * mean / size, 0.02);
        }
        // A mean whose P(0) is next to nothing, and variates at both ends.
        assert!(count(0.0, 1e5, 12.0) >= 1 && count(80.0, 1e5, 12.0) > 100_000);
    }

    /// Skipping from nonzero to nonzero gives each column what drawing it by itself would.
    #[test]
    fn skipping_keeps_the_distribution_of_every_column() {
        let means = [0.02, 2.0, 0.0, 0.3, 0.001, 0.0, 0.9, 0.05, 7.0, 0.004];
        let sizes = [0.1, 5.0, 1.0, 0.5, 0.01, 1.0, 10.0, 2.0, 3.0, 1.0];
        let (depth, draws) = (2.0, 40_000);
        let ends: Vec<f64> = means
            .iter()
            .scan(0.0, |end, mean| {
                *end += mean / depth;
                Some(*end)
            })
            .collect();
        let (mut found, mut sums) = ([0.0; 10], [0.0; 10]);
        let rng = &mut stream(1, 2);
        for _ in 0..draws {
            nonzeros(&ends, &sizes, depth, rng, |column, count| {
                found[column] += 1.0;
                sums[column] += f64::from(count);
            });
        }
        for (column, (&mean, &size)) in means.iter().zip(&sizes).enumerate() {
            let n = f64::from(draws);
            let present = 1.0 - (1.0 + mean / size).powf(-size);
            let four_sigma = 4.0 * (present * (1.0 - present) / n).sqrt();
            assert!((found[column] / n - present).abs() <= four_sigma, "column {column} found {}", found[column] / n);
            let four_sigma = 4.0 * ((mean + mean * mean / size) / n).sqrt();
            assert!((sums[column] / n - mean).abs() <= four_sigma, "column {column} mean {}", sums[column] / n);
        }
    }

    #[test]
    fn normal_quantiles() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (1e-6, -4.753_424_308_822_899)] {
            assert!((normal_quantile(p) - z).abs() < 1e-9, "{p}: {}", normal_quantile(p));
        }
    }
}
