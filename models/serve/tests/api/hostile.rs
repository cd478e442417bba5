//! Hostile bodies: each gets an answer, and the server continues.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::start;

#[test]
fn every_body_gets_an_answer() {
    let server = start(&["--compile-deadline", "2", "--compile-bytes", "67108864"]);
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let message = r#""messages":[{"role":"user","content":"Hi"}]"#;
    let nested = |levels: usize| {
        format!("{{{message},\"guided_json\":{}{{}}{}}}", "{\"items\":".repeat(levels), "}".repeat(levels))
    };
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{".to_vec(),
        b"{\"messages\"".to_vec(),
        b"\xff\xfe".to_vec(),
        b"{\"messages\": \"\\ud800\"}".to_vec(),
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"seed\":1e999}".to_vec(),
        deep("[", "]").into_bytes(),
        deep("{\"a\":", "}").into_bytes(),
        format!("{{\"messages\":{}}}", deep("[", "]")).into_bytes(),
        nested(5_000).into_bytes(),
        format!("{{{message},\"regex\":\"{}\"}}", "(".repeat(100_000)).into_bytes(),
        format!("{{{message},\"regex\":\"((a{{1000}}){{1000}}){{1000}}\"}}").into_bytes(),
        format!("{{{message},\"regex\":\"(a|b)*a(a|b){{60}}\"}}").into_bytes(),
        format!("{{{message},\"ebnf\":\"root ::= \\\"a\\\" root \\\"a\\\" | \\\"b\\\" root \\\"b\\\" | \\\"\\\"\"}}").into_bytes(),
        format!("{{{message},\"guided_json\":{{\"$ref\":\"#\"}}}}").into_bytes(),
        format!("{{{message},\"n\":18446744073709551615}}").into_bytes(),
        format!("{{{message},\"max_tokens\":18446744073709551615}}").into_bytes(),
        format!("{{{message},\"max_tokens\":-1}}").into_bytes(),
        format!("{{{message},\"temperature\":-1}}").into_bytes(),
        format!("{{{message},\"temperature\":1e300}}").into_bytes(),
        format!("{{{message},\"top_p\":7}}").into_bytes(),
        format!("{{{message},\"logit_bias\":{{\"99999999\":1}}}}").into_bytes(),
        format!("{{{message},\"logit_bias\":{{\"x\":1}}}}").into_bytes(),
        format!("{{{message},\"stop\":[\"\"]}}").into_bytes(),
        format!("{{{message},\"stop\":{}}}", json!(vec!["a"; 1000])).into_bytes(),
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"messages\":[]}".to_vec(),
        b"{\"messages\":[]}".to_vec(),
        b"{\"messages\":[{\"role\":\"user\"}]}".to_vec(),
        b"{\"messages\":[{\"role\":{},\"content\":[{}]}]}".to_vec(),
    ];
    for body in &bodies {
        let started = Instant::now();
        let answer =
            server.request("POST", "/v1/chat/completions", &[("content-type", "application/json")], body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(160)]);
        assert_eq!(answer.status, 400, "{shown}: {}", answer.text);
        assert!(answer.json(400)["error"]["message"].is_string());
        assert!(started.elapsed() < Duration::from_secs(20), "{shown}: {:?}", started.elapsed());
    }
    for path in ["/v1/completions", "/v1/responses", "/tokenize", "/detokenize"] {
        for body in &bodies {
            let answer = server.request("POST", path, &[], body);
            // An error of a chat may be valid for other endpoints.
            let is_fine = answer.status == 400 || path == "/tokenize" && answer.status == 200;
            assert!(
                is_fine,
                "{path}: {}: {}",
                String::from_utf8_lossy(&body[..body.len().min(160)]),
                answer.text
            );
        }
    }
    let tokens = [
        json!({"prompt": [u32::MAX]}),
        json!({"prompt": [[]]}),
        json!({"prompt": []}),
        json!({"prompt": ""}),
    ];
    for body in &tokens {
        server.post("/v1/completions", body).error(400, Some("prompt"), "invalid_value");
    }
    server.post("/detokenize", &json!({"tokens": [1, u32::MAX]})).error(400, Some("tokens"), "invalid_value");
    // Valid constraints may be accepted.
    let odd = [nested(60), format!("{{{message},\"guided_json\":{{\"multipleOf\":1e-300}}}}")];
    for body in &odd {
        let status = server.request("POST", "/v1/chat/completions", &[], body.as_bytes()).status;
        assert!([200, 400].contains(&status), "{body}: {status}");
    }
    assert_eq!(server.get("/health").status, 200);
    assert!(server.get("/metrics").text.contains("burn_dfa:engine_restarts_total{model_name=\"tiny\"} 0"));
}

