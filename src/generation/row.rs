//! The host's view of one row while it is generated.

use super::cancel::Cancel;
use super::request::{Finish, Output, Request};
use super::stream::Utf8Stream;
use crate::error::{Error, Result};
use crate::table::{RowPosition, TokenTable};
use crate::vocabulary::{TokenId, Vocabulary};

/// Collects the tokens of a row, and walks its table on the host to check what the device chose.
pub(super) struct Row<'a> {
    vocabulary: &'a Vocabulary,
    table: TokenTable,
    position: RowPosition,
    max_new_tokens: usize,
    cancel: Cancel,
    calls: usize,
    tokens: Vec<TokenId>,
    bytes: Vec<u8>,
    stream: Utf8Stream,
    finish: Option<Finish>,
}

impl<'a> Row<'a> {
    /// A row that follows `unconstrained` where the request has no constraint.
    pub(super) fn new(request: &Request, vocabulary: &'a Vocabulary, unconstrained: &TokenTable) -> Self {
        let table = request.table.unwrap_or(unconstrained).clone();
        Self {
            vocabulary,
            position: RowPosition::new(
                table.start(),
                request.max_new_tokens.try_into().unwrap_or(RowPosition::UNLIMITED),
            ),
            table,
            max_new_tokens: request.max_new_tokens,
            cancel: request.cancel.clone(),
            calls: 0,
            tokens: Vec::new(),
            bytes: Vec::new(),
            stream: Utf8Stream::default(),
            finish: None,
        }
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

    /// Takes the tokens that the device chose; gives the new text and how many of the tokens were taken.
    pub(super) fn append(&mut self, tokens: &[TokenId]) -> Result<(String, usize)> {
        let mut text = String::new();
        let mut taken = 0;
        for &token in tokens {
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
                let bytes = self.vocabulary.bytes(token).unwrap_or_default();
                self.bytes.extend_from_slice(bytes);
                text.push_str(&self.stream.push(bytes));
                if self.tokens.len() == self.max_new_tokens {
                    self.finish = Some(Finish::MaxNewTokens);
                }
            }
            if self.is_finished() {
                text.push_str(&std::mem::take(&mut self.stream).finish());
            }
        }
        Ok((text, taken))
    }

    /// The output so far; a row that is not finished counts as cancelled.
    pub(super) fn into_output(self) -> Output {
        let finish = self.finish.unwrap_or(Finish::Cancelled);
        Output { tokens: self.tokens, bytes: self.bytes, finish }
    }
}
