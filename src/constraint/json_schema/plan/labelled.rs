//! Automata over the texts of scalars, whose accepting states are labelled with outcomes.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::automaton::{ByteDfa, ByteStateId, Rows, Run};

/// An automaton over the texts of scalars whose accepting states have outcomes. State 0 is dead.
#[derive(Debug)]
pub(in super::super) enum Labelled {
    /// All texts have one outcome. The rows are those of the automaton, made when they are first asked for.
    Alike { dfa: Arc<ByteDfa>, rows: OnceCell<Rows>, outcome: u32 },
    /// Texts differ in their outcomes: for each state the outcome of a text that ends there.
    Apart { start: u32, rows: Rows, ends: Vec<Option<u32>> },
}

impl Labelled {
    pub(super) fn alike(dfa: Arc<ByteDfa>, outcome: u32) -> Self {
        Self::Alike { dfa, rows: OnceCell::new(), outcome }
    }

    pub(in super::super) fn start(&self) -> u32 {
        match self {
            Self::Alike { dfa, .. } => dfa.start().0,
            Self::Apart { start, .. } => *start,
        }
    }

    pub(in super::super) fn state_count(&self) -> usize {
        match self {
            Self::Alike { dfa, .. } => dfa.state_count(),
            Self::Apart { rows, .. } => rows.state_count(),
        }
    }

    /// The transitions of a state, in order.
    pub(in super::super) fn row(&self, state: u32) -> &[Run] {
        match self {
            Self::Alike { dfa, rows, .. } => rows.get_or_init(|| Rows::from(&**dfa)).row(state),
            Self::Apart { rows, .. } => rows.row(state),
        }
    }

    /// The outcome of a text that ends in a state.
    pub(in super::super) fn end(&self, state: u32) -> Option<u32> {
        match self {
            Self::Alike { dfa, outcome, .. } => dfa.is_accepting(ByteStateId(state)).then_some(*outcome),
            Self::Apart { ends, .. } => ends[state as usize],
        }
    }

    /// The outcomes of texts, as often as there is a state for it.
    pub(in super::super) fn outcomes(&self) -> Vec<u32> {
        match self {
            Self::Alike { outcome, .. } => vec![*outcome],
            Self::Apart { ends, .. } => ends.iter().flatten().copied().collect(),
        }
    }

    /// The outcome of a text.
    pub(in super::super) fn outcome(&self, text: &[u8]) -> Option<u32> {
        let end = match self {
            Self::Alike { dfa, .. } => text.iter().fold(dfa.start(), |state, &byte| dfa.next(state, byte)).0,
            Self::Apart { start, rows, .. } => {
                text.iter().fold(*start, |state, &byte| rows.next(state, byte))
            }
        };
        self.end(end)
    }
}
