//! Errors use the terms of JSON and of the server's options, never Rust types.

use std::sync::OnceLock;

use regex_automata::meta::Regex;
use serde_json::{Value, json};

use crate::client::{Answer, Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&["--compile-deadline", "2", "--compile-bytes", "67108864"]))
}

/// Checks that the message of a refusal contains no Rust terms.
#[track_caller]
fn check(answer: &Answer, request: &Value) -> bool {
    static WORDS: OnceLock<Regex> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        Regex::new(
            r"(?x) \b(?:[ui](?:8|16|32|64|128|size)|f32|f64|bool|str|String|Vec|Option|HashMap|Value|struct|enum|tuple|variant|untagged|newtype)\b | a\ (?:sequence|map)\b | \bunit\ value
                 | \w+::\w+ | \b[A-Z][a-z]+[A-Z][A-Za-z]*\b",
        )
        .expect("it is a regex")
    });
    if answer.status == 200 {
        return false;
    }
    let body: Value = serde_json::from_str(&answer.text).expect("JSON");
    let message = body["error"]["message"].as_str().expect("a message");
    // A keyword of JSON Schema.
    let message = &message.replace("`enum`", "").replace("/enum", "");
    let found = words.find(message).map(|found| &message[found.range()]);
    // Names of products, and headers.
    let is_known = |word: &str| ["OpenAI", "GitHub", "LaTeX", "XGrammar", "JavaScript"].contains(&word);
    assert!(found.is_none_or(is_known), "{found:?} in {message:?}, of {request}");
    assert!(answer.status < 500, "{message}, of {request}");
    true
}

/// Values of every type of JSON.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!("x"),
        json!([]),
        json!([1, "x", null, {}]),
        json!({}),
        json!({"type": "x", "name": 1}),
    ]
}

/// Replaces each part of a value by values of other types, and adds fields to each object.
fn mutants(value: &Value) -> Vec<Value> {
    let mut all = values();
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let with = |inner: Value| {
                    let mut copy = fields.clone();
                    copy.insert(name.clone(), inner);
                    Value::Object(copy)
                };
                all.extend(mutants(inner).into_iter().map(with));
                let mut without = fields.clone();
                without.remove(name);
                all.push(Value::Object(without));
            }
            let mut more = fields.clone();
            more.insert("more".into(), json!(1));
            all.push(Value::Object(more));
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                let with = |inner: Value| {
                    let mut copy = items.clone();
                    copy[at] = inner;
                    Value::Array(copy)
                };
                all.extend(mutants(inner).into_iter().map(with));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_error_names_a_type_of_rust() {
    let message = json!([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]);
    let function = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}, "strict": true}});
    let custom = json!({"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\""}}}});
    let call = json!({"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let chats = [
        json!({"messages": message, "max_tokens": 1, "n": 1, "seed": 1, "temperature": 1.0, "top_p": 1.0, "top_k": 1, "min_p": 0.1, "logprobs": true, "top_logprobs": 1}),
        json!({"messages": message, "max_tokens": 2, "min_tokens": 1, "stop": ["x"], "stop_token_ids": [1], "logit_bias": {"1": 1.0}, "stream_options": {"include_usage": true}, "cache_salt": "x"}),
        json!({"messages": message, "max_tokens": 1, "chat_template_kwargs": {"a": 1}, "reasoning_effort": "low", "continue_final_message": false, "ignore_eos": false, "echo": false}),
        json!({"messages": [call], "max_tokens": 40, "tools": [function], "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false}),
        json!({"messages": message, "max_tokens": 60, "tools": [custom], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "c"}}]}}}),
        json!({"messages": message, "max_tokens": 9, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer", "maximum": 9, "minimum": 0}, "strict": false}}}),
        json!({"messages": message, "max_tokens": 9, "response_format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a", "start": null}}}),
        json!({"messages": message, "max_tokens": 9, "response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}}),
        json!({"messages": message, "max_tokens": 60, "structured_outputs": {"json": {"enum": [1]}, "whitespace_pattern": "", "disable_any_whitespace": true, "disable_additional_properties": true}}),
        json!({"messages": message, "max_tokens": 60, "structured_outputs": {"regex": "a"}}),
        json!({"messages": message, "max_tokens": 60, "structured_outputs": {"choice": ["a"]}}),
        json!({"messages": message, "max_tokens": 60, "structured_outputs": {"grammar": "root ::= \"a\""}}),
        json!({"messages": message, "max_tokens": 60, "guided_json": {"enum": [1]}, "guided_whitespace_pattern": "", "guided_decoding_backend": "x"}),
        json!({"messages": message, "max_tokens": 60, "guided_choice": ["a"]}),
        json!({"messages": message, "max_tokens": 200, "guided_json_object": true}),
    ];
    let others = [
        ("/v1/completions", json!({"prompt": ["Hi"], "max_tokens": 1, "logprobs": 1, "echo": false})),
        ("/v1/completions", json!({"prompt": [[1, 2]], "max_tokens": 1})),
        (
            "/v1/responses",
            json!({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "custom_tool_call_output", "call_id": "1", "output": "x"}], "max_output_tokens": 1, "text": {"format": {"type": "text"}, "verbosity": "low"}, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}, "truncation": "auto"}),
        ),
        (
            "/v1/responses",
            json!({"input": "Hi", "max_output_tokens": 40, "text": {"format": {"type": "json_schema", "name": "n", "schema": {"enum": [1]}, "strict": true}}, "tools": [{"type": "function", "name": "f"}]}),
        ),
        ("/tokenize", json!({"prompt": "Hi", "return_token_strs": true})),
        ("/tokenize", json!({"messages": message, "tools": [function], "add_generation_prompt": true})),
        ("/detokenize", json!({"tokens": [1]})),
        ("/automaton", json!({"regex": "a"})),
    ];
    let chats = chats.into_iter().map(|body| ("/v1/chat/completions", body));
    let (mut sent, mut refused) = (0, 0);
    for (path, body) in chats.chain(others) {
        for mutant in mutants(&body) {
            sent += 1;
            refused += usize::from(check(&server().post(path, &mutant), &mutant));
        }
    }
    assert!(refused > 800 && refused < sent, "{refused} of {sent}");
}

