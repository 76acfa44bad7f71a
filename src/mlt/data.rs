//! Decoded columns: typed values with validity, in memory that is kept.
//!
//! Every column has a slot for each feature. A null's slot holds 0, or an empty string; which slots those are, a bitmap
//! says, if there are any.

use bytemuck::Pod;

use super::geometry::Geometry;
use super::nested::{Nested, NestedData};
use super::outline::DataType;
use crate::buffer::grow;
use crate::error::{Error, Limit, Part};
use crate::limits::Limits;

/// Memory that grows to the most that was ever needed; the first `len` elements are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept<T> {
    all: Vec<T>,
    len: usize,
}

impl<T: Pod> Kept<T> {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes it so long, as a result; what it then holds is unspecified.
    pub(crate) fn make(&mut self, len: usize, budget: &mut Budget) -> Result<&mut [T], Error> {
        budget.bytes(len, size_of::<T>())?;
        self.grown(len)
    }

    /// Makes it so long, as scratch; what it then holds is unspecified.
    pub(crate) fn scratch(&mut self, len: usize, budget: &Budget) -> Result<&mut [T], Error> {
        budget.scratch(len, size_of::<T>())?;
        self.grown(len)
    }

    fn grown(&mut self, len: usize) -> Result<&mut [T], Error> {
        grow(&mut self.all, len)?;
        self.len = len;
        Ok(&mut self.all[..len])
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.all[..self.len]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        &mut self.all[..self.len]
    }
}

/// What a call may still allocate and give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: u64,
    values: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, bytes: 0, values: 0 }
    }

    /// So many elements of a result, of so many bytes each.
    pub(crate) fn bytes(&mut self, elements: usize, size: usize) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add((elements as u64).saturating_mul(size as u64));
        Limits::check(self.bytes, self.limits.max_output_bytes, Limit::OutputBytes, PART)
    }

    /// Whether there is room for so many elements of a result.
    pub(crate) fn check_bytes(&self, elements: usize, size: usize) -> Result<(), Error> {
        Budget::bytes(&mut self.clone(), elements, size)
    }

    /// Bytes of a result that may still be allocated.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.limits.max_output_bytes - self.bytes
    }

    /// So many values.
    pub(crate) fn values(&mut self, values: usize) -> Result<(), Error> {
        self.values = self.values.saturating_add(values as u64);
        Limits::check(self.values, self.limits.max_values, Limit::Values, PART)
    }

    /// So many elements of scratch.
    pub(crate) fn scratch(&self, elements: usize, size: usize) -> Result<(), Error> {
        let needed = (elements as u64).saturating_mul(size as u64);
        Limits::check(needed, self.limits.max_scratch_bytes, Limit::ScratchBytes, PART)
    }
}

const PART: Part = Part::Values("", "count");

/// Whether bit `i` of a bitmap is set, lowest bits first.
pub(crate) fn bit(bitmap: &[u8], i: usize) -> bool {
    bitmap[i / 8] >> (i % 8) & 1 == 1
}

/// How many bits are set.
pub(crate) fn ones(bitmap: &[u8]) -> usize {
    let (words, rest) = bitmap.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word).count_ones());
    words.chain(rest.iter().map(|byte| byte.count_ones())).map(|ones| ones as usize).sum()
}

/// Strings behind each other, and where they end.
#[derive(Clone, Debug, Default)]
pub(crate) struct StringStore {
    /// One more than strings.
    pub(crate) offsets: Vec<u32>,
    pub(crate) text: String,
}

impl StringStore {
    /// How many strings.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }
}

/// What the strings of a column are stored in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coded {
    /// One for each slot.
    #[default]
    No,
    /// Codes into entries of its own.
    Own,
    /// Codes into the entries of a dictionary of the layer.
    Shared(usize),
}

