//! Compiles constraints: each once, on a bounded number of threads, with a deadline, as long as a
//! request waits for it.
//!
//! A compilation that takes longer than [`QUICK`] is stopped, and repeated as slow work, again with
//! the whole time. If there are several threads, slow work leaves one of them free.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn_dfa::generation::Cancel;
use burn_dfa::{ConstraintSender, Error, Limit, Limits, Vocabulary};
use tokio::sync::{oneshot, watch};

use crate::cache::{Cache, Found, Key, Progress, Shared, StartedCompilation};
use crate::compilation::{Compilation, Running, Wait};
use crate::frontend::{Frontend, Outcome, Task};
use crate::pool::{CancelOnDrop, Client, Pool};
use crate::{CompileError, CompilerConfig, Metrics, Refusal};

/// The time after which a constraint counts as slow.
const QUICK: Duration = Duration::from_millis(250);

/// Approximate bytes of a cache entry without its constraint.
const ENTRY: usize = 1024;

/// Compiles constraints, and caches the results of the front end `F`.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use burn_dfa::{
///     Capacity, CompiledConstraint, Constraint, Error, Limits, TokenId, Vocabulary,
/// };
/// use burn_dfa_engine::{Client, Compiler, CompilerConfig, Frontend, Key, Refusal, Task};
///
/// /// The outputs of a program with two kinds of questions.
/// #[derive(Clone, Copy)]
/// enum Output {
///     Answer,
///     Date,
/// }
///
/// struct Outputs;
///
/// impl Frontend for Outputs {
///     type Source = Output;
///     type Compiled = CompiledConstraint;
///     type Refusal = Refusal;
///
///     fn key(&self, source: &Output) -> Key {
///         [*source as u8; 32]
///     }
///
///     fn compile(&self, source: &Output, task: &Task) -> Result<CompiledConstraint, Refusal> {
///         let constraint = match source {
///             Output::Answer => Constraint::choice(["yes", "no"]),
///             Output::Date => Constraint::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
///         };
///         task.compile(&constraint.map_err(Refusal::Library)?)
///     }
///
///     fn constraint(compiled: &CompiledConstraint) -> Option<&CompiledConstraint> {
///         Some(compiled)
///     }
///
///     fn error(refusal: &Refusal) -> Option<&Error> {
///         refusal.error()
///     }
/// }
///
/// let vocabulary = Vocabulary::from_chars("0123456789-yesno.".chars())?;
/// let vocabulary = vocabulary.with_eos([TokenId(16)])?;
/// let limits = Limits::new().with_time(Duration::from_secs(10));
/// let capacity = Capacity::new().with_states(64).with_classes(32);
/// let config = CompilerConfig::new(limits, capacity);
/// let compiler = Arc::new(Compiler::new(Outputs, vocabulary, config, Arc::new(())));
///
/// let date = compiler.get_blocking(Client::default(), Output::Date)?;
/// assert_eq!(date.tokens_to_end(date.start()), 11); // Ten characters and the end.
/// let answer = compiler.get_blocking(Client::default(), Output::Answer)?;
/// assert_eq!(answer.tokens_to_end(answer.start()), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compiler<F: Frontend> {
    frontend: F,
    vocabulary: Vocabulary,
    config: CompilerConfig,
    pool: Pool,
    cache: Mutex<Cache<Outcome<F>>>,
    /// Whether the compiler has been shut down.
    ends: watch::Sender<bool>,
    metrics: Arc<dyn Metrics>,
}

/// A compilation in the queue of the pool or in a thread.
struct Job<F: Frontend> {
    compiler: Arc<Compiler<F>>,
    key: Key,
    begun: u64,
    source: F::Source,
    progress: watch::Sender<Progress<Outcome<F>>>,
    constraint: Option<ConstraintSender>,
    cancel: Cancel,
}

impl<F: Frontend> Drop for Job<F> {
    fn drop(&mut self) {
        // Without effect after a result was stored. Otherwise the pool refused the job, and
        // dropping the senders notifies the requests that wait for it.
        self.compiler.cache().forget(self.key, self.begun);
    }
}

impl<F: Frontend> Compiler<F> {
    /// A compiler for a vocabulary.
    pub fn new(
        frontend: F,
        vocabulary: Vocabulary,
        config: CompilerConfig,
        metrics: Arc<dyn Metrics>,
    ) -> Self {
        let pool = Pool::new(config.threads, config.max_waiting);
        let cache = Mutex::new(Cache::new(config.cache_bytes));
        Self { frontend, vocabulary, config, pool, cache, ends: watch::Sender::new(false), metrics }
    }

    /// The front end.
    pub fn frontend(&self) -> &F {
        &self.frontend
    }

