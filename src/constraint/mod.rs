//! What the user asks for.
//!
//! A [`Constraint`] is a language: of text, by a regex, a choice, a character pattern or a JSON schema; or of
//! token sequences, by explicit transitions or one set of tokens per position. It is read and checked when it
//! is made; [`TokenTable::compile`](crate::TokenTable::compile) lowers it to an automaton and meets it with a
//! vocabulary.
//!
//! Whatever the form, the *whole* output has to match: constraints are anchored at both ends.

mod choice;
mod definition;
mod grammar;
mod json_schema;
mod marker;
mod pattern;
mod regex;
mod request;
mod structural_tag;
mod token_edges;
mod tokens;
mod tools;
#[cfg(feature = "typed")]
mod typed;

use std::borrow::Cow;
use std::sync::Arc;

use definition::Given;
pub use grammar::{CalledPart, Expression, Grammar, GrammarBuilder, GrammarReport, RuleUse, Shape, Syntax};
use grammar::{GivenGrammar, Lexical};
pub use json_schema::{
    Additional, Escapes, Formats, JsonOptions, Note, Numbers, Order, Separators, Treatment, Unknown,
    Unrolled, Whitespace,
};
pub use marker::Marker;
pub(crate) use marker::{CalledText, FreeText, TextAutomaton};
pub use pattern::{CharClass, CharPattern, PatternItem};
pub(crate) use regex::Regex;
pub use regex::RegexOptions;
pub use request::{GrammarFormat, GrammarText, NamedSchema, ResponseFormat, StructuredOutputs};
pub use structural_tag::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, StructuralTag, Style, Tag, TagsWithSeparator,
    TokenDispatch, TokenFormat, TokenRef, TokenTriggeredTags, TriggeredTags,
};
pub(crate) use token_edges::{NamedToken, TokenClasses, TokenEdges};
pub(crate) use tokens::TokenAutomaton;
pub use tokens::Transitions;
pub use tools::{Call, Reasoning, Reply, ReplyEvent, Tool, ToolChoice, ToolFormat, ToolReader, Tools};

use self::json_schema::{Json, Malformed, Part, Texts};
use crate::automaton::{ByteAutomaton, ByteDfa, Determinized, Expr, RowDfa};
use crate::error::{Error, Limit, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::{TokenId, Vocabulary};

/// What the output has to be.
///
/// ```
/// use burn_dfa::{Constraint, Limits};
///
/// let date = Constraint::regex(r"\d{4}-\d\d-\d\d")?;
/// let answer = Constraint::choice(["yes", "no"])?;
/// let dfa = answer.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"yes") && !dfa.matches(b"yes!"));
/// # let _ = date;
/// # Ok::<(), burn_dfa::Error>(())
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
    JsonSchema(Box<json_schema::Schema>, Arc<Given>),
    /// A part of a schema, within a structural tag.
    Part(Arc<Part>),
    /// With its text, if it was read from one.
    Grammar(Arc<Grammar>, Option<Arc<GivenGrammar>>),
    Dfa(Arc<ByteDfa>),
    Transitions(Transitions),
    TokenSets(Vec<Vec<TokenId>>),
    After(Marker, Box<Constraint>),
}

/// A constraint as an automaton.
#[derive(Clone, Debug)]
pub(crate) enum Lowered {
    /// Over the bytes of the output.
    Bytes(TextAutomaton),
    /// Over the bytes of the output, as rows of runs: not minimal.
    Rows(Box<RowDfa>, Unrolled),
    /// Over its tokens, behind markers, the last of which comes first.
    Tokens(TokenAutomaton, Vec<Marker>),
}

/// A constraint as an automaton, which may have calls.
#[derive(Clone, Debug)]
pub(crate) enum Called {
    Yes(Box<CalledText>),
    No(Lowered),
}

impl Lowered {
    /// Free text, `marker`, and then this.
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
            Self::Rows(rows, _) => Ok(Some(rows.spread(meter)?)),
            Self::Tokens(..) => Ok(None),
        }
    }
}

impl Constraint {
    /// Text that a regular expression matches as a whole.
    ///
    /// The syntax is that of the [`regex`](https://docs.rs/regex/1/regex/#syntax) crate, Unicode on. Anchors
    /// are allowed but not needed; whether a repetition is greedy or lazy makes no difference, nor does the
    /// order of alternatives: the language counts. Word boundaries are exact, Unicode's too. `.` does
    /// not match `\n` (write `(?s:.)` to match it).
    ///
    /// Matches are UTF-8, unless the pattern itself turns Unicode off and asks for other bytes
    /// (`(?-u:\xFF)`): then the output may be other bytes as well.
    ///
    /// # Errors
    /// Where the pattern cannot be read, or asks for what a finite automaton cannot do (back-references,
    /// look-ahead with `(?=`); the error has the [`offset`](Error::offset).
    pub fn regex(pattern: &str) -> Result<Self> {
        Self::regex_with(pattern, &RegexOptions::default())
    }

