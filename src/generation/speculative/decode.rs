//! The entry points of speculative decoding, and the reads of the host.

use std::ops::ControlFlow;

use super::drafter::Drafter;
use super::model::TreeLm;
use super::recorded::RECORDING;
use super::session::{SpeculativeSession, SpeculativeSteps};
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::model::Recordable;
use crate::generation::pieces::{Found, ReadSchedule, TokenSource, TokenStream};
use crate::generation::recorded::Stepped;
use crate::generation::request::{Chunk, Output, Request};
use crate::generation::row::NewTokens;
use crate::vocabulary::{TokenId, Vocabulary};
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// The output of a row, and the number of model calls.
///
/// ```
/// use burn_dfa::generation::speculative::SpeculativeOutput;
///
/// fn calls_per_token(row: &SpeculativeOutput) -> f64 {
///     row.calls as f64 / row.output.tokens.len() as f64
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SpeculativeOutput {
    /// The output.
    pub output: Output,
    /// Calls of the model until the row ended. Reading the prompt counts as one call, which
    /// includes the first draft tokens if the drafts are a chain.
    pub calls: usize,
}

/// Generates the outputs of a batch of requests as [`generate`](crate::generation::generate) does,
/// with draft tokens of `drafter`, which the model verifies.
///
/// Greedy outputs equal the outputs of `generate`, token for token, if the model's logits do not
/// depend on how many tokens it reads at once. Sampled outputs have the same distribution, but
/// differ for the same seed.
///
/// Penalties and the [processors](GenerationConfig::processors) of the application run after every
/// node of the draft tree, and each node continues the state of its parent. The
/// [sampler](GenerationConfig::sampler) of the application chooses a token after every node, and a
/// draft token is accepted if it equals the choice after its parent: if the choice depends only on
/// the logits, the row and the step, the outputs equal the outputs of `generate`.
///
/// Budgets, ends of sequence and constraints per row work as in
/// `generate`. The host reads every [`sync_interval`](GenerationConfig::sync_interval) speculative
/// steps.
///
/// ```
/// use burn_dfa::generation::speculative::{ForcedTokens, ForcedBytes, TreeLm, speculate};
/// use burn_dfa::generation::{GenerationConfig, Output, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl TreeLm, vocabulary: &Vocabulary, requests: &[Request]) -> Result<Vec<Output>> {
///     let drafter = ForcedTokens::new(4, ForcedBytes::LongestToken);
///     let all = speculate(model, vocabulary, requests, &GenerationConfig::new(), drafter)?;
///     Ok(all.into_iter().map(|row| row.output).collect())
/// }
/// ```
///
/// # Errors
/// As [`generate`](crate::generation::generate) and [`Drafter::start`]; also
/// [`ErrorKind::Input`](crate::ErrorKind::Input) for requests with sampling options, for
/// log-probabilities, or if outputs and draft tokens exceed the model's positions.
pub fn speculate<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
) -> Result<Vec<SpeculativeOutput>> {
    speculate_with(model, vocabulary, requests, config, drafter, |_| ControlFlow::Continue(()))
}

/// As [`speculate`], and passes each new chunk of an output to `on_chunk`. A break cancels the batch.
///
/// # Errors
/// As [`speculate`].
pub fn speculate_with<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
    on_chunk: impl FnMut(Chunk) -> ControlFlow<()>,
) -> Result<Vec<SpeculativeOutput>> {
    Ok(outputs(stream(model, vocabulary, requests, config, drafter)?.for_each_chunk(on_chunk)?))
}

/// Begins to generate the outputs of a batch of requests as [`speculate`] does; the iterator takes
/// steps only when the caller asks for a chunk.
///
/// # Errors
/// As [`speculate`].
pub fn stream<'a, M: TreeLm>(
    model: &'a M,
    vocabulary: &'a Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter + 'a,
) -> Result<TokenStream<'a>> {
    config.check()?;
    let unconstrained = CompiledConstraint::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &config.sampling, &unconstrained)?;
    let session = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, batch.steps)?;
    Ok(pieces(&batch, vocabulary, config, session, 1))
}

