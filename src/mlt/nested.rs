//! Nested columns: structs, lists and maps, of any depth that the format allows.
//!
//! Every node has a slot for each feature; below a list or map, for each of its elements. So the fields of a struct have
//! the slots of the struct, and where that is null, so are they.
//!
//! Source: version 2 container, section 9.

use super::MltFault;
use super::data::{Coded, Kept, Pool, Store, Strings, Validity, Values, bit, ones};
use super::decoder::{Core, Spec, counted, missing};
use super::encoding::fault;
use super::outline::{ColumnKind, DataType, NodeKind, Presence};
use super::stream::Stream;
use super::tile::{Column, Layer};
use crate::error::{Error, Part};

/// A decoded nested column. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug)]
pub struct NestedData {
    pub(crate) name: String,
    /// In preorder, at least one.
    pub(crate) nodes: Pool<NodeData>,
}

impl Default for NestedData {
    /// Values without a slot.
    fn default() -> NestedData {
        let mut nodes = Pool::default();
        nodes.next();
        NestedData { name: String::new(), nodes }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Values,
    Struct,
    List,
    Map,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NodeData {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) slots: usize,
    pub(crate) validity: Validity,
    /// The first node behind this one and its descendants.
    pub(crate) end: usize,
    /// Of lists and maps.
    pub(crate) offsets: Kept<u32>,
    /// Of structs whose rows have shapes.
    fields: usize,
    /// Values; the keys of maps.
    pub(crate) store: Store,
}

impl NestedData {
    /// No column yet.
    pub fn new() -> NestedData {
        NestedData::default()
    }

    /// What was decoded last; nothing after an error.
    pub fn get(&self) -> Nested<'_> {
        Nested { name: &self.name, root: NestedNode { nodes: self.nodes.get(), at: 0 } }
    }
}

/// A nested column, as it was decoded.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Nested<'a> {
    /// The column's name.
    pub name: &'a str,
    /// Its values: a slot for each feature.
    pub root: NestedNode<'a>,
}

/// The values of a nested column, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub struct NestedNode<'a> {
    nodes: &'a [NodeData],
    at: usize,
}

/// What the values of a [`NestedNode`] are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NestedKind<'a> {
    /// Values that are not nested, in the node's slots.
    Values(Values<'a>),
    /// Fields, each with the slots of the struct.
    Struct(Fields<'a>),
    /// Lists: the elements of slot `i` are those from `offsets[i]` to `offsets[i + 1]`.
    List {
        /// One more than slots.
        offsets: &'a [u32],
        /// All elements.
        element: NestedNode<'a>,
    },
    /// Maps: the entries of slot `i` are those from `offsets[i]` to `offsets[i + 1]`.
    Map {
        /// One more than slots.
        offsets: &'a [u32],
        /// The keys of all entries.
        keys: Strings<'a>,
        /// The values of all entries.
        value: NestedNode<'a>,
    },
}

impl<'a> NestedNode<'a> {
    fn data(&self) -> &'a NodeData {
        &self.nodes[self.at]
    }

    /// The field's name in its struct; empty for others.
    pub fn name(&self) -> &'a str {
        &self.data().name
    }

    /// The type of its values; none of structs, lists and maps.
    pub fn data_type(&self) -> Option<DataType> {
        (self.data().kind == Kind::Values).then(|| self.data().store.data_type)
    }

    /// How many slots it has.
    pub fn len(&self) -> usize {
        self.data().slots
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which slots have a value: a bitmap, lowest bits first. None: all.
    pub fn validity(&self) -> Option<&'a [u8]> {
        self.data().validity.get()
    }

    /// How many have none.
    pub fn nulls(&self) -> usize {
        self.data().validity.nulls
    }

    /// Whether slot `i` has a value.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn is_valid(&self, i: usize) -> bool {
        assert!(i < self.len(), "slot {i} of {}", self.len());
        self.validity().is_none_or(|validity| bit(validity, i))
    }

    /// What its values are.
    pub fn kind(&self) -> NestedKind<'a> {
        let data = self.data();
        let below = NestedNode { nodes: self.nodes, at: self.at + 1 };
        match data.kind {
            Kind::Values => NestedKind::Values(data.store.values(&[])),
            Kind::Struct => NestedKind::Struct(Fields { nodes: self.nodes, at: self.at + 1, end: data.end }),
            Kind::List => NestedKind::List { offsets: data.offsets.get(), element: below },
            Kind::Map => {
                let Values::Strings(keys) = data.store.values(&[]) else { unreachable!("keys are strings") };
                NestedKind::Map { offsets: data.offsets.get(), keys, value: below }
            }
        }
    }
}

