//! Lists of values, such as the values of `enum`, and the search in them.

use std::collections::HashSet;

use crate::json_schema::json::Json;

/// A set of values. Scalars are looked up by hash. Arrays and objects are compared one by one,
/// since equal objects may have their members in different orders.
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

    /// The number of list values compared with a value.
    pub(super) fn compared_with(&self, value: &Json) -> usize {
        if value.is_nested() { self.others.len() } else { 1 }
    }

    pub(super) fn contains(&self, value: &Json) -> bool {
        if value.is_nested() {
            self.others.iter().any(|other| other.is_same(value))
        } else {
            self.scalars.contains(value)
        }
    }
}
