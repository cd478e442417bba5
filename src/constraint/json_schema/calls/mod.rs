//! Chooses between calls and copies.
//!
//! With a stack, a part of a schema is written once and *called* from each place where it stands, also from within itself,
//! so recursion and any JSON are followed as deep as the stack goes. Without, it is copied to each place, and what contains
//! itself is copied to a [`depth`](super::depth). Calls are not free: what a token does may then depend on the stack. So a
//! schema that contains nothing that contains itself is copied as long as it is small, and within a schema with calls a
//! part that stands in several places is called if it is large.
//!
//! Everything is copied, to a depth, where
//! - [`Limits::frames`](crate::Limits::frames) asks for no stack;
//! - the options say how deep, by [`recursion`](JsonOptions::recursion) or [`any_depth`](JsonOptions::any_depth);
//! - the text of a value depends on how deep it is: [`Whitespace::Pretty`];
//! - what follows a value that contains itself depends on more than [`MAX_OUTCOMES`](super::plan::MAX_OUTCOMES) outcomes, or
//!   the plans have more states than are allowed.

#[cfg(test)]
mod tests;

use super::plan::{Circular, PlanId, Planner};
use super::{JsonOptions, Schema, Unrolled, Whitespace, emit};
use crate::automaton::{Pushdown, RowDfa};
use crate::error::Result;
use crate::limits::Meter;

/// The numbers of states up to which copies are preferred to calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preferred {
    /// Of a schema that contains nothing that contains itself, when all is copied.
    pub(super) schema: usize,
    /// Of one copy of an array or an object that stands in several places.
    pub(super) part: usize,
    /// Of all items of an array, where these are counted.
    pub(super) items: u64,
    /// Of all characters of a string, where these are counted.
    pub(super) characters: u64,
    /// The same, where the pattern has more states between characters than a piece may have outcomes.
    pub(super) patterned: u64,
    /// The least number of characters of a block, not of states: twice those of the longest plain token, which then passes from
    /// one block to the next at most, see `table::plain`. Blocks that each state between characters has for itself are shorter.
    pub(super) block: u64,
}

impl Default for Preferred {
    fn default() -> Self {
        Self { schema: 20_000, part: 48, items: 256, characters: 1_024, patterned: 20_000, block: 32 }
    }
}

/// The automaton of a schema's texts.
#[derive(Clone, Debug)]
pub(crate) enum Texts {
    Copied(RowDfa),
    Called(Pushdown),
}

/// How a schema is followed.
pub(super) enum Followed {
    /// As deep as the stack goes.
    Called(Circular),
    Copied(PlanId, Unrolled),
}

impl Followed {
    /// The plan of the whole schema.
    pub(super) fn root(&self) -> PlanId {
        match self {
            Self::Called(circular) => circular.root,
            Self::Copied(root, _) => *root,
        }
    }

    /// The depth to which the schema is followed.
    pub(super) fn unrolled(&self) -> Unrolled {
        match self {
            Self::Called(_) => Unrolled::default(),
            Self::Copied(_, unrolled) => *unrolled,
        }
    }
}

impl Schema {
    /// The automaton of the texts of the schema's values, with calls where that is better, and the depth to which the
    /// schema was followed where it was copied to one.
    ///
    /// # Errors
    /// Where nothing satisfies the schema, naming the conflict; where a limit is breached.
    pub(crate) fn lower_called(&self, meter: &Meter) -> Result<(Texts, Unrolled)> {
        self.lower_preferring(Preferred::default(), meter).map_err(|error| error.at(String::new))
    }

    fn lower_preferring(&self, copies: Preferred, meter: &Meter) -> Result<(Texts, Unrolled)> {
        let (mut planner, followed) = self.followed(copies, meter)?;
        let root = followed.root();
        let unrolled = followed.unrolled();
        let texts = match followed {
            _ if planner.get(root).is_empty() => None,
            Followed::Copied(..) => emit::emit(&planner, root)?.map(Texts::Copied),
            Followed::Called(Circular { circles, .. }) => {
                // What would take more states, as far as that can be foreseen, is not begun.
                let may_be_small =
                    circles.is_empty() && emit::copied_characters(&planner, root) <= copies.schema as u64;
                let copied =
                    if may_be_small { emit::emit_within(&planner, root, copies.schema)? } else { None };
                match copied {
                    Some(rows) => rows.map(Texts::Copied),
                    None => emit::emit_called(&planner, root, circles)?.map(Texts::Called),
                }
            }
        };
        texts.map(|texts| (texts, unrolled)).ok_or_else(|| self.unsatisfiable(&mut planner))
    }

    /// The plans of the schema, and how it is followed.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn followed<'a>(
        &'a self,
        copies: Preferred,
        meter: &'a Meter<'a>,
    ) -> Result<(Planner<'a>, Followed)> {
        if meter.limits().frames > 0 && self.may_be_called() {
            let mut planner = Planner::new(self, meter);
            if let Some(circular) = planner.circular_root(copies)? {
                return Ok((planner, Followed::Called(circular)));
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
