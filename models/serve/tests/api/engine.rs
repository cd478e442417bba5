//! The queue, disconnected clients, a panicking model, and the shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use burn::tensor::{Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, ContinuousLm, Recordable};
use burn_dfa_decoder::Decoder;
use burn_dfa_serve::App;
use serde_json::{Value, json};

use crate::client::{Running, config, start, start_app};

/// The embedded model, with a pause at each step, and panics on request.
struct FaultyModel {
    model: Decoder,
    pause: Duration,
    steps: Arc<AtomicUsize>,
    panics: Arc<AtomicBool>,
}

impl FaultyModel {
    fn panic_if_told(&self) {
        assert!(!self.panics.swap(false, Ordering::Relaxed), "as it was told");
    }
}

impl CausalLm for FaultyModel {
    type Cache = <Decoder as CausalLm>::Cache;

    fn device(&self) -> Device {
        self.model.device()
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> Option<usize> {
        self.model.max_positions()
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Self::Cache) {
        self.model.prefill(tokens, padding, capacity)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2> {
        self.model.step(tokens, cache)
    }
}

impl ContinuousLm for FaultyModel {
    type RowsCache = <Decoder as ContinuousLm>::RowsCache;

    fn rows_cache(&self, rows: usize, capacity: usize) -> Self::RowsCache {
        self.panic_if_told();
        self.model.rows_cache(rows, capacity)
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut Self::RowsCache) -> Tensor<2> {
        self.model.begin(row, prompt, cache)
    }

    fn reads_in_chunks(&self) -> bool {
        self.model.reads_in_chunks()
    }

    fn extend(
        &self,
        row: usize,
        at: usize,
        tokens: Tensor<2, Int>,
        cache: &mut Self::RowsCache,
    ) -> Tensor<2> {
        self.model.extend(row, at, tokens, cache)
    }

    fn copies_prefixes(&self) -> bool {
        self.model.copies_prefixes()
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut Self::RowsCache) {
        self.model.copy_prefix(from, to, length, cache);
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut Self::RowsCache) -> Tensor<2> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.pause);
        self.panic_if_told();
        self.model.step_rows(tokens, cache)
    }
}

// SAFETY: The decoder makes the promise, and does all work with tensors.
#[allow(unsafe_code)]
unsafe impl Recordable for FaultyModel {}

struct FaultyServer {
    server: Running,
    steps: Arc<AtomicUsize>,
    panics: Arc<AtomicBool>,
}

fn start_faulty(pause: Duration, options: &[&str]) -> FaultyServer {
    let tiny = Arc::new(burn_dfa_tiny::load(&Device::flex()).expect("it loads"));
    let (steps, panics) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let model =
        FaultyModel { model: tiny.model().clone(), pause, steps: steps.clone(), panics: panics.clone() };
    let server = start_app(App::new(config(options), tiny, model).expect("it starts"));
    // Steps of the recording do not count.
    steps.store(0, Ordering::Relaxed);
    FaultyServer { server, steps, panics }
}

/// An answer of up to 60 tokens.
fn long() -> Value {
    json!({"messages": [{"role": "user", "content": "Hi"}], "regex": "[a-z]{60}", "max_tokens": 61})
}

fn short() -> Value {
    json!({"messages": [{"role": "user", "content": "Hi"}], "regex": "[a-z]", "max_tokens": 4})
}

