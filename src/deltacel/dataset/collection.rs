//! Several datasets as one: their cells one behind the other, their genes matched.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::genes::{ColumnMap, GeneAxis, GeneColumns, Genes};
use super::rows::{Piece, Reader};
use super::{Dataset, VarNames, cells_of_mask};
use crate::deltacel::csr::Count;
use crate::deltacel::decode::Decoder;
use crate::error::{Error, ErrorKind, Part};

/// Datasets that are read as one. The cells of the first have the numbers from 0 on, those of the second follow, and so
/// on; the genes are matched as [`GeneMatch`] says.
///
/// A clone shares the datasets.
///
/// ```
/// # #[cfg(feature = "encode")] {
/// use tilekern::deltacel::dataset::{Collection, Dataset, GeneKey, GeneMatch, Writer};
/// use tilekern::deltacel::{Csr, CsrView, Decoder};
///
/// let folder = tempfile::tempdir()?;
/// for (name, genes) in [("a", ["CD3D", "NKG7"]), ("b", ["NKG7", "MS4A1"])] {
///     let mut writer = Writer::builder(2).var_names(genes).create(folder.path().join(name))?;
///     writer.push(&CsrView { n_genes: 2, indptr: &[0, 2], indices: &[0, 1], values: &[1, 2] })?;
///     writer.finish()?;
/// }
/// let datasets = [Dataset::open(folder.path().join("a"))?, Dataset::open(folder.path().join("b"))?];
/// let both = Collection::matching(datasets, &GeneMatch::Union(GeneKey::Name))?;
/// let names: Vec<&str> = both.gene_names()?.expect("names").iter().collect();
/// assert_eq!(names, ["CD3D", "NKG7", "MS4A1"]);
///
/// let decoder = Decoder::new()?;
/// let mut csr = Csr::<i32>::new();
/// both.reader(&decoder).rows(&[1, 0], &mut csr)?;
/// assert_eq!((csr.indices(), csr.values()), (&[1, 2, 0, 1][..], &[1, 2, 1, 2][..]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Collection(Arc<Inner>);

struct Inner {
    members: Vec<Member>,
    n_cells: u64,
    n_genes: u32,
    /// Where the genes come from, unless they are those of the first dataset, and their names.
    union: Option<(Vec<Origin>, Option<VarNames>)>,
}

struct Member {
    dataset: Arc<Dataset>,
    first: u64,
    map: Option<Arc<ColumnMap>>,
}

/// A dataset and a column of it.
type Origin = (usize, u32);

/// How the genes of several datasets become the genes of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GeneMatch {
    /// They have the same names in the same order, which is checked.
    #[default]
    Same,
    /// There are equally many, and their columns are the same by the word of the caller: for datasets without names.
    Number,
    /// The genes of the first dataset. Those that another lacks have no counts in its cells; those that it has besides
    /// are left out.
    First(GeneKey),
    /// The genes of the first dataset, then those that each next one brings. What a dataset lacks has no counts in its
    /// cells.
    Union(GeneKey),
}

/// By what genes of two datasets are known to be the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GeneKey {
    /// Their names, as [`Genes::names`] finds them.
    #[default]
    Name,
    /// What such a column of the table of genes has for them, as for [`Genes::ids`].
    #[cfg(feature = "obs")]
    Id(String),
}

impl GeneKey {
    /// The key of each gene.
    fn of(&self, dataset: &Dataset) -> Result<Vec<Option<String>>, Error> {
        match self {
            GeneKey::Name => {
                let names = dataset.gene_names()?.ok_or_else(|| no_names(dataset))?;
                Ok(names.iter().map(|name| Some(name.to_owned())).collect())
            }
            #[cfg(feature = "obs")]
            GeneKey::Id(column) => dataset.gene_ids(column),
        }
    }
}

fn no_names(dataset: &Dataset) -> Error {
    let why = "no names of genes to compare; if the columns are the same in every dataset, match them by number";
    Error::new(ErrorKind::Missing, Part::Genes).in_path(dataset.path()).caused_by(why)
}

