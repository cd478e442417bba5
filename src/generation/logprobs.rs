//! Log-probabilities of tokens, as the host reads them.

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
/// /// How likely the model found what the constraint made it say: at most 0, close to 0 where it would have said it by itself.
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
