//! Outputs under constraints after a marker: of every loop, in both forms.

use burn::tensor::{DType, Device};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::{Marker, Transitions};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate,
};
use burn_dfa::generation::{FinishReason, GenerationConfig, Request, generate};
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Kernels, StateId, TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{FORMS, admits, assert_ends, limits};
use crate::common::{devices, model::RandomLm};
use burn_dfa_testing::words::compact;

/// The bytes, some words, two special tokens, an end.
fn words() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["</", "think", ">", "</think>", ">{\"", "k>", "{\"a\":", "true", "é<", " the", "ab>"];
    let words = words.iter().map(|word| word.as_bytes().to_vec());
    let text = bytes.chain(words).map(|bytes| (TokenKind::Normal, bytes));
    let other =
        [TokenKind::Special, TokenKind::Special, TokenKind::Unused].map(|kind| (kind, b"<|x|>".to_vec()));
    let tokens: Vec<_> = text.chain(other).chain([(TokenKind::Special, b"<end>".to_vec())]).collect();
    let end = TokenId(tokens.len() as u32 - 1);
    Vocabulary::from_tokens(tokens).unwrap().with_eos([end]).unwrap()
}

const SPECIAL: TokenId = TokenId(267);
const MARK: TokenId = TokenId(268);
/// `</think>`
const TEXT_MARK: TokenId = TokenId(259);

fn schema() -> Constraint {
    compact(&serde_json::json!({"type": "object", "properties": {"a": {"type": "boolean"}},
        "required": ["a"], "additionalProperties": false}))
}

fn constraints() -> Vec<(Marker, Constraint)> {
    let markers = ["</think>".into(), MARK.into(), TEXT_MARK.into(), "</".into(), "aab".into()];
    let inner =
        [schema(), Constraint::regex("[a-c]{3,5}<?").unwrap(), Constraint::choice(["yes", "no"]).unwrap()];
    markers
        .iter()
        .flat_map(|marker: &Marker| inner.iter().map(|inner| (marker.clone(), inner.clone())))
        .collect()
}

#[test]
fn generated_texts_pass_the_marker_in_time_in_every_form() {
    let vocabulary = words();
    let mut generations = 0;
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 2, 4, DType::F32, &device);
        let draft = model.like(0..vocabulary.len() + 2, 0.7, 5);
        let mut rng = StdRng::seed_from_u64(9);
        for (index, (marker, inner)) in constraints().into_iter().enumerate() {
            let member = inner.to_byte_dfa(&limits()).unwrap().unwrap();
            let constraint = Constraint::after(marker.clone(), inner);
            let both_forms = FORMS.map(|compile| compile(&constraint, &vocabulary, &limits()).unwrap());
            let other = CompiledConstraint::compile_byte_level(&schema(), &vocabulary, &limits()).unwrap();
            for (form, has_other, kernels) in [
                (0, false, Kernels::Fused),
                (1, true, Kernels::Fused),
                (0, false, Kernels::BuiltIn),
                (1, true, Kernels::BuiltIn),
                (0, true, Kernels::Fused),
            ] {
                if name != "flex" && (index > 2 || (index + form) % 4 != 0) {
                    continue;
                }
                let compiled = &both_forms[form];
                let least = compiled.tokens_to_end(compiled.start()) as usize;
                // The batch has a free row, and with `has_other` a byte-level constraint with other
                // special tokens.
                let requests: Vec<_> = (0..6)
                    .map(|row| {
                        let request = Request::new(vec![TokenId(97 + row)], least + rng.random_range(0..16));
                        let request = request.with_seed(rng.random());
                        match row {
                            4 if has_other => {
                                Request { max_new_tokens: 30, ..request.with_constraint(&other) }
                            }
                            5 => request,
                            _ => request.with_constraint(compiled),
                        }
                    })
                    .collect();
                let tensors = TensorOptions { kernels, ..TensorOptions::default() };
                for temperature in [None, Some(1.5)] {
                    let config =
                        GenerationConfig::new().with_temperature(temperature).with_tensors(tensors.clone());
                    let plain = generate(&model, &vocabulary, &requests, &config);
                    let mut outputs = vec![("plain", plain.unwrap())];
                    let model_draft = || DraftModel::new(&draft, 3);
                    let drafters: Vec<(_, Box<dyn Drafter>)> = vec![
                        ("masked", Box::new(model_draft())),
                        ("unmasked", Box::new(model_draft().unmasked())),
                        ("forced", Box::new(ForcedTokens::new(4, ForcedBytes::LongestToken))),
                        (
                            "merged",
                            Box::new(MergedDrafters::new(model_draft(), PromptLookup::new(2, 2)).unwrap()),
                        ),
                    ];
                    // A software Vulkan is much slower than Flex.
                    let max = if name == "flex" { drafters.len() } else { 1 };
                    for (drafter, make) in drafters.into_iter().take(max) {
                        let rows = speculate(&model, &vocabulary, &requests, &config, make);
                        let rows: Vec<_> = rows.unwrap().into_iter().map(|row| row.output).collect();
                        if temperature.is_none() {
                            assert_eq!(rows, outputs[0].1, "{name}, {drafter}, {marker:?}, {compiled:?}");
                        }
                        outputs.push((drafter, rows));
                    }
                    for (drafter, rows) in &outputs {
                        for (request, output) in requests.iter().zip(rows) {
                            let Some(followed) = &request.constraint else { continue };
                            let what =
                                format!("{name}, {drafter}, {marker:?}, {compiled:?}: {:?}", output.text());
                            assert_eq!(output.finish, FinishReason::EndOfSequence, "{what}");
                            assert!(output.tokens.len() <= request.max_new_tokens, "{what}");
                            let text = &output.tokens[..output.tokens.len() - 1];
                            if std::ptr::eq(followed, compiled) {
                                let inner = |bytes: &[u8]| member.matches(bytes);
                                assert!(admits(&marker, &inner, &vocabulary, text), "{what}");
                            }
                            generations += 1;
                        }
                    }
                }
            }
        }
    }
    eprintln!("{generations} texts");
    assert!(generations > 2_000);
}

