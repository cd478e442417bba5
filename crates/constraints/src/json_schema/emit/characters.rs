//! Emits strings with counted characters.
//!
//! Copies of a string of at most n characters, with w states per character, would take w·n states.
//! Instead, a *block* of b characters is a procedure that returns when it is *full*, or when the
//! string is *closed*. A chain of n/b calls of the block reads the whole string: each full block
//! returns to the next call, and the last one to a state that can only close. The first call enters
//! the block in the middle to read the remainder. This takes w·b + n/b states, which is least for b
//! = √(n/w); but a block has a minimum size, so no token crosses more than one border. Every other
//! use of the same string is a call of the whole string.
//!
//! Blocks that cannot close read the characters up to the minimum length. Between characters, the
//! automaton of a pattern may be in one of several *units*; a block has a *full* outcome for each
//! unit. If there are more units than a procedure may have outcomes, for example because the
//! pattern counts something itself, each unit has its own block, with outcomes for the units
//! reachable from it. A smaller block reaches fewer units. Units that the pattern treats alike have
//! the same block, because equal rows are one state.

use std::rc::Rc;
use std::sync::Arc;

use super::Emitter;
use crate::json_schema::plan::{Counted, Counts};
use crate::json_schema::string::{Uncounted, Units};
use burn_dfa_automata::{FastMap, Run};
use burn_dfa_common::Result;

/// Characters between two looks at the clock.
const AT_ONCE: u64 = 1 << 12;

/// The key of blocks with the same texts: their address, whether they can close, and their size.
type Alike = (*const Uncounted, bool, u64);

/// The blocks of characters.
#[derive(Default)]
pub(super) struct CharacterBlocks {
    /// The states with a number of characters left, from none on: one for each unit.
    of_all: FastMap<Alike, Rc<[Vec<u32>]>>,
    /// Of a unit's own blocks the first state.
    own: FastMap<(*const Uncounted, bool, u64, usize), u32>,
    /// The same by the description of the texts from the unit on.
    alike: FastMap<(*const Uncounted, bool, Vec<u32>), u32>,
}

impl Emitter<'_, '_> {
    /// The start of a string with counted characters.
    pub(super) fn counted(&mut self, counted: &Counted, exit: u32) -> Result<u32> {
        if exit == 0 {
            return Ok(0);
        }
        let Counted { texts, counts: Counts { min, max }, own_block } = counted;
        // Each block takes at least one state.
        self.check_more(own_block.map_or(0, |length| max.unwrap_or(*min) / length))?;
        let first: Units = [0].into();
        // The first character is separate, so that the opening quote leads to a state that reads
        // it.
        let begun = self.reached(counted, &first, 1)?;
        let least = min.saturating_sub(1);
        let enough = self.reached(counted, &begun, least)?;
        let mut more = match max {
            Some(max) => {
                let left = max - min - u64::from(*min == 0);
                let all = self.reached(counted, &enough, left)?;
                // Nothing but the closing quote.
                let last = self.character(texts, &all, exit, &vec![0; texts.units().len()]);
                self.characters(counted, enough, left, exit, last)?
            }
            None => self.uncounted(texts, exit),
        };
        more = self.characters(counted, begun, least, 0, more)?;
        let closed = if *min == 0 { exit } else { 0 };
        let opened = self.character(texts, &first, closed, &more);
        Ok(self.rows.byte(b'"', opened[0]))
    }

    /// Fails if this many more states exceed the limit.
    fn check_more(&self, states: u64) -> Result<()> {
        self.planner.meter().states(usize::try_from(states).unwrap_or(usize::MAX))
    }

    /// The units reachable from `from` by `count` characters; all units if they share their blocks.
    fn reached(&self, counted: &Counted, from: &Units, count: u64) -> Result<Units> {
        if counted.own_block.is_none() {
            return Ok(counted.texts.all_units());
        }
        let (mut units, mut left) = (Rc::clone(from), count);
        while left > 0 {
            let length = left.min(AT_ONCE);
            let next = counted.texts.reached(&units, length);
            left -= length;
            if next == units {
                // Then the units stay the same after as many more characters.
                left %= AT_ONCE;
            }
            units = next;
            self.planner.meter().time()?;
        }
        Ok(units)
    }

    /// The states of the units `from`, by unit. From each of them, up to `count` characters lead to
    /// the state of `full`, and the string can be closed on the way if `closed` is not 0.
    fn characters(
        &mut self,
        counted: &Counted,
        from: Units,
        count: u64,
        closed: u32,
        mut full: Vec<u32>,
    ) -> Result<Vec<u32>> {
        let texts = &counted.texts;
        let states = texts.rows().state_count() as u64;
        let copies = self.planner.preferred_copies();
        let size = if self.calls.is_none() || count.saturating_mul(states) <= copies.characters {
            1
        } else {
            // A power of two, so that strings of other bounds share the blocks.
            let least = (count * texts.units().len() as u64 / states).isqrt().max(copies.block);
            counted.own_block.unwrap_or(u64::MAX).min(least.next_power_of_two())
        };
        // Each block and each character within one is a state at least.
        self.check_more(size.max(count / size))?;
        // The units at the borders between blocks; the first block may be shorter.
        let lengths = (!count.is_multiple_of(size)).then_some(count % size).into_iter();
        let lengths = lengths.chain(std::iter::repeat_n(size, (count / size) as usize));
        let mut units = from;
        let mut borders = Vec::new();
        for length in lengths {
            let next = self.reached(counted, &units, length)?;
            borders.push((units, length));
            units = next;
        }
        for (at, (units, length)) in borders.into_iter().rev().enumerate() {
            full = match size {
                1 => self.character(texts, &units, closed, &full),
                _ => self.blocks(counted, &units, size, length, closed, &full)?,
            };
            if size == 1 || at % 1024 == 0 {
                self.check()?;
            }
        }
        Ok(full)
    }

