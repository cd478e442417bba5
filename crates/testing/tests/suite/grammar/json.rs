//! JSON as a grammar and as a schema, with the same texts.

use burn_dfa_tokens::{CompiledConstraint, Constraint, Limits, RowPosition, constraint::Syntax};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use super::earley::Recognizer;
use super::form::{Grammar, all, class, one, rule, text};
use super::{Pair, masks, random};
use burn_dfa_testing::words::{compact, vocabulary_of};

/// Compact JSON as the schema `{}` writes it by default: strings with the required escapes, and
/// numbers with exponents of one or two digits.
fn grammar() -> Grammar {
    const VALUE: usize = 0;
    const OBJECT: usize = 1;
    const MEMBER: usize = 2;
    const ARRAY: usize = 3;
    const STRING: usize = 4;
    const CHARACTER: usize = 5;
    const NUMBER: usize = 6;
    let list = |part: usize| all([rule(part), all([text(","), rule(part)]).repeat(0, None)]).optional();
    let digit = || class(&[('0', '9')]);
    let value = one([
        rule(OBJECT),
        rule(ARRAY),
        rule(STRING),
        rule(NUMBER),
        text("true"),
        text("false"),
        text("null"),
    ]);
    let escape = one([
        class(&['"', '\\', 'b', 'f', 'n', 'r', 't'].map(|letter| (letter, letter))),
        all([text("u00"), class(&[('0', '1')]), class(&[('0', '9'), ('a', 'f'), ('A', 'F')])]),
    ]);
    let character = one([class(&[(' ', '!'), ('#', '['), (']', char::MAX)]), all([text("\\"), escape])]);
    let whole = || all([class(&[('1', '9')]), digit().repeat(0, None)]);
    let zero = || text("0");
    let fraction = || all([text("."), digit().repeat(1, None)]);
    let exponent = || {
        let sign = class(&[('+', '+'), ('-', '-')]).optional();
        all([class(&[('e', 'e'), ('E', 'E')]), sign, digit().repeat(1, Some(2))]).optional()
    };
    let number = all([text("-").optional(), one([zero(), whole()]), fraction().optional(), exponent()]);
    let mut rules = vec![all([]); 7];
    rules[VALUE] = value;
    rules[OBJECT] = all([text("{"), list(MEMBER), text("}")]);
    rules[MEMBER] = all([rule(STRING), text(":"), rule(VALUE)]);
    rules[ARRAY] = all([text("["), list(VALUE), text("]")]);
    rules[STRING] = all([text("\""), rule(CHARACTER).repeat(0, None), text("\"")]);
    rules[CHARACTER] = character;
    rules[NUMBER] = number;
    Grammar { rules }
}

/// A value with at most `depth` levels.
fn value(rng: &mut StdRng, depth: usize) -> Value {
    let name = |rng: &mut StdRng| -> String {
        let characters = ['a', 'é', '日', '\u{1F600}', '"', '\\', '\n', '\u{1}', '\u{7f}', '/', ' '];
        (0..rng.random_range(0..4)).map(|_| *characters.choose(rng).unwrap()).collect()
    };
    match rng.random_range(0..if depth == 0 { 6 } else { 10 }) {
        0 => json!(null),
        1 => json!(rng.random::<bool>()),
        2 => json!(rng.random_range(-20..200)),
        3 => json!([0.5, -1.25, 1e-7, 2.5e30, 1e300, 0.0].choose(rng).unwrap()),
        4 | 5 => json!(name(rng)),
        6 | 7 => (0..rng.random_range(0..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let count = rng.random_range(0..4);
            Value::Object((0..count).map(|_| (name(rng), value(rng, depth - 1))).collect())
        }
    }
}

/// Characters for small changes.
const CHARACTERS: [char; 20] =
    ['{', '}', '[', ']', ',', ':', '"', '\\', '0', '1', '-', '+', '.', 'e', 'E', 'u', 't', 'n', 'a', ' '];

/// Constraints that should have equal texts.
fn constraints() -> [Constraint; 2] {
    [Constraint::grammar(Syntax::Gbnf, &grammar().to_string()).unwrap(), compact(&json!({}))]
}

#[test]
fn a_grammar_of_json_and_the_schema_of_all_values_have_the_same_texts() {
    let grammar = grammar();
    let recognizer = Recognizer::new(&grammar);
    for constraint in constraints() {
        let automaton = constraint.to_automaton(&Limits::default()).unwrap().unwrap();
        let mut pair = Pair::new(&grammar, &automaton, &recognizer);
        // All prefixes up to a depth: numbers first, then other texts.
        pair.read_all(b"-+.0e19E", 7, &mut 20_000);
        pair.read_all(b"{}[],:\"1\\na", 7, &mut 10_000);
        let bytes: Vec<u8> = (0..=255).collect();
        pair.read_all(&bytes, 1, &mut 1);
        for start in ["\"", "\"\\", "\"\\u", "\"\\u00", "\"\\u001", "{\"", "[-", "[1e", "\"\u{e9}"] {
            pair.read_text(start.as_bytes());
            pair.read_all(&bytes, 2, &mut 400);
        }
        let (mut texts, mut others) = (0, 0);
        for seed in 0..400 {
            let mut rng = StdRng::seed_from_u64(seed);
            let text = value(&mut rng, 4).to_string().into_bytes();
            texts += usize::from(pair.read_text(&text));
            for _ in 0..6 {
                let other = random::changed(&mut rng, &text, &CHARACTERS);
                others += usize::from(!pair.read_text(&other));
            }
        }
        assert!(texts > 300 && others > 1_000, "{texts} texts, {others} others");
    }
}

#[test]
fn a_grammar_of_json_and_the_schema_of_all_values_allow_the_same_tokens() {
    let vocabulary = vocabulary_of(&[
        "true", "false", "null", "rue", "\":", ",\"", "{\"", "\"}", "\"}}", "}]", "]}", "]]", "[[", "[{\"",
        "{}", "[]", "},{\"", "],[", "12", "0.", "e+", "1e", "name", "été", "\\\"", "\\u00", "1f\"", "\",\"",
        "\":[", "\":{\"", "\"],",
    ]);
    let grammar = grammar();
    let recognizer = Recognizer::new(&grammar);
    for constraint in constraints() {
        let limits = Limits::new().with_frames(Limits::MAX_FRAMES);
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
        assert!(compiled.exits() > 0);
        let needed = compiled.tokens_to_end(compiled.start());
        assert_eq!(needed, 2);
        let mut words = 0;
        for seed in 0..48 {
            let mut rng = StdRng::seed_from_u64(seed);
            let budget = [needed, needed + 1, needed + 4, needed + 12, needed + 30, RowPosition::UNLIMITED];
            let budget = budget[seed as usize % budget.len()];
            words += masks::walk(&grammar, &compiled, &recognizer, &vocabulary, budget, &mut rng);
        }
        assert!(words > 1_000, "{words}");
    }
}
