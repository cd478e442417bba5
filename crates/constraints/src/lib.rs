//! Constraints on the output of a model.
//!
//! A [`Constraint`] is a language: of text, by a regex, a choice, a character pattern or a JSON
//! schema; or of token sequences, by explicit transitions or one set of tokens per position. Its
//! constructor parses and checks it; `CompiledConstraint::compile` lowers it to an automaton and
//! combines the automaton with a vocabulary.
//!
//! The *whole* output has to match every form of constraint: constraints are anchored at both ends.

mod choice;
mod cursor;
mod deferred;
mod definition;
mod grammar;
mod hir;
mod json_pointer;
mod json_schema;
mod marker;
mod nested;
mod pattern;
mod pattern_limits;
mod regex;
mod request;
mod structural_tag;
mod text_search;
mod token_edges;
mod tokens;
mod tools;
#[cfg(feature = "typed")]
mod typed;
mod white_space;

use std::borrow::Cow;
use std::sync::Arc;

pub use burn_dfa_common::{Cancel, Error, ErrorKind, ForcedText, Limit, Limits, Result, Unenforced};
use deferred::Deferred;
use definition::SchemaSource;
pub use grammar::{CalledPart, Expression, Grammar, GrammarBuilder, GrammarReport, RuleUse, Shape, Syntax};
use grammar::{GivenGrammar, Lexical};
pub use json_schema::{
    Additional, Escapes, Formats, JsonOptions, Note, Numbers, Order, Separators, Treatment, Unenforceable,
    Unknown, Unrolled, Whitespace,
};
pub use marker::Marker;
#[doc(hidden)]
pub use marker::{CalledText, FreeText, TextAutomaton};
pub use pattern::{CharClass, CharPattern, PatternItem};
pub(crate) use regex::Regex;
pub use regex::RegexOptions;
pub use request::{
    GrammarFormat, GrammarText, NamedSchema, RequestOptions, ResponseFormat, StructuredOutputs,
};
pub use structural_tag::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, StructuralTag, Style, Tag, TagsWithSeparator,
    TokenDispatch, TokenFormat, TokenRef, TokenTriggeredTags, TriggeredTags,
};
#[doc(hidden)]
pub use token_edges::{NamedToken, TokenClasses, TokenEdges};
#[doc(hidden)]
pub use tokens::TokenAutomaton;
pub use tokens::Transitions;
pub use tools::{
    Call, Reasoning, Reply, ReplyEvent, Tool, ToolChoice, ToolFormat, ToolInput, ToolReader, Tools,
};

use self::json_schema::{Json, Malformed};
use self::structural_tag::Styled;
use burn_dfa_automata::{ByteAutomaton, ByteDfa, Expr, SparseAutomaton, SparseDfa};
use burn_dfa_common::limits::Meter;
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// A constraint on the whole output.
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let date = Constraint::regex(r"\d{4}-\d\d-\d\d")?;
/// let answer = Constraint::choice(["yes", "no"])?;
/// let dfa = answer.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"yes") && !dfa.matches(b"yes!"));
/// # let _ = date;
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Constraint {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// With its pattern.
    Regex(Regex, Arc<str>),
    Choice(Arc<[String]>),
    Pattern(CharPattern),
    /// With the schema as it was given.
    JsonSchema(Box<json_schema::Schema>, Arc<SchemaSource>),
    /// A schema in a style, within a structural tag.
    Styled(Arc<Styled>),
    /// With its text, if it was read from one.
    Grammar(Arc<Grammar>, Option<Arc<GivenGrammar>>),
    Dfa(Arc<ByteDfa>),
    /// An automaton within a structural tag.
    Deferred(Deferred),
    Transitions(Transitions),
    TokenSets(Vec<Vec<TokenId>>),
    After(Marker, Box<Constraint>),
}

/// A constraint as an automaton.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Lowered {
    /// Over the bytes of the output.
    Bytes(TextAutomaton),
    /// Over the bytes of the output, as rows of runs: not minimal.
    Rows(Box<SparseDfa>, Unrolled),
    /// Over the tokens of the output, after markers; the last marker in the list comes first.
    Tokens(TokenAutomaton, Vec<Marker>),
}

/// A constraint as an automaton that may have calls.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Called {
    /// An automaton with calls.
    Yes(Box<CalledText>),
    /// An automaton without.
    No(Lowered),
}

