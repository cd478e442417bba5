//! The work queue of planning: states to be expanded, and states that wait for new outcomes.

use std::collections::VecDeque;

use super::array::{Array, ArrayCourse};
use super::frame::finished;
use super::object::{Object, ObjectCourse};
use super::{PlanId, Planner};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Limit, Result};

/// A state of a plan to be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) plan: PlanId,
    pub(super) sub_plan: SubPlan,
    pub(super) state: u32,
}

/// The sub-plan that a state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SubPlan {
    Array,
    Object,
    /// Omitted objects; see [`ObjectCourse::supposed`].
    HypotheticalObject,
}

/// An unfinished plan.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) array: Option<ArrayCourse>,
    pub(super) object: Option<ObjectCourse>,
    /// The states that depend on the outcomes of this plan.
    users: Vec<Task>,
}

/// The remaining work on unfinished plans.
#[derive(Default)]
pub(super) struct Queue {
    /// Plans below this number are finished.
    finished: usize,
    /// The planning state of each other plan.
    pub(super) drafts: Vec<Draft>,
    /// States not expanded yet.
    pub(super) fresh: Vec<Task>,
    /// States to be expanded again, each once.
    again: VecDeque<Task>,
    waiting: FastMap<Task, ()>,
    /// The state being expanded.
    task: Option<Task>,
}

impl Queue {
    /// An unfinished plan.
    pub(super) fn draft(&mut self, id: PlanId) -> &mut Draft {
        &mut self.drafts[id.0 as usize - self.finished]
    }

    /// Records that the current state depends on the outcomes of a plan, unless the plan is
    /// finished.
    pub(super) fn used(&mut self, id: PlanId) {
        if let (Some(task), Some(at)) = (self.task, (id.0 as usize).checked_sub(self.finished)) {
            self.drafts[at].users.push(task);
        }
    }
}

impl Planner<'_> {
    /// Makes the plan requested by `begin`, and all plans it depends on. After an error the plans
    /// are unchanged.
    pub(super) fn made(&mut self, begin: impl FnOnce(&mut Self) -> Result<PlanId>) -> Result<PlanId> {
        let any_plans = self.any_plans;
        let result = begin(self).and_then(|id| {
            while let Some(task) = self.queue.fresh.pop().or_else(|| self.queue.again.pop_front()) {
                self.expand(task).map_err(|error| error.at(|| self.origin(task.plan)))?;
            }
            self.finish()?;
            Ok(id)
        });
        let finished = self.queue.finished;
        self.queue = Queue::default();
        if result.is_err() {
            self.plans.truncate(finished);
            self.goals.truncate(finished);
            self.known.retain(|_, id| (id.0 as usize) < finished);
            self.any_plans = any_plans;
        }
        self.queue.finished = self.plans.len();
        result
    }

    /// Follows one more part of a value from a state, as far as the outcomes of the part are known.
    fn expand(&mut self, task: Task) -> Result<()> {
        let Task { plan: id, sub_plan, state } = task;
        self.look()?;
        self.queue.waiting.remove(&task);
        self.queue.task = Some(task);
        // Taken out during the expansion, because the state may depend on its own plan.
        if sub_plan == SubPlan::Array {
            let mut course = self.queue.draft(id).array.take().expect("an array that is being planned");
            self.expand_array(id, state, &mut course)?;
            self.queue.draft(id).array = Some(course);
        } else {
            let mut course = self.queue.draft(id).object.take().expect("an object that is being planned");
            match sub_plan {
                SubPlan::HypotheticalObject => self.expand_supposed(id, state, &mut course)?,
                _ => self.expand_object(id, state, &mut course)?,
            }
            self.queue.draft(id).object = Some(course);
        }
        if self.exceeds_outcomes(id) {
            self.has_many_outcomes = true;
            return Err(Error::limit(Limit::States(self.max_states)));
        }
        Ok(())
    }

    /// Finishes the plans after all of their outcomes are known.
    fn finish(&mut self) -> Result<()> {
        for (draft, at) in std::mem::take(&mut self.queue.drafts).into_iter().zip(self.queue.finished..) {
            if let Some(course) = draft.array {
                self.plans[at].array =
                    finished(course.states).map(|states| Array { counts: course.counts, states });
            }
            if let Some(ObjectCourse { names, states, excluded, is_narrowed, is_unordered, .. }) =
                draft.object
            {
                let mut states = finished(states);
                if is_narrowed {
                    self.narrowed_alternatives(PlanId(at as u32), states.is_none())?;
                }
                if let Some(claim) = excluded {
                    let excluded = self.exclude(claim, states.is_none());
                    excluded.map_err(|error| error.at(|| self.origin(PlanId(at as u32))))?;
                }
                for state in states.iter_mut().flatten() {
                    state.others.take_if(|others| others.steps.iter().all(Option::is_none));
                }
                self.plans[at].object = states.map(|states| Object { names, states, is_unordered });
            }
        }
        Ok(())
    }

    /// The number of an outcome of an unfinished plan. After a new outcome, the states that depend
    /// on the plan's outcomes are expanded again.
    pub(super) fn outcome(&mut self, id: PlanId, answers: &[bool]) -> u32 {
        let plan = &mut self.plans[id.0 as usize];
        let known = plan.outcomes.len();
        let outcome = plan.outcome(answers);
        if plan.outcomes.len() > known {
            for task in std::mem::take(&mut self.queue.draft(id).users) {
                if self.queue.waiting.insert(task, ()).is_none() {
                    self.queue.again.push_back(task);
                }
            }
        }
        outcome
    }
}
