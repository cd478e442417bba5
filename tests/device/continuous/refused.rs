//! A continuous batch refuses invalid requests, and continues.

use burn::tensor::{DType, Device};
use burn_dfa::ErrorKind;
use burn_dfa::generation::speculative::speculate;
use burn_dfa::generation::{ContinuousBatch, FinishReason, GenerationConfig, Request, generate};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, TopK};
use burn_dfa::{
    Arena, Capacity, CompiledConstraint, Constraint, DeviceConstraint, Error, Limits, TensorOptions, TokenId,
    Vocabulary,
};
use burn_dfa_testing::words::{compact, vocabulary_of};
use serde_json::{Value, json};

use crate::common::altered::{Altered, Call};
use crate::common::devices;
use crate::common::model::RandomLm;

const EOS: TokenId = TokenId(256);

fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte])).chain([None]);
    Vocabulary::from_bytes(bytes).unwrap().with_eos([EOS]).unwrap()
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn config() -> GenerationConfig {
    let capacity = Capacity { constraints: 2, states: 64, classes: 32, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new().with_tensors(tensors).with_sync_interval(4)
}

fn prompt(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(u32::from(byte))).collect()
}

#[test]
fn a_full_arena_refuses_until_a_row_is_released() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let constraints = ["[a-f]{20}", "[0-9]{12}", "x{9}"].map(|pattern| regex(pattern, &vocabulary));
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 64, &config()).unwrap();
    let request = |index: usize| Request::new(prompt("go"), 40).with_constraint(&constraints[index]);
    batch.admit(0, &request(0)).unwrap();
    batch.admit(1, &request(1)).unwrap();
    let error = batch.admit(2, &request(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert_eq!(batch.idle().collect::<Vec<_>>(), [2]);
    // A loaded constraint needs no further space, and free text needs none.
    batch.admit(2, &request(1)).unwrap();
    batch.step(3, |_| ()).unwrap();
    let cut = batch.release(2).unwrap();
    assert_eq!((cut.finish, cut.tokens.len()), (FinishReason::Canceled, 4));
    batch.admit(2, &Request::new(prompt("free"), 5)).unwrap();
    assert!(batch.release(0).unwrap().tokens.len() < 21);
    batch.admit(0, &request(2)).unwrap();
    batch.step(64, |_| ()).unwrap();
    assert_eq!(batch.finished().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(batch.release(0).unwrap().text(), "xxxxxxxxx");
    let digits = batch.release(1).unwrap();
    assert!(digits.is_complete() && constraints[1].accepts(&digits.tokens));
    assert_eq!(batch.release(2).unwrap().tokens.len(), 5);
    assert_eq!(batch.free_space(), batch.arena_capacity());
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let constraint = regex("[a-f]{5}", &vocabulary);
    let new = |rows, capacity, config: &GenerationConfig| {
        ContinuousBatch::new(&model, &vocabulary, rows, capacity, config)
    };
    assert_eq!(new(0, 9, &config()).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(new(2, 0, &config()).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(
        new(2, 9, &GenerationConfig::new()).unwrap_err().kind(),
        ErrorKind::Input,
        "no space for constraints"
    );
    assert_eq!(new(2, 9, &config().with_sync_interval(0)).unwrap_err().kind(), ErrorKind::Input);
    let mut batch = new(2, 32, &config()).unwrap();
    batch.admit(0, &Request::new(prompt("a"), 8).with_constraint(&constraint)).unwrap();
    let mut refused = |row, request: &Request| {
        let error = batch.admit(row, request).unwrap_err();
        assert_eq!(batch.idle().collect::<Vec<_>>(), [1], "{error}");
        error
    };
    let good = Request::new(prompt("b"), 8).with_constraint(&constraint);
    assert_eq!(refused(0, &good).kind(), ErrorKind::Input, "taken");
    assert_eq!(refused(2, &good).kind(), ErrorKind::Input, "no such row");
    assert_eq!(refused(1, &Request::new(Vec::new(), 8)).kind(), ErrorKind::Input);
    assert_eq!(refused(1, &Request::new(prompt("b"), 0)).kind(), ErrorKind::Input);
    assert_eq!(refused(1, &Request::new(vec![TokenId(999)], 8)).kind(), ErrorKind::Input);
    assert_eq!(refused(1, &Request::new(prompt("b"), 32)).kind(), ErrorKind::Input, "33 tokens");
    let error = refused(1, &Request { max_new_tokens: 5, ..good.clone() });
    assert_eq!(error.tokens_needed(), Some(6));
    let large = regex("[a-f]{90}", &vocabulary);
    assert_eq!(refused(1, &good.clone().with_constraint(&large)).kind(), ErrorKind::Budget);
    let words: Vec<String> = (0..40).map(|word| format!("{:06}", word * 7919 * 31 % 999_983)).collect();
    let wide = regex(&words.join("|"), &vocabulary);
    let error = refused(1, &good.clone().with_constraint(&wide));
    assert!(error.kind() == ErrorKind::Input && error.to_string().contains("capacity"), "{error}");
    let other = Vocabulary::from_bytes([Some(b"a".to_vec()), None]).unwrap().with_eos([TokenId(1)]).unwrap();
    let other = regex("a", &other);
    assert_eq!(refused(1, &good.clone().with_constraint(&other)).kind(), ErrorKind::IncompatibleVocabulary);
    assert_eq!(batch.release(1).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(batch.release(7).unwrap_err().kind(), ErrorKind::Input);
    batch.admit(1, &good).unwrap();
    batch.step(8, |_| ()).unwrap();
    for row in 0..2 {
        assert!(constraint.accepts(&batch.release(row).unwrap().tokens));
    }
}

#[test]
fn a_processor_with_fixed_constraints_refuses_admit_and_release() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{5}", &vocabulary);
    let device = Device::flex();
    let fixed =
        DeviceConstraint::new(&[&constraint], vocabulary.len(), &TensorOptions::default(), &device).unwrap();
    let mut fixed = ConstraintProcessor::new(fixed, &[0, 0]).unwrap();
    let mut state = fixed.start();
    assert!(fixed.arena().is_none());
    assert_eq!(fixed.admit(&mut state, 0, Some(&constraint), 9).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(fixed.release(&mut state, 0).unwrap_err().kind(), ErrorKind::Input);
    let arena = Arena::new(&vocabulary, vocabulary.len(), &config().tensors, &device).unwrap();
    assert_eq!(ConstraintProcessor::continuous(arena.clone(), 0).unwrap_err().kind(), ErrorKind::Input);
    let mut processor = ConstraintProcessor::continuous(arena, 2).unwrap();
    let mut state = processor.start();
    assert_eq!(processor.release(&mut state, 0).unwrap_err().kind(), ErrorKind::Input, "idle");
    assert_eq!(processor.replace(&[&constraint], &[0, 0], &[9, 9]).unwrap_err().kind(), ErrorKind::Input);
    processor.admit(&mut state, 1, Some(&constraint), 9).unwrap();
    assert_eq!(
        processor.admit(&mut state, 1, Some(&constraint), 9).unwrap_err().kind(),
        ErrorKind::Input,
        "taken"
    );
}

#[test]
fn a_processor_of_fixed_rows_is_refused_by_name_if_the_rows_do_not_fit() {
    let (vocabulary, device) = (vocabulary(), Device::flex());
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &device);
    let constraints = ["[a-f]{5}", "[0-9]{3}"].map(|pattern| regex(pattern, &vocabulary));
    let of = |rows: &[usize]| {
        let (both, options) = ([&constraints[0], &constraints[1]], TensorOptions::default());
        let both = DeviceConstraint::new(&both, vocabulary.len(), &options, &device).unwrap();
        ConstraintProcessor::new(both, rows).unwrap()
    };
    let with = |rows: &[usize]| config().with_processor(of(rows));
    let is_named = |error: Error, reason: &str| {
        let message = error.to_string();
        let names = ["ConstraintProcessor", reason].iter().all(|name| message.contains(name));
        assert!(error.kind() == ErrorKind::Input && names, "{error}");
    };

    let continuous =
        |rows, config: &GenerationConfig| ContinuousBatch::new(&model, &vocabulary, rows, 32, config);
    let chained = config().with_processor(TopK::new(40).unwrap().then(Some(of(&[0, 1]))));
    for (rows, config) in [(2, with(&[0, 1])), (3, with(&[0, 1])), (2, with(&[0])), (2, chained)] {
        is_named(continuous(rows, &config).unwrap_err(), "begin one at a time");
    }
    // A batch of one row.
    let mut batch = continuous(1, &with(&[1])).unwrap();
    for _ in 0..2 {
        batch.admit(0, &Request::new(prompt("a"), 8)).unwrap();
        batch.step(8, |_| ()).unwrap();
        assert!(constraints[1].accepts(&batch.release(0).unwrap().tokens));
    }

    // A batch whose rows begin together.
    let requests = ["a", "b"].map(|text| Request::new(prompt(text), 8));
    let outputs = generate(&model, &vocabulary, &requests, &with(&[0, 1])).unwrap();
    let drafted = speculate(&model, &vocabulary, &requests, &with(&[0, 1]), ()).unwrap();
    for (row, constraint) in constraints.iter().enumerate() {
        assert!(constraint.accepts(&outputs[row].tokens), "row {row}: {:?}", outputs[row]);
        assert_eq!(drafted[row].output.tokens, outputs[row].tokens);
    }
    let fixed = "make it for the rows";
    is_named(generate(&model, &vocabulary, &requests[..1], &with(&[0, 1])).unwrap_err(), fixed);
    is_named(speculate(&model, &vocabulary, &requests, &with(&[0]), ()).unwrap_err(), fixed);
}

#[test]
fn a_processor_of_another_width_is_refused_with_both_widths_and_their_remedy() {
    let (vocabulary, device) = (vocabulary(), Device::flex());
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &device);
    let constraint = regex("[a-f]{5}", &vocabulary);
    let with = |rows: &[usize]| {
        let options = TensorOptions::default();
        let wider = DeviceConstraint::new(&[&constraint], vocabulary.len() + 1, &options, &device).unwrap();
        config().with_processor(ConstraintProcessor::new(wider, rows).unwrap())
    };
    let requests = ["a", "b"].map(|text| Request::new(prompt(text), 8));
    let errors = [
        ContinuousBatch::new(&model, &vocabulary, 1, 32, &with(&[0])).unwrap_err(),
        generate(&model, &vocabulary, &requests, &with(&[0, 0])).unwrap_err(),
        speculate(&model, &vocabulary, &requests, &with(&[0, 0]), ()).unwrap_err(),
    ];
    for error in errors {
        let message = error.to_string();
        let said = ["ConstraintProcessor", "rows of 257 logits", "rows of 258", "Request::with_constraint"];
        assert!(
            error.kind() == ErrorKind::Input && said.iter().all(|said| message.contains(said)),
            "{error}"
        );
        assert!(!message.contains("begin one at a time"), "{error}");
    }
}

#[test]
fn a_constraint_of_another_vocabulary_is_refused_with_both_sizes() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let larger = regex("a", &vocabulary_of(&["aa", "ab"]));
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 32, &config()).unwrap();
    let request = Request::new(prompt("a"), 8).with_constraint(&larger);
    let mut arena = Arena::new(&vocabulary, vocabulary.len(), &config().tensors, &Device::flex()).unwrap();
    for error in [batch.admit(0, &request).unwrap_err(), arena.admit(&larger).unwrap_err()] {
        let message = error.to_string();
        let said = [format!("of {} tokens", larger.vocabulary_len()), "of 257: compile it for".to_owned()];
        let is_said = said.iter().all(|said| message.contains(said));
        assert!(error.kind() == ErrorKind::IncompatibleVocabulary && is_said, "{error}");
    }
}

/// On a GPU, a thread holds the frames that a token pushes.
#[test]
fn constraints_whose_tokens_push_too_many_frames_are_refused() {
    let vocabulary = vocabulary_of(&["[[", "[[[["]);
    let compile = |schema: Value| {
        CompiledConstraint::compile_byte_level(&compact(&schema), &vocabulary, &Limits::default()).unwrap()
    };
    let lists = compile(json!({"type": "array", "items": {"$ref": "#"}}));
    let objects =
        compile(json!({"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": false}));
    assert_eq!((lists.pushes(), objects.pushes()), (4, 1));
    let capacity =
        Capacity { constraints: 2, states: 500, classes: 100, ..Capacity::new() }.with_stack(2, 64);
    for (name, device) in devices::all() {
        for (pushes, fit) in [(0, true), (4, true), (3, name == "flex"), (1, name == "flex")] {
            let options = TensorOptions::new().with_capacity(capacity.with_pushes(pushes));
            let mut arena = Arena::new(&vocabulary, vocabulary.len(), &options, &device).unwrap();
            let mut fixed = DeviceConstraint::new(&[&objects], vocabulary.len(), &options, &device).unwrap();
            arena.admit(&objects).unwrap();
            for result in [arena.admit(&lists).map(drop), fixed.replace(&[&lists])] {
                match result {
                    Ok(()) => assert!(fit, "{name}: {pushes} frames"),
                    Err(error) => {
                        assert!(!fit && error.kind() == ErrorKind::Input, "{name}: {error}");
                        assert!(error.to_string().contains("Capacity::with_pushes"), "{name}: {error}");
                    }
                }
            }
        }
    }
}

/// Rows that began with this token get only −∞.
const POISON: i32 = 7;

#[test]
fn an_error_in_a_row_does_not_affect_other_rows() {
    let vocabulary = vocabulary();
    let random = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| match call {
        Call::Begin(prompt) => {
            let first = prompt.slice([0..1, 0..1]).cast(DType::I32);
            let sick = first.equal_elem(POISON).expand(logits.dims());
            logits.mask_fill(sick, f32::NEG_INFINITY)
        }
        _ => logits,
    });
    let constraint = regex("[a-f]{5}", &vocabulary);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 32, &config()).unwrap();
    batch.admit(0, &Request::new(vec![TokenId(POISON as u32)], 8).with_constraint(&constraint)).unwrap();
    batch.admit(1, &Request::new(prompt("b"), 8).with_constraint(&constraint)).unwrap();
    batch.step(8, |piece| assert_eq!(piece.row, 1)).unwrap();
    assert_eq!(batch.finished().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(batch.release(0).unwrap_err().kind(), ErrorKind::Model);
    assert!(constraint.accepts(&batch.release(1).unwrap().tokens));
    batch.admit(0, &Request::new(prompt("c"), 8).with_constraint(&constraint)).unwrap();
    batch.step(8, |_| ()).unwrap();
    assert!(constraint.accepts(&batch.release(0).unwrap().tokens));
}
