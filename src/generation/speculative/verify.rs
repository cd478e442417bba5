//! Accepts draft tokens and chooses the next token.

use burn::tensor::{DType, Device, Int, Tensor};

use super::drafter::DraftToken;
use super::seeds::{Use, derived};
use super::softmax::RowSoftmax;
use crate::in_place::in_place;
use crate::processor::DraftTree;
use crate::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa_tokens::{Error, Result};

/// Accepts a path of a draft tree and chooses the token after it.
///
/// Greedily, a draft token is accepted if it is the likeliest token after its parent. Sampled, it
/// is accepted with probability min(1, *p* / *q*): *p* is its probability under the model, and *q*
/// the probability with which the drafter drew it. The token after the path is drawn from the
/// residual distribution after the rejections (Leviathan et al., 2023; siblings one after the other
/// as in SpecInfer). So the output distribution does not depend on the drafter.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_dfa::generation::speculative::{DraftToken, Verifier};
/// use burn_dfa::processor::DraftTree;
///
/// let device = Device::flex();
/// let logits = Tensor::<3>::from_data([[[0.0, 1.0], [2.0, 1.0]]], &device);
/// let draft =
///     DraftToken { tokens: Tensor::from_data([1], (&device, DType::I32)), probabilities: None };
/// let acceptance = Verifier::greedy().verify(&DraftTree::chain(1), &[draft], logits);
/// // The draft token.
/// assert_eq!(acceptance.last_accepted.into_data().try_to_vec::<i32>().unwrap(), [1]);
/// assert_eq!(acceptance.next_token.into_data().try_to_vec::<i32>().unwrap(), [0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    sampling: Option<Sampling>,
}

/// The decision of a [`Verifier`] for each row, see its example.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_dfa::generation::speculative::{Acceptance, DraftToken, Verifier};
/// use burn_dfa::processor::DraftTree;
///
/// let device = Device::flex();
/// // After the root the model would say 0, so that draft token 1 is rejected.
/// let logits = Tensor::<3>::from_data([[[1.0, 0.0], [0.0, 1.0]]], &device);
/// let draft =
///     DraftToken { tokens: Tensor::from_data([1], (&device, DType::I32)), probabilities: None };
/// let Acceptance { last_accepted, next_token } =
///     Verifier::greedy().verify(&DraftTree::chain(1), &[draft], logits);
/// assert_eq!(last_accepted.into_data().try_to_vec::<i32>().unwrap(), [0]);
/// assert_eq!(next_token.into_data().try_to_vec::<i32>().unwrap(), [0]);
/// ```
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// The node of the last accepted draft token, `[batch]`; 0, the root, if none was accepted.
    pub last_accepted: Tensor<1, Int>,
    /// The token that the model chooses after this node, `[batch]`.
    pub next_token: Tensor<1, Int>,
}

#[derive(Clone, Debug)]
struct Sampling {
    /// The distribution of each row.
    softmax: RowSoftmax,
    /// Draws 0, to accept, or 1, to reject.
    accept: GumbelMax,
    /// Draws the token after the accepted ones.
    next: GumbelMax,
    /// Number of draws so far, `[1]`.
    draws: Tensor<1, Int>,
}

impl Verifier {
    /// Accepts and chooses the likeliest tokens.
    pub fn greedy() -> Self {
        Self::default()
    }

    /// Samples rows of `vocab_size` logits, with a seed and a temperature for each row. A row
    /// without a temperature is greedy.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input): no seed, another number of temperatures than
    /// seeds, a `vocab_size` of 0, or a temperature outside of 0.01 to 100.
    pub fn sampling(
        seeds: &[u64],
        vocab_size: usize,
        temperatures: &[Option<f32>],
        device: &Device,
    ) -> Result<Self> {
        if temperatures.len() != seeds.len() {
            return Err(Error::input(format!(
                "{} temperatures for {} seeds: give one of each per row",
                temperatures.len(),
                seeds.len()
            )));
        }
        let sampling = Sampling {
            softmax: RowSoftmax::new(temperatures, device)?,
            accept: GumbelMax::new(&derived(seeds, Use::Acceptance), 2, device)?,
            next: GumbelMax::new(&derived(seeds, Use::NextToken), vocab_size, device)?,
            draws: Tensor::zeros([1], (device, DType::I32)),
        };
        Ok(Self { sampling: Some(sampling) })
    }

