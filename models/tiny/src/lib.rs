//! The default model of `burn-dfa`: a small Llama that turns a short English sentence into a
//! compact JSON record, embedded in the program with its tokenizer.
//!
//! The folder of this crate has exactly the layout of a Hugging Face folder, so the same loader
//! reads the files from disk or from the constants below; `load` (feature `load`, default) does.
//! The training text comes from [`generator`]; the trainer and the held-out evaluation need the
//! feature `train`.

pub mod generator;
#[cfg(feature = "load")]
mod load;
mod schemas;
mod tools;
#[cfg(feature = "train")]
pub mod training;

#[cfg(feature = "load")]
pub use load::{WHITESPACE, load};
pub use schemas::{Schema, schema, schemas};
pub use tools::{Tool, catalogue, tool, tools};

/// The draft model: a Llama of a fifth of the size with the same tokenizer, for speculative
/// decoding.
pub mod draft {
    /// `config.json`.
    pub const CONFIG: &[u8] = include_bytes!("../draft/config.json");

    /// `model.safetensors`, in 16-bit floats.
    pub const WEIGHTS: &[u8] = include_bytes!("../draft/model.safetensors");
}

/// `config.json`: the architecture, with the names that Hugging Face uses.
pub const CONFIG: &[u8] = include_bytes!("../config.json");

/// `generation_config.json`: the token that ends a record.
pub const GENERATION_CONFIG: &[u8] = include_bytes!("../generation_config.json");

/// `tokenizer.json`: a byte-level BPE.
pub const TOKENIZER: &[u8] = include_bytes!("../tokenizer.json");

/// `tokenizer_config.json`: special tokens and the chat template.
pub const TOKENIZER_CONFIG: &[u8] = include_bytes!("../tokenizer_config.json");

/// `model.safetensors`: the weights, in 16-bit floats.
pub const WEIGHTS: &[u8] = include_bytes!("../model.safetensors");