/// Values of any type.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) data_type: DataType,
    pub(crate) len: usize,
    /// Truth values as a bitmap; 8-bit values.
    pub(crate) bytes: Kept<u8>,
    /// 32-bit values; codes.
    pub(crate) words: Kept<u32>,
    /// 64-bit values.
    pub(crate) long_words: Kept<u64>,
    pub(crate) strings: StringStore,
    pub(crate) coded: Coded,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            data_type: DataType::Bool,
            len: 0,
            bytes: Kept::default(),
            words: Kept::default(),
            long_words: Kept::default(),
            strings: StringStore::default(),
            coded: Coded::No,
        }
    }
}

impl Store {
    /// The values; `shared` are the dictionaries of the layer.
    pub(crate) fn values<'a>(&'a self, shared: &'a [StringStore]) -> Values<'a> {
        let (bytes, words, long) = (self.bytes.get(), self.words.get(), self.long_words.get());
        match self.data_type {
            DataType::Bool => Values::Bool(bytes),
            DataType::Int8 => Values::Int8(bytemuck::cast_slice(bytes)),
            DataType::UInt8 => Values::UInt8(bytes),
            DataType::Int32 => Values::Int32(bytemuck::cast_slice(words)),
            DataType::UInt32 | DataType::Id => Values::UInt32(words),
            DataType::Int64 => Values::Int64(bytemuck::cast_slice(long)),
            DataType::UInt64 | DataType::LongId => Values::UInt64(long),
            DataType::Float => Values::Float(bytemuck::cast_slice(words)),
            DataType::Double => Values::Double(bytemuck::cast_slice(long)),
            DataType::String | DataType::Struct | DataType::List | DataType::Map => {
                let strings = match self.coded {
                    Coded::No | Coded::Own => &self.strings,
                    Coded::Shared(of) => &shared[of],
                };
                let codes = (self.coded != Coded::No).then_some(words);
                Values::Strings(Strings { codes, offsets: &strings.offsets, text: &strings.text })
            }
        }
    }
}

