//! How deep arrays and objects nest where anything goes.

use super::{Goal, Kind, PlanId, Planner};
use crate::constraint::json_schema::formula::Formula;
use crate::constraint::json_schema::options::JsonOptions;
use crate::error::Result;

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

impl Planner<'_> {
    /// Sets the depth of any JSON in places where the schema asks for it, and in properties that it does not name.
    pub(in super::super) fn set_any(&mut self, levels: [usize; 2]) -> Result<()> {
        for (place, levels) in self.places.into_iter().zip(levels) {
            let Some(place) = place else { continue };
            let depth = Depth { recursion: 0, any: Any::Left(levels, false) };
            let goal = Goal::new(Formula::TRUE, [], depth);
            let id = self.made(|planner| planner.begin(&goal, true))?;
            self.plans[place.0 as usize] = std::mem::take(&mut self.plans[id.0 as usize]);
        }
        Ok(())
    }

    /// The plans of the two kinds of places of [`set_any`](Self::set_any); `None` if the schema has no such place.
    pub(in super::super) fn places(&self) -> [Option<PlanId>; 2] {
        self.places
    }
}