    /// Verifies the draft tokens of every row. A draft token with a logit of −∞ after its parent is
    /// rejected.
    ///
    /// # Shapes
    /// - `drafts`: one for every node of `tree` but the root
    /// - `logits`: `[batch, nodes, vocab_size]`, masked and filtered
    ///
    /// # Panics
    /// For another number of draft tokens or nodes.
    pub fn verify(&mut self, tree: &DraftTree, drafts: &[DraftToken], logits: Tensor<3>) -> Acceptance {
        assert_eq!(drafts.len() + 1, tree.len(), "a draft token for every node but the root");
        assert_eq!(logits.dims()[1], tree.len(), "logits of every node");
        match &mut self.sampling {
            None => greedily(tree, drafts, logits),
            Some(sampling) => sampling.verify(tree, drafts, logits),
        }
    }
}

fn greedily(tree: &DraftTree, drafts: &[DraftToken], logits: Tensor<3>) -> Acceptance {
    let ([batch, nodes, vocab_size], device) = (logits.dims(), logits.device());
    let best = Greedy.sample(logits.reshape([batch * nodes, vocab_size]), &Tensor::zeros([1], &device));
    matching(tree, drafts, best.reshape([batch, nodes]))
}

/// Accepts the draft tokens that equal the token chosen after their parent.
///
/// # Shapes
/// - `chosen`: `[batch, nodes]`, the token chosen after each node
pub(super) fn matching(tree: &DraftTree, drafts: &[DraftToken], chosen: Tensor<2, Int>) -> Acceptance {
    let ([batch, _], device) = (chosen.dims(), chosen.device());
    let mut last = Tensor::<1, Int>::zeros([batch], (&device, DType::I32));
    for (node, (draft, &parent)) in drafts.iter().zip(&tree.parents()[1..]).enumerate() {
        let expected = chosen.clone().slice([0..batch, parent..parent + 1]).reshape([batch]);
        let accepted = expected.equal(draft.tokens.clone()).bool_and(last.clone().equal_elem(parent as i32));
        last = last.mask_fill(accepted, node as i32 + 1);
    }
    let next = chosen.gather(1, last.clone().reshape([batch, 1])).reshape([batch]);
    Acceptance { last_accepted: last, next_token: next }
}

/// The values after a node, `[batch, vocab_size]`.
///
/// # Shapes
/// - `values`: `[batch, nodes, vocab_size]`
pub(super) fn of_node(values: &Tensor<3>, node: usize) -> Tensor<2> {
    let [batch, _, vocab_size] = values.dims();
    values.clone().narrow(1, node, 1).reshape([batch, vocab_size])
}

impl Sampling {
    fn verify(&mut self, tree: &DraftTree, drafts: &[DraftToken], logits: Tensor<3>) -> Acceptance {
        let ([batch, _, vocab_size], device) = (logits.dims(), logits.device());
        let probabilities = self.softmax.of(logits);
        // The last accepted node, and the residual probabilities of the next token.
        let mut last = Tensor::<1, Int>::zeros([batch], (&device, DType::I32));
        let mut left = of_node(&probabilities, 0);
        for (node, (draft, &parent)) in drafts.iter().zip(&tree.parents()[1..]).enumerate() {
            let token = draft.tokens.clone().reshape([batch, 1]);
            let drawn_from = draft.distribution(vocab_size);
            let [p, q] = [&left, &drawn_from].map(|all| all.clone().gather(1, token.clone()));
            let accept = (p / q.clamp_min(f32::MIN_POSITIVE)).clamp_max(1.0);
            let sides = Tensor::cat(vec![accept.clone().log(), (-accept + 1.0).log()], 1);
            let drawn = self.draw(sides, |sampling| &sampling.accept).equal_elem(0);
            let verified = last.clone().equal_elem(parent as i32);
            let accepted = verified.clone().bool_and(drawn);

            let rest = (left.clone() - drawn_from).clamp_min(0.0);
            let sum = rest.clone().sum_dim(1);
            // The residual is empty only if the probability of a rejection is 0.
            let rejected = verified.reshape([batch, 1]).bool_and(sum.clone().greater_elem(0.0));
            let rest = rest / sum.clamp_min(f32::MIN_POSITIVE);
            let wide = [batch, vocab_size];
            left = left.mask_where(rejected.expand(wide), rest);
            left = left.mask_where(
                accepted.clone().reshape([batch, 1]).expand(wide),
                of_node(&probabilities, node + 1),
            );
            last = last.mask_fill(accepted, node as i32 + 1);
        }
        let next = self.draw(left.log(), |sampling| &sampling.next);
        Acceptance { last_accepted: last, next_token: next }
    }

    fn draw(&mut self, logits: Tensor<2>, sampler: impl Fn(&Self) -> &GumbelMax) -> Tensor<1, Int> {
        let drawn = sampler(self).sample(logits, &self.draws);
        in_place(&mut self.draws, |draws| draws + 1);
        drawn
    }
}
