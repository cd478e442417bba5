//! Rows that come and go: the arena of constraints, and the batch.

mod admission;
mod generation;
mod prefixes;
mod refused;
mod soak;
