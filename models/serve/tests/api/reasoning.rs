//! Reasoning is separate from content, for every kind of constraint.

use serde_json::{Value, json};

use crate::client::start;

fn body(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 120});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn cases() -> Vec<Value> {
    let tool = json!([{"type": "function", "function": {"name": "now"}}]);
    vec![
        json!({}),
        json!({"regex": "[a-z]{3}"}),
        json!({"tools": tool, "tool_choice": "required", "parallel_tool_calls": false}),
    ]
}

#[test]
fn it_comes_in_front_and_apart() {
    let server = start(&["--reasoning", "always"]);
    for case in cases() {
        let request = body(case);
        let whole = server.post("/v1/chat/completions", &request).json(200);
        let choice = &whole["choices"][0];
        let reasoning = choice["message"]["reasoning_content"].as_str().expect("there is some");
        let content = choice["message"]["content"].as_str().unwrap_or_default();
        assert!(!reasoning.contains("think>") && !content.contains("think>"), "{choice}");
        if request.get("regex").is_some() {
            assert!(content.len() == 3 && content.bytes().all(|byte| byte.is_ascii_lowercase()), "{choice}");
        }
        if request.get("tools").is_some() {
            assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "now", "{choice}");
        }
        let mut stream = request.clone();
        stream["stream"] = json!(true);
        let events = server.post("/v1/chat/completions", &stream).events();
        let of = |field: &str| -> String {
            events.iter().filter_map(|event| event["choices"][0]["delta"][field].as_str()).collect()
        };
        assert_eq!((of("reasoning_content").as_str(), of("content").as_str()), (reasoning, content));
    }
}

#[test]
fn it_may_be_open_already_or_left_out() {
    let opened = start(&["--tool-format", "deepseek_v31", "--reasoning", "opened"]);
    let optional = start(&["--reasoning", "optional"]);
    let request = body(json!({"regex": "[a-z]{3}"}));
    for server in [&opened, &optional] {
        let whole = server.post("/v1/chat/completions", &request).json(200);
        assert_eq!(whole["choices"][0]["message"]["content"].as_str().map(str::len), Some(3), "{whole}");
    }
    let whole = optional.post("/v1/chat/completions", &request).json(200);
    assert!(whole["choices"][0]["message"].get("reasoning_content").is_none());
}
