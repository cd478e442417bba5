//! Llama-family models (SmolLM2, TinyLlama, Llama 3) in Burn, read from a Hugging Face folder.
//!
//! - [`LlamaConfig`]: the shape of a model, as in `config.json`.
//! - [`Llama`]: the parameters and the differentiable forward pass.

mod config;
mod error;
mod layers;
mod model;
mod raw_config;
mod rope;

pub use config::{Llama3Scaling, LlamaConfig};
pub use error::LlamaError;
pub use model::Llama;
