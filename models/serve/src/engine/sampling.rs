//! How the tokens of an answer are chosen.

use burn_dfa::TokenId;
use burn_dfa::generation::SamplingOptions;

/// How the tokens of an answer are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Temperature, truncation, penalties.
    pub options: SamplingOptions,
    /// Texts that end the answer; the answer stops before them.
    pub stop: Vec<String>,
    /// Tokens that end the answer.
    pub stop_tokens: Vec<TokenId>,
    /// Whether the answer's text includes the stop text.
    pub include_stop: bool,
    /// Minimum number of tokens: ends and stops do not count before it.
    pub min_tokens: usize,
    /// Whether the answer's text includes special tokens.
    pub special_tokens: bool,
    /// The seed, if tokens are sampled.
    pub seed: u64,
}

impl Sampling {
    /// The same for one of several answers to a request, with a different seed.
    pub(super) fn of_answer(&self, index: usize) -> Self {
        Self { seed: self.seed.wrapping_add(index as u64), ..self.clone() }
    }
}
