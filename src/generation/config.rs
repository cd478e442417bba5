//! How a batch is generated: [`GenerationConfig`].

use super::model::Recordable;
use super::options::{SamplingFeatures, SamplingOptions};
use super::processors::{OwnSampler, Processors};
use crate::processor::{LogitsProcessor, RowState};
use crate::sampling::Sampler;
use crate::tensor::TensorOptions;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// How a batch is generated.
///
/// The options of [`sampling`](Self::sampling) apply to rows whose [`Request`](super::Request) has
/// no options: greedy by default, else sampled at a temperature.
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
    /// How tokens are chosen in rows without options. Default: greedily.
    pub sampling: SamplingOptions,
    /// The features that requests may use beyond [`sampling`](Self::sampling), in
    /// [`ContinuousBatch`](super::ContinuousBatch) and in a [`DecodeGraph`](super::DecodeGraph).
    /// Default: nothing.
    pub row_features: SamplingFeatures,
    /// The processors of the application. Default: none.
    pub processors: Processors,
    /// The sampler of the application, in place of the greedy one and of Gumbel-max. Default: none.
    pub sampler: Option<OwnSampler>,
    /// How many of the likeliest tokens to give with the log-probability of every token, at most
    /// [`MAX_LOGPROBS`](Self::MAX_LOGPROBS); `None`: no log-probabilities, at no cost. Default:
    /// `None`.
    pub logprobs: Option<usize>,
    /// Steps between two reads of the host, which streams and stops at each read. Default: 8.
    pub sync_interval: usize,
    /// In [`ContinuousBatch`](super::ContinuousBatch), the maximum number of prompt tokens read
    /// between two steps; `None`: a prompt is read whole when its request is admitted. Default:
    /// `None`.
    pub prompt_chunk: Option<usize>,
    /// In [`ContinuousBatch`](super::ContinuousBatch), whether to reuse the common prefix of a
    /// prompt and the text of a row: the keys and values (or other cached state) of the prefix are
    /// copied from the row, and only the rest is read. A row holds its text, prompt and output,
    /// until another request begins in it. The copy covers at least 16 tokens, and never the whole
    /// prompt. Prompts that are read whole are then read one after the other. The logits are
    /// rounded as with prompts read in chunks. Default: no.
    pub prefix_cache: bool,
    /// The operations, capacity and size limits of the constraints on the device.
    pub tensors: TensorOptions,
}

/// The proof that a configuration has only processors and samplers that a recorded step may run.
/// Only [`GenerationConfig::check_recordable`] makes it.
pub(super) struct RecordableConfig(());

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            sampling: SamplingOptions::default(),
            row_features: SamplingFeatures::NONE,
            processors: Processors::new(),
            sampler: None,
            logprobs: None,
            sync_interval: 8,
            prompt_chunk: None,
            prefix_cache: false,
            tensors: TensorOptions::default(),
        }
    }
}

impl GenerationConfig {
    /// The most tokens that [`logprobs`](Self::logprobs) gives.
    pub const MAX_LOGPROBS: usize = 20;

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

