//! Small grammars, compiled.

use super::{Expression, Grammar};
use crate::{Constraint, Error, Limits};
use burn_dfa_automata::ByteAutomaton;
use burn_dfa_common::ErrorKind;

/// The grammar of rules such as `S = ( S* ) | x`: capital letters are rules, the first one is the
/// start rule, and every other sign except `| * + ?` is a text.
fn grammar(rules: &str) -> Grammar {
    let mut builder = Grammar::builder();
    for rule in rules.lines().map(str::trim).filter(|rule| !rule.is_empty()) {
        let (name, body) = rule.split_once('=').unwrap();
        let branches = body.split('|').map(|branch| {
            let mut parts: Vec<Expression> = Vec::new();
            for c in branch.chars().filter(|c| *c != ' ') {
                let part = match c {
                    '*' => parts.pop().unwrap().repeat(0, None),
                    '+' => parts.pop().unwrap().repeat(1, None),
                    '?' => parts.pop().unwrap().repeat(0, Some(1)),
                    c if c.is_ascii_uppercase() => builder.rule(&c.to_string()),
                    c => Expression::literal(&c.to_string()),
                };
                parts.push(part);
            }
            Expression::sequence(parts)
        });
        let body = Expression::choice(branches.collect::<Vec<_>>());
        builder.define(name.trim(), body).unwrap();
    }
    let start = rules.trim().split('=').next().unwrap().trim();
    builder.finish(start).unwrap()
}

fn automaton(rules: &str) -> Result<ByteAutomaton, Error> {
    Ok(Constraint::from_grammar(grammar(rules)).to_automaton(&Limits::default())?.unwrap())
}

/// Filters `candidates`, separated by blanks, by the grammar; `.` is the empty text.
fn texts<'t>(rules: &str, candidates: &'t str) -> Vec<&'t str> {
    let automaton = automaton(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    let is_text = |text: &&str| automaton.matches(if *text == "." { b"" } else { text.as_bytes() });
    candidates.split(' ').filter(is_text).collect()
}

fn is_finite(rules: &str) -> bool {
    matches!(automaton(rules).unwrap(), ByteAutomaton::Finite(_))
}

#[test]
fn recursion_at_the_ends_is_a_loop() {
    assert_eq!(texts("S = a S | b", "b ab aab a ba ."), ["b", "ab", "aab"]);
    assert_eq!(texts("S = S a | b", "b ba baa a ab ."), ["b", "ba", "baa"]);
    assert_eq!(texts("S = S , S | n", "n n,n n,n,n , n, ,n"), ["n", "n,n", "n,n,n"]);
    assert_eq!(texts("S = A x | y \n A = S z | w", "y wx yzx wxzx yz w"), ["y", "wx", "yzx", "wxzx"]);
    assert_eq!(texts("S = N S | d \n N = n?", "d nd nnd dn n"), ["d", "nd", "nnd"]);
    let shared = "S = A A S | d \n A = B B \n B = n?";
    assert_eq!(texts(shared, "d nd nnnnnd dn n"), ["d", "nd", "nnnnnd"]);
    for rules in ["S = a S | b", "S = S a | b", "S = S , S | n", "S = A x | y \n A = S z | w"] {
        assert!(is_finite(rules), "{rules}");
    }
    assert!(!is_finite("S = ( S ) | x"));
}

#[test]
fn embedded_recursion_is_called() {
    assert_eq!(texts("S = ( S ) | x", "x (x) ((x)) (x ((x) x) ()"), ["x", "(x)", "((x))"]);
    assert_eq!(texts("S = ( S* )", "() (()) (()()) ((())()) (() ())"), ["()", "(())", "(()())", "((())())"]);
    assert_eq!(texts("S = a S b |", ". ab aabb aab abb ba"), [".", "ab", "aabb"]);
    assert_eq!(texts("S = S S | ( S ) | ", ". () ()() (()()) )( (()"), [".", "()", "()()", "(()())"]);
    let arithmetic = "E = E , T | T \n T = T ^ F | F \n F = ( E ) | n | - F";
    assert_eq!(
        texts(arithmetic, "n n,n^n (n) -(n,n)^n -(-n) (n ,n n) ()"),
        ["n", "n,n^n", "(n)", "-(n,n)^n", "-(-n)"]
    );
}

#[test]
fn frames_remember_the_caller() {
    let rules = "S = A 1 | B 2 \n A = ( A ) | a \n B = ( B ) | b";
    assert_eq!(texts(rules, "a1 b2 (a)1 (b)2 ((b))2 (b)1 (a)2 a2"), ["a1", "b2", "(a)1", "(b)2", "((b))2"]);
}

#[test]
fn ambiguity_that_ends_is_followed() {
    // Until the last sign it is open whether the parenthesis was called.
    let rules = "S = C | ( x ) . | ( x ) ! \n C = ( C ) | x";
    assert_eq!(texts(rules, "x (x) (x). (x)! ((x)) ((x))."), ["x", "(x)", "(x).", "(x)!", "((x))"]);
}

#[test]
fn the_next_bytes_decide_which_block_ended() {
    // A block ends with `e`, unless `e` begins a name, or is one.
    let rules = "S = L \n L = L T ; | \n T = b . L e | N = 1 \n N = N C | C \n C = b | e";
    assert_eq!(
        texts(rules, ". b.e; b.e=1;e; b.b.e;e; b.ee=1;e; b.e b.e;e; b.e=1;"),
        [".", "b.e;", "b.e=1;e;", "b.b.e;e;", "b.ee=1;e;"]
    );
    // The outermost part ends with the text, inner parts do not.
    assert_eq!(
        texts("S = ( S* ) | x+", "() (()) x xx (xx) (x(x)) ( (x"),
        ["()", "(())", "x", "xx", "(xx)", "(x(x))"]
    );
}

#[test]
fn as_many_stacks_are_followed_as_are_allowed() {
    let of = |stacks| {
        let limits = Limits::default().with_stacks(stacks);
        Constraint::from_grammar(grammar("S = C | ( x ) . \n C = ( C ) | x")).to_automaton(&limits)
    };
    let error = of(1).unwrap_err();
    assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("more than 1 ways"), "{error}");
    assert!(of(2).is_ok());
}

#[test]
fn unbounded_ambiguity_is_rejected() {
    let error = automaton("P = a P a | b P b | c?").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Grammar, "{error}");
    assert!(error.to_string().contains("`P`"), "{error}");
}
