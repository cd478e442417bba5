//! The constraint over *tokens*: a host table that a device can hold.
//!
//! A [`TokenTable`] is a deterministic automaton whose alphabet is a vocabulary. Tokens that act alike in
//! every state share a *class*, so the table of all states and tokens `T[s, v]` is stored without loss as
//! `D[s, class[v]]`, with `D` of shape `[states, classes]` and `class` of shape `[vocabulary]`.
//!
//! # Reserved states
//! | state | entered by | allows |
//! |---|---|---|
//! | [`StateId::DEAD`] | no legal token; as an entry of the table it means "illegal" | nothing |
//! | [`StateId::DONE`] | an end-of-sequence token in an accepting state | end-of-sequence tokens, for ever |
//! | [`StateId::FREE`] | rows without a constraint | every token of the vocabulary, special ones too; end of sequence leads to `DONE` |
//!
//! # Reserved classes
//! Class 0 ([`TokenTable::NEVER`]) is for ids that no state allows (ids past the vocabulary, unused ids),
//! class 1 ([`TokenTable::EOS`]) for the end-of-sequence ids, class 2 ([`TokenTable::MUTE`]) for ids that
//! only `FREE` allows: special tokens, and tokens that fit nowhere in the constraint.
//!
//! # Invariants
//! - every entry of `D` is a state, every entry of `class` a class;
//! - from every state but `DEAD`, some token path leads to `DONE`: no dead ends;
//! - special tokens never match as text.

mod build;
mod columns;
mod compile;

use std::fmt;

