//! Free text on Flex: masks and choices equal the host's, even for tokens across the borders of
//! triggers and characters.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::constraint::{Marker, StructuralTag};
use burn_dfa::processor::{ConstraintProcessor, DraftTree, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::tokens::{Origin, RowPosition};
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::common::ints;

/// Texts of the constraints below, or parts of such texts.
const TEXTS: [&str; 12] = [
    "Is 1 < 2?\n\n\"Yes\", \\o/\t<f or <f=",
    "<f=a>{\"q\":1}</f> and\r\n<f=b>[[],[[]]]</f>",
    "x<f=a>{\"q\":\"<f=a\"}</f><f=a>{}</f>",
    "été ｜x｜ ✓<ｆ <é <e<e><end>",
    "abab bc abc b\n```\n",
    "<f=c><parameter=q>a < b</parameter></f>",
    "I think</think>12<think></thin",
    "no stop. sto st\u{0}p stop",
    "                                ",
    "=========================",
    "\n\nAction: a\n\n\nAction",
    "𝒳𝒴 ｜ｘ｜y ��",
];

fn tag(format: Value) -> Constraint {
    let tag = StructuralTag::try_from(&json!({"type": "structural_tag", "format": format})).unwrap();
    Constraint::structural_tag(&tag).unwrap()
}

/// Constraints with free text; `named` is a text token.
fn constraints(named: TokenId) -> Vec<Constraint> {
    let query = json!({"type": "json_schema", "json_schema": {"type": "object", "properties": {"q": {"type": ["integer", "string"]}}}});
    let nested = json!({"type": "json_schema", "json_schema": {"type": "array", "items": {"$ref": "#"}}});
    let xml = json!({"type": "json_schema", "style": "qwen_xml", "json_schema": {"type": "object",
        "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": false}});
    let call = |begin: &str, content: &Value| json!({"begin": begin, "content": content, "end": "</f>"});
    let calls = json!({"type": "triggered_tags", "triggers": ["<f=a", "<f=b", "<f=c"],
        "tags": [call("<f=a>", &query), call("<f=b>", &nested), call("<f=c>", &xml)]});
    let flat = json!({"type": "triggered_tags", "triggers": ["<f="], "excludes": ["stop"],
        "tags": [call("<f=a>", &query), call("<f=c>", &xml)]});
    let sequence = |elements: Value| tag(json!({"type": "sequence", "elements": elements}));
    let rules = json!([["｜x", query], ["ab", {"type": "const_string", "value": "<"}], ["bc", nested]]);
    vec![
        tag(json!({"type": "tag", "begin": "", "content": calls, "end": "<end>"})),
        tag(calls),
        tag(flat),
        tag(json!({"type": "dispatch", "rules": rules, "loop": true})),
        tag(
            json!({"type": "triggered_tags", "triggers": ["\n\nAction"], "tags": [call("\n\nAction", &query)],
            "at_least_one": true}),
        ),
        // Two free texts with other triggers.
        sequence(json!([{"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": "</think>"},
            {"type": "triggered_tags", "triggers": ["ab"], "tags": [call("ab", &query)]}])),
        tag(json!({"type": "any_text", "excludes": ["stop", "é", "=="]})),
        tag(json!({"type": "any_tokens", "exclude_tokens": [named.0]})),
        Constraint::after("</think>", Constraint::regex("[0-9]+").unwrap()),
        Constraint::after(Marker::Token(named), Constraint::json_schema(json!({})).unwrap()),
        Constraint::regex(r"([^<]*<[^<>]*>)*").unwrap(),
        Constraint::regex(r"[^a]*a[^b\n]*b(?s:.*)").unwrap(),
        Constraint::json_schema(json!({"type": "string"})).unwrap(),
    ]
}

/// Every byte; substrings of the texts, some with incomplete characters; special tokens; the end.
fn vocabulary(rng: &mut StdRng) -> (Vocabulary, TokenId) {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> =
        (0..=u8::MAX).map(|byte| (TokenKind::Normal, vec![byte])).collect();
    for text in TEXTS {
        for _ in 0..14 {
            let from = rng.random_range(0..text.len());
            let len = if rng.random_range(0..4) == 0 { 40 } else { rng.random_range(1..10) };
            tokens.push((TokenKind::Normal, text.as_bytes()[from..(from + len).min(text.len())].to_vec()));
        }
    }
    let named = TokenId(tokens.len() as u32);
    tokens.push((TokenKind::Normal, b"ab\n<f=a".to_vec()));
    tokens.extend([b"<f=a>".to_vec(), b"<s>".to_vec()].map(|text| (TokenKind::Special, text)));
    let end = TokenId(tokens.len() as u32);
    tokens.push((TokenKind::Special, b"<end>".to_vec()));
    (Vocabulary::from_tokens(tokens).unwrap().with_eos([end]).unwrap(), named)
}

fn legal(constraint: &CompiledConstraint, position: &RowPosition) -> Vec<u32> {
    let may_follow = |&id: &u32| constraint.can_end(&constraint.after(position, TokenId(id)));
    (0..constraint.vocabulary_len() as u32).filter(may_follow).collect()
}

/// The legal tokens of rows of masked logits. Checks that legal logits are unchanged and others are
/// −∞.
fn kept(masked: Tensor<2>, given: &[f32], vocab_size: usize) -> Vec<Vec<u32>> {
    let masked: Vec<f32> = masked.into_data().try_to_vec().unwrap();
    let rows = masked.chunks_exact(vocab_size).zip(given.chunks_exact(vocab_size)).map(|(masked, given)| {
        let kept = (0..vocab_size).filter(|&id| masked[id] != f32::NEG_INFINITY);
        kept.inspect(|&id| assert_eq!(masked[id], given[id])).map(|id| id as u32).collect()
    });
    rows.collect()
}

/// Walks rows along the constraints, with these budgets; returns the numbers of rows with mostly
/// and with hardly any legal text.
fn walk(constraints: &[CompiledConstraint], budgets: &[usize], steps: usize, rng: &mut StdRng) -> [usize; 2] {
    let (device, rows) = (Device::flex(), constraints.len());
    let len = constraints[0].vocabulary_len();
    let vocab_size = len + 3;
    let on_device = DeviceConstraint::new(
        &constraints.iter().collect::<Vec<_>>(),
        vocab_size,
        &TensorOptions::default(),
        &device,
    );
    let rows_of: Vec<usize> = (0..rows).collect();
    let processor =
        ConstraintProcessor::new(on_device.unwrap(), &rows_of).unwrap().with_budgets(budgets).unwrap();
    let sampler = GumbelMax::new(&[7; 64][..rows], vocab_size, &device).unwrap();
    let starts = constraints.iter().zip(budgets);
    let mut own: Vec<_> =
        starts.map(|(constraint, &budget)| RowPosition::new(constraint.start(), budget as u32)).collect();
    let mut position = processor.start();
    let mut tokens = vec![vocab_size as i32; rows];
    let mut met = [0; 2];
    for step in 0..steps {
        let given: Vec<f32> = (0..rows * vocab_size).map(|_| rng.random_range(-4.0..4.0)).collect();
        let logits = || {
            Tensor::<2>::from_data(TensorData::new(given.clone(), [rows, vocab_size]), (&device, DType::F32))
        };
        let context =
            || StepContext { tokens: ints(tokens.clone(), &device), step: ints(vec![step as i32], &device) };
        let expected: Vec<Vec<u32>> =
            constraints.iter().zip(&own).map(|(constraint, own)| legal(constraint, own)).collect();
        let (masked, next) = processor.process(position.clone(), logits(), &context());
        let found = kept(masked.clone(), &given, vocab_size);
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "step {step}, row {row}, {:?}", own[row]);
            met[usize::from(2 * found.len() < len)] += 1;
        }
        for sampler in [&Greedy as &dyn Sampler, &sampler] {
            let (mut position, mut context) = (position.clone(), context());
            let wanted = sampler.sample(masked.clone(), &context.step).into_data();
            processor.sample_step(&mut position, &mut context, logits(), sampler);
            assert_eq!(context.tokens.into_data(), wanted, "step {step}");
        }
        // Another token after it, as a draft.
        let (more, draft) = (rng.random_range(0..len as i32), DraftTree::chain(1));
        let pairs: Vec<i32> = tokens.iter().flat_map(|&token| [token, more]).collect();
        let pairs = ints(pairs, &device).reshape([rows, 2]);
        let twice: Vec<f32> = given.chunks_exact(vocab_size).flat_map(|row| [row, row].concat()).collect();
        let logits = Tensor::<1>::from_data(TensorData::new(twice.clone(), [twice.len()]), &device);
        let (tree, _) = processor.mask_tree(&position, &draft, pairs, logits.reshape([rows, 2, vocab_size]));
        let tree = kept(tree.reshape([rows * 2, vocab_size]), &twice, vocab_size);
        for (row, (constraint, own)) in constraints.iter().zip(&own).enumerate() {
            assert_eq!(tree[2 * row], expected[row]);
            let after =
                Some(constraint.after(own, TokenId(more as u32))).filter(|after| constraint.can_end(after));
            let expected = after.map_or(expected[row].clone(), |after| legal(constraint, &after));
            assert_eq!(tree[2 * row + 1], expected, "step {step}, row {row}, token {more} after {own:?}");
        }
        position = next;
        for (row, (constraint, own)) in constraints.iter().zip(&mut own).enumerate() {
            let words: Vec<u32> =
                expected[row].iter().copied().filter(|&id| id > 255 && id + 1 < len as u32).collect();
            let from = if words.is_empty() || rng.random_range(0..4) == 0 { &expected[row] } else { &words };
            let token = *from.choose(rng).expect("a row is never without a token");
            tokens[row] = token as i32;
            *own = constraint.after(own, TokenId(token));
        }
    }
    met
}

