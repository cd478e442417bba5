//! Continuous batching: a batch of fixed capacity in which requests begin and end independently.
//!
//! Rows do not wait for each other: a finished row is released, and another request begins in it
//! while the other rows continue. Constraints are stored in an [`Arena`](crate::Arena) on the
//! device: a constraint is loaded when its first request begins, and dropped when its last request
//! is released. A long prompt may be read in chunks between the steps, and a prefix that another
//! row has read already may be copied. The prompt may also be read while the constraint is still
//! being compiled, see [`Request::with_pending`]. Shapes never change, and a step is recorded once.
//! The caller decides when and in which row a request begins; the example `continuous_batching` is
//! a scheduler.

mod model;
mod occupant;
mod prefixes;
mod prompt;
mod session;
mod waiting;

use std::fmt;
use std::time::Duration;

use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{ArenaSpace, Error, Result};

use super::admission::Admission;
use super::config::GenerationConfig;
use super::model::Recordable;
use super::options::SamplingFeatures;
use super::recorded::{RECORDING, Stepped, Steps};
use super::request::{Chunk, Output, Request};
use super::row::NewTokens;
pub use model::ContinuousLm;
use occupant::{Occupant, Progress};
use prompt::Prompt;
use session::ContinuousSession;
use waiting::Waiting;

/// The longest wait of an otherwise idle batch for a pending constraint. After it the caller may
/// admit other requests.
const PATIENCE: Duration = Duration::from_millis(1);

/// A batch of rows in which requests begin and end while the other rows continue; [`ContinuousLm`]
/// has a runnable example.
///
/// ```
/// use burn_dfa::generation::{Output, Request, ContinuousLm, ContinuousBatch};
///
/// /// Runs one request to its end in the first idle row, beside whatever the other rows do.
/// fn run<M: ContinuousLm>(
///     batch: &mut ContinuousBatch<M>,
///     request: &Request,
/// ) -> burn_dfa::Result<Option<Output>> {
///     let Some(row) = batch.idle().next() else { return Ok(None) };
///     batch.admit(row, request)?;
///     while batch.finished().all(|finished| finished != row) {
///         batch.step(8, |_| ())?;
///     }
///     batch.release(row).map(Some)
/// }
/// ```
///
/// The output of a row does not depend on the other rows: it equals the output of
/// [`generate`](super::generate) for the request alone, if the model's logits do not depend on the
/// size of the batch.
///
/// The [`Capacity`](crate::Capacity) of [`GenerationConfig::tensors`] must reserve space for
/// constraints. If the space is exhausted, [`admit`](Self::admit) returns
/// [`ErrorKind::Full`](crate::ErrorKind::Full), and accepts the request after another row was
/// released.
///
/// After a panic of the model or of a callback, every later call returns
/// [`ErrorKind::Model`](crate::ErrorKind::Model).
pub struct ContinuousBatch<'m, M: ContinuousLm> {
    session: Stepped<'m, ContinuousSession<'m, M>>,
    admission: Admission<'m>,
    rows: Vec<Option<Occupant<'m>>>,
    waiting: Waiting,
    capacity: usize,
    sync_interval: usize,
}

