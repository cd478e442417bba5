//! Links and images of the Markdown pages lead to files and headings that exist, and the book lists
//! each page of the guide.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository").to_owned()
}

/// The pages in `folder` and in folders below it, down to `depth`; without hidden folders and
/// builds.
pub(super) fn pages(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && depth > 0 && !name.starts_with('.') && name != "target" {
            found.extend(pages(&path, depth - 1));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

pub(super) fn read(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The page without code: fenced blocks, and spans between backticks.
fn without_code(page: &str) -> String {
    let mut fenced = false;
    let lines = page.lines().filter(|line| {
        let fence = line.trim_start_matches(['>', ' ']).starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let (mut rest, mut prose) = (text.as_str(), String::new());
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (before, code) = (&rest[..start], &rest[start + ticks..]);
        prose += before;
        rest = match code.find(&rest[start..start + ticks]) {
            Some(end) => &code[end + ticks..],
            None => code,
        };
    }
    prose + rest
}

/// The targets of links and images, except for addresses.
fn targets(page: &str) -> Vec<String> {
    let prose = without_code(page);
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let references = prose.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    let all = inline.chain(references.map(|(_, target)| target.trim()));
    all.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The anchors of the headings: in lower case, without punctuation, with hyphens instead of spaces.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let Some(title) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbered);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

/// Why a link of `page` leads nowhere.
fn fault(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { page.to_owned() } else { page.with_file_name("").join(path) };
    if !file.exists() {
        return Some("no such file".to_owned());
    }
    if anchor.is_empty() || anchors(&read(&file)).contains(anchor) {
        return None;
    }
    Some("no such heading".to_owned())
}

#[test]
fn links_lead_to_files_and_headings() {
    let root = root();
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages(&root, 2) {
        for target in targets(&read(&page)) {
            count += 1;
            if let Some(fault) = fault(&page, &target) {
                wrong.push(format!("{}: {target}: {fault}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let page = root().join("docs/README.md");
    assert_eq!(fault(&page, "limits.md#counts-that-multiply"), None);
    assert_eq!(fault(&page, "limits.md#no-such"), Some("no such heading".to_owned()));
    assert_eq!(fault(&page, "../no/such.md"), Some("no such file".to_owned()));
    let text = "[a](b.md) `[c](d.md)`\n```text\n[e](f.md)\n```\n![g\nh](i.svg) [j](https://k)\n\n[l]: m.md";
    assert_eq!(targets(text), ["b.md", "i.svg", "m.md"]);
    let headings = anchors("# A b\n```sh\n# c\n```\n## `D::e`, f!\n### A b");
    assert!(headings.iter().eq(["a-b", "a-b-1", "de-f"]), "{headings:?}");
}

/// The page of a package shows no other files of the repository.
#[test]
fn readmes_of_published_crates_stand_alone() {
    let mut published = vec![root().join("src/README.md")];
    published.extend(
        pages(&root().join("crates"), 1)
            .into_iter()
            .filter(|page| !read(&page.with_file_name("Cargo.toml")).contains("publish = false")),
    );
    for page in published {
        assert_eq!(targets(&read(&page)), [""; 0], "{}", page.display());
    }
}

#[test]
fn the_book_lists_each_page_of_the_guide() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = targets(&read(&summary)).iter().map(|page| docs.join(page)).collect();
    let written = pages(&docs, 0).into_iter().filter(|page| *page != summary).collect();
    assert_eq!(listed, written);
}
