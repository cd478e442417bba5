//! `/v1/responses`, without stored responses: every request holds the whole conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::body::{Body, field_ranges};
use super::constraint::{ConstraintFields, ConstraintParam, check_format, is_text};
use super::message::{content, function_call, ignore_others, role};
use super::template::{EFFORT, Template, TemplateFields};
use super::warning::{Warning, Warnings};
use super::{CachedTokens, Usage};
use crate::error::{ApiError, Result};

/// A request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponseRequest {
    /// The model.
    pub model: Option<String>,
    /// A text, or items: messages, calls and their results.
    pub input: Value,
    /// The system message before the input.
    pub instructions: Option<String>,
    /// Maximum number of tokens of the answer. Default: the rest of a row.
    pub max_output_tokens: Option<usize>,
    /// The form of the answer: `{"format": {"type": "json_schema", "name": …, "schema": …}}`.
    pub text: Option<TextOptions>,
    /// Tools that the model may call.
    pub tools: Option<Vec<Value>>,
    /// Whether the model calls tools: `auto`, `required`, `none`, or one tool by name.
    pub tool_choice: Option<Value>,
    /// Whether the model may call several tools.
    pub parallel_tool_calls: Option<bool>,
    /// An earlier response; the server stores none.
    pub previous_response_id: Option<String>,
    /// A stored conversation; the server stores none.
    pub conversation: Option<Value>,
    /// Whether the answer is made in the background; not supported.
    pub background: Option<bool>,
    /// Whether the response is stored. It never is.
    pub store: Option<bool>,
    /// `auto` or `disabled`: both refuse a prompt that is too long.
    pub truncation: Option<String>,
    /// Additional outputs; ignored.
    pub include: Option<Vec<String>>,
    /// Options of reasoning: an `effort` is a variable of chat templates that use it.
    pub reasoning: Option<Reasoning>,
    /// Variables of the chat template, such as `enable_thinking`.
    pub chat_template_kwargs: Option<Map<String, Value>>,
}

/// Options of reasoning.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub struct Reasoning {
    /// The effort: a variable of chat templates that use it.
    pub effort: Option<String>,
    /// Ignored.
    pub summary: Option<Value>,
    /// Ignored.
    pub generate_summary: Option<Value>,
}

/// Names that `include` may contain. None has an effect here.
const INCLUDED: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// The form of the text of an answer.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub struct TextOptions {
    /// `text`, `json_object` or `json_schema`; here also `grammar` and `structural_tag`.
    pub format: Option<Value>,
    /// Ignored.
    pub verbosity: Option<String>,
}

impl ResponseRequest {
    /// Refuses unsupported fields, and warns about fields without effect.
    ///
    /// # Errors
    /// 404 if an earlier response is requested, 400 otherwise.
    pub fn check(&self, warnings: &mut Warnings) -> Result<()> {
        if let Some(id) = &self.previous_response_id {
            let message =
                format!("there is no response `{id}`: this server keeps none, so send the whole input");
            let error = ApiError::new(axum::http::StatusCode::NOT_FOUND, message);
            return Err(error.at("previous_response_id").code("response_not_found"));
        }
        let not_offered =
            |name: &str| Err(ApiError::unsupported(name, format!("`{name}` is not offered with this value")));
        if self.background == Some(true) {
            return not_offered("background");
        }
        if self.conversation.is_some() {
            return not_offered("conversation");
        }
        match self.truncation.as_deref() {
            None | Some("disabled") => {}
            Some("auto") => {
                warnings
                    .add("truncation", "`truncation` has no effect: a prompt that is too long is refused");
            }
            Some(_) => {
                return Err(ApiError::unsupported("truncation", "`truncation` is `auto` or `disabled`"));
            }
        }
        for name in self.include.iter().flatten() {
            if !INCLUDED.contains(&name.as_str()) {
                let message =
                    format!("`include` names {name:?}, which is not one of {}", INCLUDED.join(", "));
                return Err(ApiError::unsupported("include", message));
            }
            warnings.ignore(format!("include: {name}"));
        }
        if self.store == Some(true) {
            warnings.ignore("store");
        }
        if let Some(Reasoning { summary, generate_summary, .. }) = &self.reasoning {
            for (name, value) in [("summary", summary), ("generate_summary", generate_summary)] {
                if value.is_some() {
                    warnings.ignore(format!("reasoning.{name}"));
                }
            }
        }
        let verbosity = self.text.as_ref().and_then(|text| text.verbosity.as_deref());
        if verbosity.is_some_and(|verbosity| verbosity != "medium") {
            warnings.ignore("text.verbosity");
        }
        Ok(())
    }

