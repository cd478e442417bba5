//! The recorded decode step. A program of its own: while a step is recorded, nothing else may use its device.

#[path = "../suite/common/devices.rs"]
mod devices;
mod embedded;
#[cfg(feature = "cube")]
mod kernels;
#[allow(dead_code)]
#[path = "../suite/common/model.rs"]
mod model;
mod operations;
mod refused;
mod replay;
mod slots;
mod speculation;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by every test, so that they run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
