//! Omitted objects: objects that are valid only if the names of undeclared properties are distinct,
//! and some objects that leave many alternatives open.

use super::remark::Remark;
use super::{PlanId, Planner};
use crate::json_schema::formula::{Formula, Leaf};
use crate::json_schema::options::Unenforceable;
use burn_dfa_common::{Error, Result, Unenforced};

/// The reason for omitting objects: a dependency on distinct names, or too many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excluded {
    /// The number of properties.
    Count,
    /// A claim violated by a property other than the last.
    Violation,
    /// Open alternatives.
    Alternatives,
}

impl Excluded {
    /// The remark on a keyword that omits some objects.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Count => {
                "of the names outside `properties` only one is counted, since no finite automaton remembers whether they are distinct"
            }
            Self::Alternatives => {
                "in front of the property that tells the alternatives apart, values that exclude some which other values keep are left out where too many sets of alternatives would be open; declare that property first"
            }
            Self::Violation => {
                "a property outside `properties` with a value that violates it is not followed by one that does not where that decides, since no finite automaton remembers whether their names are distinct"
            }
        }
    }

    /// The error of a keyword that omits all objects.
    pub(super) fn refused(self, pointer: String) -> Error {
        match self {
            Self::Count => {
                let keyword =
                    if pointer.ends_with("/maxProperties") { "maxProperties" } else { "minProperties" };
                let what = Unenforced::new(
                    keyword,
                    "the count depends on names outside `properties` being distinct, which no finite automaton remembers",
                    "list the names under `properties`",
                );
                Error::unenforceable(pointer, what)
            }
            Self::Violation => Error::schema(
                pointer,
                "whether values violate it depends on names outside `properties` being distinct, which no finite automaton remembers; list the names under `properties`",
            ),
            Self::Alternatives => Error::schema(
                pointer,
                "too many sets of its alternatives would be open at once; declare the property that tells them apart first",
            ),
        }
    }
}

impl Planner<'_> {
    /// Ignores a keyword if the options allow it; returns whether they do.
    pub(super) fn ignores(&mut self, claim: Formula, reason: &'static str) -> bool {
        let ignores = self.options().unenforceable == Unenforceable::Ignore;
        if ignores {
            let pointer = self.schema.origins.get(&claim).map_or("", String::as_str);
            self.remarks.add(pointer, Remark::Ignored(reason));
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
