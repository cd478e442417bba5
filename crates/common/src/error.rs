//! The one error type of the crates: opaque, with a kind, a location and a reason.

use std::fmt;
use std::time::Duration;

/// The result type of the crate's functions.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Result};
///
/// fn digits(count: usize) -> Result<Constraint> {
///     Constraint::regex(&format!("[0-9]{{{count}}}"))
/// }
/// assert!(digits(4).is_ok());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// The reason a constraint, a vocabulary, a compiled constraint or a generation was refused.
///
/// The message names the location (pattern offset, JSON pointer, token id) and a remedy.
///
/// ```
/// use burn_dfa_tokens::{Constraint, ErrorKind};
///
/// let error = Constraint::regex("a(b").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Pattern);
/// assert_eq!(error.offset(), Some(1));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// In a box, so that recursive functions hold small results in each of their frames.
    kind: Box<Kind>,
}

/// The kinds of [`Error`].
///
/// ```
/// use burn_dfa_tokens::{Constraint, ErrorKind};
///
/// let error = Constraint::regex("a(b").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Pattern);
/// assert!(error.kind().is_constraint());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A regex or a character pattern is malformed or cannot be honored; see [`Error::offset`].
    Pattern,
    /// A JSON schema is malformed or cannot be honored; see [`Error::pointer`].
    Schema,
    /// A grammar is malformed or cannot be honored; see [`Error::location`].
    Grammar,
    /// A `response_format` or `structured_outputs` object is malformed or asks for something that
    /// is not offered.
    Request,
    /// A structural tag is malformed or cannot be honored exactly; see [`Error::pointer`].
    StructuralTag,
    /// A limit on states, bytes or time was breached; see [`Error::breached`].
    Limit,
    /// No token sequence of the vocabulary satisfies the constraint.
    Unsatisfiable,
    /// A tokenizer or a token list cannot be read.
    Vocabulary,
    /// A compiled constraint meets a vocabulary or a row of logits that it was not compiled for.
    IncompatibleVocabulary,
    /// The contents of a compiled constraint are no valid automaton, or its file is malformed or
    /// cannot be read or written.
    Artifact,
    /// The output cannot be complete within `max_new_tokens`; see [`Error::tokens_needed`].
    Budget,
    /// An argument makes no sense, such as an empty batch.
    Input,
    /// An arena has no space for a constraint until others are released; see
    /// [`Error::arena_space`].
    Full,
    /// The model or its device failed: no usable logits, or tokens that could not be read.
    Model,
    /// The server of a remote device cannot be reached, or the connection was lost.
    Connection,
    /// A [`Cancel`](crate::Cancel) ended the row or the compilation; see [`Error::tokens_done`].
    Canceled,
    /// An output is not as requested: cut off, or refused by the type that it is read as.
    Output,
}

