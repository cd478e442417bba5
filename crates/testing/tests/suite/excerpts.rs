//! Parts of programs on the pages of the guide are parts of the examples that the pages link to.
//! The tests run the examples.

use std::path::Path;

const FENCE: &str = "```rust,ignore\n";

#[test]
fn parts_of_programs_are_in_the_examples_of_their_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs");
    let mut found = 0;
    for entry in std::fs::read_dir(&docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        let links = page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let examples: Vec<String> = links
            .filter(|link| link.starts_with("../examples/") && link.ends_with(".rs"))
            .map(|link| std::fs::read_to_string(docs.join(link)).unwrap())
            .collect();
        for block in page.split(FENCE).skip(1) {
            let part = block.split("```").next().unwrap();
            assert!(examples.iter().any(|example| example.contains(part)), "{}: {part}", path.display());
            found += 1;
        }
    }
    assert!(found >= 5, "{found} parts");
}
