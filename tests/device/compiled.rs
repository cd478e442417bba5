//! Compiled constraints against a brute-force walk, and device constraints against compiled ones.

use burn_dfa::ErrorKind;
use std::collections::HashMap;

use crate::common::{bools, devices, ints};
use burn::tensor::Device;
use burn_dfa::automaton::{ByteDfa, ByteStateId};
use burn_dfa::constraint::Transitions;
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Kernels, Limits, StateId, TensorOptions, TokenId,
    Vocabulary,
};
use burn_dfa_testing::data;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Random tokens over few bytes, halves of characters among them; the last id is the end.
fn vocabulary() -> impl Strategy<Value = Vocabulary> {
    let byte = prop::sample::select(vec![b'a', b'b', b'c', b'0', 0xc3, 0xa9, b'"']);
    let token = prop::option::weighted(0.9, prop::collection::vec(byte, 1..4));
    prop::collection::vec(token, 1..30).prop_map(|mut tokens| {
        tokens.push(None);
        let eos = TokenId(tokens.len() as u32 - 1);
        Vocabulary::from_bytes(tokens).unwrap().with_eos([eos]).unwrap()
    })
}

/// Random patterns over the same characters.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", "c", "0", "é", "[ab]", "[^a]", ".", "\"", "\\d"]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| format!("({})", parts.join("|"))),
            (inner.clone(), prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}"]))
                .prop_map(|(part, times)| format!("({part}){times}")),
        ]
    })
}

/// The end state of a token's bytes, byte by byte.
fn walk(dfa: &ByteDfa, state: ByteStateId, bytes: &[u8]) -> ByteStateId {
    bytes.iter().fold(state, |state, &byte| dfa.next(state, byte))
}

/// The least number of tokens to the end from every state, by relaxation until nothing changes.
fn tokens_to_end(dfa: &ByteDfa, vocabulary: &Vocabulary) -> Vec<u32> {
    let states = dfa.state_count() as u32;
    let mut least: Vec<u32> =
        (0..states).map(|state| if dfa.is_accepting(ByteStateId(state)) { 1 } else { u32::MAX }).collect();
    loop {
        let mut changed = false;
        for state in 1..states {
            for (_, bytes) in vocabulary.iter() {
                let next = walk(dfa, ByteStateId(state), bytes);
                let through = least[next.index()].saturating_add(1);
                if next != ByteStateId::DEAD && through < least[state as usize] {
                    least[state as usize] = through;
                    changed = true;
                }
            }
        }
        if !changed {
            return least;
        }
    }
}

/// Compares every token from every reachable state.
fn assert_equal_to_brute_force(constraint: &CompiledConstraint, dfa: &ByteDfa, vocabulary: &Vocabulary) {
    let least = tokens_to_end(dfa, vocabulary);
    let mut partner = HashMap::from([(constraint.start(), dfa.start())]);
    let mut queue = vec![constraint.start()];
    while let Some(state) = queue.pop() {
        let byte_state = partner[&state];
        assert_eq!(constraint.tokens_to_end(state), least[byte_state.index()]);
        assert_eq!(constraint.is_accepting(state), dfa.is_accepting(byte_state));
        for id in 0..vocabulary.len() as u32 + 2 {
            let token = TokenId(id);
            let next = constraint.next(state, token);
            if vocabulary.eos().contains(&token) {
                let expected = if dfa.is_accepting(byte_state) { StateId::DONE } else { StateId::DEAD };
                assert_eq!(next, expected, "end of sequence in state {state}");
                continue;
            }
            let byte_next = match vocabulary.bytes(token) {
                Some(bytes) => walk(dfa, byte_state, bytes),
                None => ByteStateId::DEAD,
            };
            if byte_next == ByteStateId::DEAD || least[byte_next.index()] == u32::MAX {
                assert_eq!(next, StateId::DEAD, "token {token} in state {state}");
            } else {
                assert!(next.0 >= StateId::RESERVED, "token {token} in state {state}");
                if *partner.entry(next).or_insert_with(|| {
                    queue.push(next);
                    byte_next
                }) != byte_next
                {
                    panic!("token {token} in state {state} leads to two different states");
                }
            }
        }
    }
    assert_eq!(
        partner.len() + StateId::RESERVED as usize,
        constraint.state_count(),
        "every state can be reached"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_compiled_constraint_is_the_brute_force_walk(pattern in pattern(), vocabulary in vocabulary()) {
        let constraint = Constraint::regex(&pattern).unwrap();
        let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
        let least = tokens_to_end(&dfa, &vocabulary)[dfa.start().index()];
        match CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()) {
            Ok(compiled) => {
                compiled.validate().unwrap();
                assert_equal_to_brute_force(&compiled, &dfa, &vocabulary);
            }
            Err(error) => {
                prop_assert!(error.kind() == ErrorKind::Unsatisfiable, "{error}");
                prop_assert_eq!(least, u32::MAX);
            }
        }
    }
}

