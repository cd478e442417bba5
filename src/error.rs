//! The one error of the crate: opaque, with a place, a reason and predicates.

use std::fmt;
use std::time::Duration;

/// What a crate function returns.
///
/// ```
/// use burn_dfa::{Constraint, Result};
///
/// fn digits(count: usize) -> Result<Constraint> {
///     Constraint::regex(&format!("[0-9]{{{count}}}"))
/// }
/// assert!(digits(4).is_ok());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Why a constraint, a vocabulary, a table or a generation was refused.
///
/// The kind is private; ask the predicates. The message names the place (pattern offset, JSON pointer,
/// token id) and the way out.
///
/// ```
/// use burn_dfa::Constraint;
///
/// let error = Constraint::regex("a(b").unwrap_err();
/// assert!(error.is_pattern());
/// assert_eq!(error.offset(), Some(1));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Pattern { offset: usize, reason: String },
    Schema { pointer: String, reason: String },
    Grammar(Box<Misread>),
    Request(String),
    StructuralTag { pointer: String, reason: String },
    Limit { limit: Limit, pointer: Option<String> },
    Unsatisfiable(String),
    Vocabulary(String),
    IncompatibleVocabulary(String),
    Table(String),
    Budget { needed: usize, given: usize, row: usize },
    Input(String),
    Full { needed: Room, free: Room },
    Model(String),
    Connection(String),
    Cancelled { tokens: usize, text: String },
    Output(String),
}

/// A grammar that was refused at a place.
#[derive(Clone, Debug, PartialEq)]
struct Misread {
    /// Line and column.
    place: Option<(usize, usize)>,
    rule: Option<String>,
    reason: String,
    /// The line of text, and below it a caret.
    snippet: String,
}

/// Room in an [`Arena`](crate::Arena), taken or free.
///
/// ```
/// let room = burn_dfa::Room { states: 64, tables: 2 };
/// assert_eq!(room.to_string(), "64 states and 2 tables");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// States, in whole pages.
    pub states: usize,
    /// Tables.
    pub tables: usize,
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states and {} tables", self.states, self.tables)
    }
}

/// A limit that was breached, with the value it had: of [`Limits`](crate::Limits), or of
/// [`TensorOptions`](crate::TensorOptions).
///
/// ```
/// use burn_dfa::{Constraint, Limit, Limits};
///
/// let limits = Limits { states: 100, ..Limits::default() };
/// let error = Constraint::regex("a{200}")?.to_byte_dfa(&limits).unwrap_err();
/// assert_eq!(error.breached(), Some(Limit::States(100)));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// States of an automaton.
    States(usize),
    /// Bytes of memory of an automaton or a table on the host.
    Bytes(usize),
    /// Bytes of a table on the device.
    DeviceBytes(usize),
    /// Bytes of one tensor, as much as the device can bind.
    Binding(usize),
    /// Levels of arrays and objects within each other, as far as a JSON schema is followed. It is fixed.
    Nesting(usize),
    /// Frames on the stack of a row that follows a recursive constraint.
    Frames(usize),
    /// Outcomes of the parts of a grammar that are called. It is fixed.
    Outcomes(usize),
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
            Self::Outcomes(n) => write!(f, "{n} outcomes of the parts that are called"),
            Self::Time(t) => write!(f, "{t:?} of compile time"),
        }
    }
}

impl Error {
    pub(crate) fn pattern(offset: usize, reason: impl Into<String>) -> Self {
        Kind::Pattern { offset, reason: reason.into() }.into()
    }

    pub(crate) fn schema(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Kind::Schema { pointer: pointer.into(), reason: reason.into() }.into()
    }

    pub(crate) fn grammar(
        line: usize,
        column: usize,
        rule: Option<String>,
        reason: String,
        snippet: String,
    ) -> Self {
        let place = Some((line, column));
        Kind::Grammar(Box::new(Misread { place, rule, reason, snippet })).into()
    }

