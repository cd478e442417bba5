//! Templates and rules with a parameter.

use super::super::read;
use super::{body, language, refused};
use crate::grammar::form::Node;
use burn_dfa_common::ErrorKind;

#[test]
fn templates_take_rules_and_texts() {
    let list = "\nlist{item, separator}: item (separator item)*";
    language(
        &format!("start: \"[\" list{{N, \",\"}} \"]\"\nN: /[0-9]+/{list}"),
        &["[1,22,3]", "[1]"],
        &["[]", "[1,]"],
    );
    language("start: a{\"C\"}\na{t}: \"A\" t\n | \"B\" t -> b", &["AC", "BC"], &["A", "C"]);
    // A parameter may be a template, and an argument may have arguments.
    language("start: a{b}\na{t}: t{\"x\"}\nb{y}: y y", &["xx"], &["x"]);
    language("start: two{two{\"x\"}}\ntwo{y}: y y", &["xxxx"], &["xx"]);
    language(
        "start: a{\"x\"i, /y+/, \"a\"..\"c\", B}\na{p, q, r, s}: p q r s\nB: \"!\"",
        &["Xyyb!"],
        &["Xyd!"],
    );
    language("start: a{\"\"} \"x\"\na{p}: p p", &["x"], &["", "xx"]);
    // Recursion returns to the same rule, even through equal strings written twice.
    let grammar =
        read("start: a{\"x\"}\na{p}: \"(\" a{p} \")\" | b{p, \"x\"}\nb{p, q}: p | a{\"x\"}", None).unwrap();
    assert_eq!(grammar.rule_names().collect::<Vec<_>>(), ["start", "a{\"x\"}", "b{\"x\", \"x\"}"]);
    // A count is no argument.
    language("start: a{2} a {1,2}\na: \"x\"", &["xxx", "xxxx"], &["xx"]);
    // Attributes and stops see the values of parameters.
    language("start: a{T}\na{t}[suffix=\".\"]: t t\nT: /[a-z]/", &["ab."], &["ab", "a."]);
    language("start: a{b, \"!?\"}\na{r, s}: r s\nb[stop=\"!\"]: /[a-z]*/", &["x!?"], &["x!!?", "x?"]);
    language("start: a{T}\na{t}: ~t\nT: \"x\"", &["y", ""], &["x"]);
}

#[test]
fn invalid_templates_are_rejected() {
    refused("start: a\na{x}: x", (1, 8), "is a template");
    refused("start: a{\"b\", \"c\"}\na{x}: x", (1, 8), "takes 1 arguments, not 2");
    refused("start: a{\"b\"}\na: \"x\"", (1, 8), "no template");
    refused("start: a{\"b\"}\na{x}: x{\"c\"}", (2, 7), "takes no arguments");
    refused("start: a{b}\na{x}: x", (2, 7), "`b` is not defined");
    refused("start: \"a\"\na{x}: b{x}", (2, 7), "`b` is not defined");
    refused("start: a{(\"b\" | \"c\")}\na{x}: x", (1, 10), "an argument is");
    refused("start: a{%json {}}\na{x}: x", (1, 10), "an argument is");
    refused("start{x}: x", (1, 1), "has parameters");
    refused("start: A\nA{x}: x", (2, 5), "no template");
    refused("start: A\nA: a{\"b\"}\na{x}: x", (2, 4), "no rules within");
    refused("start: a{\"b\"}\na{X}: X", (2, 3), "small letters");
    refused("start: a{\"b\"}\na{x, x}: x", (2, 6), "twice");
    refused("start: a{\"b\"}\na{start}: start", (2, 1), "name of a rule");
    refused("start: a{b}\na{x}: ~x\nb: \"b\"", (2, 8), "is a rule");
    refused("start: a{\"b\"\na{x}: x", (2, 1), "closes `{`");
    refused("start: \"a\"\na{x}::_: x", (2, 5), "beside");
}

