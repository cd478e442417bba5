//! Keywords that no automaton can enforce: strict requests are refused, other requests get
//! warnings.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

/// A set of words, and a map of at least two of them.
fn set() -> Value {
    let word = json!({"type": "string", "maxLength": 3});
    json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": word, "uniqueItems": true, "maxItems": 3}},
        "required": ["tags"], "additionalProperties": false
    })
}

fn map() -> Value {
    let sizes = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 9}, "minProperties": 2, "maxProperties": 3});
    json!({"type": "object", "properties": {"sizes": sizes}, "required": ["sizes"], "additionalProperties": false})
}

fn chat(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 150});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn format(schema: &Value, strict: Value) -> Value {
    json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": strict}}})
}

fn tool(name: &str, schema: &Value, strict: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": schema, "strict": strict}})
}

#[test]
fn a_format_that_is_strict_is_refused() {
    for (schema, pointer) in
        [(set(), "/properties/tags/uniqueItems"), (map(), "/properties/sizes/minProperties")]
    {
        let param = format!("response_format.json_schema.schema{pointer}");
        let request = chat(format(&schema, json!(true)));
        let answer = server().post("/v1/chat/completions", &request);
        let message = answer.error(400, Some("response_format"), "constraint_refused");
        assert!(message.contains(&param) && message.contains("`strict`"), "{message}");
        for strict in [json!(false), Value::Null] {
            let answer = server().post("/v1/chat/completions", &chat(format(&schema, strict)));
            let warnings = answer.warnings();
            assert_eq!((warnings.len(), &warnings[0]["param"]), (1, &json!(param)), "{warnings:?}");
            let content = answer.json(200)["choices"][0]["message"]["content"].clone();
            let value: Value = serde_json::from_str(content.as_str().expect("a text")).expect("JSON");
            assert!(value["tags"].is_array() || value["sizes"].as_object().is_some_and(|map| map.len() >= 2));
        }
    }
    let plain = json!({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": true});
    let answer = server().post("/v1/chat/completions", &chat(format(&plain, json!(true))));
    assert_eq!(answer.warnings(), [json!(null); 0], "what can be kept is kept");
}

#[test]
fn fields_of_other_servers_are_not_strict() {
    for (field, value, param) in [
        ("guided_json", set(), "guided_json/properties/tags/uniqueItems"),
        ("json_schema", set(), "json_schema/properties/tags/uniqueItems"),
        ("structured_outputs", json!({"json": set()}), "structured_outputs.json/properties/tags/uniqueItems"),
    ] {
        // The second answer reuses the constraint of the first.
        for _ in 0..2 {
            let answer = server().post("/v1/chat/completions", &chat(json!({ field: value })));
            assert_eq!(answer.warnings()[0]["param"], param);
        }
    }
    let tag = json!({"type": "structural_tag", "format": {"type": "tag", "begin": "<", "end": ">", "content": {"type": "json_schema", "json_schema": set()}}});
    let answer = server().post("/v1/chat/completions", &chat(json!({"response_format": tag})));
    assert!(answer.warnings()[0]["message"].as_str().is_some_and(|text| text.contains("`uniqueItems`")));
}

#[test]
fn a_stream_warns_in_its_first_chunk() {
    let mut request = chat(format(&set(), Value::Null));
    request["stream"] = json!(true);
    for options in [&[][..], &["--lazy"]] {
        let events = start(options).post("/v1/chat/completions", &request).events();
        assert_eq!(events[0]["warnings"].as_array().map(Vec::len), Some(1), "{}", events[0]);
        assert!(events[1..].iter().all(|event| event.get("warnings").is_none()));
    }
}

#[test]
fn a_tool_is_strict_by_itself() {
    let tools = |first: Value, second: Value| {
        let free =
            json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}}});
        chat(json!({
            "tools": [tool("first", &set(), first), tool("second", &map(), second), tool("third", &free, json!(true))],
            "tool_choice": "required", "parallel_tool_calls": false
        }))
    };
    let ask = |request: &Value| server().post("/v1/chat/completions", request);
    for strict in [Value::Null, json!(false)] {
        let answer = ask(&tools(strict.clone(), strict));
        let warnings = answer.warnings();
        let params: Vec<&str> = warnings.iter().filter_map(|warning| warning["param"].as_str()).collect();
        assert_eq!(
            params,
            [
                "tools[0].parameters/properties/tags/uniqueItems",
                "tools[1].parameters/properties/sizes/minProperties"
            ]
        );
        assert!(answer.json(200)["choices"][0]["message"]["tool_calls"].is_array());
    }
    let message = ask(&tools(Value::Null, json!(true))).error(400, Some("tools"), "constraint_refused");
    assert!(message.contains("tools[1].parameters/properties/sizes/minProperties"), "{message}");
    let message = ask(&tools(json!(true), Value::Null)).error(400, Some("tools"), "constraint_refused");
    assert!(message.contains("tools[0].parameters/properties/tags/uniqueItems"), "{message}");
    // A tool that cannot be called leaves nothing out.
    let mut named = tools(json!(true), json!(true));
    named["tool_choice"] = json!({"type": "function", "function": {"name": "third"}});
    assert!(ask(&named).warnings().is_empty());
}

#[test]
fn responses_and_json_beside_tools_are_strict_too() {
    let format = |strict: Value| json!({"format": {"type": "json_schema", "name": "n", "schema": set(), "strict": strict}});
    let request = |strict: Value| json!({"input": "Hi", "text": format(strict), "max_output_tokens": 150});
    let answer = server().post("/v1/responses", &request(Value::Null));
    assert_eq!(answer.warnings()[0]["param"], "text.format.schema/properties/tags/uniqueItems");
    let message = server().post("/v1/responses", &request(json!(true))).error(
        400,
        Some("text.format"),
        "constraint_refused",
    );
    assert!(message.contains("text.format.schema/properties/tags/uniqueItems"), "{message}");
    for (of_format, of_tool, refused) in [
        (Value::Null, Value::Null, None),
        (json!(true), Value::Null, Some("response_format")),
        (Value::Null, json!(true), Some("tools")),
    ] {
        let mut both = chat(self::format(&set(), of_format));
        both["tools"] = json!([tool("f", &map(), of_tool)]);
        let answer = server().post("/v1/chat/completions", &both);
        match refused {
            None => assert_eq!(answer.warnings().len(), 2),
            Some(param) => drop(answer.error(400, Some(param), "constraint_refused")),
        }
    }
}

#[test]
fn the_tool_of_a_refusal_is_named() {
    let wrong = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}});
    let tools =
        json!([tool("now", &json!({"type": "object"}), Value::Null), tool("then", &wrong, Value::Null)]);
    let answer = server().post("/v1/chat/completions", &chat(json!({"tools": tools})));
    let message = answer.error(400, Some("tools"), "constraint_refused");
    assert!(message.contains("tools[1].parameters/properties/a/pattern"), "{message}");
}
