//! Answers to completions.

use super::Head;
use super::choice::Delta;
use super::logprobs::Logprobs;
use super::stream::{AnswerEnd, Frame, Frames};
use super::whole::{CompleteAnswer, usage};
use crate::protocol::completion::{Completion, CompletionChoice, CompletionLogprobs};
use crate::protocol::warning::Warning;
use crate::protocol::{FinishReason, Usage};
use burn_dfa_engine::Tokens;

/// The body of a response without streaming.
pub fn completion(
    head: Head,
    prompt_tokens: usize,
    answers: Vec<CompleteAnswer>,
    logprobs: Option<&Logprobs>,
    mut warnings: Vec<Warning>,
) -> Completion {
    let usage = usage(prompt_tokens, &answers);
    warnings.extend(answers.iter().enumerate().filter_map(|(index, answer)| answer.short(index)));
    let choice = |(index, answer): (usize, CompleteAnswer)| CompletionChoice {
        index,
        finish_reason: answer.finish(),
        logprobs: logprobs.map(|logprobs| logprobs.completion(&answer.tokens, &mut 0)),
        text: answer.content,
    };
    body(head, answers.into_iter().enumerate().map(choice).collect(), Some(usage), warnings)
}

fn body(
    head: Head,
    choices: Vec<CompletionChoice>,
    usage: Option<Usage>,
    warnings: Vec<Warning>,
) -> Completion {
    let Head { id, created, model } = head;
    Completion { id, object: "text_completion", created, model, choices, usage, warnings }
}

impl Completion {
    /// Adds each prompt in front of its answers.
    #[must_use]
    pub fn with_echo(mut self, prompts: &[String]) -> Self {
        let answers = self.choices.len();
        for (index, choice) in self.choices.iter_mut().enumerate() {
            choice.text.insert_str(0, echo(prompts, index, answers));
        }
        self
    }
}

/// The prompt of an answer, given the number of answers to all prompts.
fn echo(prompts: &[String], index: usize, answers: usize) -> &str {
    let each = answers / prompts.len().max(1);
    prompts.get(index / each.max(1)).map_or("", String::as_str)
}

/// The frames of a streamed response.
#[derive(Debug)]
pub struct CompletionFrames {
    head: Head,
    usage: Usage,
    /// Whether a last chunk reports the usage.
    with_usage: bool,
    logprobs: Option<Logprobs>,
    /// Characters of each answer so far.
    offsets: Vec<usize>,
    /// Warnings that were not sent yet.
    warnings: Vec<Warning>,
    /// The prompts, if answers begin with them.
    prompts: Vec<String>,
}

impl CompletionFrames {
    /// Frames of `answers` answers.
    pub fn new(
        head: Head,
        answers: usize,
        prompt_tokens: usize,
        with_usage: bool,
        logprobs: Option<Logprobs>,
    ) -> Self {
        let (usage, offsets) = (Usage::new(prompt_tokens), vec![0; answers]);
        let (warnings, prompts) = (Vec::new(), Vec::new());
        Self { head, usage, with_usage, logprobs, offsets, warnings, prompts }
    }

    /// Sends warnings in the first chunk.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }

    /// Adds each prompt in front of its answers.
    #[must_use]
    pub fn with_echo(self, prompts: Vec<String>) -> Self {
        Self { prompts, ..self }
    }

    fn chunk(
        &mut self,
        index: usize,
        text: String,
        logprobs: Option<CompletionLogprobs>,
        finish_reason: Option<FinishReason>,
    ) -> Frame {
        let choice = CompletionChoice { index, text, logprobs, finish_reason };
        let warnings = std::mem::take(&mut self.warnings);
        Frame::data(&body(self.head.clone(), vec![choice], None, warnings))
    }
}

/// The text of some deltas; without tools there are no other deltas.
fn text(deltas: Vec<Delta>) -> String {
    let texts = deltas.into_iter().filter_map(|delta| match delta {
        Delta::Content(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

impl Frames for CompletionFrames {
    fn begin(&mut self) -> Vec<Frame> {
        let answers = self.offsets.len();
        let echoes = (0..answers).map(|index| echo(&self.prompts, index, answers).to_owned());
        let echoes: Vec<String> = echoes.collect();
        let told = echoes.into_iter().enumerate().filter(|(_, echo)| !echo.is_empty());
        told.map(|(index, echo)| self.chunk(index, echo, None, None)).collect()
    }

    fn chunk_received(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        self.usage.add(tokens.ids.len());
        let (text, offset) = (text(deltas), &mut self.offsets[index]);
        let logprobs = self.logprobs.as_ref().map(|logprobs| logprobs.completion(tokens, offset));
        let says_nothing = text.is_empty() && logprobs.is_none();
        if says_nothing { Vec::new() } else { vec![self.chunk(index, text, logprobs, None)] }
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, end: AnswerEnd) -> Vec<Frame> {
        self.usage.add_cached(end.cached_tokens);
        self.warnings.extend(end.warning(index));
        vec![self.chunk(index, text(deltas), None, Some(end.reason))]
    }

    fn end(&mut self) -> Vec<Frame> {
        let usage = || Frame::data(&body(self.head.clone(), Vec::new(), Some(self.usage), Vec::new()));
        self.with_usage.then(usage).into_iter().chain([Frame::done()]).collect()
    }
}