    /// Options that turn the conversation into a prompt.
    ///
    /// # Errors
    /// As [`TemplateFields::read`].
    pub fn template(&self) -> Result<Template> {
        let reasoning_effort = self.reasoning.as_ref().and_then(|reasoning| reasoning.effort.clone());
        let chat_template_kwargs = self.chat_template_kwargs.clone();
        let fields = TemplateFields { chat_template_kwargs, reasoning_effort, ..TemplateFields::default() };
        let mut template = fields.read()?;
        for (_, _, param) in template.variables.iter_mut().filter(|(_, _, param)| *param == EFFORT) {
            *param = "reasoning.effort";
        }
        Ok(template)
    }

    /// The constraint: `text.format`, or a constraint field of another server.
    ///
    /// # Errors
    /// 400 if it is malformed, or there are two.
    pub fn constraint(&self, body: &mut Body, other: &ConstraintFields) -> Result<Option<ConstraintParam>> {
        let own = match body.raw("text").and_then(|text| Some((text, field_ranges(text).remove("format")?))) {
            Some((text, range)) if &text[range.clone()] != "null" => format(&text[range])?,
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

    /// The conversation, in the form for chat templates. Reasoning and unknown fields of items add
    /// warnings.
    ///
    /// # Errors
    /// 400 if an item is not supported.
    pub fn messages(&self, warnings: &mut Warnings) -> Result<Vec<Value>> {
        let instructions = self.instructions.iter().map(|text| json!({"role": "system", "content": text}));
        let mut messages: Vec<Value> = instructions.collect();
        match &self.input {
            Value::String(text) => messages.push(json!({"role": "user", "content": text})),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    add(&mut messages, &format!("input[{index}]"), item, warnings)?;
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
fn format(text: &str) -> Result<Option<ConstraintParam>> {
    const PARAM: &str = "text.format";
    let format: Value =
        serde_json::from_str(text).map_err(|error| ApiError::invalid(PARAM, error.to_string()))?;
    let given = |text| Some(ConstraintParam::new(text, PARAM, format["strict"] == true));
    check_format(&format, PARAM)?;
    if is_text(&format) {
        return Ok(None);
    }
    if format["type"] != "json_schema" {
        return Ok(given(format!("{{\"response_format\":{text}}}")));
    }
    // As in chat completions, except for an object around the schema.
    let ranges = field_ranges(text);
    let known = ["type", "name", "description", "schema", "strict"];
    if let Some(name) = ranges.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(ApiError::unsupported(
            PARAM,
            format!("`{PARAM}` has a field `{name}`, which is not offered"),
        ));
    }
    let inner: Vec<String> = known[1..]
        .iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", &text[ranges.get(*name)?.clone()])))
        .collect();
    let inner = inner.join(",");
    Ok(given(format!("{{\"response_format\":{{\"type\":\"json_schema\",\"json_schema\":{{{inner}}}}}}}")))
}

/// Adds an item of the input to the messages.
fn add(messages: &mut Vec<Value>, at: &str, item: &Value, warnings: &mut Warnings) -> Result<()> {
    let text = |name: &str| {
        let text = item.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| ApiError::invalid(&format!("{at}.{name}"), format!("an item has a text `{name}`")))
    };
    let mut content = |name: &str| {
        let at = format!("{at}.{name}");
        let text = content(&at, item.get(name).unwrap_or(&Value::Null), warnings)?;
        text.ok_or_else(|| ApiError::invalid(&at, format!("an item has a `{name}`")))
    };
    let read: &[&str] = match item.get("type").and_then(Value::as_str).unwrap_or("message") {
        "message" => {
            let role = role(&format!("{at}.role"), item.get("role").unwrap_or(&Value::Null))?;
            messages.push(json!({"role": role, "content": content("content")?}));
            &["role", "content"]
        }
        "function_call" => {
            let function = json!({"name": text("name")?, "arguments": text("arguments")?});
            add_call(messages, function_call(at, Some(&json!(text("call_id")?)), &function)?);
            &["call_id", "name", "arguments"]
        }
        "custom_tool_call" => {
            // Templates write it as the call of a function.
            let function = json!({"name": text("name")?, "arguments": {"input": text("input")?}});
            add_call(messages, function_call(at, Some(&json!(text("call_id")?)), &function)?);
            &["call_id", "name", "input"]
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = content("output")?;
            messages.push(json!({"role": "tool", "content": output, "tool_call_id": text("call_id")?}));
            &["call_id", "output"]
        }
        "reasoning" => {
            warnings.ignore(at);
            return Ok(());
        }
        kind => {
            return Err(ApiError::unsupported(at, format!("an item of the type {kind:?} is not offered")));
        }
    };
    if let Value::Object(fields) = item {
        // Items of an earlier answer have an identifier and a status.
        ignore_others(fields, &[&["type", "id", "status"][..], read].concat(), at, warnings);
    }
    Ok(())
}

/// Adds a call. Consecutive calls, or a text and calls, form one turn.
fn add_call(messages: &mut Vec<Value>, call: Value) {
    let last = messages.last_mut().filter(|last| last["role"] == "assistant");
    match last.and_then(Value::as_object_mut) {
        Some(last) => {
            let calls = last.entry("tool_calls").or_insert_with(|| json!([]));
            if let Some(calls) = calls.as_array_mut() {
                calls.push(call);
            }
        }
        None => messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
    }
}

/// An answer to a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResponseObject {
    /// The identifier of this response.
    pub id: String,
    /// `response`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created_at: u64,
    /// `in_progress`, `completed`, `incomplete` or `failed`.
    pub status: &'static str,
    /// The reason for a failure.
    pub error: Option<Value>,
    /// The reason if it is incomplete.
    pub incomplete_details: Option<Value>,
    /// As in the request.
    pub instructions: Option<String>,
    /// As in the request.
    pub max_output_tokens: Option<usize>,
    /// The model.
    pub model: String,
    /// Messages, calls and reasoning.
    pub output: Vec<Value>,
    /// As in the request.
    pub parallel_tool_calls: bool,
    /// Always null.
    pub previous_response_id: Option<String>,
    /// Always false.
    pub store: bool,
    /// As in the request.
    pub temperature: Option<f32>,
    /// As in the request.
    pub top_p: Option<f32>,
    /// As in the request.
    pub text: Value,
    /// As in the request.
    pub tool_choice: Value,
    /// As in the request.
    pub tools: Vec<Value>,
    /// `disabled`.
    pub truncation: &'static str,
    /// Tokens, after the end.
    pub usage: Option<ResponseUsage>,
    /// Always empty.
    pub metadata: Map<String, Value>,
    /// Parts of the request that have no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Tokens of a response.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ResponseUsage {
    /// Tokens of the prompt.
    pub input_tokens: usize,
    /// Details of the input tokens.
    pub input_tokens_details: CachedTokens,
    /// Tokens of the answer.
    pub output_tokens: usize,
    /// Details of the output tokens.
    pub output_tokens_details: ReasoningTokens,
    /// Both together.
    pub total_tokens: usize,
}

impl ResponseUsage {
    /// Converts the usage of the other endpoints.
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

/// Details of an answer's tokens.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ReasoningTokens {
    /// Always 0: they are not counted separately.
    pub reasoning_tokens: usize,
}
