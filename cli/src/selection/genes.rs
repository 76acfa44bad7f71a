//! The genes that were asked for, as columns of the results.

use std::path::Path;

use arrow_schema::DataType;
use tilekern::deltacel::dataset::{Dataset, GeneColumns, GeneOrder, Genes};
use tilekern::{Error, ErrorKind, Limits};

use super::Choice;
use super::numbers::Numbers;
use crate::fault::{Fault, Stop};
use crate::source::Source;

/// The columns asked for; `None` for the stored ones as they are.
pub fn chosen(source: &Source, choice: &Choice, limits: &Limits) -> Result<Option<GeneColumns>, Stop> {
    let order = choice.columns.into();
    if choice.genes.is_empty() && choice.genes_file.is_none() && order == GeneOrder::Given {
        return Ok(None);
    }
    let Some(dataset) = source.dataset() else {
        let why = "is a tile, which does not say what its genes are: choose genes, or their order, of a dataset";
        return Err(Fault::new("unsupported", source.path(), why).into());
    };
    let found = match &choice.genes_file {
        _ if !choice.genes.is_empty() => named(dataset, &choice.genes, order).map_err(in_path(source.path())),
        None => dataset.columns(&Genes::all().order(order)).map_err(in_path(source.path())),
        Some(file) => match Numbers::read(file, limits)? {
            Numbers::Flags(mask) => dataset.columns(&Genes::mask(mask).order(order)),
            Numbers::List(list) => {
                // What is no number of 32 bits is none of a gene.
                let list: Vec<u32> = list.into_iter().map(|gene| u32::try_from(gene).unwrap_or(u32::MAX)).collect();
                dataset.columns(&Genes::indices(list).order(order))
            }
            Numbers::Text(text) => {
                let lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
                if lines.is_empty() {
                    return Err(Fault::new("missing", file, "names no gene; write one on each line").into());
                }
                named(dataset, &lines, order)
            }
        }
        .map_err(in_path(file)),
    };
    Ok(Some(found?))
}

fn in_path(path: &Path) -> impl Fn(Error) -> Fault {
    move |error| Fault::of(error, path)
}

/// Genes that are all given by name, or all by an id, or all by number.
fn named(dataset: &Dataset, wanted: &[String], order: GeneOrder) -> Result<GeneColumns, Error> {
    let unknown = match dataset.columns(&Genes::names(wanted).order(order)) {
        Err(error) if error.kind() == ErrorKind::Missing => error,
        found => return found,
    };
    if let Some(table) = dataset.var()? {
        let text =
            |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        for field in table.schema().fields().iter().filter(|field| text(field.data_type())) {
            match dataset.columns(&Genes::ids(field.name(), wanted).order(order)) {
                Err(error) if error.kind() == ErrorKind::Missing => {}
                found => return found,
            }
        }
    }
    match wanted.iter().map(|word| word.parse()).collect::<Result<Vec<u32>, _>>() {
        Ok(numbers) => dataset.columns(&Genes::indices(numbers).order(order)),
        Err(_) => Err(unknown),
    }
}
