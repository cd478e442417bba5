//! The prose of the Markdown pages is wrapped at 100 columns.

use super::links::{pages, read, root};

const COLUMNS: usize = 100;

/// Whether a line outside of code is prose beyond the last column. Rows of tables, images, quoted
/// messages and addresses cannot be wrapped.
fn is_too_long(line: &str) -> bool {
    let text = line.trim_start();
    let is_address = !text.contains(' ') || text.starts_with('[') && text.contains("]: ");
    let is_whole = ["|", ">", "![", "[!["].iter().any(|start| text.starts_with(start));
    line.chars().count() > COLUMNS && !is_address && !is_whole && !line.starts_with("    ")
}

/// The numbers of the lines of a page that are too long.
fn too_long(page: &str) -> Vec<usize> {
    let mut fenced = false;
    let lines = (1..).zip(page.lines()).filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced && is_too_long(line)
    });
    lines.map(|(number, _)| number).collect()
}

#[test]
fn prose_is_wrapped() {
    let root = root();
    let results = root.join("benches/results");
    let mut wrong = Vec::new();
    for page in pages(&root, 3) {
        // Programs write the other pages of the results, with commands and machines of any length.
        if page.starts_with(&results) && !page.ends_with("README.md") {
            continue;
        }
        let name = page.strip_prefix(&root).unwrap().display();
        wrong.extend(too_long(&read(&page)).iter().map(|number| format!("{name}:{number}")));
    }
    assert!(wrong.is_empty(), "more than {COLUMNS} columns:\n{}", wrong.join("\n"));
}

#[test]
fn long_lines_are_found() {
    let long = "word ".repeat(30);
    let page = format!("# A\n{long}\n```text\n{long}\n```\n| {long}|\n> {long}\n![{long}](a.svg)\n- {long}");
    assert_eq!(too_long(&page), [2, 9]);
    let page = format!("{}\n[a]: {long}\n  ({})", "é".repeat(100), "a".repeat(120));
    assert!(too_long(&page).is_empty());
}