    /// The constraint of a source. If the compiler is [lazy](CompilerConfig::lazy), it may still be
    /// compiled. Dropping the future, or a running compilation, cancels the compilation unless
    /// other requests wait for it.
    ///
    /// # Errors
    /// The constraint is refused, or was not compiled in time; the queue is full; the compiler has
    /// been shut down.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with timers, unless the result is cached.
    pub async fn get(
        self: &Arc<Self>,
        client: Client,
        source: F::Source,
    ) -> Result<Compilation<F>, CompileError<F::Refusal>> {
        let mut running = match self.find(client, source) {
            Ok(outcome) => return outcome.map(Compilation::Done).map_err(CompileError::Refused),
            Err(running) => running,
        };
        // Twice the time of a compilation, to allow for the wait for a thread.
        let timeout = self.config.limits.time.saturating_mul(2).saturating_add(Duration::from_secs(2));
        let is_enough = |progress: &Progress<_>| match progress {
            Progress::Reading => false,
            Progress::Compiling => self.config.lazy,
            Progress::Done(_) => true,
        };
        let known = tokio::select! {
            known = tokio::time::timeout(timeout, running.shared().progress.wait_for(is_enough)) => match known {
                Ok(Ok(progress)) => progress.clone(),
                // The pool dropped the job.
                Ok(Err(_)) => return Err(CompileError::Overloaded),
                Err(_) => return Err(CompileError::Late),
            },
            () = self.ended() => return Err(CompileError::Shutdown),
        };
        match known {
            Progress::Done(outcome) => outcome.map(Compilation::Done).map_err(CompileError::Refused),
            Progress::Reading | Progress::Compiling => Ok(Compilation::Running(running)),
        }
    }

    /// The constraint of a source, as [`get`](Self::get) returns it if the compiler is not lazy.
    /// Blocks until it is compiled, without a limit on the time in the queue.
    ///
    /// # Errors
    /// The constraint is refused, or the queue is full.
    pub fn get_blocking(
        self: &Arc<Self>,
        client: Client,
        source: F::Source,
    ) -> Result<F::Compiled, CompileError<F::Refusal>> {
        let outcome = self.find(client, source).or_else(|mut running| {
            // The result itself is in the progress.
            let _ = running.shared().constraint.wait();
            running.outcome().ok_or(CompileError::Overloaded)
        })?;
        outcome.map_err(CompileError::Refused)
    }

    /// Looks up a source. If it is unknown, its compilation begins.
    fn find(self: &Arc<Self>, client: Client, source: F::Source) -> Result<Outcome<F>, Running<F>> {
        let key = self.frontend.key(&source);
        let found = self.cache().find(key);
        self.metrics.looked_up(!matches!(found, Found::New(..)));
        let (shared, begun) = match found {
            Found::Done(outcome) => return Ok(outcome),
            Found::Running(shared) => (shared, None),
            Found::New(shared, begun) => (shared, Some(begun)),
        };
        let (own, number) = (self.clone(), shared.begun);
        let wait = Wait::new(move || own.cache().leave(key, number));
        if let Some(begun) = begun {
            self.start(client, key, source, &shared, begun);
        }
        Err(Running::new(shared, wait))
    }

    fn start(
        self: &Arc<Self>,
        client: Client,
        key: Key,
        source: F::Source,
        shared: &Shared<Outcome<F>>,
        begun: StartedCompilation<Outcome<F>>,
    ) {
        let StartedCompilation { progress, constraint, cancel } = begun;
        let (compiler, begun, constraint) = (self.clone(), shared.begun, Some(constraint));
        let job = Job { compiler, key, begun, source, progress, constraint, cancel: cancel.clone() };
        self.run_in_pool(
            client,
            &cancel,
            job,
            |job, limits| {
                let is_read = || _ = job.progress.send_replace(Progress::Compiling);
                job.compiler.frontend.compile(&job.source, &job.compiler.task(limits, &is_read))
            },
            |job, outcome, taken| job.finish(outcome, taken),
        );
    }

