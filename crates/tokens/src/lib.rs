//! Constraints compiled for the tokens of one vocabulary, and masks of logits on the CPU.
//!
//! A [`CompiledConstraint`] is a deterministic automaton with a vocabulary as its alphabet. It has
//! one of two forms:
//!
//! - **token-level**: tokens with equal transitions in every state share a *class*. The full
//!   transition function of all states and tokens `T[s, v]` is stored without loss as
//!   `D[s, class[v]]`, with `D` of shape `[states, classes]` and `class` of shape `[vocabulary]`;
//! - **byte-level**: `D` is the automaton over bytes, `[states, byte classes]`, and a token is
//!   followed byte by byte. If every byte in use is a token, no per-token computation is needed:
//!   the first mask is available at once, and automata too large for the token-level form fit in
//!   memory.
//!
//! Both forms share one model: a token is a string of columns of `D`, of length one in the
//! token-level form.
//!
//! An [`Artifact`] is the file of a compiled constraint, a [`ConstraintCache`] keeps many
//! artifacts, and a [`PendingConstraint`] is still being compiled.
//!
//! # Reserved states
//! | state | entered by | allows |
//! |---|---|---|
//! | [`StateId::DEAD`] | no legal token; as an entry of `D` it means "illegal" | nothing |
//! | [`StateId::DONE`] | an end-of-sequence token in an accepting state | end-of-sequence tokens, forever |
//! | [`StateId::UNCONSTRAINED`] | rows without a constraint | every token of the vocabulary, special ones too; end of sequence leads to `DONE` |
//!
//! # Reserved classes
//! Class 0 (`NEVER`) holds ids that no state allows (ids past the vocabulary, unused ids), class 1
//! (`EOS`) the end-of-sequence ids, class 2 (`UNMATCHED`) ids that only `UNCONSTRAINED` allows:
//! special tokens, and tokens that match no state of the constraint. States of free text, before a
//! [marker](burn_dfa_constraints::Marker), also allow special tokens, which do not leave the state;
//! in constraints with free text, text tokens that match no state have another class.
//!
//! # Invariants
//! - every entry of `D` is a state, every token reads columns of `D` only;
//! - from every state but `DEAD`, some token path leads to `DONE`: no dead ends;
//! - special tokens never match as text, and a marker token is never text.

mod artifact;
mod budget;
mod build;
mod byte_level;
mod cache;
mod class_map;
mod columns;
mod compile_trait;
mod distance;
mod edges;
mod forced;
mod lazy_class_tokens;
mod longest;
mod mask;
mod parts;
mod pending;
mod position;
mod prune;
mod pushdown;
mod rows;
mod sample;
mod self_loop;
mod special;
mod stack;
mod state;
mod steps;
#[doc(hidden)]
pub mod symbols;
mod token_level;
mod token_slices;
mod trie_search;
mod untrimmed;
mod whole;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use artifact::{Artifact, Origin};
use budget::BudgetInterval;
pub use burn_dfa_automata as automaton;
pub use burn_dfa_automata::ByteDfa;
#[doc(hidden)]
pub use burn_dfa_automata::FARTHEST;
pub use burn_dfa_common::{
    ArenaSpace, Cancel, Error, ErrorKind, ForcedText, Limit, Limits, Result, Unenforced,
};
#[doc(hidden)]
pub use burn_dfa_common::{error, limits, matcher, random, threads};
pub use burn_dfa_constraints as constraint;
pub use burn_dfa_constraints::Constraint;
use burn_dfa_constraints::{Called, Lowered, TextAutomaton, Unrolled};
pub use burn_dfa_vocabulary as vocabulary;
use burn_dfa_vocabulary::Fingerprint;
pub use burn_dfa_vocabulary::{TokenId, Vocabulary};
use byte_level::reserved_column;
pub use cache::ConstraintCache;
use class_map::ClassMap;
pub use compile_trait::Compile;
use distance::Distances;
use lazy_class_tokens::LazyClassTokens;
use limits::Meter;
use longest::Shortest;
pub use mask::{Logit, Masker};
#[doc(hidden)]
pub use mask::{Thresholds, TokenMask};
#[doc(hidden)]
pub use parts::{ConstraintParts, TokenReading};
pub use pending::{ConstraintSender, PendingConstraint};
pub use position::RowPosition;
use rows::TransitionRows;
use self_loop::SelfLoop;
use special::SpecialTokens;
pub use state::StateId;
use token_slices::{CharTransitionCache, TokenSlices};
use trie_search::Unread;
use whole::TokenStates;

