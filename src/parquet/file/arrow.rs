//! Column chunks as Arrow arrays.
//!
//! Source: Parquet format, LogicalTypes.md, and "Nested Types" there for lists and maps in all their forms. What has no
//! type of its own in Arrow, or is not as its annotation wants it, keeps the type that it is stored in.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    ListArray, MapArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit as ArrowUnit};

use super::column::{Buffers, ColumnData};
use super::footer::{Column, LogicalType, Node, NodeKind, Repetition, TimeUnit};
use super::{File, Metadata};
use crate::error::{EncodingFault, Error, ErrorKind, Limit, Part, SyntaxFault};
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::encoding::fault;
use crate::parquet::payload::{Encoding, PhysicalType, Values};

/// How text and bytes of any length are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strings {
    /// `Utf8` and `Binary`.
    #[default]
    Offsets,
    /// `Utf8View` and `BinaryView`.
    Views,
    /// Dictionaries of `Utf8` and `Binary` with keys of 32 bits. They are those of the file; values that it holds without
    /// one are entries of their own.
    Dictionaries,
}

/// A field of the result, and how it is put together.
#[derive(Clone, Debug)]
struct Tree {
    field: FieldRef,
    /// The definition level from which on it is not null.
    definition: u8,
    /// The first column in it, whose levels tell its shape.
    first: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Leaf,
    Struct(Vec<Tree>),
    List(Box<Tree>),
    /// Keys and values.
    Map(Box<Tree>),
}

/// The place of some slots: those of a field in the lists around it.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Lists around it.
    repetition: u8,
    /// The definition level from which on the innermost list has an element there.
    definition: u8,
}

impl File<'_> {
    /// The columns as Arrow has them: one field for each at the top of the file's schema.
    pub fn arrow_schema(&self, strings: Strings) -> SchemaRef {
        let trees = trees(self.metadata(), strings);
        Arc::new(Schema::new(trees.into_iter().map(|tree| tree.field).collect::<Fields>()))
    }

    /// A row group as Arrow arrays.
    ///
    /// # Errors
    /// As [`ColumnReader::next_page`](super::ColumnReader::next_page); [`SyntaxFault::Utf8`] for text that is none;
    /// [`EncodingFault::Range`] and [`EncodingFault::Length`] for numbers that their annotation does not allow.
    pub fn read_row_group(
        &self,
        row_group: usize,
        strings: Strings,
        buffers: &mut Buffers,
    ) -> Result<RecordBatch, Error> {
        self.read_trees(row_group, trees(self.metadata(), strings), buffers)
    }

    /// Some fields at the top of the schema in a row group, of those in [`File::arrow_schema`], in the order that they are
    /// named in.
    ///
    /// # Errors
    /// As [`File::read_row_group`]; [`ErrorKind::Missing`] for a field that there is not.
    pub fn read_fields(
        &self,
        row_group: usize,
        fields: &[usize],
        strings: Strings,
        buffers: &mut Buffers,
    ) -> Result<RecordBatch, Error> {
        let all = trees(self.metadata(), strings);
        let chosen = fields.iter().map(|&field| all.get(field).cloned());
        let chosen = chosen.collect::<Option<_>>().ok_or_else(|| Error::new(ErrorKind::Missing, part(row_group)))?;
        self.read_trees(row_group, chosen, buffers)
    }

    fn read_trees(&self, row_group: usize, trees: Vec<Tree>, buffers: &mut Buffers) -> Result<RecordBatch, Error> {
        let part = part(row_group);
        let group = self.metadata().row_groups.get(row_group).ok_or_else(|| Error::new(ErrorKind::Missing, part))?;
        let arrays = trees.iter().map(|tree| self.read_tree(row_group, tree, buffers));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>, Error>>()?;
        let schema = Schema::new(trees.into_iter().map(|tree| tree.field).collect::<Fields>());
        let rows = RecordBatchOptions::new().with_row_count(usize::try_from(group.num_rows).ok());
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &rows).map_err(|error| refused(part, error))
    }

    fn read_tree(&self, row_group: usize, tree: &Tree, buffers: &mut Buffers) -> Result<ArrayRef, Error> {
        let mut build = Build { file: self, row_group, buffers, shapes: Vec::new() };
        build.read(tree)?;
        build.array(tree, Level { repetition: 0, definition: 0 })
    }
}

