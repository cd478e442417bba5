//! Answers that are collected before they are sent.

use super::choice::{ChoiceReader, Delta};
use super::failure;
use super::stream::{Frame, Frames};
use crate::engine::{Event, Generation, Tokens};
use crate::error::{ApiError, Result};
use crate::protocol::chat::{FunctionCall, ToolCall};
use crate::protocol::{FinishReason, Usage};

/// A whole answer.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// The text outside of calls and reasoning.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// Its tokens.
    pub tokens: Tokens,
    /// Tokens of its prompt that were not read anew.
    pub cached_tokens: usize,
    /// Why it ended.
    pub finish: Option<FinishReason>,
}

impl Whole {
    /// Adds what is new.
    pub fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => self.content.push_str(&text),
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::CallBegins { id, name, .. } => {
                let function = FunctionCall { name, arguments: String::new() };
                self.calls.push(ToolCall { id, kind: "function", function });
            }
            Delta::Arguments { index, delta } => {
                if let Some(call) = self.calls.get_mut(index) {
                    call.function.arguments.push_str(&delta);
                }
            }
            Delta::CallEnds { .. } => {}
        }
    }
}

/// Tokens of a prompt and its answers.
pub fn usage(prompt_tokens: usize, wholes: &[Whole]) -> Usage {
    let mut usage = Usage::new(prompt_tokens);
    for whole in wholes {
        usage.add(whole.tokens.ids.len());
        usage.add_cached(whole.cached_tokens);
    }
    usage
}

/// Waits for all answers to a request, whose constraint stands in `param`.
///
/// # Errors
/// What became of the first that failed; the others are ended.
pub async fn collect(generation: Generation, readers: Vec<ChoiceReader>, param: &str) -> Result<Vec<Whole>> {
    let mut wholes = Wholes(readers.iter().map(|_| Whole::default()).collect());
    follow(generation, readers, param, &mut wholes).await?;
    Ok(wholes.0)
}

/// Waits for all answers to a request, and hands what comes to `frames`.
///
/// # Errors
/// What became of the first that failed; the others are ended.
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
            Some((_, Event::Begun)) => {}
            Some((index, Event::Piece { tokens, text })) => {
                frames.piece(index, &tokens, readers[index].push(text)?);
            }
            Some((index, Event::Ended { ending, cached_tokens })) => {
                let (deltas, reason) = readers[index].finish(ending)?;
                frames.ended(index, deltas, reason, cached_tokens);
                open -= 1;
            }
            Some((_, Event::Failed(reason))) => return Err(failure(&reason, param)),
        }
    }
    Ok(())
}

/// Answers that nothing is sent of before they have ended.
struct Wholes(Vec<Whole>);

impl Frames for Wholes {
    fn begin(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn piece(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        let all = &mut self.0[index].tokens;
        all.ids.extend_from_slice(&tokens.ids);
        all.logprobs.extend_from_slice(&tokens.logprobs);
        deltas.into_iter().for_each(|delta| self.0[index].add(delta));
        Vec::new()
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, reason: FinishReason, cached: usize) -> Vec<Frame> {
        self.0[index].finish = Some(reason);
        self.0[index].cached_tokens = cached;
        self.piece(index, &Tokens::default(), deltas)
    }

    fn end(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn failed(&mut self, _: &ApiError) -> Vec<Frame> {
        Vec::new()
    }
}
