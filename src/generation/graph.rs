//! The decode step, recorded once and replayed.
//!
//! A step of [`generate`](super::generate) issues a few hundred operations, and the host prepares the launch of each.
//! Their shapes never change, and all that a step reads and writes lies in buffers that live as long as the batch: the
//! cache, the states of the processors, the last tokens, the number of the step, the tokens so far. So the step can be
//! recorded once, and a replay is one dispatch on the host's side: a CUDA graph on CUDA, a list of prepared dispatches
//! on WGPU. The CPU, which cannot record, runs the step again.
//!
//! What a new batch brings (its prompts, constraints, budgets and seeds) is written into the same buffers.

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use burn::tensor::{Device, Graph, capture};

use super::batch::Batch;
use super::config::GenerationConfig;
use super::model::CausalLm;
use super::options::{SamplingKinds, SamplingOptions};
use super::pieces::{Pieces, ReadSchedule, StepSource};
use super::request::{Output, Piece, Request};
use super::session::Session;
use crate::error::{Error, Result};
use crate::processor::Persistent;
use crate::table::TokenTable;
use crate::tensor::records;
use crate::vocabulary::Vocabulary;

/// What to do where a step cannot be recorded.
pub(super) const INSTEAD: &str = "do without a graph";

/// Slots that recording takes: a prompt of one token, three steps to warm up, and the recorded one.
pub(super) const RECORDING: usize = 5;

/// A recorded decode step, for batches of one size.
///
/// It writes the same tokens as [`generate`](super::generate) with the same requests and configuration. Between two
/// batches the prompts, budgets and seeds may change, and so may the constraints, within the capacity that
/// [`TensorOptions`](crate::TensorOptions) reserves, and the [options](SamplingOptions) of the rows, within the kinds that
/// the recorded requests, the config or its [`row_options`](GenerationConfig::row_options) use; the number of rows and the
/// [`GenerationConfig`] may not.
///
/// The graph borrows the model. The model's [`step`](CausalLm::step) must read nothing but its weights and the cache,
/// upload nothing, and leave the cache in the buffers it found it in, see [`Persistent`]. The graph stays on the thread
/// that recorded it, as its device requires.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig, Request};
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
///
/// /// Always says the token after the last one, up to the end.
/// struct Counting(Device);
///
/// impl CausalLm for Counting {
///     type Cache = ();
///     fn device(&self) -> Device {
///         self.0.clone()
///     }
///     fn vocab_size(&self) -> usize {
///         3
///     }
///     fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
///         let [batch, length] = tokens.dims();
///         (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
///     }
///     fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         (tokens.cast(DType::I32) + 1).clamp_max(2).one_hot::<2>(3).float()
///     }
/// }
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let table = TokenTable::compile(&Constraint::regex("[ab]{2}")?, &vocabulary, &Limits::default())?;
/// let model = Counting(Device::flex());
/// let requests = [Request::new(vec![TokenId(0)], 8).with_table(&table)];
///
/// let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 16)?;
/// assert!(!graph.is_hardware()); // the CPU records nothing
/// let outputs = graph.generate(&requests, |_| ControlFlow::Continue(()))?;
/// assert_eq!(outputs[0].text(), "ba");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub struct DecodeGraph<'m, M: CausalLm> {
    /// Dropped before the tensors that it replays on.
    graph: StepGraph<'m>,
    session: Rc<RefCell<Session<'m, M>>>,
    vocabulary: &'m Vocabulary,
    /// Of the rows that do not bring their own.
    sampling: SamplingOptions,
    unconstrained: TokenTable,
    read_every: usize,
    batch: usize,
    capacity: usize,
}

impl<'m, M: CausalLm<Cache: Persistent>> DecodeGraph<'m, M> {
    /// Records the step for batches of as many rows as `requests`, with `capacity` slots for the tokens of a
    /// row, prompt and output together.
    ///
    /// The requests stand for those to come; nothing is generated yet. Their constraints must fit what
    /// [`GenerationConfig::tensors`] reserves; where it reserves nothing, later constraints must fit in the place of
    /// these.
    ///
    /// # Errors
    /// As [`generate`](super::generate), and:
    /// - [`Error::is_input`]: a `capacity` below 5, which recording takes, or above the positions of the model;
    /// - [`Error::is_model`]: the device records graphs, but not of this step, which reads back or uploads.
    pub fn record(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        requests: &[Request],
        config: &GenerationConfig,
        capacity: usize,
    ) -> Result<Self> {
        config.check()?;
        if capacity < RECORDING {
            return Err(Error::input(format!(
                "a graph of {capacity} slots: recording alone takes {RECORDING}"
            )));
        }
        if let Some(most) = model.max_positions().filter(|&most| capacity > most) {
            return Err(Error::input(format!("a graph of {capacity} slots of a model of {most} positions")));
        }
        let unconstrained = TokenTable::unconstrained(vocabulary);
        let mut short = requests.to_vec();
        short.iter_mut().for_each(|request| request.prompt.truncate(1));
        let batch = Batch::new(model, vocabulary, &short, &config.sampling, &unconstrained)?;
        let kinds = batch.kinds().or(SamplingKinds::of(&config.sampling)).or(config.row_options);
        let session = Session::start(model, vocabulary, &batch, config, kinds, capacity)?;
        let session = Rc::new(RefCell::new(session));
        let graph = {
            let session = session.clone();
            record_step(&model.device(), Box::new(move || session.borrow_mut().step()), INSTEAD)?
        };
        let batch = batch.len();
        Ok(Self {
            graph,
            session,
            vocabulary,
            sampling: config.sampling.clone(),
            unconstrained,
            read_every: config.read_every,
            batch,
            capacity,
        })
    }

