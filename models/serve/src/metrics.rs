//! Metrics in Prometheus' text format, with vLLM's names where vLLM has them.

use std::collections::HashMap;
use std::time::Duration;

use burn_dfa_engine::{Ending, Load};
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Buckets of times, in seconds.
const SECONDS: [f64; 18] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0,
    160.0,
];

/// The metrics of one server.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    /// Answers in a row.
    running: Gauge,
    /// Answers that wait for a row.
    waiting: Gauge,
    /// The used fraction of the slots of all rows.
    cache_usage: Gauge,
    /// The used fraction of the arena's states.
    arena_usage: Gauge,
    /// Tokens of prompts.
    prompt_tokens: Counter,
    /// Generated tokens.
    generation_tokens: Counter,
    /// Tokens of prompts that were looked up in the prefix cache.
    prefix_queries: Counter,
    /// Tokens of prompts that were copied from the prefix cache.
    prefix_hits: Counter,
    finished: HashMap<&'static str, Counter>,
    /// Time from the queue to the first token.
    first_token: Histogram,
    /// Time between two tokens.
    inter_token: Histogram,
    /// Time from the queue to the end.
    latency: Histogram,
    /// Time in the queue.
    queue_time: Histogram,
    /// Time of one compilation.
    compile_time: Histogram,
    /// Constraints found in the cache.
    cache_hits: Counter,
    /// Constraints that were compiled.
    cache_misses: Counter,
    /// Bytes of the cached constraints.
    cache_bytes: Gauge,
    /// Restarts of the engine after a failure.
    engine_restarts: Counter,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics of a model with this name, all zero.
    ///
    /// # Errors
    /// Never: the buckets are not empty.
    pub fn new(model: &str) -> Result<Self, BuildError> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
            .add_global_label("model_name", model)
            .build_recorder();
        let handle = recorder.handle();
        Ok(metrics::with_local_recorder(&recorder, || {
            describe();
            let reasons = ["stop", "length", "abort", "error"];
            let success = |reason| counter!("vllm:request_success_total", "finished_reason" => reason);
            Self {
                handle,
                running: gauge!("vllm:num_requests_running"),
                waiting: gauge!("vllm:num_requests_waiting"),
                cache_usage: gauge!("vllm:kv_cache_usage_perc"),
                arena_usage: gauge!("burn_dfa:arena_usage_perc"),
                prompt_tokens: counter!("vllm:prompt_tokens_total"),
                generation_tokens: counter!("vllm:generation_tokens_total"),
                prefix_queries: counter!("vllm:prefix_cache_queries_total"),
                prefix_hits: counter!("vllm:prefix_cache_hits_total"),
                finished: reasons.into_iter().map(|reason| (reason, success(reason))).collect(),
                first_token: histogram!("vllm:time_to_first_token_seconds"),
                inter_token: histogram!("vllm:inter_token_latency_seconds"),
                latency: histogram!("vllm:e2e_request_latency_seconds"),
                queue_time: histogram!("vllm:request_queue_time_seconds"),
                compile_time: histogram!("burn_dfa:compile_time_seconds"),
                cache_hits: counter!("burn_dfa:constraint_cache_hits_total"),
                cache_misses: counter!("burn_dfa:constraint_cache_misses_total"),
                cache_bytes: gauge!("burn_dfa:constraint_cache_bytes"),
                engine_restarts: counter!("burn_dfa:engine_restarts_total"),
            }
        }))
    }

    /// All metrics as text.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Aggregates recorded values periodically, so that they do not accumulate if nothing reads
    /// them.
    pub(crate) async fn keep_up(self: std::sync::Arc<Self>) {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.handle.run_upkeep();
        }
    }
}

impl burn_dfa_engine::Metrics for Metrics {
    fn load(&self, load: Load) {
        self.running.set(load.running as f64);
        self.waiting.set(load.waiting as f64);
        self.cache_usage.set(load.tokens);
        self.arena_usage.set(load.states);
    }

    fn admitted(&self, waited: Duration, prompt: usize) {
        self.queue_time.record(waited);
        self.prompt_tokens.increment(prompt as u64);
    }

    fn first_token(&self, elapsed: Duration) {
        self.first_token.record(elapsed);
    }

    fn next_tokens(&self, count: usize, each: Duration) {
        (0..count).for_each(|_| self.inter_token.record(each));
    }

    fn generated(&self, count: usize) {
        self.generation_tokens.increment(count as u64);
    }

    fn prefix(&self, prompt: usize, cached: usize) {
        self.prefix_queries.increment(prompt as u64);
        self.prefix_hits.increment(cached as u64);
    }

    fn ended(&self, ending: Option<Ending>, elapsed: Duration) {
        let reason = match ending {
            Some(Ending::Complete | Ending::Stop) => "stop",
            Some(Ending::Length | Ending::OutOfTokens) => "length",
            Some(Ending::Canceled) => "abort",
            None => "error",
        };
        self.finished[reason].increment(1);
        self.latency.record(elapsed);
    }

    fn lost(&self) {
        self.finished["error"].increment(1);
    }

    fn restarted(&self) {
        self.engine_restarts.increment(1);
    }

    fn compiled(&self, time: Duration) {
        self.compile_time.record(time);
    }

    fn looked_up(&self, found: bool) {
        if found { self.cache_hits.increment(1) } else { self.cache_misses.increment(1) }
    }

    fn cache_bytes(&self, bytes: usize) {
        self.cache_bytes.set(bytes as f64);
    }
}

fn describe() {
    describe_gauge!("vllm:num_requests_running", "Answers that have a row.");
    describe_gauge!("vllm:num_requests_waiting", "Answers that wait for a row.");
    describe_gauge!("vllm:kv_cache_usage_perc", "The part of all slots that is taken; 1 is all.");
    describe_gauge!("burn_dfa:arena_usage_perc", "The part of the arena's states that is taken; 1 is all.");
    describe_counter!("vllm:prompt_tokens_total", "Tokens of prompts.");
    describe_counter!("vllm:generation_tokens_total", "Tokens of answers.");
    describe_counter!(
        "vllm:prefix_cache_queries_total",
        "Tokens of prompts that might have been read before."
    );
    describe_counter!(
        "vllm:prefix_cache_hits_total",
        "Tokens of prompts that had been read before, and were copied."
    );
    describe_counter!("vllm:request_success_total", "Answers that ended, by reason.");
    describe_histogram!("vllm:time_to_first_token_seconds", "From the queue to the first token.");
    describe_histogram!("vllm:inter_token_latency_seconds", "Between two tokens of an answer.");
    describe_histogram!("vllm:e2e_request_latency_seconds", "From the queue to the end of an answer.");
    describe_histogram!("vllm:request_queue_time_seconds", "Time in the queue.");
    describe_histogram!("burn_dfa:compile_time_seconds", "Time to compile a constraint.");
    describe_counter!("burn_dfa:constraint_cache_hits_total", "Constraints that were known already.");
    describe_counter!("burn_dfa:constraint_cache_misses_total", "Constraints that had to be compiled.");
    describe_gauge!("burn_dfa:constraint_cache_bytes", "Bytes of the constraints that are kept.");
    describe_counter!("burn_dfa:engine_restarts_total", "Times that the engine began again after a failure.");
}
