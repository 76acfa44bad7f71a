//! Feature-barcode matrices of 10x Genomics: one group for all features (Cell Ranger 3 and later, and others in its layout),
//! or a group for each genome (Cell Ranger 2 and earlier).

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch};

use super::file::{Array, Folder, integers};
use super::matrix::Matrix;
use super::table::{Budget, Table, column, left_out};
use super::{Opened, list};
use crate::{Error, ErrorKind, InputOptions, Result, RowBlock, Values};

/// The only matrix of a file in the newer layout, and its group.
pub(super) const SLOT: &str = "matrix";

/// Whether a group holds a matrix.
pub(super) fn is_matrix(folder: &Folder) -> Result<bool> {
    for name in ["barcodes", "data", "indices", "indptr", "shape"] {
        if folder.array(name)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The genomes of a file in the older layout.
pub(super) fn genomes(root: &Folder) -> Result<Vec<String>> {
    let mut genomes = Vec::new();
    for name in root.names()?.0 {
        if let Some(folder) = root.folder(&name)?
            && is_matrix(&folder)?
        {
            genomes.push(name);
        }
    }
    Ok(genomes)
}

/// Where a file keeps what it says of its features.
struct Features {
    /// Their names.
    names: Array,
    /// Further columns, as scanpy calls them.
    columns: Vec<(String, Array)>,
    /// Their types.
    types: Option<Array>,
}

impl Features {
    fn open(folder: &Folder) -> Result<Features> {
        let Some(features) = folder.folder("features")? else {
            // The older layout, whose genes have no types.
            let columns = vec![("gene_ids".to_owned(), folder.need("genes")?)];
            return Ok(Features { names: folder.need("gene_names")?, columns, types: None });
        };
        let names = features.need("name")?;
        let types = features.array("feature_type")?;
        let mut columns = vec![("gene_ids".to_owned(), features.need("id")?)];
        columns.extend(types.clone().map(|types| ("feature_types".to_owned(), types)));
        for name in features.names()?.1 {
            // Names of tags begin with a line: they are about the file.
            if !["id", "name", "feature_type"].contains(&name.as_str()) && !name.starts_with('_') {
                columns.push((name.clone(), features.need(&name)?));
            }
        }
        Ok(Features { names, columns, types })
    }

    fn check(&self, n_genes: u64) -> Result<()> {
        for array in self.columns.iter().map(|(_, array)| array).chain([&self.names]) {
            let length = array.length()?;
            if length != n_genes {
                let message = format!("it has {length} entries, but the matrix has {n_genes} features");
                return Err(array.error(ErrorKind::Inconsistent, message));
            }
        }
        Ok(())
    }

    fn table(&self, n_genes: u64, budget: &mut Budget, notes: &mut Vec<String>) -> Result<RecordBatch> {
        let mut table = Table::new(n_genes, "_index", &texts(&self.names, budget)?)?;
        for (name, array) in &self.columns {
            match column(array, budget)? {
                Some(values) => table.push(name, values)?,
                None => notes.push(left_out("feature", name, array)),
            }
        }
        table.finish("feature", notes)
    }
}

fn texts(array: &Array, budget: &mut Budget) -> Result<ArrayRef> {
    column(array, budget)?.ok_or_else(|| array.error(ErrorKind::WrongType, "names are needed here"))
}

pub(super) fn open(root: &Folder, slot: &str, options: &InputOptions) -> Result<Opened> {
    let folder = root.folder(slot)?.ok_or_else(|| {
        let message = "there is no such matrix in the file";
        Error::new(ErrorKind::Missing, message).in_part(slot)
    })?;
    let shape = folder.need("shape")?;
    let (n_genes, n_cells) = match integers::<u64>(&shape.part(0..shape.length()?.min(3)))?[..] {
        [genes, cells] => (genes, cells),
        _ => return Err(shape.error(ErrorKind::WrongType, "it should be two numbers: features and barcodes")),
    };
    // A column of features for each barcode: a row for each cell.
    let matrix = Matrix::compressed(&folder, n_cells, n_genes, None)?;
    let barcodes = folder.need("barcodes")?;
    if barcodes.length()? != n_cells {
        let message = format!("it has {} entries, but the matrix has {n_cells} barcodes", barcodes.length()?);
        return Err(barcodes.error(ErrorKind::Inconsistent, message));
    }
    let features = Features::open(&folder)?;
    features.check(n_genes)?;
    let mut notes = Vec::new();
    let kept = match (&features.types, &options.feature_type) {
        (Some(types), wanted) => {
            choose(types, wanted.as_deref(), &mut Budget::new(options.memory.max(64 << 20)), &mut notes)?
        }
        (None, Some(wanted)) => {
            let message = format!("its features have no types, so that none is {wanted:?}");
            return Err(Error::new(ErrorKind::Missing, message).in_part(slot));
        }
        (None, None) => None,
    };
    let keep: Option<BooleanArray> =
        kept.as_ref().map(|kept: &Vec<Option<u32>>| kept.iter().map(|kept| Some(kept.is_some())).collect());
    Ok(Opened {
        matrix,
        obs: Box::new(move |budget, notes| {
            Table::new(n_cells, "barcode", &texts(&barcodes, budget)?)?.finish("barcodes", notes)
        }),
        var: Box::new(move |budget, notes| {
            let table = features.table(n_genes, budget, notes)?;
            let Some(keep) = &keep else { return Ok(table) };
            let kept = arrow_select::filter::filter_record_batch(&table, keep);
            kept.map_err(|error| Error::new(ErrorKind::Inconsistent, error.to_string()))
        }),
        kept,
        notes,
    })
}

/// The number of each feature among those of the type that is wanted, if not all are kept; notes what is left out, or that
/// several types are kept.
fn choose(
    types: &Array,
    wanted: Option<&str>,
    budget: &mut Budget,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<Option<u32>>>> {
    let found = texts(types, budget)?;
    let Some(found) = found.as_string_opt::<i32>() else {
        return Err(types.error(ErrorKind::WrongType, "the types of features should be texts"));
    };
    budget.take(found.len(), size_of::<Option<u32>>())?;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for kind in found.iter().flatten() {
        match counts.iter().position(|(known, _)| known == kind) {
            Some(at) => counts[at].1 += 1,
            None if counts.len() < 64 => counts.push((kind.to_owned(), 1)),
            None => return Err(types.error(ErrorKind::Unsupported, "the features are of more than 64 types")),
        }
    }
    let several: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} of type {kind:?}")).collect();
    let Some(wanted) = wanted else {
        if several.len() > 1 {
            notes.push(format!("features of all types are kept: {}; --feature-type chooses one", list(&several)));
        }
        return Ok(None);
    };
    let mut number = 0..;
    let kept: Vec<Option<u32>> =
        found.iter().map(|kind| if kind == Some(wanted) { number.next() } else { None }).collect();
    let left = kept.iter().filter(|kept| kept.is_none()).count();
    if left == kept.len() {
        let message = format!("no feature is of the type {wanted:?}; there are {}", list(&several));
        return Err(types.error(ErrorKind::Missing, message));
    }
    if left == 0 {
        return Ok(None);
    }
    notes.push(format!("{left} features of other types than {wanted:?} are left out"));
    Ok(Some(kept))
}

/// A block without the features that are not kept.
pub(super) fn keep(block: RowBlock, kept: &[Option<u32>]) -> RowBlock {
    let number = |gene: u32| kept.get(gene as usize).copied().flatten();
    let stays: Vec<bool> = block.indices.iter().map(|&gene| number(gene).is_some()).collect();
    let mut bounds = block.indptr.iter().peekable();
    let mut indptr = Vec::with_capacity(block.indptr.len());
    let mut count = 0;
    for (at, &stays) in (0_i64..).zip(&stays) {
        while bounds.next_if(|&&bound| bound <= at).is_some() {
            indptr.push(count);
        }
        count += i64::from(stays);
    }
    indptr.extend(bounds.map(|_| count));
    RowBlock {
        first_cell: block.first_cell,
        indptr,
        indices: block.indices.iter().filter_map(|&gene| number(gene)).collect(),
        values: match block.values {
            Values::I64(values) => Values::I64(only(values, &stays)),
            Values::U64(values) => Values::U64(only(values, &stays)),
            Values::F32(values) => Values::F32(only(values, &stays)),
            Values::F64(values) => Values::F64(only(values, &stays)),
        },
    }
}

fn only<T>(values: Vec<T>, stays: &[bool]) -> Vec<T> {
    values.into_iter().zip(stays).filter_map(|(value, &stays)| stays.then_some(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_are_kept_are_renumbered() {
        let block = RowBlock {
            first_cell: 3,
            indptr: vec![0, 0, 2, 3, 3, 5],
            indices: vec![0, 2, 1, 2, 0],
            values: Values::I64(vec![1, 2, 3, 4, 5]),
        };
        let found = keep(block, &[Some(0), None, Some(1)]);
        assert_eq!((&found.indptr[..], &found.indices[..]), (&[0, 0, 2, 2, 2, 4][..], &[0, 1, 1, 0][..]));
        assert_eq!((found.first_cell, found.values), (3, Values::I64(vec![1, 2, 4, 5])));
        let empty = RowBlock { first_cell: 0, indptr: vec![0, 0], indices: vec![], values: Values::F32(vec![]) };
        assert_eq!(keep(empty.clone(), &[None]), empty);
    }
}
