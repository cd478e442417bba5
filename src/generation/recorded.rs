//! The steps of a session, run or recorded and replayed.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::{Device, Graph, StreamId, capture};

use super::config::RecordableConfig;
use super::model::Recordable;
use super::row::NewTokens;
use crate::tensor::records;
use burn_dfa_tokens::{Error, Result};

/// The maximum number of steps taken by recording: three to warm up, and the recorded step.
pub(super) const RECORDING: usize = 4;

/// A running batch, which logs the tokens of its steps on the device.
pub(super) trait Steps {
    /// Lets the model read the last tokens, and chooses and logs the next ones.
    fn step(&mut self);

    /// Reads the tokens of every row that some steps chose. Reads come in order.
    fn read(&mut self, steps: Range<usize>) -> Result<Vec<NewTokens>>;
}

/// A session, with the graph of its step if the step is recorded.
pub(super) struct Stepped<'m, S> {
    /// Declared first, so it is dropped before the tensors of the replay. `None`: the step is run.
    graph: Option<StepGraph<'m>>,
    /// A mutex because it is poisoned by a panic, which may have dropped a tensor that the graph
    /// uses.
    session: Rc<Mutex<S>>,
}

struct StepGraph<'m> {
    graph: Graph<(), Box<dyn FnMut() + 'm>>,
    panicked: Rc<Panicked>,
    /// The stream of the recording. A thread may use several streams.
    stream: StreamId,
}

/// The first panic of a step. A panic does not unwind through a recording: the stream would go on
/// recording, and every later allocation on it would fail.
#[derive(Default)]
struct Panicked(Cell<Option<Box<dyn Any + Send>>>);

impl Panicked {
    fn catch(&self, step: impl FnOnce()) {
        match self.0.take() {
            None => self.0.set(catch_unwind(AssertUnwindSafe(step)).err()),
            earlier => self.0.set(earlier),
        }
    }

    fn resume(&self) {
        if let Some(panic) = self.0.take() {
            resume_unwind(panic);
        }
    }
}

impl<'m, S: Steps> Stepped<'m, S> {
    /// A session whose step is run.
    pub(super) fn run(session: S) -> Self {
        Self { graph: None, session: Rc::new(Mutex::new(session)) }
    }

    /// Records the step of a session of the checked configuration, which takes up to [`RECORDING`]
    /// steps.
    pub(super) fn record(session: S, _: RecordableConfig, device: &Device) -> Result<Self>
    where
        S: Recordable + 'm,
    {
        let mut stepped = Self::run(session);
        let session = stepped.session.clone();
        let panicked = Rc::<Panicked>::default();
        let catching = panicked.clone();
        let closure: Box<dyn FnMut() + 'm> = Box::new(move || catching.catch(|| host(&session).step()));
        let graph = capture(device, closure);
        panicked.resume();
        if !graph.is_hardware() && records(device) {
            return Err(Error::model(
                "its step cannot be recorded on this device: it reads back, or makes tensors from host data; generate \
                 without recording",
            ));
        }
        stepped.graph = Some(StepGraph { graph, panicked, stream: StreamId::current() });
        Ok(stepped)
    }

    /// Whether a step is one dispatch of recorded launches.
    pub(super) fn is_hardware(&self) -> bool {
        self.graph.as_ref().is_some_and(|step| step.graph.is_hardware())
    }

