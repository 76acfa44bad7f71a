//! What verbs do with Parquet files: a file for each verb. The library reads the format.

pub mod decode;
pub mod html;
pub mod info;
pub mod nested;
pub mod pages;
pub mod rows;
pub mod trace;
pub mod values;
pub mod verify;

use std::ops::Range;
use std::path::Path;

use tilekern::Error;
use tilekern::parquet::file::{Column, File, Node, NodeKind, Schema};
use tilekern::parquet::{Options, PhysicalType};

use crate::fault::{Fault, Stop};

/// Columns that a message lists.
const LISTED: usize = 20;

/// Opens a file whose bytes are there: their number needs no bound any more.
pub fn open<'a>(bytes: &'a [u8], options: &Options) -> Result<File<'a>, Error> {
    let mut limits = options.limits;
    limits.max_input_bytes = u64::MAX;
    File::open(bytes, &options.limits(limits))
}

/// What columns are called: by their field, where that holds no other column, else by their whole path.
pub fn names(schema: &Schema) -> Vec<String> {
    let mut names: Vec<String> = schema.columns.iter().map(Column::name).collect();
    for field in &schema.fields {
        let leaves = leaves(field);
        if leaves.len() == 1 {
            names[leaves.start].clone_from(&field.name);
        }
    }
    names
}

/// The columns that a field holds, which are counted in the order of the schema.
fn leaves(node: &Node) -> Range<usize> {
    match &node.kind {
        NodeKind::Leaf(column) => *column..*column + 1,
        NodeKind::Group(nodes) => {
            let all = nodes.iter().map(leaves).filter(|leaves| !leaves.is_empty());
            all.reduce(|first, last| first.start..last.end).unwrap_or(0..0)
        }
    }
}

/// The columns that a word names: one by its path, all of a field, or one by its number from 0.
pub fn columns(file: &File<'_>, word: &str, path: &Path) -> Result<Range<usize>, Fault> {
    let schema = &file.metadata().schema;
    let by_path = schema.columns.iter().enumerate().filter(|(_, column)| column.name() == word);
    let by_field = schema.fields.iter().filter(|field| field.name == word).map(leaves);
    let mut named: Vec<Range<usize>> = by_path.map(|(column, _)| column..column + 1).chain(by_field).collect();
    named.sort_by_key(|range| (range.start, range.end));
    named.dedup();
    match &named[..] {
        [] => {}
        [one] => return Ok(one.clone()),
        several => {
            let mut numbers: Vec<usize> = several.iter().cloned().flatten().collect();
            numbers.dedup();
            let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
            let message = format!("{word:?} is the name of several columns: give a number, of {}", numbers.join(", "));
            return Err(Fault { part: Some("columns".to_owned()), ..Fault::new("ambiguous", path, message) });
        }
    }
    if let Some(column) = word.parse().ok().filter(|&column| column < schema.columns.len()) {
        return Ok(column..column + 1);
    }
    let message = format!("has no column {word:?}: name one of {}", listed(schema));
    Err(Fault { part: Some("columns".to_owned()), ..Fault::new("missing", path, message) })
}

/// The one column that a word names.
pub fn column(file: &File<'_>, word: &str, path: &Path) -> Result<usize, Fault> {
    let found = columns(file, word, path)?;
    if found.len() == 1 {
        return Ok(found.start);
    }
    let names: Vec<String> = found.map(|column| file.metadata().schema.columns[column].name()).collect();
    let message = format!("{word:?} holds {} columns: name one of {}", names.len(), names.join(", "));
    Err(Fault { part: Some("columns".to_owned()), ..Fault::new("ambiguous", path, message) })
}

/// The names of columns, the first of them.
pub fn listed(schema: &Schema) -> String {
    let mut names = names(schema);
    if names.len() > LISTED {
        let more = format!("… {} more", names.len() - LISTED);
        names.truncate(LISTED);
        names.push(more);
    }
    names.join(", ")
}

/// The row groups asked for: all, or one of them.
pub fn row_groups(file: &File<'_>, only: Option<usize>, path: &Path) -> Result<Range<usize>, Stop> {
    let all = file.metadata().row_groups.len();
    match only {
        None => Ok(0..all),
        Some(group) if group < all => Ok(group..group + 1),
        Some(group) => {
            let message = format!("there is no row group {group}: {}", choose(all));
            Err(Fault { part: Some("row groups".to_owned()), ..Fault::new("out_of_range", path, message) }.into())
        }
    }
}

/// Which of so many things, counted from 0, there are to choose from.
pub fn choose(all: usize) -> String {
    match all {
        0 => "there is none".to_owned(),
        1 => "there is 0 alone".to_owned(),
        all => format!("choose one of 0 to {}", all - 1),
    }
}

/// Of values of a fixed length their bytes, as schemas state them.
pub fn type_length(kind: PhysicalType) -> Option<usize> {
    match kind {
        PhysicalType::FixedLenByteArray(length) => Some(length),
        _ => None,
    }
}
