//! The messages on the page on troubleshooting are messages of the programs.

use std::path::{Path, PathBuf};

/// The sources in a folder and below it, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let is_source = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs") && path.iter().any(|part| part == "src")
    };
    paths.filter(|path| !path.ends_with("tests")).flat_map(below).filter(is_source).collect()
}

/// The text between the first two backticks of each row whose table is of messages.
fn messages(page: &str) -> Vec<&str> {
    let (mut messages, mut listed) = (Vec::new(), false);
    for line in page.lines() {
        listed = (listed || line.starts_with("| message")) && line.starts_with('|');
        if let Some((message, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`'))
            && listed
        {
            messages.push(message);
        }
    }
    messages
}

#[test]
fn messages_on_troubleshooting_are_in_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository");
    let folders = ["src", "crates", "models"].map(|folder| sources(&root.join(folder)));
    let sources: Vec<String> =
        folders.iter().flatten().map(|path| std::fs::read_to_string(path).expect("a source")).collect();
    let page = std::fs::read_to_string(root.join("docs/troubleshooting.md")).expect("the page");
    let messages = messages(&page);
    assert!(messages.len() > 20, "{messages:?}");
    let is_unknown = |message: &&&str| !sources.iter().any(|source| source.contains(**message));
    let unknown: Vec<&&str> = messages.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "no source has {unknown:?}");
}