/// The fields of a struct.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    nodes: &'a [NodeData],
    at: usize,
    end: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = NestedNode<'a>;

    fn next(&mut self) -> Option<NestedNode<'a>> {
        let node = NestedNode { nodes: self.nodes, at: self.at };
        (self.at < self.end).then(|| {
            self.at = self.nodes[self.at].end;
            node
        })
    }
}

/// What a node hands down to the next one: its slots, and the node that says which of them have a value.
#[derive(Clone, Copy)]
struct Handed {
    slots: usize,
    /// None: all slots.
    above: Option<usize>,
    /// Which field of a struct whose rows have shapes: those say which rows have it.
    field: Option<(usize, u32)>,
}

impl Core {
    /// A nested column.
    pub(crate) fn nested(&mut self, column: Column<'_>, out: &mut NestedData) -> Result<(), Error> {
        self.try_nested(column, out).map_err(|e| e.of_column(column))
    }

    fn try_nested(&mut self, column: Column<'_>, out: &mut NestedData) -> Result<(), Error> {
        let (layer, outline) = (column.layer(), column.outline());
        self.named(layer, outline, &mut out.name)?;
        out.nodes.clear();
        let ColumnKind::Nested { node } = outline.kind else { return Err(missing()) };
        let handed = Handed { slots: layer.features(), above: None, field: None };
        // The presence of a root is the column's.
        self.node(layer, node, Some(outline.presence), handed, out)
    }

    /// A node and all below it. They are as deep as the format allows at most, which the outline has seen to.
    fn node(
        &mut self,
        layer: Layer<'_>,
        index: u32,
        presence: Option<Presence>,
        handed: Handed,
        out: &mut NestedData,
    ) -> Result<(), Error> {
        let (node, at, slots) = (layer.node(index), out.nodes.get().len(), handed.slots);
        self.budget.bytes(1, size_of::<NodeData>())?;
        out.nodes.next();
        let (before, this) = out.nodes.split(at);
        let this = &mut this[0];
        this.name.clear();
        this.name.push_str(layer.text(&node.name));
        this.slots = slots;
        let above = handed.above.and_then(|above| before[above].validity.get());
        let n = handed.above.map_or(slots, |above| slots - before[above].validity.nulls);
        match handed.field {
            None => {
                let presence = presence.unwrap_or(node.presence);
                self.presence(layer, presence, n, above, slots, &mut this.validity)?;
            }
            Some((parent, field)) => self.shaped(&before[parent], field, n, above, this)?,
        }
        let present = slots - this.validity.nulls;
        match &node.kind {
            NodeKind::Leaf { data_type, strings, streams } => {
                this.kind = Kind::Values;
                let of = Spec { data_type: *data_type, strings: *strings, streams: layer.streams(streams) };
                self.values(layer, &of, &this.validity, slots, &mut this.store)?;
            }
            NodeKind::Struct { fields, shapes } => {
                this.kind = Kind::Struct;
                if let Some(shapes) = shapes {
                    self.shapes(layer, *shapes, *fields as usize, present, this)?;
                }
                let mut child = index + 1;
                for field in 0..*fields {
                    let field = shapes.is_some().then_some((at, field));
                    self.node(layer, child, None, Handed { slots, above: Some(at), field }, out)?;
                    child = layer.node(child).end;
                }
            }
            NodeKind::List { lengths } => {
                this.kind = Kind::List;
                let elements = self.list(layer, layer.stream(*lengths), this)?;
                self.node(layer, index + 1, None, Handed { slots: elements, above: None, field: None }, out)?;
            }
            NodeKind::Map { lengths, key_layout, keys, shapes } => {
                this.kind = Kind::Map;
                let of = Spec { data_type: DataType::String, strings: *key_layout, streams: layer.streams(keys) };
                let entries = match (lengths, shapes) {
                    (Some(lengths), _) => {
                        let entries = self.list(layer, layer.stream(*lengths), this)?;
                        self.values(layer, &of, &Validity::default(), entries, &mut this.store)?;
                        entries
                    }
                    (None, Some(shapes)) => self.shaped_map(layer, &of, *shapes, present, this)?,
                    (None, None) => return Err(missing()),
                };
                self.node(layer, index + 1, None, Handed { slots: entries, above: None, field: None }, out)?;
            }
        }
        out.nodes.split(at).1[0].end = out.nodes.get().len();
        Ok(())
    }