    /// Samples among the likeliest tokens of [`top_p`](SamplingOptions::top_p) probability
    /// together.
    pub fn with_top_p(self, top_p: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_top_p(top_p), ..self }
    }

    /// Samples among tokens of at least [`min_p`](SamplingOptions::min_p) times the probability of
    /// the likeliest.
    pub fn with_min_p(self, min_p: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_min_p(min_p), ..self }
    }

    /// Applies a [repetition penalty](SamplingOptions::repetition_penalty).
    pub fn with_repetition_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { sampling: self.sampling.with_repetition_penalty(penalty), ..self }
    }

    /// Avoids [tokens](SamplingOptions::suppress_tokens) if another one is legal.
    pub fn with_suppress_tokens(self, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { sampling: self.sampling.with_suppress_tokens(tokens), ..self }
    }

    /// Delays the end until [`min_new_tokens`](SamplingOptions::min_new_tokens) were generated, if
    /// another token is legal.
    pub fn with_min_new_tokens(self, min_new_tokens: usize) -> Self {
        Self { sampling: self.sampling.with_min_new_tokens(min_new_tokens), ..self }
    }

    /// Sets the [sampling options](Self::sampling) of rows whose requests have none.
    pub fn with_sampling(self, sampling: SamplingOptions) -> Self {
        Self { sampling, ..self }
    }

    /// Lets requests use more [options](Self::row_features) than the config does.
    pub fn with_row_features(self, row_features: SamplingFeatures) -> Self {
        Self { row_features, ..self }
    }

    /// Appends a [processor](Self::processors).
    pub fn with_processor<P>(self, processor: P) -> Self
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync + 'static,
    {
        Self { processors: self.processors.with(processor), ..self }
    }

    /// Appends a [processor](Self::processors) that a recorded step may run, by the promise of its
    /// type. The built-in processors make this promise.
    ///
    /// ```
    /// use burn_dfa::TokenId;
    /// use burn_dfa::generation::GenerationConfig;
    /// use burn_dfa::processor::{LogitBias, TopK};
    ///
    /// // The bias applies to the 40 likeliest tokens.
    /// let config = GenerationConfig::new()
    ///     .with_recordable_processor(TopK::new(40)?)
    ///     .with_recordable_processor(LogitBias::new([(TokenId(7), 2.0)])?);
    /// assert_eq!(config.processors.len(), 2);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn with_recordable_processor<P>(self, processor: P) -> Self
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Recordable + Send + Sync + 'static,
    {
        Self { processors: self.processors.with_recordable(processor), ..self }
    }

    /// Samples all rows with a [sampler](Self::sampler). Temperatures of rows then have an effect
    /// only where top-k, top-p or min-p follow them. A batch that records its step refuses it: see
    /// [`with_recordable_sampler`](Self::with_recordable_sampler).
    ///
    /// The sampler must keep its [laws](Sampler#laws). The output fits its constraint only if every
    /// chosen id is below the number of logits and has a logit above −∞.
    pub fn with_sampler(self, sampler: impl Sampler + Send + Sync + 'static) -> Self {
        Self { sampler: Some(OwnSampler::new(sampler, false)), ..self }
    }

    /// As [`with_sampler`](Self::with_sampler), with a sampler that a recorded step may run, by the
    /// promise of its type. [`Greedy`](crate::sampling::Greedy) and
    /// [`GumbelMax`](crate::sampling::GumbelMax) make this promise.
    ///
    /// ```
    /// use burn::tensor::{DType, Int, Tensor};
    /// use burn_dfa::generation::{GenerationConfig, Recordable};
    /// use burn_dfa::sampling::Sampler;
    ///
    /// /// The token of the greatest logit.
    /// struct Greatest;
    ///
    /// impl Sampler for Greatest {
    ///     fn sample(&self, logits: Tensor<2>, _step: &Tensor<1, Int>) -> Tensor<1, Int> {
    ///         let [batch, _] = logits.dims();
    ///         logits.argmax(1).reshape([batch]).cast(DType::I32)
    ///     }
    /// }
    ///
    /// // SAFETY: the sampler has no tensors, and a call keeps none.
    /// unsafe impl Recordable for Greatest {}
    ///
    /// let config = GenerationConfig::new().with_recordable_sampler(Greatest);
    /// assert!(config.sampler.is_some());
    /// ```
    pub fn with_recordable_sampler<S>(self, sampler: S) -> Self
    where
        S: Sampler + Recordable + Send + Sync + 'static,
    {
        Self { sampler: Some(OwnSampler::new(sampler, true)), ..self }
    }

    /// Gives [log-probabilities](Self::logprobs) of every token, and of the `top` likeliest.
    pub fn with_logprobs(self, top: impl Into<Option<usize>>) -> Self {
        Self { logprobs: top.into(), ..self }
    }

    /// Reads at most `tokens` tokens of [prompts](Self::prompt_chunk) between two steps.
    pub fn with_prompt_chunk(self, tokens: impl Into<Option<usize>>) -> Self {
        Self { prompt_chunk: tokens.into(), ..self }
    }

    /// Turns the [prefix cache](Self::prefix_cache) on or off.
    pub fn with_prefix_cache(self, prefix_cache: bool) -> Self {
        Self { prefix_cache, ..self }
    }

    /// Lets the host read every [`sync_interval`](Self::sync_interval) steps.
    pub fn with_sync_interval(self, sync_interval: usize) -> Self {
        Self { sync_interval, ..self }
    }

    /// Sets the [operations, capacity and size limits](Self::tensors) of the constraints on the
    /// device.
    pub fn with_tensors(self, tensors: TensorOptions) -> Self {
        Self { tensors, ..self }
    }

    /// Refuses processors and samplers that a recorded step may not run.
    pub(super) fn check_recordable(&self) -> Result<RecordableConfig> {
        if let Some(name) = self.processors.unrecordable() {
            return Err(Error::input(format!(
                "the processor {name} may not be recorded: add it by `with_recordable_processor`, which takes a type with the promise of `Recordable`, or generate without a graph"
            )));
        }
        if let Some(name) = self.sampler.as_ref().and_then(OwnSampler::unrecordable) {
            return Err(Error::input(format!(
                "the sampler {name} may not be recorded: set it by `with_recordable_sampler`, which takes a type with the promise of `Recordable`, or generate without a graph"
            )));
        }
        Ok(RecordableConfig(()))
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.sync_interval == 0 {
            return Err(Error::input(
                "sync_interval of 0: the host must read at least now and then; use 1 or more",
            ));
        }
        if let Some(top) = self.logprobs.filter(|&top| top > Self::MAX_LOGPROBS) {
            return Err(Error::input(format!(
                "logprobs of {top} tokens: {} are the most",
                Self::MAX_LOGPROBS
            )));
        }
        if self.prompt_chunk == Some(0) {
            return Err(Error::input("prompt_chunk of 0: no prompt would ever be read; use 1 or more"));
        }
        self.sampling.check()
    }
}
