//! Undeclared names of objects: an automaton cannot tell whether they are distinct. Objects whose
//! validity depends on that are left out, with a note. No other objects are left out, and generated
//! objects are valid even if names repeat.

use burn_dfa_tokens::{Constraint, ErrorKind, Limits};
use serde_json::{Value, json};

/// Properties of the enumerated objects.
const PROPERTIES: [(&str, &str); 8] = [
    ("a", "1"),
    ("a", "\"s\""),
    ("b", "1"),
    ("b", "\"s\""),
    ("x", "1"),
    ("x", "\"s\""),
    ("x", "null"),
    ("long", "1"),
];

/// All sequences of at most three properties.
fn objects() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..3 {
        last = last
            .into_iter()
            .flat_map(|object| {
                PROPERTIES.map(|property| {
                    let mut longer: Vec<_> = object.clone();
                    longer.push(property);
                    longer
                })
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

fn text(object: &[(&str, &str)]) -> String {
    let properties: Vec<String> = object.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", properties.join(","))
}

/// Pointers of the notes on names.
fn notes(constraint: &Constraint) -> Vec<String> {
    let notes = constraint.explain(&Limits::default());
    let of_names = notes.into_iter().filter(|note| note.to_string().contains("distinct"));
    of_names.map(|note| note.pointer).collect()
}

/// The number of valid objects that a schema leaves out. Also checks that all accepted objects are
/// valid.
fn left_out(schema: &Value, constraint: &Constraint) -> usize {
    let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().expect("text");
    let validator = super::oracle::build(jsonschema::Draft::Draft202012, schema, false).unwrap();
    let mut left_out = 0;
    for object in objects() {
        let text = text(&object);
        // The last of several equal names counts.
        let value: Value = serde_json::from_str(&text).unwrap();
        let valid = validator.is_valid(&value);
        assert!(valid || !dfa.matches(text.as_bytes()), "{schema} accepts {text}");
        if valid && value.as_object().unwrap().len() == object.len() {
            // The text in the order of the schema.
            let (text, _) = constraint.json_text_from_str(&text, &Limits::default()).unwrap().unwrap();
            left_out += usize::from(!dfa.matches(text.as_bytes()));
        }
    }
    left_out
}

#[test]
fn left_out_objects_are_noted() {
    for (schema, at) in [
        (
            json!({"type": "object", "not": {"additionalProperties": {"type": "string"}}}),
            "/not/additionalProperties",
        ),
        (
            json!({"type": "object", "not": {"patternProperties": {"^[ab]": {"type": "string"}}}}),
            "/not/patternProperties/^[ab]",
        ),
        (
            json!({"type": "object", "properties": {"a": true}, "not": {"additionalProperties": {"type": "integer"}}}),
            "/not/additionalProperties",
        ),
        (
            json!({"type": "object", "if": {"additionalProperties": {"type": "string"}}, "then": {"maxProperties": 1}}),
            "/if/additionalProperties",
        ),
        (
            json!({"type": "object", "oneOf": [{"additionalProperties": {"type": "string"}}, {"required": ["a"]}]}),
            "/oneOf/0/additionalProperties",
        ),
    ] {
        let constraint = Constraint::json_schema_with(schema.clone(), &super::compact()).unwrap();
        assert!(left_out(&schema, &constraint) > 0, "{schema}");
        let notes = notes(&constraint);
        assert!(notes.contains(&at.to_owned()), "{schema}: {notes:?}");
    }
}

/// A forbidden name violates an assertion even if properties follow it.
#[test]
fn objects_that_a_name_decides_are_not_left_out() {
    for schema in [
        json!({"type": "object", "not": {"propertyNames": {"maxLength": 1}}}),
        json!({"type": "object", "not": {"patternProperties": {"^x": false}}}),
        json!({"type": "object", "not": {"properties": {"a": true}, "additionalProperties": false}}),
        json!({"type": "object", "oneOf": [{"propertyNames": {"pattern": "^[ab]"}}, {"required": ["a"]}]}),
        json!({"type": "object", "if": {"patternProperties": {"^x": false}}, "then": {"required": ["a"]}}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "anyOf": [{"additionalProperties": {"type": "string"}}, {"required": ["a"]}]}),
        json!({"type": "object", "properties": {"a": true, "b": true, "x": true, "long": true},
            "not": {"properties": {"a": {"type": "string"}, "x": {"type": "null"}}}, "additionalProperties": false}),
    ] {
        let constraint = Constraint::json_schema_with(schema.clone(), &super::compact()).unwrap();
        assert_eq!(left_out(&schema, &constraint), 0, "{schema}");
        assert_eq!(notes(&constraint), Vec::<String>::new(), "{schema}");
    }
}

/// A type is not left out silently if all of its objects would be left out.
#[test]
fn claims_that_leave_no_object() {
    let both = json!([
        {"not": {"additionalProperties": {"type": "string"}}},
        {"not": {"additionalProperties": {"type": "integer"}}}
    ]);
    for schema in [
        json!({"type": "object", "allOf": both, "additionalProperties": {"enum": ["s", 1]}}),
        json!({"type": ["object", "null"], "anyOf": [{"type": "null"}, {"allOf": both}], "additionalProperties": {"enum": ["s", 1]}}),
    ] {
        let error =
            Constraint::json_schema(schema.clone()).unwrap().to_byte_dfa(&Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema, "{schema}: {error}");
        assert!(error.pointer().unwrap().ends_with("/not/additionalProperties"), "{error}");
        assert!(error.to_string().contains("distinct"), "{error}");
    }
    // If no object satisfies the schema, names are not the reason.
    let none = json!({"anyOf": [{"type": "null"}, {"type": "object", "allOf": both}], "additionalProperties": {"type": "string"}});
    let dfa = super::compile(&none);
    assert!(dfa.matches(b"null") && !dfa.matches(b"{}"));
}