    /// The offsets of lists; gives how many elements they have.
    fn list(&mut self, layer: Layer<'_>, stream: &Stream, this: &mut NodeData) -> Result<usize, Error> {
        counted(stream, this.slots - this.validity.nulls)?;
        let mut memory = std::mem::take(&mut self.memory);
        let result = self.try_list(layer, stream, &mut memory.words, &mut memory.more_words, this);
        self.memory = memory;
        result
    }

    fn try_list(
        &mut self,
        layer: Layer<'_>,
        stream: &Stream,
        words: &mut Kept<u32>,
        spread: &mut Kept<u32>,
        this: &mut NodeData,
    ) -> Result<usize, Error> {
        let mut lengths = self.all_words(layer, stream, words)?;
        if let Some(validity) = this.validity.get() {
            let spread = spread.scratch(this.slots, &self.budget)?;
            self.options.kernels.spread_u32(lengths, validity, spread);
            lengths = spread;
        }
        let offsets = this.offsets.make(this.slots + 1, &mut self.budget)?;
        offsets[0] = 0;
        let total = self.options.kernels.offsets_u32(lengths, 0, &mut offsets[1..]).total;
        elements(total, stream)
    }

    /// The shapes of rows: a table of which fields each has, and the shape of each row that is there. Both stay in the node's
    /// own memory, which structs have no other use for.
    fn shapes(
        &mut self,
        layer: Layer<'_>,
        (table, ids): (u32, u32),
        fields: usize,
        present: usize,
        this: &mut NodeData,
    ) -> Result<(), Error> {
        let (table, ids) = (layer.stream(table), layer.stream(ids));
        let shapes = table.count as usize / fields.max(1);
        counted(table, shapes * fields)?;
        counted(ids, present)?;
        let bits = this.store.bytes.make(table.count.div_ceil(8) as usize, &mut self.budget)?;
        self.bits(layer, table, bits)?;
        self.enough(layer, ids)?;
        let words = this.store.words.make(present, &mut self.budget)?;
        self.words(layer, ids, false, words)?;
        this.fields = fields;
        match words.iter().position(|&id| id as usize >= shapes) {
            None => Ok(()),
            Some(i) => {
                let kind = MltFault::Code { found: words[i], entries: shapes as u64 };
                let error = fault(kind, Part::Values("", "shape")).at(ids.header.1).index(i as u64);
                Err(error.in_stream(ids.role.name()))
            }
        }
    }

    /// The presence of a field that the shapes of the rows tell.
    fn shaped(
        &mut self,
        parent: &NodeData,
        field: u32,
        handed: usize,
        above: Option<&[u8]>,
        this: &mut NodeData,
    ) -> Result<(), Error> {
        self.budget.values(handed)?;
        let mut memory = std::mem::take(&mut self.memory.bits);
        let own = memory.scratch(handed.div_ceil(8), &self.budget)?;
        own.fill(0);
        let (table, mut n) = (parent.store.bytes.get(), 0);
        for (i, &shape) in parent.store.words.get().iter().enumerate() {
            if bit(table, shape as usize * parent.fields + field as usize) {
                own[i / 8] |= 1 << (i % 8);
                n += 1;
            }
        }
        let bits = this.validity.bits.make(this.slots.div_ceil(8), &mut self.budget)?;
        match above {
            None => bits.copy_from_slice(own),
            Some(above) => {
                self.options.kernels.spread_bits(own, above, this.slots, bits);
            }
        }
        this.validity.nulls = this.slots - n;
        self.memory.bits = memory;
        Ok(())
    }

