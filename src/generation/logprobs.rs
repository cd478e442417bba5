//! Log-probabilities of tokens: as the host reads them, and as the device encodes them.

use burn::tensor::{DType, Int, Tensor};

use crate::vocabulary::TokenId;

/// The log-probabilities of one token of the output: under the model, and under the model within
/// the constraint.
///
/// Penalties, bias and temperature come after both. See
/// [`GenerationConfig::logprobs`](super::GenerationConfig::logprobs), which asks for them.
///
/// ```
/// use burn_dfa::generation::{Output, TokenLogprobs};
///
/// /// The likelihood that the model gave to the constrained text: at most 0, and close to 0 if the
/// /// model prefers this text without a constraint.
/// fn agreement(output: &Output) -> f32 {
///     output.logprobs.iter().map(|token: &TokenLogprobs| token.model.chosen).sum()
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// The softmax of the model's logits.
    pub model: Logprobs,
    /// The softmax of the logits that the constraint allows.
    pub constrained: Logprobs,
}

/// Natural logarithms of probabilities; [`TokenLogprobs`] has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprobs {
    /// Of the token that was chosen.
    pub chosen: f32,
    /// The requested number of likeliest tokens, the likeliest first; fewer if no more tokens have
    /// a probability.
    pub top: Vec<(TokenId, f32)>,
}

/// Stands for −∞.
const MASKED: f32 = -1e30;

/// Numbers of an encoded token: for each of two distributions the chosen token, and the `top`
/// likeliest with their ids.
pub(super) const fn columns(top: usize) -> usize {
    2 * (1 + 2 * top)
}

/// Encodes the log-probabilities of tokens, `[tokens, columns]`, in `f32`, which holds token ids up
/// to 2²⁴ exactly.
///
/// # Shapes
/// - `logits`: `[2 * tokens, vocab_size]`: of the model for every token, then within the constraint
/// - `chosen`: `[tokens]`
pub(super) fn encode(logits: Tensor<2>, chosen: &Tensor<1, Int>, top: usize) -> Tensor<2> {
    // Both in one pass: of two gathers by the same ids, Burn's fusion on WGPU gets the second
    // wrong.
    let [tokens] = chosen.dims();
    let chosen = Tensor::cat(vec![chosen.clone(), chosen.clone()], 0);
    let both = Tensor::cat(distribution(logits, &chosen, top), 1);
    let [model, constrained] = [0..tokens, tokens..2 * tokens].map(|rows| both.clone().slice([rows]));
    Tensor::cat(vec![model, constrained], 1)
}

/// The log-probability of the chosen token, `[tokens, 1]`, the log-probabilities of the likeliest
/// tokens and their ids, `[tokens, top]` each.
fn distribution(logits: Tensor<2>, chosen: &Tensor<1, Int>, top: usize) -> Vec<Tensor<2>> {
    // Finite throughout: a top-k on WGPU gives the least finite number for −∞.
    let ([tokens, vocab_size], logits) = (logits.dims(), logits.cast(DType::F32).clamp_min(MASKED));
    let greatest = logits.clone().max_dim(1);
    let total = (logits.clone() - greatest.clone()).exp().sum_dim(1).log() + greatest;
    let of_chosen = logits.clone().gather(1, chosen.clone().reshape([tokens, 1])) - total.clone();
    let mut parts = vec![of_chosen];
    if top > 0 {
        let (values, ids) = logits.topk_with_indices(top.min(vocab_size), 1);
        let missing = top.saturating_sub(vocab_size);
        parts.push(pad(values - total, missing, MASKED));
        parts.push(pad(ids.float().cast(DType::F32), missing, 0.0));
    }
    parts
}

/// Appends columns if the vocabulary has fewer tokens than requested.
fn pad(values: Tensor<2>, columns: usize, value: f32) -> Tensor<2> {
    if columns == 0 {
        return values;
    }
    let tokens = values.dims()[0];
    let more = Tensor::full([tokens, columns], value, (&values.device(), DType::F32));
    Tensor::cat(vec![values, more], 1)
}

/// Decodes the log-probabilities of one [encoded](encode) token.
pub(super) fn decode(values: &[f32]) -> TokenLogprobs {
    let (model, constrained) = values.split_at(values.len() / 2);
    TokenLogprobs { model: decode_one(model), constrained: decode_one(constrained) }
}

/// Splits the log-probability of the chosen token, the log-probabilities of the likeliest tokens,
/// and their ids.
fn decode_one(values: &[f32]) -> Logprobs {
    let (chosen, rest) = values.split_first().expect("the chosen token comes first");
    let (top, ids) = rest.split_at(rest.len() / 2);
    let top = top.iter().zip(ids).filter(|(logprob, _)| **logprob > MASKED / 2.0);
    Logprobs { chosen: *chosen, top: top.map(|(&logprob, &id)| (TokenId(id as u32), logprob)).collect() }
}
