//! Schemas that are refused, and the JSON pointer of the reason.

use burn_dfa::{Constraint, Error, Limits};
use serde_json::{Value, json};

fn refusal(schema: &Value) -> Error {
    match Constraint::json_schema(schema.clone()) {
        Ok(_) => panic!("{schema} is honoured"),
        Err(error) => error,
    }
}

/// Where `schema` is refused.
pub fn pointer(schema: &Value) -> String {
    let error = refusal(schema);
    assert!(error.is_schema(), "{schema}: {error}");
    error.pointer().unwrap().to_owned()
}

#[test]
fn keywords_that_restrict() {
    for (keyword, value) in [
        ("minimum", json!(1)),
        ("maximum", json!(1)),
        ("exclusiveMinimum", json!(1)),
        ("exclusiveMaximum", json!(1)),
        ("multipleOf", json!(2)),
        ("format", json!("date")),
        ("contentEncoding", json!("base64")),
        ("allOf", json!([true])),
        ("oneOf", json!([true])),
        ("not", json!({})),
        ("if", json!({})),
        ("patternProperties", json!({"a": true})),
        ("propertyNames", json!({"maxLength": 1})),
        ("minProperties", json!(1)),
        ("maxProperties", json!(1)),
        ("dependentRequired", json!({"a": ["b"]})),
        ("dependentSchemas", json!({"a": true})),
        ("dependencies", json!({"a": ["b"]})),
        ("unevaluatedProperties", json!(false)),
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!({"type": "null"})),
        ("prefixItems", json!([true])),
        ("unevaluatedItems", json!(false)),
        ("contains", json!(true)),
        ("uniqueItems", json!(true)),
        ("$dynamicRef", json!("#a")),
        ("nullable", json!(true)),
        ("madeUp", json!(true)),
    ] {
        let mut inner = json!({
            "type": ["string", "number", "array", "object"],
            "items": {"type": "null"},
            "properties": {"age": {"type": "null"}}
        });
        inner[keyword] = value;
        let schema = json!({"type": "object", "properties": {"a/b~": inner}});
        let error = refusal(&schema);
        assert_eq!(error.pointer(), Some(&*format!("/properties/a~1b~0/{keyword}")), "{error}");
        if keyword != "additionalProperties" {
            assert!(error.to_string().contains(&format!("`{keyword}`")), "{error}");
        }
    }
}

#[test]
fn typos_are_named() {
    for (typo, keyword) in [
        ("anyof", "anyOf"),
        ("additonalProperties", "additionalProperties"),
        ("min_length", "minLength"),
        ("requird", "required"),
        ("descripton", "description"),
    ] {
        let error = refusal(&json!({"type": "string", typo: 1})).to_string();
        assert!(error.contains(&format!("did you mean `{keyword}`?")), "{error}");
    }
    let error = refusal(&json!({"type": "string", "somethingElse": 1})).to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn any_json() {
    assert_eq!(pointer(&json!(true)), "");
    assert_eq!(pointer(&json!({})), "");
    assert_eq!(pointer(&json!({"title": "t", "minLength": 1})), "");
    assert_eq!(pointer(&json!({"properties": {"a": {"type": "null"}}})), "");
    assert_eq!(pointer(&json!({"type": "array"})), "");
    assert_eq!(pointer(&json!({"type": "array", "items": {}})), "/items");
    assert_eq!(pointer(&json!({"type": "array", "items": true})), "/items");
    assert_eq!(pointer(&json!({"type": "object"})), "");
    assert_eq!(pointer(&json!({"type": "object", "properties": {"a": {}}})), "/properties/a");
    assert_eq!(pointer(&json!({"anyOf": [{"type": "null"}, {"minLength": 1}]})), "/anyOf/1");
}

#[test]
fn malformed() {
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
        (json!({"type": "array", "items": [{"type": "null"}]}), "/items"),
        (json!({"type": "array", "items": {"type": "null"}, "minItems": null}), "/minItems"),
        (json!({"type": "object", "properties": []}), "/properties"),
        (json!({"type": "object", "properties": {"a": 3}}), "/properties/a"),
        (json!({"type": "object", "properties": {}, "additionalProperties": 3}), "/additionalProperties"),
        (json!({"type": "object", "properties": {}, "required": true}), "/required"),
        (
            json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", 3]}),
            "/required/1",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"]}),
            "/required/1",
        ),
        (json!({"type": "object", "additionalProperties": false, "required": ["b"]}), "/required/0"),
    ] {
        assert_eq!(pointer(&schema), expected, "{schema}");
    }
}

