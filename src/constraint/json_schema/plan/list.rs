//! Values of `enum`, to be found by value.

use std::collections::HashSet;

use crate::constraint::json_schema::json::Json;

/// Values in a set: scalars by hashing, others one by one, since the order of their members makes no difference.
#[derive(Debug, Default)]
pub(super) struct List {
    scalars: HashSet<Json>,
    others: Vec<Json>,
}

impl List {
    pub(super) fn new(values: &[Json]) -> Self {
        let (others, scalars): (Vec<Json>, _) = values.iter().cloned().partition(Json::is_nested);
        Self { scalars: HashSet::from_iter(scalars), others }
    }

    pub(super) fn contains(&self, value: &Json) -> bool {
        if value.is_nested() {
            self.others.iter().any(|other| other.is_same(value))
        } else {
            self.scalars.contains(value)
        }
    }
}
