//! The thread that owns the model.

use burn_dfa::ErrorKind;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use burn_dfa::generation::{Cancel, ContinuousBatch, ContinuousLm, GenerationConfig, Recordable, Request};
use burn_dfa::{Result, Vocabulary};
use tokio::sync::{mpsc, oneshot};

use super::{Batch, Failure, Job, Progress, Sizes};

/// Serves until all senders are gone. After a failure, the current batches are abandoned, and the
/// next batches begin in new rows. Reports on `ready` whether the first rows could be made.
pub(super) fn run<M: ContinuousLm + Recordable>(
    model: &M,
    vocabulary: &Vocabulary,
    sizes: Sizes,
    batches: mpsc::Receiver<Batch>,
    progress: Arc<Progress>,
    ready: &SyncSender<Result<()>>,
) {
    let rows = (0..sizes.rows).map(|_| None).collect();
    let mut desk = Scheduler { batches, waiting: VecDeque::new(), rows, sizes, progress };
    loop {
        let mut has_rows = false;
        let serve = || {
            let config = GenerationConfig::new()
                .with_sync_interval(desk.sizes.sync_interval)
                .with_tensors(desk.sizes.tensors());
            let made = ContinuousBatch::record(model, vocabulary, desk.sizes.rows, desk.sizes.slots, &config);
            // Nothing listens after the first time.
            let _ = ready.try_send(made.as_ref().map(|_| ()).map_err(Clone::clone));
            let mut slots = made?;
            has_rows = true;
            desk.serve(&mut slots)
        };
        let failure = match catch_unwind(AssertUnwindSafe(serve)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Failure::Library(error),
            Err(_) => Failure::Panic,
        };
        desk.give_up(&failure);
        if !has_rows {
            return;
        }
    }
}

/// The waiting and the running jobs of the engine.
struct Scheduler {
    batches: mpsc::Receiver<Batch>,
    waiting: VecDeque<Waiting>,
    rows: Vec<Option<Place>>,
    sizes: Sizes,
    progress: Arc<Progress>,
}

/// The jobs of a batch without a row, the next one last.
struct Waiting {
    jobs: Vec<(usize, Job)>,
    answers: Rc<RefCell<Answers>>,
}

/// The position of a row's answer in its batch.
#[derive(Clone)]
struct Place {
    index: usize,
    answers: Rc<RefCell<Answers>>,
}

/// The answers of a batch.
struct Answers {
    texts: Vec<Vec<u8>>,
    left: usize,
    cancel: Cancel,
    reply: Option<oneshot::Sender<std::result::Result<Vec<Vec<u8>>, Failure>>>,
}

impl Answers {
    fn put(&mut self, index: usize, text: Vec<u8>) {
        self.texts[index] = text;
        self.left -= 1;
        if self.left == 0 {
            let texts = std::mem::take(&mut self.texts);
            self.reply(Ok(texts));
        }
    }

    /// Sends the first reply, and cancels the other rows of the batch.
    fn reply(&mut self, reply: std::result::Result<Vec<Vec<u8>>, Failure>) {
        if let Some(sender) = self.reply.take() {
            self.cancel.cancel();
            // A missing receiver has canceled the batch.
            let _ = sender.send(reply);
        }
    }
}

impl Scheduler {
    fn serve<M: ContinuousLm>(&mut self, slots: &mut ContinuousBatch<'_, M>) -> Result<()> {
        while self.collect() {
            self.admit(slots);
            if self.rows.iter().any(Option::is_some) {
                let tokens = &self.progress.tokens;
                slots.step(self.sizes.sync_interval, |piece| {
                    tokens.fetch_add(piece.tokens.len() as u64, Ordering::Relaxed);
                })?;
                self.release(slots);
            }
        }
        Ok(())
    }

    /// Takes the next batch if none waits, and blocks if the engine is idle; false: it is time to
    /// end.
    fn collect(&mut self) -> bool {
        self.waiting.retain(|batch| !batch.answers.borrow().cancel.is_cancelled());
        while self.waiting.is_empty() {
            let batch = if self.rows.iter().any(Option::is_some) {
                self.batches.try_recv().ok()
            } else {
                self.batches.blocking_recv()
            };
            match batch {
                Some(batch) if batch.cancel.is_cancelled() => {}
                Some(batch) => self.waiting.push_back(Waiting::new(batch)),
                None => break,
            }
        }
        !self.waiting.is_empty() || self.rows.iter().any(Option::is_some)
    }

