//! Constrained decoding as tensors, for [Burn](burn).
//!
//! A constraint (a regex, a choice, a JSON schema, a grammar, a character pattern, explicit transitions) is compiled
//! on the host, once, to an automaton over the tokens of a vocabulary. Its transitions are tensors on the model's
//! device, and in the generation loop everything stays there: look up the state, mask the logits, sample,
//! advance.
//!
//! ```text
//! Constraint ──▶ ByteDfa ──(+ Vocabulary)──▶ TokenTable ──▶ TensorTable ──▶ DfaProcessor ──▶ generation
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`constraint`] | what the user asks for |
//! | [`automaton`] | automata over bytes |
//! | [`vocabulary`] | token ids and their bytes; readers of tokenizers |
//! | [`table`] | the constraint over tokens, on the host |
//! | [`tensor`] | the same on a device |
//! | [`processor`] | logits processors and their chains |
//! | [`sampling`] | greedy and Gumbel-max |
//! | [`generation`] | the model trait, the decode loop and its recorded graph, streaming, slots, speculative decoding |
//! | [`prelude`] | what an application imports |
//!
//! The [`glossary`] defines the terms.
//!
//! # Example
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_dfa::processor::DfaProcessor;
//! use burn_dfa::sampling::{Greedy, Sampler};
//! use burn_dfa::{Constraint, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
//!
//! // Three tokens and the end of the sequence.
//! let tokens = [Some("yes"), Some("no"), Some("!"), None];
//! let vocabulary = Vocabulary::from_bytes(tokens)?.with_eos([TokenId(3)])?;
//! let constraint = Constraint::regex("(yes|no)!?")?;
//! let table = TokenTable::compile(&constraint, &vocabulary, &Limits::default())?;
//!
//! let device = Device::flex();
//! let tensors = TensorTable::new(&[&table], 4, &TensorOptions::default(), &device)?;
//! let processor = DfaProcessor::new(tensors, &[0])?;
//! let mut state = processor.start();
//! let step = Tensor::<1, Int>::zeros([1], &device);
//! let mut output = Vec::new();
//! for _ in 0..3 {
//!     // A model that would rather say "!" than anything else.
//!     let logits = Tensor::<2>::from_data([[0.1, 0.2, 0.9, 0.0]], &device);
//!     let token = Greedy.sample(processor.mask(&state, logits), &step);
//!     state = processor.advance(state, token.clone());
//!     output.push(TokenId(token.into_data().try_to_vec::<i32>().unwrap()[0] as u32));
//! }
//! assert_eq!(vocabulary.decode(&output), b"no!");
//! # Ok::<(), burn_dfa::Error>(())
//! ```
//!
//! # Features
//! `flex` (default), `vulkan`, `wgpu`, `cuda`, `cuda-cpp` and `fusion` are Burn's backends and options; they
//! combine freely. `remote` adds devices of a server elsewhere, `remote-server` such a server. `typed` (default) is generation of Rust types by their schema; `cli` builds the command line tool
//! `burn-dfa`.

// Without Flex, what only its loops use is unused.
#![cfg_attr(not(feature = "flex"), allow(dead_code, unused_imports, unused_variables))]

pub mod automaton;
#[cfg(feature = "cli")]
pub mod cli;
pub mod constraint;
mod error;
pub mod generation;
#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}
mod kernel;
mod limits;
mod persistent;
pub mod prelude;
pub mod processor;
mod random;
#[cfg(feature = "remote")]
pub mod remote;
pub mod sampling;
#[cfg(feature = "remote-server")]
pub mod server;
pub mod table;
pub mod tensor;
mod threads;
pub mod vocabulary;

pub use automaton::ByteDfa;
pub use constraint::Constraint;
pub use error::{Error, Limit, Result, Room};
pub use limits::Limits;
pub use table::{PendingTable, StateId, TableCache, TableSender, TokenTable};
pub use tensor::{Arena, Capacity, Kernels, Layout, Position, TensorOptions, TensorTable};
pub use vocabulary::{TokenId, Vocabulary};

/// The examples of the README and of the guide compile and run.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/constraints.md")]
    struct Constraints;
    #[doc = include_str!("../docs/generation.md")]
    struct Generation;
    #[doc = include_str!("../docs/grammars.md")]
    struct Grammars;
    #[doc = include_str!("../docs/json-schema.md")]
    struct JsonSchema;
    #[doc = include_str!("../docs/limits.md")]
    struct Limits;
    #[doc = include_str!("../docs/serving.md")]
    struct Serving;
    #[doc = include_str!("../docs/tools.md")]
    struct Tools;
}