    /// Runs other work on a constraint within the limits of a compilation, which [`Task`] gives.
    /// Dropping the future cancels the work.
    ///
    /// # Errors
    /// The work fails or panics; the queue is full; the compiler has been shut down.
    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        client: Client,
        work: impl Fn(&F, &Task) -> Result<T, F::Refusal> + Send + 'static,
    ) -> Result<T, CompileError<F::Refusal>> {
        let cancel = CancelOnDrop::default();
        let (sender, made) = oneshot::channel();
        self.run_in_pool(
            client,
            &cancel.0,
            (self.clone(), sender),
            move |(compiler, _), limits| work(&compiler.frontend, &compiler.task(limits, &|| ())),
            |(_, sender), made, _| _ = sender.send(made),
        );
        tokio::select! {
            made = made => made.map_err(|_| CompileError::Overloaded)?.map_err(CompileError::Refused),
            () = self.ended() => Err(CompileError::Shutdown),
        }
    }

    /// Runs work on `state` in the pool: first with a short time limit, and if it is slow, again as
    /// slow work. `done` gets the result and the time that it took. If the pool refuses the work,
    /// `state` is dropped.
    fn run_in_pool<S: Send + 'static, T: 'static>(
        &self,
        client: Client,
        cancel: &Cancel,
        state: S,
        work: impl Fn(&S, &Limits) -> Result<T, F::Refusal> + Send + 'static,
        done: impl FnOnce(S, Result<T, F::Refusal>, Duration) + Send + 'static,
    ) {
        let timed = move |state: &S, limits: &Limits| {
            let started = Instant::now();
            // All steps of the work share the time.
            let deadlines = [started.checked_add(limits.time), limits.deadline];
            let limits = Limits { deadline: deadlines.into_iter().flatten().min(), ..limits.clone() };
            let made = catch_unwind(AssertUnwindSafe(|| work(state, &limits)));
            (made.unwrap_or_else(|_| Err(Refusal::Panic.into())), started.elapsed())
        };
        let limits = self.config.limits.clone().with_cancel(cancel);
        let quick = QUICK.min(limits.time);
        let (pool, flag) = (self.pool.clone(), cancel.clone());
        self.pool.spawn(client, cancel, move || {
            let (made, taken) = timed(&state, &limits.clone().with_time(quick));
            let error = made.as_ref().err().and_then(F::error);
            let is_slow = error.and_then(Error::breached) == Some(Limit::Time(quick));
            if !is_slow || quick == limits.time {
                return done(state, made, taken);
            }
            pool.spawn_slow(client, &flag, move || {
                let (made, again) = timed(&state, &limits);
                done(state, made, taken + again);
            });
        });
    }

    /// Ends [`get`](Self::get): requests that wait for a compilation get
    /// [`CompileError`] at once. [`get_blocking`](Self::get_blocking) still compiles.
    pub fn shut_down(&self) {
        self.ends.send_replace(true);
    }

    async fn ended(&self) {
        // The sender lives as long as the compiler.
        let _ = self.ends.subscribe().wait_for(|ends| *ends).await;
    }

    fn task<'a>(&'a self, limits: &'a Limits, is_read: &'a dyn Fn()) -> Task<'a> {
        Task { vocabulary: &self.vocabulary, config: &self.config, limits, is_read }
    }

    fn cache(&self) -> MutexGuard<'_, Cache<Outcome<F>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Frontend> Job<F> {
    fn finish(mut self, outcome: Outcome<F>, taken: Duration) {
        if self.cancel.is_canceled() {
            return;
        }
        self.compiler.metrics.compiled(taken);
        let mut cache = self.compiler.cache();
        cache.keep(self.key, self.begun, outcome.clone(), size::<F>(&outcome));
        self.compiler.metrics.cache_bytes(cache.bytes());
        drop(cache);
        let constraint = outcome.as_ref().ok().and_then(F::constraint).cloned();
        // Before the constraint: a request that waits for the constraint reads the reason of a
        // failure here.
        self.progress.send_replace(Progress::Done(outcome));
        if let (Some(sender), Some(constraint)) = (self.constraint.take(), constraint) {
            sender.send(Ok(constraint));
        }
    }
}

/// Approximate bytes of a result: the numbers of a compiled constraint, and a fixed overhead.
fn size<F: Frontend>(outcome: &Outcome<F>) -> usize {
    let own = match outcome {
        Ok(compiled) => F::constraint(compiled).map_or(0, |constraint| {
            constraint.state_count() * (constraint.class_count() + 8) * size_of::<u32>()
        }),
        Err(refusal) => F::error(refusal).map_or(0, |error| error.to_string().len()),
    };
    ENTRY + own
}

