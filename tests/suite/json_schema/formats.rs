//! Formats that are only partly decided: asked for, negated and counted, the language holds nothing that the crate
//! `jsonschema` finds invalid.

use burn_dfa::Limits;
use burn_dfa::constraint::JsonOptions;
use serde_json::{Value, json};

use super::{Judge, compile, oracle};

/// The schema as the judge knows it, which has no formats beyond ASCII: what is valid in ASCII is valid in Unicode too.
fn in_ascii(schema: &Value) -> Value {
    serde_json::from_str(&schema.to_string().replace("idn-", "")).unwrap()
}

/// Strings about which a finite automaton, or one reader or another, is in doubt.
fn doubtful() -> Vec<(&'static str, String)> {
    let long = |label: &str, count: usize| vec![label; count].join(".");
    let mut all: Vec<(&str, String)> = Vec::new();
    for name in ["hostname", "idn-hostname"] {
        all.extend([
            (name, long("a", 66)),
            (name, format!("{}.org", "b".repeat(63))),
            (name, long(&"c".repeat(31), 7)),
            (name, "xn--bcher-kva.example".into()),
            (name, "xn--X".into()),
            (name, "a.b.".into()),
        ]);
    }
    all.push(("idn-hostname", "bücher.example".into()));
    all.push(("idn-hostname", "한국".into()));
    for name in ["email", "idn-email"] {
        all.extend([
            (name, format!("joe@{}", long("a", 66))),
            (name, "Joe <joe@example.com>".into()),
            (name, r#""joe <j"@example.com"#.into()),
            (name, r#""a\ b"@example.com"#.into()),
            (name, "joe@xn--bcher-kva.example".into()),
            (name, "joe@[IPv6:::1]".into()),
            (name, "a@b@c".into()),
        ]);
    }
    all.push(("idn-email", "jürgen-jürgen-jürgen@example.com".into()));
    all.push(("idn-email", "joe@bücher.example".into()));
    all.extend([
        ("relative-json-pointer", "1+2/a".into()),
        ("relative-json-pointer", "0-1#".into()),
        ("time", "05:44:60+05:45".into()),
        ("time", "23:59:60Z".into()),
        ("time", "12:00:60Z".into()),
        ("date-time", "1998-12-31T23:59:60Z".into()),
        ("date-time", "1998-12-30T23:59:60Z".into()),
        ("date-time", "2016-07-01T05:44:60+05:45".into()),
    ]);
    all
}

/// Makes a value of a string.
type Wrap = fn(&str) -> Value;

/// Schemas in which a format is asked for, negated or counted, and values made of a string.
fn schemas(format: &str) -> Vec<(Value, Wrap)> {
    let of = json!({"format": format});
    let string: Wrap = |text| json!(text);
    let items: Wrap = |text| json!([text, text]);
    let name: Wrap = |text| json!({text: 1});
    let property: Wrap = |text| json!({"a": text});
    vec![
        (json!({"type": "string", "format": format}), string),
        (json!({"type": "string", "not": of}), string),
        (json!({"type": "string", "not": {"not": of}}), string),
        (json!({"type": "string", "if": of, "then": {"maxLength": 3}}), string),
        (json!({"type": "string", "if": of, "then": true, "else": {"maxLength": 3}}), string),
        (json!({"type": "string", "oneOf": [of, {"minLength": 12}]}), string),
        (json!({"type": "string", "anyOf": [of, {"type": "string"}]}), string),
        (json!({"type": "array", "items": {"type": "string"}, "contains": of, "maxContains": 1}), items),
        (json!({"type": "array", "items": {"type": "string"}, "contains": of, "minContains": 2}), items),
        (json!({"type": "array", "items": {"type": "string"}, "not": {"contains": of}}), items),
        (json!({"type": "object", "propertyNames": of}), name),
        (json!({"type": "object", "propertyNames": {"not": of}}), name),
        (json!({"type": "object", "not": {"propertyNames": of}, "minProperties": 1}), name),
        (
            json!({"type": "object", "required": ["a"], "oneOf": [
                {"properties": {"a": {"type": "string", "format": format}}},
                {"properties": {"a": {"type": "string", "maxLength": 20}}}
            ]}),
            property,
        ),
    ]
}

#[test]
fn doubtful_strings_are_on_the_safe_side() {
    let mut wrong = Vec::new();
    let (mut accepted, mut rejected, mut left_out) = (0, 0, 0);
    for (format, text) in doubtful() {
        let mut all = schemas(format);
        // Listed, and declared.
        all.push((json!({"enum": [text], "format": format}), |text| json!(text)));
        all.push((json!({"enum": [text, "?"], "not": {"format": format}}), |text| json!(text)));
        all.push((
            json!({"type": "object", "properties": {&text: {}}, "propertyNames": {"format": format}}),
            |text| json!({text: 1}),
        ));
        all.push((
            json!({"type": "object", "properties": {&text: {}}, "propertyNames": {"not": {"format": format}}}),
            |text| json!({text: 1}),
        ));
        for (schema, value) in all {
            let value = value(&text);
            let judge = Judge::new(&schema, &JsonOptions::default(), &Limits::default()).unwrap();
            let accepted_here = judge.judge(&value).1;
            // Of these the judge knows nothing: they are in doubt.
            if !text.is_ascii() {
                let negates = schema.to_string().contains("not");
                if negates && accepted_here {
                    wrong.push(format!("{schema}: {value}"));
                }
                continue;
            }
            let schema = in_ascii(&schema);
            let valid =
                oracle::build(jsonschema::Draft::Draft202012, &schema, true).unwrap().is_valid(&value);
            match (accepted_here, valid) {
                (true, true) => accepted += 1,
                (false, false) => rejected += 1,
                (false, true) => left_out += 1,
                (true, false) => wrong.push(format!("{schema}: {value}")),
            }
        }
    }
    println!("{accepted} accepted, {rejected} rejected, {left_out} valid and left out");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(accepted > 50 && rejected > 50, "{accepted}, {rejected}");
}

#[test]
fn drawn_texts_are_valid_in_both_polarities() {
    let mut wrong = Vec::new();
    for format in [
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "iri",
        "uuid",
        "json-pointer",
        "relative-json-pointer",
    ] {
        for (schema, _) in schemas(format) {
            let judge = Judge::new(&schema, &JsonOptions::default(), &Limits::default()).unwrap();
            let validator = oracle::build(jsonschema::Draft::Draft202012, &schema, true).unwrap();
            for text in judge.finite().iter().flat_map(|dfa| oracle::draw(dfa, 30, 7)) {
                if let Err(why) = oracle::check(&validator, &text) {
                    wrong.push(format!("{schema}: drew {}: {why}", String::from_utf8_lossy(&text)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn what_is_decided_is_written() {
    let hostname = compile(&json!({"type": "string", "not": {"format": "hostname"}}));
    for (text, written) in [("a b", true), ("a_b", true), ("-", true), ("", true), ("a.b", false)] {
        assert_eq!(hostname.matches(json!(text).to_string().as_bytes()), written, "{text}");
    }
    let either = compile(
        &json!({"oneOf": [{"type": "string", "format": "email"}, {"type": "string", "format": "uri"}]}),
    );
    for text in ["joe@example.com", "https://example.com/a?b=c#d", "https://joe@example.com:80/"] {
        assert!(either.matches(json!(text).to_string().as_bytes()), "{text}");
    }
}
