//! From logits to tokens: the processors after the constraint, and the sampler, according to the
//! options of the rows.

use burn::tensor::Device;

use super::options::{SamplingFeatures, SamplingOptions};
use super::processors::{Filters, OwnSampler, Processors};
use crate::processor::{
    FrequencyPresencePenalty, LogitBias, MinNewTokens, MinP, RepetitionPenalty, SuppressTokens, Temperature,
    TopK, TopP,
};
use crate::sampling::{Greedy, GumbelMax, Sampler};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::Result;

/// The processors of the application, then the filters of rows with these `options`. Every filter
/// that the batch `may` use gets a state. A step applies only the filters that are `on`, and reads
/// the options from their states.
pub(super) fn filters(
    processors: &Processors,
    options: &[SamplingOptions],
    may: SamplingFeatures,
    on: SamplingFeatures,
    vocabulary: &Vocabulary,
) -> Result<Filters> {
    let rows = || options.iter();
    // A greedy row takes the greatest logit, which the last filters do not change.
    let sampled = || rows().map(|row| (!row.is_greedy()).then_some(row));
    let temperatures = rows().map(|row| row.sampled().filter(|_| row.truncates()));
    let repetition = rows().map(|row| row.repetition_penalty.unwrap_or(1.0));
    let output = rows().map(SamplingOptions::output_penalties);
    let bias = rows().map(|row| row.logit_bias.clone());
    let suppressed = rows().map(|row| row.suppress_tokens.clone());
    let least = rows().map(|row| row.min_new_tokens);
    let mut filters = Filters::new(processors);
    if may.repetition_penalty {
        filters.push(RepetitionPenalty::of_rows(repetition)?, on.repetition_penalty);
    }
    if may.output_penalties {
        filters.push(FrequencyPresencePenalty::of_rows(output)?, on.output_penalties);
    }
    if may.logit_bias {
        filters.push(LogitBias::of_rows(bias)?, on.logit_bias);
    }
    if may.suppress_tokens {
        filters.push(SuppressTokens::of_rows(suppressed), on.suppress_tokens);
    }
    if may.min_new_tokens {
        filters.push(MinNewTokens::of_rows(least, vocabulary), on.min_new_tokens);
    }
    if may.truncate() {
        filters.push(Temperature::of_rows(temperatures)?, on.truncate());
    }
    if may.top_k {
        filters.push(TopK::of_rows(sampled().map(|row| row?.top_k))?, on.top_k);
    }
    if may.top_p {
        filters.push(TopP::of_rows(sampled().map(|row| row?.top_p))?, on.top_p);
    }
    if may.min_p {
        filters.push(MinP::of_rows(sampled().map(|row| row?.min_p))?, on.min_p);
    }
    Ok(filters)
}

/// The temperature that the sampler applies to a row, in its own pass: 1 if the [`filters`] have
/// applied it already. `None`: greedy.
///
/// It depends on the options of the row alone, so a row is rounded in the same way in every batch.
fn sampler_temperature(options: &SamplingOptions) -> Option<f32> {
    options.sampled().map(|temperature| if options.truncates() { 1.0 } else { temperature })
}

/// The temperature that the sampler applies to each row.
pub(super) fn temperatures(options: &[SamplingOptions]) -> Vec<Option<f32>> {
    options.iter().map(sampler_temperature).collect()
}

/// The sampler of a batch: the application's, Gumbel-max with a seed and a temperature per row, or
/// greedy.
pub(super) struct BatchSampler {
    own: Option<OwnSampler>,
    /// `None`: no row may be sampled.
    noise: Option<GumbelMax>,
    /// Whether a row is sampled.
    on: bool,
}

impl BatchSampler {
    /// A sampler of one row per seed, over `vocab_size` logits, unless the application has its own.
    pub(super) fn new(
        own: &Option<OwnSampler>,
        options: &[SamplingOptions],
        may: SamplingFeatures,
        seeds: &[u64],
        vocab_size: usize,
        device: &Device,
    ) -> Result<Self> {
        let sampled = || GumbelMax::new(seeds, vocab_size, device)?.with_temperatures(&temperatures(options));
        Ok(Self { own: own.clone(), noise: may.temperature.then(sampled).transpose()?, on: true })
    }

    pub(super) fn sampler(&self) -> &dyn Sampler {
        match (&self.own, &self.noise) {
            (Some(own), _) => own,
            (None, Some(noise)) if self.on => noise,
            _ => &Greedy,
        }
    }

    /// Turns the noise of the next steps on or off.
    pub(super) fn switch(&mut self, on: bool) {
        self.on = on;
    }

    /// Overwrites the seeds and temperatures in their buffers.
    pub(super) fn reseed(&mut self, options: &[SamplingOptions], seeds: &[u64]) -> Result<()> {
        match &mut self.noise {
            Some(noise) => noise.reseed(seeds, &temperatures(options)),
            None => Ok(()),
        }
    }

    /// A sampler of a single row, which is a row of a batch of `batch` rows.
    pub(super) fn of_one_row(
        &self,
        row: usize,
        batch: usize,
        options: &SamplingOptions,
        seed: u64,
    ) -> Result<Self> {
        let own = self.own.as_ref().map(|own| own.of_row(row, batch));
        let one = |noise: &GumbelMax| noise.one(seed, sampler_temperature(options));
        Ok(Self { own, noise: self.noise.as_ref().map(one).transpose()?, on: true })
    }

    /// Overwrites the sampler of one row with the sampler of a single row, in the same buffers.
    pub(super) fn assign_row(&mut self, row: usize, one: Self) {
        if let (Some(noise), Some(one)) = (&mut self.noise, one.noise) {
            noise.assign_row(row, one);
        }
    }
}
