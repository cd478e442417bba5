//! Models, the decode loop, streaming, and speculative decoding.
//!
//! Generation runs a batch of [`Request`]s on a model. The model reads the prompts, and then a loop stays on the device:
//! process the logits, choose a token per row, feed it to the model. The host reads the tokens every few steps, to stream
//! them and to stop.
//!
//! | to | use |
//! |---|---|
//! | generate a batch, with a callback or as an iterator | [`generate`], [`stream`] and its [`Pieces`] |
#![cfg_attr(feature = "typed", doc = "| generate a value of a Rust type | [`generate_as`], [`choose`] |")]
//! | record the decode step once and replay it | [`DecodeGraph`] |
//! | let requests begin in a running batch as rows become idle | [`Slots`] |
//! | call the model less often | [`speculative`] |
//!
//! What goes in and comes out: a [`Request`] is a row (prompt, constraint, budget, seed, [`Cancel`]), a
//! [`GenerationConfig`] says how tokens are chosen in all rows, a [`Piece`] is a part of a row's output as it comes, and
//! an [`Output`] all of it, with its [`Finish`]. [`Utf8Stream`] turns bytes into text as they come.
//!
//! What a model implements: [`CausalLm`], and for the last two lines of the table [`SlotLm`] and
//! [`TreeLm`](speculative::TreeLm).

mod batch;
mod cancel;
mod config;
mod decode;
mod graph;
mod log;
mod logprobs;
mod model;
mod options;
mod pieces;
mod request;
mod row;
mod selection;
mod session;
mod slots;
pub mod speculative;
mod stop;
mod stream;
#[cfg(feature = "typed")]
mod typed;

pub use cancel::Cancel;
pub use config::GenerationConfig;
pub use decode::{generate, stream};
pub use graph::DecodeGraph;
pub use logprobs::{Logprobs, TokenLogprobs};
pub use model::CausalLm;
pub use options::{SamplingKinds, SamplingOptions};
pub use pieces::Pieces;
pub use request::{Finish, Output, Piece, Request};
pub use slots::{SlotLm, Slots};
pub use stream::Utf8Stream;
#[cfg(feature = "typed")]
pub use typed::{choose, generate_as};
