//! Remarks on keywords that are bounded, ignored, or honored in a way that the schema leaves open.

use std::fmt;

/// A remark on a location of a schema; see [`Constraint::explain`](crate::Constraint::explain).
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits};
/// use burn_dfa_tokens::constraint::Treatment;
/// use serde_json::json;
///
/// let constraint = Constraint::json_schema(json!({"type": "string", "format": "shade"}))?;
/// let notes = constraint.explain(&Limits::default());
/// assert_eq!(notes[0].pointer, "/format");
/// assert!(matches!(notes[0].treatment, Treatment::Ignored(_)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// JSON pointer (RFC 6901) to the keyword, or to the schema.
    pub pointer: String,
    /// How it is treated.
    pub treatment: Treatment,
}

/// The treatment of a keyword that is not honored exactly, or whose meaning the schema leaves open.
/// All keywords without a [`Note`] are honored exactly.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Treatment};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// // Any JSON is followed to the depth that was asked for, so that deeper values are not written.
/// let options = JsonOptions::new().with_any_depth(2);
/// let notes = Constraint::json_schema_with(json!({"type": "array"}), &options)?
///     .explain(&Limits::default());
/// assert!(matches!(notes[0].treatment, Treatment::Bounded(_)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Treatment {
    /// Fewer values are written than the schema allows; the reason.
    Bounded(String),
    /// It has no effect; the reason.
    Ignored(String),
    /// It has no effect, because no finite automaton enforces it and the options
    /// [allow leaving it out](crate::Unenforceable::Ignore); the reason.
    Unenforceable(String),
    /// It is a known `format` that describes values and restricts none, as `password`; the reason.
    Annotation(String),
    /// It is honored as in another draft than the schema's; with the difference.
    Read(String),
    /// It is honored, and names in its scope may occur twice in the text of an object.
    Repeated(String),
}

