//! How a batch is generated: [`GenerationConfig`].

use crate::error::{Error, Result};
use crate::tensor::TensorOptions;
use crate::vocabulary::TokenId;

/// How the tokens of a batch are chosen, for all of its rows: greedily by default, else sampled at a temperature.
///
/// What differs from row to row (prompt, constraint, budget, seed) is in the [`Request`](super::Request).
///
/// ```
/// use burn_dfa::generation::GenerationConfig;
///
/// let greedy = GenerationConfig::new();
/// assert!(greedy.temperature.is_none());
/// let sampled = GenerationConfig::new().with_temperature(0.8).with_min_p(0.05);
/// assert_eq!((sampled.temperature, sampled.min_p), (Some(0.8), Some(0.05)));
/// ```
#[derive(Clone, Debug)]
pub struct GenerationConfig {
    /// Sample at this temperature; `None`: greedy. Default: `None`.
    pub temperature: Option<f32>,
    /// Keep the `k` likeliest tokens, see [`TopK`](crate::processor::TopK). Default: `None`.
    pub top_k: Option<usize>,
    /// Keep the likeliest tokens of this probability together, see [`TopP`](crate::processor::TopP).
    /// Default: `None`.
    pub top_p: Option<f32>,
    /// Keep tokens of at least this fraction of the likeliest, see [`MinP`](crate::processor::MinP).
    /// Default: `None`.
    pub min_p: Option<f32>,
    /// See [`RepetitionPenalty`](crate::processor::RepetitionPenalty). Default: `None`.
    pub repetition_penalty: Option<f32>,
    /// Tokens to avoid, see [`Suppress`](crate::processor::Suppress). Default: none.
    pub suppress_tokens: Vec<TokenId>,
    /// Least tokens before the end, see [`MinNewTokens`](crate::processor::MinNewTokens). Default: 0.
    pub min_new_tokens: usize,
    /// Steps between two reads of the host, which streams and stops there. Default: 8.
    pub read_every: usize,
    /// The layout and capacity of the constraints' tables on the device.
    pub tensors: TensorOptions,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            temperature: None,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            suppress_tokens: Vec::new(),
            min_new_tokens: 0,
            read_every: 8,
            tensors: TensorOptions::default(),
        }
    }
}

impl GenerationConfig {
    /// Greedy, without filters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples at a [temperature](Self::temperature).
    pub fn with_temperature(self, temperature: impl Into<Option<f32>>) -> Self {
        Self { temperature: temperature.into(), ..self }
    }

    /// Samples among the [`top_k`](Self::top_k) likeliest tokens.
    pub fn with_top_k(self, top_k: impl Into<Option<usize>>) -> Self {
        Self { top_k: top_k.into(), ..self }
    }

    /// Samples among the likeliest tokens of [`top_p`](Self::top_p) probability together.
    pub fn with_top_p(self, top_p: impl Into<Option<f32>>) -> Self {
        Self { top_p: top_p.into(), ..self }
    }

    /// Samples among tokens of at least [`min_p`](Self::min_p) times the probability of the likeliest.
    pub fn with_min_p(self, min_p: impl Into<Option<f32>>) -> Self {
        Self { min_p: min_p.into(), ..self }
    }

    /// Applies a [repetition penalty](Self::repetition_penalty).
    pub fn with_repetition_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { repetition_penalty: penalty.into(), ..self }
    }

    /// Avoids [tokens](Self::suppress_tokens) wherever another one is legal.
    pub fn with_suppress_tokens(self, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { suppress_tokens: tokens.into_iter().collect(), ..self }
    }

    /// Puts the end off until [`min_new_tokens`](Self::min_new_tokens) were generated, wherever another token is legal.
    pub fn with_min_new_tokens(self, min_new_tokens: usize) -> Self {
        Self { min_new_tokens, ..self }
    }

    /// Lets the host read every [`read_every`](Self::read_every) steps.
    pub fn with_read_every(self, read_every: usize) -> Self {
        Self { read_every, ..self }
    }

    /// Sets the [layout and capacity](Self::tensors) of the tables on the device.
    pub fn with_tensors(self, tensors: TensorOptions) -> Self {
        Self { tensors, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.read_every == 0 {
            return Err(Error::input(
                "read_every of 0: the host must read at least now and then; use 1 or more",
            ));
        }
        Ok(())
    }
}
