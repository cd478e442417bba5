//! Chat completions, completions, models, tokens, and their common behavior.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::client::{Running, start};

/// A server shared by the tests of this file.
fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

const SENTENCE: &str = "Please send 12 brass lamps to Oscar Lund.";

fn order() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "order", "schema": {
        "type": "object",
        "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
        "required": ["item", "quantity"],
        "additionalProperties": false
    }}})
}

fn chat(more: Value) -> Value {
    let mut body = json!({"model": "tiny", "messages": [{"role": "user", "content": SENTENCE}]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[test]
fn a_schema_holds() {
    let body = server().post("/v1/chat/completions", &chat(json!({"response_format": order()}))).json(200);
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "tiny");
    let choice = &body["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["role"]), (&json!("stop"), &json!("assistant")));
    let content = choice["message"]["content"].as_str().expect("a text");
    let value: Value = serde_json::from_str(content).expect("it is JSON");
    assert!(value["item"].is_string() && value["quantity"].is_number(), "{value}");
    assert_eq!(value.as_object().map(|object| object.len()), Some(2));
    let usage = &body["usage"];
    let sum = usage["prompt_tokens"].as_u64().zip(usage["completion_tokens"].as_u64()).map(|(a, b)| a + b);
    assert_eq!(usage["total_tokens"].as_u64(), sum);
}

#[test]
fn a_stream_is_the_same_in_chunks() {
    let mut request = chat(json!({"response_format": order()}));
    let whole = server().post("/v1/chat/completions", &request).json(200);
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let streamed = |server: &Running| {
        let events = server.post("/v1/chat/completions", &request).events();
        assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
        let text: String =
            events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(whole["choices"][0]["message"]["content"], text);
        let last = &events[events.len() - 1];
        let tokens =
            |body: &Value| ["prompt_tokens", "completion_tokens"].map(|name| body["usage"][name].clone());
        assert_eq!((&last["choices"], tokens(last)), (&json!([]), tokens(&whole)));
        assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "stop");
        events.len()
    };
    streamed(server());
    assert!(streamed(&start(&["--stream-interval", "0"])) > 10, "tokens come one by one");
    // The role, the first token, further tokens, the reason and the usage.
    assert_eq!(streamed(&start(&["--stream-interval", "3600"])), 5);
}

#[test]
fn a_stream_tells_how_many_tokens_were_legal() {
    let ask = |more: Value| {
        let mut body =
            chat(json!({"regex": "[0-9]x|yes", "legal_tokens": true, "stream": true, "max_tokens": 6}));
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server().post("/v1/chat/completions", &body)
    };
    let events = ask(json!({"logit_bias": {}})).events();
    let counts: Vec<u64> = events
        .iter()
        .flat_map(|event| event["choices"][0]["legal_tokens"].as_array().cloned().unwrap_or_default())
        .map(|count| count.as_u64().expect("a number"))
        .collect();
    let whole = server()
        .post("/v1/chat/completions", &chat(json!({"regex": "[0-9]x|yes", "max_tokens": 6})))
        .json(200);
    assert_eq!(whole["usage"]["completion_tokens"], counts.len());
    // A digit or the beginning of the word first, and only the end of the sequence last.
    assert!(counts[0] >= 11 && counts[0] < 100 && counts[counts.len() - 1] == 1, "{counts:?}");
    ask(json!({"stream": false})).error(400, Some("legal_tokens"), "invalid_value");
}

#[test]
fn small_automata_are_drawn() {
    let draw = |body: Value| server().post("/automaton", &body);
    let answer = draw(json!({"regex": "(cat|dog)s?"}));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")));
    assert!(answer.text.starts_with("<svg") && answer.text.trim_end().ends_with("</svg>"));
    assert!(draw(json!({"guided_grammar": "root ::= \"(\" root \")\" | [0-9]"})).text.contains("call"));
    draw(json!({})).error(400, Some("response_format"), "invalid_value");
    draw(json!({"regex": "("})).error(400, Some("regex"), "constraint_refused");
    draw(json!({"regex": "[a-z]{300}"})).error(400, Some("regex"), "constraint_too_large");
    draw(json!({"response_format": {"type": "text"}})).error(400, Some("response_format"), "invalid_value");
}

#[test]
fn several_answers_have_indices() {
    let request =
        chat(json!({"n": 3, "structured_outputs": {"choice": ["yes", "no"]}, "temperature": 1.0, "seed": 5}));
    let body = server().post("/v1/chat/completions", &request).json(200);
    let choices = body["choices"].as_array().expect("choices");
    assert_eq!(choices.len(), 3);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        let content = choice["message"]["content"].as_str();
        assert!(matches!(content, Some("yes" | "no")), "{choice}");
    }
    assert_eq!(server().post("/v1/chat/completions", &request).json(200)["choices"], body["choices"]);
}

#[test]
fn text_without_a_constraint_ends_at_its_budget() {
    let body = server().post("/v1/chat/completions", &chat(json!({"max_tokens": 3}))).json(200);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["usage"]["completion_tokens"], 3);
    let both = chat(json!({"max_tokens": 3, "max_completion_tokens": 2}));
    assert_eq!(server().post("/v1/chat/completions", &both).json(200)["usage"]["completion_tokens"], 2);
}

