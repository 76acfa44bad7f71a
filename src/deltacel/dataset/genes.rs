//! A choice of genes: by index, mask, name or id, and the columns of the results that they become.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Dataset, VarNames};
use crate::deltacel::csr::Count;
use crate::error::{Error, ErrorKind, Limit, Part};
use crate::limits::Limits;

/// Which genes are wanted, and in which order. [`Dataset::columns`] finds them in a dataset and
/// [`Collection::columns`](super::Collection::columns) in several; a [`Reader`](super::Reader) then decodes them alone.
///
/// ```
/// # #[cfg(feature = "encode")] {
/// use tilekern::deltacel::dataset::{Dataset, Genes, Writer};
/// use tilekern::deltacel::{Csr, CsrView, Decoder};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts");
/// let mut writer = Writer::builder(4).var_names(["ACTB", "CD3D", "MS4A1", "NKG7"]).create(&path)?;
/// writer.push(&CsrView { n_genes: 4, indptr: &[0, 3, 5], indices: &[0, 1, 3, 0, 2], values: &[9, 2, 1, 8, 4] })?;
/// writer.finish()?;
///
/// let dataset = Dataset::open(&path)?;
/// let markers = dataset.columns(&Genes::names(["NKG7", "CD3D"]))?;
/// let decoder = Decoder::new()?;
/// let mut csr = Csr::<i32>::new();
/// dataset.reader(&decoder).genes(&markers)?.range(0..2, &mut csr)?;
/// assert_eq!((csr.n_genes(), csr.indptr()), (2, &[0, 2, 2][..]));
/// assert_eq!((csr.indices(), csr.values()), (&[0, 1][..], &[1, 2][..])); // NKG7: 1, CD3D: 2
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genes {
    by: By,
    order: GeneOrder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    All,
    Indices(Vec<u32>),
    Mask(Vec<bool>),
    Names(Vec<String>),
    #[cfg(feature = "obs")]
    Ids(String, Vec<String>),
}

/// The order of the columns of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeneOrder {
    /// That in which the genes were given; of all genes and of a mask, that of the dataset.
    #[default]
    Given,
    /// That of the dataset's columns, for which results need no sorting.
    Output,
    /// That of the columns of the dataset's source: its gene order undone.
    Source,
}

impl Genes {
    /// Every gene; for another order than the dataset's.
    pub fn all() -> Genes {
        Genes { by: By::All, order: GeneOrder::Given }
    }

    /// Genes by the number of their column, each once.
    pub fn indices(indices: impl Into<Vec<u32>>) -> Genes {
        Genes { by: By::Indices(indices.into()), order: GeneOrder::Given }
    }

    /// Genes for which a mask with an entry for each gene has `true`.
    pub fn mask(mask: impl Into<Vec<bool>>) -> Genes {
        Genes { by: By::Mask(mask.into()), order: GeneOrder::Given }
    }

    /// Genes by name: of `var_names.txt` or, where a dataset has none, of the index of its table of genes (with the
    /// feature `obs`). Names are compared exactly.
    pub fn names<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Genes {
        Genes { by: By::Names(names.into_iter().map(Into::into).collect()), order: GeneOrder::Given }
    }

    /// Genes by the text that a column of the table of genes has for them, such as `gene_ids`.
    #[cfg(feature = "obs")]
    pub fn ids<N: Into<String>>(column: impl Into<String>, ids: impl IntoIterator<Item = N>) -> Genes {
        Genes { by: By::Ids(column.into(), ids.into_iter().map(Into::into).collect()), order: GeneOrder::Given }
    }

    /// The order of the results' columns; the one given unless it is set.
    #[must_use]
    pub fn order(mut self, order: GeneOrder) -> Genes {
        self.order = order;
        self
    }

