//! The pictures of the tool can be read on a page.

use std::fs;

use super::{fails, file, succeeds, tool};

/// The width of a page in pixels.
const PAGE: f64 = 900.0;
/// The least font size in pixels.
const LEAST: f64 = 10.0;

/// The numbers in the attributes of this name.
fn numbers(text: &str, attribute: &str) -> Vec<f64> {
    let before = format!(" {attribute}=\"");
    text.split(&before).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

/// Checks that every text is large enough and within the picture, and that every link has a target.
#[track_caller]
fn assert_readable(svg: &str, what: &str) {
    let view = svg.split("viewBox=\"").nth(1).unwrap().split('"').next().unwrap();
    let view: Vec<f64> = view.split(' ').map(|number| number.parse().unwrap()).collect();
    let (left, width) = (view[0], view[2]);
    let sizes = numbers(svg, "font-size");
    assert!(!sizes.is_empty(), "{what}");
    for size in sizes {
        let shown = size * (PAGE / width).min(1.0);
        assert!(shown >= LEAST, "{what}: {shown} pixels, in a picture {width} wide");
    }
    for text in svg.split("<text").skip(1) {
        for x in numbers(text.split('>').next().unwrap(), "x") {
            assert!((left..=left + width).contains(&x), "{what}: a text at {x}");
        }
    }
    for link in svg.split("<a href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(svg.contains(&format!("id=\"{target}\"")), "{what}: {target} is missing");
    }
}

#[test]
fn automata_can_be_read_on_a_page() {
    let Some(tool) = tool() else { return };
    let path = file("readable.svg", "");
    let path = path.to_str().unwrap();
    let tree = file("readable-tree.json", r##"{"type": "array", "items": {"$ref": "#"}}"##);
    let cases: [&[&str]; 8] = [
        &["--regex", "(cat|dog)s?"],
        &["--regex", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"],
        &["--regex", "(x[acegikmoqsuwyACEGIKMOQSUWY]+){9}"],
        &["--regex", "([bdfhjlnprtvxz]*|[acegikmoqsuwy]+z)+"],
        &["--regex", "a{150}"],
        &["--schema", tree.to_str().unwrap()],
        &["--grammar", "examples/grammars/json.gbnf"],
        // 1,002 states.
        &["--schema", "models/tiny/schemas/order.json"],
    ];
    for case in cases {
        succeeds(&mut tool(&[&["draw", "--max-nodes", "2000", "-o", path], case].concat()));
        assert_readable(&fs::read_to_string(path).unwrap(), &case.join(" "));
    }
}

#[test]
fn long_automata_have_several_bands() {
    let Some(tool) = tool() else { return };
    let path = file("bands.svg", "");
    let path = path.to_str().unwrap();
    let draw = |regex: &str| {
        succeeds(&mut tool(&["draw", "--regex", regex, "-o", path]));
        fs::read_to_string(path).unwrap()
    };
    let short = draw("a{5}");
    assert!(!short.contains("<a href") && !short.contains(">from "), "{short}");
    let long = draw("a{50}");
    let bands = long.matches("<a href=\"#state-").count();
    // A chain leaves each band but the last one by one edge.
    assert!((3..10).contains(&bands) && long.matches(">from ").count() == 2 * bands, "{long}");
    assert_eq!(long.matches("<circle ").count(), 51 + 1 + bands, "{long}");
    // A long label is shortened, and its title has the full text.
    let class = draw("[acegikmoqsuwyACEGIKMOQSUWY]");
    let full = "[ACEGIKMOQSUWYacegikmoqsuwy]";
    assert!(class.contains(&format!("<title>{full}</title>[ACEG")) && class.contains("…</text>"), "{class}");
}

#[test]
fn tables_can_be_read_on_a_page() {
    let Some(tool) = tool() else { return };
    let path = file("readable-table.svg", "");
    let path = path.to_str().unwrap();
    let words =
        "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar";
    let choices: Vec<&str> = words.split(' ').flat_map(|word| ["--choice", word]).collect();
    for case in [&["--regex", "[0-9]{3}"][..], &choices[..]] {
        let args = ["draw", "--table", "--tokenizer", "models/tiny", "-o", path];
        succeeds(&mut tool(&[&args, case].concat()));
        assert_readable(&fs::read_to_string(path).unwrap(), &case.join(" "));
    }
    // Two blocks: the row of the start is labeled twice.
    assert_eq!(fs::read_to_string(path).unwrap().matches(">→ ").count(), 2);
}

#[test]
fn rules_can_be_read_on_a_page() {
    let Some(tool) = tool() else { return };
    let path = file("readable-rules.svg", "");
    let path = path.to_str().unwrap();
    let nested = (0..20).fold("\"a\"".to_owned(), |inner, _| {
        format!("(\"a text to read\" {inner} [0-9] another | [a-z] | [A-Z]{{2}}){{0,3}}")
    });
    let nested = file("nested.gbnf", &format!("root ::= {nested}\nanother ::= \"b\"\n"));
    let grammars = ["arithmetic.gbnf", "c-like.gbnf", "sql-select.ebnf", "apply-patch.lark"];
    let grammars = grammars.map(|name| format!("examples/grammars/{name}"));
    for grammar in grammars.iter().map(String::as_str).chain([nested.to_str().unwrap()]) {
        succeeds(&mut tool(&["draw", "--rules", "--grammar", grammar, "-o", path]));
        assert_readable(&fs::read_to_string(path).unwrap(), grammar);
    }
}

#[test]
fn stacks_are_drawn_and_can_be_read_on_a_page() {
    let Some(tool) = tool() else { return };
    let path = file("stack.svg", "");
    let path = path.to_str().unwrap();
    let tree = file("stack-tree.json", r##"{"type": "array", "items": {"$ref": "#"}}"##);
    let tree = tree.to_str().unwrap();
    let draw = |text: &str| {
        let said = succeeds(&mut tool(&["draw", "--schema", tree, "--stack", text, "-o", path]));
        (said, fs::read_to_string(path).unwrap())
    };
    let (said, svg) = draw("[[], []]");
    assert!(said.ends_with(": 7 steps, 2 frames\n"), "{said}");
    // The start has no frame, and the steps `[`, `[`, `], `, `[`, `]` and `]` have 1, 2, 1, 2, 1
    // and 0.
    assert_eq!(svg.matches("<rect ").count(), 1 + 7, "{svg}");
    assert!(svg.contains(">],␣<") && svg.matches("◎").count() == 1, "{svg}");
    let (said, svg) = draw(&("[".repeat(40) + &"]".repeat(40)));
    assert!(said.ends_with(": 81 steps, 40 frames\n"), "{said}");
    assert_readable(&svg, "a deep stack");
    let stack = |more: &[&str]| tool(&[&["draw", "--stack", "[a"], more].concat());
    fails(&mut stack(&["--schema", tree, "-o", path]), &["at byte 1", "'a'"]);
    fails(&mut stack(&["--regex", "a", "-o", path]), &["no stack"]);
    fails(&mut stack(&["--schema", tree, "-o", "a.dot"]), &[".svg"]);
    fails(&mut stack(&["--schema", tree, "--table", "-o", path]), &["cannot be used with"]);
}
