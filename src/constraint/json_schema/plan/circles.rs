//! Plans that depend on themselves.

use super::{Plan, PlanId, Planner};
use crate::automaton::FastMap;
use crate::error::Result;

impl Planner<'_> {
    /// The plan of the whole schema, in which plans may depend on themselves, and those that do.
    pub(in super::super) fn called_root(&mut self) -> Result<(PlanId, FastMap<PlanId, ()>)> {
        self.calls = true;
        let root = self.root(0)?;
        Ok((root, self.in_circles()))
    }

    /// The plans that depend on themselves.
    fn in_circles(&self) -> FastMap<PlanId, ()> {
        let children = |id: usize| {
            let Plan { array, object, .. } = &self.plans[id];
            let mut all: Vec<u32> = Vec::new();
            let items = array.iter().flat_map(|array| &array.states).filter_map(|state| state.item.as_ref());
            all.extend(items.map(|step| step.child.0));
            for state in object.iter().flat_map(|object| &object.states) {
                all.extend(state.take.iter().map(|step| step.child.0));
                if let Some(others) = &state.others {
                    all.push(others.names.0);
                    all.extend(others.steps.iter().flatten().map(|step| step.child.0));
                }
            }
            all.sort_unstable();
            all.dedup();
            all
        };
        // Tarjan's strongly connected components, without recursion.
        let count = self.plans.len();
        let mut found = FastMap::default();
        let (mut index, mut low, mut on_stack) = (vec![0u32; count], vec![0u32; count], vec![false; count]);
        let mut stack: Vec<usize> = Vec::new();
        let mut next = 1;
        for first in 0..count {
            if index[first] != 0 {
                continue;
            }
            let mut path: Vec<(usize, Vec<u32>, usize)> = vec![(first, children(first), 0)];
            (index[first], low[first], on_stack[first]) = (next, next, true);
            stack.push(first);
            next += 1;
            while let Some((at, below, done)) = path.last_mut() {
                let at = *at;
                if let Some(&to) = below.get(*done) {
                    *done += 1;
                    let to = to as usize;
                    if to == at {
                        found.insert(PlanId(at as u32), ());
                    }
                    if index[to] == 0 {
                        (index[to], low[to], on_stack[to]) = (next, next, true);
                        stack.push(to);
                        next += 1;
                        path.push((to, children(to), 0));
                    } else if on_stack[to] {
                        low[at] = low[at].min(index[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some((above, ..)) = path.last() {
                    low[*above] = low[*above].min(low[at]);
                }
                if low[at] == index[at] {
                    let from = stack.iter().rposition(|&state| state == at).unwrap_or(0);
                    let component = stack.split_off(from);
                    for &state in &component {
                        on_stack[state] = false;
                        if component.len() > 1 {
                            found.insert(PlanId(state as u32), ());
                        }
                    }
                }
            }
        }
        found
    }
}
