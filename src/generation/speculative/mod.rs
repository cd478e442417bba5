//! Speculative decoding: a drafter proposes several tokens, and one call of the model verifies
//! them.
//!
//! A *draft token* is a proposal for the next token of a row. Draft tokens form a *draft tree*
//! ([`DraftTree`](crate::processor::DraftTree)): its root stands for the last token of the row,
//! every other node is a draft token that follows its parent, and a *chain* is a tree without
//! branches. A *speculative step* has three parts:
//!
//! 1. *draft*: a [`Drafter`] proposes a tree of draft tokens;
//! 2. *verify*: the model, a [`TreeLm`], reads all nodes at once, the constraint follows every node
//!    and masks its logits ([`ConstraintProcessor::mask_tree`]), and a [`Verifier`] accepts a path
//!    of the tree;
//! 3. *append*: the accepted draft tokens, and the token that the model chooses after them, become
//!    part of the row.
//!
//! Speculation changes the number of model calls, not the output: greedy outputs equal the outputs
//! of [`generate`](super::generate), sampled outputs have the same distribution. A draft token that
//! violates the constraint or the budget is rejected like any other.
//!
//! | drafter | proposes |
//! |---|---|
//! | [`DraftModel`] | what a smaller model says, under the constraint or free |
//! | [`PromptLookup`] | what followed the same tokens earlier in the text |
//! | [`ForcedTokens`] | tokens that the constraint leaves no choice about, alone or in front of another drafter |
//! | [`MergedDrafters`] | what two drafters say, side by side |
//! | `()` | nothing |
//!
//! [`speculate`] generates a batch; [`stream`] does the same as an iterator. All shapes are fixed,
//! and a speculative step uploads nothing and reads nothing back: the number of accepted tokens per
//! row is a tensor. Therefore a step can be recorded and replayed, see [`speculate_recorded`].
//!
//! Sources: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding",
//! 2023 (arXiv:2211.17192); Miao et al., "SpecInfer", 2024 (arXiv:2305.09781) for trees; Saxena,
//! "Prompt Lookup Decoding", 2023.
//!
//! [`ConstraintProcessor::mask_tree`]: crate::processor::ConstraintProcessor::mask_tree

mod chooser;
mod decode;
mod draft_model;
mod drafter;
mod forced;
mod lookup;
mod merged;
mod model;
mod seeds;
mod sequences;
mod session;
mod softmax;
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
