//! How a batch is generated: [`GenerationConfig`].

use super::options::{SamplingKinds, SamplingOptions};
use crate::error::{Error, Result};
use crate::tensor::TensorOptions;
use crate::vocabulary::TokenId;

/// How a batch is generated.
///
/// The options of [`sampling`](Self::sampling) hold for the rows whose [`Request`](super::Request) has none of its own: greedy
/// by default, else sampled at a temperature.
///
/// ```
/// use burn_dfa::generation::GenerationConfig;
///
/// let greedy = GenerationConfig::new();
/// assert!(greedy.sampling.is_greedy());
/// let sampled = GenerationConfig::new().with_temperature(0.8).with_min_p(0.05);
/// assert_eq!((sampled.sampling.temperature, sampled.sampling.min_p), (Some(0.8), Some(0.05)));
/// ```
#[derive(Clone, Debug)]
pub struct GenerationConfig {
    /// How tokens are chosen in rows that do not say it themselves. Default: greedily.
    pub sampling: SamplingOptions,
    /// What requests may use beyond [`sampling`](Self::sampling), in [`Slots`](super::Slots) and in a
    /// [`DecodeGraph`](super::DecodeGraph). Default: nothing.
    pub row_options: SamplingKinds,
    /// How many of the likeliest tokens to give with the log-probability of every token, at most
    /// [`MOST_LOGPROBS`](Self::MOST_LOGPROBS); `None`: no log-probabilities, at no cost. Default: `None`.
    pub logprobs: Option<usize>,
    /// Steps between two reads of the host, which streams and stops there. Default: 8.
    pub read_every: usize,
    /// In [`Slots`](super::Slots), the most tokens of prompts that are read between two steps; `None`: a prompt is read
    /// whole, when its request is admitted. Default: `None`.
    pub prompt_chunk: Option<usize>,
    /// In [`Slots`](super::Slots), whether a prompt that begins as the text of a row does is read from there on: the keys and
    /// values of the tokens before, or whatever else the model keeps of them, are copied from that row. A row holds its text,
    /// prompt and output, until another request begins in it. From 16 tokens on, and never all of a prompt. Prompts that are
    /// read whole are then read one after the other. The logits are rounded as those of prompts that are read in pieces.
    /// Default: no.
    pub prefix_cache: bool,
    /// The layout and capacity of the constraints' tables on the device.
    pub tensors: TensorOptions,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            sampling: SamplingOptions::default(),
            row_options: SamplingKinds::NONE,
            logprobs: None,
            read_every: 8,
            prompt_chunk: None,
            prefix_cache: false,
            tensors: TensorOptions::default(),
        }
    }
}

impl GenerationConfig {
    /// The most tokens that [`logprobs`](Self::logprobs) gives.
    pub const MOST_LOGPROBS: usize = 20;

    /// Greedy, without filters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples at a [temperature](SamplingOptions::temperature).
    pub fn with_temperature(self, temperature: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_temperature(temperature), ..self }
    }

    /// Samples among the [`top_k`](SamplingOptions::top_k) likeliest tokens.
    pub fn with_top_k(self, top_k: impl Into<Option<usize>>) -> Self {
        Self { sampling: self.sampling.with_top_k(top_k), ..self }
    }

    /// Samples among the likeliest tokens of [`top_p`](SamplingOptions::top_p) probability together.
    pub fn with_top_p(self, top_p: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_top_p(top_p), ..self }
    }

    /// Samples among tokens of at least [`min_p`](SamplingOptions::min_p) times the probability of the likeliest.
    pub fn with_min_p(self, min_p: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_min_p(min_p), ..self }
    }

    /// Applies a [repetition penalty](SamplingOptions::repetition_penalty).
    pub fn with_repetition_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_repetition_penalty(penalty), ..self }
    }

    /// Avoids [tokens](SamplingOptions::suppress_tokens) wherever another one is legal.
    pub fn with_suppress_tokens(self, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { sampling: self.sampling.with_suppress_tokens(tokens), ..self }
    }

    /// Puts the end off until [`min_new_tokens`](SamplingOptions::min_new_tokens) were generated, wherever another token is legal.
    pub fn with_min_new_tokens(self, min_new_tokens: usize) -> Self {
        Self { sampling: self.sampling.with_min_new_tokens(min_new_tokens), ..self }
    }

    /// Chooses the tokens of rows without options of their own by [`sampling`](Self::sampling).
    pub fn with_sampling(self, sampling: SamplingOptions) -> Self {
        Self { sampling, ..self }
    }

    /// Lets requests use more [options](Self::row_options) than the config does.
    pub fn with_row_options(self, row_options: SamplingKinds) -> Self {
        Self { row_options, ..self }
    }

    /// Gives [log-probabilities](Self::logprobs) of every token, and of so many of the likeliest.
    pub fn with_logprobs(self, top: impl Into<Option<usize>>) -> Self {
        Self { logprobs: top.into(), ..self }
    }

    /// Reads at most so many tokens of [prompts](Self::prompt_chunk) between two steps.
    pub fn with_prompt_chunk(self, tokens: impl Into<Option<usize>>) -> Self {
        Self { prompt_chunk: tokens.into(), ..self }
    }

    /// Copies what was [read already](Self::prefix_cache) of a prompt.
    pub fn with_prefix_cache(self, prefix_cache: bool) -> Self {
        Self { prefix_cache, ..self }
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
        if let Some(top) = self.logprobs.filter(|&top| top > Self::MOST_LOGPROBS) {
            return Err(Error::input(format!(
                "logprobs of {top} tokens: {} are the most",
                Self::MOST_LOGPROBS
            )));
        }
        if self.prompt_chunk == Some(0) {
            return Err(Error::input("prompt_chunk of 0: no prompt would ever be read; use 1 or more"));
        }
        self.sampling.check()
    }
}
