//! Automata over bytes that call parts of themselves: deterministic pushdown automata.
//!
//! A *call state* has no row. On entry, it is pushed on a stack as a *frame*, and the automaton
//! continues at the start of a *procedure*. A procedure ends in a RETURN state of one of its
//! *exits*: the call state is popped, and the automaton continues at the call's return state for
//! the exit. Transitions stay within a procedure, so a procedure is stored once, regardless of the
//! number of its callers, recursive calls included.
//!
//! The exits of a state are the exits of its procedure. The outermost part is never called; it has
//! one exit, the end of the text, with number 0.
//!
//! Reference: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004.

use std::sync::Arc;

use super::{ByteStateId, Configuration, Csr, Distance, FastMap, Graph, Rows, Run, SparseRows};
use burn_dfa_common::{Result, limits::Meter};

/// The target of a call state, and its return states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The first state of the procedure.
    pub enter: u32,
    /// The state after the procedure, by exit.
    pub returns: Vec<u32>,
}

/// The effect of a state on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jump {
    /// No effect: the state reads a byte.
    None,
    /// A call of a procedure.
    Call(Box<Call>),
    /// Returns with an exit.
    Return(u32),
}

/// A deterministic pushdown automaton over bytes. State 0 is dead; state 1 is the start, never a
/// call.
///
/// Recursive or large JSON schemas have such an automaton. A *call state* reads no byte: it is
/// pushed on the stack, and the automaton continues at the start of a *procedure*. A procedure ends
/// in a RETURN state of one of its *exits*: the call state is popped, and the automaton continues
/// at the call's return state for the exit.
///
/// ```
/// use burn_dfa_tokens::automaton::{ByteAutomaton, ByteStateId};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let nested = Constraint::json_schema(json!({"type": "array", "items": {"$ref": "#"}}))?;
/// let Some(ByteAutomaton::Pushdown(automaton)) = nested.to_automaton(&Limits::default())? else {
///     panic!()
/// };
/// let call = automaton.read(ByteStateId::START, b'[');
/// let (enter, returns) = automaton.call(call).unwrap();
/// assert!(automaton.call(enter).is_none() && returns.len() == 1);
/// let returning = automaton.read(enter, b']');
/// assert_eq!(automaton.exit(returning), Some(0));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pushdown {
    rows: Arc<SparseRows>,
    jumps: Vec<Jump>,
    /// Maximum number of exits of a state.
    exits: usize,
    /// `[states, exits]`
    distances: Vec<Distance>,
    /// The maximum number of frames on the stack.
    frames: usize,
}

/// An automaton with a stack before trimming.
pub(super) struct UntrimmedPda {
    /// Call states and RETURN states have no runs.
    pub(super) rows: Rows,
    /// 0 for the empty language.
    pub(super) start: u32,
    pub(super) calls: FastMap<u32, Call>,
    /// The RETURN states, by exit.
    pub(super) returning: Vec<u32>,
}

impl UntrimmedPda {
    /// The automaton without unused states; `None` if its language is empty.
    ///
    /// # Errors
    /// If a limit is breached.
    pub(super) fn pushdown(&self, meter: &Meter) -> Result<Option<Pushdown>> {
        if self.returning.len() <= 1 {
            // A state that reaches an exit reaches the only exit. Each call therefore continues
            // from it, or is dead.
            return Pushdown::new(self, meter);
        }
        Pushdown::new(&self.specialized(meter)?, meter)
    }
}

