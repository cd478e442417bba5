//! Rows that come and go: the arena of constraints, and the batch.

mod generation;
mod refused;
mod soak;