impl Lowered {
    /// Puts free text and `marker` before the automaton.
    fn behind(self, marker: &Marker, meter: &Meter) -> Result<Self> {
        Ok(match self {
            Self::Bytes(text) => Self::Bytes(text.behind(marker, meter)?),
            Self::Rows(rows, unrolled) => {
                Self::Bytes(TextAutomaton::of_rows(&rows, unrolled, meter)?.behind(marker, meter)?)
            }
            Self::Tokens(automaton, mut markers) => {
                markers.push(marker.clone());
                Self::Tokens(automaton, markers)
            }
        })
    }

    /// See [`Constraint::to_byte_dfa`].
    fn into_byte_dfa(self, meter: &Meter) -> Result<Option<ByteDfa>> {
        match self {
            Self::Bytes(text) if text.free.reads_whole() => Ok(None),
            Self::Bytes(text) if text.free.states > 0 => Expr::Dfa(text.dfa).determinize(meter).map(Some),
            Self::Bytes(text) => Ok(Some(Arc::unwrap_or_clone(text.dfa))),
            Self::Rows(rows, _) => Ok(Some(rows.to_dense(meter)?)),
            Self::Tokens(..) => Ok(None),
        }
    }
}

impl Constraint {
    /// Text matched as a whole by a regular expression.
    ///
    /// The syntax is the syntax of the [`regex`](https://docs.rs/regex/1/regex/#syntax) crate, with
    /// Unicode on. Anchors are allowed but not needed. Greedy and lazy repetitions are equivalent,
    /// and the order of alternatives has no effect: only the language counts. Word boundaries are
    /// exact, Unicode's too. `.` does not match `\n` (write `(?s:.)` to match it).
    ///
    /// Matches are UTF-8, unless the pattern itself turns Unicode off and asks for other bytes
    /// (`(?-u:\xFF)`): then the output may contain other bytes too.
    ///
    /// # Errors
    /// The pattern is malformed or uses a construct beyond finite automata (back-references,
    /// look-ahead with `(?=`); the error has the [`offset`](Error::offset).
    pub fn regex(pattern: &str) -> Result<Self> {
        Self::regex_with(pattern, &RegexOptions::default())
    }

    /// Like [`regex`](Self::regex), with other options.
    ///
    /// # Errors
    /// See [`regex`](Self::regex).
    pub fn regex_with(pattern: &str, options: &RegexOptions) -> Result<Self> {
        Regex::parse_with(pattern, options).map(|(regex, plain)| Kind::Regex(regex, plain).into())
    }

    /// Exactly one of a list of strings. The list may contain the empty string.
    ///
    /// # Errors
    /// The list is empty.
    pub fn choice(choices: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        choice::checked(choices.into_iter().map(Into::into).collect())
            .map(|choices| Kind::Choice(choices).into())
    }

    /// Text of a fixed shape over classes of characters.
    pub fn pattern(pattern: CharPattern) -> Self {
        Kind::Pattern(pattern).into()
    }

    /// Token sequences along explicit transitions.
    pub fn transitions(transitions: Transitions) -> Self {
        Kind::Transitions(transitions).into()
    }

    /// One token out of `sets[i]` at each position `i`, then the end of the output.
    ///
    /// # Errors
    /// `sets` is empty, or one of the sets is empty.
    pub fn token_sets(sets: Vec<Vec<TokenId>>) -> Result<Self> {
        tokens::check_sets(&sets)?;
        Ok(Kind::TokenSets(sets).into())
    }

    /// JSON text that is valid under a JSON schema, by the default [`JsonOptions`]: one space after
    /// each comma and colon, properties in the order of `properties`, additional ones last.
    ///
    /// Drafts 4, 6, 7, 2019-09 and 2020-12 are honored, as `$schema` selects, in all keywords that
    /// restrict. The page `docs/json-schema.md` of the repository lists the few cases in which the
    /// language is smaller than the schema's; [`explain`](Self::explain) names the cases of a given
    /// schema.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let schema = json!({
    ///     "type": "object",
    ///     "properties": {
    ///         "name": {"type": "string", "maxLength": 8},
    ///         "age": {"type": "integer", "minimum": 0},
    ///     },
    ///     "required": ["name"],
    ///     "additionalProperties": false
    /// });
    /// let dfa = Constraint::json_schema(schema)?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(br#"{"name": "Ada", "age": 36}"#));
    /// assert!(!dfa.matches(br#"{"age": 36, "name": "Ada"}"#));
    ///
    /// let error =
    ///     Constraint::json_schema(json!({"type": "integer", "minimum": "1"})).unwrap_err();
    /// assert_eq!(error.pointer(), Some("/minimum"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// The schema is malformed or cannot be honored exactly; the error has the JSON
    /// [`pointer`](Error::pointer).
    pub fn json_schema(schema: serde_json::Value) -> Result<Self> {
        Self::json_schema_with(schema, &JsonOptions::default())
    }

