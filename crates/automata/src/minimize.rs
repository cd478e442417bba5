//! The minimal automaton of a language.

use super::canonical::{number, to_dense, trim};
use super::partition::equivalent;
use super::{ByteDfa, Rows};
use burn_dfa_common::{Result, limits::Meter};

impl Rows {
    /// The unique minimal automaton of the language from `start` on, numbered canonically.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn minimize(self, start: u32, meter: &Meter) -> Result<ByteDfa> {
        self.check(meter)?;
        let Some((rows, _)) = trim(&self, start, meter)? else { return Ok(ByteDfa::empty()) };
        drop(self);
        let blocks = equivalent(&rows, meter)?;
        to_dense(&number(&rows, 1, |state| blocks[state as usize], meter)?.into(), meter)
    }
}
