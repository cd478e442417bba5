//! From nodes to one automaton, piece by piece.
//!
//! Nodes are met children first, and each that the text can need becomes a finished automaton, which its
//! parents lay down as it is. Equal schemas are one node, so common scalars and shared definitions are built
//! once; and since every piece is minimal and counted, definitions that double at every step run into the
//! limits instead of memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::admit::admits;
use super::node::{Array, Node, NodeId, Nodes, Object};
use super::{string, value};
use crate::automaton::{ByteDfa, Expr, Item, Op};
use crate::error::{Error, Result};
use crate::limits::Meter;

/// The automaton of `root`.
pub(super) fn lower(nodes: &Nodes, root: NodeId, meter: &Meter) -> Result<Arc<ByteDfa>> {
    let needed = needed(nodes, root);
    let mut pieces = Pieces { nodes, done: Vec::new(), conflicts: HashMap::new() };
    for id in nodes.ids() {
        meter.time()?;
        let piece = if needed[id.index()] { Some(Arc::new(pieces.piece(id, meter)?)) } else { None };
        let empty = piece.as_ref().is_some_and(|piece| piece.is_empty());
        pieces.done.push(piece);
        if empty {
            let conflict = pieces.conflict(id);
            pieces.conflicts.insert(id, conflict);
        }
    }
    match pieces.conflicts.get(&root) {
        Some(conflict) => Err(Error::unsatisfiable(conflict)),
        None => Ok(Arc::clone(pieces.get(root))),
    }
}

/// Which nodes need an automaton: those that are written, and the strings by which values are picked.
fn needed(nodes: &Nodes, root: NodeId) -> Vec<bool> {
    let mut written = vec![false; nodes.ids().count()];
    let mut picking = written.clone();
    written[root.index()] = true;
    for id in nodes.ids().rev() {
        let node = nodes.get(id);
        let at = id.index();
        if picking[at] && matches!(node, Node::String(_)) {
            written[at] = true;
        }
        for child in node.children() {
            let picks = matches!(node, Node::Values { .. });
            written[child.index()] |= written[at] && !picks;
            picking[child.index()] |= picking[at] || (written[at] && picks);
        }
    }
    written
}

/// The automata finished so far.
pub(super) struct Pieces<'a> {
    nodes: &'a Nodes,
    /// By node; `None` where none is needed.
    done: Vec<Option<Arc<ByteDfa>>>,
    /// Why an automaton is empty.
    conflicts: HashMap<NodeId, String>,
}