    /// Like [`json_schema`](Self::json_schema), with other options.
    ///
    /// # Errors
    /// See [`json_schema`](Self::json_schema).
    pub fn json_schema_with(schema: serde_json::Value, options: &JsonOptions) -> Result<Self> {
        let json = Json::of(&schema);
        json_schema::discard(schema);
        Self::of_schema(json?, options)
    }

    /// Like [`json_schema`](Self::json_schema), for a schema as text: all digits of each number
    /// count.
    ///
    /// A `Value` rounds numbers to 64 bits when it is read, and keeps the last of equal names. Here
    /// `0.1` and `0.1000000000000000000001` are two numbers, integers may have any length, and
    /// duplicate names in an object are rejected. A byte order mark at the start of the text is
    /// skipped.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let schema = r#"{"type": "integer", "minimum": 18446744073709551616}"#;
    /// let dfa =
    ///     Constraint::json_schema_from_str(schema)?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"18446744073709551616") && !dfa.matches(b"18446744073709551615"));
    ///
    /// let error =
    ///     Constraint::json_schema_from_str(r#"{"minLength": 1, "minLength": 2}"#).unwrap_err();
    /// assert_eq!(error.pointer(), Some("/minLength"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is not JSON, has a duplicate name in an object, or has a number whose exponent
    /// expands to more than 4,096 digits; and the errors of [`json_schema`](Self::json_schema).
    pub fn json_schema_from_str(schema: &str) -> Result<Self> {
        Self::json_schema_from_str_with(schema, &JsonOptions::default())
    }

    /// Like [`json_schema_from_str`](Self::json_schema_from_str), with other options.
    ///
    /// # Errors
    /// See [`json_schema_from_str`](Self::json_schema_from_str).
    pub fn json_schema_from_str_with(schema: &str, options: &JsonOptions) -> Result<Self> {
        Self::of_schema(Json::read(schema)?, options)
    }

    fn of_schema(schema: Json, options: &JsonOptions) -> Result<Self> {
        let read = json_schema::parse(&schema, options)?;
        Ok(Kind::JsonSchema(Box::new(read), Arc::new(SchemaSource::new(schema, options.clone()))).into())
    }

    /// Remarks on a JSON schema: keywords that are bounded, ignored, or read as in another draft;
    /// depths of recursion if it is copied to a depth; and names that may occur twice in an object.
    /// Everything else is honored to the letter. For a grammar or a structural tag, these are the
    /// remarks on its schemas; other constraints have no remarks.
    ///
    /// Depths and counts are computed within `limits`, as during compilation. If that computation
    /// fails, the remarks omit them.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::JsonOptions;
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let options = JsonOptions::new().with_any_depth(3);
    /// let constraint = Constraint::json_schema_with(json!({"type": "array"}), &options)?;
    /// let notes = constraint.explain(&Limits::default());
    /// assert_eq!(notes[0].to_string(), "the root: bounded: any JSON is followed 3 levels deep");
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn explain(&self, limits: &Limits) -> Vec<Note> {
        self.notes(&Meter::start(limits))
    }

    /// The notes of [`explain`](Self::explain).
    #[doc(hidden)]
    pub fn notes(&self, meter: &Meter) -> Vec<Note> {
        match &self.kind {
            Kind::JsonSchema(schema, given) => match given.settled(schema, meter) {
                Ok(settled) => settled.explain(meter),
                Err(_) => schema.explain(meter),
            },
            Kind::Styled(styled) => styled.explain(meter),
            Kind::Grammar(grammar, _) => grammar.notes(meter),
            Kind::After(_, constraint) => constraint.notes(meter),
            Kind::Regex(..)
            | Kind::Choice(_)
            | Kind::Pattern(_)
            | Kind::Dfa(_)
            | Kind::Deferred(_)
            | Kind::Transitions(_)
            | Kind::TokenSets(_) => Vec::new(),
        }
    }

