//! The constraint of an answer: compiled, or being compiled while the model reads the prompt.

use std::sync::Arc;

use burn_dfa::{CompiledConstraint, PendingConstraint};
use tokio::sync::watch;

use super::cache::{Progress, Refusal};
use super::compile::Wait;
use super::left_out::LeftOut;

/// A constraint whose compilation has ended.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The compiled constraint.
    pub table: CompiledConstraint,
    /// Keywords of its schemas that are not enforced.
    pub left_out: Arc<[LeftOut]>,
}

/// The constraint of an answer.
#[derive(Clone, Debug)]
pub enum Table {
    /// The constraint is compiled.
    Ready(Compiled),
    /// The compilation runs.
    Pending(Pending),
}

/// A constraint that is being compiled.
#[derive(Clone, Debug)]
pub struct Pending {
    pub(super) table: PendingConstraint,
    pub(super) progress: watch::Receiver<Option<Progress>>,
    /// Cancels the compilation if no other request waits for it.
    pub(super) _wait: Arc<Wait>,
}

impl Table {
    /// Tokens of the shortest answer; 0 if unknown.
    pub fn tokens_needed(&self) -> usize {
        match self {
            Self::Ready(Compiled { table, .. }) => table.tokens_to_end(table.start()) as usize,
            Self::Pending(_) => 0,
        }
    }

    /// The constraint, if it is compiled.
    pub fn ready(&self) -> Option<Compiled> {
        match self {
            Self::Ready(compiled) => Some(compiled.clone()),
            Self::Pending(Pending { progress, .. }) => match &*progress.borrow() {
                Some(Progress::Done(Ok(compiled))) => compiled.clone(),
                _ => None,
            },
        }
    }

    /// The reason why the compilation failed, if it did.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let Self::Pending(Pending { progress, .. }) = self else { return None };
        match &*progress.borrow() {
            Some(Progress::Done(Err(refusal))) => Some(refusal.clone()),
            _ => None,
        }
    }
}
