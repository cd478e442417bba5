//! Reads the text of one answer.

use std::sync::Arc;

use burn_dfa::constraint::{ReplyEvent, ToolReader, Tools};
use burn_dfa_engine::Ending;

use super::identifier;
use super::split::{ReasoningSplitter, begins_with};
use crate::error::{ApiError, Result};
use crate::protocol::FinishReason;

/// A part of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Content(String),
    /// More reasoning.
    Reasoning(String),
    /// A call begins.
    CallBegins {
        /// The index of the call.
        index: usize,
        /// The identifier of the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// Whether it is a custom tool, which has an input instead of arguments.
        is_custom: bool,
    },
    /// More arguments.
    Arguments {
        /// The index of the call.
        index: usize,
        /// The text.
        delta: String,
        /// Whether the text is the input of a custom tool.
        is_custom: bool,
    },
    /// The arguments are complete.
    CallEnds {
        /// The index of the call.
        index: usize,
    },
}

/// How an answer is parsed.
#[derive(Clone, Debug, Default)]
pub enum AnswerFormat {
    /// As text.
    #[default]
    Text,
    /// As calls of these tools and the text that they allow.
    Tools(Box<Tools>),
    /// As calls of the tools if the answer begins with one of the marks, else as text.
    Either(Arc<[String]>, Box<Tools>),
    /// As reasoning between two marks, and the text after it. The first mark may be missing.
    Reasoned(String, String),
}

/// Parses one answer.
#[derive(Debug)]
pub struct ChoiceReader {
    state: State,
    calls: usize,
    /// Whether the arguments of the last call are incomplete.
    is_in_call: bool,
    /// The names of custom tools.
    custom: Vec<String>,
    /// Whether the current call is a call of a custom tool.
    is_custom: bool,
}

#[derive(Debug)]
enum State {
    Text,
    Tools(Box<ToolReader>),
    /// Text that may be the beginning of a mark, and the reader of calls.
    Either(Arc<[String]>, String, Box<ToolReader>),
    Reasoned(ReasoningSplitter),
}

impl ChoiceReader {
    /// A reader of one answer.
    ///
    /// # Errors
    /// 400 if the tools are not supported.
    pub fn new(format: &AnswerFormat) -> Result<Self> {
        let reader = |tools: &Tools| {
            tools.reader().map(Box::new).map_err(|error| ApiError::of_library(&error, "tools"))
        };
        let state = match format {
            AnswerFormat::Text => State::Text,
            AnswerFormat::Tools(tools) => State::Tools(reader(tools)?),
            AnswerFormat::Either(marks, tools) => State::Either(marks.clone(), String::new(), reader(tools)?),
            AnswerFormat::Reasoned(begin, end) => State::Reasoned(ReasoningSplitter::new(begin, end)),
        };
        let custom = match format {
            AnswerFormat::Tools(tools) | AnswerFormat::Either(_, tools) => {
                let custom = tools.tools().iter().filter(|tool| tool.input.is_some());
                custom.map(|tool| tool.name.clone()).collect()
            }
            AnswerFormat::Text | AnswerFormat::Reasoned(..) => Vec::new(),
        };
        Ok(Self { state, calls: 0, is_in_call: false, custom, is_custom: false })
    }

    /// Reads more text.
    ///
    /// # Errors
    /// 500 if the text violates the constraint.
    pub fn push(&mut self, mut text: String) -> Result<Vec<Delta>> {
        if let State::Either(marks, held, _) = &mut self.state {
            held.push_str(&text);
            if marks.iter().any(|mark| begins_with(held, mark).is_none()) {
                return Ok(Vec::new());
            }
            text = self.decide();
        }
        match &mut self.state {
            State::Text if text.is_empty() => Ok(Vec::new()),
            State::Text => Ok(vec![Delta::Content(text)]),
            State::Reasoned(splitter) => Ok(parts(splitter.push(&text))),
            State::Either(..) => Ok(Vec::new()),
            State::Tools(reader) => {
                let events = reader.push(text.as_bytes());
                Ok(self.read(events.map_err(|error| ApiError::internal(error.to_string()))?))
            }
        }
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// 500 if a complete answer violates the constraint.
    pub fn finish(&mut self, ending: Ending) -> Result<(Vec<Delta>, FinishReason)> {
        let held = self.decide();
        let mut begun = if held.is_empty() { Vec::new() } else { self.push(held)? };
        let deltas = match (&mut self.state, ending) {
            (State::Text | State::Either(..), _) => Vec::new(),
            (State::Reasoned(splitter), _) => parts(splitter.finish()),
            (State::Tools(reader), Ending::Complete | Ending::OutOfTokens) => {
                let events = reader.finish().map_err(|error| ApiError::internal(error.to_string()))?;
                self.read(events)
            }
            (State::Tools(reader), _) => {
                let events = reader.cut_off();
                self.read(events)
            }
        };
        let reason = match ending {
            Ending::Length => FinishReason::Length,
            // A stop text within the arguments of a call.
            Ending::Stop if self.is_in_call => FinishReason::Stop,
            _ if self.calls > 0 => FinishReason::ToolCalls,
            Ending::OutOfTokens => FinishReason::Length,
            _ => FinishReason::Stop,
        };
        begun.extend(deltas);
        Ok((begun, reason))
    }

    /// Decides whether the answer is a call; returns the text that was held back for this decision.
    fn decide(&mut self) -> String {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Either(marks, held, reader) => {
                if marks.iter().any(|mark| held.starts_with(mark.as_str())) {
                    self.state = State::Tools(reader);
                }
                held
            }
            state => {
                self.state = state;
                String::new()
            }
        }
    }

    fn read(&mut self, events: Vec<ReplyEvent>) -> Vec<Delta> {
        events.into_iter().filter_map(|event| self.delta(event)).collect()
    }

    fn delta(&mut self, event: ReplyEvent) -> Option<Delta> {
        Some(match event {
            ReplyEvent::Text(text) => Delta::Content(text),
            ReplyEvent::Reasoning(text) => Delta::Reasoning(text),
            ReplyEvent::CallBegins { index, name } => {
                self.calls += 1;
                self.is_in_call = true;
                self.is_custom = self.custom.contains(&name);
                Delta::CallBegins { index, id: identifier("call_"), name, is_custom: self.is_custom }
            }
            ReplyEvent::Arguments { index, delta } => {
                Delta::Arguments { index, delta, is_custom: self.is_custom }
            }
            ReplyEvent::CallEnds { index } => {
                self.is_in_call = false;
                Delta::CallEnds { index }
            }
            _ => return None,
        })
    }
}

fn parts((reasoning, content): (String, String)) -> Vec<Delta> {
    let both = [Delta::Reasoning(reasoning), Delta::Content(content)];
    let is_there =
        |delta: &Delta| !matches!(delta, Delta::Reasoning(text) | Delta::Content(text) if text.is_empty());
    both.into_iter().filter(is_there).collect()
}
