//! Constrained decoding as tensors, for Burn.

pub mod automaton;
pub mod constraint;
mod error;
pub mod generation;
mod limits;
pub mod processor;
pub mod sampling;
pub mod table;
pub mod tensor;
pub mod vocabulary;

pub use automaton::{ByteDfa, StateId};
pub use constraint::Constraint;
pub use error::{Error, Limit, Result};
pub use limits::Limits;
pub use table::TokenTable;
pub use tensor::{Layout, TensorOptions, TensorTable};
pub use vocabulary::{TokenId, Vocabulary};
