//! Tools: with all choices, with and without streaming.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

fn tools() -> Value {
    let definitions = ["get_weather", "set_timer"]
        .map(|name| burn_dfa_tiny::tool(name).expect("it is one of the model's tools").definition());
    json!(definitions)
}

fn body(more: Value) -> Value {
    let mut body = json!({
        "messages": [{"role": "user", "content": "What will the weather be like in Lisbon tomorrow?"}],
        "tools": tools(),
    });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[track_caller]
fn call(choice: &Value) -> (String, Value) {
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["type"], "function");
    assert!(call["id"].as_str().is_some_and(|id| id.starts_with("call_")));
    let arguments = call["function"]["arguments"].as_str().expect("a text");
    (
        call["function"]["name"].as_str().expect("a name").to_owned(),
        serde_json::from_str(arguments).expect("JSON"),
    )
}

#[test]
fn the_model_may_call() {
    let answer = server().post("/v1/chat/completions", &body(json!({}))).json(200);
    let choice = &answer["choices"][0];
    let text = choice["message"]["content"].as_str().unwrap_or_default();
    assert!(!text.contains("<tool_call>"), "{choice}");
    // The model decides whether it calls a tool.
    if choice["message"].get("tool_calls").is_some() {
        assert!(["get_weather", "set_timer"].contains(&call(choice).0.as_str()));
    } else {
        assert_eq!(choice["finish_reason"], "stop");
    }
}

#[test]
fn free_text_that_the_budget_ends_is_cut() {
    // The end of the sequence is not allowed before the last token, and calls are unlikely.
    let tokens = server().post("/tokenize", &json!({"prompt": "<tool_call>"})).json(200)["tokens"].clone();
    let more = json!({"max_tokens": 20, "min_tokens": 19, "logit_bias": { tokens[0].to_string(): -100 }});
    let mut request = body(more.clone());
    let choice = server().post("/v1/chat/completions", &request).json(200)["choices"][0].clone();
    assert_eq!(choice["finish_reason"], "length", "{choice}");
    assert!(choice["message"].get("tool_calls").is_none() && choice["message"]["content"].is_string());
    request["stream"] = json!(true);
    let events = server().post("/v1/chat/completions", &request).events();
    assert_eq!(events[events.len() - 1]["choices"][0]["finish_reason"], "length");
    // An incomplete mark is text.
    let half = body(json!({"max_tokens": 6, "min_tokens": 5, "logit_bias": { tokens[0].to_string(): 100 }}));
    let choice = server().post("/v1/chat/completions", &half).json(200)["choices"][0].clone();
    assert_eq!(choice["finish_reason"], "length", "{choice}");
    let definitions: Vec<Value> = tools()
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| {
            let mut own = tool["function"].clone();
            own["type"] = json!("function");
            own
        })
        .collect();
    let mut request = json!({"input": "What will the weather be like in Lisbon tomorrow?", "tools": definitions, "max_output_tokens": 20});
    request["min_tokens"] = more["min_tokens"].clone();
    request["logit_bias"] = more["logit_bias"].clone();
    let answer = server().post("/v1/responses", &request).json(200);
    assert_eq!(
        (&answer["status"], &answer["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens")),
        "{answer}"
    );
}

#[test]
fn a_call_within_its_budget_is_no_cut() {
    let request = body(json!({"tool_choice": "required", "parallel_tool_calls": false}));
    let answer = server().post("/v1/chat/completions", &request).json(200);
    let mut exact = request;
    exact["max_tokens"] = answer["usage"]["completion_tokens"].clone();
    let choice = server().post("/v1/chat/completions", &exact).json(200)["choices"][0].clone();
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    // A constraint that ends with a text is complete with its last token.
    let request = json!({"messages": [{"role": "user", "content": "Hi"}], "regex": "[a-z]{5}", "ignored": 1});
    let answer = server().post("/v1/chat/completions", &request).json(200);
    let mut exact = request;
    exact["max_tokens"] = answer["usage"]["completion_tokens"].clone();
    assert_eq!(
        server().post("/v1/chat/completions", &exact).json(200)["choices"][0]["finish_reason"],
        "stop"
    );
}

