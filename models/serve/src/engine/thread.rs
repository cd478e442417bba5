//! The thread that owns the model.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use burn_dfa::generation::{Cancel, Finish, GenerationConfig, Piece, Request, SamplingKinds, SlotLm, Slots};
use burn_dfa::{Result, Vocabulary};

use super::table::Table;
use super::{Ending, Event, Events, Failure, Job, Reload, Sampling, Shape, Tokens};
use crate::metrics::Metrics;

/// How often the thread looks whether it is asked to end while it has nothing to do.
const IDLE: Duration = Duration::from_millis(200);
/// How long to wait before a model is loaded again once more.
const RELOAD: Duration = Duration::from_secs(1);

/// The jobs of the engine: those that wait, and those that are in a row. It outlives a panic of the model.
pub(super) struct Desk {
    jobs: Receiver<Job>,
    /// Whether nobody can send a job any more.
    closed: bool,
    waiting: VecDeque<Job>,
    rows: Vec<Option<Running>>,
    /// Whether rows could be made the last time.
    has_rows: bool,
    shape: Shape,
    metrics: Arc<Metrics>,
    /// Ends the thread, whatever it does.
    stop: Cancel,
}

/// An answer that has a row.
struct Running {
    events: Events,
    begun: Instant,
    queued: Instant,
    last: Option<Instant>,
    tokens: usize,
    prompt: usize,
    is_first: bool,
    /// Its constraint.
    table: Option<Table>,
    /// What was not passed on yet.
    held: (Tokens, String),
    /// How long it may be held, and since when; without, until the end. This spares those who wait from being woken at each
    /// token.
    interval: Option<Duration>,
    passed: Option<Instant>,
}

impl Running {
    /// Passes on what was held, where there is anything.
    fn pass_held(&mut self) {
        let (tokens, text) = std::mem::take(&mut self.held);
        if !tokens.ids.is_empty() || !text.is_empty() {
            self.events.send(Event::Piece { tokens, text });
        }
    }
}

impl Desk {
    pub(super) fn new(jobs: Receiver<Job>, shape: Shape, metrics: Arc<Metrics>, stop: Cancel) -> Self {
        let rows = (0..shape.rows).map(|_| None).collect();
        Self { jobs, closed: false, waiting: VecDeque::new(), rows, has_rows: false, shape, metrics, stop }
    }