impl Pushdown {
    /// The part of an untrimmed automaton reachable from its start that also reaches an exit;
    /// `None` if the start reaches no exit, or if a procedure has an exit that one of its calls
    /// cannot continue from.
    ///
    /// # Errors
    /// If a limit is breached.
    fn new(untrimmed: &UntrimmedPda, meter: &Meter) -> Result<Option<Self>> {
        let start = untrimmed.start;
        if start == 0 {
            return Ok(None);
        }
        let exits = untrimmed.returning.len().max(1);
        meter.bytes(untrimmed.rows.bytes() + untrimmed.rows.state_count() * exits * size_of::<Distance>())?;
        let states = untrimmed.rows.state_count();
        let graph = Graph {
            states,
            exits,
            backward: untrimmed.rows.backward(),
            accepting: (1..states as u32).filter(|&state| untrimmed.rows.is_accepting(state)).collect(),
            returning: untrimmed.returning.iter().copied().zip(0..).collect(),
            calls: &untrimmed.calls,
        };
        let distances = graph.distances(meter)?;
        let is_live = |state: u32| {
            distances[state as usize * exits..][..exits].iter().any(|distance| distance.is_some())
        };
        if !is_live(start) || untrimmed.calls.contains_key(&start) {
            return Ok(None);
        }
        let exit_of: FastMap<u32, u32> =
            untrimmed.returning.iter().enumerate().map(|(at, &state)| (state, at as u32)).collect();
        // Numbered in order of discovery; states without a path to an exit are dead.
        const UNMET: u32 = u32::MAX;
        let unmet = |distances: &[Distance]| {
            if distances.iter().any(|distance| distance.is_some()) { UNMET } else { 0 }
        };
        let mut number_of: Vec<u32> = distances.chunks_exact(exits).map(unmet).collect();
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
        let mut rows = Rows::with_capacity(states, untrimmed.rows.run_count());
        let mut jumps = Vec::with_capacity(states);
        jumps.push(Jump::None);
        let mut at = 1;
        while let Some(&state) = queue.get(at) {
            let row = untrimmed.rows.row(state);
            rows.push_numbered(untrimmed.rows.is_accepting(state), row, |target| number(target, &mut queue));
            // Call states and RETURN states have no rows.
            let call = if row.is_empty() { untrimmed.calls.get(&state) } else { None };
            jumps.push(match call {
                Some(call) => {
                    let mut returns = Vec::with_capacity(call.returns.len());
                    for (exit, &to) in call.returns.iter().enumerate() {
                        let is_reached = distances[call.enter as usize * exits + exit].is_some();
                        if is_reached && !is_live(to) {
                            return Ok(None);
                        }
                        returns.push(if is_reached { number(to, &mut queue) } else { 0 });
                    }
                    Jump::Call(Call { enter: number(call.enter, &mut queue), returns }.into())
                }
                None if row.is_empty() => exit_of.get(&state).map_or(Jump::None, |&exit| Jump::Return(exit)),
                None => Jump::None,
            });
            at += 1;
            if at % 4096 == 0 {
                meter.time()?;
            }
        }
        let distances =
            queue.iter().flat_map(|&state| &distances[state as usize * exits..][..exits]).copied().collect();
        Ok(Some(Self { rows: Arc::new(rows.into()), jumps, exits, distances, frames: meter.limits().frames }))
    }

