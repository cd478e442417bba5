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

use std::sync::Arc;

use super::specialise::Specialised;
use super::{ByteRows, ByteStateId, Configuration, Csr, FastMap, Graph, Rows, Run, Way};
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
    Call(Box<Call>),
    /// Returns with an outcome.
    Return(u32),
}

/// A deterministic pushdown automaton over bytes. State 0 is dead, 1 is the start, which is no call.
///
/// It is that of a JSON schema which contains itself, or is large. A *call state* reads no byte: it is pushed on the stack, and
/// the automaton goes on at the start of a *piece*. A piece ends in a RETURN state of one of its *outcomes*: the call state is
/// popped, and the automaton goes on where that returns to for the outcome.
///
/// ```
/// use burn_dfa::automaton::{ByteAutomaton, ByteStateId};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let nested = Constraint::json_schema(json!({"type": "array", "items": {"$ref": "#"}}))?;
/// let Some(ByteAutomaton::Pushdown(automaton)) = nested.to_automaton(&Limits::default())? else { panic!() };
/// let call = automaton.read(ByteStateId::START, b'[');
/// let (enter, returns) = automaton.call(call).unwrap();
/// assert!(automaton.call(enter).is_none() && returns.len() == 1);
/// let returning = automaton.read(enter, b']');
/// assert_eq!(automaton.outcome(returning), Some(0));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pushdown {
    rows: Arc<ByteRows>,
    jumps: Vec<Jump>,
    /// Number of ends of a state, at most.
    ends: usize,
    /// `[states, ends]`
    ways: Vec<Way>,
    /// The most frames on the stack.
    frames: usize,
}

/// An automaton with a stack that was not trimmed yet.
pub(super) struct Draft<'a> {
    pub(super) rows: &'a Rows,
    pub(super) calls: FastMap<u32, Call>,
    /// The RETURN states, by outcome.
    pub(super) returning: &'a [u32],
}

