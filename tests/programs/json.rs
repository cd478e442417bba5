//! Command line options for the style of JSON and for ignored keywords of a schema.

use std::process::Output;

use serde_json::Value;

use super::{PROMPT, fails, file, refuses, rows, smollm2, succeeds, text, tool};

const SCHEMA: &str = r#"{"const": [true, {"a": null}]}"#;

const STYLES: [(&str, &str); 4] = [
    ("compact", r#"[true,{"a":null}]"#),
    ("spaced", r#"[true, {"a": null}]"#),
    ("pretty", "[\n  true,\n  {\n    \"a\": null\n  }\n]"),
    ("flexible", "[ true,\t{\"a\" :null\n}]"),
];

/// A schema, a request and a structural tag, all of [`SCHEMA`], and their default white space.
fn constraints() -> [([String; 2], &'static str); 3] {
    let request = format!(r#"{{"structured_outputs": {{"json": {SCHEMA}}}}}"#);
    let request = file("request.json", &request).to_str().unwrap().to_owned();
    let tag = format!(r#"{{"format": {{"type": "json_schema", "json_schema": {SCHEMA}}}}}"#);
    [
        (["--schema".to_owned(), SCHEMA.to_owned()], "spaced"),
        (["--spec".to_owned(), request], "spaced"),
        (["--structural-tag".to_owned(), tag], "flexible"),
    ]
}

#[test]
fn every_command_takes_the_white_space() {
    let Some(tool) = tool() else { return };
    for ([option, value], default) in &constraints() {
        let constraint = [option.as_str(), value];
        for told in std::iter::once(None).chain(STYLES.map(Some)) {
            // `check` accepts any white space by default.
            let style = told.map_or("flexible", |(style, _)| style);
            let written = told.map_or(*default, |(style, _)| style);
            let told_style = told.map(|(style, _)| ["--whitespace", style]);
            let told_style = told_style.as_ref().map_or(&[][..], |args| args);
            for (other, text) in STYLES {
                let args = [&["check"], &constraint[..], told_style, &[text]].concat();
                let accepts = tool(&args).output().unwrap().status.code() == Some(0);
                assert_eq!(accepts, other == style || style == "flexible", "{args:?}");
            }
            if let Some((_, text)) = STYLES.iter().find(|(of, _)| *of == written && written != "flexible") {
                let args = [&["sample"], &constraint[..], told_style].concat();
                assert_eq!(succeeds(&mut tool(&args)), format!("{text}\n"), "{args:?}");
            }
        }
        let of = |command: &[&str], style: &str| {
            succeeds(&mut tool(&[command, &constraint[..], &["--whitespace", style]].concat()))
        };
        assert_ne!(of(&["draw"], "compact"), of(&["draw"], "spaced"));
        let states = |style: &str| {
            let compiled =
                of(&["compile", "--tokenizer", "models/tiny", "--form", "byte-level", "--json"], style);
            serde_json::from_str::<Value>(&compiled).unwrap()["states"].as_u64().unwrap()
        };
        assert!(states("compact") < states("spaced") && states("spaced") < states("pretty"));
        assert!(of(&["explain"], "pretty").starts_with("exact"));
    }
}

#[test]
fn white_space_is_that_of_a_schema() {
    let Some(tool) = tool() else { return };
    for other in [["--regex", "a"], ["--choice", "a"], ["--grammar", "root ::= \"a\""]] {
        let args = [&["check"], &other[..], &["--whitespace", "compact", "a"]].concat();
        fails(&mut tool(&args), &["--whitespace <STYLE>", "cannot be used with", other[0]]);
    }
    let wide = ["check", "--schema", SCHEMA, "--whitespace", "wide", "a"];
    fails(&mut tool(&wide), &["wide", "compact", "spaced", "pretty", "flexible"]);
}

#[test]
fn a_corpus_uses_the_requested_white_space() {
    let Some(tool) = tool() else { return };
    let row = format!(
        r#"{{"id": "a", "schema": {SCHEMA}, "tests": [{{"valid": true, "data": [true, {{"a": null}}]}}]}}"#
    );
    let rows = file("styles.jsonl", &row);
    let corpus = ["corpus", "--tokenizer", "models/tiny", rows.to_str().unwrap()];
    for (style, _) in STYLES {
        let said = succeeds(&mut tool(&[&corpus[..], &["--whitespace", style]].concat()));
        assert!(said.lines().last().unwrap().starts_with("passing=1/1 "), "{style}: {said}");
    }
    let set = r#"{"id": "set", "schema": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}, "tests": [{"valid": true, "data": ["a"]}]}"#;
    let rows = file("sets.jsonl", set);
    let corpus = ["corpus", "--tokenizer", "models/tiny", rows.to_str().unwrap()];
    assert!(succeeds(&mut tool(&corpus)).contains("refused=1"));
    let said = succeeds(&mut tool(&[&corpus[..], &["--ignore-unenforceable"]].concat()));
    assert!(said.contains("refused=0"), "{said}");
}

#[test]
fn unenforceable_keywords_are_ignored_on_request() {
    let Some(tool) = tool() else { return };
    let set = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
    let counted = r#"{"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 2}"#;
    for (schema, keyword, value, why) in [
        (set, "uniqueItems", r#"["a", "a"]"#, "no finite automaton remembers so many items"),
        (counted, "minProperties", r#"{"a": null, "b": null}"#, "distinct"),
    ] {
        let remedy =
            format!("or leave `{keyword}` out with --ignore-unenforceable, and check the value afterwards");
        let location = format!("JSON schema, at /{keyword}: `{keyword}`: ");
        refuses(&mut tool(&["check", "--schema", schema, value]), &[&location, why, &remedy]);
        let explained = tool(&["explain", "--schema", schema]).output().unwrap();
        let said = text(&explained.stdout);
        assert!(explained.status.code() == Some(1) && said.contains(&remedy), "{said}");

        let leave_out = ["--schema", schema, "--ignore-unenforceable"];
        let explained = succeeds(&mut tool(&[&["explain"], &leave_out[..]].concat()));
        assert!(explained.contains(&format!("ignored /{keyword}: ")), "{explained}");
        for json in [&[][..], &["--json"]] {
            let args = [&["check", value], &leave_out[..], json].concat();
            let Output { status, stderr, .. } = tool(&args).output().unwrap();
            let told = text(&stderr);
            assert_eq!(status.code(), Some(0), "{args:?}: {told}");
            assert!(told.contains("warning") && told.contains(&format!("/{keyword}: ignored: ")), "{told}");
        }
        let drawn = succeeds(&mut tool(&[&["sample", "--max-tokens", "200"], &leave_out[..]].concat()));
        serde_json::from_str::<Value>(&drawn).unwrap();
    }
}

/// The embedded model was trained on compact JSON; other models write spaces.
#[test]
fn a_model_writes_in_the_style_that_is_asked_for() {
    let person = ["--schema", "models/tiny/schemas/person.json", "--prompt", PROMPT];
    for (told, spaced) in
        [(&[][..], false), (&["--whitespace", "compact"], false), (&["--whitespace", "spaced"], true)]
    {
        let row = rows(&[&person[..], told].concat()).remove(0);
        let written = row["text"].as_str().unwrap();
        assert_eq!(written.contains(r#"{"name": "#), spaced, "{told:?}: {written}");
        assert_eq!(written.contains(r#","age":"#), !spaced, "{told:?}: {written}");
    }
    assert!(succeeds(&mut smollm2(&["--help"])).contains("--whitespace"));
}