#[test]
fn a_budget_below_the_shortest_answer_is_refused_at_once() {
    for stream in [false, true] {
        let request = chat(json!({"response_format": order(), "max_tokens": 4, "stream": stream}));
        let answer = server().post("/v1/chat/completions", &request);
        let message = answer.error(400, Some("max_tokens"), "budget_too_small");
        let needed = &answer.json(400)["error"]["least_tokens"];
        assert!(message.contains(&format!("takes {needed} tokens")), "{message}");
        let enough = chat(json!({"response_format": order(), "max_tokens": needed}));
        let body = server().post("/v1/chat/completions", &enough).json(200);
        assert_eq!(body["choices"][0]["finish_reason"], "stop");
        let content = body["choices"][0]["message"]["content"].as_str().expect("a text");
        assert!(serde_json::from_str::<Value>(content).is_ok(), "{content}");
    }
}

#[test]
fn completions_take_texts_and_tokens() {
    let prompt = format!("<|user|>{SENTENCE}<|assistant|>");
    let tokens = server().post("/tokenize", &json!({"prompt": prompt})).json(200)["tokens"].clone();
    assert_eq!(server().post("/detokenize", &json!({"tokens": tokens})).json(200)["prompt"], prompt.as_str());
    let chat_tokens = json!({"messages": [{"role": "user", "content": SENTENCE}]});
    assert_eq!(server().post("/tokenize", &chat_tokens).json(200)["tokens"], tokens);

    let ask = |prompt: &Value| {
        let request =
            json!({"model": "tiny", "prompt": prompt, "structured_outputs": {"regex": "[a-z]{3,8}"}});
        server().post("/v1/completions", &request).json(200)
    };
    let of_text = ask(&json!(prompt));
    assert_eq!(of_text["object"], "text_completion");
    let text = of_text["choices"][0]["text"].as_str().expect("a text");
    assert!((3..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase()), "{text}");
    assert_eq!(ask(&tokens)["choices"], of_text["choices"]);
    let both = ask(&json!([prompt, "<|user|>Hi<|assistant|>"]));
    assert_eq!(both["choices"][0], of_text["choices"][0]);
    assert_eq!(both["choices"][1]["index"], 1);

    let free = json!({"prompt": "<|user|>Hi<|assistant|>", "stream": true, "stream_options": {"include_usage": true}});
    let events = server().post("/v1/completions", &free).events();
    assert!(events[events.len() - 1]["usage"]["completion_tokens"].as_u64() <= Some(16));
}

