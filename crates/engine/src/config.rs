//! The settings of the compiler and of the engine.

use burn_dfa::generation::SamplingFeatures;
use burn_dfa::{Capacity, ConstraintCache, Limits, TensorOptions};

/// The settings of a [`Compiler`](crate::Compiler).
///
/// ```
/// use std::time::Duration;
///
/// use burn_dfa::{Capacity, Limits};
/// use burn_dfa_engine::CompilerConfig;
///
/// let limits = Limits::new().with_time(Duration::from_secs(10));
/// let capacity = Capacity::new().with_states(65_536).with_classes(512);
/// let config = CompilerConfig { threads: 2, ..CompilerConfig::new(limits, capacity) };
/// assert!(config.threads == 2 && !config.lazy);
/// ```
#[derive(Debug)]
pub struct CompilerConfig {
    /// The limits of one compilation. Their time is the deadline of all its steps together.
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

impl CompilerConfig {
    /// One thread for each processor, 1024 waiting compilations and 256 MiB of cached constraints;
    /// nothing on disk, and not lazy.
    pub fn new(limits: Limits, capacity: Capacity) -> Self {
        Self {
            limits,
            capacity,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_waiting: 1024,
            cache_bytes: 256 << 20,
            disk: None,
            lazy: false,
        }
    }
}

/// The settings of an [`Engine`](crate::Engine).
///
/// ```
/// use burn_dfa::generation::SamplingFeatures;
/// use burn_dfa::{Capacity, TensorOptions};
/// use burn_dfa_engine::EngineConfig;
///
/// let capacity = Capacity::new().with_constraints(32).with_states(65_536).with_classes(512);
/// let config = EngineConfig {
///     features: SamplingFeatures::ALL,
///     tensors: TensorOptions::new().with_capacity(capacity),
///     ..EngineConfig::new(32, 4096)
/// };
/// assert_eq!((config.rows, config.slots), (32, 4096));
/// ```
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

impl EngineConfig {
    /// Greedy answers without constraints, one read from the device per step, and a queue of 1024
    /// answers. For constraints, set the capacity in [`tensors`](Self::tensors).
    pub fn new(rows: usize, slots: usize) -> Self {
        Self {
            rows,
            slots,
            sync_interval: 1,
            prompt_chunk: None,
            prefix_cache: false,
            logprobs: None,
            features: SamplingFeatures::NONE,
            tensors: TensorOptions::new(),
            max_queue: 1024,
        }
    }
}
