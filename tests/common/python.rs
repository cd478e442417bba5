//! A Python that has what a test needs.

use std::process::Command;

use super::skip::skipped;

/// Set where a missing Python, or one without the modules, must fail the tests instead of skipping them.
const REQUIRE: &str = "BURN_DFA_REQUIRE_PYTHON";

/// A Python that has these modules; without one the test is skipped.
pub fn with(modules: &str) -> Option<Command> {
    let python = std::env::var_os("BURN_DFA_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(Command::new(python));
    }
    assert!(
        std::env::var_os(REQUIRE).is_none(),
        "{REQUIRE} is set, and {} lacks one of {modules}",
        python.display()
    );
    skipped(format_args!("no Python with {modules} (BURN_DFA_PYTHON names it)"));
    None
}
