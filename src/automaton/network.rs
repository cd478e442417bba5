//! Nondeterministic automata with calls: grammars, before they are determinised.
//!
//! A *network* is what the rules of a grammar become: nodes that read bytes, branch, call a *piece* (a part that is entered
//! from several places, also from within itself) or return from one. A text is in its language if some way through the
//! network reads it. Nodes are added before what follows them is known: [`reserve`](Network::reserve) makes one that is
//! filled later.
//!
//! A network may be *lexed*: [`Node::Close`] stands behind each terminal, and a terminal goes on for as long as it, or any
//! other that began at the same place, can.
//!
//! A network may also tell where one token ends and the next one begins: its *boundaries*. Parts that are
//! [counted](super::CountedPart) have nodes that are left for others there. A boundary is a symbol of the deterministic automaton,
//! one of the bytes outside of the [alphabet](Network::set_alphabet).

use super::{FastMap, Rows};
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;

/// A node of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// Reads a byte: the ranges `ranges[from..to]`.
    Bytes { from: u32, to: u32 },
    /// Goes on to all of `branches[from..to]` without reading.
    Union { from: u32, to: u32 },
    /// Calls the piece that begins at `enter`; `branches[from..to]` is where it goes on, by outcome.
    Call { enter: u32, from: u32, to: u32 },
    /// The end of a piece with an outcome.
    Return(u32),
    /// The end of a terminal: goes on to `next` where none that began with it can read the next byte. A lazy one
    /// goes on at once, and those that began with it are given up, as llguidance does.
    Close { next: u32, lazy: bool },
    /// The end of a part that is [counted](super::CountedPart), in a lexed network: what follows is cut into terminals from here on,
    /// whatever the part goes on to read.
    Fork { next: u32 },
    /// Goes on to `next` where a token has ended, as if that had been read before the end of the token.
    Past { next: u32 },
    /// The end of the text.
    Accept,
}

/// The bytes `first..=last` lead to `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Range {
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) next: u32,
}

/// Memory of a node and of what it is found by, roughly.
const NODE_BYTES: usize = 128;

/// A nondeterministic automaton with calls.
pub(crate) struct Network<'a> {
    meter: &'a Meter<'a>,
    nodes: Vec<Node>,
    ranges: Vec<Range>,
    branches: Vec<u32>,
    /// For each node what it is part of, by a number of the caller's, for errors.
    origins: Vec<u32>,
    /// What nodes are added for.
    origin: u32,
    /// The bytes that text is read by, if not by all.
    alphabet: Option<Box<[bool; 256]>>,
    /// The byte that stands for a boundary, if these count.
    boundary: Option<u8>,
    /// Where a boundary leads from nodes that it does not leave as they are: those of counted parts, and of terminals that may
    /// end there.
    boundaries: FastMap<u32, u32>,
    /// Nodes of which equal ones are one: those that read, branch, and others.
    reading: FastMap<Vec<Range>, u32>,
    branching: FastMap<Vec<u32>, u32>,
    other: FastMap<Node, u32>,
}

impl<'a> Network<'a> {
    /// The node that nothing follows.
    pub(crate) const DEAD: u32 = 0;
    /// The end of the text.
    pub(crate) const ACCEPT: u32 = 1;

    /// These two nodes.
    pub(crate) fn new(meter: &'a Meter<'a>) -> Self {
        let nodes = vec![Node::Union { from: 0, to: 0 }, Node::Accept];
        let origins = vec![0; nodes.len()];
        Self {
            meter,
            nodes,
            ranges: Vec::new(),
            branches: Vec::new(),
            origins,
            origin: 0,
            alphabet: None,
            boundary: None,
            boundaries: FastMap::default(),
            reading: FastMap::default(),
            branching: FastMap::default(),
            other: FastMap::default(),
        }
    }

    pub(super) fn meter(&self) -> &'a Meter<'a> {
        self.meter
    }

