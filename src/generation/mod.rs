//! Models, the decode loop and streaming.

mod model;

pub use model::CausalLm;
