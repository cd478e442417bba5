//! Nondeterministic automata with calls: grammars, before the subset construction.
//!
//! A *network* is the form of a grammar's rules: nodes that read bytes, branch, call a *procedure*
//! (a part entered from several nodes, possibly recursively) or return from one. A text is in its
//! language if some path through the network reads it. Nodes may be added before their successors
//! are known: [`reserve`](TransitionNetwork::reserve) creates a node to be filled later.
//!
//! A network may be *lexed*: a [`Node::Close`] follows each terminal, and a terminal continues as
//! long as it, or another terminal with the same start, can.
//!
//! A network may also mark the *boundaries* between tokens. At a boundary, nodes of
//! [counted](super::CountedPart) parts move to other nodes. A boundary is a symbol of the
//! deterministic automaton, one of the bytes outside of the
//! [alphabet](TransitionNetwork::set_alphabet).

use super::{FastMap, Rows};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// A node of a [`TransitionNetwork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// Reads a byte: the ranges `ranges[from..to]`.
    Bytes { from: u32, to: u32 },
    /// Continues to all of `branches[from..to]` without reading.
    Union { from: u32, to: u32 },
    /// Calls the procedure at `enter`; `branches[from..to]` has the next node for each exit.
    Call { enter: u32, from: u32, to: u32 },
    /// The end of a procedure with an exit.
    Return(u32),
    /// The end of a terminal: continues to `next` if no terminal with the same start can read the
    /// next byte. A lazy terminal ends at once and drops the alternatives with the same start, as
    /// in llguidance.
    Close { next: u32, lazy: bool },
    /// The end of a [counted](super::CountedPart) part in a lexed network: a new division into
    /// terminals starts here, even if the part continues to read.
    Fork { next: u32 },
    /// Continues to `next` after the end of a token, as if it had been read before the end.
    Past { next: u32 },
    /// The end of the text.
    Accept,
}

/// The bytes `first..=last` lead to `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    pub first: u8,
    pub last: u8,
    pub next: u32,
}

/// Approximate memory of a node and of its index entries.
const NODE_BYTES: usize = 128;

/// A nondeterministic automaton with calls.
pub struct TransitionNetwork<'a> {
    meter: &'a Meter<'a>,
    nodes: Vec<Node>,
    ranges: Vec<Range>,
    branches: Vec<u32>,
    /// The origin of each node, a number chosen by the caller, for errors.
    origins: Vec<u32>,
    /// The origin of the nodes being added.
    origin: u32,
    /// The bytes of text, if not all.
    alphabet: Option<Box<[bool; 256]>>,
    /// The byte that stands for a boundary, if boundaries are counted.
    boundary: Option<u8>,
    /// The node after a boundary, for nodes changed by a boundary: nodes of counted parts, and of
    /// terminals that may end there.
    boundaries: FastMap<u32, u32>,
    /// Hash-consed nodes: reading, branching, and others.
    reading: FastMap<Vec<Range>, u32>,
    branching: FastMap<Vec<u32>, u32>,
    other: FastMap<Node, u32>,
}

impl<'a> TransitionNetwork<'a> {
    /// The node without successors.
    pub const DEAD: u32 = 0;
    /// The end of the text.
    pub const ACCEPT: u32 = 1;