use crate::automaton::StateId;
use crate::constraint::{Constraint, Lowered};
use crate::error::{Error, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::{Fingerprint, TokenId, Vocabulary};

impl StateId {
    /// The state after the end of the sequence.
    pub const DONE: Self = Self(1);
    /// The state of a row without a constraint.
    pub const FREE: Self = Self(2);
    /// Number of reserved states; the states of a constraint follow them.
    pub const RESERVED: u32 = 3;
}

/// A constraint compiled for one vocabulary; see the [module](self) for its shape and invariants.
///
/// ```
/// use burn_dfa::{Constraint, Limits, StateId, TokenId, TokenTable, Vocabulary};
///
/// // 0: a, 1: b, 2: end of sequence
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let table = TokenTable::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
///
/// let start = table.start();
/// assert_eq!(table.next(start, TokenId(1)), StateId::DEAD);
/// let after_a = table.next(start, TokenId(0));
/// assert!(table.is_accepting(after_a));
/// assert_eq!(table.next(after_a, TokenId(2)), StateId::DONE);
/// assert_eq!(table.tokens_to_end(start), 2); // `a`, end of sequence
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TokenTable {
    /// `[states, classes]`, row by row.
    next: Vec<u32>,
    /// `[vocabulary]`.
    class: Vec<u32>,
    class_count: usize,
    /// `[states]`; `u32::MAX` for `DEAD`.
    tokens_to_end: Vec<u32>,
    start: StateId,
    fingerprint: Fingerprint,
}

impl TokenTable {
    /// The class of ids that no state allows.
    pub const NEVER: u32 = 0;
    /// The class of the end-of-sequence ids.
    pub const EOS: u32 = 1;
    /// The class of ids that only an unconstrained row may emit.
    pub const MUTE: u32 = 2;
    /// Number of reserved classes.
    const RESERVED_CLASSES: usize = 3;

    /// Compiles `constraint` for `vocabulary`.
    ///
    /// # Errors
    /// - [`Error::is_limit`]: a limit was breached;
    /// - [`Error::is_unsatisfiable`]: no sequence of tokens satisfies the constraint;
    /// - [`Error::is_incompatible_vocabulary`]: the constraint names token ids that the vocabulary lacks, or
    ///   the vocabulary has no end-of-sequence id;
    /// - whatever lowering the constraint yields, see [`Constraint`].
    pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        if vocabulary.eos().is_empty() {
            return Err(Error::incompatible_vocabulary(
                "it names no end-of-sequence id, so no output could ever end: name one with `Vocabulary::with_eos`",
            ));
        }
        let meter = Meter::start(limits);
        match constraint.lower(&meter)? {
            Lowered::Bytes(dfa) => compile::from_bytes(&dfa, vocabulary, &meter),
            Lowered::Tokens(automaton) => compile::from_tokens(&automaton, vocabulary, &meter),
        }
    }

    /// The table of a row without a constraint: it starts in [`StateId::FREE`] and allows every token of
    /// `vocabulary`.
    pub fn unconstrained(vocabulary: &Vocabulary) -> Self {
        build::unconstrained(vocabulary)
    }

    /// The state before the first token.
    pub fn start(&self) -> StateId {
        self.start
    }

    /// Number of states, reserved ones included.
    pub fn state_count(&self) -> usize {
        self.tokens_to_end.len()
    }

    /// Number of token classes, reserved ones included.
    pub fn class_count(&self) -> usize {
        self.class_count
    }

    /// Number of token ids of the vocabulary; ids from here on are never allowed.
    pub fn vocabulary_len(&self) -> usize {
        self.class.len()
    }

    /// The fingerprint of the vocabulary that the table was compiled for.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The state after `token` in `state`; [`StateId::DEAD`] where it is illegal.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn next(&self, state: StateId, token: TokenId) -> StateId {
        let class = self.class.get(token.index()).copied().unwrap_or(Self::NEVER);
        self.next_by_class(state, class)
    }

    /// The state after a token of class `class`.
    ///
    /// # Panics
    /// Where `state` or `class` is not of the table.
    pub fn next_by_class(&self, state: StateId, class: u32) -> StateId {
        StateId(self.row(state)[class as usize])
    }

    /// The row of `state` in `D`: the next state for each class, shape `[classes]`.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn row(&self, state: StateId) -> &[u32] {
        &self.next[state.index() * self.class_count..][..self.class_count]
    }

    /// The class of every token id, shape `[vocabulary]`.
    pub fn classes(&self) -> &[u32] {
        &self.class
    }

    /// Whether the output may end in `state`.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.next_by_class(state, Self::EOS) != StateId::DEAD
    }

    /// The least number of tokens, end of sequence included, from `state` to [`StateId::DONE`]:
    /// 0 in `DONE`, 1 in accepting states, 0 in `FREE` (which has no end to reach), `u32::MAX` in `DEAD`.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn tokens_to_end(&self, state: StateId) -> u32 {
        self.tokens_to_end[state.index()]
    }

    /// The token ids that `state` allows, in order.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn allowed(&self, state: StateId) -> impl Iterator<Item = TokenId> + '_ {
        let row = self.row(state);
        let ids = self.class.iter().enumerate();
        ids.filter(|&(_, &class)| row[class as usize] != StateId::DEAD.0).map(|(id, _)| TokenId(id as u32))
    }

    /// Whether `tokens` are an output of the constraint from start to end: text, then the end of sequence, once
    /// or more.
    pub fn accepts(&self, tokens: &[TokenId]) -> bool {
        let end = tokens.iter().fold(self.start, |state, &token| self.next(state, token));
        end == StateId::DONE
    }

    /// Refuses a vocabulary other than the one the table was compiled for.
    ///
    /// # Errors
    /// [`Error::is_incompatible_vocabulary`].
    pub fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<()> {
        if self.fingerprint == vocabulary.fingerprint() {
            return Ok(());
        }
        Err(Error::incompatible_vocabulary(format!(
            "the table was compiled for vocabulary {}, this one is {}: compile the constraint for it",
            self.fingerprint,
            vocabulary.fingerprint()
        )))
    }

    /// Checks the invariants that keep a device from reading out of bounds: shapes, state ids, class ids.
    ///
    /// # Errors
    /// [`Error::is_table`], naming the entry.
    pub fn validate(&self) -> Result<()> {
        let (states, classes) = (self.state_count(), self.class_count);
        if states < StateId::RESERVED as usize || classes < Self::RESERVED_CLASSES {
            return Err(Error::table(format!(
                "{states} states and {classes} classes are fewer than the reserved ones"
            )));
        }
        if self.next.len() != states * classes {
            return Err(Error::table(format!(
                "{} transitions for {states} states and {classes} classes",
                self.next.len()
            )));
        }
        if self.start.index() >= states || self.start == StateId::DEAD {
            return Err(Error::table(format!("start state {} of {states} states", self.start)));
        }
        if let Some(at) = self.next.iter().position(|&next| next as usize >= states) {
            return Err(Error::table(format!(
                "state {}, class {}: next state {} of {states} states",
                at / classes,
                at % classes,
                self.next[at]
            )));
        }
        if let Some(id) = self.class.iter().position(|&class| class as usize >= classes) {
            return Err(Error::table(format!("token {id}: class {} of {classes}", self.class[id])));
        }
        Ok(())
    }
}

impl fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenTable")
            .field("states", &self.state_count())
            .field("classes", &self.class_count)
            .field("vocabulary", &self.class.len())
            .field("start", &self.start)
            .field("tokens_to_end", &self.tokens_to_end(self.start))
            .finish_non_exhaustive()
    }
}
