//! The arrays of a compiled constraint, on the host.

use std::sync::Arc;

use super::distance::Distances;
use super::lazy_class_tokens::LazyClassTokens;
use super::rows::{TransitionRows, TransitionView};
use super::stack::{Calls, StackGraph, StackTop};
use super::token_slices::CharTransitionCache;
use super::{ClassMap, CompiledConstraint, RowPosition, Shortest, SpecialTokens, StateId, reserved_column};
use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::{Fingerprint, TokenId, Vocabulary};

/// The arrays of a compiled constraint.
#[derive(Clone, PartialEq, Eq)]
pub struct ConstraintParts {
    /// `D`, `[states, columns]`.
    pub next: TransitionRows,
    /// How a token is read.
    pub reading: TokenReading,
    /// `[states]`: an upper bound on the number of tokens to the end, or with calls to the nearest
    /// exit of the state's procedure; `u32::MAX` if no token path leads there. Counted in bytes if
    /// every byte that a byte-level constraint reads is a token, else in tokens.
    pub bound_to_end: Vec<u32>,
    /// The distances in tokens.
    pub(super) distances: Distances,
    /// The effects of states on the stack, for a byte-level constraint with calls.
    pub calls: Option<Arc<Calls>>,
    /// The legal tokens of forced text in a byte-level constraint; a token-level constraint has no
    /// other tokens.
    pub shortest: Shortest,
    pub(super) class_tokens: LazyClassTokens,
    /// The state before the first token.
    pub start: StateId,
    /// The number of tokens of the vocabulary.
    pub vocabulary_len: usize,
    /// The fingerprint of the vocabulary.
    pub fingerprint: Fingerprint,
}

/// How tokens are read: the columns of `D` that a token passes.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenReading {
    /// One column each, its class: `[vocabulary]`.
    Classes(ClassMap),
    /// Text byte by byte, through the column of each byte; each other token in one reserved column.
    Bytes {
        /// The column of each byte.
        column_of: Box<[u32; 256]>,
        /// The vocabulary.
        vocabulary: Vocabulary,
        /// Tokens that are not read as text.
        special: SpecialTokens,
        /// How its characters are read.
        char_transitions: Box<CharTransitionCache>,
    },
}

impl ConstraintParts {
    /// Number of columns of `D`.
    pub fn columns(&self) -> usize {
        self.next.columns()
    }

    /// Whether tokens are followed byte by byte.
    pub fn is_byte_level(&self) -> bool {
        matches!(self.reading, TokenReading::Bytes { .. })
    }

    /// An upper bound on the frames that a token adds to the stack at any time; 0 without calls.
    pub fn pushes(&self) -> u32 {
        match (&self.calls, &self.reading) {
            (Some(calls), TokenReading::Bytes { vocabulary, .. }) => calls.pushes(vocabulary),
            _ => 0,
        }
    }

    #[inline]
    pub(super) fn row(&self, state: StateId) -> &[u32] {
        self.next.row(state)
    }

