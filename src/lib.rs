//! Constrained decoding as tensors, for [Burn](burn).
//!
//! A constraint (a regex, a choice, a JSON schema, a grammar, a character pattern, explicit
//! transitions) is compiled once, on the host, to an automaton over the tokens of a vocabulary. Its
//! transitions are tensors on the model's device, and the whole generation loop runs on the device:
//! look up the state, mask the logits, sample, advance.
//!
//! ```text
//! Constraint ──▶ byte automaton ──(+ Vocabulary)──▶ CompiledConstraint
//!     ──▶ DeviceConstraint ──▶ ConstraintProcessor ──▶ generation
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`constraint`] | regexes, schemas, grammars, tags and tools, lowered to automata |
//! | [`automaton`] | automata over bytes |
//! | [`vocabulary`] | token ids and their bytes; readers of tokenizers |
//! | [`tokens`] | compiled constraints: automata over tokens, on the host |
//! | [`tensor`] | device constraints: the same as tensors on a device |
//! | `kernel` | the fused operations of a step: loops on Flex, kernels of CubeCL, and the reference |
//! | [`processor`] | logits processors and their chains |
//! | [`sampling`] | greedy and Gumbel-max |
//! | [`generation`] | the traits of models, the decode loop and its recorded graph, streaming, continuous batches, speculative decoding |
//! | `in_place` | states that stay in the same buffers, for recorded steps |
//! | `remote` | devices on a server, with the feature `remote` |
//! | [`prelude`] | what an application imports |
//!
//! The [`glossary`] defines the terms.
//!
//! # Example
//!
//! A `Generator` of [burn-dfa-decoder](https://docs.rs/burn-dfa-decoder) is a model with its
//! tokenizer. This one is embedded in [burn-dfa-tiny](https://docs.rs/burn-dfa-tiny), and
//! `Generator::from_folder` reads a folder of Hugging Face or a GGUF file.
//!
//! ```
//! use burn_dfa::prelude::*;
//! use burn_dfa_decoder::Generator;
//!
//! let model = Generator::new(burn_dfa_tiny::load(&Device::flex())?);
//! let kind = Constraint::choice(["person", "order", "event"])?;
//! let answer = model.generate("Meet Nora Keller, a 34 year old baker from Lisbon.", &kind)?;
//! assert_eq!(answer, "person");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A loop of an application needs only a vocabulary and logits:
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use burn_dfa::processor::ConstraintProcessor;
//! use burn_dfa::sampling::{Greedy, Sampler};
//! use burn_dfa::{
//!     CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId,
//!     Vocabulary,
//! };
//!
//! // Three tokens and the end of the sequence.
//! let tokens = [Some("yes"), Some("no"), Some("!"), None];
//! let vocabulary = Vocabulary::from_bytes(tokens)?.with_eos([TokenId(3)])?;
//! let constraint = Constraint::regex("(yes|no)!?")?;
//! let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default())?;
//!
//! let device = Device::flex();
//! let tensors = DeviceConstraint::new(&[&compiled], 4, &TensorOptions::default(), &device)?;
//! let processor = ConstraintProcessor::new(tensors, &[0])?;
//! let mut position = processor.start();
//! let step = Tensor::<1, Int>::zeros([1], &device);
//! let mut output = Vec::new();
//! for _ in 0..3 {
//!     // A model that would rather say "!" than anything else.
//!     let logits = Tensor::<2>::from_data([[0.1, 0.2, 0.9, 0.0]], &device);
//!     let token = Greedy.sample(processor.mask(&position, logits), &step);
//!     position = processor.advance(position, token.clone());
//!     output.push(TokenId(token.into_data().try_to_vec::<i32>().unwrap()[0] as u32));
//! }
//! assert_eq!(vocabulary.decode(&output), b"no!");
//! # Ok::<(), burn_dfa::Error>(())
//! ```
//!
//! # Features
//! `flex` (default), `vulkan`, `wgpu`, `cuda`, `cuda-cpp` and `fusion` are Burn's backends and
//! options; they combine freely. `remote` adds the devices of a server, `remote-server` adds the
//! server. `typed` (default) generates Rust types by their schema; `cli` builds the command line
//! tool `burn-dfa`.

// Without Flex, the helpers of its loops are unused.
#![cfg_attr(not(feature = "flex"), allow(dead_code, unused_imports, unused_variables))]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod generation;
#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}
mod in_place;
mod kernel;
pub mod prelude;
pub mod processor;
#[cfg(feature = "remote")]
pub mod remote;
pub mod sampling;
pub mod tensor;

pub use burn_dfa_tokens as tokens;
pub use burn_dfa_tokens::{
    ArenaSpace, ByteDfa, Cancel, Compile, CompiledConstraint, Constraint, ConstraintCache, ConstraintSender,
    Error, ErrorKind, ForcedText, Limit, Limits, Masker, PendingConstraint, Result, StateId, TokenId,
    Unenforced, Vocabulary, automaton, constraint, vocabulary,
};
pub use tensor::{Arena, Capacity, DeviceConstraint, Kernels, Position, TensorOptions};

/// The examples of the README and of the guide compile and run.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("README.md")]
    struct PackageReadme;
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
    #[doc = include_str!("../docs/migration.md")]
    struct Migration;
    #[doc = include_str!("../docs/own-model.md")]
    struct OwnModel;
    #[doc = include_str!("../docs/own-processor.md")]
    struct OwnProcessor;
    #[doc = include_str!("../docs/quick-start.md")]
    struct QuickStart;
    #[doc = include_str!("../docs/schema-design.md")]
    struct SchemaDesign;
    #[doc = include_str!("../docs/serving.md")]
    struct Serving;
    #[doc = include_str!("../docs/tools.md")]
    struct Tools;
}
