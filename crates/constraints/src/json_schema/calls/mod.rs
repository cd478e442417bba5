//! Chooses between calls and copies.
//!
//! With a stack, a part of a schema is emitted once as a procedure and *called* at each use,
//! including from within itself, so recursion and any JSON may be nested as deep as the stack.
//! Without a stack, each use is a copy, and recursive parts are copied to a
//! [`depth`](super::depth). Calls have a cost: the effect of a token may depend on the stack. So a
//! non-recursive schema is copied if it is small. In a schema with calls, a part with several uses
//! is called if it is large.
//!
//! Everything is copied, to a depth, in these cases:
//! - [`Limits::frames`](crate::Limits::frames) is 0;
//! - the options set a depth by [`recursion`](JsonOptions::recursion) or
//!   [`any_depth`](JsonOptions::any_depth);
//! - the text of a value depends on its depth: [`Whitespace::Pretty`];
//! - the continuation of a recursive value depends on more than
//!   [`MAX_OUTCOMES`](super::plan::MAX_OUTCOMES) outcomes, or the plans have too many states.

#[cfg(test)]
mod tests;

use super::emit::Selection;
use super::plan::{PlanId, Planner, Preferred, RecursivePlans};
use super::{JsonOptions, Schema, Unrolled, Whitespace, emit};
use burn_dfa_automata::SparseAutomaton;
use burn_dfa_common::{Result, limits::Meter};

/// How a schema is followed.
pub(super) enum Followed {
    /// As deep as the stack.
    Called(RecursivePlans),
    Copied(PlanId, Unrolled),
}

impl Followed {
    /// The plan of the whole schema.
    pub(super) fn root(&self) -> PlanId {
        match self {
            Self::Called(plans) => plans.root,
            Self::Copied(root, _) => *root,
        }
    }

    /// The automaton of some values of a plan; `None` if there are none.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn texts(&self, planner: &Planner, values: Selection) -> Result<Option<SparseAutomaton>> {
        let Self::Called(RecursivePlans { recursive, .. }) = self else {
            return Ok(emit::emit(planner, values)?.map(SparseAutomaton::Finite));
        };
        let recursive = emit::reached(planner, values.plan, recursive);
        // Skips the copy if the estimate already exceeds the preferred number of states.
        let max = planner.preferred_copies().schema;
        let may_be_small =
            recursive.is_empty() && emit::copied_characters(planner, values.plan) <= max as u64;
        let copied = if may_be_small { emit::emit_within(planner, values, max)? } else { None };
        Ok(match copied {
            Some(rows) => rows.map(SparseAutomaton::Finite),
            None => emit::emit_called(planner, values, recursive)?.map(SparseAutomaton::Pushdown),
        })
    }

    /// Whether values of a plan contain values of the same plan.
    pub(super) fn is_recursive(&self, id: PlanId) -> bool {
        matches!(self, Self::Called(plans) if plans.recursive.contains_key(&id))
    }

    /// The depth to which the schema is expanded.
    pub(super) fn unrolled(&self) -> Unrolled {
        match self {
            Self::Called(_) => Unrolled::default(),
            Self::Copied(_, unrolled) => *unrolled,
        }
    }
}

impl Schema {
    /// The automaton of the texts of the schema's values, with calls if they are better, and the
    /// depth of the copies, if any.
    ///
    /// # Errors
    /// No value satisfies the schema (the error names the conflict), or a limit is exceeded.
    pub(crate) fn lower_called(&self, meter: &Meter) -> Result<(SparseAutomaton, Unrolled)> {
        self.lower_preferring(Preferred::default(), meter).map_err(|error| error.at(String::new))
    }

    fn lower_preferring(&self, copies: Preferred, meter: &Meter) -> Result<(SparseAutomaton, Unrolled)> {
        let (mut planner, followed) = self.followed(copies, meter)?;
        let unrolled = followed.unrolled();
        let root = followed.root();
        let texts =
            if planner.get(root).is_empty() { None } else { followed.texts(&planner, root.into())? };
        texts.map(|texts| (texts, unrolled)).ok_or_else(|| self.unsatisfiable(&mut planner))
    }

    /// The plans of the schema, and whether it is called or copied.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn followed<'a>(
        &'a self,
        copies: Preferred,
        meter: &'a Meter<'a>,
    ) -> Result<(Planner<'a>, Followed)> {
        if meter.limits().frames > 0 && self.may_be_called() {
            let mut planner = Planner::new(self, meter);
            if let Some(plans) = planner.recursive_root(copies)? {
                return Ok((planner, Followed::Called(plans)));
            }
        }
        let mut planner = Planner::new(self, meter);
        let (root, unrolled) = self.plan(&mut planner)?;
        Ok((planner, Followed::Copied(root, unrolled)))
    }

    fn may_be_called(&self) -> bool {
        let JsonOptions { recursion, any_depth, whitespace, .. } = &self.options;
        recursion.is_none() && any_depth.is_none() && !matches!(whitespace, Whitespace::Pretty(_))
    }
}
