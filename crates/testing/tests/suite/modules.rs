//! The README of a package names all modules of its library, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PACKAGES: [&str; 10] = [
    "crates/automata",
    "crates/common",
    "crates/constraints",
    "crates/engine",
    "crates/gguf",
    "crates/testing",
    "crates/tokens",
    "crates/vocabulary",
    "models/decoder",
    "models/serve",
];

/// The modules in the source folder of a package. A folder without `mod.rs` belongs to a file
/// of the same name, or holds no module.
fn modules(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder.join("src")).expect("a folder of sources");
    let paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let modules = paths.iter().filter(|path| path.is_file() || path.join("mod.rs").exists());
    let names = modules.map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name"));
    names.filter(|name| !["lib", "main"].contains(name)).map(str::to_owned).collect()
}

/// The names in the first column of the tables of a page.
fn named(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let names = rows.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    names.collect()
}

#[test]
fn readmes_name_the_modules_of_their_packages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in PACKAGES {
        let folder = root.join(name);
        let page = std::fs::read_to_string(folder.join("README.md")).expect("a README");
        assert_eq!(named(&page), modules(&folder), "{}", folder.display());
    }
}
