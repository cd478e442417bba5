//! Refused schemas, with the JSON pointer of the reason.

use burn_dfa_tokens::{
    Constraint, Error, ErrorKind, Limits,
    constraint::{JsonOptions, Treatment, Unknown},
};
use serde_json::{Value, json};

fn refusal(schema: &Value) -> Error {
    match Constraint::json_schema(schema.clone()) {
        Ok(_) => panic!("{schema} is honored"),
        Err(error) => error,
    }
}

/// The location at which `schema` is refused.
fn pointer(schema: &Value) -> String {
    let error = refusal(schema);
    assert_eq!(error.kind(), ErrorKind::Schema, "{schema}: {error}");
    error.pointer().unwrap().to_owned()
}

/// The location at which the automaton of `schema` is refused.
fn late_pointer(schema: &Value) -> String {
    let constraint = Constraint::json_schema(schema.clone()).unwrap_or_else(|e| panic!("{schema}: {e}"));
    let error = constraint.to_byte_dfa(&Limits::default()).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Schema, "{schema}: {error}");
    error.pointer().unwrap().to_owned()
}

#[test]
fn typos_are_named() {
    let options = JsonOptions { unknown: Unknown::Refuse, ..JsonOptions::default() };
    let refusal = |schema: Value| Constraint::json_schema_with(schema, &options).unwrap_err();
    for (typo, keyword) in [
        ("anyof", "anyOf"),
        ("additonalProperties", "additionalProperties"),
        ("min_length", "minLength"),
        ("requird", "required"),
        ("descripton", "description"),
    ] {
        let error = refusal(json!({"items": {"type": "string", typo: 1}}));
        assert_eq!(error.pointer(), Some(&*format!("/items/{typo}")));
        assert!(error.to_string().contains(&format!("did you mean `{keyword}`?")), "{error}");
    }
    let error = refusal(json!({"type": "string", "somethingElse": 1})).to_string();
    assert!(!error.contains("did you mean"), "{error}");
    assert_eq!(refusal(json!({"type": "string", "format": "colour"})).pointer(), Some("/format"));
    // By default, unknown keywords are annotations with a note.
    let constraint = Constraint::json_schema(json!({"type": "string", "requird": 1})).unwrap();
    assert_eq!(constraint.explain(&Limits::default())[0].pointer, "/requird");
}

#[test]
fn keywords_beyond_finite_automata_are_refused() {
    let of = |inner: Value| json!({"type": "object", "properties": {"a/b": inner}, "required": ["a/b"]});
    for items in [json!({}), json!({"type": "integer"}), json!({"enum": (0..13).collect::<Vec<_>>()})] {
        let unique = json!({"type": "array", "items": items, "uniqueItems": true});
        assert_eq!(late_pointer(&of(unique)), "/properties/a~1b/uniqueItems");
    }
    let counted = json!({"type": "object", "minProperties": 2});
    assert_eq!(late_pointer(&counted), "/minProperties");
    assert_eq!(late_pointer(&of(counted)), "/properties/a~1b/minProperties");
}

/// A type is not left out silently if the names of its objects cannot be counted.
#[test]
fn counts_that_leave_no_object() {
    for (schema, at) in [
        (json!({"type": ["object", "null"], "minProperties": 2}), "/minProperties"),
        (json!({"minProperties": 3, "maxProperties": 5}), "/minProperties"),
        (json!({"type": ["object", "null"], "not": {"maxProperties": 1}}), "/not/maxProperties"),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "object", "minProperties": 2}]}),
            "/anyOf/1/minProperties",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "minProperties": 2}}}),
            "/properties/a/minProperties",
        ),
        (json!({"type": "array", "items": {"minProperties": 2}}), "/items/minProperties"),
        (
            json!({"type": ["object", "null"], "minProperties": 3, "properties": {"a": {}}, "maxProperties": 9}),
            "/minProperties",
        ),
    ] {
        assert_eq!(late_pointer(&schema), at, "{schema}");
    }
}

/// A note reports that only some objects are left out.
#[test]
fn counts_that_leave_some_objects() {
    let notes = |schema: Value| {
        super::compile(&schema);
        let notes = Constraint::json_schema(schema).unwrap().explain(&Limits::default());
        let counts = notes.into_iter().filter(|note| note.pointer.ends_with("Properties"));
        counts.map(|note| (note.pointer, matches!(note.treatment, Treatment::Bounded(_)))).collect::<Vec<_>>()
    };
    let noted = |pointer: &str| vec![(pointer.to_owned(), true)];
    let one = json!({"type": "object", "properties": {"c": true}, "minProperties": 2});
    assert_eq!(notes(one), noted("/minProperties"));
    let deep = json!({"items": {"properties": {"a": {}, "b": {}}, "minProperties": 2, "maxProperties": 4}});
    assert_eq!(notes(deep), noted("/items/minProperties"));
    // All objects are written.
    for exact in [
        json!({"type": "object", "minProperties": 1, "maxProperties": 3}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "minProperties": 2}),
        json!({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 2, "additionalProperties": false}),
    ] {
        assert_eq!(notes(exact), vec![]);
    }
}

