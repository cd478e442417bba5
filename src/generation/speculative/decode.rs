//! The loop of rounds.

use std::ops::{ControlFlow, Range};

use super::drafter::Drafter;
use super::model::TreeLm;
use super::recorded::{RECORDING, Recorded};
use super::rounds::Rounds;
use crate::error::{Error, Result};
use crate::generation::batch::Batch;
use crate::generation::request::{Options, Output, Piece, Request};
use crate::generation::row::Row;
use crate::table::TokenTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// What a row generated, and what it took.
///
/// ```
/// use burn_dfa::generation::speculative::Speculated;
///
/// fn calls_per_token(row: &Speculated) -> f64 {
///     row.calls as f64 / row.output.tokens.len() as f64
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculated {
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
/// sequence and constraints per row hold alike. The host reads every [`read_every`](Options::read_every) rounds.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use burn_dfa::generation::speculative::{Forced, ForcedBytes, TreeLm, speculate};
/// use burn_dfa::generation::{Options, Output, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl TreeLm, vocabulary: &Vocabulary, requests: &[Request]) -> Result<Vec<Output>> {
///     let drafter = Forced::new(4, ForcedBytes::LongestToken);
///     let all = speculate(model, vocabulary, requests, &Options::default(), drafter, |piece| {
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
    options: &Options,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Speculated>> {
    options.check()?;
    let free = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &free)?;
    let mut rounds = Rounds::start(model, drafter, vocabulary, &batch, options, batch.steps)?;
    stream(&batch, vocabulary, options, &mut rounds, 1, Rounds::round, on_piece)
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
/// use burn_dfa::generation::speculative::{PromptLookup, Speculated, TreeLm, speculate_recorded};
/// use burn_dfa::generation::{Options, Request};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl TreeLm, words: &Vocabulary, requests: &[Request]) -> Result<Vec<Speculated>> {
///     let drafter = PromptLookup::new(4, 3);
///     speculate_recorded(model, words, requests, &Options::default(), drafter, |_| ControlFlow::Continue(()))
/// }
/// ```
///
/// # Errors
/// As [`speculate`], and [`Error::is_model`] where the device records graphs, but not of this round.
pub fn speculate_recorded<M: TreeLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    options: &Options,
    drafter: impl Drafter,
    on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Speculated>> {
    options.check()?;
    let free = TokenTable::unconstrained(vocabulary);
    let batch = Batch::new(model, vocabulary, requests, &free)?;
    let rounds = batch.steps + RECORDING;
    let rounds = Rounds::start(model, drafter, vocabulary, &batch, options, rounds)?;
    let (mut rounds, done) = Recorded::new(rounds, &model.device())?;
    stream(&batch, vocabulary, options, &mut rounds, done, Recorded::round, on_piece)
}

/// Rounds of which the host can read what they did.
pub(super) trait Readable {
    /// As [`Rounds::read`].
    fn read(&self, rounds: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)>;
}

/// Runs rounds after the first `done`, reads them every few, and hands the tokens to their rows and the caller.
fn stream<R: Readable>(
    batch: &Batch,
    vocabulary: &Vocabulary,
    options: &Options,
    rounds: &mut R,
    mut done: usize,
    mut round: impl FnMut(&mut R),
    mut on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Speculated>> {
    let mut rows: Vec<_> =
        batch.rows(vocabulary).into_iter().map(|row| Reader::new(row, batch.length)).collect();
    let mut read = 0;
    // Every round appends a token at least.
    'rounds: loop {
        if done - read >= options.read_every || done >= batch.steps {
            let (text, lengths) = rounds.read(read..done)?;
            read = done;
            let slots = text.len() / rows.len();
            let count = rows.len();
            for (index, (row, text)) in rows.iter_mut().zip(text.chunks_exact(slots)).enumerate() {
                let lengths = lengths.iter().skip(index).step_by(count).map(|&length| length as usize);
                let Some((piece, tokens)) = row.read(text, lengths)? else {
                    continue;
                };
                if on_piece(Piece { row: index, text: &piece, tokens: &tokens }).is_break() {
                    break 'rounds;
                }
            }
            if done >= batch.steps || rows.iter().all(|reader| reader.row.is_finished()) {
                break;
            }
        }
        round(rounds);
        done += 1;
    }
    Ok(rows.into_iter().map(Reader::finish).collect())
}

/// A row of which the host has read some.
struct Reader<'a> {
    row: Row<'a>,
    /// Slots read.
    length: usize,
    calls: usize,
}

impl<'a> Reader<'a> {
    fn new(row: Row<'a>, length: usize) -> Self {
        Self { row, length, calls: 0 }
    }

    /// Takes the text up to the lengths after some rounds; gives what is new, unless the row had ended.
    fn read(
        &mut self,
        text: &[i32],
        lengths: impl Iterator<Item = usize>,
    ) -> Result<Option<(String, Vec<TokenId>)>> {
        if self.row.is_finished() {
            return Ok(None);
        }
        let (mut piece, mut tokens) = (String::new(), Vec::new());
        for length in lengths {
            if self.row.is_finished() {
                break;
            }
            let new = text.get(self.length..length).ok_or_else(|| {
                Error::model(format!("a row of {} tokens shrank or burst: {length}", self.length))
            })?;
            let new: Vec<_> = new.iter().map(|&id| TokenId(id as u32)).collect();
            let (more, taken) = self.row.take(&new)?;
            piece.push_str(&more);
            tokens.extend_from_slice(&new[..taken]);
            self.length = length;
            self.calls += 1;
        }
        Ok(Some((piece, tokens)))
    }

    fn finish(self) -> Speculated {
        Speculated { output: self.row.into_output(), calls: self.calls }
    }
}
