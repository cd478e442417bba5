//! Devices of a server.
fn main() {}
