//! Masks with all kinds of thresholds are the ones that the reference search finds.

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::search::tests::{cases, words};
use super::{Masker, Thresholds, reference};
use crate::{CompiledConstraint, Constraint, Limits, RowPosition, StateId, TokenId, Vocabulary};
use burn_dfa_constraints::Syntax;
use burn_dfa_testing::data;
use burn_dfa_vocabulary::TokenBits;

/// A compiled constraint and some of its positions, each with its legal tokens.
struct Case {
    compiled: CompiledConstraint,
    positions: Vec<(RowPosition, TokenBits)>,
}

impl Case {
    /// A copy of the compiled constraint, in which no search has written a row or kept a step.
    fn unread(&self) -> CompiledConstraint {
        let mut parts = self.compiled.parts().clone();
        parts.next = parts.next.unwritten();
        CompiledConstraint { parts: Arc::new(parts), ..self.compiled.clone() }
    }
}

/// Bytes, words of characters of two to four bytes, alone and among ASCII, and words that begin or
/// end within a character.
fn multi_byte() -> Vocabulary {
    const LETTERS: [&str; 4] = ["abcdefghij\"\\ ,", "éüßжщъ\u{85}\u{a0}", "漢字漣\u{3000}한", "🙂𝒳😀"];
    let mut rng = StdRng::seed_from_u64(7);
    let mut words = BTreeSet::new();
    while words.len() < 4000 {
        let kinds: Vec<usize> = (0..rng.random_range(1..3)).map(|_| rng.random_range(0..4)).collect();
        let character = |rng: &mut StdRng| {
            let letters: Vec<char> = LETTERS[kinds[rng.random_range(0..kinds.len())]].chars().collect();
            letters[rng.random_range(0..letters.len())]
        };
        let length = rng.random_range(1..if words.len() % 50 == 0 { 45 } else { 7 });
        let word: String = (0..length).map(|_| character(&mut rng)).collect();
        let word = if rng.random_range(0..3) == 0 { format!(" {word}") } else { word };
        let (from, to) = match rng.random_range(0..10) {
            0 => (0, word.len() - 1),
            1 => (1, word.len()),
            _ => (0, word.len()),
        };
        words.insert(word.as_bytes()[from..to].to_vec());
    }
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words: Vec<_> =
        bytes.chain(words.into_iter().filter(|word| word.len() > 1)).map(Some).chain([None]).collect();
    let end = TokenId(words.len() as u32 - 1);
    Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap()
}

/// A position with three budgets, each with its legal tokens. Empty if every path to the end is
/// long.
fn with_budgets(
    constraint: &CompiledConstraint,
    vocabulary: &Vocabulary,
    position: &RowPosition,
) -> Vec<(RowPosition, TokenBits)> {
    let with = |remaining| RowPosition { remaining, ..position.clone() };
    let Some(least) = (1..1000).find(|&remaining| constraint.can_end(&with(remaining))) else {
        return Vec::new();
    };
    let budgets = [RowPosition::UNLIMITED, least, least + 3];
    let legal = reference::tokens_within(constraint, vocabulary, position, budgets);
    let with_legal = |(remaining, legal): (u32, Vec<u32>)| {
        let mut bits = TokenBits::none(vocabulary.len());
        legal.iter().for_each(|&token| bits.set(token));
        (with(remaining), bits)
    };
    budgets.into_iter().zip(legal).map(with_legal).collect()
}

/// The positions before each token of a text, which is cut into the longest tokens.
fn cases_of(vocabulary: &Vocabulary, frames: usize) -> Vec<Case> {
    let limits = Limits::new().with_frames(frames);
    let mut found = Vec::new();
    for (constraint, text) in cases() {
        let Ok(compiled) = CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits) else {
            continue;
        };
        let (mut position, mut text) = (RowPosition::unlimited(compiled.start()), text.as_bytes());
        let mut positions = Vec::new();
        for _ in 0..5 {
            let budgets = with_budgets(&compiled, vocabulary, &position);
            if budgets.is_empty() {
                break;
            }
            positions.extend(budgets);
            let tokens = vocabulary.iter().filter(|(_, bytes)| text.starts_with(bytes));
            let next = tokens.map(|(token, bytes)| (compiled.after(&position, token), bytes.len()));
            let alive = next.filter(|(next, _)| next.state != StateId::DEAD && compiled.can_end(next));
            let Some((next, length)) = alive.max_by_key(|&(_, length)| length) else { break };
            (position, text) = (next, &text[length..]);
        }
        found.push(Case { compiled, positions });
    }
    found
}

/// Constraints for random walks: nested schemas and lists, counted and multi-byte characters.
fn walked_constraints() -> Vec<Constraint> {
    let schema = |schema| Constraint::json_schema(schema).unwrap();
    let regex = |pattern| Constraint::regex(pattern).unwrap();
    let tree = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "names": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#"}}}});
    let counted = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "string", "maxLength": 70}, "b": {"type": "string", "maxLength": 140}}});
    let list = r#"root ::= "(" item (", " item)* ")"
item ::= root | [a-z] [a-z0-9_]* | "\"" [^"\\\n]* "\"" | [0-9]+ ("." [0-9]+)?"#;
    vec![
        schema(tree),
        schema(json!({"type": "array"})),
        schema(counted),
        schema(json!({"type": "string", "pattern": "^[A-Z][a-z]+( [A-Z][a-z]+)*$"})),
        Constraint::grammar(Syntax::Gbnf, list).unwrap(),
        regex(r"[^\s@]+@?[^\s@]*"),
        regex("(?s).{3,90}"),
    ]
}

