//! Answers to completions.

use super::Head;
use super::choice::Delta;
use super::logprobs::Logprobs;
use super::stream::{Frame, Frames};
use super::whole::{Whole, usage};
use crate::engine::Tokens;
use crate::protocol::completion::{Completion, CompletionChoice, CompletionLogprobs};
use crate::protocol::{FinishReason, Usage};

/// The body of a response that does not stream.
pub fn completion(
    head: Head,
    prompt_tokens: usize,
    wholes: Vec<Whole>,
    logprobs: Option<&Logprobs>,
) -> Completion {
    let usage = usage(prompt_tokens, &wholes);
    let choice = |(index, whole): (usize, Whole)| CompletionChoice {
        index,
        text: whole.content,
        logprobs: logprobs.map(|logprobs| logprobs.completion(&whole.tokens, &mut 0)),
        finish_reason: whole.finish,
    };
    body(head, wholes.into_iter().enumerate().map(choice).collect(), Some(usage))
}

fn body(head: Head, choices: Vec<CompletionChoice>, usage: Option<Usage>) -> Completion {
    let Head { id, created, model } = head;
    Completion { id, object: "text_completion", created, model, choices, usage }
}

/// The frames of a response that streams.
#[derive(Debug)]
pub struct CompletionFrames {
    head: Head,
    usage: Usage,
    /// Whether a last chunk tells the usage.
    with_usage: bool,
    logprobs: Option<Logprobs>,
    /// Characters of each answer so far.
    offsets: Vec<usize>,
}

impl CompletionFrames {
    /// Frames of so many answers.
    pub fn new(
        head: Head,
        answers: usize,
        prompt_tokens: usize,
        with_usage: bool,
        logprobs: Option<Logprobs>,
    ) -> Self {
        Self { head, usage: Usage::new(prompt_tokens), with_usage, logprobs, offsets: vec![0; answers] }
    }

    fn chunk(
        &self,
        index: usize,
        text: String,
        logprobs: Option<CompletionLogprobs>,
        finish_reason: Option<FinishReason>,
    ) -> Frame {
        let choice = CompletionChoice { index, text, logprobs, finish_reason };
        Frame::data(&body(self.head.clone(), vec![choice], None))
    }
}

/// The text of some deltas; without tools there are no others.
fn text(deltas: Vec<Delta>) -> String {
    let texts = deltas.into_iter().filter_map(|delta| match delta {
        Delta::Content(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

impl Frames for CompletionFrames {
    fn begin(&mut self) -> Vec<Frame> {
        Vec::new()
    }

    fn piece(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        self.usage.add(tokens.ids.len());
        let (text, offset) = (text(deltas), &mut self.offsets[index]);
        let logprobs = self.logprobs.as_ref().map(|logprobs| logprobs.completion(tokens, offset));
        let says_nothing = text.is_empty() && logprobs.is_none();
        if says_nothing { Vec::new() } else { vec![self.chunk(index, text, logprobs, None)] }
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, reason: FinishReason, cached: usize) -> Vec<Frame> {
        self.usage.add_cached(cached);
        vec![self.chunk(index, text(deltas), None, Some(reason))]
    }

    fn end(&mut self) -> Vec<Frame> {
        let usage = || Frame::data(&body(self.head.clone(), Vec::new(), Some(self.usage)));
        self.with_usage.then(usage).into_iter().chain([Frame::done()]).collect()
    }
}
