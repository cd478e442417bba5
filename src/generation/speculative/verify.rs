//! Which guesses are accepted, and what comes after them.

use burn::tensor::activation::softmax;
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor};

use super::drafter::DraftToken;
use crate::error::Result;
use crate::processor::DraftTree;
use crate::sampling::{Greedy, GumbelMax, Sampler, temperature_factor};

/// Accepts a path of a tree of guesses and chooses the token after it.
///
/// Greedily, a guess is accepted if it is the likeliest token after its parent. Sampled, it is accepted with
/// probability min(1, *p* / *q*), where the model gives it *p* and it was drawn with *q*; the token after the path
/// is drawn from what refused guesses leave of *p* (Leviathan et al., 2023; siblings one after the other as in
/// SpecInfer). So tokens have the distribution that they have without guesses, whatever the guesses are.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_dfa::generation::speculative::{DraftToken, Verifier};
/// use burn_dfa::processor::DraftTree;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_data([[[0.0, 1.0], [2.0, 1.0]]], &device);
/// let guess = DraftToken { tokens: Tensor::from_data([1], (&device, DType::I32)), probabilities: None };
/// let verdict = Verifier::greedy().verify(&DraftTree::chain(1), &[guess], logits);
/// assert_eq!(verdict.last.into_data().try_to_vec::<i32>().unwrap(), [1]); // accepted
/// assert_eq!(verdict.next.into_data().try_to_vec::<i32>().unwrap(), [0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    chance: Option<Chance>,
}

/// What becomes of the guesses of each row.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// The last accepted node, `[batch]`; 0 where none was.
    pub last: Tensor<1, Int>,
    /// The token after it, `[batch]`.
    pub next: Tensor<1, Int>,
}

#[derive(Clone, Debug)]
struct Chance {
    /// 1 / temperature.
    factor: f32,
    /// Draws 0, to accept, or 1.
    coin: GumbelMax,
    /// Draws tokens.
    token: GumbelMax,
    /// Number of draws so far, `[1]`.
    draws: Tensor<1, Int>,
}

impl Verifier {
    /// The likeliest tokens.
    pub fn greedy() -> Self {
        Self::default()
    }

    /// Tokens drawn at a temperature, with a seed for each row of `width` logits.
    ///
    /// # Errors
    /// [`Error::is_input`](crate::Error::is_input): no seed, no width, or a temperature outside of 0.01 to 100.
    pub fn sampling(seeds: &[u64], width: usize, temperature: f32, device: &Device) -> Result<Self> {
        let chance = Chance {
            factor: temperature_factor(temperature)?,
            coin: GumbelMax::new(&salted(seeds, 1), 2, device)?,
            token: GumbelMax::new(&salted(seeds, 2), width, device)?,
            draws: Tensor::zeros([1], (device, DType::I32)),
        };
        Ok(Self { chance: Some(chance) })
    }

    /// Judges the guesses of every row. No guess is accepted that its parent's logits exclude.
    ///
    /// # Shapes
    /// - `guesses`: one for every node of `tree` but the root
    /// - `logits`: `[batch, nodes, width]`, masked and filtered
    ///
    /// # Panics
    /// For another number of guesses or nodes.
    pub fn verify(&mut self, tree: &DraftTree, guesses: &[DraftToken], logits: Tensor<3>) -> Acceptance {
        assert_eq!(guesses.len() + 1, tree.len(), "a guess for every node but the root");
        assert_eq!(logits.dims()[1], tree.len(), "logits of every node");
        match &mut self.chance {
            None => greedily(tree, guesses, logits),
            Some(chance) => chance.verify(tree, guesses, logits),
        }
    }
}

