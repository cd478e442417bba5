//! The legal tokens at positions with forced text.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, ForcedText, Limits, RowPosition, StateId, TokenId, Vocabulary,
    automaton::{ByteDfa, ByteStateId},
    constraint::JsonOptions,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use burn_dfa_testing::data;

fn limits(forced: ForcedText) -> Limits {
    Limits::default().with_forced_text(forced)
}

/// The legal tokens, given the budget.
fn legal(constraint: &CompiledConstraint, at: &RowPosition) -> Vec<TokenId> {
    let all = (0..constraint.vocabulary_len() as u32).map(TokenId);
    all.filter(|&token| constraint.can_end(&constraint.after(at, token))).collect()
}

/// The forced bytes: as long as the automaton has exactly one next byte.
fn forced(dfa: &ByteDfa, mut state: ByteStateId) -> Vec<u8> {
    let mut text = Vec::new();
    while !dfa.is_accepting(state) {
        let mut next = (0..=u8::MAX).filter(|&byte| dfa.next(state, byte) != ByteStateId::DEAD);
        let (Some(byte), None) = (next.next(), next.next()) else { break };
        text.push(byte);
        state = dfa.next(state, byte);
    }
    text
}

/// Applies the rule of the longest token.
fn longest(tokens: &[TokenId], forced: &[u8], vocabulary: &Vocabulary) -> Vec<TokenId> {
    let within =
        |token: &TokenId| vocabulary.bytes(*token).filter(|bytes| forced.starts_with(bytes)).map(<[u8]>::len);
    let longest = tokens.iter().filter_map(within).max();
    tokens.iter().copied().filter(|token| within(token).is_none_or(|bytes| Some(bytes) == longest)).collect()
}

fn constraints() -> Vec<Constraint> {
    let person = json!({"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 6}, "age": {"type": "integer"}, "kind": {"const": "person of interest"}},
        "required": ["name", "age", "kind"], "additionalProperties": false});
    let regexes = ["the item(s)? of the (house|horse)", "a{9}(b|c)", "(ab|abc)d+ef", "x*the end", "é{3}1|éa"];
    let schemas = [person, json!({"enum": ["first thing", "first try", 12345, null]})];
    let regexes = regexes.map(|regex| Constraint::regex(regex).unwrap());
    regexes.into_iter().chain(schemas.map(|schema| Constraint::json_schema(schema).unwrap())).collect()
}

/// Compares both forms with the byte automaton, at every position of random texts.
#[test]
fn only_the_longest_token_of_forced_text_is_legal() {
    let mut rng = StdRng::seed_from_u64(3);
    let vocabulary = data::tiny().vocabulary();
    let (mut fewer, mut beyond) = (0, 0);
    for constraint in constraints() {
        let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
        for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
            let [compiled, any] = [ForcedText::Longest, ForcedText::AnyToken]
                .map(|forced| compile(&constraint, &vocabulary, &limits(forced)).unwrap());
            for _ in 0..20 {
                let mut at = [&compiled, &any].map(|compiled| RowPosition::unlimited(compiled.start()));
                let mut state = dfa.start();
                while at[0].state != StateId::DONE {
                    let [found, all] = [legal(&compiled, &at[0]), legal(&any, &at[1])];
                    let forced = forced(&dfa, state);
                    assert_eq!(
                        found,
                        longest(&all, &forced, &vocabulary),
                        "{:?} of {constraint:?}",
                        forced.escape_ascii()
                    );
                    fewer += usize::from(found.len() < all.len());
                    let length = |token: &TokenId| vocabulary.bytes(*token).map_or(0, <[u8]>::len);
                    beyond += usize::from(
                        !forced.is_empty() && found.iter().any(|token| length(token) > forced.len()),
                    );
                    let token = found[rng.random_range(0..found.len())];
                    at = [compiled.after(&at[0], token), any.after(&at[1], token)];
                    state = vocabulary
                        .bytes(token)
                        .unwrap_or_default()
                        .iter()
                        .fold(state, |state, &byte| dfa.next(state, byte));
                }
            }
        }
    }
    assert!(
        fewer > 500 && beyond > 50,
        "{fewer} positions with fewer tokens, {beyond} with tokens that reach beyond"
    );
}

