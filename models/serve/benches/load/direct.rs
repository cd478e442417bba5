//! The same requests without a server: directly through the batch of its engine.

use std::time::Instant;

use burn::tensor::Device;
use burn_dfa::generation::{
    ContinuousBatch, ContinuousLm, GenerationConfig, Request, SamplingFeatures, SamplingOptions,
};
use burn_dfa::{Capacity, CompiledConstraint, TensorOptions, TokenId};
use burn_dfa_decoder::Pretrained;
use burn_dfa_engine::Client;
use burn_dfa_serve::{
    App, Failure,
    constraints::{ConstraintText, Source},
    protocol::{template::TemplateFields, warning::Warnings},
};
use serde_json::json;

use crate::arms::Arms;
use crate::host::Host;

/// Requests that are ready for the batch.
pub struct Direct {
    pretrained: Pretrained,
    requests: Vec<(Vec<TokenId>, CompiledConstraint, SamplingOptions)>,
}

impl Direct {
    /// Encodes the prompts of structured requests and compiles their schemas.
    ///
    /// # Errors
    /// The tokenizer or the compiler fails.
    pub fn new(host: &Host, arms: &Arms) -> Result<Self, Failure> {
        let app: &App = &host.app;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ready = |request: &serde_json::Value| {
            let messages = request["messages"].as_array().ok_or("there are no messages")?;
            let template = TemplateFields::default().read().map_err(|error| error.message)?;
            let mut warnings = Warnings::default();
            let prompt = app.text.render(messages, None, &template, "messages", &mut warnings);
            let prompt = prompt.map_err(|error| error.message)?;
            let prompt = app.text.encode_chat(&prompt, "messages").map_err(|error| error.message)?;
            let text = json!({"structured_outputs": {"json": request["guided_json"]}}).to_string();
            let source = Source::Request(ConstraintText { text, strict: false });
            let compilation =
                runtime.block_on(app.compiler.compile(Client::default(), source, "guided_json"));
            let compilation = compilation.map_err(|error| error.message)?;
            let compiled = compilation.and_then(|compilation| compilation.ready()).flatten();
            let constraint = compiled.ok_or("there is no constraint")?.constraint;
            let least = request["min_tokens"].as_u64().unwrap_or(0) as usize;
            Ok::<_, Failure>((
                prompt,
                constraint,
                SamplingOptions { min_new_tokens: least, ..SamplingOptions::default() },
            ))
        };
        let requests = arms.structured.iter().map(ready).collect::<Result<_, _>>()?;
        Ok(Self { pretrained: burn_dfa_tiny::load(&Device::flex())?, requests })
    }

    /// Tokens per second of all requests, `times` over, in a batch like the engine's.
    ///
    /// # Errors
    /// The library fails.
    pub fn rate(&self, app: &App, times: usize) -> Result<f64, Failure> {
        let config = &app.config;
        let model = self.pretrained.model();
        let capacity = Capacity::new()
            .with_constraints(config.rows)
            .with_states(config.arena_states)
            .with_classes(config.arena_classes)
            .with_stack(config.arena_exits, config.frames)
            .with_pushes(config.arena_pushes);
        let generation = GenerationConfig::new()
            .with_sync_interval(config.sync_interval)
            .with_prompt_chunk(model.reads_in_chunks().then_some(config.prompt_chunk))
            .with_prefix_cache(!config.no_prefix_cache && model.copies_prefixes())
            .with_logprobs(config.logprobs())
            .with_row_features(SamplingFeatures::ALL)
            .with_tensors(TensorOptions::new().with_capacity(capacity).with_max_bytes(i32::MAX as usize));
        let slots = app.engine.config().slots;
        let mut batch =
            ContinuousBatch::record(model, app.text.vocabulary(), config.rows, slots, &generation)?;
        let mut waiting = (0..times).flat_map(|_| &self.requests).peekable();
        let started = Instant::now();
        let mut tokens = 0;
        loop {
            let idle: Vec<usize> = batch.idle().collect();
            for row in idle {
                let Some((prompt, constraint, sampling)) = waiting.next() else { break };
                let max = slots - prompt.len();
                let request = Request::new(prompt.clone(), max).with_constraint(constraint);
                batch.admit(row, &request.with_sampling(sampling.clone()))?;
            }
            if batch.idle().count() == config.rows {
                return Ok(tokens as f64 / started.elapsed().as_secs_f64());
            }
            batch.step(config.sync_interval, |chunk| tokens += chunk.tokens.len())?;
            let finished: Vec<usize> = batch.finished().collect();
            for row in finished {
                batch.release(row)?;
            }
        }
    }
}
