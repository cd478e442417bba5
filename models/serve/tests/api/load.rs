//! All kinds of requests at once, each answer checked; the benchmark `load` does the same for
//! longer, and measures times.

use std::time::{Duration, Instant};

use crate::client::start;

#[path = "../../benches/load/traffic/mod.rs"]
mod traffic;

#[test]
fn every_answer_is_right_and_nothing_is_left_over() {
    let server = start(&["--rows", "4", "--max-queue", "32"]);
    let metric = |name: &str| {
        let text = server.get("/metrics").text;
        let own =
            text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
        own.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    let mut max_waiting = 0.0_f64;
    let tally = traffic::run(server.address, 16, Duration::from_secs(10), 7, |_, _| {
        max_waiting = max_waiting.max(metric("vllm:num_requests_waiting"));
    });
    assert_eq!(tally.wrong, 0, "{}", tally.faults.join("\n"));
    assert!(tally.answered() > 20 && tally.right.len() > 4, "{:?}", tally.right);
    assert!(tally.left > 0 && tally.tokens > 0 && max_waiting <= 32.0);
    assert!(
        [&tally.latency, &tally.first_token, &tally.between].iter().all(|times| times.quantile(0.5) > 0.0)
    );
    let names = ["vllm:num_requests_running", "vllm:num_requests_waiting", "burn_dfa:arena_usage_perc"];
    let since = Instant::now();
    while names.iter().any(|name| metric(name) > 0.0) && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(names.map(metric), [0.0; 3]);
    assert_eq!(metric("burn_dfa:engine_restarts_total"), 0.0);
}
