//! How deep arrays and objects nest where anything goes.

use super::Kind;
use crate::constraint::json_schema::options::JsonOptions;

/// How deep a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Depth {
    /// Recursive references that may still be followed.
    pub(super) recursion: usize,
    pub(super) any: Any,
}

/// Where a place is that allows anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Any {
    /// The schema asks nothing of this value; how deep it may be is settled last.
    Asked,
    /// The same of a property that the schema does not name, beside others that it does.
    Unnamed,
    /// What is left for arrays and objects that are nested, and whether an array is right around the place.
    Left(usize, bool),
}

/// What arrays and objects count for where anything goes: one level each, but for arrays right within arrays, which
/// are rare and would double what each level takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nesting {
    /// Levels of an array right within an array.
    arrays: usize,
}

impl Nesting {
    pub(super) fn of(options: &JsonOptions) -> Self {
        // A depth that is asked for is one of both.
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
