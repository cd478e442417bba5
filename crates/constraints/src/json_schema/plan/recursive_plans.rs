//! Recursive plans: they are called, so a value may nest as deep as the stack.

use super::{ObjectState, Plan, PlanId, Planner, Step};
use burn_dfa_automata::{FastMap, components};
use burn_dfa_common::Result;

/// The most outcomes of a called procedure. A row's position on the device has an entry for each
/// outcome.
pub(in super::super) const MAX_OUTCOMES: usize = 8;

/// The most outcomes of a plan of arrays or objects in schemas with recursive plans. Outcomes can
/// be exponentially many: to know whether the n-th node from the end of a list has a tag, each node
/// has the tags of the n nodes after it.
const MAX_PLANNED: usize = 64;

/// The numbers of states up to which copies are preferred to calls.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Preferred {
    /// Of a non-recursive schema, fully copied.
    pub(in super::super) schema: usize,
    /// Of one copy of an array or an object with several uses.
    pub(in super::super) sub_plan: usize,
    /// Of all items of an array with counted items.
    pub(in super::super) items: u64,
    /// Of all characters of a string with counted characters.
    pub(in super::super) characters: u64,
    /// The same, if the pattern has more states between characters than a procedure may have
    /// outcomes.
    pub(in super::super) patterned: u64,
    /// The least number of characters (not states) of a block: twice the characters of the longest
    /// plain token, so a token crosses at most one border between blocks. Blocks owned by a single
    /// state between characters are shorter.
    pub(in super::super) block: u64,
}

impl Default for Preferred {
    fn default() -> Self {
        Self { schema: 20_000, sub_plan: 48, items: 256, characters: 1_024, patterned: 20_000, block: 32 }
    }
}

/// The plan of a schema with possibly recursive plans.
pub(in super::super) struct RecursivePlans {
    pub(in super::super) root: PlanId,
    /// The recursive plans.
    pub(in super::super) recursive: FastMap<PlanId, ()>,
}

impl Planner<'_> {
    /// The plan of the whole schema, with recursive plans allowed; `None` if a procedure would have
    /// too many outcomes, or the plans have too many states.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(in super::super) fn recursive_root(&mut self, copies: Preferred) -> Result<Option<RecursivePlans>> {
        self.calls = Some(copies);
        self.max_states = self.meter.limits().states;
        let root = self.root(0);
        let has_many_states = self.states > self.max_states;
        self.max_states = usize::MAX;
        let root = match root {
            Err(_) if self.has_many_outcomes || has_many_states => return Ok(None),
            root => root?,
        };
        let order = self.components(root);
        let mut recursive = FastMap::default();
        for component in &order {
            let depends = |id: u32| self.children(id as usize).any(|step| step == id);
            if component.len() > 1 || depends(component[0]) {
                recursive.extend(component.iter().map(|&id| (PlanId(id), ())));
            }
        }
        let few = order.iter().flatten().all(|&id| self.returns_of(id as usize, &recursive) <= MAX_OUTCOMES);
        Ok(few.then_some(RecursivePlans { root, recursive }))
    }

    /// Whether a plan has more outcomes than are followed.
    pub(super) fn exceeds_outcomes(&self, id: PlanId) -> bool {
        self.calls.is_some() && self.plans[id.0 as usize].outcomes.len() > MAX_PLANNED
    }

    /// The steps over the values of arrays and objects of a plan.
    fn steps(&self, id: usize) -> impl Iterator<Item = &Step> {
        let Plan { array, object, .. } = &self.plans[id];
        let items = array.iter().flat_map(|array| &array.states).filter_map(|state| state.item.as_ref());
        let states = object.iter().flat_map(|object| &object.states);
        items.chain(states.flat_map(ObjectState::steps))
    }

    /// The plans that a plan depends on, except plans of names, which are strings.
    fn children(&self, id: usize) -> impl Iterator<Item = u32> {
        self.steps(id).map(|step| step.child.0)
    }

    /// The greatest number of states after an array or an object of a plan of `recursive`, at one
    /// use in a plan.
    fn returns_of(&self, id: usize, recursive: &FastMap<PlanId, ()>) -> usize {
        let called = self.steps(id).filter(|step| recursive.contains_key(&step.child));
        let counts = called.flat_map(|step| {
            self.outcomes_of(step.child).map(|outcomes| {
                let mut next: Vec<u32> =
                    outcomes.into_iter().filter_map(|outcome| step.next[outcome as usize]).collect();
                next.sort_unstable();
                next.dedup();
                next.len()
            })
        });
        counts.max().unwrap_or(0)
    }

    /// The outcomes in which the array of a plan ends, and the outcomes in which its object ends.
    fn outcomes_of(&self, id: PlanId) -> [Vec<u32>; 2] {
        let Plan { array, object, .. } = self.get(id);
        let distinct = |outcomes: &mut dyn Iterator<Item = u32>| {
            let mut outcomes: Vec<u32> = outcomes.collect();
            outcomes.sort_unstable();
            outcomes.dedup();
            outcomes
        };
        [
            distinct(&mut array.iter().flat_map(|array| &array.states).filter_map(|state| state.end)),
            distinct(&mut object.iter().flat_map(|object| &object.states).filter_map(|state| state.end)),
        ]
    }

    /// The strongly connected components of the plans that `root` depends on.
    fn components(&self, root: PlanId) -> Vec<Vec<u32>> {
        components(self.plans.len(), [root.0], |id| {
            let mut children: Vec<u32> = self.children(id as usize).collect();
            children.sort_unstable();
            children.dedup();
            children
        })
    }
}
