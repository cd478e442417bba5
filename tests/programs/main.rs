//! The examples and the command line tool, run as a user runs them.

#[cfg(unix)]
mod book;
mod capacity;
mod examples;
mod grammars;
mod json;
mod options;
mod pictures;
mod prelude;
mod ratchet;
mod structural_tags;
mod tool;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use burn_dfa_testing::skip;
use serde_json::Value;

/// An example, which `cargo test` builds together with the tests.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(Path::parent).unwrap();
    let mut command = Command::new(profile.join("examples").join(name));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Is used wrongly: fails with status 2 and a message that contains all of `parts`.
fn fails(command: &mut Command, parts: &[&str]) {
    fails_by(2, command, parts);
}

/// Refuses a constraint: fails with status 1 and a message that contains all of `parts`.
fn refuses(command: &mut Command, parts: &[&str]) {
    fails_by(1, command, parts);
}

fn fails_by(code: i32, command: &mut Command, parts: &[&str]) {
    let Output { status, stderr, .. } = command.output().unwrap();
    let stderr = text(&stderr);
    assert_eq!(status.code(), Some(code), "{command:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{command:?}: {part:?} is missing in: {stderr}");
    }
}

fn smollm2(args: &[&str]) -> Command {
    let mut command = example("smollm2");
    command.args(args);
    command
}

