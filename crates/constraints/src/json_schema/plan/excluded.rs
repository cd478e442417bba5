//! Omitted objects: objects that are valid only if the names of undeclared properties are distinct,
//! and some objects that leave many alternatives open.

use super::remark::{Excluded, Remark};
use super::{PlanId, Planner};
use crate::json_schema::formula::{Formula, Leaf};
use crate::json_schema::options::Unenforceable;
use burn_dfa_common::Result;

impl Planner<'_> {
    /// Ignores a keyword if the options allow it; returns whether they do.
    pub(super) fn ignores(&mut self, claim: Formula, reason: &'static str) -> bool {
        let ignores = self.options().unenforceable == Unenforceable::Ignore;
        if ignores {
            let pointer = self.schema.origins.get(&claim).map_or("", String::as_str);
            self.remarks.add(pointer, Remark::Unenforceable(reason));
        }
        ignores
    }

    /// Whether the options allow counting undeclared properties as if their names were distinct,
    /// for a count `claim`.
    pub(super) fn counts_as_distinct(&mut self, claim: Formula) -> bool {
        let is_count = matches!(self.formulas.as_leaf(claim), Some(Leaf::Properties { .. }));
        is_count && self.ignores(claim, "undeclared properties are counted as if their names were distinct")
    }

    /// Handles an object with some ends that depend on distinct names because of `claim`: an error
    /// if no other end is left, else a remark.
    pub(super) fn exclude(&mut self, claim: Formula, is_empty: bool) -> Result<()> {
        let pointer = self.schema.origins.get(&claim).map_or("", String::as_str);
        let reason = match self.formulas.as_leaf(claim) {
            Some(Leaf::Properties { .. }) => Excluded::Count,
            _ => Excluded::Violation,
        };
        // Cutting off recursion can make an object empty, too.
        if is_empty && !self.cut {
            return Err(reason.refused(pointer.to_owned()));
        }
        self.remarks.add(pointer, Remark::Excluded(reason));
        Ok(())
    }

    /// The same of an object with too many states of open alternatives.
    pub(super) fn narrowed_alternatives(&mut self, id: PlanId, is_empty: bool) -> Result<()> {
        let pointer = self.origin(id);
        if is_empty && !self.cut {
            return Err(Excluded::Alternatives.refused(pointer));
        }
        self.remarks.add(&pointer, Remark::Excluded(Excluded::Alternatives));
        Ok(())
    }
}
