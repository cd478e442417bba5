//! The parts of a plan.

use std::sync::Arc;

use super::{Array, Counted, Labeled, Object};
use crate::json_schema::json::Json;

/// A plan of a planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlanId(pub(super) u32);

impl PlanId {
    pub(crate) fn numbered(number: u32) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The answers to the probes of a goal, in their order.
pub(in super::super) type Answers = Arc<[bool]>;

/// The automaton of the values at a position, by type.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Whether it is of the names of properties.
    pub(in super::super) is_name: bool,
    /// The outcomes that occur; their indices are the numbers of outcomes.
    pub(in super::super) outcomes: Vec<Answers>,
    /// Listed values, with the numbers of their outcomes.
    pub(in super::super) values: Vec<(Json, u32)>,
    pub(in super::super) number: Option<Labeled>,
    pub(in super::super) string: Option<Labeled>,
    /// Strings with characters counted at emission, with the number of their outcome.
    pub(in super::super) counted: Option<(Counted, u32)>,
    pub(crate) array: Option<Array>,
    pub(crate) object: Option<Object>,
}

impl Plan {
    /// The number of the outcome `answers`.
    pub(super) fn outcome(&mut self, answers: &[bool]) -> u32 {
        let known = self.outcomes.iter().position(|known| **known == *answers);
        known.unwrap_or_else(|| {
            self.outcomes.push(answers.into());
            self.outcomes.len() - 1
        }) as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Whether only strings are listed. Then the plan has no other strings.
    pub(in super::super) fn lists_strings(&self) -> bool {
        !self.values.is_empty() && self.values.iter().all(|(value, _)| matches!(value, Json::String(_)))
    }
}

/// A transition over a part of a value.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) child: PlanId,
    /// The next state for each outcome of the part; `None` if nothing can follow.
    pub(crate) next: Vec<Option<u32>>,
}
