//! Emits sub-plans as called procedures instead of copies.
//!
//! A procedure is the array or the object of a plan, from after its opening bracket through its
//! closing one, or its strings, from after their opening quote through their closing one. It is
//! emitted once for all uses whose exits group its outcomes in the same way. At each use, the
//! opening bracket leads to a call state, and the closing bracket to the RETURN state of an
//! outcome. Numbers have no last byte, and undeclared names are distinguished from declared ones
//! byte by byte: both are copied.

use super::Emitter;
use crate::json_schema::plan::{MAX_OUTCOMES, PlanId};
use crate::json_schema::types::Types;
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// The kind of a sub-plan, which is what one procedure emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CallKind {
    /// An automaton of strings, or a list of only strings.
    String,
    Array,
    Object,
}

impl CallKind {
    /// The byte before it.
    pub(super) fn opening(self) -> u8 {
        match self {
            Self::String => b'"',
            Self::Array => b'[',
            Self::Object => b'{',
        }
    }
}

/// A sub-plan with the return number of each outcome; `None` if nothing may follow.
type ProcedureKey = (PlanId, CallKind, Vec<Option<usize>>);

/// Saving one of this many states is worth a second emission of all states.
const WORTH: usize = 8;

/// The called sub-plans.
pub(super) struct Calls {
    /// If one copy of a sub-plan takes more states than this, later uses of the sub-plan are calls.
    max_states: usize,
    /// The recursive plans. Their arrays and objects are always called.
    recursive: FastMap<PlanId, ()>,
    /// Sub-plans called at every use.
    always: FastMap<(PlanId, CallKind), ()>,
    /// The number of states of a copy of a sub-plan.
    copied: FastMap<(PlanId, CallKind), usize>,
    /// The first state of each procedure.
    procedures: FastMap<ProcedureKey, u32>,
    /// Procedures not emitted yet, and their first states.
    open: Vec<(ProcedureKey, u32)>,
}

impl Calls {
    /// Calls the recursive plans `recursive`, and the sub-plans `always` at every use; also
    /// sub-plans whose copy takes more than `max_states` states, from their second use on.
    pub(super) fn new(
        recursive: FastMap<PlanId, ()>,
        max_states: usize,
        always: FastMap<(PlanId, CallKind), ()>,
    ) -> Self {
        Self {
            max_states,
            recursive,
            always,
            copied: FastMap::default(),
            procedures: FastMap::default(),
            open: Vec::new(),
        }
    }

    /// The calls for a second emission of the same plan, which took `states` states: sub-plans that
    /// were both copied and called are only called. `None` if it is not worth it.
    pub(super) fn again(mut self, states: usize) -> Option<Self> {
        let called = self.procedures.keys().map(|(id, kind, _)| (*id, *kind));
        let both: FastMap<(PlanId, CallKind), ()> =
            called.filter(|of| self.copied.contains_key(of)).map(|of| (of, ())).collect();
        let spared: usize = both.keys().map(|of| self.copied[of]).sum();
        self.always.extend(both);
        (spared * WORTH > states).then(|| Self::new(self.recursive, self.max_states, self.always))
    }

    /// Whether a sub-plan is called at a use with this many returns.
    fn is_called(&self, id: PlanId, kind: CallKind, returns: usize) -> bool {
        let is_large = || {
            let copied = self.copied.get(&(id, kind));
            self.always.contains_key(&(id, kind)) || copied.is_some_and(|&states| states > self.max_states)
        };
        let is_recursive = kind != CallKind::String && self.recursive.contains_key(&id);
        is_recursive || (returns <= MAX_OUTCOMES && is_large())
    }
}

impl Emitter<'_, '_> {
    /// The start of a sub-plan after its opening byte; 0 if the plan has no such sub-plan.
    pub(super) fn after_opening(
        &mut self,
        id: PlanId,
        kind: CallKind,
        exits: &[u32],
        level: usize,
    ) -> Result<u32> {
        let Some(ended) = self.outcomes_of(id, kind) else { return Ok(0) };
        let mut returns: Vec<u32> = Vec::new();
        let mut outcomes = vec![None; exits.len()];
        for outcome in ended {
            let exit = exits[outcome as usize];
            if exit != 0 {
                let number = returns.iter().position(|known| *known == exit);
                outcomes[outcome as usize] = Some(number.unwrap_or(returns.len()));
                if number.is_none() {
                    returns.push(exit);
                }
            }
        }
        if returns.is_empty() {
            return Ok(0);
        }
        let Some(calls) = &mut self.calls else { return self.copy(id, kind, exits, level) };
        if calls.is_called(id, kind, returns.len()) {
            let procedure = (id, kind, outcomes);
            let enter = match calls.procedures.get(&procedure) {
                Some(&enter) => enter,
                None => {
                    let enter = self.rows.reserve(1);
                    calls.procedures.insert(procedure.clone(), enter);
                    calls.open.push((procedure, enter));
                    enter
                }
            };
            return Ok(self.rows.call(enter, returns));
        }
        let before = self.rows.state_count();
        let opened = self.copy(id, kind, exits, level)?;
        let states = self.rows.state_count() - before;
        if let Some(calls) = &mut self.calls {
            let max = calls.copied.entry((id, kind)).or_default();
            *max = states.max(*max);
        }
        Ok(opened)
    }

    /// As [`after_opening`](Self::after_opening), copied.
    fn copy(&mut self, id: PlanId, kind: CallKind, exits: &[u32], level: usize) -> Result<u32> {
        let plan = self.planner.get(id);
        match kind {
            CallKind::String => {
                let start = match plan.lists_strings() {
                    true => self.values(id, Types::STRING, exits, level),
                    false => self.strings(id, exits)?,
                };
                Ok(self.rows.next(start, kind.opening()))
            }
            CallKind::Array => plan.array.as_ref().map_or(Ok(0), |array| self.array(array, exits, level)),
            CallKind::Object => {
                plan.object.as_ref().map_or(Ok(0), |object| self.object(object, exits, level))
            }
        }
    }

    /// The outcomes in which a sub-plan ends, with repetitions; `None` if the plan has no such
    /// sub-plan.
    fn outcomes_of(&self, id: PlanId, kind: CallKind) -> Option<Vec<u32>> {
        let plan = self.planner.get(id);
        Some(match kind {
            CallKind::String => match (&plan.string, &plan.counted) {
                (Some(string), _) => string.outcomes(),
                (None, Some((_, outcome))) => vec![*outcome],
                (None, None) if plan.lists_strings() => {
                    plan.values.iter().map(|(_, outcome)| *outcome).collect()
                }
                (None, None) => return None,
            },
            CallKind::Array => plan.array.as_ref()?.states.iter().filter_map(|state| state.end).collect(),
            CallKind::Object => plan.object.as_ref()?.states.iter().filter_map(|state| state.end).collect(),
        })
    }

    /// Emits the called procedures.
    pub(super) fn finish_procedures(&mut self) -> Result<()> {
        while let Some(((id, kind, outcomes), enter)) = self.calls.as_mut().and_then(|calls| calls.open.pop())
        {
            let returning = |number: Option<usize>| number.map_or(0, |number| self.rows.returning(number));
            let exits: Vec<u32> = outcomes.into_iter().map(returning).collect();
            let opened = self.copy(id, kind, &exits, 0)?;
            let row = self.rows.row(opened).to_vec();
            self.rows.fill(enter, false, &row);
        }
        Ok(())
    }
}
