//! Counting: the words with a path that enters marked states a bounded number of times.

use super::canonical::{number, to_dense};
use super::partition::equivalent;
use super::stamps::StampSet;
use super::{ByteDfa, DfaBuilder, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// No state of the counted automaton yet.
const NONE: u32 = u32::MAX;

/// Visited states between two looks at the clock.
const AT_ONCE: usize = 1 << 16;

impl Rows {
    /// The words with a path from `start` that enters marked states, not counting the start, at
    /// least `min` and at most `max` times.
    ///
    /// Every state must be able to reach an accepting state, and every cycle must pass a marked
    /// state. A *level* is a copy of the states for one number of marked states entered so far.
    /// Levels are built from the last to the first, with equal rows merged into one state, so the
    /// result is already minimal.
    pub fn counted(
        &self,
        start: u32,
        marked: &[bool],
        min: u64,
        max: Option<u64>,
        meter: &Meter,
    ) -> Result<ByteDfa> {
        if max.is_some_and(|max| max < min) {
            return Ok(ByteDfa::empty());
        }
        let units = Units::new(self, start, marked, meter)?;
        let levels = units.levels(max.unwrap_or(min), meter)?;
        let mut counted = Counted { rows: DfaBuilder::new(), runs: Vec::new(), marked };
        let mut next = vec![0; self.state_count()];
        let mut top = levels.len();
        if max.is_none() && u64::try_from(levels.len()) == Ok(min.saturating_add(1)) {
            // Without a maximum, all counts from the minimum on are equivalent.
            top -= 1;
            next = counted.base(self, &units, levels.at(top), meter)?;
        }
        let mut here = vec![NONE; self.state_count()];
        here[0] = 0;
        let mut work = 0;
        for level in (0..top).rev() {
            let ends = level as u64 >= min;
            for &unit in levels.at(level) {
                work += units.states(unit).len();
                for &state in units.states(unit) {
                    if here[state as usize] == NONE {
                        here[state as usize] = counted.state(self, state, ends, &here, &next);
                    }
                }
            }
            // The previous level enters only the first states of units.
            for &unit in levels.at(level) {
                next[unit as usize] = here[unit as usize];
            }
            for &unit in levels.at(level) {
                units.states(unit).iter().for_each(|&state| here[state as usize] = NONE);
            }
            if work >= AT_ONCE {
                work = 0;
                counted.rows.check(meter)?;
            }
        }
        let start = next[start as usize];
        if start == 0 {
            return Ok(ByteDfa::empty());
        }
        counted.rows.check(meter)?;
        let rows = number(counted.rows.rows(), start, |state| state, meter)?;
        to_dense(&rows.into(), meter)
    }
}

/// Marked states (and the start), each with the unmarked states that follow it before the next
/// marked one.
struct Units<'a> {
    rows: &'a Rows,
    start: u32,
    marked: &'a [bool],
    /// The states of each unit, with targets first and the unit's marked state last. Empty for
    /// other states.
    states: Vec<Vec<u32>>,
    /// The marked states entered from a unit.
    targets: Vec<Vec<u32>>,
}

impl<'a> Units<'a> {
    /// # Errors
    /// A limit is exceeded: all lists together may have the square of the number of states.
    fn new(rows: &'a Rows, start: u32, marked: &'a [bool], meter: &Meter) -> Result<Self> {
        let count = rows.state_count();
        let mut units =
            Self { rows, start, marked, states: vec![Vec::new(); count], targets: vec![Vec::new(); count] };
        let mut seen = vec![0; count];
        let mut size = 0;
        for state in 1..count as u32 {
            if marked[state as usize] || state == start {
                units.visit(state, state, &mut seen);
                let (states, targets) = (&units.states[state as usize], &units.targets[state as usize]);
                size += states.capacity() + targets.capacity();
                meter.bytes(size * size_of::<u32>())?;
                meter.time()?;
            }
        }
        Ok(units)
    }

