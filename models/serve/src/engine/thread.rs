//! The thread that owns the model.

use burn_dfa::ErrorKind;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use burn_dfa::generation::{
    Cancel, Chunk, ContinuousBatch, ContinuousLm, FinishReason, GenerationConfig, Recordable, Request,
    SamplingFeatures,
};
use burn_dfa::{Result, Vocabulary};

use super::pool::Client;
use super::table::Table;
use super::{Ending, Event, Events, Failure, Job, Reload, Sampling, Shape, Tokens};
use crate::metrics::Metrics;

/// How often the idle thread checks whether it should end.
const IDLE: Duration = Duration::from_millis(200);
/// The wait between two attempts to load the model again.
const RELOAD: Duration = Duration::from_secs(1);
/// Greatest number of remembered clients.
const MAX_CLIENTS: usize = 1024;

/// The waiting jobs and the running jobs of the engine. It outlives a panic of the model.
pub(super) struct Scheduler {
    jobs: Receiver<Job>,
    /// Whether all senders of jobs are gone.
    closed: bool,
    waiting: VecDeque<Job>,
    rows: Vec<Option<Running>>,
    /// The number of each client's latest admission.
    served: HashMap<Client, u64>,
    admissions: u64,
    /// Whether the latest attempt to make rows succeeded.
    has_rows: bool,
    shape: Shape,
    metrics: Arc<Metrics>,
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
    /// Its constraint.
    table: Option<Table>,
    /// Tokens and text that were not sent yet.
    held: (Tokens, String),
    /// How long they may be held, and since when; `None`: until the end. Holding them avoids waking
    /// the receiver at each token.
    interval: Option<Duration>,
    passed: Option<Instant>,
}

impl Running {
    /// Sends held tokens and text, if there are any.
    fn pass_held(&mut self) {
        let (tokens, text) = std::mem::take(&mut self.held);
        if !tokens.ids.is_empty() || !text.is_empty() {
            self.events.send(Event::Chunk { tokens, text });
        }
    }
}

impl Scheduler {
    pub(super) fn new(jobs: Receiver<Job>, shape: Shape, metrics: Arc<Metrics>, stop: Cancel) -> Self {
        let rows = (0..shape.rows).map(|_| None).collect();
        let (waiting, served) = (VecDeque::new(), HashMap::new());
        let (closed, admissions, has_rows) = (false, 0, false);
        Self { jobs, closed, waiting, rows, served, admissions, has_rows, shape, metrics, stop }
    }

