//! The rule of a step, on the host: the position of a row after a token, and whether the token may
//! follow.
//!
//! The kernels and Burn's built-in operations have the same two functions, see `kernel::step`.

use super::stack::StackGraph;
use super::{BudgetInterval, CompiledConstraint, ConstraintParts, StateId};
use burn_dfa_vocabulary::TokenId;

/// The position of one row in its compiled constraint.
///
/// ```
/// use burn_dfa_tokens::RowPosition;
/// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("abc.".chars())?.with_eos([TokenId(3)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("abc")?, &vocabulary, &Limits::default())?;
/// let after = |token, remaining| {
///     compiled.after(&RowPosition::new(compiled.start(), remaining), TokenId(token))
/// };
/// assert!(compiled.can_end(&after(0, 4))); // `b`, `c` and the end of the sequence follow
/// assert!(!compiled.can_end(&after(0, 3))); // one token too few
/// assert!(!compiled.can_end(&after(1, 9))); // illegal
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowPosition {
    /// The state of the constraint.
    pub state: StateId,
    /// The number of tokens that may still be emitted, end of sequence included.
    pub remaining: u32,
    /// The frames on the stack from the bottom, each the call state and its costs; see `stack`.
    #[doc(hidden)]
    pub frames: Vec<u32>,
}

impl RowPosition {
    /// The number of remaining tokens of a row without a budget: more than any path to the end
    /// takes, and less than the distance of a state without a path.
    pub const UNLIMITED: u32 = i32::MAX as u32 - 1;

    /// A row in `state` that may emit `remaining` tokens, with an empty stack.
    pub fn new(state: StateId, remaining: u32) -> Self {
        Self { state, remaining, frames: Vec::new() }
    }

    /// A row in `state` without a budget.
    pub fn unlimited(state: StateId) -> Self {
        Self::new(state, Self::UNLIMITED)
    }
}

impl CompiledConstraint {
    /// The position after `token`, legal or not; for an illegal token, the state is
    /// [`StateId::DEAD`].
    ///
    /// # Panics
    /// If the state is not a state of the constraint.
    pub fn after(&self, position: &RowPosition, token: TokenId) -> RowPosition {
        self.parts().after(position, token)
    }

    /// Whether the shortest path to the end fits in the remaining tokens. A token may follow if
    /// this holds for the position [`after`](Self::after) it.
    ///
    /// # Panics
    /// If the state is not a state of the constraint.
    pub fn can_end(&self, position: &RowPosition) -> bool {
        self.parts().can_end(position)
    }
}

impl ConstraintParts {
    /// See [`CompiledConstraint::after`].
    #[inline]
    pub fn after(&self, position: &RowPosition, token: TokenId) -> RowPosition {
        let remaining = position.remaining.saturating_sub(1);
        let Some(calls) = &self.calls else {
            return RowPosition::new(self.next(position.state, token), remaining);
        };
        let text = self.text_of(token);
        if text.is_some_and(|bytes| self.is_too_short(position.state, bytes)) {
            return RowPosition { state: StateId::DEAD, remaining, frames: position.frames.clone() };
        }
        let text = text.map(|bytes| self.enter(calls, position.state, bytes));
        // Most tokens do not change the stack.
        if let Some((state, _)) = text.filter(|&(entered, _)| calls.is_plain(entered)) {
            return RowPosition { state, remaining, frames: position.frames.clone() };
        }
        let (mut stacks, top) = StackGraph::of(self, calls, position);
        let (state, top) = match text {
            Some((entered, rest)) => self.follow_on(entered, rest, &mut stacks, top),
            None => self.next_on(position.state, token, &mut stacks, top),
        };
        RowPosition { state, remaining, frames: stacks.frames(top) }
    }

    /// See [`CompiledConstraint::can_end`].
    #[inline]
    pub fn can_end(&self, position: &RowPosition) -> bool {
        let mut left = BudgetInterval::new(position.remaining);
        self.reach(position.state, &position.frames, &mut left)
    }

    /// Whether a path of any length leads to the end; with calls, to some exit of the state's
    /// procedure.
    #[inline]
    #[doc(hidden)]
    pub fn has_end(&self, state: StateId) -> bool {
        can_end(&self.bound_to_end, state, RowPosition::UNLIMITED)
    }
}

/// Whether a bound on the distance to the end fits in the remaining tokens.
#[inline]
pub(super) fn can_end(bound_to_end: &[u32], state: StateId, remaining: u32) -> bool {
    bound_to_end[state.index()] <= remaining
}
