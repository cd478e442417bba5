//! The thread that owns the model.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use burn_dfa::generation::{
    Cancel, Chunk, ContinuousBatch, ContinuousLm, FinishReason, GenerationConfig, Recordable, Request,
};
use burn_dfa::{ErrorKind, Result, Vocabulary};

use crate::request::{Event, Events, Job, Sampling, Tokens};
use crate::{Client, Ending, EngineConfig, Failure, Load, Metrics, RequestConstraint};

/// How often the idle thread checks whether it should end.
const IDLE: Duration = Duration::from_millis(200);
/// The wait between two attempts to load the model again.
const RELOAD: Duration = Duration::from_secs(1);
/// Greatest number of remembered clients.
const MAX_CLIENTS: usize = 1024;

/// Loads a model again.
pub type Reload<M> = Box<dyn Fn() -> std::result::Result<M, String> + Send>;

/// The waiting jobs and the running jobs of the engine. It outlives a panic of the model.
pub(crate) struct Scheduler {
    /// The answers of each request.
    jobs: Receiver<Vec<Job>>,
    /// Whether all senders of jobs are gone.
    closed: bool,
    waiting: VecDeque<Job>,
    rows: Vec<Option<Running>>,
    /// The number of each client's latest admission.
    served: HashMap<Client, u64>,
    admissions: u64,
    /// Whether the latest attempt to make rows succeeded.
    has_rows: bool,
    /// Whether any attempt did.
    had_rows: bool,
    config: EngineConfig,
    metrics: Arc<dyn Metrics>,
    /// Ends the thread immediately.
    stop: Cancel,
}

/// An answer in a row.
struct Running {
    events: Events,
    begun: Instant,
    queued: Instant,
    last: Option<Instant>,
    tokens: usize,
    /// Minimum number of tokens.
    min_tokens: usize,
    prompt: usize,
    is_first: bool,
    client: Client,
    constraint: Option<RequestConstraint>,
    /// Tokens and text that were not sent yet.
    held: (Tokens, String),
    /// How long they may be held, and since when; `None`: until the end. Holding them avoids waking
    /// the receiver at each token.
    interval: Option<Duration>,
    passed: Option<Instant>,
}

impl Running {
    fn new(job: &Job) -> Self {
        Self {
            events: job.events.clone(),
            begun: Instant::now(),
            queued: job.queued,
            last: None,
            tokens: 0,
            min_tokens: job.sampling.min_tokens,
            prompt: job.prompt.len(),
            is_first: job.is_first,
            client: job.client,
            constraint: job.constraint.clone(),
            held: Default::default(),
            interval: job.interval,
            passed: None,
        }
    }

    /// Sends held tokens and text, if there are any.
    fn pass_held(&mut self) {
        let (tokens, text) = std::mem::take(&mut self.held);
        if !tokens.ids.is_empty() || !text.is_empty() {
            self.events.send(Event::Chunk { tokens, text });
        }
    }
}

/// The request of a job to the batch.
fn request(job: &Job) -> Request {
    let (constraint, pending) = match &job.constraint {
        None => (None, None),
        Some(RequestConstraint::Ready(constraint)) => (Some(constraint.clone()), None),
        Some(RequestConstraint::Pending(pending)) => (None, Some(pending.constraint.clone())),
    };
    let Sampling { options, stop, stop_tokens, include_stop, min_tokens, special_tokens, seed } =
        job.sampling.clone();
    let request = Request {
        constraint,
        pending,
        stop,
        stop_tokens,
        include_stop,
        stop_after: min_tokens,
        special_tokens,
        cache_salt: job.cache_salt.clone(),
        ..Request::new(job.prompt.clone(), job.max_new_tokens)
    };
    request.with_seed(seed).with_cancel(&job.cancel).with_sampling(options)
}

impl Scheduler {
    pub(crate) fn new(
        jobs: Receiver<Vec<Job>>,
        config: EngineConfig,
        metrics: Arc<dyn Metrics>,
        stop: Cancel,
    ) -> Self {
        let rows = (0..config.rows).map(|_| None).collect();
        let (waiting, served) = (VecDeque::new(), HashMap::new());
        let (closed, admissions, has_rows, had_rows) = (false, 0, false, false);
        Self { jobs, closed, waiting, rows, served, admissions, has_rows, had_rows, config, metrics, stop }
    }

