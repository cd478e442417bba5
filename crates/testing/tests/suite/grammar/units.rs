//! Aliases of rules, and empty parts before and after recursion.

use burn_dfa_tokens::{Constraint, Error, automaton::ByteAutomaton, constraint::Syntax};
use rand::{SeedableRng, rngs::StdRng};

use super::earley::Recognizer;
use super::form::{Grammar, Node, all, one, rule, text};
use super::{Pair, compare, limits, random};

/// The letters of these grammars.
const LETTERS: [char; 3] = ['a', 'b', 'c'];

/// The minimum number of automata from 400 grammars with recursion at both ends; it was 274. Most
/// of the others refer to themselves between other parts, without brackets.
const MIXED: usize = 270;

fn automaton(grammar: &Grammar) -> Result<ByteAutomaton, Error> {
    let constraint = Constraint::grammar(Syntax::Gbnf, &grammar.to_string())?;
    Ok(constraint.to_automaton(&limits())?.expect("text"))
}

/// Checks that the automaton of a grammar is finite and has the grammar's texts.
fn check(rules: Vec<Node>) {
    let grammar = Grammar { rules };
    let automaton = automaton(&grammar).unwrap_or_else(|error| panic!("{error}\n{grammar}"));
    assert!(matches!(automaton, ByteAutomaton::Finite(_)), "{grammar}");
    let recognizer = Recognizer::new(&grammar);
    Pair::new(&grammar, &automaton, &recognizer).read_all(b"abcx", 8, &mut 3_000);
}

fn empty() -> Node {
    all([])
}

/// Parts that are equivalent to a rule: the rule alone, the rule next to empty or optional parts,
/// and aliases. New rules are numbered from `free`.
fn disguises(number: usize, free: usize) -> Vec<(Node, Vec<Node>)> {
    let this = || rule(number);
    let other = || rule(free);
    vec![
        (this(), vec![]),
        (all([empty(), this()]), vec![]),
        (all([this(), empty()]), vec![]),
        (one([this(), this()]), vec![]),
        (this().repeat(1, Some(1)), vec![]),
        (all([other(), this()]), vec![empty()]),
        (all([this(), other()]), vec![empty()]),
        (all([other(), this(), other()]), vec![all([rule(free + 1), empty()]), empty()]),
        (other(), vec![this()]),
        (other(), vec![rule(free + 1), this()]),
        (other(), vec![one([rule(free + 1), this()]), one([other(), this()])]),
        (one([this(), other()]), vec![other()]),
    ]
}

#[test]
fn rules_that_are_each_other_are_one() {
    let (a, b) = (|| text("a"), || text("b"));
    for (root, extra) in disguises(0, 2) {
        // root ::= v, v ::= "b" | "a" v | root
        let with = |body: Node| [vec![rule(1), body], extra.clone()].concat();
        check(with(one([b(), all([a(), rule(1)]), root.clone()])));
        check(with(one([b(), all([a(), root.clone()]), root.clone()])));
        check(with(one([root.clone(), all([rule(1), a()]), b()])));
        check(with(one([b(), all([a(), rule(1)]), all([rule(1), text("c")]), root.clone()])));
        // root ::= t, t ::= "x" | root t
        check(with(one([b(), all([root.clone(), rule(1)])])));
        check(with(one([b(), all([rule(1), root.clone()])])));
        check(with(one([b(), all([root.clone(), a(), rule(1)])])));
        // The rule has other alternatives.
        let beside = |body: Node| [vec![one([rule(1), text("c")]), body], extra.clone()].concat();
        check(beside(one([b(), all([a(), rule(1)]), root.clone()])));
        check(beside(one([b(), all([rule(1), a()]), root.clone()])));
        check(beside(one([empty(), all([a(), root.clone()]), root.clone()])));
    }
}

#[test]
fn rules_that_recur_only_through_others_are_loops() {
    let (a, b, c) = (|| text("a"), || text("b"), || text("c"));
    for (root, extra) in disguises(0, 2) {
        let with = |start: Node, body: Node| [vec![start, body], extra.clone()].concat();
        // root ::= t | "y", t ::= "x" | root t
        check(with(one([rule(1), c()]), one([a(), all([root.clone(), rule(1)])])));
        check(with(one([rule(1), c()]), one([a(), all([rule(1), root.clone()])])));
        check(with(one([rule(1), c()]), one([a(), all([root.clone(), b(), rule(1)])])));
        check(with(one([all([rule(1), c()]), b()]), one([a(), all([root.clone(), rule(1)])])));
        check(with(one([rule(1).optional(), c()]), one([a(), all([root.clone(), rule(1)])])));
        check(with(all([rule(1), rule(1)]), one([a(), all([root.clone(), rule(1)])])));
    }
    // A cycle of three rules.
    check(vec![one([rule(1), c()]), one([all([rule(2), rule(1)]), a()]), one([rule(0), b()])]);
    check(vec![one([rule(1), c()]), one([all([rule(2), rule(0)]), a()]), one([rule(0), b()])]);
}