impl ErrorKind {
    /// Whether the constraint itself was refused, whatever the request: [`Pattern`](Self::Pattern),
    /// [`Schema`](Self::Schema), [`Grammar`](Self::Grammar), [`Request`](Self::Request),
    /// [`StructuralTag`](Self::StructuralTag), [`Limit`](Self::Limit) or
    /// [`Unsatisfiable`](Self::Unsatisfiable).
    pub fn is_constraint(self) -> bool {
        matches!(
            self,
            Self::Pattern
                | Self::Schema
                | Self::Grammar
                | Self::Request
                | Self::StructuralTag
                | Self::Limit
                | Self::Unsatisfiable
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Pattern { offset: usize, reason: String },
    Schema { pointer: String, reason: String },
    Unenforced { pointer: String, what: Unenforced },
    Grammar(Misread),
    Request(String),
    StructuralTag { pointer: String, reason: String },
    Limit { limit: Limit, pointer: Option<String> },
    Unsatisfiable(String),
    Vocabulary(String),
    IncompatibleVocabulary(String),
    Artifact(String),
    Budget { needed: usize, given: usize, row: usize },
    Input(String),
    Full { needed: ArenaSpace, free: ArenaSpace },
    Model(String),
    Connection(String),
    Canceled { tokens: usize, text: String },
    CompilationCanceled,
    Output(String),
}

/// A grammar error, with or without a location.
#[derive(Clone, Debug, PartialEq)]
struct Misread {
    /// Line and column.
    location: Option<(usize, usize)>,
    rule: Option<String>,
    reason: String,
    /// The line of text, and below it a caret.
    snippet: String,
}

/// A keyword of a JSON schema that no finite automaton enforces, from an error that
/// `JsonOptions::unenforceable` avoids; see [`Error::unenforced`]. Its text has the reason and a
/// change of the schema that helps, for interfaces that add their own setting.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let set = Constraint::json_schema(
///     json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
/// )?;
/// let error = set.to_automaton(&Limits::default()).unwrap_err();
/// assert_eq!(error.pointer(), Some("/uniqueItems"));
/// assert_eq!(
///     error.unenforced().unwrap().to_string(),
///     "`uniqueItems`: no finite automaton remembers so many items; list fewer values for them \
///      with `enum`, or lower `maxItems`"
/// );
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unenforced {
    /// The keyword.
    pub keyword: &'static str,
    /// Why the keyword is not enforced.
    pub reason: &'static str,
    /// The change of the schema that makes it enforceable.
    pub change: &'static str,
}

impl Unenforced {
    /// A keyword, why it is not enforced, and a change that makes it enforceable.
    #[doc(hidden)]
    pub const fn new(keyword: &'static str, reason: &'static str, change: &'static str) -> Self {
        Self { keyword, reason, change }
    }
}

impl fmt::Display for Unenforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; {}", self.keyword, self.reason, self.change)
    }
}

/// Space of an `Arena`, total or free.
///
/// ```
/// let space = burn_dfa_common::ArenaSpace { states: 64, constraints: 2 };
/// assert_eq!(space.to_string(), "64 states and 2 constraints");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaSpace {
    /// States, in whole pages.
    pub states: usize,
    /// Compiled constraints.
    pub constraints: usize,
}

impl fmt::Display for ArenaSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states and {} constraints", self.states, self.constraints)
    }
}

/// A breached limit with its value: of [`Limits`](crate::Limits), or of `TensorOptions`.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limit, Limits};
///
/// let limits = Limits { states: 100, ..Limits::default() };
/// let error = Constraint::regex("a{200}")?.to_byte_dfa(&limits).unwrap_err();
/// assert_eq!(error.breached(), Some(Limit::States(100)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// States of an automaton.
    States(usize),
    /// Bytes of memory of an automaton or a compiled constraint on the host.
    Bytes(usize),
    /// Bytes of a device constraint.
    DeviceBytes(usize),
    /// Bytes of one tensor, the device's maximum binding size.
    Binding(usize),
    /// The nesting depth of arrays and objects in a JSON schema. The limit is fixed.
    Nesting(usize),
    /// Frames on the stack of a row with a recursive constraint.
    Frames(usize),
    /// Exits of the procedures of a grammar. The limit is fixed.
    Exits(usize),
    /// Time to compile.
    Time(Duration),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::States(n) => write!(f, "{n} states"),
            Self::Bytes(n) => write!(f, "{n} bytes"),
            Self::DeviceBytes(n) => write!(f, "{n} bytes on the device"),
            Self::Binding(n) => write!(f, "{n} bytes in one tensor, the most that the device can bind"),
            Self::Nesting(n) => write!(f, "{n} levels of arrays and objects within each other"),
            Self::Frames(n) => write!(f, "{n} frames on the stack of a row"),
            Self::Exits(n) => write!(f, "{n} exits of a procedure"),
            Self::Time(t) => write!(f, "{t:?} of compile time"),
        }
    }
}

impl Error {
    #[doc(hidden)]
    pub fn pattern(offset: usize, reason: impl Into<String>) -> Self {
        Kind::Pattern { offset, reason: reason.into() }.into()
    }

