//! The decode step, recorded once and replayed.
//!
//! A step of [`generate`](super::generate) issues a few hundred operations, and the host prepares
//! the launch of each. Their shapes never change, and a step reads and writes only buffers that
//! live as long as the batch: the cache, the states of the processors, the last tokens, the number
//! of the step, the tokens so far. Therefore the step can be recorded once, and a replay is one
//! dispatch on the host: a CUDA graph on CUDA, a list of prepared dispatches on WGPU. The CPU
//! cannot record and runs the step again.
//!
//! A new batch writes its prompts, constraints, budgets and seeds into the same buffers.

use std::fmt;

use super::admission::Admission;
use super::batch::Batch;
use super::config::GenerationConfig;
use super::model::{CausalLm, Recordable};
use super::options::SamplingFeatures;
use super::recorded::{RECORDING, Stepped};
use super::request::{Output, Request};
use super::session::{AlignedRows, Session};
use super::token_stream::TokenStream;
use crate::processor::InPlaceState;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{Error, Result};

/// Positions that recording takes: a prompt of one token, and its steps.
const LEAST_CAPACITY: usize = 1 + RECORDING;

/// A recorded decode step, for batches of one size.
///
/// It writes the same tokens as [`generate`](super::generate) with the same requests and
/// configuration. Between two batches the prompts, budgets and seeds may change. The constraints
/// may change within the capacity reserved by [`TensorOptions`](crate::TensorOptions). The
/// [options](super::SamplingOptions) of the rows may change within the features used by the
/// recorded requests, by the config or by its [`row_features`](GenerationConfig::row_features). The
/// number of rows and the [`GenerationConfig`] are fixed.
///
/// The graph borrows the model. The model's [`step`](CausalLm::step) must read only its weights and
/// the cache, upload nothing, and keep the cache in the same buffers, as [`Recordable`] promises.
/// The graph stays on the thread and the stream that recorded it, as its device requires. On
/// another stream every call returns [`ErrorKind::Input`](crate::ErrorKind::Input), and after a
/// panic of the model [`ErrorKind::Model`](crate::ErrorKind::Model). During a recording CUDA
/// refuses calls of all threads, so no other thread may use the device until
/// [`record`](Self::record) has returned.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig, Recordable, Request};
/// use burn_dfa::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
///
/// /// Always says the token after the last one, up to the end. The field is the identity matrix.
/// struct Counting(Tensor<2>);
///
/// impl CausalLm for Counting {
///     type Cache = ();
///     fn device(&self) -> Device {
///         self.0.device()
///     }
///     fn vocab_size(&self) -> usize {
///         3
///     }
///     fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
///         let [batch, length] = tokens.dims();
///         (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
///     }
///     fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         self.0.clone().select(0, (tokens + 1).clamp_max(2))
///     }
/// }
///
/// // SAFETY: the cache has no tensors, and the model keeps no tensor of a call.
/// unsafe impl Recordable for Counting {}
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled = CompiledConstraint::compile(
///     &Constraint::regex("[ab]{2}")?,
///     &vocabulary,
///     &Limits::default(),
/// )?;
/// let model = Counting(Tensor::eye(3, &Device::flex()));
/// let requests = [Request::new(vec![TokenId(0)], 8).with_constraint(&compiled)];
///
/// let mut graph =
///     DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 16)?;
/// assert!(!graph.is_hardware()); // the CPU records nothing
/// let outputs = graph.generate(&requests)?;
/// assert_eq!(outputs[0].text(), "ba");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub struct DecodeGraph<'m, M: CausalLm> {
    session: Stepped<'m, Session<'m, M, AlignedRows>>,
    admission: Admission<'m>,
    sync_interval: usize,
    batch: usize,
    capacity: usize,
}

