//! What an application imports: `use burn_dfa::prelude::*`.
//!
//! The crate's names that a program around constrained decoding needs, and the few of Burn and of the standard library
//! that go with them. It names no `Error` and no `Result`, of which a program has its own.
//!
//! ```
//! use burn_dfa::prelude::*;
//!
//! let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
//! let table = TokenTable::compile(&Constraint::regex("a{3}")?, &vocabulary, &Limits::default())?;
//! assert_eq!(table.tokens_to_end(table.start()), 4);
//! # Ok::<(), burn_dfa::Error>(())
//! ```

pub use std::ops::ControlFlow;

pub use burn::tensor::{Device, Int, Tensor};

pub use crate::constraint::{Constraint, JsonOptions};
pub use crate::generation::speculative::{self, speculate};
pub use crate::generation::{
    Cancel, CausalLm, DecodeGraph, Finish, GenerationConfig, Output, Piece, Pieces, Request, SamplingKinds,
    SamplingOptions, SlotLm, Slots, generate, stream,
};
#[cfg(feature = "typed")]
pub use crate::generation::{choose, generate_as};
pub use crate::limits::Limits;
pub use crate::processor::{DfaProcessor, LogitsProcessor};
pub use crate::sampling::{Greedy, GumbelMax, Sampler};
pub use crate::table::{PendingTable, TokenTable};
pub use crate::tensor::{Capacity, TensorOptions, TensorTable};
pub use crate::vocabulary::{TokenId, Vocabulary};
