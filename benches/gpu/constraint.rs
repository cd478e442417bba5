//! The constraints of all cases.

use burn_dfa::Constraint;

/// An object with a string that a model with random weights almost never ends: two of tens of
/// thousands of tokens end it.
const TEXT: &str = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}"#;

/// As [`TEXT`], with few letters: a few dozen tokens are legal in the string.
const LETTERS: &str = r#"{"type": "object", "properties": {"text": {"type": "string", "pattern": "^[a-e]*$"}}, "required": ["text"],
    "additionalProperties": false}"#;

/// A recursive schema.
const NESTED: &str = r##"{"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}},
    "required": ["list", "name"], "additionalProperties": false}"##;

fn schema(json: &str) -> Constraint {
    Constraint::json_schema_from_str(json).expect("a schema")
}

pub fn text() -> Constraint {
    schema(TEXT)
}

pub fn letters() -> Constraint {
    schema(LETTERS)
}

pub fn nested() -> Constraint {
    schema(NESTED)
}
