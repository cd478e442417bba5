//! Emits strings whose characters are counted.
//!
//! A string of at most n characters, each of which takes w states, would take w·n states. Instead a *block* of b characters
//! is a piece that returns as soon as it is *full*, or when the string is *closed*. A chain of n/b calls of it reads the whole
//! string: each full block returns to the next call, and the last one to a state that can only close. The first call enters
//! the block in its middle, so that nothing remains. This takes w·b + n/b states, which is least for b = √(n/w); but a
//! block has a least size, so that no token passes more than one border. The same string in a further place is called as a whole.
//!
//! The characters up to the least number are read by blocks that cannot close. Between characters the automaton of a pattern
//! may be in one of several *units*; a block has an outcome *full* for each.

use std::sync::Arc;

use super::Emitter;
use crate::automaton::{FastMap, Run};
use crate::constraint::json_schema::plan::{Counted, Counts};
use crate::constraint::json_schema::string::Uncounted;
use crate::error::Result;

/// The states of a block with a number of characters left, from none on: one for each unit.
type Block = Arc<[Vec<u32>]>;

/// The blocks of characters, by their texts' place in memory, whether they can close, and their size.
pub(super) type CharacterBlocks = FastMap<(*const Uncounted, bool, u64), Block>;

impl Emitter<'_, '_> {
    /// The start of a string whose characters are counted.
    pub(super) fn counted(&mut self, counted: &Counted, exit: u32) -> Result<u32> {
        if exit == 0 {
            return Ok(0);
        }
        let Counted { texts, counts: Counts { min, max } } = counted;
        let units = texts.units();
        // The first character is apart, so that the opening quote leads to a state that reads it.
        let first = u64::from(*min == 0);
        let mut more = match max {
            Some(max) => {
                // Nothing but the closing quote.
                let last = self.character(texts, &units, exit, &vec![0; units.len()]);
                self.characters(texts, max - min - first, exit, last)?
            }
            None => self.uncounted(texts, &units, exit),
        };
        more = self.characters(texts, min.saturating_sub(1), 0, more)?;
        let closed = if *min == 0 { exit } else { 0 };
        let opened = self.character(texts, &units, closed, &more);
        Ok(self.rows.byte(b'"', opened[0]))
    }

    /// The states, by unit, from which up to `count` characters lead to the state of `full`, and from which the string can
    /// be closed on the way if `closed` is not 0.
    fn characters(
        &mut self,
        texts: &Arc<Uncounted>,
        count: u64,
        closed: u32,
        mut full: Vec<u32>,
    ) -> Result<Vec<u32>> {
        let units = texts.units();
        let states = texts.rows().state_count() as u64;
        if self.calls.is_none() || count.saturating_mul(states) <= self.planner.preferred_copies().characters
        {
            for _ in 0..count {
                full = self.character(texts, &units, closed, &full);
                self.check()?;
            }
            return Ok(full);
        }
        // A power of two, so that strings of other bounds have the same blocks.
        let least = self.planner.preferred_copies().block;
        let size = (count * units.len() as u64 / states).isqrt().max(least).next_power_of_two();
        let block = self.block(texts, &units, closed != 0, size)?;
        for at in 0..count / size {
            full = self.call_block(&block[size as usize], closed, &full);
            if at % 1024 == 0 {
                self.check()?;
            }
        }
        Ok(match count % size {
            0 => full,
            left => self.call_block(&block[left as usize], closed, &full),
        })
    }

    /// The states, by unit, that call a block from where it is entered.
    fn call_block(&mut self, enter: &[u32], closed: u32, full: &[u32]) -> Vec<u32> {
        let returns: Vec<u32> =
            (closed != 0).then_some(closed).into_iter().chain(full.iter().copied()).collect();
        let call = |&enter: &u32| if enter == 0 { 0 } else { self.rows.call(enter, returns.clone()) };
        enter.iter().map(call).collect()
    }

    /// A block of `size` characters.
    fn block(&mut self, texts: &Arc<Uncounted>, units: &[u32], closes: bool, size: u64) -> Result<Block> {
        let key = (Arc::as_ptr(texts), closes, size);
        if let Some(block) = self.character_blocks.get(&key) {
            return Ok(Arc::clone(block));
        }
        let closed = if closes { self.rows.returning(0) } else { 0 };
        let full: Vec<u32> =
            (0..units.len()).map(|unit| self.rows.returning(usize::from(closes) + unit)).collect();
        let mut block = vec![full];
        for left in 0..size as usize {
            let states = self.character(texts, units, closed, &block[left]);
            block.push(states);
            self.check()?;
        }
        let block: Block = block.into();
        self.character_blocks.insert(key, Arc::clone(&block));
        Ok(block)
    }

    /// The states, by unit, from which one character leads to those of `next`, and the closing quote to `closed`.
    fn character(&mut self, texts: &Uncounted, units: &[u32], closed: u32, next: &[u32]) -> Vec<u32> {
        let mut known = vec![None; texts.rows().state_count()];
        units.iter().map(|&unit| self.within(texts, units, unit, closed, next, &mut known)).collect()
    }

    /// The state that `state` of the texts is, before the next character is complete.
    fn within(
        &mut self,
        texts: &Uncounted,
        units: &[u32],
        state: u32,
        closed: u32,
        next: &[u32],
        known: &mut [Option<u32>],
    ) -> u32 {
        let mut row = Vec::new();
        for &run in texts.rows().row(state) {
            let target = if let Some(unit) = units.iter().position(|&unit| unit == run.target) {
                next[unit]
            } else if texts.rows().is_accepting(run.target) {
                closed
            } else if let Some(known) = known[run.target as usize] {
                known
            } else {
                self.within(texts, units, run.target, closed, next, known)
            };
            row.push(Run { target, ..run });
        }
        let emitted = self.rows.state(false, &row);
        known[state as usize] = Some(emitted);
        emitted
    }

    /// The states, by unit, from which any number of characters can be read.
    fn uncounted(&mut self, texts: &Uncounted, units: &[u32], exit: u32) -> Vec<u32> {
        let first = self.rows.reserve(units.len());
        let reserved: Vec<u32> = (first..first + units.len() as u32).collect();
        let filled = self.character(texts, units, exit, &reserved);
        for (&to, from) in reserved.iter().zip(filled) {
            let row = self.rows.row(from).to_vec();
            self.rows.fill(to, false, &row);
        }
        reserved
    }
}
