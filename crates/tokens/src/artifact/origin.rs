//! The origin of a compiled constraint, as stored in its artifact.

use std::time::Duration;

use serde_json::json;

use burn_dfa_common::Limits;
use burn_dfa_constraints::Constraint;

/// The source of a compiled constraint, for readers of its file: the constraint's
/// [definition](Constraint::definition) and the limits. The compiled constraint does not depend on
/// it.
///
/// ```
/// use burn_dfa_tokens::Origin;
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let constraint = Constraint::regex("[0-9]+")?;
/// let origin = Origin::new(&constraint, &Limits::default());
/// assert_eq!(origin.constraint(), Some(r#"{"regex":"[0-9]+"}"#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    constraint: Option<String>,
    limits: Option<String>,
}

/// The maximum size of a stored definition; a safetensors header has at most 100 MB.
const LONGEST: usize = 32 << 20;

impl Origin {
    /// The origin of `constraint` compiled under `limits`. A definition of more than 32 MiB is left
    /// out.
    pub fn new(constraint: &Constraint, limits: &Limits) -> Self {
        let constraint = constraint.definition().filter(|definition| definition.len() <= LONGEST);
        Self { constraint, limits: Some(to_json(limits)) }
    }

    pub(super) fn of(constraint: Option<&str>, limits: Option<&str>) -> Self {
        Self { constraint: constraint.map(str::to_owned), limits: limits.map(str::to_owned) }
    }

    /// The constraint as JSON text, if it has a definition.
    pub fn constraint(&self) -> Option<&str> {
        self.constraint.as_deref()
    }

    /// The limits as JSON text, if known; `time` in seconds.
    pub fn limits(&self) -> Option<&str> {
        self.limits.as_deref()
    }
}

/// All limits that affect compilation, by name.
pub(crate) fn to_json(limits: &Limits) -> String {
    let &Limits {
        states,
        bytes,
        token_level_bytes,
        token_level_entries,
        frames,
        stacks,
        forced_text,
        time,
        deadline: _,
        threads: _,
        cancel: _,
    } = limits;
    json!({
        "states": states, "bytes": bytes, "token_level_bytes": token_level_bytes, "token_level_entries": token_level_entries,
        "frames": frames, "stacks": stacks, "forced_text": forced_text.name(), "time": Duration::as_secs_f64(&time),
    })
    .to_string()
}