/// A constraint compiled for one vocabulary; see the [module](self) for its forms and invariants.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits, StateId, TokenId, CompiledConstraint, Vocabulary};
///
/// // 0: a, 1: b, 2: end of sequence
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
///
/// let start = compiled.start();
/// assert_eq!(compiled.next(start, TokenId(1)), StateId::DEAD);
/// let after_a = compiled.next(start, TokenId(0));
/// assert!(compiled.is_accepting(after_a));
/// assert_eq!(compiled.next(after_a, TokenId(2)), StateId::DONE);
/// assert_eq!(compiled.tokens_to_end(start), 2); // `a`, end of sequence
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone)]
pub struct CompiledConstraint {
    parts: Arc<ConstraintParts>,
    unrolled: Option<Unrolled>,
}

impl CompiledConstraint {
    /// The column of ids that no state allows.
    #[doc(hidden)]
    pub const NEVER: u32 = 0;
    /// The column of the end-of-sequence ids.
    #[doc(hidden)]
    pub const EOS: u32 = 1;
    /// The column of ids that only an unconstrained row, or free text, may emit.
    #[doc(hidden)]
    pub const UNMATCHED: u32 = 2;
    /// Number of reserved columns.
    #[doc(hidden)]
    pub const RESERVED_COLUMNS: usize = 3;

