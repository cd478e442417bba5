//! `/v1/responses`, without a memory: every request holds the whole conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::body::{Body, places};
use super::constraint::{ConstraintFields, Given, check_format};
use super::message::content;
use super::{CachedTokens, Usage};
use crate::engine::Source;
use crate::error::{ApiError, Result};

/// A request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponseRequest {
    /// The model.
    pub model: Option<String>,
    /// A text, or items: messages, calls and their results.
    pub input: Value,
    /// What the model is told in front of the input.
    pub instructions: Option<String>,
    /// Most tokens of the answer. Default: what is left of a row.
    pub max_output_tokens: Option<usize>,
    /// What the answer has to be: `{"format": {"type": "json_schema", "name": …, "schema": …}}`.
    pub text: Option<TextOptions>,
    /// Tools that the model may call.
    pub tools: Option<Vec<Value>>,
    /// Whether it calls them: `auto`, `required`, `none`, or one by name.
    pub tool_choice: Option<Value>,
    /// Whether it may call several.
    pub parallel_tool_calls: Option<bool>,
    /// An earlier response; there is none.
    pub previous_response_id: Option<String>,
    /// A conversation that the server keeps; there is none.
    pub conversation: Option<Value>,
    /// Whether the answer is made after the response; not offered.
    pub background: Option<bool>,
    /// Whether the response is kept. It never is.
    pub store: Option<bool>,
    /// `disabled`: a prompt that is too long is refused.
    pub truncation: Option<String>,
    /// More that is told; not offered.
    pub include: Option<Vec<String>>,
    /// How the model reasons; not offered.
    pub reasoning: Option<Value>,
}

/// How the text of an answer looks.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct TextOptions {
    /// `text`, `json_object` or `json_schema`; here also `grammar` and `structural_tag`.
    pub format: Option<Value>,
    /// Not offered.
    pub verbosity: Option<String>,
}

impl ResponseRequest {
    /// Refuses what is not offered.
    ///
    /// # Errors
    /// 404 where an earlier response is asked for, 400 otherwise.
    pub fn check(&self) -> Result<()> {
        if let Some(id) = &self.previous_response_id {
            let message =
                format!("there is no response `{id}`: this server keeps none, so send the whole input");
            let error = ApiError::new(axum::http::StatusCode::NOT_FOUND, message);
            return Err(error.at("previous_response_id").code("response_not_found"));
        }
        let verbosity = self.text.as_ref().and_then(|text| text.verbosity.as_deref());
        let reasons = |reasoning: &Value| {
            reasoning.as_object().is_none_or(|object| object.values().any(|value| !value.is_null()))
        };
        let refused = [
            ("background", self.background == Some(true)),
            ("conversation", self.conversation.is_some()),
            ("truncation", self.truncation.as_deref().is_some_and(|mode| mode != "disabled")),
            ("include", self.include.as_ref().is_some_and(|include| !include.is_empty())),
            ("reasoning", self.reasoning.as_ref().is_some_and(reasons)),
            ("text.verbosity", verbosity.is_some_and(|verbosity| verbosity != "medium")),
        ];
        match refused.into_iter().find(|(_, is_asked)| *is_asked) {
            Some((name, _)) => {
                Err(ApiError::unsupported(name, format!("`{name}` is not offered with this value")))
            }
            None => Ok(()),
        }
    }

    /// The constraint: `text.format`, or one of the other servers' fields.
    ///
    /// # Errors
    /// 400 where it is malformed, or there are two.
    pub fn constraint(&self, body: &Body, other: &ConstraintFields) -> Result<Option<Given>> {
        let own = match body.raw("text").and_then(|text| Some((text, places(text).remove("format")?))) {
            Some((text, place)) if &text[place.clone()] != "null" => format(&text[place])?,
            _ => None,
        };
        match (own, other.read(body)?) {
            (Some(_), Some(other)) => {
                let message = format!("`text.format` and `{}` are constraints: leave one out", other.param);
                Err(ApiError::invalid(other.param, message))
            }
            (own, other) => Ok(own.or(other)),
        }
    }

    /// The conversation, as chat completions have it.
    ///
    /// # Errors
    /// 400 where an item is not offered.
    pub fn messages(&self) -> Result<Vec<Value>> {
        let instructions = self.instructions.iter().map(|text| json!({"role": "system", "content": text}));
        let mut messages: Vec<Value> = instructions.collect();
        match &self.input {
            Value::String(text) => messages.push(json!({"role": "user", "content": text})),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    add(&mut messages, &format!("input[{index}]"), item)?;
                }
            }
            _ => return Err(ApiError::invalid("input", "`input` is a text, or an array of items")),
        }
        if messages.is_empty() {
            return Err(ApiError::invalid("input", "`input` is empty"));
        }
        Ok(messages)
    }
}