impl<'m, M: ContinuousLm> ContinuousBatch<'m, M> {
    /// A batch of `rows` idle rows, each for up to `capacity` tokens of prompt and output together.
    ///
    /// # Errors
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): no rows, no capacity, more capacity than
    ///   the model has positions, no space for constraints, an option out of range, or a processor
    ///   of the application that takes only [batches of fixed rows or another width of
    ///   logits](crate::processor::LogitsProcessor::check_shape);
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): the
    ///   model's logits are narrower than the vocabulary, or the vocabulary has no end-of-sequence
    ///   token;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): the reserved space is larger than
    ///   [`GenerationConfig::tensors`] allows.
    pub fn new(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        rows: usize,
        capacity: usize,
        config: &GenerationConfig,
    ) -> Result<Self> {
        Self::of(model, vocabulary, [rows, capacity], config, |session| Ok(Stepped::run(session)))
    }

    /// As [`new`](Self::new), with the step recorded: a replay serves all requests of the batch.
    /// The CPU cannot record and runs the step again.
    ///
    /// The batch stays on the thread and the stream that recorded it. On another stream every call
    /// returns [`ErrorKind::Input`](crate::ErrorKind::Input).
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Input`](crate::ErrorKind::Input) for a processor or
    /// sampler of the application that may not be recorded, and
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) if the device records graphs, but not of this
    /// step, which reads back or uploads. CUDA accepts an upload, and replays it with the same
    /// data.
    pub fn record(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        rows: usize,
        capacity: usize,
        config: &GenerationConfig,
    ) -> Result<Self>
    where
        M: Recordable,
    {
        let checked = config.check_recordable()?;
        Self::of(model, vocabulary, [rows, capacity], config, |mut session| {
            session.fix()?;
            let session = Stepped::record(session, checked, &model.device())?;
            session.lock()?.log.rewind();
            Ok(session)
        })
    }

    /// A batch of idle rows, whose step is run or recorded.
    fn of(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        [rows, capacity]: [usize; 2],
        config: &GenerationConfig,
        stepped: impl FnOnce(ContinuousSession<'m, M>) -> Result<Stepped<'m, ContinuousSession<'m, M>>>,
    ) -> Result<Self> {
        let mut admission = Admission::new(model, vocabulary, config)?;
        if rows == 0 || capacity == 0 {
            return Err(Error::input(format!("a batch of {rows} rows of {capacity} tokens: it needs both")));
        }
        if let Some(max) = model.max_positions().filter(|&max| capacity > max) {
            return Err(Error::input(format!("rows of {capacity} tokens for a model of {max} positions")));
        }
        for rows in [1, rows] {
            admission.check_rows(
                rows,
                "rows of a continuous batch begin one at a time: keep the data of a row in the processor's state, or give each request a constraint by `Request::with_constraint`",
            )?;
        }
        if config.prompt_chunk.is_some() && !model.reads_in_chunks() {
            return Err(Error::input(
                "prompt_chunk with a model that reads prompts whole: leave it out, or implement `ContinuousLm::extend`",
            ));
        }
        if config.prefix_cache && !(model.reads_in_chunks() && model.copies_prefixes()) {
            return Err(Error::input(
                "prefix_cache with a model that cannot copy what it has read: leave it out, or implement `ContinuousLm::extend` and `ContinuousLm::copy_prefix`",
            ));
        }
        let features = SamplingFeatures::of(&config.sampling).or(config.row_features);
        let steps = config.sync_interval.max(RECORDING);
        let session = ContinuousSession::new(model, vocabulary, [rows, capacity], config, features, steps)?;
        admission.features = features;
        Ok(Self {
            session: stepped(session)?,
            admission,
            rows: (0..rows).map(|_| None).collect(),
            waiting: Waiting::new(config.prompt_chunk),
            capacity,
            sync_interval: config.sync_interval,
        })
    }

    /// Whether a step is one dispatch of recorded launches.
    pub fn is_hardware(&self) -> bool {
        self.session.is_hardware()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Rows that are idle.
    pub fn idle(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.iter().enumerate().filter(|(_, occupant)| occupant.is_none()).map(|(row, _)| row)
    }

    /// The best idle row for a request; `None` if no row is idle.
    ///
    /// With a [prefix cache](GenerationConfig::prefix_cache), the best row holds a prefix of the
    /// prompt and nothing else, or was least recently used. Without, it is the first idle row.
    pub fn idle_for(&self, request: &Request) -> Option<usize> {
        match self.session.host().prefixes() {
            Some(prefixes) => prefixes.choose(self.idle(), &request.prompt, request.cache_salt.as_deref()),
            None => self.idle().next(),
        }
    }

    /// How many prompt tokens of a row were copied by the [prefix
    /// cache](GenerationConfig::prefix_cache); `None` if the row is idle or its prompt still waits
    /// to be read.
    pub fn cached_tokens(&self, row: usize) -> Option<usize> {
        self.rows.get(row)?.as_ref()?.cached
    }

    /// Rows whose output has ended and is not [released](Self::release) yet.
    pub fn finished(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, occupant)| occupant.as_ref().is_some_and(Occupant::is_finished)).map(|(row, _)| row)
    }

    /// The free space for constraints.
    pub fn free_space(&self) -> ArenaSpace {
        self.session.host().arena().free_space()
    }

    /// The total space for constraints, as reserved by [`GenerationConfig::tensors`].
    pub fn arena_capacity(&self) -> ArenaSpace {
        self.session.host().arena().capacity()
    }

    /// Begins a request in an idle row: loads its constraint, reads its prompt and chooses its
    /// first token, which the next [`step`](Self::step) passes to the callback.
    ///
    /// If prompts are [read in chunks](GenerationConfig::prompt_chunk), `step` reads the prompt
    /// between its steps, and the row begins after the last chunk.
    ///
    /// A request with a [pending](Request::pending) constraint is admitted without it. `step` reads
    /// all of its prompt but the last token, or nothing if the model does not [read in
    /// chunks](ContinuousLm::reads_in_chunks). After the constraint is compiled and loaded, `step`
    /// reads the rest, and the row begins. If the compilation fails, or the constraint is refused
    /// as below, the row ends, and [`release`](Self::release) returns the error.
    ///
    /// # Errors
    /// An error changes nothing.
    /// - [`ErrorKind::Full`](crate::ErrorKind::Full): there is no space for the constraint until
    ///   other rows are released, or until an earlier pending constraint is loaded;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): the row does not exist, or is not idle.
    ///   Prompt and `max_new_tokens` exceed the capacity of a row. An option is out of range, or
    ///   uses a feature used neither by the config nor by its
    ///   [`row_features`](GenerationConfig::row_features). The constraint is larger than the total
    ///   space. The prompt or a stop string is empty, `max_new_tokens` is 0, or a prompt token is
    ///   past the model's vocabulary;
    /// - [`ErrorKind::Model`](crate::ErrorKind::Model): a call has panicked before;
    /// - [`ErrorKind::Budget`](crate::ErrorKind::Budget): the constraint needs more than
    ///   `max_new_tokens` tokens;
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): a
    ///   constraint of another vocabulary.
    pub fn admit(&mut self, row: usize, request: &Request) -> Result<()> {
        self.admit_all(&[(row, request)]).pop().expect("a result for the request")
    }

    /// As [`admit`](Self::admit), for several requests at once, each with its row: the model may
    /// read their prompts in one pass. A refused request does not affect the others.
    ///
    /// ```
    /// use burn_dfa::{ErrorKind, Result};
    /// use burn_dfa::generation::{Request, ContinuousLm, ContinuousBatch};
    ///
    /// /// Fills the idle rows; returns the requests that cannot succeed, with their errors.
    /// fn fill<M: ContinuousLm>(
    ///     batch: &mut ContinuousBatch<M>,
    ///     waiting: &mut Vec<Request>,
    /// ) -> Vec<(Request, burn_dfa::Error)> {
    ///     let rows: Vec<usize> = batch.idle().collect();
    ///     let next: Vec<_> = waiting.drain(..rows.len().min(waiting.len())).collect();
    ///     let admitted = batch.admit_all(&rows.into_iter().zip(&next).collect::<Vec<_>>());
    ///     let mut refused = Vec::new();
    ///     for (request, result) in next.into_iter().zip(admitted) {
    ///         match result {
    ///             Ok(()) => {}
    ///             Err(error) if error.kind() == ErrorKind::Full => waiting.push(request),
    ///             Err(error) => refused.push((request, error)),
    ///         }
    ///     }
    ///     refused
    /// }
    /// ```
    pub fn admit_all(&mut self, requests: &[(usize, &Request)]) -> Vec<Result<()>> {
        let mut results: Vec<_> = requests.iter().map(|&(row, request)| self.seat(row, request)).collect();
        let (mut prompts, mut begins) = (Vec::new(), Vec::new());
        for (&(row, request), result) in
            requests.iter().zip(&mut results).filter(|(_, result)| result.is_ok())
        {
            let prompt = Prompt::new(request, self.admission.options(request));
            if self.waiting.takes(request) {
                self.waiting.push(row, request, prompt);
            } else {
                prompts.push((row, prompt));
                begins.push(result);
            }
        }
        // `seat` has returned the same error for every request.
        let Ok(mut session) = self.session.lock() else { return results };
        let read = session.read_whole(&prompts);
        for (((row, prompt), result), (cached, logits)) in prompts.into_iter().zip(begins).zip(read) {
            *result = session.begin(row, &prompt, logits).or_else(|error| {
                self.rows[row] = None;
                session.release(row).and(Err(error))
            });
            if let Some(occupant) = &mut self.rows[row] {
                occupant.progress = Progress::Begun { steps: 0 };
                occupant.cached = Some(cached);
            }
        }
        results
    }

    /// Checks a request and takes an idle row for it.
    fn seat(&mut self, row: usize, request: &Request) -> Result<()> {
        let rows = self.rows.len();
        let mut session = self.session.lock()?;
        let occupant = self.rows.get_mut(row);
        let occupant =
            occupant.ok_or_else(|| Error::input(format!("row {row} of a batch of {rows} rows")))?;
        if occupant.is_some() {
            return Err(Error::input(format!("row {row} is taken: release it first")));
        }
        self.admission.check(row, request)?;
        if request.prompt.len().saturating_add(request.max_new_tokens) > self.capacity {
            return Err(Error::input(format!(
                "row {row}: a prompt of {} tokens and {} new ones exceed the {} tokens of a row",
                request.prompt.len(),
                request.max_new_tokens,
                self.capacity
            )));
        }
        if request.pending.is_none() {
            match self.waiting.full() {
                // The free space is for the constraint that came before.
                Some(full) if request.constraint.is_some() => return Err(full.clone()),
                _ => session.seat(row, request.constraint.as_ref(), request.max_new_tokens)?,
            }
        }
        *occupant = Some(Occupant::new(self.admission.row(row, request)));
        Ok(())
    }

    /// Takes `steps` steps with all rows, and passes the new tokens of each to `on_chunk`. The host
    /// reads the tokens every [`sync_interval`](GenerationConfig::sync_interval) steps and at the
    /// end; `steps` of 0 returns only first tokens.
    ///
    /// If every row waits for a [pending](Request::pending) constraint, `step` waits for at most a
    /// millisecond and takes no more steps, so the caller can admit other requests.
    ///
    /// A row without any choosable token is finished, and [`release`](Self::release) returns its
    /// error. A row whose request was [canceled](super::Cancel) is finished at the host's next
    /// read. The other rows continue.
    ///
    /// # Errors
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) if the tokens could not be read, or a call has
    /// panicked before.
    pub fn step(&mut self, steps: usize, mut on_chunk: impl FnMut(Chunk)) -> Result<()> {
        let mut left = steps;
        loop {
            let now = left.min(self.sync_interval);
            let waits = !self.waiting.is_empty();
            self.read_prompts(0)?;
            if waits && now > 0 && !self.goes_on() {
                // Every row waits for its constraint.
                if self.waiting.wait(PATIENCE) {
                    continue;
                }
                return self.hand_out(Vec::new(), &mut on_chunk);
            }
            for step in 0..now {
                if step > 0 {
                    self.read_prompts(step)?;
                }
                self.session.step()?;
            }
            left -= now;
            let new = self.session.lock()?.read(0..now + 1)?;
            self.hand_out(new, &mut on_chunk)?;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Reads one chunk of the waiting prompts before the next step, which is `steps` steps after
    /// the host's last read. If no row is running, reads until a row begins.
    fn read_prompts(&mut self, steps: usize) -> Result<()> {
        while self.waiting.read(&mut *self.session.lock()?, &mut self.rows, steps) {
            if self.goes_on() {
                break;
            }
        }
        Ok(())
    }

    /// Whether any row has begun and not ended.
    fn goes_on(&self) -> bool {
        self.rows.iter().flatten().any(Occupant::is_running)
    }

    /// Passes the tokens since the last read to their rows and to the caller.
    fn hand_out(&mut self, new: Vec<NewTokens>, on_chunk: &mut impl FnMut(Chunk)) -> Result<()> {
        let (mut session, mut new) = (self.session.lock()?, new.into_iter());
        for (index, occupant) in self.rows.iter_mut().enumerate() {
            let new = new.next().unwrap_or_default();
            let Some(occupant) = occupant.as_mut().filter(|occupant| !occupant.is_finished()) else {
                continue;
            };
            // The first token of a new row, then the tokens of the steps.
            let others = match occupant.progress {
                Progress::Reading => None,
                Progress::Begun { steps } => Some(1..1 + steps),
                Progress::Running => Some(0..1),
            };
            if let Some(others) = others {
                occupant.progress = Progress::Running;
                match occupant.row.append(new.without(others)) {
                    Ok(chunk) if !chunk.tokens.is_empty() => {
                        session.note_chosen(index, &chunk.tokens);
                        on_chunk(chunk);
                    }
                    Ok(_) => {}
                    Err(error) => occupant.error = Some(error),
                }
            }
            occupant.row.end_if_canceled();
            if occupant.is_finished() {
                self.waiting.remove(index);
            }
        }
        Ok(())
    }

    /// Ends a row, finished or not, and returns its output. The row drops its constraint and
    /// becomes idle.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the row does not exist, or is idle;
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) if a call has panicked before. After an error
    /// of the request itself, the row is idle as well:
    /// [`ErrorKind::Model`](crate::ErrorKind::Model) if the logits of all legal tokens were −∞, and
    /// for a [pending](Request::pending) constraint the errors of
    /// [`PendingConstraint::wait`](crate::PendingConstraint::wait) and of [`admit`](Self::admit).
    pub fn release(&mut self, row: usize) -> Result<Output> {
        let mut session = self.session.lock()?;
        let occupant = self.rows.get_mut(row).and_then(Option::take);
        let occupant =
            occupant.ok_or_else(|| Error::input(format!("row {row}: there is no request in it")))?;
        self.waiting.remove(row);
        if occupant.error.is_some() {
            session.forget(row);
        }
        session.release(row)?;
        match occupant.error {
            Some(error) => Err(error),
            None => Ok(occupant.row.into_output()),
        }
    }
}

impl<M: ContinuousLm> fmt::Debug for ContinuousBatch<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContinuousBatch")
            .field("is_hardware", &self.is_hardware())
            .field("rows", &self.rows.len())
            .field("idle", &self.idle().count())
            .field("capacity", &self.capacity)
            .field("sync_interval", &self.sync_interval)
            .finish_non_exhaustive()
    }
}
