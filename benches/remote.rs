//! Remote devices.
fn main() {}
