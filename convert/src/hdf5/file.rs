//! A file through the HDF5 reader, or a zarr store: its objects, pieces of its datasets, attributes; its errors made ours.
//!
//! Both have groups, arrays and attributes in the same places and with the same meaning; what lies above knows no
//! difference. Types are those of HDF5 for both.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hdf5_reader::error::Error as Fault;
use hdf5_reader::group::Group;
use hdf5_reader::{
    Attribute, ByteOrder, BytesStorage, Dataset, Datatype, FileStorage, H5Type, Hdf5File, OpenOptions, SliceInfo,
    SliceInfoElem, StringPadding, StringSize, VarLenKind,
};

use serde_json::{Map, Value};

use super::filters;
use crate::{Error, ErrorKind, Result, Values, zarr};

/// Memory for looking around in a file whose tables and matrices are not read yet.
const MEMORY_TO_LOOK: usize = 64 << 20;

/// What to do where chunks of a store are absent.
const INCOMPLETE: &str = "copy the store again; if it is whole, write it with AnnData.write_h5ad";

/// What every error of a file in whose parts the reader finds no sense says.
const DAMAGED: &str = "the file is damaged, or was not closed by its writer; copy or download it again";

/// A file or store, not yet read.
#[derive(Clone)]
pub(super) struct Container {
    /// None where it is a zarr store: a directory at `path`.
    storage: Option<Arc<dyn hdf5_reader::Storage>>,
    pub path: PathBuf,
    /// Bytes of the file, or of all files of the store.
    length: u64,
    /// What is known of a store.
    known: zarr::Known,
}

impl Container {
    pub fn open(path: &Path) -> Result<Container> {
        // Not mapped: a file that another process cuts while it is read is an error then, no signal.
        let storage = asked(|| FileStorage::open(path)).map_err(|error| fault(error).in_path(path))?;
        let length = hdf5_reader::Storage::len(&storage);
        Ok(Container { storage: Some(Arc::new(storage)), path: path.to_owned(), length, known: zarr::Known::default() })
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Container {
        let length = bytes.len() as u64;
        Container {
            storage: Some(Arc::new(BytesStorage::new(bytes))),
            path: PathBuf::from("(bytes)"),
            length,
            known: zarr::Known::default(),
        }
    }

    /// A zarr store.
    pub fn zarr(path: &Path) -> Container {
        Container { storage: None, path: path.to_owned(), length: zarr::length(path), known: zarr::Known::default() }
    }

    /// The root, for looking around.
    pub fn look(&self) -> Result<Folder> {
        self.root(MEMORY_TO_LOOK)
    }

    /// Bytes that a table may take. They come on top of the memory for matrices; but a small file that says that it has
    /// huge tables, for instance of values that it does not store, is not believed.
    pub fn memory_for_tables(&self, memory: usize) -> usize {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        memory.max(16 << 20).saturating_add(length.saturating_mul(64))
    }

    /// The root of a file whose chunks, and whose cache of them, take a part of `memory` bytes.
    pub fn root(&self, memory: usize) -> Result<Folder> {
        // The cache holds two of the largest chunks, of indices and of values. Real files have chunks of up to 1 MiB.
        let largest = (memory / 4).max(4 << 20);
        let Some(storage) = &self.storage else {
            let root = zarr::Group::root(&self.path, largest, self.known.clone())
                .map_err(|error| error.in_path(&self.path))?;
            return Ok(Folder { group: GroupOf::Zarr(root), name: String::new() });
        };
        let options = OpenOptions::default()
            .with_chunk_cache_bytes(2 * largest)
            .with_max_chunk_bytes(largest)
            .with_max_read_bytes(self.memory_for_tables(memory))
            .with_max_object_header_bytes(16 << 20)
            .with_filter_registry(filters::registry(largest));
        let root = asked(|| Hdf5File::from_storage_with_options(storage.clone(), options)?.root_group())
            .map_err(|error| fault(error).in_path(&self.path))?;
        Ok(Folder { group: GroupOf::Hdf5(root), name: String::new() })
    }
}

/// A group.
#[derive(Clone)]
pub(super) struct Folder {
    group: GroupOf,
    /// Its path from the root, without a slash in front.
    pub name: String,
}

#[derive(Clone)]
enum GroupOf {
    Hdf5(Group),
    Zarr(zarr::Group),
}

/// What a group has under a name.
pub(super) enum Node {
    Folder(Folder),
    Array(Array),
}

impl Folder {
    fn path_of(&self, name: &str) -> String {
        if self.name.is_empty() { name.to_owned() } else { format!("{}/{name}", self.name) }
    }

