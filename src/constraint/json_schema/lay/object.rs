//! Objects as states.

use super::Layer;
use super::gaps::Gap;
use crate::constraint::json_schema::plan::{Object, ObjectState, Step};
use crate::error::Result;

/// By state of a plan: where its names begin, and where one goes on after a value.
struct Laid {
    names: Vec<u32>,
    ends: Vec<u32>,
    after: Vec<u32>,
}

impl Layer<'_, '_> {
    pub(super) fn object(&mut self, object: &Object, exits: &[u32], level: usize) -> Result<u32> {
        let inner = level + 1;
        let count = object.states.len();
        let mut laid = Laid { names: vec![0; count], ends: vec![0; count], after: vec![0; count] };
        // Places of other properties lead to one another, so they are taken before they are filled.
        let gaps: Vec<Option<Gap>> =
            object.states.iter().map(|state| state.others.as_ref().map(|_| self.gap(inner))).collect();
        for (at, state) in object.states.iter().enumerate() {
            if state.at == object.names.len() {
                laid.ends[at] = state.end.map_or(0, |outcome| exits[outcome as usize]);
                laid.names[at] = gaps[at].as_ref().map_or(0, Gap::part);
                let more = gaps[at].as_ref().map_or(0, |gap| gap.head);
                laid.after[at] = self.after_part(inner, more, b'}', laid.ends[at]);
            }
        }
        for (state, gap) in object.states.iter().zip(&gaps) {
            if let Some(gap) = gap {
                let names = self.others(object, state, &laid, inner)?;
                self.fill(gap, names);
            }
        }
        // States are in the order of their names: from the last to the first.
        for (at, state) in object.states.iter().enumerate().rev() {
            if state.at == object.names.len() {
                continue;
            }
            if let Some(skip) = state.skip {
                laid.names[at] = laid.names[skip as usize];
                laid.ends[at] = laid.ends[skip as usize];
            }
            if let Some(step) = &state.take {
                let value = self.value(step, &laid, inner)?;
                laid.names[at] = self.named(laid.names[at], &object.names[state.at], value);
            }
            let more = self.after_comma(inner, laid.names[at]);
            laid.after[at] = self.after_part(inner, more, b'}', laid.ends[at]);
        }
        let opened = self.opened(inner, laid.names[0], b'}', laid.ends[0]);
        Ok(self.rows.byte(b'{', opened))
    }

    /// From the colon on.
    fn value(&mut self, step: &Step, laid: &Laid, level: usize) -> Result<u32> {
        let exits: Vec<u32> =
            step.next.iter().map(|next| next.map_or(0, |next| laid.after[next as usize])).collect();
        let value = self.plan(step.child, &exits, level)?;
        Ok(self.colon(value))
    }

    /// The names that are not declared, with what follows them.
    fn others(&mut self, object: &Object, state: &ObjectState, laid: &Laid, level: usize) -> Result<u32> {
        let Some(others) = &state.others else { return Ok(0) };
        let mut exits = Vec::with_capacity(others.steps.len());
        for step in &others.steps {
            exits.push(match step {
                Some(step) => self.value(step, laid, level)?,
                None => 0,
            });
        }
        let names = self.plan(others.names, &exits, level)?;
        Ok(object.names.iter().fold(names, |names, name| self.named(names, name, 0)))
    }
}
