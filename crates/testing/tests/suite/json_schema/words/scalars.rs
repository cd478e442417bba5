//! Scalars, and listed values.

use serde_json::json;

use super::case;
use crate::json_schema::compile;

#[test]
fn types_have_their_texts() {
    case(json!({"type": "null"}), &["null"], &["", "nul", "NULL", "null "]);
    case(json!({"type": "boolean"}), &["true", "false"], &["True", "0"]);
    let integers = ["0", "7", "-7", "10", "-10", "123456789012345678901234567890"];
    case(json!({"type": "integer"}), &integers, &["", "-", "01", "-0", "+1", "1.0", "1e3", "-01"]);
    let numbers = ["0", "10", "0.5", "-0.50", "1e3", "1E+3", "1.5e-30"];
    case(
        json!({"type": "number"}),
        &numbers,
        &["", "-", ".5", "1.", "01", "1e", "+1", "NaN", "0x1", "1e100"],
    );
    case(json!({"type": ["integer", "null"]}), &["1", "null"], &["1.5", "true"]);
    case(json!({"type": ["integer", "number"]}), &["1", "1.5"], &["null"]);
}

#[test]
fn strings_have_escapes_and_any_characters() {
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
fn listed_values_have_all_spellings() {
    let mixed =
        json!({"enum": [1.0, 1, -0.0, 0.5, 1e-7, "a\"\u{1}/", null, true, [1.0, {}], {"b": 1, "a": [2.0]}]});
    case(
        mixed,
        &[
            "1",
            "1.0",
            "0",
            "-0",
            "0.5",
            "0.0000001",
            "1e-7",
            r#""a\"\u0001/""#,
            "null",
            "true",
            "[1,{}]",
            "[1.0,{}]",
            r#"{"b":1,"a":[2]}"#,
        ],
        &["1.1", "-1", r#"{"a":[2],"b":1}"#, "false"],
    );
    case(json!({"const": {"z": 1, "y": 2}}), &[r#"{"z":1,"y":2}"#], &["{}"]);
    case(json!({"const": 2.0, "enum": [1, 2, 3]}), &["2"], &["1"]);
    case(json!({"type": "integer", "enum": [1, 1.0, 1.5, "1"]}), &["1"], &["1.5", "\"1\""]);
    case(json!({"type": ["string", "null"], "enum": ["a", null, 3]}), &["\"a\"", "null"], &["3"]);
    let picked = json!({"enum": ["a", "ab", "abc", 7, "b"], "pattern": "^a", "minLength": 2, "type": ["string", "integer"]});
    case(picked, &["\"ab\"", "\"abc\"", "7"], &["\"a\"", "\"b\""]);
    // With listed values, undeclared properties are allowed.
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
fn numbers_have_bounds() {
    case(
        json!({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}),
        &["-3", "0", "11"],
        &["-4", "12", "100"],
    );
    case(
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}),
        &["0.1", "1", "1.5", "1.50"],
        &["0", "1.51", "-1", "2", "0.0"],
    );
    case(json!({"type": "integer", "multipleOf": 7}), &["0", "14", "-21", "700"], &["1", "15", "71"]);
    case(json!({"type": "number", "multipleOf": 0.25}), &["0.5", "1", "-2.75"], &["0.3", "1.1"]);
    let older = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "integer",
        "minimum": 2, "exclusiveMinimum": true, "maximum": 4, "exclusiveMaximum": false
    });
    case(older, &["3", "4"], &["2", "5"]);
}

#[test]
fn formats_restrict_strings() {
    case(json!({"type": "string", "format": "date"}), &["\"2024-02-29\""], &["\"2023-02-29\"", "\"x\""]);
    case(json!({"type": "string", "format": "ipv4"}), &["\"127.0.0.1\""], &["\"127.0.0.256\""]);
    case(json!({"format": "date"}), &["1", "\"2024-01-01\""], &["\"x\""]);
    case(json!({"type": "string", "format": "colour"}), &["\"x\""], &["1"]);
}
