//! Draft tokens copied from earlier tokens of the row.

use burn::tensor::{DType, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::sequences::Sequences;
use crate::generation::model::Recordable;
use crate::processor::{DraftTree, Position};
use burn_dfa_tokens::Result;

/// Proposes the tokens that followed an earlier occurrence of the last tokens (Saxena, "Prompt
/// Lookup Decoding", 2023).
///
/// It searches for the longest suffix of the row that occurred earlier, and takes the latest
/// occurrence. It needs no model, and pays off if outputs repeat parts of the prompt.
///
/// ```
/// use burn_dfa::generation::speculative::{Drafter, PromptLookup};
///
/// assert_eq!(PromptLookup::new(4, 3).tree().depth(), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLookup {
    drafts: usize,
    longest: usize,
}

impl PromptLookup {
    /// A chain of `drafts` draft tokens; compares suffixes of up to `longest` tokens, at least 1.
    pub fn new(drafts: usize, longest: usize) -> Self {
        Self { drafts, longest: longest.max(1) }
    }
}

// SAFETY: It holds no tensors, and its drafts are new tensors.
#[allow(unsafe_code)]
unsafe impl Recordable for PromptLookup {}

impl Drafter for PromptLookup {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(self.drafts)
    }

    fn start(&mut self, _context: &DrafterContext) -> Result<()> {
        Ok(())
    }

    fn draft(&mut self, sequences: &Sequences, _state: &Position) -> Vec<DraftToken> {
        let (tokens, lengths) = (sequences.tokens(), sequences.lengths());
        let ([batch, slots], device) = (tokens.dims(), tokens.device());
        let all = [batch, slots];
        let zeros = |columns| Tensor::<2, Int>::zeros([batch, columns], (&device, DType::I32));
        // The number of tokens up to each slot that agree with the end of the row.
        let (mut agree, mut still) = (zeros(slots), zeros(slots) + 1);
        for back in 0..self.longest.min(slots) {
            let shifted = match back {
                0 => tokens.clone(),
                _ => Tensor::cat(vec![zeros(back) - 1, tokens.clone().slice([0..batch, 0..slots - back])], 1),
            };
            let wanted = sequences.window(lengths.clone() - 1 - back as i32, 1).expand(all);
            still = still * shifted.equal(wanted).int().cast(DType::I32);
            agree = agree + still.clone();
        }
        let slot = sequences.steps(slots).reshape([1, slots]).expand(all);
        let late = slot.clone().greater_equal((lengths - 1).reshape([batch, 1]).expand(all));
        let rank = (agree * slots as i32 + slot).mask_fill(late, -1);
        let best = rank.argmax(1).reshape([batch]).cast(DType::I32);
        let found = sequences.window(best + 1, self.drafts.max(1));
        let token = |at| found.clone().slice([0..batch, at..at + 1]).reshape([batch]);
        (0..self.drafts).map(|at| DraftToken { tokens: token(at), probabilities: None }).collect()
    }
}