    /// Serves until there are no more jobs. After a panic, the answers in the rows are abandoned,
    /// and the next jobs begin in new rows. Reports on `ready` whether the first rows could be
    /// made, unless that panics. Returns the failure if the device is lost.
    pub(crate) fn run<M: ContinuousLm + Recordable>(
        &mut self,
        model: &M,
        vocabulary: &Vocabulary,
        ready: &SyncSender<Result<()>>,
    ) -> Option<Failure> {
        loop {
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(model, vocabulary, ready)));
            let failure = match served {
                Ok(Ok(())) => {
                    self.give_up(&Failure::Shutdown);
                    return None;
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "the engine failed");
                    Failure::Library(error)
                }
                Err(_) => {
                    tracing::error!("the engine panicked; its rows begin anew");
                    Failure::Panic
                }
            };
            let is_lost =
                matches!(&failure, Failure::Library(error) if error.kind() == ErrorKind::Connection);
            // A device may be lost again while the rows are made on it.
            let goes_on = self.has_rows || self.had_rows && is_lost;
            if !goes_on {
                self.give_up(&failure);
                return None;
            }
            if self.has_rows {
                self.metrics.restarted();
            }
            self.fail_rows(&failure);
            if is_lost {
                return Some(failure);
            }
        }
    }

    fn serve<M: ContinuousLm + Recordable>(
        &mut self,
        model: &M,
        vocabulary: &Vocabulary,
        ready: &SyncSender<Result<()>>,
    ) -> Result<()> {
        let EngineConfig { rows, slots, sync_interval, prefix_cache, .. } = self.config;
        let in_chunks = model.reads_in_chunks();
        let prompt_chunk = self.config.prompt_chunk.filter(|_| in_chunks);
        let prefix_cache = prefix_cache && in_chunks && model.copies_prefixes();
        let config = GenerationConfig::new()
            .with_sync_interval(sync_interval)
            .with_prompt_chunk(prompt_chunk)
            .with_prefix_cache(prefix_cache)
            .with_logprobs(self.config.logprobs)
            .with_row_features(self.config.features)
            .with_tensors(self.config.tensors.clone());
        // A batch that reads prompts in chunks reads none when it admits a request, and a prefix
        // cache chooses the row of one request at a time.
        let max_together = if prompt_chunk.is_some() || prefix_cache { 1 } else { rows };
        self.has_rows = false;
        let made = ContinuousBatch::record(model, vocabulary, rows, slots, &config);
        // Nothing listens after the first time.
        let _ = ready.try_send(made.as_ref().map(|_| ()).map_err(Clone::clone));
        let mut batch = made?;
        (self.has_rows, self.had_rows) = (true, true);
        while self.collect() {
            self.admit(&mut batch, max_together);
            if self.rows.iter().any(Option::is_some) {
                batch.step(sync_interval, |chunk| self.pass(chunk))?;
                self.release(&mut batch);
            }
            self.measure(&batch);
        }
        Ok(())
    }

    /// Collects queued jobs, and waits for jobs if the engine is idle; false: it is time to end.
    fn collect(&mut self) -> bool {
        loop {
            match self.jobs.try_recv() {
                Ok(jobs) => self.waiting.extend(jobs),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.closed = true;
                    break;
                }
            }
        }
        // Removes canceled jobs, and jobs whose compilation failed, anywhere in the queue.
        self.waiting.retain(|job| match &job.constraint {
            Some(constraint) if constraint.has_failed() => {
                job.events.send(Event::Failed(Failure::Constraint));
                false
            }
            _ => !job.cancel.is_canceled(),
        });
        while self.waiting.is_empty() && self.rows.iter().all(Option::is_none) {
            if self.closed || self.stop.is_canceled() {
                return false;
            }
            match self.jobs.recv_timeout(IDLE) {
                Ok(jobs) => self.waiting.extend(jobs),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.closed = true,
            }
        }
        !self.stop.is_canceled()
    }

    /// The next job: the oldest job of the client with the fewest rows, and of several clients the
    /// one that was served longest ago. A job that waits for arena space goes first, so that other
    /// jobs do not take the space that becomes free.
    ///
    /// Jobs that were `taken` already count as rows of their clients.
    fn next(&self, taken: &[Job]) -> Option<usize> {
        let rows = |client| {
            let running = self.rows.iter().flatten().filter(|running| running.client == client).count();
            running + taken.iter().filter(|job| job.client == client).count()
        };
        let share = |client| (rows(client), self.served.get(&client).copied().unwrap_or(0));
        // The jobs of a request follow each other, and have the same client.
        let mut last = (Client::default(), share(Client::default()));
        let waiting = self.waiting.iter().enumerate();
        let next = waiting.min_by_key(|(_, job)| {
            if job.client != last.0 {
                last = (job.client, share(job.client));
            }
            (!job.was_refused, last.1)
        });
        next.map(|(index, _)| index)
    }

    /// Records that a client was served.
    fn serve_client(&mut self, client: Client) {
        self.admissions += 1;
        self.served.insert(client, self.admissions);
        if self.served.len() > MAX_CLIENTS {
            let waits = |client: &Client| self.waiting.iter().any(|job| job.client == *client);
            self.served.retain(|client, _| waits(client));
        }
    }

    /// Begins the jobs for which there are rows and arena space, at most `max_together` at once.
    fn admit<M: ContinuousLm>(&mut self, batch: &mut ContinuousBatch<'_, M>, max_together: usize) {
        loop {
            let idle: Vec<usize> = batch.idle().take(max_together).collect();
            let jobs = self.take(idle.len());
            if jobs.is_empty() || !self.begin(batch, &idle, jobs) {
                return;
            }
        }
    }

    /// Takes up to `count` jobs from the queue. A job that waits for arena space is taken alone, so
    /// that other jobs do not take the space.
    fn take(&mut self, count: usize) -> Vec<Job> {
        let mut jobs = Vec::new();
        while jobs.len() < count {
            let Some(job) = self.next(&jobs).and_then(|next| self.waiting.remove(next)) else { break };
            let is_alone = job.was_refused;
            jobs.push(job);
            if is_alone {
                break;
            }
        }
        jobs
    }

    /// Begins jobs in idle rows; false: there is no arena space for some of them, which are queued
    /// again.
    fn begin<M: ContinuousLm>(
        &mut self,
        batch: &mut ContinuousBatch<'_, M>,
        idle: &[usize],
        jobs: Vec<Job>,
    ) -> bool {
        let requests: Vec<Request> = jobs.iter().map(request).collect();
        let rows = match &requests[..] {
            [request] => vec![batch.idle_for(request).expect("a row is idle")],
            requests => idle[..requests.len()].to_vec(),
        };
        // Jobs enter their rows before the model reads them, so that a panic is attributed to them.
        for (&row, job) in rows.iter().zip(&jobs) {
            self.rows[row] = Some(Running::new(job));
        }
        let results = batch.admit_all(&rows.iter().copied().zip(&requests).collect::<Vec<_>>());
        drop(requests);
        let mut refused = Vec::new();
        for ((row, mut job), result) in rows.into_iter().zip(jobs).zip(results) {
            match result {
                Ok(()) => {
                    job.permit.take();
                    self.serve_client(job.client);
                    self.metrics.admitted(job.queued.elapsed(), job.prompt.len());
                    if !matches!(job.constraint, Some(RequestConstraint::Pending(_))) {
                        job.events.send(Event::Started);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Full => {
                    self.rows[row] = None;
                    refused.push(Job { was_refused: true, ..job });
                }
                Err(error) => {
                    self.rows[row] = None;
                    job.events.send(Event::Failed(Failure::Library(error)));
                }
            }
        }
        let has_space = refused.is_empty();
        // They retry after another answer has ended, in their order.
        refused.into_iter().rev().for_each(|job| self.waiting.push_front(job));
        has_space
    }

    /// Passes a chunk to its answer.
    fn pass(&mut self, chunk: Chunk) {
        let Some(running) = self.rows.get_mut(chunk.row).and_then(Option::as_mut) else { return };
        let now = Instant::now();
        let count = chunk.tokens.len();
        match running.last {
            None => {
                self.metrics.first_token(now - running.queued);
                if matches!(running.constraint, Some(RequestConstraint::Pending(_))) {
                    running.events.send(Event::Started);
                }
            }
            Some(last) => self.metrics.next_tokens(count, (now - last) / count.max(1) as u32),
        }
        running.last = Some(now);
        running.tokens += count;
        self.metrics.generated(count);
        let (tokens, text) = &mut running.held;
        tokens.ids.extend(chunk.tokens);
        tokens.logprobs.extend(chunk.logprobs);
        text.push_str(&chunk.text);
        let is_due = |interval| running.passed.is_none_or(|passed| now - passed >= interval);
        if running.interval.is_some_and(is_due) {
            running.passed = Some(now);
            running.pass_held();
        }
    }

    /// Frees the rows of ended answers, and notifies the answers after updating the metrics.
    fn release<M: ContinuousLm>(&mut self, batch: &mut ContinuousBatch<'_, M>) {
        let finished: Vec<usize> = batch.finished().collect();
        let mut events = Vec::with_capacity(finished.len());
        for row in finished {
            let cached = batch.cached_tokens(row);
            let output = batch.release(row);
            let Some(running) = self.rows[row].take() else { continue };
            if let Some(cached) = cached {
                self.metrics.prefix(running.prompt, cached);
            }
            let ended = output.map(|output| match output.finish {
                FinishReason::EndOfSequence if output.ended_by_budget => Ending::OutOfTokens,
                FinishReason::EndOfSequence => Ending::Complete,
                FinishReason::Stop => Ending::Stop,
                FinishReason::MaxNewTokens => Ending::Length,
                _ => Ending::Canceled,
            });
            let cached_tokens = cached.filter(|_| running.is_first).unwrap_or(0);
            self.metrics.ended(ended.as_ref().ok().copied(), running.queued.elapsed());
            tracing::debug!(
                prompt_tokens = running.prompt,
                cached_tokens = cached,
                tokens = running.tokens,
                seconds = running.begun.elapsed().as_secs_f64(),
                ending = ?ended,
                "an answer ended"
            );
            let event = match ended {
                Ok(ending) => {
                    let is_whole = matches!(ending, Ending::Complete | Ending::OutOfTokens);
                    let is_short = is_whole && running.tokens < running.min_tokens;
                    Event::Ended { ending, cached_tokens, is_short }
                }
                Err(error) => Event::Failed(match &running.constraint {
                    Some(constraint) if constraint.has_failed() => Failure::Constraint,
                    _ => Failure::Library(error),
                }),
            };
            events.push((running, event));
        }
        if events.is_empty() {
            return;
        }
        self.measure(batch);
        for (mut running, event) in events {
            running.pass_held();
            running.events.send(event);
        }
    }

    fn measure<M: ContinuousLm>(&self, batch: &ContinuousBatch<'_, M>) {
        let running: Vec<&Running> = self.rows.iter().flatten().collect();
        let used: usize = running.iter().map(|running| running.prompt + running.tokens).sum();
        let (free, all) = (batch.free_space().states, batch.arena_capacity().states);
        self.metrics.load(Load {
            running: running.len(),
            waiting: self.waiting.len(),
            tokens: used as f64 / (self.config.rows * self.config.slots) as f64,
            states: 1.0 - free as f64 / all.max(1) as f64,
        });
    }

    /// Reports a failure to the answers in the rows.
    fn fail_rows(&mut self, failure: &Failure) {
        for running in self.rows.iter_mut().filter_map(Option::take) {
            self.metrics.lost();
            running.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.load(Load { waiting: self.waiting.len(), ..Load::default() });
    }

    /// Loads the model again, until it succeeds; answers requested meanwhile fail as well. `None`:
    /// it is time to end.
    pub(crate) fn load_again<M>(&mut self, reload: &Reload<M>, lost: &Failure) -> Option<M> {
        // A device that is lost again before there are rows is not asked without a pause.
        if !self.has_rows {
            std::thread::sleep(RELOAD);
        }
        while !self.stop.is_canceled() {
            self.give_up(lost);
            match reload() {
                Ok(model) => {
                    tracing::info!("the model is loaded again");
                    return Some(model);
                }
                Err(error) => tracing::warn!(%error, "the model cannot be loaded again yet"),
            }
            std::thread::sleep(RELOAD);
        }
        self.give_up(&Failure::Shutdown);
        None
    }

    /// Reports a failure to all answers.
    pub(crate) fn give_up(&mut self, failure: &Failure) {
        self.fail_rows(failure);
        self.waiting.extend(self.jobs.try_iter().flatten());
        for job in self.waiting.drain(..) {
            job.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.load(Load::default());
    }
}
