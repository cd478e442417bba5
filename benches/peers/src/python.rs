//! What runs in Python, where there is one that can: PyTorch, and XGrammar as its authors build it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python interpreter.
pub struct Python {
    program: PathBuf,
}

impl Python {
    pub fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }

    /// Whether `script` finds what it needs; says what it found, or that `what` is skipped.
    pub fn offers(&self, script: &str, what: &str) -> bool {
        match self.run(script, &["--check"]) {
            Ok(found) => {
                println!("{what}: {}", found.trim());
                true
            }
            Err(error) => {
                println!("skipped: {what} ({error}); name a Python that has it with --python");
                false
            }
        }
    }

    /// The output of a script beside this crate.
    ///
    /// # Errors
    /// The last line of what went wrong.
    pub fn run(&self, script: &str, arguments: &[&str]) -> Result<String, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let output = Command::new(&self.program).arg(script).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(errors.lines().last().unwrap_or("it failed").to_owned())
        }
    }
}