/// The values of a column, a slot for each feature.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values<'a> {
    /// A bitmap, lowest bits first; bits past the last value are 0.
    Bool(&'a [u8]),
    /// Signed, 8 bits.
    Int8(&'a [i8]),
    /// Unsigned, 8 bits.
    UInt8(&'a [u8]),
    /// Signed, 32 bits.
    Int32(&'a [i32]),
    /// Unsigned, 32 bits.
    UInt32(&'a [u32]),
    /// Signed, 64 bits.
    Int64(&'a [i64]),
    /// Unsigned, 64 bits.
    UInt64(&'a [u64]),
    /// IEEE 754, 32 bits.
    Float(&'a [f32]),
    /// IEEE 754, 64 bits.
    Double(&'a [f64]),
    /// UTF-8.
    Strings(Strings<'a>),
}

impl<'a> Values<'a> {
    /// The value in slot `i`; of a null, 0 or an empty string.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn get(&self, i: usize) -> Value<'a> {
        match self {
            Values::Bool(bitmap) => Value::Bool(bit(bitmap, i)),
            Values::Int8(values) => Value::Int(values[i].into()),
            Values::UInt8(values) => Value::UInt(values[i].into()),
            Values::Int32(values) => Value::Int(values[i].into()),
            Values::UInt32(values) => Value::UInt(values[i].into()),
            Values::Int64(values) => Value::Int(values[i]),
            Values::UInt64(values) => Value::UInt(values[i]),
            Values::Float(values) => Value::Float(values[i]),
            Values::Double(values) => Value::Double(values[i]),
            Values::Strings(strings) => Value::String(strings.get(i)),
        }
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number of a signed type.
    Int(i64),
    /// A number of an unsigned type, or an id.
    UInt(u64),
    /// IEEE 754, 32 bits.
    Float(f32),
    /// IEEE 754, 64 bits.
    Double(f64),
    /// UTF-8.
    String(&'a str),
}

/// The strings of a column: one for each slot, or codes into entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strings<'a> {
    /// Which entry each slot holds; 0 for nulls, also where there are no entries. None: entry `i` is that of slot `i`.
    pub codes: Option<&'a [u32]>,
    /// Where entries start in `text`, and in the end where the last one ends: one more than entries, from 0.
    pub offsets: &'a [u32],
    /// All entries.
    pub text: &'a str,
}

impl<'a> Strings<'a> {
    /// The string in slot `i`; of a null, any.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn get(&self, i: usize) -> &'a str {
        match self.codes {
            // A null where there are no entries at all.
            Some(codes) if codes[i] == 0 && self.offsets.len() < 2 => "",
            Some(codes) => self.entry(codes[i] as usize),
            None => self.entry(i),
        }
    }

    /// Entry `i`.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn entry(&self, i: usize) -> &'a str {
        &self.text[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
}

/// A column of features, as it was decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Property<'a> {
    /// Its name, with what a shared dictionary puts before it; empty for ids.
    pub name: &'a str,
    /// Its type: `Bool` to `String`; `Id` or `LongId` for ids.
    pub data_type: DataType,
    /// Its slots: one for each feature.
    pub len: usize,
    /// Which slots have a value: a bitmap, lowest bits first. None: all.
    pub validity: Option<&'a [u8]>,
    /// How many have none.
    pub nulls: usize,
    /// The values.
    pub values: Values<'a>,
}

impl<'a> Property<'a> {
    /// Whether slot `i` has a value.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn is_valid(&self, i: usize) -> bool {
        assert!(i < self.len, "slot {i} of {}", self.len);
        self.validity.is_none_or(|validity| bit(validity, i))
    }

    /// The value in slot `i`.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn get(&self, i: usize) -> Value<'a> {
        if self.is_valid(i) { self.values.get(i) } else { Value::Null }
    }

    /// All slots.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'a>> {
        let property = *self;
        (0..self.len).map(move |i| property.get(i))
    }
}

/// Which slots have a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validity {
    /// Of use only if there are nulls.
    pub(crate) bits: Kept<u8>,
    pub(crate) nulls: usize,
}

impl Validity {
    pub(crate) fn get(&self) -> Option<&[u8]> {
        (self.nulls > 0).then(|| self.bits.get())
    }
}

/// A decoded column of features. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug, Default)]
pub struct PropertyData {
    pub(crate) name: String,
    pub(crate) validity: Validity,
    pub(crate) store: Store,
}

impl PropertyData {
    /// No column yet.
    pub fn new() -> PropertyData {
        PropertyData::default()
    }

    /// What was decoded last; nothing after an error.
    pub fn get(&self) -> Property<'_> {
        self.of(&[])
    }

    pub(crate) fn of<'a>(&'a self, shared: &'a [StringStore]) -> Property<'a> {
        Property {
            name: &self.name,
            data_type: self.store.data_type,
            len: self.store.len,
            validity: self.validity.get(),
            nulls: self.validity.nulls,
            values: self.store.values(shared),
        }
    }
}

/// Values of the vertices of features, as they were decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MValues<'a> {
    /// The column's name.
    pub name: &'a str,
    /// Its type: `Bool` to `String`.
    pub data_type: DataType,
    /// Features.
    pub len: usize,
    /// Which features have values: a bitmap, lowest bits first. None: all.
    pub validity: Option<&'a [u8]>,
    /// How many have none.
    pub nulls: usize,
    /// Where the values of each feature start, and in the end where the last ones end. A feature that has values has as many
    /// as it has vertices.
    pub offsets: &'a [u32],
    /// The values of all features.
    pub values: Values<'a>,
}

impl<'a> MValues<'a> {
    /// The values of feature `i`, if it has any.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn get(&self, i: usize) -> Option<impl ExactSizeIterator<Item = Value<'a>>> {
        let values = self.values;
        let slots = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        self.validity.is_none_or(|validity| bit(validity, i)).then(|| slots.map(move |slot| values.get(slot)))
    }
}

/// A decoded column of vertices. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug, Default)]
pub struct MValueData {
    pub(crate) name: String,
    pub(crate) validity: Validity,
    pub(crate) len: usize,
    pub(crate) offsets: Kept<u32>,
    pub(crate) store: Store,
}

impl MValueData {
    /// No column yet.
    pub fn new() -> MValueData {
        MValueData::default()
    }

    /// What was decoded last; nothing after an error.
    pub fn get(&self) -> MValues<'_> {
        MValues {
            name: &self.name,
            data_type: self.store.data_type,
            len: self.len,
            validity: self.validity.get(),
            nulls: self.validity.nulls,
            // Of no column, too, there is an end.
            offsets: if self.len == 0 { &[0] } else { self.offsets.get() },
            values: self.store.values(&[]),
        }
    }
}

