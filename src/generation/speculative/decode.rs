//! The entry points of speculative decoding, and what the host reads of it.

use std::ops::ControlFlow;

use super::drafter::Drafter;
use super::model::TreeLm;
use super::recorded::{RECORDING, RecordedSession};
use super::session::{SpeculativeSession, SpeculativeSteps};
use crate::error::{Error, Result};
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::pieces::{Found, Pieces, ReadSchedule, TokenSource};
use crate::generation::request::{Output, Piece, Request};
use crate::generation::row::NewTokens;
use crate::table::TokenTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// What a row generated, and how many calls of the model that took.
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
    /// Calls of the model until the row had ended. Reading the prompt is one, with the first draft tokens if they are a
    /// chain.
    pub calls: usize,
}

/// Generates the outputs of a batch of requests as [`generate`](crate::generation::generate) does, with draft tokens of
/// `drafter` that the model verifies.
///
/// Greedy outputs are equal to those of `generate`, token for token, as far as the model's logits do not depend on
/// how many tokens it reads at once. Sampled outputs have the same distribution, but differ for the same seed. Budgets,
/// ends of sequence and constraints per row hold alike. The host reads every
/// [`read_every`](GenerationConfig::read_every) speculative steps.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use burn_dfa::generation::speculative::{ForcedTokens, ForcedBytes, TreeLm, speculate};
/// use burn_dfa::generation::{GenerationConfig, Output, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl TreeLm, vocabulary: &Vocabulary, requests: &[Request]) -> Result<Vec<Output>> {
///     let drafter = ForcedTokens::new(4, ForcedBytes::LongestToken);
///     let all = speculate(model, vocabulary, requests, &GenerationConfig::new(), drafter, |piece| {
///         print!("{}", piece.text);
///         ControlFlow::Continue(())
///     })?;
///     Ok(all.into_iter().map(|row| row.output).collect())
/// }
/// ```
///
/// # Errors
/// As [`generate`](crate::generation::generate); [`Error::is_input`](crate::Error::is_input) for penalties or
/// `min_new_tokens`, which depend on the tokens before, for requests with options of their own, for log-probabilities, or
/// where outputs and draft tokens exceed the model's positions;
/// and as [`Drafter::start`].
pub fn speculate<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<SpeculativeOutput>> {
    Ok(outputs(stream(model, vocabulary, requests, config, drafter)?.for_each_piece(on_piece)?))
}

/// Begins to generate the outputs of a batch of requests as [`speculate`] does; the iterator goes on whenever it is
/// asked for a piece.
///
/// # Errors
/// As [`speculate`].
pub fn stream<'a, M: TreeLm>(
    model: &'a M,
    vocabulary: &'a Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter + 'a,
) -> Result<Pieces<'a>> {
    config.check()?;
    let unconstrained = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &config.sampling, &unconstrained)?;
    let session = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, batch.steps)?;
    Ok(pieces(&batch, vocabulary, config, session, 1))
}

/// As [`speculate`], with the speculative step recorded once the prompts are read, and replayed: one dispatch a step on
/// the host's side, see [`DecodeGraph`](crate::generation::DecodeGraph). The steps that recording takes count like any
/// others. On the CPU, which records nothing, it is `speculate`.
///
/// The model and the drafter have to leave what they change in the buffers that held it, and to read nothing back and
/// upload nothing after their first step. Those of this library do.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use burn_dfa::generation::speculative::{PromptLookup, SpeculativeOutput, TreeLm, speculate_recorded};
/// use burn_dfa::generation::{GenerationConfig, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl TreeLm, words: &Vocabulary, requests: &[Request]) -> Result<Vec<SpeculativeOutput>> {
///     let drafter = PromptLookup::new(4, 3);
///     speculate_recorded(model, words, requests, &GenerationConfig::new(), drafter, |_| ControlFlow::Continue(()))
/// }
/// ```
///
/// # Errors
/// As [`speculate`], and [`Error::is_model`] where the device records graphs, but not of this step.
pub fn speculate_recorded<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<SpeculativeOutput>> {
    config.check()?;
    let unconstrained = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &config.sampling, &unconstrained)?;
    let steps = batch.steps + RECORDING;
    let session = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, steps)?;
    let (session, taken) = RecordedSession::new(session, &model.device())?;
    Ok(outputs(pieces(&batch, vocabulary, config, session, taken).for_each_piece(on_piece)?))
}

/// The outputs so far, with the calls that they took.
fn outputs(pieces: Pieces) -> Vec<SpeculativeOutput> {
    let rows = pieces.into_rows();
    rows.map(|row| SpeculativeOutput { calls: row.calls(), output: row.into_output() }).collect()
}

/// The pieces of a batch that has begun and taken `taken` steps.
fn pieces<'a>(
    batch: &Batch,
    vocabulary: &'a Vocabulary,
    config: &GenerationConfig,
    session: impl SpeculativeSteps + 'a,
    taken: usize,
) -> Pieces<'a> {
    // Every step appends a token at least.
    let schedule = ReadSchedule::new(config.read_every, batch.steps);
    let read = vec![batch.length; batch.len()];
    let source =
        SpeculativeSource { session, taken, schedule, tokens: Vec::new(), lengths: Vec::new(), read };
    Pieces::new(source, batch.rows(vocabulary))
}

/// A source of as many tokens per row and step as were accepted.
struct SpeculativeSource<S> {
    session: S,
    /// Steps taken.
    taken: usize,
    schedule: ReadSchedule,
    /// The tokens of all rows at the last read, row by row.
    tokens: Vec<i32>,
    /// The lengths of the rows after each step since the read before, step by step.
    lengths: Vec<i32>,
    /// Tokens handed out of each row, those of the prompt included.
    read: Vec<usize>,
}

impl<S: SpeculativeSteps> TokenSource for SpeculativeSource<S> {
    fn advance(&mut self) -> Result<bool> {
        let Some(steps) = self.schedule.next() else { return Ok(false) };
        while self.taken < steps.end {
            self.session.step();
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
