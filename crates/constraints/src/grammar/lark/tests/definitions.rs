//! Names, terminals, attributes and directives.

use super::super::super::form::{Lexing, Node, Terminal};
use super::super::read;
use super::{body, language, matches, refused, terminal};
use crate::Constraint;
use burn_dfa_common::Limits;

#[test]
fn names_of_rules_and_terminals() {
    language("?start: _a B-C _D\n!_a: \"a\"\nB-C: \"b\"\n_D: \"d\"", &["abd"], &["ab"]);
    language("start: expr\nexpr: \"(\" expr \")\" | \"x\"", &["((x))"], &["((x)"]);
    refused("start: Foo\nFoo: \"a\"", (1, 8), "mixes");
    refused("start: _", (1, 8), "no letter");
    refused("start: a", (1, 8), "`a` is not defined");
    refused("start: \"a\"\nb: C", (2, 4), "`C` is not defined");
    refused("start: A\nA: B", (2, 4), "`B` is not defined");
    refused("start: a\na: \"x\"\na: \"y\"", (3, 1), "already");
    refused("start: A\nA: \"x\"\n%import common.INT -> A", (3, 23), "already");
    refused("start \"a\"", (1, 7), "expected `:`");
    refused("start: \"a\"\nitem missing", (2, 6), "expected `:`");
    refused("root: \"a\"", (1, 1), "`start`");
    assert!(read("root: \"a\"", Some("root")).is_ok());
    assert_eq!(read("start: A\nA: \"a\"", Some("A")).unwrap_err().location(), Some((2, 1)));
}

#[test]
fn a_terminal_stays_one_unit() {
    let grammar = read("start: A \"x\" A /y/\nA: B B\nB: \"b\"", None).unwrap();
    let Node::Sequence(parts) = body(&grammar, "start") else { panic!() };
    let units: Vec<&Terminal> = parts
        .iter()
        .map(|part| match &part.0 {
            Node::Terminal(terminal) => &**terminal,
            other => panic!("{other:?}"),
        })
        .collect();
    let names: Vec<Option<&str>> = units.iter().map(|unit| unit.name.as_deref()).collect();
    assert_eq!(names, [Some("A"), None, Some("A"), None]);
    assert!(units.iter().all(|unit| !unit.lazy) && std::ptr::eq(units[0], units[2]));
    assert_eq!(grammar.rules.len(), 1);
    language("start: A \"x\" A /y/\nA: B B\nB: \"b\"", &["bbxbby"], &["bxbby"]);
    refused("start: A\nA: B\nB: \"x\" (A)?", (3, 9), "part of itself");
    refused("start: A\nA: b\nb: \"x\"", (2, 4), "is a rule");
    refused("start: A\nA: %json {}", (2, 4), "`%json` cannot");
    refused("start: A\nA: \"x\" %lark { start: \"a\" }", (2, 8), "`%lark` cannot");
    refused("start: A\nA: <[7]>", (2, 4), "a token cannot");
    refused("A[lazy]: \"a\"\nstart: A", (1, 2), "attributes");
}

#[test]
fn ignored_text_may_follow_any_terminal() {
    let grammar = read("start: \"a\" \"b\"\n%ignore \" \"\n%ignore /;+/", None).unwrap();
    assert!(matches(&grammar, "a ;; b ;"));
    let Lexing::Longest { ignored: Some(_), leading: false, once: false } = grammar.lexing else { panic!() };
    let Lexing::Longest { ignored: None, .. } = read("start: \"a\"", None).unwrap().lexing else { panic!() };
    refused("start: \"a\"\n%ignore B", (2, 9), "not defined");
    refused("start: \"a\"\n%ignore start", (2, 9), "is a rule");
}

