//! Features of Lark that llguidance lacks: priorities, redefinitions, joined lines.

use super::super::read;
use super::{checked, language, refused};

#[test]
fn priorities_of_rules_choose_among_trees() {
    language("start: a | b\na.2: \"A\"+\n!b.-1: \"A\"+ \"B\"?\n?c.+3: \"c\"", &["AA", "AAB"], &["B"]);
    language("start: a{\"x\"}\na{p}.2: p", &["x"], &[]);
    refused("start.: \"a\"", (1, 7), "a priority is a number");
    refused("start.x: \"a\"", (1, 7), "a priority is a number");
}

#[test]
fn priorities_of_terminals_decide_nothing() {
    language("start: A B | AB\nA: \"a\"\nB: \"b\"\nAB.3: \"ab\"", &["ab"], &["a"]);
    assert!(checked("start: (IF | N)*\nIF.2: \"if\"\nN.-1: /[0-9]+/\n%ignore \" \"").is_ok());
    // Patterns with equal texts, and terminals within terminals, cannot.
    assert!(checked("start: A | B\nA.2: /[a-z]+/\nB.2: \"if\"").is_ok());
    assert!(checked("start: A\nA: B+\nB.2: /[a-z]/").is_ok());
    refused("start: IF | NAME\nIF.2: \"if\"\nNAME: /[a-z]+/", (2, 1), "decides what \"if\" is");
    refused("start: IF | /i+f/\nIF.2: \"if\"", (2, 1), "decides");
    refused("start: IF | \"ifx\"\nIF.2: \"if\"", (2, 1), "decides what \"ifx\"");
    refused("start: A \"y\"\nA.-1: /x+/\n%ignore /x/", (1, 1), "terminals without one");
    refused("start: A \"y\"\nA: /x+/\nWS.5: /x/\n%ignore WS", (3, 1), "decides");
    let levels: String = (0..40).map(|n| format!("A{n}.{n}: \"{n}.\"\n")).collect();
    let start: Vec<String> = (0..40).map(|n| format!("A{n}")).collect();
    let error = read(&format!("start: {}\n{levels}", start.join(" ")), None).unwrap_err();
    assert!(error.to_string().contains("different priorities"), "{error}");
}

#[test]
fn definitions_are_extended_and_overridden() {
    language("start: a\na: \"x\" | \"y\"\n%extend a: \"z\"\n%extend a: \"u\" a", &["x", "z", "uuy"], &["u"]);
    language("start: A\nA: \"x\"\n%extend A: \"y\"", &["x", "y"], &["xy"]);
    language("start: a\na: \"x\"\n%override a: \"y\"", &["y"], &["x"]);
    language("start: DIGIT+\n%import common.DIGIT\n%extend DIGIT: \"a\"..\"f\"", &["1f"], &["g"]);
    language("start: a{\"x\"}\na{p}: p\n%extend a{p}: p p", &["x", "xx"], &["xxx"]);
    refused("start: \"a\"\n%extend b: \"b\"", (2, 9), "not defined before");
    refused("%override start: \"a\"", (1, 11), "not defined before");
    refused("start: a{\"x\"}\na{p}: p\n%extend a{q}: q", (3, 9), "other parameters");
    refused("start[lazy]: \"a\"\n%extend start: \"b\"", (2, 9), "attributes");
    refused("start: \"a\"\nstart: \"b\"", (2, 1), "already");
    let many = "%extend a: \"x\"\n".repeat(50_000);
    assert!(read(&format!("start: a\na: \"y\"\n{many}"), None).is_ok());
}

#[test]
fn a_backslash_joins_lines() {
    language("start: \"a\" \\\n  \"b\" \\  \n\\\r\n | \"c\"", &["ab", "c"], &["a"]);
    refused("start: \"a\" \\ \"b\"", (1, 12), "found `\\\\`");
    refused("start: \"a\" \\", (1, 12), "found `\\\\`");
}