    /// The states of `units` that call a block of `size` characters with `length` characters left.
    fn blocks(
        &mut self,
        counted: &Counted,
        units: &[usize],
        size: u64,
        length: u64,
        closed: u32,
        full: &[u32],
    ) -> Result<Vec<u32>> {
        let texts = &counted.texts;
        let closes = closed != 0;
        let mut states = vec![0; texts.units().len()];
        for &unit in units {
            let (enter, ends) = match counted.own_block {
                Some(_) => self.own_block(texts, unit, closes, length)?,
                None => {
                    let all = texts.all_units();
                    (self.block(texts, closes, size)?[length as usize][unit], all)
                }
            };
            if enter != 0 {
                let full = ends.iter().map(|&unit| full[unit]);
                let returns = closes.then_some(closed).into_iter().chain(full).collect();
                states[unit] = self.rows.call(enter, returns);
            }
        }
        Ok(states)
    }

    /// A block of `size` characters.
    fn block(&mut self, texts: &Arc<Uncounted>, closes: bool, size: u64) -> Result<Rc<[Vec<u32>]>> {
        let key = (Arc::as_ptr(texts), closes, size);
        if let Some(block) = self.character_blocks.of_all.get(&key) {
            return Ok(Rc::clone(block));
        }
        let all = vec![texts.all_units(); size as usize + 1];
        let block: Rc<[Vec<u32>]> = self.states_of_block(texts, closes, &all)?.into();
        self.character_blocks.of_all.insert(key, Rc::clone(&block));
        Ok(block)
    }

    /// The first state of a unit's own block of `size` characters, and the units at its full end.
    fn own_block(
        &mut self,
        texts: &Arc<Uncounted>,
        unit: usize,
        closes: bool,
        size: u64,
    ) -> Result<(u32, Units)> {
        let start: Units = [unit].into();
        let of = Arc::as_ptr(texts);
        if let Some(&enter) = self.character_blocks.own.get(&(of, closes, size, unit)) {
            return Ok((enter, texts.reached(&start, size)));
        }
        let mut units = vec![start];
        for read in 0..size as usize {
            units.push(texts.reached(&units[read], 1));
        }
        let ends = Rc::clone(&units[size as usize]);
        let like = (of, closes, texts.described(&units));
        let enter = match self.character_blocks.alike.get(&like) {
            Some(&enter) => enter,
            None => {
                let enter = self.states_of_block(texts, closes, &units)?[size as usize][unit];
                self.character_blocks.alike.insert(like, enter);
                enter
            }
        };
        self.character_blocks.own.insert((of, closes, size, unit), enter);
        Ok((enter, ends))
    }

    /// The states of a block with a number of characters left, from none on, given the units after
    /// each number of characters.
    fn states_of_block(&mut self, texts: &Uncounted, closes: bool, units: &[Units]) -> Result<Vec<Vec<u32>>> {
        let closed = if closes { self.rows.returning(0) } else { 0 };
        let mut full = vec![0; texts.units().len()];
        let ends = units.last().into_iter().flat_map(|ends| ends.iter());
        for (outcome, &unit) in ends.enumerate() {
            full[unit] = self.rows.returning(usize::from(closes) + outcome);
        }
        let mut states = vec![full];
        for (left, units) in units.iter().rev().skip(1).enumerate() {
            let longer = self.character(texts, units, closed, &states[left]);
            states.push(longer);
            self.check()?;
        }
        Ok(states)
    }

    /// The states of `units`, by unit. One character leads from each to the state in `next`, and
    /// the closing quote to `closed`.
    fn character(&mut self, texts: &Uncounted, units: &[usize], closed: u32, next: &[u32]) -> Vec<u32> {
        let mut known = vec![None; texts.rows().state_count()];
        let mut states = vec![0; texts.units().len()];
        for &unit in units {
            states[unit] = self.within(texts, texts.units()[unit], closed, next, &mut known);
        }
        states
    }

    /// The emitted copy of the state `state` of the texts within a character.
    fn within(
        &mut self,
        texts: &Uncounted,
        state: u32,
        closed: u32,
        next: &[u32],
        known: &mut [Option<u32>],
    ) -> u32 {
        let mut row = Vec::with_capacity(texts.rows().row(state).len());
        for &run in texts.rows().row(state) {
            let target = if let Some(unit) = texts.unit(run.target) {
                next[unit]
            } else if texts.rows().is_accepting(run.target) {
                closed
            } else if let Some(known) = known[run.target as usize] {
                known
            } else {
                self.within(texts, run.target, closed, next, known)
            };
            row.push(Run { target, ..run });
        }
        let emitted = self.rows.state(false, &row);
        known[state as usize] = Some(emitted);
        emitted
    }

    /// The states, by unit, that read any number of characters.
    fn uncounted(&mut self, texts: &Uncounted, exit: u32) -> Vec<u32> {
        let units = texts.all_units();
        let first = self.rows.reserve(units.len());
        let reserved: Vec<u32> = (first..first + units.len() as u32).collect();
        let filled = self.character(texts, &units, exit, &reserved);
        for (&to, from) in reserved.iter().zip(filled) {
            let row = self.rows.row(from).to_vec();
            self.rows.fill(to, false, &row);
        }
        reserved
    }
}
