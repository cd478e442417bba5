//! What the user asks for.

/// placeholder
pub enum Constraint {}
