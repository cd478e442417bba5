//! The decode loop.

use std::ops::ControlFlow;

use super::batch::Batch;
use super::config::GenerationConfig;
use super::model::CausalLm;
use super::pieces::{Pieces, ReadSchedule, StepSource};
use super::request::{Output, Piece, Request};
use super::session::Session;
use crate::error::Result;
use crate::table::TokenTable;
use crate::vocabulary::Vocabulary;

/// Generates the outputs of a batch of requests, streaming pieces to `on_piece`.
///
/// Every row ends at an end-of-sequence token or after its `max_new_tokens`; a constrained row always ends
/// complete. Rows may carry different constraints or none. The host reads tokens every
/// [`read_every`](GenerationConfig::read_every) steps and nothing else; where `on_piece` breaks, the batch is
/// cancelled, and where a request's [`Cancel`](super::Cancel) asks for it, its row is. What a cancelled row has
/// so far is its output.
///
/// # Errors
/// All but the last before the first step:
/// - [`Error::is_input`]: no request, an empty prompt, `max_new_tokens` of 0, a prompt token past the model's
///   vocabulary, more positions than the model has, an option out of range;
/// - [`Error::is_budget`]: a constraint needs more than `max_new_tokens` tokens, [`Error::tokens_needed`] says
///   how many;
/// - [`Error::is_incompatible_vocabulary`]: a table was compiled for another vocabulary, or the model's
///   logits are narrower than the vocabulary;
/// - [`Error::is_limit`]: a table is larger than [`GenerationConfig::tensors`] allows;
/// - [`Error::is_model`]: the logits of all tokens that a row might emit were −∞, from the model or through an
///   extreme temperature or penalty.
///
/// [`Error::is_input`]: crate::Error::is_input
/// [`Error::is_budget`]: crate::Error::is_budget
/// [`Error::tokens_needed`]: crate::Error::tokens_needed
/// [`Error::is_incompatible_vocabulary`]: crate::Error::is_incompatible_vocabulary
/// [`Error::is_limit`]: crate::Error::is_limit
/// [`Error::is_model`]: crate::Error::is_model
pub fn generate<M: CausalLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Output>> {
    Ok(stream(model, vocabulary, requests, config)?.for_each_piece(on_piece)?.stop())
}

/// Begins to generate the outputs of a batch of requests as [`generate`] does; the iterator goes on whenever it
/// is asked for a piece.
///
/// # Errors
/// As [`generate`].
pub fn stream<'a, M: CausalLm>(
    model: &'a M,
    vocabulary: &'a Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Result<Pieces<'a>> {
    config.check()?;
    let unconstrained = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &config.sampling, &unconstrained)?;
    let (kinds, slots) = (batch.kinds(), batch.length + batch.steps);
    let mut session = Session::start(model, vocabulary, &batch, config, kinds, slots)?;
    let schedule = ReadSchedule::new(config.read_every, batch.steps);
    let source = StepSource::new(schedule, batch.len(), move |steps| {
        steps.clone().skip_while(|&step| step == 0).for_each(|_| session.step());
        session.read(steps)
    });
    Ok(Pieces::new(source, batch.rows(vocabulary)))
}