    /// Finds the genes among those of `axis`.
    pub(super) fn find(&self, axis: &dyn GeneAxis, limits: &Limits) -> Result<GeneColumns, Error> {
        let n_genes = axis.n_genes();
        // A table over all genes, and the genes.
        Limits::check(8 * u64::from(n_genes), limits.max_scratch_bytes, Limit::ScratchBytes, PART)?;
        let mut genes: Vec<u32> = match &self.by {
            By::All => (0..n_genes).collect(),
            By::Indices(indices) => {
                if let Some(at) = indices.iter().position(|&index| index >= n_genes) {
                    let (found, max) = (indices[at].into(), i128::from(n_genes) - 1);
                    return Err(Error::new(ErrorKind::OutOfRange { found, min: 0, max }, PART).index(at as u64));
                }
                indices.clone()
            }
            By::Mask(mask) => {
                if mask.len() as u64 != u64::from(n_genes) {
                    let kind = ErrorKind::Inconsistent { found: mask.len() as i128, expected: n_genes.into() };
                    return Err(Error::new(kind, PART).caused_by("a mask has one entry for each gene"));
                }
                (0..n_genes).zip(mask).filter(|(_, wanted)| **wanted).map(|(gene, _)| gene).collect()
            }
            By::Names(wanted) => {
                let names = axis.gene_names()?.ok_or_else(|| {
                    Error::new(ErrorKind::Missing, PART).in_path(axis.path()).caused_by("no names; choose by index")
                })?;
                find(wanted, n_genes, |gene| names.get(gene as usize), "choose by index or by id")
                    .map_err(in_path(axis))?
            }
            #[cfg(feature = "obs")]
            By::Ids(column, wanted) => {
                let ids = axis.gene_ids(column)?;
                let id = |gene: u32| ids[gene as usize].as_deref();
                find(wanted, n_genes, id, "choose by index").map_err(in_path(axis))?
            }
        };
        match self.order {
            GeneOrder::Given => {}
            GeneOrder::Output => genes.sort_unstable(),
            GeneOrder::Source => {
                let order = axis.source_order()?.ok_or_else(|| {
                    let why = "no gene order is known; ask for the order of the dataset";
                    Error::new(ErrorKind::Missing, PART).in_path(axis.path()).caused_by(why)
                })?;
                genes.sort_by_key(|&gene| order[gene as usize]);
            }
        }
        GeneColumns::new(genes, n_genes)
    }
}

const PART: Part = Part::Genes;

fn in_path(axis: &dyn GeneAxis) -> impl Fn(Error) -> Error {
    let path = axis.path();
    move |error| error.in_path(&path)
}

/// What genes can be looked for in.
pub(super) trait GeneAxis {
    fn n_genes(&self) -> u32;
    fn gene_names(&self) -> Result<Option<&VarNames>, Error>;
    /// The column of the source that each gene was.
    fn source_order(&self) -> Result<Option<&[i32]>, Error>;
    /// The text that a column of the table of genes has for each gene.
    #[cfg(feature = "obs")]
    fn gene_ids(&self, column: &str) -> Result<Vec<Option<String>>, Error>;
    /// What error messages call it.
    fn path(&self) -> PathBuf;
}

/// The gene of each name; every name must be that of exactly one gene.
fn find<'a>(
    wanted: &[String],
    n_genes: u32,
    name: impl Fn(u32) -> Option<&'a str>,
    instead: &str,
) -> Result<Vec<u32>, Error> {
    const SHOWN: usize = 10;
    // Of the names that are wanted: the first gene that has it, and how many have it.
    let mut found: HashMap<&str, (u32, u32)> = wanted.iter().map(|name| (&**name, (0, 0))).collect();
    for gene in 0..n_genes {
        if let Some(entry) = name(gene).and_then(|name| found.get_mut(name)) {
            *entry = (if entry.1 == 0 { gene } else { entry.0 }, entry.1 + 1);
        }
    }
    let unknown: Vec<usize> = (0..wanted.len()).filter(|&at| found[&*wanted[at]].1 == 0).collect();
    if let Some(&first) = unknown.first() {
        let shown: Vec<String> = unknown.iter().take(SHOWN).map(|&at| format!("{:?}", wanted[at])).collect();
        let more = if unknown.len() > SHOWN { format!(" and {} more", unknown.len() - SHOWN) } else { String::new() };
        let like = wanted[first].to_lowercase();
        let like = (0..n_genes).filter_map(&name).find(|name| name.to_lowercase() == like);
        let like = like.map_or("; names are compared exactly".to_owned(), |name| format!("; there is {name:?}"));
        let why = format!("no gene {}{more}{like}", shown.join(", "));
        return Err(Error::new(ErrorKind::Missing, PART).index(first as u64).caused_by(why));
    }
    for (at, wanted) in wanted.iter().enumerate() {
        let (first, n) = found[&**wanted];
        if n > 1 {
            let having: Vec<String> = (first..n_genes)
                .filter(|&gene| name(gene) == Some(wanted))
                .take(SHOWN)
                .map(|gene| gene.to_string())
                .collect();
            let why = format!("{wanted:?} stands for the genes {}; {instead}", having.join(", "));
            return Err(Error::new(ErrorKind::Ambiguous { found: n.into() }, PART).index(at as u64).caused_by(why));
        }
    }
    Ok(wanted.iter().map(|name| found[&**name].0).collect())
}

/// Genes that were found in a dataset or a [`Collection`](super::Collection), as the columns of results.
#[derive(Clone, Debug)]
pub struct GeneColumns {
    genes: Vec<u32>,
    map: Arc<ColumnMap>,
}