/// A temporary file of the test process.
fn file(name: &str, content: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("burn-dfa-programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// The lines of `--json`, checked for the promised fields.
fn rows(args: &[&str]) -> Vec<Value> {
    let stdout = succeeds(smollm2(args).arg("--json"));
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        assert!(row["text"].is_string() && row["complete"].is_boolean(), "{row}");
        assert!(row["seconds"].as_f64().unwrap() > 0.0, "{row}");
        let ids = row["token_ids"].as_array().unwrap();
        assert!(!ids.is_empty() && ids.iter().all(Value::is_u64), "{row}");
    }
    rows
}

const PROMPT: &str = "Meet Tomasz Quill, a 51 year old glazier from Turku.";

#[test]
fn a_schema_holds_for_every_row_and_a_seed_repeats() {
    for name in ["person", "order", "event", "team", "any"] {
        let schema = format!("models/tiny/schemas/{name}.json");
        let parsed = serde_json::from_str(burn_dfa_tiny::schema(name).unwrap().json).unwrap();
        let validator = jsonschema::validator_for(&parsed).unwrap();
        let args = ["--seed", "3", "--batch", "3", "--schema", &schema, "--prompt", PROMPT];
        let first = rows(&args);
        assert_eq!(first.len(), 3);
        for row in &first {
            let value: Value = serde_json::from_str(row["text"].as_str().unwrap()).unwrap();
            assert!(validator.is_valid(&value), "{name}: {row}");
            assert_eq!(row["complete"], true);
            assert!(row["constraint"].as_str().unwrap().contains(name));
        }
        let again = rows(&[&args[..], &["--graph"]].concat());
        for (one, other) in first.iter().zip(&again) {
            assert_eq!(one["token_ids"], other["token_ids"]);
        }
        // Row 1 of a batch from seed 3 is row 0 of a batch from seed 4.
        let alone = rows(&["--seed", "4", "--schema", &schema, "--prompt", PROMPT]);
        assert_eq!(alone[0]["token_ids"], first[1]["token_ids"]);
    }
}

#[test]
fn every_kind_of_constraint_can_be_asked_for() {
    let regex = rows(&["--regex", "[a-z]{3}-[0-9]{2}", "--prompt", PROMPT]);
    assert_eq!(regex[0]["text"].as_str().unwrap().len(), 6);
    let choice = rows(&["--choice", "yes", "--choice", "no", "--prompt", PROMPT]);
    assert!(["yes", "no"].contains(&choice[0]["text"].as_str().unwrap()));
    let spec = file("choice.json", r#"{"structured_outputs": {"choice": ["left", "right"]}}"#);
    let spec = rows(&["--spec", spec.to_str().unwrap(), "--prompt", PROMPT]);
    assert!(["left", "right"].contains(&spec[0]["text"].as_str().unwrap()));
    let free = rows(&["--unconstrained", "--prompt", PROMPT]);
    assert!(free[0]["constraint"].is_null());
    let short = smollm2(&["--json", "--prompt", PROMPT, "--max-tokens", "5"]).output().unwrap();
    assert_eq!(short.status.code(), Some(1), "free text that is cut off");
    let short: Value = serde_json::from_slice(&short.stdout).unwrap();
    assert_eq!((short["token_ids"].as_array().unwrap().len(), &short["complete"]), (5, &Value::from(false)));
}

#[test]
fn mistakes_are_named() {
    let bad = file("bad.json", "{\"type\": \"strin");
    let unknown = file(
        "unknown.json",
        r#"{"type": "object", "properties": {"a": {"type": "integer", "minimum": "3"}}}"#,
    );
    let (bad, unknown) = (bad.to_str().unwrap(), unknown.to_str().unwrap());
    fails(&mut smollm2(&["--json"]), &["--prompt"]);
    fails(&mut smollm2(&["--prompt", "x", "--schema", "nowhere.json"]), &["nowhere.json"]);
    fails(&mut smollm2(&["--prompt", "x", "--schema", bad]), &["bad.json", "not JSON"]);
    refuses(&mut smollm2(&["--prompt", "x", "--schema", unknown]), &["/properties/a/minimum"]);
    refuses(&mut smollm2(&["--prompt", "x", "--regex", "a(b"]), &["at byte 1"]);
    fails(
        &mut smollm2(&["--prompt", "x", "--regex", "a{40}", "--max-tokens", "3"]),
        &["41 tokens", "raise --max-tokens to 41"],
    );
    fails(&mut smollm2(&["--prompt", "x", "--max-tokens", "0"]), &["max_new_tokens of 0"]);
    fails(&mut smollm2(&["--prompt", "x", "--batch", "0"]), &["--batch"]);
    fails(&mut smollm2(&["--prompt", "x", "--temperature=-1"]), &["temperature -1"]);
    fails(&mut smollm2(&["--prompt", "x", "--model", "no-such-folder"]), &["no-such-folder"]);
    fails(&mut smollm2(&["--prompt", "x", "--regex", "a", "--choice", "b"]), &["cannot be used with"]);
    if !cfg!(feature = "cuda") {
        fails(&mut smollm2(&["--prompt", "x", "--device", "cuda"]), &["--features cuda"]);
        fails(&mut smollm2(&["--prompt", "x", "--device", "cuda"]), &["--features cuda"]);
    }
}

/// The command line tool; `None` and a notice if it was not built.
fn tool() -> Option<impl Fn(&[&str]) -> Command> {
    let Some(program) = option_env!("CARGO_BIN_EXE_burn-dfa") else {
        skip::skipped("the tool needs the feature cli");
        return None;
    };
    Some(move |args: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
        command
    })
}

#[test]
fn schemas_with_a_stack_are_checked_and_drawn() {
    let Some(tool) = tool() else { return };
    let tree = file("tree.json", r##"{"type": "array", "items": {"$ref": "#"}}"##);
    let tree = tree.to_str().unwrap();
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let checked = succeeds(&mut tool(&["check", "--schema", tree, &nested(60)]));
    assert!(checked.starts_with("match"), "{checked}");
    for text in [&nested(70), "[[1]]"] {
        let output = tool(&["check", "--json", "--schema", tree, text]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        // The mismatch is the extra array, or the number.
        let byte = if text.len() > 5 { 64 } else { 2 };
        assert_eq!((&line["byte"], &line["may_end"]), (&byte.into(), &false.into()), "{line}");
        assert!(line["expected"].as_str().unwrap().contains(']'), "{line}");
    }
    for command in ["check", "draw"] {
        let mut deep = tool(&[command, "--schema", tree, "--max-frames", "1025"]);
        if command == "check" {
            deep.arg("[]");
        }
        refuses(&mut deep, &["1024 frames", "lower --max-frames to 1024"]);
    }
    let drawn = succeeds(&mut tool(&["draw", "--schema", tree]));
    assert!(drawn.contains("[shape=box]") && drawn.contains("label=\"return 0\""), "{drawn}");
    assert!(drawn.contains("label=\"call\", style=dashed"), "{drawn}");
}

#[test]
fn schemas_are_explained() {
    let Some(tool) = tool() else { return };
    let exact = file(
        "exact.json",
        r#"{"type": "object", "title": "t", "properties": {"a": {"type": "integer", "multipleOf": 3}}, "additionalProperties": false}"#,
    );
    let exact = succeeds(&mut tool(&["explain", "--schema", exact.to_str().unwrap()]));
    assert_eq!(exact, "exact, all of it: type (2), properties, additionalProperties, multipleOf\n");
    let noted =
        file("noted.json", r##"{"properties": {"a": {"format": "colour", "items": {"$ref": "#"}}}}"##);
    let noted = noted.to_str().unwrap();
    for (frames, nesting) in [("64", "stack"), ("0", "bounded")] {
        let said = succeeds(&mut tool(&["explain", "--json", "--max-frames", frames, "--schema", noted]));
        let notes: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said: Vec<_> = notes.iter().map(|note| (&note["pointer"], &note["treatment"])).collect();
        assert!(said.contains(&(&Value::from("/properties/a/format"), &Value::from("ignored"))), "{said:?}");
        assert!(said.iter().any(|(_, treatment)| *treatment == nesting), "{said:?}");
    }
    let noted = succeeds(&mut tool(&["explain", "--json", "--schema", noted]));
    let notes: Vec<Value> = noted.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&notes[0]["treatment"], &notes[0]["keywords"]["properties"]), (&"exact".into(), &1.into()));
    assert!(notes[0]["keywords"]["format"].is_null());
    // Refused while reading, and by a contradiction between parts.
    let refused = [
        (r#"{"properties": {"a": {"type": "integer", "minimum": "3"}}}"#, Some("/properties/a/minimum")),
        (r#"{"type": "array", "uniqueItems": true, "items": {"type": "string"}}"#, Some("/uniqueItems")),
        (r#"{"type": "integer", "minimum": 3, "maximum": 2}"#, None),
    ];
    for (schema, pointer) in refused {
        let path = file("refused.json", schema);
        let output = tool(&["explain", "--json", "--schema", path.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{schema}: {}", text(&output.stderr));
        let last: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
        assert_eq!((&last["treatment"], last["pointer"].as_str()), (&"refused".into(), pointer), "{schema}");
    }
    fails(&mut tool(&["explain", "--schema", file("no.json", "{").to_str().unwrap()]), &["not JSON"]);
}

#[test]
fn the_program_with_models_is_run_or_missed() {
    let Some(tool) = tool() else { return };
    // A copy in an otherwise empty folder.
    let folder = std::env::temp_dir().join(format!("burn-dfa-generate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("burn-dfa");
    std::fs::copy(tool(&[]).get_program(), &copy).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(&copy);
        command.env("PATH", &folder).current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
        command
    };
    fails(&mut run(&["generate", "--model", "models/tiny"]), &["burn-dfa-generate", "cargo install --path"]);
    // The example takes the same options, and has a default model.
    let program = folder.join("burn-dfa-generate");
    std::fs::copy(example("smollm2").get_program(), program).unwrap();
    let args = ["--model", "models/tiny", "--regex", "[a-z]{3}-[0-9]{2}", "--prompt", PROMPT];
    let text = succeeds(&mut run(&[&["generate"][..], &args].concat()));
    assert_eq!(text.trim_end().len(), 6, "{text}");
    for args in [
        [&["generate", "--json"][..], &args].concat(),
        [&["--json", "generate"][..], &args].concat(),
        [&["generate"][..], &args, &["--json"]].concat(),
    ] {
        let row: Value = serde_json::from_str(&succeeds(&mut run(&args))).unwrap();
        assert_eq!(row["text"], text.trim_end());
    }
    let cut_off = run(&["generate", "--prompt", PROMPT, "--max-tokens", "2"]).output().unwrap();
    assert_eq!(cut_off.status.code(), Some(1));
    refuses(&mut run(&["generate", "--prompt", "x", "--regex", "a(b"]), &["at byte 1"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_prompt_may_come_from_standard_input() {
    let prompt = file("prompt.txt", &format!("{PROMPT}\n"));
    let args = ["--json", "--model", "models/tiny", "--max-tokens", "30"];
    let mut piped = smollm2(&args);
    piped.stdin(std::fs::File::open(prompt).unwrap());
    let text = |output: String| serde_json::from_str::<Value>(&output).unwrap()["text"].clone();
    let piped = text(succeeds(&mut piped));
    assert_eq!(piped, text(succeeds(&mut smollm2(&[&args[..], &["--prompt", PROMPT]].concat()))));
    let plain = text(succeeds(&mut smollm2(&[&args[..], &["--plain", "--prompt", PROMPT]].concat())));
    assert_ne!(piped, plain, "the chat template makes a difference");
}