#[test]
fn real_vocabularies_match_the_brute_force_walk() {
    for tokenizer in data::tokenizers() {
        let vocabulary = tokenizer.vocabulary();
        for pattern in [r"-?\d+(\.\d+)?", r#"\{"name":"[^"\\]{1,5}"\}"#, r"(\p{L}+ ){2}", "日本|née?"] {
            let constraint = Constraint::regex(pattern).unwrap();
            let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
            let compiled =
                CompiledConstraint::compile_token_level(&constraint, &vocabulary, &Limits::default())
                    .unwrap();
            assert_equal_to_brute_force(&compiled, &dfa, &vocabulary);
        }
    }
}

/// A random token automaton of `states` states over `vocab_size - 1` tokens and the end.
fn random_constraint(rng: &mut StdRng, vocabulary: &Vocabulary, states: u32) -> Option<CompiledConstraint> {
    let tokens = vocabulary.len() as u32 - 1;
    let mut transitions = Vec::new();
    for state in 0..states {
        for token in 0..tokens {
            if rng.random_bool(0.3) {
                transitions.push((state, TokenId(token), rng.random_range(0..states)));
            }
        }
    }
    let accepting: Vec<u32> = (0..states).filter(|_| rng.random_bool(0.2)).collect();
    let transitions = Transitions::new(0, accepting, transitions).ok()?;
    CompiledConstraint::compile(&Constraint::transitions(transitions), vocabulary, &Limits::default()).ok()
}

#[test]
fn random_constraints_are_the_same_on_every_device_and_by_every_operation() {
    let mut rng = StdRng::seed_from_u64(11);
    let devices = devices::all();
    let mut compared = 0;
    for round in 0..12 {
        let tokens = rng.random_range(2..60);
        let vocabulary = Vocabulary::from_tokens((0..=tokens).map(|_| (TokenKind::Special, ""))).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(tokens)]).unwrap();
        let vocab_size = vocabulary.len() + rng.random_range(0..9);
        let mut constraints = vec![CompiledConstraint::unconstrained(&vocabulary)];
        while constraints.len() < 1 + round % 4 + 1 {
            let states = rng.random_range(1..12);
            constraints.extend(random_constraint(&mut rng, &vocabulary, states));
        }
        let references: Vec<_> = constraints.iter().collect();
        // Every state of every constraint, and the reserved states, as one batch.
        let mut rows = vec![(0, StateId::DEAD), (0, StateId::DONE), (0, StateId::UNCONSTRAINED)];
        for (index, constraint) in constraints.iter().enumerate() {
            rows.extend(
                (StateId::RESERVED..constraint.state_count() as u32).map(|state| (index, StateId(state))),
            );
        }
        let joined: Vec<StateId> = (0..rows.len() as u32).map(StateId).collect();
        let number: HashMap<_, _> = rows.iter().copied().zip(0i32..).collect();
        let of = |index: usize, state: StateId| {
            let index = if state.0 < StateId::RESERVED { 0 } else { index };
            number[&(index, state)]
        };
        let spare: Vec<i32> = rows.iter().map(|_| rng.random_range(0..5)).collect();
        let chosen: Vec<i32> = rows.iter().map(|_| rng.random_range(-2..vocab_size as i32 + 3)).collect();
        for (name, device) in &devices {
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                let options = TensorOptions { kernels, ..TensorOptions::default() };
                let tensors = DeviceConstraint::new(&references, vocab_size, &options, device).unwrap();
                assert_eq!(tensors.state_count(), rows.len());
                let states = tensors.states(&joined).unwrap();
                let all = tensors.illegal(states.clone(), None);
                let near = tensors.illegal(states.clone(), Some(ints(spare.clone(), device)));
                let next = tensors.next(states, ints(chosen.clone(), device));
                let (all, near) = (bools(all), bools(near));
                let next = next.into_data().try_to_vec::<i32>().unwrap();
                for (row, &(index, state)) in rows.iter().enumerate() {
                    let constraint = &constraints[index];
                    for token in 0..vocab_size {
                        let after = constraint.next(state, TokenId(token as u32));
                        let dead = after == StateId::DEAD;
                        let far = dead || i64::from(constraint.tokens_to_end(after)) > i64::from(spare[row]);
                        let at = row * vocab_size + token;
                        assert_eq!((all[at], near[at]), (dead, far), "{name}, {kernels:?}, {state}, {token}");
                        compared += 1;
                    }
                    let expected = match usize::try_from(chosen[row]) {
                        Ok(token) if token < vocab_size => {
                            of(index, constraint.next(state, TokenId(token as u32)))
                        }
                        Ok(token) if token == vocab_size => row as i32,
                        _ => 0,
                    };
                    assert_eq!(next[row], expected, "{name}, {kernels:?}, {state}, token {}", chosen[row]);
                }
            }
        }
    }
    eprintln!("{compared} masks compared");
}

