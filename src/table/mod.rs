//! The constraint over *tokens*: a host table that a device can hold.
//!
//! A [`TokenTable`] is a deterministic automaton whose alphabet is a vocabulary. It is held in one of two forms:
//!
//! - **tabulated**: tokens that act alike in every state share a *class*, so the table of all states and tokens
//!   `T[s, v]` is stored without loss as `D[s, class[v]]`, with `D` of shape `[states, classes]` and `class` of
//!   shape `[vocabulary]`;
//! - **walked**: `D` is the automaton over bytes, `[states, byte classes]`, and a token is followed byte by
//!   byte. There is nothing to compute per token, so the first mask comes at once and automata that are too
//!   large to tabulate can be held.
//!
//! Both are the same thing: a token is a string of columns of `D`, of length one where it is tabulated.
//!
//! A table is saved to a file and loaded from it as an [`Artifact`], and a [`TableCache`] keeps many. One that is
//! still being compiled is a [`PendingTable`].
//!
//! # Reserved states
//! | state | entered by | allows |
//! |---|---|---|
//! | [`StateId::DEAD`] | no legal token; as an entry of the table it means "illegal" | nothing |
//! | [`StateId::DONE`] | an end-of-sequence token in an accepting state | end-of-sequence tokens, for ever |
//! | [`StateId::UNCONSTRAINED`] | rows without a constraint | every token of the vocabulary, special ones too; end of sequence leads to `DONE` |
//!
//! # Reserved classes
//! Class 0 ([`TokenTable::NEVER`]) is for ids that no state allows (ids past the vocabulary, unused ids),
//! class 1 ([`TokenTable::EOS`]) for the end-of-sequence ids, class 2 ([`TokenTable::UNMATCHED`]) for ids that
//! only `UNCONSTRAINED` allows: special tokens, and tokens that fit nowhere in the constraint. States of free text, before a
//! [marker](crate::constraint::Marker), allow special tokens as well, and are left by none of them; where a table has
//! such states, tokens of text that fit nowhere have another class.
//!
//! # Invariants
//! - every entry of `D` is a state, every token reads columns of `D` only;
//! - from every state but `DEAD`, some token path leads to `DONE`: no dead ends;
//! - special tokens never match as text, and a token that is a marker is text nowhere.

mod artifact;
mod build;
mod cache;
mod class_map;
mod class_tokens;
mod columns;
mod compile;
mod forced;
mod landings;
mod left;
mod near;
mod parts;
mod pending;
mod position;
mod prune;
mod pushdown;
mod rows;
mod runs;
mod sample;
mod special;
mod stack;
mod state;
mod steps;
pub(crate) mod symbols;
mod text;
mod walk;
mod whole;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use artifact::{Artifact, Origin};
pub use cache::TableCache;
pub use pending::{PendingTable, TableSender};
pub use position::RowPosition;
pub use state::StateId;

