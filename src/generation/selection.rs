//! From logits to tokens: the processors after the constraint, and the sampler, that a [`GenerationConfig`] asks for.

use burn::tensor::Device;

use super::config::GenerationConfig;
use crate::error::Result;
use crate::processor::{
    Chain, LogitsProcessor, MinNewTokens, MinP, RepetitionPenalty, Suppress, Temperature, TopK, TopP,
};
use crate::sampling::{Greedy, GumbelMax, Sampler};
use crate::vocabulary::Vocabulary;

/// The processors after the constraint, in the order in which they are applied; `None` does nothing.
pub(super) type Filters = Chain<
    Chain<
        Chain<
            Chain<
                Chain<Chain<Option<RepetitionPenalty>, Option<Suppress>>, Option<MinNewTokens>>,
                Option<Temperature>,
            >,
            Option<TopK>,
        >,
        Option<TopP>,
    >,
    Option<MinP>,
>;

/// The processors that `config` asks for.
pub(super) fn filters(config: &GenerationConfig, vocabulary: &Vocabulary) -> Result<Filters> {
    let least = config.min_new_tokens;
    let temperature = config.temperature.filter(|_| truncates(config));
    Ok(config
        .repetition_penalty
        .map(RepetitionPenalty::new)
        .transpose()?
        .then(
            (!config.suppress_tokens.is_empty())
                .then(|| Suppress::new(config.suppress_tokens.iter().copied())),
        )
        .then((least > 0).then(|| MinNewTokens::new(least, vocabulary)))
        .then(temperature.map(Temperature::new).transpose()?)
        .then(config.top_k.map(TopK::new).transpose()?)
        .then(config.top_p.map(TopP::new).transpose()?)
        .then(config.min_p.map(MinP::new).transpose()?))
}

/// Whether top-k, top-p or min-p come between the temperature and the sampler.
fn truncates(config: &GenerationConfig) -> bool {
    config.top_k.is_some() || config.top_p.is_some() || config.min_p.is_some()
}

/// The temperature that the sampler itself applies, in its own pass: 1 where the [`filters`] have applied it already.
/// `None`: greedy.
pub(super) fn sampler_temperature(config: &GenerationConfig) -> Option<f32> {
    config.temperature.map(|temperature| if truncates(config) { 1.0 } else { temperature })
}

/// The sampler of a batch: Gumbel-max with a seed per row, or greedy.
pub(super) struct BatchSampler {
    /// `None`: greedy.
    noise: Option<GumbelMax>,
}

impl BatchSampler {
    /// A sampler of one row per seed, over `width` logits.
    pub(super) fn new(
        config: &GenerationConfig,
        seeds: &[u64],
        width: usize,
        device: &Device,
    ) -> Result<Self> {
        let sampled = |temperature| GumbelMax::new(seeds, width, device)?.with_temperature(temperature);
        Ok(Self { noise: sampler_temperature(config).map(sampled).transpose()? })
    }

    pub(super) fn sampler(&self) -> &dyn Sampler {
        match &self.noise {
            None => &Greedy,
            Some(noise) => noise,
        }
    }

    /// Other seeds, in the buffers that hold the old ones.
    pub(super) fn reseed(&mut self, seeds: &[u64]) {
        if let Some(noise) = &mut self.noise {
            noise.reseed(seeds);
        }
    }

    /// Another seed for one row, in the buffers that hold the old ones.
    pub(super) fn reseed_row(&mut self, row: usize, seed: u64) {
        if let Some(noise) = &mut self.noise {
            noise.reseed_row(row, seed);
        }
    }

    /// A sampler of a single row.
    pub(super) fn of_one_row(&self, seed: u64) -> Self {
        Self { noise: self.noise.as_ref().map(|noise| noise.one(seed)) }
    }
}
