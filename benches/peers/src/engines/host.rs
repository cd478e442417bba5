//! Rows of engines that compute a mask on the host for one row at a time.

use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::Rows;

/// One row.
pub(super) trait Matcher: Send {
    /// Advances by an allowed token.
    fn advance(&mut self, token: u32) -> Result<(), String>;

    /// Computes the mask and applies it.
    fn mask(&mut self, logits: &mut [f32]) -> Result<(), String>;

    /// Whether the mask allows a token, if a step does not apply the mask.
    fn allows(&self, _token: u32) -> bool {
        true
    }

    /// Applies the mask outside of the timed step, if the step does not.
    fn apply_behind(&self, _logits: &mut [f32]) {}
}

/// Matchers of the same grammar, run in sequence or on all cores.
pub(super) struct HostRows<M> {
    matchers: Vec<M>,
    logits: Vec<f32>,
    chosen: Vec<Option<u32>>,
    on_all_cores: bool,
}

impl<M: Matcher> HostRows<M> {
    pub(super) fn new(matchers: Vec<M>, on_all_cores: bool) -> Self {
        let chosen = vec![None; matchers.len()];
        Self { matchers, logits: Vec::new(), chosen, on_all_cores }
    }
}

impl<M: Matcher> Rows for HostRows<M> {
    fn advance(&mut self, tokens: &[Option<u32>]) -> Result<(), String> {
        let mut rows = self.matchers.iter_mut().zip(tokens);
        rows.try_for_each(|(matcher, token)| token.map_or(Ok(()), |token| matcher.advance(token)))
    }

    fn prepare(&mut self, logits: &[f32], chosen: Option<&[u32]>) {
        self.logits.resize(logits.len(), 0.0);
        self.logits.copy_from_slice(logits);
        for (row, slot) in self.chosen.iter_mut().enumerate() {
            *slot = chosen.map(|chosen| chosen[row]);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let vocab_size = self.logits.len() / self.matchers.len();
        let one = |matcher: &mut M, chosen: &Option<u32>, logits: &mut [f32]| {
            if let Some(token) = *chosen {
                matcher.advance(token)?;
            }
            matcher.mask(logits)
        };
        if self.on_all_cores {
            let rows =
                self.matchers.par_iter_mut().zip(&self.chosen).zip(self.logits.par_chunks_mut(vocab_size));
            rows.try_for_each(|((matcher, chosen), logits)| one(matcher, chosen, logits))
        } else {
            let mut rows = self.matchers.iter_mut().zip(&self.chosen).zip(self.logits.chunks_mut(vocab_size));
            rows.try_for_each(|((matcher, chosen), logits)| one(matcher, chosen, logits))
        }
    }

    fn allows(&self, token: u32) -> bool {
        self.logits[token as usize].is_finite() && self.matchers[0].allows(token)
    }

    fn logits(&self) -> Vec<f32> {
        let mut logits = self.logits.clone();
        let rows = logits.chunks_mut(self.logits.len() / self.matchers.len());
        rows.zip(&self.matchers).for_each(|(logits, matcher)| matcher.apply_behind(logits));
        logits
    }
}

/// Writes −∞ for each token with bit 0.
///
/// The peers share this loop, which skips words that allow everything: it is faster than their own
/// loops.
pub(super) fn apply(words: impl IntoIterator<Item = u32>, logits: &mut [f32]) {
    for (word, logits) in words.into_iter().zip(logits.chunks_mut(32)) {
        match word {
            0 => logits.fill(f32::NEG_INFINITY),
            u32::MAX => {}
            _ => {
                for (bit, logit) in logits.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 0 { f32::NEG_INFINITY } else { *logit };
                }
            }
        }
    }
}