fn other_genes(dataset: &Dataset, why: String) -> Error {
    Error::new(ErrorKind::OtherGenes, Part::Genes).in_path(dataset.path()).caused_by(why)
}

impl Collection {
    /// Datasets with the same genes: [`GeneMatch::Same`].
    ///
    /// # Errors
    /// As [`Collection::matching`].
    pub fn new<D: Into<Arc<Dataset>>>(datasets: impl IntoIterator<Item = D>) -> Result<Collection, Error> {
        Collection::matching(datasets, &GeneMatch::Same)
    }

    /// Datasets whose genes are matched. One alone needs no names.
    ///
    /// # Errors
    /// With the path of the dataset, in [`Part::Genes`], with the number of the gene where there is one:
    /// [`ErrorKind::OtherGenes`] for one that does not match; [`ErrorKind::Missing`] for one without names or that
    /// column, or with a gene without an id; [`ErrorKind::Ambiguous`] for a name or id that several of its genes have,
    /// unless all datasets have the same list; what is wrong with a file that is read. [`ErrorKind::Missing`] in
    /// [`Part::Option`] for no datasets at all.
    pub fn matching<D: Into<Arc<Dataset>>>(
        datasets: impl IntoIterator<Item = D>,
        genes: &GeneMatch,
    ) -> Result<Collection, Error> {
        let datasets: Vec<Arc<Dataset>> = datasets.into_iter().map(Into::into).collect();
        let first = datasets.first().ok_or_else(|| Error::new(ErrorKind::Missing, Part::Option("datasets")))?;
        let mut n_genes = first.n_genes();
        let mut union = None;
        let mut maps: Vec<Option<Arc<ColumnMap>>> = vec![None; datasets.len()];
        match genes {
            _ if datasets.len() == 1 => {}
            GeneMatch::Same | GeneMatch::Number => {
                for dataset in &datasets[1..] {
                    same_genes(first, dataset, *genes == GeneMatch::Same)?;
                }
            }
            GeneMatch::First(key) => {
                let keys = key.of(first)?;
                let mut found = None;
                for (dataset, map) in datasets.iter().zip(&mut maps).skip(1) {
                    let own = key.of(dataset)?;
                    if own != keys {
                        let found = match &mut found {
                            Some(found) => found,
                            None => found.insert(distinct(first, &keys)?),
                        };
                        *map = Some(Arc::new(ColumnMap::new(columns_in(found, dataset, &own)?, n_genes)));
                    }
                }
            }
            GeneMatch::Union(key) => {
                let all = datasets.iter().map(|dataset| key.of(dataset)).collect::<Result<Vec<_>, Error>>()?;
                if all.iter().any(|keys| *keys != all[0]) {
                    let (tables, origins) = unite(&datasets, &all)?;
                    n_genes = u32::try_from(origins.len()).unwrap_or(u32::MAX);
                    let map = |table| Some(Arc::new(ColumnMap::new(table, n_genes)));
                    maps = tables.into_iter().map(map).collect();
                    let names = datasets.iter().map(|dataset| dataset.gene_names()).collect::<Result<Vec<_>, _>>()?;
                    let name = |&(n, gene): &Origin| names[n].and_then(|names| names.get(gene as usize));
                    let names = origins.iter().map(name).collect::<Option<Vec<&str>>>().map(VarNames::of);
                    union = Some((origins, names));
                }
            }
        }
        let mut n_cells = 0u64;
        let mut members = Vec::new();
        for (dataset, map) in datasets.into_iter().zip(maps) {
            let first = n_cells;
            n_cells =
                n_cells.checked_add(dataset.n_cells()).filter(|&n| i64::try_from(n).is_ok()).ok_or_else(|| {
                    let found = i128::from(n_cells) + i128::from(dataset.n_cells());
                    Error::new(ErrorKind::OutOfRange { found, min: 0, max: i64::MAX.into() }, Part::Cells)
                })?;
            members.push(Member { dataset, first, map });
        }
        Ok(Collection(Arc::new(Inner { members, n_cells, n_genes, union })))
    }

