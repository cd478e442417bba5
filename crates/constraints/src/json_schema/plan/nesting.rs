//! The nesting depth of arrays and objects in any JSON.

use super::{Goal, Kind, PlanId, Planner};
use crate::json_schema::formula::Formula;
use crate::json_schema::options::JsonOptions;
use burn_dfa_common::Result;

/// The depth of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Depth {
    /// The remaining number of recursive references.
    pub(super) recursion: usize,
    pub(super) any: Any,
}

/// The nesting of a position within any JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Any {
    /// The schema itself requests any JSON; its depth is chosen last.
    Asked,
    /// The same for an undeclared property of an object with declared properties.
    Unnamed,
    /// The remaining levels of nested arrays and objects, and whether the position is directly
    /// within an array.
    Left(usize, bool),
}

/// The levels of arrays and objects in any JSON: one each, except arrays directly within arrays,
/// which are rare and would double the states of each level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nesting {
    /// Levels of an array right within an array.
    arrays: usize,
}

impl Nesting {
    pub(super) fn of(options: &JsonOptions) -> Self {
        // A depth set by the options counts both alike.
        if options.any_depth.is_some() {
            return Self { arrays: 1 };
        }
        Self { arrays: 2 }
    }

    pub(super) fn weight(self, kind: Kind, in_array: bool) -> usize {
        match kind {
            Kind::Array if in_array => self.arrays,
            _ => 1,
        }
    }
}

impl Planner<'_> {
    /// Sets the depth of any JSON requested by the schema, and of any JSON in undeclared
    /// properties.
    pub(in super::super) fn set_any(&mut self, levels: [usize; 2]) -> Result<()> {
        for (plan, levels) in self.any_plans.into_iter().zip(levels) {
            let Some(plan) = plan else { continue };
            let depth = Depth { recursion: 0, any: Any::Left(levels, false) };
            let goal = Goal::new(Formula::TRUE, [], depth);
            let id = self.made(|planner| planner.begin(&goal, true))?;
            self.plans[plan.0 as usize] = std::mem::take(&mut self.plans[id.0 as usize]);
        }
        Ok(())
    }

    /// The plans of the two kinds of [`set_any`](Self::set_any); `None` for a kind absent from the
    /// schema.
    pub(in super::super) fn any_plans(&self) -> [Option<PlanId>; 2] {
        self.any_plans
    }
}
