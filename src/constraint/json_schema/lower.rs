//! From nodes to one automaton, piece by piece.
//!
//! Nodes are met children first, and each that the text can need becomes a finished automaton, which its
//! parents lay down as it is; an object or array that is a property in one place only is laid down with its
//! parent, so that nesting costs no more than size. Equal schemas are one node, so common scalars and shared
//! definitions are built once; and since every shared piece is minimal and counted, definitions that double at
//! every step run into the limits instead of memory.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::admit::admits;
use super::node::{Array, Node, NodeId, Nodes, Object, Text};
use super::{string, value};
use crate::automaton::{ByteDfa, Expr, Item, Op};
use crate::error::{Error, Result};
use crate::limits::Meter;

/// The automaton of `root`.
pub(super) fn lower(nodes: &Nodes, root: NodeId, meter: &Meter) -> Result<Arc<ByteDfa>> {
    let uses = uses(nodes, root);
    let mut pieces = Pieces { nodes, done: Vec::new(), empty: Vec::new(), conflicts: HashMap::new() };
    for id in nodes.ids() {
        meter.time()?;
        let piece = match uses[id.index()] {
            Uses::None | Uses::Inside => None,
            Uses::Alone => Some(pieces.piece(id, meter)?),
        };
        let empty = match (&piece, uses[id.index()]) {
            (Some(piece), _) => piece.is_empty(),
            (None, Uses::Inside) => pieces.is_empty(id),
            (None, _) => false,
        };
        pieces.done.push(piece);
        pieces.empty.push(empty);
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

/// What a node is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uses {
    /// Nothing.
    None,
    /// To be laid down once, within the object that it is a property of.
    Inside,
    /// An automaton of its own.
    Alone,
}

/// Which nodes need an automaton: those that are written, and the strings by which values are picked.
///
/// An object or array that is written in one place only, as a property, becomes one with what is around it.
fn uses(nodes: &Nodes, root: NodeId) -> Vec<Uses> {
    let mut uses = vec![Uses::None; nodes.ids().count()];
    let mut picking = vec![false; uses.len()];
    uses[root.index()] = Uses::Alone;
    for id in nodes.ids().rev() {
        let node = nodes.get(id);
        let at = id.index();
        if picking[at] && matches!(node, Node::String(_)) {
            uses[at] = Uses::Alone;
        }
        for child in node.children() {
            let below = child.index();
            let picks = matches!(node, Node::Values { .. });
            if uses[at] != Uses::None && !picks {
                let property = matches!(node, Node::Object(_))
                    && matches!(nodes.get(child), Node::Object(_) | Node::Array(_));
                uses[below] = if property && uses[below] == Uses::None { Uses::Inside } else { Uses::Alone };
            }
            picking[below] |= picking[at] || (uses[at] != Uses::None && picks);
        }
    }
    uses
}

/// The automata finished so far.
pub(super) struct Pieces<'a> {
    nodes: &'a Nodes,
    /// By node; `None` where none is needed.
    done: Vec<Option<Arc<ByteDfa>>>,
    /// By node, whether nothing satisfies it; false where it is not needed.
    empty: Vec<bool>,
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

    fn piece(&self, id: NodeId, meter: &Meter) -> Result<Arc<ByteDfa>> {
        static INTEGER: OnceLock<Arc<ByteDfa>> = OnceLock::new();
        static NUMBER: OnceLock<Arc<ByteDfa>> = OnceLock::new();
        static STRING: OnceLock<Arc<ByteDfa>> = OnceLock::new();
        match self.node(id) {
            Node::Integer => common(&INTEGER, || integer().determinize(meter), meter),
            Node::Number => common(&NUMBER, || number().determinize(meter), meter),
            Node::String(text) if *text == Text::default() => {
                common(&STRING, || string::lower(text, meter), meter)
            }
            Node::String(text) => string::lower(text, meter).map(Arc::new),
            Node::Both(a, b) => self.get(*a).product(self.get(*b), Op::Intersection, meter).map(Arc::new),
            node => self.expr(node, meter)?.determinize(meter).map(Arc::new),
        }
    }

    /// Whether nothing satisfies an object or an array, by what is known of its parts.
    fn is_empty(&self, id: NodeId) -> bool {
        let empty = |id: NodeId| self.empty[id.index()];
        match self.node(id) {
            Node::Object(object) => object.properties.iter().any(|p| p.required && empty(p.schema)),
            Node::Array(array) => match array.items {
                None => array.min > 0,
                Some(item) => array.max.is_some_and(|max| max < array.min) || (array.min > 0 && empty(item)),
            },
            _ => empty(id),
        }
    }

    /// The language of a node: its automaton, or else what it is made of.
    fn part(&self, id: NodeId) -> Expr {
        match (&self.done[id.index()], self.node(id)) {
            (Some(dfa), _) => Expr::Dfa(Arc::clone(dfa)),
            (None, Node::Object(object)) => self.object(object),
            (None, Node::Array(array)) => self.array(array),
            (None, _) => unreachable!("only objects and arrays go without"),
        }
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
            Node::Union(ids) => Expr::Alternate(ids.iter().map(|&id| self.part(id)).collect()),
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
                let more = Expr::Concat(vec![words([","]), self.part(item)]);
                let more = Expr::Repeat {
                    expr: Arc::new(more),
                    min: min.saturating_sub(1),
                    max: max.map(|max| max.saturating_sub(1)),
                };
                let some = Expr::Concat(vec![self.part(item), more]);
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
            let expr = Expr::Concat(vec![Expr::Literals(vec![name]), self.part(property.schema)]);
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

/// An automaton that many schemas have in common, made once.
fn common(
    place: &OnceLock<Arc<ByteDfa>>,
    make: impl Fn() -> Result<ByteDfa>,
    meter: &Meter,
) -> Result<Arc<ByteDfa>> {
    let dfa = match place.get() {
        Some(dfa) => dfa,
        None => {
            let dfa = Arc::new(make()?);
            place.get_or_init(|| dfa)
        }
    };
    meter.states(dfa.state_count())?;
    Ok(Arc::clone(dfa))
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
