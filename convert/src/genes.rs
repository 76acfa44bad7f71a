//! The genes of several inputs as those of one dataset, and their order.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use arrow_select::concat::concat_batches;
use tilekern::deltacel::dataset::obs::{Value, getter};

use crate::{Error, ErrorKind, Input, Result, table};

/// Genes of a dataset, at most.
const MAX_GENES: u64 = 1 << 31;

/// Inputs with less than the `FEW`th part of their genes in common are likely named in different ways.
const FEW: usize = 10;

/// The column of a table of genes that holds ids, where the index holds names.
const IDS: &str = "gene_ids";

/// By what genes of several inputs are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchGenes {
    /// The index of the table of genes.
    Name,
    /// Its column `gene_ids`.
    Id,
}

/// In what order genes stand in the dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GeneOrder {
    /// By decreasing total, the smallest result; the source's order where totals are equal.
    #[default]
    Total,
    /// As in the source.
    Source,
    /// As a text file lists their names, or their ids: one a line, each gene once.
    File(PathBuf),
    /// The source's column of each gene of the dataset.
    Columns(Vec<u32>),
}

/// The genes of all inputs, in the source's order.
pub struct Genes {
    /// A row for each.
    pub var: RecordBatch,
    /// For each input, which of them each of its genes is.
    pub columns: Vec<Vec<u32>>,
    pub notes: Vec<String>,
}

impl Genes {
    /// How many; 1 to 2^31.
    pub fn count(&self) -> usize {
        self.var.num_rows()
    }

    /// The genes of all inputs: the same in each, or matched.
    ///
    /// # Errors
    /// Inputs with different genes, names that are there twice where they are to be matched.
    pub fn of(inputs: &mut [Box<dyn Input>], by: Option<MatchGenes>) -> Result<Genes> {
        for input in &*inputs {
            let n = input.n_genes();
            if !(1..=MAX_GENES).contains(&n) {
                let message = format!("{n} genes; a dataset has 1 to {MAX_GENES}");
                return Err(Error::new(ErrorKind::OutOfRange, message).in_part(input.slot()).in_path(input.path()));
            }
        }
        let tables = inputs.iter_mut().map(|input| var(&mut **input)).collect::<Result<Vec<_>>>()?;
        let mut genes = match by {
            Some(by) => matched(inputs, tables, by),
            None => same(inputs, tables),
        }?;
        genes.notes.extend(without_text(&genes.var));
        Ok(genes)
    }

