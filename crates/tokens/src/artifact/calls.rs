//! Checks on the calls of an artifact, and the distances computed from them.

use super::arrays::{Dimension, StoredArray};
use super::error::broken;
use super::stored::StoredTable;
use crate::pushdown::reserved_distances;
use crate::stack::{Calls, effect};
use crate::{CompiledConstraint, StateId};
use burn_dfa_automata::{Call, Csr, Distance, FastMap, Graph, MAX_EXITS};
use burn_dfa_common::{Result, limits::Meter};

impl StoredTable<'_> {
    /// The numbers of a state in the array of jumps, already checked.
    fn jump(&self, state: u32) -> &[u32] {
        let numbers = self.sizes.of(Dimension::Jumps);
        &self[StoredArray::Jumps][state as usize * numbers..][..numbers]
    }

    fn exits(&self) -> usize {
        self.sizes.of(Dimension::Jumps).saturating_sub(1)
    }

    /// Checks that calls and RETURNs lead to existing states, that calls enter only plain states,
    /// and that call and RETURN states read no byte: following jumps therefore ends.
    pub(super) fn check_jumps(&self) -> Result<()> {
        let (states, exits) = (self.states() as u32, self.exits());
        if !(1..=MAX_EXITS).contains(&exits) {
            return Err(broken("jumps", format!("{exits} exits, of 1 to {MAX_EXITS}")));
        }
        let found = self.sizes.of(Dimension::Exits);
        if found != exits {
            return Err(broken("tokens_to_exit", format!("{found} exits of {exits}")));
        }
        let is_own = |to: u32| (StateId::RESERVED..states).contains(&to);
        for state in 0..states {
            let (first, returns) = self.jump(state).split_first().unwrap_or((&0, &[]));
            let lawful = match first.cast_signed() {
                0 => returns.iter().all(|&to| to == 0),
                enter if enter > 0 => {
                    let returns = returns.iter().all(|&to| to == 0 || is_own(to));
                    is_own(*first) && self.jump(*first)[0] == 0 && returns
                }
                exit => exit.unsigned_abs() as usize <= exits && returns.iter().all(|&to| to == 0),
            };
            let reads = |row: &[u32]| row.iter().any(|&to| to != StateId::DEAD.0);
            let row = &self[StoredArray::Next][state as usize * self.columns()..][..self.columns()];
            if !lawful || *first != 0 && (state < StateId::RESERVED || reads(row)) {
                return Err(broken(
                    "jumps",
                    format!("state {state}: {:?} is no call and no return", self.jump(state)),
                ));
            }
        }
        let own = is_own(self.start.0) && self.jump(self.start.0)[0] == 0;
        if !own {
            return Err(broken("start", format!("{} is not a state that reads a byte", self.start)));
        }
        self.check_procedures()
    }

    /// Checks that the text ends only outside of all procedures, and that only procedures return.
    fn check_procedures(&self) -> Result<()> {
        let mut is_outermost = vec![None; self.states()];
        let mut open = vec![(self.start.0, true)];
        while let Some((state, outermost)) = open.pop() {
            match is_outermost[state as usize] {
                Some(known) if known == outermost => continue,
                Some(_) => {
                    return Err(broken(
                        "jumps",
                        format!("state {state}: it is within a procedure, and outside of all"),
                    ));
                }
                None => is_outermost[state as usize] = Some(outermost),
            }
            let row = &self[StoredArray::Next][state as usize * self.columns()..][..self.columns()];
            let (first, returns) = self.jump(state).split_first().unwrap_or((&0, &[]));
            match first.cast_signed() {
                0 if row[CompiledConstraint::EOS as usize] != StateId::DEAD.0 && !outermost => {
                    return Err(broken("next", format!("state {state}: the text ends within a procedure")));
                }
                0 => {
                    let text = row[CompiledConstraint::RESERVED_COLUMNS..]
                        .iter()
                        .filter(|&&to| to >= StateId::RESERVED);
                    open.extend(text.map(|&to| (to, outermost)));
                }
                enter if enter > 0 => {
                    open.push((*first, false));
                    open.extend(returns.iter().filter(|&&to| to != 0).map(|&to| (to, outermost)));
                }
                _ if outermost => {
                    return Err(broken(
                        "jumps",
                        format!("state {state}: a return outside of all procedures"),
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The distances to the exits of the procedures in one-byte tokens, `[states, exits]`. They
    /// are not stored.
    ///
    /// # Errors
    /// If bytes lead to an end and one-byte tokens do not, if a procedure has an exit that some
    /// call cannot return from, if the start reaches no end, or if a limit is breached.
    pub(super) fn spelled_distances(&self, meter: &Meter) -> Result<Vec<Distance>> {
        let (states, exits) = (self.states(), self.exits());
        meter.bytes(states.saturating_mul(exits).saturating_mul(2 * size_of::<Distance>()))?;
        let own = || StateId::RESERVED..states as u32;
        let row = |state: u32| &self[StoredArray::Next][state as usize * self.columns()..][..self.columns()];
        let calls: FastMap<u32, Call> = own()
            .filter(|&state| self.jump(state)[0].cast_signed() > 0)
            .map(|state| {
                (state, Call { enter: self.jump(state)[0], returns: self.jump(state)[1..].to_vec() })
            })
            .collect();
        let exit = |state: u32| -1 - self.jump(state)[0].cast_signed();
        let along = |columns: &[usize]| {
            let edges =
                own().flat_map(|state| columns.iter().map(move |&column| (row(state)[column], state)));
            let graph = Graph {
                states,
                exits,
                backward: Csr::new(states, edges.filter(|&(to, _)| to != 0)),
                accepting: own().filter(|&state| row(state)[CompiledConstraint::EOS as usize] != 0).collect(),
                returning: own()
                    .filter(|&state| exit(state) >= 0)
                    .map(|state| (state, exit(state) as u32))
                    .collect(),
                calls: &calls,
            };
            graph.distances(meter)
        };
        let usable = self.check_symbols()?;
        let all: Vec<usize> = (CompiledConstraint::RESERVED_COLUMNS..self.columns()).collect();
        let spelled: Vec<usize> = all.iter().copied().filter(|&column| usable[column]).collect();
        let mut distances = along(&spelled)?;
        if !self.spells(&usable) {
            let all = along(&all)?;
            let lost = distances.iter().zip(&all).position(|(one, any)| one.is_some() != any.is_some());
            if let Some(at) = lost {
                let what = format!("state {}: its path to the end takes a byte that is no token", at / exits);
                return Err(broken("symbols", what));
            }
        }
        let has_end = |state: u32| {
            distances[state as usize * exits..][..exits].iter().any(|distance| distance.is_some())
        };
        for (state, call) in &calls {
            let stuck =
                call.returns.iter().enumerate().find(|&(exit, &to)| {
                    distances[call.enter as usize * exits + exit].is_some() && !has_end(to)
                });
            if let Some((exit, _)) = stuck {
                let what = format!(
                    "state {state}: its procedure ends with exit {exit}, from which nothing leads to the end"
                );
                return Err(broken("jumps", what));
            }
        }
        let start = distances[self.start.index() * exits];
        if !start.is_some() || start.frames as usize > self.frames {
            let what = format!("no path to the end on a stack of {} frames", self.frames);
            return Err(broken("start", what));
        }
        distances.splice(..StateId::RESERVED as usize * exits, reserved_distances(exits));
        Ok(distances)
    }

    /// The effects of the states on the stack.
    ///
    /// # Errors
    /// As [`spelled_distances`](Self::spelled_distances).
    pub(super) fn calls(&self, meter: &Meter) -> Result<Calls> {
        let distances = self.spelled_distances(meter)?;
        let mut entered = [0u32; 256];
        for row in self.rows().skip(StateId::RESERVED as usize) {
            for (entered, &column) in entered.iter_mut().zip(&self[StoredArray::Column][..256]) {
                *entered |= effect(self.jump(row[column as usize])[0].cast_signed());
            }
        }
        let jumps = self[StoredArray::Jumps].iter().map(|number| number.cast_signed()).collect();
        Ok(Calls::new(self.frames, self.exits(), jumps, &distances, &entered))
    }
}
