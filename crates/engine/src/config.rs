//! The settings of the compiler and of the engine.

use burn_dfa::generation::SamplingFeatures;
use burn_dfa::{Capacity, ConstraintCache, Limits, TensorOptions};

/// The settings of a [`Compiler`](crate::Compiler).
#[derive(Debug)]
pub struct CompilerConfig {
    /// The limits of one compilation. Their time is the deadline.
    pub limits: Limits,
    /// The capacity of the engine, which no constraint may exceed.
    pub capacity: Capacity,
    /// Maximum number of threads.
    pub threads: usize,
    /// Maximum number of compilations that wait for a thread.
    pub max_waiting: usize,
    /// Maximum number of bytes of cached constraints.
    pub cache_bytes: usize,
    /// Stores compiled constraints on disk.
    pub disk: Option<ConstraintCache>,
    /// Whether [`Compiler::get`](crate::Compiler::get) returns as soon as a constraint was read.
    pub lazy: bool,
}

/// The settings of an [`Engine`](crate::Engine).
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Answers that are generated at the same time.
    pub rows: usize,
    /// Tokens of prompt and answer together that a row can hold.
    pub slots: usize,
    /// Steps between two reads from the device.
    pub sync_interval: usize,
    /// Tokens of prompts that are read between two steps. `None`, or a model that reads prompts
    /// whole: prompts of answers that begin together are read together.
    pub prompt_chunk: Option<usize>,
    /// Whether a prompt copies a prefix that is in a row already, if the model can do so.
    pub prefix_cache: bool,
    /// The number of most likely tokens whose log-probabilities are computed, if any.
    pub logprobs: Option<usize>,
    /// The sampling options that requests may use.
    pub features: SamplingFeatures,
    /// The capacity for constraints.
    pub tensors: TensorOptions,
    /// Maximum number of answers that wait for a row.
    pub max_queue: usize,
}
