//! Measures the costs of a model on the local device.

use std::hint::black_box;
use std::time::Instant;

use burn_dfa::generation::{CausalLm, ContinuousBatch, GenerationConfig, Request, SamplingFeatures};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, TensorOptions};
use burn_dfa_decoder::{Decoder, Pretrained};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::Result;
use super::costs::Costs;

/// The parameters of the measurement.
#[derive(Args, Clone, Debug)]
pub struct Measured {
    /// Maximum number of rows; measures 1, 2, 4 and so on.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_rows: u32,
    /// Tokens of a row, prompt and answer.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(32..))]
    slots: u32,
    /// Processor seconds of the host for each token sent to a client, as measured by
    /// `cargo bench --bench load` of the server; the default is from docs/scale.md.
    #[arg(long, default_value_t = 21e-6)]
    host_token: f64,
}

/// Rounds of each measurement; the median counts.
const ROUNDS: usize = 5;
/// Steps of a round, and between two reads.
const STEPS: usize = 16;
const READ_EVERY: usize = 8;
/// Space for constraints.
pub const CAPACITY: Capacity =
    Capacity { constraints: 8, states: 4_096, classes: 512, exits: 2, frames: 64, pushes: 0 };

impl Measured {
    /// Costs of a model; `is_flex`: on the CPU, which keeps constraints on the host.
    pub fn costs(&self, pretrained: &Pretrained, is_flex: bool, of: String) -> Result<Costs> {
        let model = pretrained.model();
        let positions = model.max_positions().unwrap_or(usize::MAX);
        let slots = (self.slots as usize).min(positions);
        let schema = json!({"type": "string", "minLength": slots / 2});
        let endless = CompiledConstraint::compile(
            &Constraint::json_schema(schema)?,
            pretrained.vocabulary(),
            &Limits::default(),
        )?;
        let bench = Bench { pretrained, constraint: &endless, slots };
        let spinner = ProgressBar::new_spinner();
        let mut step = Vec::new();
        let mut rows = 1;
        while rows <= self.max_rows {
            spinner.set_message(format!("{rows} rows"));
            spinner.tick();
            step.push((rows, bench.step(rows as usize)?));
            rows *= 2;
        }
        spinner.set_message("prompts");
        spinner.tick();
        // Two lengths determine the time per token and per request.
        let (short, long) = (slots / 16, slots / 4);
        let (brief, whole) = (bench.admit(short)?, bench.admit(long)?);
        let prompt_token = ((whole - brief) / (long - short) as f64).max(0.0);
        spinner.finish_and_clear();
        let config = model.config();
        let head = config.head_dim * config.num_key_value_heads * config.num_hidden_layers;
        Ok(Costs {
            of,
            step,
            prompt_token,
            admit: (brief - prompt_token * short as f64).max(0.0),
            compile: 0.0,
            compile_state: compile_state(pretrained)?,
            host_token: self.host_token,
            cache_token: (2 * head * model.dtype().size()) as f64,
            state: if is_flex { 0.0 } else { 4.0 * CAPACITY.classes as f64 },
        })
    }
}

struct Bench<'a> {
    pretrained: &'a Pretrained,
    /// A constraint whose answers take more than half of a row.
    constraint: &'a CompiledConstraint,
    slots: usize,
}

impl Bench<'_> {
    fn batch(&self, rows: usize) -> Result<ContinuousBatch<'_, Decoder>> {
        let tensors = TensorOptions { capacity: CAPACITY, ..TensorOptions::default() };
        let config = GenerationConfig::new()
            .with_tensors(tensors)
            .with_row_features(SamplingFeatures::ALL)
            .with_sync_interval(READ_EVERY);
        let (model, vocabulary) = (self.pretrained.model(), self.pretrained.vocabulary());
        Ok(ContinuousBatch::record(model, vocabulary, rows, self.slots, &config)?)
    }

    /// A request with a prompt of `prompt` tokens.
    fn request(&self, prompt: usize) -> Result<Request> {
        let text = self.pretrained.prompt("Please send 12 brass lamps to Oscar Lund.")?;
        let tokens = text.into_iter().cycle().take(prompt).collect();
        Ok(Request::new(tokens, self.slots - prompt).with_constraint(self.constraint))
    }

    /// Seconds of a step with all rows occupied.
    fn step(&self, rows: usize) -> Result<f64> {
        let mut batch = self.batch(rows)?;
        let request = self.request(self.slots / 4)?;
        for row in 0..rows {
            batch.admit(row, &request)?;
        }
        // The first steps compile and tune kernels.
        batch.step(STEPS, |piece| drop(black_box(piece)))?;
        median(|| {
            let began = Instant::now();
            batch.step(STEPS, |piece| drop(black_box(piece)))?;
            Ok(began.elapsed().as_secs_f64() / STEPS as f64)
        })
    }

    /// Seconds from a request to its first token, in an idle batch of one row.
    fn admit(&self, prompt: usize) -> Result<f64> {
        let mut batch = self.batch(1)?;
        let request = self.request(prompt)?;
        let mut once = || {
            let began = Instant::now();
            batch.admit(0, &request)?;
            batch.step(0, |piece| drop(black_box(piece)))?;
            let seconds = began.elapsed().as_secs_f64();
            batch.release(0)?;
            Ok(seconds)
        };
        once()?;
        median(once)
    }
}

/// Compilation seconds per state, over the schemas of the embedded model.
fn compile_state(pretrained: &Pretrained) -> Result<f64> {
    let (mut seconds, mut states) = (0.0, 0);
    for schema in burn_dfa_tiny::schemas() {
        seconds += median(|| {
            let began = Instant::now();
            let constraint = schema.constraint()?;
            let compiled =
                CompiledConstraint::compile(&constraint, pretrained.vocabulary(), &Limits::default())?;
            let seconds = began.elapsed().as_secs_f64();
            Ok((seconds, states += black_box(compiled).state_count()).0)
        })?;
    }
    // Every round counted the states.
    Ok(seconds * ROUNDS as f64 / states as f64)
}

/// The median of several rounds.
fn median(mut once: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut seconds = (0..ROUNDS).map(|_| once()).collect::<Result<Vec<_>>>()?;
    seconds.sort_unstable_by(f64::total_cmp);
    Ok(seconds[ROUNDS / 2])
}