/// The constraint of a `text.format`, whose text is JSON.
fn format(text: &str) -> Result<Option<Given>> {
    const PARAM: &str = "text.format";
    let given = |text| Some(Given { source: Source::Request(text), param: PARAM });
    let format: Value =
        serde_json::from_str(text).map_err(|error| ApiError::invalid(PARAM, error.to_string()))?;
    check_format(&format, PARAM)?;
    if format["type"] != "json_schema" {
        return Ok(given(format!("{{\"response_format\":{text}}}")));
    }
    // The same as in chat completions, but for an object around the schema.
    let places = places(text);
    let known = ["type", "name", "description", "schema", "strict"];
    if let Some(name) = places.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(ApiError::unsupported(
            PARAM,
            format!("`{PARAM}` has a field `{name}`, which is not offered"),
        ));
    }
    let inner: Vec<String> = known[1..]
        .iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", &text[places.get(*name)?.clone()])))
        .collect();
    let inner = inner.join(",");
    Ok(given(format!("{{\"response_format\":{{\"type\":\"json_schema\",\"json_schema\":{{{inner}}}}}}}")))
}

/// Adds an item of the input to the messages.
fn add(messages: &mut Vec<Value>, at: &str, item: &Value) -> Result<()> {
    let text = |name: &str| {
        let text = item.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| ApiError::invalid(&format!("{at}.{name}"), format!("an item has a text `{name}`")))
    };
    match item.get("type").and_then(Value::as_str).unwrap_or("message") {
        "message" => {
            let content = content(&format!("{at}.content"), item.get("content").unwrap_or(&Value::Null))?;
            messages.push(json!({"role": text("role")?, "content": content}));
        }
        "function_call" => {
            let function = json!({"name": text("name")?, "arguments": text("arguments")?});
            let call = json!({"id": text("call_id")?, "type": "function", "function": function});
            let last = messages.last_mut().filter(|last| last["role"] == "assistant");
            match last.and_then(Value::as_object_mut) {
                // Calls beside one another, or beside a text, are one turn.
                Some(last) => {
                    let calls = last.entry("tool_calls").or_insert_with(|| json!([]));
                    if let Some(calls) = calls.as_array_mut() {
                        calls.push(call);
                    }
                }
                None => messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
            }
        }
        "function_call_output" => {
            let output = content(&format!("{at}.output"), item.get("output").unwrap_or(&Value::Null))?;
            messages.push(json!({"role": "tool", "tool_call_id": text("call_id")?, "content": output}));
        }
        "reasoning" => {}
        kind => {
            return Err(ApiError::unsupported(at, format!("an item of the type {kind:?} is not offered")));
        }
    }
    Ok(())
}

/// An answer to a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResponseObject {
    /// Of this response.
    pub id: String,
    /// `response`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created_at: u64,
    /// `in_progress`, `completed`, `incomplete` or `failed`.
    pub status: &'static str,
    /// Why it failed.
    pub error: Option<Value>,
    /// Why it is incomplete.
    pub incomplete_details: Option<Value>,
    /// As the request has it.
    pub instructions: Option<String>,
    /// As the request has it.
    pub max_output_tokens: Option<usize>,
    /// The model.
    pub model: String,
    /// Messages, calls and reasoning.
    pub output: Vec<Value>,
    /// As the request has it.
    pub parallel_tool_calls: bool,
    /// Always null.
    pub previous_response_id: Option<String>,
    /// Always false.
    pub store: bool,
    /// As the request has it.
    pub temperature: Option<f32>,
    /// As the request has it.
    pub top_p: Option<f32>,
    /// As the request has it.
    pub text: Value,
    /// As the request has it.
    pub tool_choice: Value,
    /// As the request has them.
    pub tools: Vec<Value>,
    /// `disabled`.
    pub truncation: &'static str,
    /// Tokens, once it has ended.
    pub usage: Option<ResponseUsage>,
    /// Nothing.
    pub metadata: Map<String, Value>,
}

/// Tokens of a response.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ResponseUsage {
    /// Tokens of the prompt.
    pub input_tokens: usize,
    /// Of these.
    pub input_tokens_details: CachedTokens,
    /// Tokens of the answer.
    pub output_tokens: usize,
    /// Of these.
    pub output_tokens_details: ReasoningTokens,
    /// Both together.
    pub total_tokens: usize,
}

impl ResponseUsage {
    /// As the other endpoints have it.
    pub fn new(usage: Usage) -> Self {
        Self {
            input_tokens: usage.prompt_tokens,
            input_tokens_details: usage.prompt_tokens_details,
            output_tokens: usage.completion_tokens,
            output_tokens_details: ReasoningTokens { reasoning_tokens: 0 },
            total_tokens: usage.total_tokens,
        }
    }
}

/// Of the tokens of an answer.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ReasoningTokens {
    /// Always 0: they are not counted apart.
    pub reasoning_tokens: usize,
}
