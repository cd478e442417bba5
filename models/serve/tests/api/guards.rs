//! Keys, sizes, origins, names of requests.

use serde_json::json;

use crate::client::start;

#[test]
fn a_key_is_asked_for() {
    let server = start(&["--api-key", "right", "--api-key", "other"]);
    let body = json!({"prompt": "<|user|>Hi<|assistant|>", "max_tokens": 1}).to_string();
    let ask = |key: Option<&str>| {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(key.map(|key| ("authorization", key)));
        server.request("POST", "/v1/completions", &headers, body.as_bytes())
    };
    for key in [None, Some("Bearer wrong"), Some("Bearer "), Some("right"), Some("Bearer right ")] {
        let answer = ask(key);
        if key == Some("Bearer right ") {
            // White space at the end of a header is no part of it.
            assert_eq!(answer.status, 200);
            continue;
        }
        answer.error(401, None, "invalid_api_key");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!((ask(Some("Bearer right")).status, ask(Some("Bearer other")).status), (200, 200));
    for path in ["/v1/models", "/v1/models/tiny"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    for path in ["/health", "/version", "/metrics", "/openapi.json", "/"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn sizes_have_bounds() {
    let server =
        start(&["--max-body", "20000", "--max-prompt", "4000", "--max-constraint", "2000", "--max-n", "2"]);
    let large = json!({"prompt": "x".repeat(30_000)});
    server.post("/v1/completions", &large).error(413, None, "request_too_large");
    let long = json!({"prompt": "x".repeat(5_000)});
    server.post("/v1/completions", &long).error(400, Some("prompt"), "context_length_exceeded");
    let long = json!({"prompt": "Hello there. ".repeat(200)});
    server.post("/v1/completions", &long).error(400, Some("prompt"), "context_length_exceeded");
    let far = json!({"prompt": "Hi", "max_tokens": 1_000});
    server.post("/v1/completions", &far).error(400, Some("max_tokens"), "context_length_exceeded");
    let wide = json!({"prompt": "Hi", "regex": "a".repeat(3_000)});
    server.post("/v1/completions", &wide).error(400, Some("regex"), "constraint_too_large");
    let many = json!({"prompt": "Hi", "n": 3});
    server.post("/v1/completions", &many).error(400, Some("n"), "invalid_value");
}

#[test]
fn pages_of_other_origins_are_shut_out_unless_named() {
    let closed = start(&[]);
    let open = start(&["--allow-origin", "https://example.com"]);
    let headers = [("origin", "https://example.com"), ("access-control-request-method", "POST")];
    let allowed =
        |answer: crate::client::Answer| answer.header("access-control-allow-origin").map(str::to_owned);
    assert_eq!(allowed(closed.request("OPTIONS", "/v1/completions", &headers, b"")), None);
    let answer = open.request("OPTIONS", "/v1/completions", &headers, b"");
    assert_eq!(allowed(answer).as_deref(), Some("https://example.com"));
    let other = [("origin", "https://example.org"), ("access-control-request-method", "POST")];
    assert_eq!(allowed(open.request("OPTIONS", "/v1/completions", &other, b"")), None);
}

#[test]
fn requests_have_names() {
    let server = start(&[]);
    let of = |headers: &[(&str, &str)]| {
        let answer = server.request("GET", "/health", headers, b"");
        answer.header("x-request-id").expect("a name").to_owned()
    };
    assert_eq!(of(&[("x-request-id", "mine-1")]), "mine-1");
    assert!(of(&[]).starts_with("req_"));
    assert_ne!(of(&[]), of(&[]));
    assert!(of(&[("x-request-id", &"x".repeat(500))]).starts_with("req_"));
}
