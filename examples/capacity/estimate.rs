//! Estimates the costs of a model on an unavailable device from its data sheet.
//!
//! The time of a decode step is the greater of two times. The memory time reads all weights once,
//! and for each row the keys and values so far and the logits, which are read twice, to mask and to
//! choose. The compute time is the time of its multiplications. A prompt takes its compute time.
//! This is the roofline model (Williams, Waterman and Patterson, *Roofline: an insightful visual
//! performance model*, 2009). The costs of the host are measured.

use clap::Args;

use super::costs::Costs;
use super::{Result, positive};

/// A model and a device.
#[derive(Args, Clone, Debug)]
pub struct Estimate {
    /// Number of weights of the model.
    #[arg(long, value_parser = positive)]
    weights: f64,
    /// Bytes of a weight, and of a number of keys and values.
    #[arg(long, default_value_t = 2.0, value_parser = positive)]
    bytes: f64,
    /// Layers.
    #[arg(long, value_parser = positive)]
    layers: f64,
    /// Heads of keys and values.
    #[arg(long, value_parser = positive)]
    kv_heads: f64,
    /// Width of a head.
    #[arg(long, default_value_t = 128.0, value_parser = positive)]
    head_dim: f64,
    /// Tokens of the vocabulary.
    #[arg(long, value_parser = positive)]
    vocabulary: f64,
    /// Average tokens of a row: its prompt and half of its answer.
    #[arg(long, value_parser = positive)]
    context: f64,
    /// Bytes per second of the device's memory.
    #[arg(long, value_parser = positive)]
    bandwidth: f64,
    /// Additions and multiplications per second, in the model's type.
    #[arg(long, value_parser = positive)]
    flops: f64,
    /// The fraction of bandwidth and operations that programs reach.
    #[arg(long, default_value_t = 0.6, value_parser = positive)]
    efficiency: f64,
    /// Maximum number of rows; estimates 1, 2, 4 and so on.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_rows: u32,
    /// Token classes of the arena.
    #[arg(long, default_value_t = 512.0, value_parser = positive)]
    classes: f64,
}

impl Estimate {
    /// Costs on such a device, with the host costs of `host`.
    pub fn costs(&self, host: &Costs) -> Result<Costs> {
        if self.efficiency > 1.0 {
            return Err(format!("--efficiency {}: a part of all is at most 1", self.efficiency).into());
        }
        let cache_token = 2.0 * self.layers * self.kv_heads * self.head_dim * self.bytes;
        // Two operations per weight.
        let token = 2.0 * self.weights / (self.flops * self.efficiency);
        let step = |rows: u32| {
            let row = self.context * cache_token + 2.0 * 4.0 * self.vocabulary;
            let bytes = self.weights * self.bytes + f64::from(rows) * row;
            (bytes / (self.bandwidth * self.efficiency)).max(f64::from(rows) * token)
        };
        let rows = (0..).map(|power| 1 << power).take_while(|&rows| rows <= self.max_rows);
        Ok(Costs {
            of: format!(
                "an estimate of {} weights at {} bytes/s and {} operations/s; of the host: {}",
                self.weights, self.bandwidth, self.flops, host.of
            ),
            step: rows.map(|rows| (rows, step(rows))).collect(),
            prompt_token: token,
            cache_token,
            state: 4.0 * self.classes,
            ..host.clone()
        })
    }
}
