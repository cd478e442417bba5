//! A Python interpreter with the modules that a test needs.

use std::ffi::OsString;
use std::process::Command;

use crate::skip::skipped;

/// If this variable is set, a missing Python or missing modules fail the tests instead of skipping
/// them.
const REQUIRE: &str = "BURN_DFA_REQUIRE_PYTHON";

/// A Python with these modules; without one, the test is skipped.
pub fn with(modules: &str) -> Option<Command> {
    let found = with_optional(modules);
    assert!(
        found.is_some() || std::env::var_os(REQUIRE).is_none(),
        "{REQUIRE} is set, and {} lacks one of {modules}",
        interpreter().display()
    );
    found
}

/// A Python with these modules, which no variable requires; without one, the test is skipped.
pub fn with_optional(modules: &str) -> Option<Command> {
    let python = interpreter();
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(Command::new(python));
    }
    skipped(format_args!("no Python with {modules} (BURN_DFA_PYTHON names it)"));
    None
}

fn interpreter() -> OsString {
    std::env::var_os("BURN_DFA_PYTHON").unwrap_or_else(|| "python3".into())
}
