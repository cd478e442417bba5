//! How the tokens of an answer are chosen.

use burn_dfa::generation::SamplingOptions;

/// How the tokens of an answer are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Temperature, truncation, penalties.
    pub options: SamplingOptions,
    /// Texts before which it ends.
    pub stop: Vec<String>,
    /// The seed where tokens are sampled.
    pub seed: u64,
}

impl Sampling {
    /// The same for one of several answers to a request, which differ by their seeds.
    pub(super) fn of_answer(&self, index: usize) -> Self {
        Self { seed: self.seed.wrapping_add(index as u64), ..self.clone() }
    }
}
