//! Tests on every available device: lookups, processors, kernels, generation, speculation, slots.

mod backends;
#[path = "../common/mod.rs"]
mod common;
mod compiled;
mod filters;
mod free_text;
mod generation;
mod laws;
mod logprobs;
mod marker;
mod mask_rows;
mod much_text;
mod options;
mod own_models;
mod processors;
mod rows;
mod slots;
mod speculation;
mod stack;
mod steps;
mod stops;
mod wrong_processors;
