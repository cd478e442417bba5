//! The decode loop.

use std::cell::RefCell;
use std::ops::ControlFlow;

use super::batch::Batch;
use super::model::CausalLm;
use super::request::{Options, Output, Piece, Request};
use super::row::Row;
use super::session::Session;
use crate::error::Result;
use crate::table::TokenTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// Generates the outputs of a batch of requests, streaming pieces to `on_piece`.
///
/// Every row ends at an end-of-sequence token or after its `max_tokens`; a constrained row always ends
/// complete. Rows may carry different constraints or none. The host reads tokens every
/// [`read_every`](Options::read_every) steps and nothing else; where `on_piece` breaks, the batch is
/// cancelled.
///
/// # Errors
/// All but the last before the first step:
/// - [`Error::is_input`]: no request, an empty prompt, `max_tokens` of 0, a prompt token past the model's
///   vocabulary, more positions than the model has, an option out of range;
/// - [`Error::is_budget`]: a constraint needs more than `max_tokens` tokens, [`Error::tokens_needed`] says
///   how many;
/// - [`Error::is_incompatible_vocabulary`]: a table was compiled for another vocabulary, or the model's
///   logits are narrower than the vocabulary;
/// - [`Error::is_limit`]: a table is larger than [`Options::tensors`] allows;
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
    options: &Options,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Output>> {
    options.check()?;
    let free = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &free)?;
    let session = Session::start(model, vocabulary, &batch, options, batch.length + batch.steps)?;
    let session = RefCell::new(session);
    stream(&batch, vocabulary, options.read_every, &session, || session.borrow_mut().step(), on_piece)
}

/// Steps a session whose first tokens are chosen, reads its tokens every `read_every` steps, and hands them
/// to their rows and the caller.
pub(super) fn stream<M: CausalLm>(
    batch: &Batch,
    vocabulary: &Vocabulary,
    read_every: usize,
    session: &RefCell<Session<M>>,
    mut step: impl FnMut(),
    mut on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Output>> {
    let mut rows = batch.rows(vocabulary);
    let mut read = 0;
    for steps in 1..=batch.steps {
        if steps > 1 {
            step();
        }
        if steps - read == read_every || steps == batch.steps {
            let tokens = session.borrow().tokens(read..steps)?;
            read = steps;
            if !hand_out(&tokens, &mut rows, &mut on_piece)? {
                break;
            }
        }
    }
    Ok(rows.into_iter().map(Row::into_output).collect())
}

/// Hands the tokens of some steps to their rows and the caller; false where the loop may end.
fn hand_out(
    tokens: &[i32],
    rows: &mut [Row],
    on_piece: &mut impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<bool> {
    let batch = rows.len();
    for (index, row) in rows.iter_mut().enumerate() {
        if row.is_finished() {
            continue;
        }
        let new: Vec<_> = tokens.iter().skip(index).step_by(batch).map(|&id| TokenId(id as u32)).collect();
        let (text, taken) = row.take(&new)?;
        if on_piece(Piece { row: index, text: &text, tokens: &new[..taken] }).is_break() {
            return Ok(false);
        }
    }
    Ok(!rows.iter().all(Row::is_finished))
}
