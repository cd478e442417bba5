//! What an application imports: `use burn_dfa::prelude::*`.
//!
//! The names of this crate, of Burn and of the standard library that a program around constrained
//! decoding needs. It exports no `Error` and no `Result`, because a program has its own.
//!
//! ```
//! use burn_dfa::prelude::*;
//!
//! let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
//! let table = CompiledConstraint::compile(&Constraint::regex("a{3}")?, &vocabulary, &Limits::default())?;
//! assert_eq!(table.tokens_to_end(table.start()), 4);
//! # Ok::<(), burn_dfa::Error>(())
//! ```

pub use std::ops::ControlFlow;

pub use burn::tensor::{Device, Int, Tensor};

pub use crate::Limits;
pub use crate::constraint::{Constraint, JsonOptions, Whitespace};
pub use crate::generation::speculative::{self, speculate};
pub use crate::generation::{
    Cancel, CausalLm, Chunk, ContinuousBatch, ContinuousLm, DecodeGraph, FinishReason, GenerationConfig,
    Output, Recordable, Request, SamplingFeatures, SamplingOptions, TokenStream, generate, stream,
};
#[cfg(feature = "typed")]
pub use crate::generation::{generate_as, generate_as_with, generate_choice};
pub use crate::processor::{ConstraintProcessor, LogitsProcessor};
pub use crate::sampling::{Greedy, GumbelMax, Sampler};
pub use crate::tensor::{Capacity, DeviceConstraint, TensorOptions};
pub use crate::vocabulary::{TokenId, Vocabulary};
pub use burn_dfa_tokens::{CompiledConstraint, PendingConstraint};
