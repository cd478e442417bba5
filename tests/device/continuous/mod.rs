//! Continuous batching: the arena of constraints, and the batch.

mod admission;
pub(super) mod generation;
mod pending;
mod prefixes;
mod refused;
mod soak;
