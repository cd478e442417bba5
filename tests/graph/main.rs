//! The recorded decode step. A program of its own: while a step is recorded, nothing else may use its device.

#[cfg(feature = "cube")]
mod bindings;
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cube")]
mod kernels;
pub(crate) mod operations;
mod refused;
mod replay;
mod slots;
mod speculation;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by every test, so that they run one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