    /// The member of that name. Names with slashes are paths, as writers make them of names of columns and layers.
    pub fn get(&self, name: &str) -> Result<Option<Node>> {
        let Some((groups, last)) = name.rsplit_once('/') else { return self.member(name) };
        let mut folder = self.clone();
        for group in groups.split('/') {
            match folder.member(group)? {
                Some(Node::Folder(inner)) => folder = inner,
                _ => return Ok(None),
            }
        }
        folder.member(last)
    }

    fn member(&self, name: &str) -> Result<Option<Node>> {
        let path = self.path_of(name);
        let parent = match &self.group {
            GroupOf::Hdf5(group) => group,
            GroupOf::Zarr(group) => {
                let found = group.get(name).map_err(|error| error.in_part(path.as_str()))?;
                return Ok(found.map(|node| match node {
                    zarr::Node::Group(group) => Node::Folder(Folder { group: GroupOf::Zarr(group), name: path }),
                    zarr::Node::Array(array) => Node::Array(Array { dataset: DatasetOf::Zarr(array), name: path }),
                }));
            }
        };
        match asked(|| parent.group(name)) {
            Ok(group) => return Ok(Some(Node::Folder(Folder { group: GroupOf::Hdf5(group), name: path }))),
            Err(Fault::GroupNotFound(_)) => {}
            Err(error) => return Err(fault(error).in_part(path)),
        }
        match asked(|| parent.dataset(name)) {
            Ok(dataset) => Ok(Some(Node::Array(Array { dataset: DatasetOf::Hdf5(Box::new(dataset)), name: path }))),
            Err(Fault::DatasetNotFound(_)) => Ok(None),
            Err(error) => Err(fault(error).in_part(path)),
        }
    }

    /// The group of that name; none where there is none, or a dataset.
    pub fn folder(&self, name: &str) -> Result<Option<Folder>> {
        Ok(match self.get(name)? {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        })
    }

    /// The dataset of that name; none where there is none, or a group.
    pub fn array(&self, name: &str) -> Result<Option<Array>> {
        Ok(match self.get(name)? {
            Some(Node::Array(array)) => Some(array),
            _ => None,
        })
    }

    /// The dataset of that name, which has to be there.
    pub fn need(&self, name: &str) -> Result<Array> {
        self.array(name)?.ok_or_else(|| {
            Error::new(ErrorKind::Missing, "there is no such dataset in the file").in_part(self.path_of(name))
        })
    }

    /// The names of the groups and of the datasets in it, each in alphabetical order.
    pub fn names(&self) -> Result<(Vec<String>, Vec<String>)> {
        let (mut folders, mut arrays) = match &self.group {
            GroupOf::Hdf5(group) => group.member_names().map_err(|error| self.fault(error))?,
            GroupOf::Zarr(group) => group.names()?,
        };
        folders.sort();
        arrays.sort();
        Ok((folders, arrays))
    }

    pub fn attributes(&self) -> Result<Attributes> {
        match &self.group {
            GroupOf::Hdf5(group) => {
                asked(|| group.attributes()).map(Attributes::Hdf5).map_err(|error| self.fault(error))
            }
            GroupOf::Zarr(group) => Ok(Attributes::Zarr(group.attributes.clone())),
        }
    }

    fn fault(&self, error: Fault) -> Error {
        let error = fault(error);
        if self.name.is_empty() { error } else { error.in_part(self.name.as_str()) }
    }
}

impl Node {
    pub fn attributes(&self) -> Result<Attributes> {
        match self {
            Node::Folder(folder) => folder.attributes(),
            Node::Array(array) => Ok(array.attributes()),
        }
    }
}

/// The attributes of an object.
pub(super) enum Attributes {
    Hdf5(Vec<Attribute>),
    Zarr(Map<String, Value>),
}

impl Attributes {
    pub fn has(&self, name: &str) -> bool {
        match self {
            Attributes::Hdf5(all) => get(all, name).is_some(),
            Attributes::Zarr(all) => all.contains_key(name),
        }
    }

