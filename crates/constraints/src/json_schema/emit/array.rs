//! Emits the states of arrays.

use super::Emitter;
use crate::json_schema::plan::Array;
use burn_dfa_common::Result;

impl Emitter<'_, '_> {
    /// The start after the opening bracket.
    pub(super) fn array(&mut self, array: &Array, exits: &[u32], level: usize) -> Result<u32> {
        if let Some(counts) = array.counts {
            return self.counted_items(array, counts, exits, level);
        }
        let inner = level + 1;
        let ends: Vec<u32> =
            array.states.iter().map(|state| state.end.map_or(0, |outcome| exits[outcome as usize])).collect();
        // A state that may read one more item needs a separator before it.
        let separators: Vec<_> =
            array.states.iter().map(|state| state.item.is_some().then(|| self.separator(inner))).collect();
        let after: Vec<u32> = (0..array.states.len())
            .map(|at| {
                let more = separators[at].as_ref().map_or(0, |separator| separator.head);
                self.after_part(inner, more, b']', ends[at])
            })
            .collect();
        for (state, separator) in array.states.iter().zip(&separators) {
            if let (Some(step), Some(separator)) = (&state.item, separator) {
                let exits: Vec<u32> =
                    step.next.iter().map(|next| next.map_or(0, |next| after[next as usize])).collect();
                let item = self.plan(step.child, &exits, inner)?;
                self.fill(separator, item);
            }
        }
        let first = separators[0].as_ref().map_or(0, |separator| separator.part());
        Ok(self.opened(inner, first, b']', ends[0]))
    }
}
