//! Answers to chat completions.

use super::Head;
use super::choice::Delta;
use super::legal::Legal;
use super::logprobs::Logprobs;
use super::stream::{Frame, Frames};
use super::whole::{Whole, usage};
use crate::engine::Tokens;
use crate::protocol::chat::{
    AnswerMessage, CallDelta, ChatChoice, ChatChunk, ChatCompletion, ChatDelta, ChatLogprobs, ChunkChoice,
    FunctionDelta,
};
use crate::protocol::{FinishReason, Usage};

/// The body of a response that does not stream.
pub fn completion(
    head: Head,
    prompt_tokens: usize,
    wholes: Vec<Whole>,
    logprobs: Option<&Logprobs>,
) -> ChatCompletion {
    let usage = usage(prompt_tokens, &wholes);
    let choices =
        wholes.into_iter().enumerate().map(|(index, whole)| choice(index, whole, logprobs)).collect();
    let Head { id, created, model } = head;
    ChatCompletion { id, object: "chat.completion", created, model, choices, usage }
}

fn choice(index: usize, whole: Whole, logprobs: Option<&Logprobs>) -> ChatChoice {
    let is_silent = whole.content.is_empty() && !whole.calls.is_empty();
    ChatChoice {
        index,
        message: AnswerMessage {
            role: "assistant",
            content: (!is_silent).then_some(whole.content),
            reasoning_content: (!whole.reasoning.is_empty()).then_some(whole.reasoning),
            refusal: None,
            tool_calls: whole.calls,
        },
        logprobs: logprobs.map(|logprobs| logprobs.chat(&whole.tokens)),
        finish_reason: whole.finish.unwrap_or(FinishReason::Stop),
    }
}

/// The frames of a response that streams.
#[derive(Debug)]
pub struct ChatFrames {
    head: Head,
    answers: usize,
    usage: Usage,
    /// Whether a last chunk tells the usage.
    with_usage: bool,
    logprobs: Option<Logprobs>,
    legal: Option<Legal>,
}

impl ChatFrames {
    /// Frames of so many answers.
    pub fn new(
        head: Head,
        answers: usize,
        prompt_tokens: usize,
        with_usage: bool,
        logprobs: Option<Logprobs>,
    ) -> Self {
        Self { head, answers, usage: Usage::new(prompt_tokens), with_usage, logprobs, legal: None }
    }

    /// With the numbers of legal tokens.
    #[must_use]
    pub fn with_legal(self, legal: Option<Legal>) -> Self {
        Self { legal, ..self }
    }

    fn chunk(&self, choices: Vec<ChunkChoice>, usage: Option<Usage>) -> Frame {
        let Head { id, created, model } = self.head.clone();
        Frame::data(&ChatChunk { id, object: "chat.completion.chunk", created, model, choices, usage })
    }

    fn choice(&self, index: usize, delta: ChatDelta, finish_reason: Option<FinishReason>) -> Frame {
        let choice = ChunkChoice { index, delta, logprobs: None, legal_tokens: Vec::new(), finish_reason };
        self.chunk(vec![choice], None)
    }

    /// Chunks of some deltas, the first of which has the log-probabilities and the numbers of legal tokens.
    fn deltas(
        &self,
        index: usize,
        deltas: Vec<Delta>,
        mut logprobs: Option<ChatLogprobs>,
        mut legal_tokens: Vec<usize>,
    ) -> Vec<Frame> {
        let mut deltas: Vec<ChatDelta> = deltas.into_iter().filter_map(delta).collect();
        if deltas.is_empty() && (logprobs.is_some() || !legal_tokens.is_empty()) {
            deltas.push(ChatDelta { content: Some(String::new()), ..ChatDelta::default() });
        }
        let choice = |delta| ChunkChoice {
            index,
            delta,
            logprobs: logprobs.take(),
            legal_tokens: std::mem::take(&mut legal_tokens),
            finish_reason: None,
        };
        let choices: Vec<ChunkChoice> = deltas.into_iter().map(choice).collect();
        choices.into_iter().map(|choice| self.chunk(vec![choice], None)).collect()
    }
}

/// A delta as chunks have it.
fn delta(delta: Delta) -> Option<ChatDelta> {
    let call = |index, id: Option<String>, name, arguments| ChatDelta {
        tool_calls: vec![CallDelta {
            index,
            kind: id.is_some().then_some("function"),
            id,
            function: FunctionDelta { name, arguments },
        }],
        ..ChatDelta::default()
    };
    Some(match delta {
        Delta::Content(text) => ChatDelta { content: Some(text), ..ChatDelta::default() },
        Delta::Reasoning(text) => ChatDelta { reasoning_content: Some(text), ..ChatDelta::default() },
        Delta::CallBegins { index, id, name } => call(index, Some(id), Some(name), String::new()),
        Delta::Arguments { index, delta } => call(index, None, None, delta),
        Delta::CallEnds { .. } => return None,
    })
}

impl Frames for ChatFrames {
    fn begin(&mut self) -> Vec<Frame> {
        let first =
            || ChatDelta { role: Some("assistant"), content: Some(String::new()), ..ChatDelta::default() };
        (0..self.answers).map(|index| self.choice(index, first(), None)).collect()
    }

    fn piece(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        self.usage.add(tokens.ids.len());
        let logprobs = self.logprobs.as_ref().map(|logprobs| logprobs.chat(tokens));
        let legal = self.legal.as_mut().map(|legal| legal.follow(index, &tokens.ids));
        self.deltas(index, deltas, logprobs, legal.unwrap_or_default())
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, reason: FinishReason, cached: usize) -> Vec<Frame> {
        self.usage.add_cached(cached);
        let mut frames = self.deltas(index, deltas, None, Vec::new());
        frames.push(self.choice(index, ChatDelta::default(), Some(reason)));
        frames
    }

    fn end(&mut self) -> Vec<Frame> {
        let usage = self.with_usage.then(|| self.chunk(Vec::new(), Some(self.usage)));
        usage.into_iter().chain([Frame::done()]).collect()
    }
}
