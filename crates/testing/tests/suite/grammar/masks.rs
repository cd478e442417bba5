//! Masks of grammars: a token is legal only if the recognizer finds a text that begins with its
//! bytes, and always if one-byte tokens complete the text within the budget. Without a budget, the
//! two conditions are the same.

use burn_dfa_tokens::{CompiledConstraint, RowPosition, TokenId, Vocabulary};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::earley::{Chart, Recognizer};
use super::form::Grammar;
use super::{compiled, limits, random};
use burn_dfa_testing::words::{EOS, vocabulary_of};

/// Tokens that open and close several brackets and cross rule boundaries.
const WORDS: [&str; 44] = [
    "aa", "ab", "ba", "abab", "((", "(((", "([", "[(", "[[", "[[[[", "))", ")))", ")]", "])", "]]", "]]]]",
    "()", "[]", "()()", "[[]]", ")(", "][", "),", "],", "),(", "],[", ")],[(", ",1", ",(", ",[[", "1,",
    "1,1,1", "(1", "1)", "1)]", "(1,1)", "(a", "a)", "+1", "1+", "1+1+", "+(", ")+", "a+b",
];

/// The tokens with a text that takes at most `remaining` tokens, if each token after the next one
/// has one byte, by the recognizer.
fn legal(chart: &mut Chart, vocabulary: &Vocabulary, remaining: u32) -> Vec<TokenId> {
    let len = chart.len();
    let mut is_legal = |token: &TokenId| {
        let budget = remaining as usize;
        match vocabulary.bytes(*token) {
            None => budget > 0 && chart.accepts(),
            Some(bytes) => {
                // The budget must also cover the token and the end token.
                let legal = chart.extend(bytes) && chart.left().is_some_and(|left| left + 2 <= budget);
                chart.truncate(len);
                legal
            }
        }
    };
    (0..vocabulary.len() as u32).map(TokenId).filter(|token| is_legal(token)).collect()
}

/// Whether all tokens of a sorted list are in another.
fn is_part(tokens: &[TokenId], all: &[TokenId]) -> bool {
    tokens.iter().all(|token| all.binary_search(token).is_ok())
}

/// Follows a random text and compares the legal tokens at every position. Returns the number of
/// legal multi-byte tokens.
pub fn walk(
    grammar: &Grammar,
    compiled: &CompiledConstraint,
    recognizer: &Recognizer,
    vocabulary: &Vocabulary,
    budget: u32,
    rng: &mut StdRng,
) -> usize {
    let mut position = RowPosition::new(compiled.start(), budget);
    let mut chart = Chart::new(recognizer);
    let mut read = Vec::new();
    let mut words = 0;
    for _ in 0..24 {
        let tokens = (0..vocabulary.len() as u32).map(TokenId);
        let found: Vec<TokenId> =
            tokens.filter(|&token| compiled.can_end(&compiled.after(&position, token))).collect();
        let expected = legal(&mut chart, vocabulary, position.remaining);
        let possible =
            legal(&mut chart, vocabulary, if position.remaining > 1 { RowPosition::UNLIMITED } else { 1 });
        let texts = |tokens: &[TokenId]| -> Vec<String> {
            let bytes = tokens.iter().map(|&token| vocabulary.bytes(token).unwrap_or(b"the end"));
            bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
        };
        assert!(
            is_part(&expected, &found) && is_part(&found, &possible),
            "{:?} instead of {:?} after {:?}, {position:?}, of\n{grammar}",
            texts(&found),
            texts(&expected),
            texts(&read)
        );
        // Prefer multi-byte tokens, which are rarer and more error-prone.
        let longer: Vec<TokenId> = found.iter().copied().filter(|token| token.0 > EOS.0).collect();
        words += longer.len();
        let choice = if longer.is_empty() || rng.random_ratio(1, 3) { &found } else { &longer };
        let token = *choice.choose(rng).expect("a row is never without a token");
        let Some(bytes) = vocabulary.bytes(token) else { break };
        assert!(chart.extend(bytes));
        position = compiled.after(&position, token);
        read.push(token);
    }
    words
}

/// Compares both forms of a grammar's compiled constraint with the recognizer, with and without a
/// budget.
fn check(grammar: &Grammar, vocabulary: &Vocabulary, rng: &mut StdRng) -> Option<usize> {
    let recognizer = Recognizer::new(grammar);
    let (constraint, _) = compiled(grammar, &recognizer)?;
    let mut words = 0;
    for compile in [CompiledConstraint::compile, CompiledConstraint::compile_byte_level] {
        let compiled = compile(&constraint, vocabulary, &limits());
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}\n{grammar}"));
        for _ in 0..3 {
            words += walk(grammar, &compiled, &recognizer, vocabulary, RowPosition::UNLIMITED, rng);
        }
        // The token-level form counts distances exactly.
        if compiled.is_byte_level() {
            let needed = compiled.tokens_to_end(compiled.start());
            let least = Chart::new(&recognizer).left().unwrap();
            assert!(needed as usize <= least + 1, "{grammar}");
            for more in [0, 1, 2, 4, 9] {
                words += walk(grammar, &compiled, &recognizer, vocabulary, needed + more, rng);
            }
        }
    }
    Some(words)
}

/// Tokens of blocks with words as delimiters.
const BLOCK_WORDS: [&str; 24] = [
    "b ", "ab ", "e ", "ee", "eb", "e;", "ee;", " e", "a=1", "=1", "e=1", "b a", "b e", "b b ", "e e",
    "ee ee ", "; ", ";e", "1 e", "1;e", ", ", "11", "1b ", "1e",
];

#[test]
fn masks_equal_a_search_of_all_continuations() {
    let vocabulary = vocabulary_of(&WORDS);
    let (mut grammars, mut words) = (0, 0);
    for seed in 0..240 {
        let mut rng = StdRng::seed_from_u64(seed);
        let grammar = if seed % 2 == 0 {
            random::nested(&mut rng)
        } else {
            random::grammar(&mut rng, &random::ALPHABET)
        };
        if let Some(found) = check(&grammar, &vocabulary, &mut rng) {
            grammars += 1;
            words += found;
        }
    }
    println!("{grammars} grammars, {words} tokens of several bytes");
    assert!(words > grammars && grammars > 0, "{grammars} grammars, {words} tokens of several bytes");
}

#[test]
fn masks_are_exact_where_the_next_bytes_tell_what_has_ended() {
    let vocabulary = vocabulary_of(&BLOCK_WORDS);
    let (mut grammars, mut words) = (0, 0);
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let grammar = random::blocks(&mut rng);
        if let Some(found) = check(&grammar, &vocabulary, &mut rng) {
            grammars += 1;
            words += found;
        }
    }
    println!("{grammars} grammars, {words} tokens of several bytes");
    assert!(words > grammars && grammars > 0, "{grammars} grammars, {words} tokens of several bytes");
}
