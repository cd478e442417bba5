//! The loop of rounds.

use std::ops::{ControlFlow, Range};

use super::drafter::Drafter;
use super::model::TreeLm;
use super::recorded::{RECORDING, Recorded};
use super::session::SpeculativeSession;
use crate::error::{Error, Result};
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::pieces::{Pace, Pieces, Slice, Source};
use crate::generation::request::{Output, Piece, Request};
use crate::table::TokenTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// What a row generated, and what it took.
///
/// ```
/// use burn_dfa::generation::speculative::SpeculativeOutput;
///
/// fn calls_per_token(row: &SpeculativeOutput) -> f64 {
///     row.calls as f64 / row.output.tokens.len() as f64
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeculativeOutput {
    /// The output.
    pub output: Output,
    /// Calls of the model until the row had ended; the reading of the prompt, with a first chain of guesses, is one.
    pub calls: usize,
}

/// Generates the outputs of a batch of requests as [`generate`](crate::generation::generate) does, in rounds of
/// guesses of `drafter`.
///
/// Greedy outputs are equal to those of `generate`, token for token, as far as the model's logits do not depend on
/// how many tokens it reads at once; sampled ones have the same distribution, and are others. Budgets, ends of
/// sequence and constraints per row hold alike. The host reads every [`read_every`](GenerationConfig::read_every)
/// rounds.
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
/// As [`generate`](crate::generation::generate); [`Error::is_input`](crate::Error::is_input) for a repetition penalty
/// or `min_new_tokens`, which depend on the tokens before, or where texts and guesses exceed the model's positions;
/// and as [`Drafter::start`].
pub fn speculate<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<SpeculativeOutput>> {
    Ok(speculated(stream(model, vocabulary, requests, config, drafter)?.hand_to(on_piece)?))
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
    let free = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &free)?;
    let rounds = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, batch.steps)?;
    Ok(pieces(&batch, vocabulary, config, rounds, 1))
}

/// As [`speculate`], with the round recorded once the prompts are read, and replayed: a dispatch a round on the host's
/// side, see [`DecodeGraph`](crate::generation::DecodeGraph). The rounds that recording runs count like any others.
/// On the CPU, which records nothing, it is `speculate`.
///
/// The model and the drafter have to leave what they change in the buffers that held it, and to read nothing back nor
/// make tensors of host data after their first round; those of this library do.
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
/// As [`speculate`], and [`Error::is_model`] where the device records graphs, but not of this round.
pub fn speculate_recorded<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<SpeculativeOutput>> {
    config.check()?;
    let free = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &free)?;
    let rounds = batch.steps + RECORDING;
    let rounds = SpeculativeSession::start(model, drafter, vocabulary, &batch, config, rounds)?;
    let (rounds, done) = Recorded::new(rounds, &model.device())?;
    Ok(speculated(pieces(&batch, vocabulary, config, rounds, done).hand_to(on_piece)?))
}

/// What the rows have by now.
fn speculated(pieces: Pieces) -> Vec<SpeculativeOutput> {
    let rows = pieces.into_rows();
    rows.map(|row| SpeculativeOutput { calls: row.calls(), output: row.into_output() }).collect()
}

/// Rounds of which the host can read what they did.
pub(super) trait Readable {
    /// Runs a round.
    fn run(&mut self);

    /// Reads the text, row by row, and the lengths after some rounds, round by round.
    fn read(&self, rounds: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)>;
}

/// The pieces of a batch that has begun, with `done` rounds behind it.
fn pieces<'a>(
    batch: &Batch,
    vocabulary: &'a Vocabulary,
    config: &GenerationConfig,
    rounds: impl Readable + 'a,
    done: usize,
) -> Pieces<'a> {
    // Every round appends a token at least.
    let pace = Pace::new(config.read_every, batch.steps);
    let read = vec![batch.length; batch.len()];
    let source = Guessed { rounds, done, pace, text: Vec::new(), lengths: Vec::new(), read };
    Pieces::new(source, batch.rows(vocabulary))
}

/// Rounds of which the host has read some.
struct Guessed<R> {
    rounds: R,
    /// Rounds run.
    done: usize,
    pace: Pace,
    /// The texts of the last read, row by row.
    text: Vec<i32>,
    /// The lengths after each of its rounds, round by round.
    lengths: Vec<i32>,
    /// Slots read of each row.
    read: Vec<usize>,
}

impl<R: Readable> Source for Guessed<R> {
    fn advance(&mut self) -> Result<bool> {
        let Some(rounds) = self.pace.next() else { return Ok(false) };
        while self.done < rounds.end {
            self.rounds.run();
            self.done += 1;
        }
        (self.text, self.lengths) = self.rounds.read(rounds)?;
        Ok(true)
    }

    fn row(&mut self, row: usize) -> Result<Slice> {
        let batch = self.read.len();
        let text = self.text.chunks_exact(self.text.len() / batch).nth(row).unwrap_or_default();
        let start = self.read[row];
        let mut slice = Slice { tokens: Vec::new(), calls: Vec::new() };
        for length in self.lengths.iter().skip(row).step_by(batch).map(|&length| length as usize) {
            let new = text.get(self.read[row]..length).ok_or_else(|| {
                Error::model(format!("a row of {} tokens shrank or burst: {length}", self.read[row]))
            })?;
            slice.tokens.extend(new.iter().map(|&id| TokenId(id as u32)));
            slice.calls.push(length - start);
            self.read[row] = length;
        }
        Ok(slice)
    }
}