    /// Whether a replay is a dispatch of recorded launches; on the CPU it runs the step again.
    ///
    /// A device that can record, but not this step, is an error of [`record`](Self::record) and never runs it again
    /// instead.
    pub fn is_hardware(&self) -> bool {
        self.graph.is_hardware()
    }

    /// Generates the outputs of a batch of requests as [`generate`](super::generate) does.
    ///
    /// The prompts are read outside of the graph, all their tokens at once; every token after the first is a replay.
    ///
    /// # Errors
    /// As [`generate`](super::generate), and [`Error::is_input`] for another number of rows, or prompts and
    /// outputs that exceed the capacity. After an error the graph serves the next batch.
    pub fn generate(
        &mut self,
        requests: &[Request],
        on_piece: impl FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<Vec<Output>> {
        Ok(self.stream(requests)?.for_each_piece(on_piece)?.stop())
    }

    /// Begins to generate as [`generate`](Self::generate) does; the iterator replays whenever it is asked for a
    /// piece.
    ///
    /// # Errors
    /// As [`generate`](Self::generate).
    pub fn stream(&mut self, requests: &[Request]) -> Result<Pieces<'_>> {
        let session = self.session.clone();
        let model = session.borrow().model();
        let batch = Batch::new(model, self.vocabulary, requests, &self.sampling, &self.unconstrained)?;
        if batch.len() != self.batch {
            return Err(Error::input(format!("{} requests for a graph of {} rows", batch.len(), self.batch)));
        }
        if batch.length.saturating_add(batch.steps) > self.capacity {
            return Err(Error::input(format!(
                "prompts of up to {} tokens and {} new ones exceed the graph's {} slots",
                batch.length, batch.steps, self.capacity
            )));
        }
        session.borrow_mut().restart(self.vocabulary, &batch)?;
        let graph = &mut self.graph;
        let schedule = ReadSchedule::new(self.read_every, batch.steps);
        let source = StepSource::new(schedule, batch.len(), move |steps| {
            steps.clone().skip_while(|&step| step == 0).for_each(|_| replay(graph));
            session.borrow().read(steps)
        });
        Ok(Pieces::new(source, batch.rows(self.vocabulary)))
    }
}

/// The recorded step of a session.
pub(super) type StepGraph<'m> = Graph<(), Box<dyn FnMut() + 'm>>;

/// Records the step of a session, which the closure shares with its owner; it runs a few times. `instead` is the
/// advice where it cannot be recorded.
pub(super) fn record_step<'m>(
    device: &Device,
    step: Box<dyn FnMut() + 'm>,
    instead: &str,
) -> Result<StepGraph<'m>> {
    let graph = capture(device, step);
    if !graph.is_hardware() && records(device) {
        return Err(Error::model(format!(
            "its step cannot be recorded on this device: it reads back, or makes tensors from host data; {instead}"
        )));
    }
    Ok(graph)
}

/// Replays the step of a session.
///
/// Called by [`DecodeGraph::stream`], [`Slots::step`](super::Slots::step) and `speculate_recorded` alone, with their
/// own graphs; the drafter of a speculative session keeps its tensors as a model does.
#[allow(unsafe_code)]
pub(super) fn replay(graph: &mut StepGraph<'_>) {
    // SAFETY:
    // - Liveness: the step reads and writes the tensors of the session, which the graph's closure owns, and
    //   those of the model, which it borrows. A session never drops a tensor that a step uses, it assigns to it;
    //   nor does a model whose step is as `CausalLm::step` or `SlotLm::step_rows` asks.
    // - No concurrent use: the session is reached through the graph's owner alone, which is neither `Send` nor
    //   `Sync` (it holds an `Rc`) and lent mutably here; the model's weights are only read, by the replay and by
    //   whoever else borrows the model.
    // - Same stream: a stream belongs to a thread; recording, writes before a replay and reads after it are
    //   calls of this type, hence of one thread.
    unsafe { graph.replay() };
}

impl<M: CausalLm> fmt::Debug for DecodeGraph<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeGraph")
            .field("is_hardware", &self.graph.is_hardware())
            .field("batch", &self.batch)
            .field("capacity", &self.capacity)
            .field("read_every", &self.read_every)
            .finish_non_exhaustive()
    }
}
