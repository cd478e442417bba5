//! Compares compiled constraints that need a stack with a recognizer of grammars without an
//! automaton. The recognizer keeps the remaining parts as a list and follows all alternatives at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use burn_dfa_tokens::{CompiledConstraint, Constraint, Limits, RowPosition, TokenId, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use burn_dfa_testing::words::{compact, vocabulary_of};

/// A part of a grammar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Text(&'static str),
    Sequence(Vec<Rc<Node>>),
    Choice(Vec<Rc<Node>>),
    /// The rule with this index.
    Rule(usize),
}

use Node::{Choice, Rule, Sequence, Text};

fn all<const N: usize>(parts: [Node; N]) -> Node {
    Sequence(parts.map(Rc::new).into())
}

fn one<const N: usize>(parts: [Node; N]) -> Node {
    Choice(parts.map(Rc::new).into())
}

/// The remaining parts of a text, in reverse order: a partly read text, or a part.
type Rest = Vec<Pending>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    Bytes(&'static [u8]),
    Part(Rc<Node>),
}

struct Grammar {
    rules: Vec<Rc<Node>>,
    /// The minimum number of bytes of each rule.
    shortest: Vec<usize>,
}

impl Grammar {
    fn new<const N: usize>(rules: [Node; N]) -> Self {
        let mut grammar = Self { rules: rules.map(Rc::new).into(), shortest: vec![1 << 20; N] };
        // Each round finds the rules whose shortest text nests one level deeper.
        for _ in 0..=N {
            for rule in 0..N {
                grammar.shortest[rule] = grammar.least(&grammar.rules[rule]);
            }
        }
        grammar
    }

    fn least(&self, node: &Node) -> usize {
        match node {
            Text(text) => text.len(),
            Sequence(parts) => parts.iter().map(|part| self.least(part)).sum(),
            Choice(parts) => parts.iter().map(|part| self.least(part)).min().unwrap(),
            Rule(rule) => self.shortest[*rule],
        }
    }

    /// The minimum number of bytes that complete the text.
    fn left(&self, rest: &Rest) -> usize {
        let least = |pending: &Pending| match pending {
            Pending::Bytes(bytes) => bytes.len(),
            Pending::Part(part) => self.least(part),
        };
        rest.iter().map(least).sum()
    }

    fn start(&self) -> BTreeSet<Rest> {
        BTreeSet::from([vec![Pending::Part(Rc::clone(&self.rules[0]))]])
    }

    /// The remaining parts after each next byte.
    fn next(&self, rests: &BTreeSet<Rest>) -> BTreeMap<u8, BTreeSet<Rest>> {
        let mut open: Vec<Rest> = rests.iter().cloned().collect();
        let mut after: BTreeMap<u8, BTreeSet<Rest>> = BTreeMap::new();
        while let Some(mut rest) = open.pop() {
            match rest.pop() {
                None => {}
                Some(Pending::Bytes([])) => open.push(rest),
                Some(Pending::Bytes([first, bytes @ ..])) => {
                    rest.push(Pending::Bytes(bytes));
                    after.entry(*first).or_default().insert(rest);
                }
                Some(Pending::Part(part)) => match &*part {
                    Text(text) => {
                        rest.push(Pending::Bytes(text.as_bytes()));
                        open.push(rest);
                    }
                    Sequence(parts) => {
                        rest.extend(parts.iter().rev().cloned().map(Pending::Part));
                        open.push(rest);
                    }
                    Choice(parts) => {
                        for part in parts {
                            let mut rest = rest.clone();
                            rest.push(Pending::Part(Rc::clone(part)));
                            open.push(rest);
                        }
                    }
                    Rule(rule) => {
                        rest.push(Pending::Part(Rc::clone(&self.rules[*rule])));
                        open.push(rest);
                    }
                },
            }
        }
        after
    }

    /// The remaining parts after `bytes`, given those after each first byte.
    fn read(&self, next: &BTreeMap<u8, BTreeSet<Rest>>, bytes: &[u8]) -> BTreeSet<Rest> {
        let (first, bytes) = bytes.split_first().expect("a token of text");
        let first = next.get(first).cloned().unwrap_or_default();
        bytes.iter().fold(first, |rests, byte| self.next(&rests).remove(byte).unwrap_or_default())
    }

