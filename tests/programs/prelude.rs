//! The prelude stays small enough to learn.

/// The maximum number of public items of `burn_dfa::prelude`.
const MAX_ITEMS: usize = 25;

/// The names that a module of `pub use` items exports.
fn exported(source: &str) -> Vec<String> {
    let lines = source.lines().map(str::trim);
    let code: Vec<&str> = lines.filter(|line| !line.starts_with("//") && !line.starts_with('#')).collect();
    let mut names = Vec::new();
    for item in code.join(" ").split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let path = item.strip_prefix("pub use ").unwrap_or_else(|| panic!("{item:?} is no `pub use`"));
        // The path before a group ends with `::`.
        let parts = path.split(['{', '}', ',']).map(str::trim);
        names.extend(parts.filter(|part| !part.is_empty() && !part.ends_with("::")).map(String::from));
    }
    names
}

#[test]
fn the_prelude_has_at_most_25_items() {
    let sample = "//! a;\npub use a::B;\n#[cfg(c)]\npub use d::{\n    E, f,\n    g::{H, I},\n};\n";
    assert_eq!(exported(sample), ["a::B", "E", "f", "H", "I"]);

    let names = exported(include_str!("../../src/prelude.rs"));
    assert!(names.iter().any(|name| name == "generate"), "{names:?}");
    assert!(names.iter().all(|name| !name.ends_with('*')), "a glob has no number of items: {names:?}");
    assert!(names.len() <= MAX_ITEMS, "{} items: {names:?}", names.len());
}