    /// The next job, in the order of batches and of their jobs.
    fn next(&mut self) -> Option<(Place, Job)> {
        loop {
            let batch = self.waiting.front_mut()?;
            match batch.jobs.pop() {
                Some((index, job)) => return Some((Place { index, answers: batch.answers.clone() }, job)),
                None => _ = self.waiting.pop_front(),
            }
        }
    }

    /// Begins jobs as far as idle rows and capacity allow.
    fn admit<M: ContinuousLm>(&mut self, slots: &mut ContinuousBatch<'_, M>) {
        let idle: Vec<usize> = slots.idle().collect();
        let mut seats = Vec::new();
        for row in idle {
            // Rows of the next batch begin while the last ones of this batch end.
            if self.waiting.iter().all(|batch| batch.jobs.is_empty())
                && let Ok(batch) = self.batches.try_recv()
            {
                self.waiting.push_back(Waiting::new(batch));
            }
            let Some((place, job)) = self.next() else { break };
            seats.push((row, place, job));
        }
        let requests: Vec<_> = seats
            .iter()
            .map(|(row, place, job)| {
                let request =
                    Request::new(job.prompt.clone(), job.max_new_tokens).with_constraint(&job.table);
                (*row, request.with_cancel(&place.answers.borrow().cancel))
            })
            .collect();
        let results =
            slots.admit_all(&requests.iter().map(|(row, request)| (*row, request)).collect::<Vec<_>>());
        drop(requests);
        // In reverse, so that jobs without capacity are queued in their order again.
        for ((row, place, job), result) in seats.into_iter().zip(results).rev() {
            match result {
                Ok(()) => self.rows[row] = Some(place),
                Err(error) if error.kind() == ErrorKind::Full => self.put_back(place, job),
                Err(error) => place.answers.borrow_mut().reply(Err(Failure::Library(error))),
            }
        }
    }

    /// Queues a job again, until another row has ended.
    fn put_back(&mut self, place: Place, job: Job) {
        match self.waiting.front_mut() {
            Some(batch) if Rc::ptr_eq(&batch.answers, &place.answers) => batch.jobs.push((place.index, job)),
            _ => self.waiting.push_front(Waiting { jobs: vec![(place.index, job)], answers: place.answers }),
        }
    }

    /// Frees the rows of ended answers.
    fn release<M: ContinuousLm>(&mut self, slots: &mut ContinuousBatch<'_, M>) {
        let finished: Vec<usize> = slots.finished().collect();
        for row in finished {
            let output = slots.release(row);
            let Some(Place { index, answers }) = self.rows[row].take() else { continue };
            match output {
                Ok(output) if output.is_complete() => {
                    self.progress.rows.fetch_add(1, Ordering::Relaxed);
                    answers.borrow_mut().put(index, output.bytes);
                }
                // A constrained row is incomplete only if it was canceled.
                Ok(_) => {}
                Err(error) => answers.borrow_mut().reply(Err(Failure::Library(error))),
            }
        }
    }

    /// Reports a failure to all batches.
    fn give_up(&mut self, failure: &Failure) {
        let rows = self.rows.iter_mut().filter_map(Option::take).map(|place| place.answers);
        for answers in rows.chain(self.waiting.drain(..).map(|batch| batch.answers)) {
            answers.borrow_mut().reply(Err(failure.clone()));
        }
    }
}

impl Waiting {
    fn new(batch: Batch) -> Self {
        let Batch { jobs, cancel, reply } = batch;
        let answers =
            Answers { texts: vec![Vec::new(); jobs.len()], left: jobs.len(), cancel, reply: Some(reply) };
        let mut jobs: Vec<_> = jobs.into_iter().enumerate().collect();
        jobs.sort_by_key(|(_, job)| job.prompt.len());
        Self { jobs, answers: Rc::new(RefCell::new(answers)) }
    }
}
