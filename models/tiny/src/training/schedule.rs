//! The learning rate: a warm-up, a constant phase, and a linear decay to zero.
//!
//! During the constant phase the rate does not depend on the number of steps, so a run can be
//! stopped and resumed with another number of steps (Hägele et al., 2024, arXiv:2405.18392).

/// Learning rate by step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The rate of the constant phase.
    pub peak: f64,
    /// Steps of linear warm-up.
    pub warmup: usize,
    /// Steps of decay at the end.
    pub decay: usize,
    /// All steps.
    pub steps: usize,
}

impl Schedule {
    /// The learning rate of step `step`, counted from 0.
    pub fn rate(&self, step: usize) -> f64 {
        let rising = (step + 1) as f64 / self.warmup.max(1) as f64;
        let falling = (self.steps.saturating_sub(step)) as f64 / self.decay.max(1) as f64;
        self.peak * rising.min(falling).min(1.0)
    }
}
