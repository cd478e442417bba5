//! Where a table comes from, as its artefact tells it.

use std::time::Duration;

use serde_json::json;

use crate::constraint::Constraint;
use crate::limits::Limits;

/// What a table was compiled from, for those who find its file: the constraint's
/// [definition](Constraint::definition) and the limits. A table does not depend on it.
///
/// ```
/// use burn_dfa::table::Origin;
/// use burn_dfa::{Constraint, Limits};
///
/// let constraint = Constraint::regex("[0-9]+")?;
/// let origin = Origin::new(&constraint, &Limits::default());
/// assert_eq!(origin.constraint(), Some(r#"{"regex":"[0-9]+"}"#));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    constraint: Option<String>,
    limits: Option<String>,
}

/// Most bytes of a definition that are written down; a header of safetensors has at most 100 MB.
const LONGEST: usize = 32 << 20;

impl Origin {
    /// The origin of a table of `constraint`, compiled under `limits`. A definition of more than 32 MiB is left out.
    pub fn new(constraint: &Constraint, limits: &Limits) -> Self {
        let constraint = constraint.definition().filter(|definition| definition.len() <= LONGEST);
        Self { constraint, limits: Some(to_json(limits)) }
    }

    pub(super) fn of(constraint: Option<&str>, limits: Option<&str>) -> Self {
        Self { constraint: constraint.map(str::to_owned), limits: limits.map(str::to_owned) }
    }

    /// The constraint as JSON text, where it has one.
    pub fn constraint(&self) -> Option<&str> {
        self.constraint.as_deref()
    }

    /// The limits as JSON text, where they are known; `time` in seconds.
    pub fn limits(&self) -> Option<&str> {
        self.limits.as_deref()
    }
}

/// All limits on which a table depends, by name.
pub(in crate::table) fn to_json(limits: &Limits) -> String {
    let &Limits { states, bytes, tabulated_bytes, tabulated_entries, frames, stacks, time, threads: _ } =
        limits;
    json!({
        "states": states, "bytes": bytes, "tabulated_bytes": tabulated_bytes, "tabulated_entries": tabulated_entries,
        "frames": frames, "stacks": stacks, "time": Duration::as_secs_f64(&time),
    })
    .to_string()
}