impl Draft<'_> {
    /// The automaton with calls that begins at `start`; `None` where its language is empty.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn pushdown(&self, start: u32, meter: &Meter) -> Result<Option<Pushdown>> {
        if self.returning.len() <= 1 {
            // A state that reaches an outcome reaches the only one. So a call goes on from it, or is dead.
            return Pushdown::new(self, start, meter);
        }
        let Specialised { rows, start, calls, returning } = self.specialised(start, meter)?;
        if start == 0 {
            return Ok(None);
        }
        Pushdown::new(&Draft { rows: &rows, calls, returning: &returning }, start, meter)
    }
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
        // Numbered in the order in which they are met; those from which no end is reached are dead.
        const UNMET: u32 = u32::MAX;
        let unmet = |ways: &[Way]| if ways.iter().any(|way| way.is_some()) { UNMET } else { 0 };
        let mut number_of: Vec<u32> = ways.chunks_exact(ends).map(unmet).collect();
        let mut queue = Vec::with_capacity(states);
        queue.extend([0, start]);
        number_of[start as usize] = 1;
        let mut number = |state: u32, queue: &mut Vec<u32>| {
            let number = &mut number_of[state as usize];
            if *number == UNMET {
                *number = queue.len() as u32;
                queue.push(state);
            }
            *number
        };
        let mut rows = Rows::with_capacity(states, draft.rows.run_count());
        let mut jumps = Vec::with_capacity(states);
        jumps.push(Jump::None);
        let mut at = 1;
        while let Some(&state) = queue.get(at) {
            let row = draft.rows.row(state);
            rows.push_numbered(draft.rows.is_accepting(state), row, |target| number(target, &mut queue));
            // Call states and RETURN states have no rows.
            let call = if row.is_empty() { draft.calls.get(&state) } else { None };
            jumps.push(match call {
                Some(call) => {
                    let mut returns = Vec::with_capacity(call.returns.len());
                    for (outcome, &to) in call.returns.iter().enumerate() {
                        let ends_so = ways[call.enter as usize * ends + outcome].is_some();
                        if ends_so && !is_live(to) {
                            return Ok(None);
                        }
                        returns.push(if ends_so { number(to, &mut queue) } else { 0 });
                    }
                    Jump::Call(Call { enter: number(call.enter, &mut queue), returns }.into())
                }
                None if row.is_empty() => {
                    outcomes.get(&state).map_or(Jump::None, |&outcome| Jump::Return(outcome))
                }
                None => Jump::None,
            });
            at += 1;
            if at % 4096 == 0 {
                meter.time()?;
            }
        }
        let ways = queue.iter().flat_map(|&state| &ways[state as usize * ends..][..ends]).copied().collect();
        Ok(Some(Self { rows: Arc::new(rows.into()), jumps, ends, ways, frames: meter.limits().frames }))
    }

    /// This behind `front`, the rows of states from 1 on, one of which leads to the start: the state after the last of them.
    /// `missing` is the least number of symbols from each of them to the start.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn behind(self, front: Vec<Vec<Run>>, missing: &[u32], meter: &Meter) -> Result<Self> {
        let (shift, ends) = (front.len() as u32, self.ends);
        let shifted = |state: u32| if state == 0 { 0 } else { state + shift };
        let mut rows = Rows::new();
        for row in front {
            rows.push(false, row);
        }
        for state in 1..self.state_count() as u32 {
            let row = self.rows.row(state).iter().map(|run| Run { target: shifted(run.target), ..*run });
            rows.push(self.rows.is_accepting(state), row);
        }
        rows.check(meter)?;
        let to_start = missing.iter().map(|missing| {
            let way = self.ways[self.ends];
            Way { bytes: way.bytes.saturating_add(*missing), ..way }
        });
        let mut ways = vec![Way::NONE; ends];
        for way in to_start {
            ways.push(way);
            ways.resize(ways.len() + ends - 1, Way::NONE);
        }
        ways.extend_from_slice(&self.ways[ends..]);
        let mut jumps = vec![Jump::None; shift as usize + 1];
        jumps.extend(self.jumps.into_iter().skip(1).map(|jump| match jump {
            Jump::Call(call) => {
                let returns = call.returns.into_iter().map(shifted).collect();
                Jump::Call(Call { enter: shifted(call.enter), returns }.into())
            }
            jump => jump,
        }));
        Ok(Self { rows: Arc::new(rows.into()), jumps, ends, ways, frames: self.frames })
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> &ByteRows {
        &self.rows
    }

    /// Its rows, shared.
    pub(crate) fn shared_rows(&self) -> Arc<ByteRows> {
        Arc::clone(&self.rows)
    }

    /// The most frames on the stack.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The state after `byte` in `state`, before the stack changes.
    ///
    /// # Panics
    /// Where `state` is not a state of this automaton.
    pub fn read(&self, state: ByteStateId, byte: u8) -> ByteStateId {
        ByteStateId(self.rows.rows().next(state.0, byte))
    }

    /// Where a call state enters a piece, and where it returns to by outcome; `None` of other states.
    ///
    /// # Panics
    /// Where `state` is not a state of this automaton.
    pub fn call(&self, state: ByteStateId) -> Option<(ByteStateId, Vec<ByteStateId>)> {
        match self.jump(state.0) {
            Jump::Call(call) => {
                Some((ByteStateId(call.enter), call.returns.iter().copied().map(ByteStateId).collect()))
            }
            _ => None,
        }
    }

    /// The outcome of a RETURN state; `None` of other states.
    ///
    /// # Panics
    /// Where `state` is not a state of this automaton.
    pub fn outcome(&self, state: ByteStateId) -> Option<usize> {
        match self.jump(state.0) {
            Jump::Return(outcome) => Some(*outcome as usize),
            _ => None,
        }
    }

    /// Whether the text may end in a state, on an empty stack.
    ///
    /// # Panics
    /// Where `state` is not a state of this automaton.
    pub fn is_accepting(&self, state: ByteStateId) -> bool {
        self.rows.is_accepting(state.0)
    }

    /// After `byte`, and the calls and RETURNs that follow it.
    pub(super) fn next(&self, at: &Configuration, byte: u8) -> Configuration {
        let dead = Configuration { state: ByteStateId::DEAD, stack: Vec::new() };
        let mut stack = at.stack.clone();
        let mut state = self.rows.rows().next(at.state.0, byte);
        loop {
            match self.jump(state) {
                Jump::None if state == 0 => return dead,
                Jump::None => return Configuration { state: ByteStateId(state), stack },
                Jump::Call(_) if stack.len() == self.frames => return dead,
                Jump::Call(call) => {
                    stack.push(ByteStateId(state));
                    state = call.enter;
                }
                Jump::Return(outcome) => match stack.pop().map(|call| self.jump(call.0)) {
                    Some(Jump::Call(call)) => state = call.returns[*outcome as usize],
                    _ => return dead,
                },
            }
        }
    }

    /// The same where each byte is read as the byte `read_as` says; states keep their numbers, even where no run is left that
    /// leads to them, and their ways to the ends, which are those by all runs.
    pub(crate) fn read_as(self, read_as: &[u8; 256]) -> Self {
        Self { rows: Arc::new(self.rows.read_as(read_as)), ..self }
    }

    /// What `state` does to the stack.
    pub(crate) fn jump(&self, state: u32) -> &Jump {
        &self.jumps[state as usize]
    }

    /// Number of ends of a state, at most.
    pub(crate) fn ends(&self) -> usize {
        self.ends
    }

    /// The way from each state to each end, `[states, ends]`.
    pub(crate) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// The way from each state to each end along bytes of these classes alone, `[states, ends]`; `None` where some state has a
    /// way to an end, and none so.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn ways_along(&self, classes: &[bool], meter: &Meter) -> Result<Option<Vec<Way>>> {
        let states = self.state_count();
        let class_of = self.rows.classes();
        let is_read =
            |run: &&Run| (run.first..=run.last).any(|byte| classes[class_of[byte as usize] as usize]);
        let rows = self.rows.all();
        let edges =
            rows.flat_map(|(state, row)| row.iter().filter(is_read).map(move |run| (run.target, state)));
        let jumps = || (0..).zip(&self.jumps);
        let returning = jumps().filter_map(|(state, jump)| match jump {
            Jump::Return(outcome) => Some((state, *outcome)),
            _ => None,
        });
        let calls = jumps().filter_map(|(state, jump)| match jump {
            Jump::Call(call) => Some((state, Call::clone(call))),
            _ => None,
        });
        let graph = Graph {
            states,
            ends: self.ends,
            backward: Csr::new(states, edges),
            accepting: (1..states as u32).filter(|&state| self.rows.is_accepting(state)).collect(),
            returning: returning.collect(),
            calls: &calls.collect(),
        };
        let ways = graph.ways(meter)?;
        let is_same = ways.iter().zip(&self.ways).all(|(along, all)| along.is_some() == all.is_some());
        Ok(is_same.then_some(ways))
    }

    /// The same with so many frames.
    #[cfg(test)]
    pub(crate) fn with_frames(self, frames: usize) -> Self {
        Self { frames, ..self }
    }

    /// How many states are calls.
    #[cfg(test)]
    pub(crate) fn call_count(&self) -> usize {
        self.jumps.iter().filter(|jump| matches!(jump, Jump::Call(_))).count()
    }
}
