//! Remarks on keywords that are bounded or ignored.

use std::fmt;

/// A remark on a place of a schema; see [`Constraint::explain`](crate::Constraint::explain).
///
/// ```
/// use burn_dfa::{Constraint, Limits};
/// use burn_dfa::constraint::Treatment;
/// use serde_json::json;
///
/// let constraint = Constraint::json_schema(json!({"type": "string", "format": "colour"}))?;
/// let notes = constraint.explain(&Limits::default());
/// assert_eq!(notes[0].pointer, "/format");
/// assert!(matches!(notes[0].treatment, Treatment::Ignored(_)));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// JSON pointer (RFC 6901) to the keyword, or to the schema.
    pub pointer: String,
    /// How it is treated.
    pub treatment: Treatment,
}

/// How a keyword is treated that is not honoured exactly. All keywords without a [`Note`] are.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Treatment};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// // Any JSON is followed to the depth that was asked for, so that deeper values are not written.
/// let options = JsonOptions::new().with_any_depth(2);
/// let notes = Constraint::json_schema_with(json!({"type": "array"}), &options)?.explain(&Limits::default());
/// assert!(matches!(notes[0].treatment, Treatment::Bounded(_)));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Treatment {
    /// Fewer values are written than the schema allows; the reason.
    Bounded(String),
    /// It has no effect; the reason.
    Ignored(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, reason) = match &self.treatment {
            Treatment::Bounded(reason) => ("bounded", reason),
            Treatment::Ignored(reason) => ("ignored", reason),
        };
        let place = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(f, "{place}: {what}: {reason}")
    }
}