    /// Visits depth first; adds a state after its targets. `seen` has the last unit that led to
    /// each state.
    fn visit(&mut self, unit: u32, state: u32, seen: &mut [u32]) {
        for run in self.rows.row(state) {
            let target = run.target as usize;
            if std::mem::replace(&mut seen[target], unit) == unit {
                continue;
            }
            if self.marked[target] {
                self.targets[unit as usize].push(run.target);
            } else {
                self.visit(unit, run.target, seen);
            }
        }
        self.states[unit as usize].push(state);
    }

    fn states(&self, unit: u32) -> &[u32] {
        &self.states[unit as usize]
    }

    /// The units reachable after 0, 1, … marked states, up to `last`.
    fn levels(&self, last: u64, meter: &Meter) -> Result<Levels> {
        let mut levels = Levels { sets: vec![vec![self.start]], count: 1 };
        if self.start == 0 {
            return Ok(levels);
        }
        let mut entered = StampSet::new(self.rows.state_count());
        let (mut size, mut work) = (1, 0);
        while (levels.count as u64) <= last {
            let mut set = Vec::new();
            entered.clear();
            for &unit in levels.at(levels.count - 1) {
                work += self.targets[unit as usize].len();
                for &target in &self.targets[unit as usize] {
                    if entered.insert(target) {
                        set.push(target);
                    }
                }
            }
            if set.is_empty() {
                break;
            }
            set.sort_unstable();
            // Every state can reach the end, so a word of this length needs about as many states.
            meter.states(levels.count.saturating_sub(self.rows.state_count()))?;
            if levels.sets.last() == Some(&set) {
                // All further levels have the same units.
                let count = usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1);
                meter.states(count.saturating_sub(self.rows.state_count()))?;
                levels.count = count;
                break;
            }
            size += set.len() + 4;
            levels.sets.push(set);
            levels.count += 1;
            if work >= AT_ONCE {
                work = 0;
                meter.bytes(size * 4)?;
                meter.time()?;
            }
        }
        Ok(levels)
    }
}

/// The units of each level. Levels after the last stored one have the same units as it.
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

/// The counted automaton under construction, with hash-consed rows.
struct Counted<'a> {
    rows: DfaBuilder,
    runs: Vec<Run>,
    marked: &'a [bool],
}

impl Counted<'_> {
    /// The copy of `state` on a level, given the copies of its targets: unmarked states in `here`,
    /// marked states, on the following level, in `next`.
    fn state(&mut self, of: &Rows, state: u32, ends: bool, here: &[u32], next: &[u32]) -> u32 {
        self.runs.clear();
        for run in of.row(state) {
            let from = if self.marked[run.target as usize] { next } else { here };
            self.runs.push(Run { target: from[run.target as usize], ..*run });
        }
        self.rows.state(ends && of.is_accepting(state), &self.runs)
    }

    /// Copies the part reachable from `entered`, minimized and uncounted. Returns the number of
    /// each state.
    fn base(&mut self, of: &Rows, units: &Units, entered: &[u32], meter: &Meter) -> Result<Vec<u32>> {
        let blocks = equivalent(of, meter)?;
        let mut number_of = vec![0; of.state_count()]; // by block
        let mut order = Vec::new();
        let mut reached = vec![false; of.state_count()];
        entered.iter().for_each(|&unit| reached[unit as usize] = true);
        let mut stack = entered.to_vec();
        while let Some(unit) = stack.pop() {
            for &state in units.states(unit) {
                let number = &mut number_of[blocks[state as usize] as usize];
                if *number == 0 {
                    order.push(state);
                    *number = order.len() as u32;
                }
            }
            let targets = units.targets[unit as usize].iter().copied();
            stack.extend(targets.filter(|&to| !std::mem::replace(&mut reached[to as usize], true)));
        }
        let numbers: Vec<u32> = blocks.iter().map(|&block| number_of[block as usize]).collect();
        for state in order {
            self.runs.clear();
            for run in of.row(state) {
                self.runs.push(Run { target: numbers[run.target as usize], ..*run });
            }
            self.rows.state(of.is_accepting(state), &self.runs);
        }
        Ok(numbers)
    }
}
