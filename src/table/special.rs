//! Special tokens that a walked table reads as themselves, not as text: markers that are tokens, and those that a grammar names.

use super::position::can_end;
use super::rows::TableRows;
use super::{RowPosition, StateId, TableParts, TokenReading};
use crate::constraint::FreeText;
use crate::vocabulary::{TokenId, Vocabulary};

/// Most columns of special tokens.
pub(super) const MOST_COLUMNS: usize = 1024;

/// The special tokens of a walked table: their columns are the last. Some of them may be text, which their columns follow as well.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SpecialTokens {
    first: usize,
    count: usize,
    /// A token and its column, counted from `first`; in order of the tokens.
    tokens: Vec<(TokenId, u32)>,
}

impl SpecialTokens {
    /// `count` columns from `first` on, for `tokens`, which are in order, with their columns counted from there.
    pub(super) fn of_columns(first: usize, count: usize, tokens: Vec<(TokenId, u32)>) -> Self {
        Self { first, count, tokens }
    }

    /// The same columns for the ids that stand for these tokens.
    pub(super) fn prune(&self, ids: &[TokenId]) -> Self {
        let tokens =
            ids.iter().enumerate().filter_map(|(id, &token)| Some((TokenId(id as u32), self.number(token)?)));
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
        self.number(token).map(|column| self.first as u32 + column)
    }

    #[inline]
    fn number(&self, token: TokenId) -> Option<u32> {
        number_of(&self.tokens, token)
    }

    /// Their part of the row of a state.
    pub(crate) fn of<'a>(&self, rows: &'a TableRows, state: StateId) -> &'a [u32] {
        rows.last_columns(state, self.first)
    }
}

/// The number that goes with a token of a list in order.
#[inline]
pub(super) fn number_of(tokens: &[(TokenId, u32)], token: TokenId) -> Option<u32> {
    let at = tokens.binary_search_by_key(&token, |&(token, _)| token).ok()?;
    Some(tokens[at].1)
}

/// For each class of bytes whether a token that is read as text is one byte of it; a marker is not.
pub(super) fn spelled_classes(
    classes: &[u8; 256],
    count: usize,
    free: &FreeText,
    vocabulary: &Vocabulary,
) -> Vec<bool> {
    let mut spelled = vec![false; count];
    if free.markers.is_empty() {
        for (&class, &is_spelled) in classes.iter().zip(vocabulary.spelled_bytes()) {
            spelled[class as usize] |= is_spelled;
        }
    } else {
        let is_marker = |id| free.markers.iter().any(|&(_, token, _)| token == id);
        for (id, bytes) in vocabulary.iter() {
            if let [byte] = bytes
                && !is_marker(id)
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
    pub(super) fn seal_special_edges(&mut self, threads: usize) {
        let count = self.special().columns();
        if count == 0 {
            return;
        }
        let columns = self.columns();
        for row in self.next.all_mut(threads).chunks_exact_mut(columns).skip(StateId::RESERVED as usize) {
            let lost = |to: u32| !can_end(&self.tokens_to_end, StateId(to), RowPosition::UNLIMITED);
            row[columns - count..].iter_mut().filter(|to| lost(**to)).for_each(|to| *to = StateId::DEAD.0);
        }
    }
}
