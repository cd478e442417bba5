//! GGUF model files, read as the Hugging Face folders that they were made from.
//!
//! - [`GgufFile`]: the header of a file: [`Metadata`], and the types, shapes and offsets of its
//!   tensors, all checked against the size of the file.
//! - [`GgufFile::config`]: its `config.json`.
//! - [`GgufFile::tokenizer_files`]: its `tokenizer.json`, chat template and ends of sequences.
//! - [`GgufFile::weights`]: its parameters by their names in a folder.
//! - [`block`]: the types of blocks in which a file stores numbers.
//! - [`product`]: rows of activations times a matrix of such blocks.
//!
//! The format is described in [gguf.md](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

mod architecture;
pub mod block;
mod config;
mod error;
mod file;
mod header;
mod metadata;
pub mod product;
mod tokenizer;

pub use architecture::{RowOrder, Weight};
pub use error::GgufError;
pub use file::{GgufFile, Tensor};
pub use metadata::Metadata;
pub use tokenizer::{TokenizerFiles, is_end};
