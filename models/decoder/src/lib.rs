//! Decoder-only models (Llama, SmolLM2 and 3, Mistral, Qwen 2.5 and 3, Gemma 3) in Burn, read from
//! a Hugging Face folder or a GGUF file.
//!
//! - [`DecoderConfig`]: the shape of a model, as in `config.json`.
//! - [`Decoder`]: the parameters and the differentiable forward pass; loading, saving, and decoding
//!   with a [`KvCache`](burn_dfa::generation::KvCache) through
//!   [`CausalLm`](burn_dfa::generation::CausalLm).
//! - [`ChatTemplate`]: renders messages with the chat template of a tokenizer.
//! - [`Generator`]: text, or a value of a type, from a folder, a prompt and a constraint.
//! - [`Pretrained`]: a model with its tokenizer, vocabulary and chat template, read from one
//!   folder or one GGUF file.
//!
//! The feature `cli` builds the program `burn-dfa-generate`, which `burn-dfa generate` runs.

mod blocks;
mod cache;
mod chat;
mod checkpoint;
#[cfg(feature = "cli")]
pub mod cli;
mod config;
mod config_json;
mod config_write;
mod continuous;
mod decode;
mod error;
mod family;
#[cfg(feature = "flex")]
mod flex;
mod folder;
mod folder_problem;
mod frequencies;
mod generator;
mod gguf;
mod layers;
mod load;
mod mask;
mod model;
mod parameters;
mod pretrained;
#[cfg(all(test, feature = "flex"))]
mod profile;
mod raw_config;
mod rope_json;
mod rotary;
mod save;
mod tree;

pub use chat::{ChatPrompt, ChatTemplate, Message, RenderOptions};
pub use config::{Activation, DecoderConfig};
pub use error::DecoderError;
pub use family::Family;
pub use folder_problem::FolderProblem;
pub use frequencies::{Llama3Scaling, Rope, RopeScaling, YarnScaling};
pub use generator::{Generator, Prompt};
pub use load::LoadProgress;
pub use model::Decoder;
pub use pretrained::{Pretrained, PretrainedFolder};
