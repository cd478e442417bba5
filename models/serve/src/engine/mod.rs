//! What runs the model: a queue, a thread that owns the model, and a pool that compiles constraints.
//!
//! ```text
//! request ──▶ Compiler (pool, cache) ──▶ queue ──▶ thread: Slots ──▶ events of each answer ──▶ request
//! ```
//!
//! - [`Ask`] is what a request wants, [`Event`] what becomes of it, [`Generation`] the receiving end; dropping that cancels.
//! - `thread` admits jobs to rows, takes steps, and begins again after a panic.
//! - `compile` makes tables of constraints: each once, on a bounded number of threads, with a deadline. `cache` keeps them,
//!   `source` is what a constraint is known by, `table` what a job has of it.
//! - `sampling` is how tokens are chosen.

mod cache;
mod compile;
mod sampling;
mod source;
mod table;
mod thread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burn_dfa::generation::{Cancel, SlotLm, TokenLogprobs};
use burn_dfa::{Capacity, Error, TensorOptions, TokenId, Vocabulary};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::cache::Refusal;
pub use self::compile::{Compiler, Pool};
pub use self::sampling::Sampling;
pub use self::source::Source;
pub use self::table::Table;
use crate::config::Config;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;

/// What a request wants of the model: one or more answers to each of some prompts.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The prompts, each at least one token, and the most tokens of an answer to it.
    pub prompts: Vec<(Vec<TokenId>, usize)>,
    /// The constraint.
    pub table: Option<Table>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Answers to each prompt. Those to the first come first.
    pub n: usize,
    /// How long pieces are kept for the next event, zero for none; without, all of them come as one at the end.
    pub interval: Option<Duration>,
    /// What was read of prompts is shared with requests of the same salt alone.
    pub cache_salt: Option<String>,
}

impl Ask {
    /// Answers in all.
    pub fn answers(&self) -> usize {
        self.prompts.len().saturating_mul(self.n)
    }
}

/// What becomes of an answer.
#[derive(Debug)]
pub enum Event {
    /// It began in a row; where its constraint was still being compiled, with its first token.
    Begun,
    /// More of it.
    Piece {
        /// The tokens.
        tokens: Tokens,
        /// The text that is complete, in whole characters.
        text: String,
    },
    /// It ended.
    Ended {
        /// Why.
        ending: Ending,
        /// Tokens of its prompt that were not read anew; of several answers to a prompt the first tells them.
        cached_tokens: usize,
    },
    /// It was refused, or given up.
    Failed(Failure),
}

/// Tokens of an answer.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The tokens.
    pub ids: Vec<TokenId>,
    /// Of each; empty where the server does not compute them.
    pub logprobs: Vec<TokenLogprobs>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is complete.
    Complete,
    /// One of its stop texts came.
    Stop,
    /// It took all of its tokens; never under a constraint.
    Length,
    /// Nobody waits for it.
    Cancelled,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The library refused it.
    Library(Error),
    /// Its constraint was refused after it was queued.
    Refused(Refusal),
    /// The engine broke down.
    Panic,
    /// The server ends.
    Shutdown,
}

impl Failure {
    /// Tokens of the shortest answer, where the budget is below.
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
    /// Whether it is the first answer to its prompt.
    is_first: bool,
    /// Its place in the queue, which it gives back when it begins.
    place: Option<OwnedSemaphorePermit>,
    queued: Instant,
}

/// Where the events of an answer go.
#[derive(Clone, Debug)]
struct Events {
    index: usize,
    sender: UnboundedSender<(usize, Event)>,
}

impl Events {
    /// Passes an event on; gone receivers have cancelled the answer, and no longer care.
    fn send(&self, event: Event) {
        let _ = self.sender.send((self.index, event));
    }
}

/// The answers to a request, as they come. Dropping it ends those that have not ended.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<(usize, Event)>,
    cancel: Cancel,
}

impl Generation {
    /// The next event, with the index of its answer; `None` after the last.
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
    pub(crate) read_every: usize,
    pub(crate) prompt_chunk: usize,
    pub(crate) prefix_cache: bool,
    /// Of how many tokens log-probabilities are computed, if at all.
    pub(crate) logprobs: Option<usize>,
    pub(crate) tensors: TensorOptions,
    pub(crate) max_queue: usize,
}

impl Shape {
    /// The sizes that a configuration asks for, of a model of so many positions.
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
            read_every: config.read_every,
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

/// The engine, as requests see it.
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
    /// Starts the thread of a model, and waits until it is ready. Where its device is lost with its server, `reload` loads it
    /// again.
    ///
    /// # Errors
    /// As [`Slots::new`](burn_dfa::generation::Slots::new), whose sizes do not fit the model or the device.
    pub(crate) fn start<M: SlotLm + Send + 'static>(
        mut model: M,
        vocabulary: Vocabulary,
        shape: Shape,
        metrics: Arc<Metrics>,
        reload: Option<Reload<M>>,
    ) -> burn_dfa::Result<Self> {
        let (jobs, receiver) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let (alive, stop) = (Arc::new(AtomicBool::new(true)), Cancel::default());
        let mut desk = thread::Desk::new(receiver, shape.clone(), metrics, stop.clone());
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

    /// Whether so many answers can ever wait together.
    pub fn max_queue(&self) -> usize {
        self.shape.max_queue
    }

    /// Queues the answers to a request.
    ///
    /// # Errors
    /// 503 where there is no place in the queue for all of them.
    pub fn submit(&self, ask: Ask) -> Result<Generation> {
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
                is_first: index % ask.n == 0,
                place: places.split(1),
                queued: Instant::now(),
            };
            jobs.send(job).map_err(|_| gone())?;
        }
        Ok(Generation { events, cancel })
    }

    /// Takes no more jobs, and waits for the others until the deadline; then ends them.
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