    /// The session between two steps.
    ///
    /// # Errors
    /// - [`ErrorKind::Model`](crate::ErrorKind::Model): a call has panicked;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): the step was recorded on another stream.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, S>> {
        if self.graph.as_ref().is_some_and(|step| step.stream != StreamId::current()) {
            return Err(Error::input(
                "the step was recorded on another stream of the device: call it on that stream",
            ));
        }
        self.session.lock().map_err(|_| {
            Error::model("a previous call panicked and may have lost a part of the batch: make a new batch")
        })
    }

    /// The session without the checks, for reading its values on the host.
    pub(super) fn host(&self) -> MutexGuard<'_, S> {
        host(&self.session)
    }

    /// Takes a step.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    #[allow(unsafe_code)]
    pub(super) fn step(&mut self) -> Result<()> {
        match &self.graph {
            None => self.lock()?.step(),
            Some(_) => drop(self.lock()?),
        }
        let Some(StepGraph { graph, panicked, .. }) = &mut self.graph else { return Ok(()) };
        // SAFETY:
        // - Liveness: the step uses tensors of the session, which the closure of the graph owns,
        //   and of the model, which the session borrows for `'m`. `S: Recordable`, so no method of
        //   the session drops or replaces such a tensor. A method that panicked may have dropped
        //   one; then the mutex is poisoned and `lock` has returned an error.
        // - No concurrent use: only this value reaches the session. It is neither `Send` nor
        //   `Sync`, since it holds an `Rc`, and it is borrowed mutably here. `S: Recordable`, so
        //   nobody else has a handle of a buffer that the step writes. Others may read the buffers
        //   that the step only reads.
        // - Same stream: `lock` gives access to the tensors, here and between two steps, only on
        //   the stream of the recording.
        unsafe { graph.replay() };
        panicked.resume();
        Ok(())
    }
}

/// Only models and drafters with the promise are recorded:
///
/// ```
/// use burn_dfa::generation::{
///     CausalLm, ContinuousBatch, ContinuousLm, DecodeGraph, GenerationConfig, Recordable, Request,
/// };
/// use burn_dfa::processor::InPlaceState;
/// use burn_dfa::{Result, Vocabulary};
///
/// fn batch<M: ContinuousLm>(model: &M, words: &Vocabulary) -> Result<()> {
///     ContinuousBatch::new(model, words, 1, 9, &GenerationConfig::new()).map(drop)
/// }
///
/// fn recorded_batch<M: ContinuousLm + Recordable>(model: &M, words: &Vocabulary) -> Result<()> {
///     ContinuousBatch::record(model, words, 1, 9, &GenerationConfig::new()).map(drop)
/// }
///
/// fn graph<M: CausalLm<Cache: InPlaceState> + Recordable>(
///     model: &M,
///     words: &Vocabulary,
/// ) -> Result<()> {
///     DecodeGraph::record(model, words, &[], &GenerationConfig::new(), 9).map(drop)
/// }
/// ```
///
/// ```compile_fail,E0277
/// use burn_dfa::generation::{GenerationConfig, ContinuousLm, ContinuousBatch};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn recorded_batch<M: ContinuousLm>(model: &M, words: &Vocabulary) -> Result<()> {
///     ContinuousBatch::record(model, words, 1, 9, &GenerationConfig::new()).map(drop)
/// }
/// ```
///
/// ```compile_fail,E0277
/// use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig};
/// use burn_dfa::processor::InPlaceState;
/// use burn_dfa::{Result, Vocabulary};
///
/// fn graph<M: CausalLm<Cache: InPlaceState>>(model: &M, words: &Vocabulary) -> Result<()> {
///     DecodeGraph::record(model, words, &[], &GenerationConfig::new(), 9).map(drop)
/// }
/// ```
///
/// A drafter needs the promise as well:
///
/// ```compile_fail,E0277
/// use burn_dfa::generation::speculative::{Drafter, TreeLm, speculate_recorded};
/// use burn_dfa::generation::{GenerationConfig, Recordable};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run<M: TreeLm + Recordable>(
///     model: &M,
///     drafter: impl Drafter,
///     words: &Vocabulary,
/// ) -> Result<()> {
///     speculate_recorded(model, words, &[], &GenerationConfig::new(), drafter).map(drop)
/// }
/// ```
///
/// A batch does not expose its arena, since a clone of the arena would share the buffers of the
/// recorded step:
///
/// ```compile_fail,E0599
/// use burn_dfa::generation::{ContinuousLm, ContinuousBatch};
///
/// fn arena<M: ContinuousLm>(batch: &ContinuousBatch<M>) -> burn_dfa::Arena {
///     batch.arena().unwrap().clone()
/// }
/// ```
#[cfg(doctest)]
struct Promises;

fn host<S>(session: &Mutex<S>) -> MutexGuard<'_, S> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