fn part(row_group: usize) -> Part {
    Part::RowGroup(u32::try_from(row_group).unwrap_or(u32::MAX), 0)
}

/// The fields at the top. Groups without columns are left out.
fn trees(metadata: &Metadata, strings: Strings) -> Vec<Tree> {
    let columns = &metadata.schema.columns;
    metadata.schema.fields.iter().filter_map(|node| tree(node, 0, columns, strings)).collect()
}

fn tree(node: &Node, definition: u8, columns: &[Column], strings: Strings) -> Option<Tree> {
    match node.repetition {
        Repetition::Required => content(node, definition, false, columns, strings),
        Repetition::Optional => content(node, definition + 1, true, columns, strings),
        // A list of its own, never null.
        Repetition::Repeated => {
            let item = content(node, definition + 1, false, columns, strings)?;
            Some(list(&node.name, item, definition, false))
        }
    }
}

/// A node that is there from `definition` on.
fn content(node: &Node, definition: u8, nullable: bool, columns: &[Column], strings: Strings) -> Option<Tree> {
    let nodes = match &node.kind {
        NodeKind::Leaf(column) => {
            let data_type = data_type(columns.get(*column)?, strings);
            let field = Arc::new(Field::new(&node.name, data_type, nullable));
            return Some(Tree { field, definition, first: *column, kind: Kind::Leaf });
        }
        NodeKind::Group(nodes) => nodes,
    };
    if let [repeated @ Node { repetition: Repetition::Repeated, .. }] = &nodes[..] {
        match (node.logical, &repeated.kind) {
            (Some(LogicalType::Map), NodeKind::Group(pair)) if pair.len() == 2 => {
                return map(node, repeated, definition, nullable, columns, strings);
            }
            (Some(LogicalType::List | LogicalType::Map), NodeKind::Group(items))
                if items.len() == 1 && !is_item(node, repeated, &items[0]) =>
            {
                let item = tree(&items[0], definition + 1, columns, strings)?;
                return Some(list(&node.name, item, definition, nullable));
            }
            (Some(LogicalType::List | LogicalType::Map), _) => {
                let item = content(repeated, definition + 1, false, columns, strings)?;
                return Some(list(&node.name, item, definition, nullable));
            }
            _ => {}
        }
    }
    let fields: Vec<Tree> = nodes.iter().filter_map(|node| tree(node, definition, columns, strings)).collect();
    let first = fields.first()?.first;
    let data_type = DataType::Struct(fields.iter().map(|tree| tree.field.clone()).collect());
    let field = Arc::new(Field::new(&node.name, data_type, nullable));
    Some(Tree { field, definition, first, kind: Kind::Struct(fields) })
}

/// Whether the repeated group of a list is an item itself, by the rules for old writers.
fn is_item(list: &Node, repeated: &Node, item: &Node) -> bool {
    let named = repeated.name == "array" || repeated.name == format!("{}_tuple", list.name);
    named && repeated.logical != Some(LogicalType::List) && item.repetition != Repetition::Repeated
}

fn list(name: &str, item: Tree, definition: u8, nullable: bool) -> Tree {
    let field = Arc::new(Field::new(name, DataType::List(item.field.clone()), nullable));
    Tree { field, definition, first: item.first, kind: Kind::List(Box::new(item)) }
}

fn map(node: &Node, pair: &Node, definition: u8, nullable: bool, columns: &[Column], strings: Strings) -> Option<Tree> {
    let mut entries = content(pair, definition + 1, false, columns, strings)?;
    let Kind::Struct(fields) = &mut entries.kind else { return None };
    // Keys are never null, whatever their writer said.
    let key = fields.first_mut()?;
    key.field = Arc::new(key.field.as_ref().clone().with_nullable(false));
    let data_type = DataType::Struct(fields.iter().map(|tree| tree.field.clone()).collect());
    entries.field = Arc::new(Field::new(&pair.name, data_type, false));
    let field = Arc::new(Field::new(&node.name, DataType::Map(entries.field.clone(), false), nullable));
    Some(Tree { field, definition, first: entries.first, kind: Kind::Map(Box::new(entries)) })
}