impl GeneColumns {
    fn new(genes: Vec<u32>, n_genes: u32) -> Result<GeneColumns, Error> {
        let mut table = vec![-1; n_genes as usize];
        for (at, &gene) in genes.iter().enumerate() {
            let entry = &mut table[gene as usize];
            if let Ok(first) = u64::try_from(*entry) {
                let why = format!("gene {gene} is chosen twice");
                return Err(Error::new(ErrorKind::Repeated { first }, PART).index(at as u64).caused_by(why));
            }
            *entry = i32::try_from(at).unwrap_or(i32::MAX); // they are distinct, and at most 2^31 genes
        }
        let n_columns = u32::try_from(genes.len()).unwrap_or(u32::MAX);
        Ok(GeneColumns { genes, map: Arc::new(ColumnMap::new(table, n_columns)) })
    }

    /// The gene that each column of the results is: the number of its column in the dataset.
    pub fn genes(&self) -> &[u32] {
        &self.genes
    }

    /// Columns.
    pub fn len(&self) -> usize {
        self.genes.len()
    }

    /// Whether no gene was chosen: results then have no columns.
    pub fn is_empty(&self) -> bool {
        self.genes.is_empty()
    }

    pub(super) fn map(&self) -> &Arc<ColumnMap> {
        &self.map
    }
}

/// Which column of the results each column of a dataset becomes.
#[derive(Debug)]
pub(super) struct ColumnMap {
    /// -1 for a column that is left out.
    table: Vec<i32>,
    n_columns: u32,
    /// Whether columns keep their order, so that rows stay sorted.
    sorted: bool,
    /// No column from here on is kept. Columns stand by decreasing totals, so this cuts most of a row's end.
    end: i32,
}

impl ColumnMap {
    pub fn new(table: Vec<i32>, n_columns: u32) -> ColumnMap {
        let kept = || table.iter().filter(|&&column| column >= 0);
        let sorted = kept().is_sorted();
        let end = table.iter().rposition(|&column| column >= 0).map_or(0, |last| last + 1);
        ColumnMap { sorted, end: i32::try_from(end).unwrap_or(i32::MAX), table, n_columns }
    }

    /// Columns of the results.
    pub fn n_columns(&self) -> u32 {
        self.n_columns
    }

    /// Columns of the dataset.
    pub fn n_genes(&self) -> usize {
        self.table.len()
    }

    /// This and then `next`.
    pub fn then(&self, next: &ColumnMap) -> ColumnMap {
        let table = self.table.iter().map(|&column| usize::try_from(column).map_or(-1, |at| next.table[at])).collect();
        ColumnMap::new(table, next.n_columns)
    }

    /// The part of a sorted row that can have kept genes.
    fn front<'a>(&self, genes: &'a [i32]) -> &'a [i32] {
        match genes.last() {
            Some(&last) if last >= self.end => &genes[..genes.partition_point(|&gene| gene < self.end)],
            _ => genes,
        }
    }

    /// Whether a row has a kept gene.
    pub fn any(&self, genes: &[i32]) -> bool {
        self.front(genes).iter().any(|&gene| self.column(gene) >= 0)
    }

    /// Of a gene that was checked to be one of the dataset's.
    fn column(&self, gene: i32) -> i32 {
        self.table[gene.cast_unsigned() as usize]
    }

    /// Replaces the genes of a row by columns, moves what is kept to its front, sorted, and returns how many these are.
    pub fn keep<T: Count>(&self, genes: &mut [i32], counts: &mut [T], sorter: &mut Sorter<T>) -> usize {
        let n = self.front(genes).len();
        let (genes, counts) = (&mut genes[..n], &mut counts[..n]);
        let mut kept = 0;
        for i in 0..n {
            // No branch on the data: every nonzero is written, and the next one overwrites it unless it is kept. A version
            // by hand with AVX-512's gather and compress took 0.45 ns a nonzero where this takes 0.56, of 1.9 in all (AMD
            // Zen 5, rustc 1.95, 2026-11): too little for a kernel.
            let (column, count) = (self.column(genes[i]), counts[i]);
            genes[kept] = column;
            counts[kept] = count;
            kept += usize::from(column >= 0);
        }
        if !self.sorted {
            sorter.sort(&mut genes[..kept], &mut counts[..kept], self.n_columns as usize);
        }
        kept
    }
}

/// Sorts rows by column, with memory that is reused.
#[derive(Debug)]
pub(super) struct Sorter<T> {
    /// A count for each column, valid where the column's bit is set. No bit is, between calls.
    dense: Vec<T>,
    bits: Vec<u64>,
    pairs: Vec<(i32, T)>,
}

impl<T> Default for Sorter<T> {
    fn default() -> Sorter<T> {
        Sorter { dense: Vec::new(), bits: Vec::new(), pairs: Vec::new() }
    }
}

impl<T: Count> Sorter<T> {
    /// Columns up to which a row may be spread out.
    const SPREAD: usize = 1 << 20;

