//! The schemas of MaskBench, in an order that favors no engine.
//!
//! Rows of all files are sorted by the SHA-256 of their ids. A benchmark of `n` schemas takes the
//! first `n`, even if an engine cannot compile some of them.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::data;

/// A row of MaskBench: a schema with instances.
pub struct Row {
    /// The name of the row.
    pub id: String,
    /// The schema.
    pub schema: Value,
    /// The instances: objects with `valid`, `data` and, if only a format makes the instance
    /// invalid, `needs_format`.
    pub tests: Vec<Value>,
}

/// The `count` rows with the smallest SHA-256 of their ids. Without the data, prints a notice and
/// returns no rows.
pub fn first(count: usize) -> Vec<Row> {
    let files = std::fs::read_dir(data::folder().join("maskbench")).into_iter().flatten();
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts: Vec<String> = paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    if texts.is_empty() {
        println!(
            "skipped: the schemas, since there is no maskbench in the test data (BURN_DFA_DATA names its folder)"
        );
    }
    let lines = texts.iter().flat_map(|text| text.lines());
    // A line begins with `{"id":"`, so sorting needs no parsing, and only the first `count` lines
    // are parsed.
    let mut lines: Vec<_> =
        lines.map(|line| (Sha256::digest(line.split('"').nth(3).unwrap_or_default()), line)).collect();
    lines.sort_unstable();
    lines.iter().take(count).map(|(_, line)| row(line)).collect()
}

fn row(line: &str) -> Row {
    let mut row: Value = serde_json::from_str(line).expect("a row of JSON");
    let tests = match row["tests"].take() {
        Value::Array(tests) => tests,
        _ => Vec::new(),
    };
    Row { id: row["id"].as_str().unwrap_or_default().to_owned(), schema: row["schema"].take(), tests }
}
