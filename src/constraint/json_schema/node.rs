//! The typed form of a schema: nodes in a list, children before parents.
//!
//! Equal nodes are stored once, so that what recurs in a schema (a plain string, a definition that is used
//! twice) is one node and is lowered once. A child's id is smaller than its parent's: there is no cycle, and
//! a walk over the list in order meets children first, whatever the depth.

use std::collections::HashMap;

use super::value::Json;

/// A node of a [`Nodes`] list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of JSON types; an integer is a number without a fraction, whatever its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Numbers that are no integers.
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    /// The type that `type: name` asks for.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// Whether any type is in both sets.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a schema says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// Nothing at all.
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    String(Text),
    Array(Array),
    Object(Object),
    /// These values, as far as `filter` admits them.
    Values {
        values: Vec<Json>,
        filter: Option<NodeId>,
    },
    /// What any one of these says.
    Union(Vec<NodeId>),
    /// What all of these say; scalars only, where one value has one text.
    Both(NodeId, NodeId),
}

/// A string by its length in characters and a pattern found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Text {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    /// ECMA-262, checked.
    pub(super) pattern: Option<String>,
}

/// An array by its items and their number. Items are `None` where there can be none, and, meaning any JSON,
/// below [`Node::Values`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Array {
    pub(super) items: Option<NodeId>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// An object by its properties, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) properties: Vec<Property>,
    /// Required names that are not among the properties: only below [`Node::Values`].
    pub(super) foreign: Vec<String>,
    /// Whether `additionalProperties: false` is written out. Texts are closed either way; below
    /// [`Node::Values`] silence leaves an object open.
    pub(super) closed: bool,
}

/// A property of an [`Object`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) schema: NodeId,
    pub(super) required: bool,
}

/// The nodes of a schema, each with the JSON pointer where it was first met.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    places: Vec<String>,
    known: HashMap<Node, NodeId>,
}

impl Nodes {
    /// The id of `node`, which was met at `place`.
    pub(super) fn add(&mut self, node: Node, place: &str) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = NodeId(u32::try_from(self.nodes.len()).expect("a schema in memory has fewer nodes"));
        self.nodes.push(node.clone());
        self.places.push(place.to_owned());
        self.known.insert(node, id);
        id
    }

    /// One node for any of `ids`.
    pub(super) fn add_union(&mut self, mut ids: Vec<NodeId>, place: &str) -> NodeId {
        let mut seen = std::collections::HashSet::new();
        ids.retain(|&id| seen.insert(id));
        match ids[..] {
            [] => self.add(Node::Never, place),
            [only] => only,
            _ => self.add(Node::Union(ids), place),
        }
    }

    pub(super) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The JSON pointer of `id`.
    pub(super) fn place(&self, id: NodeId) -> &str {
        &self.places[id.index()]
    }

    /// All ids, children before parents.
    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

impl Node {
    /// The nodes that this one is made of.
    pub(super) fn children(&self) -> Vec<NodeId> {
        match self {
            Self::Array(array) => array.items.into_iter().collect(),
            Self::Object(object) => object.properties.iter().map(|p| p.schema).collect(),
            Self::Values { filter, .. } => filter.iter().copied().collect(),
            Self::Union(ids) => ids.clone(),
            Self::Both(a, b) => vec![*a, *b],
            _ => Vec::new(),
        }
    }
}
