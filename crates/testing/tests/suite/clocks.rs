//! Where clocks start: only in functions that take limits from their caller.

use std::collections::BTreeMap;
use std::path::Path;

/// Starts a clock, or makes limits without a caller.
const FRESH: [&str; 3] = ["Meter::start(", "Limits::default()", "Limits::new()"];

/// The files outside of tests with such calls, and their counts. A reader has no limits, so it
/// creates a `Deferred` automaton, which is determinized when the constraint is lowered.
const KNOWN: [(&str, [usize; 3]); 11] = [
    // The operations of `ByteDfa`.
    ("crates/automata/src/product.rs", [3, 0, 0]),
    ("crates/automata/src/regular.rs", [3, 0, 0]),
    // `Grammar::report`.
    ("crates/constraints/src/grammar/report.rs", [1, 0, 0]),
    // `explain`, `json_text`, `to_byte_dfa` and `to_automaton`.
    ("crates/constraints/src/lib.rs", [4, 0, 0]),
    // A pattern of white space: at most 4,096 states, 16 MiB, and a second.
    ("crates/constraints/src/white_space.rs", [0, 0, 1]),
    ("crates/tokens/src/artifact/mod.rs", [3, 0, 0]),
    // A compiled constraint is checked before it is written.
    ("crates/tokens/src/artifact/write.rs", [1, 1, 0]),
    // `Compile::compile`, which takes the default limits.
    ("crates/tokens/src/compile_trait.rs", [0, 1, 0]),
    ("crates/tokens/src/lib.rs", [3, 0, 0]),
    // The defaults of options.
    ("src/cli/compile.rs", [0, 5, 0]),
    // Constraints of remote callers.
    ("src/remote/server/handles.rs", [0, 1, 0]),
];

fn count(folder: &Path, root: &Path, found: &mut BTreeMap<String, [usize; 3]>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" && name != "bin" {
                count(&path, root, found);
            }
            continue;
        }
        let is_test = matches!(&*name, "tests.rs" | "recognize.rs" | "differential.rs" | "reference.rs");
        let is_limits = path.ends_with("common/src/limits.rs");
        if is_test || is_limits || path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let tests = ["\nmod tests {", "\npub(super) mod tests {", "\npub(crate) mod tests {"];
        let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
        let code = &text[..end];
        let mut counts = [0; 3];
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (count, fresh) in counts.iter_mut().zip(FRESH) {
                *count += line.matches(fresh).count();
            }
        }
        if counts != [0; 3] {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.insert(name, counts);
        }
    }
}

#[test]
fn clocks_start_in_public_functions_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut found = BTreeMap::new();
    for folder in [
        "src",
        "crates/automata/src",
        "crates/common/src",
        "crates/constraints/src",
        "crates/engine/src",
        "crates/tokens/src",
        "crates/vocabulary/src",
    ] {
        count(&root.join(folder), root, &mut found);
    }
    let known: BTreeMap<String, [usize; 3]> =
        KNOWN.iter().map(|&(name, counts)| (name.to_owned(), counts)).collect();
    assert_eq!(found, known);
}