impl<'a> Pieces<'a> {
    pub(super) fn node(&self, id: NodeId) -> &'a Node {
        self.nodes.get(id)
    }

    /// The finished automaton of a node that needs one.
    pub(super) fn get(&self, id: NodeId) -> &Arc<ByteDfa> {
        self.done[id.index()].as_ref().expect("children come before parents")
    }

    fn piece(&self, id: NodeId, meter: &Meter) -> Result<ByteDfa> {
        match self.node(id) {
            Node::String(text) => string::lower(text, meter),
            Node::Both(a, b) => self.get(*a).product(self.get(*b), Op::Intersection, meter),
            node => self.expr(node, meter)?.determinize(meter),
        }
    }

    fn dfa(&self, id: NodeId) -> Expr {
        Expr::Dfa(Arc::clone(self.get(id)))
    }

    fn expr(&self, node: &Node, meter: &Meter) -> Result<Expr> {
        Ok(match node {
            Node::Never => words([]),
            Node::Null => words(["null"]),
            Node::Boolean => words(["true", "false"]),
            Node::Integer => integer(),
            Node::Number => number(),
            Node::Array(array) => self.array(array),
            Node::Object(object) => self.object(object),
            Node::Values { values, filter } => {
                let mut texts = Vec::new();
                for value in values {
                    let admitted = match filter {
                        Some(filter) => admits(self, *filter, value.value(), meter)?,
                        None => true,
                    };
                    if admitted {
                        texts.push(value.text().to_vec());
                    }
                }
                Expr::Literals(texts)
            }
            Node::Union(ids) => Expr::Alternate(ids.iter().map(|&id| self.dfa(id)).collect()),
            Node::String(_) | Node::Both(..) => unreachable!("these are automata already"),
        })
    }

    fn array(&self, array: &Array) -> Expr {
        // Counts beyond the address space are beyond any limit too.
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (min, max) = (size(array.min), array.max.map(size));
        let empty = words([""]);
        let items = match array.items {
            None => empty,
            Some(_) if max.is_some_and(|max| max < min) => words([]),
            Some(item) => {
                let more = Expr::Concat(vec![words([","]), self.dfa(item)]);
                let more = Expr::Repeat {
                    expr: Arc::new(more),
                    min: min.saturating_sub(1),
                    max: max.map(|max| max.saturating_sub(1)),
                };
                let some = Expr::Concat(vec![self.dfa(item), more]);
                if min == 0 { Expr::Alternate(vec![empty, some]) } else { some }
            }
        };
        let items = if array.items.is_none() && min > 0 { words([]) } else { items };
        Expr::Concat(vec![words(["["]), items, words(["]"])])
    }

    fn object(&self, object: &Object) -> Expr {
        let item = |property: &super::node::Property| {
            let mut name = value::string_text(&property.name);
            name.push(b':');
            let expr = Expr::Concat(vec![Expr::Literals(vec![name]), self.dfa(property.schema)]);
            Item { expr, required: property.required }
        };
        let items = object.properties.iter().map(item).collect();
        let members = Expr::Separated { separator: b",".to_vec(), items };
        Expr::Concat(vec![words(["{"]), members, words(["}"])])
    }

    /// Why nothing satisfies a node.
    fn conflict(&self, id: NodeId) -> String {
        let place = match self.nodes.place(id) {
            "" => "the schema's root".to_owned(),
            place => place.to_owned(),
        };
        let below = |id: &NodeId| self.conflicts.get(id).cloned();
        match self.node(id) {
            Node::Never => format!("{place} is `false`, or allows no type"),
            Node::String(text) => match (text.min, text.max, &text.pattern) {
                (min, Some(max), _) if min > max => {
                    format!("at {place}, `minLength` {min} exceeds `maxLength` {max}")
                }
                (_, _, Some(pattern)) => {
                    format!("at {place}, no string of the lengths allowed matches `pattern` {pattern:?}")
                }
                _ => format!("at {place}, no string is left"),
            },
            Node::Array(Array { min, max: Some(max), .. }) if min > max => {
                format!("at {place}, `minItems` {min} exceeds `maxItems` {max}")
            }
            Node::Array(array) => {
                let item = array.items.as_ref().and_then(below).unwrap_or_default();
                format!("at {place}, `minItems` asks for {}, but: {item}", array.min)
            }
            Node::Object(object) => object
                .properties
                .iter()
                .filter(|property| property.required)
                .find_map(|p| {
                    Some(format!("at {place}, {:?} is required, but: {}", p.name, below(&p.schema)?))
                })
                .unwrap_or_default(),
            Node::Values { values, .. } if values.is_empty() => {
                format!("at {place}, no value of `enum` or `const` is left by the types beside it")
            }
            Node::Values { .. } => {
                format!("at {place}, no value of `enum` or `const` satisfies the keywords beside it")
            }
            Node::Union(ids) => {
                let first = ids.iter().find_map(below).unwrap_or_default();
                format!("at {place}, no branch can be satisfied; the first: {first}")
            }
            _ => format!("at {place}, the keywords contradict each other"),
        }
    }
}

fn words<const N: usize>(words: [&str; N]) -> Expr {
    Expr::Literals(words.iter().map(|word| word.as_bytes().to_vec()).collect())
}

fn digits(min: usize) -> Expr {
    Expr::Repeat { expr: Arc::new(Expr::Chars(vec![('0', '9')])), min, max: None }
}

fn optional(expr: Expr) -> Expr {
    Expr::Repeat { expr: Arc::new(expr), min: 0, max: Some(1) }
}

/// One text for each integer: no `-0`, no fraction, no exponent.
fn integer() -> Expr {
    let positive = Expr::Concat(vec![Expr::Chars(vec![('1', '9')]), digits(0)]);
    Expr::Alternate(vec![words(["0"]), Expr::Concat(vec![optional(words(["-"])), positive])])
}

/// What JSON calls a number, with at most two digits of exponent: readers with 64-bit floats
/// refuse `1e400`. The digits before it have no end; a budget of tokens bounds them.
fn number() -> Expr {
    let exponent = Expr::Repeat { expr: Arc::new(Expr::Chars(vec![('0', '9')])), min: 1, max: Some(2) };
    let positive = Expr::Concat(vec![Expr::Chars(vec![('1', '9')]), digits(0)]);
    Expr::Concat(vec![
        optional(words(["-"])),
        Expr::Alternate(vec![words(["0"]), positive]),
        optional(Expr::Concat(vec![words(["."]), digits(1)])),
        optional(Expr::Concat(vec![words(["e", "E"]), optional(words(["+", "-"])), exponent])),
    ])
}