    /// Serves until there are no more jobs. After a panic, the answers in the rows are abandoned,
    /// and the next jobs begin in new rows. Reports on `ready` whether the first rows could be
    /// made. Returns the failure if the device is lost.
    pub(super) fn run<M: ContinuousLm + Recordable>(
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
            if !self.has_rows {
                self.give_up(&failure);
                return None;
            }
            self.metrics.engine_restarts.increment(1);
            self.fail_rows(&failure);
            if matches!(&failure, Failure::Library(error) if error.kind() == ErrorKind::Connection) {
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
        let Shape { rows, slots, sync_interval, prompt_chunk, prefix_cache, logprobs, ref tensors, .. } =
            self.shape;
        let in_pieces = model.reads_in_pieces();
        let config = GenerationConfig::new()
            .with_sync_interval(sync_interval)
            .with_prompt_chunk(in_pieces.then_some(prompt_chunk))
            .with_prefix_cache(prefix_cache && in_pieces && model.copies_prefixes())
            .with_logprobs(logprobs)
            .with_row_features(SamplingFeatures::ALL)
            .with_tensors(tensors.clone());
        self.has_rows = false;
        let made = ContinuousBatch::record(model, vocabulary, rows, slots, &config);
        // Nothing listens after the first time.
        let _ = ready.try_send(made.as_ref().map(|_| ()).map_err(Clone::clone));
        let mut slots = made?;
        self.has_rows = true;
        while self.collect() {
            self.admit(&mut slots);
            if self.rows.iter().any(Option::is_some) {
                slots.step(sync_interval, |piece| self.pass(piece))?;
                self.release(&mut slots);
            }
            self.measure(&slots);
        }
        Ok(())
    }

    /// Collects queued jobs, and waits for jobs if the engine is idle; false: it is time to end.
    fn collect(&mut self) -> bool {
        loop {
            match self.jobs.try_recv() {
                Ok(job) => self.waiting.push_back(job),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.closed = true;
                    break;
                }
            }
        }
        // Removes canceled jobs and jobs with a refused constraint anywhere in the queue.
        self.waiting.retain(|job| match job.table.as_ref().and_then(Table::refusal) {
            Some(refusal) => {
                job.events.send(Event::Failed(Failure::Refused(refusal)));
                false
            }
            None => !job.cancel.is_cancelled(),
        });
        while self.waiting.is_empty() && self.rows.iter().all(Option::is_none) {
            if self.closed || self.stop.is_cancelled() {
                return false;
            }
            match self.jobs.recv_timeout(IDLE) {
                Ok(job) => self.waiting.push_back(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.closed = true,
            }
        }
        !self.stop.is_cancelled()
    }

    /// The next job: the oldest job of the client with the fewest rows, and of several clients the
    /// one that was served longest ago. A job that waits for arena space goes first, so that other
    /// jobs do not take the space that becomes free.
    fn next(&self) -> Option<usize> {
        let rows = |client| self.rows.iter().flatten().filter(|running| running.client == client).count();
        let served = |client| self.served.get(&client).copied().unwrap_or(0);
        let waiting = self.waiting.iter().enumerate();
        let next = waiting.min_by_key(|(_, job)| (!job.was_refused, rows(job.client), served(job.client)));
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

    /// Begins the jobs for which there are rows and arena space.
    fn admit<M: ContinuousLm>(&mut self, slots: &mut ContinuousBatch<'_, M>) {
        while slots.idle().next().is_some() {
            let Some(next) = self.next() else { return };
            let Some(mut job) = self.waiting.remove(next) else { return };
            let Sampling { options, stop, stop_tokens, include_stop, min_tokens, special_tokens, seed } =
                job.sampling.clone();
            let (table, pending) = match &job.table {
                None => (None, None),
                Some(Table::Ready(compiled)) => (Some(&compiled.table), None),
                Some(Table::Pending(pending)) => (None, Some(pending.table.clone())),
            };
            let begins_late = pending.is_some();
            let request = Request {
                table,
                pending,
                stop,
                stop_tokens,
                include_stop,
                stop_after: min_tokens,
                special_tokens,
                cache_salt: job.cache_salt.clone(),
                ..Request::new(std::mem::take(&mut job.prompt), job.max_new_tokens)
            };
            let request = request.with_seed(seed).with_cancel(&job.cancel).with_sampling(options);
            let row = slots.idle_for(&request).expect("a row is idle");
            // It enters its row before the model reads it, so that a panic is attributed to it.
            self.rows[row] = Some(Running {
                events: job.events.clone(),
                begun: Instant::now(),
                queued: job.queued,
                last: None,
                tokens: 0,
                min_tokens,
                prompt: request.prompt.len(),
                is_first: job.is_first,
                client: job.client,
                table: job.table.clone(),
                held: Default::default(),
                interval: job.interval,
                passed: None,
            });
            match slots.admit(row, &request) {
                Ok(()) => {
                    job.place.take();
                    self.serve_client(job.client);
                    self.metrics.queue_time.record(job.queued.elapsed());
                    self.metrics.prompt_tokens.increment(request.prompt.len() as u64);
                    if !begins_late {
                        job.events.send(Event::StartedGeneration);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Full => {
                    // The job retries after another answer has ended.
                    self.rows[row] = None;
                    let prompt = request.prompt;
                    self.waiting.push_front(Job { prompt, was_refused: true, ..job });
                    return;
                }
                Err(error) => {
                    self.rows[row] = None;
                    job.events.send(Event::Failed(Failure::Library(error)));
                }
            }
        }
    }

    /// Passes a chunk to its answer.
    fn pass(&mut self, piece: Chunk) {
        let Some(running) = self.rows.get_mut(piece.row).and_then(Option::as_mut) else { return };
        let now = Instant::now();
        let count = piece.tokens.len();
        match running.last {
            None => {
                self.metrics.first_token.record(now - running.queued);
                if matches!(running.table, Some(Table::Pending(_))) {
                    running.events.send(Event::StartedGeneration);
                }
            }
            Some(last) => {
                let each = (now - last) / count.max(1) as u32;
                (0..count).for_each(|_| self.metrics.inter_token.record(each));
            }
        }
        running.last = Some(now);
        running.tokens += count;
        self.metrics.generation_tokens.increment(count as u64);
        let (tokens, text) = &mut running.held;
        tokens.ids.extend(piece.tokens);
        tokens.logprobs.extend(piece.logprobs);
        text.push_str(&piece.text);
        let is_due = |interval| running.passed.is_none_or(|passed| now - passed >= interval);
        if running.interval.is_some_and(is_due) {
            running.passed = Some(now);
            running.pass_held();
        }
    }

    /// Frees the rows of ended answers, and notifies the answers after updating the metrics.
    fn release<M: ContinuousLm>(&mut self, slots: &mut ContinuousBatch<'_, M>) {
        let finished: Vec<usize> = slots.finished().collect();
        let mut ended = Vec::with_capacity(finished.len());
        for row in finished {
            let cached = slots.cached_tokens(row);
            let output = slots.release(row);
            let Some(running) = self.rows[row].take() else { continue };
            if let Some(cached) = cached {
                self.metrics.prefix_queries.increment(running.prompt as u64);
                self.metrics.prefix_hits.increment(cached as u64);
            }
            let ending = output.map(|output| match output.finish {
                FinishReason::EndOfSequence if output.ended_by_budget => Ending::OutOfTokens,
                FinishReason::EndOfSequence => Ending::Complete,
                FinishReason::Stop => Ending::Stop,
                FinishReason::MaxNewTokens => Ending::Length,
                _ => Ending::Cancelled,
            });
            let reason = match ending {
                Ok(Ending::Complete | Ending::Stop) => "stop",
                Ok(Ending::Length | Ending::OutOfTokens) => "length",
                Ok(Ending::Cancelled) => "abort",
                Err(_) => "error",
            };
            let cached_tokens = cached.filter(|_| running.is_first).unwrap_or(0);
            let event = match ending {
                Ok(ending) => {
                    let is_whole = matches!(ending, Ending::Complete | Ending::OutOfTokens);
                    let is_short = is_whole && running.tokens < running.min_tokens;
                    Event::Ended { ending, cached_tokens, is_short }
                }
                Err(error) => Event::Failed(match running.table.as_ref().and_then(Table::refusal) {
                    Some(refusal) => Failure::Refused(refusal),
                    None => Failure::Library(error),
                }),
            };
            self.metrics.finished(reason).increment(1);
            self.metrics.latency.record(running.queued.elapsed());
            tracing::debug!(
                prompt_tokens = running.prompt,
                cached_tokens = cached,
                tokens = running.tokens,
                seconds = running.begun.elapsed().as_secs_f64(),
                reason,
                "an answer ended"
            );
            ended.push((running, event));
        }
        if ended.is_empty() {
            return;
        }
        self.measure(slots);
        for (mut running, event) in ended {
            running.pass_held();
            running.events.send(event);
        }
    }

    fn measure<M: ContinuousLm>(&self, slots: &ContinuousBatch<'_, M>) {
        let running: Vec<&Running> = self.rows.iter().flatten().collect();
        self.metrics.running.set(running.len() as f64);
        self.metrics.waiting.set(self.waiting.len() as f64);
        let used: usize = running.iter().map(|running| running.prompt + running.tokens).sum();
        self.metrics.cache_usage.set(used as f64 / (self.shape.rows * self.shape.slots) as f64);
        let (free, all) = (slots.room().states, slots.room_in_all().states);
        self.metrics.arena_usage.set(1.0 - free as f64 / all.max(1) as f64);
    }

    /// Reports a failure to the answers in the rows.
    fn fail_rows(&mut self, failure: &Failure) {
        for running in self.rows.iter_mut().filter_map(Option::take) {
            self.metrics.finished("error").increment(1);
            running.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.running.set(0.0);
    }

    /// Loads the model again, until it succeeds; answers requested meanwhile fail as well. `None`:
    /// it is time to end.
    pub(super) fn load_again<M>(&mut self, reload: &Reload<M>, lost: &Failure) -> Option<M> {
        while !self.stop.is_cancelled() {
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
    fn give_up(&mut self, failure: &Failure) {
        self.fail_rows(failure);
        self.waiting.extend(self.jobs.try_iter());
        for job in self.waiting.drain(..) {
            job.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.waiting.set(0.0);
    }
}
