//! A constraint written down as JSON.

use std::borrow::Cow;
use std::fmt;

use serde_json::json;

use super::json_schema::{Json, Schema};
use super::{Constraint, GivenGrammar, Grammar, JsonOptions, Kind, Marker, StructuralTag};
use burn_dfa_automata::ByteDfa;
use burn_dfa_common::{Result, limits::Meter};

/// A JSON schema as given, with its options.
pub(super) struct SchemaSource {
    schema: Json,
    options: JsonOptions,
}

impl SchemaSource {
    pub(super) fn new(schema: Json, options: JsonOptions) -> Self {
        Self { schema, options }
    }

    pub(super) fn schema(&self) -> &Json {
        &self.schema
    }

    /// The parsed schema, completed as [`Schema::settled`] describes.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn settled<'s>(&self, read: &'s Schema, meter: &Meter) -> Result<Cow<'s, Schema>> {
        read.settled(&self.schema, &self.options, meter)
    }
}

impl fmt::Debug for SchemaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaSource").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Constraint {
    /// The constraint as JSON text; `None` if it contains an automaton over bytes or a grammar
    /// built by hand.
    ///
    /// Regexes, character patterns (as a regex of the same language), choices and JSON schemas are
    /// the objects [`from_request`](Self::from_request) reads: `{"regex": …}`, `{"choice": […]}`
    /// and `{"json": …}`. A schema has its `options` next to it unless they are the default. A
    /// grammar is OpenAI's `{"type": "grammar", "grammar": {"syntax": …, "definition": …}}`, with
    /// its `start` if one was given. A structural tag is `{"type": "structural_tag", "format": …}`,
    /// with the `options` of its schemas unless they are the usual ones. `options` are not part of
    /// a request: `from_request` refuses them. To read such a definition back, take them out and
    /// give them to [`from_request_str_with`](Self::from_request_str_with), as
    /// [`RequestOptions::json`](crate::RequestOptions::json) or
    /// [`RequestOptions::tags`](crate::RequestOptions::tags).
    ///
    /// Token sets are `{"token_sets": [[id, …], …]}`. Transitions are
    /// `{"transitions": {"initial": …, "accepting": […], "transitions": [[state, id, next], …]}}`,
    /// with states renumbered from 1. A constraint after free text is
    /// `{"after": marker, "constraint": …}`; the marker is a text or a token id.
    ///
    /// ```
    /// use burn_dfa_tokens::Constraint;
    ///
    /// let constraint = Constraint::choice(["yes", "no"])?;
    /// assert_eq!(constraint.definition().unwrap(), r#"{"choice":["yes","no"]}"#);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn definition(&self) -> Option<String> {
        match self.defined() {
            Ok(text) => Some(text),
            Err(Undefined::After(marker, constraint)) => {
                let marker = match marker {
                    Marker::Text(text) => json!(text),
                    Marker::Token(token) => json!(token.0),
                };
                Some(format!(r#"{{"after":{marker},"constraint":{}}}"#, constraint.definition()?))
            }
            Err(Undefined::Dfa(_) | Undefined::Grammar(_) | Undefined::Part) => None,
        }
    }

    /// The options of its schemas, omitted from a [definition](Self::definition) if they are the
    /// default.
    pub(super) fn json_options(&self) -> Option<&JsonOptions> {
        match &self.kind {
            Kind::JsonSchema(_, given) => Some(&given.options),
            Kind::Grammar(_, given) => match given.as_deref()? {
                GivenGrammar::Tag(_, options) => Some(options),
                GivenGrammar::Text { .. } => None,
            },
            _ => None,
        }
    }

    /// The definition, or the part of the constraint without a JSON form.
    pub(super) fn defined(&self) -> std::result::Result<String, Undefined<'_>> {
        Ok(match &self.kind {
            Kind::Regex(_, pattern) => json!({"regex": without_nul(pattern)}).to_string(),
            Kind::Pattern(pattern) => json!({"regex": without_nul(&pattern.to_regex())}).to_string(),
            Kind::Choice(choices) => json!({"choice": &**choices}).to_string(),
            Kind::JsonSchema(_, given) => {
                let schema = given.schema.text();
                if given.options == JsonOptions::default() {
                    format!(r#"{{"json":{schema}}}"#)
                } else {
                    format!(r#"{{"json":{schema},"options":{}}}"#, json!(given.options))
                }
            }
            Kind::TokenSets(sets) => {
                let sets = sets.iter().map(|set| set.iter().map(|id| id.0).collect::<Vec<_>>());
                json!({"token_sets": sets.collect::<Vec<_>>()}).to_string()
            }
            Kind::Transitions(transitions) => {
                let automaton = transitions.automaton();
                let accepting: Vec<usize> =
                    automaton.accepting.iter().enumerate().filter_map(|(at, &is)| is.then_some(at)).collect();
                let rows = automaton.transitions.iter().map(|&(state, id, next)| [state, id.0, next]);
                let rows: Vec<_> = rows.collect();
                json!({"transitions": {
                    "initial": automaton.start, "accepting": accepting, "transitions": rows
                }})
                .to_string()
            }
            Kind::Grammar(grammar, given) => match given.as_deref() {
                None => return Err(Undefined::Grammar(grammar)),
                Some(GivenGrammar::Text { syntax, text, start }) => {
                    let mut grammar = json!({"syntax": syntax.name(), "definition": text});
                    if let Some(start) = start {
                        grammar["start"] = json!(start);
                    }
                    json!({"type": "grammar", "grammar": grammar}).to_string()
                }
                Some(GivenGrammar::Tag(tag, options)) => {
                    let mut tag = json!(tag);
                    if **options != StructuralTag::json_options() {
                        tag["options"] = json!(options);
                    }
                    tag.to_string()
                }
            },
            Kind::Styled(_) | Kind::Deferred(_) => return Err(Undefined::Part),
            Kind::Dfa(dfa) => return Err(Undefined::Dfa(dfa)),
            Kind::After(marker, constraint) => return Err(Undefined::After(marker, constraint)),
        })
    }
}

/// The regex with `\x00` instead of the character NUL, which requests refuse.
fn without_nul(regex: &str) -> Cow<'_, str> {
    if !regex.contains('\0') {
        return regex.into();
    }
    let mut without = String::with_capacity(regex.len() + 3);
    // Whether a backslash begins an escape just before.
    let mut is_escaped = false;
    for c in regex.chars() {
        match c {
            '\0' if is_escaped => without.push_str("x00"),
            '\0' => without.push_str(r"\x00"),
            c => without.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    without.into()
}

/// A constraint without a complete JSON form.
pub(super) enum Undefined<'c> {
    Dfa(&'c ByteDfa),
    /// Built by hand.
    Grammar(&'c Grammar),
    /// A schema in a style, or an automaton, within a structural tag.
    Part,
    /// Free text before a constraint; the constraint itself may have a JSON form.
    After(&'c Marker, &'c Constraint),
}

#[cfg(test)]
mod tests {
    use burn_dfa_common::ErrorKind;
    use serde_json::Value;

    use super::*;
    use crate::{CharClass, CharPattern, Transitions, Whitespace};
    use crate::{Limits, TokenId};

    /// Reads the definition back.
    fn again(constraint: &Constraint) -> Constraint {
        Constraint::from_request_str(&constraint.definition().unwrap()).unwrap().unwrap()
    }

    #[test]
    fn a_written_definition_has_the_same_language() {
        let schema = json!({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"enum": ["\"", null, 1.5]}}});
        let pattern = CharPattern::new()
            .one_or_more(CharClass::UPPER.or(&CharClass::any_of("]^-é")))
            .optional("a+b\0")
            .zero_or_more(CharClass::BLANK);
        let constraints = [
            Constraint::regex("a[\"\\\\]{2}|é").unwrap(),
            // The second NUL begins a range; a backslash escapes the third, but not the fourth.
            Constraint::regex("a\0[\0-\u{3}]\\\0\\\\\0").unwrap(),
            Constraint::choice(["", "a\nb", "\u{1F600}"]).unwrap(),
            Constraint::json_schema(schema).unwrap(),
            Constraint::json_schema_from_str(r#"{"enum":[0.1000000000000000000001,1e400,-25e-30]}"#).unwrap(),
            Constraint::pattern(pattern),
        ];
        for constraint in constraints {
            let dfa = |constraint: &Constraint| constraint.to_byte_dfa(&Limits::default()).unwrap();
            assert_eq!(dfa(&again(&constraint)), dfa(&constraint), "{constraint:?}");
        }
        let nothing = Constraint::pattern(CharPattern::new().one(CharClass::range('b', 'a')));
        assert!(
            again(&nothing).to_byte_dfa(&Limits::default()).unwrap_err().kind() == ErrorKind::Unsatisfiable
        );
    }

    #[test]
    fn all_that_makes_a_difference_is_written() {
        let schema = json!({"type": "integer"});
        let options = JsonOptions { whitespace: Whitespace::Pretty(2), ..JsonOptions::default() };
        let spaced = Constraint::json_schema_with(schema, &options).unwrap().definition().unwrap();
        assert!(spaced.contains(r#""whitespace":{"pretty":2}"#), "{spaced}");
        let sets = Constraint::token_sets(vec![vec![TokenId(3), TokenId(5)], vec![TokenId(4)]]).unwrap();
        assert_eq!(sets.definition().unwrap(), r#"{"token_sets":[[3,5],[4]]}"#);
        let transitions = Transitions::new(7, [9], [(7, TokenId(1), 7), (7, TokenId(2), 9)]).unwrap();
        assert_eq!(
            Constraint::transitions(transitions).definition().unwrap(),
            r#"{"transitions":{"initial":1,"accepting":[2],"transitions":[[1,1,1],[1,2,2]]}}"#
        );
        let dfa = Constraint::regex("a").unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
        assert_eq!(Constraint::dfa(dfa).definition(), None);
        let after =
            |marker: Marker| Constraint::after(marker, Constraint::regex("a").unwrap()).definition().unwrap();
        assert_eq!(after("\"".into()), r#"{"after":"\"","constraint":{"regex":"a"}}"#);
        assert_eq!(after(TokenId(5).into()), r#"{"after":5,"constraint":{"regex":"a"}}"#);
    }

    #[test]
    fn a_schema_may_be_deep_where_nobody_reads_it() {
        let mut deep = json!(1);
        for _ in 0..100_000 {
            deep = Value::Array(vec![deep]);
        }
        let mut schema = json!({"type": "integer"});
        schema["x-note"] = deep;
        let constraint = Constraint::json_schema(schema).unwrap();
        assert_eq!(
            constraint.definition().unwrap().len(),
            r#"{"json":{"type":"integer","x-note":1}}"#.len() + 200_000
        );
    }
}