    /// The two fixed nodes.
    pub fn new(meter: &'a Meter<'a>) -> Self {
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

    /// The ranges of all nodes.
    pub(super) fn all_ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub(super) fn branches(&self, from: u32, to: u32) -> &[u32] {
        &self.branches[from as usize..to as usize]
    }

    /// The origin of a node.
    pub(super) fn origin(&self, node: u32) -> u32 {
        self.origins[node as usize]
    }

    /// Sets the origin of the nodes to come; returns the previous origin.
    pub fn set_origin(&mut self, origin: u32) -> u32 {
        std::mem::replace(&mut self.origin, origin)
    }

    /// Restricts the ranges of all nodes to come to the given bytes; the other bytes may serve as
    /// symbols.
    pub fn set_alphabet(&mut self, alphabet: &[bool; 256]) {
        self.alphabet = Some(Box::new(*alphabet));
    }

    /// Sets the byte that stands for a boundary.
    pub fn set_boundary(&mut self, byte: u8) {
        self.boundary = Some(byte);
    }

    /// The byte that stands for a boundary, if boundaries are counted.
    pub(super) fn boundary(&self) -> Option<u8> {
        self.boundary
    }

    /// The node after a boundary at a node; `None` if the boundary does not change it.
    pub(super) fn past_boundary(&self, node: u32) -> Option<u32> {
        self.boundaries.get(&node).copied()
    }

    /// Sets the node after a boundary at a node.
    pub(super) fn set_past_boundary(&mut self, node: u32, to: u32) {
        self.boundaries.insert(node, to);
    }

    /// Passes a boundary at the end of a terminal on to the node after the terminal: only the byte
    /// after a terminal decides whether it ends.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn close_at_boundaries(&mut self) -> Result<()> {
        for node in 0..index(self.nodes.len())? {
            if let Node::Close { next, lazy } = self.nodes[node as usize] {
                let next = self.shared(Node::Past { next })?;
                let closed = self.shared(Node::Close { next, lazy })?;
                self.boundaries.insert(node, closed);
            }
        }
        Ok(())
    }

    /// Whether the network has calls.
    pub fn has_calls(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Call { .. }))
    }

    /// A node that reads one of some sorted bytes outside of the [alphabet](Self::set_alphabet).
    pub fn outside(&mut self, bytes: &[u8], next: u32) -> Result<u32> {
        if bytes.is_empty() || next == Self::DEAD {
            return Ok(Self::DEAD);
        }
        let node = self.reserve()?;
        let from = self.ranges.len();
        self.ranges.extend(bytes.iter().map(|&byte| Range { first: byte, last: byte, next }));
        self.nodes[node as usize] = Node::Bytes { from: index(from)?, to: index(self.ranges.len())? };
        Ok(node)
    }

    /// A node to be filled later; dead until then.
    pub fn reserve(&mut self) -> Result<u32> {
        self.add(Node::Union { from: 0, to: 0 })
    }

    /// A node that reads one byte by `(first, last, next)`, which must be in order and disjoint.
    pub fn bytes(&mut self, ranges: impl IntoIterator<Item = (u8, u8, u32)>) -> Result<u32> {
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
    pub fn fill_bytes(&mut self, node: u32, ranges: impl IntoIterator<Item = (u8, u8, u32)>) -> Result<()> {
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

    /// A node that continues to each of `branches`.
    pub fn union(&mut self, branches: &[u32]) -> Result<u32> {
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

    /// Makes a reserved node continue to each of `branches`.
    pub fn fill(&mut self, node: u32, branches: &[u32]) -> Result<()> {
        let from = index(self.branches.len())?;
        self.branches.extend(branches.iter().filter(|branch| **branch != Self::DEAD));
        self.nodes[node as usize] = Node::Union { from, to: index(self.branches.len())? };
        Ok(())
    }

    /// A node that calls the procedure at `enter` and continues by its exit.
    pub fn call(&mut self, enter: u32, returns: &[u32]) -> Result<u32> {
        let from = index(self.branches.len())?;
        self.branches.extend_from_slice(returns);
        let to = index(self.branches.len())?;
        self.add(Node::Call { enter, from, to })
    }

    /// A node that returns with an exit.
    pub fn returning(&mut self, outcome: u32) -> Result<u32> {
        self.shared(Node::Return(outcome))
    }

    /// A node that closes a terminal.
    pub fn close(&mut self, next: u32, lazy: bool) -> Result<u32> {
        self.shared(Node::Close { next, lazy })
    }

    /// Copies the nonempty texts readable from `start` in `rows`; accepting states are followed by
    /// `next`. Returns the start of the copy; [`DEAD`](Self::DEAD) if only the empty text is
    /// readable.
    pub fn copy(&mut self, rows: &Rows, start: u32, next: u32) -> Result<u32> {
        if rows.row(start).is_empty() {
            return Ok(Self::DEAD);
        }
        // For each state, its reading node, and the target node of runs into the state.
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

/// Indices are 32 bits wide under any limits.
fn index(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Error::limit(Limit::States(u32::MAX as usize)))
}
