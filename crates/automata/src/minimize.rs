//! The minimal automaton of a language.

use super::canonical::{number, to_dense};
use super::partition::equivalent;
use super::trim::trim;
use super::{ByteDfa, UnminimizedDfa};
use burn_dfa_common::{Result, limits::Meter};

impl UnminimizedDfa {
    /// The unique minimal automaton of the language, numbered canonically.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn minimize(self, meter: &Meter) -> Result<ByteDfa> {
        self.check(meter)?;
        let (rows, start) = trim(self.rows, self.start);
        if start == 0 {
            return Ok(ByteDfa::empty());
        }
        let blocks = equivalent(&rows, meter)?;
        let rows = number(&rows, start, |state| blocks[state as usize], &self.symbols, meter)?;
        to_dense(&rows, meter)
    }
}