    /// A text; none where the attribute is absent or is no text.
    pub fn text(&self, name: &str) -> Option<String> {
        let attribute = match self {
            Attributes::Hdf5(all) => get(all, name)?,
            Attributes::Zarr(all) => return all.get(name)?.as_str().map(str::to_owned),
        };
        // Some writers make lists of one.
        asked(|| attribute.read_string()).ok().or_else(|| match &asked(|| attribute.read_strings()).ok()?[..] {
            [text] => Some(text.clone()),
            _ => None,
        })
    }

    /// Whether there is a truth value that is true.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Attributes::Hdf5(all) => {
                let truth =
                    |attribute: &Attribute| asked(|| attribute.read_scalar::<Truth>()).is_ok_and(|truth| truth.0);
                get(all, name).is_some_and(truth)
            }
            Attributes::Zarr(all) => all.get(name).and_then(Value::as_bool) == Some(true),
        }
    }

    /// A list of texts. An empty list may have any type: h5py makes it one of numbers.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        let attribute = match self {
            Attributes::Hdf5(all) => get(all, name),
            Attributes::Zarr(all) => {
                return all.get(name).map(|value| list(value, name, |one| one.as_str().map(str::to_owned))).transpose();
            }
        };
        let Some(attribute) = attribute else { return Ok(None) };
        if asked(|| attribute.num_elements()).map_err(fault)? == 0 {
            return Ok(Some(Vec::new()));
        }
        asked(|| attribute.read_strings()).map(Some).map_err(|error| fault(error).in_part(format!("attribute {name}")))
    }

    /// A list of whole numbers.
    pub fn integers(&self, name: &str) -> Result<Option<Vec<u64>>> {
        let attribute = match self {
            Attributes::Hdf5(all) => get(all, name),
            Attributes::Zarr(all) => return all.get(name).map(|value| list(value, name, Value::as_u64)).transpose(),
        };
        let Some(attribute) = attribute else { return Ok(None) };
        integers(&AttributeValues(attribute)).map(Some)
    }
}

fn get<'a>(all: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    all.iter().find(|attribute| attribute.name == name)
}

