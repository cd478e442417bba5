//! Speculative decoding: several tokens guessed, one call of the model to check them.
//!
//! A [`Drafter`] guesses what follows, as a chain or a [tree](crate::processor::DraftTree) of tokens. The model, a
//! [`TreeLm`], reads all guesses at once; the constraint follows every node and masks its logits
//! ([`DfaProcessor::mask_tree`]); a [`Verifier`] accepts a path and chooses the token after it. Guesses change how
//! often the model is called, never what comes out: greedy tokens are those of plain constrained decoding, sampled
//! ones have its distribution. A guess that breaks the constraint or the budget is refused like any other.
//!
//! | drafter | guesses |
//! |---|---|
//! | [`DraftModel`] | what a smaller model says, under the constraint or free |
//! | [`PromptLookup`] | what followed the same tokens earlier in the text |
//! | [`ForcedTokens`] | what the constraint leaves no choice about, alone or in front of another drafter |
//! | [`MergedDrafters`] | what two drafters say, side by side |
//! | `()` | nothing |
//!
//! [`speculate`] runs a batch, [`stream`] does as an iterator. All shapes are fixed, and all of a round stays on the device: what was accepted
//! differs from row to row and is a tensor. So a round can be recorded and replayed, see [`speculate_recorded`].
//!
//! Sources: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023
//! (arXiv:2211.17192); Miao et al., "SpecInfer", 2024 (arXiv:2305.09781) for trees; Saxena, "Prompt Lookup
//! Decoding", 2023.
//!
//! [`DfaProcessor::mask_tree`]: crate::processor::DfaProcessor::mask_tree

mod decode;
mod draft_model;
mod drafter;
mod forced;
mod lookup;
mod merged;
mod model;
mod recorded;
mod sequences;
mod session;
mod verify;

pub use decode::{SpeculativeOutput, speculate, speculate_recorded, stream};
pub use draft_model::DraftModel;
pub use drafter::{DraftToken, Drafter, DrafterContext};
pub use forced::{ForcedBytes, ForcedTokens};
pub use lookup::PromptLookup;
pub use merged::MergedDrafters;
pub use model::TreeLm;
pub use sequences::Sequences;
pub use verify::{Acceptance, Verifier};
