//! What is skipped is said.

use std::fmt::Display;
use std::io::Write;

/// Writes one line on what is skipped, and why. The test harness keeps what a test that passes prints to itself; this
/// line passes it by.
pub fn skipped(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}
