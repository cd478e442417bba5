//! The loop around a batch, as an iterator: take some steps, read, return the new tokens.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::{ControlFlow, Range};

use super::log::NewLines;
use super::request::{Chunk, Output};
use super::row::{NewTokens, Row};
use burn_dfa_tokens::Result;

/// The source of tokens: a model and the state of a batch on the device.
pub(super) trait TokenSource {
    /// Takes steps up to the next read of the host, and reads; false after the last one.
    fn advance(&mut self) -> Result<bool>;

    /// The tokens of a row in the last read.
    fn row(&mut self, row: usize) -> Result<Found>;
}

/// New tokens of a row.
pub(super) struct Found {
    pub(super) new: NewTokens,
    /// The number of new tokens after each call of the model.
    pub(super) calls: Vec<usize>,
}

/// The chunks of a batch: an iterator over the arguments of the callback of
/// [`generate_with`](super::generate_with).
///
/// The iterator computes only when the caller asks for a chunk. The chunks of one read come row by
/// row; finished rows yield none. After the last chunk, or an error, the iterator ends. Dropping
/// the iterator ends the generation.
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Output, Request, stream};
/// use burn_dfa::{Result, Vocabulary};
///
/// fn run(model: &impl CausalLm, vocabulary: &Vocabulary, requests: &[Request]) -> Result<Vec<Output>> {
///     let mut pieces = stream(model, vocabulary, requests, &GenerationConfig::new())?;
///     for piece in &mut pieces {
///         let piece = piece?;
///         println!("{}: {}", piece.row, piece.text);
///     }
///     Ok(pieces.stop())
/// }
/// ```
pub struct TokenStream<'a> {
    source: Box<dyn TokenSource + 'a>,
    rows: Vec<Row<'a>>,
    /// The next row whose tokens are returned; past the rows if a read is due.
    next: usize,
    failed: bool,
}

impl<'a> TokenStream<'a> {
    pub(super) fn new(source: impl TokenSource + 'a, rows: Vec<Row<'a>>) -> Self {
        Self { source: Box::new(source), next: rows.len(), rows, failed: false }
    }

    /// Generates the rest, and gives the outputs.
    ///
    /// # Errors
    /// The first error that the iterator yields.
    pub fn finish(mut self) -> Result<Vec<Output>> {
        self.try_for_each(|piece| piece.map(drop))?;
        Ok(self.stop())
    }

    /// The outputs so far. A row that has not ended counts as
    /// [canceled](super::FinishReason::Cancelled).
    pub fn stop(self) -> Vec<Output> {
        self.into_rows().map(Row::into_output).collect()
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = Row<'a>> {
        self.rows.into_iter()
    }

    /// Passes every chunk to a callback, until it breaks.
    pub(super) fn for_each_chunk(
        mut self,
        mut on_chunk: impl FnMut(Chunk) -> ControlFlow<()>,
    ) -> Result<Self> {
        for piece in self.by_ref() {
            if on_chunk(piece?).is_break() {
                break;
            }
        }
        Ok(self)
    }

    fn try_next(&mut self) -> Result<Option<Chunk>> {
        loop {
            while let Some(row) = self.rows.get_mut(self.next) {
                let index = self.next;
                self.next += 1;
                if !row.is_finished() {
                    let Found { new, calls } = self.source.row(index)?;
                    let new = row.append(new)?;
                    let last = calls.iter().position(|&tokens| tokens >= new.tokens.len());
                    row.count_calls(last.map_or(calls.len(), |call| call + 1));
                    return Ok(Some(new.of_row(index)));
                }
            }
            self.rows.iter_mut().for_each(Row::end_if_cancelled);
            if self.rows.iter().all(Row::is_finished) || !self.source.advance()? {
                return Ok(None);
            }
            self.next = 0;
        }
    }
}

impl Iterator for TokenStream<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let piece = self.try_next().transpose();
        self.failed = matches!(piece, Some(Err(_)));
        piece
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

/// When the host reads: after every `every` steps, and after the last.
pub(super) struct ReadSchedule {
    every: usize,
    steps: usize,
    /// The number of steps already read.
    read: usize,
}

impl ReadSchedule {
    pub(super) fn new(every: usize, steps: usize) -> Self {
        Self { every, steps, read: 0 }
    }

    /// The steps up to the next read; none after the last.
    pub(super) fn next(&mut self) -> Option<Range<usize>> {
        let end = self.read.saturating_add(self.every).min(self.steps);
        let steps = self.read..end;
        self.read = end;
        (!steps.is_empty()).then_some(steps)
    }
}

/// A source of one token per row and step.
pub(super) struct StepSource<F> {
    schedule: ReadSchedule,
    /// Takes some steps and reads their tokens. Step 0 was taken when the prompts were read.
    steps: F,
    batch: usize,
    lines: NewLines,
}

impl<F: FnMut(Range<usize>) -> Result<NewLines>> StepSource<F> {
    pub(super) fn new(schedule: ReadSchedule, batch: usize, steps: F) -> Self {
        Self { schedule, steps, batch, lines: NewLines::default() }
    }
}

impl<F: FnMut(Range<usize>) -> Result<NewLines>> TokenSource for StepSource<F> {
    fn advance(&mut self) -> Result<bool> {
        let Some(steps) = self.schedule.next() else { return Ok(false) };
        self.lines = (self.steps)(steps)?;
        Ok(true)
    }

    fn row(&mut self, row: usize) -> Result<Found> {
        let new = self.lines.of_row(row, self.batch);
        Ok(Found { calls: (1..=new.tokens.len()).collect(), new })
    }
}
