//! Objects, arrays, and combinations of schemas.

use serde_json::{Value, json};

use super::case;
use crate::json_schema::compile;

#[test]
fn objects_are_ordered_and_open() {
    let schema = json!({
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "null"}, "\"é\n": {"type": "boolean"}},
        "required": ["a", "a"]
    });
    case(
        schema,
        &[
            r#"{"a":null}"#,
            r#"{"b":1,"a":null}"#,
            r#"{"b":1,"a":null,"\"é\n":true}"#,
            r#"{"a":null,"\"é\n":true}"#,
            r#"{"a":null,"c":1}"#,
            r#"{"a":null,"c":[1],"d":{}}"#,
        ],
        &[
            "{}",
            r#"{"b":1}"#,
            r#"{"a":null,"b":1}"#,
            r#"{"a":null,}"#,
            r#"{,"a":null}"#,
            r#"{"a": null}"#,
            r#"{"c":1,"a":null}"#,
            r#"{"a":null,"a":null}"#,
        ],
    );
    let optional = json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}});
    case(
        optional,
        &["{}", r#"{"a":null}"#, r#"{"b":null}"#, r#"{"a":null,"b":null}"#],
        &[r#"{"a":null"b":null}"#, r#"{"a":1}"#],
    );
    case(json!({"type": "object", "additionalProperties": false}), &["{}"], &["{\"a\":1}", "[]"]);
    case(json!({"type": "object", "properties": {}}), &["{}", "{\"a\":1}"], &["[]"]);
    let absent = json!({"type": "object", "properties": {"a": false, "b": {"type": "null"}}});
    case(absent, &["{}", r#"{"b":null}"#], &[r#"{"a":null}"#]);
}

#[test]
fn arrays_have_items_and_lengths() {
    let of = |extra: Value| {
        let mut schema = json!({"type": "array", "items": {"type": "integer"}});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    case(of(json!({})), &["[]", "[1]", "[1,2,3]"], &["[", "[1,]", "[,1]", "[1 ]", "[null]"]);
    case(of(json!({"minItems": 1})), &["[1]", "[1,2]"], &["[]"]);
    case(of(json!({"minItems": 2, "maxItems": 3})), &["[1,2]", "[1,2,3]"], &["[]", "[1]", "[1,2,3,4]"]);
    case(of(json!({"maxItems": 1})), &["[]", "[1]"], &["[1,2]"]);
    case(json!({"type": "array", "maxItems": 0}), &["[]"], &["[1]"]);
    case(json!({"type": "array", "items": false}), &["[]"], &["[1]"]);
    case(
        json!({"type": "array", "items": {"type": "array", "items": {"type": "null"}}}),
        &["[[],[null]]"],
        &["[null]"],
    );
}

#[test]
fn a_value_fits_a_branch_of_any_of() {
    let schema =
        json!({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}, {"const": "long"}, false]});
    case(schema, &["1", "\"a\"", "\"long\""], &["\"lone\"", "null"]);
    let typed = json!({"type": ["string", "integer"], "anyOf": [{"minLength": 2}, {"type": ["integer", "null"]}, {"enum": ["a", 2.5]}]});
    case(typed, &["1", "\"ab\"", "\"a\""], &["null", "\"b\"", "2.5"]);
    let number = json!({"type": "integer", "anyOf": [{"type": "number"}]});
    case(number, &["1"], &["1.5", "-0"]);
    let both = json!({"type": ["string", "null"], "maxLength": 3, "anyOf": [{"pattern": "a"}, {"pattern": "b"}, {"type": "null"}]});
    case(both, &["\"a\"", "\"xxb\"", "null"], &["\"x\"", "\"xxxb\""]);
    let objects = json!({"type": "object", "anyOf": [
        {"properties": {"a": {"type": "null"}}, "required": ["a"]},
        {"properties": {"b": {"type": "null"}, "a": {"type": "null"}}}
    ]});
    case(
        objects,
        &[r#"{"a":null}"#, "{}", r#"{"b":null,"a":null}"#, r#"{"b":1,"a":null}"#],
        &[r#"{"a":null,"b":null}"#, r#"{"a":1}"#],
    );
}

#[test]
fn references_lead_anywhere_in_the_schema() {
    let schema = json!({
        "$id": "https://example.com/s",
        "$ref": "#/$defs/a~1b%25~0",
        "title": "an annotation may stand beside",
        "$defs": {
            "a/b%~": {"type": "array", "items": {"$ref": "https://example.com/s#/definitions/x"}},
            "unused": {"minimum": "never read"}
        },
        "definitions": {"x": {"$ref": "#/properties/p"}},
        "properties": {"p": {"type": "null"}}
    });
    case(schema, &["[]", "[null]"], &["null", "[1]"]);

    let into_list = json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/anyOf/0"}}]});
    case(into_list, &["null", "[null]"], &["[[]]"]);
    let shared = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}},
        "required": ["a", "b"],
        "$defs": {"s": {"type": "string", "maxLength": 1}}
    });
    case(shared, &[r#"{"a":"x","b":""}"#], &[r#"{"a":"xy","b":""}"#]);
}

#[test]
fn idle_keywords_are_ignored() {
    let schema = json!({
        "type": "integer", "minLength": 3, "pattern": "a", "properties": {"a": false}, "uniqueItems": true,
        "title": "t", "x-order": 1, "_format": "int32", "$comment": "c", "default": "not even valid"
    });
    case(schema, &["1"], &["\"abc\""]);
    case(json!({"enum": ["a"], "minimum": 3}), &["\"a\""], &[]);
    case(json!({"type": "string", "minimum": 3}), &["\"a\""], &[]);
}

#[test]
fn open_schemas_allow_any_json() {
    let texts = ["null", "0", "\"a\"", "[]", r#"[{"a":[1.5]}]"#, r#"{"":{"b":[]}}"#];
    for schema in [json!(true), json!({}), json!({"title": "t"}), json!({"allOf": [{}, true]})] {
        case(schema, &texts, &["", "nul", "[", "{\"a\"}", "[1,]", " 1"]);
    }
    case(json!({"type": "array"}), &["[]", "[1,[\"a\"]]"], &["{}", "1"]);
    case(json!({"type": "object"}), &["{}", r#"{"a":{"b":1}}"#], &["[]", "1"]);
    case(json!({"minLength": 2}), &["1", "\"ab\"", "[\"a\"]"], &["\"a\""]);
}

#[test]
fn combined_schemas_follow_boolean_algebra() {
    case(
        json!({"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]}),
        &["2", "3", "4"],
        &["1", "5", "\"a\""],
    );
    case(
        json!({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}),
        &["1", "2.5"],
        &["2", "3", "1.5", "null"],
    );
    case(json!({"type": "string", "not": {"pattern": "^a"}}), &["\"\"", "\"ba\""], &["\"a\"", "\"ab\""]);
    case(json!({"not": {"type": ["object", "array", "string", "number"]}}), &["null", "true"], &["1", "[]"]);
    let condition = json!({
        "properties": {"kind": {"enum": ["a", "b"]}, "x": {}}, "required": ["kind", "x"], "type": "object",
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"properties": {"x": {"type": "integer"}}},
        "else": {"properties": {"x": {"type": "string"}}}
    });
    case(
        condition,
        &[r#"{"kind":"a","x":1}"#, r#"{"kind":"b","x":"1"}"#],
        &[r#"{"kind":"a","x":"1"}"#, r#"{"kind":"b","x":1}"#, r#"{"kind":"c","x":1}"#],
    );
    // All branches share one order of properties.
    let orders = json!({
        "type": "object",
        "allOf": [{"properties": {"a": {}, "c": {}}}, {"$ref": "#/$defs/d"}],
        "properties": {"b": {}}, "additionalProperties": {"type": "null"},
        "$defs": {"d": {"properties": {"d": {}}, "required": ["e"]}}
    });
    let dfa = compile(&orders);
    let accepted = |text: &str| dfa.matches(text.as_bytes());
    assert!(accepted(r#"{"b":1,"e":null}"#) && !accepted(r#"{"b":1}"#) && !accepted(r#"{"b":1,"e":1}"#));
}

#[test]
fn names_decide_which_schema_a_property_has() {
    case(
        json!({
            "type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": false,
            "patternProperties": {"^x": {"type": "integer"}, "y$": {"minimum": 3}}
        }),
        &["{}", r#"{"a":null,"x":1,"x1":2}"#, r#"{"y":"any"}"#, r#"{"xy":3}"#],
        &[r#"{"b":1}"#, r#"{"x":"1"}"#, r#"{"xy":2}"#, r#"{"a":1}"#],
    );
    case(
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "null"}}),
        &[r#"{"a":1}"#, r#"{"b":null,"c":null}"#],
        &[r#"{"b":1}"#, r#"{"b":null,"a":1}"#],
    );
    case(
        json!({"type": "object", "propertyNames": {"maxLength": 2}, "properties": {"long": {}}}),
        &["{}", r#"{"ab":1}"#],
        &[r#"{"abc":1}"#, r#"{"long":1}"#],
    );
    let counted = json!({
        "type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": false,
        "minProperties": 1, "maxProperties": 2
    });
    case(counted, &[r#"{"a":1}"#, r#"{"a":1,"c":1}"#], &["{}", r#"{"a":1,"b":1,"c":1}"#]);
    let dependent = json!({
        "type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"c": {"properties": {"b": {"type": "null"}}, "required": ["b"]}}
    });
    case(
        dependent,
        &["{}", r#"{"b":1}"#, r#"{"a":1,"b":1}"#, r#"{"b":null,"c":1}"#],
        &[r#"{"a":1}"#, r#"{"c":1}"#, r#"{"b":1,"c":1}"#],
    );
    let dependencies = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {}, "b": {}, "c": {}}, "dependencies": {"a": ["b"], "c": {"required": ["a"]}}
    });
    case(dependencies, &["{}", r#"{"a":1,"b":1,"c":1}"#], &[r#"{"a":1}"#, r#"{"c":1}"#]);
    let unevaluated = json!({
        "type": "object", "properties": {"a": {}}, "unevaluatedProperties": false,
        "anyOf": [{"properties": {"b": {"type": "null"}}, "required": ["b"]}, {"required": ["a"]}]
    });
    case(
        unevaluated,
        &[r#"{"a":1}"#, r#"{"a":1,"b":null}"#, r#"{"b":null}"#],
        &["{}", r#"{"a":1,"b":1}"#, r#"{"a":1,"c":1}"#],
    );
}

#[test]
fn names_that_are_not_declared_may_repeat() {
    // An assertion on all properties includes the last one, which readers use.
    let all = json!({"type": "object", "additionalProperties": {"type": "null"}});
    case(all, &[r#"{"a":null,"a":null}"#], &[r#"{"a":1,"a":null}"#, r#"{"a":null,"a":1}"#]);
    // Only the last property is certain to violate an assertion.
    let some = json!({"type": "object", "not": {"additionalProperties": {"type": "null"}}});
    case(some, &[r#"{"a":1}"#, r#"{"a":null,"b":1}"#], &["{}", r#"{"a":null}"#, r#"{"b":1,"a":null}"#]);
    // Of several undeclared names, one is certain.
    let counted = json!({"type": "object", "properties": {"a": {}}, "minProperties": 2});
    case(counted, &[r#"{"a":1,"b":1}"#, r#"{"a":1,"b":1,"c":1}"#], &[r#"{"a":1}"#, r#"{"b":1,"b":1}"#]);
}

#[test]
fn leading_items_have_own_schemas() {
    case(
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}}),
        &["[]", "[1]", "[1,\"a\"]", "[1,\"a\",null,null]"],
        &["[\"a\"]", "[1,1]", "[1,\"a\",1]"],
    );
    let older = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
        "items": [{"type": "integer"}], "additionalItems": false
    });
    case(older, &["[]", "[1]"], &["[null]", "[1,1]"]);
    case(
        json!({"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 1, "maxContains": 2}),
        &["[5]", "[1,6,2,7]"],
        &["[]", "[1,2]", "[5,6,7]", "[5,null]"],
    );
    case(
        json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 2}),
        &[r#"["a","b"]"#, r#"["c","a","b"]"#],
        &[r#"["a"]"#, r#"["a","a"]"#, r#"["a","b","a"]"#, r#"["a","d"]"#],
    );
    case(json!({"type": "array", "uniqueItems": true, "maxItems": 1}), &["[]", "[[1,1]]"], &["[1,2]"]);
    case(
        json!({"type": "array", "prefixItems": [{}], "contains": {"type": "null"}, "unevaluatedItems": false}),
        &["[null]", "[1,null]", "[null,null]"],
        &["[]", "[1]", "[1,null,1]"],
    );
}

#[test]
fn recursive_schemas_nest() {
    let list = json!({
        "$defs": {"list": {"type": "object", "properties": {"next": {"$ref": "#/$defs/list"}}, "additionalProperties": false}},
        "$ref": "#/$defs/list"
    });
    case(
        list,
        &["{}", r#"{"next":{}}"#, r#"{"next":{"next":{}}}"#],
        &["[]", r#"{"next":1}"#, r#"{"next":{"next":1}}"#],
    );
    let tree = json!({"type": "array", "items": {"$ref": "#"}});
    case(tree, &["[]", "[[],[[]]]"], &["1", "[1]", "[[1]]"]);
    let named = json!({
        "$id": "https://example.com/root", "$ref": "#item",
        "$defs": {
            "i": {"$anchor": "item", "type": "array", "items": {"$ref": "part"}},
            "p": {"$id": "part", "type": "integer"}
        }
    });
    case(named, &["[]", "[1]"], &["1", "[null]"]);
}

/// A list with items that the referring schema defines.
#[test]
fn dynamic_references_find_the_outermost_anchor() {
    let list = |items: &str| {
        json!({"$id": "https://example.com/of", "$ref": "list", "$defs": {
            "item": {"$dynamicAnchor": "item", "type": items},
            "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"},
                "$defs": {"any": {"$dynamicAnchor": "item"}}}}})
    };
    case(list("integer"), &["[]", "[1,2]"], &["[\"a\"]", "[[]]"]);
    case(list("array"), &["[]", "[[],[1]]"], &["[1]"]);
    // A reference by pointer ignores dynamic anchors.
    let mut fixed = list("integer");
    fixed["$defs"]["list"]["items"] = json!({"$dynamicRef": "#/$defs/any"});
    case(fixed, &["[1]", "[\"a\"]"], &["1"]);
    // A tree that the schema around it closes, and an open tree.
    let tree = json!({"$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}});
    let strict = json!({"$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree",
        "unevaluatedProperties": false, "$defs": {"tree": tree.clone()}});
    let nested = r#"{"children":[{"daat":1}]}"#;
    case(tree, &[nested, r#"{"children":[{"data":1}]}"#], &[r#"{"children":[1]}"#]);
    case(strict, &["{}", r#"{"data":1}"#], &[r#"{"daat":1}"#, nested]);
    let recursive = |anchor: bool| {
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$id": "https://example.com/r",
            "$recursiveAnchor": anchor, "type": ["object", "integer"], "additionalProperties": {"$ref": "inner"},
            "$defs": {"inner": {"$id": "inner", "$recursiveAnchor": true, "type": "object",
                "additionalProperties": {"$recursiveRef": "#"}}}})
    };
    case(recursive(true), &[r#"{"a":{"b":1}}"#], &[r#"{"a":1}"#]);
    case(recursive(false), &[r#"{"a":{"b":{}}}"#], &[r#"{"a":{"b":1}}"#]);
}
