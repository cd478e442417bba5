//! Masks with all kinds of thresholds are the ones that the reference search finds.

use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;
use std::path::Path;

use super::search::tests::{cases, words};
use super::{Masker, Thresholds, reference};
use crate::{CompiledConstraint, Limits, RowPosition, StateId, TokenId, Vocabulary};

/// Positions of one text, each with its legal tokens.
struct Case {
    constraint: CompiledConstraint,
    positions: Vec<(RowPosition, Vec<u32>)>,
}

/// Bytes, words of characters of two to four bytes, alone and among ASCII, and words that begin or end
/// within a character.
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

/// The positions before each token of a text, which is cut into the longest tokens, with three budgets.
fn cases_of(vocabulary: &Vocabulary, frames: usize) -> Vec<Case> {
    let limits = Limits::new().with_frames(frames);
    let mut found = Vec::new();
    for (constraint, text) in cases() {
        let Ok(constraint) = CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits) else {
            continue;
        };
        let (mut position, mut text) = (RowPosition::unlimited(constraint.start()), text.as_bytes());
        let mut positions = Vec::new();
        for _ in 0..5 {
            let with = |remaining| RowPosition { remaining, ..position.clone() };
            let Some(least) = (1..1000).find(|&remaining| constraint.can_end(&with(remaining))) else {
                break;
            };
            for remaining in [RowPosition::UNLIMITED, least, least + 3] {
                let position = with(remaining);
                let legal = reference::tokens(&constraint, vocabulary, &position);
                positions.push((position, legal));
            }
            let tokens = vocabulary.iter().filter(|(_, bytes)| text.starts_with(bytes));
            let next = tokens.map(|(token, bytes)| (constraint.after(&position, token), bytes.len()));
            let alive = next.filter(|(next, _)| next.state != StateId::DEAD && constraint.can_end(next));
            let Some((next, length)) = alive.max_by_key(|&(_, length)| length) else { break };
            (position, text) = (next, &text[length..]);
        }
        found.push(Case { constraint, positions });
    }
    found
}

/// The usual thresholds; then one of them, or all, as 0 and as the greatest number.
fn all_thresholds() -> Vec<(String, Thresholds)> {
    let mut all = vec![("usual".to_owned(), Thresholds::default())];
    for value in [0, usize::MAX] {
        let mut every = Thresholds::default();
        for (at, (name, field)) in every.fields().into_iter().enumerate() {
            *field = value;
            let mut one = Thresholds::default();
            *one.fields()[at].1 = value;
            all.push((format!("{name}: {value}"), one));
        }
        all.push((format!("all: {value}"), every));
    }
    all
}

/// Asserts that a masker finds the legal tokens of positions.
fn check<'a>(masker: &Masker, positions: impl Iterator<Item = &'a (RowPosition, Vec<u32>)>, about: &str) {
    for (position, legal) in positions {
        let found: Vec<u32> = masker.tokens(position).iter().map(|token| token.0).collect();
        assert!(found == *legal, "{about}, {position:?}: {} tokens of {}", found.len(), legal.len());
    }
}

fn masks_are_those_of_the_reference(vocabulary: &Vocabulary, frames: &[usize]) {
    let cases: Vec<Case> = frames.iter().flat_map(|&frames| cases_of(vocabulary, frames)).collect();
    assert!(cases.iter().any(|case| case.constraint.frames() > 0));
    assert!(cases.iter().any(|case| case.constraint.frames() == 0));
    let count: usize = cases.iter().map(|case| case.positions.len()).sum();
    assert!(count > 200, "{count} positions");
    for (name, thresholds) in all_thresholds() {
        for (at, Case { constraint, positions }) in cases.iter().enumerate() {
            let masker = Masker::with_thresholds(constraint, thresholds);
            check(&masker, positions.iter(), &format!("cold, {name}, case {at}"));
            check(&masker, positions.iter().rev(), &format!("warm, {name}, case {at}"));
            // The positions in another order meet other states of the cache.
            let masker = Masker::with_thresholds(constraint, thresholds);
            check(&masker, positions.iter().rev(), &format!("from the end, {name}, case {at}"));
        }
    }
    for (at, Case { constraint, positions }) in cases.iter().enumerate() {
        let masker = &Masker::with_thresholds(constraint, Thresholds::default());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (before, after) = positions.split_at(thread * positions.len() / 4);
                let about = format!("thread {thread}, case {at}");
                scope.spawn(move || check(masker, after.iter().chain(before), &about));
            }
        });
    }
}

#[test]
fn masks_of_a_made_up_vocabulary() {
    masks_are_those_of_the_reference(&words(), &[64]);
}

#[test]
fn masks_of_a_vocabulary_of_multi_byte_characters() {
    masks_are_those_of_the_reference(&multi_byte(), &[64]);
}

#[test]
fn masks_of_the_vocabulary_of_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny");
    masks_are_those_of_the_reference(&Vocabulary::from_folder(folder).unwrap(), &[64, 0]);
}

/// The only threshold that is clamped.
#[test]
fn characters_are_followed_through_one_state_at_least() {
    let mut thresholds = Thresholds::default();
    let fields = thresholds.fields();
    fields.into_iter().find(|(name, _)| *name == "max_states").map(|(_, field)| *field = 0).unwrap();
    assert_eq!(thresholds.max_states(), 1);
}