#[test]
fn masks_and_choices_in_free_text_match_the_host() {
    let mut met = [0; 2];
    for seed in 0..6 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (vocabulary, named) = vocabulary(&mut rng);
        for frames in [64, 2, 0] {
            let limits = Limits::new().with_frames(frames);
            let compile = |constraint: &Constraint| {
                CompiledConstraint::compile_byte_level(constraint, &vocabulary, &limits)
            };
            // Without a stack, recursive constraints are copied to a fixed depth and are large;
            // with a small stack some are refused.
            let compiled = constraints(named)
                .iter()
                .filter_map(|constraint| compile(constraint).ok())
                .collect::<Vec<_>>();
            assert!(compiled.len() > 9, "{}", compiled.len());
            let least = compiled.iter().map(|compiled| compiled.tokens_to_end(compiled.start()) as usize);
            let budgets: Vec<usize> = least.map(|least| least + rng.random_range(0..30)).collect();
            let endless = vec![1 << 20; compiled.len()];
            for budgets in [budgets, endless] {
                let found = walk(&compiled, &budgets, 24, &mut rng);
                met = [met[0] + found[0], met[1] + found[1]];
            }
        }
    }
    assert!(met.iter().all(|&met| met > 1_000), "{met:?}");
}

#[test]
fn a_constraint_that_was_loaded_or_pruned_has_the_same_masks() {
    let mut rng = StdRng::seed_from_u64(99);
    let (vocabulary, named) = vocabulary(&mut rng);
    let limits = Limits::default();
    let ids: Vec<TokenId> = (0..vocabulary.len() as u32).rev().map(TokenId).collect();
    let mut pairs = Vec::new();
    for constraint in constraints(named) {
        let compiled = CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits).unwrap();
        let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits)).unwrap();
        let loaded = CompiledConstraint::from_bytes(&bytes, &vocabulary, &limits).unwrap();
        assert_eq!(loaded, compiled);
        pairs.push([loaded, compiled.prune(&vocabulary, &ids).unwrap()]);
    }
    for which in 0..2 {
        let compiled: Vec<_> = pairs.iter().map(|pair| pair[which].clone()).collect();
        // A pruned constraint may allow nothing, but this one has all tokens.
        walk(&compiled, &vec![1 << 20; compiled.len()], 24, &mut rng);
    }
}
