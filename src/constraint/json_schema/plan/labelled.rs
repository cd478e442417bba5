//! Automata over the texts of scalars, whose accepting states are labelled with outcomes.

use std::sync::Arc;

use crate::automaton::{ByteDfa, ByteStateId};

/// An automaton over the texts of scalars whose accepting states have outcomes. State 0 is dead.
#[derive(Debug)]
pub(in super::super) enum Labelled {
    /// All texts have one outcome. `intervals` are the bytes as runs of one class.
    Alike { dfa: Arc<ByteDfa>, intervals: Vec<(u8, u8, usize)>, outcome: u32 },
    /// Texts differ in their outcomes: rows of runs, and for each state the outcome of a text that ends there.
    Apart { start: u32, rows: Vec<Vec<(u8, u8, u32)>>, ends: Vec<Option<u32>> },
}

impl Labelled {
    pub(super) fn alike(dfa: Arc<ByteDfa>, outcome: u32) -> Self {
        Self::Alike { intervals: dfa.intervals(), dfa, outcome }
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
            Self::Apart { rows, .. } => rows.len(),
        }
    }

    /// Replaces the contents of `row` by the transitions of a state, in order.
    pub(in super::super) fn row(&self, state: u32, row: &mut Vec<(u8, u8, u32)>) {
        row.clear();
        let (dfa, intervals) = match self {
            Self::Alike { dfa, intervals, .. } => (dfa, intervals),
            Self::Apart { rows, .. } => return row.extend_from_slice(&rows[state as usize]),
        };
        for &(first, last, class) in intervals {
            let to = dfa.next_by_class(ByteStateId(state), class).0;
            match row.last_mut() {
                _ if to == 0 => {}
                Some(run) if run.2 == to && run.1 + 1 == first => run.1 = last,
                _ => row.push((first, last, to)),
            }
        }
    }

    /// Whether a state has transitions.
    pub(in super::super) fn goes_on(&self, state: u32) -> bool {
        match self {
            Self::Alike { dfa, .. } => (0..dfa.class_count())
                .any(|class| dfa.next_by_class(ByteStateId(state), class) != ByteStateId::DEAD),
            Self::Apart { rows, .. } => !rows[state as usize].is_empty(),
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
        let mut row = Vec::new();
        let mut state = self.start();
        for byte in text {
            self.row(state, &mut row);
            state = row.iter().find(|run| run.0 <= *byte && *byte <= run.1)?.2;
        }
        self.end(state)
    }
}
