//! Runs the model: one thread that owns it, with a queue of batches.
//!
//! ```text
//! call of a function ──▶ batch of jobs, in order of length ──▶ bounded queue ──▶ thread: ContinuousBatch ──▶ answers of the batch
//! ```
//!
//! A process has one engine, for all partitions and queries. Jobs of a batch begin by the length of
//! their prompts, longest first: prompts that are read together have similar lengths, and the last
//! rows of a batch are its shortest. Jobs of the next batch begin while these rows end. Batches
//! begin in the order of their arrival.

mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_dfa::generation::{Cancel, ContinuousLm, Recordable};
use burn_dfa::{Capacity, CompiledConstraint, Error, TensorOptions, TokenId, Vocabulary};
use tokio::sync::{mpsc, oneshot};

/// Batches in the queue; callers with further batches wait.
const QUEUE: usize = 1;

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
    pub room: Capacity,
}

impl Default for Sizes {
    fn default() -> Self {
        let room = Capacity::new().with_tables(32).with_states(65_536).with_classes(512).with_stack(4, 64);
        Self { rows: 32, slots: 4096, max_new_tokens: 512, sync_interval: 1, room }
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

    fn tensors(&self) -> TensorOptions {
        TensorOptions::new().with_capacity(self.room).with_max_bytes(i32::MAX as usize)
    }
}

/// A row to generate.
#[derive(Clone, Debug)]
pub struct Job {
    /// The prompt, at least one token.
    pub prompt: Vec<TokenId>,
    /// Maximum number of tokens of the answer.
    pub max_new_tokens: usize,
    /// The constraint.
    pub table: CompiledConstraint,
}

/// The reason for missing answers.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The library refused a job, or the model failed.
    Library(Error),
    /// The model panicked.
    Panic,
    /// The engine ended.
    Ended,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(error) => write!(f, "the engine: {error}"),
            Self::Panic => f.write_str("the model panicked; the engine begins anew"),
            Self::Ended => f.write_str("the engine has ended"),
        }
    }
}

impl std::error::Error for Failure {}

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

/// Jobs that were submitted together.
struct Batch {
    jobs: Vec<Job>,
    cancel: Cancel,
    reply: oneshot::Sender<Result<Vec<Vec<u8>>, Failure>>,
}

/// The handle of the engine for functions. When it is dropped, the thread finishes the submitted
/// batches and ends.
///
/// ```
/// use burn_dfa::{Constraint, Limits, CompiledConstraint};
/// use burn_dfa::prelude::Device;
/// use burn_dfa_sql::{Engine, Job, Sizes};
///
/// let tiny = burn_dfa_tiny::load(&Device::flex())?;
/// let constraint = Constraint::choice(["yes", "no"])?;
/// let table = CompiledConstraint::compile(&constraint, tiny.vocabulary(), &Limits::default())?;
/// let job = Job { prompt: tiny.prompt("Is snow white?")?, max_new_tokens: 8, table };
///
/// let sizes = Sizes::default().within(Some(256));
/// let engine = Engine::start(tiny.model().clone(), tiny.vocabulary().clone(), sizes)?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let answers = runtime.block_on(engine.run(vec![job]))?;
/// assert!([&b"yes"[..], b"no"].contains(&&answers[0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    batches: mpsc::Sender<Batch>,
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
        let (batches, receiver) = mpsc::channel(QUEUE);
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let progress = Arc::new(Progress::default());
        let (of_thread, own) = (sizes.clone(), progress.clone());
        let body = move || thread::run(&model, &vocabulary, of_thread, receiver, own, &ready);
        let thread = std::thread::Builder::new().name("engine".into()).spawn(body);
        thread.expect("a thread can be started while a program is");
        is_ready.recv().expect("the engine says whether it is ready")?;
        Ok(Self { batches, sizes, progress })
    }

    /// The sizes of the engine.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The work so far.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The answers to some jobs, in their order. Waits while the queue is full. Dropping the future
    /// cancels the jobs.
    ///
    /// # Errors
    /// A job is refused, or the model fails. In both cases all answers are lost.
    pub async fn run(&self, jobs: Vec<Job>) -> Result<Vec<Vec<u8>>, Failure> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let cancel = Cancel::default();
        let _given_up = GivenUp(cancel.clone());
        let (reply, answers) = oneshot::channel();
        let sent = self.batches.send(Batch { jobs, cancel, reply }).await;
        sent.map_err(|_| Failure::Ended)?;
        // If the thread panics while it holds the batch, it drops the sender.
        answers.await.unwrap_or(Err(Failure::Panic))
    }
}

/// Cancels when dropped.
struct GivenUp(Cancel);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
