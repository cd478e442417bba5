//! Answers to `/v1/responses`: a sequence of items.

use burn_dfa_engine::Tokens;
use serde_json::{Value, json};

use super::choice::Delta;
use super::identifier;
use super::stream::{AnswerEnd, Frame, Frames};
use crate::error::ApiError;
use crate::protocol::response::{ResponseObject, ResponseUsage};
use crate::protocol::{FinishReason, Usage};

/// An item of the output.
#[derive(Clone, Debug)]
enum Item {
    Message { id: String, text: String },
    Reasoning { id: String, text: String },
    Call { id: String, call_id: String, name: String, arguments: String },
    CustomCall { id: String, call_id: String, name: String, input: String },
}

impl Item {
    fn message() -> Self {
        Self::Message { id: identifier("msg_"), text: String::new() }
    }

    fn id(&self) -> &str {
        match self {
            Self::Message { id, .. }
            | Self::Reasoning { id, .. }
            | Self::Call { id, .. }
            | Self::CustomCall { id, .. } => id,
        }
    }

    fn json(&self, status: &str) -> Value {
        match self {
            Self::Message { id, text } => {
                let content = match (status, text.as_str()) {
                    ("in_progress", _) => json!([]),
                    (_, text) => json!([text_part(text)]),
                };
                json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
            }
            Self::Reasoning { id, text } => {
                let content = json!([{"type": "reasoning_text", "text": text}]);
                json!({"id": id, "type": "reasoning", "status": status, "summary": [], "content": content})
            }
            Self::Call { id, call_id, name, arguments } => json!({
                "id": id, "type": "function_call", "status": status,
                "call_id": call_id, "name": name, "arguments": arguments,
            }),
            Self::CustomCall { id, call_id, name, input } => json!({
                "id": id, "type": "custom_tool_call", "status": status,
                "call_id": call_id, "name": name, "input": input,
            }),
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// A response in progress, and the frames of a streamed one.
#[derive(Debug)]
pub struct ResponseFrames {
    response: ResponseObject,
    usage: Usage,
    /// The item in progress; the items before it are in the response.
    open: Option<Item>,
    /// Number of the next event.
    sequence: usize,
}

impl ResponseFrames {
    /// Frames of a response in progress.
    pub fn new(response: ResponseObject, prompt_tokens: usize) -> Self {
        Self { response, usage: Usage::new(prompt_tokens), open: None, sequence: 0 }
    }

    /// The response.
    pub fn into_response(self) -> ResponseObject {
        self.response
    }

    fn event(&mut self, name: &'static str, mut data: Value) -> Frame {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        Frame::named(name, &data)
    }

    fn of_response(&mut self, name: &'static str) -> Frame {
        let response = json!({"response": self.response});
        self.event(name, response)
    }

    fn open_item(&mut self, item: Item) -> Vec<Frame> {
        let mut frames = self.close_item("completed");
        let at = self.response.output.len();
        let added = json!({"output_index": at, "item": item.json("in_progress")});
        frames.push(self.event("response.output_item.added", added));
        if let Item::Message { id, .. } = &item {
            let part = json!({"item_id": id, "output_index": at, "content_index": 0, "part": text_part("")});
            frames.push(self.event("response.content_part.added", part));
        }
        self.open = Some(item);
        frames
    }

    fn close_item(&mut self, status: &str) -> Vec<Frame> {
        let Some(item) = self.open.take() else { return Vec::new() };
        let at = self.response.output.len();
        let position = || json!({"item_id": item.id(), "output_index": at});
        let with = |fields: Value| {
            let mut position = position();
            if let (Some(position), Value::Object(fields)) = (position.as_object_mut(), fields) {
                position.extend(fields);
            }
            position
        };
        let mut frames = match &item {
            Item::Message { text, .. } => vec![
                self.event(
                    "response.output_text.done",
                    with(json!({"content_index": 0, "text": text, "logprobs": []})),
                ),
                self.event(
                    "response.content_part.done",
                    with(json!({"content_index": 0, "part": text_part(text)})),
                ),
            ],
            Item::Reasoning { text, .. } => {
                let done = with(json!({"content_index": 0, "text": text}));
                vec![self.event("response.reasoning_text.done", done)]
            }
            Item::Call { arguments, name, .. } => {
                let done = with(json!({"name": name, "arguments": arguments}));
                vec![self.event("response.function_call_arguments.done", done)]
            }
            Item::CustomCall { input, .. } => {
                vec![self.event("response.custom_tool_call_input.done", with(json!({"input": input})))]
            }
        };
        let whole = item.json(status);
        frames.push(self.event("response.output_item.done", json!({"output_index": at, "item": whole})));
        self.response.output.push(whole);
        frames
    }

    fn delta(&mut self, delta: Delta) -> Vec<Frame> {
        match delta {
            Delta::Content(delta) => {
                let mut frames = match self.open {
                    Some(Item::Message { .. }) => Vec::new(),
                    _ => self.open_item(Item::message()),
                };
                if let Some(Item::Message { text, .. }) = &mut self.open {
                    text.push_str(&delta);
                }
                let fields = json!({"content_index": 0, "delta": delta, "logprobs": []});
                frames.push(self.of_item("response.output_text.delta", fields));
                frames
            }
            Delta::Reasoning(delta) => {
                let mut frames = match self.open {
                    Some(Item::Reasoning { .. }) => Vec::new(),
                    _ => self.open_item(Item::Reasoning { id: identifier("rs_"), text: String::new() }),
                };
                if let Some(Item::Reasoning { text, .. }) = &mut self.open {
                    text.push_str(&delta);
                }
                let fields = json!({"content_index": 0, "delta": delta});
                frames.push(self.of_item("response.reasoning_text.delta", fields));
                frames
            }
            Delta::CallBegins { id, name, is_custom: true, .. } => {
                let input = String::new();
                self.open_item(Item::CustomCall { id: identifier("ctc_"), call_id: id, name, input })
            }
            Delta::CallBegins { id, name, .. } => {
                let arguments = String::new();
                self.open_item(Item::Call { id: identifier("fc_"), call_id: id, name, arguments })
            }
            Delta::Arguments { delta, .. } => {
                let name = match &mut self.open {
                    Some(Item::CustomCall { input, .. }) => {
                        input.push_str(&delta);
                        "response.custom_tool_call_input.delta"
                    }
                    open => {
                        if let Some(Item::Call { arguments, .. }) = open {
                            arguments.push_str(&delta);
                        }
                        "response.function_call_arguments.delta"
                    }
                };
                vec![self.of_item(name, json!({"delta": delta}))]
            }
            Delta::CallEnds { .. } => self.close_item("completed"),
        }
    }

    fn of_item(&mut self, name: &'static str, mut fields: Value) -> Frame {
        fields["item_id"] = json!(self.open.as_ref().map(Item::id));
        fields["output_index"] = json!(self.response.output.len());
        self.event(name, fields)
    }
}

impl Frames for ResponseFrames {
    fn begin(&mut self) -> Vec<Frame> {
        vec![self.of_response("response.created"), self.of_response("response.in_progress")]
    }

    fn chunk_received(&mut self, _: usize, tokens: &Tokens, deltas: Vec<Delta>) -> Vec<Frame> {
        self.usage.add(tokens.ids.len());
        deltas.into_iter().flat_map(|delta| self.delta(delta)).collect()
    }

    fn ended(&mut self, index: usize, deltas: Vec<Delta>, end: AnswerEnd) -> Vec<Frame> {
        self.usage.add_cached(end.cached_tokens);
        self.response.warnings.extend(end.warning(index));
        let mut frames: Vec<Frame> = deltas.into_iter().flat_map(|delta| self.delta(delta)).collect();
        let is_in_call = matches!(self.open, Some(Item::Call { .. } | Item::CustomCall { .. }));
        let cut = match end.reason {
            FinishReason::Length => Some("max_output_tokens"),
            FinishReason::Stop if is_in_call => Some("stop"),
            _ => None,
        };
        if self.open.is_none() && self.response.output.is_empty() {
            // An answer without a text still has a message.
            frames.extend(self.open_item(Item::message()));
        }
        let status = if cut.is_some() { "incomplete" } else { "completed" };
        frames.extend(self.close_item(status));
        self.response.status = status;
        self.response.incomplete_details = cut.map(|reason| json!({"reason": reason}));
        self.response.usage = Some(ResponseUsage::new(self.usage));
        frames
    }

    fn end(&mut self) -> Vec<Frame> {
        let name = match self.response.status {
            "incomplete" => "response.incomplete",
            _ => "response.completed",
        };
        vec![self.of_response(name)]
    }

    fn failed(&mut self, error: &ApiError) -> Vec<Frame> {
        self.response.status = "failed";
        self.response.error = Some(json!({"code": error.code, "message": error.message}));
        vec![self.of_response("response.failed")]
    }
}
