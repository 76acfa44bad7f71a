//! Nested columns: structs, lists and maps, of any depth that the format allows.
//!
//! Every node has a slot for each feature; below a list or map, for each of its elements. So the fields of a struct have
//! the slots of the struct, and where that is null, so are they.
//!
//! Source: version 2 container, section 9.

use super::data::{Kept, Pool, Store, Strings, Validity, Values, bit};

/// A decoded nested column. Keeps its memory; hand it to every decode.
#[derive(Clone, Debug, Default)]
pub struct NestedData {
    pub(crate) name: String,
    /// In preorder.
    pub(crate) nodes: Pool<NodeData>,
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
    /// Values; the keys of maps.
    pub(crate) store: Store,
}

impl NestedData {
    /// No column yet.
    pub fn new() -> NestedData {
        NestedData::default()
    }

    /// What was decoded last.
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
