//! Automata over bytes that call parts of themselves: deterministic pushdown automata.
//!
//! A *call state* has no row. On entering one, it is pushed on a stack and the automaton goes on at the start of a *piece*.
//! A piece ends in a RETURN state of one of its *outcomes*: the call state is popped, and the automaton goes on at the state
//! that the call names for this outcome. States of a piece lead to states of the same piece only, so a piece is written once
//! however many places call it, also itself.
//!
//! Reference: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{FastMap, Rows};

/// Where a call state goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// The first state of the piece.
    pub(crate) enter: u32,
    /// The state after the piece, by outcome.
    pub(crate) returns: Vec<u32>,
}

/// An automaton over bytes with a stack of calls.
#[derive(Clone, Debug)]
pub(crate) struct Pushdown {
    rows: Rows,
    start: u32,
    calls: FastMap<u32, Call>,
    /// The outcome of each RETURN state.
    outcomes: FastMap<u32, u32>,
}

impl Pushdown {
    pub(super) fn new(
        rows: Rows,
        start: u32,
        calls: FastMap<u32, Call>,
        outcomes: FastMap<u32, u32>,
    ) -> Self {
        Self { rows, start, calls, outcomes }
    }

    /// Whether `text` is in the language, with at most `depth` calls on the stack.
    pub(crate) fn matches(&self, text: &[u8], depth: usize) -> bool {
        let mut stack: Vec<&Call> = Vec::new();
        let mut state = self.start;
        for &byte in text {
            state = self.rows.next(state, byte);
            loop {
                if let Some(call) = self.calls.get(&state) {
                    if stack.len() == depth {
                        return false;
                    }
                    stack.push(call);
                    state = call.enter;
                } else if let Some(&outcome) = self.outcomes.get(&state) {
                    let Some(call) = stack.pop() else { return false };
                    state = call.returns.get(outcome as usize).copied().unwrap_or(0);
                } else {
                    break;
                }
            }
            if state == 0 {
                return false;
            }
        }
        stack.is_empty() && self.rows.is_accepting(state)
    }

    /// The least number of bytes from each state to each end of its piece, by state and end. End 0 is that of the whole
    /// text, the end after it that of outcome 0, and so on.
    ///
    /// Reference: D. E. Knuth, *A Generalization of Dijkstra's Algorithm*, Information Processing Letters 6(1), 1977.
    pub(crate) fn distances(&self) -> FastMap<(u32, u32), u32> {
        let backward = self.rows.backward();
        let mut callers: FastMap<u32, Vec<u32>> = FastMap::default();
        let mut returned: FastMap<u32, Vec<(u32, u32)>> = FastMap::default();
        for (&state, call) in &self.calls {
            callers.entry(call.enter).or_default().push(state);
            for (outcome, &to) in call.returns.iter().enumerate() {
                returned.entry(to).or_default().push((state, outcome as u32 + 1));
            }
        }
        let mut known: FastMap<(u32, u32), u32> = FastMap::default();
        let mut ends_of: FastMap<u32, Vec<u32>> = FastMap::default();
        let mut heap = BinaryHeap::new();
        for state in 1..self.rows.state_count() as u32 {
            if self.rows.is_accepting(state) {
                heap.push(Reverse((0u32, state, 0u32)));
            }
        }
        for (&state, &outcome) in &self.outcomes {
            heap.push(Reverse((0, state, outcome + 1)));
        }
        while let Some(Reverse((distance, state, end))) = heap.pop() {
            if known.contains_key(&(state, end)) {
                continue;
            }
            known.insert((state, end), distance);
            ends_of.entry(state).or_default().push(end);
            for &before in backward.of(state) {
                heap.push(Reverse((distance + 1, before, end)));
            }
            // The piece is behind, or what follows it.
            for &caller in callers.get(&state).into_iter().flatten() {
                if end == 0 {
                    continue;
                }
                let Some(&to) = self.calls[&caller].returns.get(end as usize - 1) else { continue };
                for &after in ends_of.get(&to).into_iter().flatten() {
                    heap.push(Reverse((distance + known[&(to, after)], caller, after)));
                }
            }
            for &(caller, outcome) in returned.get(&state).into_iter().flatten() {
                if let Some(&within) = known.get(&(self.calls[&caller].enter, outcome)) {
                    heap.push(Reverse((within + distance, caller, end)));
                }
            }
        }
        known
    }

    /// How many states can be reached from the start and reach an end, and how many of them are calls.
    pub(crate) fn live_states(&self) -> (usize, usize) {
        let distances = self.distances();
        let mut live = vec![false; self.rows.state_count()];
        distances.keys().for_each(|&(state, _)| live[state as usize] = true);
        let mut reached = vec![false; live.len()];
        let mut rest = vec![self.start];
        let (mut states, mut calls) = (0, 0);
        while let Some(state) = rest.pop() {
            if !live[state as usize] || std::mem::replace(&mut reached[state as usize], true) {
                continue;
            }
            states += 1;
            rest.extend(self.rows.row(state).iter().map(|run| run.target));
            if let Some(call) = self.calls.get(&state) {
                calls += 1;
                rest.push(call.enter);
                rest.extend(&call.returns);
            }
        }
        (states, calls)
    }
}