#[test]
fn rules_with_a_parameter() {
    let permutations = "start: p::0x0 \"Y\"
        p::_ : \"X\" %if is_ones([0:3])
            | a p::set_bit(0) %if bit_clear(0)
            | \"b\" p::set_bit(1) -> b %if bit_clear(1)
            | \"c\" p::set_bit(2) %if bit_clear(2)
        a: \"a\"";
    language(permutations, &["abcXY", "cbaXY", "bacXY"], &["XY", "abXY", "aaXY", "abcX"]);
    let bounded = "start: l::0\nl::_: (\"a\" %if true | \"A\") l::incr([0:2]) %if lt([0:2], 3)\n | q::_\nq::_: \"!\" %if le(_, 3)";
    language(bounded, &["!", "aAa!"], &["aaaa!", ""]);
    language(
        "start: p::1 | p :: 2\np :: _[capture]: \"x\" %if bit_set(0)\n | \"y\" %if bit_set(1)",
        &["x", "y"],
        &["xy"],
    );
    let grammar = read("start: p::7\np::_: p::_ \"x\" | \"\" %if true", None).unwrap();
    assert_eq!(grammar.rule_names().collect::<Vec<_>>(), ["start", "p::7"]);
    // If no condition holds, no alternative is left.
    let grammar = read("start: \"a\" | p::0\np::_: \"b\" %if bit_set(0)", None).unwrap();
    assert!(matches!(body(&grammar, "p::0"), Node::Choice(none) if none.is_empty()));
    language("start: \"a\" %if true", &["a"], &[]);
}

#[test]
fn invalid_parametric_rules_are_rejected() {
    refused("start: p\np::_: p::_", (1, 8), "is parametric");
    refused("start: p::0\np: \"a\"", (1, 8), "is not parametric");
    refused("start: p::_\np::_: p::_", (1, 1), "needs a parameter");
    refused("start: \"a\"\nb: \"a\" %if bit_set(0)", (2, 1), "needs a parameter");
    refused("start: p::0\np::_: \"a\" %if true", (2, 1), "nothing in it depends");
    refused("start::_: start::_", (1, 1), "has parameters");
    refused("start::0: \"a\"", (1, 8), "expected `_`");
    refused("start: p::0\np::_[lazy]: \"a\" %if bit_set(0)", (2, 1), "as a whole");
    refused("start: P\nP: q::0\nq::_: q::_", (2, 4), "no rules within");
    refused("start: P\nP::_: \"a\"", (2, 5), "no parameter");
    refused("start: a\na[lazy]: \"x\" %if true", (2, 10), "`%if` chooses");
    refused("start: p::0\np::_: \"a\" %if eq([0:65], 0)", (2, 21), "greater than 64");
    refused("start: p::0\np::_: \"a\" %if odd(_)", (2, 15), "no condition `odd`");
    refused("start: p::double(_)\np::_: p::_", (1, 11), "no function `double`");
}

#[test]
fn hostile_instances_are_rejected_in_time() {
    let refused = |text: &str, words: &str| {
        let error = read(text, None).unwrap_err();
        assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains(words), "{error}");
    };
    refused("start: a{\"x\"}\na{p}: a{b{p}}\nb{p}: p p", "more than 8192 rules");
    refused("start: p::0\np::_: p::incr(_)", "more than 8192 rules");
    refused("start: a{\"x\"}\na{p}: a{b{p, p}}\nb{p, q}: p q", "more than 8192 rules");
    let large = "\"x\" ".repeat(100_000);
    refused(&format!("start: p::0\np::_: {large} p::incr(_)"), "too large");
    let long = "a".repeat(1 << 20);
    refused(&format!("start: p::0\np::_: {long} p::incr(_)\n{long}: \"x\""), "too large");
    refused(&format!("start: {}\"x\"{}\na{{p}}: p", "a{".repeat(100_000), "}".repeat(100_000)), "levels");
    let many: String = (0..1000).map(|n| format!("p{n}, ").replace(char::is_numeric, "x")).collect();
    assert!(read(&format!("start: \"x\"\na{{{many}}}: \"x\""), None).is_err());
}
