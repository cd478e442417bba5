//! Tests that need a device, but run only on the CPU: artifacts, streams, Rust types, guarantees of
//! generation.

mod artifact;
#[path = "../common/mod.rs"]
mod common;
mod guarantee;
mod mistakes;
mod streaming;
mod typed;
