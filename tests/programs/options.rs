//! Error messages of the command line tool for invalid options, numbers and files.

use std::process::Output;

use serde_json::{Value, json};

use super::{PROMPT, fails, file, refuses, smollm2, succeeds, text, tool};

#[test]
fn every_command_tells_a_refused_constraint_from_an_error() {
    let Some(tool) = tool() else { return };
    let tiny = ["--tokenizer", "models/tiny"];
    let commands: [&[&str]; 5] =
        [&["compile", tiny[0], tiny[1]], &["check", "a"], &["draw"], &["sample"], &["explain"]];
    let written = |name: &str, content: &str| file(name, content).to_str().unwrap().to_owned();
    let refused = [
        ("--schema", written("minimum.json", r#"{"minimum": "1"}"#)),
        ("--schema", written("nothing.json", r#"{"type": "integer", "minimum": 3, "maximum": 2}"#)),
        ("--schema", written("half.json", r#"{"enum": ["\ud800"]}"#)),
        ("--regex", "a(".to_owned()),
        ("--spec", written("xml.json", r#"{"response_format": {"type": "xml"}}"#)),
        ("--grammar", written("undefined.gbnf", "root ::= a")),
        ("--structural-tag", written("poem.json", r#"{"format": {"type": "poem"}}"#)),
    ];
    let wrong = [
        ("--schema", written("open.json", "{")),
        ("--schema", "nowhere.json".to_owned()),
        ("--spec", written("open.json", "{")),
        ("--grammar", "nowhere.gbnf".to_owned()),
        ("--structural-tag", written("open.json", "{")),
    ];
    for command in commands {
        let code = |(option, value): &(&str, String)| {
            let output = tool(&[command, &[*option, value.as_str()]].concat()).output().unwrap();
            (output.status.code(), text(&output.stderr))
        };
        for constraint in &refused {
            let (code, said) = code(constraint);
            assert_eq!(code, Some(1), "{command:?} {constraint:?}: {said}");
        }
        for constraint in &wrong {
            let (code, said) = code(constraint);
            assert_eq!(code, Some(2), "{command:?} {constraint:?}: {said}");
        }
    }
    // An unreadable tokenizer and a missing text are errors.
    fails(&mut tool(&["compile", "--regex", "a", "--tokenizer", "nowhere"]), &["nowhere"]);
    fails(&mut tool(&["check", "--schema", refused[1].1.as_str()]), &["<TEXTS>"]);
}

#[test]
fn keywords_of_another_draft_are_reported() {
    let Some(tool) = tool() else { return };
    let old = file("old.json", r#"{"type": "integer", "minimum": 1, "exclusiveMinimum": true}"#);
    let old = old.to_str().unwrap();
    let said = succeeds(&mut tool(&["explain", "--schema", old]));
    assert!(said.contains("read /exclusiveMinimum: as draft 4 has it"), "{said}");
    for json in [false, true] {
        let mut command = tool(&["check", "--schema", old, "2"]);
        command.args(json.then_some("--json"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let told = text(&output.stderr);
        assert!(told.contains("note") && told.contains("/exclusiveMinimum: read: as draft 4"), "{told}");
    }
}

#[test]
fn ignored_keywords_are_warned_of() {
    let Some(tool) = tool() else { return };
    // Annotations and extensions are not warned of.
    let annotated = r#"{"title": "t", "$comment": "c", "default": "", "examples": [""], "x-order": 1, "#;
    let schema =
        |more: &str| format!(r#"{annotated}"type": "string", "format": "password", "maxLength": 3{more}}}"#);
    let (right, misspelled) = (schema(""), schema(r#", "patern": "^a", "color": "red""#));
    let reasons = [
        "/patern: ignored: it is no keyword of JSON Schema; did you mean `pattern`?",
        "/color: ignored: it is no keyword of JSON Schema",
    ];
    let commands: [&[&str]; 4] = [
        &["check", r#""b""#],
        &["compile", "--tokenizer", "models/tiny"],
        &["sample"],
        &["--prompt", PROMPT],
    ];
    for command in commands {
        for json in [false, true] {
            let run = |schema: &str| {
                let args = [command, &["--schema", schema]].concat();
                let mut program = if command[0] == "--prompt" { smollm2(&args) } else { tool(&args) };
                let Output { status, stdout, stderr } =
                    program.args(json.then_some("--json")).output().unwrap();
                let stderr = text(&stderr);
                assert_eq!(status.code(), Some(0), "{args:?}: {stderr}");
                let warnings = stderr.lines().filter(|line| line.contains("warning")).map(str::to_owned);
                (text(&stdout), warnings.collect::<Vec<String>>())
            };
            let ((plain, none), (printed, warnings)) = (run(&right), run(&misspelled));
            let expected = reasons.map(|reason| match json {
                true => json!({"warning": reason}).to_string(),
                false => format!("warning: {reason}"),
            });
            assert_eq!((none, warnings), (vec![], expected.to_vec()), "{command:?}");
            // The other outputs have times.
            assert!(!["check", "sample"].contains(&command[0]) || printed == plain, "{printed}{plain}");
        }
    }
}

#[test]
fn a_limit_names_the_option_that_raises_it() {
    let Some(tool) = tool() else { return };
    let tiny = ["--tokenizer", "models/tiny"];
    let long = ["--regex", "[ab]{500}"];
    let commands: [&[&str]; 4] = [&["compile", tiny[0], tiny[1]], &["check", "a"], &["draw"], &["sample"]];
    for command in commands {
        let run = |more: &[&str]| tool(&[command, &long, more].concat());
        refuses(&mut run(&["--max-states", "100"]), &["100 states", "simplify it, or raise --max-states"]);
        refuses(&mut run(&["--max-bytes", "100"]), &["100 bytes", "simplify it, or raise --max-bytes"]);
    }
    let hard = ["check", "--regex", "(a|b)*a(a|b){20}", "--max-states", "100000000", "x"];
    let slow = [&hard[..], &["--max-seconds", "0.01"]].concat();
    refuses(&mut tool(&slow), &["10ms of compile time", "raise --max-seconds"]);
    // A raised limit accepts the constraint.
    let mut enough = tool(&[&["compile", tiny[0], tiny[1]], &long[..], &["--max-states", "1000"]].concat());
    assert!(succeeds(&mut enough).contains("states         50"));

    let schema = file("long.json", r#"{"type": "string", "minLength": 300, "maxLength": 400}"#);
    let schema = ["--schema", schema.to_str().unwrap(), "--max-states", "100"];
    let explained = tool(&[&["explain"], &schema[..]].concat()).output().unwrap();
    assert_eq!(explained.status.code(), Some(1));
    assert!(text(&explained.stdout).contains("raise --max-states"), "{}", text(&explained.stdout));

    let corpus = file("limited.jsonl", r#"{"id": "long", "regex": "[ab]{500}", "accepts": ["a"]}"#);
    let corpus = ["corpus", tiny[0], tiny[1], corpus.to_str().unwrap()];
    let reasons = |more: &[&str]| {
        let said = succeeds(&mut tool(&[&corpus[..], more, &["--json"]].concat()));
        let line: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        line["summary"]["reasons"].as_object().unwrap().keys().cloned().collect::<String>()
    };
    assert!(reasons(&["--max-states", "100"]).contains("raise --max-states"));
    assert!(reasons(&["--max-device-bytes", "100"]).contains("raise --max-device-bytes"));

    let prompt = ["--prompt", "x", "--max-tokens", "200", "--regex", "[ab]{150}"];
    let generate = |more: &[&str]| smollm2(&[&prompt[..], more].concat());
    refuses(&mut generate(&["--max-states", "100"]), &["raise --max-states"]);
    refuses(&mut generate(&["--max-device-bytes", "100"]), &["raise --max-device-bytes"]);
    let short = ["--prompt", "x", "--regex", "a{40}", "--max-tokens", "2"];
    fails(&mut smollm2(&short), &["raise --max-tokens to"]);
}

#[test]
fn an_artifact_beyond_the_limits_is_inspected_with_raised_limits() {
    let Some(tool) = tool() else { return };
    let path = file("long.safetensors", "");
    let path = path.to_str().unwrap();
    succeeds(&mut tool(&["compile", "--regex", "a{300}", "--tokenizer", "models/tiny", "-o", path]));
    succeeds(&mut tool(&["inspect", path, "--max-states", "1000"]));
    let stopped = tool(&["inspect", path, "--max-states", "100"]).output().unwrap();
    let said = text(&stopped.stdout) + &text(&stopped.stderr);
    assert_eq!((stopped.status.code(), said.contains("raise --max-states")), (Some(1), true), "{said}");
}

#[test]
fn numbers_that_make_no_sense_are_usage_errors() {
    let Some(tool) = tool() else { return };
    let corpus = file("empty.jsonl", "");
    let corpus = corpus.to_str().unwrap();
    for seconds in
        ["-1", "NaN", "-NaN", "inf", "1e400", "1e300", "0", "0e0", "1e-300", "-0.0", "", "two", "1e"]
    {
        for command in [
            &["corpus", "--tokenizer", "models/tiny", corpus][..],
            &["check", "--regex", "a", "a"],
            &["compile", "--regex", "a", "--tokenizer", "models/tiny"],
        ] {
            let option = format!("--max-seconds={seconds}");
            fails(&mut tool(&[command, &[&option]].concat()), &["invalid value", "--max-seconds"]);
        }
    }
    // The short name of the option in `corpus`.
    fails(&mut tool(&["corpus", "--tokenizer", "models/tiny", "--seconds=-1", corpus]), &["positive number"]);
    let beyond = "99999999999999999999999999";
    for (command, option) in [
        ("corpus", "--jobs"),
        ("corpus", "--samples"),
        ("corpus", "--recursion"),
        ("corpus", "--any-depth"),
        ("compile", "--max-states"),
        ("compile", "--max-bytes"),
        ("compile", "--eos"),
        ("sample", "--count"),
        ("sample", "--max-tokens"),
        ("sample", "--seed"),
        ("draw", "--max-nodes"),
    ] {
        for number in ["-1", "NaN", "1e3", beyond] {
            fails(&mut tool(&[command, &format!("{option}={number}")]), &["invalid value", option]);
        }
    }
    for jobs in ["0", "100000"] {
        let args = ["corpus", "--tokenizer", "models/tiny", corpus, "--jobs", jobs];
        fails(&mut tool(&args), &["invalid value", "--jobs"]);
    }
}

#[test]
fn usage_errors_are_json_on_request() {
    let Some(tool) = tool() else { return };
    let error = |code: i32, output: Output| {
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0));
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let line: Value = serde_json::from_str(&stderr).unwrap();
        line["error"].as_str().unwrap().to_owned()
    };
    let tool = |args: &[&str]| error(2, tool(args).output().unwrap());
    assert!(tool(&["--json", "check"]).contains("--regex"));
    assert!(tool(&["check", "--json", "--regex", "a", "--no-such-option", "a"]).contains("--no-such-option"));
    assert!(tool(&["compile", "--regex", "a", "--json"]).contains("--tokenizer"));
    assert!(tool(&["--json", "no-such-command"]).contains("no-such-command"));
    assert!(!tool(&["--json"]).is_empty());
    let seconds = tool(&["corpus", "--json", "--tokenizer", "models/tiny", "--seconds=NaN", "x"]);
    assert!(seconds.ends_with("this has to be a positive number of seconds"), "{seconds}");
    // Also for the program with models, and its other errors.
    let generate = |code: i32, args: &[&str]| {
        error(code, smollm2(&[&["--json", "--prompt", "x"], args].concat()).output().unwrap())
    };
    assert!(generate(2, &["--seed=-1"]).contains("--seed"));
    assert!(generate(1, &["--regex", "a(b"]).contains("at byte 1"));
}

#[test]
fn json_after_two_dashes_is_not_an_option() {
    let Some(tool) = tool() else { return };
    let mut command = tool(&["check", "--regex", "a", "--no-such-option", "--", "--json"]);
    fails(&mut command, &["error: unexpected argument", "Usage: "]);
}

#[test]
fn schemas_without_keywords_are_explained() {
    let Some(tool) = tool() else { return };
    let explain = |schema: &str, more: &[&str]| {
        let path = file("keywordless.json", schema);
        let args = [&["explain", "--schema", path.to_str().unwrap()], more].concat();
        let output = tool(&args).output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    let (code, said) = explain("false", &[]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("exact: `false`, which no value fits\nrefused nothing satisfies"), "{said}");
    let (code, said) = explain("false", &["--json"]);
    assert_eq!(code, Some(1));
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&last["treatment"], &last["unsatisfiable"]), (&json!("refused"), &json!(true)));
    let (code, said) = explain("true", &[]);
    assert_eq!((code, said.contains("`true`, which every value fits")), (Some(0), true), "{said}");
    let (code, said) = explain(r#"{"title": "t"}"#, &[]);
    assert_eq!((code, said.contains(": no keyword\n")), (Some(0), true), "{said}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let Some(tool) = tool() else { return };
    let schema = file("marked.json", "\u{FEFF}{\"type\": \"integer\"}");
    let schema = ["--schema", schema.to_str().unwrap()];
    succeeds(&mut tool(&[&["check", "7"], &schema[..]].concat()));
    let value = file("marked-value.json", "\u{FEFF}7\n");
    let value = ["--file", value.to_str().unwrap()];
    succeeds(&mut tool(&[&["check"], &schema[..], &value].concat()));
    succeeds(&mut tool(&[&["check", "--value"], &schema[..], &value].concat()));
    let spec = file("marked-spec.json", "\u{FEFF}{\"structured_outputs\": {\"choice\": [\"a\"]}}");
    succeeds(&mut tool(&["check", "a", "--spec", spec.to_str().unwrap()]));
    let corpus = file("marked.jsonl", "\u{FEFF}{\"regex\": \"a\", \"accepts\": [\"a\"]}\n");
    let said = succeeds(&mut tool(&["corpus", "--tokenizer", "models/tiny", corpus.to_str().unwrap()]));
    assert!(said.contains("passing=1/1"), "{said}");
    // Elsewhere in a text it is a normal character.
    let twice = file("marked-twice.txt", "\u{FEFF}\u{FEFF}a\n");
    succeeds(&mut tool(&["check", "--regex", "\u{FEFF}a", "--file", twice.to_str().unwrap()]));
}

#[test]
fn unspellable_instances_are_counted_separately() {
    let Some(tool) = tool() else { return };
    // Tokens for `a`, `b`, `bc` and `ab`, and the end of a sequence.
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [
            {"id": 4, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false,
             "normalized": false}
        ],
        "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": true}, "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": false,
        "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "bc": 2, "ab": 3}, "merges": [["a", "b"]]}
    });
    let tokenizer = file("letters.json", &tokenizer.to_string());
    let tokenizer = tokenizer.to_str().unwrap();
    let lines = file(
        "letters.jsonl",
        r#"{"id": "letters", "regex": "[a-z]+", "accepts": ["ab", "abc", "xyz", "A"], "rejects": ["é", "aba", ""]}"#,
    );
    let (rows, baseline) = (file("letters-rows.jsonl", ""), file("letters-baseline.json", ""));
    let (rows, baseline) = (rows.to_str().unwrap(), baseline.to_str().unwrap());
    let args = ["corpus", "--tokenizer", tokenizer, "--eos", "4", "-o", rows, lines.to_str().unwrap()];
    let said = succeeds(&mut tool(&[&args[..], &["--baseline", baseline, "--update"]].concat()));
    // `xyz`, `A` and `é` have no tokens; `abc` has tokens, though not with its longest token at the
    // start.
    assert!(said.contains("not spelled       3 instances"), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains(" valid_rejected=0/4 invalid_accepted=1/3 ") && last.ends_with(" unspelled=3"),
        "{last}"
    );
    let row: Value = serde_json::from_str(&std::fs::read_to_string(rows).unwrap()).unwrap();
    let verdicts = ["accepted", "accepted", "unspelled", "unspelled", "unspelled", "accepted", "rejected"]
        .map(Value::from);
    assert_eq!((&row["unspelled"], row["verdicts"].as_array().unwrap()), (&json!(3), &verdicts.to_vec()));
    // Old counts without this field are still read, and a rise is detected.
    let counts: Value = serde_json::from_str(&std::fs::read_to_string(baseline).unwrap()).unwrap();
    let with = |unspelled: Option<u64>| {
        let mut counts = counts.clone();
        let file =
            counts["files"].as_object_mut().unwrap().values_mut().next().unwrap().as_object_mut().unwrap();
        assert_eq!(file.remove("unspelled"), Some(json!(3)));
        file.extend(unspelled.map(|count| ("unspelled".to_owned(), json!(count))));
        std::fs::write(baseline, counts.to_string()).unwrap();
        tool(&[&args[..], &["--baseline", baseline]].concat()).output().unwrap()
    };
    assert_eq!(with(None).status.code(), Some(0));
    assert_eq!(with(Some(3)).status.code(), Some(0));
    let worse = with(Some(2));
    assert_eq!(worse.status.code(), Some(1));
    assert!(text(&worse.stdout).contains("unspelled 2 → 3"), "{}", text(&worse.stdout));
}