impl<F: Frontend> fmt::Debug for Compiler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use burn_dfa::{Capacity, CompiledConstraint, Constraint, TokenId};

    use super::*;

    /// Patterns.
    struct Patterns;

    impl Frontend for Patterns {
        type Source = &'static str;
        type Compiled = CompiledConstraint;
        type Refusal = Refusal;

        fn key(&self, source: &&'static str) -> Key {
            let mut key = [0; 32];
            key[..source.len()].copy_from_slice(source.as_bytes());
            key
        }

        fn compile(&self, source: &&'static str, task: &Task) -> Result<CompiledConstraint, Refusal> {
            let constraint = Constraint::regex(source).map_err(Refusal::Library)?;
            if *source == MANY_STEPS {
                loop {
                    task.compile(&constraint)?;
                }
            }
            task.compile(&constraint)
        }

        fn constraint(compiled: &CompiledConstraint) -> Option<&CompiledConstraint> {
            Some(compiled)
        }

        fn error(refusal: &Refusal) -> Option<&Error> {
            refusal.error()
        }
    }

    /// Counts compilations.
    #[derive(Default)]
    struct Counts {
        compiled: AtomicUsize,
        found: AtomicUsize,
    }

    impl Metrics for Counts {
        fn compiled(&self, _time: Duration) {
            self.compiled.fetch_add(1, Ordering::Relaxed);
        }

        fn looked_up(&self, found: bool) {
            self.found.fetch_add(found.into(), Ordering::Relaxed);
        }
    }

    /// Compiles until its limits.
    const ENDLESS: &str = "(a|b)*a(a|b){60}";

    /// Compiles in many short steps until its limits.
    const MANY_STEPS: &str = "a";

    fn compiler(time: Duration, max_waiting: usize) -> (Arc<Compiler<Patterns>>, Arc<Counts>) {
        let config = CompilerConfig {
            limits: Limits::new().with_time(time).with_threads(1).with_bytes(1 << 30),
            capacity: Capacity::new().with_states(100).with_classes(64),
            threads: 1,
            max_waiting,
            cache_bytes: 1 << 20,
            disk: None,
            lazy: false,
        };
        let vocabulary = Vocabulary::from_chars("ab.".chars()).expect("there are tokens");
        let vocabulary = vocabulary.with_eos([TokenId(2)]).expect("it is a token");
        let counts = Arc::new(Counts::default());
        (Arc::new(Compiler::new(Patterns, vocabulary, config, counts.clone())), counts)
    }

    #[test]
    fn equal_sources_are_compiled_once() {
        let (compiler, counts) = compiler(Duration::from_secs(60), 16);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| compiler.get_blocking(Client::default(), "ab*").expect("it compiles"));
            }
        });
        let counts = [&counts.compiled, &counts.found].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [1, 7]);
    }

    #[test]
    fn refusals_are_cached() {
        let (compiler, counts) = compiler(Duration::from_secs(60), 16);
        for _ in 0..2 {
            let refused = compiler.get_blocking(Client::default(), "a{200}");
            let Err(CompileError::Refused(Refusal::TooLarge { size, capacity })) = refused else {
                panic!("it is too large: {refused:?}");
            };
            assert!(size[0] > 200 && capacity == [100, 64], "{size:?}");
        }
        assert_eq!(counts.compiled.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_compilation_ends_at_its_deadline() {
        let time = Duration::from_millis(600);
        let (compiler, _) = compiler(time, 16);
        for endless in [ENDLESS, MANY_STEPS] {
            let refused = compiler.get_blocking(Client::default(), endless);
            let Err(CompileError::Refused(Refusal::Library(error))) = refused else {
                panic!("it does not end by itself: {refused:?}");
            };
            assert!(matches!(error.breached(), Some(Limit::Time(limit)) if limit == time), "{error}");
        }
    }

    #[tokio::test]
    async fn the_last_wait_cancels_its_compilation() {
        let (compiler, counts) = compiler(Duration::from_secs(600), 16);
        let wait = compiler.get(Client::default(), ENDLESS);
        assert!(tokio::time::timeout(Duration::from_millis(400), wait).await.is_err());
        // The only thread is free for the next constraint.
        assert!(compiler.get(Client::default(), "ab*").await.is_ok());
        assert_eq!(counts.compiled.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_compilations() {
        let (compiler, _) = compiler(Duration::from_secs(600), 16);
        let own = compiler.clone();
        let waits = tokio::spawn(async move { own.get(Client::default(), ENDLESS).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        compiler.shut_down();
        let ended = waits.await.expect("it does not panic");
        assert!(matches!(ended, Err(CompileError::Shutdown)), "{ended:?}");
    }

    #[tokio::test]
    async fn a_full_queue_refuses_constraints() {
        let (compiler, _) = compiler(Duration::from_secs(600), 0);
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        compiler.pool.spawn(Client::default(), &Cancel::default(), move || _ = receiver.recv());
        let refused = compiler.get_blocking(Client::default(), "ab*");
        assert!(matches!(refused, Err(CompileError::Overloaded)), "{refused:?}");
        let refused = compiler.get(Client::default(), "ab*").await;
        assert!(matches!(refused, Err(CompileError::Overloaded)), "{refused:?}");
        drop(sender);
    }
}
