//! The host's view of one row while it is generated.

use std::ops::Range;

use super::cancel::Cancel;
use super::logprobs::TokenLogprobs;
use super::request::{Finish, Output, Piece, Request};
use super::stop::StopStrings;
use super::stream::Utf8Stream;
use crate::error::{Error, Result};
use crate::table::{RowPosition, TokenTable};
use crate::vocabulary::{TokenId, Vocabulary};

/// What the device chose for a row since the last read.
#[derive(Default)]
pub(super) struct NewTokens {
    pub(super) tokens: Vec<TokenId>,
    /// Of every token, or none.
    pub(super) logprobs: Vec<TokenLogprobs>,
}

impl NewTokens {
    /// Without some of the tokens.
    pub(super) fn without(mut self, others: Range<usize>) -> Self {
        self.tokens.drain(others.clone());
        if !self.logprobs.is_empty() {
            self.logprobs.drain(others);
        }
        self
    }
}

/// What is new of a row's output.
pub(super) struct NewText {
    pub(super) text: String,
    pub(super) tokens: Vec<TokenId>,
    pub(super) logprobs: Vec<TokenLogprobs>,
}

impl NewText {
    /// As a piece of the output of row `row`.
    pub(super) fn of_row(self, row: usize) -> Piece {
        Piece { row, text: self.text, tokens: self.tokens, logprobs: self.logprobs }
    }
}

/// Where a row of so many tokens begins.
fn start_of(table: &TokenTable, max_new_tokens: usize) -> RowPosition {
    RowPosition::new(table.start(), max_new_tokens.try_into().unwrap_or(RowPosition::UNLIMITED))
}

/// Collects the tokens of a row, and walks its table on the host to check what the device chose.
pub(super) struct Row<'a> {
    vocabulary: &'a Vocabulary,
    table: TokenTable,
    position: RowPosition,
    max_new_tokens: usize,
    cancel: Cancel,
    calls: usize,
    tokens: Vec<TokenId>,
    logprobs: Vec<TokenLogprobs>,
    /// What was handed out: what may begin a stop string is held back.
    bytes: Vec<u8>,
    stop: StopStrings,
    stream: Utf8Stream,
    finish: Option<Finish>,
}

impl<'a> Row<'a> {
    /// A row that follows `unconstrained` where the request has no constraint.
    pub(super) fn new(request: &Request, vocabulary: &'a Vocabulary, unconstrained: &TokenTable) -> Self {
        let table = request.table.unwrap_or(unconstrained).clone();
        Self {
            vocabulary,
            position: start_of(&table, request.max_new_tokens),
            table,
            max_new_tokens: request.max_new_tokens,
            cancel: request.cancel.clone(),
            calls: 0,
            tokens: Vec::new(),
            logprobs: Vec::new(),
            bytes: Vec::new(),
            stop: StopStrings::new(&request.stop),
            stream: Utf8Stream::default(),
            finish: None,
        }
    }

    /// Follows a table from here on; nothing was chosen yet.
    pub(super) fn constrain(&mut self, table: TokenTable) {
        self.position = start_of(&table, self.max_new_tokens);
        self.table = table;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Ends the row if it was asked to.
    pub(super) fn end_if_cancelled(&mut self) {
        if self.cancel.is_cancelled() {
            self.finish = self.finish.or(Some(Finish::Cancelled));
        }
    }

    /// Calls of the model until the row ended, or so far; the reading of the prompt included.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Counts calls of the model.
    pub(super) fn count_calls(&mut self, calls: usize) {
        self.calls += calls;
    }

    /// Takes what the device chose, up to the end of the row; gives what is new of it.
    pub(super) fn append(&mut self, mut new: NewTokens) -> Result<NewText> {
        let (mut bytes, mut taken) = (Vec::new(), 0);
        for &token in &new.tokens {
            if self.is_finished() {
                break;
            }
            self.position = self.table.after(&self.position, token);
            if !self.table.can_end(&self.position) {
                return Err(Error::model(format!(
                    "after {} tokens, none that the constraint and the budget allow had a logit above −∞, and token {token} came out: the logits are −∞ or NaN",
                    self.tokens.len()
                )));
            }
            taken += 1;
            self.tokens.push(token);
            if self.vocabulary.eos().contains(&token) {
                self.finish = Some(Finish::EndOfSequence);
            } else {
                let (free, is_stopped) = self.stop.push(self.vocabulary.bytes(token).unwrap_or_default());
                bytes.extend(free);
                if is_stopped {
                    self.finish = Some(Finish::Stop);
                } else if self.tokens.len() == self.max_new_tokens {
                    self.finish = Some(Finish::MaxNewTokens);
                }
            }
        }
        if self.is_finished() {
            bytes.extend(self.stop.finish());
        }
        let mut text = self.stream.push(&bytes);
        if self.is_finished() {
            text.push_str(&std::mem::take(&mut self.stream).finish());
        }
        self.bytes.extend(bytes);
        new.tokens.truncate(taken);
        new.logprobs.truncate(taken);
        self.logprobs.extend_from_slice(&new.logprobs);
        Ok(NewText { text, tokens: new.tokens, logprobs: new.logprobs })
    }

    /// The output so far; a row that is not finished counts as cancelled.
    pub(super) fn into_output(mut self) -> Output {
        let finish = self.finish.unwrap_or(Finish::Cancelled);
        self.bytes.extend(self.stop.finish());
        Output { tokens: self.tokens, bytes: self.bytes, logprobs: self.logprobs, finish }
    }
}
