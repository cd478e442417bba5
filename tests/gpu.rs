//! The tests of `device` and `graph` in one program, to be carried to a machine with a GPU: filter by `device::` and `graph::`, in
//! processes of their own.

mod common;
#[path = "device/main.rs"]
mod device;
#[path = "graph/main.rs"]
mod graph;

use graph::{alone, operations};
