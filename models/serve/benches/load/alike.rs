//! Requests with a shared prefix, with the prefix cache and without, in turns.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Device;
use burn_dfa_decoder::{Decoder, DecoderConfig, Pretrained};
use burn_dfa_serve::{App, Failure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::arms::{drive, in_turn};
use crate::host::{Host, config};

/// The endpoint that takes tokens.
pub const COMPLETIONS: &str = "/v1/completions";
/// Tokens of a prompt after its shared prefix.
const OWN: usize = 16;

/// A model to measure.
#[derive(Clone, Copy)]
pub enum Shape {
    /// The embedded one.
    Tiny,
    /// Random weights in the shape of SmolLM2-135M.
    Small,
}

impl Shape {
    /// The lengths of prefixes that fit its positions.
    pub fn beginnings(self) -> &'static [usize] {
        match self {
            Self::Tiny => &[0, 32, 128],
            Self::Small => &[0, 32, 128, 512],
        }
    }

    /// Servers of the model with `rows` rows, one for each set of options.
    ///
    /// # Errors
    /// A server fails to start.
    pub fn hosts<const N: usize>(self, rows: usize, options: [&[&str]; N]) -> Result<Vec<Host>, Failure> {
        let tiny = Arc::new(burn_dfa_tiny::load(&Device::flex())?);
        let model = match self {
            Self::Tiny => tiny.model().clone(),
            Self::Small => smollm2_135m().init(&Device::flex()),
        };
        options.into_iter().map(|options| serve(&tiny, &model, rows, options)).collect()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tiny => "1 M parameters",
            Self::Small => "135 M parameters",
        })
    }
}

/// A server with the prefix cache and one without.
pub struct Alike {
    hosts: Vec<Host>,
    random: StdRng,
}

impl Alike {
    /// Starts both, each with `rows` rows.
    ///
    /// # Errors
    /// A server fails to start.
    pub fn start(shape: Shape, rows: usize, seed: u64) -> Result<Self, Failure> {
        let hosts = shape.hosts(rows, [&[], &["--no-prefix-cache"]])?;
        Ok(Self { hosts, random: StdRng::seed_from_u64(seed) })
    }

    /// Random tokens of the embedded vocabulary.
    pub fn tokens(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.random.random_range(16..1024)).collect()
    }

    /// Requests for `tokens` tokens each, whose prompts share a prefix.
    fn bodies(&mut self, beginning: &[u32], requests: usize, tokens: usize) -> Vec<String> {
        let body = |own: Vec<u32>| {
            let prompt = [beginning, &own].concat();
            json!({"prompt": prompt, "max_tokens": tokens, "min_tokens": tokens - 1}).to_string()
        };
        (0..requests).map(|_| body(self.tokens(OWN))).collect()
    }

    /// Milliseconds to the first token, with the cache and without.
    ///
    /// # Errors
    /// A socket fails, or an answer is an error.
    pub fn first_token(&mut self, beginning: &[u32], is_first: bool) -> Result<[f64; 2], Failure> {
        let bodies = self.bodies(beginning, 1, 1);
        self.both(is_first, |host| Ok(ask(host, 1, &bodies)? * 1e3))
    }

    /// Requests per second of `requests` with 16 tokens each, by one client per row; with the cache
    /// and without.
    ///
    /// # Errors
    /// As [`first_token`](Self::first_token).
    pub fn rate(&mut self, beginning: &[u32], requests: usize, is_first: bool) -> Result<[f64; 2], Failure> {
        let bodies = self.bodies(beginning, requests, 16);
        self.both(is_first, |host| Ok(requests as f64 / ask(host, host.app.config.rows, &bodies)?))
    }

    fn both(
        &self,
        is_first: bool,
        measure: impl Fn(&Host) -> Result<f64, Failure>,
    ) -> Result<[f64; 2], Failure> {
        in_turn(is_first, || measure(&self.hosts[0]), || measure(&self.hosts[1]))
    }
}

/// The total time of all requests in seconds.
fn ask(host: &Host, clients: usize, bodies: &[String]) -> Result<f64, Failure> {
    let (elapsed, replies) = drive(host.address, COMPLETIONS, clients, bodies)?;
    match replies.iter().find(|reply| reply.status != 200) {
        Some(reply) => Err(format!("{}: {}", reply.status, reply.body).into()),
        None => Ok(elapsed.as_secs_f64()),
    }
}

fn serve(tiny: &Arc<Pretrained>, model: &Decoder, rows: usize, options: &[&str]) -> Result<Host, Failure> {
    Host::of(App::new(config(rows, options)?, tiny.clone(), model.clone())?)
}

fn smollm2_135m() -> DecoderConfig {
    DecoderConfig {
        num_key_value_heads: 3,
        max_position_embeddings: 1024,
        tie_word_embeddings: true,
        ..DecoderConfig::new(49_152, 576, 1536, 30, 9)
    }
}
