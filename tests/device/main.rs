//! Tests on every available device: lookups, processors, kernels, generation, speculation,
//! continuous batches.

mod backends;
#[path = "../common/mod.rs"]
mod common;
mod compiled;
mod continuous;
mod filters;
mod free_text;
mod generation;
mod laws;
mod logprobs;
mod many_rows;
mod marker;
mod mask_rows;
mod much_text;
mod options;
mod own_models;
mod processors;
mod rows;
mod speculation;
mod stack;
mod steps;
mod stops;
mod wrong_processors;
