//! States and masks of all nodes of a tree at once, against the host node by node.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
use burn_dfa::processor::{ConstraintProcessor, DraftTree};
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Kernels, Limits, StateId, TensorOptions, TokenId,
    Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::{devices, ints};

const VOCAB_SIZE: usize = 280;

/// The bytes, some words, two ends of sequence.
fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["ab", "abc", "bc", "aa", "12", "{\"", "\":", "\"}"].map(|word| word.as_bytes().to_vec());
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).map(Some).chain([None, None])).unwrap();
    vocabulary.with_eos([TokenId(264), TokenId(265)]).unwrap()
}

const PATTERNS: [&str; 4] = ["(ab|c)*", "[ab]{3,9}12?", r#"\{"[a-c]{0,12}":[0-9]+\}"#, "(a|b|c|1|2){1,9}"];

fn constraints(vocabulary: &Vocabulary, is_byte_level: bool) -> Vec<CompiledConstraint> {
    let compile = if is_byte_level {
        CompiledConstraint::compile_byte_level
    } else {
        CompiledConstraint::compile_token_level
    };
    let constraints = PATTERNS.iter().map(|pattern| Constraint::regex(pattern).unwrap());
    let tag = Tag::new("ab", Format::regex("[12]{1,9}"), "c");
    let tag = StructuralTag::new(TriggeredTags::new(["ab"], [tag]));
    let constraints = constraints.chain([Constraint::structural_tag(&tag).unwrap()]);
    let compiled =
        constraints.map(|constraint| compile(&constraint, vocabulary, &Limits::default()).unwrap());
    compiled.chain([CompiledConstraint::unconstrained(vocabulary)]).collect()
}

/// A row on the host.
#[derive(Clone, Copy)]
struct Node<'a> {
    constraint: &'a CompiledConstraint,
    state: StateId,
    left: u32,
}

impl Node<'_> {
    fn after(self, token: i32) -> Self {
        let next = self.constraint.next(self.state, TokenId(token as u32));
        Self { state: next, left: self.left.saturating_sub(1), ..self }
    }

    fn allows(self, token: i32) -> bool {
        let after = self.after(token);
        after.state != StateId::DEAD && self.constraint.tokens_to_end(after.state) <= after.left
    }

    /// The position of a node of `token`: unchanged if `token` is illegal.
    fn follow(self, token: i32) -> Self {
        if self.allows(token) { self.after(token) } else { self }
    }

    /// A legal token.
    fn some_token(self, rng: &mut StdRng) -> i32 {
        let legal: Vec<_> = (0..VOCAB_SIZE as i32).filter(|&token| self.allows(token)).collect();
        legal[rng.random_range(0..legal.len())]
    }
}

fn random_tree(rng: &mut StdRng) -> DraftTree {
    if rng.random() {
        return DraftTree::chain(rng.random_range(0..9));
    }
    let parents: Vec<_> = (0..rng.random_range(0..12)).map(|at| rng.random_range(0..=at)).collect();
    DraftTree::new(&parents).unwrap()
}

fn ints_of<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i32> {
    tensor.into_data().convert_dtype(DType::I32).try_to_vec::<i32>().unwrap()
}