pub(crate) use crate::automaton::FARTHEST;
use crate::constraint::{Called, Constraint, Lowered, TextAutomaton, Unrolled};
use crate::error::{Error, Limit, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::{Fingerprint, TokenId, Vocabulary};
pub(crate) use class_map::ClassMap;
use class_tokens::MadeClassTokens;
pub(crate) use landings::Landings;
pub(crate) use left::Left;
pub(crate) use near::Near;
pub(crate) use parts::{TableParts, TokenReading};
use rows::TableRows;
pub(crate) use runs::{Alphabet, CharacterRun, CharacterRuns};
pub(crate) use special::SpecialTokens;
pub(crate) use text::Unread;
pub(crate) use walk::reserved_column;
use whole::TokenStates;

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
#[derive(Clone)]
pub struct TokenTable {
    parts: Arc<TableParts>,
    unrolled: Option<Unrolled>,
}

impl TokenTable {
    /// The column of ids that no state allows.
    pub const NEVER: u32 = 0;
    /// The column of the end-of-sequence ids.
    pub const EOS: u32 = 1;
    /// The column of ids that only an unconstrained row, or free text, may emit.
    pub const UNMATCHED: u32 = 2;
    /// Number of reserved columns.
    pub(crate) const RESERVED_COLUMNS: usize = 3;

    /// Compiles `constraint` for `vocabulary`: tabulated where that takes at most
    /// [`Limits::tabulated_bytes`] and has at most [`Limits::tabulated_entries`], walked otherwise. A constraint that
    /// [counts tokens](crate::constraint::Expression::max_tokens) is tabulated, however large.
    ///
    /// # Errors
    /// - [`Error::is_limit`]: a limit was breached;
    /// - [`Error::is_unsatisfiable`]: no sequence of tokens satisfies the constraint;
    /// - [`Error::is_incompatible_vocabulary`]: the constraint names token ids that the vocabulary lacks, or
    ///   the vocabulary has no end-of-sequence id;
    /// - whatever lowering the constraint yields, see [`Constraint`].
    pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let meter = Meter::start(limits);
        let lowered = match Self::with_stack(constraint, vocabulary, &meter)? {
            ControlFlow::Break(table) => return Ok(table),
            ControlFlow::Continue(lowered) => lowered,
        };
        let is_large = |states: usize| states.saturating_mul(vocabulary.len()) > limits.tabulated_entries;
        let text = match lowered {
            Lowered::Bytes(text) => text,
            Lowered::Rows(rows, unrolled) if is_large(rows.rows().state_count()) => {
                return Ok(walk::from_rows(&rows, vocabulary, &meter)?.followed(Some(unrolled)));
            }
            Lowered::Rows(rows, unrolled) => TextAutomaton::of_rows(&rows, unrolled, &meter)?,
            Lowered::Tokens(automaton, markers) => {
                return compile::from_tokens(automaton, &markers, vocabulary, &meter);
            }
        };
        let text = TokenStates::new(&text, vocabulary, &meter)?;
        if text.counts() {
            return Ok(compile::from_bytes(&text, vocabulary, &meter)?.followed(text.unrolled));
        }
        let walked = || match walk::from_bytes(&text, vocabulary, &meter) {
            // Tokens that are read whole cannot all be walked.
            Err(error) if error.is_grammar() => compile::from_bytes(&text, vocabulary, &meter),
            result => result,
        };
        if is_large(text.dfa.state_count()) {
            return Ok(walked()?.followed(text.unrolled));
        }
        let tabulated = Limits { bytes: limits.bytes.min(limits.tabulated_bytes), ..limits.clone() };
        let table = match compile::from_bytes(&text, vocabulary, &meter.with_limits(&tabulated)) {
            Err(error) if error.breached() == Some(Limit::Bytes(tabulated.bytes)) => walked(),
            result => result,
        };
        Ok(table?.followed(text.unrolled))
    }

    /// Compiles `constraint` for `vocabulary` in the tabulated form, however large, and without a stack.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn tabulate(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let meter = Meter::start(limits);
        match Self::lower(constraint, vocabulary, &meter)? {
            Lowered::Bytes(text) => tabulated(text, vocabulary, &meter),
            Lowered::Rows(rows, unrolled) => {
                tabulated(TextAutomaton::of_rows(&rows, unrolled, &meter)?, vocabulary, &meter)
            }
            Lowered::Tokens(automaton, markers) => {
                compile::from_tokens(automaton, &markers, vocabulary, &meter)
            }
        }
    }

    /// Compiles `constraint` for `vocabulary` in the walked form.
    ///
    /// Where every byte that the constraint uses is a token of its own, the distance to the end is counted in
    /// bytes: [`tokens_to_end`](Self::tokens_to_end) is then an upper bound, and a budget may refuse a token
    /// that the tabulated form allows, never the other way round.
    ///
    /// # Errors
    /// As [`compile`](Self::compile); [`Error::is_input`] for a constraint over token ids, which has no bytes to
    /// walk; [`Error::is_grammar`] where a grammar names tokens such that their bytes alone do not tell how they are read, or
    /// counts tokens.
    pub fn walk(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let meter = Meter::start(limits);
        let lowered = match Self::with_stack(constraint, vocabulary, &meter)? {
            ControlFlow::Break(table) => return Ok(table),
            ControlFlow::Continue(lowered) => lowered,
        };
        match lowered {
            Lowered::Bytes(text) => {
                let text = TokenStates::new(&text, vocabulary, &meter)?;
                if text.counts() {
                    return Err(Error::grammar_as_a_whole(
                        "it counts tokens, and where one ends is not known byte by byte: compile it tabulated",
                    ));
                }
                Ok(walk::from_bytes(&text, vocabulary, &meter)?.followed(text.unrolled))
            }
            Lowered::Rows(rows, unrolled) => {
                Ok(walk::from_rows(&rows, vocabulary, &meter)?.followed(Some(unrolled)))
            }
            Lowered::Tokens(..) => {
                Err(Error::input("a constraint over token ids has no bytes to walk: compile it tabulated"))
            }
        }
    }

    /// The table with calls, where there is to be a stack and the vocabulary spells the ways to the end; else the automaton
    /// without.
    fn with_stack(
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<ControlFlow<Self, Lowered>> {
        check_eos(vocabulary)?;
        let constraint = &*constraint.with_ids(vocabulary)?;
        if meter.limits().frames > 0 {
            match constraint.lower_called(meter)? {
                Called::No(lowered) => return Ok(ControlFlow::Continue(lowered)),
                Called::Yes(text) => {
                    if let Some(table) = pushdown::from_called(&text, vocabulary, meter)? {
                        return Ok(ControlFlow::Break(table));
                    }
                }
            }
        }
        constraint.lower(meter).map(ControlFlow::Continue)
    }

    fn lower(constraint: &Constraint, vocabulary: &Vocabulary, meter: &Meter) -> Result<Lowered> {
        check_eos(vocabulary)?;
        constraint.with_ids(vocabulary)?.lower(meter)
    }

    /// The table of a row without a constraint: it starts in [`StateId::UNCONSTRAINED`] and allows every token of
    /// `vocabulary`.
    pub fn unconstrained(vocabulary: &Vocabulary) -> Self {
        build::unconstrained(vocabulary)
    }

    /// A tabulated table of arrays that hold its invariants.
    fn tabulated(
        next: Vec<u32>,
        classes: usize,
        class: ClassMap,
        tokens_to_end: Vec<u32>,
        start: StateId,
        fingerprint: Fingerprint,
        class_tokens: MadeClassTokens,
    ) -> Self {
        let vocabulary_len = class.len();
        let reading = TokenReading::Classes(class);
        let parts = TableParts {
            next: TableRows::whole(next, classes),
            reading,
            tokens_to_end,
            calls: None,
            landings: None,
            class_tokens,
            start,
            vocabulary_len,
            fingerprint,
        };
        Self { parts: Arc::new(parts), unrolled: None }
    }

    /// The same table, of a schema that was followed so deep.
    fn followed(self, unrolled: Option<Unrolled>) -> Self {
        Self { unrolled, ..self }
    }

    pub(crate) fn parts(&self) -> &TableParts {
        &self.parts
    }

    /// Whether it is walked, and reads some tokens as themselves.
    pub(crate) fn has_special_tokens(&self) -> bool {
        self.parts.special().columns() > 0
    }

    /// Whether `other` is this table or a clone of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// The state before the first token.
    pub fn start(&self) -> StateId {
        self.parts.start
    }

    /// The most outcomes of a piece, where the table has calls; 0 where it has none. See [`Capacity`](crate::Capacity).
    pub fn outcomes(&self) -> usize {
        self.parts.calls.as_ref().map_or(0, |calls| calls.ends)
    }

    /// The most frames on the stack of a row, where the table has calls; 0 where it has none.
    pub fn frames(&self) -> usize {
        self.parts.calls.as_ref().map_or(0, |calls| calls.depth as usize)
    }

    /// Whether tokens are followed byte by byte.
    pub fn is_walked(&self) -> bool {
        matches!(self.parts.reading, TokenReading::Bytes { .. })
    }

    /// Number of states, reserved ones included.
    pub fn state_count(&self) -> usize {
        self.parts.tokens_to_end.len()
    }

    /// Number of columns of `D`, reserved ones included: classes of tokens, or of bytes where the table is
    /// walked.
    pub fn class_count(&self) -> usize {
        self.parts.columns()
    }

    /// How deep a JSON schema was followed where it has no end; `None` for other constraints, and for tables that
    /// were read from a file.
    pub fn unrolled(&self) -> Option<Unrolled> {
        self.unrolled
    }

    /// Number of token ids of the vocabulary; ids from here on are never allowed.
    pub fn vocabulary_len(&self) -> usize {
        self.parts.vocabulary_len
    }

    /// The fingerprint of the vocabulary that the table was compiled for.
    pub fn fingerprint(&self) -> Fingerprint {
        self.parts.fingerprint
    }

    /// The state after `token` in `state`; [`StateId::DEAD`] where it is illegal. Of a table with calls, on an empty stack:
    /// see [`after`](Self::after).
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn next(&self, state: StateId, token: TokenId) -> StateId {
        self.parts.next(state, token)
    }

    /// The row of `state` in `D`: the next state for each column, shape `[columns]`.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn row(&self, state: StateId) -> &[u32] {
        self.parts.row(state)
    }

    /// Whether the output may end in `state`.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.parts.next.reserved(state)[Self::EOS as usize] != StateId::DEAD.0
    }

    /// The least number of tokens, end of sequence included, from `state` to [`StateId::DONE`]:
    /// 0 in `DONE`, 1 in accepting states, 0 in `UNCONSTRAINED` (which has no end to reach), `u32::MAX` in `DEAD`.
    /// In a walked table it may be more than the least, see [`walk`](Self::walk).
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn tokens_to_end(&self, state: StateId) -> u32 {
        self.parts.tokens_to_end[state.index()]
    }

    /// The token ids that `state` allows, in order.
    ///
    /// # Panics
    /// Where `state` is not a state of the table.
    pub fn allowed(&self, state: StateId) -> impl Iterator<Item = TokenId> + '_ {
        (0..self.parts.vocabulary_len as u32)
            .map(TokenId)
            .filter(move |&token| self.next(state, token) != StateId::DEAD)
    }

    /// Whether `tokens` are an output of the constraint from start to end: text, then the end of sequence, once
    /// or more.
    pub fn accepts(&self, tokens: &[TokenId]) -> bool {
        let start = RowPosition::unlimited(self.start());
        let end = tokens.iter().try_fold(start, |position, &token| {
            let next = self.after(&position, token);
            self.can_end(&next).then_some(next)
        });
        end.is_some_and(|end| end.state == StateId::DONE)
    }

    /// Refuses a vocabulary other than the one the table was compiled for.
    ///
    /// # Errors
    /// [`Error::is_incompatible_vocabulary`].
    pub fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<()> {
        if self.fingerprint() == vocabulary.fingerprint() {
            return Ok(());
        }
        Err(Error::incompatible_vocabulary(format!(
            "the table was compiled for vocabulary {}, this one is {}: compile the constraint for it",
            self.fingerprint(),
            vocabulary.fingerprint()
        )))
    }

    /// Checks the invariants that keep a device from reading out of bounds: shapes, state ids, columns.
    ///
    /// # Errors
    /// [`Error::is_table`], naming the entry.
    pub fn validate(&self) -> Result<()> {
        self.parts.validate()
    }
}

fn tabulated(text: TextAutomaton, vocabulary: &Vocabulary, meter: &Meter) -> Result<TokenTable> {
    let text = TokenStates::new(&text, vocabulary, meter)?;
    Ok(compile::from_bytes(&text, vocabulary, meter)?.followed(text.unrolled))
}

/// Refuses a vocabulary of which no output could end.
fn check_eos(vocabulary: &Vocabulary) -> Result<()> {
    if vocabulary.eos().is_empty() {
        return Err(Error::incompatible_vocabulary(
            "it names no end-of-sequence id, so no output could ever end: name one with `Vocabulary::with_eos`",
        ));
    }
    Ok(())
}

impl PartialEq for TokenTable {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for TokenTable {}

impl fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenTable")
            .field("states", &self.state_count())
            .field("columns", &self.class_count())
            .field("vocabulary", &self.vocabulary_len())
            .field("walked", &self.is_walked())
            .field("start", &self.start())
            .field("tokens_to_end", &self.tokens_to_end(self.start()))
            .finish_non_exhaustive()
    }
}
