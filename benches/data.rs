//! The folder of test data: tokenizers, schemas, prose.

use std::path::{Path, PathBuf};

/// The folder in `BURN_DFA_DATA`, by default `../shared/data` relative to the project.
pub fn folder() -> PathBuf {
    let named = std::env::var_os("BURN_DFA_DATA").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let project = here.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
        project.unwrap_or(here).join("../shared/data")
    })
}

/// The text of the file at `path` in the folder. If the file is missing, prints that `what` is
/// skipped.
pub fn read(path: &str, what: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder().join(path)).ok();
    if text.is_none() {
        println!(
            "skipped: {what}, since there is no {path} in the test data (BURN_DFA_DATA names its folder)"
        );
    }
    text
}