impl<'m, M: CausalLm<Cache: InPlaceState> + Recordable> DecodeGraph<'m, M> {
    /// Records the step for batches of as many rows as `requests`, with `capacity` slots for the
    /// tokens of a row, prompt and output together.
    ///
    /// The requests are samples of later ones; nothing is generated yet. Their constraints must fit
    /// the capacity reserved by [`GenerationConfig::tensors`]. Without a reserved capacity, later
    /// constraints must fit into the buffers of the sample constraints.
    ///
    /// # Errors
    /// As [`generate`](super::generate), and:
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): a `capacity` below 5, which recording
    ///   takes, or above the positions of the model, or a processor or sampler of the application
    ///   that may not be recorded;
    /// - [`ErrorKind::Model`](crate::ErrorKind::Model): the device records graphs, but not of this
    ///   step, which reads back or uploads. CUDA accepts an upload, and replays it with the same
    ///   data.
    pub fn record(
        model: &'m M,
        vocabulary: &'m Vocabulary,
        requests: &[Request],
        config: &GenerationConfig,
        capacity: usize,
    ) -> Result<Self> {
        let mut admission = Admission::new(model, vocabulary, config)?;
        let checked = config.check_recordable()?;
        if capacity < LEAST_CAPACITY {
            return Err(Error::input(format!(
                "a graph of {capacity} slots: recording alone takes {LEAST_CAPACITY}"
            )));
        }
        if let Some(max) = model.max_positions().filter(|&max| capacity > max) {
            return Err(Error::input(format!("a graph of {capacity} slots of a model of {max} positions")));
        }
        let mut short = requests.to_vec();
        short.iter_mut().for_each(|request| request.prompt.truncate(1));
        let batch = Batch::new(model, &admission, &short)?;
        let kinds = batch.kinds().or(SamplingFeatures::of(&config.sampling)).or(config.row_features);
        let session = Session::start(model, &batch, config, kinds, capacity)?;
        let session = Stepped::record(session, checked, &model.device())?;
        admission.features = kinds;
        Ok(Self { session, admission, sync_interval: config.sync_interval, batch: requests.len(), capacity })
    }

    /// Whether a replay is one dispatch of recorded launches; the CPU runs the step again.
    ///
    /// If a device records graphs, but not of this step, [`record`](Self::record) returns an error;
    /// it never falls back to running the step again.
    pub fn is_hardware(&self) -> bool {
        self.session.is_hardware()
    }

    /// Generates the outputs of a batch of requests as [`generate`](super::generate) does.
    ///
    /// The prompts are read outside of the graph; every token after the first is a replay.
    ///
    /// # Errors
    /// As [`generate`](super::generate), and [`ErrorKind::Input`](crate::ErrorKind::Input) for
    /// another number of rows, or if prompts and outputs exceed the capacity. After an error the
    /// graph serves the next batch, except after a panic of the model.
    pub fn generate(&mut self, requests: &[Request]) -> Result<Vec<Output>> {
        self.stream(requests)?.finish()
    }

    /// Begins to generate as [`generate`](Self::generate) does; the iterator replays only when the
    /// caller asks for a chunk.
    ///
    /// # Errors
    /// As [`generate`](Self::generate).
    pub fn stream(&mut self, requests: &[Request]) -> Result<TokenStream<'_>> {
        let model = self.session.host().model();
        let batch = Batch::new(model, &self.admission, requests)?;
        if batch.len() != self.batch {
            return Err(Error::input(format!("{} requests for a graph of {} rows", batch.len(), self.batch)));
        }
        if batch.length.saturating_add(batch.steps) > self.capacity {
            return Err(Error::input(format!(
                "prompts of up to {} tokens and {} new ones exceed the graph's {} slots",
                batch.length, batch.steps, self.capacity
            )));
        }
        self.session.lock()?.restart(&batch)?;
        Ok(TokenStream::new(&mut self.session, 1, &batch, self.sync_interval))
    }
}

impl<M: CausalLm> fmt::Debug for DecodeGraph<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeGraph")
            .field("is_hardware", &self.session.is_hardware())
            .field("batch", &self.batch)
            .field("capacity", &self.capacity)
            .field("sync_interval", &self.sync_interval)
            .finish_non_exhaustive()
    }
}
