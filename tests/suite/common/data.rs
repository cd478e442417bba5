//! Test data from outside the project: real tokenizers, schemas, regexes with verdicts.
//!
//! It lies in the folder that `BURN_DFA_DATA` names, by default `../shared/data` beside the project.
//! A test that finds none of it says that it was skipped, and passes.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// Rows of Rust's corpus that hold for `regex-lite` alone, whose classes and cases are those of ASCII.
pub const OF_REGEX_LITE: [&str; 6] = [
    "rust-regex regex-lite/perl-class-decimal",
    "rust-regex regex-lite/perl-class-space",
    "rust-regex regex-lite/perl-class-word",
    "rust-regex regex-lite/case-insensitive-is-ascii-only",
    "rust-regex regex-lite/dot-always-matches-codepoint",
    "rust-regex regex-lite/negated-class-always-matches-codepoint",
];

/// The folder of test data; `None` where there is none.
pub fn dir() -> Option<PathBuf> {
    let folder = match std::env::var_os("BURN_DFA_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
            above.map(|folder| folder.join("shared/data")).find(|folder| folder.is_dir())?
        }
    };
    folder.is_dir().then_some(folder)
}

/// The file or folder at `path` in the test data; `None`, and a line that says so, where it is missing.
pub fn find(path: &str) -> Option<PathBuf> {
    let found = dir().map(|folder| folder.join(path)).filter(|path| path.exists());
    if found.is_none() {
        println!("skipped: no {path} in the test data (BURN_DFA_DATA names its folder)");
    }
    found
}

/// The text of the file at `path` in the test data; as [`find`].
pub fn read(path: &str) -> Option<String> {
    let found = find(path)?;
    Some(std::fs::read_to_string(&found).unwrap_or_else(|error| panic!("{}: {error}", found.display())))
}

/// The names in the folder at `path`, sorted; none where it is missing.
pub fn list(path: &str) -> Vec<String> {
    let Some(folder) = find(path) else {
        return Vec::new();
    };
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}
