//! GGUF model files: metadata, tensors, block types and the tokenizer.

pub mod block;
pub mod product;
