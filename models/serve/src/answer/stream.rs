//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use burn_dfa_engine::{Event, Generation, Tokens};
use futures_util::stream::unfold;
use serde::Serialize;

use super::choice::{ChoiceReader, Delta};
use super::failure;
use crate::error::{ApiError, Result};
use crate::protocol::FinishReason;
use crate::protocol::warning::Warning;

/// How often a comment is sent if there is nothing else to send.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An event to send.
#[derive(Clone, Debug)]
pub struct Frame {
    name: Option<&'static str>,
    data: String,
}

impl Frame {
    /// An event without a name.
    pub fn data(data: &impl Serialize) -> Self {
        Self { name: None, data: json(data) }
    }

    /// An event with a name.
    pub fn named(name: &'static str, data: &impl Serialize) -> Self {
        Self { name: Some(name), data: json(data) }
    }

    /// The last event of chats and completions.
    pub fn done() -> Self {
        Self { name: None, data: "[DONE]".into() }
    }
}

fn json(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("what is sent has no maps but those of strings")
}

/// How an answer ended.
#[derive(Clone, Copy, Debug)]
pub struct AnswerEnd {
    /// The reason.
    pub reason: FinishReason,
    /// Tokens of the prompt that came from the prefix cache.
    pub cached_tokens: usize,
    /// Whether the answer is shorter than the minimum of the request.
    pub is_short: bool,
}

impl AnswerEnd {
    /// The warning about an answer that is shorter than the minimum of the request.
    pub fn warning(self, index: usize) -> Option<Warning> {
        let message = format!(
            "answer {index} has fewer tokens than `min_tokens`: its constraint allowed nothing after them but the end"
        );
        self.is_short.then(|| Warning { param: "min_tokens".into(), message })
    }
}

/// Makes the frames of an endpoint.
pub trait Frames: Send + 'static {
    /// Frames before all answers.
    fn begin(&mut self) -> Vec<Frame>;
    /// Frames of more text of an answer.
    fn chunk_received(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame>;
    /// The end of an answer, and the deltas that came with it.
    fn ended(&mut self, index: usize, deltas: Vec<Delta>, end: AnswerEnd) -> Vec<Frame>;
    /// After all answers.
    fn end(&mut self) -> Vec<Frame>;
    /// Frames of an error, which replace the rest.
    fn failed(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::data(&error.body()), Frame::done()]
    }
}

/// Answers in progress.
struct AnswerStream<F> {
    generation: Generation,
    readers: Vec<ChoiceReader>,
    frames: F,
    /// The field of the constraint.
    param: String,
    ready: VecDeque<Frame>,
    open: usize,
    is_over: bool,
}

/// Sends answers as they come. If the client disconnects, they are canceled.
pub fn send(
    generation: Generation,
    readers: Vec<ChoiceReader>,
    param: &str,
    mut frames: impl Frames,
) -> Response {
    let ready = frames.begin().into();
    let (open, param) = (readers.len(), param.to_owned());
    let sending = AnswerStream { generation, readers, frames, param, ready, open, is_over: false };
    let stream = unfold(sending, |mut sending| async {
        let frame = sending.next().await?;
        let sent = match frame.name {
            Some(name) => Sent::default().event(name),
            None => Sent::default(),
        };
        Some((Ok::<_, Infallible>(sent.data(frame.data)), sending))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl<F: Frames> AnswerStream<F> {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.is_over {
                return None;
            }
            let frames = match self.generation.next().await {
                None => Err(ApiError::internal("an answer did not end")),
                Some((index, event)) => self.take(index, event),
            };
            match frames {
                Ok(frames) => self.ready.extend(frames),
                Err(error) => {
                    self.is_over = true;
                    self.ready.extend(self.frames.failed(&error));
                }
            }
            if self.open == 0 && !self.is_over {
                self.is_over = true;
                self.ready.extend(self.frames.end());
            }
        }
    }

    fn take(&mut self, index: usize, event: Event) -> Result<Vec<Frame>> {
        match event {
            Event::Started => Ok(Vec::new()),
            Event::Chunk { tokens, text } => {
                let deltas = self.readers[index].push(text)?;
                Ok(self.frames.chunk_received(index, &tokens, deltas))
            }
            Event::Ended { ending, cached_tokens, is_short } => {
                let (deltas, reason) = self.readers[index].finish(ending)?;
                self.open -= 1;
                Ok(self.frames.ended(index, deltas, AnswerEnd { reason, cached_tokens, is_short }))
            }
            Event::Failed(reason) => Err(failure(&reason, &self.param)),
        }
    }
}
