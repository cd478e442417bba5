//! The costs of a model on a device.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Result;

/// Seconds and bytes of one replica: a model on its device, with its server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The measured model and device.
    pub of: String,
    /// Seconds of a decode step by the rows of the batch, ascending in rows. Each step computes all
    /// rows.
    pub step: Vec<(u32, f64)>,
    /// Seconds to read a token of a prompt.
    pub prompt_token: f64,
    /// Seconds to begin a request without reading its prompt: to load its constraint and to set its
    /// row.
    pub admit: f64,
    /// Seconds to compile a constraint, and for each of its states.
    pub compile: f64,
    pub compile_state: f64,
    /// Processor seconds of the host for each token sent to a client.
    pub host_token: f64,
    /// Bytes of a row's keys and values per token of its capacity.
    pub cache_token: f64,
    /// Bytes of a state on the device.
    pub state: f64,
}

impl Costs {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let costs: Self =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        costs.check().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(costs)
    }

    fn check(&self) -> Result<()> {
        let numbers = [
            ("prompt_token", self.prompt_token),
            ("admit", self.admit),
            ("compile", self.compile),
            ("compile_state", self.compile_state),
            ("host_token", self.host_token),
            ("cache_token", self.cache_token),
            ("state", self.state),
        ];
        for (name, value) in numbers {
            if !value.is_finite() || value < 0.0 {
                return Err(format!("{name}: {value} is no cost").into());
            }
        }
        if self.step.is_empty() {
            return Err("step: not a single number of rows".into());
        }
        if self.step.windows(2).any(|pair| pair[0].0 >= pair[1].0) || self.step[0].0 == 0 {
            return Err("step: numbers of rows from 1, each above the one before".into());
        }
        if let Some((rows, seconds)) =
            self.step.iter().find(|(_, seconds)| !seconds.is_finite() || *seconds <= 0.0)
        {
            return Err(format!("step: {seconds} seconds for {rows} rows").into());
        }
        Ok(())
    }

    /// The embedded model on a machine with two CPU cores, by `capacity measure`.
    pub fn embedded() -> Self {
        let costs: Self =
            serde_json::from_str(include_str!("costs.json")).expect("the costs are well formed");
        costs.check().expect("the costs are in their ranges");
        costs
    }
}
