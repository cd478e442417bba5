//! The tests of `device` and `graph` in one program for a machine with a GPU: filter by `device::`
//! and `graph::`, in separate processes.

mod common;
#[path = "device/main.rs"]
mod device;
#[path = "graph/main.rs"]
mod graph;

use graph::{alone, operations};
