//! Small schemas with texts that are members and texts that are not.

use serde_json::{Value, json};

use super::compile;

/// Asserts that `schema` accepts and rejects these texts.
fn case(schema: Value, accepted: &[&str], rejected: &[&str]) {
    let dfa = compile(&schema);
    for text in accepted {
        assert!(dfa.matches(text.as_bytes()), "{schema} rejects {text}");
    }
    for text in rejected {
        assert!(!dfa.matches(text.as_bytes()), "{schema} accepts {text}");
    }
}

#[test]
fn scalars() {
    case(json!({"type": "null"}), &["null"], &["", "nul", "NULL", "null "]);
    case(json!({"type": "boolean"}), &["true", "false"], &["True", "0"]);
    let integers = ["0", "7", "-7", "10", "-10", "123456789012345678901234567890"];
    case(json!({"type": "integer"}), &integers, &["", "-", "01", "-0", "+1", "1.0", "1e3", "-01"]);
    let numbers = ["0", "-0", "10", "0.5", "-0.50", "1e3", "1E+3", "1.5e-30"];
    case(
        json!({"type": "number"}),
        &numbers,
        &["", "-", ".5", "1.", "01", "1e", "+1", "NaN", "0x1", "1e100"],
    );
    case(json!({"type": ["integer", "null"]}), &["1", "null"], &["1.5", "true"]);
    case(json!({"type": ["integer", "number"]}), &["1", "1.5", "-0"], &["null"]);
}

#[test]
fn strings() {
    let any = json!({"type": "string"});
    let members = [
        r#""""#,
        r#""a""#,
        r#""\"\\\b\f\n\r\t""#,
        r#""\u0000\u001F\u001f\u000a\u000A""#,
        "\"\u{7f}ä€😀\u{2028}\"",
    ];
    let others = [
        "",
        "\"",
        "a",
        "\"\n\"",
        "\"\u{0}\"",
        r#"""""#,
        r#""\""#,
        r#""\/""#,
        r#""\u0061""#,
        r#""\u0020""#,
        r#""\ud83d\ude00""#,
        r#""\x41""#,
        r#""\u00""#,
        r#""\U0000""#,
        r#"'a'"#,
    ];
    case(any.clone(), &members, &others);
    let dfa = compile(&any);
    for bytes in [
        &b"\"\x80\""[..],
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\"\xc0\x80\"",
        b"\"\xc3\\n\"",
    ] {
        assert!(!dfa.matches(bytes), "not UTF-8");
    }
}

