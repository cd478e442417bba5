//! A round of guesses, recorded and replayed.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use burn::tensor::{Device, Graph, capture};

use super::decode::Readable;
use super::drafter::Drafter;
use super::model::TreeLm;
use super::session::SpeculativeSession;
use crate::error::{Error, Result};
use crate::generation::graph::replay;
use crate::kernel;

/// Rounds that recording may run: three to warm up, and the recorded one.
pub(super) const RECORDING: usize = 4;

/// Rounds of a batch behind their graph.
pub(super) struct Recorded<'r, M: TreeLm, D> {
    /// Dropped before the tensors that it replays on.
    graph: Graph<(), Box<dyn FnMut() + 'r>>,
    rounds: Rc<RefCell<SpeculativeSession<'r, M, D>>>,
}

impl<'r, M: TreeLm, D: Drafter + 'r> Recorded<'r, M, D> {
    /// Records the round of a batch that has begun; gives the number of rounds done by then.
    pub(super) fn new(rounds: SpeculativeSession<'r, M, D>, device: &Device) -> Result<(Self, usize)> {
        let rounds = Rc::new(RefCell::new(rounds));
        let round: Box<dyn FnMut() + 'r> = {
            let rounds = rounds.clone();
            Box::new(move || rounds.borrow_mut().round())
        };
        let graph = capture(device, round);
        if !graph.is_hardware() && kernel::is_fused(device) && !kernel::is_flex(device) {
            return Err(Error::model(
                "its round cannot be recorded on this device: the model or the drafter reads back, or makes tensors \
                 from host data; use `speculate`",
            ));
        }
        // A device that records a round may or may not run it.
        let done = rounds.borrow().count()?;
        Ok((Self { graph, rounds }, done))
    }
}

impl<M: TreeLm, D: Drafter> Readable for Recorded<'_, M, D> {
    fn run(&mut self) {
        // As `replay` asks: the closure of the graph owns the rounds, which keep the tensors that a round uses, and
        // they are reached through this alone, on one thread, as it holds an `Rc`.
        replay(&mut self.graph);
    }

    fn read(&self, rounds: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)> {
        self.rounds.borrow().read(rounds)
    }
}
