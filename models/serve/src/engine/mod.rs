//! Runs the model: a queue, a thread that owns the model, and a pool that compiles constraints.
//!
//! ```text
//! request ──▶ Compiler (pool, cache) ──▶ queue ──▶ thread: ContinuousBatch ──▶ events of each answer ──▶ request
//! ```
//!
//! - A request submits a [`GenerationRequest`]; each [`Event`] reports on an answer, and
//!   [`Generation`] is the receiving end. Dropping it cancels the answers.
//! - `thread` admits jobs to rows, runs steps, and restarts after a panic.
//! - `pool` is a set of threads for CPU work, with a queue that is fair between clients.
//! - `compile` compiles constraints: each once, on a separate pool, with a deadline, as long as a
//!   request waits for it. `cache` keeps the results, `source` identifies a constraint, `style`
//!   sets how its JSON is written, `left_out` lists its unenforceable keywords, `table` is the
//!   constraint of a job.
//! - `sampling` sets how tokens are chosen.

mod cache;
mod compile;
mod left_out;
mod pool;
mod sampling;
mod source;
mod style;
mod table;
mod thread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burn_dfa::generation::{Cancel, ContinuousLm, Recordable, TokenLogprobs};
use burn_dfa::{Capacity, Error, TensorOptions, TokenId, Vocabulary};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::cache::Refusal;
pub use self::compile::Compiler;
pub use self::left_out::LeftOut;
pub use self::pool::{Client, Pool, Thread};
pub use self::sampling::Sampling;
pub use self::source::{Asked, Source};
pub use self::table::{Compiled, Table};
use crate::config::Config;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;

/// A request to the model: one or more answers to each of some prompts.
#[derive(Clone, Debug)]
pub struct GenerationRequest {
    /// The prompts, each with at least one token, and the greatest number of tokens of its answers.
    pub prompts: Vec<(Vec<TokenId>, usize)>,
    /// The constraint.
    pub table: Option<Table>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Answers to each prompt. Answers to the first prompt come first.
    pub n: usize,
    /// How long chunks are held for the next event, zero for none; `None`: one chunk at the end.
    pub interval: Option<Duration>,
    /// Cached prefixes of prompts are shared only with requests of the same salt.
    pub cache_salt: Option<String>,
    /// The client.
    pub client: Client,
}

impl GenerationRequest {
    /// Answers in all.
    pub fn answers(&self) -> usize {
        self.prompts.len().saturating_mul(self.n)
    }
}

/// An event of an answer.
#[derive(Debug)]
pub enum Event {
    /// The answer began in a row; if its constraint was still being compiled, at its first token.
    StartedGeneration,
    /// More of the answer.
    Chunk {
        /// The tokens.
        tokens: Tokens,
        /// The complete characters of the text.
        text: String,
    },
    /// The answer ended.
    Ended {
        /// The reason.
        ending: Ending,
        /// Tokens of its prompt that came from the prefix cache; only the first answer to a prompt
        /// reports them.
        cached_tokens: usize,
        /// Whether the answer is shorter than its minimum, since the constraint allowed no more.
        is_short: bool,
    },
    /// The answer was refused or abandoned.
    Failed(Failure),
}

/// Tokens of an answer.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The tokens.
    pub ids: Vec<TokenId>,
    /// The log-probabilities of each token; empty if the server does not compute them.
    pub logprobs: Vec<TokenLogprobs>,
}

/// The reason for the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer is complete.
    Complete,
    /// The answer is complete; the constraint allowed more, but the budget did not.
    OutOfTokens,
    /// The answer reached a stop text.
    Stop,
    /// The answer used up its tokens; never under a constraint.
    Length,
    /// The client is gone.
    Cancelled,
}

/// The reason for a missing answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The library refused the answer.
    Library(Error),
    /// The constraint was refused after the answer was queued.
    Refused(Refusal),
    /// The engine panicked.
    Panic,
    /// The server is shutting down.
    Shutdown,
}

impl Failure {
    /// Tokens of the shortest answer, if the budget is too small.
    pub fn tokens_needed(&self) -> Option<usize> {
        match self {
            Self::Library(error) => error.tokens_needed(),
            _ => None,
        }
    }
}

/// A job of the engine: one answer.
struct Job {
    prompt: Vec<TokenId>,
    max_new_tokens: usize,
    table: Option<Table>,
    sampling: Sampling,
    cancel: Cancel,
    events: Events,
    interval: Option<Duration>,
    cache_salt: Option<String>,
    client: Client,
    /// Whether the job failed to start on its turn, since the arena had no space for its
    /// constraint.
    was_refused: bool,
    /// Whether it is the first answer to its prompt.
    is_first: bool,
    /// Its permit of the queue, released at its start.
    place: Option<OwnedSemaphorePermit>,
    queued: Instant,
}

/// The receiver of an answer's events.
#[derive(Clone, Debug)]
struct Events {
    index: usize,
    sender: UnboundedSender<(usize, Event)>,
}

impl Events {
    /// Sends an event. A missing receiver has canceled the answer.
    fn send(&self, event: Event) {
        let _ = self.sender.send((self.index, event));
    }
}

/// The answers to a request, as they come. Dropping it cancels unfinished answers.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<(usize, Event)>,
    cancel: Cancel,
}

