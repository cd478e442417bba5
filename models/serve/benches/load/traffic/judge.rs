//! Checks answers with other code than the code that constrained them.

use std::collections::HashMap;

use jsonschema::Validator;
use regex_automata::meta::Regex;
use serde_json::Value;

use super::client::Reply;

/// The requirement for an answer.
pub enum Expected {
    /// Any text of at most this number of tokens.
    Anything(u64),
    /// A text that the regex matches as a whole.
    Match(Box<Regex>),
    /// One of these texts.
    OneOf(Vec<String>),
    /// JSON of the schema between two texts.
    Json(&'static str, Box<Validator>, &'static str),
    /// A number within nested brackets.
    Brackets,
    /// Calls of tools with arguments that match their schemas; whether a call is required.
    Calls(HashMap<String, Validator>, bool),
}

/// The content of an answer.
#[derive(Default)]
pub struct Answer {
    content: String,
    /// Names and arguments.
    calls: Vec<(String, String)>,
    finish: String,
    /// Tokens.
    pub tokens: u64,
}

impl Answer {
    /// Collects a reply.
    ///
    /// # Errors
    /// The reply is malformed.
    pub fn of(reply: &Reply) -> Result<Self, String> {
        if reply.status != 200 {
            return Err(format!("status {}: {}", reply.status, reply.body));
        }
        if reply.events.is_empty() {
            let mut answer = Self::default();
            let body = parse(&reply.body)?;
            answer.add(&body["choices"][0], "message");
            answer.tokens = body["usage"]["completion_tokens"].as_u64().ok_or("no usage")?;
            return Ok(answer);
        }
        let (last, events) = reply.events.split_last().ok_or("no events")?;
        if last.1 != "[DONE]" {
            return Err(format!("the stream ends with {}", last.1));
        }
        let mut answer = Self::default();
        for (_, event) in events {
            let event = parse(event)?;
            if event.get("error").is_some() {
                return Err(event.to_string());
            }
            if let Some(choice) = event["choices"].get(0) {
                answer.add(choice, "delta");
            }
            answer.tokens = event["usage"]["completion_tokens"].as_u64().unwrap_or(answer.tokens);
        }
        Ok(answer)
    }

    /// Adds a message, or the new part of a message.
    fn add(&mut self, choice: &Value, part: &str) {
        let part = &choice[part];
        self.content += part["content"].as_str().unwrap_or_default();
        for (position, call) in part["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let index = call["index"].as_u64().map_or(position, |index| index as usize);
            if self.calls.len() <= index {
                self.calls.resize_with(index + 1, Default::default);
            }
            self.calls[index].0 += call["function"]["name"].as_str().unwrap_or_default();
            self.calls[index].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        self.finish += choice["finish_reason"].as_str().unwrap_or_default();
    }

    /// Checks the answer against the requirement.
    ///
    /// # Errors
    /// The violated requirement.
    pub fn check(&self, expected: &Expected) -> Result<(), String> {
        let text = self.content.as_str();
        let (is_right, finishes): (bool, &[&str]) = match expected {
            Expected::Anything(max) => (self.tokens <= *max, &["stop", "length"]),
            Expected::Match(regex) => {
                (regex.find(text).is_some_and(|found| found.range() == (0..text.len())), &["stop"])
            }
            Expected::OneOf(texts) => (texts.iter().any(|one| one == text), &["stop"]),
            Expected::Json(before, validator, behind) => {
                let inner = text.strip_prefix(before).and_then(|text| text.strip_suffix(behind));
                (inner.is_some_and(|inner| is_valid(inner, validator)), &["stop"])
            }
            Expected::Brackets => (is_nested(text), &["stop"]),
            Expected::Calls(tools, _) if !self.calls.is_empty() => {
                let is_call = |(name, arguments): &(String, String)| {
                    tools.get(name).is_some_and(|validator| is_valid(arguments, validator))
                };
                (self.calls.iter().all(is_call) && !text.contains("<tool_call>"), &["tool_calls"])
            }
            Expected::Calls(_, have_to_come) => (!have_to_come && !text.contains("<tool_call>"), &["stop"]),
        };
        if is_right && finishes.contains(&self.finish.as_str()) {
            return Ok(());
        }
        Err(format!("{text:?} {:?} ended with {:?}", self.calls, self.finish))
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}

fn is_valid(text: &str, validator: &Validator) -> bool {
    serde_json::from_str(text).is_ok_and(|value| validator.is_valid(&value))
}

/// Whether a text is a number in matching round and square brackets.
fn is_nested(text: &str) -> bool {
    let mut inner = text;
    loop {
        let without = |open, close| inner.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
        match without('(', ')').or_else(|| without('[', ']')) {
            Some(rest) => inner = rest,
            None => return !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }
}