    /// Maps whose rows have shapes: distinct keys, of which each row has those of its shape, in order.
    fn shaped_map(
        &mut self,
        layer: Layer<'_>,
        of: &Spec<'_>,
        shapes: (u32, u32),
        present: usize,
        this: &mut NodeData,
    ) -> Result<usize, Error> {
        let keys = of.streams.first().ok_or_else(missing)?;
        let distinct = keys.count as usize;
        self.shapes(layer, shapes, distinct, present, this)?;
        let stream = layer.stream(shapes.1);
        let table = layer.stream(shapes.0).count as usize;
        self.budget.values(table)?;
        // The keys of each shape behind each other, so that a row costs as much as it has entries.
        let bitmap = this.store.bytes.get();
        let (mut starts, mut listed) =
            (std::mem::take(&mut self.memory.symbols), std::mem::take(&mut self.memory.words));
        let starts_of = starts.scratch(table / distinct.max(1) + 1, &self.budget)?;
        let keys_of = listed.scratch(ones(bitmap), &self.budget)?;
        starts_of.fill(0);
        for (at, key) in set_bits(bitmap).zip(keys_of.iter_mut()) {
            // Keys and bits are counted in 32 bits.
            *key = u32::try_from(at % distinct).unwrap_or(u32::MAX);
            starts_of[at / distinct + 1] += 1;
        }
        for shape in 1..starts_of.len() {
            starts_of[shape] += starts_of[shape - 1];
        }
        let keys_of = |id: u32| &keys_of[starts_of[id as usize] as usize..starts_of[id as usize + 1] as usize];
        let offsets = this.offsets.make(this.slots + 1, &mut self.budget)?;
        offsets[0] = 0;
        let (mut total, mut ids) = (0u64, this.store.words.get().iter());
        let validity = this.validity.get();
        for (i, offset) in offsets[1..].iter_mut().enumerate() {
            if validity.is_none_or(|validity| bit(validity, i)) {
                total += ids.next().map_or(0, |&id| keys_of(id).len() as u64);
            }
            *offset = u32::try_from(total).unwrap_or(u32::MAX);
        }
        let entries = elements(total, stream)?;
        self.budget.values(entries)?;
        // The codes of the keys, which are made entries of the keys' own dictionary if they have one.
        let mut codes = std::mem::take(&mut self.memory.more_words);
        let all = codes.scratch(entries, &self.budget)?;
        let keys = this.store.words.get().iter().flat_map(|&id| keys_of(id));
        all.iter_mut().zip(keys).for_each(|(code, key)| *code = *key);
        (self.memory.symbols, self.memory.words) = (starts, listed);
        self.values(layer, of, &Validity::default(), distinct, &mut this.store)?;
        if this.store.coded == Coded::Own {
            let of_keys = this.store.words.get();
            all.iter_mut().for_each(|code| *code = of_keys[*code as usize]);
        }
        this.store.words.make(entries, &mut self.budget)?.copy_from_slice(all);
        (this.store.coded, this.store.len) = (Coded::Own, entries);
        self.memory.more_words = codes;
        Ok(entries)
    }
}

/// The places of the bits that are set.
fn set_bits(bitmap: &[u8]) -> impl Iterator<Item = usize> {
    let bytes = bitmap.iter().enumerate().filter(|(_, byte)| **byte != 0);
    bytes.flat_map(|(at, &byte)| (0..8).filter(move |i| byte >> i & 1 == 1).map(move |i| 8 * at + i))
}

/// A number of elements, which offsets of 32 bits count.
fn elements(total: u64, stream: &Stream) -> Result<usize, Error> {
    u32::try_from(total).map(|total| total as usize).map_err(|_| {
        let kind = MltFault::Lengths { found: total, available: u32::MAX.into() };
        fault(kind, Part::Values("", "lengths")).at(stream.header.0).in_stream(stream.role.name())
    })
}
