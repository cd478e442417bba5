//! Models whose chat template does not show tools.

use serde_json::{Value, json};

use crate::client::{Folder, Running};

/// Roles and contents, like SmolLM2's template.
const PLAIN: &str = "{% for m in messages %}<|user|>{{ m['role'] }}: {{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// No system messages, like Gemma's template.
const USERS: &str = "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}<|user|>{{ m['content'] | trim }}{% endfor %}<|assistant|>";

/// Only the last message.
const LAST: &str = "<|user|>{{ messages[-1]['content'][:20] }}<|assistant|>";

fn tools() -> Value {
    let city = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}}, "required": ["city"], "additionalProperties": false});
    json!([
        {"type": "function", "function": {"name": "weather", "description": "Tells the weather.", "parameters": city}},
        {"type": "custom", "custom": {"name": "sum", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9]{2}"}}}}
    ])
}

/// The text of the prompt of a conversation.
fn prompt(server: &Running, messages: Value, tools: Value) -> String {
    let tokens = server.post("/tokenize", &json!({"messages": messages, "tools": tools})).json(200);
    let text = server.post("/detokenize", &json!({"tokens": tokens["tokens"]})).json(200);
    text["prompt"].as_str().expect("a text").to_owned()
}

fn ask(server: &Running) -> Vec<Value> {
    let request = json!({
        "messages": [{"role": "user", "content": "How warm is it in Lisbon?"}],
        "tools": [{"type": "function", "function": {"name": "now"}}], "tool_choice": "required", "parallel_tool_calls": false,
        "max_tokens": 60
    });
    let answer = server.post("/v1/chat/completions", &request);
    assert_eq!(answer.json(200)["choices"][0]["finish_reason"], "tool_calls");
    answer.warnings()
}

#[test]
fn the_system_message_lists_tools() {
    let folder = Folder::new("plain", PLAIN);
    let server = folder.start(&["--slots", "256"]);
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
    let text = prompt(&server, messages.clone(), tools());
    assert!(text.starts_with("<|user|>system: Be brief.\n\nYou can call"), "{text}");
    for part in ["weather: Tells the weather.", r#""maxLength": 6"#, "[0-9]{2}", r#"{"name": ""#] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!prompt(&server, messages, json!([])).contains("weather"));
    assert_eq!(ask(&server), [json!(null); 0]);
    // Calls are written in the format in which they are read.
    let hermes = folder.start(&["--tool-format", "hermes", "--slots", "256"]);
    let text = prompt(&hermes, json!([{"role": "user", "content": "Hi"}]), tools());
    assert!(text.contains("<tool_call>\n{\"name\": \"weather\""), "{text}");
}

#[test]
fn without_system_messages_the_user_lists_them() {
    let folder = Folder::new("users", USERS);
    let server = folder.start(&["--slots", "256"]);
    let text = prompt(&server, json!([{"role": "user", "content": "Hi there"}]), tools());
    assert!(text.starts_with("<|user|>You can call") && text.contains("Hi there<|assistant|>"), "{text}");
    assert_eq!(ask(&server), [json!(null); 0]);
}

#[test]
fn a_model_that_never_sees_its_tools_is_warned_of() {
    let folder = Folder::new("last", LAST);
    let warnings = ask(&folder.start(&["--slots", "256"]));
    assert_eq!((warnings.len(), &warnings[0]["param"]), (1, &json!("tools")));
    let message = warnings[0]["message"].as_str().expect("a text");
    assert!(message.contains(": now") && message.contains("does not see"), "{message}");
}

#[test]
fn earlier_calls_and_their_results_are_written() {
    let folder = Folder::new("calls", PLAIN);
    let server = folder.start(&["--slots", "256"]);
    let call = json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bern\"}"}});
    let other = json!({"id": "c2", "type": "custom", "custom": {"name": "sum", "input": "12"}});
    let messages = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": null, "tool_calls": [call, other]},
        {"role": "tool", "tool_call_id": "c1", "content": "21"},
        {"role": "tool", "tool_call_id": "c2", "content": "3"},
    ]);
    let text = prompt(&server, messages, json!([]));
    let calls = r#"assistant: [{"name": "weather", "arguments": {"city": "Bern"}}, {"name": "sum", "arguments": {"input": "12"}}]"#;
    assert!(text.contains(calls), "{text}");
    assert!(
        text.ends_with("user: The tool weather returned: 21\nThe tool sum returned: 3<|assistant|>"),
        "{text}"
    );
}
