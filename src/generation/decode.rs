//! The entry points [`generate`] and [`stream`]; [`TokenStream`] is the loop.

use super::admission::Admission;
use super::batch::Batch;
use super::config::GenerationConfig;
use super::model::CausalLm;
use super::recorded::Stepped;
use super::request::{Output, Request};
use super::session::Session;
use super::token_stream::TokenStream;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::Result;

/// Generates the outputs of a batch of requests.
///
/// Every row ends at an end-of-sequence token or after its `max_new_tokens`; a constrained row
/// always ends complete. Rows may have different constraints or none. The host reads only tokens,
/// every [`sync_interval`](GenerationConfig::sync_interval) steps. A request's
/// [`Cancel`](super::Cancel) cancels its row. The output of a canceled row is its text so far.
///
/// [`stream`] takes the same arguments, and returns the text in chunks.
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate};
/// use burn_dfa::{Compile, Constraint, Result, TokenId, Vocabulary};
///
/// fn year(
///     model: &impl CausalLm,
///     vocabulary: &Vocabulary,
///     prompt: Vec<TokenId>,
/// ) -> Result<String> {
///     let constraint = Constraint::regex("[12][0-9]{3}")?.compile(vocabulary)?;
///     let requests = [Request::new(prompt, 8).with_constraint(&constraint)];
///     Ok(generate(model, vocabulary, &requests, &GenerationConfig::new())?[0].text())
/// }
/// ```
///
/// # Errors
/// All but the last before the first step:
/// - [`ErrorKind::Input`](crate::ErrorKind::Input): no request, an empty prompt, `max_new_tokens`
///   of 0, a prompt token past the model's vocabulary, more positions than the model has, an option
///   out of range, a processor of the application for [other rows or another
///   width of logits](crate::processor::LogitsProcessor::check_shape);
/// - [`ErrorKind::Budget`](crate::ErrorKind::Budget): a constraint needs more than `max_new_tokens`
///   tokens, [`Error::tokens_needed`](crate::Error::tokens_needed) gives the number;
/// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): a constraint
///   was compiled for another vocabulary, or the model's logits are narrower than the vocabulary;
/// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): a compiled constraint is larger than
///   [`GenerationConfig::tensors`] allows;
/// - [`ErrorKind::Model`](crate::ErrorKind::Model): the logits of all legal tokens of a row were
///   −∞, from the model or through an extreme temperature or penalty.
pub fn generate<M: CausalLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Result<Vec<Output>> {
    stream(model, vocabulary, requests, config)?.finish()
}

/// Begins to generate the outputs of a batch of requests as [`generate`] does; the iterator takes
/// steps only when the caller asks for a chunk.
///
/// # Errors
/// As [`generate`].
pub fn stream<'a, M: CausalLm>(
    model: &'a M,
    vocabulary: &'a Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Result<TokenStream<'a>> {
    let admission = Admission::new(model, vocabulary, config)?;
    let batch = Batch::new(model, &admission, requests)?;
    let session = Session::start(model, &batch, config, batch.kinds(), batch.length + batch.steps)?;
    Ok(TokenStream::new(Stepped::run(session), 1, &batch, config.sync_interval))
}
