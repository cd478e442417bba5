//! The automaton of any constraint over text: finite, or with a stack.

use super::{ByteDfa, ByteStateId, Pushdown, SparseDfa, SparseRows};

/// The automaton over bytes of a constraint, as returned by `Constraint::to_automaton`.
///
/// ```
/// use burn_dfa_tokens::automaton::ByteAutomaton;
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let nested = json!({"type": "array", "items": {"$ref": "#"}});
/// let automaton = Constraint::json_schema(nested)?.to_automaton(&Limits::default())?.unwrap();
/// assert!(matches!(automaton, ByteAutomaton::Pushdown(_)));
/// assert!(automaton.matches(b"[[], [[]]]"));
///
/// let inside = b"[[".iter().fold(automaton.start(), |at, &byte| automaton.next(&at, byte));
/// assert_eq!(inside.stack().len(), 2);
/// assert!(!inside.is_dead() && !automaton.is_accepting(&inside));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum ByteAutomaton {
    /// Without a stack.
    Finite(ByteDfa),
    /// With a stack.
    Pushdown(Pushdown),
}

/// The automaton of a grammar or a schema, before it is dense or compiled.
#[derive(Clone, Debug)]
pub enum SparseAutomaton {
    /// Without a stack.
    Finite(SparseDfa),
    /// With a stack.
    Pushdown(Pushdown),
}

impl SparseAutomaton {
    /// The rows of its states.
    pub fn rows(&self) -> &SparseRows {
        match self {
            Self::Finite(dfa) => dfa.rows(),
            Self::Pushdown(automaton) => automaton.rows(),
        }
    }
}

/// The position of a text in a [`ByteAutomaton`]: the state, and the call states on the stack.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let automaton = Constraint::choice(["ab"])?.to_automaton(&Limits::default())?.unwrap();
/// let start = automaton.start();
/// assert!(start.stack().is_empty());
/// assert!(automaton.next(&start, b'b').is_dead());
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub(super) state: ByteStateId,
    pub(super) stack: Vec<ByteStateId>,
}

impl Configuration {
    /// The state.
    pub fn state(&self) -> ByteStateId {
        self.state
    }

    /// The call states on the stack, from the bottom; always empty without a stack.
    pub fn stack(&self) -> &[ByteStateId] {
        &self.stack
    }

    /// Whether no text of the language has the bytes read so far as a prefix, apart from the limit
    /// of frames: a byte that needs a frame on a full stack leads to the dead state, too.
    pub fn is_dead(&self) -> bool {
        self.state == ByteStateId::DEAD
    }
}

impl ByteAutomaton {
    /// The configuration before the first byte.
    pub fn start(&self) -> Configuration {
        let state = match self {
            Self::Finite(dfa) => dfa.start(),
            Self::Pushdown(_) => ByteStateId::START,
        };
        Configuration { state, stack: Vec::new() }
    }

    /// The configuration after one more byte.
    ///
    /// # Panics
    /// If `at` is from another automaton.
    pub fn next(&self, at: &Configuration, byte: u8) -> Configuration {
        match self {
            Self::Finite(dfa) => Configuration { state: dfa.next(at.state, byte), stack: Vec::new() },
            Self::Pushdown(pushdown) => pushdown.next(at, byte),
        }
    }

    /// Whether the bytes read so far are a text of the language.
    ///
    /// # Panics
    /// If `at` is from another automaton.
    pub fn is_accepting(&self, at: &Configuration) -> bool {
        match self {
            Self::Finite(dfa) => dfa.is_accepting(at.state),
            Self::Pushdown(pushdown) => at.stack.is_empty() && pushdown.is_accepting(at.state),
        }
    }

    /// Whether `bytes`, as a whole, are a text of the language.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut at = self.start();
        for &byte in bytes {
            at = self.next(&at, byte);
            if at.is_dead() {
                return false;
            }
        }
        self.is_accepting(&at)
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        match self {
            Self::Finite(dfa) => dfa.state_count(),
            Self::Pushdown(pushdown) => pushdown.state_count(),
        }
    }

    /// The maximum number of frames on the stack; 0 without a stack.
    pub fn frames(&self) -> usize {
        match self {
            Self::Finite(_) => 0,
            Self::Pushdown(pushdown) => pushdown.frames(),
        }
    }
}