fn greedily(tree: &DraftTree, guesses: &[DraftToken], logits: Tensor<3>) -> Acceptance {
    let ([batch, nodes, width], device) = (logits.dims(), logits.device());
    let best = Greedy.sample(logits.reshape([batch * nodes, width]), &Tensor::zeros([1], &device));
    let best = best.reshape([batch, nodes]);
    let mut last = Tensor::<1, Int>::zeros([batch], (&device, DType::I32));
    for (node, (guess, &parent)) in guesses.iter().zip(&tree.parents()[1..]).enumerate() {
        let expected = best.clone().slice([0..batch, parent..parent + 1]).reshape([batch]);
        let accepted = expected.equal(guess.tokens.clone()).bool_and(last.clone().equal_elem(parent as i32));
        last = last.mask_fill(accepted, node as i32 + 1);
    }
    let next = best.gather(1, last.clone().reshape([batch, 1])).reshape([batch]);
    Acceptance { last, next }
}

impl Chance {
    fn verify(&mut self, tree: &DraftTree, guesses: &[DraftToken], logits: Tensor<3>) -> Acceptance {
        let ([batch, _, width], device) = (logits.dims(), logits.device());
        let chances = softmax(logits.cast(DType::F32) * self.factor, 2);
        let of_node =
            |node: usize| chances.clone().slice([0..batch, node..node + 1, 0..width]).reshape([batch, width]);
        // The last accepted node, and what is left of the probabilities of the token after it.
        let mut last = Tensor::<1, Int>::zeros([batch], (&device, DType::I32));
        let mut left = of_node(0);
        for (node, (guess, &parent)) in guesses.iter().zip(&tree.parents()[1..]).enumerate() {
            let token = guess.tokens.clone().reshape([batch, 1]);
            let probabilities = guess.distribution(width);
            let [p, q] = [&left, &probabilities].map(|all| all.clone().gather(1, token.clone()));
            let accept = (p / q.clamp_min(f32::MIN_POSITIVE)).clamp_max(1.0);
            let sides = Tensor::cat(vec![accept.clone().log(), (-accept + 1.0).log()], 1);
            let heads = self.draw(sides, |chance| &chance.coin).equal_elem(0);
            let judged = last.clone().equal_elem(parent as i32);
            let accepted = judged.clone().bool_and(heads);

            let rest = (left.clone() - probabilities).clamp_min(0.0);
            let sum = rest.clone().sum_dim(1);
            // Nothing is left only where a refusal has no probability.
            let refused = judged.reshape([batch, 1]).bool_and(sum.clone().greater_elem(0.0));
            let rest = rest / sum.clamp_min(f32::MIN_POSITIVE);
            let wide = [batch, width];
            left = left.mask_where(refused.expand(wide), rest);
            left = left.mask_where(accepted.clone().reshape([batch, 1]).expand(wide), of_node(node + 1));
            last = last.mask_fill(accepted, node as i32 + 1);
        }
        let next = self.draw(left.log(), |chance| &chance.token);
        Acceptance { last, next }
    }

    fn draw(&mut self, logits: Tensor<2>, sampler: impl Fn(&Self) -> &GumbelMax) -> Tensor<1, Int> {
        let drawn = sampler(self).sample(logits, &self.draws);
        self.draws.inplace(|draws| draws + 1);
        drawn
    }
}

impl DraftToken {
    /// The probabilities that the tokens were drawn from, `[batch, width]`; 1 for the token itself where no chance
    /// was involved.
    pub(super) fn distribution(&self, width: usize) -> Tensor<2> {
        // Burn's `one_hot` reads its indices back.
        let itself = || {
            let ([batch], options) = (self.tokens.dims(), (&self.tokens.device(), DType::F32));
            let (none, one) = (Tensor::zeros([batch, width], options), Tensor::ones([batch, 1], options));
            none.scatter(1, self.tokens.clone().reshape([batch, 1]), one, IndexingUpdateOp::Add)
        };
        self.probabilities.clone().unwrap_or_else(itself)
    }
}

/// Seeds for another use of the same rows.
pub(super) fn salted(seeds: &[u64], salt: u64) -> Vec<u64> {
    seeds.iter().map(|seed| seed.rotate_left(17) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}
