//! Compiles constraints: each once, on a bounded number of threads, with a deadline, as long as a
//! request waits for it.
//!
//! A compilation that takes longer than [`QUICK`] is stopped, and repeated among the slow ones. If
//! there are several threads, slow compilations leave one of them free.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use burn_dfa::cli::Graph;
use burn_dfa::constraint::Unenforceable;
use burn_dfa::generation::Cancel;
use burn_dfa::{
    CompiledConstraint, Constraint, ConstraintCache, Error, Limit, Limits, PendingConstraint, Unenforced,
    Vocabulary,
};
use tokio::sync::watch;

use super::Shape;
use super::cache::{Cache, Found, Outcome, Progress, Refusal};
use super::left_out::LeftOut;
use super::pool::{Client, Pool};
use super::source::{Key, Source};
use super::style::JsonStyle;
use super::table::{Compiled, Pending, Table};
use crate::config::Config;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;

/// Greatest number of bytes of compiled constraints on disk.
const MAX_DISK_BYTES: u64 = 1 << 30;

/// Greatest number of states of an automaton that is drawn.
const MAX_DRAWN_STATES: usize = 100;

/// The time after which a constraint counts as slow.
const QUICK: Duration = Duration::from_millis(250);

/// Compiles constraints, and keeps the results.
#[derive(Debug)]
pub struct Compiler {
    vocabulary: Vocabulary,
    /// The style of JSON if requests leave it open.
    style: JsonStyle,
    limits: Limits,
    pool: Pool,
    /// The threads of the pool that slow constraints may use.
    slow: Pool,
    /// Whether the server is shutting down.
    ends: watch::Sender<bool>,
    cache: Mutex<Cache>,
    disk: Option<ConstraintCache>,
    max_states: usize,
    max_classes: usize,
    max_text: usize,
    /// Whether a constraint may be used before it is compiled.
    lazy: bool,
    metrics: Arc<Metrics>,
}

/// The wait of a request for a compilation. The compilation is canceled when the last wait ends.
#[derive(Debug)]
pub(super) struct Wait {
    compiler: Arc<Compiler>,
    key: Key,
    begun: u64,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.compiler.cache().leave(self.key, self.begun);
    }
}

