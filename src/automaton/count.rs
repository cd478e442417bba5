//! Counting: the members of a language that pass marked states so many times.

use super::interner::Interner;
use super::raw::{RawDfa, Run};
use super::{ByteDfa, minimize, quotient};
use crate::error::Result;
use crate::limits::Meter;

/// No state of the counted automaton yet.
const NONE: u32 = u32::MAX;

impl RawDfa {
    /// The members whose path enters marked states, the start aside, at least `min` and at most `max` times.
    ///
    /// The states must be live, and every cycle must pass a marked one. Levels (as many marks as entered) are
    /// laid down from the last to the first, equal rows once: what comes of it is minimal as it is, and the
    /// work is that of the states there are.
    pub(crate) fn counted(
        &self,
        marked: &[bool],
        min: u64,
        max: Option<u64>,
        meter: &Meter,
    ) -> Result<ByteDfa> {
        if max.is_some_and(|max| max < min) {
            return RawDfa::over_bytes().minimize(meter);
        }
        let units = Units::new(self, marked);
        let levels = units.levels(max.unwrap_or(min), meter)?;
        let mut laying = Laying {
            rows: Interner::new(),
            raw: RawDfa::new(self.symbols),
            words: Vec::new(),
            runs: Vec::new(),
            marked,
        };
        let mut next = vec![0; self.state_count()];
        let mut top = levels.len();
        if max.is_none() && u64::try_from(levels.len()) == Ok(min.saturating_add(1)) {
            // From the minimum on, counts do not matter.
            top -= 1;
            next = laying.base(self, &units, levels.at(top), meter)?;
        }
        let mut here = vec![NONE; self.state_count()];
        here[0] = 0;
        for level in (0..top).rev() {
            let ends = level as u64 >= min;
            for &unit in levels.at(level) {
                for &state in units.states(unit) {
                    if here[state as usize] == NONE {
                        here[state as usize] = laying.state(self, state, ends, &here, &next);
                    }
                }
            }
            // The level before enters units only.
            for &unit in levels.at(level) {
                next[unit as usize] = here[unit as usize];
            }
            for &unit in levels.at(level) {
                units.states(unit).iter().for_each(|&state| here[state as usize] = NONE);
            }
            if level % 256 == 0 {
                laying.raw.check(meter)?;
                meter.bytes(laying.rows.bytes())?;
            }
        }
        let start = next[self.start as usize];
        laying.raw.set_start(start);
        if start == 0 {
            return laying.raw.minimize(meter);
        }
        laying.raw.check(meter)?;
        let apart: Vec<u32> = (0..laying.raw.state_count() as u32).collect();
        quotient::canonical(&laying.raw, &apart, meter)
    }
}

/// Marked states (and the start), each with the unmarked states that follow it before the next marked one.
struct Units<'a> {
    raw: &'a RawDfa,
    marked: &'a [bool],
    /// The states of each unit, such that targets come first and the unit's own state last. Empty for others.
    states: Vec<Vec<u32>>,
    /// The marked states that a unit leads to.
    targets: Vec<Vec<u32>>,
}

impl<'a> Units<'a> {
    fn new(raw: &'a RawDfa, marked: &'a [bool]) -> Self {
        let count = raw.state_count();
        let mut units =
            Self { raw, marked, states: vec![Vec::new(); count], targets: vec![Vec::new(); count] };
        let mut seen = vec![0; count];
        for state in 1..count as u32 {
            if marked[state as usize] || state == raw.start {
                units.visit(state, state, &mut seen);
            }
        }
        units
    }

    /// Depth first; what is deeper is finished first.
    fn visit(&mut self, unit: u32, state: u32, seen: &mut [u32]) {
        seen[state as usize] = unit;
        for run in self.raw.row(state) {
            let target = run.target as usize;
            if self.marked[target] {
                if !self.targets[unit as usize].contains(&run.target) {
                    self.targets[unit as usize].push(run.target);
                }
            } else if seen[target] != unit {
                self.visit(unit, run.target, seen);
            }
        }
        self.states[unit as usize].push(state);
    }

    fn states(&self, unit: u32) -> &[u32] {
        &self.states[unit as usize]
    }

