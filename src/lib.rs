//! Constrained decoding as tensors, for Burn.

pub mod automaton;
pub mod constraint;
mod error;
pub mod generation;
mod limits;
pub mod vocabulary;

pub use constraint::Constraint;
pub use error::{Error, Limit, Result};
pub use limits::Limits;
pub use vocabulary::{TokenId, Vocabulary};
