//! `/v1/responses`.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Folder, Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

fn person() -> Value {
    json!({"format": {"type": "json_schema", "name": "person", "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": false
    }}})
}

/// The events of a stream, by name.
fn events(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let data = serde_json::from_str(&field("data: ").expect("data")).expect("JSON");
        (field("event: ").expect("a name"), data)
    };
    blocks.map(event).collect()
}

#[test]
fn a_text_of_a_schema() {
    let request = json!({"model": "tiny", "input": "Meet Nora Keller, a 34 year old baker from Lisbon.", "text": person()});
    let response = server().post("/v1/responses", &request).json(200);
    assert_eq!((&response["object"], &response["status"]), (&json!("response"), &json!("completed")));
    let part = &response["output"][0]["content"][0];
    assert_eq!(part["type"], "output_text");
    let value: Value = serde_json::from_str(part["text"].as_str().expect("a text")).expect("JSON");
    assert!(value["name"].is_string() && value["age"].is_number());
    assert_eq!(response["text"], person());
    assert!(response["usage"]["output_tokens"].as_u64() > Some(0));
}

#[test]
fn a_stream_of_events() {
    let request = json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Meet Nora Keller."}]}], "text": person(), "stream": true});
    let answer = server().post("/v1/responses", &request);
    assert_eq!(answer.status, 200);
    let events = events(&answer.text);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(
        names[names.len() - 4..],
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    for (index, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(index)));
    }
    let deltas = events.iter().filter(|(name, _)| name == "response.output_text.delta");
    let text: String = deltas.filter_map(|(_, data)| data["delta"].as_str()).collect();
    let whole = &events[events.len() - 1].1["response"];
    assert_eq!(whole["output"][0]["content"][0]["text"], text);
    assert_eq!(whole["status"], "completed");
}

#[test]
fn calls_are_items() {
    let tool = burn_dfa_tiny::tool("get_weather").expect("a tool");
    let flat =
        json!({"type": "function", "name": tool.name, "parameters": tool.parameters(), "strict": true});
    let request = json!({"input": "What will the weather be like in Lisbon tomorrow?", "tools": [flat], "tool_choice": "required", "parallel_tool_calls": false});
    let response = server().post("/v1/responses", &request).json(200);
    let item = &response["output"][0];
    assert_eq!((&item["type"], &item["name"]), (&json!("function_call"), &json!("get_weather")));
    let arguments: Value = serde_json::from_str(item["arguments"].as_str().expect("a text")).expect("JSON");
    assert!(arguments["city"].is_string());

    let mut stream = request.clone();
    stream["stream"] = json!(true);
    let events = events(&server().post("/v1/responses", &stream).text);
    let deltas = events.iter().filter(|(name, _)| name == "response.function_call_arguments.delta");
    let text: String = deltas.filter_map(|(_, data)| data["delta"].as_str()).collect();
    assert_eq!(item["arguments"], text);

    let again = json!({"input": [
        {"role": "user", "content": "What will the weather be like in Lisbon tomorrow?"},
        {"type": "function_call", "call_id": item["call_id"], "name": "get_weather", "arguments": item["arguments"]},
        {"type": "function_call_output", "call_id": item["call_id"], "output": "Sunny."}
    ], "max_output_tokens": 5});
    let response = server().post("/v1/responses", &again).json(200);
    assert!(["completed", "incomplete"].contains(&response["status"].as_str().expect("a status")));
}

#[test]
fn requests_that_need_stored_conversations_are_refused() {
    let ask = |more: Value| {
        let mut body = json!({"input": "Hi"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server().post("/v1/responses", &body)
    };
    ask(json!({"previous_response_id": "resp_1"})).error(
        404,
        Some("previous_response_id"),
        "response_not_found",
    );
    for (more, param) in [
        (json!({"background": true}), "background"),
        (json!({"conversation": "c"}), "conversation"),
        (json!({"truncation": "some"}), "truncation"),
        (json!({"include": ["x"]}), "include"),
        (json!({"n": 2}), "n"),
    ] {
        ask(more).error(400, Some(param), "unsupported_parameter");
    }
    ask(json!({"text": {"format": {"type": "xml"}}})).error(400, Some("text.format"), "constraint_refused");
    ask(json!({"text": {"format": {"type": "json_schema", "schema": {}, "what": 1}}})).error(
        400,
        Some("text.format"),
        "unsupported_parameter",
    );
    ask(json!({"text": person(), "max_output_tokens": 2})).error(
        400,
        Some("max_output_tokens"),
        "budget_too_small",
    );
    ask(json!({"store": true, "background": false, "truncation": "disabled", "max_output_tokens": 2}))
        .json(200);
}

/// No system messages, like Gemma's template.
const USERS: &str = "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}<|user|>{{ m['content'] | trim }}{% endfor %}{{ reasoning_effort }}<|assistant|>";

#[test]
fn errors_and_warnings_name_the_fields_of_the_request() {
    let user = json!({"role": "user", "content": "Hi"});
    let call = json!({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{"});
    let result = json!({"type": "function_call_output", "call_id": "1", "output": null});
    for (item, param) in [
        (json!({"role": "user", "content": null}), "input[1].content"),
        (json!({"content": "Hi"}), "input[1].role"),
        (call, "input[1]"),
        (result, "input[1].output"),
    ] {
        // The reasoning and the instructions shift the indices of the messages.
        let input = json!([{"type": "reasoning"}, item, user]);
        let request = json!({"instructions": "Be brief.", "input": input, "max_output_tokens": 2});
        let message = server().post("/v1/responses", &request).error(400, Some(param), "invalid_value");
        assert!(!message.contains("messages"), "{message}");
    }
    for format in [json!({"type": "xml"}), json!({"type": "json_schema", "name": "n"}), json!(1)] {
        let request = json!({"input": "Hi", "text": {"format": format}});
        let answer = server().post("/v1/responses", &request);
        let message = answer.error(400, Some("text.format"), "constraint_refused");
        assert!(message.contains("`text.format`") && !message.contains("response_format"), "{message}");
    }
    let effort = json!({"input": "Hi", "reasoning": {"effort": "low"}, "max_output_tokens": 2});
    let warnings = server().post("/v1/responses", &effort).warnings();
    assert_eq!(warnings[0]["param"], "reasoning.effort");
    assert!(warnings[0]["message"].as_str().is_some_and(|text| text.contains("`reasoning.effort`")));

    let folder = Folder::new("no-system", USERS);
    let strict = folder.start(&[]);
    let mut request = json!({"instructions": "Be brief.", "input": "Hi", "max_output_tokens": 2});
    strict.post("/v1/responses", &request).error(400, Some("input"), "invalid_value");
    request["reasoning"] = json!({"effort": "low"});
    strict.post("/v1/responses", &request).error(400, Some("reasoning.effort"), "invalid_value");
}
