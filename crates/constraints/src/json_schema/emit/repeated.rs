//! Estimates which sub-plans have several uses and take many states.

use std::collections::BTreeSet;

use super::calls::CallKind;
use crate::json_schema::json::Json;
use crate::json_schema::plan::{Object, ObjectState, Plan, PlanId, Planner, Step};
use burn_dfa_automata::FastMap;

/// The states around a value: of quotes, colons, commas and spaces.
const AROUND: usize = 6;

/// A use of a plan: the containing plan, and the states after the value.
type PlanUse<'a> = (PlanId, &'a [Option<u32>]);

/// The sub-plans of `root` and of plans below it that have several uses, and whose copy takes more
/// than `max_states` states by estimate. A called sub-plan, such as one of a plan of `recursive`,
/// counts as one state.
pub(super) fn repeated(
    planner: &Planner,
    root: PlanId,
    recursive: &FastMap<PlanId, ()>,
    max_states: usize,
) -> FastMap<(PlanId, CallKind), ()> {
    let order = children_first(planner, root);
    let mut uses: FastMap<PlanId, BTreeSet<PlanUse>> = FastMap::default();
    for &id in &order {
        for step in steps(planner.get(id)) {
            uses.entry(step.child).or_default().insert((id, &step.next));
        }
    }
    let mut repeated = FastMap::default();
    // The states of a copy, or of a call, of each plan.
    let mut states: FastMap<PlanId, usize> = FastMap::default();
    for &id in &order {
        let plan = planner.get(id);
        let in_several = uses.get(&id).is_some_and(|uses| uses.len() > 1);
        let mut all = plan.number.as_ref().map_or(0, |number| number.state_count());
        for (kind, own) in sub_plans(plan, &states) {
            let is_called = in_several && own > max_states && !plan.is_name;
            if is_called {
                repeated.insert((id, kind), ());
            }
            let is_recursive = kind != CallKind::String && recursive.contains_key(&id);
            all += if is_called || is_recursive { 1 } else { own };
        }
        states.insert(id, all);
    }
    repeated
}

/// The estimated states of counted characters alone, if all sub-plans of the non-recursive plan
/// `root` are copied.
pub(in super::super) fn copied_characters(planner: &Planner, root: PlanId) -> u64 {
    let mut states: FastMap<PlanId, u64> = FastMap::default();
    for id in children_first(planner, root) {
        let plan = planner.get(id);
        let own = plan.counted.as_ref().map_or(0, |(counted, _)| counted.copied_states());
        let children = steps(plan).map(|step| states.get(&step.child).copied().unwrap_or(0));
        states.insert(id, children.fold(own, u64::saturating_add));
    }
    states.get(&root).copied().unwrap_or(0)
}

/// The plans of `recursive` below `root`, with `root`.
pub(in super::super) fn reached(
    planner: &Planner,
    root: PlanId,
    recursive: &FastMap<PlanId, ()>,
) -> FastMap<PlanId, ()> {
    if recursive.is_empty() {
        return FastMap::default();
    }
    let below = children_first(planner, root).into_iter();
    below.filter(|id| recursive.contains_key(id)).map(|id| (id, ())).collect()
}

/// The plan `root` and the plans below it, each after its dependencies, except in recursion.
fn children_first(planner: &Planner, root: PlanId) -> Vec<PlanId> {
    let mut order = Vec::new();
    let mut met: FastMap<PlanId, ()> = FastMap::default();
    met.insert(root, ());
    let mut open = vec![(root, steps(planner.get(root)).collect::<Vec<_>>())];
    while let Some((id, left)) = open.last_mut() {
        match left.pop() {
            Some(step) if met.insert(step.child, ()).is_none() => {
                open.push((step.child, steps(planner.get(step.child)).collect()));
            }
            Some(_) => {}
            None => {
                order.push(*id);
                open.pop();
            }
        }
    }
    order
}

/// The steps over the values of arrays and objects.
fn steps(plan: &Plan) -> impl Iterator<Item = &Step> {
    let items = plan.array.iter().flat_map(|array| &array.states).filter_map(|state| state.item.as_ref());
    let states = plan.object.iter().flat_map(|object| &object.states);
    items.chain(states.flat_map(ObjectState::steps))
}

/// The sub-plans of a plan that may be called, and the states of a copy.
fn sub_plans(plan: &Plan, states: &FastMap<PlanId, usize>) -> impl Iterator<Item = (CallKind, usize)> {
    let of = |step: &Step| AROUND + states.get(&step.child).copied().unwrap_or(1);
    let texts =
        plan.values.iter().map(|(value, _)| if let Json::String(text) = value { text.len() } else { 1 });
    let string = match &plan.string {
        Some(string) => string.state_count(),
        // Counted characters are called by themselves.
        None if plan.counted.is_some() => 0,
        None => texts.sum(),
    };
    let array = plan
        .array
        .as_ref()
        .map(|array| array.states.iter().filter_map(|state| state.item.as_ref()).map(of).sum::<usize>());
    let object = plan.object.as_ref().map(|object: &Object| {
        let own = object.states.iter().map(|state| {
            let takes = object.takes(state).map(|(name, step)| name.len() + of(step));
            let others = state.others.iter().flat_map(|others| others.steps.iter().flatten()).map(of);
            takes.sum::<usize>() + others.sum::<usize>()
        });
        own.sum::<usize>()
    });
    let string = (string > 0).then_some((CallKind::String, string));
    let array = array.map(|states| (CallKind::Array, states));
    let object = object.map(|states| (CallKind::Object, states));
    string.into_iter().chain(array).chain(object)
}
