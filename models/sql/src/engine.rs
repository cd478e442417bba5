//! Runs the rows of a batch on the engine, and collects their answers.
//!
//! ```text
//! call of a function ──▶ batch of prompts, in order of length ──▶ burn_dfa_engine
//!     ──▶ answers of the batch
//! ```
//!
//! A process has one engine, for all partitions and queries. Rows of a batch begin by the length of
//! their prompts, longest first: prompts that are read together have similar lengths, and the last
//! rows of a batch are its shortest. Rows of the next batch begin while these rows end. Batches
//! begin in the order of their arrival. Each caller holds one batch, so the queue needs no bound.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use burn_dfa::generation::{ContinuousLm, Recordable, SamplingFeatures};
use burn_dfa::{Capacity, TensorOptions, Vocabulary};
use burn_dfa_engine::{Ending, EngineConfig, Event, Failure, GenerationRequest, Metrics, Prompt};

/// The sizes of an engine.
///
/// ```
/// use burn_dfa_sql::Sizes;
///
/// let sizes = Sizes { rows: 4, ..Sizes::default() }.within(Some(256));
/// assert_eq!(sizes.slots, 256);
/// assert_eq!(sizes.budget(200), 56); // of 56 slots that are left
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows that are generated at the same time. Default: 32.
    pub rows: usize,
    /// Tokens of prompt and answer together that a row can hold. Default: 4096, or the model's
    /// positions.
    pub slots: usize,
    /// Maximum number of tokens of an answer. Default: 512.
    pub max_new_tokens: usize,
    /// Steps between two reads from the device. Default: 1.
    pub sync_interval: usize,
    /// Capacity for the constraints in use at the same time.
    pub capacity: Capacity,
}

impl Default for Sizes {
    fn default() -> Self {
        let capacity =
            Capacity::new().with_constraints(32).with_states(65_536).with_classes(512).with_stack(4, 64);
        Self { rows: 32, slots: 4096, max_new_tokens: 512, sync_interval: 1, capacity }
    }
}

impl Sizes {
    /// Limits the sizes to the positions of a model.
    pub fn within(self, positions: Option<usize>) -> Self {
        Self { slots: self.slots.min(positions.unwrap_or(usize::MAX)), ..self }
    }

    /// The tokens left for the answer to a prompt; 0 if the prompt fills the row.
    pub fn budget(&self, prompt: usize) -> usize {
        self.slots.saturating_sub(prompt).min(self.max_new_tokens)
    }

    fn engine(&self) -> EngineConfig {
        EngineConfig {
            rows: self.rows,
            slots: self.slots,
            sync_interval: self.sync_interval,
            prompt_chunk: None,
            prefix_cache: false,
            logprobs: None,
            features: SamplingFeatures::NONE,
            tensors: TensorOptions::new().with_capacity(self.capacity).with_max_bytes(i32::MAX as usize),
            max_queue: usize::MAX,
        }
    }
}

/// The work of an engine so far.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    tokens: AtomicU64,
}

impl Progress {
    /// Rows whose answer is complete.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Tokens of complete and incomplete answers.
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }
}

impl Metrics for Progress {
    fn generated(&self, count: usize) {
        self.tokens.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn ended(&self, ending: Option<Ending>, _elapsed: Duration) {
        if is_complete(ending) {
            self.rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether an answer is complete. A constrained answer is incomplete only if it was canceled.
fn is_complete(ending: Option<Ending>) -> bool {
    matches!(ending, Some(Ending::Complete | Ending::OutOfTokens))
}

/// The engine for functions. When it is dropped, the thread ends after its current step.
///
/// ```
/// use burn_dfa::{Constraint, Limits, CompiledConstraint};
/// use burn_dfa::prelude::Device;
/// use burn_dfa_sql::{Engine, Prompt, Sizes};
///
/// let tiny = burn_dfa_tiny::load(&Device::flex())?;
/// let constraint = Constraint::choice(["yes", "no"])?;
/// let compiled = CompiledConstraint::compile(&constraint, tiny.vocabulary(), &Limits::default())?;
/// let tokens = tiny.prompt("Is snow white?")?;
/// let prompt = Prompt { tokens, max_new_tokens: 8, constraint: Some(compiled.into()) };
///
/// let sizes = Sizes::default().within(Some(256));
/// let engine = Engine::start(tiny.model().clone(), tiny.vocabulary().clone(), sizes)?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let answers = runtime.block_on(engine.run(vec![prompt]))?;
/// assert!(["yes", "no"].contains(&&answers[0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    engine: burn_dfa_engine::Engine,
    sizes: Sizes,
    progress: Arc<Progress>,
}

impl Engine {
    /// Starts the thread of a model, and waits until it is ready.
    ///
    /// # Errors
    /// As [`ContinuousBatch::new`](burn_dfa::generation::ContinuousBatch::new), if the sizes do not
    /// fit the model or the device.
    pub fn start<M: ContinuousLm + Recordable + Send + 'static>(
        model: M,
        vocabulary: Vocabulary,
        sizes: Sizes,
    ) -> burn_dfa::Result<Self> {
        let progress = Arc::new(Progress::default());
        let config = sizes.engine();
        let engine = burn_dfa_engine::Engine::start(model, vocabulary, config, progress.clone(), None)?;
        Ok(Self { engine, sizes, progress })
    }

    /// The sizes of the engine.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The work so far.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The answers to the prompts of a batch, in their order. Dropping the future cancels them.
    ///
    /// # Errors
    /// A prompt is refused, or the model fails. In both cases all answers are lost.
    pub async fn run(&self, batch: Vec<Prompt>) -> Result<Vec<String>, Failure> {
        let mut answers = vec![String::new(); batch.len()];
        let mut batch: Vec<(usize, Prompt)> = batch.into_iter().enumerate().collect();
        batch.sort_by_key(|(_, prompt)| Reverse(prompt.tokens.len()));
        let (order, prompts): (Vec<usize>, Vec<Prompt>) = batch.into_iter().unzip();
        let request = GenerationRequest { prompts, n: 1, ..GenerationRequest::default() };
        let mut generation = self.engine.submit(request).map_err(|_| Failure::Shutdown)?;
        let mut left = order.len();
        while left > 0 {
            match generation.next().await {
                Some((_, Event::Started)) => {}
                Some((index, Event::Chunk { text, .. })) => answers[order[index]].push_str(&text),
                Some((_, Event::Ended { ending, .. })) if is_complete(Some(ending)) => left -= 1,
                Some((_, Event::Failed(failure))) => return Err(failure),
                Some((_, Event::Ended { .. })) | None => return Err(Failure::Shutdown),
            }
        }
        Ok(answers)
    }
}