/// A list of JSON's, all of whose elements are of one type.
fn list<T>(value: &Value, name: &str, one: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>> {
    let found = value.as_array().and_then(|all| all.iter().map(one).collect());
    found.ok_or_else(|| {
        Error::new(ErrorKind::WrongType, format!("{value} has another type than it must have"))
            .in_part(format!("attribute {name}"))
    })
}

/// A dataset.
#[derive(Clone)]
pub(super) struct Array {
    dataset: DatasetOf,
    /// Its path from the root, without a slash in front.
    pub name: String,
}

#[derive(Clone)]
enum DatasetOf {
    Hdf5(Box<Dataset>),
    Zarr(zarr::Array),
}

impl Array {
    pub fn shape(&self) -> &[u64] {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => dataset.shape(),
            DatasetOf::Zarr(array) => array.shape(),
        }
    }

    pub fn dtype(&self) -> &Datatype {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => dataset.dtype(),
            DatasetOf::Zarr(array) => array.dtype(),
        }
    }

    /// How many files of chunks a zarr store lacks.
    pub fn absent(&self) -> u64 {
        match &self.dataset {
            DatasetOf::Hdf5(_) => 0,
            DatasetOf::Zarr(array) => array.absent(),
        }
    }

    /// The elements of a list whose files a zarr store lacks.
    pub fn absent_elements(&self) -> Vec<Range<u64>> {
        match &self.dataset {
            DatasetOf::Hdf5(_) => Vec::new(),
            DatasetOf::Zarr(array) => array.absent_elements(),
        }
    }

    /// Refuses an array that has values other than zeros in each chunk, and lacks chunks.
    pub fn check_whole(&self) -> Result<()> {
        let message = |absent| match absent {
            1 => "the file of a chunk is not there".to_owned(),
            _ => format!("the files of {absent} chunks are not there"),
        };
        match self.absent() {
            0 => Ok(()),
            absent => Err(self.error(ErrorKind::Missing, message(absent)).hint(INCOMPLETE)),
        }
    }

    /// How many elements a chunk has along each dimension.
    pub fn chunks(&self) -> Option<Vec<u32>> {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => dataset.chunks(),
            DatasetOf::Zarr(array) => Some(array.chunks()),
        }
    }

    pub fn attributes(&self) -> Attributes {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => Attributes::Hdf5(dataset.attributes()),
            DatasetOf::Zarr(array) => Attributes::Zarr(array.attributes().clone()),
        }
    }

    /// The length of a list. One value alone is a list of one: old writers unwrap those.
    pub fn length(&self) -> Result<u64> {
        match *self.shape() {
            [] => Ok(1),
            [length] => Ok(length),
            ref shape => Err(self.error(ErrorKind::WrongType, format!("it should be a list, not of shape {shape:?}"))),
        }
    }

    /// Some consecutive elements of a list.
    pub fn part(&self, range: Range<u64>) -> Piece<'_> {
        let spans = if self.shape().is_empty() { Vec::new() } else { vec![range] };
        Piece { array: self, spans }
    }

    /// A rectangle of a matrix.
    pub fn rectangle(&self, rows: Range<u64>, columns: Range<u64>) -> Piece<'_> {
        Piece { array: self, spans: vec![rows, columns] }
    }

    /// An error about this dataset.
    #[cold]
    pub fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).in_part(self.name.as_str())
    }

    /// The bytes that a reference to the file's heap of texts of any length leads to.
    pub fn resolve(&self, reference: &Reference) -> Result<Vec<u8>> {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => {
                let resolved = asked(|| dataset.resolve_vlen_reference_bytes(&reference.0, 1));
                resolved.map_err(|error| fault(error).in_part(self.name.as_str()))
            }
            DatasetOf::Zarr(array) => {
                let number = reference.0.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
                array.text(number).map_err(|error| error.in_part(self.name.as_str()))
            }
        }
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> Result<usize> {
        self.size_of(self.dtype())
    }

    /// Bytes that an element of a type takes in this file.
    pub fn size_of(&self, dtype: &Datatype) -> Result<usize> {
        if let DatasetOf::Hdf5(dataset) = &self.dataset
            && is_text_of_any_length(dtype)
        {
            return Ok(dataset.vlen_reference_size());
        }
        asked(|| hdf5_reader::dtype_element_size(dtype)).map_err(|error| fault(error).in_part(self.name.as_str()))
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match &self.dataset {
            DatasetOf::Hdf5(dataset) => {
                asked(|| dataset.read_raw_bytes()).map_err(|error| fault(error).in_part(self.name.as_str()))
            }
            DatasetOf::Zarr(_) => Err(self.error(ErrorKind::Unsupported, "zarr stores have no such tables")),
        }
    }

    /// Checks that numbers are laid out as the usual types are; the reader looks at their sizes alone.
    pub fn check_number(&self) -> Result<()> {
        let dataset = match &self.dataset {
            DatasetOf::Hdf5(dataset) => dataset,
            DatasetOf::Zarr(_) => {
                let kind = describe(self.dtype());
                let number = matches!(self.dtype(), Datatype::FixedPoint { .. } | Datatype::FloatingPoint { .. });
                let message = || format!("numbers of this type are not supported ({kind})");
                let usual = number || is_boolean(self.dtype());
                return if usual { Ok(()) } else { Err(self.error(ErrorKind::Unsupported, message())) };
            }
        };
        let raw = asked(|| dataset.raw_datatype()).map_err(|error| fault(error).in_part(self.name.as_str()))?;
        let properties = raw.get(8..).unwrap_or_default();
        let short = |at: usize| properties.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let usual = match self.dtype() {
            Datatype::FixedPoint { size, .. } => short(0) == Some(0) && short(2) == Some(u16::from(*size) * 8),
            Datatype::FloatingPoint { size, .. } => {
                // Where the exponent and the mantissa begin, their sizes, the exponent's bias.
                let layout: Option<[u8; 8]> = properties.get(4..12).and_then(|b| b.try_into().ok());
                let [e, es, m, ms, bias @ ..] = layout.unwrap_or_default();
                match (size, [e, es, m, ms], u32::from_le_bytes(bias)) {
                    (2, [10, 5, 0, 10], 15) | (4, [23, 8, 0, 23], 127) | (8, [52, 11, 0, 52], 1023) => {
                        short(0) == Some(0) && short(2) == Some(u16::from(*size) * 8)
                    }
                    _ => false,
                }
            }
            Datatype::Enum { .. } => is_boolean(self.dtype()),
            _ => false,
        };
        if usual {
            return Ok(());
        }
        let kind = describe(self.dtype());
        Err(self.error(ErrorKind::Unsupported, format!("numbers of this type are not supported ({kind})")))
    }
}

