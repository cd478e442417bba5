//! Compiles constraints: each once, on a bounded number of threads, with a deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use burn_dfa::cli::Graph;
use burn_dfa::{Limits, PendingTable, TableCache, TokenTable, Vocabulary};
use tokio::sync::{Semaphore, watch};

use super::Shape;
use super::cache::{Cache, Found, Outcome, Progress, Refusal};
use super::source::{Key, Source};
use super::table::{Pending, Table};
use crate::config::Config;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;

/// Most bytes of compiled constraints on disk.
const DISK: u64 = 1 << 30;

/// Most states of an automaton that is drawn.
const DRAWN: usize = 100;

/// A bounded number of threads for work of the processor, and a bounded queue in front of them.
#[derive(Clone, Debug)]
pub struct Pool {
    threads: Arc<Semaphore>,
    queue: Arc<Semaphore>,
}

impl Pool {
    /// A pool of so many threads, for which so many pieces of work may wait.
    pub fn new(threads: usize, queue: usize) -> Self {
        Self { threads: Arc::new(Semaphore::new(threads)), queue: Arc::new(Semaphore::new(queue + threads)) }
    }

    /// Does some work when there is a thread for it.
    ///
    /// # Errors
    /// 503 where too much waits, 500 where the work panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let Ok(place) = self.queue.clone().try_acquire_owned() else {
            return Err(ApiError::overloaded("too many requests are being prepared: try again later"));
        };
        let thread = self.threads.clone().acquire_owned().await;
        let work = tokio::task::spawn_blocking(move || {
            // They are held as long as the work goes on, whoever waits for it.
            let _held = (place, thread);
            work()
        });
        work.await.map_err(|_| ApiError::internal("the work on this request panicked"))
    }
}

/// Makes tables of constraints, and keeps them.
#[derive(Debug)]
pub struct Compiler {
    vocabulary: Vocabulary,
    limits: Limits,
    pool: Pool,
    cache: Mutex<Cache>,
    disk: Option<TableCache>,
    max_states: usize,
    max_classes: usize,
    max_text: usize,
    /// Whether a table may be used before it is compiled.
    lazy: bool,
    metrics: Arc<Metrics>,
}

impl Compiler {
    /// A compiler for a vocabulary.
    ///
    /// # Errors
    /// The folder of the cache cannot be written to.
    pub(crate) fn new(
        config: &Config,
        vocabulary: Vocabulary,
        shape: &Shape,
        pool: Pool,
        metrics: Arc<Metrics>,
    ) -> burn_dfa::Result<Self> {
        let limits = Limits::new()
            .with_time(config.compile_deadline)
            // The pool has as many as may compile.
            .with_threads(1)
            .with_bytes(config.compile_bytes)
            .with_frames(config.frames);
        let disk = config.cache_dir.as_ref().map(|folder| TableCache::new(folder, DISK)).transpose()?;
        let capacity = shape.tensors.capacity;
        Ok(Self {
            vocabulary,
            limits,
            pool,
            cache: Mutex::new(Cache::new(config.cache_bytes)),
            disk,
            max_states: capacity.states,
            max_classes: capacity.classes,
            max_text: config.max_constraint,
            lazy: config.lazy,
            metrics,
        })
    }

