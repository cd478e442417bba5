//! A speculative step, recorded and replayed.

use std::ops::Range;

use super::drafter::Drafter;
use super::model::TreeLm;
use super::session::{SpeculativeSession, SpeculativeSteps};
use crate::generation::recorded::Stepped;
use burn_dfa_tokens::Result;

/// The maximum number of steps taken by recording: three to warm up, and the recorded step.
pub(super) const RECORDING: usize = 4;

impl<M: TreeLm, D: Drafter> SpeculativeSteps for Stepped<'_, SpeculativeSession<'_, M, D>> {
    fn step(&mut self) -> Result<()> {
        Stepped::step(self)
    }

    fn read(&self, steps: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)> {
        self.lock()?.read(steps)
    }
}