    /// As [`regex`](Self::regex), by other options.
    ///
    /// # Errors
    /// As there.
    pub fn regex_with(pattern: &str, options: &RegexOptions) -> Result<Self> {
        Regex::parse_with(pattern, options).map(|(regex, plain)| Kind::Regex(regex, plain).into())
    }

    /// Exactly one of some strings. The empty string may be among them.
    ///
    /// # Errors
    /// Where there is none.
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

    /// One token out of `sets[i]` at each position `i`, and then the end.
    ///
    /// # Errors
    /// Where there are no sets, or one of them is empty.
    pub fn token_sets(sets: Vec<Vec<TokenId>>) -> Result<Self> {
        tokens::check_sets(&sets)?;
        Ok(Kind::TokenSets(sets).into())
    }

    /// JSON text that is valid under a JSON schema, by the default [`JsonOptions`]: compact, properties in the
    /// order of `properties`, additional ones last.
    ///
    /// Drafts 4, 6, 7, 2019-09 and 2020-12 are honoured, by what `$schema` says, in all keywords that restrict;
    /// the module's documentation tells the few ways in which the language is smaller than the schema's, and
    /// [`explain`](Self::explain) which of them a schema meets.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let schema = json!({
    ///     "type": "object",
    ///     "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0}},
    ///     "required": ["name"],
    ///     "additionalProperties": false
    /// });
    /// let dfa = Constraint::json_schema(schema)?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(br#"{"name":"Ada","age":36}"#));
    /// assert!(!dfa.matches(br#"{"age":36,"name":"Ada"}"#));
    ///
    /// let error = Constraint::json_schema(json!({"type": "integer", "minimum": "1"})).unwrap_err();
    /// assert_eq!(error.pointer(), Some("/minimum"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the schema cannot be read or cannot be honoured exactly; the error has the JSON
    /// [`pointer`](Error::pointer).
    pub fn json_schema(schema: serde_json::Value) -> Result<Self> {
        Self::json_schema_with(schema, &JsonOptions::default())
    }

    /// As [`json_schema`](Self::json_schema), with other options.
    ///
    /// # Errors
    /// As there.
    pub fn json_schema_with(schema: serde_json::Value, options: &JsonOptions) -> Result<Self> {
        let json = Json::of(&schema);
        json_schema::discard(schema);
        Self::of_schema(json?, options)
    }

    /// As [`json_schema`](Self::json_schema), of a schema as text: each number counts with all of its digits.
    ///
    /// A `Value` rounds numbers to 64 bits when it is read, and keeps the last of equal names. Here `0.1` and
    /// `0.1000000000000000000001` are two numbers, integers may have any length, and a name that an object has twice is
    /// refused. A byte order mark in front of the text is skipped.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let schema = r#"{"type": "integer", "minimum": 18446744073709551616}"#;
    /// let dfa = Constraint::json_schema_from_str(schema)?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"18446744073709551616") && !dfa.matches(b"18446744073709551615"));
    ///
    /// let error = Constraint::json_schema_from_str(r#"{"minLength": 1, "minLength": 2}"#).unwrap_err();
    /// assert_eq!(error.pointer(), Some("/minLength"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is not JSON, has a name twice in an object or a number whose exponent makes more than 4,096 places of
    /// it; and what [`json_schema`](Self::json_schema) refuses.
    pub fn json_schema_from_str(schema: &str) -> Result<Self> {
        Self::json_schema_from_str_with(schema, &JsonOptions::default())
    }

    /// As [`json_schema_from_str`](Self::json_schema_from_str), with other options.
    ///
    /// # Errors
    /// As there.
    pub fn json_schema_from_str_with(schema: &str, options: &JsonOptions) -> Result<Self> {
        Self::of_schema(Json::read(schema)?, options)
    }

    fn of_schema(schema: Json, options: &JsonOptions) -> Result<Self> {
        let read = json_schema::parse(&schema, options)?;
        Ok(Kind::JsonSchema(Box::new(read), Arc::new(Given::new(schema, options.clone()))).into())
    }

    /// Remarks on a JSON schema: what is bounded, how deep it is followed where it is copied to a depth, and what is ignored.
    /// All else is honoured to the letter, and so is every other constraint.
    ///
    /// Depths and counts are found within `limits`, as a compilation finds them. Where it would fail the remarks lack
    /// them.
    ///
    /// ```
    /// use burn_dfa::constraint::JsonOptions;
    /// use burn_dfa::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let options = JsonOptions::new().with_any_depth(3);
    /// let constraint = Constraint::json_schema_with(json!({"type": "array"}), &options)?;
    /// let notes = constraint.explain(&Limits::default());
    /// assert_eq!(notes[0].to_string(), "the root: bounded: any JSON is followed 3 levels deep");
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn explain(&self, limits: &Limits) -> Vec<Note> {
        match &self.kind {
            Kind::JsonSchema(schema, _) => schema.explain(&Meter::start(limits)),
            Kind::After(_, constraint) => constraint.explain(limits),
            _ => Vec::new(),
        }
    }

