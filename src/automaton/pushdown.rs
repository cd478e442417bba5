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

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::classes::{ByteClasses, Distinctions};
use super::{Csr, FastMap, Rows, Run};
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

/// From this on a distance counts as infinite, so that two that are less can be added in 31 bits.
pub(crate) const FARTHEST: u32 = 1 << 30;

/// The way from a state to an end: the shortest one, and of these one that needs the fewest frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    /// Bytes, and one for the end of the text; [`FARTHEST`] or more where there is no way.
    pub(crate) bytes: u32,
    /// The most frames that it adds to the stack at any time.
    pub(crate) frames: u32,
}

impl Way {
    const NONE: Self = Self { bytes: u32::MAX, frames: u32::MAX };

    pub(crate) fn is_some(self) -> bool {
        self.bytes < FARTHEST
    }
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
        let ways = draft.ways(ends, meter)?;
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

    /// The most call and RETURN states that follow one another without a byte between them, on a stack of `depth` frames.
    pub(crate) fn chain(&self, depth: u32) -> u32 {
        let silent = |state: u32| *self.jump(state) != Jump::None;
        // What may follow each of them; a RETURN may go back to any call.
        let calls = || {
            self.jumps.iter().filter_map(|jump| if let Jump::Call(call) = jump { Some(call) } else { None })
        };
        let after = |state: u32| -> Vec<u32> {
            match self.jump(state) {
                Jump::None => Vec::new(),
                Jump::Call(call) => vec![call.enter],
                Jump::Return(outcome) => {
                    calls().filter_map(|call| call.returns.get(*outcome as usize).copied()).collect()
                }
            }
        };
        let mut left: FastMap<u32, Vec<u32>> = FastMap::default();
        for state in (1..self.state_count() as u32).filter(|&state| silent(state)) {
            let mut after: Vec<u32> = after(state).into_iter().filter(|&state| silent(state)).collect();
            after.sort_unstable();
            after.dedup();
            left.insert(state, after);
        }
        // By rounds: those of which nothing silent follows, then those that only these follow, and so on.
        let mut rounds = 0;
        while !left.is_empty() {
            let ended: Vec<u32> =
                left.iter().filter(|(_, after)| after.is_empty()).map(|(&state, _)| state).collect();
            if ended.is_empty() {
                // A circle: it is bounded by the stack alone.
                return rounds + 2 * depth + 2;
            }
            ended.iter().for_each(|state| _ = left.remove(state));
            left.values_mut().for_each(|after| after.retain(|state| !ended.contains(state)));
            rounds += 1;
        }
        rounds
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

impl Draft<'_> {
    /// The way from each state to each end, `[states, ends]`.
    ///
    /// Reference: D. E. Knuth, *A Generalization of Dijkstra's Algorithm*, Information Processing Letters 6(1), 1977.
    fn ways(&self, ends: usize, meter: &Meter) -> Result<Vec<Way>> {
        let states = self.rows.state_count();
        meter.bytes(self.rows.bytes() + states * ends * size_of::<Way>())?;
        let backward = self.rows.backward();
        let callers = Csr::new(states, self.calls.iter().map(|(&state, call)| (call.enter, state)));
        // For each state the calls that go on there, times the number of ends, plus the outcome.
        let returned = self.calls.iter().flat_map(|(&state, call)| {
            let outcomes = call.returns.iter().enumerate();
            outcomes.map(move |(outcome, &to)| (to, state * ends as u32 + outcome as u32))
        });
        let returned = Csr::new(states, returned);
        let mut ways = vec![Way::NONE; states * ends];
        let mut heap = BinaryHeap::new();
        let none = Way { bytes: 0, frames: 0 };
        let accepting = (1..states as u32).filter(|&state| self.rows.is_accepting(state));
        heap.extend(accepting.map(|state| Reverse((Way { bytes: 1, ..none }, state, 0))));
        let returning = self.returning.iter().enumerate();
        heap.extend(returning.map(|(outcome, &state)| Reverse((none, state, outcome as u32))));
        let mut found = 0;
        while let Some(Reverse((way, state, end))) = heap.pop() {
            let place = &mut ways[state as usize * ends + end as usize];
            if place.is_some() || !way.is_some() {
                continue;
            }
            *place = way;
            found += 1;
            if found % 4096 == 0 {
                meter.time()?;
            }
            let longer = Way { bytes: way.bytes + 1, ..way };
            for &before in backward.of(state) {
                if !ways[before as usize * ends + end as usize].is_some() {
                    heap.push(Reverse((longer, before, end)));
                }
            }
            // The way through a piece, and on from where it returns to.
            let through = |piece: Way, rest: Way| Way {
                bytes: piece.bytes + rest.bytes,
                frames: (piece.frames + 1).max(rest.frames),
            };
            for &caller in callers.of(state) {
                let Some(&to) = self.calls[&caller].returns.get(end as usize) else { continue };
                for after in 0..ends {
                    let rest = ways[to as usize * ends + after];
                    if to != 0 && rest.is_some() {
                        heap.push(Reverse((through(way, rest), caller, after as u32)));
                    }
                }
            }
            for &place in returned.of(state) {
                let (caller, outcome) = (place / ends as u32, place as usize % ends);
                let piece = ways[self.calls[&caller].enter as usize * ends + outcome];
                if piece.is_some() {
                    heap.push(Reverse((through(piece, way), caller, end)));
                }
            }
        }
        Ok(ways)
    }
}
