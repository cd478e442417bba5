//! The error of an artifact that cannot be read.

use std::fmt::Display;

use burn_dfa_common::Error;

/// An error in one of the tensors or metadata of an artifact.
pub(super) fn broken(name: &str, what: impl Display) -> Error {
    Error::artifact(format!("artifact, `{name}`: {what}; compile the constraint again"))
}