#[test]
fn malformed_keywords_are_located() {
    for (schema, expected) in [
        (json!(null), ""),
        (json!("string"), ""),
        (json!([]), ""),
        (json!({"type": "strnig"}), "/type"),
        (json!({"type": 3}), "/type"),
        (json!({"type": []}), "/type"),
        (json!({"type": ["null", 3]}), "/type/1"),
        (json!({"enum": 3}), "/enum"),
        (json!({"anyOf": []}), "/anyOf"),
        (json!({"anyOf": {}}), "/anyOf"),
        (json!({"anyOf": [3]}), "/anyOf/0"),
        (json!({"$ref": 3}), "/$ref"),
        (json!({"type": "string", "minLength": -1}), "/minLength"),
        (json!({"type": "string", "minLength": 1.5}), "/minLength"),
        (json!({"type": "string", "maxLength": "3"}), "/maxLength"),
        (json!({"type": "string", "pattern": 3}), "/pattern"),
        (json!({"type": "array", "items": 3}), "/items"),
        (json!({"type": "array", "items": [{"type": "null"}, 3]}), "/items/1"),
        (json!({"prefixItems": {}}), "/prefixItems"),
        (json!({"contains": 3}), "/contains"),
        (json!({"contains": {}, "minContains": -1}), "/minContains"),
        (json!({"uniqueItems": 1}), "/uniqueItems"),
        (json!({"unevaluatedItems": 3}), "/unevaluatedItems"),
        (json!({"unevaluatedProperties": 3}), "/unevaluatedProperties"),
        (json!({"patternProperties": []}), "/patternProperties"),
        (json!({"patternProperties": {"a": 3}}), "/patternProperties/a"),
        (json!({"propertyNames": 3}), "/propertyNames"),
        (json!({"minProperties": "1"}), "/minProperties"),
        (json!({"maxProperties": 1.5}), "/maxProperties"),
        (json!({"dependentRequired": {"a": "b", "c": 3}}), "/dependentRequired/c"),
        (json!({"dependentSchemas": {"a": []}}), "/dependentSchemas/a"),
        (json!({"not": 3}), "/not"),
        (json!({"if": 3}), "/if"),
        (json!({"if": {}, "then": 3}), "/then"),
        (json!({"oneOf": []}), "/oneOf"),
        (json!({"allOf": [true, 3]}), "/allOf/1"),
        (json!({"minimum": "1"}), "/minimum"),
        (json!({"exclusiveMaximum": "1"}), "/exclusiveMaximum"),
        (json!({"multipleOf": 0}), "/multipleOf"),
        (json!({"format": 3}), "/format"),
        (json!({"type": "array", "items": {"type": "null"}, "minItems": null}), "/minItems"),
        (json!({"type": "object", "properties": []}), "/properties"),
        (json!({"type": "object", "properties": {"a": 3}}), "/properties/a"),
        (json!({"type": "object", "properties": {}, "additionalProperties": 3}), "/additionalProperties"),
        (json!({"type": "object", "properties": {}, "required": true}), "/required"),
        (
            json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", 3]}),
            "/required/1",
        ),
    ] {
        assert_eq!(pointer(&schema), expected, "{schema}");
    }
}

#[test]
fn references_without_a_target_are_refused() {
    for reference in [
        "other.json",
        "https://example.com/s#/a",
        "#/$defs/none",
        "#anchor",
        "#/$defs/%zz",
        "#/$defs/%ff",
        "#/$defs/list/01",
    ] {
        let schema = json!({"$ref": reference, "$defs": {"list": [{}, {}]}});
        assert_eq!(pointer(&schema), "/$ref", "{reference}");
    }
    // A cycle of references without a property or item between them.
    assert_eq!(pointer(&json!({"$ref": "#"})), "");
    let mutual = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}
    }});
    assert_eq!(pointer(&mutual), "/$defs/a");
    let dynamic = json!({"$dynamicAnchor": "n", "items": {"$dynamicRef": "#m"}});
    assert_eq!(pointer(&dynamic), "/items/$dynamicRef");
    let embedded = json!({"type": "object", "$defs": {"a": {"type": "null"}}, "properties": {
        "p": {"$id": "https://example.com/p", "type": "array", "items": {"$ref": "#/$defs/a"}}
    }});
    assert_eq!(pointer(&embedded), "/properties/p/items/$ref");
    // A refusal in a referenced definition points to the definition.
    let behind = json!({"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer", "minimum": "1"}}});
    assert_eq!(pointer(&behind), "/$defs/a/minimum");
}

