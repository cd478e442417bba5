//! Notices of skipped tests.

use std::fmt::Display;
use std::io::Write;

/// Prints one line with the skipped test and the reason. The test harness captures `println!` of
/// passing tests; a direct write to standard error is not captured.
pub fn skipped(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}