/// The type of a column's values.
fn data_type(column: &Column, strings: Strings) -> DataType {
    let of = |logical: LogicalType| {
        Some(match (column.physical_type, logical) {
            (PhysicalType::Int32, LogicalType::Integer { bits, signed }) => match (bits, signed) {
                (8, true) => DataType::Int8,
                (16, true) => DataType::Int16,
                (8, false) => DataType::UInt8,
                (16, false) => DataType::UInt16,
                (32, false) => DataType::UInt32,
                _ => return None,
            },
            (PhysicalType::Int32, LogicalType::Date) => DataType::Date32,
            (PhysicalType::Int32, LogicalType::Time { unit: TimeUnit::Millis, .. }) => {
                DataType::Time32(ArrowUnit::Millisecond)
            }
            (PhysicalType::Int64, LogicalType::Integer { bits: 64, signed: false }) => DataType::UInt64,
            (PhysicalType::Int64, LogicalType::Time { unit: TimeUnit::Micros, .. }) => {
                DataType::Time64(ArrowUnit::Microsecond)
            }
            (PhysicalType::Int64, LogicalType::Time { unit: TimeUnit::Nanos, .. }) => {
                DataType::Time64(ArrowUnit::Nanosecond)
            }
            (PhysicalType::Int64, LogicalType::Timestamp { unit, utc }) => {
                let unit = match unit {
                    TimeUnit::Millis => ArrowUnit::Millisecond,
                    TimeUnit::Micros => ArrowUnit::Microsecond,
                    TimeUnit::Nanos => ArrowUnit::Nanosecond,
                };
                DataType::Timestamp(unit, utc.then(|| "UTC".into()))
            }
            (physical, LogicalType::Decimal { precision, scale }) => {
                let wide = match physical {
                    PhysicalType::Int32 | PhysicalType::Int64 => false,
                    PhysicalType::FixedLenByteArray(width) if width <= 32 => width > 16,
                    PhysicalType::ByteArray => precision > 38,
                    _ => return None,
                };
                let precision = u8::try_from(precision).ok().filter(|&p| p > 0 && p <= if wide { 76 } else { 38 })?;
                let scale =
                    i8::try_from(scale).ok().filter(|&s| s >= 0 && u8::try_from(s).is_ok_and(|s| s <= precision))?;
                if wide { DataType::Decimal256(precision, scale) } else { DataType::Decimal128(precision, scale) }
            }
            (PhysicalType::FixedLenByteArray(2), LogicalType::Float16) => DataType::Float16,
            (PhysicalType::ByteArray, LogicalType::String | LogicalType::Json) => match strings {
                Strings::Offsets => DataType::Utf8,
                Strings::Views => DataType::Utf8View,
                Strings::Dictionaries => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
            },
            _ => return None,
        })
    };
    if let Some(data_type) = column.logical.and_then(of) {
        return data_type;
    }
    match column.physical_type {
        PhysicalType::Boolean => DataType::Boolean,
        PhysicalType::Int32 => DataType::Int32,
        PhysicalType::Int64 => DataType::Int64,
        PhysicalType::Int96 => DataType::Timestamp(ArrowUnit::Nanosecond, None),
        PhysicalType::Float => DataType::Float32,
        PhysicalType::Double => DataType::Float64,
        PhysicalType::FixedLenByteArray(width) => DataType::FixedSizeBinary(i32::try_from(width).unwrap_or(i32::MAX)),
        PhysicalType::ByteArray => match strings {
            Strings::Offsets => DataType::Binary,
            Strings::Views => DataType::BinaryView,
            Strings::Dictionaries => DataType::Dictionary(DataType::Int32.into(), DataType::Binary.into()),
        },
    }
}

/// A column that has been read: its levels, and its values until its array takes them.
struct Shape {
    column: usize,
    data: ColumnData,
    /// Keys into the values that `data` holds.
    keys: Option<Vec<i32>>,
}

