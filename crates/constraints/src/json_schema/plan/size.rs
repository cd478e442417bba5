//! Estimates the number of states of a plan's automaton before it is emitted.

use super::{Kind, Nesting, Planner};

/// The number of states outside of any JSON, and the number of values that may be any JSON.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Size {
    states: u64,
    /// Values that the schema allows to be any JSON, and values of undeclared properties.
    any_values: [u64; 2],
}

impl Nesting {
    /// The number of states of any JSON with this many levels.
    fn states(self, levels: usize) -> u64 {
        // The states of the scalars, of the names and punctuation of an object, and of the
        // punctuation of an array.
        const SCALARS: u64 = 33;
        const OBJECT: u64 = 22;
        const ARRAY: u64 = 4;
        // For each number of remaining levels: the states outside an array, and directly within
        // one.
        let mut states: Vec<[u64; 2]> = Vec::with_capacity(levels + 1);
        for left in 0..=levels {
            let nested = |weight: usize, in_array: usize| -> u64 {
                left.checked_sub(weight).map_or(0, |left| states[left][in_array])
            };
            let object = nested(self.weight(Kind::Object, false), 0).saturating_add(OBJECT);
            let states_of = |in_array| {
                let array = nested(self.weight(Kind::Array, in_array), 1).saturating_add(ARRAY);
                SCALARS.saturating_add(object).saturating_add(array)
            };
            let both = [states_of(false), states_of(true)];
            states.push(both);
        }
        states[levels][0]
    }
}

impl Planner<'_> {
    /// The size of a plan that has `states` states with any JSON at depth 0 in `any_values`.
    pub(in super::super) fn size(&self, states: u64, any_values: [u64; 2]) -> Size {
        let of_any = any_values[0].saturating_add(any_values[1]).saturating_mul(self.nesting.states(0));
        Size { states: states.saturating_sub(of_any), any_values }
    }

    /// The number of states of a plan of this size with any JSON at these depths.
    pub(in super::super) fn states(&self, size: Size, levels: [usize; 2]) -> u64 {
        let any_values = size.any_values.into_iter().zip(levels);
        any_values.fold(size.states, |states, (values, levels)| {
            states.saturating_add(values.saturating_mul(self.nesting.states(levels)))
        })
    }
}
