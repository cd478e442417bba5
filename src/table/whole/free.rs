//! Any token, in a walked table.
//!
//! Tokens that no constraint names are too many for columns of their own. But any number of any tokens is any bytes: so where
//! such tokens follow one another, and nothing else is read than tokens that have a column, bytes lead where the tokens do.

use crate::automaton::FastMap;
use crate::error::{Error, Result};
use crate::table::rows::SHIFT;
use crate::table::{StateId, TableParts, TokenTable};

impl TableParts {
    /// Reads tokens that no constraint names, and that are text, by their bytes, where `edges` read them whole.
    ///
    /// # Errors
    /// Where these are other tokens than their bytes: in states that read bytes too or are reached by some, which a token then
    /// begins or ends amid, and in states that a token leaves for another one.
    pub(super) fn read_any(&mut self, edges: &[(u32, u32)]) -> Result<()> {
        let leads: FastMap<u32, u32> = edges.iter().map(|&(from, to)| (from + SHIFT, to + SHIFT)).collect();
        let bytes = TokenTable::RESERVED_COLUMNS..self.columns() - self.special().columns();
        let entered = self.entered_by_bytes();
        let fits = |(&from, &to): (&u32, &u32)| {
            let silent = self.row(StateId(from))[bytes.clone()].iter().all(|&to| to == StateId::DEAD.0);
            silent && !entered[from as usize] && !entered[to as usize] && leads.get(&to) == Some(&to)
        };
        if !leads.iter().all(fits) {
            return Err(Error::grammar_as_a_whole(
                "any token may come where text is read too, or a number of them: with recursion, or more states than are tabulated, \
                 that is offered for any number of tokens between such as are named, and are no text",
            ));
        }
        for (from, to) in leads {
            self.next.row_mut(StateId(from))[bytes.clone()].fill(to);
        }
        Ok(())
    }

    /// The states in which a byte may leave a row.
    fn entered_by_bytes(&self) -> Vec<bool> {
        let bytes = TokenTable::RESERVED_COLUMNS..self.columns() - self.special().columns();
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
                    // −1 is outcome 0, whose place is 1.
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