    /// The text that a JSON schema gives to `value`, and whether `value` is valid; `None` for other
    /// constraints.
    ///
    /// The text has the schema's order of properties, white space and spellings. A value that is not valid is
    /// written by the schema as far as it agrees.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let schema = json!({"properties": {"a": {"type": "integer"}, "b": {}}});
    /// let constraint = Constraint::json_schema(schema)?;
    /// let text = constraint.json_text(&json!({"c": null, "b": [], "a": 1.0}), &Limits::default())?;
    /// assert_eq!(text, Some((r#"{"a":1,"b":[],"c":null}"#.into(), true)));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where a limit is breached, or the value is nested too deep.
    pub fn json_text(&self, value: &serde_json::Value, limits: &Limits) -> Result<Option<(String, bool)>> {
        self.text_of(Json::of(value), limits)
    }

    /// As [`json_text`](Self::json_text), of a value as text: each number counts with all of its digits.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let constraint = Constraint::json_schema_from_str(r#"{"minimum": 0.1000000000000000000001}"#)?;
    /// let text = constraint.json_text_from_str("0.1", &Limits::default())?;
    /// assert_eq!(text, Some(("0.1".into(), false)));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there, and [`Error::is_input`] where the text is not JSON or has a name twice in an object.
    pub fn json_text_from_str(&self, value: &str, limits: &Limits) -> Result<Option<(String, bool)>> {
        self.text_of(Json::read(value), limits)
    }

    fn text_of(
        &self,
        value: std::result::Result<Json, Malformed>,
        limits: &Limits,
    ) -> Result<Option<(String, bool)>> {
        let Kind::JsonSchema(schema, _) = &self.kind else { return Ok(None) };
        let value = value.map_err(|malformed| Error::input(malformed.to_string()))?;
        if value.is_deeper_than(json_schema::MAX_WRITTEN) {
            return Err(Error::input(format!("it is nested more than {} deep", json_schema::MAX_WRITTEN)));
        }
        let (text, member) = schema.write(&value, &Meter::start(limits))?;
        Ok(Some((String::from_utf8_lossy(&text).into_owned(), member)))
    }

