//! Answers to chat completions.

use super::Head;
use super::choice::Delta;
use super::legal::LegalTokenCounter;
use super::logprobs::Logprobs;
use super::stream::{AnswerEnd, Frame, Frames};
use super::whole::{CompleteAnswer, usage};
use crate::protocol::chat::{
    AnswerMessage, CallDelta, ChatChoice, ChatChunk, ChatCompletion, ChatDelta, ChatLogprobs, ChunkChoice,
    CustomDelta, FunctionDelta,
};
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
) -> ChatCompletion {
    let usage = usage(prompt_tokens, &answers);
    warnings.extend(answers.iter().enumerate().filter_map(|(index, answer)| answer.short(index)));
    let choices =
        answers.into_iter().enumerate().map(|(index, answer)| choice(index, answer, logprobs)).collect();
    let Head { id, created, model } = head;
    ChatCompletion { id, object: "chat.completion", created, model, choices, usage, warnings }
}

impl ChatCompletion {
    /// Adds a text in front of each answer, also if it has only calls.
    #[must_use]
    pub fn with_echo(mut self, echo: &str) -> Self {
        if !echo.is_empty() {
            for choice in &mut self.choices {
                choice.message.content.get_or_insert_default().insert_str(0, echo);
            }
        }
        self
    }
}

fn choice(index: usize, answer: CompleteAnswer, logprobs: Option<&Logprobs>) -> ChatChoice {
    let is_silent = answer.content.is_empty() && !answer.calls.is_empty();
    let finish = answer.finish();
    ChatChoice {
        index,
        message: AnswerMessage {
            role: "assistant",
            content: (!is_silent).then_some(answer.content),
            reasoning_content: (!answer.reasoning.is_empty()).then_some(answer.reasoning),
            refusal: None,
            tool_calls: answer.calls,
        },
        logprobs: logprobs.map(|logprobs| logprobs.chat(&answer.tokens)),
        finish_reason: finish.unwrap_or(FinishReason::Stop),
    }
}

/// The frames of a streamed response.
#[derive(Debug)]
pub struct ChatFrames {
    head: Head,
    answers: usize,
    usage: Usage,
    /// Whether a last chunk reports the usage.
    with_usage: bool,
    logprobs: Option<Logprobs>,
    legal: Option<LegalTokenCounter>,
    /// Warnings that were not sent yet.
    warnings: Vec<Warning>,
    /// The text in front of each answer.
    echo: String,
}

impl ChatFrames {
    /// Frames of `answers` answers.
    pub fn new(
        head: Head,
        answers: usize,
        prompt_tokens: usize,
        with_usage: bool,
        logprobs: Option<Logprobs>,
    ) -> Self {
        let usage = Usage::new(prompt_tokens);
        let (legal, warnings, echo) = (None, Vec::new(), String::new());
        Self { head, answers, usage, with_usage, logprobs, legal, warnings, echo }
    }

    /// Sends warnings in the first chunk.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..self }
    }

    /// Adds a text in front of each answer.
    #[must_use]
    pub fn with_echo(self, echo: String) -> Self {
        Self { echo, ..self }
    }

    /// Adds the numbers of legal tokens.
    #[must_use]
    pub fn with_legal(self, legal: Option<LegalTokenCounter>) -> Self {
        Self { legal, ..self }
    }

    fn chunk(&mut self, choices: Vec<ChunkChoice>, usage: Option<Usage>) -> Frame {
        let Head { id, created, model } = self.head.clone();
        let warnings = std::mem::take(&mut self.warnings);
        Frame::data(&ChatChunk {
            id,
            object: "chat.completion.chunk",
            created,
            model,
            choices,
            usage,
            warnings,
        })
    }

    fn choice(&mut self, index: usize, delta: ChatDelta, finish_reason: Option<FinishReason>) -> Frame {
        let choice = ChunkChoice { index, delta, logprobs: None, legal_tokens: Vec::new(), finish_reason };
        self.chunk(vec![choice], None)
    }

    /// Chunks of some deltas. The first chunk carries the log-probabilities and the numbers of
    /// legal tokens.
    fn deltas(
        &mut self,
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

/// A delta in the form of chunks.
fn delta(delta: Delta) -> Option<ChatDelta> {
    let call = |index, id: Option<String>, name, text, is_custom| {
        let kind = id.is_some().then_some(if is_custom { "custom" } else { "function" });
        let (function, custom) = match is_custom {
            true => (None, Some(CustomDelta { name, input: text })),
            false => (Some(FunctionDelta { name, arguments: text }), None),
        };
        ChatDelta {
            tool_calls: vec![CallDelta { index, kind, id, function, custom }],
            ..ChatDelta::default()
        }
    };
    Some(match delta {
        Delta::Content(text) => ChatDelta { content: Some(text), ..ChatDelta::default() },
        Delta::Reasoning(text) => ChatDelta { reasoning_content: Some(text), ..ChatDelta::default() },
        Delta::CallBegins { index, id, name, is_custom } => {
            call(index, Some(id), Some(name), String::new(), is_custom)
        }
        Delta::Arguments { index, delta, is_custom } => call(index, None, None, delta, is_custom),
        Delta::CallEnds { .. } => return None,
    })
}

impl Frames for ChatFrames {
    fn begin(&mut self) -> Vec<Frame> {
        let content = Some(self.echo.clone());
        let first = ChatDelta { role: Some("assistant"), content, ..ChatDelta::default() };
        (0..self.answers).map(|index| self.choice(index, first.clone(), None)).collect()
    }

    fn chunk_received(&mut self, index: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        self.usage.add(tokens.ids.len());
        let logprobs = self.logprobs.as_ref().map(|logprobs| logprobs.chat(tokens));
        let legal = self.legal.as_mut().map(|legal| legal.follow(index, &tokens.ids));
        self.deltas(index, deltas, logprobs, legal.unwrap_or_default())
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, end: AnswerEnd) -> Vec<Frame> {
        self.usage.add_cached(end.cached_tokens);
        let mut frames = self.deltas(index, deltas, None, Vec::new());
        self.warnings.extend(end.warning(index));
        frames.push(self.choice(index, ChatDelta::default(), Some(end.reason)));
        frames
    }

    fn end(&mut self) -> Vec<Frame> {
        let usage = self.usage;
        let usage = self.with_usage.then(|| self.chunk(Vec::new(), Some(usage)));
        usage.into_iter().chain([Frame::done()]).collect()
    }
}