impl Treatment {
    /// The effect on the keyword in one word.
    pub fn name(&self) -> &'static str {
        self.parts().0
    }

    /// The reason for the treatment, or the difference.
    pub fn reason(&self) -> &str {
        self.parts().1
    }

    /// The name and the reason.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Bounded(reason) => ("bounded", reason),
            Self::Ignored(reason) | Self::Unenforceable(reason) => ("ignored", reason),
            Self::Annotation(reason) => ("annotation", reason),
            Self::Read(reason) => ("read", reason),
            Self::Repeated(reason) => ("repeated", reason),
        }
    }

    pub(crate) fn reason_mut(&mut self) -> &mut String {
        match self {
            Self::Bounded(reason)
            | Self::Ignored(reason)
            | Self::Unenforceable(reason)
            | Self::Annotation(reason)
            | Self::Read(reason)
            | Self::Repeated(reason) => reason,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(f, "{pointer}: {}: {}", self.treatment.name(), self.treatment.reason())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Treatment;
    use crate::{Additional, JsonOptions};
    use crate::{Constraint, Limits};

    fn with(schema: Value, options: &JsonOptions) -> Vec<String> {
        let constraint = Constraint::json_schema_with(schema, options).unwrap();
        constraint.explain(&Limits::default()).iter().map(ToString::to_string).collect()
    }

    /// The first words of each note.
    fn notes(schema: Value) -> Vec<String> {
        let short = |note: String| note.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": ");
        with(schema, &JsonOptions::default()).into_iter().map(short).collect()
    }

    #[test]
    fn names_that_may_occur_twice_are_noted() {
        let integer = json!({"type": "integer"});
        let closed = json!({"type": "object", "properties": {"a": integer}, "additionalProperties": false});
        assert_eq!(notes(closed), [""; 0]);
        assert_eq!(notes(json!({"type": "array", "items": integer})), [""; 0]);
        let open = json!({"type": "object", "properties": {"a": integer}});
        assert_eq!(notes(open), ["the root: repeated"]);
        assert_eq!(notes(json!({"type": "object", "additionalProperties": integer})), ["the root: repeated"]);
        assert_eq!(notes(json!({})), ["the root: repeated"]);
        let names =
            json!({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": integer});
        assert_eq!(notes(json!({"type": "array", "items": names})), ["/items/propertyNames: repeated"]);
        let patterns = json!({"type": "object", "patternProperties": {"^(a|b)$": integer}, "additionalProperties": false});
        assert_eq!(notes(patterns.clone()), ["/patternProperties/^(a|b)$: repeated"]);
        // The text confirms the note.
        let dfa =
            Constraint::json_schema(patterns).unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
        assert!(dfa.matches(br#"{"a": 1, "a": 2}"#));
    }

    #[test]
    fn ignored_keywords_are_noted() {
        let misspelled = json!({"type": "string", "title": "t", "x-a": 1, "patern": "^a", "color": "red"});
        let unknown = "ignored: it is no keyword of JSON Schema";
        assert_eq!(
            with(misspelled, &JsonOptions::default()),
            [format!("/patern: {unknown}; did you mean `pattern`?"), format!("/color: {unknown}")]
        );
        let ignored = |schema: Value| {
            let notes = Constraint::json_schema(schema).unwrap().explain(&Limits::default());
            let ignored = notes.into_iter().filter(|note| matches!(note.treatment, Treatment::Ignored(_)));
            ignored.map(|note| note.pointer).collect::<Vec<_>>()
        };
        assert_eq!(ignored(json!({"type": "string", "format": "shade"})), ["/format"]);
        assert_eq!(ignored(json!({"type": "string", "format": "password"})), [""; 0]);
        // The draft is that of `$schema`, and the target of the reference is within `definitions`.
        let referring = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "minLength": 1,
            "definitions": {"a": {"type": "null"}}
        });
        assert_eq!(ignored(referring), ["/minLength"]);
        let newer = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "items": {"$ref": "#/$defs/a"},
            "$defs": {"a": {"type": "null"}}
        });
        assert_eq!(ignored(newer), [""; 0]);
    }

    #[test]
    fn values_excluded_by_options_are_noted() {
        let new = JsonOptions::new;
        let string = || json!({"type": "string"});
        assert_eq!(with(string(), &new()), [""; 0]);
        for options in
            [new().with_max_string(3), new().with_max_digits(3), new().with_additional(Additional::Closed)]
        {
            let said = with(string(), &options);
            assert!(said.len() == 1 && said[0].contains("as the options say"), "{said:?}");
        }
    }

    #[test]
    fn keywords_of_other_drafts_are_noted_as_they_are_read() {
        let closed = |more: Value| {
            let mut schema = json!({"type": ["number", "array"], "items": false});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            notes(schema)
        };
        assert_eq!(closed(json!({})), [""; 0]);
        assert_eq!(closed(json!({"minimum": 1, "exclusiveMinimum": true})), ["/exclusiveMinimum: read"]);
        assert_eq!(closed(json!({"maximum": 1, "exclusiveMaximum": false})), ["/exclusiveMaximum: read"]);
        assert_eq!(closed(json!({"exclusiveMinimum": 1})), [""; 0]);
        let list = json!([{"type": "null"}]);
        assert_eq!(closed(json!({"items": list, "additionalItems": false})), ["/items: read"]);
        assert_eq!(closed(json!({"additionalItems": false})), ["/additionalItems: ignored"]);
        assert_eq!(closed(json!({"definitions": {}})), ["/definitions: read"]);
        assert_eq!(closed(json!({"$defs": {}})), [""; 0]);
        assert_eq!(closed(json!({"id": "http://example.com/a"})), ["/id: ignored"]);
        // If `$schema` names the draft of the keywords, no note is needed.
        let four = json!({
            "$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/a", "definitions": {},
            "minimum": 1, "exclusiveMinimum": true, "items": list, "additionalItems": false
        });
        assert_eq!(closed(four), [""; 0]);
        let latest = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(closed(json!({"$schema": latest, "definitions": {}})), [""; 0]);
        assert_eq!(
            closed(json!({"$schema": latest, "items": list, "additionalItems": false})),
            ["/items: read"]
        );
    }
}