    /// The text of `value` as a JSON schema writes it, and whether `value` is valid; `None` for
    /// other constraints.
    ///
    /// The text has the schema's order of properties, white space and spellings. An invalid value
    /// is written by the schema as far as it agrees.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let schema = json!({"properties": {"a": {"type": "integer"}, "b": {}}});
    /// let constraint = Constraint::json_schema(schema)?;
    /// let text =
    ///     constraint.json_text(&json!({"c": null, "b": [], "a": 1.0}), &Limits::default())?;
    /// assert_eq!(text, Some((r#"{"a": 1, "b": [], "c": null}"#.into(), true)));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// A limit is exceeded, or the value is nested too deep.
    pub fn json_text(&self, value: &serde_json::Value, limits: &Limits) -> Result<Option<(String, bool)>> {
        self.text_of(Json::of(value), limits)
    }

    /// Like [`json_text`](Self::json_text), for a value as text: all digits of each number count.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let constraint =
    ///     Constraint::json_schema_from_str(r#"{"minimum": 0.1000000000000000000001}"#)?;
    /// let text = constraint.json_text_from_str("0.1", &Limits::default())?;
    /// assert_eq!(text, Some(("0.1".into(), false)));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`json_text`](Self::json_text); also [`ErrorKind::Input`] if the text is not JSON or has
    /// a duplicate name in an object.
    pub fn json_text_from_str(&self, value: &str, limits: &Limits) -> Result<Option<(String, bool)>> {
        self.text_of(Json::read(value), limits)
    }

