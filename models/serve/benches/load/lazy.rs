//! The first token under a new schema: compiled before the prompt is read, or during the reading,
//! in turns.

use burn_dfa_serve::Failure;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::alike::{COMPLETIONS, Shape};
use crate::arms::in_turn;
use crate::host::Host;
use crate::traffic::client::Client;
use crate::traffic::judge::Answer;

/// A server that compiles first, and one with `--lazy`.
pub struct Lazy {
    hosts: Vec<Host>,
    random: StdRng,
}

/// Milliseconds of one round.
pub struct Times {
    /// To the first token if the schema is compiled first.
    pub ready: f64,
    /// To the first token if the schema is compiled during the reading of the prompt.
    pub lazy: f64,
    /// Of a compilation, the mean of both servers.
    pub compiled: f64,
    /// To the first token without a schema.
    pub free: f64,
}

impl Lazy {
    /// Starts both, each with `rows` rows.
    ///
    /// # Errors
    /// A server fails to start.
    pub fn start(shape: Shape, rows: usize, seed: u64) -> Result<Self, Failure> {
        let hosts = shape.hosts(rows, [&["--no-prefix-cache"], &["--no-prefix-cache", "--lazy"]])?;
        Ok(Self { hosts, random: StdRng::seed_from_u64(seed) })
    }

    /// One round: a prompt of `tokens` tokens, and a new schema of `properties` properties.
    ///
    /// # Errors
    /// A socket fails, or an answer is an error.
    pub fn round(&mut self, tokens: usize, properties: usize, is_first: bool) -> Result<Times, Failure> {
        let prompt: Vec<u32> = (0..tokens).map(|_| self.random.random_range(16..1024)).collect();
        let schema = schema(self.random.random(), properties);
        let first = |host: &Host, schema: Option<&Value>| {
            // Enough for the shortest answer.
            let mut body = json!({"prompt": prompt, "max_tokens": 8, "stream": true});
            if let Some(schema) = schema {
                body["guided_json"] = schema.clone();
            }
            let reply = Client::new(host.address).ask("POST", COMPLETIONS, &body.to_string())?;
            Answer::of(&reply)?;
            // Each event of a completion has tokens, from the first event on.
            let (first, _) = reply.events.first().ok_or("an answer has no events")?;
            Ok::<_, Failure>(first.as_secs_f64() * 1e3)
        };
        let compiled =
            || self.hosts.iter().map(|host| host.metric("burn_dfa:compile_time_seconds_sum")).sum();
        let before: f64 = compiled();
        let [ready, lazy] = [&self.hosts[0], &self.hosts[1]];
        let [ready, lazy] = in_turn(is_first, || first(ready, Some(&schema)), || first(lazy, Some(&schema)))?;
        let compiled = (compiled() - before) / 2.0 * 1e3;
        Ok(Times { ready, lazy, compiled, free: first(&self.hosts[0], None)? })
    }
}

/// An object of optional properties. Each is a text of up to 60 letters and a unique suffix.
fn schema(number: u32, properties: usize) -> Value {
    let property = |index: usize| {
        let pattern = format!("^[a-f]{{1,60}}-{number}-{index}$");
        (format!("property {index}"), json!({"type": "string", "pattern": pattern}))
    };
    let properties: serde_json::Map<_, _> = (0..properties).map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}