    /// The transitions by bytes from a state of a byte-level constraint.
    #[inline]
    pub(super) fn transitions(&self, state: StateId) -> TransitionView<'_> {
        match &self.reading {
            TokenReading::Bytes { column_of, .. } => self.next.transitions(state, column_of),
            TokenReading::Classes(_) => TransitionView::Runs(&[]),
        }
    }

    /// The state after `token`; with calls, on an empty stack.
    pub fn next(&self, state: StateId, token: TokenId) -> StateId {
        if let Some(calls) = &self.calls {
            let position = RowPosition::unlimited(state);
            let (mut stacks, top) = StackGraph::of(self, calls, &position);
            return self.next_on(state, token, &mut stacks, top).0;
        }
        match &self.reading {
            TokenReading::Classes(class) => {
                let class = class.of(token).unwrap_or(CompiledConstraint::NEVER);
                StateId(self.row(state)[class as usize])
            }
            TokenReading::Bytes { vocabulary, special, column_of, .. } => {
                if let Some(column) = special.column(token) {
                    return StateId(self.row(state)[column as usize]);
                }
                let Some(bytes) = vocabulary.bytes(token) else {
                    return StateId(self.row(state)[reserved_column(vocabulary, token) as usize]);
                };
                let end = bytes.iter().try_fold(state, |state, &byte| {
                    let next = self.next.transitions(state, column_of).after(byte);
                    (next != StateId::DEAD).then_some(next)
                });
                // Live bytes are not enough: some token path must lead to the end.
                end.filter(|&end| self.has_end(end) && !self.is_too_short(state, bytes))
                    .unwrap_or(StateId::DEAD)
            }
        }
    }

    /// The bytes of a token of text.
    pub(super) fn text_of(&self, token: TokenId) -> Option<&[u8]> {
        let TokenReading::Bytes { vocabulary, special, .. } = &self.reading else { return None };
        vocabulary.bytes(token).filter(|_| special.column(token).is_none())
    }

    /// Follows bytes from a state up to the first call or RETURN; returns the entered state and the
    /// remaining bytes.
    pub(super) fn enter<'b>(
        &self,
        calls: &Calls,
        mut state: StateId,
        mut bytes: &'b [u8],
    ) -> (StateId, &'b [u8]) {
        while let Some((&byte, rest)) = bytes.split_first()
            && calls.is_plain(state)
        {
            (state, bytes) = (self.transitions(state).after(byte), rest);
        }
        (state, bytes)
    }

    /// The state and the stack after `bytes`, for a row that has just entered the state `entered`.
    pub(super) fn follow_on(
        &self,
        entered: StateId,
        bytes: &[u8],
        stacks: &mut StackGraph,
        top: StackTop,
    ) -> (StateId, StackTop) {
        bytes.iter().fold(stacks.epsilon_closure(entered, top), |(state, top), &byte| {
            stacks.epsilon_closure(self.transitions(state).after(byte), top)
        })
    }

    /// The state and the stack after `token`, in a constraint with calls.
    pub(super) fn next_on(
        &self,
        state: StateId,
        token: TokenId,
        stacks: &mut StackGraph,
        top: StackTop,
    ) -> (StateId, StackTop) {
        let TokenReading::Bytes { vocabulary, special, .. } = &self.reading else {
            return (StateId::DEAD, top);
        };
        match (self.text_of(token), special.column(token)) {
            (Some(bytes), _) if self.is_too_short(state, bytes) => (StateId::DEAD, top),
            (Some(bytes), _) => self.follow_on(state, bytes, stacks, top),
            (None, Some(column)) => stacks.epsilon_closure(StateId(self.row(state)[column as usize]), top),
            (None, None) => {
                let column = reserved_column(vocabulary, token);
                (StateId(self.row(state)[column as usize]), top)
            }
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let (states, columns) = (self.bound_to_end.len(), self.columns());
        if states < StateId::RESERVED as usize || columns < CompiledConstraint::RESERVED_COLUMNS {
            return Err(Error::artifact(format!(
                "{states} states and {columns} columns are fewer than the reserved ones"
            )));
        }
        if self.next.states() != states {
            return Err(Error::artifact(format!(
                "rows of {} states, and distances of {states}",
                self.next.states()
            )));
        }
        if self.start.index() >= states || self.start == StateId::DEAD {
            return Err(Error::artifact(format!("start state {} of {states} states", self.start)));
        }
        if let Some((at, next)) = self.next.first_beyond() {
            return Err(Error::artifact(format!(
                "state {}, column {}: next state {next} of {states} states",
                at / columns,
                at % columns
            )));
        }
        let is_beyond = |&(_, column): &(usize, u32)| column as usize >= columns;
        let (what, beyond) = match &self.reading {
            TokenReading::Classes(class) => ("token", class.iter().enumerate().find(is_beyond)),
            TokenReading::Bytes { column_of, .. } => {
                ("byte", column_of.iter().copied().enumerate().find(is_beyond))
            }
        };
        match beyond {
            Some((at, column)) => Err(Error::artifact(format!("{what} {at}: column {column} of {columns}"))),
            None => Ok(()),
        }
    }
}
