//! Formats that are only partly decidable. If a schema asserts, negates or counts one, the language
//! contains no text that the crate `jsonschema` rejects.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use burn_dfa_tokens::{
    Constraint, Limits,
    constraint::{JsonOptions, Unknown},
};
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::{Judge, compile, compile_with, oracle};
use burn_dfa_testing::{input, python};

/// The schema for the validator, which has no formats beyond ASCII: strings that are valid in ASCII
/// are valid in Unicode too.
fn in_ascii(schema: &Value) -> Value {
    serde_json::from_str(&schema.to_string().replace("idn-", "")).unwrap()
}

/// Strings that a finite automaton cannot decide, or on which readers disagree.
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

/// Builds a value from a string.
type Wrap = fn(&str) -> Value;

/// Schemas that assert, negate or count a format, each with a function that builds a value from a
/// string.
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

/// A schema with its judges, and the function that builds a value from a string.
struct Judged {
    schema: Value,
    judge: Judge,
    validator: Validator,
    value: Wrap,
}

impl Judged {
    fn new((schema, value): (Value, Wrap)) -> Self {
        let judge = Judge::new(&schema, &JsonOptions::default(), &Limits::default()).unwrap();
        let validator = oracle::build(Draft::Draft202012, &in_ascii(&schema), true).unwrap();
        Self { schema, judge, validator, value }
    }

    fn of_format(format: &str) -> Vec<Self> {
        schemas(format).into_iter().map(Self::new).collect()
    }
}

