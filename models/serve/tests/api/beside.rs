//! JSON together with tools: an answer is calls, or else JSON of the schema, in every format that
//! begins with calls.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Running, start};

/// A server that also writes calls as JSON.
fn plain() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&["--tool-format", "plain"]))
}

fn tools() -> Value {
    let city = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}}, "required": ["city"], "additionalProperties": false});
    json!([
        {"type": "function", "function": {"name": "weather", "parameters": city}},
        {"type": "function", "function": {"name": "now"}}
    ])
}

fn body(format: &Value, more: &Value) -> Value {
    let mut body = json!({
        "messages": [{"role": "user", "content": "What will the weather be like in Lisbon?"}],
        "tools": tools(), "response_format": format, "max_tokens": 120
    });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn schema(schema: Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}})
}

/// The calls of an answer, or its content. The streamed answer must be the same.
#[track_caller]
fn ask(server: &Running, request: &Value) -> Result<Vec<String>, Value> {
    let whole = server.post("/v1/chat/completions", request).json(200);
    let choice = &whole["choices"][0];
    let mut stream = request.clone();
    stream["stream"] = json!(true);
    let events = server.post("/v1/chat/completions", &stream).events();
    let deltas = || events.iter().map(|event| &event["choices"][0]["delta"]);
    let content: String = deltas().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(choice["message"]["content"].as_str().unwrap_or_default(), content);
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    if calls.is_empty() {
        assert_eq!(choice["finish_reason"], "stop", "{choice}");
        return Err(serde_json::from_str(&content).expect("it is JSON"));
    }
    assert_eq!((&choice["finish_reason"], content.as_str()), (&json!("tool_calls"), ""), "{choice}");
    let arguments: String = deltas()
        .flat_map(|delta| delta["tool_calls"].as_array().cloned().unwrap_or_default())
        .filter_map(|call| call["function"]["arguments"].as_str().map(str::to_owned))
        .collect();
    let whole: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(arguments, whole);
    let name = |call: &Value| {
        let arguments = call["function"]["arguments"].as_str().expect("a text");
        assert!(serde_json::from_str::<Value>(arguments).expect("JSON").is_object());
        call["function"]["name"].as_str().expect("a name").to_owned()
    };
    Ok(calls.iter().map(name).collect())
}

#[test]
fn an_answer_in_plain_json_is_calls_or_the_format() {
    let closed = json!({"type": "object", "properties": {"name": {"enum": ["weather", "other"]}, "age": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["name", "age"], "additionalProperties": false});
    // Texts of these formats could begin like a call, except for white space.
    let open = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}});
    let list = json!({"type": "array", "items": open, "maxItems": 2});
    let (mut called, mut written) = (0, 0);
    for format in [schema(closed), schema(open), schema(list), json!({"type": "json_object"})] {
        let (mut calls, mut contents) = (BTreeSet::new(), 0);
        for seed in 0..10 {
            match ask(plain(), &body(&format, &json!({"temperature": 1.5, "seed": seed}))) {
                Ok(names) => calls.extend(names),
                Err(content) => {
                    contents += 1;
                    assert!(content.is_object() || content.is_array());
                }
            }
        }
        assert!(calls.iter().all(|name| name == "weather" || name == "now"), "{calls:?}");
        called += calls.len();
        written += contents;
        for choice in [json!("required"), json!({"type": "function", "function": {"name": "now"}})] {
            let names = ask(plain(), &body(&format, &json!({"tool_choice": choice}))).expect("a call");
            assert!(choice == "required" || names == ["now"], "{names:?}");
        }
        // Without a choice of tools there is no call.
        ask(plain(), &body(&format, &json!({"tool_choice": "none"}))).expect_err("no call");
    }
    assert!(called > 2 && written > 10, "{called} tools, {written} contents");
}

#[test]
fn every_format_that_begins_with_calls_also_allows_json() {
    let format = schema(
        json!({"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"], "additionalProperties": false}),
    );
    for name in ["hermes", "llama31", "mistral", "qwen_xml", "deepseek", "deepseek_v31"] {
        let server = start(&["--tool-format", name]);
        let content = ask(&server, &body(&format, &json!({"tool_choice": "none"}))).expect_err("no call");
        assert!(content["mood"].is_string());
        let names = ask(&server, &body(&format, &json!({"tool_choice": "required"}))).expect("a call");
        assert!(!names.is_empty(), "{name}");
        match ask(&server, &body(&format, &json!({}))) {
            Ok(names) => assert!(!names.is_empty()),
            Err(content) => assert!(content["mood"].is_string()),
        }
    }
}

#[test]
fn text_is_the_default_format() {
    for (server, path) in [(plain(), "/v1/chat/completions"), (&start(&[]), "/v1/chat/completions")] {
        let request = body(&json!({"type": "text"}), &json!({"max_tokens": 60}));
        let mut without = request.clone();
        without.as_object_mut().expect("an object").remove("response_format");
        let [with, without] = [request, without].map(|request| server.post(path, &request).json(200));
        assert_eq!(with["choices"][0]["message"]["content"], without["choices"][0]["message"]["content"]);
        assert_eq!(with["usage"]["total_tokens"], without["usage"]["total_tokens"]);
    }
    let flat = json!([{"type": "function", "name": "now"}]);
    let request =
        json!({"input": "Hi", "tools": flat, "text": {"format": {"type": "text"}}, "max_output_tokens": 60});
    assert_eq!(plain().post("/v1/responses", &request).json(200)["text"]["format"]["type"], "text");
}

#[test]
fn other_constraints_with_tools_are_refused() {
    let mut request = body(&json!({"type": "text"}), &json!({}));
    request["regex"] = json!("[a-z]{3}");
    let message =
        plain().post("/v1/chat/completions", &request).error(400, Some("regex"), "unsupported_parameter");
    assert!(message.contains("JSON"), "{message}");
    // Objects that could begin like a call are compact, unless the request forbids it.
    request["response_format"] = Value::Null;
    request["regex"] = Value::Null;
    request["structured_outputs"] = json!({"json_object": true, "whitespace_pattern": " ?"});
    assert!(ask(plain(), &request).is_ok() || ask(plain(), &request).is_err());
    request["structured_outputs"]["disable_any_whitespace"] = json!(false);
    let message = plain().post("/v1/chat/completions", &request).error(
        400,
        Some("structured_outputs"),
        "constraint_refused",
    );
    assert!(message.contains("whitespace_pattern"), "{message}");
}
