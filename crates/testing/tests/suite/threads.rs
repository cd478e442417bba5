//! The number of threads does not change the result of a compilation.

use burn_dfa_tokens::{CompiledConstraint, Constraint, Limits};
use serde_json::{Value, json};

use burn_dfa_testing::words::vocabulary;

/// Calls of several tools, each with a different schema.
fn calls(schemas: impl IntoIterator<Item = Value>) -> Constraint {
    let tag = |(number, schema): (usize, Value)| {
        json!({
            "begin": format!("<f{number}>"),
            "content": {"type": "json_schema", "json_schema": schema},
            "end": "</f>",
        })
    };
    let tags: Vec<Value> = schemas.into_iter().enumerate().map(tag).collect();
    let format = json!({"type": "triggered_tags", "triggers": ["<f"], "tags": tags});
    Constraint::structural_tag(&json!({"type": "structural_tag", "format": format})).unwrap()
}

fn schema(number: usize) -> Value {
    let words: Vec<String> = (0..40).map(|word| format!("{}", word * 7919 % (1009 + number))).collect();
    json!({
        "type": "object",
        "properties": {"word": {"enum": words}, "many": {"type": "string", "maxLength": 40 + number}},
        "required": ["word"],
        "additionalProperties": {"type": "array", "items": {"$ref": "#/properties/word"}},
    })
}

#[test]
fn a_compiled_constraint_is_the_same() {
    let vocabulary = vocabulary();
    let constraint = calls((0..30).map(schema));
    let compile = |threads| {
        let limits = Limits::default().with_threads(threads);
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits).unwrap()
    };
    let alone = compile(1);
    // More rows than one thread converts.
    assert!(alone.state_count() > 20_000, "{}", alone.state_count());
    for threads in [0, 2, 5] {
        assert_eq!(compile(threads), alone, "{threads} threads");
    }
}

#[test]
fn a_refusal_is_the_same() {
    let vocabulary = vocabulary();
    let many = |states: usize| json!({"type": "string", "pattern": format!("^(a|b)*a(a|b){{{states}}}$")});
    // Two schemas are too large; the error names the first.
    let schemas = [schema(0), many(15), schema(1), many(16), schema(2)];
    let constraint = calls(schemas);
    let refused = |threads| {
        let limits = Limits::default().with_states(20_000).with_threads(threads);
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits).unwrap_err().to_string()
    };
    let alone = refused(1);
    for _ in 0..5 {
        assert_eq!(refused(4), alone);
    }
}