#[test]
fn a_byte_level_constraint_needs_at_least_as_many_tokens_and_both_forms_agree_otherwise() {
    let vocabulary = words();
    for (marker, inner) in constraints() {
        let constraint = Constraint::after(marker.clone(), inner);
        let [token_level, byte_level] =
            FORMS.map(|compile| compile(&constraint, &vocabulary, &limits()).unwrap());
        assert!(!token_level.is_byte_level() && byte_level.is_byte_level());
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..40 {
            let (mut one, mut other) = (token_level.start(), byte_level.start());
            while one.0 >= StateId::RESERVED {
                let allowed: Vec<_> = token_level.allowed(one).collect();
                assert_eq!(allowed, byte_level.allowed(other).collect::<Vec<_>>(), "{marker:?}");
                assert!(token_level.tokens_to_end(one) <= byte_level.tokens_to_end(other));
                let near = allowed.iter().copied().filter(|&id| {
                    token_level.tokens_to_end(token_level.next(one, id)) < token_level.tokens_to_end(one)
                });
                let near: Vec<_> = near.collect();
                let from = if rng.random_range(0..3) == 0 { &near } else { &allowed };
                let id = from[rng.random_range(0..from.len())];
                (one, other) = (token_level.next(one, id), byte_level.next(other, id));
            }
            assert_eq!(one, other);
        }
    }
}

