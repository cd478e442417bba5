//! Emits the states of objects.

use super::Emitter;
use super::separators::Separator;
use crate::json_schema::plan::{Object, ObjectState, Step};
use burn_dfa_common::Result;

/// For each state of a plan, the state before the next name, and the state after a value.
struct Emitted {
    names: Vec<u32>,
    ends: Vec<u32>,
    after: Vec<u32>,
}

impl Emitter<'_, '_> {
    /// The start after the opening brace.
    pub(super) fn object(&mut self, object: &Object, exits: &[u32], level: usize) -> Result<u32> {
        let inner = level + 1;
        let count = object.states.len();
        let mut emitted = Emitted { names: vec![0; count], ends: vec![0; count], after: vec![0; count] };
        // States for other properties, and in any order all states, can lead to one another, so
        // they are reserved before they are filled.
        let is_reserved = |state: &ObjectState| object.may_end(state) && state.steps().next().is_some();
        let mut separators: Vec<Option<Separator>> = Vec::with_capacity(count);
        for state in &object.states {
            separators.push(if is_reserved(state) { Some(self.separator(inner)) } else { None });
        }
        for (at, state) in object.states.iter().enumerate() {
            if object.may_end(state) {
                emitted.ends[at] = state.end.map_or(0, |outcome| exits[outcome as usize]);
                emitted.names[at] = separators[at].as_ref().map_or(0, Separator::part);
                let more = separators[at].as_ref().map_or(0, |separator| separator.head);
                emitted.after[at] = self.after_part(inner, more, b'}', emitted.ends[at]);
            }
        }
        for (state, separator) in object.states.iter().zip(&separators) {
            if let Some(separator) = separator {
                let mut names = self.others(object, state, &emitted, inner)?;
                for (name, step) in object.takes(state) {
                    let value = self.value(step, &emitted, inner)?;
                    names = self.named(names, name, value)?;
                }
                self.fill(separator, names);
            }
        }
        // States are in the order of their names, and are emitted from the last to the first.
        for (at, state) in object.states.iter().enumerate().rev() {
            if object.may_end(state) {
                continue;
            }
            if let Some(skip) = state.skip {
                emitted.names[at] = emitted.names[skip as usize];
                emitted.ends[at] = emitted.ends[skip as usize];
            }
            for (name, step) in object.takes(state) {
                let value = self.value(step, &emitted, inner)?;
                emitted.names[at] = self.named(emitted.names[at], name, value)?;
            }
            let more = self.after_comma(inner, emitted.names[at]);
            emitted.after[at] = self.after_part(inner, more, b'}', emitted.ends[at]);
        }
        Ok(self.opened(inner, emitted.names[0], b'}', emitted.ends[0]))
    }

    /// Emits the colon and the value.
    fn value(&mut self, step: &Step, emitted: &Emitted, level: usize) -> Result<u32> {
        let exits: Vec<u32> =
            step.next.iter().map(|next| next.map_or(0, |next| emitted.after[next as usize])).collect();
        let value = self.plan(step.child, &exits, level)?;
        Ok(self.colon(value))
    }

    /// The undeclared names, with their continuations.
    fn others(
        &mut self,
        object: &Object,
        state: &ObjectState,
        emitted: &Emitted,
        level: usize,
    ) -> Result<u32> {
        let Some(others) = &state.others else { return Ok(0) };
        let mut exits = Vec::with_capacity(others.steps.len());
        for step in &others.steps {
            exits.push(match step {
                Some(step) => self.value(step, emitted, level)?,
                None => 0,
            });
        }
        let names = self.plan(others.names, &exits, level)?;
        object.names.iter().try_fold(names, |names, name| self.named(names, name, 0))
    }
}