/// Things of which the first `len` are in use, so that the others keep their memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool<T> {
    all: Vec<T>,
    len: usize,
}

impl<T: Default> Pool<T> {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// One more, with whatever it held.
    pub(crate) fn next(&mut self) -> &mut T {
        if self.all.len() == self.len {
            self.all.push(T::default());
        }
        self.len += 1;
        &mut self.all[self.len - 1]
    }

    pub(crate) fn drop_last(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.all[..self.len]
    }

    /// Those before `i`, and those from it on.
    pub(crate) fn split(&mut self, i: usize) -> (&mut [T], &mut [T]) {
        self.all[..self.len].split_at_mut(i)
    }
}

/// A decoded layer. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug, Default)]
pub struct LayerData {
    pub(crate) number: usize,
    pub(crate) version: u8,
    pub(crate) extent: u32,
    pub(crate) features: usize,
    pub(crate) name: String,
    pub(crate) has_ids: bool,
    pub(crate) id_data: PropertyData,
    pub(crate) geometry: Geometry,
    pub(crate) properties: Pool<PropertyData>,
    pub(crate) dictionaries: Pool<StringStore>,
    pub(crate) m_values: Pool<MValueData>,
    pub(crate) nested: Pool<NestedData>,
}

impl LayerData {
    /// No layer yet.
    pub fn new() -> LayerData {
        LayerData::default()
    }

    /// Its number in the tile; frames of unknown tags do not count.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The version of its container: 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Units of the tile's side.
    pub fn extent(&self) -> u32 {
        self.extent
    }

    /// How many features it has.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Ids, if the layer has them: `UInt32` or `UInt64`.
    pub fn ids(&self) -> Option<Property<'_>> {
        self.has_ids.then(|| self.id_data.get())
    }

    /// Geometries.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Properties that are not nested, in the order of the tile.
    pub fn properties(&self) -> impl ExactSizeIterator<Item = Property<'_>> {
        self.properties.get().iter().map(|property| property.of(self.dictionaries.get()))
    }

    /// The property of this name; nested ones are in [`LayerData::nested`].
    pub fn property(&self, name: &str) -> Option<Property<'_>> {
        self.properties().find(|property| property.name == name)
    }

    /// Columns of vertices, in the order of the tile.
    pub fn m_values(&self) -> impl ExactSizeIterator<Item = MValues<'_>> {
        self.m_values.get().iter().map(MValueData::get)
    }

    /// Nested properties, in the order of the tile.
    pub fn nested(&self) -> impl ExactSizeIterator<Item = Nested<'_>> {
        self.nested.get().iter().map(NestedData::get)
    }
}

/// A decoded tile. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug, Default)]
pub struct TileData {
    pub(crate) layers: Pool<LayerData>,
}

impl TileData {
    /// No tile yet.
    pub fn new() -> TileData {
        TileData::default()
    }

    /// The layers, in the order of the tile.
    pub fn layers(&self) -> &[LayerData] {
        self.layers.get()
    }
}
