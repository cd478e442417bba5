//! Automata over the texts of scalars, whose accepting states are labelled with outcomes.

use std::sync::{Arc, OnceLock};

use crate::automaton::{ByteDfa, ByteStateId, Rows, Run};

/// An automaton over texts, and its rows, made when they are first asked for.
#[derive(Debug)]
pub(in super::super) struct Texts {
    pub(super) dfa: ByteDfa,
    rows: OnceLock<Rows>,
}

impl From<ByteDfa> for Texts {
    fn from(dfa: ByteDfa) -> Self {
        Self { dfa, rows: OnceLock::new() }
    }
}

impl Texts {
    fn rows(&self) -> &Rows {
        self.rows.get_or_init(|| Rows::from(&self.dfa))
    }
}

/// An automaton over the texts of scalars whose accepting states have outcomes. State 0 is dead.
#[derive(Debug)]
pub(in super::super) enum Labelled {
    /// All texts have one outcome.
    Alike { texts: Arc<Texts>, outcome: u32 },
    /// Texts differ in their outcomes: for each state the outcome of a text that ends there.
    Apart { start: u32, rows: Rows, ends: Vec<Option<u32>> },
}

impl Labelled {
    pub(in super::super) fn start(&self) -> u32 {
        match self {
            Self::Alike { texts, .. } => texts.dfa.start().0,
            Self::Apart { start, .. } => *start,
        }
    }

    pub(in super::super) fn state_count(&self) -> usize {
        match self {
            Self::Alike { texts, .. } => texts.dfa.state_count(),
            Self::Apart { rows, .. } => rows.state_count(),
        }
    }

    /// The transitions of a state, in order.
    pub(in super::super) fn row(&self, state: u32) -> &[Run] {
        match self {
            Self::Alike { texts, .. } => texts.rows().row(state),
            Self::Apart { rows, .. } => rows.row(state),
        }
    }

    /// The outcome of a text that ends in a state.
    pub(in super::super) fn end(&self, state: u32) -> Option<u32> {
        match self {
            Self::Alike { texts, outcome } => texts.dfa.is_accepting(ByteStateId(state)).then_some(*outcome),
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
            Self::Alike { texts, .. } => {
                text.iter().fold(texts.dfa.start(), |state, &byte| texts.dfa.next(state, byte)).0
            }
            Self::Apart { start, rows, .. } => {
                text.iter().fold(*start, |state, &byte| rows.next(state, byte))
            }
        };
        self.end(end)
    }
}
