//! White space in JSON: by the server's option, and by fields of a request.

use serde_json::{Value, json};

use crate::client::{Folder, Running, start};

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"const": [true, null]}, "b": {"const": "x"}}, "required": ["a", "b"], "additionalProperties": false})
}

const COMPACT: &str = r#"{"a":[true,null],"b":"x"}"#;
const SPACED: &str = r#"{"a": [true, null], "b": "x"}"#;
const PRETTY: &str = "{\n  \"a\": [\n    true,\n    null\n  ],\n  \"b\": \"x\"\n}";

fn content(server: &Running, more: Value) -> String {
    let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 120});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let body = server.post("/v1/chat/completions", &body).json(200);
    body["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

fn arguments(server: &Running) -> String {
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": schema()}}]);
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 150, "tools": tools, "tool_choice": "required", "parallel_tool_calls": false});
    let body = server.post("/v1/chat/completions", &body).json(200);
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .expect("a text")
        .to_owned()
}

/// With `--forced-text longest` forced text has one tokenization.
#[test]
fn forced_text_has_its_longest_tokens_by_request() {
    for (rule, is_single) in [("longest", true), ("any", false)] {
        let server = start(&["--forced-text", rule]);
        let body = json!({"messages": [{"role": "user", "content": "Hi"}], "guided_json": schema(),
            "max_tokens": 60, "stream": true, "legal_tokens": true});
        let events = server.post("/v1/chat/completions", &body).events();
        let counts: Vec<Value> = events
            .iter()
            .flat_map(|event| event["choices"][0]["legal_tokens"].as_array().cloned().unwrap_or_default())
            .collect();
        assert!(!counts.is_empty());
        assert_eq!(counts.iter().all(|count| *count == 1), is_single, "{rule}: {counts:?}");
    }
}

#[test]
fn the_server_has_a_style() {
    for (style, text) in [("compact", COMPACT), ("spaced", SPACED), ("pretty", PRETTY)] {
        let server = start(&["--whitespace", style]);
        assert_eq!(content(&server, json!({"guided_json": schema()})), text, "{style}");
        assert_eq!(arguments(&server), text, "{style}");
    }
    let flexible = start(&["--whitespace", "flexible"]);
    let text = content(&flexible, json!({"guided_json": schema()}));
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value.to_string(), COMPACT);
    // The embedded model was trained on compact JSON, other models on spaced JSON.
    assert_eq!(content(&start(&[]), json!({"guided_json": schema()})), COMPACT);
    let folder = Folder::new("style", "<|user|>{{ messages[-1]['content'] }}<|assistant|>");
    let other = folder.start(&[]);
    assert_eq!(content(&other, json!({"guided_json": schema()})), SPACED);
}

#[test]
fn a_request_has_its_own_style() {
    let server = start(&["--whitespace", "pretty"]);
    for (more, text) in [
        (json!({"structured_outputs": {"json": schema()}}), PRETTY),
        (json!({"structured_outputs": {"json": schema(), "disable_any_whitespace": true}}), COMPACT),
        (json!({"structured_outputs": {"json": schema(), "whitespace_pattern": "[ ]?"}}), SPACED),
        (json!({"structured_outputs": {"json": schema(), "whitespace_pattern": ""}}), COMPACT),
        (json!({"guided_json": schema(), "guided_whitespace_pattern": " ?"}), SPACED),
        (
            json!({"guided_json": schema(), "guided_decoding_backend": "xgrammar:disable-any-whitespace"}),
            COMPACT,
        ),
        (json!({"guided_json": schema(), "guided_decoding_backend": "outlines"}), PRETTY),
    ] {
        assert_eq!(content(&server, more.clone()), text, "{more}");
    }
    let ask = |more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 60});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.post("/v1/chat/completions", &body)
    };
    let everywhere = ask(json!({"structured_outputs": {"json": schema(), "whitespace_pattern": "[ ]"}}));
    let message = everywhere.error(400, Some("structured_outputs"), "constraint_refused");
    assert!(message.contains("`whitespace_pattern`"), "{message}");
    let alone = ask(json!({"guided_whitespace_pattern": " ?"}));
    assert_eq!(alone.warnings()[0]["param"], "guided_whitespace_pattern");
    // A backend with options of the style has an effect on a schema of the old fields alone.
    let backend = |more: Value, options: &str| {
        let mut more = more;
        more["guided_decoding_backend"] = json!(format!("xgrammar{options}"));
        let names = ask(more).warnings().into_iter().map(|warning| warning["param"].clone());
        names.collect::<Vec<_>>()
    };
    let format =
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema()}}});
    let option = ":disable-any-whitespace";
    assert!(backend(json!({"guided_json": schema()}), option).is_empty());
    assert_eq!(backend(json!({"guided_json": schema()}), ""), ["guided_decoding_backend"]);
    assert_eq!(backend(format, option), ["guided_decoding_backend"]);
    assert_eq!(backend(json!({"guided_regex": "a"}), option), ["guided_decoding_backend"]);
    let open = json!({"type": "object", "properties": {"a": {"const": "y"}}, "required": ["a"]});
    let closed = json!({"structured_outputs": {"json": open, "disable_additional_properties": true, "disable_any_whitespace": true}});
    assert_eq!(content(&server, closed), r#"{"a":"y"}"#);
    let backend = json!({"guided_json": open, "guided_decoding_backend": "guidance:no-additional-properties,disable-any-whitespace,no-fallback"});
    assert_eq!(content(&server, backend), r#"{"a":"y"}"#);
}

#[test]
fn a_grammar_may_be_lark() {
    let server = start(&[]);
    let lark = "start: NUMBER (\"+\" NUMBER)~1\nNUMBER: /[0-9]/";
    for field in ["structured_outputs", "guided_grammar"] {
        let value = if field == "structured_outputs" { json!({"grammar": lark}) } else { json!(lark) };
        let text = content(&server, json!({ field: value }));
        assert!(text.len() == 3 && text.as_bytes()[1] == b'+', "{text}");
    }
}
