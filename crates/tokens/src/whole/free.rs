//! Any token, in a byte-level constraint.
//!
//! Tokens not named by a constraint are too many for separate columns. But a sequence of any tokens
//! is a sequence of any bytes: if such tokens repeat, and a state otherwise reads only tokens with
//! a column, the token edges become byte transitions.

use crate::rows::SHIFT;
use crate::{CompiledConstraint, ConstraintParts, StateId};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result};

impl ConstraintParts {
    /// Reads text tokens not named by a constraint by their bytes, in states where `edges` read
    /// them whole.
    ///
    /// # Errors
    /// If tokens and bytes differ: in states that also read bytes or are entered by bytes, where a
    /// token could begin or end inside other text, and in states that a token leaves for another
    /// state.
    pub(super) fn read_any(&mut self, edges: &[(u32, u32)]) -> Result<()> {
        let leads: FastMap<u32, u32> = edges.iter().map(|&(from, to)| (from + SHIFT, to + SHIFT)).collect();
        let bytes = CompiledConstraint::RESERVED_COLUMNS..self.columns() - self.special().columns();
        let entered = self.entered_by_bytes();
        let fits = |(&from, &to): (&u32, &u32)| {
            let silent = self.row(StateId(from))[bytes.clone()].iter().all(|&to| to == StateId::DEAD.0);
            silent && !entered[from as usize] && !entered[to as usize] && leads.get(&to) == Some(&to)
        };
        if !leads.iter().all(fits) {
            return Err(Error::grammar_as_a_whole(
                "any token may come where text is read too, or a number of them: with recursion, or more states than the token-level form holds, \
                 that is offered for any number of tokens between such as are named, and are no text",
            ));
        }
        for (from, to) in leads {
            self.next.row_mut(StateId(from))[bytes.clone()].fill(to);
        }
        Ok(())
    }

    /// The possible states of a row after a byte.
    fn entered_by_bytes(&self) -> Vec<bool> {
        let bytes = CompiledConstraint::RESERVED_COLUMNS..self.columns() - self.special().columns();
        let mut entered = vec![false; self.next.states()];
        for row in self.next.all().chunks_exact(self.columns()).skip(StateId::RESERVED as usize) {
            row[bytes.clone()].iter().for_each(|&to| entered[to as usize] = true);
        }
        let Some(calls) = &self.calls else { return entered };
        let calling: Vec<&[i32]> =
            calls.jumps.chunks_exact(calls.frame()).filter(|jump| jump[0] > 0).collect();
        let mut returned = vec![false; calls.frame()];
        let mut rest: Vec<u32> =
            (0..).zip(&entered).filter(|&(_, &known)| known).map(|(state, _)| state).collect();
        while let Some(state) = rest.pop() {
            let mut enter = |to: i32| {
                if to > 0 && !std::mem::replace(&mut entered[to as usize], true) {
                    rest.push(to as u32);
                }
            };
            match calls.jump(state)[0] {
                0 => {}
                to if to > 0 => enter(to),
                outcome => {
                    // −1 is exit 0, at index 1.
                    let outcome = outcome.unsigned_abs() as usize;
                    if !std::mem::replace(&mut returned[outcome], true) {
                        calling.iter().for_each(|call| enter(call[outcome]));
                    }
                }
            }
        }
        entered
    }
}
