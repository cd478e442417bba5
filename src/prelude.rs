//! What an application imports: `use burn_dfa::prelude::*`.
//!
//! The names of this crate and of Burn that a program around constrained decoding needs. It exports
//! no `Error` and no `Result`, because a program has its own.
//!
//! ```
//! use burn_dfa::prelude::*;
//!
//! let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
//! let compiled = Constraint::regex("a{3}")?.compile(&vocabulary)?;
//! assert_eq!(compiled.tokens_to_end(compiled.start()), 4);
//! # Ok::<(), burn_dfa::Error>(())
//! ```

pub use burn::tensor::{Device, Int, Tensor};

pub use crate::constraint::{Constraint, JsonOptions};
pub use crate::generation::{
    CausalLm, ContinuousBatch, DecodeGraph, GenerationConfig, Output, Request, SamplingOptions, generate,
    stream,
};
#[cfg(feature = "typed")]
pub use crate::generation::{generate_as, generate_choice};
pub use crate::processor::{ConstraintProcessor, InitContext, LogitsProcessor, StepContext};
pub use crate::sampling::Sampler;
pub use crate::vocabulary::{TokenId, Vocabulary};
pub use burn_dfa_tokens::{Compile, CompiledConstraint};
