//! Special tokens of a byte-level constraint, read as themselves and not as text: marker tokens,
//! and tokens named by a grammar.

use super::position::can_end;
use super::rows::TransitionRows;
use super::{ConstraintParts, RowPosition, StateId, TokenReading};
use burn_dfa_constraints::FreeText;
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// Maximum number of columns of special tokens.
pub(super) const MAX_COLUMNS: usize = 1024;

/// The special tokens of a byte-level constraint: their columns are the last. If a special token is
/// also text, its column includes the transition by its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SpecialTokens {
    first: usize,
    count: usize,
    /// A token and its column, counted from `first`; sorted by token.
    tokens: Vec<(TokenId, u32)>,
}

impl SpecialTokens {
    /// `count` columns from `first` on, for sorted `tokens` with their columns counted from
    /// `first`.
    pub(super) fn of_columns(first: usize, count: usize, tokens: Vec<(TokenId, u32)>) -> Self {
        Self { first, count, tokens }
    }

    /// The same columns for the draft ids of the special tokens.
    pub(super) fn prune(&self, ids: &[TokenId]) -> Self {
        let tokens =
            ids.iter().enumerate().filter_map(|(id, &token)| Some((TokenId(id as u32), self.number(token)?)));
        Self { tokens: tokens.collect(), ..*self }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.count
    }

    /// The tokens, and their columns counted from the first special column.
    pub fn tokens(&self) -> &[(TokenId, u32)] {
        &self.tokens
    }

    /// The column of a token; `None` if it is not special.
    #[inline]
    pub fn column(&self, token: TokenId) -> Option<u32> {
        self.number(token).map(|column| self.first as u32 + column)
    }

    #[inline]
    fn number(&self, token: TokenId) -> Option<u32> {
        number_of(&self.tokens, token)
    }

    /// The special columns of a state's row.
    pub fn of<'a>(&self, rows: &'a TransitionRows, state: StateId) -> &'a [u32] {
        rows.last_columns(state, self.first)
    }
}

/// The number of a token in a sorted list.
#[inline]
pub(super) fn number_of(tokens: &[(TokenId, u32)], token: TokenId) -> Option<u32> {
    let at = tokens.binary_search_by_key(&token, |&(token, _)| token).ok()?;
    Some(tokens[at].1)
}

/// For each class of bytes, whether one of its bytes is a text token; markers do not count.
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

impl ConstraintParts {
    /// The special tokens of a byte-level constraint; a token-level constraint has none, because
    /// its tokens are read by class.
    pub(super) fn special(&self) -> &SpecialTokens {
        static NONE: SpecialTokens = SpecialTokens { first: 0, count: 0, tokens: Vec::new() };
        match &self.reading {
            TokenReading::Classes(_) => &NONE,
            TokenReading::Bytes { special, .. } => special,
        }
    }

    /// Removes the special-token edges to states without a token path to the end.
    pub(super) fn seal_special_edges(&mut self, threads: usize) {
        let count = self.special().columns();
        if count == 0 {
            return;
        }
        let columns = self.columns();
        for row in self.next.all_mut(threads).chunks_exact_mut(columns).skip(StateId::RESERVED as usize) {
            let lost = |to: u32| !can_end(&self.bound_to_end, StateId(to), RowPosition::UNLIMITED);
            row[columns - count..].iter_mut().filter(|to| lost(**to)).for_each(|to| *to = StateId::DEAD.0);
        }
    }
}
