//! The arrays of a table, on the host.

use std::sync::Arc;

use super::class_tokens::MadeClassTokens;
use super::landings::Landings;
use super::rows::{Leads, TableRows};
use super::runs::Alphabet;
use super::stack::{Calls, Stacks, Top};
use super::{ClassMap, RowPosition, SpecialTokens, StateId, TokenTable, reserved_column};
use crate::error::{Error, Result};
use crate::vocabulary::{Fingerprint, TokenId, Vocabulary};

/// The arrays of a table.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TableParts {
    /// `D`, `[states, columns]`.
    pub(crate) next: TableRows,
    pub(crate) reading: TokenReading,
    /// `[states]`; `u32::MAX` where no token path leads to the end. With calls, to the nearest outcome of the state's piece.
    pub(crate) tokens_to_end: Vec<u32>,
    /// What the states do to the stack, where the table is walked and has calls.
    pub(crate) calls: Option<Arc<Calls>>,
    /// What each token does, where the table has calls and this was asked for.
    pub(crate) landings: Option<Arc<Landings>>,
    pub(super) class_tokens: MadeClassTokens,
    pub(crate) start: StateId,
    pub(crate) vocabulary_len: usize,
    pub(crate) fingerprint: Fingerprint,
}

/// How tokens are read: the columns of `D` that a token passes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum TokenReading {
    /// One column each, its class: `[vocabulary]`.
    Classes(ClassMap),
    /// Text byte by byte, through the column of each byte; everything else in one reserved column.
    Bytes {
        column_of: Box<[u32; 256]>,
        vocabulary: Vocabulary,
        /// Tokens that are not read as text.
        special: SpecialTokens,
        /// How its characters are read.
        alphabet: Box<Alphabet>,
    },
}

impl TableParts {
    /// Number of columns of `D`.
    pub(crate) fn columns(&self) -> usize {
        self.next.columns()
    }

    /// The most frames that a token adds to the stack at any time, at most; 0 where there is none.
    pub(crate) fn pushes(&self) -> u32 {
        match (&self.calls, &self.reading) {
            (Some(calls), TokenReading::Bytes { vocabulary, .. }) => calls.pushes(vocabulary),
            _ => 0,
        }
    }

    #[inline]
    pub(super) fn row(&self, state: StateId) -> &[u32] {
        self.next.row(state)
    }

    /// Where the bytes lead from a state of a walked table.
    #[inline]
    pub(super) fn leads(&self, state: StateId) -> Leads<'_> {
        match &self.reading {
            TokenReading::Bytes { column_of, .. } => self.next.leads(state, column_of),
            TokenReading::Classes(_) => Leads::Runs(&[]),
        }
    }

    /// The same by the runs of a state, where it has some: its row is not written for this.
    #[inline]
    pub(super) fn leads_by_runs(&self, state: StateId) -> Leads<'_> {
        self.next.runs(state).map_or_else(|| self.leads(state), Leads::Runs)
    }

    /// The state after `token`; of a table with calls, on an empty stack.
    pub(crate) fn next(&self, state: StateId, token: TokenId) -> StateId {
        if let Some(calls) = &self.calls {
            let (mut stacks, top) = Stacks::of(calls, &RowPosition::unlimited(state));
            return self.next_on(state, token, &mut stacks, top).0;
        }
        match &self.reading {
            TokenReading::Classes(class) => {
                let class = class.of(token).unwrap_or(TokenTable::NEVER);
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
                    let next = self.next.leads(state, column_of).after(byte);
                    (next != StateId::DEAD).then_some(next)
                });
                // Alive as bytes is not enough: some token path must lead on.
                end.filter(|&end| self.has_end(end)).unwrap_or(StateId::DEAD)
            }
        }
    }

    /// The bytes of a token of text.
    pub(super) fn text_of(&self, token: TokenId) -> Option<&[u8]> {
        let TokenReading::Bytes { vocabulary, special, .. } = &self.reading else { return None };
        vocabulary.bytes(token).filter(|_| special.column(token).is_none())
    }

    /// What bytes enter from a state, up to the first call or RETURN, and the bytes behind that.
    pub(super) fn enter<'b>(
        &self,
        calls: &Calls,
        mut state: StateId,
        mut bytes: &'b [u8],
    ) -> (StateId, &'b [u8]) {
        while let Some((&byte, rest)) = bytes.split_first()
            && calls.is_plain(state)
        {
            (state, bytes) = (self.leads(state).after(byte), rest);
        }
        (state, bytes)
    }

    /// The state after bytes, and the stack then, where a row entered one and they are what comes next.
    pub(super) fn follow_on(
        &self,
        entered: StateId,
        bytes: &[u8],
        stacks: &mut Stacks,
        top: Top,
    ) -> (StateId, Top) {
        bytes.iter().fold(stacks.settle(entered, top), |(state, top), &byte| {
            stacks.settle(self.leads(state).after(byte), top)
        })
    }

    /// The state after `token`, and the stack then, of a table with calls.
    pub(super) fn next_on(
        &self,
        state: StateId,
        token: TokenId,
        stacks: &mut Stacks,
        top: Top,
    ) -> (StateId, Top) {
        let TokenReading::Bytes { vocabulary, special, .. } = &self.reading else {
            return (StateId::DEAD, top);
        };
        match (self.text_of(token), special.column(token)) {
            (Some(bytes), _) => self.follow_on(state, bytes, stacks, top),
            (None, Some(column)) => stacks.settle(StateId(self.row(state)[column as usize]), top),
            (None, None) => {
                let column = reserved_column(vocabulary, token);
                (StateId(self.row(state)[column as usize]), top)
            }
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let (states, columns) = (self.tokens_to_end.len(), self.columns());
        if states < StateId::RESERVED as usize || columns < TokenTable::RESERVED_COLUMNS {
            return Err(Error::table(format!(
                "{states} states and {columns} columns are fewer than the reserved ones"
            )));
        }
        if self.next.states() != states {
            return Err(Error::table(format!(
                "rows of {} states, and distances of {states}",
                self.next.states()
            )));
        }
        if self.start.index() >= states || self.start == StateId::DEAD {
            return Err(Error::table(format!("start state {} of {states} states", self.start)));
        }
        if let Some((at, next)) = self.next.first_beyond() {
            return Err(Error::table(format!(
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
            Some((at, column)) => Err(Error::table(format!("{what} {at}: column {column} of {columns}"))),
            None => Ok(()),
        }
    }
}