    /// Of a grammar as a whole.
    pub(crate) fn grammar_as_a_whole(reason: impl Into<String>) -> Self {
        let (reason, snippet) = (reason.into(), String::new());
        Kind::Grammar(Box::new(Misread { place: None, rule: None, reason, snippet })).into()
    }

    pub(crate) fn request(reason: impl Into<String>) -> Self {
        Kind::Request(reason.into()).into()
    }

    pub(crate) fn structural_tag(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Kind::StructuralTag { pointer: pointer.into(), reason: reason.into() }.into()
    }

    /// The same of a schema, or of a part of a request, that stands at `outer` in something else.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        match &mut self.kind {
            Kind::Request(reason) => *reason = format!("{outer}: {reason}"),
            Kind::Schema { pointer, .. } | Kind::Limit { pointer: Some(pointer), .. } => {
                pointer.insert_str(0, outer);
            }
            _ => {}
        }
        self
    }

    pub(crate) fn limit(limit: Limit) -> Self {
        Kind::Limit { limit, pointer: None }.into()
    }

    /// A breach of a limit by the part of a schema at `pointer`, unless it is known to be by a part of that.
    pub(crate) fn at(mut self, at: impl FnOnce() -> String) -> Self {
        if let Kind::Limit { pointer: pointer @ None, .. } = &mut self.kind {
            *pointer = Some(at());
        }
        self
    }

    pub(crate) fn unsatisfiable(reason: impl Into<String>) -> Self {
        Kind::Unsatisfiable(reason.into()).into()
    }

    pub(crate) fn vocabulary(reason: impl Into<String>) -> Self {
        Kind::Vocabulary(reason.into()).into()
    }

    pub(crate) fn incompatible_vocabulary(reason: impl Into<String>) -> Self {
        Kind::IncompatibleVocabulary(reason.into()).into()
    }

    pub(crate) fn table(reason: impl Into<String>) -> Self {
        Kind::Table(reason.into()).into()
    }

    pub(crate) fn budget(needed: usize, given: usize, row: usize) -> Self {
        Kind::Budget { needed, given, row }.into()
    }

    pub(crate) fn input(reason: impl Into<String>) -> Self {
        Kind::Input(reason.into()).into()
    }

    pub(crate) fn full(needed: Room, free: Room) -> Self {
        Kind::Full { needed, free }.into()
    }

    pub(crate) fn model(reason: impl Into<String>) -> Self {
        Kind::Model(reason.into()).into()
    }

    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "other devices have no connection"))]
    pub(crate) fn connection(reason: impl Into<String>) -> Self {
        Kind::Connection(reason.into()).into()
    }

    pub(crate) fn cancelled(tokens: usize, text: String) -> Self {
        Kind::Cancelled { tokens, text }.into()
    }

    pub(crate) fn output(reason: impl Into<String>) -> Self {
        Kind::Output(reason.into()).into()
    }

    /// The constraint was refused, whatever the request: [`is_pattern`](Self::is_pattern),
    /// [`is_schema`](Self::is_schema), [`is_grammar`](Self::is_grammar), [`is_request`](Self::is_request),
    /// [`is_structural_tag`](Self::is_structural_tag), [`is_limit`](Self::is_limit) or [`is_unsatisfiable`](Self::is_unsatisfiable).
    pub fn is_constraint(&self) -> bool {
        self.is_pattern()
            || self.is_schema()
            || self.is_grammar()
            || self.is_request()
            || self.is_structural_tag()
            || self.is_limit()
            || self.is_unsatisfiable()
    }

    /// A regex or a character pattern that cannot be read or honoured; see [`offset`](Self::offset).
    pub fn is_pattern(&self) -> bool {
        matches!(self.kind, Kind::Pattern { .. })
    }

    /// A JSON schema that cannot be read or honoured; see [`pointer`](Self::pointer).
    pub fn is_schema(&self) -> bool {
        matches!(self.kind, Kind::Schema { .. })
    }

    /// A grammar that cannot be read or honoured; see [`place`](Self::place).
    pub fn is_grammar(&self) -> bool {
        matches!(self.kind, Kind::Grammar(_))
    }

    /// A `response_format` or `structured_outputs` object that is malformed or asks for what is not offered.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request(_))
    }

    /// A structural tag that is malformed or cannot be honoured exactly; see [`pointer`](Self::pointer).
    pub fn is_structural_tag(&self) -> bool {
        matches!(self.kind, Kind::StructuralTag { .. })
    }

    /// A limit on states, bytes or time was breached; see [`breached`](Self::breached).
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, Kind::Limit { .. })
    }

    /// No token sequence of the vocabulary satisfies the constraint.
    pub fn is_unsatisfiable(&self) -> bool {
        matches!(self.kind, Kind::Unsatisfiable(_))
    }

    /// A tokenizer or token list that cannot be read.
    pub fn is_vocabulary(&self) -> bool {
        matches!(self.kind, Kind::Vocabulary(_))
    }

    /// A table meets a vocabulary or a row of logits that it was not compiled for.
    pub fn is_incompatible_vocabulary(&self) -> bool {
        matches!(self.kind, Kind::IncompatibleVocabulary(_))
    }

    /// A table whose contents are not a valid automaton, or whose file is malformed or cannot be read or written.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, Kind::Table(_))
    }

    /// The output cannot be completed within `max_new_tokens`; see [`tokens_needed`](Self::tokens_needed).
    pub fn is_budget(&self) -> bool {
        matches!(self.kind, Kind::Budget { .. })
    }

    /// An argument that makes no sense, such as an empty batch.
    pub fn is_input(&self) -> bool {
        matches!(self.kind, Kind::Input(_))
    }

    /// An arena has no room for a table until others are released; see [`room`](Self::room).
    pub fn is_full(&self) -> bool {
        matches!(self.kind, Kind::Full { .. })
    }

    /// The model or its device failed: no usable logits, or tokens that could not be read.
    pub fn is_model(&self) -> bool {
        matches!(self.kind, Kind::Model(_))
    }

    /// The server of a remote device cannot be reached, or the connection was lost.
    pub fn is_connection(&self) -> bool {
        matches!(self.kind, Kind::Connection(_))
    }

    /// The row was cancelled; see [`tokens_done`](Self::tokens_done).
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind, Kind::Cancelled { .. })
    }

    /// An output that is not what is asked of it: cut off, or refused by the type that it is read as.
    pub fn is_output(&self) -> bool {
        matches!(self.kind, Kind::Output(_))
    }

    /// Byte offset into the pattern, where [`is_pattern`](Self::is_pattern).
    pub fn offset(&self) -> Option<usize> {
        match self.kind {
            Kind::Pattern { offset, .. } => Some(offset),
            _ => None,
        }
    }

    /// Line and column of a grammar's text, both from 1 and the column in characters, where
    /// [`is_grammar`](Self::is_grammar) and the refusal is of one place.
    pub fn place(&self) -> Option<(usize, usize)> {
        match &self.kind {
            Kind::Grammar(misread) => misread.place,
            _ => None,
        }
    }

    /// JSON pointer (RFC 6901) into the schema, or the [structural tag](Self::is_structural_tag) that it is part of: to what is
    /// refused, where [`is_schema`](Self::is_schema), and where a schema
    /// breaches a limit ([`is_limit`](Self::is_limit)) to the part that takes most of it.
    pub fn pointer(&self) -> Option<&str> {
        match &self.kind {
            Kind::Schema { pointer, .. } | Kind::StructuralTag { pointer, .. } => Some(pointer),
            Kind::Limit { pointer, .. } => pointer.as_deref(),
            _ => None,
        }
    }

    /// The breached limit, where [`is_limit`](Self::is_limit).
    pub fn breached(&self) -> Option<Limit> {
        match self.kind {
            Kind::Limit { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// The room that a table needs and the room that is free, where [`is_full`](Self::is_full).
    pub fn room(&self) -> Option<[Room; 2]> {
        match self.kind {
            Kind::Full { needed, free } => Some([needed, free]),
            _ => None,
        }
    }

    /// The least `max_new_tokens` that suffices, where [`is_budget`](Self::is_budget).
    pub fn tokens_needed(&self) -> Option<usize> {
        match self.kind {
            Kind::Budget { needed, .. } => Some(needed),
            _ => None,
        }
    }

    /// The tokens that were generated, where [`is_cancelled`](Self::is_cancelled).
    pub fn tokens_done(&self) -> Option<usize> {
        match self.kind {
            Kind::Cancelled { tokens, .. } => Some(tokens),
            _ => None,
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Pattern { offset, reason } => write!(f, "pattern, at byte {offset}: {reason}"),
            Kind::Schema { pointer, reason } if pointer.is_empty() => {
                write!(f, "JSON schema, at its root: {reason}")
            }
            Kind::Schema { pointer, reason } => write!(f, "JSON schema, at {pointer}: {reason}"),
            Kind::Grammar(misread) => {
                let Misread { place, rule, reason, snippet } = &**misread;
                f.write_str("grammar")?;
                if let Some((line, column)) = place {
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
                    "the constraint needs more than {limit}: simplify it, or compile it with `TokenTable::walk`"
                )
            }
            Kind::Limit { limit: limit @ Limit::Nesting(_), pointer } => {
                let place = match pointer.as_deref() {
                    None | Some("") => String::new(),
                    Some(pointer) => format!(", the last at {pointer} of the schema"),
                };
                write!(
                    f,
                    "the constraint needs more than {limit}{place}: nest the schema less, or lower `JsonOptions::recursion` or `JsonOptions::any_depth`"
                )
            }
            Kind::Limit { limit, pointer } => {
                let (setting, most) = match limit {
                    Limit::DeviceBytes(_) => ("TensorOptions::max_bytes", " (of 2^31 - 1 at most)"),
                    _ => ("Limits", ""),
                };
                let of = match limit {
                    Limit::Time(_) => "which ran out",
                    _ => "most of them",
                };
                let place = match pointer.as_deref() {
                    None => String::new(),
                    Some("") => format!(", {of} at the root of the schema"),
                    Some(pointer) => format!(", {of} at {pointer} of the schema"),
                };
                write!(
                    f,
                    "the constraint needs more than {limit}{place}: simplify it, or raise the limit in `{setting}`{most}"
                )
            }
            Kind::Unsatisfiable(reason) => write!(f, "nothing satisfies the constraint: {reason}"),
            Kind::Vocabulary(reason) => write!(f, "vocabulary: {reason}"),
            Kind::IncompatibleVocabulary(reason) => write!(f, "incompatible vocabulary: {reason}"),
            Kind::Table(reason) => write!(f, "table: {reason}"),
            Kind::Budget { needed, given, row } => write!(
                f,
                "row {row}: the shortest output of the constraint takes {needed} tokens (end of sequence included), max_new_tokens is {given}: raise it to {needed} at least"
            ),
            Kind::Input(reason) => f.write_str(reason),
            Kind::Full { needed, free } => write!(
                f,
                "the arena is full: the table needs {needed}, free are {free}: release others first, or reserve more in `TensorOptions::capacity`"
            ),
            Kind::Model(reason) => write!(f, "model: {reason}"),
            Kind::Connection(reason) => write!(f, "remote device: {reason}"),
            Kind::Cancelled { tokens, text } => write!(f, "cancelled after {tokens} tokens, at {text:?}"),
            Kind::Output(reason) => write!(f, "output: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
