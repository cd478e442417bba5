//! The minimal automaton of a language.

use super::canonical::{number, spread};
use super::partition::equivalent;
use super::trim::trim;
use super::{ByteDfa, RawDfa};
use crate::error::Result;
use crate::limits::Meter;

impl RawDfa {
    /// The one minimal automaton of the language, numbered canonically.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn minimize(self, meter: &Meter) -> Result<ByteDfa> {
        self.check(meter)?;
        let (rows, start) = trim(self.rows, self.start);
        if start == 0 {
            return Ok(ByteDfa::empty());
        }
        let blocks = equivalent(&rows, meter)?;
        let rows = number(&rows, start, |state| blocks[state as usize], &self.symbols, meter)?;
        spread(&rows, meter)
    }
}