/// Elements of one type from somewhere in the file.
pub(super) trait Elements {
    fn dtype(&self) -> &Datatype;
    fn read<T: H5Type>(&self) -> Result<Vec<T>>;
    /// What they are called in errors.
    fn name(&self) -> String;
    /// The number, in what has that name, of the first of them.
    fn first(&self) -> u64;
}

/// Elements that may be texts, which lie elsewhere in the file if they can have any length.
pub(super) trait Cells: Elements {
    fn resolve(&self, reference: &Reference) -> Result<Vec<u8>>;
}

/// Some elements of a dataset.
pub(super) struct Piece<'a> {
    array: &'a Array,
    spans: Vec<Range<u64>>,
}

impl Elements for Piece<'_> {
    fn dtype(&self) -> &Datatype {
        self.array.dtype()
    }

    fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        let array = &self.array;
        let values = match &array.dataset {
            DatasetOf::Hdf5(dataset) => {
                let span = |range: &Range<u64>| SliceInfoElem::Slice { start: range.start, end: range.end, step: 1 };
                let selection = SliceInfo { selections: self.spans.iter().map(span).collect() };
                let found = asked(|| dataset.read_slice::<T>(&selection));
                found.map_err(|error| fault(error).in_part(&*array.name))?.into_raw_vec_and_offset().0
            }
            DatasetOf::Zarr(zarr) => {
                let bytes = zarr.read(&self.spans).map_err(|error| error.in_part(&*array.name))?;
                let elements = bytes.chunks_exact(zarr.element_size());
                let read = elements.map(|element| T::from_bytes(element, zarr.dtype()));
                read.collect::<std::result::Result<_, _>>().map_err(|error| fault(error).in_part(&*array.name))?
            }
        };
        let asked = self.spans.iter().map(|range| range.end - range.start).product::<u64>();
        if u64::try_from(values.len()) != Ok(asked) {
            let message = format!("{asked} elements were asked for, {} came", values.len());
            return Err(array.error(ErrorKind::Truncated, message));
        }
        Ok(values)
    }

    fn name(&self) -> String {
        self.array.name.clone()
    }

    fn first(&self) -> u64 {
        self.spans.first().map_or(0, |range| range.start)
    }
}

impl Cells for Piece<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Vec<u8>> {
        self.array.resolve(reference)
    }
}

/// Whole numbers of any width that are all in the range of `W`.
///
/// # Errors
/// `WrongType` where they are no whole numbers, `OutOfRange` with the first one that does not fit.
pub(super) fn integers<W: Whole>(from: &impl Elements) -> Result<Vec<W>> {
    match from.dtype() {
        Datatype::FixedPoint { size: 1, signed: true, .. } => narrow::<i8, W>(from),
        Datatype::FixedPoint { size: 2, signed: true, .. } => narrow::<i16, W>(from),
        Datatype::FixedPoint { size: 4, signed: true, .. } => narrow::<i32, W>(from),
        Datatype::FixedPoint { size: 8, signed: true, .. } => narrow::<i64, W>(from),
        Datatype::FixedPoint { size: 1, signed: false, .. } => narrow::<u8, W>(from),
        Datatype::FixedPoint { size: 2, signed: false, .. } => narrow::<u16, W>(from),
        Datatype::FixedPoint { size: 4, signed: false, .. } => narrow::<u32, W>(from),
        Datatype::FixedPoint { size: 8, signed: false, .. } => narrow::<u64, W>(from),
        other => {
            let message = format!("whole numbers are needed, not {}", describe(other));
            Err(Error::new(ErrorKind::WrongType, message).in_part(from.name()))
        }
    }
}