    /// Sorts distinct columns below `n`, and their counts with them.
    fn sort(&mut self, columns: &mut [i32], counts: &mut [T], n: usize) {
        // Passing a word of 64 columns costs about as much as a comparison.
        if n > Sorter::<T>::SPREAD || n / 64 > columns.len() * (usize::BITS - columns.len().leading_zeros()) as usize {
            self.pairs.clear();
            self.pairs.extend(columns.iter().copied().zip(counts.iter().copied()));
            self.pairs.sort_unstable_by_key(|pair| pair.0);
            for ((column, count), pair) in columns.iter_mut().zip(counts).zip(&self.pairs) {
                (*column, *count) = *pair;
            }
            return;
        }
        if self.dense.len() < n {
            self.dense.resize(n, T::zeroed());
            self.bits.resize(n.div_ceil(64), 0);
        }
        for (&column, &count) in columns.iter().zip(&*counts) {
            let at = column.cast_unsigned() as usize;
            self.dense[at] = count;
            self.bits[at / 64] |= 1 << (at % 64);
        }
        let mut out = columns.iter_mut().zip(counts);
        for (word, bits) in self.bits[..n.div_ceil(64)].iter_mut().enumerate() {
            while *bits != 0 {
                let at = 64 * word + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                if let Some((column, count)) = out.next() {
                    (*column, *count) = (i32::try_from(at).unwrap_or(i32::MAX), self.dense[at]);
                }
            }
        }
    }
}

impl GeneAxis for Dataset {
    fn n_genes(&self) -> u32 {
        Dataset::n_genes(self)
    }

    fn gene_names(&self) -> Result<Option<&VarNames>, Error> {
        if let Some(names) = self.var_names()? {
            return Ok(Some(names));
        }
        #[cfg(feature = "obs")]
        return super::once(&self.index_names, || super::var::index_names(self)).map(Option::as_ref);
        #[cfg(not(feature = "obs"))]
        Ok(None)
    }

    fn source_order(&self) -> Result<Option<&[i32]>, Error> {
        self.gene_order()
    }

    #[cfg(feature = "obs")]
    fn gene_ids(&self, column: &str) -> Result<Vec<Option<String>>, Error> {
        super::var::texts(self, column)
    }

    fn path(&self) -> PathBuf {
        self.source.path("")
    }
}

impl Dataset {
    /// Finds genes. Files that are needed for it are read: names, gene order, or the table of genes.
    ///
    /// # Errors
    /// In [`Part::Genes`], with the index of the gene in the selection: [`ErrorKind::Missing`] for names that no gene
    /// has, all of which are told, [`ErrorKind::Ambiguous`] for a name that several genes have,
    /// [`ErrorKind::OutOfRange`] for an index that no gene has, [`ErrorKind::Repeated`] for a gene that is chosen twice,
    /// [`ErrorKind::Inconsistent`] for a mask of another length, [`ErrorKind::Missing`] also where the dataset has no
    /// names, no such column or no gene order; [`ErrorKind::LimitExceeded`] for more than 2^27 genes, unless
    /// `max_scratch_bytes` is raised; what is wrong with a file that is read.
    pub fn columns(&self, genes: &Genes) -> Result<GeneColumns, Error> {
        genes.find(self, &self.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_sort() {
        let mut sorter = Sorter::default();
        for n in [1usize, 7, 64, 65, 1000, Sorter::<i32>::SPREAD, Sorter::<i32>::SPREAD + 1] {
            for len in [0, 1, 2, 7, 60, 999] {
                let len = len.min(n);
                // Distinct: the step has no factor in common with any `n` here.
                let at = |i: usize| i32::try_from((i * 999_983 + 5) % n).unwrap();
                let mut columns: Vec<i32> = (0..len).map(at).collect();
                let mut counts: Vec<i32> = columns.iter().map(|column| 3 * column + 1).collect();
                let mut expected = columns.clone();
                expected.sort_unstable();
                sorter.sort(&mut columns, &mut counts, n);
                assert_eq!(columns, expected);
                assert!(counts.iter().zip(&columns).all(|(count, column)| *count == 3 * column + 1));
            }
        }
        assert!(sorter.bits.iter().all(|&bits| bits == 0));
    }

    #[test]
    fn maps_in_a_row() {
        let first = ColumnMap::new(vec![2, -1, 0, 1], 3);
        let second = ColumnMap::new(vec![-1, 1, 0], 2);
        let both = first.then(&second);
        assert_eq!((&both.table[..], both.n_columns, both.sorted, both.end), (&[0, -1, -1, 1][..], 2, true, 4));
        assert!(!first.sorted && both.any(&[1, 2, 3]) && !both.any(&[1, 2]) && !both.any(&[]));
    }
}