#[test]
fn lengths_count_characters() {
    let two = json!({"type": "string", "minLength": 2.0, "maxLength": 2});
    case(
        two,
        &[r#""ab""#, r#""ä€""#, r#""😀😀""#, r#""\n\u0001""#, r#""\\\"""#],
        &[r#""""#, r#""a""#, r#""abc""#, r#""😀""#],
    );
    case(json!({"type": "string", "minLength": 1}), &[r#""a""#, r#""abcdef""#], &[r#""""#]);
    case(json!({"type": "string", "maxLength": 0}), &[r#""""#], &[r#""a""#]);
}

#[test]
fn patterns_are_searched_for() {
    let of = |pattern: &str| json!({"type": "string", "pattern": pattern});
    case(of(""), &[r#""""#, r#""x""#], &["x"]);
    case(of("b+"), &[r#""b""#, r#""abbc""#], &[r#""""#, r#""ac""#]);
    case(of("^a"), &[r#""a""#, r#""ab""#], &[r#""ba""#]);
    case(of("a$"), &[r#""a""#, r#""ba""#], &[r#""ab""#, r#""a\n""#]);
    case(of("^a$|^b"), &[r#""a""#, r#""bc""#], &[r#""ab""#, r#""cb""#]);
    case(of("^(a+)?(b*)+c$"), &[r#""c""#, r#""aabbc""#], &[r#""bac""#]);
    case(of("^(a|ab)(c|bcd)$"), &[r#""ac""#, r#""abc""#, r#""abcd""#, r#""abbcd""#], &[r#""ab""#]);
    case(of(r#"^"\\$"#), &[r#""\"\\""#], &[r#""\\\"""#]);
    case(of("^\n$"), &[r#""\n""#, r#""\u000A""#], &["\"\n\""]);
    case(
        of("^.$"),
        &[r#""a""#, r#""\t""#, r#""😀""#, "\"\u{85}\""],
        &[r#""\n""#, r#""\r""#, "\"\u{2028}\"", "\"\u{2029}\""],
    );
    case(of(r"^\d$"), &[r#""5""#], &["\"\u{664}\"", r#""a""#]);
    case(of(r"^\w$"), &[r#""_""#, r#""Z""#], &[r#""ä""#, r#""-""#]);
    case(
        of(r"^\s$"),
        &[r#"" ""#, r#""\t""#, "\"\u{feff}\"", "\"\u{a0}\"", r#""\u000b""#],
        &["\"\u{85}\"", "\"\u{180e}\""],
    );
    case(of(r"^\S$"), &["\"\u{85}\""], &["\"\u{feff}\""]);
    case(of(r"^\/\-\cJ\x41\u0042\u{43}\uD83D\uDE00$"), &[r#""/-\nABC😀""#], &[]);
    case(
        of(r"\bcat\b"),
        &[r#""cat""#, r#""a cat.""#, r#""\ncat\n""#, r#""äcat""#],
        &[r#""cats""#, r#""_cat""#],
    );
    case(of(r"^\p{Lu}\P{Lu}$"), &[r#""Ää""#], &[r#""ää""#]);
    case(of(r"^\p{Script=Greek}+$"), &[r#""αβ""#], &[r#""a""#]);
    case(of(r"^[\w-.]$"), &[r#""-""#, r#"".""#, r#""w""#], &[r#""/""#]);
    case(of(r"^[]$|^[^]$"), &[r#""\n""#, r#""x""#], &[r#""""#, r#""xx""#]);
    case(of(r"^[^\]a-c&&\b]$"), &[r#""d""#], &[r#""]""#, r#""a""#, r#""&""#, r#""\b""#]);
    case(of(r"^{a}{2}]$"), &[r#""{a}}]""#], &[r#""{a}{a}""#]);
    case(of(r"^(?<year>[0-9]{4})(?:-[0-9]{2}){0,2}?$"), &[r#""2024-01-02""#, r#""2024""#], &[r#""2024-1""#]);
    let short = json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3});
    case(short, &[r#""ab""#, r#""abc""#], &[r#""a""#, r#""abcd""#, r#""AB""#]);
}

#[test]
fn objects_are_ordered_and_closed() {
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
        ],
        &[
            "{}",
            r#"{"b":1}"#,
            r#"{"a":null,"b":1}"#,
            r#"{"a":null,}"#,
            r#"{,"a":null}"#,
            r#"{"a": null}"#,
            r#"{"a":null,"c":1}"#,
            r#"{"a":null,"a":null}"#,
        ],
    );
    let optional = json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}});
    case(
        optional,
        &["{}", r#"{"a":null}"#, r#"{"b":null}"#, r#"{"a":null,"b":null}"#],
        &[r#"{"a":null"b":null}"#],
    );
    case(json!({"type": "object", "additionalProperties": false}), &["{}"], &["{\"a\":1}", "[]"]);
    case(json!({"type": "object", "properties": {}}), &["{}"], &["{\"a\":1}"]);
    let absent = json!({"type": "object", "properties": {"a": false, "b": {"type": "null"}}});
    case(absent, &["{}", r#"{"b":null}"#], &[r#"{"a":null}"#]);
}

#[test]
fn arrays() {
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
fn values() {
    let mixed =
        json!({"enum": [1.0, 1, -0.0, 0.5, 1e-7, "a\"\u{1}/", null, true, [1.0, {}], {"b": 1, "a": [2.0]}]});
    case(
        mixed,
        &["1", "0", "0.5", "1e-7", r#""a\"\u0001/""#, "null", "true", "[1,{}]", r#"{"b":1,"a":[2]}"#],
        &["1.0", "-0", r#"{"a":[2],"b":1}"#, "false"],
    );
    case(json!({"const": {"z": 1, "y": 2}}), &[r#"{"z":1,"y":2}"#], &["{}"]);
    case(json!({"const": 2.0, "enum": [1, 2, 3]}), &["2"], &["1"]);
    case(json!({"type": "integer", "enum": [1, 1.0, 1.5, "1"]}), &["1"], &["1.5", "\"1\""]);
    case(json!({"type": ["string", "null"], "enum": ["a", null, 3]}), &["\"a\"", "null"], &["3"]);
    let picked = json!({"enum": ["a", "ab", "abc", 7, "b"], "pattern": "^a", "minLength": 2, "type": ["string", "integer"]});
    case(picked, &["\"ab\"", "\"abc\"", "7"], &["\"a\"", "\"b\""]);
    // Beside values, silence is open.
    let objects = json!({
        "enum": [{"a": 1}, {"a": "x"}, {"b": 2}, {"a": 2, "c": 3}, []],
        "properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"
    });
    case(objects, &[r#"{"a":1}"#, r#"{"a":2,"c":3}"#], &[r#"{"a":"x"}"#, r#"{"b":2}"#, "[]"]);
    let closed = json!({"enum": [{"a": 1}, {"a": 2, "c": 3}], "properties": {"a": true}, "additionalProperties": false});
    case(closed, &[r#"{"a":1}"#], &[r#"{"a":2,"c":3}"#]);
    let arrays = json!({"enum": [[], [1], [1, "x"], [1, 2, 3]], "minItems": 1, "maxItems": 2, "items": {"type": "integer"}});
    case(arrays, &["[1]"], &["[]", "[1,\"x\"]", "[1,2,3]"]);
    let branches = json!({"enum": ["a", 1, 2, null], "anyOf": [{"type": "string"}, {"const": 2}]});
    case(branches, &["\"a\"", "2"], &["1", "null"]);
}

#[test]
fn branches() {
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
    case(objects, &[r#"{"a":null}"#, "{}", r#"{"b":null,"a":null}"#], &[r#"{"a":null,"b":null}"#]);
}

#[test]
fn references() {
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
    // `properties` beside `$ref` binds in newer drafts.
    let mut plain = schema.clone();
    let moved = plain.as_object_mut().unwrap().shift_remove("properties").unwrap();
    plain["definitions"]["y"] = moved["p"].clone();
    plain["definitions"]["x"]["$ref"] = json!("#/definitions/y");
    case(plain, &["[]", "[null]"], &["null"]);
    assert_eq!(super::refused::pointer(&schema), "/properties");

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
        "type": "integer", "minLength": 3, "pattern": "(", "properties": 3, "uniqueItems": true,
        "title": "t", "x-order": 1, "_format": "int32", "$comment": "c", "default": "not even valid"
    });
    case(schema, &["1"], &["\"abc\""]);
    case(json!({"enum": ["a"], "minimum": 3}), &["\"a\""], &[]);
    case(json!({"type": "string", "minimum": 3}), &["\"a\""], &[]);
}
