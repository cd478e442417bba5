//! Constraints after free text, against the definition "where the marker occurs first".

mod written;

use burn_dfa::ErrorKind;
use burn_dfa::constraint::Marker;
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{CompiledConstraint, Constraint, Error, Limits, StateId, TokenId, Vocabulary};
use proptest::prelude::*;

/// The text after the first occurrence of `marker`.
fn rest<'t>(text: &'t [u8], marker: &[u8]) -> Option<&'t [u8]> {
    let found = (0..=text.len()).find(|&at| text[at..].starts_with(marker))?;
    Some(&text[found + marker.len()..])
}

fn limits() -> Limits {
    Limits::default()
}

type Compile = fn(&Constraint, &Vocabulary, &Limits) -> Result<CompiledConstraint, Error>;
const FORMS: [Compile; 2] = [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level];

const MARKERS: [&str; 10] = ["a", "aab", "aa", "abab", "é", "aé", "ééa", "", "b\"", "abaababa"];
const PATTERNS: [&str; 5] = ["b*", "(ab|é)+", "a", "[ab]{2,3}", "(?-u:\\xC3)?b"];

/// Letters of the markers, and halves of characters.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"aaabbb\"\xc3\xa9".to_vec()), 0..14)
}

/// Random tokens of such letters, two special tokens, an unused token, the end.
fn vocabulary() -> impl Strategy<Value = Vocabulary> {
    let letters = prop::sample::select(b"aaabb\"\xc3\xa9".to_vec());
    prop::collection::vec(prop::collection::vec(letters, 1..5), 1..14).prop_map(|tokens| {
        let text = tokens.into_iter().map(|token| (TokenKind::Normal, token));
        let other = [TokenKind::Special, TokenKind::Special, TokenKind::Unused, TokenKind::Special];
        let other = other.map(|kind| (kind, b"<x>".to_vec()));
        let tokens: Vec<_> = text.chain(other).collect();
        let end = TokenId(tokens.len() as u32 - 1);
        Vocabulary::from_tokens(tokens).unwrap().with_eos([end]).unwrap()
    })
}

/// Whether `tokens`, without an end of sequence, are an output by the definition in the
/// documentation.
fn admits(
    marker: &Marker,
    inner: &dyn Fn(&[u8]) -> bool,
    vocabulary: &Vocabulary,
    tokens: &[TokenId],
) -> bool {
    if tokens.iter().any(|&id| vocabulary.kind(id) == TokenKind::Unused) {
        return false;
    }
    // Special tokens count as text of no bytes before the marker, and are forbidden after it.
    let spells = |tokens: &[TokenId]| tokens.iter().all(|&id| vocabulary.bytes(id).is_some());
    match marker {
        Marker::Token(marker) => tokens.iter().position(|id| id == marker).is_some_and(|at| {
            let after = &tokens[at + 1..];
            spells(after) && !after.contains(marker) && inner(&vocabulary.decode(after))
        }),
        Marker::Text(marker) => {
            let decoded = vocabulary.decode(tokens);
            let Some(rest) = rest(&decoded, marker.as_bytes()) else { return false };
            // The tokens after the token that completes the marker.
            let complete = decoded.len() - rest.len();
            let mut length = 0;
            let from = tokens.iter().position(|&id| {
                let over = length >= complete;
                length += vocabulary.bytes(id).map_or(0, <[u8]>::len);
                over
            });
            from.is_none_or(|from| spells(&tokens[from..])) && inner(rest)
        }
    }
}

/// All sequences of up to `longest` tokens.
fn sequences(tokens: usize, longest: usize) -> Vec<Vec<TokenId>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..longest {
        let to = all.len();
        for at in from..to {
            for id in 0..tokens as u32 {
                let longer = all[at].iter().copied().chain([TokenId(id)]).collect();
                all.push(longer);
            }
        }
        from = to;
    }
    all
}

fn after(constraint: &CompiledConstraint, tokens: &[TokenId]) -> StateId {
    tokens.iter().fold(constraint.start(), |state, &id| constraint.next(state, id))
}

/// Checks that the end is reachable from every reachable state, within the stored distance.
fn assert_ends(constraint: &CompiledConstraint) {
    let mut seen = vec![false; constraint.state_count()];
    let mut stack = vec![constraint.start()];
    while let Some(state) = stack.pop() {
        if state.0 < StateId::RESERVED || std::mem::replace(&mut seen[state.index()], true) {
            continue;
        }
        let needed = constraint.tokens_to_end(state);
        let nexts: Vec<_> = constraint.allowed(state).map(|id| constraint.next(state, id)).collect();
        assert!(nexts.iter().all(|&next| constraint.tokens_to_end(next) != u32::MAX), "a dead end");
        assert!(nexts.iter().any(|&next| constraint.tokens_to_end(next) < needed), "no way on from {state}");
        stack.extend(nexts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn bytes_are_free_up_to_the_first_marker(
        marker in prop::sample::select(MARKERS.to_vec()),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        texts in prop::collection::vec(text(), 30),
    ) {
        let inner = Constraint::regex(pattern).unwrap();
        let member = inner.to_byte_dfa(&limits()).unwrap().unwrap();
        let dfa = Constraint::after(marker, inner).to_byte_dfa(&limits()).unwrap().unwrap();
        for text in texts {
            let marked = [&text[..], marker.as_bytes(), b"ab"].concat();
            for text in [text, marked] {
                let expected = rest(&text, marker.as_bytes()).is_some_and(|rest| member.matches(rest));
                prop_assert_eq!(dfa.matches(&text), expected, "{:?}", text);
            }
        }
    }

    #[test]
    fn constraints_hold_the_sequences_that_the_words_admit(
        vocabulary in vocabulary(),
        marker in prop::sample::select(MARKERS.to_vec()),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        token in any::<prop::sample::Index>(),
        is_token in any::<bool>(),
    ) {
        // A text token or a special token.
        let token = TokenId(token.index(vocabulary.len() - 2) as u32);
        let marker = if is_token { Marker::Token(token) } else { Marker::from(marker) };
        let inner = Constraint::regex(pattern).unwrap();
        let member = inner.to_byte_dfa(&limits()).unwrap().unwrap();
        let constraint = Constraint::after(marker.clone(), inner);
        let longest = if vocabulary.len() > 9 { 3 } else { 4 };
        let sequences = sequences(vocabulary.len() - 1, longest);
        let expected: Vec<bool> = sequences
            .iter()
            .map(|tokens| admits(&marker, &|text| member.matches(text), &vocabulary, tokens))
            .collect();
        for compile in FORMS {
            let compiled = match compile(&constraint, &vocabulary, &limits()) {
                Ok(compiled) => compiled,
                Err(error) => {
                    prop_assert!(error.kind() == ErrorKind::Unsatisfiable, "{error}");
                    prop_assert!(!expected.contains(&true));
                    continue;
                }
            };
            compiled.validate().unwrap();
            assert_ends(&compiled);
            for (tokens, &expected) in sequences.iter().zip(&expected) {
                let end = after(&compiled, tokens);
                let accepts = end != StateId::DEAD && compiled.is_accepting(end);
                prop_assert_eq!(accepts, expected, "{:?}, walked {}", tokens, compiled.is_byte_level());
            }
        }
    }
}
