//! Trees of draft tokens with a stack, in pools of few mask rows, against the host node by node.
//! The nodes of all rows share the pool.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, DraftTree};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{CompiledConstraint, DeviceConstraint, TokenId};
use burn_dfa_testing::words::EOS;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::stack::{compile, grammars, legal, needed, schemas, vocabulary};
use super::{exits_of_the_depth, with_slots};
use crate::common::{devices, ints};

/// 200 rounds for each pool. Rows end, so another batch begins after a few rounds.
const BATCHES: usize = 8;
const ROUNDS: usize = 25;
/// The frames of a stack: few, so that nodes get near its limit.
const FRAMES: usize = 4;

/// A legal token, mostly a word, which enters and leaves several objects and lists.
fn some_token(constraint: &CompiledConstraint, position: &RowPosition, rng: &mut StdRng) -> u32 {
    let legal = legal(constraint, position).into_iter().enumerate().filter(|(_, is_legal)| *is_legal);
    let legal: Vec<usize> = legal.map(|(token, _)| token).collect();
    let words: Vec<usize> = legal.iter().copied().filter(|&token| token > EOS.index()).collect();
    let from = if words.is_empty() || rng.random_bool(0.3) { &legal } else { &words };
    from[rng.random_range(0..from.len())] as u32
}

/// Each round follows a random tree in every row, and continues from a random node. Returns the
/// number of illegal drafts, and the frames of the deepest stack.
fn walk(
    constraints: &[&CompiledConstraint],
    (name, device): (&str, &Device),
    slots: usize,
    seed: u64,
) -> (usize, usize) {
    let vocab_size = constraints[0].vocabulary_len() + 3;
    let mut rng = StdRng::seed_from_u64(seed);
    let device_constraint =
        DeviceConstraint::new(constraints, vocab_size, &with_slots(slots), device).unwrap();
    assert_eq!(device_constraint.mask_row_count(), if name == "flex" { 0 } else { slots });
    let name = format!("{name}, {slots} slots, seed {seed}");
    let rows: Vec<usize> = (0..constraints.len()).collect();
    let budgets: Vec<usize> =
        constraints.iter().map(|constraint| needed(constraint) + rng.random_range(0..60)).collect();
    let processor =
        ConstraintProcessor::new(device_constraint, &rows).unwrap().with_budgets(&budgets).unwrap();
    let starts = constraints.iter().zip(&budgets);
    let mut roots: Vec<RowPosition> =
        starts.map(|(constraint, &budget)| RowPosition::new(constraint.start(), budget as u32)).collect();
    let mut last = vec![vocab_size as u32; constraints.len()];
    let mut position = processor.start();
    let (mut refused, mut deepest) = (0usize, 0usize);
    for round in 0..ROUNDS {
        let parents: Vec<usize> =
            (0..rng.random_range(0..8usize)).map(|at| rng.random_range(0..=at)).collect();
        let tree = DraftTree::new(&parents).unwrap();
        let (mut tokens, mut nodes, mut picks) = (Vec::new(), Vec::new(), Vec::new());
        for ((constraint, root), &last) in constraints.iter().zip(&roots).zip(&last) {
            let mut own = vec![root.clone()];
            tokens.push(last as i32);
            for &parent in &tree.parents()[1..] {
                let from = own[parent].clone();
                // One draft in four may be illegal. Its node keeps the position of its parent.
                let token = match rng.random_range(0..4) {
                    0 => rng.random_range(0..vocab_size as u32),
                    _ => some_token(constraint, &from, &mut rng),
                };
                let next = constraint.after(&from, TokenId(token));
                let is_legal = constraint.can_end(&next);
                refused += usize::from(!is_legal);
                own.push(if is_legal { next } else { from });
                tokens.push(token as i32);
            }
            picks.push(rng.random_range(0..tree.len()));
            nodes.push(own);
        }
        let shape = [constraints.len(), tree.len(), vocab_size];
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| rng.random_range(-4.0..4.0)).collect();
        let logits = TensorData::new(values.clone(), shape);
        let logits = Tensor::<3>::from_data(logits, (device, DType::F32));
        let tokens = ints(tokens, device).reshape([shape[0], shape[1]]);
        let (masked, states) = processor.mask_tree(&position, &tree, tokens, logits);
        let masked = masked.into_data().try_to_vec::<f32>().unwrap();
        for (row, (constraint, own)) in constraints.iter().zip(&nodes).enumerate() {
            for (node, at) in own.iter().enumerate() {
                let legal = legal(constraint, at);
                let from = (row * tree.len() + node) * vocab_size;
                for (token, &value) in values[from..from + vocab_size].iter().enumerate() {
                    let is_legal = *legal.get(token).unwrap_or(&false);
                    let expected = if is_legal { value } else { f32::NEG_INFINITY };
                    let what = || format!("{name}, round {round}, row {row}, node {node}, token {token}");
                    assert_eq!(masked[from + token].to_bits(), expected.to_bits(), "{}: {at:?}", what());
                }
                deepest = deepest.max(at.frames.len() / (1 + constraint.exits()));
            }
        }
        position = states.at(ints(picks.iter().map(|&node| node as i32).collect(), device));
        for (row, constraint) in constraints.iter().enumerate() {
            let at = &nodes[row][picks[row]];
            last[row] = some_token(constraint, at, &mut rng);
            roots[row] = constraint.after(at, TokenId(last[row]));
        }
    }
    (refused, deepest)
}

#[test]
fn trees_match_the_host_in_small_pools() {
    let vocabulary = vocabulary();
    let mut constraints: Vec<_> =
        schemas().iter().map(|schema| compile(schema, &vocabulary, FRAMES)).collect();
    constraints.extend(grammars(&vocabulary, FRAMES));
    constraints.push(exits_of_the_depth(&vocabulary, FRAMES));
    let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
    for (name, device) in devices::all() {
        for slots in [1, 2, 3] {
            let (mut refused, mut deepest) = (0usize, 0usize);
            for batch in 0..BATCHES {
                // Each batch has a third of the constraints.
                let some: Vec<_> = constraints.iter().copied().skip(batch % 3).step_by(3).collect();
                let (illegal, frames) = walk(&some, (name, &device), slots, (slots * BATCHES + batch) as u64);
                refused += illegal;
                deepest = deepest.max(frames);
            }
            assert!(
                refused > 0 && deepest > 1,
                "{name}, {slots} slots: {refused} drafts refused, {deepest} frames"
            );
        }
    }
}