    /// Cells of all datasets.
    pub fn n_cells(&self) -> u64 {
        self.0.n_cells
    }

    /// Genes (columns).
    pub fn n_genes(&self) -> u32 {
        self.0.n_genes
    }

    /// The datasets, in the order in which they were given.
    pub fn datasets(&self) -> impl ExactSizeIterator<Item = &Dataset> {
        self.0.members.iter().map(|member| &*member.dataset)
    }

    /// Which dataset has a cell, and the cell's number there; `None` if there is no such cell.
    pub fn locate(&self, cell: u64) -> Option<(usize, u64)> {
        if cell >= self.0.n_cells {
            return None;
        }
        let n = self.0.members.partition_point(|member| member.first <= cell) - 1; // the first has number 0
        Some((n, cell - self.0.members[n].first))
    }

    /// The number that the first cell of a dataset has here.
    ///
    /// # Panics
    /// If there is no such dataset.
    pub fn first_cell(&self, dataset: usize) -> u64 {
        self.0.members[dataset].first
    }

    /// The name of each gene, or `None` if a dataset that brings genes does not say.
    ///
    /// # Errors
    /// As [`Dataset::var_names`].
    pub fn gene_names(&self) -> Result<Option<&VarNames>, Error> {
        match &self.0.union {
            Some((_, names)) => Ok(names.as_ref()),
            None => self.0.members[0].dataset.gene_names(),
        }
    }

    /// Finds genes, as [`Dataset::columns`] does. The order of the source is that of the first dataset's; genes of a union
    /// have none.
    ///
    /// # Errors
    /// As [`Dataset::columns`].
    pub fn columns(&self, genes: &Genes) -> Result<GeneColumns, Error> {
        genes.find(self, &self.0.members[0].dataset.limits)
    }

    /// The numbers of the cells for which a mask with an entry for each cell has `true`.
    ///
    /// # Errors
    /// As [`Dataset::cells_of_mask`].
    pub fn cells_of_mask(&self, mask: &[bool]) -> Result<Vec<u64>, Error> {
        cells_of_mask(mask, self.n_cells())
    }

    /// A reader over the cells of all datasets.
    pub fn reader<'a, T: Count>(&'a self, decoder: &'a Decoder) -> Reader<'a, T> {
        let piece =
            |member: &'a Member| Piece { dataset: &member.dataset, first: member.first, map: member.map.clone() };
        Reader::new(self.0.members.iter().map(piece).collect(), self.n_genes(), decoder)
    }
}

impl From<Dataset> for Collection {
    fn from(dataset: Dataset) -> Collection {
        Collection::from(Arc::new(dataset))
    }
}

impl From<Arc<Dataset>> for Collection {
    fn from(dataset: Arc<Dataset>) -> Collection {
        let (n_cells, n_genes) = (dataset.n_cells(), dataset.n_genes());
        let members = vec![Member { dataset, first: 0, map: None }];
        Collection(Arc::new(Inner { members, n_cells, n_genes, union: None }))
    }
}

impl From<&Collection> for Collection {
    fn from(collection: &Collection) -> Collection {
        collection.clone()
    }
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.datasets()).finish()
    }
}

impl GeneAxis for Collection {
    fn n_genes(&self) -> u32 {
        self.0.n_genes
    }

    fn gene_names(&self) -> Result<Option<&VarNames>, Error> {
        Collection::gene_names(self)
    }

    fn source_order(&self) -> Result<Option<&[i32]>, Error> {
        if self.0.union.is_some() { Ok(None) } else { self.0.members[0].dataset.gene_order() }
    }

    #[cfg(feature = "obs")]
    fn gene_ids(&self, column: &str) -> Result<Vec<Option<String>>, Error> {
        let Some((origins, _)) = &self.0.union else { return self.0.members[0].dataset.gene_ids(column) };
        let ids = self.datasets().map(|dataset| dataset.gene_ids(column)).collect::<Result<Vec<_>, Error>>()?;
        Ok(origins.iter().map(|&(n, gene)| ids[n][gene as usize].clone()).collect())
    }

