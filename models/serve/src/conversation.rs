//! Conversations with tools, for chat templates that do not show tools.
//!
//! The definitions become a text in the system message, calls become the text that a model of the
//! format writes, and results of tools become user messages:
//!
//! ```text
//! tools                          system: You can call these tools: weather …
//! user: Is it warm?              user: Is it warm?
//! assistant: call of weather     assistant: {"name": "weather", "arguments": {}}
//! tool: 21                       user: The tool weather returned: 21
//! ```

use std::collections::HashMap;

use burn_dfa::constraint::ToolFormat;
use serde_json::{Value, json};

/// The position of the text that lists tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolListPosition {
    /// In a system message at the beginning of the conversation.
    System,
    /// Before the first user message, for templates without system messages.
    User,
}

/// The messages with a text at the beginning; `None` if no message can hold it.
pub fn with_text(messages: &[Value], text: &str, position: ToolListPosition) -> Option<Vec<Value>> {
    let mut messages = messages.to_vec();
    let is_system = messages.first().is_some_and(|first| first["role"] == "system");
    match position {
        ToolListPosition::System if is_system => {
            let said = messages[0]["content"].as_str().unwrap_or_default();
            messages[0]["content"] = json!(format!("{said}\n\n{text}").trim_start());
        }
        ToolListPosition::System => messages.insert(0, json!({"role": "system", "content": text})),
        ToolListPosition::User => {
            let first = messages.iter_mut().find(|message| message["role"] == "user")?;
            let said = first["content"].as_str().unwrap_or_default();
            first["content"] = json!(format!("{text}\n\n{said}"));
        }
    }
    Some(messages)
}

/// The messages with calls and their results as text.
pub fn with_calls_as_text(messages: &[Value], format: ToolFormat) -> Vec<Value> {
    let mut own: Vec<Value> = Vec::with_capacity(messages.len());
    // The names of the called tools, by call identifier.
    let mut called: HashMap<String, String> = HashMap::new();
    for message in messages {
        let mut message = message.clone();
        let calls = message.as_object_mut().and_then(|fields| fields.remove("tool_calls"));
        if let Some(Value::Array(calls)) = calls {
            let name = |call: &Value| call["function"]["name"].as_str().unwrap_or_default().to_owned();
            for call in &calls {
                called.insert(call["id"].as_str().unwrap_or_default().to_owned(), name(call));
            }
            let names: Vec<String> = calls.iter().map(name).collect();
            let written: Vec<(&str, Value)> = names
                .iter()
                .zip(&calls)
                .map(|(name, call)| (name.as_str(), call["function"]["arguments"].clone()))
                .collect();
            let said = message["content"].as_str().unwrap_or_default();
            message["content"] = json!(format!("{said}\n{}", format.write(&written)).trim_start());
        }
        if message["role"] != "tool" {
            own.push(message);
            continue;
        }
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let name = called.get(id).map(String::as_str).or(message["name"].as_str());
        let of = name.map(|name| format!(" {name}")).unwrap_or_default();
        let result = format!("The tool{of} returned: {}", message["content"].as_str().unwrap_or_default());
        // Results of several calls form one turn.
        match own.last_mut().filter(|last| last["is_result"] == true) {
            Some(last) => {
                let said = last["content"].as_str().unwrap_or_default();
                last["content"] = json!(format!("{said}\n{result}"));
            }
            None => own.push(json!({"role": "user", "content": result, "is_result": true})),
        }
    }
    for message in &mut own {
        if let Some(fields) = message.as_object_mut() {
            fields.remove("is_result");
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(messages: &[Value]) -> Vec<(String, String)> {
        let text = |message: &'_ Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
        messages.iter().map(|message| (text(message, "role"), text(message, "content"))).collect()
    }

    fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(role, content)| ((*role).to_owned(), (*content).to_owned())).collect()
    }

    #[test]
    fn a_text_comes_in_front() {
        let user = json!({"role": "user", "content": "Hi"});
        let system = json!({"role": "system", "content": "Be brief."});
        let messages = [user.clone()];
        let placed = with_text(&messages, "T", ToolListPosition::System).expect("a system message");
        assert_eq!(contents(&placed), texts(&[("system", "T"), ("user", "Hi")]));
        let placed =
            with_text(&[system.clone(), user.clone()], "T", ToolListPosition::System).expect("there is one");
        assert_eq!(contents(&placed), texts(&[("system", "Be brief.\n\nT"), ("user", "Hi")]));
        let placed = with_text(&messages, "T", ToolListPosition::User).expect("a user");
        assert_eq!(contents(&placed), texts(&[("user", "T\n\nHi")]));
        assert_eq!(with_text(&[system], "T", ToolListPosition::User), None);
    }

    #[test]
    fn calls_and_results_are_turns() {
        let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": {"a": 1}}});
        let messages = [
            json!({"role": "user", "content": "Hi"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call("1", "f"), call("2", "g")]}),
            json!({"role": "tool", "tool_call_id": "2", "content": "two"}),
            json!({"role": "tool", "tool_call_id": "1", "content": "one"}),
            json!({"role": "assistant", "content": "Yes."}),
        ];
        let own = with_calls_as_text(&messages, ToolFormat::Plain);
        let calls = r#"[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {"a": 1}}]"#;
        let results = "The tool g returned: two\nThe tool f returned: one";
        let expected = [("user", "Hi"), ("assistant", calls), ("user", results), ("assistant", "Yes.")];
        assert_eq!(contents(&own), texts(&expected));
        assert!(own.iter().all(|message| message.get("tool_calls").is_none()));
    }
}