#[test]
fn doubtful_strings_are_on_the_safe_side() {
    let mut wrong = Vec::new();
    let (mut accepted, mut rejected, mut left_out) = (0, 0, 0);
    let mut of_formats: HashMap<&str, Vec<Judged>> = HashMap::new();
    for (format, text) in doubtful() {
        let of_format = of_formats.entry(format).or_insert_with(|| Judged::of_format(format));
        // As listed values and as declared names.
        let of_text: [(Value, Wrap); 4] = [
            (json!({"enum": [text], "format": format}), |text| json!(text)),
            (json!({"enum": [text, "?"], "not": {"format": format}}), |text| json!(text)),
            (
                json!({"type": "object", "properties": {&text: {}}, "propertyNames": {"format": format}}),
                |text| json!({text: 1}),
            ),
            (
                json!({"type": "object", "properties": {&text: {}}, "propertyNames": {"not": {"format": format}}}),
                |text| json!({text: 1}),
            ),
        ];
        for Judged { schema, judge, validator, value } in of_format.iter().chain(&of_text.map(Judged::new)) {
            let value = value(&text);
            let accepted_here = judge.judge(&value).1;
            // The validator cannot judge non-ASCII strings.
            if !text.is_ascii() {
                let negates = schema.to_string().contains("not");
                if negates && accepted_here {
                    wrong.push(format!("{schema}: {value}"));
                }
                continue;
            }
            match (accepted_here, validator.is_valid(&value)) {
                (true, true) => accepted += 1,
                (false, false) => rejected += 1,
                (false, true) => left_out += 1,
                (true, false) => wrong.push(format!("{schema}: {value}")),
            }
        }
    }
    println!("{accepted} accepted, {rejected} rejected, {left_out} valid and left out");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(accepted >= 50 && rejected > 50, "{accepted}, {rejected}");
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
        for Judged { schema, judge, validator, .. } in Judged::of_format(format) {
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
fn negated_and_combined_formats_accept_the_expected_strings() {
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

/// Formats that restrict strings.
const NAMES: [&str; 37] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "base64",
    "base64url",
    "uuid1",
    "uuid3",
    "uuid4",
    "uuid5",
    "uuid6",
    "uuid7",
    "uuid8",
    "ipvanyaddress",
    "ipvanyinterface",
    "ipvanynetwork",
    "ipv4interface",
    "ipv4network",
    "ipv6interface",
    "ipv6network",
    "multi-host-uri",
    "name-email",
    "fraction",
];

/// Two readers in Python, Pydantic and jsonschema, accept the generated texts.
#[test]
fn readers_accept_generated_texts() {
    let modules = "email_validator, fqdn, isoduration, jsonschema, pydantic, rfc3339_validator, uri_template";
    let Some(mut python) = python::with(modules) else { return };
    let mut lines = Vec::new();
    for name in NAMES {
        let constraint = Constraint::json_schema(json!({"type": "string", "format": name})).unwrap();
        let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
        for (length, seed) in [(12, 1), (40, 2), (300, 3)] {
            for text in dfa.samples(seed, length).take(400) {
                let text: Value = serde_json::from_slice(&text).unwrap();
                writeln!(lines, "{}", json!([name, text])).unwrap();
            }
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/json_schema/consumers.py");
    let output = input::fed(python.arg(script), lines);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    print!("{said}");
    for (name, reader) in [("uuid7", "pydantic"), ("hostname", "jsonschema"), ("email", "pydantic")] {
        assert!(said.contains(&format!("{name}: 1200 texts, {reader}\n")), "{said}");
    }
}

/// A format, texts that programs write, and texts that readers reject.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const CASES: [Case; 16] = [
    (
        "email",
        &["joe@example.com", "a.b+c@x-y.co.uk", "o'neil@mail.example.org"],
        &["joe@localhost", r#""a b"@example.com"#, "joe@[127.0.0.1]", "joe@1.2"],
    ),
    (
        "idn-email",
        &["joe@example.com", "j\u{fc}rgen@example.com", "\u{738b}@example.com"],
        &["\u{e000}@example.com"],
    ),
    (
        "name-email",
        &["joe@example.com", "Joe Q. Doe <joe@example.com>", "J\u{fc}rgen <j@example.com>"],
        &["Joe joe@example.com", " <joe@example.com>"],
    ),
    (
        "uri",
        &[
            "http://localhost:8080",
            "https://my_host/a?b#c",
            "HTTPS://a--b.example.com.:443/",
            "http://u:p@10.0.0.1/",
            "http://[::1]:80/",
            "http://0a1b2c:80/",
            "urn:isbn:0451450523",
            "mailto:joe@example.com",
            "file:///etc/hosts",
            "irc://irc.example.com/room",
            "data:,x",
        ],
        &[
            "http:",
            "http:///a",
            "http://:80/",
            "http:a",
            "https://xn--x/",
            "http://1.2.3/",
            "http://256.0.0.1/",
            "http://a:65536/",
            "foo://@/",
            "foo://[v1.a]/",
            "foo:",
            "file://a:80/",
        ],
    ),
    (
        "uri-reference",
        &["", "/a/b", "../a", "#a", "?a", "//example.com/a", "http://localhost/"],
        &["http:///a", "//:80/"],
    ),
    ("iri", &["https://b\u{fc}cher.example/\u{e4}"], &["https:///\u{e4}"]),
    (
        "date-time",
        &["2024-02-29T23:59:59Z", "0001-01-01T00:00:00.123456789+23:59"],
        &[
            "2024-02-29t23:59:59Z",
            "2024-02-29T23:59:59z",
            "1998-12-31T23:59:60Z",
            "0000-01-01T00:00:00Z",
            "2024-01-01T00:00:00.1234567890Z",
        ],
    ),
    ("duration", &["P3DT12H30M5S", "PT86400S", "P1Y2M3D", "P4W"], &["P1234567D", "PT1.5S"]),
    (
        "uuid4",
        &["f81d4fae-7dec-41d0-a765-00a0c91e6bf6"],
        &["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-41d0-7765-00a0c91e6bf6"],
    ),
    (
        "ipv4network",
        &[
            "10.0.0.0/8",
            "192.168.1.0/24",
            "10.1.2.128/25",
            "10.0.0.0/24",
            "0.0.0.0/0",
            "10.1.2.3",
            "10.1.2.3/32",
        ],
        &["10.0.0.1/8", "10.1.2.64/25", "10.0.0.0/33"],
    ),
    (
        "ipv6network",
        &["fe80::/10", "fc00::/7", "2001:db8::/32", "::/0", "::1/128", "::1", "2001:db8:0:1200::/56"],
        &["fe80::/8", "::1/127", "2001:db8:0:1280::/56"],
    ),
    ("ipv4interface", &["10.0.0.1/8", "10.0.0.1"], &["10.0.0.1/33"]),
    ("ipvanyaddress", &["10.0.0.1", "::1"], &["::1/8", "x"]),
    (
        "multi-host-uri",
        &["postgres://u:p@a.example:5432,b.example:5433/db?x=y", "mongodb://a,b/db"],
        &["postgres://a,/db", "postgres:", "file://a,b/"],
    ),
    ("base64url", &["", "-_8=", "YQ=="], &["-_8", "+/8="]),
    ("fraction", &["1/2", "-3", "2.5"], &["1/0", "", "1e3"]),
];

#[test]
fn texts_that_readers_take_are_written_and_others_not() {
    let mut wrong = Vec::new();
    for (name, good, bad) in CASES {
        let automaton = compile(&json!({"type": "string", "format": name}));
        for (texts, written) in [(good, true), (bad, false)] {
            let missed =
                texts.iter().filter(|text| automaton.matches(json!(text).to_string().as_bytes()) != written);
            wrong.extend(missed.map(|text| format!("{name}: {text:?}, written: {}", !written)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Format names without a grammar are known, and restrict nothing.
#[test]
fn formats_without_a_grammar_restrict_nothing() {
    let options = JsonOptions { unknown: Unknown::Refuse, ..JsonOptions::default() };
    for name in
        ["password", "binary", "byte", "path", "file-path", "json-string", "color", "zoneinfo", "decimal"]
    {
        let automaton = compile_with(&json!({"type": "string", "format": name}), &options);
        assert!(automaton.matches(br#""any text""#), "{name}");
    }
}
