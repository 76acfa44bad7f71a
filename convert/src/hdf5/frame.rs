//! Tables of AnnData files: groups of columns, in the encodings of anndata 0.7 and later, and the compound datasets of
//! earlier ones.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use hdf5_reader::{CompoundField, Datatype, H5Type};

use super::file::{Array, Attributes, Cells, Elements, Folder, Node, Reference, fault, integers};
use super::table::{Budget, Table, categorical, coded, column, left_out, masked, values};
use crate::{Error, ErrorKind, Result};

/// A table of cells or genes.
pub(super) enum Frame {
    Folder {
        folder: Folder,
        /// The member that names the rows.
        index: String,
    },
    Compound {
        array: Array,
        /// Where old files have the categories of columns: `uns/NAME_categories`.
        uns: Option<Folder>,
    },
}

impl Frame {
    /// The table of that name in the file.
    pub fn open(root: &Folder, name: &str) -> Result<Frame> {
        match root.get(name)? {
            Some(Node::Folder(folder)) => {
                let index = match folder.attributes()?.text("_index") {
                    Some(index) => index,
                    None => ["_index", "index"]
                        .into_iter()
                        .find_map(|name| folder.get(name).transpose().map(|node| node.map(|_| name.to_owned())))
                        .transpose()?
                        .ok_or_else(|| {
                            Error::new(ErrorKind::Missing, "the table does not say which column names its rows")
                                .in_part(folder.name.as_str())
                        })?,
                };
                Ok(Frame::Folder { folder, index })
            }
            Some(Node::Array(array)) if matches!(array.dtype(), Datatype::Compound { .. }) => {
                array.length()?;
                Ok(Frame::Compound { array, uns: root.folder("uns")? })
            }
            Some(Node::Array(array)) => Err(array.error(ErrorKind::WrongType, "a table is needed here")),
            None => Err(Error::new(ErrorKind::Missing, "the file has no such table").in_part(name)),
        }
    }

    /// How many rows it has.
    pub fn length(&self) -> Result<u64> {
        match self {
            Frame::Folder { folder, index } => match folder.get(index)? {
                Some(Node::Array(array)) => array.length(),
                Some(Node::Folder(column)) => match column.array("codes")? {
                    Some(codes) => codes.length(),
                    None => column.need("values")?.length(),
                },
                None => Err(no_column(folder, index)),
            },
            Frame::Compound { array, .. } => array.length(),
        }
    }

    /// Reads it, and notes what is left out.
    pub fn read(&self, budget: &mut Budget, notes: &mut Vec<String>) -> Result<RecordBatch> {
        match self {
            Frame::Folder { folder, index } => {
                read_folder(folder, index, self.length()?, budget, notes).map_err(|error| within(error, &folder.name))
            }
            Frame::Compound { array, uns } => read_compound(array, uns.as_ref(), budget, notes),
        }
    }
}

/// Names the table, unless a part of it is named.
fn within(error: Error, table: &str) -> Error {
    if error.part().is_some_and(|part| part.starts_with(table)) { error } else { error.in_part(table) }
}

fn no_column(folder: &Folder, name: &str) -> Error {
    let message = format!("it has no column {name:?}, though it says so");
    Error::new(ErrorKind::Missing, message).in_part(folder.name.as_str())
}