#[test]
fn special_tokens_are_free_before_the_marker_and_forbidden_after_it() {
    let vocabulary = words();
    let (yes, end) = ([b'y', b'e', b's'].map(|byte| TokenId(byte.into())), TokenId(270));
    for marker in [Marker::Token(MARK), Marker::Token(TEXT_MARK), Marker::from("k>")] {
        let constraint = Constraint::after(marker.clone(), Constraint::regex("yes").unwrap());
        let mark = match marker {
            Marker::Token(token) => token,
            Marker::Text(_) => TokenId(261),
        };
        for compile in FORMS {
            let compiled = compile(&constraint, &vocabulary, &limits()).unwrap();
            let output = [&[SPECIAL, TokenId(104), SPECIAL, mark][..], &yes, &[end]].concat();
            assert!(compiled.accepts(&output), "{marker:?}");
            assert!(!compiled.accepts(&[&[SPECIAL, mark, SPECIAL][..], &yes, &[end]].concat()));
            assert!(!compiled.accepts(&[&[mark][..], &yes[..2], &[end]].concat()));
            assert!(!compiled.accepts(&[&yes[..], &[end]].concat()), "no marker");
            // Neither the end nor an unused id is free.
            assert_eq!(compiled.next(compiled.start(), end), StateId::DEAD);
            assert_eq!(compiled.next(compiled.start(), TokenId(269)), StateId::DEAD);
            assert_eq!(compiled.next(compiled.start(), TokenId(1000)), StateId::DEAD);
            // In the ids of a draft model, with several ids for one token.
            let ids = [end, mark, TokenId(101), SPECIAL, mark, TokenId(115), TokenId(121)];
            let pruned = compiled.prune(&vocabulary, &ids).unwrap();
            for state in (0..compiled.state_count() as u32).map(StateId) {
                for (draft, &id) in ids.iter().enumerate() {
                    assert_eq!(
                        pruned.next(state, TokenId(draft as u32)),
                        compiled.next(state, id),
                        "{marker:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_text_marker_that_is_a_token_is_not_ended_by_its_spelling() {
    let vocabulary = words();
    let constraint = Constraint::after(TEXT_MARK, Constraint::regex("a*(</think>)?").unwrap());
    assert_eq!(constraint.to_byte_dfa(&limits()).unwrap(), None);
    let spelled = [257, 258].map(TokenId);
    let spelled = [&[TokenId(256)], &spelled[..]].concat();
    assert_eq!(vocabulary.decode(&spelled), b"</think>");
    for compile in FORMS {
        let compiled = compile(&constraint, &vocabulary, &limits()).unwrap();
        let end = TokenId(270);
        let accepts = |parts: &[&[TokenId]]| compiled.accepts(&[&parts.concat()[..], &[end]].concat());
        assert!(!accepts(&[&spelled, &[TokenId(97)]]));
        assert!(accepts(&[&spelled, &[TEXT_MARK, TokenId(97)]]));
        // The constraint spells the text, because the token only means the marker.
        assert!(accepts(&[&[TEXT_MARK, TokenId(97)], &spelled]));
        assert!(!accepts(&[&[TEXT_MARK, TokenId(97), TEXT_MARK]]));
    }
}

#[test]
fn markers_nest_and_stand_before_constraints_on_tokens() {
    let vocabulary = words();
    let end = TokenId(270);
    let [a, b, x] = [b'a', b'b', b'x'].map(|byte| TokenId(byte.into()));
    let twice = Constraint::after(
        MARK,
        Constraint::after("ab", Constraint::after(MARK, Constraint::regex("x").unwrap())),
    );
    for compile in FORMS {
        let compiled = compile(&twice, &vocabulary, &limits()).unwrap();
        assert_ends(&compiled);
        assert!(compiled.accepts(&[a, b, MARK, a, MARK, b, SPECIAL, MARK, x, end]));
        assert!(!compiled.accepts(&[a, b, MARK, x, end]));
        assert!(!compiled.accepts(&[MARK, a, b, x, end]));
    }
    let sets = Constraint::token_sets(vec![vec![SPECIAL, x], vec![TEXT_MARK]]).unwrap();
    let transitions =
        Constraint::transitions(Transitions::new(7, [7], [(7, x, 7), (7, TEXT_MARK, 7)]).unwrap());
    for (marker, close) in [(Marker::from("</think>"), TEXT_MARK), (MARK.into(), MARK)] {
        let compiled = CompiledConstraint::compile(
            &Constraint::after(marker.clone(), sets.clone()),
            &vocabulary,
            &limits(),
        );
        let compiled = compiled.unwrap();
        assert_ends(&compiled);
        assert!(compiled.accepts(&[a, SPECIAL, close, SPECIAL, TEXT_MARK, end]));
        assert!(!compiled.accepts(&[a, close, a, TEXT_MARK, end]));
        let compiled = CompiledConstraint::compile(
            &Constraint::after(marker, transitions.clone()),
            &vocabulary,
            &limits(),
        )
        .unwrap();
        assert!(compiled.accepts(&[b, close, x, TEXT_MARK, x, end]) && compiled.accepts(&[close, end]));
    }
    // A token with the end of the marker and more text cannot be split.
    let compiled =
        CompiledConstraint::compile(&Constraint::after(">{", sets), &vocabulary, &limits()).unwrap();
    assert_eq!(compiled.next(compiled.start(), TokenId(260)), StateId::DEAD);
}

#[test]
fn markers_that_no_vocabulary_has_are_refused() {
    let vocabulary = words();
    for (token, compile) in
        [1000, 269, 270].map(TokenId).into_iter().flat_map(|id| FORMS.map(|form| (id, form)))
    {
        let constraint = Constraint::after(token, Constraint::regex("a").unwrap());
        assert_eq!(
            compile(&constraint, &vocabulary, &limits()).unwrap_err().kind(),
            ErrorKind::IncompatibleVocabulary
        );
    }
    let long = Constraint::after("ab".repeat(1 << 20), Constraint::regex("a").unwrap());
    for compile in FORMS {
        assert_eq!(compile(&long, &vocabulary, &limits()).unwrap_err().kind(), ErrorKind::Limit);
    }
    let unspelled = Vocabulary::from_bytes([Some("a"), None]).unwrap().with_eos([TokenId(1)]).unwrap();
    let constraint = Constraint::after("b", Constraint::regex("a").unwrap());
    for compile in FORMS {
        assert_eq!(compile(&constraint, &unspelled, &limits()).unwrap_err().kind(), ErrorKind::Unsatisfiable);
    }
}

#[test]
fn constraints_with_and_without_a_marker_replace_each_other() {
    let vocabulary = words();
    let (device, vocab_size) = (Device::flex(), vocabulary.len());
    let walk = |constraint: &Constraint| {
        CompiledConstraint::compile_byte_level(constraint, &vocabulary, &limits()).unwrap()
    };
    let with = walk(&Constraint::after(TEXT_MARK, schema()));
    let without = walk(&schema());
    let capacity = burn_dfa::Capacity {
        states: with.state_count() + 9,
        classes: with.class_count() + 9,
        constraints: 1,
        ..burn_dfa::Capacity::new()
    };
    let options = TensorOptions { capacity, kernels: Kernels::BuiltIn, ..TensorOptions::default() };
    let mut tensors = DeviceConstraint::new(&[&without], vocab_size, &options, &device).unwrap();
    for compiled in [&with, &without] {
        tensors.replace(&[compiled]).unwrap();
        let states = tensors.states(&[tensors.start(0)]).unwrap();
        let illegal = crate::common::bools(tensors.illegal(states, None));
        let expected: Vec<_> = (0..vocab_size as u32)
            .map(|id| compiled.next(compiled.start(), TokenId(id)) == StateId::DEAD)
            .collect();
        assert_eq!(illegal, expected);
    }
}
