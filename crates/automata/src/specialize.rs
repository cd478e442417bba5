//! Makes every state of an automaton with calls reach an exit from every caller.
//!
//! A state of a procedure reaches some of the procedure's exits, and a call may not continue from
//! each of them. A procedure is copied for each set of exits that some call continues from, and
//! each copy keeps only the states that reach an exit of its set. A row in a state of a procedure
//! can then be completed with any stack.

use super::pushdown::UntrimmedPda;
use super::{Call, Csr, FastMap, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// A set of exits: bit 0 is the end of the text, bit 1 is exit 0 of a procedure, and so on.
type ExitSet = u64;

/// The end of the text.
const TEXT: ExitSet = 1;

fn returning(outcome: usize) -> ExitSet {
    1 << (outcome + 1)
}

impl UntrimmedPda {
    /// The same language, with every state able to reach an exit that all of its callers accept.
    /// The exits of each procedure are renumbered, without exits that its calls do not continue
    /// from.
    ///
    /// # Errors
    /// If a limit is breached.
    pub(super) fn specialized(&self, meter: &Meter) -> Result<Self> {
        let calls = &self.calls;
        let mut copies = Copies {
            reach: self.reach(),
            return_of: self.returning.iter().zip(0..).map(|(&state, outcome)| (state, outcome)).collect(),
            first: vec![(0, 0); self.rows.state_count()],
            done: Self { rows: Rows::new(), start: 0, calls: FastMap::default(), returning: Vec::new() },
            known: FastMap::default(),
            open: Vec::new(),
        };
        copies.done.start = copies.copy(self.start, TEXT);
        let mut row = Vec::new();
        while let Some((state, exits, copy)) = copies.open.pop() {
            let runs = self.rows.row(state);
            // Call states have no rows.
            if runs.is_empty()
                && let Some(call) = calls.get(&state)
            {
                let call = copies.call(call, exits);
                copies.done.calls.insert(copy, call);
            } else {
                row.clear();
                for run in runs {
                    row.push(Run { target: copies.copy(run.target, exits), ..*run });
                }
                copies.done.rows.fill(copy, self.rows.is_accepting(state), row.iter().copied());
            }
            if copy % 1024 == 0 {
                copies.done.rows.check(meter)?;
            }
        }
        Ok(copies.done)
    }

    /// The reachable exits of each state.
    fn reach(&self) -> Vec<ExitSet> {
        let calls = &self.calls;
        let states = self.rows.state_count();
        // The states to revisit after a state gains exits.
        let rows =
            (1..states as u32).flat_map(|from| self.rows.row(from).iter().map(move |run| (run.target, from)));
        let jumps = calls
            .iter()
            .flat_map(|(&from, call)| call.returns.iter().chain([&call.enter]).map(move |&to| (to, from)));
        let users = Csr::new(states, rows.chain(jumps));
        let mut reach: Vec<ExitSet> = vec![0; states];
        let mut rest = Vec::new();
        for state in (1..states as u32).filter(|&state| self.rows.is_accepting(state)) {
            reach[state as usize] = TEXT;
            rest.push(state);
        }
        for (outcome, &state) in self.returning.iter().enumerate() {
            reach[state as usize] = returning(outcome);
            rest.push(state);
        }
        while let Some(state) = rest.pop() {
            for &user in users.of(state) {
                let exits = match calls.get(&user) {
                    Some(call) => through(&reach, call).fold(0, |exits, (_, to)| exits | reach[to as usize]),
                    None => reach[state as usize],
                };
                if exits & !reach[user as usize] != 0 {
                    reach[user as usize] |= exits;
                    rest.push(user);
                }
            }
        }
        reach
    }
}

/// The exits that a called procedure reaches, and the return state of each.
fn through<'a>(reach: &'a [ExitSet], call: &'a Call) -> impl Iterator<Item = (usize, u32)> + 'a {
    let within = reach[call.enter as usize];
    let outcomes = call.returns.iter().copied().enumerate();
    outcomes.filter(move |(outcome, _)| within & returning(*outcome) != 0)
}

/// Copies of states for sets of exits.
struct Copies {
    /// The reachable exits of each state.
    reach: Vec<ExitSet>,
    return_of: FastMap<u32, usize>,
    done: UntrimmedPda,
    /// The first copy of each state with its exits, usually the only one; no exits if there is no
    /// copy.
    first: Vec<(ExitSet, u32)>,
    /// The other copies.
    known: FastMap<(u32, ExitSet), u32>,
    /// States still to be copied, with their exits and the numbers of their copies.
    open: Vec<(u32, ExitSet, u32)>,
}

impl Copies {
    /// The copy of `state` for the set `exits`; 0 if it reaches none of them.
    fn copy(&mut self, state: u32, exits: ExitSet) -> u32 {
        if self.reach[state as usize] & exits == 0 {
            return 0;
        }
        let (first, copy) = self.first[state as usize];
        if first == exits {
            return copy;
        }
        if let Some(&outcome) = self.return_of.get(&state) {
            // Its number among the exits in the set.
            let number = (exits & (returning(outcome) - 1) & !TEXT).count_ones() as usize;
            while self.done.returning.len() <= number {
                let state = self.done.rows.reserve(1);
                self.done.returning.push(state);
            }
            return self.done.returning[number];
        }
        let (rows, open) = (&mut self.done.rows, &mut self.open);
        let mut new = || {
            let copy = rows.reserve(1);
            open.push((state, exits, copy));
            copy
        };
        if first == 0 {
            let copy = new();
            self.first[state as usize] = (exits, copy);
            return copy;
        }
        *self.known.entry((state, exits)).or_insert_with(new)
    }

    /// The copy of a call for the set `exits`.
    fn call(&mut self, call: &Call, exits: ExitSet) -> Call {
        let goes_on = through(&self.reach, call).filter(|(_, to)| self.reach[*to as usize] & exits != 0);
        let outcomes: Vec<(usize, u32)> = goes_on.collect();
        let within = outcomes.iter().fold(0, |within, (outcome, _)| within | returning(*outcome));
        let enter = self.copy(call.enter, within);
        Call { enter, returns: outcomes.into_iter().map(|(_, to)| self.copy(to, exits)).collect() }
    }
}