fn read_folder(
    folder: &Folder,
    index: &str,
    rows: u64,
    budget: &mut Budget,
    notes: &mut Vec<String>,
) -> Result<RecordBatch> {
    let attributes = folder.attributes()?;
    let names = match attributes.texts("column-order")? {
        Some(names) => names,
        None => {
            let (folders, arrays) = folder.names()?;
            let mut names: Vec<String> = folders.into_iter().chain(arrays).collect();
            names.retain(|name| name != "__categories" && name != index);
            names.sort();
            names
        }
    };
    let kept = match element(folder, index, budget)? {
        Element::Column(values) | Element::Ordered(values) => values,
        Element::Other(what) => {
            return Err(Error::new(ErrorKind::Unsupported, format!("the names of its rows cannot be read: {what}")));
        }
    };
    if rows > 1 {
        array_of(folder, index)?.map_or(Ok(()), |array| array.check_whole())?;
    }
    let mut table = Table::new(rows, index, &kept)?;
    for name in names {
        if array_of(folder, &name)?.is_some_and(|array| array.absent() > 0) {
            let why = "chunks are absent, as they are where all values are alike: those are taken to be there";
            notes.push(format!("{} column {name:?}: {why}", folder.name));
        }
        match element(folder, &name, budget)? {
            Element::Column(values) => table.push(&name, values)?,
            Element::Ordered(values) => table.push_ordered(&name, values)?,
            Element::Other(what) => notes.push(what),
        }
    }
    table.finish(&folder.name, notes)
}

/// The values or codes of a column.
fn array_of(folder: &Folder, name: &str) -> Result<Option<Array>> {
    Ok(match folder.get(name)? {
        Some(Node::Array(array)) => Some(array),
        Some(Node::Folder(member)) => match member.array("codes")? {
            Some(codes) => Some(codes),
            None => member.array("values")?,
        },
        None => None,
    })
}

/// What a member of a table is.
enum Element {
    Column(ArrayRef),
    /// Categories that have an order.
    Ordered(ArrayRef),
    /// Something else, and what to say of it.
    Other(String),
}

fn categories_of(values: ArrayRef, ordered: bool) -> Element {
    if ordered { Element::Ordered(values) } else { Element::Column(values) }
}

fn element(folder: &Folder, name: &str, budget: &mut Budget) -> Result<Element> {
    let kind = match folder.get(name)? {
        None => return Err(no_column(folder, name)),
        Some(Node::Array(array)) => {
            // anndata 0.7 kept categories apart, and a reference to them as an attribute of the codes.
            if array.attributes().has("categories")
                && let Some(kept) = folder.folder("__categories")?
                && let Plain::Values(categories) = plain(&kept, name, budget)?
            {
                let ordered =
                    kept.get(name)?.map(|node| node.attributes()).transpose()?.is_some_and(|a| a.holds("ordered"));
                return Ok(categories_of(categorical(&array, categories, budget)?, ordered));
            }
            return Ok(match column(&array, budget)? {
                Some(values) => Element::Column(values),
                None => Element::Other(left_out(&folder.name, name, &array)),
            });
        }
        Some(Node::Folder(member)) => {
            let attributes = member.attributes()?;
            if attributes.text("encoding-type").as_deref() == Some("categorical") {
                let codes = member.need("codes")?;
                match plain(&member, "categories", budget)? {
                    Plain::Values(categories) => {
                        let ordered = attributes.holds("ordered");
                        return Ok(categories_of(categorical(&codes, categories, budget)?, ordered));
                    }
                    Plain::Other(kind) => kind,
                }
            } else {
                match nullable(&member, &attributes, budget)? {
                    Plain::Values(values) => return Ok(Element::Column(values)),
                    Plain::Other(kind) => kind,
                }
            }
        }
    };
    Ok(Element::Other(format!("{} column {name:?} is left out: its encoding is {kind}", folder.name)))
}

/// What stands for values without categories.
enum Plain {
    Values(ArrayRef),
    /// The name of another encoding.
    Other(String),
}

/// A dataset, or values with a mask.
fn plain(folder: &Folder, name: &str, budget: &mut Budget) -> Result<Plain> {
    match folder.get(name)? {
        None => Err(no_column(folder, name)),
        Some(Node::Array(array)) => Ok(match column(&array, budget)? {
            Some(values) => Plain::Values(values),
            None => Plain::Other(super::file::describe(array.dtype())),
        }),
        Some(Node::Folder(member)) => nullable(&member, &member.attributes()?, budget),
    }
}