#[test]
fn malformed_patterns_are_located() {
    for (pattern, offset) in [
        ("a(b", 1),
        ("a)", 1),
        ("[a", 0),
        ("a**", 2),
        ("*", 0),
        ("a{2}{3}", 4),
        ("{2}", 0),
        ("a{3,2}", 1),
        ("a{,3}", 1),
        ("a{99999999999}", 1),
        ("^*", 1),
        (r"(a)\1", 3),
        (r"(?<n>a)\k<n>", 7),
        ("x(?=a", 1),
        ("(?<=a)*", 6),
        (r"(?=(a)\1)", 6),
        ("(?i)a", 0),
        ("(?P<n>a)", 0),
        ("(?>a)", 0),
        (r"a\Z", 1),
        (r"\A", 0),
        (r"\8", 0),
        (r"\x4", 0),
        (r"\u12", 0),
        (r"\u{110000}", 0),
        (r"\uD800", 0),
        (r"[\uD800-\uDBFF]", 1),
        (r"[b-a]", 1),
        (r"\p{Greek}", 0),
        (r"\p{IsGreek}", 0),
        (r"\p{lu}", 0),
        (r"\pL", 0),
        (r"\c1", 0),
        ("ä\\", 2),
    ] {
        let error = refusal(&json!({"type": "string", "pattern": pattern}));
        assert_eq!(error.pointer(), Some("/pattern"), "{pattern}");
        assert!(error.to_string().contains(&format!("at byte {offset}:")), "{pattern}: {error}");
    }
}

#[test]
fn schemas_without_instances_are_refused() {
    for schema in [
        json!(false),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "string", "pattern": "^abc$", "maxLength": 2}),
        json!({"type": "string", "pattern": "a^"}),
        json!({"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 2}),
        json!({"type": "array", "items": false, "minItems": 1}),
        json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
        json!({"type": "object", "additionalProperties": false, "required": ["b"]}),
        json!({"type": "object", "propertyNames": false, "minProperties": 1}),
        json!({"type": "integer", "minimum": 3, "exclusiveMaximum": 3}),
        json!({"type": "integer", "multipleOf": 5, "minimum": 6, "maximum": 9}),
        json!({"enum": []}),
        json!({"type": "string", "enum": [1]}),
        json!({"enum": ["a"], "minLength": 2}),
        json!({"anyOf": [false, {"type": "string", "enum": [1]}]}),
        json!({"oneOf": [true, {}]}),
        json!({"not": {}}),
        json!({"type": "string", "maxLength": 1, "anyOf": [{"minLength": 2}]}),
        json!({"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}, "$ref": "#/$defs/a"}),
    ] {
        let constraint = Constraint::json_schema(schema.clone()).unwrap_or_else(|e| panic!("{schema}: {e}"));
        let error = constraint.to_byte_dfa(&Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsatisfiable, "{schema}: {error}");
    }
}

#[test]
fn conflicts_are_named() {
    for (schema, pointers) in [
        (
            json!({"type": "integer", "minimum": 3, "exclusiveMaximum": 3, "title": "x"}),
            "/exclusiveMaximum, /minimum and /type",
        ),
        (
            json!({"type": "string", "minLength": 3, "maxLength": 2, "pattern": "a"}),
            "/maxLength, /minLength and /type",
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a", "b"], "properties": {"a": {}}}),
            "/additionalProperties, /required and /type",
        ),
        (
            json!({"allOf": [{"type": "string"}, {"maxLength": 9}, {"enum": [1, 2]}]}),
            "/allOf/0/type and /allOf/2/enum",
        ),
        // The pointer leads to the part without a value.
        (
            json!({
                "type": "object", "required": ["list"], "properties": {
                    "other": {"type": "null"},
                    "list": {"type": "array", "minItems": 1, "items": {"const": 4, "multipleOf": 3}},
                }
            }),
            "/properties/list/items/const and /properties/list/items/multipleOf",
        ),
        (
            json!({"$defs": {"t": {"type": "null"}}, "allOf": [{"$ref": "#/$defs/t"}], "type": "boolean"}),
            "/$defs/t/type and /type",
        ),
    ] {
        let constraint = Constraint::json_schema(schema.clone()).unwrap();
        let error = constraint.to_byte_dfa(&Limits::default()).unwrap_err();
        let expected = format!("none satisfies {pointers} together");
        assert!(
            error.kind() == ErrorKind::Unsatisfiable && error.to_string().ends_with(&expected),
            "{schema}: {error}"
        );
    }
}