    /// Puts `front`, the rows of states from 1 on, before this automaton. The old start gets the
    /// number after the last of them, and one of them leads to it. `missing` has the least number
    /// of symbols from each state of `front` to the old start.
    ///
    /// # Errors
    /// If a limit is breached.
    #[doc(hidden)]
    pub fn behind(self, front: Vec<Vec<Run>>, missing: &[u32], meter: &Meter) -> Result<Self> {
        let (shift, exits) = (front.len() as u32, self.exits);
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
            let distance = self.distances[self.exits];
            Distance { bytes: distance.bytes.saturating_add(*missing), ..distance }
        });
        let mut distances = vec![Distance::NONE; exits];
        for distance in to_start {
            distances.push(distance);
            distances.resize(distances.len() + exits - 1, Distance::NONE);
        }
        distances.extend_from_slice(&self.distances[exits..]);
        let mut jumps = vec![Jump::None; shift as usize + 1];
        jumps.extend(self.jumps.into_iter().skip(1).map(|jump| match jump {
            Jump::Call(call) => {
                let returns = call.returns.into_iter().map(shifted).collect();
                Jump::Call(Call { enter: shifted(call.enter), returns }.into())
            }
            jump => jump,
        }));
        Ok(Self { rows: Arc::new(rows.into()), jumps, exits, distances, frames: self.frames })
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Its rows.
    #[doc(hidden)]
    pub fn rows(&self) -> &SparseRows {
        &self.rows
    }

    /// Its rows, shared.
    #[doc(hidden)]
    pub fn shared_rows(&self) -> Arc<SparseRows> {
        Arc::clone(&self.rows)
    }

    /// The maximum number of frames on the stack.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The state after `byte` in `state`, before the stack changes.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn read(&self, state: ByteStateId, byte: u8) -> ByteStateId {
        ByteStateId(self.rows.rows().next(state.0, byte))
    }

    /// The entry state and the return states, by exit, of a call state; `None` for other states.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn call(&self, state: ByteStateId) -> Option<(ByteStateId, Vec<ByteStateId>)> {
        match self.jump(state.0) {
            Jump::Call(call) => {
                Some((ByteStateId(call.enter), call.returns.iter().copied().map(ByteStateId).collect()))
            }
            _ => None,
        }
    }

    /// The exit of a RETURN state; `None` for other states.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn exit(&self, state: ByteStateId) -> Option<usize> {
        match self.jump(state.0) {
            Jump::Return(exit) => Some(*exit as usize),
            _ => None,
        }
    }

    /// Whether the text may end in a state, on an empty stack.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn is_accepting(&self, state: ByteStateId) -> bool {
        self.rows.is_accepting(state.0)
    }

    /// The configuration after `byte`, and after the calls and RETURNs that follow it.
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
                Jump::Return(exit) => match stack.pop().map(|call| self.jump(call.0)) {
                    Some(Jump::Call(call)) => state = call.returns[*exit as usize],
                    _ => return dead,
                },
            }
        }
    }

    /// Reads each byte as the byte `read_as` gives for it. States keep their numbers, even if no
    /// run leads to them anymore, and their distances to the exits, computed from the original
    /// runs.
    #[doc(hidden)]
    pub fn read_as(self, read_as: &[u8; 256]) -> Self {
        Self { rows: Arc::new(self.rows.read_as(read_as)), ..self }
    }

    /// The effect of `state` on the stack.
    #[doc(hidden)]
    pub fn jump(&self, state: u32) -> &Jump {
        &self.jumps[state as usize]
    }

    /// Maximum number of exits of a state.
    #[doc(hidden)]
    pub fn exits(&self) -> usize {
        self.exits
    }

    /// The distance from each state to each exit, `[states, exits]`.
    #[doc(hidden)]
    pub fn distances(&self) -> &[Distance] {
        &self.distances
    }

    /// The distance from each state to each exit along bytes of the given classes alone,
    /// `[states, exits]`; `None` if some state reaches an exit only along other bytes.
    ///
    /// # Errors
    /// If a limit is breached.
    #[doc(hidden)]
    pub fn distances_along(&self, classes: &[bool], meter: &Meter) -> Result<Option<Vec<Distance>>> {
        let states = self.state_count();
        let class_of = self.rows.classes();
        let is_read =
            |run: &&Run| (run.first..=run.last).any(|byte| classes[class_of[byte as usize] as usize]);
        let rows = self.rows.all();
        let edges =
            rows.flat_map(|(state, row)| row.iter().filter(is_read).map(move |run| (run.target, state)));
        let jumps = || (0..).zip(&self.jumps);
        let returning = jumps().filter_map(|(state, jump)| match jump {
            Jump::Return(exit) => Some((state, *exit)),
            _ => None,
        });
        let calls = jumps().filter_map(|(state, jump)| match jump {
            Jump::Call(call) => Some((state, Call::clone(call))),
            _ => None,
        });
        let graph = Graph {
            states,
            exits: self.exits,
            backward: Csr::new(states, edges),
            accepting: (1..states as u32).filter(|&state| self.rows.is_accepting(state)).collect(),
            returning: returning.collect(),
            calls: &calls.collect(),
        };
        let distances = graph.distances(meter)?;
        let is_same =
            distances.iter().zip(&self.distances).all(|(along, all)| along.is_some() == all.is_some());
        Ok(is_same.then_some(distances))
    }

    /// The same automaton with another maximum number of frames.
    #[doc(hidden)]
    pub fn with_frames(self, frames: usize) -> Self {
        Self { frames, ..self }
    }
}