/// A walk of 40 positions, which begins again after the end.
fn random_walk(constraint: &CompiledConstraint, rng: &mut StdRng) -> Vec<RowPosition> {
    let masker = Masker::new(constraint);
    let start = RowPosition::unlimited(constraint.start());
    let mut walk = vec![start.clone()];
    while walk.len() < 40 {
        let position = &walk[walk.len() - 1];
        let next = masker.tokens(position).into_iter().map(|token| constraint.after(position, token));
        let mut next: Vec<RowPosition> = next.filter(|next| next.state != StateId::DONE).collect();
        // Most tokens of a string lead to one state, so half of the steps choose a state.
        if rng.random_range(0..2) == 0 {
            next.sort_by_key(|next| next.state);
            next.dedup_by_key(|next| next.state);
        }
        let next =
            if next.is_empty() { start.clone() } else { next.swap_remove(rng.random_range(0..next.len())) };
        assert!(constraint.can_end(&next), "{next:?}");
        walk.push(next);
    }
    walk
}

/// Every fourth position of random walks.
fn walked_cases(vocabulary: &Vocabulary) -> Vec<Case> {
    let (limits, mut rng) = (Limits::new(), StdRng::seed_from_u64(5));
    let case = |constraint: Constraint| {
        let compiled = CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits).unwrap();
        let walk = random_walk(&compiled, &mut rng);
        let sample = walk.iter().step_by(4);
        let positions = sample.flat_map(|position| with_budgets(&compiled, vocabulary, position)).collect();
        Case { compiled, positions }
    };
    walked_constraints().into_iter().map(case).collect()
}

/// The usual thresholds; then one of them, or all, as 0 and as the greatest number.
fn all_thresholds() -> Vec<(String, Thresholds)> {
    let names = Thresholds::default().fields().map(|(name, _)| name);
    let mut all = vec![("usual".to_owned(), Thresholds::default())];
    for value in [0, usize::MAX] {
        let one = |name: &str| (format!("{name}: {value}"), Thresholds::default().with(name, value));
        all.extend(names.map(one));
        let every = names.iter().fold(Thresholds::default(), |every, name| every.with(name, value));
        all.push((format!("all: {value}"), every));
    }
    all
}

/// Asserts that a masker finds the legal tokens of positions.
fn check<'a>(masker: &Masker, positions: impl Iterator<Item = &'a (RowPosition, TokenBits)>, about: &str) {
    for (position, legal) in positions {
        let (mask, _) = masker.legal(position);
        let found = mask.to_bits(legal.len());
        assert!(*found == *legal, "{about}, {position:?}: {} tokens of {}", found.count(), legal.count());
    }
}

fn masks_are_those_of_the_reference(cases: &[Case]) {
    assert!(cases.iter().any(|case| case.compiled.frames() > 0));
    assert!(cases.iter().any(|case| case.compiled.frames() == 0));
    let count: usize = cases.iter().map(|case| case.positions.len()).sum();
    assert!(count > 200, "{count} positions");
    let all = all_thresholds();
    for (name, thresholds) in &all {
        for (at, case) in cases.iter().enumerate() {
            let (constraint, positions) = (case.unread(), &case.positions);
            let masker = Masker::with_thresholds(&constraint, Masker::CACHE_BYTES, *thresholds);
            check(&masker, positions.iter(), &format!("cold, {name}, case {at}"));
            check(&masker, positions.iter().rev(), &format!("warm, {name}, case {at}"));
            // A copy has no steps. The positions in another order meet other states of the cache.
            let parts = Arc::new(constraint.parts().clone());
            let copy = CompiledConstraint { parts, ..constraint.clone() };
            let masker = Masker::with_thresholds(&copy, Masker::CACHE_BYTES, *thresholds);
            check(&masker, positions.iter().rev(), &format!("from the end, {name}, case {at}"));
        }
    }
    for (at, case) in cases.iter().enumerate() {
        // All threads share the steps of the constraint, and half of them the masks. Maskers have
        // different thresholds.
        let constraint = case.unread();
        let masker = |number: usize| {
            let (name, thresholds) = &all[(3 * at + number) % all.len()];
            (name, Masker::with_thresholds(&constraint, Masker::CACHE_BYTES, *thresholds))
        };
        let shared = &masker(0);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let own = masker(thread.div_ceil(2));
                let (before, after) = case.positions.split_at(thread * case.positions.len() / 4);
                scope.spawn(move || {
                    let (name, masker) = if thread % 2 == 0 { shared } else { &own };
                    check(masker, after.iter().chain(before), &format!("thread {thread}, {name}, case {at}"));
                });
            }
        });
    }
}

#[test]
fn masks_of_a_made_up_vocabulary() {
    let vocabulary = words();
    masks_are_those_of_the_reference(&cases_of(&vocabulary, 64));
}

#[test]
fn masks_of_a_vocabulary_of_multi_byte_characters() {
    let vocabulary = multi_byte();
    masks_are_those_of_the_reference(&cases_of(&vocabulary, 64));
}

#[test]
fn masks_of_the_vocabulary_of_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny");
    let vocabulary = Vocabulary::from_folder(folder).unwrap();
    let cases: Vec<Case> = [64, 0].into_iter().flat_map(|frames| cases_of(&vocabulary, frames)).collect();
    masks_are_those_of_the_reference(&cases);
}

/// The test data has three vocabularies of 32,000 to 50,257 tokens.
#[test]
fn masks_along_random_walks() {
    std::thread::scope(|scope| {
        for tokenizer in data::tokenizers() {
            scope.spawn(move || {
                let vocabulary = tokenizer.vocabulary();
                masks_are_those_of_the_reference(&walked_cases(&vocabulary));
            });
        }
    });
}