/// One field of one row group.
struct Build<'f, 'b> {
    file: &'f File<'f>,
    row_group: usize,
    buffers: &'b mut Buffers,
    shapes: Vec<Shape>,
}

impl Build<'_, '_> {
    fn part(&self, column: usize) -> Part {
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        Part::RowGroup(number(self.row_group), number(column))
    }

    /// Reads all columns of a field.
    fn read(&mut self, tree: &Tree) -> Result<(), Error> {
        match &tree.kind {
            Kind::Struct(fields) => fields.iter().try_for_each(|tree| self.read(tree)),
            Kind::List(item) | Kind::Map(item) => self.read(item),
            Kind::Leaf => {
                let column = tree.first;
                let dictionary = matches!(tree.field.data_type(), DataType::Dictionary(..));
                let mut reader = self.file.column(self.row_group, column, self.buffers)?;
                let mut data = ColumnData::new(reader.column().physical_type);
                let keys = if dictionary { Some(keys(&mut reader, &mut data)?) } else { None };
                if keys.is_none() {
                    reader.read_to(&mut data, true)?;
                }
                self.shapes.push(Shape { column, data, keys });
                Ok(())
            }
        }
    }

    fn shape(&self, column: usize) -> Result<&Shape, Error> {
        let shape = self.shapes.iter().find(|shape| shape.column == column);
        shape.ok_or_else(|| Error::new(ErrorKind::Missing, self.part(column)))
    }

    /// Whether each slot of a field is there from `definition` on; none if all are.
    fn nulls(&self, column: usize, level: Level, definition: u8) -> Result<Option<NullBuffer>, Error> {
        let data = &self.shape(column)?.data;
        if definition <= level.definition || data.definitions.is_empty() {
            return Ok(None);
        }
        let there = if data.repetitions.is_empty() {
            at_least(&data.definitions, definition)
        } else {
            let levels = data.definitions.iter().zip(&data.repetitions);
            let slots = levels.filter(|&(&d, &r)| r <= level.repetition && d >= level.definition);
            slots.map(|(&d, _)| d >= definition).collect()
        };
        Ok(Some(NullBuffer::new(there)).filter(|nulls| nulls.null_count() > 0))
    }

    fn array(&mut self, tree: &Tree, level: Level) -> Result<ArrayRef, Error> {
        let refused = {
            let part = self.part(tree.first);
            move |error| refused(part, error)
        };
        match &tree.kind {
            Kind::Leaf => self.leaf(tree, level),
            Kind::Struct(trees) => {
                let nulls = self.nulls(tree.first, level, tree.definition)?;
                let arrays = trees.iter().map(|tree| self.array(tree, level)).collect::<Result<Vec<_>, Error>>()?;
                let fields: Fields = trees.iter().map(|tree| tree.field.clone()).collect();
                Ok(Arc::new(StructArray::try_new(fields, arrays, nulls).map_err(refused)?))
            }
            Kind::List(item) => {
                let (offsets, nulls, inside) = self.offsets(tree, level)?;
                let items = self.array(item, inside)?;
                let list = ListArray::try_new(item.field.clone(), offsets, items, nulls);
                Ok(Arc::new(list.map_err(refused)?))
            }
            Kind::Map(pair) => {
                let (offsets, nulls, inside) = self.offsets(tree, level)?;
                let Kind::Struct(trees) = &pair.kind else { unreachable!("a map is made of pairs") };
                let arrays = trees.iter().map(|tree| self.array(tree, inside)).collect::<Result<Vec<_>, Error>>()?;
                let fields: Fields = trees.iter().map(|tree| tree.field.clone()).collect();
                let pairs = StructArray::try_new(fields, arrays, None).map_err(refused)?;
                let map = MapArray::try_new(pair.field.clone(), offsets, pairs, nulls, false);
                Ok(Arc::new(map.map_err(refused)?))
            }
        }
    }

