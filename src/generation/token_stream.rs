//! The loop around a batch whose rows begin together, as an iterator: take some steps, read, return
//! the new tokens.

use std::borrow::BorrowMut;
use std::fmt;
use std::iter::{Enumerate, FusedIterator};
use std::ops::Range;
use std::vec;

use super::batch::Batch;
use super::recorded::{Stepped, Steps};
use super::request::{Chunk, Output};
use super::row::{NewTokens, Row};
use burn_dfa_tokens::Result;

/// The chunks of a batch, as an iterator, which [`stream`](super::stream) returns.
///
/// The iterator computes only when the caller asks for a chunk. The chunks of one read come row by
/// row; finished rows yield none. After the last chunk, or an error, the iterator ends. Dropping
/// the iterator ends the generation.
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Output, Request, stream};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(
///     model: &impl CausalLm,
///     vocabulary: &Vocabulary,
///     requests: &[Request],
/// ) -> Result<Vec<Output>> {
///     let mut chunks = stream(model, vocabulary, requests, &GenerationConfig::new())?;
///     for chunk in &mut chunks {
///         let chunk = chunk?;
///         println!("{}: {}", chunk.row, chunk.text);
///     }
///     Ok(chunks.stop())
/// }
/// ```
pub struct TokenStream<'a> {
    /// Takes steps up to the end of a range, and reads the tokens of these steps.
    steps: Box<dyn FnMut(Range<usize>) -> Result<Vec<NewTokens>> + 'a>,
    /// Steps between two reads.
    every: usize,
    /// Steps in all, and how many of them are read.
    max_steps: usize,
    read: usize,
    rows: Vec<Row<'a>>,
    /// The tokens of the last read that are not returned yet.
    new: Enumerate<vec::IntoIter<NewTokens>>,
    failed: bool,
}

impl<'a> TokenStream<'a> {
    /// The chunks of a batch that has taken `taken` steps, read after every `every` steps.
    pub(super) fn new<'s: 'a, S: Steps + 's>(
        mut session: impl BorrowMut<Stepped<'s, S>> + 'a,
        mut taken: usize,
        batch: &Batch<'_, 'a>,
        every: usize,
    ) -> Self {
        let steps = move |steps: Range<usize>| {
            let session: &mut Stepped<'s, S> = session.borrow_mut();
            while taken < steps.end {
                session.step()?;
                taken += 1;
            }
            session.lock()?.read(steps)
        };
        Self {
            steps: Box::new(steps),
            every,
            max_steps: batch.steps,
            read: 0,
            rows: batch.host_rows(),
            new: Vec::new().into_iter().enumerate(),
            failed: false,
        }
    }

    /// Generates the rest, and gives the outputs.
    ///
    /// # Errors
    /// The first error that the iterator yields.
    pub fn finish(self) -> Result<Vec<Output>> {
        Ok(self.complete()?.stop())
    }

    /// Generates the rest.
    pub(super) fn complete(mut self) -> Result<Self> {
        self.try_for_each(|chunk| chunk.map(drop))?;
        Ok(self)
    }

    /// The outputs so far. A row that has not ended counts as
    /// [canceled](super::FinishReason::Canceled).
    pub fn stop(self) -> Vec<Output> {
        self.into_rows().map(Row::into_output).collect()
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = Row<'a>> {
        self.rows.into_iter()
    }

    fn try_next(&mut self) -> Result<Option<Chunk>> {
        loop {
            for (index, new) in self.new.by_ref() {
                if !self.rows[index].is_finished() {
                    return self.rows[index].append(new).map(Some);
                }
            }
            self.rows.iter_mut().for_each(Row::end_if_canceled);
            let end = self.read.saturating_add(self.every).min(self.max_steps);
            if end == self.read || self.rows.iter().all(Row::is_finished) {
                return Ok(None);
            }
            self.new = (self.steps)(self.read..end)?.into_iter().enumerate();
            self.read = end;
        }
    }
}

impl Iterator for TokenStream<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let chunk = self.try_next().transpose();
        self.failed = matches!(chunk, Some(Err(_)));
        chunk
    }
}

impl FusedIterator for TokenStream<'_> {}

impl fmt::Debug for TokenStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finished = self.rows.iter().filter(|row| row.is_finished()).count();
        f.debug_struct("TokenStream")
            .field("rows", &self.rows.len())
            .field("finished", &finished)
            .finish_non_exhaustive()
    }
}
