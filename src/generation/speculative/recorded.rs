//! A speculative step, recorded and replayed.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use burn::tensor::Device;

use super::drafter::Drafter;
use super::model::TreeLm;
use super::session::{SpeculativeSession, SpeculativeSteps};
use crate::error::Result;
use crate::generation::graph::{StepGraph, record_step, replay};

/// Steps that recording may take: three to warm up, and the recorded one.
pub(super) const RECORDING: usize = 4;

/// A session behind the graph of its step.
pub(super) struct RecordedSession<'r, M: TreeLm, D> {
    /// Dropped before the tensors that it replays on.
    graph: StepGraph<'r>,
    session: Rc<RefCell<SpeculativeSession<'r, M, D>>>,
}

impl<'r, M: TreeLm, D: Drafter + 'r> RecordedSession<'r, M, D> {
    /// Records the step of a session that has begun; gives the number of steps taken by then.
    pub(super) fn new(session: SpeculativeSession<'r, M, D>, device: &Device) -> Result<(Self, usize)> {
        let session = Rc::new(RefCell::new(session));
        let step: Box<dyn FnMut() + 'r> = {
            let session = session.clone();
            Box::new(move || session.borrow_mut().step())
        };
        let graph = record_step(device, step, "use `speculate`")?;
        // A device that records a step may or may not take it.
        let taken = session.borrow().steps()?;
        Ok((Self { graph, session }, taken))
    }
}

impl<M: TreeLm, D: Drafter> SpeculativeSteps for RecordedSession<'_, M, D> {
    fn step(&mut self) {
        // As `replay` asks: the closure of the graph owns the session, which keeps the tensors that a step uses, and
        // it is reached through this alone, on one thread, as it holds an `Rc`.
        replay(&mut self.graph);
    }

    fn read(&self, steps: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)> {
        self.session.borrow().read(steps)
    }
}
