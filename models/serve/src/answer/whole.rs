//! Answers that are collected before sending.

use super::choice::{ChoiceReader, Delta};
use super::failure;
use super::stream::{AnswerEnd, Frame, Frames};
use crate::error::{ApiError, Result};
use crate::protocol::chat::{CustomCall, FunctionCall, ToolCall};
use crate::protocol::warning::Warning;
use crate::protocol::{FinishReason, Usage};
use burn_dfa_engine::{Event, Generation, Tokens};

/// A complete answer.
#[derive(Clone, Debug, Default)]
pub struct CompleteAnswer {
    /// The text outside of calls and reasoning.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// Its tokens.
    pub tokens: Tokens,
    /// How it ended.
    pub end: Option<AnswerEnd>,
}

impl CompleteAnswer {
    /// Adds a delta.
    pub fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => self.content.push_str(&text),
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::CallBegins { id, name, is_custom: false, .. } => {
                let function = Some(FunctionCall { name, arguments: String::new() });
                self.calls.push(ToolCall { id, kind: "function", function, custom: None });
            }
            Delta::CallBegins { id, name, is_custom: true, .. } => {
                let custom = Some(CustomCall { name, input: String::new() });
                self.calls.push(ToolCall { id, kind: "custom", function: None, custom });
            }
            Delta::Arguments { index, delta, .. } => match self.calls.get_mut(index) {
                Some(ToolCall { function: Some(function), .. }) => function.arguments.push_str(&delta),
                Some(ToolCall { custom: Some(custom), .. }) => custom.input.push_str(&delta),
                _ => {}
            },
            Delta::CallEnds { .. } => {}
        }
    }

    /// The reason for the end.
    pub fn finish(&self) -> Option<FinishReason> {
        self.end.map(|end| end.reason)
    }

    /// The warning that the answer is shorter than the minimum of the request.
    pub fn short(&self, index: usize) -> Option<Warning> {
        self.end?.warning(index)
    }
}

/// Tokens of a prompt and its answers.
pub fn usage(prompt_tokens: usize, answers: &[CompleteAnswer]) -> Usage {
    let mut usage = Usage::new(prompt_tokens);
    for answer in answers {
        usage.add(answer.tokens.ids.len());
        usage.add_cached(answer.end.map_or(0, |end| end.cached_tokens));
    }
    usage
}

/// Waits for all answers to a request, whose constraint is in the field `param`.
///
/// # Errors
/// The error of the first answer that failed; the other answers are canceled.
pub async fn collect(
    generation: Generation,
    readers: Vec<ChoiceReader>,
    param: &str,
) -> Result<Vec<CompleteAnswer>> {
    let mut collector = AnswerCollector(readers.iter().map(|_| CompleteAnswer::default()).collect());
    follow(generation, readers, param, &mut collector).await?;
    Ok(collector.0)
}

/// Waits for all answers to a request, and passes their events to `frames`.
///
/// # Errors
/// The error of the first answer that failed; the other answers are canceled.
pub async fn follow(
    mut generation: Generation,
    mut readers: Vec<ChoiceReader>,
    param: &str,
    frames: &mut impl Frames,
) -> Result<()> {
    let mut open = readers.len();
    while open > 0 {
        match generation.next().await {
            None => return Err(ApiError::internal("an answer did not end")),
            Some((_, Event::Started)) => {}
            Some((index, Event::Chunk { tokens, text })) => {
                frames.chunk_received(index, &tokens, readers[index].push(text)?);
            }
            Some((index, Event::Ended { ending, cached_tokens, is_short })) => {
                let (deltas, reason) = readers[index].finish(ending)?;
                frames.ended(index, deltas, AnswerEnd { reason, cached_tokens, is_short });
                open -= 1;
            }
            Some((_, Event::Failed(reason))) => return Err(failure(&reason, param)),
        }
    }
    Ok(())
}

/// Answers that are sent only after they have ended.
struct AnswerCollector(Vec<CompleteAnswer>);

impl Frames for AnswerCollector {
    fn begin(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn chunk_received(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        let all = &mut self.0[index].tokens;
        all.ids.extend_from_slice(&tokens.ids);
        all.logprobs.extend_from_slice(&tokens.logprobs);
        deltas.into_iter().for_each(|delta| self.0[index].add(delta));
        Vec::new()
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, end: AnswerEnd) -> Vec<Frame> {
        self.0[index].end = Some(end);
        self.chunk_received(index, &Tokens::default(), deltas)
    }

    fn end(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn failed(&mut self, _: &ApiError) -> Vec<Frame> {
        Vec::new()
    }
}
