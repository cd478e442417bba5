//! Models, the decode loop and streaming.
//!
//! [`generate`] runs a batch of [`Request`]s on a [`CausalLm`]: prefill, then a loop in which everything stays
//! on the device (process the logits, sample, step the model). The host reads tokens every few steps, to
//! stream them and to stop; [`stream`] is the same loop as an iterator. A [`DecodeGraph`] records that loop's step once and replays it for any number of
//! batches.
//!
//! [`Slots`] is a batch of fixed capacity whose rows are requests that come and go.

mod batch;
mod cancel;
mod config;
mod decode;
mod graph;
mod model;
mod pieces;
mod request;
mod row;
mod session;
mod slots;
pub mod speculative;
mod stream;
#[cfg(feature = "typed")]
mod typed;

pub use cancel::Cancel;
pub use config::GenerationConfig;
pub use decode::{generate, stream};
pub use graph::DecodeGraph;
pub use model::CausalLm;
pub use pieces::Pieces;
pub use request::{Finish, Output, Piece, Request};
pub use slots::{SlotLm, Slots};
pub use stream::Utf8Stream;
#[cfg(feature = "typed")]
pub use typed::{choose, generate_as};
