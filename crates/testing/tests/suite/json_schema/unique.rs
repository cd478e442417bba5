//! `uniqueItems`: all arrays over small lists of values, compared with another validator, and the
//! option to leave keywords out.

use burn_dfa_tokens::{
    Constraint, ErrorKind, Limits,
    constraint::{Treatment, Unenforceable},
};
use serde_json::{Value, json};

use super::compact;

/// Compares the automaton of `schema` with a validator, on all arrays of up to `max` of these
/// values.
#[track_caller]
fn judged(schema: &Value, values: &[Value], max: usize) {
    let automaton =
        Constraint::json_schema_with(schema.clone(), &compact()).unwrap().to_automaton(&Limits::default());
    let automaton = automaton.unwrap_or_else(|error| panic!("{schema}: {error}")).unwrap();
    let validator = jsonschema::validator_for(schema).unwrap();
    let mut arrays: Vec<Vec<Value>> = vec![Vec::new()];
    let (mut from, mut valid) = (0, 0);
    for _ in 0..=max {
        for array in &arrays[from..] {
            let array = Value::from(array.clone());
            let expected = validator.is_valid(&array);
            valid += usize::from(expected);
            assert_eq!(automaton.matches(array.to_string().as_bytes()), expected, "{schema}: {array}");
        }
        let longer: Vec<_> = arrays[from..]
            .iter()
            .flat_map(|array| values.iter().map(move |value| array.iter().chain([value]).cloned().collect()))
            .collect();
        from = arrays.len();
        arrays.extend(longer);
    }
    assert!(valid > 1, "{schema}: only {valid} arrays are valid");
}

#[test]
fn items_of_a_list_of_values() {
    let letters: Vec<Value> = ('a'..='z').map(|letter| json!(letter.to_string())).collect();
    let set = |items: Value, max: usize| json!({"type": "array", "items": items, "uniqueItems": true, "maxItems": max});
    judged(&set(json!({"enum": letters[..4]}), 9), &letters[..5], 4);
    judged(&set(json!({"enum": letters}), 2), &letters, 2);
    judged(&set(json!({"enum": letters[..14]}), 3), &letters[..8], 3);
    let mixed = [json!(1), json!("1"), json!(null), json!(true), json!([1]), json!({"a": 1})];
    judged(
        &json!({"type": "array", "items": {"enum": mixed}, "uniqueItems": true, "minItems": 2}),
        &mixed,
        4,
    );
}

#[test]
fn items_of_a_small_range() {
    let values: Vec<Value> = (-3..4).map(|value| json!(value)).collect();
    let range = |more: Value| {
        let mut items = json!({"type": "integer", "minimum": -2, "maximum": 2});
        items.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "array", "items": items, "uniqueItems": true})
    };
    judged(&range(json!({})), &values, 3);
    judged(&range(json!({"maximum": 1.5})), &values, 3);
    judged(&range(json!({"exclusiveMinimum": -2})), &values, 3);
    judged(&range(json!({"multipleOf": 2})), &values, 3);
    judged(&range(json!({"type": ["integer", "null"]})), &[values.as_slice(), &[json!(null)]].concat(), 3);
}

#[test]
fn items_with_parts_of_lists() {
    let object = json!({"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "n": {"type": "boolean"}},
        "required": ["k"], "additionalProperties": false});
    let objects = [
        json!({"k": "a"}),
        json!({"k": "b"}),
        json!({"k": "a", "n": true}),
        json!({"k": "a", "n": false}),
        json!({"k": "c"}),
        json!({}),
    ];
    judged(&json!({"type": "array", "items": object, "uniqueItems": true}), &objects, 3);
    let pairs = [json!([]), json!([1]), json!([1, 2]), json!([2, 1]), json!([1, 1]), json!([1, 2, 1])];
    let pair = json!({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2});
    judged(&json!({"type": "array", "items": pair, "uniqueItems": true}), &pairs, 3);
    let either = json!({"anyOf": [{"enum": ["a", 1]}, {"type": "integer", "minimum": 0, "maximum": 2}]});
    let values = [json!("a"), json!(0), json!(1), json!(2), json!(3)];
    judged(&json!({"type": "array", "items": either, "uniqueItems": true}), &values, 4);
}

#[test]
fn tuples_of_types_that_differ() {
    let values = [json!(1), json!(2), json!("a"), json!("b"), json!(null)];
    let tuple = |more: Value| {
        let mut schema = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "uniqueItems": true});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    judged(&tuple(json!({"items": false})), &values, 3);
    judged(&tuple(json!({"maxItems": 2})), &values, 3);
    judged(
        &tuple(json!({"items": {"enum": [null]}, "prefixItems": [{"enum": [1, 2]}, {"enum": ["a", null]}]})),
        &values,
        4,
    );
}

#[test]
fn unenforceable_keywords_are_refused_or_left_out() {
    let leave_out = compact().with_unenforceable(Unenforceable::Ignore);
    let long: Vec<_> = (0..40).collect();
    for (schema, pointer, accepted, rejected) in [
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "/uniqueItems",
            r#"["a","a"]"#,
            "[1]",
        ),
        (
            json!({"type": "object", "properties": {"t": {"type": "array", "uniqueItems": true}}}),
            "/properties/t/uniqueItems",
            r#"{"t":[1,1]}"#,
            r#"{"t":1}"#,
        ),
        (
            json!({"type": "array", "items": {"enum": long}, "uniqueItems": true}),
            "/uniqueItems",
            "[3,3]",
            "[40]",
        ),
        (json!({"type": "object", "minProperties": 2}), "/minProperties", r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 3}),
            "/minProperties",
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"a":1,"b":2,"c":3,"d":4}"#,
        ),
    ] {
        let strict = Constraint::json_schema(schema.clone()).unwrap();
        let error = strict.to_automaton(&Limits::default()).unwrap_err();
        assert_eq!(error.pointer(), Some(pointer), "{schema}: {error}");
        // The error has the fields to describe both remedies.
        let unenforced = error.unenforced().unwrap_or_else(|| panic!("{schema}: {error}"));
        assert!(error.kind() == ErrorKind::Schema && pointer.ends_with(unenforced.keyword), "{error}");
        let said = format!(
            "JSON schema, at {pointer}: `{0}`: {1}; {2}; or leave `{0}` out with `JsonOptions::unenforceable`, and check the value afterwards",
            unenforced.keyword, unenforced.reason, unenforced.change
        );
        assert_eq!(error.to_string(), said);
        let lenient = Constraint::json_schema_with(schema.clone(), &leave_out).unwrap();
        let automaton = lenient.to_automaton(&Limits::default()).unwrap().unwrap();
        assert!(automaton.matches(accepted.as_bytes()), "{schema}");
        assert!(!automaton.matches(rejected.as_bytes()), "{schema}");
        let notes = lenient.explain(&Limits::default());
        let note = notes
            .iter()
            .find(|note| note.pointer == pointer)
            .unwrap_or_else(|| panic!("{schema}: {notes:?}"));
        assert!(matches!(note.treatment, Treatment::Unenforceable(_)), "{note}");
    }
    // Exact cases do not change.
    let exact = json!({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": true});
    let automaton = Constraint::json_schema_with(exact, &leave_out).unwrap();
    assert!(!automaton.to_automaton(&Limits::default()).unwrap().unwrap().matches(b"[1,1]"));
    assert!(automaton.explain(&Limits::default()).is_empty());
}
