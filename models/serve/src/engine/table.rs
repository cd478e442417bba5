//! The constraint of an answer: compiled, or being compiled while the model reads the prompt.

use burn_dfa::{PendingTable, TokenTable};
use tokio::sync::watch;

use super::cache::{Progress, Refusal};

/// The constraint of an answer.
#[derive(Clone, Debug)]
pub enum Table {
    /// It is compiled.
    Ready(TokenTable),
    /// It is being compiled.
    Pending(Pending),
}

/// A constraint that is being compiled.
#[derive(Clone, Debug)]
pub struct Pending {
    pub(super) table: PendingTable,
    pub(super) progress: watch::Receiver<Option<Progress>>,
}

impl Table {
    /// Tokens of the shortest answer; 0 where that is not known yet.
    pub fn tokens_needed(&self) -> usize {
        match self {
            Self::Ready(table) => table.tokens_to_end(table.start()) as usize,
            Self::Pending(_) => 0,
        }
    }

    /// The table, where it is compiled.
    pub fn ready(self) -> Option<TokenTable> {
        match self {
            Self::Ready(table) => Some(table),
            Self::Pending(Pending { table, .. }) => table.is_ready().then(|| table.wait().ok()).flatten(),
        }
    }

    /// Why there will be no table, where that is known.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let Self::Pending(Pending { progress, .. }) = self else { return None };
        match &*progress.borrow() {
            Some(Progress::Done(Err(refusal))) => Some(refusal.clone()),
            _ => None,
        }
    }
}
