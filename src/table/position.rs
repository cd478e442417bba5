//! The rule of a step, on the host: where a row is after a token, and whether the token may follow.
//!
//! The kernels and Burn's built-in operations have the same two functions, see `kernel::step`.

use super::stack::Stacks;
use super::{StateId, TableParts, TokenTable};
use crate::vocabulary::TokenId;

/// Where one row is in its table.
///
/// ```
/// use burn_dfa::table::RowPosition;
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("abc.".chars())?.with_eos([TokenId(3)])?;
/// let table = TokenTable::compile(&Constraint::regex("abc")?, &vocabulary, &Limits::default())?;
/// let after = |token, remaining| table.after(&RowPosition::new(table.start(), remaining), TokenId(token));
/// assert!(table.can_end(&after(0, 4))); // `b`, `c` and the end of the sequence follow
/// assert!(!table.can_end(&after(0, 3))); // one token too few
/// assert!(!table.can_end(&after(1, 9))); // illegal
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowPosition {
    /// The state of the table.
    pub state: StateId,
    /// The number of tokens that may still be emitted, end of sequence included.
    pub remaining: u32,
    /// The frames on the stack from the bottom, each the call state and its costs; see `stack`.
    pub(crate) frames: Vec<u32>,
}

impl RowPosition {
    /// The number of remaining tokens of a row without a budget: more than any way to the end takes, and less than
    /// the distance of a state from which there is none.
    pub const UNLIMITED: u32 = i32::MAX as u32 - 1;

    /// A row in `state` that may emit `remaining` tokens, with nothing on its stack.
    pub fn new(state: StateId, remaining: u32) -> Self {
        Self { state, remaining, frames: Vec::new() }
    }

    /// A row in `state` without a budget.
    pub fn unlimited(state: StateId) -> Self {
        Self::new(state, Self::UNLIMITED)
    }
}

impl TokenTable {
    /// The position after `token`, whether it may follow or not; of a token that no state allows, the state is
    /// [`StateId::DEAD`].
    ///
    /// # Panics
    /// Where the state is not a state of the table.
    pub fn after(&self, position: &RowPosition, token: TokenId) -> RowPosition {
        self.parts().after(position, token)
    }

    /// Whether the shortest way to the end takes no more tokens than remain. A token may follow where this holds of
    /// the position [`after`](Self::after) it.
    ///
    /// # Panics
    /// Where the state is not a state of the table.
    pub fn can_end(&self, position: &RowPosition) -> bool {
        self.parts().can_end(position)
    }
}

impl TableParts {
    /// See [`TokenTable::after`].
    #[inline]
    pub(crate) fn after(&self, position: &RowPosition, token: TokenId) -> RowPosition {
        let remaining = position.remaining.saturating_sub(1);
        let Some(calls) = &self.calls else {
            return RowPosition::new(self.next(position.state, token), remaining);
        };
        let text = self.text_of(token).map(|bytes| self.enter(calls, position.state, bytes));
        // Most tokens leave the stack as it is.
        if let Some((state, _)) = text.filter(|&(entered, _)| calls.is_plain(entered)) {
            return RowPosition { state, remaining, frames: position.frames.clone() };
        }
        let (mut stacks, top) = Stacks::of(calls, position);
        let (state, top) = match text {
            Some((entered, rest)) => self.follow_on(entered, rest, &mut stacks, top),
            None => self.next_on(position.state, token, &mut stacks, top),
        };
        RowPosition { state, remaining, frames: stacks.frames(top) }
    }

    /// See [`TokenTable::can_end`].
    #[inline]
    pub(crate) fn can_end(&self, position: &RowPosition) -> bool {
        self.to_end(position.state, &position.frames) <= position.remaining
    }

    /// The least number of tokens from a state in which rows rest to the end, with the frames of a position on the stack; a number
    /// beyond all budgets where there is no way.
    #[inline]
    pub(crate) fn to_end(&self, state: StateId, frames: &[u32]) -> u32 {
        match &self.calls {
            None => self.tokens_to_end[state.index()],
            Some(calls) => calls.to_end(state, frames),
        }
    }

    /// Whether there is a way to the end, however long; with calls, to some outcome of the state's piece.
    #[inline]
    pub(crate) fn has_end(&self, state: StateId) -> bool {
        can_end(&self.tokens_to_end, state, RowPosition::UNLIMITED)
    }
}

/// See [`TokenTable::can_end`], of a table with these distances.
#[inline]
pub(super) fn can_end(tokens_to_end: &[u32], state: StateId, remaining: u32) -> bool {
    tokens_to_end[state.index()] <= remaining
}