/// Cancels work when dropped.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
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
        metrics: Arc<Metrics>,
    ) -> burn_dfa::Result<Self> {
        let limits = config.forced_text.over(Limits::new());
        let limits = limits
            .with_time(config.compile_deadline)
            // The pool has as many threads as may compile.
            .with_threads(1)
            .with_bytes(config.compile_bytes)
            .with_frames(config.frames);
        let disk = config
            .cache_dir
            .as_ref()
            .map(|folder| ConstraintCache::new(folder, MAX_DISK_BYTES))
            .transpose()?;
        let capacity = shape.tensors.capacity;
        Ok(Self {
            vocabulary,
            style: JsonStyle::new(config),
            limits,
            pool: Pool::new(config.compile_threads, config.max_queue),
            slow: Pool::new(config.compile_threads.saturating_sub(1).max(1), config.max_queue),
            ends: watch::Sender::new(false),
            cache: Mutex::new(Cache::new(config.cache_bytes)),
            disk,
            max_states: capacity.states,
            max_classes: capacity.classes,
            max_text: config.max_constraint,
            lazy: config.lazy,
            metrics,
        })
    }

    /// Compiles a constraint of the field `param`; `None` for plain text. With `--lazy` it returns
    /// as soon as the constraint was read. Dropping the future, or a pending result, cancels the
    /// compilation unless other requests wait for it.
    ///
    /// # Errors
    /// 400 if the constraint is refused, 503 if the queue is full or the server is shutting down.
    pub async fn table(
        self: &Arc<Self>,
        client: Client,
        source: Source,
        param: &str,
    ) -> Result<Option<Table>> {
        self.check_size(&source, param)?;
        let key = source.key();
        let found = self.cache().find(key);
        let wait = |begun| Wait { compiler: self.clone(), key, begun };
        let (wait, mut progress) = match found {
            Found::Done(outcome) => {
                self.metrics.cache_hits.increment(1);
                return into_api_error(outcome, param).map(|table| table.map(Table::Ready));
            }
            Found::Running { begun, progress } => {
                self.metrics.cache_hits.increment(1);
                (wait(begun), progress)
            }
            Found::Nothing { begun, progress, sender, cancel } => {
                self.metrics.cache_misses.increment(1);
                let wait = wait(begun);
                // A separate task continues if this request ends while others wait for the same
                // constraint.
                let task = tokio::spawn(self.clone().compile(client, (key, begun), source, sender, cancel));
                self.cache().set_task(key, begun, task.abort_handle());
                (wait, progress)
            }
        };
        // Twice the time of a compilation, to allow for the wait for a thread.
        let most = self.limits.time * 2 + Duration::from_secs(2);
        let is_enough = |progress: &Option<Progress>| match progress {
            None => false,
            Some(Progress::Compiling(_)) => self.lazy,
            Some(Progress::Done(_)) => true,
        };
        let known = tokio::select! {
            known = tokio::time::timeout(most, progress.wait_for(is_enough)) => match known {
                Ok(Ok(known)) => known.clone(),
                Ok(Err(_)) | Err(_) => None,
            },
            () = self.ended() => return Err(ApiError::overloaded("the server is shutting down")),
        };
        match known {
            Some(Progress::Done(outcome)) => {
                into_api_error(outcome, param).map(|table| table.map(Table::Ready))
            }
            Some(Progress::Compiling(table)) => {
                Ok(Some(Table::Pending(Pending { table, progress, _wait: Arc::new(wait) })))
            }
            None => Err(ApiError::overloaded("the constraint was not compiled in time: try again later")),
        }
    }

    /// Starts no more compilations, and notifies the requests that wait for one.
    pub fn end(&self) {
        self.ends.send_replace(true);
    }

    async fn ended(&self) {
        // The sender lives as long as the compiler.
        let _ = self.ends.subscribe().wait_for(|ends| *ends).await;
    }

    /// The automaton of a constraint as an SVG picture; the constraint is in the field `param`.
    ///
    /// # Errors
    /// 400 if the constraint is refused, or has no automaton over text or too many states; 503 if
    /// the queue is full or the server is shutting down.
    pub async fn picture(self: &Arc<Self>, client: Client, source: Source, param: &str) -> Result<String> {
        self.check_size(&source, param)?;
        let own = self.clone();
        let cancel = CancelOnDrop(Cancel::default());
        let drawn = self.work(client, &cancel.0, move |limits| own.draw(&source, limits));
        tokio::select! {
            drawn = drawn => into_api_error(drawn?.0, param),
            () = self.ended() => Err(ApiError::overloaded("the server is shutting down")),
        }
    }

    /// Does some work within the limits: first with a short time limit, and if it is slow, again on
    /// the threads for slow work. Returns the time it took.
    async fn work<T: Send + 'static>(
        &self,
        client: Client,
        cancel: &Cancel,
        work: impl Fn(&Limits) -> std::result::Result<T, Refusal> + Send + Sync + 'static,
    ) -> Result<(std::result::Result<T, Refusal>, Duration)> {
        let work = Arc::new(work);
        let run = |limits: Limits| {
            let work = work.clone();
            self.pool.run(client, move || {
                let started = Instant::now();
                let made = catch_unwind(AssertUnwindSafe(|| work(&limits)));
                (made.unwrap_or(Err(Refusal::Panic)), started.elapsed())
            })
        };
        let limits = self.limits.clone().with_cancel(cancel);
        let quick = QUICK.min(limits.time);
        let (made, taken) = run(limits.clone().with_time(quick)).await?;
        let is_slow = match &made {
            Err(Refusal::Library(error) | Refusal::Tool(error, ..)) => {
                error.breached() == Some(Limit::Time(quick))
            }
            _ => false,
        };
        if !is_slow || quick == limits.time {
            return Ok((made, taken));
        }
        let _slow = self.slow.thread(client).await?;
        let (made, again) = run(limits).await?;
        Ok((made, taken + again))
    }

    fn draw(&self, source: &Source, limits: &Limits) -> std::result::Result<String, Refusal> {
        let none = || Refusal::Refused("there is no automaton over text to draw".into());
        let read = |unenforceable| source.constraint(&self.style, unenforceable, limits);
        let automaton = |constraint: Option<Constraint>| {
            let automaton = constraint.ok_or_else(none)?.to_automaton(limits).map_err(Refusal::Library)?;
            automaton.ok_or_else(none)
        };
        let drawn = read(Unenforceable::Refuse).and_then(automaton);
        let automaton = match drawn {
            Err(refusal) if unenforced(&refusal).is_some() => {
                self.check_strict(source, limits, refusal)?;
                automaton(read(Unenforceable::Ignore)?)?
            }
            drawn => drawn?,
        };
        let states = automaton.state_count() - 1;
        if states > MAX_DRAWN_STATES {
            return Err(Refusal::TooLarge(format!(
                "{states} states are too many to draw, which are at most {MAX_DRAWN_STATES}"
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

    async fn compile(
        self: Arc<Self>,
        client: Client,
        (key, begun): (Key, u64),
        source: Source,
        progress: watch::Sender<Option<Progress>>,
        cancel: Cancel,
    ) {
        let (sender, table) = PendingConstraint::channel();
        let progress = Arc::new(progress);
        let (own, into_api_error) = (self.clone(), progress.clone());
        let work = move |limits: &Limits| {
            let is_read = || _ = into_api_error.send_replace(Some(Progress::Compiling(table.clone())));
            own.make(&source, limits, is_read)
        };
        let Ok((outcome, taken)) = self.work(client, &cancel, work).await else {
            // Dropping the senders notifies the waiting requests.
            return self.cache().forget(key, begun);
        };
        self.metrics.compile_time.record(taken);
        let mut cache = self.cache();
        cache.keep(key, begun, outcome.clone());
        self.metrics.cache_bytes.set(cache.bytes() as f64);
        drop(cache);
        // Before the sender is dropped: a request that waits for the constraint reads the reason
        // here.
        progress.send_replace(Some(Progress::Done(outcome.clone())));
        if let Ok(Some(compiled)) = outcome {
            sender.send(Ok(compiled.table));
        }
    }

    /// Compiles a constraint; calls `is_read` once it was read. Keywords that cannot be enforced
    /// are left out, unless the request is strict.
    fn make(&self, source: &Source, limits: &Limits, is_read: impl FnOnce()) -> Outcome {
        let read = |unenforceable| source.constraint(&self.style, unenforceable, limits);
        let compiled = read(Unenforceable::Refuse).and_then(|constraint| {
            let Some(constraint) = constraint else { return Ok(None) };
            is_read();
            let table = self.compiled(&constraint, limits)?;
            Ok(Some(Compiled { table, left_out: Arc::default() }))
        });
        let refusal = match compiled {
            Err(refusal) if unenforced(&refusal).is_some() => refusal,
            Err(Refusal::Library(error)) => return Err(located(source, error)),
            compiled => return compiled,
        };
        let left_out = self.check_strict(source, limits, refusal)?;
        let Some(constraint) = read(Unenforceable::Ignore)? else { return Ok(None) };
        let table = self.compiled(&constraint, limits)?;
        Ok(Some(Compiled { table, left_out: left_out.into() }))
    }

    /// The unenforceable keywords that caused a refusal.
    ///
    /// # Errors
    /// The refusal, if there are no such keywords, or the request is strict.
    fn check_strict(
        &self,
        source: &Source,
        limits: &Limits,
        refusal: Refusal,
    ) -> std::result::Result<Vec<LeftOut>, Refusal> {
        let left_out = source.left_out(&self.style, limits);
        match left_out.iter().find(|left_out| source.is_strict(left_out)) {
            Some(left_out) => Err(Refusal::Strict(left_out.clone())),
            None if left_out.is_empty() => Err(match refusal {
                Refusal::Library(error) => located(source, error),
                refusal => refusal,
            }),
            None => Ok(left_out),
        }
    }

    /// Compiles a constraint that was read.
    fn compiled(
        &self,
        constraint: &Constraint,
        limits: &Limits,
    ) -> std::result::Result<CompiledConstraint, Refusal> {
        let compile = |walked: bool| match (&self.disk, walked) {
            (Some(disk), false) => disk.compile(constraint, &self.vocabulary, limits),
            (Some(disk), true) => disk.walk(constraint, &self.vocabulary, limits),
            (None, false) => CompiledConstraint::compile(constraint, &self.vocabulary, limits),
            (None, true) => CompiledConstraint::compile_byte_level(constraint, &self.vocabulary, limits),
        };
        let mut table = compile(false).map_err(Refusal::Library)?;
        if !table.is_byte_level() && table.class_count() > self.max_classes {
            table = compile(true).map_err(Refusal::Library)?;
        }
        let (states, classes) = (table.state_count(), table.class_count());
        if states > self.max_states || classes > self.max_classes {
            return Err(Refusal::TooLarge(format!(
                "the constraint takes {states} states of {classes} classes, and the server has room for {} of {}: simplify it, or raise --arena-states and --arena-classes",
                self.max_states, self.max_classes
            )));
        }
        Ok(table)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The unenforceable keyword, if it is the only reason for a refusal.
fn unenforced(refusal: &Refusal) -> Option<&Unenforced> {
    match refusal {
        Refusal::Library(error) => error.unenforced(),
        _ => None,
    }
}

/// A refusal of the library, with the tool in question.
fn located(source: &Source, error: Error) -> Refusal {
    let place = error.pointer().and_then(|pointer| source.locate(pointer));
    match place.map(|(number, pointer)| (number, pointer.to_owned())) {
        Some((number, pointer)) => Refusal::Tool(error, number, pointer),
        None => Refusal::Library(error),
    }
}

/// The outcome for a request with the constraint in the field `param`.
fn into_api_error<T>(outcome: std::result::Result<T, Refusal>, param: &str) -> Result<T> {
    outcome.map_err(|refusal| refusal.error(param))
}
