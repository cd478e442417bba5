//! How many states a plan takes once it is emitted, before that is done.

use super::{Kind, Nesting, Planner};

/// States, but for the places where anything goes, which are counted apart.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Size {
    states: u64,
    /// Where a schema asks for that, and where it is of a property that the schema does not name.
    places: [u64; 2],
}

impl Nesting {
    /// The states of a place where anything goes, `levels` deep.
    fn states(self, levels: usize) -> u64 {
        // Scalars in front of what follows; names and punctuation of an object, of an array.
        const SCALARS: u64 = 33;
        const OBJECT: u64 = 22;
        const ARRAY: u64 = 4;
        // By what is left, outside an array and within one.
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
    /// The size of a plan that took so many states where anything may go no level deep, at so many places.
    pub(in super::super) fn size(&self, states: u64, places: [u64; 2]) -> Size {
        let of_places = places[0].saturating_add(places[1]).saturating_mul(self.nesting.states(0));
        Size { states: states.saturating_sub(of_places), places }
    }

    /// The states of a plan of this size where anything goes so many levels deep.
    pub(in super::super) fn states(&self, size: Size, levels: [usize; 2]) -> u64 {
        let places = size.places.into_iter().zip(levels);
        places.fold(size.states, |states, (places, levels)| {
            states.saturating_add(places.saturating_mul(self.nesting.states(levels)))
        })
    }
}