#[test]
fn options_of_llguidance_are_read() {
    let text = "%llguidance {\"allow_initial_skip\": true, \"no_forcing\": true}\n%grammar_options {\"ignore_once\": true}\nstart: \"a\"";
    let Lexing::Longest { leading: true, once: true, .. } = read(text, None).unwrap().lexing else {
        panic!()
    };
    let text = "%llguidance { \"skip_repetition\": \"once\" }\n%ignore /[ ]{1,2}/\nstart: \"a\" \"b\"";
    language(text, &["ab", "a  b"], &["a   b"]);
    refused("%llguidance {\"no_forcing\": \"x\"}\nstart: \"a\"", (1, 30), "expected a boolean");
    refused("%llguidance {\"other\": 1}\nstart: \"a\"", (1, 20), "unknown field `other`");
    refused("%llguidance []\nstart: \"a\"", (1, 13), "expected an object");
    refused("%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"", (1, 13), "allow_invalid_utf8");
    refused("%llguidance {\"skip_repetition\": \"often\"}\nstart: \"a\"", (1, 13), "skip_repetition");
}

#[test]
fn common_terminals_are_imported() {
    language(
        "%import common.INT -> N\n%import common (WS, _EXP)\nstart: N WS _EXP",
        &["12 \te+3"],
        &["12e3", "a e3"],
    );
    for (name, accepted, rejected) in [
        ("NUMBER", &["1", "1.", ".5", "1e3", "1.2e-3"][..], &["", "-1", "e3", "."][..]),
        ("SIGNED_NUMBER", &["0", "-12", "+.5", "-1e3"], &["", "+", "x"]),
        ("FLOAT", &["1.", ".5", "1e3"], &["1", "e3"]),
        ("DECIMAL", &["1.", "1.5", ".25"], &["1", "."]),
        ("ESCAPED_STRING", &["\"\"", "\"a\\\"b\""], &["\"a\"b\"", "\"a\\\""]),
        ("C_COMMENT", &["/**/", "/* ** x **/"], &["/* open", "/*/", "/**/ */"]),
        ("NEWLINE", &["\n", "\r\n\n"], &["\r"]),
        ("CNAME", &["_a1"], &["1a", "a-b"]),
    ] {
        language(&format!("%import common.{name}\nstart: {name}"), accepted, rejected);
    }
    refused("%import common.NOPE\nstart: NOPE", (1, 16), "DIGIT, HEXDIGIT");
    refused("%import python.STRING\nstart: \"a\"", (1, 9), "`common`");
    refused("%import .other.A\nstart: \"a\"", (1, 9), "`common`");
    refused("%import common (INT\nstart: \"a\"", (2, 1), "expected `)`");
}

#[test]
fn lazy_rules_end_at_their_first_suffix() {
    let grammar = read(
        "start: a b c d\na[lazy]: /.*/ \"x\"\nb[suffix=\".\"]: T\nc[stop=/;+/]: T\nd[stop=\"\"]: T\nT: /[a-z]*/",
        None,
    );
    let grammar = grammar.unwrap();
    assert!(["a", "b", "c"].iter().all(|name| terminal(&grammar, name).lazy));
    assert_eq!(terminal(&grammar, "b").name.as_deref(), Some("b"));
    assert!(!terminal(&grammar, "d").lazy, "the end of the sequence ends it");
    assert!(matches(&grammar, "..xabc.d;;e") && !matches(&grammar, "..xabcd;e"));
    refused("start[suffix=\"\"]: \"a\"", (1, 14), "empty");
    refused("start[suffix=end]: \"a\"\nend: \"b\"", (1, 14), "a rule");
    refused("start[suffix=END]: \"a\"", (1, 14), "not defined");
    refused("start[suffix=7]: \"a\"", (1, 14), "expected a string");
    refused("start[stop=\"\", suffix=\"y\"]: \"a\"", (1, 16), "together");
    refused("start[stop=\"x\", suffix=\"y\"]: \"a\"", (1, 17), "together");
    refused("start[lazy]: \"a\" b\nb: \"b\"", (1, 18), "is a rule");
    refused("start[lazy, lazy]: \"a\"", (1, 13), "twice");
}

#[test]
fn a_stop_is_a_prefix_of_the_next_string() {
    let rules = "\na[stop=\"!\"]: /[a-z]*/";
    language(&format!("start: a \"!?\"{rules}"), &["x!?"], &["x!!?", "x?"]);
    language(&format!("start: a \"!\"{rules}"), &["x!"], &["x!!", "x"]);
    // Elsewhere it is part of the text, and a suffix is everywhere.
    language(&format!("start: a \"?\"{rules}"), &["x!?"], &["x?"]);
    language(&format!("start: a \"!?\"{rules}\n%ignore \" \""), &["x!!?", "x! !?"], &["x!?"]);
    language("start: a \"!?\"\na[suffix=\"!\"]: /[a-z]*/", &["x!!?"], &["x!?"]);
}

#[test]
fn max_chars_counts_the_end_of_a_rule() {
    let rule = |attributes: &str, body: &str| format!("start: \"<\" a \">\"\na[{attributes}]: {body}");
    for end in ["suffix=\"!\"", "stop=\"!\"", "suffix=/!/", "stop=/[!]/, lazy", "suffix=\"!\", capture"] {
        for attributes in [format!("max_chars=3, {end}"), format!("{end}, max_chars=3")] {
            automaton_is(
                &rule(&attributes, "/[a-zé]*/"),
                &["<!>", "<a!>", "<éz!>"],
                &["<>", "<a>", "<abc!>", "<abcd!>", "<a!!>"],
            );
            automaton_is(&rule(&attributes, "/(?s:.*)/"), &["<!>", "<é\n!>"], &["<éab!>", "<a!!>", "<abc>"]);
        }
    }
    // The end of the rule has several characters, or any number.
    automaton_is(
        &rule("suffix=\"éé\", max_chars=3", "/é*a?/"),
        &["<éé>", "<aéé>"],
        &["<ééé>", "<éaéé>", "<é>"],
    );
    automaton_is(&rule("suffix=/!+/, max_chars=2", "/a*/"), &["<!>", "<a!>"], &["<a!!>", "<!!>", "<aa!>"]);
    automaton_is(&rule("stop=\"\", max_chars=2", "/a*/"), &["<>", "<aa>"], &["<aaa>"]);
    automaton_is(&rule("lazy, max_chars=3", "/[a-z]*!/"), &["<!>", "<ab!>"], &["<abc!>", "<ab>"]);
    automaton_is(&rule("suffix=\"!\", max_chars=1", "/a*/"), &["<!>"], &["<a!>", "<>"]);
}

/// Checks texts that the automaton of a grammar accepts and texts it rejects.
fn automaton_is(text: &str, accepted: &[&str], rejected: &[&str]) {
    let constraint = Constraint::from_grammar(read(text, None).unwrap());
    let automaton = constraint.to_automaton(&Limits::default()).unwrap().unwrap();
    for accepted in accepted {
        assert!(automaton.matches(accepted.as_bytes()), "{text}\nrejects {accepted:?}");
    }
    for rejected in rejected {
        assert!(!automaton.matches(rejected.as_bytes()), "{text}\naccepts {rejected:?}");
    }
}

#[test]
fn attributes_bound_and_name_rules() {
    language("start: a \":\"\na[max_chars=2]: /\u{e9}*/", &["\u{e9}\u{e9}:", ":"], &["\u{e9}\u{e9}\u{e9}:"]);
    let grammar =
        read("start: a b\na[capture, temperature=0.5]: \"x\" \"y\"\nb[capture=\"b.b\"]: \"z\" \"z\"", None)
            .unwrap();
    assert!(!terminal(&grammar, "a").lazy, "a temperature makes a terminal of a rule");
    assert!(matches!(body(&grammar, "b"), Node::Sequence(_)));
    assert!(read("start[temperature=1e-1]: %json {}", None).is_ok());
    assert!(read("start[temperature=1]: %lark { start: \"a\" }", None).is_ok());
    assert!(read("start[\n stop=\"x\", // comment\n stop_capture=\"a\",]: \"a\"", None).is_ok());
    refused("start[temperature=1]: a\na: \"a\"", (1, 23), "is a rule");
    refused("start[temperature=-1]: \"a\"", (1, 19), "from 0 on");
    refused("start[temperature=1e999]: \"a\"", (1, 19), "from 0 on");
    refused("start[temperature=inf]: \"a\"", (1, 19), "from 0 on");
    refused("start[capture=\"\"]: \"a\"", (1, 15), "empty");
    refused("start[capture=\"a b\"]: \"a\"", (1, 15), "letters");
    refused("start[stop_capture=\"a\"]: \"a\"", (1, 7), "needs");
    refused("start[max_tokens=0]: \"a\"", (1, 7), "from 1 to");
    refused("start[max_tokens=3,max_tokens=4]: \"a\"", (1, 20), "given twice");
    assert!(read("start[max_tokens=3]: \"a\"", None).is_ok());
    refused("start[nope=3]: \"a\"", (1, 7), "no attribute `nope`");
    refused("start[lazy: \"a\"", (1, 11), "expected `]`");
}

#[test]
fn unsupported_definitions_are_rejected() {
    refused("start: \"a\"\n%declare B", (2, 1), "%declare");
    refused("%what\nstart: \"a\"", (1, 1), "%what");
    refused("start: \"a\" %ignore \"b\"", (1, 12), "does not belong");
}

#[test]
fn hostile_grammars_are_rejected_or_read_in_time() {
    let deep =
        |open: &str, close: &str| format!("start: {}\"a\"{}", open.repeat(100_000), close.repeat(100_000));
    for text in [deep("(", ")"), deep("[", "]"), deep("~", ""), deep("%lark { start: ", "}")] {
        assert!(read(&text, None).unwrap_err().to_string().contains("levels"));
    }
    // A terminal within a terminal is shared, not copied.
    let doubled: String = (0..60).map(|n| format!("A{n}: A{} A{}\n", n + 1, n + 1)).collect();
    assert!(read(&format!("start: A0\n{doubled}A60: \"a\""), None).is_ok());
    for order in [false, true] {
        let mut chain: Vec<String> = (0..10_000).map(|n| format!("A{n}: A{}\n", n + 1)).collect();
        if order {
            chain.reverse();
        }
        let error = read(&format!("start: \"a\"\n{}A10000: \"a\"", chain.concat()), None).unwrap_err();
        assert!(error.to_string().contains("levels"), "{error}");
    }
    let long: String = (0..50_000).map(|n| format!("R{n}: \"a\" | /b/\n")).collect();
    assert!(read(&format!("start: \"a\"\n{long}"), None).is_ok());
    let classes: String = (0..20_000).map(|n| format!("R{n}: /\\w{n}/\n")).collect();
    assert!(read(&format!("start: \"a\"\n{classes}"), None).unwrap_err().to_string().contains("classes"));
    for end in 0..40 {
        let text = "start[stop=\"x\"]: (\"a\\u0041\" | /b/i){1,2} <[1-2]>";
        let _ = read(&text[..end.min(text.len())], None);
    }
}