    /// Serves until there are no more jobs. After a panic the answers in the rows are given up, and the next begin in new
    /// ones. Says on `ready` whether the first rows could be made. Gives the failure where the device is lost.
    pub(super) fn run<M: SlotLm>(
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
            if matches!(&failure, Failure::Library(error) if error.is_connection()) {
                return Some(failure);
            }
        }
    }

    fn serve<M: SlotLm>(
        &mut self,
        model: &M,
        vocabulary: &Vocabulary,
        ready: &SyncSender<Result<()>>,
    ) -> Result<()> {
        let Shape { rows, slots, read_every, prompt_chunk, prefix_cache, logprobs, ref tensors, .. } =
            self.shape;
        let in_pieces = model.reads_in_pieces();
        let config = GenerationConfig::new()
            .with_read_every(read_every)
            .with_prompt_chunk(in_pieces.then_some(prompt_chunk))
            .with_prefix_cache(prefix_cache && in_pieces && model.copies_prefixes())
            .with_logprobs(logprobs)
            .with_row_options(SamplingKinds::ALL)
            .with_tensors(tensors.clone());
        self.has_rows = false;
        let made = Slots::record(model, vocabulary, rows, slots, &config);
        // Nobody listens after the first time.
        let _ = ready.try_send(made.as_ref().map(|_| ()).map_err(Clone::clone));
        let mut slots = made?;
        self.has_rows = true;
        while self.collect() {
            self.admit(&mut slots);
            if self.rows.iter().any(Option::is_some) {
                slots.step(read_every, |piece| self.pass(piece))?;
                self.release(&mut slots);
            }
            self.measure(&slots);
        }
        Ok(())
    }

    /// Takes in what was queued, and waits for it where there is nothing else to do; false: it is time to end.
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
        // Those that nobody waits for leave the queue, and those whose constraint was refused, whatever stands before them.
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

    /// Begins the jobs for which there are rows and room.
    fn admit<M: SlotLm>(&mut self, slots: &mut Slots<'_, M>) {
        while slots.idle().next().is_some() {
            let Some(mut job) = self.waiting.pop_front() else { return };
            let Sampling { options, stop, seed } = job.sampling.clone();
            let (table, pending) = match &job.table {
                None => (None, None),
                Some(Table::Ready(table)) => (Some(table), None),
                Some(Table::Pending(pending)) => (None, Some(pending.table.clone())),
            };
            let begins_late = pending.is_some();
            let request = Request {
                table,
                pending,
                stop,
                cache_salt: job.cache_salt.clone(),
                ..Request::new(std::mem::take(&mut job.prompt), job.max_new_tokens)
            };
            let request = request.with_seed(seed).with_cancel(&job.cancel).with_sampling(options);
            let row = slots.idle_for(&request).expect("a row is idle");
            // It is in its row before the model sees it, so that a panic is its own.
            self.rows[row] = Some(Running {
                events: job.events.clone(),
                begun: Instant::now(),
                queued: job.queued,
                last: None,
                tokens: 0,
                prompt: request.prompt.len(),
                is_first: job.is_first,
                table: job.table.clone(),
                held: Default::default(),
                interval: job.interval,
                passed: None,
            });
            match slots.admit(row, &request) {
                Ok(()) => {
                    job.place.take();
                    self.metrics.queue_time.record(job.queued.elapsed());
                    self.metrics.prompt_tokens.increment(request.prompt.len() as u64);
                    if !begins_late {
                        job.events.send(Event::Begun);
                    }
                }
                Err(error) if error.is_full() => {
                    // There is room once another answer has ended.
                    self.rows[row] = None;
                    let prompt = request.prompt;
                    self.waiting.push_front(Job { prompt, ..job });
                    return;
                }
                Err(error) => {
                    self.rows[row] = None;
                    job.events.send(Event::Failed(Failure::Library(error)));
                }
            }
        }
    }

    /// Hands a piece to its answer.
    fn pass(&mut self, piece: Piece) {
        let Some(running) = self.rows.get_mut(piece.row).and_then(Option::as_mut) else { return };
        let now = Instant::now();
        let count = piece.tokens.len();
        match running.last {
            None => {
                self.metrics.first_token.record(now - running.queued);
                if matches!(running.table, Some(Table::Pending(_))) {
                    running.events.send(Event::Begun);
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

    /// Makes the rows idle whose answers have ended, and tells them once the metrics know.
    fn release<M: SlotLm>(&mut self, slots: &mut Slots<'_, M>) {
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
                Finish::EndOfSequence => Ending::Complete,
                Finish::Stop => Ending::Stop,
                Finish::MaxNewTokens => Ending::Length,
                _ => Ending::Cancelled,
            });
            let reason = match ending {
                Ok(Ending::Complete | Ending::Stop) => "stop",
                Ok(Ending::Length) => "length",
                Ok(Ending::Cancelled) => "abort",
                Err(_) => "error",
            };
            let cached_tokens = cached.filter(|_| running.is_first).unwrap_or(0);
            let event = match ending {
                Ok(ending) => Event::Ended { ending, cached_tokens },
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

    fn measure<M: SlotLm>(&self, slots: &Slots<'_, M>) {
        let running: Vec<&Running> = self.rows.iter().flatten().collect();
        self.metrics.running.set(running.len() as f64);
        self.metrics.waiting.set(self.waiting.len() as f64);
        let used: usize = running.iter().map(|running| running.prompt + running.tokens).sum();
        self.metrics.cache_usage.set(used as f64 / (self.shape.rows * self.shape.slots) as f64);
        if let Some(arena) = slots.arena() {
            let (free, all) = (arena.room().states, arena.capacity().states);
            self.metrics.arena_usage.set(1.0 - free as f64 / all.max(1) as f64);
        }
    }

    /// Tells the answers in the rows that they will not end.
    fn fail_rows(&mut self, failure: &Failure) {
        for running in self.rows.iter_mut().filter_map(Option::take) {
            self.metrics.finished("error").increment(1);
            running.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.running.set(0.0);
    }

    /// Loads the model again, as often as it takes; answers that are asked for meanwhile fail as those in the rows did. `None`:
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

    /// Tells all answers that they will not end.
    fn give_up(&mut self, failure: &Failure) {
        self.fail_rows(failure);
        self.waiting.extend(self.jobs.try_iter());
        for job in self.waiting.drain(..) {
            job.events.send(Event::Failed(failure.clone()));
        }
        self.metrics.waiting.set(0.0);
    }
}
