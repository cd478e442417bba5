//! A turn of a conversation, made ready for a chat template.

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Result};

/// The messages of a chat, checked, with contents of parts as one text.
///
/// # Errors
/// 400 where a message has no role, or a part of it is not text.
pub fn messages(given: &[Value]) -> Result<Vec<Value>> {
    if given.is_empty() {
        return Err(ApiError::invalid("messages", "`messages` is empty"));
    }
    given
        .iter()
        .enumerate()
        .map(|(index, message)| self::message(&format!("messages[{index}]"), message))
        .collect()
}

fn message(at: &str, message: &Value) -> Result<Value> {
    let Value::Object(fields) = message else {
        return Err(ApiError::invalid(at, "a message is an object"));
    };
    let mut own = Map::new();
    match fields.get("role").and_then(Value::as_str) {
        Some("developer") => own.insert("role".into(), json!("system")),
        Some(role) => own.insert("role".into(), json!(role)),
        None => return Err(ApiError::invalid(&format!("{at}.role"), "a message has a `role`")),
    };
    let content = content(&format!("{at}.content"), fields.get("content").unwrap_or(&Value::Null))?;
    let calls = fields.get("tool_calls").filter(|calls| !calls.is_null());
    if content.is_none() && calls.is_none() {
        return Err(ApiError::invalid(&format!("{at}.content"), "a message has a `content`"));
    }
    own.insert("content".into(), content.map_or_else(|| json!(""), Value::from));
    if let Some(calls) = calls {
        own.insert("tool_calls".into(), tool_calls(&format!("{at}.tool_calls"), calls)?);
    }
    for name in ["name", "tool_call_id", "reasoning_content", "reasoning"] {
        if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
            own.insert(name.into(), value.clone());
        }
    }
    Ok(Value::Object(own))
}

/// The text of a content, which is a text or parts that are texts.
///
/// # Errors
/// 400 where it is something else.
pub fn content(at: &str, content: &Value) -> Result<Option<String>> {
    let part = |(index, part): (usize, &Value)| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let text = part.get("text").and_then(Value::as_str);
        match (kind, text) {
            ("text" | "input_text" | "output_text", Some(text)) => Ok(text.to_owned()),
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

/// Calls of an earlier answer: their arguments as values, which templates write in their own way.
fn tool_calls(at: &str, calls: &Value) -> Result<Value> {
    let wrong = |index: usize, what: &str| ApiError::invalid(&format!("{at}[{index}]"), what);
    let calls = calls.as_array().ok_or_else(|| ApiError::invalid(at, "`tool_calls` is an array"))?;
    let own = calls.iter().enumerate().map(|(index, call)| {
        let function = call.get("function").ok_or_else(|| wrong(index, "a call has a `function`"))?;
        let name = function.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| wrong(index, "the function of a call has a `name`"))?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) if text.trim().is_empty() => json!({}),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map_err(|_| wrong(index, "the `arguments` of a call are no JSON"))?,
            Some(value) => value.clone(),
            None => json!({}),
        };
        let id = call.get("id").cloned().unwrap_or_default();
        Ok(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
    });
    own.collect::<Result<Vec<Value>>>().map(Value::Array)
}
