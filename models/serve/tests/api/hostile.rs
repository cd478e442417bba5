//! Bodies that mean harm: each gets an answer, and the server goes on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

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
            // What is wrong for a chat may be unknown to others.
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
    // What can be honoured may be.
    let odd = [nested(60), format!("{{{message},\"guided_json\":{{\"multipleOf\":1e-300}}}}")];
    for body in &odd {
        let status = server.request("POST", "/v1/chat/completions", &[], body.as_bytes()).status;
        assert!([200, 400].contains(&status), "{body}: {status}");
    }
    assert_eq!(server.get("/health").status, 200);
    assert!(server.get("/metrics").text.contains("burn_dfa:engine_restarts_total{model_name=\"tiny\"} 0"));
}

#[test]
fn slow_clients_are_let_go() {
    let server = start(&["--client-timeout", "1"]);
    // One that never ends its headers, and one that never sends its body.
    for head in [
        "POST /v1/completions HTTP/1.1\r\nhost: test\r\n",
        "POST /v1/completions HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream.write_all(head.as_bytes()).expect("it is sent");
        let started = Instant::now();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(started.elapsed() < Duration::from_secs(10), "{head:?}");
        assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    }
    assert_eq!(server.get("/health").status, 200);
}
