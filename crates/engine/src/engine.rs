//! The handle of the engine's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burn_dfa::generation::{Cancel, ContinuousLm, Recordable};
use burn_dfa::{Error, Vocabulary};
use tokio::sync::Semaphore;

use crate::request::{Events, Job};
use crate::scheduler::{Reload, Scheduler};
use crate::{EngineConfig, Generation, GenerationRequest, Metrics, SubmitError};

/// A thread that owns a model and runs the answers of all requests in one continuous batch.
///
/// Dropping the engine cancels all answers; the thread ends after its current step.
/// [`shut_down`](Self::shut_down) waits for it.
///
/// ```
/// use std::sync::Arc;
///
/// use burn_dfa::prelude::*;
/// use burn_dfa::{Capacity, TensorOptions};
/// use burn_dfa_engine::{Engine, EngineConfig, Event, GenerationRequest, Prompt};
///
/// let tiny = burn_dfa_tiny::load(&Device::flex())?;
/// let capacity = Capacity::new().with_constraints(2).with_states(256).with_classes(64);
/// let tensors = TensorOptions::new().with_capacity(capacity);
/// let config = EngineConfig { tensors, ..EngineConfig::new(2, 256) };
/// let (model, vocabulary) = (tiny.model().clone(), tiny.vocabulary().clone());
/// let engine = Engine::start(model, vocabulary, config, Arc::new(()), None)?;
///
/// let constraint = Constraint::choice(["yes", "no"])?.compile(tiny.vocabulary())?;
/// let prompt = Prompt {
///     tokens: tiny.prompt("Is snow white?")?,
///     max_new_tokens: 8,
///     constraint: Some(constraint.into()),
/// };
/// let request = GenerationRequest { prompts: vec![prompt], n: 1, ..GenerationRequest::default() };
/// let mut generation = engine.submit(request)?;
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let mut answer = String::new();
/// while let Some((_, event)) = runtime.block_on(generation.next()) {
///     match event {
///         Event::Chunk { text, .. } => answer.push_str(&text),
///         Event::Failed(failure) => return Err(failure.into()),
///         _ => {}
///     }
/// }
/// assert!(["yes", "no"].contains(&&answer[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    jobs: Mutex<Option<mpsc::Sender<Vec<Job>>>>,
    queue: Arc<Semaphore>,
    config: EngineConfig,
    is_alive: Arc<AtomicBool>,
    stop: Cancel,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Starts the thread of a model, and waits until it is ready. If the model's remote device is
    /// lost, `reload` loads the model again.
    ///
    /// # Errors
    /// As [`ContinuousBatch::new`](burn_dfa::generation::ContinuousBatch::new), if the sizes do not
    /// fit the model or the device; [`ErrorKind::Model`](burn_dfa::ErrorKind::Model) if the model
    /// panics while the first rows are made.
    pub fn start<M: ContinuousLm + Recordable + Send + 'static>(
        mut model: M,
        vocabulary: Vocabulary,
        config: EngineConfig,
        metrics: Arc<dyn Metrics>,
        reload: Option<Reload<M>>,
    ) -> burn_dfa::Result<Self> {
        let config = EngineConfig { max_queue: config.max_queue.min(Semaphore::MAX_PERMITS), ..config };
        let (jobs, receiver) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let (is_alive, stop) = (Arc::new(AtomicBool::new(true)), Cancel::default());
        let mut scheduler = Scheduler::new(receiver, config.clone(), metrics, stop.clone());
        let flag = is_alive.clone();
        let body = move || {
            while let Some(failure) = scheduler.run(&model, &vocabulary, &ready) {
                let Some(reload) = &reload else {
                    scheduler.give_up(&failure);
                    break;
                };
                let Some(loaded) = scheduler.load_again(reload, &failure) else { break };
                model = loaded;
            }
            flag.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(body);
        let thread = thread.expect("a thread can be started while a program runs");
        let panicked = |_| Err(Error::model("it panicked while the first rows were made"));
        is_ready.recv().unwrap_or_else(panicked)?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            queue: Arc::new(Semaphore::new(config.max_queue)),
            config,
            is_alive,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The settings.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Whether requests are answered.
    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Acquire) && self.jobs().is_some()
    }

    /// Queues the answers to a request.
    ///
    /// # Errors
    /// The queue has too little space for all of them, or the engine has ended.
    pub fn submit(&self, request: GenerationRequest) -> Result<Generation, SubmitError> {
        let (sender, generation) = Generation::channel();
        let n = u32::try_from(request.answers()).unwrap_or(u32::MAX);
        let Ok(mut permits) = self.queue.clone().try_acquire_many_owned(n) else {
            let max_queue = self.config.max_queue;
            let waiting = max_queue - self.queue.available_permits();
            return Err(SubmitError::Full { waiting, max_queue });
        };
        let jobs = self.jobs();
        let jobs = jobs.as_ref().ok_or(SubmitError::Shutdown)?;
        let GenerationRequest { prompts, sampling, n, interval, cache_salt, client } = request;
        let answers = prompts.iter().flat_map(|prompt| (0..n).map(move |answer| (prompt, answer)));
        let answers = answers.enumerate().map(|(index, (prompt, answer))| Job {
            prompt: prompt.tokens.clone(),
            max_new_tokens: prompt.max_new_tokens,
            constraint: prompt.constraint.clone(),
            sampling: sampling.of_answer(answer),
            cancel: generation.cancel().clone(),
            events: Events { index, sender: sender.clone() },
            interval,
            cache_salt: cache_salt.clone(),
            client,
            was_refused: false,
            is_first: answer == 0,
            permit: permits.split(1),
            queued: Instant::now(),
        });
        jobs.send(answers.collect()).map_err(|_| SubmitError::Shutdown)?;
        Ok(generation)
    }

    /// Accepts no more requests, and waits for running answers until the deadline; then cancels
    /// them, and waits for the end of the thread.
    pub fn shut_down(&self, grace: Duration) {
        let started = Instant::now();
        self.jobs().take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        while !thread.is_finished() && started.elapsed() < grace {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop.cancel();
        if thread.join().is_err() {
            tracing::error!("the engine's thread panicked");
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<Job>>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Dropping the sender wakes the thread.
        self.stop.cancel();
    }
}