    /// [`json_text`](Self::json_text) of several values, with one plan of the schema.
    ///
    /// # Errors
    /// As [`json_text`](Self::json_text), for any of the values.
    #[doc(hidden)]
    pub fn json_texts<'v>(
        &self,
        values: impl IntoIterator<Item = &'v serde_json::Value>,
        limits: &Limits,
    ) -> Result<Option<Vec<(String, bool)>>> {
        self.texts_of(values.into_iter().map(Json::of), limits)
    }

    fn text_of(
        &self,
        value: std::result::Result<Json, Malformed>,
        limits: &Limits,
    ) -> Result<Option<(String, bool)>> {
        Ok(self.texts_of([value], limits)?.and_then(|texts| texts.into_iter().next()))
    }

    fn texts_of(
        &self,
        values: impl IntoIterator<Item = std::result::Result<Json, Malformed>>,
        limits: &Limits,
    ) -> Result<Option<Vec<(String, bool)>>> {
        let Kind::JsonSchema(schema, given) = &self.kind else { return Ok(None) };
        let checked = |value: std::result::Result<Json, Malformed>| {
            let value = value.map_err(|malformed| Error::input(malformed.to_string()))?;
            if value.is_deeper_than(json_schema::MAX_WRITTEN) {
                return Err(Error::input(format!(
                    "it is nested more than {} deep",
                    json_schema::MAX_WRITTEN
                )));
            }
            Ok(value)
        };
        let values = values.into_iter().map(checked).collect::<Result<Vec<Json>>>()?;
        let meter = Meter::start(limits);
        let texts = given.settled(schema, &meter)?.write(&values, &meter)?;
        let decoded =
            texts.into_iter().map(|(text, member)| (String::from_utf8_lossy(&text).into_owned(), member));
        Ok(Some(decoded.collect()))
    }

    /// Texts of a grammar.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Expression, Grammar};
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let mut builder = Grammar::builder();
    /// let nested = builder.rule("nested").repeat(0, None);
    /// let nested =
    ///     Expression::sequence([Expression::literal("("), nested, Expression::literal(")")]);
    /// builder.define("nested", nested)?;
    /// let constraint = Constraint::from_grammar(builder.finish("nested")?);
    /// let automaton = constraint.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(b"(()(()))") && !automaton.matches(b"(()"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn from_grammar(grammar: Grammar) -> Self {
        Kind::Grammar(Arc::new(grammar), None).into()
    }

    /// The grammar of the constraint, if it has one (also after a marker), for example to show its
    /// [rules](Grammar::shapes) and [how it is compiled](Grammar::report).
    pub fn as_grammar(&self) -> Option<&Grammar> {
        match &self.kind {
            Kind::Grammar(grammar, _) => Some(grammar),
            Kind::After(_, constraint) => constraint.as_grammar(),
            _ => None,
        }
    }

    /// The words of an automaton's language, such as an [`intersection`](ByteDfa::intersection) of
    /// other constraints.
    pub fn dfa(dfa: ByteDfa) -> Self {
        Kind::Dfa(Arc::new(dfa)).into()
    }

    /// Free text up to a marker, then `constraint`: for models that think, or call a tool, before
    /// they answer.
    ///
    /// Free text is the output of an unconstrained row (any bytes, UTF-8 or not, and special
    /// tokens), except the end of sequence. It ends at the first occurrence of the marker, even
    /// within a token; the rest of the token belongs to the constraint. Budgets count free text
    /// too, so the marker comes in time.
    ///
    /// If the marker is a token, only this token ends free text, not its spelling in other tokens;
    /// and the marker is never text in the constraint. A constraint on tokens begins at a token
    /// boundary: a token with the end of the marker and further bytes is not allowed.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let answer = Constraint::choice(["yes", "no"])?;
    /// let dfa = Constraint::after("</think>", answer).to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"Well, 1 < 2 </think>yes"));
    /// assert!(!dfa.matches(b"yes") && !dfa.matches(b"</think>perhaps"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn after(marker: impl Into<Marker>, constraint: Self) -> Self {
        Kind::After(marker.into(), Box::new(constraint)).into()
    }

    /// The automaton over bytes; `None` if the constraint is on tokens regardless of their bytes.
    /// It has no stack: recursion is expanded to a depth, see [`JsonOptions::recursion`].
    ///
    /// # Errors
    /// - [`ErrorKind::Limit`]: a limit was exceeded;
    /// - [`ErrorKind::Unsatisfiable`]: nothing matches.
    pub fn to_byte_dfa(&self, limits: &Limits) -> Result<Option<ByteDfa>> {
        let meter = Meter::start(limits);
        self.lower(&meter)?.into_byte_dfa(&meter)
    }

    /// The automaton over bytes, with a stack if `CompiledConstraint::compile` would use one;
    /// `None` if the constraint is on tokens regardless of their bytes.
    ///
    /// # Errors
    /// See [`to_byte_dfa`](Self::to_byte_dfa), which copies to a depth the parts called here.
    pub fn to_automaton(&self, limits: &Limits) -> Result<Option<ByteAutomaton>> {
        let meter = Meter::start(limits);
        Ok(match self.lower_called(&meter)? {
            Called::Yes(text) if text.free.reads_whole() => None,
            Called::Yes(text) => Some(ByteAutomaton::Pushdown(text.automaton)),
            Called::No(lowered) => lowered.into_byte_dfa(&meter)?.map(ByteAutomaton::Finite),
        })
    }

    /// The constraint with ids for the tokens that a grammar names by their text.
    ///
    /// # Errors
    /// The vocabulary has no token with such a name.
    #[doc(hidden)]
    pub fn with_ids(&self, vocabulary: &Vocabulary) -> Result<Cow<'_, Self>> {
        let found = match &self.kind {
            Kind::Grammar(grammar, given) => {
                grammar.with_ids(vocabulary)?.map(|grammar| Kind::Grammar(Arc::new(grammar), given.clone()))
            }
            Kind::After(marker, constraint) => match constraint.with_ids(vocabulary)? {
                Cow::Owned(constraint) => Some(Kind::After(marker.clone(), Box::new(constraint))),
                Cow::Borrowed(_) => None,
            },
            _ => None,
        };
        Ok(found.map_or(Cow::Borrowed(self), |kind| Cow::Owned(kind.into())))
    }

    /// Whether it may be one of several without a text.
    #[doc(hidden)]
    pub fn may_be_empty(&self) -> bool {
        matches!(self.kind, Kind::Deferred(_))
    }

    /// The automaton of the constraint, with calls if they are better.
    #[doc(hidden)]
    pub fn lower_called(&self, meter: &Meter) -> Result<Called> {
        if meter.limits().frames > Limits::MAX_FRAMES {
            return Err(Error::limit(Limit::Frames(Limits::MAX_FRAMES)));
        }
        Ok(match &self.kind {
            Kind::JsonSchema(schema, given) => called(given.settled(schema, meter)?.lower_called(meter)?),
            Kind::Styled(styled) => called(styled.lower(meter)?),
            Kind::Grammar(grammar, _) => {
                let Lexical { determinized, tokens } = grammar.lower(meter)?;
                match determinized {
                    SparseAutomaton::Finite(rows) => Called::No(finite(rows, tokens, meter)?),
                    SparseAutomaton::Pushdown(automaton) if meter.limits().frames > 0 => {
                        let free = FreeText { tokens, ..FreeText::default() };
                        Called::Yes(Box::new(CalledText { automaton, free }))
                    }
                    SparseAutomaton::Pushdown(_) => return Err(recursive()),
                }
            }
            Kind::After(marker, constraint) => match constraint.lower_called(meter)? {
                Called::Yes(text) => Called::Yes(Box::new(text.behind(marker, meter)?)),
                Called::No(lowered) => Called::No(lowered.behind(marker, meter)?),
            },
            _ => Called::No(self.lower(meter)?),
        })
    }

    /// The automaton of the constraint, without calls.
    #[doc(hidden)]
    pub fn lower(&self, meter: &Meter) -> Result<Lowered> {
        let dfa: Arc<ByteDfa> = match &self.kind {
            Kind::Regex(regex, _) => regex.lower(meter)?.into(),
            Kind::Choice(choices) => choice::lower(choices, meter)?.into(),
            Kind::Pattern(pattern) => pattern.lower(meter)?.into(),
            Kind::JsonSchema(schema, given) => {
                let (rows, unrolled) = given.settled(schema, meter)?.lower(meter)?;
                return Ok(Lowered::Rows(Box::new(rows), unrolled));
            }
            Kind::Grammar(grammar, _) => {
                let Lexical { determinized, tokens } = grammar.lower(meter)?;
                return match determinized {
                    SparseAutomaton::Finite(rows) => finite(rows, tokens, meter),
                    SparseAutomaton::Pushdown(_) => Err(recursive()),
                };
            }
            Kind::Styled(styled) => {
                return match styled.lower(meter)? {
                    (SparseAutomaton::Finite(rows), unrolled) => Ok(Lowered::Rows(Box::new(rows), unrolled)),
                    (SparseAutomaton::Pushdown(_), _) => Err(recursive()),
                };
            }
            Kind::Dfa(dfa) => Arc::clone(dfa),
            Kind::Deferred(deferred) => deferred.lower(meter)?,
            Kind::Transitions(transitions) => {
                return Ok(Lowered::Tokens(transitions.lower(), Vec::new()));
            }
            Kind::TokenSets(sets) => return Ok(Lowered::Tokens(tokens::lower_sets(sets), Vec::new())),
            Kind::After(marker, constraint) => return constraint.lower(meter)?.behind(marker, meter),
        };
        if dfa.is_empty() {
            return Err(Error::unsatisfiable("its language has no member"));
        }
        Ok(Lowered::Bytes(dfa.into()))
    }
}

