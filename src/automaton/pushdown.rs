//! Automata over bytes that call parts of themselves: deterministic pushdown automata.
//!
//! A *call state* has no row. On entering one, it is pushed on a stack as a *frame*, and the automaton goes on at the start of
//! a *piece*. A piece ends in a RETURN state of one of its *outcomes*: the call state is popped, and the automaton goes on at
//! the state that the call names for this outcome. States of a piece lead to states of the same piece only, so a piece is
//! written once however many places call it, also itself.
//!
//! The *ends* of a state are the outcomes of its piece. The outermost part is called by nothing; it has one end, that of the
//! text, which has number 0 as the first outcome has.
//!
//! Reference: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004.

use super::classes::{ByteClasses, Distinctions};
use super::{FastMap, Graph, Rows, Run, Way};
use crate::error::Result;
use crate::limits::Meter;

/// Where a call state goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// The first state of the piece.
    pub(crate) enter: u32,
    /// The state after the piece, by outcome.
    pub(crate) returns: Vec<u32>,
}

/// What a state does to the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// Nothing: it reads a byte.
    None,
    Call(Call),
    /// Returns with an outcome.
    Return(u32),
}

/// A deterministic automaton over bytes with a stack, trimmed and numbered: state 0 is dead, 1 is the start, which is no call.
#[derive(Clone, Debug)]
pub(crate) struct Pushdown {
    rows: Rows,
    classes: ByteClasses,
    jumps: Vec<Jump>,
    /// Number of ends of a state, at most.
    ends: usize,
    /// `[states, ends]`
    ways: Vec<Way>,
}

/// An automaton with a stack that was not trimmed yet.
pub(super) struct Draft<'a> {
    pub(super) rows: &'a Rows,
    pub(super) calls: FastMap<u32, Call>,
    /// The RETURN states, by outcome.
    pub(super) returning: &'a [u32],
}

impl Pushdown {
    /// The part of a draft that can be reached from `start` and reaches an end; `None` where the start reaches none, or
    /// where a piece can end as one of its calls cannot go on from.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn new(draft: &Draft, start: u32, meter: &Meter) -> Result<Option<Self>> {
        let ends = draft.returning.len().max(1);
        meter.bytes(draft.rows.bytes() + draft.rows.state_count() * ends * size_of::<Way>())?;
        let states = draft.rows.state_count();
        let graph = Graph {
            states,
            ends,
            backward: draft.rows.backward(),
            accepting: (1..states as u32).filter(|&state| draft.rows.is_accepting(state)).collect(),
            returning: draft.returning.iter().copied().zip(0..).collect(),
            calls: &draft.calls,
        };
        let ways = graph.ways(meter)?;
        let is_live = |state: u32| ways[state as usize * ends..][..ends].iter().any(|way| way.is_some());
        if !is_live(start) || draft.calls.contains_key(&start) {
            return Ok(None);
        }
        let outcomes: FastMap<u32, u32> =
            draft.returning.iter().enumerate().map(|(at, &state)| (state, at as u32)).collect();
        // Numbered in the order in which they are met.
        let mut number_of = vec![0u32; draft.rows.state_count()];
        let mut queue = vec![0, start];
        number_of[start as usize] = 1;
        let mut number = |state: u32, queue: &mut Vec<u32>| {
            if !is_live(state) {
                return 0;
            }
            let number = &mut number_of[state as usize];
            if *number == 0 {
                *number = queue.len() as u32;
                queue.push(state);
            }
            *number
        };
        let mut rows = Rows::new();
        let mut distinctions = Distinctions::new();
        let mut jumps = vec![Jump::None];
        let mut at = 1;
        while let Some(&state) = queue.get(at) {
            let runs = draft.rows.row(state).iter();
            let runs: Vec<Run> =
                runs.map(|run| Run { target: number(run.target, &mut queue), ..*run }).collect();
            rows.push(draft.rows.is_accepting(state), runs);
            distinctions.add(rows.row(at as u32));
            jumps.push(match (draft.calls.get(&state), outcomes.get(&state)) {
                (Some(call), _) => {
                    let mut returns = Vec::with_capacity(call.returns.len());
                    for (outcome, &to) in call.returns.iter().enumerate() {
                        let ends_so = ways[call.enter as usize * ends + outcome].is_some();
                        if ends_so && !is_live(to) {
                            return Ok(None);
                        }
                        returns.push(if ends_so { number(to, &mut queue) } else { 0 });
                    }
                    Jump::Call(Call { enter: number(call.enter, &mut queue), returns })
                }
                (None, Some(&outcome)) => Jump::Return(outcome),
                (None, None) => Jump::None,
            });
            at += 1;
            if at % 4096 == 0 {
                meter.time()?;
            }
        }
        let ways = queue.iter().flat_map(|&state| &ways[state as usize * ends..][..ends]).copied().collect();
        let symbols = std::array::from_fn(|byte| byte as u8);
        Ok(Some(Self { rows, classes: distinctions.classes(&symbols), jumps, ends, ways }))
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Number of classes of bytes.
    pub(crate) fn class_count(&self) -> usize {
        self.classes.count()
    }

    /// The class of every byte.
    pub(crate) fn classes(&self) -> &[u8; 256] {
        self.classes.of_bytes()
    }

    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.rows.is_accepting(state)
    }

    pub(crate) fn row(&self, state: u32) -> &[Run] {
        self.rows.row(state)
    }

    /// Writes the row of `state` by class; see [`ByteClasses::fill`].
    pub(crate) fn fill(&self, state: u32, by_class: &mut [u32], shift: u32) {
        self.classes.fill(self.row(state), by_class, shift);
    }

    /// What `state` does to the stack.
    pub(crate) fn jump(&self, state: u32) -> &Jump {
        &self.jumps[state as usize]
    }

    /// Number of ends of a state, at most.
    pub(crate) fn ends(&self) -> usize {
        self.ends
    }

    /// The way from `state` to each end.
    pub(crate) fn ways(&self, state: u32) -> &[Way] {
        &self.ways[state as usize * self.ends..][..self.ends]
    }

    /// Memory in use, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + self.state_count() * (size_of::<Jump>() + self.ends * size_of::<Way>())
    }

    /// Whether `text` is in the language, with at most `depth` frames on the stack.
    #[cfg(test)]
    pub(crate) fn matches(&self, text: &[u8], depth: usize) -> bool {
        let mut stack: Vec<&Call> = Vec::new();
        let mut state = 1;
        for &byte in text {
            state = self.rows.next(state, byte);
            loop {
                match self.jump(state) {
                    Jump::None => break,
                    Jump::Call(_) if stack.len() == depth => return false,
                    Jump::Call(call) => {
                        stack.push(call);
                        state = call.enter;
                    }
                    Jump::Return(outcome) => match stack.pop() {
                        Some(call) => state = call.returns[*outcome as usize],
                        None => return false,
                    },
                }
            }
        }
        stack.is_empty() && self.rows.is_accepting(state)
    }

    /// How many states are calls.
    #[cfg(test)]
    pub(crate) fn call_count(&self) -> usize {
        self.jumps.iter().filter(|jump| matches!(jump, Jump::Call(_))).count()
    }
}