    fn path(&self) -> PathBuf {
        self.0.members[0].dataset.path()
    }
}

/// Passes a dataset with as many genes as the first and, if they are to be compared, the same names.
fn same_genes(first: &Dataset, dataset: &Dataset, names: bool) -> Result<(), Error> {
    let (n, expected) = (dataset.n_genes(), first.n_genes());
    if n != expected {
        return Err(other_genes(dataset, format!("{n} genes where the first has {expected}; match them by name")));
    }
    if !names {
        return Ok(());
    }
    let ours = first.gene_names()?.ok_or_else(|| no_names(first))?;
    let theirs = dataset.gene_names()?.ok_or_else(|| no_names(dataset))?;
    match ours.iter().zip(theirs.iter()).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(gene) => {
            let name = |names: &'_ VarNames| names.get(gene).unwrap_or_default().to_owned();
            let why = format!("{:?} in place of {:?}; match them by name", name(theirs), name(ours));
            Err(other_genes(dataset, why).index(gene as u64))
        }
    }
}

/// The gene of each key; every gene must have one, and no two the same.
fn distinct<'k>(dataset: &Dataset, keys: &'k [Option<String>]) -> Result<HashMap<&'k str, u32>, Error> {
    let mut found = HashMap::new();
    for (gene, key) in (0u32..).zip(keys) {
        let key = key.as_deref().ok_or_else(|| {
            let error = Error::new(ErrorKind::Missing, Part::Genes).in_path(dataset.path());
            error.index(gene.into()).caused_by("the gene has no id; match by name")
        })?;
        if let Some(first) = found.insert(key, gene) {
            return Err(ambiguous(dataset, key, first, gene));
        }
    }
    Ok(found)
}

fn ambiguous(dataset: &Dataset, key: &str, first: u32, second: u32) -> Error {
    let why = format!("{key:?} stands for the genes {first} and {second}; match by a column of ids");
    let error = Error::new(ErrorKind::Ambiguous { found: 2 }, Part::Genes).in_path(dataset.path());
    error.index(second.into()).caused_by(why)
}

/// Where the genes of a dataset go among genes that are known; -1 for those that are not.
fn columns_in(known: &HashMap<&str, u32>, dataset: &Dataset, keys: &[Option<String>]) -> Result<Vec<i32>, Error> {
    let mut taken: HashMap<u32, u32> = HashMap::new();
    let column = |(gene, key): (u32, &Option<String>)| {
        let Some((key, &column)) = key.as_deref().and_then(|key| Some((key, known.get(key)?))) else { return Ok(-1) };
        match taken.insert(column, gene) {
            Some(first) => Err(ambiguous(dataset, key, first, gene)),
            None => Ok(i32::try_from(column).unwrap_or(i32::MAX)), // at most 2^31 genes
        }
    };
    (0u32..).zip(keys).map(column).collect()
}

/// For each dataset where its genes go, and where each of all genes comes from.
type United = (Vec<Vec<i32>>, Vec<Origin>);

/// The genes of the first dataset, then those that each next one brings.
fn unite(datasets: &[Arc<Dataset>], keys: &[Vec<Option<String>>]) -> Result<United, Error> {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut origins: Vec<Origin> = Vec::new();
    let mut tables = Vec::new();
    for (n, (dataset, keys)) in datasets.iter().zip(keys).enumerate() {
        distinct(dataset, keys)?;
        for (gene, key) in (0u32..).zip(keys) {
            let next = u32::try_from(origins.len()).unwrap_or(u32::MAX);
            if let Some(key) = key
                && !known.contains_key(&**key)
            {
                known.insert(key, next);
                origins.push((n, gene));
            }
        }
        let max = 1 << 31;
        if origins.len() as u64 > max {
            let kind = ErrorKind::OutOfRange { found: origins.len() as i128, min: 1, max: max.into() };
            return Err(Error::new(kind, Part::Genes).in_path(dataset.path()));
        }
        tables.push(columns_in(&known, dataset, keys)?);
    }
    Ok((tables, origins))
}
