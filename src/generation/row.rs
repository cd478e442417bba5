//! The host's view of one row while it is generated.

use std::ops::Range;

use super::logprobs::TokenLogprobs;
use super::request::{Chunk, FinishReason, Output, Request};
use super::stop::StopStrings;
use super::utf8_stream::Utf8Stream;
use crate::vocabulary::{TokenId, Vocabulary};
use burn_dfa_tokens::{Cancel, CompiledConstraint, Error, Result, RowPosition};

/// The tokens that the device chose for a row since the last read.
#[derive(Default)]
pub(super) struct NewTokens {
    pub(super) tokens: Vec<TokenId>,
    /// One entry per token, or empty.
    pub(super) logprobs: Vec<TokenLogprobs>,
    /// The number of new tokens after each call of the model; empty if calls are not counted.
    pub(super) calls: Vec<usize>,
}

impl NewTokens {
    /// Removes the tokens at `others`.
    pub(super) fn without(mut self, others: Range<usize>) -> Self {
        self.tokens.drain(others.clone());
        if !self.logprobs.is_empty() {
            self.logprobs.drain(others);
        }
        self
    }
}

/// The initial position of a row with a budget of `max_new_tokens`.
fn start_of(constraint: &CompiledConstraint, max_new_tokens: usize) -> RowPosition {
    RowPosition::new(constraint.start(), max_new_tokens.try_into().unwrap_or(RowPosition::UNLIMITED))
}

/// Collects the tokens of a row, and follows its constraint on the host to check the tokens from
/// the device.
pub(super) struct Row<'a> {
    /// The number of the row in its batch.
    index: usize,
    vocabulary: &'a Vocabulary,
    constraint: CompiledConstraint,
    position: RowPosition,
    max_new_tokens: usize,
    cancel: Cancel,
    calls: usize,
    tokens: Vec<TokenId>,
    logprobs: Vec<TokenLogprobs>,
    /// The text passed to the caller, without a suffix that may begin a stop string.
    bytes: Vec<u8>,
    stop: StopStrings,
    stop_tokens: Vec<TokenId>,
    include_stop: bool,
    /// Stop strings and stop tokens count only after this number of tokens.
    stop_after: usize,
    /// Whether special tokens are text.
    special_tokens: bool,
    stream: Utf8Stream,
    finish: Option<FinishReason>,
    ended_by_budget: bool,
}

impl<'a> Row<'a> {
    /// Row `index` of a batch, which follows a constraint.
    pub(super) fn new(
        index: usize,
        request: &Request,
        constraint: &CompiledConstraint,
        vocabulary: &'a Vocabulary,
    ) -> Self {
        Self {
            index,
            vocabulary,
            position: start_of(constraint, request.max_new_tokens),
            constraint: constraint.clone(),
            max_new_tokens: request.max_new_tokens,
            cancel: request.cancel.clone(),
            calls: 0,
            tokens: Vec::new(),
            logprobs: Vec::new(),
            bytes: Vec::new(),
            stop: StopStrings::new(&request.stop, request.include_stop),
            stop_tokens: request.stop_tokens.clone(),
            include_stop: request.include_stop,
            stop_after: request.stop_after,
            special_tokens: request.special_tokens,
            stream: Utf8Stream::default(),
            finish: None,
            ended_by_budget: false,
        }
    }

    /// Sets the constraint of a row that has no tokens yet.
    pub(super) fn constrain(&mut self, constraint: CompiledConstraint) {
        self.position = start_of(&constraint, self.max_new_tokens);
        self.constraint = constraint;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Ends the row if its request was canceled.
    pub(super) fn end_if_canceled(&mut self) {
        if self.cancel.is_canceled() {
            self.finish = self.finish.or(Some(FinishReason::Canceled));
        }
    }

    /// The number of counted calls of the model, until the row ended or so far; reading the prompt
    /// counts as one.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Takes new tokens from the device, up to the end of the row; returns the new output.
    pub(super) fn append(&mut self, mut new: NewTokens) -> Result<Chunk> {
        let (mut bytes, mut taken) = (Vec::new(), 0);
        for &token in &new.tokens {
            if self.is_finished() {
                break;
            }
            let is_end = self.vocabulary.eos().contains(&token);
            self.ended_by_budget = is_end && self.position.remaining == 1 && self.may_go_on();
            self.position = self.constraint.after(&self.position, token);
            if !self.constraint.can_end(&self.position) {
                return Err(Error::model(format!(
                    "after {} tokens, none that the constraint and the budget allow had a logit above −∞, and token {token} came out: the logits are −∞ or NaN, or the sampler took a masked token",
                    self.tokens.len()
                )));
            }
            taken += 1;
            self.tokens.push(token);
            let stops_count = self.tokens.len() > self.stop_after;
            let text = self.text_of(token);
            if is_end || stops_count && self.stop_tokens.contains(&token) {
                self.finish = Some(if is_end { FinishReason::EndOfSequence } else { FinishReason::Stop });
                if self.include_stop {
                    bytes.extend(self.stop.finish());
                    bytes.extend(text);
                }
                continue;
            }
            let (free, is_stopped) = if stops_count { self.stop.push(text) } else { (text.to_vec(), false) };
            bytes.extend(free);
            if is_stopped {
                self.finish = Some(FinishReason::Stop);
            } else if self.tokens.len() == self.max_new_tokens {
                self.finish = Some(FinishReason::MaxNewTokens);
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
        let last = new.calls.iter().position(|&tokens| tokens >= taken);
        self.calls += last.map_or(new.calls.len(), |call| call + 1);
        Ok(Chunk { row: self.index, text, tokens: new.tokens, logprobs: new.logprobs })
    }

    /// The bytes that a token adds to the text.
    fn text_of(&self, token: TokenId) -> &'a [u8] {
        let text = match self.special_tokens {
            true => self.vocabulary.content(token),
            false => self.vocabulary.bytes(token),
        };
        text.unwrap_or_default()
    }

    /// Whether the constraint would allow another token with a larger budget.
    fn may_go_on(&self) -> bool {
        let unlimited = RowPosition { remaining: RowPosition::UNLIMITED, ..self.position.clone() };
        let mut tokens = (0..self.vocabulary.len() as u32).map(TokenId);
        tokens.any(|token| {
            !self.vocabulary.eos().contains(&token)
                && self.constraint.can_end(&self.constraint.after(&unlimited, token))
        })
    }

    /// The output so far; a row that is not finished counts as canceled.
    pub(super) fn into_output(mut self) -> Output {
        let finish = self.finish.unwrap_or(FinishReason::Canceled);
        self.bytes.extend(self.stop.finish());
        let Self { tokens, bytes, logprobs, ended_by_budget, .. } = self;
        Output { tokens, bytes, logprobs, finish, ended_by_budget }
    }
}
