//! The drawn states and edges of an automaton: without the dead state, with one edge for all bytes
//! between two states.

use std::collections::BTreeMap;

use crate::automaton::{ByteAutomaton, ByteDfa, ByteStateId, Pushdown};
use serde_json::{Value, json};

use crate::cli::classes::of_bytes;

/// The drawn graph of an automaton: states in order of discovery from the start, which is 0.
///
/// ```
/// use burn_dfa::cli::Graph;
/// use burn_dfa::{Constraint, Limits};
///
/// let automaton = Constraint::regex("(cat|dog)s?")?
///     .to_automaton(&Limits::default())?
///     .expect("it is over text");
/// let graph = Graph::new(&automaton);
/// assert_eq!(graph.accepting().iter().filter(|accepting| **accepting).count(), 2);
/// assert!(graph.svg().starts_with("<svg") && graph.dot().starts_with("digraph"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    /// The states of the automaton, in order of discovery.
    ids: Vec<ByteStateId>,
    pub(super) states: Vec<Kind>,
    pub(super) edges: Vec<Edge>,
}

/// The kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It reads a byte; if `accepting`, the text may end.
    Reads { accepting: bool },
    /// It pushes a frame on the stack.
    Call,
    /// It ends a procedure with an exit.
    Return(usize),
}

/// All transitions from one state to another.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The bytes as a class, or the stack operation.
    pub(super) label: String,
    /// Whether the edge reads no byte.
    pub(super) is_jump: bool,
}

/// The discovered states, and their edges.
#[derive(Default)]
struct Found {
    order: Vec<ByteStateId>,
    numbers: BTreeMap<u32, usize>,
    edges: Vec<Edge>,
}

impl Graph {
    /// The graph of an automaton, without its dead state.
    pub fn new(automaton: &ByteAutomaton) -> Self {
        match automaton {
            ByteAutomaton::Finite(dfa) => Self::of_dfa(dfa),
            ByteAutomaton::Pushdown(pushdown) => Self::of_pushdown(pushdown),
        }
    }

    fn of_dfa(dfa: &ByteDfa) -> Self {
        let mut found = Found::from(dfa.start());
        let mut at = 0;
        while let Some(&state) = found.order.get(at) {
            found.read(at, |byte| dfa.next(state, byte));
            at += 1;
        }
        let kind = |&state: &ByteStateId| Kind::Reads { accepting: dfa.is_accepting(state) };
        Self { states: found.order.iter().map(kind).collect(), ids: found.order, edges: found.edges }
    }

    fn of_pushdown(pushdown: &Pushdown) -> Self {
        let mut found = Found::from(ByteStateId::START);
        let mut states = Vec::new();
        while let Some(&state) = found.order.get(states.len()) {
            let at = states.len();
            states.push(if let Some((enter, returns)) = pushdown.call(state) {
                found.jump(at, enter, "call".to_owned());
                let several = returns.len() > 1;
                for (outcome, to) in
                    returns.into_iter().enumerate().filter(|(_, to)| *to != ByteStateId::DEAD)
                {
                    let label = if several { format!("after {outcome}") } else { "after it".to_owned() };
                    found.jump(at, to, label);
                }
                Kind::Call
            } else if let Some(exit) = pushdown.exit(state) {
                Kind::Return(exit)
            } else {
                found.read(at, |byte| pushdown.read(state, byte));
                Kind::Reads { accepting: pushdown.is_accepting(state) }
            });
        }
        Self { ids: found.order, states, edges: found.edges }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// The number of a state of the automaton in pictures; `None` if no text leads to it.
    pub fn number(&self, state: ByteStateId) -> Option<usize> {
        self.ids.iter().position(|id| *id == state)
    }

    /// The edges for a program.
    pub fn edges(&self) -> Vec<Value> {
        let edge = |edge: &Edge| {
            let what = if edge.is_jump { "jump" } else { "bytes" };
            json!({"from": edge.from, "to": edge.to, what: edge.label})
        };
        self.edges.iter().map(edge).collect()
    }

    /// Whether the text may end, by state.
    pub fn accepting(&self) -> Vec<bool> {
        self.states.iter().map(|state| *state == Kind::Reads { accepting: true }).collect()
    }
}

impl Found {
    fn from(start: ByteStateId) -> Self {
        let mut found = Self::default();
        found.number(start);
        found
    }

    fn number(&mut self, state: ByteStateId) -> usize {
        let order = &mut self.order;
        *self.numbers.entry(state.0).or_insert_with(|| {
            order.push(state);
            order.len() - 1
        })
    }

    /// Adds the edges that read a byte from a state.
    fn read(&mut self, from: usize, next: impl Fn(u8) -> ByteStateId) {
        let mut targets: Vec<ByteStateId> = Vec::new();
        for byte in 0..=u8::MAX {
            let to = next(byte);
            if to != ByteStateId::DEAD && !targets.contains(&to) {
                targets.push(to);
            }
        }
        for target in targets {
            let to = self.number(target);
            let label = of_bytes(|byte| next(byte) == target).unwrap_or_default();
            self.edges.push(Edge { from, to, label, is_jump: false });
        }
    }

    fn jump(&mut self, from: usize, to: ByteStateId, label: String) {
        let to = self.number(to);
        self.edges.push(Edge { from, to, label, is_jump: true });
    }
}
