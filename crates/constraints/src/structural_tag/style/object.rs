//! Objects and arrays as elements.
//!
//! The states of a plan are emitted from the last to the first, each before the states that follow
//! it. White space may come before each element, and before the end of an object.

use super::network::{DEAD, Emitter};
use crate::json_schema::{Array, Object, ObjectState, Others, PlanId, Step};
use burn_dfa_common::Result;

/// For each state of an object: the node before the next element, after the text that opens it, and
/// at the end.
struct Emitted {
    before: Vec<u32>,
    names: Vec<u32>,
    ends: Vec<u32>,
}

impl Emitter<'_, '_> {
    /// The elements of an object before the exits of its outcomes.
    pub(super) fn object(&mut self, id: PlanId, object: &Object, exits: &[u32]) -> Result<u32> {
        let count = object.states.len();
        let mut before = Vec::with_capacity(count);
        for _ in 0..count {
            before.push(self.network.reserve()?);
        }
        let mut emitted = Emitted { before, names: vec![DEAD; count], ends: vec![DEAD; count] };
        for (at, state) in object.states.iter().enumerate().rev() {
            emitted.names[at] = self.names_of(id, object, state, &emitted)?;
            emitted.ends[at] = match (state.end, state.skip) {
                (Some(outcome), _) => exits[outcome as usize],
                (None, Some(skip)) => emitted.ends[skip as usize],
                (None, None) => DEAD,
            };
            let open = self.word(self.markup.open, emitted.names[at])?;
            self.fill_spaced(emitted.before[at], &[open, emitted.ends[at]])?;
        }
        Ok(emitted.before[0])
    }

    /// The names that may follow a state, with their values.
    fn names_of(
        &mut self,
        id: PlanId,
        object: &Object,
        state: &ObjectState,
        emitted: &Emitted,
    ) -> Result<u32> {
        let mut names = Vec::new();
        for (name, step) in object.takes(state) {
            let value = self.step(step, &emitted.before)?;
            let name = self.markup.name(name);
            names.push(self.bytes(&name, value)?);
        }
        names.extend(state.skip.map(|skip| emitted.names[skip as usize]));
        if let Some(others) = &state.others {
            self.others(id, others, emitted, &mut names)?;
        }
        self.union(names)
    }

    /// Adds undeclared names, with their values.
    fn others(&mut self, id: PlanId, others: &Others, emitted: &Emitted, names: &mut Vec<u32>) -> Result<()> {
        // The outcomes of names before the same values.
        let mut values: Vec<(u32, Vec<u32>)> = Vec::new();
        for (outcome, step) in (0..).zip(&others.steps) {
            let Some(step) = step else { continue };
            let value = self.step(step, &emitted.before)?;
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, outcomes)) => outcomes.push(outcome),
                None => values.push((value, vec![outcome])),
            }
        }
        for (value, outcomes) in values {
            if value != DEAD
                && let Some(written) = self.other_names(id, others.names, &outcomes)?
            {
                names.push(self.network.copy(&written.0, written.1, value)?);
            }
        }
        Ok(())
    }

    /// The value of a property, after its name.
    fn step(&mut self, step: &Step, before: &[u32]) -> Result<u32> {
        let exits: Vec<u32> =
            step.next.iter().map(|next| next.map_or(DEAD, |next| before[next as usize])).collect();
        self.value(step.child, &exits)
    }

    /// The elements of an array before the exits of its outcomes.
    pub(super) fn list(&mut self, array: &Array, exits: &[u32]) -> Result<u32> {
        if let Some(counts) = array.counts {
            let end = array.states.iter().find_map(|state| state.end);
            let end = end.map_or(DEAD, |outcome| exits[outcome as usize]);
            let item = array.states.iter().find_map(|state| state.item.as_ref());
            let Some(item) = item else { return Ok(if counts.min == 0 { end } else { DEAD }) };
            return self.counted(item.child, counts.min, counts.max, end);
        }
        let mut before = Vec::with_capacity(array.states.len());
        for _ in &array.states {
            before.push(self.network.reserve()?);
        }
        for (at, state) in array.states.iter().enumerate().rev() {
            let end = state.end.map_or(DEAD, |outcome| exits[outcome as usize]);
            let item = match &state.item {
                Some(step) => {
                    let next = |next: &Option<u32>| next.map_or(DEAD, |next| before[next as usize]);
                    self.element(step.child, &step.next.iter().map(next).collect::<Vec<_>>())?
                }
                None => DEAD,
            };
            self.network.fill(before[at], &[item, end])?;
        }
        Ok(before[0])
    }

    /// Elements of one plan, at least `min` and at most `max`, before `end`.
    fn counted(&mut self, item: PlanId, min: u64, max: Option<u64>, end: u32) -> Result<u32> {
        let outcomes = self.planned.outcome_count(item);
        let mut next = end;
        match max {
            Some(max) => {
                for _ in min..max {
                    let one = self.element(item, &vec![next; outcomes])?;
                    next = self.union(vec![one, end])?;
                    self.meter.time()?;
                }
            }
            None => {
                next = self.network.reserve()?;
                let one = self.element(item, &vec![next; outcomes])?;
                self.network.fill(next, &[one, end])?;
            }
        }
        for _ in 0..min {
            next = self.element(item, &vec![next; outcomes])?;
            self.meter.time()?;
        }
        Ok(next)
    }
}
