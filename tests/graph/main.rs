//! The recorded decode step. A separate program, because nothing else may use the device during a
//! recording.

#[cfg(feature = "cube")]
mod bindings;
mod buffers;
#[path = "../common/mod.rs"]
mod common;
mod compilations;
mod continuous;
#[cfg(feature = "cube")]
mod kernels;
pub(crate) mod operations;
mod refused;
mod replay;
mod speculation;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by every test, so the tests run one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