    /// Texts of a grammar.
    ///
    /// ```
    /// use burn_dfa::constraint::{Expression, Grammar};
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let mut builder = Grammar::builder();
    /// let nested = builder.rule("nested").repeat(0, None);
    /// let nested = Expression::sequence([Expression::literal("("), nested, Expression::literal(")")]);
    /// builder.define("nested", nested)?;
    /// let constraint = Constraint::of_grammar(builder.finish("nested")?);
    /// let automaton = constraint.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(b"(()(()))") && !automaton.matches(b"(()"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn of_grammar(grammar: Grammar) -> Self {
        Kind::Grammar(Arc::new(grammar), None).into()
    }

    /// The grammar, if the constraint is one, such as to show its [rules](Grammar::shapes) and
    /// [how it is compiled](Grammar::report); behind a marker too.
    pub fn as_grammar(&self) -> Option<&Grammar> {
        match &self.kind {
            Kind::Grammar(grammar, _) => Some(grammar),
            Kind::After(_, constraint) => constraint.as_grammar(),
            _ => None,
        }
    }

    /// The words of an automaton's language, such as an
    /// [`intersection`](ByteDfa::intersection) of other constraints.
    pub fn dfa(dfa: ByteDfa) -> Self {
        Kind::Dfa(Arc::new(dfa)).into()
    }

    /// Free text up to a marker, and then `constraint`: for models that think, or call a tool, before they answer.
    ///
    /// Free text is what a row without a constraint may hold (any bytes, UTF-8 or not, and special tokens), but for
    /// the end of sequence. It ends where the marker occurs first, though that be within a token; what the token
    /// holds beyond belongs to the constraint. Budgets count free text as well, so that the marker comes in time.
    ///
    /// Where the marker is a token, only this token ends free text, not its spelling in others; and nowhere in the
    /// constraint is it text. A constraint on tokens begins with a token: one that holds the end of the marker and more
    /// is not allowed.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let answer = Constraint::choice(["yes", "no"])?;
    /// let dfa = Constraint::after("</think>", answer).to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"Well, 1 < 2 </think>yes"));
    /// assert!(!dfa.matches(b"yes") && !dfa.matches(b"</think>perhaps"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn after(marker: impl Into<Marker>, constraint: Self) -> Self {
        Kind::After(marker.into(), Box::new(constraint)).into()
    }

    /// The automaton over bytes; `None` where the constraint is on tokens whatever their bytes. It has no stack: recursion is
    /// followed to a depth, see [`JsonOptions::recursion`].
    ///
    /// # Errors
    /// - [`Error::is_limit`]: a limit was breached;
    /// - [`Error::is_unsatisfiable`]: nothing matches.
    pub fn to_byte_dfa(&self, limits: &Limits) -> Result<Option<ByteDfa>> {
        let meter = Meter::start(limits);
        self.lower(&meter)?.into_byte_dfa(&meter)
    }

    /// The automaton over bytes, with a stack where [`TokenTable::compile`](crate::TokenTable::compile) gives the table one;
    /// `None` where the constraint is on tokens whatever their bytes.
    ///
    /// # Errors
    /// As [`to_byte_dfa`](Self::to_byte_dfa), which copies to a depth what is called here.
    pub fn to_automaton(&self, limits: &Limits) -> Result<Option<ByteAutomaton>> {
        let meter = Meter::start(limits);
        Ok(match self.lower_called(&meter)? {
            Called::Yes(text) if text.free.reads_whole() => None,
            Called::Yes(text) => Some(ByteAutomaton::Pushdown(text.automaton)),
            Called::No(lowered) => lowered.into_byte_dfa(&meter)?.map(ByteAutomaton::Finite),
        })
    }

    /// The same with ids for the tokens that a grammar names by their text.
    ///
    /// # Errors
    /// Where the vocabulary has no token of a name.
    pub(crate) fn with_ids(&self, vocabulary: &Vocabulary) -> Result<Cow<'_, Self>> {
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
    pub(crate) fn may_be_empty(&self) -> bool {
        matches!(self.kind, Kind::Part(_))
    }

    /// The automaton of the constraint, with calls where that is better.
    pub(crate) fn lower_called(&self, meter: &Meter) -> Result<Called> {
        if meter.limits().frames > Limits::MAX_FRAMES {
            return Err(Error::limit(Limit::Frames(Limits::MAX_FRAMES)));
        }
        Ok(match &self.kind {
            Kind::JsonSchema(schema, _) => match schema.lower_called(meter)? {
                (Texts::Called(automaton), _) => {
                    Called::Yes(Box::new(CalledText { automaton, free: FreeText::default() }))
                }
                (Texts::Copied(rows), unrolled) => Called::No(Lowered::Rows(Box::new(rows), unrolled)),
            },
            Kind::Part(part) if !part.is_plain() => match part.lower_called(meter)? {
                (Texts::Called(automaton), _) => {
                    Called::Yes(Box::new(CalledText { automaton, free: FreeText::default() }))
                }
                (Texts::Copied(rows), unrolled) => Called::No(Lowered::Rows(Box::new(rows), unrolled)),
            },
            Kind::Grammar(grammar, _) => {
                let Lexical { determinized, tokens } = grammar.lower(meter)?;
                match determinized {
                    Determinized::Finite(rows) => Called::No(finite(rows, tokens, meter)?),
                    Determinized::Called(automaton) if meter.limits().frames > 0 => {
                        let free = FreeText { tokens, ..FreeText::default() };
                        Called::Yes(Box::new(CalledText { automaton, free }))
                    }
                    Determinized::Called(_) => return Err(recursive()),
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
    pub(crate) fn lower(&self, meter: &Meter) -> Result<Lowered> {
        let dfa: Arc<ByteDfa> = match &self.kind {
            Kind::Regex(regex, _) => regex.lower(meter)?.into(),
            Kind::Choice(choices) => choice::lower(choices, meter)?.into(),
            Kind::Pattern(pattern) => pattern.lower(meter)?.into(),
            Kind::JsonSchema(schema, _) => {
                let (rows, unrolled) = schema.lower(meter)?;
                return Ok(Lowered::Rows(Box::new(rows), unrolled));
            }
            Kind::Grammar(grammar, _) => {
                let Lexical { determinized, tokens } = grammar.lower(meter)?;
                return match determinized {
                    Determinized::Finite(rows) => finite(rows, tokens, meter),
                    Determinized::Called(_) => Err(recursive()),
                };
            }
            Kind::Part(part) => part.lower(meter)?.into(),
            Kind::Dfa(dfa) => Arc::clone(dfa),
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

/// A grammar without calls.
fn finite(rows: RowDfa, tokens: TokenEdges, meter: &Meter) -> Result<Lowered> {
    if tokens.is_empty() {
        return Ok(Lowered::Rows(Box::new(rows), Unrolled::default()));
    }
    let free = FreeText { tokens, ..FreeText::default() };
    Ok(Lowered::Bytes(TextAutomaton { free, ..Arc::new(rows.spread(meter)?).into() }))
}

/// Of a recursive grammar where a finite automaton is asked for.
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
