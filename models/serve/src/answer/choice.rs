//! Reads the text of one answer.

use burn_dfa::constraint::{ReplyEvent, ToolReader, Tools};

use super::identifier;
use super::split::Split;
use crate::engine::Ending;
use crate::error::{ApiError, Result};
use crate::protocol::FinishReason;

/// A part of an answer, as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Content(String),
    /// More reasoning.
    Reasoning(String),
    /// A tool is called.
    CallBegins {
        /// Which of the calls.
        index: usize,
        /// Of this call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More arguments.
    Arguments {
        /// Which of the calls.
        index: usize,
        /// The text.
        delta: String,
    },
    /// The arguments are complete.
    CallEnds {
        /// Which of the calls.
        index: usize,
    },
}

/// What an answer is read by.
#[derive(Clone, Debug, Default)]
pub enum Form {
    /// As text.
    #[default]
    Text,
    /// As what these let a model write.
    Tools(Box<Tools>),
    /// As a call of one of these where it begins with the mark of calls, else as text.
    Either(&'static str, Box<Tools>),
    /// As reasoning between two marks, of which the first may be missing, and text behind it.
    Reasoned(&'static str, &'static str),
}

/// Reads an answer in its form.
#[derive(Debug)]
pub struct ChoiceReader {
    state: State,
    calls: usize,
}

#[derive(Debug)]
enum State {
    Text,
    Tools(Box<ToolReader>),
    /// Text that may be the beginning of the mark of calls, and the reader of calls.
    Either(&'static str, String, Box<ToolReader>),
    Reasoned(Split),
}

impl ChoiceReader {
    /// A reader of one answer.
    ///
    /// # Errors
    /// 400 where the tools cannot be honoured.
    pub fn new(form: &Form) -> Result<Self> {
        let reader = |tools: &Tools| {
            tools.reader().map(Box::new).map_err(|error| ApiError::of_library(&error, "tools"))
        };
        let state = match form {
            Form::Text => State::Text,
            Form::Tools(tools) => State::Tools(reader(tools)?),
            Form::Either(mark, tools) => State::Either(mark, String::new(), reader(tools)?),
            Form::Reasoned(begin, end) => State::Reasoned(Split::new(begin, end)),
        };
        Ok(Self { state, calls: 0 })
    }

    /// Reads more text.
    ///
    /// # Errors
    /// 500 where the text is not what the constraint allows.
    pub fn push(&mut self, mut text: String) -> Result<Vec<Delta>> {
        if let State::Either(mark, held, _) = &mut self.state {
            held.push_str(&text);
            if held.len() < mark.len() && mark.starts_with(held.as_str()) {
                return Ok(Vec::new());
            }
            text = self.decide();
        }
        match &mut self.state {
            State::Text if text.is_empty() => Ok(Vec::new()),
            State::Text => Ok(vec![Delta::Content(text)]),
            State::Reasoned(split) => Ok(parts(split.push(&text))),
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
    /// 500 where a complete answer is not what the constraint allows.
    pub fn finish(&mut self, ending: Ending) -> Result<(Vec<Delta>, FinishReason)> {
        let held = self.decide();
        let mut begun = if held.is_empty() { Vec::new() } else { self.push(held)? };
        let deltas = match (&mut self.state, ending) {
            (State::Text | State::Either(..), _) => Vec::new(),
            (State::Reasoned(split), _) => parts(split.finish()),
            (State::Tools(reader), Ending::Complete) => {
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
            _ if self.calls > 0 => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        };
        begun.extend(deltas);
        Ok((begun, reason))
    }

    /// Decides whether the answer is a call; gives the text that was held back until then.
    fn decide(&mut self) -> String {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Either(mark, held, reader) => {
                if held.starts_with(mark) {
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
                Delta::CallBegins { index, id: identifier("call_"), name }
            }
            ReplyEvent::Arguments { index, delta } => Delta::Arguments { index, delta },
            ReplyEvent::CallEnds { index } => Delta::CallEnds { index },
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