    #[doc(hidden)]
    pub fn schema(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Kind::Schema { pointer: pointer.into(), reason: reason.into() }.into()
    }

    #[doc(hidden)]
    pub fn unenforceable(pointer: String, what: Unenforced) -> Self {
        Kind::Unenforced { pointer, what }.into()
    }

    #[doc(hidden)]
    pub fn grammar(
        line: usize,
        column: usize,
        rule: Option<String>,
        reason: String,
        snippet: String,
    ) -> Self {
        let location = Some((line, column));
        Kind::Grammar(Misread { location, rule, reason, snippet }).into()
    }

    /// An error of a grammar as a whole.
    #[doc(hidden)]
    pub fn grammar_as_a_whole(reason: impl Into<String>) -> Self {
        let (reason, snippet) = (reason.into(), String::new());
        Kind::Grammar(Misread { location: None, rule: None, reason, snippet }).into()
    }

    #[doc(hidden)]
    pub fn request(reason: impl Into<String>) -> Self {
        Kind::Request(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn structural_tag(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Kind::StructuralTag { pointer: pointer.into(), reason: reason.into() }.into()
    }

    /// Prefixes the location of a schema error, or the reason of a request error, with `outer`.
    #[doc(hidden)]
    pub fn within(mut self, outer: &str) -> Self {
        match &mut *self.kind {
            Kind::Request(reason) => *reason = format!("{outer}: {reason}"),
            Kind::Schema { pointer, .. }
            | Kind::Unenforced { pointer, .. }
            | Kind::Limit { pointer: Some(pointer), .. } => {
                pointer.insert_str(0, outer);
            }
            _ => {}
        }
        self
    }

    #[doc(hidden)]
    pub fn limit(limit: Limit) -> Self {
        Kind::Limit { limit, pointer: None }.into()
    }

    /// Sets the schema location of a breached limit, unless a nested part has already set it.
    #[doc(hidden)]
    pub fn at(mut self, at: impl FnOnce() -> String) -> Self {
        if let Kind::Limit { pointer: pointer @ None, .. } = &mut *self.kind {
            *pointer = Some(at());
        }
        self
    }

    #[doc(hidden)]
    pub fn unsatisfiable(reason: impl Into<String>) -> Self {
        Kind::Unsatisfiable(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn vocabulary(reason: impl Into<String>) -> Self {
        Kind::Vocabulary(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn incompatible_vocabulary(reason: impl Into<String>) -> Self {
        Kind::IncompatibleVocabulary(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn artifact(reason: impl Into<String>) -> Self {
        Kind::Artifact(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn budget(needed: usize, given: usize, row: usize) -> Self {
        Kind::Budget { needed, given, row }.into()
    }

    #[doc(hidden)]
    pub fn input(reason: impl Into<String>) -> Self {
        Kind::Input(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn full(needed: ArenaSpace, free: ArenaSpace) -> Self {
        Kind::Full { needed, free }.into()
    }

    #[doc(hidden)]
    pub fn model(reason: impl Into<String>) -> Self {
        Kind::Model(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn connection(reason: impl Into<String>) -> Self {
        Kind::Connection(reason.into()).into()
    }

    #[doc(hidden)]
    pub fn canceled(tokens: usize, text: String) -> Self {
        Kind::Canceled { tokens, text }.into()
    }

    #[doc(hidden)]
    pub fn compilation_canceled() -> Self {
        Kind::CompilationCanceled.into()
    }

    #[doc(hidden)]
    pub fn output(reason: impl Into<String>) -> Self {
        Kind::Output(reason.into()).into()
    }

    /// What kind of refusal this is.
    pub fn kind(&self) -> ErrorKind {
        match &*self.kind {
            Kind::Pattern { .. } => ErrorKind::Pattern,
            Kind::Schema { .. } | Kind::Unenforced { .. } => ErrorKind::Schema,
            Kind::Grammar(_) => ErrorKind::Grammar,
            Kind::Request(_) => ErrorKind::Request,
            Kind::StructuralTag { .. } => ErrorKind::StructuralTag,
            Kind::Limit { .. } => ErrorKind::Limit,
            Kind::Unsatisfiable(_) => ErrorKind::Unsatisfiable,
            Kind::Vocabulary(_) => ErrorKind::Vocabulary,
            Kind::IncompatibleVocabulary(_) => ErrorKind::IncompatibleVocabulary,
            Kind::Artifact(_) => ErrorKind::Artifact,
            Kind::Budget { .. } => ErrorKind::Budget,
            Kind::Input(_) => ErrorKind::Input,
            Kind::Full { .. } => ErrorKind::Full,
            Kind::Model(_) => ErrorKind::Model,
            Kind::Connection(_) => ErrorKind::Connection,
            Kind::Canceled { .. } | Kind::CompilationCanceled => ErrorKind::Canceled,
            Kind::Output(_) => ErrorKind::Output,
        }
    }

    /// The byte offset into the pattern, for [`Pattern`](ErrorKind::Pattern).
    pub fn offset(&self) -> Option<usize> {
        match *self.kind {
            Kind::Pattern { offset, .. } => Some(offset),
            _ => None,
        }
    }

    /// The line and column in a grammar's text, both from 1 and the column in characters, for
    /// [`Grammar`](ErrorKind::Grammar) errors with a location.
    pub fn location(&self) -> Option<(usize, usize)> {
        match &*self.kind {
            Kind::Grammar(misread) => misread.location,
            _ => None,
        }
    }

    /// The JSON pointer (RFC 6901) into the schema, or into the [structural
    /// tag](ErrorKind::StructuralTag) around it: to the refused part for
    /// [`Schema`](ErrorKind::Schema), and to the most expensive part if a schema breaches a limit
    /// ([`Limit`](ErrorKind::Limit)).
    pub fn pointer(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Schema { pointer, .. }
            | Kind::Unenforced { pointer, .. }
            | Kind::StructuralTag { pointer, .. } => Some(pointer),
            Kind::Limit { pointer, .. } => pointer.as_deref(),
            _ => None,
        }
    }

    /// The keyword that no finite automaton enforces, if it is the only reason for
    /// [`Schema`](ErrorKind::Schema). `JsonOptions::unenforceable` ignores the keyword.
    pub fn unenforced(&self) -> Option<&Unenforced> {
        match &*self.kind {
            Kind::Unenforced { what, .. } => Some(what),
            _ => None,
        }
    }

    /// The breached limit, for [`Limit`](ErrorKind::Limit).
    pub fn breached(&self) -> Option<Limit> {
        match *self.kind {
            Kind::Limit { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// The capacity needed by a constraint and the free capacity, for [`Full`](ErrorKind::Full).
    pub fn arena_space(&self) -> Option<[ArenaSpace; 2]> {
        match *self.kind {
            Kind::Full { needed, free } => Some([needed, free]),
            _ => None,
        }
    }

    /// The least sufficient `max_new_tokens`, for [`Budget`](ErrorKind::Budget).
    pub fn tokens_needed(&self) -> Option<usize> {
        match *self.kind {
            Kind::Budget { needed, .. } => Some(needed),
            _ => None,
        }
    }

    /// The number of generated tokens, for a row with [`Canceled`](ErrorKind::Canceled).
    pub fn tokens_done(&self) -> Option<usize> {
        match *self.kind {
            Kind::Canceled { tokens, .. } => Some(tokens),
            _ => None,
        }
    }
}

impl Error {
    /// The message about an unenforced keyword, for an interface with a `setting` that ignores the
    /// keyword.
    pub fn unenforced_with(&self, setting: &str) -> Option<String> {
        let Kind::Unenforced { pointer, what } = &*self.kind else { return None };
        Some(format!(
            "JSON schema, at {pointer}: {what}; or leave `{}` out with {setting}, and check the value afterwards",
            what.keyword
        ))
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Pattern { offset, reason } => write!(f, "pattern, at byte {offset}: {reason}"),
            Kind::Schema { pointer, reason } if pointer.is_empty() => {
                write!(f, "JSON schema, at its root: {reason}")
            }
            Kind::Schema { pointer, reason } => write!(f, "JSON schema, at {pointer}: {reason}"),
            Kind::Unenforced { .. } => {
                f.write_str(&self.unenforced_with("`JsonOptions::unenforceable`").unwrap_or_default())
            }
            Kind::Grammar(misread) => {
                let Misread { location, rule, reason, snippet } = misread;
                f.write_str("grammar")?;
                if let Some((line, column)) = location {
                    write!(f, ", line {line}, column {column}")?;
                }
                if let Some(rule) = rule {
                    write!(f, ", in the rule `{rule}`")?;
                }
                write!(f, ": {reason}")?;
                snippet.lines().try_for_each(|line| write!(f, "\n    {line}"))
            }
            Kind::Request(reason) => write!(f, "constraint request: {reason}"),
            Kind::StructuralTag { pointer, reason } if pointer.is_empty() => {
                write!(f, "structural tag: {reason}")
            }
            Kind::StructuralTag { pointer, reason } => write!(f, "structural tag, at {pointer}: {reason}"),
            Kind::Limit { limit: limit @ Limit::Binding(_), .. } => {
                write!(
                    f,
                    "the constraint needs more than {limit}: simplify it, or compile it with `CompiledConstraint::compile_byte_level`"
                )
            }
            Kind::Limit { limit: limit @ Limit::Nesting(_), pointer } => {
                let location = match pointer.as_deref() {
                    None | Some("") => String::new(),
                    Some(pointer) => format!(", the last at {pointer} of the schema"),
                };
                write!(
                    f,
                    "the constraint needs more than {limit}{location}: nest the schema less, or lower `JsonOptions::recursion` or `JsonOptions::any_depth`"
                )
            }
            Kind::Limit { limit, pointer } => {
                let raise = match limit {
                    // The limit is fixed.
                    Limit::Exits(_) => "",
                    Limit::DeviceBytes(_) => {
                        ", or raise the limit in `TensorOptions::max_bytes` (of 2^31 - 1 at most)"
                    }
                    // `Limits::MAX_FRAMES` is fixed.
                    Limit::Frames(1_024..) => {
                        ", or, if it is greater, lower `Limits::frames` to 1024 at most"
                    }
                    _ => ", or raise the limit in `Limits`",
                };
                let of = match limit {
                    Limit::Time(_) => "which ran out",
                    _ => "most of them",
                };
                let location = match pointer.as_deref() {
                    None => String::new(),
                    Some("") => format!(", {of} at the root of the schema"),
                    Some(pointer) => format!(", {of} at {pointer} of the schema"),
                };
                write!(f, "the constraint needs more than {limit}{location}: simplify it{raise}")
            }
            Kind::Unsatisfiable(reason) => write!(f, "nothing satisfies the constraint: {reason}"),
            Kind::Vocabulary(reason) => write!(f, "vocabulary: {reason}"),
            Kind::IncompatibleVocabulary(reason) => write!(f, "incompatible vocabulary: {reason}"),
            Kind::Artifact(reason) => write!(f, "compiled constraint: {reason}"),
            Kind::Budget { needed, given, row } => write!(
                f,
                "row {row}: the shortest output of the constraint takes {needed} tokens (end of sequence included), max_new_tokens is {given}: raise it to {needed} at least"
            ),
            Kind::Input(reason) => f.write_str(reason),
            Kind::Full { needed, free } => write!(
                f,
                "the arena is full: the constraint needs {needed}, free are {free}: release others first, or reserve more in `TensorOptions::capacity`"
            ),
            Kind::Model(reason) => write!(f, "model: {reason}"),
            Kind::Connection(reason) => write!(f, "remote device: {reason}"),
            Kind::Canceled { tokens, text } => write!(f, "canceled after {tokens} tokens, at {text:?}"),
            Kind::CompilationCanceled => f.write_str("the compilation of the constraint was canceled"),
            Kind::Output(reason) => write!(f, "output: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