impl Generation {
    /// The next event, with the index of its answer; `None` after the last event.
    pub async fn next(&mut self) -> Option<(usize, Event)> {
        self.events.recv().await
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The sizes of the engine.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    /// Tokens of a row.
    pub(crate) slots: usize,
    pub(crate) sync_interval: usize,
    pub(crate) prompt_chunk: usize,
    pub(crate) prefix_cache: bool,
    /// The number of tokens whose log-probabilities are computed, if any.
    pub(crate) logprobs: Option<usize>,
    pub(crate) tensors: TensorOptions,
    pub(crate) max_queue: usize,
}

impl Shape {
    /// The sizes for a configuration and a model with `positions` positions.
    pub(crate) fn new(config: &Config, positions: Option<usize>) -> Self {
        let slots = config.slots.unwrap_or(4096).min(positions.unwrap_or(usize::MAX));
        let capacity = Capacity::new()
            .with_tables(config.rows)
            .with_states(config.arena_states)
            .with_classes(config.arena_classes)
            .with_stack(config.arena_outcomes, config.frames);
        Self {
            rows: config.rows,
            slots,
            sync_interval: config.sync_interval,
            prompt_chunk: config.prompt_chunk,
            prefix_cache: !config.no_prefix_cache,
            logprobs: config.logprobs(),
            tensors: TensorOptions::new().with_capacity(capacity).with_max_bytes(i32::MAX as usize),
            max_queue: config.max_queue,
        }
    }
}

/// Loads a model again.
pub(crate) type Reload<M> = Box<dyn Fn() -> std::result::Result<M, String> + Send>;

/// The handle of the engine for requests.
#[derive(Debug)]
pub struct Engine {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    queue: Arc<Semaphore>,
    shape: Shape,
    alive: Arc<AtomicBool>,
    stop: Cancel,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Starts the thread of a model, and waits until it is ready. If the model's remote device is
    /// lost, `reload` loads the model again.
    ///
    /// # Errors
    /// As [`ContinuousBatch::new`](burn_dfa::generation::ContinuousBatch::new), if the sizes do not
    /// fit the model or the device.
    pub(crate) fn start<M: ContinuousLm + Recordable + Send + 'static>(
        mut model: M,
        vocabulary: Vocabulary,
        shape: Shape,
        metrics: Arc<Metrics>,
        reload: Option<Reload<M>>,
    ) -> burn_dfa::Result<Self> {
        let (jobs, receiver) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let (alive, stop) = (Arc::new(AtomicBool::new(true)), Cancel::default());
        let mut desk = thread::Scheduler::new(receiver, shape.clone(), metrics, stop.clone());
        let living = alive.clone();
        let body = move || {
            while let Some(lost) = desk.run(&model, &vocabulary, &ready) {
                let loaded = reload.as_ref().and_then(|reload| desk.load_again(reload, &lost));
                let Some(loaded) = loaded else { break };
                model = loaded;
            }
            living.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(body);
        let thread = thread.expect("a thread can be started while the server is");
        is_ready.recv().expect("the engine says whether it is ready")?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            queue: Arc::new(Semaphore::new(shape.max_queue)),
            shape,
            alive,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Tokens of a row: prompt and answer together.
    pub fn slots(&self) -> usize {
        self.shape.slots
    }

    /// Whether requests are answered.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire) && self.jobs().is_some()
    }

    /// The greatest number of answers that can wait.
    pub fn max_queue(&self) -> usize {
        self.shape.max_queue
    }

    /// Queues the answers to a request.
    ///
    /// # Errors
    /// 503 if the queue has no space for all of them.
    pub fn submit(&self, ask: GenerationRequest) -> Result<Generation> {
        let cancel = Cancel::default();
        let (sender, events) = unbounded_channel();
        let n = u32::try_from(ask.answers()).unwrap_or(u32::MAX);
        let Ok(mut places) = self.queue.clone().try_acquire_many_owned(n) else {
            return Err(ApiError::overloaded(format!(
                "{} answers wait already, of {} that may: try again later",
                self.shape.max_queue - self.queue.available_permits(),
                self.shape.max_queue
            )));
        };
        let jobs = self.jobs();
        let gone = || ApiError::overloaded("the server is shutting down");
        let jobs = jobs.as_ref().ok_or_else(gone)?;
        for index in 0..ask.answers() {
            let (prompt, max_new_tokens) = ask.prompts[index / ask.n].clone();
            let job = Job {
                prompt,
                max_new_tokens,
                table: ask.table.clone(),
                sampling: ask.sampling.of_answer(index % ask.n),
                cancel: cancel.clone(),
                events: Events { index, sender: sender.clone() },
                interval: ask.interval,
                cache_salt: ask.cache_salt.clone(),
                client: ask.client,
                was_refused: false,
                is_first: index % ask.n == 0,
                place: places.split(1),
                queued: Instant::now(),
            };
            jobs.send(job).map_err(|_| gone())?;
        }
        Ok(Generation { events, cancel })
    }

    /// Accepts no more jobs, and waits for running ones until the deadline; then cancels them.
    pub fn shut_down(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(thread) = thread else { return };
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop.cancel();
        if thread.join().is_err() {
            tracing::error!("the engine's thread panicked");
        }
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<Job>>> {
        self.jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
        self.shut_down(Duration::ZERO);
    }
}