    /// Where the items of each slot's list are, which slots are lists, and the place of the items.
    fn offsets(&self, tree: &Tree, level: Level) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>, Level), Error> {
        let nulls = self.nulls(tree.first, level, tree.definition)?;
        let inside = Level { repetition: level.repetition + 1, definition: tree.definition + 1 };
        let data = &self.shape(tree.first)?.data;
        let (mut offsets, mut items) = (Vec::new(), 0usize);
        for (&definition, &repetition) in data.definitions.iter().zip(&data.repetitions) {
            if definition >= level.definition && repetition <= level.repetition {
                offsets.push(items);
            }
            items += usize::from(definition >= inside.definition && repetition <= inside.repetition);
        }
        offsets.push(items);
        let limit = i32::MAX as u64;
        if items as u64 > limit {
            let kind = ErrorKind::LimitExceeded { needed: items as u64, limit, what: Limit::Values };
            return Err(Error::new(kind, self.part(tree.first)));
        }
        let offsets: ScalarBuffer<i32> =
            offsets.into_iter().map(|offset| i32::try_from(offset).unwrap_or(i32::MAX)).collect();
        Ok((OffsetBuffer::new(offsets), nulls, inside))
    }

    fn leaf(&mut self, tree: &Tree, level: Level) -> Result<ArrayRef, Error> {
        let nulls = self.nulls(tree.first, level, tree.definition)?;
        let part = self.part(tree.first);
        self.shape(tree.first)?;
        let Some(shape) = self.shapes.iter_mut().find(|shape| shape.column == tree.first) else {
            return Err(Error::new(ErrorKind::Missing, part));
        };
        let values = std::mem::replace(&mut shape.data.values, Values::Booleans(Vec::new()));
        let data_type = tree.field.data_type();
        if let (DataType::Dictionary(_, of), Some(keys), Values::ByteArrays(entries)) =
            (data_type, shape.keys.take(), &values)
        {
            let entries = byte_arrays(entries.clone(), of, None, part)?;
            let keys = PrimitiveArray::<Int32Type>::new(spread(keys, nulls.as_ref()).into(), nulls);
            return Ok(Arc::new(DictionaryArray::try_new(keys, entries).map_err(|error| refused(part, error))?));
        }
        array(values, data_type, nulls, part)
    }
}

/// Reads a chunk as keys into its dictionary, which goes to `data` with what the chunk holds beside it.
fn keys(reader: &mut super::ColumnReader<'_, '_>, data: &mut ColumnData) -> Result<Vec<i32>, Error> {
    let (mut keys, mut own, column) = (Vec::new(), ByteArrays::new(), reader.column());
    while let Some(mut page) = reader.next_page()? {
        let batch = page.take(page.remaining());
        page.append_levels(&batch, column, data, true);
        if matches!(page.info().encoding, Some(Encoding::PlainDictionary | Encoding::RleDictionary)) {
            let mut left = batch.values;
            while left > 0 {
                let (start, these) = (keys.len(), left.min(1 << 16));
                keys.resize(start + these, 0i32);
                page.decode_indices(bytemuck::cast_slice_mut(&mut keys[start..]))?;
                left -= these;
            }
        } else {
            // Their entries will follow the dictionary's; until then they are marked by a negative number.
            let first = i32::try_from(own.len()).unwrap_or(i32::MAX);
            page.decode_byte_arrays(batch.values, &mut own)?;
            keys.extend((first..).take(batch.values).map(|own| !own));
        }
        page.finish()?;
    }
    let none = ByteArrays::new();
    let dictionary = reader.dictionary().and_then(|dictionary| dictionary.byte_arrays()).unwrap_or(&none);
    let base = i32::try_from(dictionary.len()).unwrap_or(i32::MAX);
    if own.is_empty() {
        data.values = Values::ByteArrays(dictionary.clone());
    } else {
        let bytes = dictionary.bytes().len() as u64 + own.bytes().len() as u64;
        if bytes > i32::MAX as u64 || keys.len() as u64 + dictionary.len() as u64 > i32::MAX as u64 {
            let kind = ErrorKind::LimitExceeded { needed: bytes, limit: i32::MAX as u64, what: Limit::OutputBytes };
            return Err(Error::new(kind, Part::Values("", "dictionary")));
        }
        keys.iter_mut().filter(|key| **key < 0).for_each(|key| *key = base + !*key);
        data.values = Values::ByteArrays(ByteArrays::from_values(dictionary.iter().chain(own.iter())));
    }
    Ok(keys)
}

