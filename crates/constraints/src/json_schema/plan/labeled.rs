//! Automata over the texts of scalars, with outcomes as labels of accepting states.

use std::sync::{Arc, OnceLock};

use burn_dfa_automata::{ByteDfa, ByteStateId, Rows, Run};

/// An automaton over texts, as a dense table and as rows. The missing form is computed on first
/// use.
#[derive(Debug)]
pub(in super::super) enum Texts {
    Table(ByteDfa, OnceLock<Rows>),
    Rows(Rows, OnceLock<ByteDfa>),
}

impl From<ByteDfa> for Texts {
    fn from(dfa: ByteDfa) -> Self {
        Self::Table(dfa, OnceLock::new())
    }
}

/// For rows numbered like a [`ByteDfa`], with a non-empty language.
impl From<Rows> for Texts {
    fn from(rows: Rows) -> Self {
        Self::Rows(rows, OnceLock::new())
    }
}

impl Texts {
    pub(super) fn dfa(&self) -> &ByteDfa {
        match self {
            Self::Table(dfa, _) => dfa,
            Self::Rows(rows, dfa) => dfa.get_or_init(|| ByteDfa::from(rows.clone())),
        }
    }

    pub(super) fn rows(&self) -> &Rows {
        match self {
            Self::Table(dfa, rows) => rows.get_or_init(|| Rows::from(dfa)),
            Self::Rows(rows, _) => rows,
        }
    }

    /// The first state; 0 if there are no texts.
    pub(super) fn start(&self) -> u32 {
        match self {
            Self::Table(dfa, _) => dfa.start().0,
            Self::Rows(..) => ByteStateId::START.0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start() == 0
    }

    pub(super) fn state_count(&self) -> usize {
        match self {
            Self::Table(dfa, _) => dfa.state_count(),
            Self::Rows(rows, _) => rows.state_count(),
        }
    }

    fn is_accepting(&self, state: u32) -> bool {
        match self {
            Self::Table(dfa, _) => dfa.is_accepting(ByteStateId(state)),
            Self::Rows(rows, _) => rows.is_accepting(state),
        }
    }
}

/// An automaton over the texts of scalars, with outcomes of accepting states. State 0 is dead.
#[derive(Debug)]
pub(in super::super) enum Labeled {
    /// All texts have one outcome.
    Alike { texts: Arc<Texts>, outcome: u32 },
    /// Texts have different outcomes: for each state, the outcome of a text that ends there.
    Apart { start: u32, rows: Rows, ends: Vec<Option<u32>> },
}

impl Labeled {
    pub(in super::super) fn start(&self) -> u32 {
        match self {
            Self::Alike { texts, .. } => texts.start(),
            Self::Apart { start, .. } => *start,
        }
    }

    pub(in super::super) fn state_count(&self) -> usize {
        match self {
            Self::Alike { texts, .. } => texts.state_count(),
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
            Self::Alike { texts, outcome } => texts.is_accepting(state).then_some(*outcome),
            Self::Apart { ends, .. } => ends[state as usize],
        }
    }

    /// The outcomes of texts, repeated for each of their states.
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
                text.iter().fold(texts.start(), |state, &byte| texts.rows().next(state, byte))
            }
            Self::Apart { start, rows, .. } => {
                text.iter().fold(*start, |state, &byte| rows.next(state, byte))
            }
        };
        self.end(end)
    }
}
