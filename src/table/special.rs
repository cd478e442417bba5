//! Special tokens that a table reads as themselves, not as text: the markers that are tokens.

use super::compile::{Source, TokenRun, check_token};
use super::position::can_end;
use super::{RowPosition, StateId, TableParts, TokenReading, TokenTable};
use crate::automaton::ByteRows;
use crate::constraint::FreeText;
use crate::error::Result;
use crate::vocabulary::{TokenId, Vocabulary};

impl Source<'_> {
    /// Gives the tokens of these special-token edges, which are sorted by token and state, columns of their own.
    pub(super) fn set_special_edges(
        &mut self,
        special: &[(u32, TokenId, u32)],
        vocabulary: &Vocabulary,
    ) -> Result<()> {
        for group in special.chunk_by(|one, other| one.1 == other.1) {
            let token = group[0].1;
            check_token(token, vocabulary)?;
            if let Some(place) = self.tokens.iter().position(|&other| other == token) {
                let runs = std::mem::take(&mut self.runs);
                for TokenRun { from, to, column } in runs {
                    let (from, to) = (from as usize, to as usize);
                    TokenRun::push(&mut self.runs, from..to.min(place).max(from), column);
                    TokenRun::push(&mut self.runs, from.max(place + 1).min(to)..to, column);
                }
            }
            let pairs: Vec<_> = group.iter().map(|&(state, _, next)| (state, next)).collect();
            let (column, last) = (self.columns.intern(&pairs), self.tokens.len());
            self.tokens.to_mut().push(token);
            TokenRun::push(&mut self.runs, last..last + 1, column);
        }
        Ok(())
    }
}

/// The special tokens of a walked table: their columns are the last.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SpecialTokens {
    first: usize,
    count: usize,
    /// A token and its column, counted from `first`.
    tokens: Vec<(TokenId, u32)>,
}

impl SpecialTokens {
    /// A column from `first` on for every token of these special-token edges, which are sorted by it.
    pub(super) fn new(
        special: &[(u32, TokenId, u32)],
        first: usize,
        vocabulary: &Vocabulary,
    ) -> Result<Self> {
        let mut tokens: Vec<_> = special.iter().map(|&(_, token, _)| token).collect();
        tokens.dedup();
        tokens.iter().try_for_each(|&token| check_token(token, vocabulary))?;
        Ok(Self { first, count: tokens.len(), tokens: tokens.into_iter().zip(0..).collect() })
    }

    /// `count` columns from `first` on, for `tokens` with their columns counted from there.
    pub(super) fn of_columns(first: usize, count: usize, tokens: Vec<(TokenId, u32)>) -> Self {
        Self { first, count, tokens }
    }

    /// The same columns for the ids that stand for these tokens.
    pub(super) fn prune(&self, ids: &[TokenId]) -> Self {
        let tokens = ids.iter().enumerate().filter_map(|(id, &token)| {
            let (_, column) = self.tokens.iter().find(|mark| mark.0 == token)?;
            Some((TokenId(id as u32), *column))
        });
        Self { tokens: tokens.collect(), ..*self }
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.count
    }

    /// The tokens, and their columns counted from the first of them.
    pub(crate) fn tokens(&self) -> &[(TokenId, u32)] {
        &self.tokens
    }

    /// The column of a token; `None` where it is none of these.
    #[inline]
    pub(crate) fn column(&self, token: TokenId) -> Option<u32> {
        let mark = self.tokens.iter().find(|mark| mark.0 == token);
        mark.map(|&(_, column)| self.first as u32 + column)
    }

    /// Their part of a row.
    pub(crate) fn of<'a>(&self, row: &'a [u32]) -> &'a [u32] {
        &row[self.first..]
    }
}

impl FreeText {
    /// Writes into the rows of a walked table, whose states have numbers greater by `shift`, what is not text: tokens without
    /// bytes leave free text as it is, and special tokens follow their edges.
    pub(super) fn write(&self, special: &SpecialTokens, columns: usize, shift: u32, next: &mut [u32]) {
        for state in 1 + shift..=self.states + shift {
            next[state as usize * columns + TokenTable::UNMATCHED as usize] = state;
        }
        for &(state, token, to) in &self.special_edges {
            if let Some(column) = special.column(token) {
                next[(state + shift) as usize * columns + column as usize] = to + shift;
            }
        }
    }
}

/// For each class of bytes whether a token that is read as text is one byte of it.
pub(super) fn spelled_classes(rows: &ByteRows, free: &FreeText, vocabulary: &Vocabulary) -> Vec<bool> {
    let classes = rows.classes();
    let mut spelled = vec![false; rows.class_count()];
    if free.special_edges.is_empty() {
        for (&class, &is_spelled) in classes.iter().zip(vocabulary.spelled_bytes()) {
            spelled[class as usize] |= is_spelled;
        }
    } else {
        let is_special = |id| free.special_edges.iter().any(|&(_, token, _)| token == id);
        for (id, bytes) in vocabulary.iter() {
            if let [byte] = bytes
                && !is_special(id)
            {
                spelled[classes[*byte as usize] as usize] = true;
            }
        }
    }
    spelled
}

impl TableParts {
    /// The special tokens of a walked table; a tabulated one has none, as its tokens are read by class.
    pub(super) fn special(&self) -> &SpecialTokens {
        static NONE: SpecialTokens = SpecialTokens { first: 0, count: 0, tokens: Vec::new() };
        match &self.reading {
            TokenReading::Classes(_) => &NONE,
            TokenReading::Bytes { special, .. } => special,
        }
    }

    /// Takes out the special-token edges to where no token path leads on.
    pub(super) fn seal_special_edges(&mut self) {
        let (first, columns) = (self.columns - self.special().columns(), self.columns);
        for row in self.next.chunks_exact_mut(columns).skip(StateId::RESERVED as usize) {
            let lost = |to: u32| !can_end(&self.tokens_to_end, StateId(to), RowPosition::UNLIMITED);
            row[first..].iter_mut().filter(|to| lost(**to)).for_each(|to| *to = StateId::DEAD.0);
        }
    }
}