    /// The number of nodes.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, node: u32) -> Node {
        self.nodes[node as usize]
    }

    pub(super) fn ranges(&self, from: u32, to: u32) -> &[Range] {
        &self.ranges[from as usize..to as usize]
    }

    /// Those of all nodes.
    pub(super) fn all_ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub(super) fn branches(&self, from: u32, to: u32) -> &[u32] {
        &self.branches[from as usize..to as usize]
    }

    /// What a node is part of.
    pub(super) fn origin(&self, node: u32) -> u32 {
        self.origins[node as usize]
    }

    /// Says what the nodes to come are part of, and returns what was said before.
    pub(crate) fn set_origin(&mut self, origin: u32) -> u32 {
        std::mem::replace(&mut self.origin, origin)
    }

    /// Cuts the ranges of all nodes to come down to these bytes, so that the others may stand for something else.
    pub(crate) fn set_alphabet(&mut self, alphabet: &[bool; 256]) {
        self.alphabet = Some(Box::new(*alphabet));
    }

    /// Says which byte stands for a boundary.
    pub(crate) fn set_boundary(&mut self, byte: u8) {
        self.boundary = Some(byte);
    }

    /// The byte that stands for a boundary, if these count.
    pub(super) fn boundary(&self) -> Option<u8> {
        self.boundary
    }

    /// Where a boundary leads from a node; `None` where it leaves it as it is.
    pub(super) fn past_boundary(&self, node: u32) -> Option<u32> {
        self.boundaries.get(&node).copied()
    }

    /// Says where a boundary leads from a node.
    pub(super) fn set_past_boundary(&mut self, node: u32, to: u32) {
        self.boundaries.insert(node, to);
    }

    /// Lets what follows terminals know of a boundary at their end: whether a terminal ends is known by the byte behind it only.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn close_at_boundaries(&mut self) -> Result<()> {
        for node in 0..index(self.nodes.len())? {
            if let Node::Close { next, lazy } = self.nodes[node as usize] {
                let next = self.shared(Node::Past { next })?;
                let closed = self.shared(Node::Close { next, lazy })?;
                self.boundaries.insert(node, closed);
            }
        }
        Ok(())
    }

    /// Whether it calls anything.
    pub(crate) fn has_calls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Call { .. }))
    }

    /// A node that reads one of some bytes outside of the [alphabet](Self::set_alphabet), which are in order.
    pub(crate) fn outside(&mut self, bytes: &[u8], next: u32) -> Result<u32> {
        if bytes.is_empty() || next == Self::DEAD {
            return Ok(Self::DEAD);
        }
        let node = self.reserve()?;
        let from = self.ranges.len();
        self.ranges.extend(bytes.iter().map(|&byte| Range { first: byte, last: byte, next }));
        self.nodes[node as usize] = Node::Bytes { from: index(from)?, to: index(self.ranges.len())? };
        Ok(node)
    }

    /// A node that is to be filled; until then it is dead.
    pub(crate) fn reserve(&mut self) -> Result<u32> {
        self.add(Node::Union { from: 0, to: 0 })
    }

    /// A node that reads one byte by `(first, last, next)`, which must be in order and disjoint.
    pub(crate) fn bytes(&mut self, ranges: impl IntoIterator<Item = (u8, u8, u32)>) -> Result<u32> {
        let live = ranges.into_iter().filter(|range| range.2 != Self::DEAD);
        let ranges: Vec<Range> = live.map(|(first, last, next)| Range { first, last, next }).collect();
        if ranges.is_empty() {
            return Ok(Self::DEAD);
        }
        if let Some(&known) = self.reading.get(&ranges) {
            return Ok(known);
        }
        let node = self.reserve()?;
        self.fill_bytes(node, ranges.iter().map(|range| (range.first, range.last, range.next)))?;
        self.reading.insert(ranges, node);
        Ok(node)
    }

    /// Makes a reserved node read a byte.
    pub(crate) fn fill_bytes(
        &mut self,
        node: u32,
        ranges: impl IntoIterator<Item = (u8, u8, u32)>,
    ) -> Result<()> {
        let from = self.ranges.len();
        let live = ranges.into_iter().filter(|range| range.2 != Self::DEAD);
        for (first, last, next) in live {
            match &self.alphabet {
                None => self.ranges.push(Range { first, last, next }),
                Some(alphabet) => {
                    let own: Vec<u8> = (first..=last).filter(|&byte| alphabet[byte as usize]).collect();
                    let runs = own.chunk_by(|one, other| one + 1 == *other);
                    self.ranges.extend(runs.map(|run| Range {
                        first: run[0],
                        last: run[run.len() - 1],
                        next,
                    }));
                }
            }
        }
        debug_assert!(self.ranges[from..].is_sorted_by(|a, b| a.last < b.first));
        self.nodes[node as usize] = Node::Bytes { from: index(from)?, to: index(self.ranges.len())? };
        Ok(())
    }

    /// A node that goes on to each of `branches`.
    pub(crate) fn union(&mut self, branches: &[u32]) -> Result<u32> {
        match branches {
            [] => Ok(Self::DEAD),
            [one] => Ok(*one),
            _ => {
                if let Some(&known) = self.branching.get(branches) {
                    return Ok(known);
                }
                let node = self.reserve()?;
                self.fill(node, branches)?;
                self.branching.insert(branches.to_vec(), node);
                Ok(node)
            }
        }
    }

    /// Makes a reserved node go on to each of `branches`.
    pub(crate) fn fill(&mut self, node: u32, branches: &[u32]) -> Result<()> {
        let from = index(self.branches.len())?;
        self.branches.extend(branches.iter().filter(|branch| **branch != Self::DEAD));
        self.nodes[node as usize] = Node::Union { from, to: index(self.branches.len())? };
        Ok(())
    }

    /// A node that calls the piece at `enter` and goes on by its outcome.
    pub(crate) fn call(&mut self, enter: u32, returns: &[u32]) -> Result<u32> {
        let from = index(self.branches.len())?;
        self.branches.extend_from_slice(returns);
        let to = index(self.branches.len())?;
        self.add(Node::Call { enter, from, to })
    }

    /// A node that returns with an outcome.
    pub(crate) fn returning(&mut self, outcome: u32) -> Result<u32> {
        self.shared(Node::Return(outcome))
    }

    /// A node that closes a terminal.
    pub(crate) fn close(&mut self, next: u32, lazy: bool) -> Result<u32> {
        self.shared(Node::Close { next, lazy })
    }

    /// Copies in what can be read from `start` in `rows`, but for the empty text; accepting states are followed by `next`.
    /// The start of the copy; [`DEAD`](Self::DEAD) if there is nothing else than the empty text.
    pub(crate) fn copy(&mut self, rows: &Rows, start: u32, next: u32) -> Result<u32> {
        if rows.row(start).is_empty() {
            return Ok(Self::DEAD);
        }
        // Of each state the node that reads, and the one that a run into the state leads to.
        let mut reading = vec![Self::DEAD; rows.state_count()];
        let mut entered = vec![Self::DEAD; rows.state_count()];
        for state in 1..rows.state_count() as u32 {
            let at = state as usize;
            if !rows.row(state).is_empty() {
                reading[at] = self.reserve()?;
            }
            entered[at] = match (rows.is_accepting(state), reading[at]) {
                (true, Self::DEAD) => next,
                (true, reads) => self.union(&[reads, next])?,
                (false, reads) => reads,
            };
        }
        for state in 1..rows.state_count() as u32 {
            if reading[state as usize] != Self::DEAD {
                let runs = rows.row(state).iter();
                let ranges = runs.map(|run| (run.first, run.last, entered[run.target as usize]));
                self.fill_bytes(reading[state as usize], ranges)?;
            }
        }
        Ok(reading[start as usize])
    }

    pub(super) fn shared(&mut self, node: Node) -> Result<u32> {
        if let Some(&known) = self.other.get(&node) {
            return Ok(known);
        }
        let id = self.add(node)?;
        self.other.insert(node, id);
        Ok(id)
    }

    fn add(&mut self, node: Node) -> Result<u32> {
        let id = index(self.nodes.len())?;
        self.nodes.push(node);
        self.origins.push(self.origin);
        if id % 1024 == 0 {
            let words = self.ranges.len() * size_of::<Range>() + self.branches.len() * size_of::<u32>();
            self.meter.bytes(self.nodes.len() * NODE_BYTES + 2 * words)?;
            self.meter.time()?;
        }
        Ok(id)
    }
}

/// Indices are 32 bits wide whatever the limits say.
fn index(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Error::limit(Limit::States(u32::MAX as usize)))
}
