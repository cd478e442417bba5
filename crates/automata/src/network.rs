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

use super::edges::{Edges, Span, index};
use super::{FastMap, Interner, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// A node of a [`TransitionNetwork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// Reads a byte by one of the runs.
    Bytes(Span),
    /// Continues to all of the branches without reading.
    Union(Span),
    /// Calls the procedure at `enter`; the branches are the next nodes, by exit.
    Call { enter: u32, returns: Span },
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

/// Approximate memory of a node and of its index entries.
const NODE_BYTES: usize = 128;

/// A nondeterministic automaton with calls.
pub struct TransitionNetwork<'a> {
    meter: &'a Meter<'a>,
    nodes: Vec<Node>,
    edges: Edges,
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
    /// The runs of the hash-consed nodes that read, and the nodes.
    reading: Interner<Run>,
    reading_nodes: Vec<u32>,
    /// The branches of the hash-consed nodes that branch, and the nodes.
    branching: Interner<u32>,
    branching_nodes: Vec<u32>,
    /// The other hash-consed nodes.
    other: FastMap<Node, u32>,
}

impl<'a> TransitionNetwork<'a> {
    /// The node without successors.
    pub const DEAD: u32 = 0;
    /// The end of the text.
    pub const ACCEPT: u32 = 1;

    /// The two fixed nodes.
    pub fn new(meter: &'a Meter<'a>) -> Self {
        let nodes = vec![Node::Union(Span::EMPTY), Node::Accept];
        let origins = vec![0; nodes.len()];
        Self {
            meter,
            nodes,
            edges: Edges::default(),
            origins,
            origin: 0,
            alphabet: None,
            boundary: None,
            boundaries: FastMap::default(),
            reading: Interner::new(),
            reading_nodes: Vec::new(),
            branching: Interner::new(),
            branching_nodes: Vec::new(),
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

    /// The edges of the nodes.
    pub(super) fn edges(&self) -> &Edges {
        &self.edges
    }

    /// The origin of a node.
    pub(super) fn origin(&self, node: u32) -> u32 {
        self.origins[node as usize]
    }

    /// Sets the origin of the nodes to come; returns the previous origin.
    pub fn set_origin(&mut self, origin: u32) -> u32 {
        std::mem::replace(&mut self.origin, origin)
    }

    /// Restricts the runs of all nodes to come to the given bytes; the other bytes may serve as
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
        let runs = bytes.iter().map(|&byte| Run { first: byte, last: byte, target: next });
        self.nodes[node as usize] = Node::Bytes(self.edges.add_runs(runs)?);
        Ok(node)
    }

    /// A node to be filled later; dead until then.
    pub fn reserve(&mut self) -> Result<u32> {
        self.add(Node::Union(Span::EMPTY))
    }

    /// A node that reads one byte by one of `runs`, which must be in order and disjoint.
    pub fn bytes(&mut self, runs: impl IntoIterator<Item = impl Into<Run>>) -> Result<u32> {
        let runs = runs.into_iter().map(Into::into);
        let runs: Vec<Run> = runs.filter(|run| run.target != Self::DEAD).collect();
        if runs.is_empty() {
            return Ok(Self::DEAD);
        }
        let (number, is_new) = self.reading.intern(&runs);
        if is_new {
            let node = self.reserve()?;
            self.fill_bytes(node, runs)?;
            self.reading_nodes.push(node);
        }
        Ok(self.reading_nodes[number as usize])
    }

    /// Makes a reserved node read a byte.
    pub fn fill_bytes(&mut self, node: u32, runs: impl IntoIterator<Item = impl Into<Run>>) -> Result<()> {
        let live = runs.into_iter().map(Into::into).filter(|run| run.target != Self::DEAD);
        let span = match &self.alphabet {
            None => self.edges.add_runs(live)?,
            Some(alphabet) => self.edges.add_runs(live.flat_map(|run| within(alphabet, run)))?,
        };
        self.nodes[node as usize] = Node::Bytes(span);
        Ok(())
    }

    /// A node that continues to each of `branches`.
    pub fn union(&mut self, branches: &[u32]) -> Result<u32> {
        match branches {
            [] => Ok(Self::DEAD),
            [one] => Ok(*one),
            _ => {
                let (number, is_new) = self.branching.intern(branches);
                if is_new {
                    let node = self.reserve()?;
                    self.fill(node, branches)?;
                    self.branching_nodes.push(node);
                }
                Ok(self.branching_nodes[number as usize])
            }
        }
    }

    /// Makes a reserved node continue to each of `branches`.
    pub fn fill(&mut self, node: u32, branches: &[u32]) -> Result<()> {
        let live = branches.iter().copied().filter(|&branch| branch != Self::DEAD);
        self.nodes[node as usize] = Node::Union(self.edges.add_branches(live)?);
        Ok(())
    }

    /// A node that calls the procedure at `enter` and continues by its exit.
    pub fn call(&mut self, enter: u32, returns: &[u32]) -> Result<u32> {
        let returns = self.edges.add_branches(returns.iter().copied())?;
        self.add(Node::Call { enter, returns })
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
                let runs = runs.map(|run| Run { target: entered[run.target as usize], ..*run });
                self.fill_bytes(reading[state as usize], runs)?;
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
            self.meter.bytes(self.nodes.len() * NODE_BYTES + 2 * self.edges.bytes())?;
            self.meter.time()?;
        }
        Ok(id)
    }
}

/// The parts of a run with bytes of an alphabet.
fn within(alphabet: &[bool; 256], run: Run) -> Vec<Run> {
    let own: Vec<u8> = (run.first..=run.last).filter(|&byte| alphabet[byte as usize]).collect();
    let parts = own.chunk_by(|one, other| one + 1 == *other);
    parts.map(|part| Run { first: part[0], last: part[part.len() - 1], ..run }).collect()
}