/// The texts of a schema.
fn called((texts, unrolled): (SparseAutomaton, Unrolled)) -> Called {
    match texts {
        SparseAutomaton::Pushdown(automaton) => {
            Called::Yes(Box::new(CalledText { automaton, free: FreeText::default() }))
        }
        SparseAutomaton::Finite(rows) => Called::No(Lowered::Rows(Box::new(rows), unrolled)),
    }
}

/// A grammar without calls.
fn finite(rows: SparseDfa, tokens: TokenEdges, meter: &Meter) -> Result<Lowered> {
    if tokens.is_empty() {
        return Ok(Lowered::Rows(Box::new(rows), Unrolled::default()));
    }
    let free = FreeText { tokens, ..FreeText::default() };
    Ok(Lowered::Bytes(TextAutomaton { free, ..Arc::new(rows.to_dense(meter)?).into() }))
}

/// The error for a recursive grammar if a finite automaton is needed.
fn recursive() -> Error {
    Error::grammar_as_a_whole(
        "it is recursive, and no finite automaton has its texts: give it a stack, by `Limits::frames` above 0 and a vocabulary with a token for each byte without which its texts cannot go on, or take `to_automaton`",
    )
}

/// Of a schema.
impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::schema(malformed.pointer, malformed.reason)
    }
}

impl From<Kind> for Constraint {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}