    /// Compiles `constraint` for `vocabulary`: in the token-level form if it takes at most
    /// [`Limits::token_level_bytes`] and has at most [`Limits::token_level_entries`], else in the
    /// byte-level form.
    ///
    /// Some constraints have one form at any size: a constraint with calls is byte-level. A
    /// constraint over token ids or one that [counts
    /// tokens](burn_dfa_constraints::Expression::max_tokens) is token-level, and so is a grammar
    /// whose special tokens the byte-level form cannot tell from text.
    ///
    /// # Errors
    /// - [`ErrorKind::Limit`]: a limit was exceeded;
    /// - [`ErrorKind::Unsatisfiable`]: no sequence of tokens satisfies the constraint;
    /// - [`ErrorKind::IncompatibleVocabulary`]: the constraint names token ids that the vocabulary
    ///   lacks, or the vocabulary has no end-of-sequence id;
    /// - errors of lowering the constraint, see [`Constraint`].
    pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let meter = Meter::start(limits);
        let lowered = match Self::with_stack(constraint, vocabulary, &meter)? {
            ControlFlow::Break(compiled) => return Ok(compiled),
            ControlFlow::Continue(lowered) => lowered,
        };
        let is_large = |states: usize| states.saturating_mul(vocabulary.len()) > limits.token_level_entries;
        let text = match lowered {
            Lowered::Bytes(text) => text,
            Lowered::Rows(rows, unrolled) if is_large(rows.rows().state_count()) => {
                return Ok(byte_level::from_rows(&rows, vocabulary, &meter)?.followed(Some(unrolled)));
            }
            Lowered::Rows(rows, unrolled) => TextAutomaton::of_rows(&rows, unrolled, &meter)?,
            Lowered::Tokens(automaton, markers) => {
                return token_level::from_tokens(automaton, &markers, vocabulary, &meter);
            }
        };
        let text = TokenStates::new(&text, vocabulary, &meter)?;
        if text.counts() {
            return Ok(token_level::from_bytes(&text, vocabulary, &meter)?.followed(text.unrolled));
        }
        let byte_level = || match byte_level::from_bytes(&text, vocabulary, &meter) {
            // Not every token read whole has a byte-level form.
            Err(error) if error.kind() == ErrorKind::Grammar => {
                token_level::from_bytes(&text, vocabulary, &meter)
            }
            result => result,
        };
        if is_large(text.dfa.state_count()) {
            return Ok(byte_level()?.followed(text.unrolled));
        }
        let token_level = Limits { bytes: limits.bytes.min(limits.token_level_bytes), ..limits.clone() };
        let compiled = match token_level::from_bytes(&text, vocabulary, &meter.with_limits(&token_level)) {
            Err(error) if error.breached() == Some(Limit::Bytes(token_level.bytes)) => byte_level(),
            result => result,
        };
        Ok(compiled?.followed(text.unrolled))
    }

    /// Compiles `constraint` for `vocabulary` in the token-level form, of any size, without a
    /// stack.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_token_level(
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<Self> {
        let meter = Meter::start(limits);
        match Self::lower(constraint, vocabulary, &meter)? {
            Lowered::Bytes(text) => token_level(text, vocabulary, &meter),
            Lowered::Rows(rows, unrolled) => {
                token_level(TextAutomaton::of_rows(&rows, unrolled, &meter)?, vocabulary, &meter)
            }
            Lowered::Tokens(automaton, markers) => {
                token_level::from_tokens(automaton, &markers, vocabulary, &meter)
            }
        }
    }

    /// Compiles `constraint` for `vocabulary` in the byte-level form.
    ///
    /// If every byte used by the constraint is a token, the distance to the end is the least number
    /// of tokens over the texts that are short in bytes: [`tokens_to_end`](Self::tokens_to_end) is
    /// then an upper bound that is mostly exact. A budget may refuse a token that the token-level
    /// form allows, never the reverse.
    ///
    /// # Errors
    /// As [`compile`](Self::compile); [`ErrorKind::Input`] for a constraint over token ids, which
    /// has no bytes to follow; [`ErrorKind::Grammar`] if a grammar counts tokens, or names tokens
    /// and their bytes alone do not determine how to read them.
    pub fn compile_byte_level(
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<Self> {
        let meter = Meter::start(limits);
        let lowered = match Self::with_stack(constraint, vocabulary, &meter)? {
            ControlFlow::Break(compiled) => return Ok(compiled),
            ControlFlow::Continue(lowered) => lowered,
        };
        match lowered {
            Lowered::Bytes(text) => {
                let text = TokenStates::new(&text, vocabulary, &meter)?;
                if text.counts() {
                    return Err(Error::grammar_as_a_whole(
                        "it counts tokens, and bytes alone do not tell where a token ends: compile it with `CompiledConstraint::compile_token_level`",
                    ));
                }
                Ok(byte_level::from_bytes(&text, vocabulary, &meter)?.followed(text.unrolled))
            }
            Lowered::Rows(rows, unrolled) => {
                Ok(byte_level::from_rows(&rows, vocabulary, &meter)?.followed(Some(unrolled)))
            }
            Lowered::Tokens(..) => Err(Error::input(
                "a constraint over token ids has no bytes to follow: compile it with `CompiledConstraint::compile_token_level`",
            )),
        }
    }

    /// The compiled constraint with calls, if a stack is allowed and the vocabulary spells the
    /// shortest paths to the end; else the automaton without a stack.
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
                    if let Some(compiled) = pushdown::from_called(&text, vocabulary, meter)? {
                        return Ok(ControlFlow::Break(compiled));
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

    /// The compiled constraint of a row without a constraint: it starts in
    /// [`StateId::UNCONSTRAINED`] and allows every token of `vocabulary`.
    pub fn unconstrained(vocabulary: &Vocabulary) -> Self {
        build::unconstrained(vocabulary)
    }

    /// A token-level constraint of valid arrays.
    fn token_level(
        next: Vec<u32>,
        classes: usize,
        class: ClassMap,
        tokens_to_end: Vec<u32>,
        start: StateId,
        fingerprint: Fingerprint,
        class_tokens: LazyClassTokens,
    ) -> Self {
        let vocabulary_len = class.len();
        let reading = TokenReading::Classes(class);
        let parts = ConstraintParts {
            next: TransitionRows::whole(next, classes),
            reading,
            bound_to_end: tokens_to_end,
            distances: Distances::exact(),
            calls: None,
            shortest: Shortest::Any,
            class_tokens,
            start,
            vocabulary_len,
            fingerprint,
        };
        Self { parts: Arc::new(parts), unrolled: None }
    }

    /// Sets the depth to which a schema was followed.
    fn followed(self, unrolled: Option<Unrolled>) -> Self {
        Self { unrolled, ..self }
    }

    #[doc(hidden)]
    pub fn parts(&self) -> &ConstraintParts {
        &self.parts
    }

    /// Whether the constraint is byte-level and reads some tokens as themselves.
    #[doc(hidden)]
    pub fn has_special_tokens(&self) -> bool {
        self.parts.special().columns() > 0
    }

    /// Whether `other` is this compiled constraint or a clone of it.
    #[doc(hidden)]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// The state before the first token.
    pub fn start(&self) -> StateId {
        self.parts.start
    }

    /// The maximum number of exits of a procedure; 0 without calls. See `Capacity`.
    pub fn exits(&self) -> usize {
        self.parts.calls.as_ref().map_or(0, |calls| calls.exits)
    }

    /// The maximum number of frames on the stack of a row; 0 without calls.
    pub fn frames(&self) -> usize {
        self.parts.calls.as_ref().map_or(0, |calls| calls.depth as usize)
    }

    /// An upper bound on the frames that one token pushes on the stack of a row; 0 without calls.
    /// See `Capacity`.
    pub fn pushes(&self) -> usize {
        self.parts.pushes() as usize
    }

    /// Whether tokens are followed byte by byte.
    pub fn is_byte_level(&self) -> bool {
        self.parts.is_byte_level()
    }

    /// Number of states, reserved ones included.
    pub fn state_count(&self) -> usize {
        self.parts.bound_to_end.len()
    }

    /// Number of columns of `D`, reserved columns included: classes of tokens, or of bytes in the
    /// byte-level form.
    pub fn class_count(&self) -> usize {
        self.parts.columns()
    }

    /// How deep a JSON schema without a bound was followed; `None` for other constraints, and for
    /// compiled constraints read from a file.
    pub fn unrolled(&self) -> Option<Unrolled> {
        self.unrolled
    }

    /// Number of token ids of the vocabulary; larger ids are never allowed.
    pub fn vocabulary_len(&self) -> usize {
        self.parts.vocabulary_len
    }

    /// The fingerprint of the vocabulary of the compiled constraint.
    pub fn fingerprint(&self) -> Fingerprint {
        self.parts.fingerprint
    }

    /// The state after `token` in `state`; [`StateId::DEAD`] if the token is illegal. With calls,
    /// the stack is empty: see [`after`](Self::after).
    ///
    /// # Panics
    /// If `state` is not a state of the constraint.
    pub fn next(&self, state: StateId, token: TokenId) -> StateId {
        self.parts.next(state, token)
    }

    /// The row of `state` in `D`: the next state for each column, shape `[columns]`.
    ///
    /// # Panics
    /// If `state` is not a state of the constraint.
    pub fn row(&self, state: StateId) -> &[u32] {
        self.parts.row(state)
    }

    /// Whether the output may end in `state`.
    ///
    /// # Panics
    /// If `state` is not a state of the constraint.
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.parts.next.reserved(state)[Self::EOS as usize] != StateId::DEAD.0
    }

    /// The least number of tokens, end of sequence included, from `state` to [`StateId::DONE`]: 0
    /// in `DONE`, 1 in accepting states, 0 in `UNCONSTRAINED` (which has no end to reach),
    /// `u32::MAX` in `DEAD`. In the byte-level form it may be an upper bound, see
    /// [`compile_byte_level`](Self::compile_byte_level); with calls it ends at the nearest exit of
    /// the procedure of `state`, since the rest depends on the stack.
    ///
    /// # Panics
    /// If `state` is not a state of the constraint.
    pub fn tokens_to_end(&self, state: StateId) -> u32 {
        self.parts.tokens_to_end(state)
    }

    /// The token ids that `state` allows, in order; with calls, on an empty stack.
    ///
    /// # Panics
    /// If `state` is not a state of the constraint.
    pub fn allowed(&self, state: StateId) -> impl Iterator<Item = TokenId> + '_ {
        (0..self.parts.vocabulary_len as u32)
            .map(TokenId)
            .filter(move |&token| self.next(state, token) != StateId::DEAD)
    }

    /// Whether `tokens` are a complete output of the constraint: text, then the end of sequence,
    /// once or more.
    pub fn accepts(&self, tokens: &[TokenId]) -> bool {
        let start = RowPosition::unlimited(self.start());
        let end = tokens.iter().try_fold(start, |position, &token| {
            let next = self.after(&position, token);
            self.can_end(&next).then_some(next)
        });
        end.is_some_and(|end| end.state == StateId::DONE)
    }

    /// Refuses a vocabulary other than the constraint's own.
    ///
    /// # Errors
    /// [`ErrorKind::IncompatibleVocabulary`].
    pub fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<()> {
        if self.fingerprint() == vocabulary.fingerprint() {
            return Ok(());
        }
        Err(Error::incompatible_vocabulary(format!(
            "the constraint was compiled for vocabulary {} of {} tokens, this one is {} of {}: compile it for this one",
            self.fingerprint(),
            self.vocabulary_len(),
            vocabulary.fingerprint(),
            vocabulary.len()
        )))
    }

    /// Checks the invariants that prevent out-of-bounds reads on a device: shapes, state ids,
    /// columns.
    ///
    /// # Errors
    /// [`ErrorKind::Artifact`], naming the entry.
    pub fn validate(&self) -> Result<()> {
        self.parts.validate()
    }
}

fn token_level(text: TextAutomaton, vocabulary: &Vocabulary, meter: &Meter) -> Result<CompiledConstraint> {
    let text = TokenStates::new(&text, vocabulary, meter)?;
    Ok(token_level::from_bytes(&text, vocabulary, meter)?.followed(text.unrolled))
}

/// Refuses a vocabulary without an end of sequence.
fn check_eos(vocabulary: &Vocabulary) -> Result<()> {
    if vocabulary.eos().is_empty() {
        return Err(Error::incompatible_vocabulary(
            "it names no end-of-sequence id, so no output could ever end: name one with `Vocabulary::with_eos`",
        ));
    }
    Ok(())
}

impl PartialEq for CompiledConstraint {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for CompiledConstraint {}

impl fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledConstraint")
            .field("states", &self.state_count())
            .field("columns", &self.class_count())
            .field("vocabulary", &self.vocabulary_len())
            .field("byte_level", &self.is_byte_level())
            .field("start", &self.start())
            .field("tokens_to_end", &self.tokens_to_end(self.start()))
            .finish_non_exhaustive()
    }
}
