//! The minimal automaton of a language.

use super::canonical::{Trimmed, number, to_dense, trim};
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
        let Some(Trimmed { rows, start, .. }) = trim(self, start, meter)? else {
            return Ok(ByteDfa::empty());
        };
        let blocks = equivalent(&rows, meter)?;
        to_dense(&number(&rows, start, |state| blocks[state as usize], meter)?.into(), meter)
    }
}