/// Values with a mask of those that are missing.
fn nullable(folder: &Folder, attributes: &Attributes, budget: &mut Budget) -> Result<Plain> {
    let kind = attributes.text("encoding-type").unwrap_or_else(|| "unknown".into());
    if !kind.starts_with("nullable-") {
        return Ok(Plain::Other(kind));
    }
    let (values, mask) = (folder.need("values")?, folder.need("mask")?);
    Ok(match (column(&values, budget)?, column(&mask, budget)?) {
        (Some(values), Some(mask)) => {
            Plain::Values(masked(&values, &mask).map_err(|error| error.in_part(folder.name.as_str()))?)
        }
        _ => Plain::Other(kind),
    })
}

fn read_compound(
    array: &Array,
    uns: Option<&Folder>,
    budget: &mut Budget,
    notes: &mut Vec<String>,
) -> Result<RecordBatch> {
    let Datatype::Compound { fields, .. } = array.dtype() else {
        return Err(array.error(ErrorKind::WrongType, "a table is needed here"));
    };
    let length = array.length()?;
    let size = array.element_size()?;
    budget.take(usize::try_from(length).unwrap_or(usize::MAX), size)?;
    let bytes = array.bytes()?;
    let mut table: Option<Table> = None;
    for field in fields {
        let cells = |range: Range<u64>| FieldCells { array, field, bytes: &bytes, size, range };
        let codes = match uns.map(|uns| uns.array(&format!("{}_categories", field.name))).transpose()?.flatten() {
            Some(names) if matches!(field.datatype, Datatype::FixedPoint { .. }) => {
                column(&names, budget)?.map(|names| (integers::<i32>(&cells(0..length)), names))
            }
            _ => None,
        };
        let found = match codes {
            // Categories of another axis have the same name there: those codes do not fit.
            Some((Ok(codes), names)) if coded(&codes, names.clone()).is_ok() => Some(coded(&codes, names)?),
            _ => values(length, budget, cells).map_err(|error| within(error, &array.name))?,
        };
        match (&mut table, found) {
            (Some(table), Some(values)) => table.push(&field.name, values)?,
            (Some(_), None) => {
                let kind = super::file::describe(&field.datatype);
                notes.push(format!("{} column {:?} is left out: {kind} cannot be a column", array.name, field.name));
            }
            (None, Some(values)) => table = Some(Table::new(length, &field.name, &values)?),
            (None, None) => {
                return Err(array.error(ErrorKind::Unsupported, "its first column, the names of its rows, is no text"));
            }
        }
    }
    table.ok_or_else(|| array.error(ErrorKind::Missing, "the table has no column"))?.finish(&array.name, notes)
}

/// One column of a compound dataset.
struct FieldCells<'a> {
    array: &'a Array,
    field: &'a CompoundField,
    /// All rows.
    bytes: &'a [u8],
    /// Bytes of a row.
    size: usize,
    range: Range<u64>,
}

impl Elements for FieldCells<'_> {
    fn dtype(&self) -> &Datatype {
        &self.field.datatype
    }

    fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        let width = self.array.size_of(&self.field.datatype)?;
        let start = usize::try_from(self.field.byte_offset).unwrap_or(usize::MAX);
        let cut = || self.array.error(ErrorKind::Truncated, "the table is shorter than it says");
        let rows = self.bytes.chunks_exact(self.size.max(1));
        let skip = usize::try_from(self.range.start).unwrap_or(usize::MAX);
        let count = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let mut found = Vec::with_capacity(count.min(self.bytes.len()));
        for row in rows.skip(skip).take(count) {
            let cell = start.checked_add(width).and_then(|end| row.get(start..end)).ok_or_else(cut)?;
            found.push(T::from_bytes(cell, &self.field.datatype).map_err(fault)?);
        }
        if found.len() == count { Ok(found) } else { Err(cut()) }
    }

    fn name(&self) -> String {
        format!("{}, column {:?}", self.array.name, self.field.name)
    }

    fn first(&self) -> u64 {
        self.range.start
    }
}

impl Cells for FieldCells<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Vec<u8>> {
        self.array.resolve(reference)
    }
}
