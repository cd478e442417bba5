//! Masks in the ids of a draft model.

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::ErrorKind;
use burn_dfa::processor::ConstraintProcessor;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, StateId, TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::{devices, ints};

const EOS: TokenId = TokenId(256);

fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte])).chain([None]);
    let words = ["ab", "abc", "bc", "12", "{\""].map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain(words)).unwrap().with_eos([EOS]).unwrap()
}

/// Unordered draft ids: some letters, digits, words, the end.
fn ids() -> Vec<TokenId> {
    let mut ids: Vec<_> = (b'0'..=b'9').chain(b'a'..=b'c').map(|byte| TokenId(u32::from(byte))).collect();
    ids.extend([EOS, TokenId(259), TokenId(257), TokenId(u32::from(b'{'))]);
    ids.reverse();
    ids
}

fn check(device: &Device, constraint: &CompiledConstraint) {
    let (vocabulary, ids) = (vocabulary(), ids());
    let pruned = constraint.prune(&vocabulary, &ids).unwrap();
    let (vocab_size, narrow) = (vocabulary.len(), ids.len() + 3);
    let options = TensorOptions::default();
    let target = DeviceConstraint::new(&[constraint], vocab_size, &options, device).unwrap();
    let draft = DeviceConstraint::new(&[&pruned], narrow, &options, device).unwrap();
    let target = ConstraintProcessor::new(target, &[0]).unwrap().with_budgets(&[12]).unwrap();
    let draft = ConstraintProcessor::new(draft, &[0]).unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    let (mut state, mut host, mut left) = (target.start(), constraint.start(), 12u32);
    for _ in 0..12 {
        let logits = Tensor::zeros([1, narrow], (device, DType::F32));
        let masked = draft.mask(&state, logits).into_data().try_to_vec::<f32>().unwrap();
        for (at, &logit) in masked.iter().enumerate() {
            let next = ids.get(at).map_or(StateId::DEAD, |&id| constraint.next(host, id));
            let legal = next != StateId::DEAD && constraint.tokens_to_end(next) < left.max(1);
            assert_eq!(logit == 0.0, legal, "draft id {at} in state {host}");
        }
        let near = |token: &TokenId| constraint.tokens_to_end(constraint.next(host, *token)) < left.max(1);
        let legal: Vec<_> = constraint.allowed(host).filter(near).collect();
        let token = legal[rng.random_range(0..legal.len())];
        state = target.advance(state, ints(vec![token.0 as i32], device));
        (host, left) = (constraint.next(host, token), left.saturating_sub(1));
    }
}

#[test]
fn a_pruned_constraint_masks_draft_ids_in_the_states_of_the_target() {
    let vocabulary = vocabulary();
    for (_, device) in devices::all() {
        for pattern in ["[a-c]*", "([ab]|12)+c", r#"(\{"a|[0-9]){2,4}"#] {
            let constraint = Constraint::regex(pattern).unwrap();
            for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
                check(&device, &compile(&constraint, &vocabulary, &Limits::default()).unwrap());
            }
        }
    }
}

#[test]
fn impossible_prunings_are_refused() {
    let vocabulary = vocabulary();
    let constraint = Constraint::regex("a").unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
    assert_eq!(compiled.prune(&vocabulary, &[TokenId(262)]).unwrap_err().kind(), ErrorKind::Input);
    let other = Vocabulary::from_bytes([Some("a")]).unwrap();
    assert_eq!(compiled.prune(&other, &[TokenId(0)]).unwrap_err().kind(), ErrorKind::IncompatibleVocabulary);
}
