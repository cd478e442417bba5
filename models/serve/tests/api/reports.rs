//! Typical first requests of clients, and their expected answers.
//!
//! Related tests are elsewhere: constraints on disk in `cached`, slow compilations in `slow`,
//! foreign hosts, roles and special tokens in messages in `guards`.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Answer, Running, start};
use burn_dfa_testing::skip::skipped;

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

fn plain() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&["--tool-format", "plain"]))
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

/// A chat with few tokens.
fn chat(more: Value) -> Answer {
    let body = json!({"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5});
    server().post("/v1/chat/completions", &with(body, more))
}

fn respond(more: Value) -> Answer {
    let body = json!({"model": "tiny", "input": "hi", "max_output_tokens": 16});
    server().post("/v1/responses", &with(body, more))
}

fn city() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}}, "required": ["city"], "additionalProperties": false})
}

fn tool() -> Value {
    json!({"type": "function", "function": {"name": "w", "parameters": city()}})
}

fn flat_tool() -> Value {
    json!({"type": "function", "name": "w", "parameters": city()})
}

fn person() -> Value {
    let mut properties = json!({});
    for (name, kind) in [("name", "string"), ("age", "integer"), ("city", "string"), ("job", "string")] {
        properties[name] = json!({ "type": kind });
    }
    json!({"type": "object", "properties": properties, "required": ["name", "age", "city", "job"], "additionalProperties": false})
}

/// The field names of all warnings.
#[track_caller]
fn warned(answer: &Answer) -> String {
    let warnings = answer.warnings();
    let names: Vec<&str> = warnings.iter().filter_map(|warning| warning["param"].as_str()).collect();
    names.join(", ")
}

#[test]
fn text_that_was_cut_is_said_to_be() {
    // Every answer is a call, a text cut off by the budget, or a complete text.
    let text = "weather in Paris";
    for content in [text, "Write a long story about a dragon."] {
        let messages = json!([{"role": "user", "content": content}]);
        let body = chat(json!({"messages": messages, "max_tokens": 20, "tools": [tool()]})).json(200);
        let tokens = body["usage"]["completion_tokens"].as_u64();
        let reason = body["choices"][0]["finish_reason"].as_str();
        assert_eq!(reason == Some("length"), tokens == Some(20), "{body}");
        let body =
            respond(json!({"input": content, "max_output_tokens": 20, "tools": [flat_tool()]})).json(200);
        let is_cut = body["usage"]["output_tokens"] == 20;
        assert_eq!(body["status"] == "incomplete", is_cut, "{body}");
        assert_eq!(body["incomplete_details"]["reason"] == "max_output_tokens", is_cut);
    }
}

#[test]
fn a_call_that_a_stop_text_ends_is_not_complete() {
    for (stop, reason) in [(json!(["city"]), "stop"), (json!([]), "tool_calls")] {
        let body = json!({"tools": [tool()], "tool_choice": "required", "stop": stop, "max_tokens": 60});
        let choice = chat(body).json(200)["choices"][0].clone();
        let arguments = &choice["message"]["tool_calls"][0]["function"]["arguments"];
        let is_complete = serde_json::from_str::<Value>(arguments.as_str().expect("a text")).is_ok();
        assert_eq!(choice["finish_reason"], reason, "{choice}");
        assert_eq!(is_complete, reason == "tool_calls", "{choice}");
        let body =
            json!({"tools": [flat_tool()], "tool_choice": "required", "stop": stop, "max_output_tokens": 60});
        let response = respond(body).json(200);
        let status = if is_complete { "completed" } else { "incomplete" };
        assert_eq!((&response["status"], &response["output"][0]["status"]), (&json!(status), &json!(status)));
        assert_eq!(response["incomplete_details"]["reason"] == "stop", !is_complete, "{response}");
    }
}

#[test]
fn plain_text_may_be_asked_for_beside_tools() {
    let format = json!({"tools": [tool()], "response_format": {"type": "text"}, "max_tokens": 60});
    chat(format).json(200);
    respond(json!({"tools": [flat_tool()], "text": {"format": {"type": "text"}}, "max_output_tokens": 60}))
        .json(200);
}

#[test]
fn json_may_be_asked_for_beside_tools_without_marks() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"], "additionalProperties": false});
    let body = json!({
        "messages": [{"role": "user", "content": "weather in Paris?"}], "tools": [tool()], "max_tokens": 100,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    });
    let answer = plain().post("/v1/chat/completions", &body).json(200);
    let message = &answer["choices"][0]["message"];
    let text = message["content"].as_str().or(message["tool_calls"][0]["function"]["arguments"].as_str());
    let value: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
    assert!(value["a"].is_u64() || value["city"].is_string(), "{answer}");
}