/// With a stack: each removed token is a prefix of a legal one, and every output is legal without
/// the rule.
#[test]
fn with_a_stack_the_rule_leaves_the_language_as_it_is() {
    let mut rng = StdRng::seed_from_u64(4);
    let vocabulary = data::tiny().vocabulary();
    let tree = json!({"type": "object", "properties": {
        "value": {"enum": ["left side", "right side"]}, "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}},
        "required": ["value", "children"], "additionalProperties": false});
    let constraint = Constraint::json_schema_with(tree, &JsonOptions::new()).unwrap();
    let [compiled, any] = [ForcedText::Longest, ForcedText::AnyToken]
        .map(|forced| CompiledConstraint::compile(&constraint, &vocabulary, &limits(forced)).unwrap());
    assert!(compiled.exits() > 0);
    let mut fewer = 0;
    for budget in (0..60).map(|more| compiled.tokens_to_end(compiled.start()) + more) {
        let mut at = [&compiled, &any].map(|compiled| RowPosition::new(compiled.start(), budget));
        while at[0].state != StateId::DONE {
            let [found, all] = [legal(&compiled, &at[0]), legal(&any, &at[1])];
            // Both are in order.
            let is_in = |tokens: &[TokenId], token: &TokenId| tokens.binary_search(token).is_ok();
            assert!(!found.is_empty() && found.iter().all(|token| is_in(&all, token)));
            let bytes = |token: &TokenId| vocabulary.bytes(*token).unwrap_or_default();
            for token in all.iter().filter(|token| !is_in(&found, token)) {
                fewer += 1;
                assert!(
                    found.iter().any(|longer| bytes(longer).starts_with(bytes(token))),
                    "{:?}",
                    bytes(token).escape_ascii()
                );
            }
            let token = found[rng.random_range(0..found.len())];
            at = [compiled.after(&at[0], token), any.after(&at[1], token)];
        }
    }
    assert!(fewer > 500, "{fewer} tokens taken out");
}

/// If some bytes are no tokens, the longest token may lead to a state without a next token.
#[test]
fn no_state_is_a_dead_end_where_bytes_are_no_tokens() {
    let mut rng = StdRng::seed_from_u64(5);
    let all = ["a", "b", "c", "ab", "bc", "abc", "bcd", "cd", "d", "dd", "abab", "ba"];
    let mut with_rule = 0;
    for _ in 0..400 {
        let kept: Vec<&str> = all.into_iter().filter(|_| rng.random_bool(0.6)).collect();
        let ids = kept.iter().map(Some).chain([None]);
        let end = TokenId(kept.len() as u32);
        let vocabulary = Vocabulary::from_bytes(ids).unwrap().with_eos([end]).unwrap();
        for regex in ["abcd", "(abcd|ba)*c", "ab(ab)*cdd", "ababcd|d"] {
            let constraint = Constraint::regex(regex).unwrap();
            for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
                let both = [ForcedText::Longest, ForcedText::AnyToken]
                    .map(|forced| compile(&constraint, &vocabulary, &limits(forced)));
                let [Ok(compiled), Ok(any)] = both else {
                    assert!(both.iter().all(Result::is_err), "{regex} of {kept:?}");
                    continue;
                };
                let least = compiled.tokens_to_end(compiled.start());
                assert!(least >= any.tokens_to_end(any.start()));
                for budget in least..least + 6 {
                    let mut at = [&compiled, &any].map(|compiled| RowPosition::new(compiled.start(), budget));
                    while at[0].state != StateId::DONE {
                        let found = legal(&compiled, &at[0]);
                        assert!(!found.is_empty(), "{regex} of {kept:?}");
                        with_rule += usize::from(found.len() < legal(&any, &at[1]).len());
                        let token = found[rng.random_range(0..found.len())];
                        at = [compiled.after(&at[0], token), any.after(&at[1], token)];
                        assert_ne!(at[1].state, StateId::DEAD);
                    }
                }
            }
        }
    }
    assert!(with_rule > 300, "{with_rule} positions with fewer tokens");
}