    /// The units that can be met after 0, 1, … marks, up to `last`, or as far as there are any.
    fn levels(&self, last: u64, meter: &Meter) -> Result<Levels> {
        let mut levels = Levels { sets: vec![vec![self.raw.start]], count: 1 };
        if self.raw.start == 0 {
            return Ok(levels);
        }
        let mut stamp = vec![0; self.raw.state_count()];
        let mut size = 1;
        while (levels.count as u64) <= last {
            let mut set = Vec::new();
            for &unit in levels.at(levels.count - 1) {
                for &target in &self.targets[unit as usize] {
                    if stamp[target as usize] != levels.count {
                        stamp[target as usize] = levels.count;
                        set.push(target);
                    }
                }
            }
            if set.is_empty() {
                break;
            }
            set.sort_unstable();
            // Every state is live: members that long are as many states, but for the way to the end.
            meter.states(levels.count.saturating_sub(self.raw.state_count()))?;
            if levels.sets.last() == Some(&set) {
                // It stays so.
                let count = usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1);
                meter.states(count.saturating_sub(self.raw.state_count()))?;
                levels.count = count;
                break;
            }
            size += set.len() + 4;
            levels.sets.push(set);
            levels.count += 1;
            if levels.count.is_multiple_of(256) {
                meter.bytes(size * 4)?;
                meter.time()?;
            }
        }
        Ok(levels)
    }
}

/// The units of each level; those past the last set are like it.
struct Levels {
    sets: Vec<Vec<u32>>,
    count: usize,
}

impl Levels {
    fn len(&self) -> usize {
        self.count
    }

    fn at(&self, level: usize) -> &[u32] {
        &self.sets[level.min(self.sets.len() - 1)]
    }
}

/// The counted automaton under construction: every row once.
struct Laying<'a> {
    rows: Interner<u64>,
    raw: RawDfa,
    words: Vec<u64>,
    runs: Vec<Run>,
    marked: &'a [bool],
}

impl Laying<'_> {
    /// The state of a row whose runs are in `runs`; 0 where it is dead.
    fn intern(&mut self, accepting: bool) -> u32 {
        if self.runs.is_empty() && !accepting {
            return 0;
        }
        self.words.clear();
        self.words.push(accepting.into());
        let word = |run: &Run| u64::from(run.first) << 40 | u64::from(run.last) << 32 | u64::from(run.target);
        self.words.extend(self.runs.iter().map(word));
        let (number, new) = self.rows.intern(&self.words);
        if new {
            self.raw.push(accepting, self.runs.iter().map(|run| (run.first, run.last, run.target)));
        }
        number + 1
    }

    /// Lays down `state` of a level, what it leads to being laid down: unmarked states `here`, marked ones on
    /// the `next` level.
    fn state(&mut self, of: &RawDfa, state: u32, ends: bool, here: &[u32], next: &[u32]) -> u32 {
        self.runs.clear();
        for run in of.row(state) {
            let from = if self.marked[run.target as usize] { next } else { here };
            add(&mut self.runs, Run { target: from[run.target as usize], ..*run });
        }
        self.intern(ends && of.accepting[state as usize])
    }

    /// Lays down, minimal and uncounted, what can be reached from `units`. Returns the number of each state.
    fn base(&mut self, of: &RawDfa, units: &Units, entered: &[u32], meter: &Meter) -> Result<Vec<u32>> {
        let blocks = minimize::equivalent(of, meter)?;
        let mut number_of = vec![0; of.state_count()]; // by block
        let mut order = Vec::new();
        let mut reached = vec![false; of.state_count()];
        let mut stack = entered.to_vec();
        while let Some(unit) = stack.pop() {
            if std::mem::replace(&mut reached[unit as usize], true) {
                continue;
            }
            for &state in units.states(unit) {
                let number = &mut number_of[blocks[state as usize] as usize];
                if *number == 0 {
                    order.push(state);
                    *number = order.len() as u32;
                }
            }
            stack.extend_from_slice(&units.targets[unit as usize]);
        }
        let numbers: Vec<u32> = blocks.iter().map(|&block| number_of[block as usize]).collect();
        for state in order {
            self.runs.clear();
            for run in of.row(state) {
                add(&mut self.runs, Run { target: numbers[run.target as usize], ..*run });
            }
            self.intern(of.accepting[state as usize]);
        }
        Ok(numbers)
    }
}

/// Adds a run to a row, one with the last where it can be.
fn add(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        _ if run.target == 0 => {}
        Some(last) if last.target == run.target && last.last + 1 == run.first => last.last = run.last,
        _ => runs.push(run),
    }
}