#[test]
fn a_call_that_is_wanted_comes() {
    let named = json!({"type": "function", "function": {"name": "set_timer"}});
    for (choice, wanted) in [(json!("required"), None), (named, Some("set_timer"))] {
        let request =
            body(json!({"tool_choice": choice, "messages": [{"role": "user", "content": "Thank you!"}]}));
        let answer = server().post("/v1/chat/completions", &request).json(200);
        let (name, arguments) = call(&answer["choices"][0]);
        assert!(wanted.is_none_or(|wanted| name == wanted), "{name}");
        let schema = burn_dfa_tiny::tool(&name).expect("a tool").parameters();
        for needed in schema["required"].as_array().expect("a list") {
            assert!(arguments.get(needed.as_str().expect("a name")).is_some(), "{arguments}");
        }
    }
}

#[test]
fn no_call_comes_that_is_not_wanted() {
    let answer = server().post("/v1/chat/completions", &body(json!({"tool_choice": "none"}))).json(200);
    assert!(answer["choices"][0]["message"].get("tool_calls").is_none(), "{answer}");
    let single = body(json!({"tool_choice": "required", "parallel_tool_calls": false}));
    let answer = server().post("/v1/chat/completions", &single).json(200);
    assert_eq!(answer["choices"][0]["message"]["tool_calls"].as_array().map(Vec::len), Some(1));
}

