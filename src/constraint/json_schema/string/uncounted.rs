//! The texts of strings before their characters are counted.

use crate::automaton::{RawDfa, Rows};

/// The JSON texts of strings, as an automaton that knows where characters end.
#[derive(Debug)]
pub(in super::super) struct Uncounted {
    pub(super) raw: RawDfa,
    /// Whether a state is between two characters, or between a quote and a character.
    pub(super) between: Vec<bool>,
}

impl Uncounted {
    /// The states.
    pub(in super::super) fn rows(&self) -> &Rows {
        self.raw.rows()
    }

    /// The states between characters, that after the opening quote first; none if there are no strings.
    pub(in super::super) fn units(&self) -> Vec<u32> {
        let first = self.rows().next(self.raw.start(), b'"');
        if first == 0 {
            return Vec::new();
        }
        let others = (1..self.between.len() as u32).filter(|&state| self.is_between(state) && state != first);
        std::iter::once(first).chain(others).collect()
    }

    pub(in super::super) fn is_between(&self, state: u32) -> bool {
        self.between[state as usize]
    }

    /// The number of characters of `text`, if it is one of the texts.
    pub(in super::super) fn count(&self, text: &[u8]) -> Option<u64> {
        let (mut state, mut entered) = (self.raw.start(), 0u64);
        for &byte in text {
            state = self.rows().next(state, byte);
            entered += u64::from(self.is_between(state));
        }
        // The opening quote leads to one of them too.
        self.rows().is_accepting(state).then(|| entered.saturating_sub(1))
    }

    /// A number of characters such that there are strings of each number from it on, if one is found.
    pub(in super::super) fn free_from(&self) -> Option<u64> {
        let mut met = vec![false; self.between.len()];
        let mut units: Vec<u32> = self.units().into_iter().take(1).collect();
        let mut count = 0;
        while !units.is_empty() {
            let mut next = Vec::new();
            for &unit in &units {
                let after = self.after(unit);
                if after.contains(&unit) && self.rows().next(unit, b'"') != 0 {
                    return Some(count);
                }
                next.extend(after.into_iter().filter(|&to| !std::mem::replace(&mut met[to as usize], true)));
            }
            units = next;
            count += 1;
        }
        None
    }

    /// The states one character after `unit`.
    fn after(&self, unit: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut within = vec![unit];
        let mut met = vec![false; self.between.len()];
        while let Some(state) = within.pop() {
            for run in self.rows().row(state) {
                if !std::mem::replace(&mut met[run.target as usize], true) {
                    if self.is_between(run.target) { &mut found } else { &mut within }.push(run.target);
                }
            }
        }
        found
    }
}
