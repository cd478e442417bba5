//! A batch of fixed capacity whose rows are requests that come and go.
//!
//! Rows do not wait for each other: a row that has ended is released, and another request begins in it while the others
//! go on (continuous batching). Constraints lie in an [`Arena`] on the device: a constraint is loaded when its first
//! request begins, and dropped when its last one is released. A long prompt may be read in pieces between the steps, and
//! what another row has read of it already may be copied. It may also be read while the constraint is still being
//! compiled, see [`Request::with_pending`]. Shapes never change, and a step is recorded once. The caller
//! decides which request begins where and when; the example `continuous_batching` is a scheduler.

mod model;
mod prefixes;
mod prompts;
mod session;

use std::cell::{Ref, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::table::TokenTable;
use crate::tensor::Arena;
use crate::vocabulary::Vocabulary;

use super::batch::{check_model, check_request};
use super::config::GenerationConfig;
use super::graph::{INSTEAD, RECORDING, StepGraph, record_step, replay};
use super::log::NewLines;
use super::options::SamplingOptions;
use super::request::{Output, Piece, Request};
use super::row::Row;
pub use model::SlotLm;
use prompts::{Prompt, Waiting};
use session::SlotSession;

/// The longest wait for a table by a batch that has nothing else to do: then the caller may admit others.
const PATIENCE: Duration = Duration::from_millis(1);

/// A batch of rows in which requests begin and end while the other rows go on; [`SlotLm`] has a runnable example.
///
/// ```
/// use burn_dfa::generation::{Output, Request, SlotLm, Slots};
///
/// /// Runs one request to its end in the first idle row, beside whatever the other rows do.
/// fn run<M: SlotLm>(slots: &mut Slots<M>, request: &Request) -> burn_dfa::Result<Option<Output>> {
///     let Some(row) = slots.idle().next() else { return Ok(None) };
///     slots.admit(row, request)?;
///     while slots.finished().all(|finished| finished != row) {
///         slots.step(8, |_| ())?;
///     }
///     slots.release(row).map(Some)
/// }
/// ```
///
/// What a row writes does not depend on its neighbours: it is what [`generate`](super::generate) writes for the
/// request alone, as far as the model's logits do not depend on the size of the batch.
///
/// [`GenerationConfig::tensors`] must say in its [`Capacity`](crate::Capacity) how much room there is for constraints.
/// Where it is taken, [`admit`](Self::admit) says so, and accepts the request once another row was released.
pub struct Slots<'m, M: SlotLm> {
    /// Dropped before the tensors that it replays on.
    graph: Option<StepGraph<'m>>,
    session: Rc<RefCell<SlotSession<'m, M>>>,
    vocabulary: &'m Vocabulary,
    /// Of the rows that do not bring their own.
    sampling: SamplingOptions,
    unconstrained: TokenTable,
    rows: Vec<Option<Occupant<'m>>>,
    waiting: Waiting,
    capacity: usize,
    read_every: usize,
}

/// The request of a row that is not idle.
struct Occupant<'m> {
    row: Row<'m>,
    progress: Progress,
    /// Tokens of the prompt that were copied, once it is being read.
    cached: Option<usize>,
    error: Option<Error>,
}

/// How far a row is.
enum Progress {
    /// Its prompt is being read, or its table compiled.
    Reading,
    /// It began since the host's last read, after so many steps: its first token waits to be read.
    Begun { steps: usize },
    /// Its first token was read.
    Running,
}

impl Occupant<'_> {
    fn is_finished(&self) -> bool {
        self.error.is_some() || self.row.is_finished()
    }
}

