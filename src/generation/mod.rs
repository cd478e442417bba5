//! Models, the decode loop, streaming, and speculative decoding.
//!
//! Generation runs a batch of [`Request`]s on a model. The model reads the prompts, and then a loop
//! runs on the device: process the logits, choose a token per row, feed it to the model. Every few
//! steps the host reads the tokens, streams them and decides whether to stop.
//!
//! | to | use |
//! |---|---|
//! | generate a batch | [`generate`] |
//! | receive its text in chunks | [`stream`] and its [`TokenStream`] |
#![cfg_attr(
    feature = "typed",
    doc = "| generate a value of a Rust type | [`generate_as`], [`generate_choice`] |"
)]
//! | record the decode step once and replay it | [`DecodeGraph`] |
//! | let requests begin in a running batch as rows become idle | [`ContinuousBatch`] |
//! | call the model less often | [`speculative`] |
//!
//! Inputs and outputs: a [`Request`] is a row (prompt, constraint, budget, seed, [`Cancel`]); a
//! [`GenerationConfig`] sets how tokens are chosen in all rows; a [`Chunk`] is a streamed part of a
//! row's output; an [`Output`] is the whole output with its [`FinishReason`]. [`Utf8Stream`]
//! decodes bytes into text incrementally.
//!
//! Logits processors and a sampler of an application join the loop by
//! [`GenerationConfig::with_processor`] and [`GenerationConfig::with_sampler`], and recorded loops
//! by [`GenerationConfig::with_recordable_processor`] and
//! [`GenerationConfig::with_recordable_sampler`].
//!
//! A model of an application joins by [`Recompute`], a function from tokens to logits; or by
//! [`Cached`] with a [`KvCache`], after it implements [`Transformer`]. Both run in all loops. Any
//! other model implements [`CausalLm`], for the last two lines of the table also [`ContinuousLm`]
//! and [`TreeLm`](speculative::TreeLm), and [`Recordable`] if its steps can be recorded.

mod admission;
mod batch;
mod cached;
mod chooser;
mod config;
mod config_json;
mod continuous;
mod decode;
mod graph;
mod logprobs;
mod model;
mod options;
mod processors;
mod recompute;
mod recorded;
mod request;
mod row;
mod selection;
mod session;
pub mod speculative;
mod step_log;
mod stop;
mod token_stream;
#[cfg(feature = "typed")]
mod typed;
mod utf8_stream;

pub use burn_dfa_tokens::limits::Cancel;
pub use cached::{Cached, KvCache, KvContext, KvShape, Transformer};
pub use config::GenerationConfig;
pub use continuous::{ContinuousBatch, ContinuousLm};
pub use decode::{generate, stream};
pub use graph::DecodeGraph;
pub use logprobs::{Logprobs, TokenLogprobs};
pub use model::{CausalLm, Recordable};
pub use options::{SamplingFeatures, SamplingOptions};
pub use processors::{OwnSampler, Processors};
pub use recompute::{Recompute, TextCache};
pub use request::{Chunk, FinishReason, Output, Request};
pub use token_stream::TokenStream;
#[cfg(feature = "typed")]
pub use typed::{generate_as, generate_as_with, generate_choice};
pub use utf8_stream::Utf8Stream;