/// As [`speculate`], but records the speculative step after reading the prompts, and replays it:
/// one dispatch per step on the host, see [`DecodeGraph`](crate::generation::DecodeGraph). The
/// steps taken during recording count as steps. On the CPU, which records nothing, it equals
/// `speculate`.
///
/// The model and the drafter make the promise of [`Recordable`]. After their first step they must
/// neither read from the device nor upload. The drafters of this library do neither.
///
/// ```
/// use burn_dfa::generation::speculative::{PromptLookup, SpeculativeOutput, TreeLm, speculate_recorded};
/// use burn_dfa::generation::{GenerationConfig, Recordable, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run<M>(model: &M, words: &Vocabulary, requests: &[Request]) -> Result<Vec<SpeculativeOutput>>
/// where
///     M: TreeLm + Recordable,
/// {
///     let drafter = PromptLookup::new(4, 3);
///     speculate_recorded(model, words, requests, &GenerationConfig::new(), drafter)
/// }
/// ```
///
/// # Errors
/// As [`speculate`]; [`ErrorKind::Input`](crate::ErrorKind::Input) for a processor or sampler of the
/// application that may not be recorded, and [`ErrorKind::Model`](crate::ErrorKind::Model) if the
/// device records graphs, but not of this step.
pub fn speculate_recorded<M: TreeLm + Recordable>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter + Recordable,
) -> Result<Vec<SpeculativeOutput>> {
    config.check()?;
    config.check_recordable()?;
    let unconstrained = CompiledConstraint::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &config.sampling, &unconstrained)?;
    let steps = batch.steps + RECORDING;
    let session = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, steps)?;
    let session =
        Stepped::record(session, SpeculativeSession::take_step, &model.device(), "use `speculate`")?;
    // A device that records a step may or may not take it.
    let taken = session.lock()?.steps()?;
    let stream = pieces(&batch, vocabulary, config, session, taken);
    Ok(outputs(stream.for_each_chunk(|_| ControlFlow::Continue(()))?))
}

/// The outputs so far, with their numbers of calls.
fn outputs(pieces: TokenStream) -> Vec<SpeculativeOutput> {
    let rows = pieces.into_rows();
    rows.map(|row| SpeculativeOutput { calls: row.calls(), output: row.into_output() }).collect()
}

/// The chunks of a batch that has taken `taken` steps.
fn pieces<'a>(
    batch: &Batch,
    vocabulary: &'a Vocabulary,
    config: &GenerationConfig,
    session: impl SpeculativeSteps + 'a,
    taken: usize,
) -> TokenStream<'a> {
    // Every step appends at least one token.
    let schedule = ReadSchedule::new(config.sync_interval, batch.steps);
    let read = vec![batch.length; batch.len()];
    let source =
        SpeculativeSource { session, taken, schedule, tokens: Vec::new(), lengths: Vec::new(), read };
    TokenStream::new(source, batch.rows(vocabulary))
}

/// A source of a varying number of accepted tokens per row and step.
struct SpeculativeSource<S> {
    session: S,
    /// Steps taken.
    taken: usize,
    schedule: ReadSchedule,
    /// The tokens of all rows at the last read, row by row.
    tokens: Vec<i32>,
    /// The lengths of the rows after each step since the previous read, step by step.
    lengths: Vec<i32>,
    /// The number of returned tokens of each row, prompt included.
    read: Vec<usize>,
}

impl<S: SpeculativeSteps> TokenSource for SpeculativeSource<S> {
    fn advance(&mut self) -> Result<bool> {
        let Some(steps) = self.schedule.next() else { return Ok(false) };
        while self.taken < steps.end {
            self.session.step()?;
            self.taken += 1;
        }
        (self.tokens, self.lengths) = self.session.read(steps)?;
        Ok(true)
    }

    fn row(&mut self, row: usize) -> Result<Found> {
        let batch = self.read.len();
        let tokens = self.tokens.chunks_exact(self.tokens.len() / batch).nth(row).unwrap_or_default();
        let start = self.read[row];
        let (mut new, mut calls) = (NewTokens::default(), Vec::new());
        for length in self.lengths.iter().skip(row).step_by(batch).map(|&length| length as usize) {
            let accepted = tokens.get(self.read[row]..length).ok_or_else(|| {
                Error::model(format!("a row of {} tokens has a length of {length} next", self.read[row]))
            })?;
            new.tokens.extend(accepted.iter().map(|&id| TokenId(id as u32)));
            calls.push(length - start);
            self.read[row] = length;
        }
        Ok(Found { new, calls })
    }
}
