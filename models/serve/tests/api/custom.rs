//! Custom tools: their input is a free text, or a text of a grammar.

use serde_json::{Value, json};

use crate::client::{Running, start};

const SUM: &str = "start: NUMBER \"+\" NUMBER\nNUMBER: /[1-9]/";

fn grammar() -> Value {
    json!({"type": "custom", "custom": {"name": "sum", "description": "Adds.", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": SUM}}}})
}

fn digits() -> Value {
    json!({"type": "custom", "custom": {"name": "digits", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "\\d{3}"}}}})
}

fn is_input(name: &str, input: &str) -> bool {
    let bytes = input.as_bytes();
    match name {
        "sum" => {
            bytes.len() == 3 && bytes[1] == b'+' && bytes[0].is_ascii_digit() && bytes[2].is_ascii_digit()
        }
        "digits" => bytes.len() == 3 && bytes.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn chat(tools: Value, choice: Value) -> Value {
    json!({
        "messages": [{"role": "user", "content": "Hi"}], "tools": tools, "tool_choice": choice, "max_tokens": 180
    })
}

/// The call of an answer. The streamed answer must be the same.
fn call(server: &Running, request: &Value) -> (String, String) {
    let whole = server.post("/v1/chat/completions", request).json(200);
    let choice = &whole["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let calls = choice["message"]["tool_calls"].as_array().expect("calls");
    assert_eq!((calls.len(), &calls[0]["type"]), (1, &json!("custom")), "{choice}");
    assert!(calls[0].get("function").is_none());
    let text = |name: &str| calls[0]["custom"][name].as_str().expect("a text").to_owned();
    let mut stream = request.clone();
    stream["stream"] = json!(true);
    let events = server.post("/v1/chat/completions", &stream).events();
    let deltas: Vec<&Value> =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0)).collect();
    assert_eq!((&deltas[0]["type"], &deltas[0]["custom"]["name"]), (&json!("custom"), &json!(text("name"))));
    let input: String = deltas.iter().filter_map(|delta| delta["custom"]["input"].as_str()).collect();
    assert_eq!(input, text("input"));
    (text("name"), input)
}

#[test]
fn an_input_is_a_text_of_its_grammar_in_every_format() {
    for format in ["plain", "hermes", "llama31", "mistral", "qwen_xml", "deepseek", "deepseek_v31", "harmony"]
    {
        let server = start(&["--tool-format", format]);
        let (name, input) = call(&server, &chat(json!([grammar(), digits()]), json!("required")));
        assert!(is_input(&name, &input), "{format}: {name} {input}");
        let named = json!({"type": "custom", "custom": {"name": "digits"}});
        let (name, input) = call(&server, &chat(json!([grammar(), digits()]), named));
        assert!(name == "digits" && is_input("digits", &input), "{format}: {input}");
        // With `auto` the answer is a call or a text.
        let answer = server.post("/v1/chat/completions", &chat(json!([grammar()]), json!("auto"))).json(200);
        let called = &answer["choices"][0]["message"]["tool_calls"][0]["custom"];
        assert!(called.is_null() || is_input("sum", called["input"].as_str().expect("a text")));
    }
}

#[test]
fn marks_of_the_format_may_be_in_an_input() {
    let server = start(&["--tool-format", "hermes"]);
    let input = "a\"}}\\n</tool_call>\"}";
    let tool = json!({"type": "custom", "custom": {"name": "odd", "format": {"type": "grammar", "grammar": {
        "syntax": "lark", "definition": format!("start: {}", json!(input))
    }}}});
    assert_eq!(call(&server, &chat(json!([tool]), json!("required"))), ("odd".to_owned(), input.to_owned()));
}

#[test]
fn any_text_is_an_input_without_a_grammar() {
    let server = start(&[]);
    for format in [Value::Null, json!({"type": "text"})] {
        let tool = json!({"type": "custom", "custom": {"name": "note", "format": format}});
        let mut request = chat(json!([tool]), json!("required"));
        request["parallel_tool_calls"] = json!(false);
        assert_eq!(call(&server, &request).0, "note");
    }
}

#[test]
fn responses_have_custom_calls() {
    let server = start(&[]);
    let flat = json!({"type": "custom", "name": "sum", "format": {"type": "grammar", "syntax": "lark", "definition": SUM}});
    let request =
        json!({"input": "Hi", "tools": [flat], "tool_choice": "required", "max_output_tokens": 150});
    let response = server.post("/v1/responses", &request).json(200);
    let item = &response["output"][0];
    assert_eq!(
        (&item["type"], &item["name"], &item["status"]),
        (&json!("custom_tool_call"), &json!("sum"), &json!("completed"))
    );
    let input = item["input"].as_str().expect("a text");
    assert!(is_input("sum", input), "{input}");
    let mut stream = request.clone();
    stream["stream"] = json!(true);
    let text = server.post("/v1/responses", &stream).text;
    let data = |name: &str| {
        let events = text.split("\n\n").filter(|event| event.contains(&format!("event: {name}\n")));
        events
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
            .map(|data| serde_json::from_str::<Value>(data).expect("JSON"))
            .collect::<Vec<_>>()
    };
    let deltas = data("response.custom_tool_call_input.delta");
    let whole: String = deltas.iter().filter_map(|delta| delta["delta"].as_str()).collect();
    assert_eq!(whole, input);
    assert_eq!(data("response.custom_tool_call_input.done")[0]["input"], input);
    // The conversation continues.
    let again = json!({"input": [
        {"role": "user", "content": "Hi"},
        {"type": "custom_tool_call", "call_id": item["call_id"], "name": "sum", "input": input},
        {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "9"}
    ], "max_output_tokens": 5});
    server.post("/v1/responses", &again).json(200);
}

#[test]
fn malformed_custom_tools_are_refused() {
    let server = start(&[]);
    let custom = |format: Value| json!({"type": "custom", "custom": {"name": "x", "format": format}});
    let of = |definition: &str| json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": definition}});
    for (tool, part) in [
        (custom(json!({"type": "json"})), "format"),
        (custom(json!({"type": "grammar"})), "syntax"),
        (custom(json!({"type": "grammar", "grammar": {"syntax": "peg", "definition": "x"}})), "peg"),
        (custom(of("start: other")), "other"),
        (custom(of("start: <[1]>")), "token"),
        (json!({"type": "custom", "custom": {}}), "name"),
        (json!({"type": "web_search"}), "web_search"),
    ] {
        let answer = server.post("/v1/chat/completions", &chat(json!([tool]), json!("required")));
        assert_eq!(answer.json(400)["error"]["param"], "tools", "{tool}");
        let message = answer.json(400)["error"]["message"].as_str().expect("a text").to_owned();
        assert!(message.contains(part), "{tool}: {message}");
    }
}