impl<'m, M: SlotLm> Slots<'m, M> {
    /// A batch of `rows` idle rows, each for up to `capacity` tokens of prompt and output together.
    ///
    /// # Errors
    /// - [`Error::is_input`]: no rows, no slots, more slots than the model has positions, no room for constraints, or
    ///   an option out of range;
    /// - [`Error::is_incompatible_vocabulary`]: the model's logits are narrower than the vocabulary, or it names no
    ///   end of sequence;
    /// - [`Error::is_limit`]: the room is larger than [`GenerationConfig::tensors`] allows.
    pub fn new(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        rows: usize,
        capacity: usize,
        config: &GenerationConfig,
    ) -> Result<Self> {
        config.check()?;
        check_model(model, vocabulary)?;
        if rows == 0 || capacity == 0 {
            return Err(Error::input(format!("a batch of {rows} rows of {capacity} slots: it needs both")));
        }
        if let Some(most) = model.max_positions().filter(|&most| capacity > most) {
            return Err(Error::input(format!("rows of {capacity} slots of a model of {most} positions")));
        }
        if config.prompt_chunk.is_some() && !model.reads_in_pieces() {
            return Err(Error::input(
                "prompt_chunk with a model that reads prompts whole: leave it out, or implement `SlotLm::extend`",
            ));
        }
        if config.prefix_cache && !(model.reads_in_pieces() && model.copies_prefixes()) {
            return Err(Error::input(
                "prefix_cache with a model that cannot copy what it has read: leave it out, or implement `SlotLm::extend` and `SlotLm::copy_prefix`",
            ));
        }
        let steps = config.read_every.max(RECORDING);
        let session = SlotSession::new(model, vocabulary, [rows, capacity], config, steps)?;
        Ok(Self {
            graph: None,
            session: Rc::new(RefCell::new(session)),
            vocabulary,
            sampling: config.sampling.clone(),
            unconstrained: TokenTable::unconstrained(vocabulary),
            rows: (0..rows).map(|_| None).collect(),
            waiting: Waiting::new(config.prompt_chunk),
            capacity,
            read_every: config.read_every,
        })
    }

    /// As [`new`](Self::new), with the step recorded: a replay serves whatever requests are in the rows, for as long
    /// as the batch lives. A device that cannot record, the CPU, runs the step again.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::is_model`] where the device records graphs, but not of this step, which reads
    /// back or uploads.
    pub fn record(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        rows: usize,
        capacity: usize,
        config: &GenerationConfig,
    ) -> Result<Self> {
        let mut slots = Self::new(model, vocabulary, rows, capacity, config)?;
        slots.session.borrow_mut().fix()?;
        let session = slots.session.clone();
        let step = Box::new(move || session.borrow_mut().step());
        slots.graph = Some(record_step(&model.device(), step, INSTEAD)?);
        slots.session.borrow_mut().rewind();
        Ok(slots)
    }

