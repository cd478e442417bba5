//! The README of each crate names all modules of the crate, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CRATES: [&str; 6] = ["automata", "common", "constraints", "engine", "tokens", "vocabulary"];

/// The modules in the source folder of a crate.
fn modules(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder.join("src")).expect("a folder of sources");
    let paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let names = paths.iter().map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name"));
    names.filter(|&name| name != "lib").map(str::to_owned).collect()
}

/// The names in the first column of the tables of a page.
fn named(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let names = rows.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    names.collect()
}

#[test]
fn readmes_name_the_modules_of_their_crates() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in CRATES {
        let folder = crates.join(name);
        let page = std::fs::read_to_string(folder.join("README.md")).expect("a README");
        assert_eq!(named(&page), modules(&folder), "{}", folder.display());
    }
}
