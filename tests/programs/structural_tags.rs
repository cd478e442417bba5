//! The command line tool on structural tags: check, explain, draw, sample, compile, corpus.

use serde_json::Value;

use super::{fails, file, refuses, succeeds, text, tool};

/// Calls of a tool within free text.
const CALLS: &str = r#"{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<call="], "tags": [
    {"begin": "<call=add>", "content": {"type": "regex", "pattern": "[0-9],[0-9]"}, "end": "</call>"}]}}"#;

#[test]
fn a_structural_tag_is_a_constraint_of_every_command() {
    let Some(tool) = tool() else { return };
    let path = file("calls.json", CALLS);
    let args = ["--structural-tag", path.to_str().unwrap()];
    succeeds(&mut tool(&[&["check", "So <call=add>1,2</call>.", "no call"], &args[..]].concat()));
    let output = tool(&[&["check", "<call=sub>1,2</call>"], &args[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(succeeds(&mut tool(&[&["explain"], &args[..]].concat())).contains("exact, all of it"));
    let tiny = ["--tokenizer", "models/tiny"];
    succeeds(&mut tool(&[&["compile"], &tiny[..], &args[..]].concat()));
    let picture = file("calls.svg", "");
    let draw = ["draw", "--max-nodes", "1000", "-o", picture.to_str().unwrap()];
    succeeds(&mut tool(&[&draw[..], &args[..]].concat()));
    let sample = ["sample", "--count", "5", "--max-tokens", "40", "--json"];
    let drawn = succeeds(&mut tool(&[&sample[..], &tiny[..], &args[..]].concat()));
    let rows: Vec<Value> = drawn.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    succeeds(&mut tool(&[&["check"], &args[..], &["--"], &texts].concat()));
    fails(
        &mut tool(&[&["check", "1", "--regex", "1"], &args[..]].concat()),
        &["--structural-tag", "--regex"],
    );
}

#[test]
fn a_structural_tag_is_refused_with_its_pointer() {
    let Some(tool) = tool() else { return };
    let path = file("unknown.json", r#"{"type": "structural_tag", "format": {"type": "poem"}}"#);
    let args = ["--structural-tag", path.to_str().unwrap()];
    let said = ["unknown.json: structural tag, at /format/type: `poem` is no format"];
    refuses(&mut tool(&[&["check", "a"], &args[..]].concat()), &said);
    let output = tool(&[&["explain", "--json"], &args[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let refused: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(refused["pointer"], "/format/type", "{refused}");
}

#[test]
fn verdicts_on_structural_tags_are_counted() {
    let Some(tool) = tool() else { return };
    let schema = r#"{"type": "json_schema", "json_schema": {"type": "array", "items": {"type": "null"}}}"#;
    let rows = [
        format!(
            r#"{{"id": "calls", "kind": "structural_tag", "grammar": {}, "accepts": ["a", "<call=add>1,2</call>"], "rejects": ["<call=x"], "rejects_incomplete": ["<call="], "all_rejects_dead": true}}"#,
            CALLS.replace('\n', "")
        ),
        format!(
            r#"{{"id": "compact", "kind": "structural_tag", "grammar": {{"format": {schema}}}, "options": {{"any_whitespace": false, "separators": [",", ":"]}}, "accepts": ["[null,null]"], "rejects": ["[null, null]"]}}"#
        ),
        format!(
            r#"{{"id": "wide", "kind": "structural_tag", "grammar": {{"format": {schema}}}, "accepts": ["[null, null]"], "rejects": []}}"#
        ),
        r#"{"id": "tokens", "kind": "structural_tag", "grammar": {"format": {"type": "any_tokens", "exclude_tokens": [0], "max_tokens": 2}}, "vocab": ["x", "y", "<end>"], "stop": [2], "accepts": [[], [1, 1]], "rejects": [[0], [1, 1, 1]], "masks": [{"after": [1], "allowed": [1, 2]}]}"#.to_owned(),
        r#"{"id": "other", "kind": "structural_tag", "grammar": {}, "options": {"indent": 2}, "accepts": ["x"], "rejects": []}"#.to_owned(),
        r#"{"id": "rightly", "kind": "structural_tag", "grammar": {"format": {"type": "poem"}}, "accepts": [], "rejects": [], "compiles": false}"#.to_owned(),
    ];
    let path = file("tags.jsonl", &rows.join("\n"));
    let said = succeeds(&mut tool(&["corpus", "--tokenizer", "models/tiny", path.to_str().unwrap()]));
    assert!(said.contains("passing           5 of 5 (0 more without tests, 1 skipped)"), "{said}");
}

#[test]
fn verdicts_on_requests_are_counted() {
    let Some(tool) = tool() else { return };
    let tools = r#""tools": [{"type": "function", "function": {"name": "now"}}]"#;
    let row = |id: &str, fields: &str, verdicts: &str| {
        format!(r#"{{"id": "{id}", "kind": "request", "grammar": {{"messages": []{fields}}}, {verdicts}}}"#)
    };
    let rows = [
        row("text", "", r#""accepts": ["x"], "rejects": [], "compiles": true"#),
        row("choice", r#", "structured_outputs": {"choice": ["x"]}"#, r#""accepts": ["x"], "rejects": ["y"]"#),
        row(
            "call",
            &format!(r#", {tools}, "tool_choice": "required""#),
            r#""accepts": ["{\"name\": \"now\", \"arguments\": {}}"], "rejects": ["x"]"#,
        ),
        row("no tools", r#", "tool_choice": "required""#, r#""accepts": [], "rejects": [], "compiles": false"#),
        row("NUL", r#", "structured_outputs": {"regex": "\u0000"}"#, r#""accepts": [], "rejects": [], "compiles": false"#),
        row("wrong", r#", "response_format": {"type": "json_object"}"#, r#""accepts": ["[]"], "rejects": ["{}"]"#),
        r#"{"id": "template", "kind": "request", "grammar": {"template": "a"}, "accepts": [], "rejects": []}"#.to_owned(),
    ];
    let path = file("requests.jsonl", &rows.join("\n"));
    let said = succeeds(&mut tool(&["corpus", "--tokenizer", "models/tiny", path.to_str().unwrap()]));
    assert!(said.contains("passing           5 of 6 (0 more without tests, 1 skipped)"), "{said}");
    assert!(said.contains("valid rejected    1 of 4"), "{said}");
    assert!(said.contains("invalid accepted  1 of 3"), "{said}");
}
