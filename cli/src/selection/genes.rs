//! The genes that were asked for, as columns of the results.

use std::collections::HashMap;
use std::path::Path;

use arrow_array::Array;
use tilekern::Limits;
use tilekern::deltacel::dataset::obs::{Value, getter};

use super::numbers::{Numbers, flags};
use super::{Choice, Order};
use crate::fault::{Fault, Stop};
use crate::source::Source;

/// Columns that are not the stored ones as they are.
#[derive(Debug)]
pub struct Columns {
    /// The stored gene that each is.
    stored: Vec<u32>,
    /// The column of each stored gene; [`DROPPED`] for one that is left out.
    column: Vec<u32>,
    /// Whether they stand in the order of the stored genes, and so the genes of a row need no sorting.
    in_order: bool,
}

const DROPPED: u32 = u32::MAX;

impl Columns {
    /// The columns asked for; `None` for the stored ones as they are.
    pub(super) fn chosen(
        source: &Source,
        choice: &Choice,
        n_genes: u32,
        limits: &Limits,
    ) -> Result<Option<Columns>, Stop> {
        let subset = match &choice.genes_file {
            _ if !choice.genes.is_empty() => Some(named(source, &choice.genes, n_genes, source.path())?),
            None => None,
            Some(file) => Some(match Numbers::read(file, limits)? {
                Numbers::Flags(marks) => {
                    let marked = flags(&marks, n_genes.into(), "genes", file)?;
                    marked.filter_map(|gene| u32::try_from(gene).ok()).collect()
                }
                Numbers::List(list) => {
                    let gene = |gene: u64| u32::try_from(gene).ok().filter(|&gene| gene < n_genes);
                    let checked = |number| gene(number).ok_or_else(|| no_gene(file, &number.to_string(), n_genes));
                    list.into_iter().map(checked).collect::<Result<_, _>>()?
                }
                Numbers::Text(text) => {
                    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
                    named(source, &lines, n_genes, file)?
                }
            }),
        };
        if subset.is_none() && choice.columns == Order::Output {
            return Ok(None);
        }
        let needed = u64::from(n_genes) * 8;
        if needed > limits.max_output_bytes {
            let message = format!(
                "a choice of columns needs {needed} bytes, the limit is {}; raise --max-output if you trust the source",
                limits.max_output_bytes
            );
            return Err(Fault::new("limit_exceeded", source.path(), message).into());
        }
        let mut stored = subset.unwrap_or_else(|| (0..n_genes).collect());
        match choice.columns {
            Order::Output => stored.sort_unstable(),
            Order::Source => {
                let order = order(source)?;
                stored.sort_unstable_by_key(|&gene| order[gene as usize]);
            }
        }
        let mut column = vec![DROPPED; n_genes as usize];
        for (n, &gene) in (0..).zip(&stored) {
            if std::mem::replace(&mut column[gene as usize], n) != DROPPED {
                let message = format!("gene {gene} (numbered from 0) was asked for twice");
                return Err(Fault::new("repeated", source.path(), message).into());
            }
        }
        let in_order = stored.is_sorted();
        Ok(Some(Columns { stored, column, in_order }))
    }

    pub fn len(&self) -> u32 {
        u32::try_from(self.stored.len()).unwrap_or(u32::MAX) // at most as many as are stored
    }

    pub fn stored(&self, column: u32) -> u32 {
        self.stored[column as usize]
    }

    /// Whether every stored gene is among them.
    pub(super) fn keeps_all(&self) -> bool {
        self.stored.len() == self.column.len()
    }

    /// Adds a row as these columns have it. Without counts it is one of genes alone.
    pub(super) fn put(
        &self,
        genes: &[i32],
        counts: &[i32],
        row: &mut Vec<u64>,
        indices: &mut Vec<i32>,
        values: &mut Vec<i32>,
    ) {
        let column = |gene: i32| self.column[gene.unsigned_abs() as usize];
        let counted = !counts.is_empty();
        let count = |n: usize| if counted { counts[n].cast_unsigned() } else { 0 };
        let kept = genes.iter().enumerate().map(|(n, &gene)| (column(gene), n)).filter(|pair| pair.0 != DROPPED);
        row.clear();
        row.extend(kept.map(|(column, n)| u64::from(column) << 32 | u64::from(count(n))));
        if !self.in_order {
            row.sort_unstable();
        }
        // Each half of the 64 bits is one of 32 again.
        indices.extend(row.iter().map(|&pair| i32::try_from(pair >> 32).unwrap_or(i32::MAX)));
        if counted {
            values.extend(row.iter().map(|&pair| i32::try_from(pair & u64::from(u32::MAX)).unwrap_or(i32::MAX)));
        }
    }
}

/// The source's column of each stored gene.
fn order(source: &Source) -> Result<&[i32], Stop> {
    let order = match source.dataset() {
        Some(dataset) => dataset.gene_order()?,
        None => None,
    };
    let why = "does not say which column of the source each gene was (it has no gene_order.npy): leave --columns out";
    Ok(order.ok_or_else(|| Fault::new("unsupported", source.path(), why))?)
}

fn no_gene(path: &Path, name: &str, n_genes: u32) -> Fault {
    let message = format!("no gene {name:?}; there are {n_genes}, numbered from 0: give names, ids or numbers");
    Fault::new("missing", path, message)
}

/// The stored genes of names, ids or numbers. `path` is where they come from.
fn named<S: AsRef<str>>(source: &Source, wanted: &[S], n_genes: u32, path: &Path) -> Result<Vec<u32>, Stop> {
    let mut found: HashMap<&str, Vec<u32>> = wanted.iter().map(|name| (name.as_ref(), Vec::new())).collect();
    if let Some(dataset) = source.dataset() {
        if let Some(names) = dataset.var_names()? {
            note(&mut found, names.iter().map(Some));
        }
        // What is no name may be an id, in the table of genes.
        if found.values().any(Vec::is_empty)
            && let Some(table) = dataset.var()?
        {
            found.retain(|_, genes| !genes.is_empty());
            let names: Vec<&str> = found.keys().copied().collect();
            let mut ids: HashMap<&str, Vec<u32>> =
                wanted.iter().map(|id| (id.as_ref(), Vec::new())).filter(|(id, _)| !names.contains(id)).collect();
            for column in table.columns() {
                let Some(get) = getter(&**column) else { continue };
                let text = |row| if let Value::String(text) = get(row) { Some(text) } else { None };
                note(&mut ids, (0..column.len()).map(text));
            }
            for genes in ids.values_mut() {
                genes.sort_unstable();
                genes.dedup();
            }
            found.extend(ids);
        }
    }
    let gene = |name: &S| {
        let name = name.as_ref();
        match found.get(name).map_or(&[][..], Vec::as_slice) {
            [gene] => Ok(*gene),
            [] => match name.parse::<u32>() {
                Ok(number) if number < n_genes => Ok(number),
                _ => Err(no_gene(path, name, n_genes)),
            },
            several => {
                let numbers: Vec<_> = several.iter().take(10).map(u32::to_string).collect();
                let message =
                    format!("{name:?} names several genes: take one by its number, of {}", numbers.join(", "));
                Err(Fault::new("ambiguous", path, message))
            }
        }
    };
    Ok(wanted.iter().map(gene).collect::<Result<_, _>>()?)
}

/// Notes which genes have the names that are looked for.
fn note<'a>(found: &mut HashMap<&str, Vec<u32>>, names: impl Iterator<Item = Option<&'a str>>) {
    for (gene, name) in (0..).zip(names) {
        if let Some(genes) = name.and_then(|name| found.get_mut(name)) {
            genes.push(gene);
        }
    }
}