/// Hostile constraints from the tests of the library, each with its field.
fn attacks() -> Vec<(&'static str, Value)> {
    let levels = |wrap: fn(Value) -> Value| (0..25).fold(json!({"type": "null"}), |inner, _| wrap(inner));
    let names: Vec<String> = (0..3_000).map(|number| format!("r{number}")).collect();
    let chain: String = (0..3_000).map(|i| format!("r{i} ::= \"a\" r{} | \"b\"\n", i + 1)).collect();
    let doubling: String = (0..200).map(|i| format!("r{i} ::= r{} \"x\" r{}\n", i + 1, i + 1)).collect();
    let templates: String =
        (0..40).map(|i| format!("t{i}{{x}}: t{}{{x}} t{}{{x}}\n", i + 1, i + 1)).collect();
    let lark = |text: String| json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": text}});
    let tag = |format: Value| json!({"type": "structural_tag", "format": format});
    vec![
        ("regex", json!("(a|b)*a(a|b){200}")),
        ("regex", json!("((((a{100}){100}){100}){100}){100}")),
        ("regex", json!("(a*)*(b*)*(c*)*x{1000}{1000}")),
        ("regex", json!(r"(\w{1,500}\W){1,500}")),
        ("regex", json!("(?:a?){5000}a{5000}")),
        ("regex", json!(r"[^a-z]{100000}")),
        ("regex", json!("[".repeat(5_000))),
        ("regex", json!(r"(a)\1")),
        ("guided_choice", json!([])),
        ("guided_json", json!({"type": "string", "pattern": "^(a|b)*a(a|b){60}$"})),
        ("guided_json", json!({"type": "string", "maxLength": 1u64 << 63})),
        ("guided_json", json!({"type": "array", "minItems": 1u64 << 63})),
        ("guided_json", json!({"type": "object", "minProperties": 1u64 << 40, "required": names})),
        (
            "guided_json",
            json!({"allOf": [{"multipleOf": 4_294_967_291u64}, {"multipleOf": 999_983}], "type": "integer"}),
        ),
        (
            "guided_json",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ),
        ("guided_json", levels(|inner| json!({"anyOf": [{"items": inner}, {"type": "null"}]}))),
        (
            "guided_json",
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}, "minItems": 5}),
        ),
        ("guided_json", json!({"not": {"type": "string", "pattern": "(a|b)*a(a|b){30}"}})),
        ("guided_grammar", json!("root ::= root")),
        ("guided_grammar", json!(format!("root ::= r0\n{chain}r3000 ::= root"))),
        ("guided_grammar", json!(format!("root ::= r0 r0\n{doubling}r200 ::= \"c\""))),
        ("guided_grammar", json!(format!("root ::= [ab]* \"a\" {}", "[ab] ".repeat(30)))),
        ("guided_grammar", json!("root ::= (\"(\" root \")\"){0,1000000}")),
        ("guided_grammar", json!("root ::= root root root | root root | \"a\" | \"\"")),
        ("response_format", lark(format!("start: t0{{\"a\"}}\n{templates}t40{{x}}: x"))),
        ("response_format", lark("start: A\nA: /[ab]*a[ab]{22}/ & ~/(a|b)*b[ab]{22}/".into())),
        (
            "response_format",
            tag(
                json!({"type": "repeat", "min": 0, "max": i32::MAX, "content": {"type": "regex", "pattern": "(ab)*c"}}),
            ),
        ),
        ("response_format", tag(levels(|inner| json!({"type": "plus", "content": inner})))),
    ]
}

#[test]
fn constraints_that_mean_harm_are_refused_in_time_and_hold_nobody_up() {
    let server = start(&["--compile-deadline", "2", "--compile-bytes", "67108864"]);
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let fine = json!({"messages": messages, "regex": "[a-z]{20}"});
    let alone = server.post("/v1/chat/completions", &fine).json(200)["choices"].clone();
    for (field, attack) in attacks() {
        let shown: String = attack.to_string().chars().take(120).collect();
        let body = json!({"messages": messages, "max_tokens": 40, field: attack}).to_string();
        let started = Instant::now();
        let pending = server.send("POST", "/v1/chat/completions", &[], body.as_bytes());
        // A concurrent request with a cached constraint.
        assert_eq!(server.post("/v1/chat/completions", &fine).json(200)["choices"], alone, "beside {shown}");
        let answer = pending.read();
        println!("{:5} ms, {}: {shown}", started.elapsed().as_millis(), answer.status);
        assert!(started.elapsed() < Duration::from_secs(8), "{shown}: {:?}", started.elapsed());
        // A constraint within its budget is accepted.
        if answer.status != 200 {
            let error = answer.json(400)["error"].clone();
            let codes = [
                "constraint_refused",
                "constraint_unsatisfiable",
                "constraint_too_large",
                "budget_too_small",
            ];
            assert!(codes.iter().any(|code| error["code"] == *code), "{shown}: {error}");
        }
    }
    assert_eq!(server.get("/health").status, 200);
    assert!(server.get("/metrics").text.contains("burn_dfa:engine_restarts_total{model_name=\"tiny\"} 0"));
}

#[test]
fn a_malformed_transfer_is_refused() {
    let server = start(&[]);
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let request = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nx\r\n";
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let is_coded = answer.starts_with("HTTP/1.1 400 ") && answer.contains("\"code\":\"invalid_json\"");
    assert!(is_coded, "{answer}");
}

#[test]
fn slow_clients_are_let_go() {
    let server = start(&["--client-timeout", "1"]);
    // One connection with unfinished headers, and one with an unfinished body.
    for (head, is_told) in [
        ("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n", false),
        ("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{", true),
    ] {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream.write_all(head.as_bytes()).expect("it is sent");
        let started = Instant::now();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(started.elapsed() < Duration::from_secs(10), "{head:?}");
        let is_timeout = answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"code\":\"timeout\"");
        assert_eq!(is_timeout, is_told, "{answer}");
    }
    assert_eq!(server.get("/health").status, 200);
}
