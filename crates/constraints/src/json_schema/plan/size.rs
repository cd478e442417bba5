//! Estimates the number of states of a plan's automaton before it is emitted.

use super::{Kind, Nesting, Planner};

/// The number of states outside of any JSON, and the number of places with any JSON.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Size {
    states: u64,
    /// Places with any JSON requested by the schema, and places in undeclared properties.
    places: [u64; 2],
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
            let place = |in_array| {
                let array = nested(self.weight(Kind::Array, in_array), 1).saturating_add(ARRAY);
                SCALARS.saturating_add(object).saturating_add(array)
            };
            let places = [place(false), place(true)];
            states.push(places);
        }
        states[levels][0]
    }
}

impl Planner<'_> {
    /// The size of a plan that has `states` states with any JSON at depth 0 in `places`.
    pub(in super::super) fn size(&self, states: u64, places: [u64; 2]) -> Size {
        let of_places = places[0].saturating_add(places[1]).saturating_mul(self.nesting.states(0));
        Size { states: states.saturating_sub(of_places), places }
    }

    /// The number of states of a plan of this size with any JSON at these depths.
    pub(in super::super) fn states(&self, size: Size, levels: [usize; 2]) -> u64 {
        let places = size.places.into_iter().zip(levels);
        places.fold(size.states, |states, (places, levels)| {
            states.saturating_add(places.saturating_mul(self.nesting.states(levels)))
        })
    }
}
