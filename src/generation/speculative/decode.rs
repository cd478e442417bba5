//! The entry points of speculative decoding.

use super::drafter::Drafter;
use super::model::TreeLm;
use super::session::SpeculativeSession;
use crate::generation::admission::Admission;
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::model::Recordable;
use crate::generation::recorded::{RECORDING, Stepped};
use crate::generation::request::{Output, Request};
use crate::generation::token_stream::TokenStream;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::Result;

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
/// Budgets, ends of sequence, constraints and sampling options per row, and log-probabilities work
/// as in `generate`. If rows have different options, the built-in options run after every node as
/// well. The host reads every [`sync_interval`](GenerationConfig::sync_interval) speculative steps.
///
/// ```
/// use burn_dfa::generation::speculative::{ForcedTokens, ForcedBytes, TreeLm, speculate};
/// use burn_dfa::generation::{GenerationConfig, Output, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(
///     model: &impl TreeLm,
///     vocabulary: &Vocabulary,
///     requests: &[Request],
/// ) -> Result<Vec<Output>> {
///     let drafter = ForcedTokens::new(4, ForcedBytes::LongestToken);
///     let all = speculate(model, vocabulary, requests, &GenerationConfig::new(), drafter)?;
///     Ok(all.into_iter().map(|row| row.output).collect())
/// }
/// ```
///
/// # Errors
/// As [`generate`](crate::generation::generate) and [`Drafter::start`]; also
/// [`ErrorKind::Input`](crate::ErrorKind::Input) if outputs and draft tokens exceed the model's
/// positions.
pub fn speculate<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
) -> Result<Vec<SpeculativeOutput>> {
    outputs(stream(model, vocabulary, requests, config, drafter)?)
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
    let admission = Admission::new(model, vocabulary, config)?;
    let batch = Batch::new(model, &admission, requests)?;
    let session = SpeculativeSession::start(model, drafter, &batch, config, batch.steps)?;
    Ok(TokenStream::new(Stepped::run(session), 1, &batch, config.sync_interval))
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
/// use burn_dfa::generation::speculative::{
///     PromptLookup, SpeculativeOutput, TreeLm, speculate_recorded,
/// };
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
/// As [`speculate`]; [`ErrorKind::Input`](crate::ErrorKind::Input) for a processor or sampler of
/// the application that may not be recorded, and [`ErrorKind::Model`](crate::ErrorKind::Model) if
/// the device records graphs, but not of this step.
pub fn speculate_recorded<M: TreeLm + Recordable>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter + Recordable,
) -> Result<Vec<SpeculativeOutput>> {
    let admission = Admission::new(model, vocabulary, config)?;
    let checked = config.check_recordable()?;
    let batch = Batch::new(model, &admission, requests)?;
    let session = SpeculativeSession::start(model, drafter, &batch, config, batch.steps + RECORDING)?;
    let session = Stepped::record(session, checked, &model.device())?;
    // A device that records a step may or may not take it.
    let taken = session.lock()?.steps()?;
    outputs(TokenStream::new(session, taken, &batch, config.sync_interval))
}

/// Generates the outputs, with their numbers of calls.
fn outputs(stream: TokenStream) -> Result<Vec<SpeculativeOutput>> {
    let rows = stream.complete()?.into_rows();
    Ok(rows.map(|row| SpeculativeOutput { calls: row.calls(), output: row.into_output() }).collect())
}
