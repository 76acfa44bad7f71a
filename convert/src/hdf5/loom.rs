//! loom: a dense matrix of genes x cells with lists of attributes of both.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use hdf5_reader::Datatype;

use super::Opened;
use super::file::{Array, Folder};
use super::matrix::Matrix;
use super::table::{Budget, Table, column, left_out};
use crate::{Error, ErrorKind, InputOptions, Result};

/// The names of its matrices.
pub(super) fn slots(root: &Folder) -> Result<Vec<String>> {
    let mut slots = vec!["matrix".to_owned()];
    if let Some(layers) = root.folder("layers")? {
        slots.extend(layers.names()?.1.iter().map(|name| format!("layers/{name}")));
    }
    Ok(slots)
}

pub(super) fn open(root: &Folder, slot: &str, _: &InputOptions) -> Result<Opened> {
    let absent = || Error::new(ErrorKind::Missing, "there is no such matrix").in_part(slot);
    let array = match slot.strip_prefix("layers/") {
        None => root.need(slot)?,
        Some(name) => root.folder("layers")?.ok_or_else(absent)?.need(name)?,
    };
    let matrix = Matrix::dense(array, true)?;
    let (n_cells, n_genes) = (matrix.n_cells, matrix.n_genes);
    let attributes = |name: &str| root.folder(name)?.ok_or_else(|| absent().in_part(name));
    let (cells, genes) = (attributes("col_attrs")?, attributes("row_attrs")?);
    Ok(Opened {
        matrix,
        obs: Box::new(move |budget, notes| table(&cells, n_cells, &["CellID", "obs_names"], &[], budget, notes)),
        var: Box::new(move |budget, notes| {
            let renamed = [("Accession", "gene_ids")];
            table(&genes, n_genes, &["Gene", "var_names"], &renamed, budget, notes)
        }),
        kept: None,
        notes: Vec::new(),
    })
}

/// The table of the attributes in `folder`. The first of `indexes` that there is names the rows; without any, numbers do.
fn table(
    folder: &Folder,
    rows: u64,
    indexes: &[&str],
    renamed: &[(&str, &str)],
    budget: &mut Budget,
    notes: &mut Vec<String>,
) -> Result<RecordBatch> {
    let (_, names) = folder.names()?;
    let index = indexes.iter().find(|index| names.iter().any(|name| name == *index));
    let mut table = match index {
        Some(index) => {
            let array = folder.need(index)?;
            let names = list(&array, budget)?;
            let names = names.ok_or_else(|| array.error(ErrorKind::WrongType, "names are needed here"))?;
            Table::new(rows, index, &names).map_err(|error| error.in_part(folder.name.as_str()))?
        }
        None => {
            notes.push(format!("{} has no {}: rows are named by their numbers", folder.name, indexes[0]));
            Table::numbered(rows, budget)?
        }
    };
    for name in names.iter().filter(|name| index.is_none_or(|index| name != index)) {
        let array = folder.need(name)?;
        let known = renamed.iter().find(|(from, _)| from == name);
        match list(&array, budget)? {
            Some(values) => {
                let pushed = table.push(known.map_or(name, |(_, to)| to), values);
                pushed.map_err(|error| error.in_part(folder.name.as_str()))?;
            }
            None => notes.push(left_out(&folder.name, name, &array)),
        }
    }
    table.finish(&folder.name, notes)
}

/// A list of values. Texts of fixed size, of loom 2 and earlier, are ASCII in which XML entities stand for the rest.
fn list(array: &Array, budget: &mut Budget) -> Result<Option<ArrayRef>> {
    let found = column(array, budget)?;
    let escaped = matches!(array.dtype(), Datatype::String { .. });
    Ok(found.map(|values| match values.data_type() {
        DataType::Utf8 if escaped => {
            let texts = values.as_string::<i32>().iter().map(|text| text.map(unescape));
            Arc::new(texts.collect::<StringArray>())
        }
        _ => values,
    }))
}

/// A text with characters for its XML entities; what is none stays.
fn unescape(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest is &#1114111;
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((entity(&rest[1..end])?, end)));
        match entity {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities() {
        assert_eq!(
            unescape("a &lt; b &amp;&amp; c &#228;&#xe4; &nbsp; & x; &#1114112;"),
            "a < b && c ää &nbsp; & x; &#1114112;"
        );
        assert_eq!(unescape("&amp;lt;"), "&lt;");
    }
}
