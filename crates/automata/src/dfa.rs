//! The byte-level automaton of a constraint over text.

use std::fmt;

/// A state of a [`ByteDfa`]. The states of a `CompiledConstraint` are another type, `StateId`.
///
/// ```
/// use burn_dfa_tokens::automaton::ByteStateId;
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let dfa = Constraint::regex("ab")?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert_eq!(dfa.start(), ByteStateId::START);
/// assert_eq!(dfa.next(dfa.start(), b'b'), ByteStateId::DEAD);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteStateId(pub u32);

impl ByteStateId {
    /// The state without a path to an accepting state: no word begins with the bytes read so far.
    pub const DEAD: Self = Self(0);
    /// The state before the first byte, in every automaton with a nonempty language.
    pub const START: Self = Self(1);

    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ByteStateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A deterministic finite automaton over bytes: total, trimmed and minimal.
///
/// State 0 is [`ByteStateId::DEAD`]. Every other state is reachable from the start and can reach an
/// accepting state; no two states accept the same language. Bytes with equal transitions in all
/// states share a class; classes are numbered in order of their first byte. Two automata of the
/// same language are equal (`==`).
///
/// The automaton of a JSON schema is the exception: it is not minimized, so a few of its states may
/// accept the same language. The result of any operation on it, such as the union with itself, is
/// minimal.
///
/// ```
/// use burn_dfa_tokens::Constraint;
/// use burn_dfa_tokens::Limits;
///
/// let dfa = Constraint::regex("ab*")?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"abb"));
/// assert!(!dfa.matches(b"ba"));
/// assert_eq!(dfa.state_count(), 3); // dead, start, after `a`
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ByteDfa {
    /// Class of each byte.
    classes: [u8; 256],
    class_count: usize,
    /// `[states, classes]`, row by row.
    transitions: Vec<u32>,
    accepting: Vec<bool>,
    start: ByteStateId,
}

impl ByteDfa {
    /// Builds a DFA from parts that already satisfy its invariants.
    #[doc(hidden)]
    pub fn from_parts(
        classes: [u8; 256],
        class_count: usize,
        transitions: Vec<u32>,
        accepting: Vec<bool>,
        start: ByteStateId,
    ) -> Self {
        debug_assert_eq!(transitions.len(), accepting.len() * class_count);
        Self { classes, class_count, transitions, accepting, start }
    }

    /// The automaton of the empty language.
    pub(super) fn empty() -> Self {
        Self::from_parts([0; 256], 1, vec![0], vec![false], ByteStateId::DEAD)
    }

    /// The state before any byte; [`ByteStateId::DEAD`] if the language is empty.
    pub fn start(&self) -> ByteStateId {
        self.start
    }

    /// The state after `byte` in `state`.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn next(&self, state: ByteStateId, byte: u8) -> ByteStateId {
        self.next_by_class(state, self.classes[byte as usize] as usize)
    }

    /// The state after any byte of class `class` in `state`.
    ///
    /// # Panics
    /// If `state` or `class` is not of this automaton.
    pub fn next_by_class(&self, state: ByteStateId, class: usize) -> ByteStateId {
        assert!(class < self.class_count);
        ByteStateId(self.transitions[state.index() * self.class_count + class])
    }

    /// The next states of `state`, by class.
    #[doc(hidden)]
    pub fn row(&self, state: ByteStateId) -> &[u32] {
        &self.transitions[state.index() * self.class_count..][..self.class_count]
    }

    /// Whether the bytes read so far are a word of the language.
    ///
    /// # Panics
    /// If `state` is not a state of this automaton.
    pub fn is_accepting(&self, state: ByteStateId) -> bool {
        self.accepting[state.index()]
    }

    /// Number of states, [`ByteStateId::DEAD`] included.
    pub fn state_count(&self) -> usize {
        self.accepting.len()
    }

    /// Number of byte classes, 1 to 256.
    pub fn class_count(&self) -> usize {
        self.class_count
    }

    /// The class of every byte.
    pub fn classes(&self) -> &[u8; 256] {
        &self.classes
    }

    /// The bytes as runs of one class, in order: `(first, last, class)`.
    #[doc(hidden)]
    pub fn intervals(&self) -> Vec<(u8, u8, usize)> {
        let mut intervals: Vec<(u8, u8, usize)> = Vec::new();
        for byte in 0..=u8::MAX {
            let class = self.classes[byte as usize] as usize;
            match intervals.last_mut() {
                Some((_, last, same)) if *same == class => *last = byte,
                _ => intervals.push((byte, byte, class)),
            }
        }
        intervals
    }

    /// Whether the language has no word.
    pub fn is_empty(&self) -> bool {
        self.start == ByteStateId::DEAD
    }

    /// Whether `bytes`, as a whole, are a word of the language.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let end = bytes.iter().fold(self.start, |state, &byte| self.next(state, byte));
        self.is_accepting(end)
    }
}

impl fmt::Debug for ByteDfa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteDfa")
            .field("states", &self.state_count())
            .field("classes", &self.class_count)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