struct AttributeValues<'a>(&'a Attribute);

impl Elements for AttributeValues<'_> {
    fn dtype(&self) -> &Datatype {
        &self.0.datatype
    }

    fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        asked(|| self.0.read_1d()).map_err(fault)
    }

    fn name(&self) -> String {
        format!("attribute {}", self.0.name)
    }

    fn first(&self) -> u64 {
        0
    }
}

/// A type that takes whole numbers of every other.
pub(super) trait Whole:
    TryFrom<i8> + TryFrom<i16> + TryFrom<i32> + TryFrom<i64> + TryFrom<u8> + TryFrom<u16> + TryFrom<u32> + TryFrom<u64>
{
}

impl Whole for u32 {}
impl Whole for u64 {}
impl Whole for i32 {}
impl Whole for i64 {}

fn narrow<T, W>(from: &impl Elements) -> Result<Vec<W>>
where
    T: H5Type + Copy + std::fmt::Display,
    W: TryFrom<T>,
{
    let found: Vec<T> = from.read()?;
    let mut narrowed = Vec::with_capacity(found.len());
    for (at, &value) in found.iter().enumerate() {
        narrowed.push(W::try_from(value).map_err(|_| {
            let message = format!("{value} is outside the range that is possible here");
            Error::new(ErrorKind::OutOfRange, message).in_part(format!(
                "{}, entry {}",
                from.name(),
                from.first() + at as u64
            ))
        })?);
    }
    Ok(narrowed)
}

/// Numbers of any type, widened without loss; truth values are 0 and 1.
pub(super) fn numbers(from: &impl Elements) -> Result<Values> {
    fn widen<T: H5Type, W: From<T>>(from: &impl Elements) -> Result<Vec<W>> {
        Ok(from.read::<T>()?.into_iter().map(W::from).collect())
    }
    Ok(match from.dtype() {
        Datatype::FixedPoint { size: 1, signed: true, .. } => Values::I64(widen::<i8, _>(from)?),
        Datatype::FixedPoint { size: 2, signed: true, .. } => Values::I64(widen::<i16, _>(from)?),
        Datatype::FixedPoint { size: 4, signed: true, .. } => Values::I64(widen::<i32, _>(from)?),
        Datatype::FixedPoint { size: 8, signed: true, .. } => Values::I64(widen::<i64, _>(from)?),
        Datatype::FixedPoint { size: 1, signed: false, .. } => Values::U64(widen::<u8, _>(from)?),
        Datatype::FixedPoint { size: 2, signed: false, .. } => Values::U64(widen::<u16, _>(from)?),
        Datatype::FixedPoint { size: 4, signed: false, .. } => Values::U64(widen::<u32, _>(from)?),
        Datatype::FixedPoint { size: 8, signed: false, .. } => Values::U64(widen::<u64, _>(from)?),
        Datatype::FloatingPoint { size: 2, .. } => Values::F32(widen::<Half, _>(from)?),
        Datatype::FloatingPoint { size: 4, .. } => Values::F32(widen::<f32, _>(from)?),
        Datatype::FloatingPoint { size: 8, .. } => Values::F64(widen::<f64, _>(from)?),
        other if is_boolean(other) => Values::U64(widen::<Truth, _>(from)?),
        other => {
            let message = format!("numbers are needed, not {}", describe(other));
            return Err(Error::new(ErrorKind::WrongType, message).in_part(from.name()));
        }
    })
}

/// A number of half precision.
#[derive(Clone, Copy)]
pub(super) struct Half(pub f32);

impl From<Half> for f32 {
    fn from(half: Half) -> f32 {
        half.0
    }
}

