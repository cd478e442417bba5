//! How many states a plan takes once it is laid down, before that is done.

use super::{Kind, Nesting, Plan, PlanId, Planner, Step};
use crate::automaton::FastMap;

/// States, but for the places where anything goes, which are counted apart.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Size {
    states: u64,
    asked: u64,
    unnamed: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.states = self.states.saturating_add(other.states);
        self.asked = self.asked.saturating_add(other.asked);
        self.unnamed = self.unnamed.saturating_add(other.unnamed);
    }
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
    /// The size of a plan: an upper bound, roughly, since what stands in front of the same states is shared.
    pub(in super::super) fn size(&self, id: PlanId) -> Size {
        self.sized(id, &mut FastMap::default())
    }

    /// The states of a plan of this size where anything goes so many levels deep, where a schema asks for that and in
    /// properties that it does not name.
    pub(in super::super) fn states(&self, size: Size, asked: usize, unnamed: usize) -> u64 {
        let places = [(size.asked, asked), (size.unnamed, unnamed)];
        places.into_iter().fold(size.states, |states, (places, levels)| {
            states.saturating_add(places.saturating_mul(self.nesting.states(levels)))
        })
    }

    fn sized(&self, id: PlanId, done: &mut FastMap<u32, Size>) -> Size {
        if self.asked == Some(id) {
            return Size { asked: 1, ..Size::default() };
        }
        if self.unnamed == Some(id) {
            return Size { unnamed: 1, ..Size::default() };
        }
        if let Some(&known) = done.get(&id.0) {
            return known;
        }
        let Plan { values, number, string, array, object, .. } = self.get(id);
        let mut size = Size::default();
        let texts: usize = values.iter().map(|(value, _)| value.len()).sum();
        let scalars: usize = number.iter().chain(string).map(|scalar| scalar.rows.len()).sum();
        size.states = (texts + scalars) as u64;
        let mut steps: Vec<(&Step, u64)> = Vec::new();
        for state in array.iter().flat_map(|array| &array.states) {
            size.states += 2;
            steps.extend(state.item.as_ref().map(|step| (step, 0)));
        }
        if let Some(object) = object {
            for state in &object.states {
                size.states += 2;
                let name = object.names.get(state.at).map_or(0, |name| name.len() + 3);
                steps.extend(state.take.as_ref().map(|step| (step, name as u64)));
                if let Some(others) = &state.others {
                    size.add(self.sized(others.names, done));
                    steps.extend(others.steps.iter().flatten().map(|step| (step, 1)));
                }
            }
        }
        for (step, more) in steps {
            size.states = size.states.saturating_add(more);
            size.add(self.sized(step.child, done));
        }
        done.insert(id.0, size);
        size
    }
}