#[test]
fn no_refusal_of_a_constraint_names_rust() {
    let deep = (0..600).fold(json!({"type": "null"}), |schema, _| json!({"type": "array", "items": schema}));
    let schemas = [
        json!({"type": "nothing"}),
        json!({"minimum": "1"}),
        json!({"type": "string", "pattern": "("}),
        json!({"type": "string", "pattern": "(?<=a)b{400}"}),
        json!({"type": "string", "pattern": "(a)\\1"}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 2}),
        json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 3}),
        json!({"enum": []}),
        json!(false),
        json!(3),
        deep,
        json!({"type": "string", "pattern": "^(?=.*a.{8})(?=.*b.{8})(?=.*c.{8})(?=.*d.{8})(?=.*e.{8})(?=.*f.{8}).{1,200}$"}),
    ];
    let mut requests: Vec<Value> = Vec::new();
    for schema in schemas {
        requests.push(json!({ "guided_json": schema }));
        let format = json!({"name": "n", "schema": schema, "strict": true});
        requests.push(json!({"response_format": {"type": "json_schema", "json_schema": format}}));
        let lark = format!("start: %json {schema}");
        requests.push(json!({"response_format": {"type": "grammar", "syntax": "lark", "definition": lark}}));
        let parameters = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
        let tool =
            json!({"type": "function", "function": {"name": "f", "parameters": parameters, "strict": true}});
        requests.push(json!({"tools": [tool], "tool_choice": "required"}));
        let content = json!({"type": "json_schema", "json_schema": schema});
        requests.push(json!({"response_format": {"type": "structural_tag", "format": content}}));
    }
    for regex in
        ["(", "a{1,100000}", "(a|b)*a(a|b){40}", "(?=a)", "[z-a]", "\\p{Nothing}", "a\u{0}", "(?-u:\\xff)"]
    {
        requests.push(json!({ "regex": regex }));
        requests.push(json!({"response_format": {"type": "grammar", "syntax": "regex", "definition": regex, "start": "x"}}));
    }
    let many: String = (0..3000).map(|number| format!("word{number}|")).collect();
    requests.push(json!({ "regex": format!("({many}x){{1,99}}") }));
    for grammar in [
        "",
        "root ::= other",
        "root ::= root \"a\" root | \"b\"",
        "root ::= [",
        "start: other",
        "start: /(/",
        "start: \"a\" start \"a\" | \"b\" start \"b\" | \"\"",
        "start: <[99999]>",
        "start: <nothing>",
        "%import common.NOTHING\nstart: NOTHING",
        "start: A\nA: B\nB: A",
    ] {
        requests.push(json!({ "guided_grammar": grammar }));
        requests.push(json!({ "ebnf": grammar }));
        requests
            .push(json!({"response_format": {"type": "grammar", "syntax": "lark", "definition": grammar}}));
        requests.push(json!({"response_format": {"type": "grammar", "syntax": "gbnf", "definition": grammar, "start": "x"}}));
    }
    for format in [
        json!({"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ""}),
        json!({"type": "triggered_tags", "triggers": [], "tags": []}),
        json!({"type": "regex", "pattern": "("}),
        json!({"type": "grammar", "grammar": "root ::="}),
        json!({"type": "grammar_text", "syntax": "x", "definition": ""}),
        json!({"type": "repeat", "min": 3, "max": 1, "content": {"type": "any_text"}}),
        json!({"type": "token", "token": "<nothing>"}),
    ] {
        requests.push(json!({"structural_tag": {"type": "structural_tag", "format": format}}));
    }
    let mut refused = 0;
    for mut request in requests {
        request["messages"] = json!([{"role": "user", "content": "Hi"}]);
        request["max_tokens"] = json!(20);
        refused += usize::from(check(&server().post("/v1/chat/completions", &request), &request));
    }
    assert!(refused > 120, "{refused}");
}
