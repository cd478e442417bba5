//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;

use super::choice::{ChoiceReader, Delta};
use super::failure;
use crate::engine::{Event, Generation, Tokens};
use crate::error::{ApiError, Result};
use crate::protocol::FinishReason;

/// How often a comment is sent where there is nothing else.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An event that is to be sent.
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

/// Makes the frames of an endpoint.
pub trait Frames: Send + 'static {
    /// In front of all answers.
    fn begin(&mut self) -> Vec<Frame>;
    /// More of an answer.
    fn piece(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame>;
    /// The end of an answer, and how many tokens of its prompt were not read anew.
    fn ended(&mut self, index: usize, deltas: Vec<Delta>, reason: FinishReason, cached: usize) -> Vec<Frame>;
    /// After all answers.
    fn end(&mut self) -> Vec<Frame>;
    /// Instead of the rest.
    fn failed(&mut self, error: &ApiError) -> Vec<Frame> {
        vec![Frame::data(&error.body()), Frame::done()]
    }
}

/// Answers while they are sent.
struct Sending<F> {
    generation: Generation,
    readers: Vec<ChoiceReader>,
    frames: F,
    /// Where the constraint stands.
    param: String,
    ready: VecDeque<Frame>,
    open: usize,
    is_over: bool,
}

/// Sends answers as they come. Where the client goes, they are ended.
pub fn send(
    generation: Generation,
    readers: Vec<ChoiceReader>,
    param: &str,
    mut frames: impl Frames,
) -> Response {
    let ready = frames.begin().into();
    let (open, param) = (readers.len(), param.to_owned());
    let sending = Sending { generation, readers, frames, param, ready, open, is_over: false };
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

impl<F: Frames> Sending<F> {
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
            Event::Begun => Ok(Vec::new()),
            Event::Piece { tokens, text } => {
                let deltas = self.readers[index].push(text)?;
                Ok(self.frames.piece(index, &tokens, deltas))
            }
            Event::Ended { ending, cached_tokens } => {
                let (deltas, reason) = self.readers[index].finish(ending)?;
                self.open -= 1;
                Ok(self.frames.ended(index, deltas, reason, cached_tokens))
            }
            Event::Failed(reason) => Err(failure(&reason, &self.param)),
        }
    }
}