#[test]
fn token_level_constraints_accept_their_sequences() {
    let vocabulary = Vocabulary::from_tokens((0..6).map(|_| (TokenKind::Special, ""))).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(5)]).unwrap().pad_to(8).unwrap();
    let compile = |constraint| CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default());
    let ids = |ids: &[u32]| ids.iter().copied().map(TokenId).collect::<Vec<_>>();

    // Bumblebee's form: user-defined state numbers; special tokens are allowed, because tokens are
    // named by id.
    let steps = vec![(10, TokenId(0), 20), (20, TokenId(1), 20), (20, TokenId(2), 30), (20, TokenId(3), 99)];
    let constraint = compile(Constraint::transitions(Transitions::new(10, [30], steps).unwrap())).unwrap();
    assert!(constraint.accepts(&ids(&[0, 1, 1, 2, 5])));
    assert!(!constraint.accepts(&ids(&[0, 2])), "the end is missing");
    assert!(!constraint.accepts(&ids(&[2, 5])));
    let after = constraint.next(constraint.start(), TokenId(0));
    assert_eq!(constraint.next(after, TokenId(3)), StateId::DEAD, "state 99 is a dead end");
    assert_eq!(constraint.tokens_to_end(constraint.start()), 3);

    let sets = vec![ids(&[0, 1]), ids(&[2]), ids(&[0, 4])];
    let constraint = compile(Constraint::token_sets(sets).unwrap()).unwrap();
    assert!(constraint.accepts(&ids(&[1, 2, 4, 5])));
    assert!(!constraint.accepts(&ids(&[1, 2, 5])));
    assert!(!constraint.accepts(&ids(&[1, 1, 4, 5])));

    for id in [6, 8] {
        let beyond = Transitions::new(0, [1], vec![(0, TokenId(id), 1)]).unwrap();
        let error = compile(Constraint::transitions(beyond)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IncompatibleVocabulary, "padded and missing ids: {error}");
    }
    let end = Transitions::new(0, [1], vec![(0, TokenId(5), 1)]).unwrap();
    assert_eq!(compile(Constraint::transitions(end)).unwrap_err().kind(), ErrorKind::IncompatibleVocabulary);
}

#[test]
fn failed_compilations_are_typed_errors() {
    let vocabulary = Vocabulary::from_chars("ab".chars()).unwrap().pad_to(3).unwrap();
    let constraint = Constraint::regex("a+b").unwrap();
    let error = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleVocabulary, "no end of sequence: {error}");

    let vocabulary = vocabulary.with_eos([TokenId(2)]).unwrap();
    let error =
        CompiledConstraint::compile(&Constraint::regex("abc").unwrap(), &vocabulary, &Limits::default());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsatisfiable, "no token for `c`");
    let limits = [
        Limits { states: 10, ..Limits::default() },
        Limits { bytes: 100, ..Limits::default() },
        Limits { time: std::time::Duration::ZERO, ..Limits::default() },
    ];
    for limits in limits {
        let error = CompiledConstraint::compile(&Constraint::regex("a{50}").unwrap(), &vocabulary, &limits);
        let error = error.unwrap_err();
        assert!(error.kind() == ErrorKind::Limit && error.breached().is_some(), "{error}");
    }
}

#[test]
fn constraints_of_two_vocabularies_or_wider_than_the_logits_do_not_reach_a_device() {
    let one =
        Vocabulary::from_chars("ab".chars()).unwrap().pad_to(3).unwrap().with_eos([TokenId(2)]).unwrap();
    let two =
        Vocabulary::from_chars("ac".chars()).unwrap().pad_to(3).unwrap().with_eos([TokenId(2)]).unwrap();
    let compile = |vocabulary| {
        CompiledConstraint::compile(&Constraint::regex("a").unwrap(), vocabulary, &Limits::default()).unwrap()
    };
    let (first, second) = (compile(&one), compile(&two));
    let device = Device::flex();
    let options = TensorOptions::default();
    let upload = |constraints: &[&CompiledConstraint], vocab_size| {
        DeviceConstraint::new(constraints, vocab_size, &options, &device).map(|_| ())
    };
    assert_eq!(upload(&[&first, &second], 3).unwrap_err().kind(), ErrorKind::IncompatibleVocabulary);
    assert_eq!(upload(&[&first], 2).unwrap_err().kind(), ErrorKind::IncompatibleVocabulary);
    assert_eq!(upload(&[], 3).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(first.check_vocabulary(&two).unwrap_err().kind(), ErrorKind::IncompatibleVocabulary);
    let device_constraint = DeviceConstraint::new(&[&first], 3, &options, &device).unwrap();
    assert_eq!(device_constraint.states(&[StateId(99)]).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(device_constraint.states(&[]).unwrap_err().kind(), ErrorKind::Input);
}