#[test]
fn a_seed_and_a_temperature_of_zero_decide() {
    let text = |more: Value| {
        let body = server().post("/v1/chat/completions", &chat(more)).json(200);
        body["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
    };
    let greedy = text(json!({"max_tokens": 20}));
    assert_eq!(text(json!({"max_tokens": 20, "temperature": 0, "top_p": 0.5, "top_k": -1})), greedy);
    let warm = || text(json!({"max_tokens": 20, "temperature": 1.5, "seed": 3}));
    assert_eq!(warm(), warm());
    let texts: Vec<String> = (0..8).map(|_| text(json!({"max_tokens": 20, "temperature": 2.0}))).collect();
    assert!(texts.iter().any(|other| *other != texts[0]), "without a seed answers differ");
}

#[test]
fn stop_texts_end_an_answer_before_them() {
    let whole = server().post("/v1/chat/completions", &chat(json!({"max_tokens": 30}))).json(200);
    let whole = whole["choices"][0]["message"]["content"].as_str().expect("a text").to_owned();
    let stop = &whole[5..8];
    let request = chat(json!({"max_tokens": 30, "stop": [stop, "never there"]}));
    let body = server().post("/v1/chat/completions", &request).json(200);
    assert_eq!(body["choices"][0]["message"]["content"], whole[..whole.find(stop).expect("it is there")]);
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let mut request = request;
    request["stream"] = json!(true);
    let events = server().post("/v1/chat/completions", &request).events();
    let text: String =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, whole[..whole.find(stop).expect("it is there")]);
}

#[test]
fn the_server_says_what_it_is() {
    let server = server();
    let models = server.get("/v1/models").json(200);
    assert_eq!(models["data"][0]["id"], "tiny");
    assert_eq!(server.get("/v1/models/tiny").json(200)["max_model_len"], 256);
    server.get("/v1/models/other").error(404, Some("model"), "model_not_found");
    let other = json!({"model": "other", "messages": [{"role": "user", "content": "Hi"}]});
    server.post("/v1/chat/completions", &other).error(404, Some("model"), "model_not_found");
    assert_eq!(server.get("/health").status, 200);
    assert!(server.get("/version").json(200)["version"].is_string());
    let description = server.get("/openapi.json").json(200);
    let paths = description["paths"].as_object().expect("paths");
    for path in [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/models",
        "/automaton",
        "/tokenize",
        "/detokenize",
        "/health",
        "/version",
        "/metrics",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    let page = server.get("/");
    assert!(page.text.contains("<textarea") && page.header("content-security-policy").is_some());
    assert!(
        !page.text.contains("http://") && !page.text.contains("https://"),
        "the page fetches from nowhere else"
    );
    server.get("/nothing").error(404, None, "not_found");
    server.get("/v1/chat/completions").error(405, None, "method_not_allowed");
}

#[test]
fn metrics_count_tokens_and_requests() {
    let server = start(&["--served-model-name", "named"]);
    let request = json!({"messages": [{"role": "user", "content": SENTENCE}], "response_format": order()});
    let usage = server.post("/v1/chat/completions", &request).json(200)["usage"].clone();
    server.post("/v1/chat/completions", &request).json(200);
    let text = server.get("/metrics").text;
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name) && line.contains("model_name=\"named\""));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("{name} is missing in\n{text}"))
    };
    let twice = |field: &str| usage[field].as_f64().expect("a number") * 2.0;
    assert_eq!(value("vllm:prompt_tokens_total"), twice("prompt_tokens"));
    assert_eq!(value("vllm:generation_tokens_total"), twice("completion_tokens"));
    assert_eq!(value("vllm:time_to_first_token_seconds_count"), 2.0);
    assert_eq!(value("vllm:e2e_request_latency_seconds_count"), 2.0);
    assert_eq!(value("burn_dfa:constraint_cache_hits_total"), 1.0);
    assert_eq!(value("burn_dfa:constraint_cache_misses_total"), 1.0);
    assert!(text.contains("vllm:request_success_total{") && text.contains("finished_reason=\"stop\""));
    for name in ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"] {
        assert_eq!(value(name), 0.0, "{name}");
    }
}
