//! The states of a compiled constraint, and the reserved states common to all.

use std::fmt;

/// A state of a [`CompiledConstraint`](crate::CompiledConstraint), or of the constraints joined by
/// a `DeviceConstraint`. States of automata over bytes are another type,
/// [`ByteStateId`](burn_dfa_automata::ByteStateId).
///
/// The first three states are *reserved*: they mean the same in every compiled constraint, and the
/// other states follow them. The [module](super#reserved-states) lists what each of them allows.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits, StateId, TokenId, CompiledConstraint, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("b"), None])?.with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("a")?, &vocabulary, &Limits::default())?;
/// assert_eq!(compiled.next(compiled.start(), TokenId(1)), StateId::DEAD);
/// let after_a = compiled.next(compiled.start(), TokenId(0));
/// assert_eq!(compiled.next(after_a, TokenId(2)), StateId::DONE);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

impl StateId {
    /// The state that allows no token. As an entry of `D`, it means that the token is illegal.
    pub const DEAD: Self = Self(0);
    /// The state after the end of the sequence.
    pub const DONE: Self = Self(1);
    /// The state of a row without a constraint.
    pub const UNCONSTRAINED: Self = Self(2);
    /// Number of reserved states; the states of a constraint follow them.
    #[doc(hidden)]
    pub const RESERVED: u32 = 3;

    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
