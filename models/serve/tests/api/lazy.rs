//! With `--lazy`, answers begin before their constraints are compiled, and stay the same.

use serde_json::{Value, json};

use crate::client::{Pending, Running, start};
use crate::engine::{metric, until};

fn chat(field: &str, constraint: Value) -> Value {
    json!({
        "messages": [{"role": "user", "content": "Please send 12 brass lamps to Oscar Lund."}],
        field: constraint,
    })
}

fn post(server: &Running, body: &Value) -> Pending {
    server.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes())
}

/// Compiles until its limits.
fn endless(letter: char) -> Value {
    chat("regex", json!(format!("(a|{letter})*a(a|{letter}){{60}}")))
}

const SLOW: [&str; 5] = ["--lazy", "--compile-bytes", "1073741824", "--compile-deadline", "3"];

#[test]
fn answers_are_those_of_a_server_that_compiles_first() {
    let [lazy, ready] = [start(&["--lazy", "--prompt-chunk", "16"]), start(&["--prompt-chunk", "16"])];
    let node = json!({
        "type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
        "required": ["value"], "additionalProperties": false
    });
    let tools = json!([{"type": "function", "function": {"name": "send", "parameters": {
        "type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]
    }}}]);
    let mut bodies = vec![
        chat("regex", json!("[0-9]{4}-[0-9]{2}")),
        chat(
            "guided_json",
            json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}),
        ),
        chat("guided_json", node),
        chat("ebnf", json!("root ::= \"(\" root \")\" | [a-c]")),
        chat("response_format", json!({"type": "text"})),
        chat("tools", tools),
    ];
    for body in &mut bodies {
        body["max_tokens"] = json!(60);
    }
    let mut warm = bodies.clone();
    for (seed, body) in warm.iter_mut().enumerate() {
        (body["temperature"], body["seed"], body["n"]) = (json!(0.9), json!(seed), json!(2));
    }
    // All at once, twice: the second time, the constraints are cached.
    for _ in 0..2 {
        let pending: Vec<_> = bodies.iter().chain(&warm).map(|body| post(&lazy, body)).collect();
        for (pending, body) in pending.into_iter().zip(bodies.iter().chain(&warm)) {
            let mut answers = [pending.read(), post(&ready, body).read()].map(|answer| answer.json(200));
            for answer in &mut answers {
                for choice in answer["choices"].as_array_mut().expect("answers") {
                    for call in choice["message"]["tool_calls"].as_array_mut().into_iter().flatten() {
                        call["id"] = Value::Null;
                    }
                }
            }
            let [one, other] = &answers;
            assert_eq!(one["choices"], other["choices"], "{body}");
        }
    }
    let mut stream = chat("regex", json!("[0-9]{3}x"));
    (stream["stream"], stream["legal_tokens"]) = (json!(true), json!(true));
    let choices = |server: &Running| -> Vec<Value> {
        post(server, &stream).read().events().iter().map(|event| event["choices"][0].clone()).collect()
    };
    assert_eq!(choices(&lazy), choices(&ready));
}

#[test]
fn a_constraint_that_is_refused_late_has_its_status() {
    let options = ["--compile-deadline", "60", "--arena-states", "512"];
    let [lazy, ready] = [start(&[&options[..], &["--lazy"]].concat()), start(&options)];
    let mut short = chat("regex", json!("[a-z]{60}"));
    short["max_tokens"] = json!(4);
    let nothing = json!({"allOf": [{"type": "string"}, {"type": "integer"}]});
    let cases = [
        (chat("regex", json!("(a|b)*a(a|b){40}")), "regex", "constraint_too_large"),
        (chat("regex", json!("[a-z]{700}")), "regex", "constraint_too_large"),
        (chat("guided_json", nothing), "guided_json", "constraint_unsatisfiable"),
        (chat("regex", json!("(")), "regex", "constraint_refused"),
        (short, "max_tokens", "budget_too_small"),
    ];
    for (mut body, param, code) in cases {
        let expected = post(&ready, &body).read().error(400, Some(param), code);
        for stream in [true, false] {
            body["stream"] = json!(stream);
            assert_eq!(post(&lazy, &body).read().error(400, Some(param), code), expected);
        }
    }
    lazy.post("/v1/chat/completions", &chat("regex", json!("[a-z]"))).json(200);
    assert_eq!(metric(&lazy, "vllm:num_requests_running"), 0.0);
}

#[test]
fn a_stream_that_has_begun_ends_with_the_error() {
    // The second prompt leaves no space for the shortest answer. The error comes when the first
    // answer begins.
    let prompts = [vec![65; 3], vec![65; 240]];
    let ask = |stream: bool| {
        // Takes some time to compile.
        let body = json!({"prompt": prompts, "regex": "(a|b)*a(a|b){14}(qz){40}", "stream": stream});
        start(&["--lazy"]).post("/v1/completions", &body)
    };
    let events = ask(true).events();
    assert!(events.len() > 1, "{events:?}");
    assert_eq!(events[events.len() - 1]["error"]["code"], "budget_too_small", "{events:?}");
    ask(false).error(400, Some("max_tokens"), "budget_too_small");
}

#[test]
fn others_are_answered_while_a_constraint_is_compiled() {
    let server = start(&SLOW);
    let mine = chat("regex", json!("[a-z]{60}"));
    let alone = server.post("/v1/chat/completions", &mine).json(200)["choices"].clone();
    let slow = [post(&server, &endless('b')), post(&server, &endless('b'))];
    // Both rows wait for the same compilation; the third request waits for a row.
    until("they have their rows", || metric(&server, "vllm:num_requests_running") == 2.0);
    assert_eq!(metric(&server, "burn_dfa:constraint_cache_misses_total"), 2.0);
    let third = post(&server, &mine);
    for slow in slow {
        slow.read().error(400, Some("regex"), "constraint_too_large");
    }
    assert_eq!(third.read().json(200)["choices"], alone);
    let beside = post(&server, &endless('c'));
    until("it has its row", || metric(&server, "vllm:num_requests_running") == 1.0);
    assert_eq!(server.post("/v1/chat/completions", &mine).json(200)["choices"], alone);
    beside.read().error(400, Some("regex"), "constraint_too_large");
}

#[test]
fn a_client_that_goes_frees_its_row_before_its_constraint_is_compiled() {
    let server = start(&SLOW);
    let compiled = || metric(&server, "burn_dfa:compile_time_seconds_count");
    let begun = post(&server, &endless('b'));
    until("it has its row", || metric(&server, "vllm:num_requests_running") == 1.0);
    drop(begun);
    until("the row is idle", || metric(&server, "vllm:num_requests_running") == 0.0);
    assert_eq!(compiled(), 0.0);
    // The next request waits for the same compilation.
    post(&server, &endless('b')).read().error(400, Some("regex"), "constraint_too_large");
    assert_eq!(compiled(), 1.0);
}

#[test]
fn the_server_ends_during_a_compilation() {
    let mut server = start(&[&SLOW[..], &["--grace", "0.1"]].concat());
    let begun = post(&server, &endless('b'));
    until("it has its row", || metric(&server, "vllm:num_requests_running") == 1.0);
    server.ask_to_end();
    begun.read().error(503, None, "overloaded");
    server.end();
}
