//! Checks of every accepted constraint.

use std::sync::LazyLock;
use std::time::Duration;

use burn_dfa_tokens::RowPosition;
use burn_dfa_tokens::automaton::{ByteDfa, ByteStateId};
use burn_dfa_tokens::{CompiledConstraint, Constraint, ForcedText, Limits, StateId, TokenId, Vocabulary};

/// Limits that keep the time per input short.
pub fn limits() -> Limits {
    Limits {
        states: 20_000,
        bytes: 32 << 20,
        token_level_bytes: 4 << 20,
        token_level_entries: 100_000,
        frames: 0,
        stacks: Limits::MAX_STACKS,
        forced_text: ForcedText::Longest,
        time: Duration::from_secs(1),
        deadline: None,
        threads: 1,
        cancel: None,
    }
}

/// All bytes, a few words, a special token, an unused id, and the end token.
pub static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let words = [
        "ab", "the", " a", "é", "\u{FFFD}", "true", "null", "\":", "{\"", "\"}", "\",\"", "]]", "00", "\\u00",
    ];
    let tokens = (0..=255u8).map(|byte| Some(vec![byte]));
    let tokens = tokens.chain(words.map(|word| Some(word.as_bytes().to_vec()))).chain([None, None]);
    let vocabulary = Vocabulary::from_bytes(tokens).expect("a vocabulary");
    let end = TokenId(vocabulary.len() as u32 - 1);
    vocabulary.with_eos([end]).expect("an end")
});

/// Lowers and compiles `constraint`, and follows tokens that `bytes` choose.
pub fn examine(constraint: &Constraint, bytes: &[u8]) {
    stacked(constraint, bytes);
    let Ok(Some(dfa)) = constraint.to_byte_dfa(&limits()) else { return };
    consistent(&dfa);
    let Some(compiled) = compile(constraint, &VOCABULARY, bytes) else { return };
    let Some(text) = shortest(&compiled, &VOCABULARY) else { return };
    assert!(dfa.matches(&text), "{:?} is no member", String::from_utf8_lossy(&text));
    if let Ok(value) = serde_json::from_slice(&text)
        && let Ok(Some((written, true))) = constraint.json_text(&value, &limits())
    {
        assert!(dfa.matches(written.as_bytes()), "{written} is said to be a member");
    }
}

/// Compiles `constraint` with a stack, and follows legal tokens that `bytes` choose: some token is
/// legal until the end, within the budget.
fn stacked(constraint: &Constraint, bytes: &[u8]) {
    let frames = 1 + bytes.len() % 7;
    let Ok(compiled) = CompiledConstraint::compile(constraint, &VOCABULARY, &limits().with_frames(frames))
    else {
        return;
    };
    let needed = compiled.tokens_to_end(compiled.start());
    let mut position = RowPosition::new(compiled.start(), needed.saturating_add(bytes.len().min(24) as u32));
    let mut tokens = Vec::new();
    let mut choices = bytes.iter().cycle();
    while position.state != StateId::DONE && tokens.len() < 64 {
        let all =
            (0..VOCABULARY.len() as u32).map(TokenId).map(|token| (token, compiled.after(&position, token)));
        let legal: Vec<_> = all.filter(|(_, next)| compiled.can_end(next)).collect();
        assert!(!legal.is_empty(), "no token is legal at {position:?}");
        let choice = choices.next().copied().unwrap_or_default() as usize;
        let (token, next) = legal[choice % legal.len()].clone();
        (position, tokens) = (next, [tokens, vec![token]].concat());
    }
    assert!(position.state != StateId::DONE || compiled.accepts(&tokens));
}

fn consistent(dfa: &ByteDfa) {
    assert!(dfa.start().index() < dfa.state_count() && !dfa.is_empty());
    assert!(dfa.classes().iter().all(|&class| usize::from(class) < dfa.class_count()));
    for state in (0..dfa.state_count() as u32).map(ByteStateId) {
        assert!(
            (0..dfa.class_count()).all(|class| dfa.next_by_class(state, class).index() < dfa.state_count())
        );
    }
}

/// Compiles `constraint` in every form, and compares the forms along tokens that `bytes` choose.
pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, bytes: &[u8]) -> Option<CompiledConstraint> {
    let limits = limits();
    let made = CompiledConstraint::compile(constraint, vocabulary, &limits).ok();
    let forms = [
        made.clone(),
        CompiledConstraint::compile_token_level(constraint, vocabulary, &limits).ok(),
        CompiledConstraint::compile_byte_level(constraint, vocabulary, &limits).ok(),
    ];
    let forms: Vec<CompiledConstraint> = forms.into_iter().flatten().collect();
    let mut states: Vec<StateId> = forms.iter().map(CompiledConstraint::start).collect();
    for compiled in &forms {
        compiled.validate().unwrap_or_else(|error| panic!("{error}"));
        let _ = shortest(compiled, vocabulary);
        assert_eq!(compiled.next(StateId::UNCONSTRAINED, TokenId(u32::MAX)), StateId::DEAD);
    }
    for &byte in bytes.iter().take(64) {
        let Some((compiled, &state)) = forms.first().zip(states.first()) else { break };
        let legal: Vec<TokenId> = compiled.allowed(state).collect();
        for (other, &at) in forms.iter().zip(&states).skip(1) {
            assert!(other.allowed(at).eq(legal.iter().copied()), "the forms allow different tokens");
        }
        let Some(&token) = legal.get(usize::from(byte) % legal.len().max(1)) else { break };
        for (compiled, state) in forms.iter().zip(&mut states) {
            *state = compiled.next(*state, token);
        }
    }
    made
}

/// Follows a shortest path to the end; returns its text, or nothing if the path is long.
pub fn shortest(constraint: &CompiledConstraint, vocabulary: &Vocabulary) -> Option<Vec<u8>> {
    const LONGEST: u32 = 200;
    let mut state = constraint.start();
    let mut tokens = Vec::new();
    assert_ne!(constraint.tokens_to_end(state), u32::MAX, "a constraint that cannot end");
    if constraint.tokens_to_end(state) > LONGEST {
        return None;
    }
    while state != StateId::DONE {
        let left = constraint.tokens_to_end(state);
        let next = constraint.allowed(state).map(|token| (constraint.next(state, token), token));
        let (next, token) =
            next.min_by_key(|&(next, _)| constraint.tokens_to_end(next)).expect("no dead end");
        assert!(constraint.tokens_to_end(next) < left, "the path to the end grows shorter");
        tokens.push(token);
        state = next;
    }
    assert!(constraint.accepts(&tokens));
    Some(vocabulary.decode(&tokens))
}