impl H5Type for Half {
    fn hdf5_type() -> Datatype {
        Datatype::FloatingPoint { size: 2, byte_order: ByteOrder::LittleEndian }
    }

    fn from_bytes(bytes: &[u8], dtype: &Datatype) -> std::result::Result<Half, Fault> {
        let bits = match (bytes, dtype) {
            (&[a, b], Datatype::FloatingPoint { byte_order: ByteOrder::LittleEndian, .. }) => {
                u16::from_le_bytes([a, b])
            }
            (&[a, b], Datatype::FloatingPoint { byte_order: ByteOrder::BigEndian, .. }) => u16::from_be_bytes([a, b]),
            _ => return Err(mismatch("a number of half precision", dtype)),
        };
        Ok(Half(half::f16::from_bits(bits).to_f32()))
    }

    fn element_size(_: &Datatype) -> usize {
        2
    }
}

/// A truth value, as h5py stores it: an enumeration of one byte.
#[derive(Clone, Copy)]
pub(super) struct Truth(pub bool);

impl From<Truth> for u64 {
    fn from(truth: Truth) -> u64 {
        truth.0.into()
    }
}

impl H5Type for Truth {
    fn hdf5_type() -> Datatype {
        let base = Datatype::FixedPoint { size: 1, signed: true, byte_order: ByteOrder::LittleEndian };
        Datatype::Enum { base: Box::new(base), members: Vec::new() }
    }

    fn from_bytes(bytes: &[u8], dtype: &Datatype) -> std::result::Result<Truth, Fault> {
        match bytes {
            [0] => Ok(Truth(false)),
            [1] => Ok(Truth(true)),
            [other] => Err(Fault::InvalidData(format!("{other} is no truth value"))),
            _ => Err(mismatch("a truth value", dtype)),
        }
    }

    fn element_size(_: &Datatype) -> usize {
        1
    }
}

/// Whether a type is that of truth values: an enumeration of one byte in which 0 means false and 1 means true.
pub(super) fn is_boolean(dtype: &Datatype) -> bool {
    let Datatype::Enum { base, members } = dtype else { return false };
    let means = |name: &str, value: u8| {
        members.iter().any(|member| member.name.eq_ignore_ascii_case(name) && member.value == [value])
    };
    matches!(**base, Datatype::FixedPoint { size: 1, .. }) && means("false", 0) && means("true", 1)
}

/// A text of fixed size.
#[derive(Clone)]
pub(super) struct Text(pub String);

impl H5Type for Text {
    fn hdf5_type() -> Datatype {
        let padding = StringPadding::NullPad;
        Datatype::String { size: StringSize::Fixed(1), encoding: hdf5_reader::StringEncoding::Utf8, padding }
    }

    fn from_bytes(bytes: &[u8], dtype: &Datatype) -> std::result::Result<Text, Fault> {
        let Datatype::String { size: StringSize::Fixed(_), padding, .. } = dtype else {
            return Err(mismatch("a text of fixed size", dtype));
        };
        let text = match padding {
            StringPadding::SpacePad => bytes.trim_ascii_end(),
            StringPadding::NullTerminate => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
            StringPadding::NullPad => &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)],
        };
        let text = std::str::from_utf8(text).map_err(|_| Fault::InvalidData(NOT_UTF8.into()))?;
        Ok(Text(text.to_owned()))
    }

    fn element_size(dtype: &Datatype) -> usize {
        match dtype {
            Datatype::String { size: StringSize::Fixed(size), .. } => usize::try_from(*size).unwrap_or(usize::MAX),
            _ => 1,
        }
    }
}

/// What is said of a text in another encoding.
pub(super) const NOT_UTF8: &str = "a text is not UTF-8";

/// A reference to a text of any length.
#[derive(Clone, Copy)]
pub(super) struct Reference([u8; 16]);

impl H5Type for Reference {
    fn hdf5_type() -> Datatype {
        let base = Datatype::FixedPoint { size: 1, signed: false, byte_order: ByteOrder::LittleEndian };
        let (encoding, padding) = (hdf5_reader::StringEncoding::Utf8, StringPadding::NullTerminate);
        Datatype::VarLen { base: Box::new(base), kind: VarLenKind::String, encoding, padding }
    }