#[cold]
fn refused(part: Part, error: ArrowError) -> Error {
    Error::new(ErrorKind::Syntax(SyntaxFault::Parquet), part).caused_by(error)
}

/// Which levels are `least` or more, a word at a time.
fn at_least(levels: &[u8], least: u8) -> BooleanBuffer {
    let mut bytes = Vec::with_capacity(levels.len().div_ceil(64) * 8);
    for levels in levels.chunks(64) {
        let mut there = [[0u8; 8]; 8];
        let flat = there.as_flattened_mut();
        flat.iter_mut().zip(levels).for_each(|(there, &level)| *there = u8::from(level >= least));
        // Each product has the lowest bits of eight bytes in its highest byte.
        bytes.extend(there.map(|there| u64::from_le_bytes(there).wrapping_mul(0x0102_0408_1020_4080).to_be_bytes()[0]));
    }
    BooleanBuffer::new(Buffer::from_vec(bytes), 0, levels.len())
}

/// Values with room for those that are null.
fn spread<T: Copy + Default>(mut values: Vec<T>, nulls: Option<&NullBuffer>) -> Vec<T> {
    let Some(nulls) = nulls else { return values };
    let (len, mut left) = (nulls.len(), values.len());
    values.resize(len, T::default());
    let words: Vec<u64> = nulls.inner().bit_chunks().iter_padded().take(len.div_ceil(64)).collect();
    // From the end on, since each value moves to the back. Without a branch for each: nulls come at random.
    for (start, &word) in (0..len).step_by(64).zip(&words).rev() {
        if word == u64::MAX {
            left -= 64;
            values.copy_within(left..left + 64, start);
            continue;
        }
        for i in (start..len.min(start + 64)).rev() {
            let there = word >> (i - start) & 1 != 0;
            left -= usize::from(there);
            let value = values[left];
            values[i] = if there { value } else { T::default() };
        }
    }
    values
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> PrimitiveArray<T>
where
    T::Native: Default,
{
    PrimitiveArray::new(spread(values, nulls.as_ref()).into(), nulls)
}

/// Numbers that are stored in wider ones.
fn narrow<T: ArrowPrimitiveType>(values: &[i32], nulls: Option<NullBuffer>, part: Part) -> Result<ArrayRef, Error>
where
    T::Native: TryFrom<i32> + Default,
{
    let narrow = |(i, &value): (usize, &i32)| {
        let range = || fault(EncodingFault::Range { found: value.into() }, part).index(i as u64);
        T::Native::try_from(value).map_err(|_| range())
    };
    let values = values.iter().enumerate().map(narrow).collect::<Result<Vec<_>, Error>>()?;
    Ok(Arc::new(primitive::<T>(values, nulls)))
}

fn array(values: Values, data_type: &DataType, nulls: Option<NullBuffer>, part: Part) -> Result<ArrayRef, Error> {
    let unsigned32 = |values: Vec<i32>| values.into_iter().map(i32::cast_unsigned).collect::<Vec<u32>>();
    let unsigned64 = |values: Vec<i64>| values.into_iter().map(i64::cast_unsigned).collect::<Vec<u64>>();
    Ok(match (values, data_type) {
        (Values::Booleans(values), _) => {
            let values = spread(values, nulls.as_ref());
            let bits = BooleanBuffer::collect_bool(values.len(), |i| values[i] != 0);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        (Values::Int32(values), DataType::Int8) => narrow::<Int8Type>(&values, nulls, part)?,
        (Values::Int32(values), DataType::Int16) => narrow::<Int16Type>(&values, nulls, part)?,
        (Values::Int32(values), DataType::UInt8) => narrow::<UInt8Type>(&values, nulls, part)?,
        (Values::Int32(values), DataType::UInt16) => narrow::<UInt16Type>(&values, nulls, part)?,
        (Values::Int32(values), DataType::UInt32) => Arc::new(primitive::<UInt32Type>(unsigned32(values), nulls)),
        (Values::Int32(values), DataType::Date32) => Arc::new(primitive::<Date32Type>(values, nulls)),
        (Values::Int32(values), DataType::Time32(_)) => Arc::new(primitive::<Time32MillisecondType>(values, nulls)),
        (Values::Int32(values), DataType::Decimal128(..)) => {
            decimal(values.into_iter().map(i128::from).collect(), data_type, nulls)
        }
        (Values::Int32(values), _) => Arc::new(primitive::<Int32Type>(values, nulls)),
        (Values::Int64(values), DataType::UInt64) => Arc::new(primitive::<UInt64Type>(unsigned64(values), nulls)),
        (Values::Int64(values), DataType::Time64(ArrowUnit::Microsecond)) => {
            Arc::new(primitive::<Time64MicrosecondType>(values, nulls))
        }
        (Values::Int64(values), DataType::Time64(_)) => Arc::new(primitive::<Time64NanosecondType>(values, nulls)),
        (Values::Int64(values), DataType::Timestamp(unit, zone)) => timestamps(values, *unit, zone.clone(), nulls),
        (Values::Int64(values), DataType::Decimal128(..)) => {
            decimal(values.into_iter().map(i128::from).collect(), data_type, nulls)
        }
        (Values::Int64(values), _) => Arc::new(primitive::<Int64Type>(values, nulls)),
        (Values::Float(values), _) => Arc::new(primitive::<Float32Type>(values, nulls)),
        (Values::Double(values), _) => Arc::new(primitive::<Float64Type>(values, nulls)),
        (Values::Fixed { bytes, .. }, DataType::Timestamp(unit, zone)) => {
            let values = bytes.as_chunks().0.iter().map(int96).collect();
            timestamps(values, *unit, zone.clone(), nulls)
        }
        (Values::Fixed { bytes, .. }, DataType::Float16) => {
            let bits: Vec<u16> = bytes.as_chunks().0.iter().map(|&value| u16::from_le_bytes(value)).collect();
            let bits = spread(bits, nulls.as_ref());
            let len = bits.len();
            let values = ScalarBuffer::new(Buffer::from_vec(bits), 0, len);
            Arc::new(PrimitiveArray::<Float16Type>::new(values, nulls))
        }
        (Values::Fixed { width, bytes }, DataType::Decimal128(..) | DataType::Decimal256(..)) => {
            decimals(bytes.chunks_exact(width), data_type, nulls, part)?
        }
        (Values::Fixed { width, bytes }, _) => {
            let bytes = match &nulls {
                None => bytes,
                Some(nulls) => {
                    let mut out = vec![0; nulls.len() * width];
                    let mut rest = &bytes[..];
                    for (start, end) in nulls.valid_slices() {
                        let (these, behind) = rest.split_at((end - start) * width);
                        out[start * width..end * width].copy_from_slice(these);
                        rest = behind;
                    }
                    out
                }
            };
            let width = i32::try_from(width).unwrap_or(i32::MAX);
            let array = FixedSizeBinaryArray::try_new(width, Buffer::from_vec(bytes), nulls);
            Arc::new(array.map_err(|error| refused(part, error))?)
        }
        (Values::ByteArrays(values), DataType::Decimal128(..) | DataType::Decimal256(..)) => {
            decimals(values.iter(), data_type, nulls, part)?
        }
        (Values::ByteArrays(values), _) => byte_arrays(values, data_type, nulls, part)?,
        (Values::Numbers(_), _) => return Err(Error::new(ErrorKind::WrongType, part)),
    })
}

fn timestamps(values: Vec<i64>, unit: ArrowUnit, zone: Option<Arc<str>>, nulls: Option<NullBuffer>) -> ArrayRef {
    match unit {
        ArrowUnit::Millisecond => {
            Arc::new(primitive::<TimestampMillisecondType>(values, nulls).with_timezone_opt(zone))
        }
        ArrowUnit::Microsecond => {
            Arc::new(primitive::<TimestampMicrosecondType>(values, nulls).with_timezone_opt(zone))
        }
        _ => Arc::new(primitive::<TimestampNanosecondType>(values, nulls).with_timezone_opt(zone)),
    }
}

/// Nanoseconds since 1970 of an INT96: those of the day, then the Julian day.
fn int96(value: &[u8; 12]) -> i64 {
    let (nanos, day) = value.split_at(8);
    let nanos = i64::from_le_bytes(nanos.try_into().unwrap_or_default());
    let day = i64::from(i32::from_le_bytes(day.try_into().unwrap_or_default()));
    (day - 2_440_588).wrapping_mul(86_400_000_000_000).wrapping_add(nanos)
}

fn decimal(values: Vec<i128>, data_type: &DataType, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(primitive::<Decimal128Type>(values, nulls).with_data_type(data_type.clone()))
}

/// Decimals of bytes, the highest first.
fn decimals<'v>(
    values: impl Iterator<Item = &'v [u8]>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    part: Part,
) -> Result<ArrayRef, Error> {
    fn wide<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
        let sign = if value.first().is_some_and(|&high| high >= 0x80) { 0xff } else { 0 };
        let mut out = [sign; N];
        out[N.checked_sub(value.len())?..].copy_from_slice(value);
        Some(out)
    }
    let long = |i: usize, value: &[u8], most: u64| {
        fault(EncodingFault::Length { found: value.len() as u64, expected: most }, part).index(i as u64)
    };
    let values = values.enumerate();
    if matches!(data_type, DataType::Decimal128(..)) {
        let values = values.map(|(i, value)| wide(value).map(i128::from_be_bytes).ok_or_else(|| long(i, value, 16)));
        return Ok(decimal(values.collect::<Result<_, Error>>()?, data_type, nulls));
    }
    let values = values.map(|(i, value)| wide(value).map(i256::from_be_bytes).ok_or_else(|| long(i, value, 32)));
    let values = values.collect::<Result<_, Error>>()?;
    Ok(Arc::new(primitive::<Decimal256Type>(values, nulls).with_data_type(data_type.clone())))
}

