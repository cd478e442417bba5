//! The texts of strings before their characters are counted.

use std::rc::Rc;
use std::sync::OnceLock;

use burn_dfa_automata::{ByteDfa, Interner, Rows};
use burn_dfa_common::{Result, limits::Meter};

/// The JSON texts of strings, as an automaton with marked character ends. The states between two
/// characters, or between a quote and a character, are its *units*.
#[derive(Debug)]
pub(in super::super) struct Uncounted {
    rows: Rows,
    /// 0 if there are no strings.
    start: u32,
    pub(super) between: Vec<bool>,
    /// The units, starting with the unit after the opening quote; none if there are no strings.
    units: Vec<u32>,
    /// The index of each state in `units`.
    number_of: Vec<Option<usize>>,
    /// For each unit the units one character later, as sorted indices. Computed on first use: this
    /// takes up to the square of the number of units, and only contents with few states are counted
    /// by their units.
    after: OnceLock<Vec<Vec<u32>>>,
    /// A number for each unit, equal for units with the same texts of the next character that lead
    /// to the same indices in `after`. Computed on first use.
    shapes: OnceLock<Vec<u32>>,
}

/// Some units, by their numbers and in order.
pub(in super::super) type Units = Rc<[usize]>;

impl Uncounted {
    /// The automaton from `start` on, and whether each of its states is a unit.
    pub(super) fn new(rows: Rows, start: u32, between: Vec<bool>) -> Self {
        let first = rows.next(start, b'"');
        let others = (1..between.len() as u32).filter(|&state| between[state as usize] && state != first);
        let units: Vec<u32> =
            if first == 0 { Vec::new() } else { std::iter::once(first).chain(others).collect() };
        let mut number_of = vec![None; between.len()];
        units.iter().enumerate().for_each(|(number, &unit)| number_of[unit as usize] = Some(number));
        let (after, shapes) = (OnceLock::new(), OnceLock::new());
        Self { rows, start, between, units, number_of, after, shapes }
    }

    fn after(&self) -> &[Vec<u32>] {
        self.after.get_or_init(|| {
            // The last unit that led to each state.
            let mut met = vec![0; self.between.len()];
            self.units.iter().map(|&unit| self.one_later(unit, &mut met)).collect()
        })
    }

    /// The states.
    pub(in super::super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(in super::super) fn units(&self) -> &[u32] {
        &self.units
    }

    pub(in super::super) fn all_units(&self) -> Units {
        (0..self.units.len()).collect()
    }

    /// The number of a state among the units, if it is one.
    pub(in super::super) fn unit(&self, state: u32) -> Option<usize> {
        self.number_of[state as usize]
    }

    /// The texts with at least `min` and at most `max` characters.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(in super::super) fn counted(&self, min: u64, max: Option<u64>, meter: &Meter) -> Result<ByteDfa> {
        // The opening quote enters a unit too.
        let (min, max) = (min.saturating_add(1), max.map(|max| max.saturating_add(1)));
        self.rows.counted(self.start, &self.between, min, max, meter)
    }

    /// The number of characters of `text`, if it is one of the texts.
    pub(in super::super) fn count(&self, text: &[u8]) -> Option<u64> {
        let (mut state, mut entered) = (self.start, 0u64);
        for &byte in text {
            state = self.rows().next(state, byte);
            entered += u64::from(self.between[state as usize]);
        }
        // The opening quote leads to a unit, too.
        self.rows().is_accepting(state).then(|| entered.saturating_sub(1))
    }

    /// A number of characters, if one is found, such that strings of every greater or equal length
    /// exist.
    pub(in super::super) fn free_from(&self) -> Option<u64> {
        let after = self.after();
        let mut met = vec![false; self.units.len()];
        let mut units: Vec<usize> = (0..self.units.len().min(1)).collect();
        let mut count = 0;
        while !units.is_empty() {
            let mut next = Vec::new();
            for &unit in &units {
                let later = &after[unit];
                let repeats = later.binary_search(&(unit as u32)).is_ok();
                if repeats && self.rows().next(self.units[unit], b'"') != 0 {
                    return Some(count);
                }
                let later = later.iter().map(|&to| to as usize);
                next.extend(later.filter(|&to| !std::mem::replace(&mut met[to], true)));
            }
            units = next;
            count += 1;
        }
        None
    }

    /// The units reachable by `count` characters from `from`.
    pub(in super::super) fn reached(&self, from: &Units, count: u64) -> Units {
        let after = self.after();
        let mut from = Rc::clone(from);
        for _ in 0..count {
            let later = from.iter().flat_map(|&unit| &after[unit]);
            let mut next: Vec<usize> = later.map(|&to| to as usize).collect();
            next.sort_unstable();
            next.dedup();
            if next[..] == from[..] {
                break;
            }
            from = next.into();
        }
        from
    }

    /// The greatest number of characters, up to `max`, that lead from each unit to at most `units`
    /// units.
    pub(in super::super) fn narrow_for(&self, units: usize, max: u64) -> u64 {
        let mut reached: Vec<Units> = (0..self.units.len()).map(|unit| [unit].into()).collect();
        for count in 0..max {
            for reached in &mut reached {
                *reached = self.reached(reached, 1);
                if reached.len() > units {
                    return count;
                }
            }
        }
        max
    }

    /// A description of the texts from a unit on, given the units after each number of characters.
    /// Equal descriptions mean the same texts, up to units at the same indices.
    pub(in super::super) fn described(&self, units: &[Units]) -> Vec<u32> {
        let (after, shapes) = (self.after(), self.shapes.get_or_init(|| self.shapes()));
        let mut described = Vec::new();
        for pair in units.windows(2) {
            for &unit in pair[0].iter() {
                described.push(shapes[unit]);
                let index =
                    |&to: &u32| pair[1].binary_search(&(to as usize)).map_or(u32::MAX, |index| index as u32);
                described.extend(after[unit].iter().map(index));
            }
            // A separator: no shape has this number.
            described.push(u32::MAX);
        }
        described
    }

    fn shapes(&self) -> Vec<u32> {
        let mut known = Interner::new();
        let shape = |(unit, after): (&u32, &Vec<u32>)| {
            let mut states = vec![*unit];
            let mut words = Vec::new();
            let mut at = 0;
            while let Some(&state) = states.get(at) {
                for run in self.rows().row(state) {
                    let index = match self.unit(run.target) {
                        Some(unit) => after.binary_search(&(unit as u32)).unwrap_or(after.len()) as u32,
                        // After the quote, `u32::MAX`; within a character, the order of first
                        // occurrence.
                        None if self.rows().is_accepting(run.target) => u32::MAX,
                        None => {
                            let met = states.iter().position(|&state| state == run.target);
                            let met = met.unwrap_or_else(|| {
                                states.push(run.target);
                                states.len() - 1
                            });
                            (after.len() + met) as u32
                        }
                    };
                    words.extend([u32::from(run.first) << 8 | u32::from(run.last), index]);
                }
                words.push(u32::MAX);
                at += 1;
            }
            words.push(after.len() as u32);
            known.intern(&words).0
        };
        self.units.iter().zip(self.after()).map(shape).collect()
    }

    /// The units one character after `unit`, given the last unit that led to each state.
    fn one_later(&self, unit: u32, met: &mut [u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut within = vec![unit];
        while let Some(state) = within.pop() {
            for run in self.rows().row(state) {
                if std::mem::replace(&mut met[run.target as usize], unit) != unit {
                    match self.unit(run.target) {
                        Some(later) => found.push(later as u32),
                        None => within.push(run.target),
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }
}