#[test]
fn a_grammar_may_be_lark_or_has_to_say_what_it_is() {
    let lark = json!({"grammar": "start: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]{1,3}/"});
    let body = chat(json!({"structured_outputs": lark, "max_tokens": 30})).json(200);
    let content = body["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(content.split('+').all(|number| number.parse::<u16>().is_ok()), "{content}");
    let answer = chat(json!({"response_format": {"type": "grammar", "grammar": "start: \"a\""}}));
    let message = answer.error(400, Some("response_format"), "constraint_refused");
    assert!(message.contains("`syntax`") && message.contains("`definition`"), "{message}");
}

#[test]
fn fields_of_other_servers_are_taken() {
    // Each with its warnings.
    for (more, ignored) in [
        (json!({"reasoning_effort": "low"}), "reasoning_effort"),
        (json!({"verbosity": "low"}), "verbosity"),
        (json!({"store": true}), "store"),
        (json!({"priority": 1, "return_token_ids": true}), "priority, return_token_ids"),
        (json!({"priority": 0, "return_token_ids": false, "service_tier": "auto"}), ""),
        (json!({"prediction": {"type": "content", "content": "hi"}}), "prediction"),
        (json!({"chat_template_kwargs": {"enable_thinking": false}}), "chat_template_kwargs"),
        (json!({"ignore_eos": true}), ""),
        (json!({"stop_token_ids": [2]}), ""),
        (json!({"skip_special_tokens": false}), ""),
        (json!({"continue_final_message": true}), ""),
        (json!({"include_stop_str_in_output": true}), ""),
        (
            json!({"guided_decoding_backend": "xgrammar", "guided_json": {"type": "integer", "maximum": 9, "minimum": 0}}),
            "guided_decoding_backend",
        ),
        (
            json!({"guided_whitespace_pattern": " ?", "guided_json": {"type": "integer", "maximum": 9, "minimum": 0}}),
            "",
        ),
        (json!({"temperature": 0.001}), "temperature"),
        (json!({"temperature": 1e-8}), "temperature"),
        (json!({"top_p": 0}), "top_p"),
    ] {
        assert_eq!(warned(&chat(more.clone())), ignored, "{more}");
    }
    let any = chat(json!({"structured_outputs": {"json_object": true}, "max_tokens": 60})).json(200);
    let content = any["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(serde_json::from_str::<Value>(content).expect("JSON").is_object());
    for more in [
        json!({"whitespace_pattern": "[ ]?"}),
        json!({"disable_any_whitespace": true}),
        json!({"disable_additional_properties": true}),
    ] {
        let outputs = with(json!({"json": person()}), more);
        let body = chat(json!({"structured_outputs": outputs, "max_tokens": 120})).json(200);
        let content = body["choices"][0]["message"]["content"].as_str().expect("a text");
        let value: Value = serde_json::from_str(content).expect("JSON");
        assert_eq!(value.as_object().map(|object| object.len()), Some(4), "{content}");
        let compact = value.to_string();
        let is_compact = compact == content;
        assert_eq!(is_compact, outputs.get("whitespace_pattern").is_none(), "{content}");
    }
}

#[test]
fn fields_of_responses_are_taken() {
    for (more, ignored) in [
        (json!({"include": ["reasoning.encrypted_content"]}), "include: reasoning.encrypted_content"),
        (json!({"include": ["message.output_text.logprobs"]}), "include: message.output_text.logprobs"),
        (json!({"truncation": "auto"}), "truncation"),
        (json!({"reasoning": {"effort": "none"}}), "reasoning.effort"),
    ] {
        assert_eq!(warned(&respond(more.clone())), ignored, "{more}");
    }
    let custom = json!({"type": "custom", "name": "x", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}});
    let body =
        respond(json!({"tools": [custom], "tool_choice": "required", "max_output_tokens": 60})).json(200);
    assert_eq!(
        (&body["output"][0]["type"], &body["output"][0]["input"]),
        (&json!("custom_tool_call"), &json!("a"))
    );
}

#[test]
fn fields_of_tools_are_taken() {
    let tool = with(tool(), json!({"cache_control": {"type": "ephemeral"}}));
    let mut more = json!({"tools": [tool], "tool_choice": "required", "max_tokens": 100});
    more["tools"][0]["function"]["returns"] = json!({"type": "string"});
    assert_eq!(warned(&chat(more)), "tools[0].cache_control, tools[0].function.returns");
}

#[test]
fn the_least_tokens_are_kept_or_warned_of() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    let answer = chat(json!({"response_format": format, "max_tokens": 60, "min_tokens": 30}));
    assert_eq!(warned(&answer), "min_tokens");
}

/// Requires SmolLM2-135M-Instruct in the folder `BURN_DFA_SMOLLM2`.
#[test]
fn a_trained_model_writes_json_in_its_own_style() {
    let Some(folder) = std::env::var_os("BURN_DFA_SMOLLM2") else {
        return skipped("JSON of a trained model: BURN_DFA_SMOLLM2 names no folder of SmolLM2-135M-Instruct");
    };
    let folder = folder.into_string().expect("a path");
    let server = start(&["--model", &folder, "--served-model-name", "smol", "--slots", "1536"]);
    let extract = "Extract the person from the text as a JSON object with the keys name, age, city, job.\n\nText: John Carter is a nurse from Chicago and he is 41 years old.";
    let definition = format!("start: %json {}", person());
    for format in [
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": person()}}),
        json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": definition}}),
    ] {
        let body = json!({"model": "smol", "messages": [{"role": "user", "content": extract}], "max_tokens": 140, "response_format": format});
        let body = server.post("/v1/chat/completions", &body).json(200);
        let content = body["choices"][0]["message"]["content"].as_str().expect("a text");
        assert_eq!(serde_json::from_str::<Value>(content).expect("JSON")["age"], 41, "{content}");
    }
}