/// Text or bytes of any length.
fn byte_arrays(
    values: ByteArrays,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    part: Part,
) -> Result<ArrayRef, Error> {
    let text = |error: ArrowError| Error::new(ErrorKind::Syntax(SyntaxFault::Utf8), part).caused_by(error);
    if matches!(data_type, DataType::Utf8View | DataType::BinaryView) {
        let views = spread(values.iter().zip(values.offsets()).map(view).collect(), nulls.as_ref());
        let (_, bytes) = values.into_parts();
        let buffers = [Buffer::from_vec(bytes)];
        return Ok(match data_type {
            DataType::Utf8View => Arc::new(StringViewArray::try_new(views.into(), buffers, nulls).map_err(text)?),
            _ => {
                Arc::new(BinaryViewArray::try_new(views.into(), buffers, nulls).map_err(|error| refused(part, error))?)
            }
        });
    }
    let (offsets, bytes) = values.into_parts();
    let offsets = match &nulls {
        None => offsets,
        Some(nulls) => {
            let mut out = Vec::with_capacity(nulls.len() + 1);
            let mut next = 0;
            out.push(0);
            for there in nulls.iter() {
                next += usize::from(there);
                out.push(offsets[next]);
            }
            out
        }
    };
    let (offsets, bytes) = (OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes));
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::try_new(offsets, bytes, nulls).map_err(text)?),
        _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls).map_err(|error| refused(part, error))?),
    })
}

/// The view of a value that starts at such an offset: its length, then all of it if it is short, else its first bytes and
/// where it lies.
fn view((value, &offset): (&[u8], &i32)) -> u128 {
    let mut view = [0u8; 16];
    let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
    view[..4].copy_from_slice(&len.to_le_bytes());
    if value.len() <= 12 {
        view[4..4 + value.len()].copy_from_slice(value);
    } else {
        view[4..8].copy_from_slice(&value[..4]);
        view[12..].copy_from_slice(&offset.to_le_bytes());
    }
    u128::from_le_bytes(view)
}