    /// The table of a constraint, which stands in the field `param`; `None` for plain text. With `--lazy` it is given as soon as
    /// the constraint was read.
    ///
    /// # Errors
    /// 400 where the constraint is refused, 503 where too much waits.
    pub async fn table(self: &Arc<Self>, source: Source, param: &str) -> Result<Option<Table>> {
        self.check_size(&source, param)?;
        let key = source.key();
        let found = self.cache().find(key);
        let mut progress = match found {
            Found::Done(outcome) => {
                self.metrics.cache_hits.increment(1);
                return told(outcome, param).map(|table| table.map(Table::Ready));
            }
            Found::Running(progress) => {
                self.metrics.cache_hits.increment(1);
                progress
            }
            Found::Nothing(sender, progress) => {
                self.metrics.cache_misses.increment(1);
                // It goes on if this request goes away: others may wait for the same.
                tokio::spawn(self.clone().compile(key, source, sender));
                progress
            }
        };
        // Twice the time of a compilation, for the wait for a thread.
        let most = self.limits.time * 2 + Duration::from_secs(2);
        let is_enough = |progress: &Option<Progress>| match progress {
            None => false,
            Some(Progress::Compiling(_)) => self.lazy,
            Some(Progress::Done(_)) => true,
        };
        let known = match tokio::time::timeout(most, progress.wait_for(is_enough)).await {
            Ok(Ok(known)) => known.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        match known {
            Some(Progress::Done(outcome)) => told(outcome, param).map(|table| table.map(Table::Ready)),
            Some(Progress::Compiling(table)) => Ok(Some(Table::Pending(Pending { table, progress }))),
            None => Err(ApiError::overloaded("the constraint was not compiled in time: try again later")),
        }
    }

    /// The automaton of a constraint as an SVG picture; the constraint stands in the field `param`.
    ///
    /// # Errors
    /// 400 where the constraint is refused, has no automaton over text, or one of too many states; 503 where too much waits.
    pub async fn picture(self: &Arc<Self>, source: Source, param: &str) -> Result<String> {
        self.check_size(&source, param)?;
        let own = self.clone();
        let drawn = self.pool.run(move || own.draw(&source)).await?;
        told(drawn, param)
    }

    fn draw(&self, source: &Source) -> std::result::Result<String, Refusal> {
        let none = || Refusal::Undrawn("there is no automaton over text to draw".into());
        let constraint = source.constraint().map_err(Refusal::Library)?.ok_or_else(none)?;
        let automaton = constraint.to_automaton(&self.limits).map_err(Refusal::Library)?.ok_or_else(none)?;
        let states = automaton.state_count() - 1;
        if states > DRAWN {
            return Err(Refusal::TooLarge(format!(
                "{states} states are too many to draw, which are at most {DRAWN}"
            )));
        }
        Ok(Graph::new(&automaton).svg())
    }

    fn check_size(&self, source: &Source, param: &str) -> Result<()> {
        if source.len() <= self.max_text {
            return Ok(());
        }
        let message = format!("it has {} bytes, of {} that it may have", source.len(), self.max_text);
        Err(ApiError::invalid(param, message).code("constraint_too_large"))
    }

    async fn compile(self: Arc<Self>, key: Key, source: Source, progress: watch::Sender<Option<Progress>>) {
        let own = self.clone();
        let work = move || {
            let started = Instant::now();
            let (sender, table) = PendingTable::channel();
            let is_read = || _ = progress.send_replace(Some(Progress::Compiling(table)));
            let made = catch_unwind(AssertUnwindSafe(|| own.make(&source, is_read)));
            let outcome = made.unwrap_or(Err(Refusal::Panic));
            own.metrics.compile_time.record(started.elapsed());
            let mut cache = own.cache();
            cache.keep(key, outcome.clone());
            own.metrics.cache_bytes.set(cache.bytes() as f64);
            drop(cache);
            // Before the sender goes: who waits for the table looks here why there is none.
            progress.send_replace(Some(Progress::Done(outcome.clone())));
            if let Ok(Some(table)) = outcome {
                sender.send(Ok(table));
            }
        };
        if self.pool.run(work).await.is_err() {
            // The senders are gone, which tells those who wait.
            self.cache().forget(key);
        }
    }

    /// The table of a constraint; says when this is read.
    fn make(&self, source: &Source, is_read: impl FnOnce()) -> Outcome {
        let Some(constraint) = source.constraint().map_err(Refusal::Library)? else { return Ok(None) };
        is_read();
        let compile = |walked: bool| match (&self.disk, walked) {
            (Some(disk), false) => disk.compile(&constraint, &self.vocabulary, &self.limits),
            (Some(disk), true) => disk.walk(&constraint, &self.vocabulary, &self.limits),
            (None, false) => TokenTable::compile(&constraint, &self.vocabulary, &self.limits),
            (None, true) => TokenTable::walk(&constraint, &self.vocabulary, &self.limits),
        };
        let mut table = compile(false).map_err(Refusal::Library)?;
        if !table.is_walked() && table.class_count() > self.max_classes {
            table = compile(true).map_err(Refusal::Library)?;
        }
        let (states, classes) = (table.state_count(), table.class_count());
        if states > self.max_states || classes > self.max_classes {
            return Err(Refusal::TooLarge(format!(
                "the constraint takes {states} states of {classes} classes, and the server has room for {} of {}: simplify it, or raise --arena-states and --arena-classes",
                self.max_states, self.max_classes
            )));
        }
        Ok(Some(table))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// An outcome, as the request is told that has the constraint in `param`.
fn told<T>(outcome: std::result::Result<T, Refusal>, param: &str) -> Result<T> {
    outcome.map_err(|refusal| refusal.error(param))
}
