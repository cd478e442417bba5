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

/// By token, the least budget with a text that begins with it, if each token after it has one byte,
/// by the recognizer; `None` if no text begins with it. `order` has the tokens of text in the order of
/// their bytes.
fn least_budgets(
    chart: &mut Chart,
    vocabulary: &Vocabulary,
    order: &[(TokenId, &[u8])],
) -> Vec<Option<usize>> {
    // All other tokens are the end.
    let mut least = vec![chart.accepts().then_some(1); vocabulary.len()];
    let (len, mut before) = (chart.len(), &[][..]);
    for &(token, bytes) in order {
        // Tokens with a common beginning follow one another: it is read once.
        let common = before.iter().zip(bytes).take_while(|(own, other)| own == other).count();
        let read = chart.len() - len;
        before = bytes;
        least[token.index()] = None;
        if common > read {
            // It begins with the byte that was refused.
            continue;
        }
        chart.truncate(len + common);
        if chart.extend(&bytes[common..]) {
            // The budget must also cover the token and the end token.
            least[token.index()] = chart.left().map(|left| left + 2);
        }
    }
    chart.truncate(len);
    least
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
    let mut order: Vec<(TokenId, &[u8])> = vocabulary.iter().collect();
    order.sort_by_key(|&(_, bytes)| bytes);
    let mut position = RowPosition::new(compiled.start(), budget);
    let mut chart = Chart::new(recognizer);
    let mut read = Vec::new();
    let mut words = 0;
    for _ in 0..24 {
        let tokens = (0..vocabulary.len() as u32).map(TokenId);
        let found: Vec<TokenId> =
            tokens.filter(|&token| compiled.can_end(&compiled.after(&position, token))).collect();
        let least = least_budgets(&mut chart, vocabulary, &order);
        let within = |budget: u32| -> Vec<TokenId> {
            let is_legal = |least: &Option<usize>| least.is_some_and(|least| least <= budget as usize);
            let all = (0..).map(TokenId).zip(&least);
            all.filter(|(_, least)| is_legal(least)).map(|(token, _)| token).collect()
        };
        let expected = within(position.remaining);
        let possible = within(if position.remaining > 1 { RowPosition::UNLIMITED } else { 1 });
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
