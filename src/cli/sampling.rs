//! The number of tokens, and how they are chosen.

use clap::Args;

use crate::generation::GenerationConfig;

/// The number of generated tokens, and how they are chosen.
#[derive(Args, Clone, Debug)]
pub struct SamplingArgs {
    /// Maximum number of tokens to generate, end of sequence included.
    #[arg(long, value_name = "N", default_value_t = 128, visible_alias = "max-new-tokens")]
    pub max_tokens: usize,
    /// Sample at this temperature, above 0. Default: greedy, or 1 if a seed, top-k, top-p or min-p
    /// is given.
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Sample among the likeliest K tokens.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Sample among the smallest set of likeliest tokens whose probability reaches P.
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Sample among the tokens of at least this fraction of the likeliest token's probability.
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// The seed of the first row; later rows count up. Default: 0.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// Greedy, unless an option that requires sampling is given.
    pub fn config(&self) -> GenerationConfig {
        let filtered = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        let sampled = self.seed.is_some() || filtered;
        let temperature = self.temperature.or(sampled.then_some(1.0));
        GenerationConfig::new()
            .with_temperature(temperature)
            .with_top_k(self.top_k)
            .with_top_p(self.top_p)
            .with_min_p(self.min_p)
    }

    /// The seed of a row.
    pub fn seed(&self, row: u64) -> u64 {
        self.seed.unwrap_or(0).wrapping_add(row)
    }
}
