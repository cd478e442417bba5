//! Automata whose states are values of any type, built from the start on.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::{FastMap, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// The values found so far, numbered from 1 on in order of discovery.
pub struct Discovered<V> {
    numbers: FastMap<V, u32>,
    values: Vec<V>,
}

impl<V: Copy + Eq + Hash> Discovered<V> {
    /// The state of a value.
    pub fn state(&mut self, value: V) -> u32 {
        match self.numbers.entry(value) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.values.push(value);
                *entry.insert(self.values.len() as u32)
            }
        }
    }
}

impl Rows {
    /// The states reachable from the state of the value `start`, which is state 1. `row` appends
    /// the runs of the state of a value, and returns whether the state accepts.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn explore<V: Copy + Eq + Hash>(
        start: V,
        meter: &Meter,
        mut row: impl FnMut(V, &mut Discovered<V>, &mut Vec<Run>) -> bool,
    ) -> Result<Self> {
        let mut found = Discovered { numbers: FastMap::default(), values: Vec::new() };
        found.state(start);
        let mut rows = Self::new();
        let mut runs = Vec::new();
        let mut at = 0;
        while let Some(&value) = found.values.get(at) {
            runs.clear();
            let accepting = row(value, &mut found, &mut runs);
            rows.push(accepting, runs.iter().copied());
            at += 1;
            meter.states(found.values.len() + 1)?;
            if at % 1024 == 0 {
                rows.check(meter)?;
            }
        }
        Ok(rows)
    }
}