#[test]
fn calls_stream_as_deltas() {
    let mut request = body(json!({"tool_choice": "required", "parallel_tool_calls": false}));
    let whole = server().post("/v1/chat/completions", &request).json(200);
    assert_eq!(whole["choices"][0]["message"]["content"], Value::Null);
    let (name, arguments) = call(&whole["choices"][0]);
    request["stream"] = json!(true);
    let events = server().post("/v1/chat/completions", &request).events();
    let deltas: Vec<&Value> =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0)).collect();
    assert_eq!((&deltas[0]["function"]["name"], &deltas[0]["type"]), (&json!(name), &json!("function")));
    assert!(deltas[0]["id"].is_string() && deltas[1..].iter().all(|delta| delta.get("id").is_none()));
    assert!(deltas.len() > 3, "arguments come piece by piece");
    let text: String = deltas.iter().filter_map(|delta| delta["function"]["arguments"].as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), arguments);
    assert_eq!(events[events.len() - 1]["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn an_echo_precedes_calls() {
    let mut request = body(json!({
        "messages": [
            {"role": "user", "content": "What will the weather be like in Lisbon tomorrow?"},
            {"role": "assistant", "content": "I look."}
        ],
        "tool_choice": "required", "parallel_tool_calls": false, "continue_final_message": true, "echo": true
    }));
    let whole = server().post("/v1/chat/completions", &request).json(200);
    call(&whole["choices"][0]);
    request["stream"] = json!(true);
    let events = server().post("/v1/chat/completions", &request).events();
    let text: String =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!((&whole["choices"][0]["message"]["content"], text.as_str()), (&json!("I look."), "I look."));
}

#[test]
fn an_answer_is_a_call_or_json_of_the_schema() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {
        "type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"], "additionalProperties": false
    }}});
    let ask = |more: Value| {
        let mut request = body(more);
        request["response_format"] = format.clone();
        let whole = server().post("/v1/chat/completions", &request).json(200);
        request["stream"] = json!(true);
        let events = server().post("/v1/chat/completions", &request).events();
        let text: String =
            events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(whole["choices"][0]["message"]["content"].as_str().unwrap_or_default(), text);
        whole["choices"][0].clone()
    };
    let (mut calls, mut texts) = (0, 0);
    for seed in 0..12 {
        let choice = ask(json!({"temperature": 1.5, "seed": seed}));
        if choice["message"].get("tool_calls").is_some() {
            calls += 1;
            assert!(["get_weather", "set_timer"].contains(&call(&choice).0.as_str()));
            assert_eq!(choice["message"]["content"], Value::Null);
            assert_eq!(choice["message"]["tool_calls"].as_array().map(Vec::len), Some(1));
        } else {
            texts += 1;
            let content = choice["message"]["content"].as_str().expect("a text");
            assert!([r#"{"mood":"good"}"#, r#"{"mood":"bad"}"#].contains(&content), "{content}");
            assert_eq!(choice["finish_reason"], "stop");
        }
    }
    // A bias of the token before calls changes the model's preference.
    assert!(calls > 0, "{texts} texts");
    let tokens = server().post("/tokenize", &json!({"prompt": "<tool_call>"})).json(200)["tokens"].clone();
    let bias = json!({ tokens[0].to_string(): -100 });
    assert!(ask(json!({"logit_bias": bias}))["message"].get("tool_calls").is_none());
    for choice in [json!("required"), json!({"type": "function", "function": {"name": "set_timer"}})] {
        call(&ask(json!({"tool_choice": choice, "messages": [{"role": "user", "content": "Thank you!"}]})));
    }
    let harmony = start(&["--tool-format", "harmony"]);
    let mut request = body(json!({}));
    request["response_format"] = format.clone();
    harmony.post("/v1/chat/completions", &request).error(
        400,
        Some("response_format"),
        "unsupported_parameter",
    );
}

#[test]
fn tools_without_required_arguments_are_fine() {
    let tool = |parameters: Value| json!({"tools": [{"type": "function", "function": {"name": "now", "parameters": parameters}}], "tool_choice": "required"});
    for parameters in [
        json!({"type": "object", "properties": {"zone": {"type": "string", "maxLength": 10}}}),
        json!({"type": "object", "properties": {"zone": {"type": ["string", "null"], "maxLength": 10}}}),
        json!({"type": "object"}),
        json!({}),
        Value::Null,
    ] {
        let answer = server().post("/v1/chat/completions", &body(tool(parameters))).json(200);
        assert_eq!(call(&answer["choices"][0]).0, "now");
    }
}

#[test]
fn malformed_tools_are_refused_by_name() {
    let cases = [
        (json!({"tools": [{"type": "retrieval"}]}), "tools"),
        (json!({"tools": [{"type": "function", "function": {"name": "a b"}}]}), "tools"),
        (json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}), "tools"),
        (json!({"tools": {}}), "tools"),
        (json!({"tool_choice": "sometimes"}), "tool_choice"),
        (json!({"tool_choice": {"type": "function", "function": {"name": "other"}}}), "tool_choice"),
        (json!({"tools": [], "tool_choice": "required"}), "tool_choice"),
        (json!({"parallel_tool_calls": "yes"}), "parallel_tool_calls"),
        (json!({"regex": "a"}), "regex"),
        (json!({"guided_json": {"type": "nothing"}}), "guided_json"),
        (json!({"guided_json": {"type": "nothing"}, "tool_choice": "required"}), "guided_json"),
    ];
    for (more, param) in cases {
        let answer = server().post("/v1/chat/completions", &body(more.clone()));
        assert_eq!(answer.status, 400, "{more}: {}", answer.text);
        assert_eq!(answer.json(400)["error"]["param"], param, "{more}");
    }
    let many: Vec<Value> =
        (0..200).map(|n| json!({"type": "function", "function": {"name": format!("f{n}")}})).collect();
    server().post("/v1/chat/completions", &body(json!({"tools": many}))).error(
        400,
        Some("tools"),
        "invalid_value",
    );
}

#[test]
fn a_conversation_goes_on_after_a_call() {
    let request = json!({"messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What will the weather be like in Lisbon?"}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Lisbon\"}"}}
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
        {"role": "user", "content": "Thank you!"}
    ], "tools": tools(), "max_tokens": 60});
    assert_eq!(server().post("/v1/chat/completions", &request).status, 200);
    for (message, at) in [
        (json!({"role": "assistant", "content": null}), "messages[0].content"),
        (json!({"content": "Hi"}), "messages[0].role"),
        (
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
            "messages[0].content[0]",
        ),
        (json!("Hi"), "messages[0]"),
    ] {
        let answer = server().post("/v1/chat/completions", &json!({"messages": [message]}));
        assert_eq!(answer.json(400)["error"]["param"], at, "{message}");
    }
}
