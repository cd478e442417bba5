//! Objects that are left out, because they are valid only where the names of undeclared properties are distinct.

use super::Planner;
use crate::constraint::json_schema::formula::{Formula, Leaf};
use crate::error::{Error, Result};

/// What depends on the names being distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Lost {
    /// How many properties there are.
    Count,
    /// Whether a claim is violated by a property that is not the last.
    Violation,
}

impl Lost {
    /// The remark on a keyword by which some objects are left out.
    pub(in super::super) fn note(self) -> &'static str {
        match self {
            Self::Count => {
                "of the names outside `properties` only one is counted, since no finite automaton remembers whether they are distinct"
            }
            Self::Violation => {
                "a property outside `properties` with a value that violates it is not followed by one that does not where that decides, since no finite automaton remembers whether their names are distinct"
            }
        }
    }

    /// The error of a keyword by which all objects are left out.
    pub(in super::super) fn refused(self, pointer: String) -> Error {
        let what = match self {
            Self::Count => "the count depends on names",
            Self::Violation => "whether values violate it depends on names",
        };
        Error::schema(
            pointer,
            format!(
                "{what} outside `properties` being distinct, which no finite automaton remembers; list the names under `properties`"
            ),
        )
    }
}

impl Planner<'_> {
    /// What becomes of an object some ends of which depend on names for the truth of `claim`: it is refused where no other
    /// end is left, and noted elsewhere.
    pub(super) fn lost(&mut self, claim: Formula, is_empty: bool) -> Result<()> {
        let pointer = self.schema.origins.get(&claim).cloned().unwrap_or_default();
        let lost = match self.formulas.as_leaf(claim) {
            Some(Leaf::Properties { .. }) => Lost::Count,
            _ => Lost::Violation,
        };
        // Where recursion is cut off an object may be empty for that alone.
        if is_empty && !self.cut {
            return Err(lost.refused(pointer));
        }
        self.lost.insert(pointer, lost);
        Ok(())
    }
}
