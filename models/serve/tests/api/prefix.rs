//! Prompts with a shared prefix: cached tokens are reported, and answers stay the same.

use serde_json::{Value, json};

use crate::client::{Running, start};

const EXAMPLE: &str =
    "We are out of lamps once more. Could you see to it that we get a dozen of the small ones by Friday?";

/// The messages of a conversation that begins with an example.
fn messages(user: &str) -> Value {
    json!([
        {"role": "user", "content": EXAMPLE},
        {"role": "assistant", "content": "lamps 12"},
        {"role": "user", "content": user},
    ])
}

fn chat(user: &str, more: Value) -> Value {
    let mut body = json!({"messages": messages(user), "regex": "[a-z]{3,8} [0-9]{1,3}"});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn ask(server: &Running, user: &str, more: Value) -> Value {
    server.post("/v1/chat/completions", &chat(user, more)).json(200)
}

fn cached(answer: &Value) -> u64 {
    answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().expect("it is told")
}

fn metric(server: &Running, name: &str) -> f64 {
    let text = server.get("/metrics").text;
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn an_example_is_read_once() {
    const USERS: [&str; 3] = ["Please send 12 brass lamps.", "Two chairs!", "Please send 7 blue cups."];
    let server = start(&[]);
    let whole = start(&["--no-prefix-cache"]);
    let (mut queries, mut hits) = (0, 0);
    for (index, user) in USERS.into_iter().enumerate() {
        let answer = ask(&server, user, json!({}));
        let plain = ask(&whole, user, json!({}));
        assert_eq!(answer["choices"], plain["choices"]);
        assert_eq!(cached(&plain), 0);
        let prompt = answer["usage"]["prompt_tokens"].as_u64().expect("it is told");
        let example = server.post("/tokenize", &json!({"prompt": EXAMPLE})).json(200)["count"].as_u64();
        match index {
            0 => assert_eq!(cached(&answer), 0),
            _ => {
                assert!(cached(&answer) >= example.expect("a number") && cached(&answer) < prompt, "{answer}")
            }
        }
        (queries, hits) = (queries + prompt, hits + cached(&answer));
    }
    assert_eq!(metric(&server, "vllm:prefix_cache_queries_total"), queries as f64);
    assert_eq!(metric(&server, "vllm:prefix_cache_hits_total"), hits as f64);
    assert_eq!(metric(&whole, "vllm:prefix_cache_hits_total"), 0.0);
}

#[test]
fn a_conversation_goes_on_where_it_ended() {
    let server = start(&["--rows", "1"]);
    let turn = |messages: Value| {
        let body = json!({"messages": messages, "regex": "[a-z]{3,8} [0-9]{1,3}"});
        server.post("/v1/chat/completions", &body).json(200)
    };
    let first = json!({"role": "user", "content": "Please send 12 brass lamps to Oscar Lund."});
    let answer = turn(json!([first]));
    let second = json!({"role": "user", "content": "And 3 more."});
    let next = turn(json!([first, answer["choices"][0]["message"], second]));
    let before = &answer["usage"];
    // The prompt, and at least the part of the answer that template and tokenizer write unchanged.
    assert!(cached(&next) >= before["prompt_tokens"].as_u64().expect("a number"), "{before} {next}");
}

#[test]
fn every_endpoint_reports_cached_tokens() {
    let server = start(&[]);
    ask(&server, "One lamp.", json!({}));
    let expected = cached(&ask(&server, "Two lamps.", json!({})));
    assert!(expected > 0);
    let events = server
        .post(
            "/v1/chat/completions",
            &chat("Four.", json!({"stream": true, "stream_options": {"include_usage": true}})),
        )
        .events();
    assert!(cached(&events[events.len() - 1]) > 0);
    // The first answer reports the cached tokens, not the second one, which finds the whole prompt.
    let server = start(&[]);
    let two = ask(&server, "One lamp.", json!({"n": 2}));
    assert_eq!(cached(&two), 0);
    let two = ask(&server, "One lamp.", json!({"n": 2}));
    assert_eq!(cached(&two), two["usage"]["prompt_tokens"].as_u64().expect("a number") - 1);
    let prompt: Vec<u32> = (40..90).collect();
    let complete = |more: u32| {
        let prompts = [[&prompt[..], &[more]].concat(), [&prompt[..], &[more + 1]].concat()];
        server.post("/v1/completions", &json!({"prompt": prompts, "max_tokens": 3})).json(200)
    };
    assert_eq!(cached(&complete(7)), 50);
    assert_eq!(cached(&complete(9)), 100);
    let respond = || {
        let body = json!({"input": messages("One lamp."), "regex": "[a-z]{3,8}"});
        server.post("/v1/responses", &body).json(200)["usage"].clone()
    };
    respond();
    let usage = respond();
    let tokens = usage["input_tokens"].as_u64().expect("a number");
    assert_eq!(usage["input_tokens_details"]["cached_tokens"].as_u64(), Some(tokens - 1));
}

#[test]
fn salts_share_nothing() {
    let server = start(&["--rows", "4"]);
    let of = |salt: Option<&str>| cached(&ask(&server, "One lamp.", json!({"cache_salt": salt})));
    assert_eq!([of(None), of(Some("a")), of(Some("b"))], [0; 3]);
    assert!([of(Some("a")), of(None)].into_iter().all(|cached| cached > 0));
    for salt in ["", &"x".repeat(1025)] {
        let body = chat("One lamp.", json!({"cache_salt": salt}));
        server.post("/v1/chat/completions", &body).error(400, Some("cache_salt"), "invalid_value");
    }
}