    /// Whether an alternative can end within `bytes`.
    fn can_end(&self, rests: &BTreeSet<Rest>, bytes: usize) -> bool {
        rests.iter().any(|rest| self.left(rest) <= bytes)
    }
}

/// Schemas with the grammars of their texts.
fn cases() -> Vec<(Value, Grammar)> {
    // Rule 1 is the rest of a list after its opening bracket.
    let tree = Grammar::new([
        all([
            Text("{\"name\":"),
            one([Text("\"a\""), Text("\"bc\"")]),
            one([Text("}"), all([Text(",\"children\":["), Rule(1), Text("}")])]),
        ]),
        one([Text("]"), all([Rule(0), Rule(2)])]),
        one([Text("]"), all([Text(","), Rule(0), Rule(2)])]),
    ]);
    let arrays = Grammar::new([
        all([Text("["), Rule(1)]),
        one([Text("]"), all([Rule(0), Rule(2)])]),
        one([Text("]"), all([Text(","), Rule(0), Rule(2)])]),
    ]);
    let either = Grammar::new([one([
        all([Text("{\"t\":\"a\",\"next\":"), Rule(0), Text("}")]),
        Text("{\"t\":\"b\"}"),
        all([Text("["), Rule(0), Text(","), Rule(0), Text("]")]),
    ])]);
    // At least one `"x"`; rules 1 and 2 are the rest of a list before and after the first `"x"`.
    let contains = Grammar::new([
        all([Text("["), Rule(1)]),
        one([all([one([Text("\"y\""), Rule(3)]), Text(","), Rule(1)]), all([Text("\"x\""), Rule(2)])]),
        one([Text("]"), all([Text(","), one([Text("\"x\""), Text("\"y\""), Rule(3)]), Rule(2)])]),
        one([Text("[]"), all([Text("["), Rule(0), one([Text("]"), all([Text(","), Rule(0), Text("]")])])])]),
    ]);
    // Arrays of arrays with at least one non-empty array: a procedure with two exits.
    let full = Grammar::new([
        all([Text("["), Rule(1)]),
        one([all([Text("[],"), Rule(1)]), all([Rule(3), Rule(2)])]),
        one([Text("]"), all([Text(","), one([Text("[]"), Rule(3)]), Rule(2)])]),
        all([Text("["), Rule(4), Rule(5)]),
        one([Text("[]"), Rule(3)]),
        one([Text("]"), all([Text(","), Rule(4), Rule(5)])]),
    ]);
    let named = json!({"type": "object", "properties": {
        "name": {"enum": ["a", "bc"]}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"], "additionalProperties": false});
    let nested = json!({"type": "array", "items": {"$ref": "#"}});
    let chosen = json!({"anyOf": [
        {"type": "object", "properties": {"t": {"const": "a"}, "next": {"$ref": "#"}}, "required": ["t", "next"],
            "additionalProperties": false},
        {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"], "additionalProperties": false},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 2, "maxItems": 2}]});
    let tagged = json!({"type": "array", "contains": {"const": "x"}, "items": {"anyOf": [
        {"const": "x"}, {"const": "y"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]}});
    let filled = json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "contains": {"minItems": 1},
        "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}});
    vec![(named, tree), (nested, arrays), (chosen, either), (tagged, contains), (filled, full)]
}

/// Tokens that enter and leave several arrays and objects.
fn vocabulary() -> Vocabulary {
    vocabulary_of(&[
        "{\"",
        "\":",
        "\"}",
        "\"}]}",
        "}]}",
        "]}]}",
        "[[",
        "]]",
        "]]]",
        "[[[[",
        "],[",
        "[]",
        "[[],",
        "}]",
        "},",
        "\"]",
        ",[",
        "{\"name\":\"",
        "\",\"children\":[",
        "{\"name\":\"a\",\"children\":[",
        "{\"name\":\"a\"}",
        "{\"t\":",
        "\"a\",\"next\":",
        "{\"t\":\"a\",\"next\":{\"t\":\"",
        "b\"}",
        "b\"}]",
        "b\"}}}",
        "\"x\"",
        "\"y\",\"x\"]",
        "[\"x\"]",
        "\"x\"]]",
        "[],[]]",
        "[\"y\",[[",
        "],\"x\"",
        "]],[[",
    ])
}

/// Follows a grammar by the compiled constraint of its schema and by the recognizer, for up to 200
/// tokens, and compares their legal tokens at each step. Returns the number of tokens that left
/// three procedures at once.
fn compare(
    schema: &Value,
    grammar: &Grammar,
    constraint: &CompiledConstraint,
    vocabulary: &Vocabulary,
) -> usize {
    let needed = constraint.tokens_to_end(constraint.start());
    assert!(needed as usize <= grammar.shortest[0] + 1, "{schema}");
    let mut crossed = 0;
    for seed in 0..24 {
        let mut rng = StdRng::seed_from_u64(seed);
        // Tight budgets, and one for 200 tokens.
        let budget = needed + [0, 1, 3, 9, 30, 600][seed as usize % 6];
        let mut position = RowPosition::new(constraint.start(), budget);
        let mut rests = grammar.start();
        for step in 0..200 {
            let left = position.remaining.saturating_sub(1) as usize;
            let next = grammar.next(&rests);
            let mut legal = Vec::new();
            for token in (0..vocabulary.len() as u32).map(TokenId) {
                let found = constraint.can_end(&constraint.after(&position, token));
                let expected = match vocabulary.bytes(token) {
                    // The end token is legal after a whole text.
                    None => position.remaining > 0 && rests.iter().any(|rest| grammar.left(rest) == 0),
                    Some(bytes) => {
                        let after = grammar.read(&next, bytes);
                        // One-byte tokens complete the text, or longer tokens may.
                        let is_certain = left > 0 && grammar.can_end(&after, left - 1);
                        is_certain || found && left > 0 && grammar.can_end(&after, usize::MAX >> 1)
                    }
                };
                let text = vocabulary.bytes(token).map(String::from_utf8_lossy);
                assert_eq!(
                    found, expected,
                    "{schema}, seed {seed}, step {step}, token {text:?}, {position:?}"
                );
                if found {
                    legal.push(token);
                }
            }
            assert!(!legal.is_empty());
            let is_long = |token: &TokenId| vocabulary.bytes(*token).is_some_and(|bytes| bytes.len() > 1);
            let words: Vec<_> = legal.iter().copied().filter(is_long).collect();
            let token = if words.is_empty() || rng.random_range(0..4) == 0 {
                legal[rng.random_range(0..legal.len())]
            } else {
                words[rng.random_range(0..words.len())]
            };
            let Some(bytes) = vocabulary.bytes(token) else { break };
            crossed += usize::from(bytes.ends_with(b"]]]") || bytes.ends_with(b"}]}"));
            rests = grammar.read(&next, bytes);
            position = constraint.after(&position, token);
        }
    }
    crossed
}

#[test]
fn a_token_is_legal_if_and_only_if_a_plain_recognizer_can_continue_to_the_end() {
    let vocabulary = vocabulary();
    let limits = Limits::new().with_frames(Limits::MAX_FRAMES);
    let mut crossed = 0;
    for (schema, grammar) in cases() {
        let constraint = CompiledConstraint::compile(&compact(&schema), &vocabulary, &limits).unwrap();
        assert!(constraint.exits() > 0, "{schema}");
        crossed += compare(&schema, &grammar, &constraint, &vocabulary);
    }
    assert!(crossed > 20, "{crossed} tokens left three pieces at once");
}

/// With a stack, not every byte must be a token; each state needs a path to the end over bytes that
/// are tokens.
#[test]
fn paths_to_the_end_need_only_bytes_that_are_tokens() {
    let words = [
        &b"\""[..],
        b"[",
        b"]",
        b",",
        b"a",
        b"\xa9",
        b"\xc3\xa9",
        b"a\xc3",
        b"\xa9\"]",
        b"\xc3\xa9\",[[",
        b"]]",
        b"],[",
    ];
    let vocabulary = Vocabulary::from_bytes(words.map(Some).into_iter().chain([None])).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(words.len() as u32)]).unwrap();
    let limits = Limits::new().with_frames(Limits::MAX_FRAMES);
    let schema = |texts: &[&str]| json!({"type": "array", "items": {"anyOf": [{"enum": texts}, {"type": "array", "items": {"$ref": "#/items"}}]}});
    let compile =
        |texts: &[&str]| CompiledConstraint::compile(&compact(&schema(texts)), &vocabulary, &limits).unwrap();
    let grammar = Grammar::new([
        all([Text("["), Rule(1)]),
        one([Text("]"), all([Rule(3), Rule(2)])]),
        one([Text("]"), all([Text(","), Rule(3), Rule(2)])]),
        one([Text("\"a\""), Text("\"aé\""), Rule(0)]),
    ]);
    let texts = ["a", "aé"];
    let constraint = compile(&texts);
    assert!(constraint.exits() > 0);
    compare(&schema(&texts), &grammar, &constraint, &vocabulary);
    // In bytes the shortest path consists of bytes that are tokens: `["aaa"]`. `["é"]` takes fewer
    // tokens.
    let nested =
        json!({"type": "array", "items": {"anyOf": [{"enum": ["é", "aaa"]}, {"$ref": "#"}]}, "minItems": 1});
    let constraint = CompiledConstraint::compile(&compact(&nested), &vocabulary, &limits).unwrap();
    assert_eq!((constraint.exits() > 0, constraint.tokens_to_end(constraint.start())), (true, 6));
    // The only path contains a longer token, so liveness would depend on the stack.
    assert_eq!(compile(&["é"]).exits(), 0);
}

/// Long strings are counted by procedures for blocks. Block boundaries may lie within tokens,
/// characters and escapes.
#[test]
fn a_counted_string_is_the_one_that_is_copied() {
    let vocabulary = vocabulary_of(&[
        "abcdefgh",
        "ab",
        "é",
        "éé",
        "日本",
        "x日",
        "\\n",
        "\\\"",
        "a\\",
        "\u{1F600}",
        "aaaaaaaaaaaaaaaa",
        "b\"",
        "aaaaaaaaaaaaaaa\"",
    ]);
    for (min, max) in [(0, 2_000), (1_900, 2_003)] {
        let constraint =
            Constraint::json_schema(json!({"type": "string", "minLength": min, "maxLength": max})).unwrap();
        let compile = |frames| {
            CompiledConstraint::compile_byte_level(
                &constraint,
                &vocabulary,
                &Limits::new().with_frames(frames),
            )
            .unwrap()
        };
        let (called, copied) = (compile(64), compile(0));
        assert!(called.exits() > 0 && copied.exits() == 0);
        assert!(called.state_count() * 4 < copied.state_count(), "{called:?}, {copied:?}");
        // A distance does not count tokens that begin in one block and end in the next.
        let least = [&called, &copied].map(|compiled| compiled.tokens_to_end(compiled.start()));
        assert!(least[0] >= least[1] && 20 * least[0] <= 21 * least[1], "{least:?}");
        let mut rng = StdRng::seed_from_u64(max);
        for budget in [least[0] + 40, RowPosition::UNLIMITED] {
            let mut rows = [
                (&called, RowPosition::new(called.start(), budget)),
                (&copied, RowPosition::new(copied.start(), budget)),
            ];
            for step in 0..4_000 {
                let legal = rows.each_ref().map(|(compiled, position)| {
                    let tokens = (0..vocabulary.len() as u32).map(TokenId);
                    tokens
                        .filter(|&token| compiled.can_end(&compiled.after(position, token)))
                        .collect::<Vec<_>>()
                });
                if budget == RowPosition::UNLIMITED {
                    assert_eq!(legal[0], legal[1], "{min} to {max}, step {step}");
                } else {
                    assert!(!legal[0].is_empty(), "{min} to {max}, step {step}");
                    let is_subset = legal[0].iter().all(|token| legal[1].contains(token));
                    assert!(is_subset, "{min} to {max}, step {step}");
                }
                // Long texts, so that every block boundary is crossed.
                let on: Vec<TokenId> = legal[0]
                    .iter()
                    .copied()
                    .filter(|token| !vocabulary.bytes(*token).is_none_or(|bytes| bytes.ends_with(b"\"")))
                    .collect();
                let choice = if on.is_empty() { &legal[0] } else { &on };
                let token = choice[rng.random_range(0..choice.len())];
                for (compiled, position) in &mut rows {
                    *position = compiled.after(position, token);
                }
                if vocabulary.bytes(token).is_none() {
                    break;
                }
            }
        }
    }
}