#[test]
fn recursion_at_the_ends_through_others_is_finite() {
    for seed in 0..400 {
        let grammar = random::through_others(&mut StdRng::seed_from_u64(seed));
        let automaton = automaton(&grammar).unwrap_or_else(|error| panic!("{error}\n{grammar}"));
        assert!(matches!(automaton, ByteAutomaton::Finite(_)), "{grammar}");
    }
    let counts = compare(400, &LETTERS, random::through_others);
    assert_eq!((counts.compiled, counts.stacks), (400, 0), "{counts:?}");
}

#[test]
fn recursion_at_both_ends_is_finite_or_a_stack() {
    let counts = compare(400, &LETTERS, random::ends);
    assert!(counts.compiled >= MIXED && counts.texts >= counts.compiled, "{counts:?}");
}

#[test]
fn optional_parts_next_to_recursion_are_loops() {
    let (a, b, c) = (|| text("a"), || text("b"), || text("c"));
    let maybe = |node: Node| node.optional();
    // a ::= b a | "x", b ::= ""
    check(vec![one([all([rule(1), rule(0)]), c()]), empty()]);
    check(vec![one([all([rule(1), rule(0)]), c()]), one([empty(), a()])]);
    check(vec![one([all([rule(0), rule(1)]), c()]), a().repeat(0, None)]);
    check(vec![one([all([rule(1), rule(0), rule(2)]), c()]), maybe(a()), maybe(b())]);
    check(vec![one([all([maybe(a()), maybe(rule(0)), maybe(b())]), c()])]);
    check(vec![one([all([b(), b(), rule(1)]), rule(1), rule(0)]), maybe(rule(0))]);
    check(vec![rule(1), one([rule(0), one([c(), a()]), maybe(all([b(), rule(1)]))])]);
    check(vec![all([a(), rule(1)]), one([empty(), all([b(), rule(1), empty()])])]);
    // A rule without a text acts as the empty set.
    check(vec![one([all([a(), rule(0)]), all([rule(0), rule(1), b()]), c()]), all([a(), rule(1)])]);
}

#[test]
fn a_rule_that_ends_in_a_loop_stays_in_it() {
    let (a, b, c) = (|| text("a"), || text("b"), || text("c"));
    let inner = || vec![b(), all([c(), rule(0)])];
    let with_empty = || one([vec![empty()], inner()].concat());
    for body in [one(inner()), with_empty(), one(inner()).optional(), one(inner()).repeat(0, None)] {
        for (min, max) in [(0, None), (1, None), (0, Some(1))] {
            check(vec![one([all([a(), body.clone().repeat(min, max)]), a()])]);
        }
    }
    check(vec![all([a(), all([b().optional(), all([c(), rule(0)]).optional()]).repeat(0, None)])]);
    check(vec![all([a(), rule(1)]), one([b(), all([c(), rule(0)])]).repeat(0, None)]);
    check(vec![all([a(), rule(1).repeat(0, None)]), one([empty(), b(), all([c(), rule(0)])])]);
}

#[test]
fn linear_grammars_are_finite() {
    let mut compiled = 0;
    for seed in 0..400 {
        let grammar = random::linear(&mut StdRng::seed_from_u64(seed));
        let automaton = automaton(&grammar).unwrap_or_else(|error| panic!("{error}\n{grammar}"));
        assert!(matches!(automaton, ByteAutomaton::Finite(_)), "{grammar}");
        compiled += 1;
    }
    let counts = compare(200, &LETTERS, random::linear);
    assert_eq!((compiled, counts.compiled, counts.stacks), (400, 200, 0), "{counts:?}");
}

#[test]
fn texts_of_cycles_and_parts_that_are_empty_are_exact() {
    let counts = compare(300, &LETTERS, random::cyclic);
    assert!(counts.compiled >= 190 && counts.texts >= counts.compiled, "{counts:?}");
}
