//! Constraints on disk: each request gets its constraint.

use serde_json::{Value, json};

use crate::client::{Running, start};

/// A request for digits under these names, or a call of a tool with these arguments.
fn ask(tool: &str, arguments: &[&str], names: &[&str]) -> Value {
    let object = |names: &[&str], each: Value| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), each.clone())).collect();
        json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
    };
    let parameters = object(arguments, json!({"type": "string", "maxLength": 4}));
    let schema = object(names, json!({"type": "integer", "minimum": 0, "maximum": 9}));
    json!({
        "messages": [{"role": "user", "content": "How warm is it in Lisbon?"}],
        "tools": [{"type": "function", "function": {"name": tool, "parameters": parameters}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "digits", "schema": schema}},
        "max_tokens": 120,
    })
}

/// The names of the answer's object, or of the tool and its arguments.
fn names(server: &Running, body: &Value) -> Vec<String> {
    let choice = server.post("/v1/chat/completions", body).json(200)["choices"][0].clone();
    let keys = |text: &Value| {
        let object: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
        object.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
    };
    match choice["message"]["tool_calls"].get(0) {
        Some(call) => {
            let mut names = vec![call["function"]["name"].as_str().expect("a name").to_owned()];
            names.extend(keys(&call["function"]["arguments"]));
            names
        }
        None => keys(&choice["message"]["content"]),
    }
}

#[test]
fn requests_with_tools_and_a_schema_keep_their_own_constraints_on_disk() {
    let folder = std::env::temp_dir().join(format!("burn-dfa-serve-own-{}", std::process::id()));
    let options = ["--cache-dir", folder.to_str().expect("a path"), "--tool-format", "hermes"];
    // The second server reads them from the disk.
    for _ in 0..2 {
        let server = start(&options);
        let first = names(&server, &ask("north", &["a", "b"], &["x", "y"]));
        assert!(first == ["x", "y"] || first == ["north", "a", "b"], "{first:?}");
        let second = names(&server, &ask("south", &["c"], &["p", "q", "r"]));
        assert!(second == ["p", "q", "r"] || second == ["south", "c"], "{second:?}");
        // A bias makes the token before calls likely.
        let tokens = server.post("/tokenize", &json!({"prompt": "<tool_call>"})).json(200)["tokens"].clone();
        let mut third = ask("west", &["d"], &["z"]);
        third["logit_bias"] = json!({ tokens[0].to_string(): 100 });
        assert_eq!(names(&server, &third), ["west", "d"]);
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}
