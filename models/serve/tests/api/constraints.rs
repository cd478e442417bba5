//! Every field with a constraint enforces it, or is refused by name.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Answer, Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&["--compile-deadline", "5"]))
}

fn ask(field: &str, value: Value) -> Answer {
    let body =
        json!({"messages": [{"role": "user", "content": "Hi"}], field: value, "temperature": 1.0, "seed": 1});
    server().post("/v1/chat/completions", &body)
}

fn content(field: &str, value: Value) -> String {
    let body = ask(field, value).json(200);
    assert_eq!(body["choices"][0]["finish_reason"], "stop", "{body}");
    body["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn every_dialect_holds() {
    let digits = "[0-9]{1,4}";
    let schema = json!({"type": "integer", "minimum": 10, "maximum": 99});
    let in_range = |text: &str| text.parse::<u32>().is_ok_and(|value| (10..=99).contains(&value));
    let grammar = "root ::= [0-9] [0-9]";
    for field in ["regex", "guided_regex"] {
        assert!(is_digits(&content(field, json!(digits))), "{field}");
    }
    for field in ["guided_json", "json_schema"] {
        assert!(in_range(&content(field, schema.clone())), "{field}");
        assert!(in_range(&content(field, json!(schema.to_string()))), "{field} as text");
    }
    for field in ["guided_grammar", "ebnf"] {
        assert!(is_digits(&content(field, json!(grammar))), "{field}");
    }
    assert!(["a1", "b2"].contains(&content("guided_choice", json!(["a1", "b2"])).as_str()));
    for (kind, value) in [
        ("json", schema.clone()),
        ("regex", json!("[1-9][0-9]")),
        ("grammar", json!("root ::= [1-9] [0-9]")),
        ("choice", json!(["11", "22"])),
    ] {
        assert!(in_range(&content("structured_outputs", json!({ kind: value }))), "{kind}");
    }
    let named = json!({"name": "n", "strict": true, "schema": schema});
    assert!(in_range(&content("response_format", json!({"type": "json_schema", "json_schema": named}))));
    let lark = json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /[1-9][0-9]/"}});
    assert!(in_range(&content("response_format", lark)));
    let tag = json!({"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_string", "value": "1"}, {"type": "regex", "pattern": "[0-9]"}
    ]}});
    assert!(in_range(&content("response_format", tag.clone())));
    assert!(in_range(&content("structural_tag", tag)));
}

#[test]
fn named_classes_of_regexes_are_those_of_ascii() {
    // With Unicode classes this would match non-ASCII digits, which the model can write as bytes.
    let pattern = r"[\d&&[^0-9]]";
    let grammar = json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": pattern}});
    for (field, value) in [
        ("regex", json!(pattern)),
        ("guided_regex", json!(pattern)),
        ("structured_outputs", json!({"regex": pattern})),
        ("response_format", grammar),
    ] {
        ask(field, value).error(400, Some(field), "constraint_unsatisfiable");
    }
    assert!(is_digits(&content("regex", json!(r"\d{3}"))));
}

#[test]
fn any_object_is_an_object() {
    for (field, value) in
        [("response_format", json!({"type": "json_object"})), ("guided_json_object", json!(true))]
    {
        let text = content(field, value);
        assert!(serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()), "{text}");
    }
}

#[test]
fn numbers_keep_their_digits() {
    let body = r#"{"messages":[{"role":"user","content":"Hi"}],"guided_json":{"type":"integer","const":9007199254740993.0}}"#;
    let headers = [("content-type", "application/json")];
    let body = server().request("POST", "/v1/chat/completions", &headers, body.as_bytes()).json(200);
    assert_eq!(body["choices"][0]["message"]["content"], "9007199254740993");
}

#[test]
fn properties_come_in_their_order() {
    let schema = json!({"type": "object", "properties": {"z": {"const": 1}, "a": {"const": 2}}, "required": ["z", "a"], "additionalProperties": false});
    let text = content("guided_json", schema);
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON").to_string(), r#"{"z":1,"a":2}"#);
}

#[test]
fn unsupported_constraints_are_refused_with_the_parameter() {
    let cases = [
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}),
            "constraint_refused",
        ),
        ("response_format", json!({"type": "xml"}), "constraint_refused"),
        ("response_format", json!({"type": "json_object", "more": 1}), "constraint_refused"),
        ("response_format", json!("json"), "constraint_refused"),
        ("structured_outputs", json!({"regex": "("}), "constraint_refused"),
        ("structured_outputs", json!({"regex": "a", "choice": ["a"]}), "constraint_refused"),
        ("structured_outputs", json!({}), "constraint_refused"),
        (
            "guided_json",
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
            "constraint_unsatisfiable",
        ),
        ("guided_regex", json!("(a|b)*a(a|b){40}"), "constraint_too_large"),
        ("guided_grammar", json!("root ::= other"), "constraint_refused"),
        ("guided_decoding_backend", json!("xgrammar:fast"), "unsupported_parameter"),
        ("guided_regex", json!(3), "invalid_value"),
        ("functions", json!([{"name": "f"}]), "unsupported_parameter"),
        ("function_call", json!("auto"), "unsupported_parameter"),
        ("bad_words", json!(["x"]), "unsupported_parameter"),
        ("allowed_token_ids", json!([1]), "unsupported_parameter"),
        ("use_beam_search", json!(true), "unsupported_parameter"),
        ("stream_options", json!({"continuous_usage_stats": true}), "unsupported_parameter"),
        ("logit_bias", json!({"99999": 1}), "invalid_value"),
        ("top_p", json!(-0.5), "invalid_value"),
        ("top_logprobs", json!(3), "invalid_value"),
    ];
    for (field, value, code) in cases {
        let answer = ask(field, value.clone());
        assert_eq!(answer.status, 400, "{field}: {value}: {}", answer.text);
        answer.error(400, Some(field), code);
    }
}

#[test]
fn two_constraints_are_one_too_many() {
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "regex": "a", "guided_json": {"type": "null"}});
    let message = server().post("/v1/chat/completions", &body).error(400, Some("regex"), "invalid_value");
    assert!(message.contains("guided_json"), "{message}");
    let text = json!({"messages": [{"role": "user", "content": "Hi"}], "regex": "a", "response_format": {"type": "text"}});
    let body = server().post("/v1/chat/completions", &text).json(200);
    assert_eq!(body["choices"][0]["message"]["content"], "a");
}

#[test]
fn a_refusal_is_remembered() {
    let cases = [json!("(x|y)*x(x|y){30}"), json!("(x|y)*x(x|y){30}")];
    let times = cases.map(|pattern| {
        let started = std::time::Instant::now();
        ask("regex", pattern).error(400, Some("regex"), "constraint_too_large");
        started.elapsed()
    });
    assert!(times[1] < times[0] / 2 || times[1].as_millis() < 50, "{times:?}");
}