fn run(is_byte_level: bool, kernels: Kernels, device: &Device, dtype: DType, seed: u64) {
    let form = if is_byte_level { "byte-level" } else { "token-level" };
    let name = format!("{form}, {kernels:?}, {device:?}, {dtype:?}");
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary, is_byte_level);
    let options = TensorOptions { kernels, ..TensorOptions::default() };
    let tensors =
        DeviceConstraint::new(&constraints.iter().collect::<Vec<_>>(), VOCAB_SIZE, &options, device).unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let rows: Vec<usize> = (0..8).map(|row| row % constraints.len()).collect();
    let budgets: Vec<_> =
        rows.iter().map(|&row| tensors.tokens_needed(row) + rng.random_range(0..9)).collect();
    let offsets: Vec<_> =
        rows.iter().map(|&row| tensors.start(row).0.wrapping_sub(constraints[row].start().0)).collect();
    let processor = ConstraintProcessor::new(tensors, &rows).unwrap().with_budgets(&budgets).unwrap();
    let mut hosts: Vec<_> = rows
        .iter()
        .zip(&budgets)
        .map(|(&row, &left)| Node {
            constraint: &constraints[row],
            state: constraints[row].start(),
            left: left as u32,
        })
        .collect();
    let mut state = processor.start();
    let mut last = vec![VOCAB_SIZE as i32; rows.len()];
    for round in 0..8 {
        let tree = random_tree(&mut rng);
        let (mut tokens, mut nodes, mut picks) = (Vec::new(), Vec::new(), Vec::new());
        for (&host, &last) in hosts.iter().zip(&last) {
            let mut own = vec![if last == VOCAB_SIZE as i32 { host } else { host.after(last) }];
            tokens.push(last);
            for &parent in &tree.parents()[1..] {
                let parent = own[parent];
                // One draft in four violates the constraint or is invalid.
                let token = match rng.random_range(0..8) {
                    0 => rng.random_range(0..VOCAB_SIZE as i32),
                    1 => VOCAB_SIZE as i32 - 1,
                    _ => parent.some_token(&mut rng),
                };
                own.push(parent.follow(token));
                tokens.push(token);
            }
            picks.push(rng.random_range(0..tree.len()));
            nodes.push(own);
        }
        let logits: Vec<f32> = (0..rows.len() * tree.len() * VOCAB_SIZE)
            .map(|_| match rng.random_range(0..30) {
                0 => f32::NAN,
                1 => f32::INFINITY,
                _ => rng.random_range(-3.0..3.0),
            })
            .collect();
        let shape = [rows.len(), tree.len(), VOCAB_SIZE];
        let logits = Tensor::<3>::from_data(TensorData::new(logits, shape), (device, dtype));
        let before = logits.clone().into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
        let drafts = ints(tokens, device).reshape([rows.len(), tree.len()]);
        let (masked, states) = processor.mask_tree(&state, &tree, drafts, logits);
        assert_eq!((masked.dims(), masked.dtype()), (shape, dtype), "{name}");
        let masked = masked.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
        let found = ints_of(states.states());
        for (row, own) in nodes.iter().enumerate() {
            for (node, host) in own.iter().enumerate() {
                let at = row * tree.len() + node;
                let joined = match host.state {
                    StateId(reserved @ 0..3) => reserved as i32,
                    StateId(own) => own.wrapping_add(offsets[row]) as i32,
                };
                assert_eq!(found[at], joined, "{name}, round {round}, row {row}, node {node}");
                let mut any = false;
                for token in 0..VOCAB_SIZE {
                    let (old, new) = (before[at * VOCAB_SIZE + token], masked[at * VOCAB_SIZE + token]);
                    let is_legal = host.allows(token as i32);
                    let expected = if is_legal { old } else { f32::NEG_INFINITY };
                    any |= is_legal;
                    assert_eq!(
                        new.to_bits(),
                        expected.to_bits(),
                        "{name}, round {round}, row {row}, node {node}, token {token}"
                    );
                }
                assert!(any, "{name}: no row is all −∞");
            }
        }
        state = states.at(ints(picks.iter().map(|&node| node as i32).collect(), device));
        hosts = nodes.iter().zip(&picks).map(|(own, &node)| own[node]).collect();
        last = hosts.iter().map(|host| host.some_token(&mut rng)).collect();
    }
}

#[test]
fn all_nodes_at_once_match_each_node_alone() {
    for (name, device) in devices::all() {
        let dtypes: Vec<_> =
            [DType::F32, DType::F16].into_iter().filter(|&dtype| device.supports_dtype(dtype)).collect();
        let mut seed = 0;
        for is_byte_level in [false, true] {
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                // The built-in operations are slow on a GPU, and equal on all devices. With 8 rounds
                // each, the others take 200.
                let batches = match kernels {
                    Kernels::Fused => 25,
                    _ if name == "flex" => 4,
                    _ => 1,
                };
                for &dtype in &dtypes {
                    for _ in 0..batches {
                        seed += 1;
                        run(is_byte_level, kernels, &device, dtype, seed);
                    }
                }
            }
        }
        eprintln!("{name}: {seed} batches");
    }
}