    fn from_bytes(bytes: &[u8], dtype: &Datatype) -> std::result::Result<Reference, Fault> {
        let mut reference = Reference([0; 16]);
        let room = reference.0.get_mut(..bytes.len()).ok_or_else(|| mismatch("a text of any length", dtype))?;
        room.copy_from_slice(bytes);
        Ok(reference)
    }

    fn element_size(_: &Datatype) -> usize {
        16
    }
}

/// Whether elements are texts of any length.
pub(super) fn is_text_of_any_length(dtype: &Datatype) -> bool {
    match dtype {
        Datatype::String { size: StringSize::Variable, .. } => true,
        Datatype::VarLen { base, kind: VarLenKind::String, .. } => base.is_vlen_string_base(),
        _ => false,
    }
}

fn mismatch(expected: &str, found: &Datatype) -> Fault {
    Fault::TypeMismatch { expected: expected.into(), actual: describe(found) }
}

/// A type in words.
pub(super) fn describe(dtype: &Datatype) -> String {
    match dtype {
        Datatype::FixedPoint { size, signed: true, .. } => format!("int{}", u32::from(*size) * 8),
        Datatype::FixedPoint { size, signed: false, .. } => format!("uint{}", u32::from(*size) * 8),
        Datatype::FloatingPoint { size, .. } => format!("float{}", u32::from(*size) * 8),
        Datatype::String { .. } => "text".into(),
        Datatype::VarLen { kind: VarLenKind::String, .. } => "text".into(),
        Datatype::VarLen { .. } => "lists of any length".into(),
        Datatype::Compound { .. } => "a table of several columns".into(),
        Datatype::Array { .. } => "fixed lists".into(),
        other if is_boolean(other) => "truth values".into(),
        Datatype::Enum { .. } => "an enumeration".into(),
        Datatype::Opaque { .. } => "opaque bytes".into(),
        Datatype::Reference { .. } => "references".into(),
        Datatype::Bitfield { .. } => "bit fields".into(),
    }
}

/// A call of the reader; what it does not foresee in damaged data ends here, too.
fn asked<T>(work: impl FnOnce() -> std::result::Result<T, Fault>) -> std::result::Result<T, Fault> {
    tilekern::guarded(work).unwrap_or_else(|| Err(Fault::InvalidData("the reader gave up".into())))
}

/// A fault of the reader as an error of ours.
#[cold]
pub(super) fn fault(error: Fault) -> Error {
    match error {
        Fault::Io(error) => {
            let kind = match error.kind() {
                std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
                _ => ErrorKind::Io,
            };
            Error::new(kind, error.to_string()).caused_by(error)
        }
        Fault::Context { path, source } => {
            let path = path.trim_start_matches('/').to_owned();
            // The callers name the dataset themselves.
            fault(*source).caused_by(format!("while reading {path}"))
        }
        Fault::UnexpectedEof { offset, .. } => {
            Error::new(ErrorKind::Truncated, error.to_string()).hint(DAMAGED).at(offset)
        }
        Fault::OffsetOutOfBounds(offset) => {
            Error::new(ErrorKind::Truncated, error.to_string()).hint(DAMAGED).at(offset)
        }
        Fault::InvalidMagic => Error::new(ErrorKind::Syntax, "this is no HDF5 file"),
        Fault::UnsupportedFilter(name) => {
            let message = format!("its chunks are packed with {name}, which is not supported");
            Error::new(ErrorKind::Unsupported, message).hint("rewrite the file with gzip: h5repack -f GZIP=4 IN OUT")
        }
        Fault::ResourceLimit(what) => Error::new(ErrorKind::LimitExceeded, what)
            .hint("allow more with --memory, or write the file in smaller chunks"),
        Fault::TypeMismatch { .. } => Error::new(ErrorKind::WrongType, error.to_string()),
        Fault::UnsupportedEncoding(_) => Error::new(ErrorKind::Unsupported, error.to_string()),
        _ => Error::new(ErrorKind::Syntax, error.to_string()).hint(DAMAGED),
    }
}