fn send(server: &Running, body: &Value) -> crate::client::Pending {
    server.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes())
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn metric(server: &Running, name: &str) -> f64 {
    let text = server.get("/metrics").text;
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn a_full_queue_refuses() {
    let FaultyServer { server, .. } =
        start_faulty(Duration::from_millis(10), &["--rows", "1", "--max-queue", "2"]);
    let first = send(&server, &long());
    until("it has the row", || metric(&server, "vllm:num_requests_running") == 1.0);
    let waiting = [send(&server, &short()), send(&server, &short())];
    until("they wait", || metric(&server, "vllm:num_requests_waiting") == 2.0);
    let refused = server.post("/v1/chat/completions", &short());
    refused.error(503, None, "overloaded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let mut three = short();
    three["n"] = json!(3);
    server.post("/v1/chat/completions", &three).error(400, Some("n"), "invalid_value");
    for n in [1, 2] {
        let prompts = json!({"prompt": ["a", "b", "c"], "n": n, "max_tokens": 1});
        let message = server.post("/v1/completions", &prompts).error(400, Some("prompt"), "invalid_value");
        assert!(message.contains("`prompt`"), "{message}");
    }
    first.read().json(200);
    for pending in waiting {
        pending.read().json(200);
    }
    server.post("/v1/chat/completions", &short()).json(200);
}

#[test]
fn rows_go_to_clients_in_turn() {
    let options = ["--rows", "1", "--api-key", "one", "--api-key", "two"];
    let FaultyServer { server, steps, .. } = start_faulty(Duration::from_millis(5), &options);
    let send = |key: &str, body: &Value| {
        let key = format!("Bearer {key}");
        let headers = [("authorization", key.as_str()), ("content-type", "application/json")];
        server.send("POST", "/v1/chat/completions", &headers, body.to_string().as_bytes())
    };
    let waiting = |count: f64| until("it waits", || metric(&server, "vllm:num_requests_waiting") == count);
    let first = send("one", &long());
    until("it has the row", || steps.load(Ordering::Relaxed) > 1);
    let mut others = Vec::new();
    for number in 0..3 {
        others.push(send("one", &long()));
        waiting(f64::from(number) + 1.0);
    }
    let second = send("two", &short());
    waiting(4.0);
    first.read().json(200);
    second.read().json(200);
    // Most answers of the first client are still queued.
    assert!(metric(&server, "vllm:num_requests_waiting") >= 1.0);
    others.into_iter().for_each(|pending| _ = pending.read().json(200));
}

#[test]
fn answers_end_when_their_client_disconnects() {
    for stream in [false, true] {
        let FaultyServer { server, steps, .. } = start_faulty(Duration::from_millis(10), &["--rows", "1"]);
        let mut body = long();
        body["stream"] = json!(stream);
        let begun = send(&server, &body);
        until("it goes on", || steps.load(Ordering::Relaxed) > 3);
        // A waiting request is canceled too.
        let waiting = send(&server, &body);
        until("it waits", || metric(&server, "vllm:num_requests_waiting") == 1.0);
        drop(waiting);
        until("the queue is empty", || metric(&server, "vllm:num_requests_waiting") == 0.0);
        drop(begun);
        until("the row is idle", || metric(&server, "vllm:num_requests_running") == 0.0);
        assert!(steps.load(Ordering::Relaxed) < 55, "it did not go on to its end");
        assert!(
            server
                .get("/metrics")
                .text
                .lines()
                .any(|line| line.contains("finished_reason=\"abort\"") && line.ends_with(" 1"))
        );
        server.post("/v1/chat/completions", &short()).json(200);
    }
}

#[test]
fn a_disconnect_does_not_change_the_answers_of_others() {
    let FaultyServer { server, steps, .. } = start_faulty(Duration::from_millis(5), &["--rows", "2"]);
    let own = |seed: u64, stream: bool| {
        let mut body = long();
        (body["temperature"], body["seed"], body["stream"]) = (json!(1.0), json!(seed), json!(stream));
        body
    };
    let alone = server.post("/v1/chat/completions", &own(1, false)).json(200)["choices"].clone();
    let waits_alone = server.post("/v1/chat/completions", &own(2, false)).json(200)["choices"].clone();
    let before = steps.load(Ordering::Relaxed);
    let beside = send(&server, &own(1, false));
    let mut broken = send(&server, &own(3, true));
    until("both go on", || metric(&server, "vllm:num_requests_running") == 2.0);
    let next = send(&server, &own(2, false));
    until("there are events", || steps.load(Ordering::Relaxed) > before + 5);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut broken.stream, &mut line).expect("it has begun");
    drop(broken);
    assert_eq!(beside.read().json(200)["choices"], alone);
    assert_eq!(next.read().json(200)["choices"], waits_alone);
}

#[test]
fn a_compilation_past_its_deadline_holds_nobody_up() {
    let server =
        start(&["--compile-deadline", "0.5", "--compile-threads", "1", "--compile-bytes", "1073741824"]);
    let alone = server.post("/v1/chat/completions", &long()).json(200)["choices"].clone();
    let started = Instant::now();
    let mut slow = short();
    slow["regex"] = json!("(a|b)*a(a|b){60}");
    let slow = send(&server, &slow);
    assert_eq!(server.post("/v1/chat/completions", &long()).json(200)["choices"], alone);
    slow.read().error(400, Some("regex"), "constraint_too_large");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_panic_ends_the_request_and_not_the_server() {
    let FaultyServer { server, steps, panics } =
        start_faulty(Duration::from_millis(5), &["--rows", "2", "--max-queue", "8"]);
    let alone = server.post("/v1/chat/completions", &short()).json(200)["choices"].clone();
    steps.store(0, Ordering::Relaxed);
    let whole = send(&server, &long());
    let mut body = long();
    body["stream"] = json!(true);
    let stream = send(&server, &body);
    until("they go on", || {
        steps.load(Ordering::Relaxed) > 5 && metric(&server, "vllm:num_requests_running") == 2.0
    });
    let waiting = send(&server, &short());
    until("it waits", || metric(&server, "vllm:num_requests_waiting") == 1.0);
    panics.store(true, Ordering::Relaxed);
    whole.read().error(500, None, "internal_error");
    let events = stream.read().events();
    assert_eq!(events[events.len() - 1]["error"]["code"], "internal_error");
    assert_eq!(waiting.read().json(200)["choices"], alone);
    assert_eq!(server.post("/v1/chat/completions", &short()).json(200)["choices"], alone);
    assert_eq!(metric(&server, "burn_dfa:engine_restarts_total"), 1.0);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn a_panic_at_the_start_is_an_error() {
    let tiny = Arc::new(burn_dfa_tiny::load(&Device::flex()).expect("it loads"));
    let (steps, panics) = (Arc::default(), Arc::new(AtomicBool::new(true)));
    let model = FaultyModel { model: tiny.model().clone(), pause: Duration::ZERO, steps, panics };
    let failure = App::new(config(&[]), tiny, model).expect_err("it panics").to_string();
    assert!(failure.contains("it panicked"), "{failure}");
}

#[test]
fn the_end_lets_answers_end() {
    let FaultyServer { mut server, steps, .. } =
        start_faulty(Duration::from_millis(5), &["--rows", "1", "--grace", "30"]);
    let first = send(&server, &long());
    until("it goes on", || steps.load(Ordering::Relaxed) > 3);
    server.ask_to_end();
    let answer = first.read().json(200);
    assert_eq!(answer["choices"][0]["message"]["content"].as_str().map(str::len), Some(60));
    server.end();
    assert!(std::net::TcpStream::connect(server.address).is_err());
}

#[test]
fn the_end_comes_though_answers_go_on() {
    let FaultyServer { mut server, steps, .. } =
        start_faulty(Duration::from_millis(300), &["--rows", "1", "--grace", "0.5"]);
    let first = send(&server, &long());
    until("it goes on", || steps.load(Ordering::Relaxed) > 1);
    let started = Instant::now();
    server.end();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    first.read().error(503, None, "overloaded");
}

#[test]
fn many_at_once_get_what_each_gets_alone() {
    let server = start(&["--rows", "4"]);
    let body = |index: usize| {
        json!({
            "messages": [{"role": "user", "content": format!("Please send {index} brass lamps to Oscar Lund.")}],
            "guided_json": {"type": "object", "properties": {"n": {"type": "integer", "minimum": index, "maximum": index + 20}}, "required": ["n"], "additionalProperties": false},
            "temperature": 0.9, "seed": index,
        })
    };
    let text =
        |answer: Value| answer["choices"][0]["message"]["content"].as_str().expect("a text").to_owned();
    let pending: Vec<_> = (0..10).map(|index| send(&server, &body(index))).collect();
    let together: Vec<String> = pending.into_iter().map(|pending| text(pending.read().json(200))).collect();
    for (index, together) in together.iter().enumerate() {
        let value: Value = serde_json::from_str(together).expect("JSON");
        assert!(
            value["n"].as_u64().is_some_and(|n| (index as u64..=index as u64 + 20).contains(&n)),
            "{value}"
        );
        assert_eq!(*together, text(server.post("/v1/chat/completions", &body(index)).json(200)));
    }
}

#[test]
fn a_kept_constraint_with_tools_is_of_its_own_request() {
    let folder = std::env::temp_dir().join(format!("burn-dfa-serve-tools-{}", std::process::id()));
    let entries = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
    for start_count in 0..2 {
        let server = start(&["--cache-dir", folder.to_str().expect("a path")]);
        for number in 1..=3 {
            let schema = json!({"type": "object", "properties": {"n": {"const": number}}, "required": ["n"], "additionalProperties": false});
            let body = json!({
                "messages": [{"role": "user", "content": "Please send 12 brass lamps to Oscar Lund."}],
                "tools": [{"type": "function", "function": {"name": "now"}}],
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
                "temperature": 0,
            });
            let answer = server.post("/v1/chat/completions", &body).json(200);
            // An answer may be a call or content.
            if let Some(content) = answer["choices"][0]["message"]["content"].as_str() {
                assert_eq!(content, format!("{{\"n\":{number}}}"), "{answer}");
            }
            assert_eq!(entries(), if start_count == 0 { number } else { 3 });
        }
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn compiled_constraints_outlive_the_server() {
    let folder = std::env::temp_dir().join(format!("burn-dfa-serve-{}", std::process::id()));
    let entries = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
    for _ in 0..2 {
        let server = start(&["--cache-dir", folder.to_str().expect("a path")]);
        server.post("/v1/chat/completions", &short()).json(200);
        assert_eq!(entries(), 1);
        // Sixteen requests at once; only the first one compiles.
        let pending: Vec<_> = (0..16).map(|_| send(&server, &short())).collect();
        pending.into_iter().for_each(|pending| _ = pending.read().json(200));
        assert_eq!(metric(&server, "burn_dfa:constraint_cache_misses_total"), 1.0);
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}