    /// Whether a step is a dispatch of recorded launches.
    pub fn is_hardware(&self) -> bool {
        self.graph.as_ref().is_some_and(StepGraph::is_hardware)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Rows that are idle.
    pub fn idle(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.iter().enumerate().filter(|(_, occupant)| occupant.is_none()).map(|(row, _)| row)
    }

    /// The idle row in which a request begins best; `None` where no row is idle.
    ///
    /// With a [prefix cache](GenerationConfig::prefix_cache) that is a row that holds the beginning of the prompt and nothing
    /// else, else the one that was not used for longest; without, the first.
    pub fn idle_for(&self, request: &Request) -> Option<usize> {
        match self.session.borrow().prefixes() {
            Some(prefixes) => prefixes.choose(self.idle(), &request.prompt, request.cache_salt.as_deref()),
            None => self.idle().next(),
        }
    }

    /// How many tokens of the prompt in a row were copied from what a row held already, by the
    /// [prefix cache](GenerationConfig::prefix_cache); `None` where the row is idle or its prompt still waits to be read.
    pub fn cached_tokens(&self, row: usize) -> Option<usize> {
        self.rows.get(row)?.as_ref()?.cached
    }

    /// Rows whose output has ended and is not [released](Self::release) yet.
    pub fn finished(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, occupant)| occupant.as_ref().is_some_and(Occupant::is_finished)).map(|(row, _)| row)
    }

    /// The constraints that are loaded, and the room that is left.
    pub fn arena(&self) -> Option<Ref<'_, Arena>> {
        Ref::filter_map(self.session.borrow(), |session| session.arena()).ok()
    }

    /// Begins a request in an idle row: loads its constraint, reads its prompt and chooses its first token, which
    /// the next [`step`](Self::step) hands out.
    ///
    /// Where prompts are [read in pieces](GenerationConfig::prompt_chunk), the steps read it, and the row begins amid them.
    ///
    /// A request whose table is [pending](Request::pending) is admitted without it. The steps read its prompt, all but the last
    /// token; where the model does not [read in pieces](SlotLm::reads_in_pieces) none of it. Once the table is there, and
    /// there is room for it, they read the rest, and the row begins. A table that cannot be had, or is refused as below, ends
    /// the row, and [`release`](Self::release) gives the error.
    ///
    /// # Errors
    /// Nothing has changed then.
    /// - [`Error::is_full`]: there is no room for the constraint until other rows are released, or until a pending one that
    ///   came before has its room;
    /// - [`Error::is_input`]: there is no such row, or it is not idle; prompt and `max_new_tokens` exceed the slots of a
    ///   row; options out of range, or of a kind that neither the config nor its
    ///   [`row_options`](GenerationConfig::row_options) use; the constraint exceeds the whole room; an empty prompt,
    ///   `max_new_tokens` of 0, an empty stop string, a prompt token past the model's vocabulary;
    /// - [`Error::is_budget`]: the constraint needs more than `max_new_tokens` tokens;
    /// - [`Error::is_incompatible_vocabulary`]: a table of another vocabulary.
    pub fn admit(&mut self, row: usize, request: &Request) -> Result<()> {
        self.admit_all(&[(row, request)]).pop().expect("a result for the request")
    }

    /// As [`admit`](Self::admit), several requests at once, each with its row: the model may read their prompts in one
    /// pass. One that is refused leaves the others as they are.
    ///
    /// ```
    /// use burn_dfa::Result;
    /// use burn_dfa::generation::{Request, SlotLm, Slots};
    ///
    /// /// Fills the idle rows; gives the requests that are not to be tried again, with their errors.
    /// fn fill<'a, M: SlotLm>(
    ///     slots: &mut Slots<M>,
    ///     waiting: &mut Vec<Request<'a>>,
    /// ) -> Vec<(Request<'a>, burn_dfa::Error)> {
    ///     let rows: Vec<usize> = slots.idle().collect();
    ///     let next: Vec<_> = waiting.drain(..rows.len().min(waiting.len())).collect();
    ///     let admitted = slots.admit_all(&rows.into_iter().zip(&next).collect::<Vec<_>>());
    ///     let mut refused = Vec::new();
    ///     for (request, result) in next.into_iter().zip(admitted) {
    ///         match result {
    ///             Ok(()) => {}
    ///             Err(error) if error.is_full() => waiting.push(request),
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
            let prompt = Prompt::new(request, &self.sampling);
            if self.waiting.takes(request) {
                self.waiting.push(row, request, prompt);
            } else {
                prompts.push((row, prompt));
                begins.push(result);
            }
        }
        let mut session = self.session.borrow_mut();
        let read = session.read_whole(&prompts);
        for (((row, prompt), result), (cached, logits)) in prompts.into_iter().zip(begins).zip(read) {
            *result = session.begin(row, &prompt, logits).or_else(|error| {
                self.rows[row] = None;
                session.vacate(row).and(Err(error))
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
        let occupant = self.rows.get_mut(row);
        let occupant =
            occupant.ok_or_else(|| Error::input(format!("row {row} of a batch of {rows} rows")))?;
        if occupant.is_some() {
            return Err(Error::input(format!("row {row} is taken: release it first")));
        }
        let mut session = self.session.borrow_mut();
        check_request(row, request, session.model().vocab_size(), self.vocabulary)?;
        if request.prompt.len().saturating_add(request.max_new_tokens) > self.capacity {
            return Err(Error::input(format!(
                "row {row}: a prompt of {} tokens and {} new ones exceed the {} slots of a row",
                request.prompt.len(),
                request.max_new_tokens,
                self.capacity
            )));
        }
        session.kinds().admit(row, request.sampling.as_ref().unwrap_or(&self.sampling))?;
        if request.pending.is_none() {
            match self.waiting.full() {
                // What is free is for the table that came before.
                Some(full) if request.table.is_some() => return Err(full.clone()),
                _ => session.seat(row, request.table, request.max_new_tokens)?,
            }
        }
        *occupant = Some(Occupant {
            row: Row::new(request, self.vocabulary, &self.unconstrained),
            progress: Progress::Reading,
            cached: None,
            error: None,
        });
        Ok(())
    }

    /// Takes `steps` steps with all rows, and hands the new tokens of each to `on_piece`. The host reads them every
    /// [`read_every`](GenerationConfig::read_every) steps and at the end; `steps` of 0 hands out first tokens.
    ///
    /// Where nothing is left to do but to wait for tables that are [pending](Request::pending), it waits for a millisecond at
    /// most and takes no more steps, so that other requests can be admitted.
    ///
    /// A row that the model gives nothing to choose from is finished, and its error comes from
    /// [`release`](Self::release); one whose request was [cancelled](super::Cancel) is finished when the host next
    /// reads. The others go on.
    ///
    /// # Errors
    /// [`Error::is_model`] where the tokens could not be read.
    pub fn step(&mut self, steps: usize, mut on_piece: impl FnMut(Piece)) -> Result<()> {
        let mut left = steps;
        loop {
            let now = left.min(self.read_every);
            let waits = !self.waiting.is_empty();
            self.read_prompts(0);
            if waits && now > 0 && !self.goes_on() {
                // Every row waits for its table.
                if self.waiting.wait(PATIENCE) {
                    continue;
                }
                self.hand_out(&NewLines::default(), &mut on_piece);
                return Ok(());
            }
            for step in 0..now {
                if step > 0 {
                    self.read_prompts(step);
                }
                match &mut self.graph {
                    Some(graph) => replay(graph),
                    None => self.session.borrow_mut().step(),
                }
            }
            left -= now;
            let lines = self.session.borrow_mut().read(now)?;
            self.hand_out(&lines, &mut on_piece);
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Reads of the prompts that wait what may be read before the next step, which is `steps` steps after the host's last
    /// read; where no row is held up, up to the end of one.
    fn read_prompts(&mut self, steps: usize) {
        while self.waiting.read(&mut self.session.borrow_mut(), &mut self.rows, steps) {
            if self.goes_on() {
                return;
            }
        }
    }

    /// Whether a row has begun and not ended.
    fn goes_on(&self) -> bool {
        let mut rows = self.rows.iter().flatten();
        rows.any(|row| !row.is_finished() && !matches!(row.progress, Progress::Reading))
    }

    /// Hands the tokens since the last read to their rows and the caller.
    fn hand_out(&mut self, lines: &NewLines, on_piece: &mut impl FnMut(Piece)) {
        let rows = self.rows.len();
        let mut session = self.session.borrow_mut();
        for (index, occupant) in self.rows.iter_mut().enumerate() {
            let Some(occupant) = occupant.as_mut().filter(|occupant| !occupant.is_finished()) else {
                continue;
            };
            // The first line is for the first tokens of those that are new.
            let others = match occupant.progress {
                Progress::Reading => None,
                Progress::Begun { steps } => Some(1..1 + steps),
                Progress::Running => Some(0..1),
            };
            if let Some(others) = others {
                occupant.progress = Progress::Running;
                match occupant.row.append(lines.of_row(index, rows).without(others)) {
                    Ok(new) if !new.tokens.is_empty() => {
                        session.note_chosen(index, &new.tokens);
                        on_piece(new.of_row(index));
                    }
                    Ok(_) => {}
                    Err(error) => occupant.error = Some(error),
                }
            }
            occupant.row.end_if_cancelled();
            if occupant.is_finished() {
                self.waiting.remove(index);
            }
        }
    }

    /// Ends a row, finished or not, and gives its output; its constraint is dropped, and the row is idle.
    ///
    /// # Errors
    /// [`Error::is_input`] where there is no such row, or it is idle. The row is idle all the same where the error is that of
    /// the request: [`Error::is_model`] where the logits of all tokens that it might emit were −∞; where its table was
    /// [pending](Request::pending), what [`PendingTable::wait`](crate::PendingTable::wait) says, or [`admit`](Self::admit) would
    /// have said of the table.
    pub fn release(&mut self, row: usize) -> Result<Output> {
        let occupant = self.rows.get_mut(row).and_then(Option::take);
        let occupant =
            occupant.ok_or_else(|| Error::input(format!("row {row}: there is no request in it")))?;
        self.waiting.remove(row);
        let mut session = self.session.borrow_mut();
        if occupant.error.is_some() {
            session.forget(row);
        }
        session.vacate(row)?;
        match occupant.error {
            Some(error) => Err(error),
            None => Ok(occupant.row.into_output()),
        }
    }
}

impl<M: SlotLm> fmt::Debug for Slots<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("is_hardware", &self.is_hardware())
            .field("rows", &self.rows.len())
            .field("idle", &self.idle().count())
            .field("capacity", &self.capacity)
            .field("read_every", &self.read_every)
            .finish_non_exhaustive()
    }
}
