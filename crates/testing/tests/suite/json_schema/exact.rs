//! Schemas and values as text: every digit counts, and invalid JSON is refused with its location.

use burn_dfa_tokens::{ByteDfa, Constraint, Error, ErrorKind, Limits};
use std::cmp::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

fn compile(schema: &str) -> ByteDfa {
    let constraint = Constraint::json_schema_from_str_with(schema, &super::compact());
    let constraint = constraint.unwrap_or_else(|e| panic!("{schema}: {e}"));
    constraint.to_byte_dfa(&Limits::default()).unwrap_or_else(|e| panic!("{schema}: {e}")).expect("text")
}

fn refusal(schema: &str) -> Error {
    let error = Constraint::json_schema_from_str(schema).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Schema, "{schema}: {error}");
    error
}

#[test]
fn no_digit_is_lost() {
    for (schema, accepted, refused) in [
        (r#"{"minimum": 0.1000000000000000000001}"#, "0.1000000000000000000001", "0.1"),
        (r#"{"const": 0.1234567890123456789012345}"#, "0.1234567890123456789012345", "0.12345678901234568"),
        (r#"{"minimum": 18446744073709551616}"#, "18446744073709551616", "18446744073709551615"),
        (r#"{"enum": [9007199254740993.0]}"#, "9007199254740993", "9007199254740992"),
        (r#"{"exclusiveMaximum": -1e-25}"#, "-0.00000000000000000000000011", "-0.0000000000000000000000001"),
        (
            r#"{"type": "integer", "multipleOf": 30000000000000000000}"#,
            "90000000000000000000",
            "90000000000000000001",
        ),
        (
            r#"{"items": {"const": [1, {"a": 123456789012345678901234567890}]}}"#,
            r#"[[1,{"a":123456789012345678901234567890}]]"#,
            r#"[[1,{"a":123456789012345680000000000000}]]"#,
        ),
    ] {
        let dfa = compile(schema);
        assert!(dfa.matches(accepted.as_bytes()), "{schema} {accepted}");
        assert!(!dfa.matches(refused.as_bytes()), "{schema} {refused}");
        let constraint = Constraint::json_schema_from_str_with(schema, &super::compact()).unwrap();
        for (value, member) in [(accepted, true), (refused, false)] {
            let text = constraint.json_text_from_str(value, &Limits::default()).unwrap();
            assert_eq!(text, Some((value.to_owned(), member)), "{schema}");
        }
    }
    let great = format!("1{}", "0".repeat(400));
    for number in ["1e400", "10E+399", "0.1e401", &great, &format!("{great}.0")] {
        let dfa = compile(&format!(r#"{{"type": "integer", "enum": [{number}]}}"#));
        assert!(dfa.matches(great.as_bytes()) && !dfa.matches(&great.as_bytes()[..400]), "{number}");
    }
}

/// A number's sign, digits before the point and digits after the point, from any spelling.
fn spelled_out(text: &str) -> (bool, String, String) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let exponent: i32 = exponent.parse().unwrap();
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    for _ in 0..exponent {
        let digit = if fraction.is_empty() { '0' } else { fraction.remove(0) };
        whole.push(digit);
    }
    for _ in exponent..0 {
        fraction.insert(0, whole.pop().unwrap_or('0'));
    }
    (text.starts_with('-'), whole, fraction)
}

/// The order of two numbers, by digits.
fn compare(a: &str, b: &str) -> Ordering {
    let ((a_negative, a_whole, a_fraction), (b_negative, b_whole, b_fraction)) =
        (spelled_out(a), spelled_out(b));
    let aligned = |whole: &str, fraction: &str| format!("{whole:0>80}{fraction:0<80}");
    let (a, b) = (aligned(&a_whole, &a_fraction), aligned(&b_whole, &b_fraction));
    let zero = "0".repeat(160);
    match (a_negative && a != zero, b_negative && b != zero) {
        (false, false) => a.cmp(&b),
        (true, true) => b.cmp(&a),
        (negative, _) => {
            if negative {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

#[test]
fn comparisons_are_exact() {
    let mut random = StdRng::seed_from_u64(13);
    let mut number = |exponents: bool| {
        let mut text = String::from(if random.random_bool(0.3) { "-" } else { "" });
        let digits = |random: &mut StdRng, max: usize| -> String {
            (0..random.random_range(1..=max))
                .map(|_| ['0', '0', '1', '9', '5'][random.random_range(0..5)])
                .collect()
        };
        let whole = digits(&mut random, 25);
        let whole = whole.trim_start_matches('0');
        text.push_str(if whole.is_empty() { "0" } else { whole });
        if random.random_bool(0.6) {
            text.push_str(&format!(".{}", digits(&mut random, 25)));
        }
        if exponents && random.random_bool(0.5) {
            text.push_str(&format!("e{}", random.random_range(-25..=25)));
        }
        text
    };
    for _ in 0..150 {
        let bound = number(true);
        let dfas = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const"]
            .map(|keyword| compile(&format!(r#"{{"type": "number", "{keyword}": {bound}}}"#)));
        let (sign, whole, fraction) = spelled_out(&bound);
        let plain = [whole.trim_start_matches('0'), fraction.trim_end_matches('0')];
        let plain = match plain {
            ["", ""] => "0".to_owned(),
            [whole, fraction] => format!(
                "{}{}{}{fraction}",
                if sign { "-" } else { "" },
                if whole.is_empty() { "0" } else { whole },
                if fraction.is_empty() { "" } else { "." }
            ),
        };
        for text in (0..20).map(|_| number(false)).chain([plain]) {
            let order = compare(&text, &bound);
            let expected = [order.is_ge(), order.is_le(), order.is_gt(), order.is_lt(), order.is_eq()];
            let found = dfas.each_ref().map(|dfa| dfa.matches(text.as_bytes()));
            assert_eq!(found, expected, "{text} beside {bound}");
        }
    }
}

#[test]
fn exponents_are_bounded() {
    let began = Instant::now();
    for (schema, pointer) in [
        (r#"{"minimum": 1e999999999}"#, "/minimum"),
        (r#"{"items": {"enum": [0, {"a/b": [-1E-99999999999999999999]}]}}"#, "/items/enum/1/a~1b/0"),
        (r#"{"minLength": 1e4097}"#, "/minLength"),
        (r#"{"x-note": 1e-4097}"#, "/x-note"),
    ] {
        let error = refusal(schema);
        assert_eq!(error.pointer(), Some(pointer), "{error}");
        assert!(error.to_string().contains("4096 places"), "{error}");
    }
    // Zero ignores its exponent, and a number may have many digits.
    assert!(compile(r#"{"const": 0e999999999}"#).matches(b"0"));
    let long = format!("{}.5", "7".repeat(10_000));
    assert!(compile(&format!(r#"{{"const": {long}}}"#)).matches(long.as_bytes()));
    let many = format!(r#"{{"x-note": [{}0]}}"#, "1e4095,".repeat(100_000));
    Constraint::json_schema_from_str(&many).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "the work is bounded");
    let any = Constraint::json_schema_from_str("true").unwrap();
    assert!(
        any.json_text_from_str("[1e999999999]", &Limits::default()).unwrap_err().kind() == ErrorKind::Input
    );
    let great = Constraint::json_schema_from_str(r#"{"type": "string", "minLength": 1e400}"#).unwrap();
    assert_eq!(great.to_byte_dfa(&Limits::default()).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn equal_names_are_refused() {
    for (schema, pointer) in [
        (r#"{"type": "string", "type": "null"}"#, "/type"),
        (r#"{"anyOf": [true, {"properties": {"a": {}, "b": {}, "a": {}}}]}"#, "/anyOf/1/properties/a"),
        (r#"{"const": {"a": 1, "\u0061": 1}}"#, "/const/a"),
        (r#"{"x-note": {"a": {"a": 1}, "a/": 0, "a/": 0}}"#, "/x-note/a~1"),
    ] {
        let error = refusal(schema);
        assert_eq!(error.pointer(), Some(pointer), "{error}");
        assert!(error.to_string().contains("twice"), "{error}");
    }
    let any = Constraint::json_schema_from_str("true").unwrap();
    let error = any.json_text_from_str(r#"{"a": [{"b": 1, "b": 2}]}"#, &Limits::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.to_string().contains("/a/0/b"), "{error}");
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert!(compile("\u{feff}{\"type\": \"null\"}").matches(b"null"));
    let any = Constraint::json_schema_from_str("true").unwrap();
    let text = any.json_text_from_str("\u{feff} [1]", &Limits::default()).unwrap();
    assert_eq!(text, Some(("[1]".into(), true)));
    assert!(refusal("{}\u{feff}").to_string().contains("not JSON"));
}

/// Compares with `serde_json`.
#[test]
fn invalid_json_is_refused_at_its_location() {
    for (schema, pointer, location) in [
        ("", "", "line 1, column 1 (byte 0)"),
        ("{", "", "line 1, column 2 (byte 1)"),
        ("{\"items\": \n {\"type\": nul}}", "/items/type", "line 2, column 11 (byte 21)"),
        ("{\"anyOf\": [true, {\"minimum\": 01}]}", "/anyOf/1", "line 1, column 31 (byte 30)"),
        ("{} {}", "", "line 1, column 4 (byte 3)"),
        ("[1,]", "/1", "line 1, column 4 (byte 3)"),
        ("{\"a\" 1}", "/a", "line 1"),
    ] {
        assert!(serde_json::from_str::<serde_json::Value>(schema).is_err());
        let error = refusal(schema);
        assert_eq!(error.pointer(), Some(pointer), "{schema:?}: {error}");
        assert!(
            error.to_string().contains("it is not JSON: at ") && error.to_string().contains(location),
            "{error}"
        );
    }
    let mut random = StdRng::seed_from_u64(5);
    let sound = r#"{"a": [1, -2.5e3, "\u00e9\n", {"b": null, "": true}], "c": {"d": [false, []]}}"#;
    let any = Constraint::json_schema_from_str("true").unwrap();
    for _ in 0..2_000 {
        let mut text: Vec<char> = sound.chars().collect();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..text.len());
            let other = *b"{}[]\",:0123456789.eE+-tfn\\u \n".get(random.random_range(0..29)).unwrap();
            match random.random_range(0..3) {
                0 => text.insert(at, other.into()),
                1 => text[at] = other.into(),
                _ => drop(text.remove(at)),
            }
        }
        let text = String::from_iter(text);
        let judged = serde_json::from_str::<serde_json::Value>(&text);
        match any.json_text_from_str(&text, &Limits::default()) {
            // A number outside the range of floats is still a number.
            Ok(_) => {
                assert!(judged.map_or_else(|e| e.to_string().contains("out of range"), |_| true), "{text}")
            }
            // `serde_json` accepts these texts, and rounds numbers or drops members.
            Err(error) if error.to_string().contains("twice") || error.to_string().contains("places") => {}
            Err(error) => assert!(judged.is_err(), "{text}: {error}"),
        }
    }
}

#[test]
fn depth_has_no_limit_in_unread_values() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let constraint =
        Constraint::json_schema_from_str(&format!(r#"{{"type": "null", "x-note": {deep}}}"#)).unwrap();
    assert_eq!(
        constraint.definition().unwrap().len(),
        r#"{"json":{"type":"null","x-note":}}"#.len() + 40_000
    );
    assert_eq!(
        constraint.json_text_from_str(&deep, &Limits::default()).unwrap_err().kind(),
        ErrorKind::Input
    );
}

#[test]
fn values_keep_their_exact_numbers() {
    for (schema, accepted, refused) in [
        (json!({"const": 9007199254740992.0}), "9007199254740992", "9007199254740993"),
        (json!({"const": 0.1}), "0.1", "0.1000000000000000055511151231257827"),
        (json!({"minimum": u64::MAX}), "18446744073709551615", "18446744073709551614"),
    ] {
        let dfa = super::compile(&schema);
        assert!(dfa.matches(accepted.as_bytes()) && !dfa.matches(refused.as_bytes()), "{schema}");
    }
}

#[test]
fn requests_as_text_keep_every_digit() {
    let number = "0.1000000000000000000001";
    let schema = format!(r#"{{"const": {number}}}"#);
    let requests = [
        format!(r#"{{"type": "json_schema", "json_schema": {{"name": "n", "schema": {schema}}}}}"#),
        format!(r#"{{"response_format": {{"type": "json_schema", "json_schema": {{"schema": {schema}}}}}}}"#),
        format!(r#"{{"structured_outputs": {{"json": {schema}}}}}"#),
        format!(r#"{{"json": {}}}"#, json!(schema)),
    ];
    for request in &requests {
        let constraint = Constraint::from_request_str(request).unwrap().unwrap();
        let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
        assert!(dfa.matches(number.as_bytes()) && !dfa.matches(b"0.1"), "{request}");
        let again = Constraint::from_request_str(&constraint.definition().unwrap()).unwrap().unwrap();
        assert_eq!(again.to_byte_dfa(&Limits::default()).unwrap().unwrap(), dfa, "{request}");
    }
    // A string is text inside a value too.
    let request = json!({"json": schema});
    let dfa = Constraint::from_request(&request)
        .unwrap()
        .unwrap()
        .to_byte_dfa(&Limits::default())
        .unwrap()
        .unwrap();
    assert!(dfa.matches(number.as_bytes()) && !dfa.matches(b"0.1"));
    for (bad, reason) in [
        ("{", "it is not JSON"),
        (r#"{"model": "m", "json": true, "json": false}"#, "at /json: "),
        ("[]", "a request is an object"),
        (r#"{"json": "{\"type\": 1, \"type\": 2}"}"#, "holds no JSON schema: at /type: "),
    ] {
        let error = Constraint::from_request_str(bad).unwrap_err();
        assert!(error.kind() == ErrorKind::Request && error.to_string().contains(reason), "{bad}: {error}");
    }
}