    /// For each gene of the dataset the source's column.
    ///
    /// # Errors
    /// A file that cannot be read, or does not name each gene once.
    pub fn order(&self, wanted: &GeneOrder, totals: &[u64]) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..=u32::MAX).take(self.count()).collect();
        match wanted {
            GeneOrder::Source => {}
            GeneOrder::Total => order.sort_by_key(|&gene| std::cmp::Reverse(totals[gene as usize])),
            GeneOrder::File(path) => order = self.listed(path)?,
            GeneOrder::Columns(columns) => {
                let mut sorted = columns.clone();
                sorted.sort_unstable();
                if sorted != order {
                    let message = format!("is not an order of {} genes", order.len());
                    return Err(Error::new(ErrorKind::Inconsistent, message).in_part("order of genes"));
                }
                order.clone_from(columns);
            }
        }
        Ok(order)
    }

    fn listed(&self, path: &Path) -> Result<Vec<u32>> {
        let text = fs::read_to_string(path).map_err(|error| Error::io(error, path))?;
        let lines: Vec<&str> = text.lines().collect();
        let fault = |message: String| Error::new(ErrorKind::Inconsistent, message).in_path(path);
        let known = [Ok(names(&self.var)?), ids(&self.var).map(|ids| ids.unwrap_or_default())];
        let mut why = None;
        for genes in known {
            let genes = genes?;
            // A name that several genes have stands for them one after the other.
            let mut places: HashMap<&str, std::collections::VecDeque<u32>> = HashMap::new();
            for (gene, name) in (0..).zip(&genes) {
                places.entry(name).or_default().push_back(gene);
            }
            let take = |(n, line): (usize, &&str)| {
                let next = places.get_mut(*line).and_then(std::collections::VecDeque::pop_front);
                next.ok_or_else(|| fault(format!("line {}: {line:?} is no gene, or one too many", n + 1)))
            };
            match lines.iter().enumerate().map(take).collect::<Result<Vec<u32>>>() {
                Ok(order) if order.len() == self.count() => return Ok(order),
                Ok(order) => {
                    let (found, expected) = (order.len(), self.count());
                    why = Some(fault(format!("names {found} genes of {expected}; add the others")));
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        Err(why.unwrap_or_else(|| fault("no gene".to_owned())))
    }
}

fn var(input: &mut dyn Input) -> Result<RecordBatch> {
    let place = |error: Error, path: &Path| error.in_part("genes").in_path(path);
    let path = input.path().to_owned();
    let table = input.var().map_err(|error| place(error, &path))?;
    if table.num_columns() == 0 || table.num_rows() as u64 != input.n_genes() {
        let message = format!("the table has {} rows for {} genes", table.num_rows(), input.n_genes());
        return Err(place(Error::new(ErrorKind::Inconsistent, message), &path));
    }
    let names = names(&table).map_err(|error| place(error, &path))?;
    if let Some(gene) = names.iter().position(|name| name.contains(['\n', '\r'])) {
        let name = &names[gene];
        let message = format!("gene {gene} is called {name:?}, with a line break, which a list of names cannot hold");
        let advice = "rename it in the input";
        return Err(place(Error::new(ErrorKind::Unsupported, message).hint(advice), &path));
    }
    Ok(table)
}

/// The texts of a column.
pub fn texts(column: &dyn Array) -> Result<Vec<String>> {
    let wrong = || Error::new(ErrorKind::WrongType, format!("names of the type {}", column.data_type()));
    let get = getter(column).ok_or_else(wrong)?;
    let text = |row| match get(row) {
        Value::String(text) => Ok(text.to_owned()),
        Value::Null => Ok(String::new()),
        value => value.to_category().map(|category| category.to_string()).ok_or_else(wrong),
    };
    (0..column.len()).map(text).collect()
}

/// The index of a table.
pub fn names(table: &RecordBatch) -> Result<Vec<String>> {
    texts(table.column(0))
}

fn ids(table: &RecordBatch) -> Result<Option<Vec<String>>> {
    table.column_by_name(IDS).map(|column| texts(column)).transpose()
}

/// All inputs have the genes of the first one.
fn same(inputs: &[Box<dyn Input>], tables: Vec<RecordBatch>) -> Result<Genes> {
    let mut tables = tables.into_iter();
    let Some(first) = tables.next() else {
        return Err(Error::new(ErrorKind::Missing, "no input"));
    };
    let (first_names, first_ids) = (names(&first)?, ids(&first)?);
    for (input, table) in inputs[1..].iter().zip(tables) {
        let advice = "genes of inputs must be the same in the same order, or say how to match them: --match-genes";
        let refuse = |message: String| {
            Err(Error::new(ErrorKind::Inconsistent, message).hint(advice).in_part("genes").in_path(input.path()))
        };
        let before = inputs[0].path().display();
        if table.num_rows() != first.num_rows() {
            return refuse(format!("{} genes, but {} in {before}", table.num_rows(), first.num_rows()));
        }
        let both = first_ids.as_ref().zip(ids(&table)?);
        for (a, b) in [(&first_names, names(&table)?)].into_iter().chain(both) {
            if let Some(gene) = (0..a.len()).find(|&gene| a[gene] != b[gene]) {
                return refuse(format!("gene {gene} is {:?}, but {:?} in {before}", b[gene], a[gene]));
            }
        }
    }
    let columns = vec![(0..=u32::MAX).take(first.num_rows()).collect(); inputs.len()];
    Ok(Genes { var: first, columns, notes: Vec::new() })
}

/// The genes of all inputs in the order in which they are first seen.
fn matched(inputs: &[Box<dyn Input>], tables: Vec<RecordBatch>, by: MatchGenes) -> Result<Genes> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut columns = Vec::new();
    let mut parts: Vec<RecordBatch> = Vec::new();
    let mut notes = Vec::new();
    let mut first: Option<(PathBuf, String)> = None;
    for (input, table) in inputs.iter().zip(&tables) {
        let fault = |kind, message: String| Error::new(kind, message).in_part("genes").in_path(input.path());
        let keys = match by {
            MatchGenes::Name => names(table)?,
            MatchGenes::Id => ids(table)?.ok_or_else(|| {
                fault(ErrorKind::Missing, format!("the table of genes has no column {IDS}; match them by name"))
            })?,
        };
        let mut mine: HashMap<&str, usize> = HashMap::new();
        let (mut of_input, mut new) = (Vec::new(), Vec::new());
        for (gene, key) in keys.iter().enumerate() {
            if let Some(first) = mine.insert(key, gene) {
                let other = if by == MatchGenes::Name { "; match them by id" } else { "" };
                let message = format!("genes {first} and {gene} are both {key:?}{other}");
                return Err(fault(ErrorKind::Ambiguous, message));
            }
            let next = u32::try_from(seen.len()).unwrap_or(u32::MAX);
            of_input.push(*seen.entry(key.clone()).or_insert_with(|| {
                new.push(u32::try_from(gene).unwrap_or(u32::MAX));
                next
            }));
        }
        if seen.len() as u64 > MAX_GENES {
            return Err(fault(ErrorKind::OutOfRange, format!("more than {MAX_GENES} genes with those before")));
        }
        if let Some((first_path, first_key)) = &first {
            let (common, fewer) = (keys.len() - new.len(), keys.len().min(seen.len() - new.len()));
            let path = input.path().display();
            if common == 0 {
                let other = match by {
                    MatchGenes::Name => "match them by id, if both have ids",
                    MatchGenes::Id => "match them by name",
                };
                let message = format!(
                    "no gene in common with the inputs before it: {:?} is the first here, {first_key:?} in {}; {other}, \
                     or convert it alone",
                    keys[0],
                    first_path.display()
                );
                return Err(fault(ErrorKind::Inconsistent, message));
            }
            if common < fewer.div_ceil(FEW) {
                let n = keys.len();
                notes.push(format!("{path} has only {common} of its {n} genes in common with the inputs before it"));
            }
        } else {
            first = Some((input.path().to_owned(), keys[0].clone()));
        }
        columns.push(of_input);
        parts.push(table::take(table, &new)?);
    }
    for (input, of_input) in inputs.iter().zip(&columns) {
        let absent = seen.len() - of_input.len();
        if absent > 0 {
            let path = input.path().display();
            notes.push(format!("{path} lacks {absent} genes of other inputs: its cells have no counts of them"));
        }
    }
    // Columns of the table that every input has with the same type; the index has the name of the first one's.
    let common: Vec<usize> = (0..parts[0].num_columns())
        .filter(|&n| {
            let schema = parts[0].schema();
            let field = schema.field(n);
            let has = |part: &RecordBatch| {
                let found = if n == 0 { Some(part.column(0)) } else { part.column_by_name(field.name()) };
                found.is_some_and(|column| same_type(column.data_type(), field.data_type()))
            };
            parts.iter().all(has)
        })
        .collect();
    if common.first() != Some(&0) {
        return Err(Error::new(ErrorKind::WrongType, "the names of genes are of several types").in_part("genes"));
    }
    let left_out: Vec<_> = (0..parts[0].num_columns()).filter(|n| !common.contains(n)).collect();
    if !left_out.is_empty() {
        let schema = parts[0].schema();
        let list = left_out.iter().map(|&n| schema.field(n).name().as_str()).collect::<Vec<_>>().join(", ");
        notes.push(format!("columns of genes that not all inputs have are not converted: {list}"));
    }
    let schema = parts[0].schema().project(&common).map_err(table::fault)?;
    let (mut fields, mut united) = (Vec::new(), vec![Vec::new(); parts.len()]);
    for (n, field) in schema.fields().iter().enumerate() {
        let of = |part: &'_ RecordBatch| part.column_by_name(field.name()).filter(|_| n > 0).cloned();
        let mut found: Vec<ArrayRef> =
            parts.iter().map(|part| of(part).unwrap_or_else(|| part.column(0).clone())).collect();
        let mut field = field.as_ref().clone().with_nullable(true);
        if matches!(field.data_type(), DataType::Dictionary(..)) {
            let (columns, same) = table::unite_categories(&found.iter().collect::<Vec<_>>())?;
            let ordered = |part: &RecordBatch| {
                part.schema().field_with_name(field.name()).is_ok_and(|field| field.dict_is_ordered() == Some(true))
            };
            let ordered: Vec<bool> = parts.iter().map(ordered).collect();
            let all = same && !ordered.contains(&false);
            if !all && ordered.contains(&true) {
                let name = field.name();
                notes.push(format!(
                    "categories of genes {name:?} are ordered, but not alike in all inputs: they lose that"
                ));
            }
            field = field.with_data_type(columns[0].data_type().clone()).with_dict_is_ordered(all);
            found = columns;
        }
        fields.push(field);
        united.iter_mut().zip(found).for_each(|(part, column)| part.push(column));
    }
    let schema = Arc::new(Schema::new(fields).with_metadata(schema.metadata));
    let parts = united.into_iter().map(|columns| RecordBatch::try_new(schema.clone(), columns).map_err(table::fault));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let var = concat_batches(&schema, &parts).map_err(table::fault)?;
    Ok(Genes { var, columns, notes })
}

/// Whether columns can become one. How wide the keys of categories are does not matter.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Dictionary(_, a), DataType::Dictionary(_, b)) => a == b,
        _ => a == b,
    }
}

/// Of columns whose categories are no text, which come back as plain values.
fn without_text(var: &RecordBatch) -> Option<String> {
    let schema = var.schema_ref();
    let is_other = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => !table::is_text(values),
        _ => false,
    };
    let names = schema.fields().iter().filter(|field| is_other(field.data_type()));
    let names: Vec<String> = names.map(|field| format!("{:?}", field.name())).collect();
    let message = "categories of genes that are no text are kept as plain values, without their list";
    (!names.is_empty()).then(|| format!("{message}: {}", names.join(", ")))
}
