//! The locations in a schema that exceed a limit.

use burn_dfa_tokens::{Constraint, Error, ErrorKind, Limits};
use std::time::Duration;

use serde_json::{Value, json};

fn breach(schema: &Value, limits: &Limits) -> Error {
    let error = Constraint::json_schema(schema.clone()).unwrap().to_byte_dfa(limits).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    error
}

#[test]
fn a_breach_names_the_part_that_takes_most() {
    let limits = Limits { states: 20_000, ..Limits::default() };
    // Words with few common prefixes.
    let words: Vec<String> =
        (1..20_000).map(|i: u64| format!("{:x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let of = |part: Value| {
        json!({
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 5}, "b/c": part, "d": {"type": "number", "minimum": 3}},
            "required": ["a", "b/c"],
            "additionalProperties": false
        })
    };
    for (part, keyword) in [
        (json!({"type": "string", "pattern": "(x|y)*x(x|y){30}"}), "/pattern"),
        (json!({"type": "integer", "multipleOf": 999_983}), "/multipleOf"),
        (json!({"type": "string", "maxLength": 1_000_000}), ""),
        (json!({"type": "array", "items": {"type": "integer"}, "maxItems": 100_000}), ""),
        (json!({"enum": words}), "/enum"),
        (json!({"type": "array", "minItems": 3, "maxItems": 3, "items": {"enum": words}}), "/items/enum"),
    ] {
        let error = breach(&of(part.clone()), &limits);
        let pointer = error.pointer().unwrap();
        let inside = format!("/properties/b~1c{keyword}");
        assert!(pointer.starts_with(&inside), "{pointer} is not in {inside}");
        assert!(error.to_string().contains(&format!("most of them at {pointer} of the schema")), "{error}");
    }
    // The pointer names the location of a definition.
    let schema = json!({"$defs": {"list": {"type": "array", "items": {"type": "null"}, "minItems": 50_000}}, "items": {"$ref": "#/$defs/list"}});
    let error = breach(&schema, &limits);
    assert!(error.pointer().unwrap().starts_with("/$defs/list"), "{error}");
}

#[test]
fn time_runs_out_somewhere() {
    let limits = Limits { time: Duration::ZERO, ..Limits::default() };
    let error = breach(&json!({"items": {"type": "string", "pattern": "a{3}"}}), &limits);
    assert!(error.pointer().is_some(), "{error}");
    assert!(error.to_string().contains("which ran out at"), "{error}");
}

#[test]
fn other_constraints_have_no_parts() {
    let limits = Limits { states: 10, ..Limits::default() };
    let error = Constraint::regex("a{100}").unwrap().to_byte_dfa(&limits).unwrap_err();
    assert!(error.kind() == ErrorKind::Limit && error.pointer().is_none(), "{error}");
}
