//! Slow constraints: they delay no other request, and are abandoned with their clients.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Pending, Running, start};
use crate::engine::{metric, until};

/// Compiles for minutes on any machine, in little memory; each number makes another constraint.
///
/// Each pattern has 2¹⁷ states until it is minimized, and few after that.
fn slow(number: usize) -> Value {
    let property = |at: usize| {
        let pattern = format!("^([ab]*|[ab]*a[ab]{{17}}|c{{{}}})$", 1 + at + number);
        (format!("p{at}"), json!({"type": "string", "pattern": pattern}))
    };
    let properties: serde_json::Map<_, _> = (0..1_000).map(property).collect();
    json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object", "properties": properties}}},
    })
}

fn plain() -> Value {
    json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4})
}

fn send(server: &Running, body: &Value) -> Pending {
    let head = [("content-type", "application/json")];
    server.send("POST", "/v1/chat/completions", &head, body.to_string().as_bytes())
}

fn begun(server: &Running) -> f64 {
    metric(server, "burn_dfa:constraint_cache_misses_total")
}

/// One thread, and a deadline beyond the length of any test.
const LONG: [&str; 6] =
    ["--compile-threads", "1", "--compile-deadline", "120", "--compile-bytes", "2147483648"];

#[test]
fn others_are_answered_while_slow_constraints_are_compiled() {
    let server = start(&["--compile-deadline", "120", "--compile-bytes", "1073741824"]);
    server.post("/v1/chat/completions", &plain()).json(200);
    let pending: Vec<_> = (0..16).map(|number| send(&server, &slow(number))).collect();
    until("all are asked for", || begun(&server) == 16.0);
    let started = Instant::now();
    server.post("/v1/chat/completions", &plain()).json(200);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // Quick constraints still have a thread.
    let started = Instant::now();
    let mut quick = plain();
    quick["regex"] = json!("[0-9]{3}");
    server.post("/v1/chat/completions", &quick).json(200);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    drop(pending);
}

#[test]
fn a_compilation_ends_when_nobody_waits_for_it() {
    let server = start(&LONG);
    let gone = send(&server, &slow(0));
    until("it is asked for", || begun(&server) == 1.0);
    std::thread::sleep(Duration::from_millis(600));
    drop(gone);
    // The only thread is free for the next constraint.
    let started = Instant::now();
    let mut quick = plain();
    quick["regex"] = json!("[0-9]{3}");
    server.post("/v1/chat/completions", &quick).json(200);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_compilation_goes_on_while_another_waits_for_it() {
    let server = start(&["--compile-deadline", "3", "--compile-bytes", "2147483648"]);
    let first = send(&server, &slow(0));
    until("it is asked for", || begun(&server) == 1.0);
    let second = send(&server, &slow(0));
    until("both wait", || metric(&server, "burn_dfa:constraint_cache_hits_total") == 1.0);
    drop(first);
    second.read().error(400, Some("response_format"), "constraint_too_large");
    assert_eq!((begun(&server), metric(&server, "burn_dfa:compile_time_seconds_count")), (1.0, 1.0));
}

#[test]
fn a_full_queue_refuses_a_slow_constraint_that_is_compiled_late() {
    let options =
        ["--lazy", "--max-queue", "1", "--compile-deadline", "120", "--compile-bytes", "2147483648"];
    let server = start(&options);
    let running = |count| until("the row is taken", || metric(&server, "vllm:num_requests_running") == count);
    // One is compiled, and one waits.
    let first = send(&server, &slow(0));
    running(1.0);
    let second = send(&server, &slow(1));
    running(2.0);
    let message = send(&server, &slow(2)).read().error(503, None, "overloaded");
    assert!(message.contains("too many requests"), "{message}");
    drop([first, second]);
}

#[test]
fn the_end_does_not_wait_for_a_compilation() {
    let mut server = start(&LONG);
    let pending = send(&server, &slow(0));
    until("it is asked for", || begun(&server) == 1.0);
    std::thread::sleep(Duration::from_millis(600));
    let started = Instant::now();
    server.end();
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    pending.read().error(503, None, "overloaded");
}