#[test]
fn numbers_that_floats_round() {
    assert_eq!(pointer(&json!({"const": 1e300})), "/const");
    assert_eq!(pointer(&json!({"enum": [1, [9007199254740992.0]]})), "/enum/1");
    let long: Value = serde_json::from_str(r#"{"enum": [123456789012345678901234567890]}"#).unwrap();
    assert_eq!(pointer(&long), "/enum/0");
    // Integers of 64 bits are exact.
    super::compile(&json!({"enum": [u64::MAX, i64::MIN]}));
}

#[test]
fn references() {
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
    assert_eq!(pointer(&json!({"$ref": "#"})), "/$ref");
    let list =
        json!({"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}});
    assert_eq!(pointer(&list), "/properties/next/anyOf/1/$ref");
    let mutual = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
        "b": {"type": "array", "items": {"$ref": "#/$defs/a"}}
    }});
    assert_eq!(pointer(&mutual), "/$defs/b/items/$ref");
    let sibling = json!({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"type": "string"}}});
    assert_eq!(pointer(&sibling), "/maxLength");
    let embedded = json!({"type": "object", "$defs": {"a": {"type": "null"}}, "properties": {
        "p": {"$id": "https://example.com/p", "type": "array", "items": {"$ref": "#/$defs/a"}}
    }});
    assert_eq!(pointer(&embedded), "/properties/p/items/$ref");
    // A refusal behind a reference is reported where it stands.
    let behind = json!({"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer", "minimum": 1}}});
    assert_eq!(pointer(&behind), "/$defs/a/minimum");
}

#[test]
fn branches_beside_properties() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "null"}}, "anyOf": [{"required": ["a"]}]});
    assert_eq!(pointer(&schema), "/anyOf");
    let schema = json!({"type": ["array", "null"], "minItems": 1, "anyOf": [{"items": {"type": "null"}}]});
    assert_eq!(pointer(&schema), "/anyOf");
}

#[test]
fn patterns() {
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
        assert!(error.to_string().contains(&format!("at byte {offset} ")), "{pattern}: {error}");
    }
}

#[test]
fn nothing_satisfies() {
    for (schema, conflict) in [
        (json!(false), "root is `false`"),
        (json!({"type": "string", "minLength": 3, "maxLength": 2}), "`minLength` 3 exceeds `maxLength` 2"),
        (json!({"type": "string", "pattern": "^abc$", "maxLength": 2}), "/^abc$/"),
        (json!({"type": "string", "pattern": "a^"}), "matches `pattern`"),
        (
            json!({"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 2}),
            "`minItems` 3 exceeds",
        ),
        (json!({"type": "array", "items": false, "minItems": 1}), "/items is `false`"),
        (
            json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
            "/properties/a is `false`",
        ),
        (json!({"enum": []}), "no value of `enum`"),
        (json!({"type": "string", "enum": [1]}), "left by the types"),
        (json!({"enum": ["a"], "minLength": 2}), "keywords beside it"),
        (json!({"anyOf": [false, {"type": "string", "enum": [1]}]}), "no branch"),
        (json!({"type": "string", "maxLength": 1, "anyOf": [{"minLength": 2}]}), "contradict"),
    ] {
        let constraint = Constraint::json_schema(schema.clone()).unwrap_or_else(|e| panic!("{schema}: {e}"));
        let error = constraint.to_byte_dfa(&Limits::default()).unwrap_err();
        assert!(error.is_unsatisfiable(), "{schema}: {error}");
        assert!(error.to_string().contains(conflict.trim_matches('/')), "{schema}: {error}");
    }
}
