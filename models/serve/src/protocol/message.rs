//! A turn of a conversation, prepared for a chat template.

use serde_json::{Map, Value, json};

use super::warning::Warnings;
use crate::error::{ApiError, Result};

/// The fields of messages that templates may read, and the fields of content parts.
const KNOWN: [&str; 9] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "name",
    "tool_call_id",
    "reasoning_content",
    "reasoning",
];
const KNOWN_OF_PARTS: [&str; 3] = ["type", "text", "refusal"];

/// Checks the messages of a chat, and joins the parts of each content into one text.
///
/// # Errors
/// 400 if a message has no role, or a part of it is not text.
pub fn messages(given: &[Value], warnings: &mut Warnings) -> Result<Vec<Value>> {
    if given.is_empty() {
        return Err(ApiError::invalid("messages", "`messages` is empty"));
    }
    given
        .iter()
        .enumerate()
        .map(|(index, message)| self::message(&format!("messages[{index}]"), message, warnings))
        .collect()
}

/// Warns about unknown fields with a value.
pub fn ignore_others(fields: &Map<String, Value>, known: &[&str], at: &str, warnings: &mut Warnings) {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    for (name, _) in fields.iter().filter(|(name, value)| !known.contains(&name.as_str()) && says(value)) {
        warnings.ignore(format!("{at}.{name}"));
    }
}

fn message(at: &str, message: &Value, warnings: &mut Warnings) -> Result<Value> {
    let Value::Object(fields) = message else {
        return Err(ApiError::invalid(at, "a message is an object"));
    };
    ignore_others(fields, &KNOWN, at, warnings);
    let mut own = Map::new();
    let role = role(&format!("{at}.role"), fields.get("role").unwrap_or(&Value::Null))?;
    own.insert("role".into(), json!(role));
    let given = |name| fields.get(name).filter(|value| !value.is_null());
    let content = fields.get("content").unwrap_or(&Value::Null);
    let content = self::content(&format!("{at}.content"), content, warnings)?;
    // OpenAI's models may answer in the field `refusal` instead.
    let content = match given("refusal").and_then(Value::as_str) {
        Some(refusal) if content.is_none() => Some(refusal.to_owned()),
        Some(_) => {
            warnings.ignore(format!("{at}.refusal"));
            content
        }
        None => content,
    };
    let old = given("function_call");
    // Some clients send an empty list and a call in the old form.
    let calls = given("tool_calls").filter(|&calls| old.is_none() || *calls != json!([]));
    let calls = match (calls, old) {
        (Some(calls), old) => {
            if old.is_some() {
                warnings.ignore(format!("{at}.function_call"));
            }
            Some(tool_calls(&format!("{at}.tool_calls"), calls)?)
        }
        // One call, as in OpenAI's API before tools.
        (None, Some(old)) => Some(json!([function_call(&format!("{at}.function_call"), None, old)?])),
        (None, None) => None,
    };
    if content.is_none() && calls.is_none() {
        return Err(ApiError::invalid(&format!("{at}.content"), "a message has a `content`"));
    }
    own.insert("content".into(), content.map_or_else(|| json!(""), Value::from));
    own.extend(calls.map(|calls| ("tool_calls".into(), calls)));
    for name in ["name", "tool_call_id", "reasoning_content", "reasoning"] {
        if let Some(value) = given(name) {
            own.insert(name.into(), value.clone());
        }
    }
    Ok(Value::Object(own))
}

/// The role, as chat templates name it. Templates write roles verbatim, so any other text could
/// inject more than a role.
///
/// # Errors
/// 400 if it is not a role of OpenAI.
pub fn role(at: &str, role: &Value) -> Result<&'static str> {
    const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];
    let Some(role) = role.as_str() else { return Err(ApiError::invalid(at, "a message has a `role`")) };
    let known = match role {
        "developer" => Some("system"),
        // The result of a call, as in OpenAI's API before tools.
        "function" => Some("tool"),
        _ => ROLES.into_iter().find(|known| *known == role),
    };
    known.ok_or_else(|| {
        let message =
            format!("the role is unknown: it is developer, function or one of {}", ROLES.join(", "));
        ApiError::invalid(at, message)
    })
}

/// The text of a content: a text, or parts that are texts or refusals. Unknown fields of parts add
/// warnings.
///
/// # Errors
/// 400 if it is something else.
pub fn content(at: &str, content: &Value, warnings: &mut Warnings) -> Result<Option<String>> {
    let part = |(index, part): (usize, &Value)| {
        if let Value::Object(fields) = part {
            ignore_others(fields, &KNOWN_OF_PARTS, &format!("{at}[{index}]"), warnings);
        }
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let text = |name| part.get(name).and_then(Value::as_str);
        match (kind, text("text"), text("refusal")) {
            ("text" | "input_text" | "output_text", Some(text), _) | ("refusal", _, Some(text)) => {
                Ok(text.to_owned())
            }
            _ => Err(ApiError::unsupported(
                &format!("{at}[{index}]"),
                format!("a part of the type {kind:?} is not offered: this model reads text"),
            )),
        }
    };
    match content {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Array(parts) => parts.iter().enumerate().map(part).collect::<Result<String>>().map(Some),
        _ => Err(ApiError::invalid(at, "a content is a text, or an array of parts")),
    }
}

/// Calls of an earlier answer: parses their arguments, since templates write them in their own
/// style.
fn tool_calls(at: &str, calls: &Value) -> Result<Value> {
    let calls = calls.as_array().ok_or_else(|| ApiError::invalid(at, "`tool_calls` is an array"))?;
    let own = calls.iter().enumerate().map(|(index, call)| {
        let at = format!("{at}[{index}]");
        if let Some(custom) = call.get("custom") {
            let text = |name| custom.get(name).and_then(Value::as_str);
            let (Some(name), Some(input)) = (text("name"), text("input")) else {
                return Err(ApiError::invalid(&at, "the call of a custom tool has a `name` and an `input`"));
            };
            let function = json!({"name": name, "arguments": {"input": input}});
            let id = call.get("id").cloned().unwrap_or_default();
            return Ok(json!({"id": id, "type": "function", "function": function}));
        }
        let function = call.get("function");
        let function = function.ok_or_else(|| ApiError::invalid(&at, "a call has a `function`"))?;
        function_call(&at, call.get("id"), function)
    });
    own.collect::<Result<Vec<Value>>>().map(Value::Array)
}

/// The call of a function, with parsed arguments.
///
/// # Errors
/// 400 if it has no name, or its arguments are no JSON.
pub fn function_call(at: &str, id: Option<&Value>, function: &Value) -> Result<Value> {
    let wrong = |what: &str| ApiError::invalid(at, what);
    let name = function.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| wrong("the function of a call has a `name`"))?;
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) if text.trim().is_empty() => json!({}),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| wrong("the `arguments` of a call are no JSON"))?
        }
        Some(value) => value.clone(),
        None => json!({}),
    };
    let id = id.cloned().unwrap_or_default();
    Ok(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
}

/// The text of an assistant's message that an answer continues.
pub fn echoed(messages: &[Value], continues: bool) -> Option<String> {
    let last = messages.last().filter(|last| continues && last["role"] == "assistant")?;
    last["content"].as_str().map(str::to_owned)
}
