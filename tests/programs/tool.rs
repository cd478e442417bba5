//! The command line tool: compile, check, draw, inspect, sample, vocab, corpus, doctor.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use burn_dfa_testing::data;

use super::{fails, file, refuses, succeeds, text, tool};

#[test]
fn the_command_line_tool_compiles_and_checks() {
    let Some(tool) = tool() else { return };
    let compiled = succeeds(&mut tool(&["compile", "--regex", "[0-9]{4}", "--tokenizer", "models/tiny"]));
    assert!(compiled.contains("least tokens   5"), "{compiled}");
    let matched = tool(&["check", "--regex", "a+", "aaa"]).output().unwrap();
    assert_eq!(matched.status.code(), Some(0));
    let unmatched = tool(&["check", "--regex", "a+", "aaa", "b"]).output().unwrap();
    assert_eq!(unmatched.status.code(), Some(1));
    let stdout = text(&unmatched.stdout);
    assert!(stdout.starts_with("match    aaa\nno match b\n  at byte 0, character 0: 'b'"), "{stdout}");
    refuses(&mut tool(&["check", "--regex", "[", "x"]), &["at byte 0"]);
    fails(&mut tool(&["compile", "--regex", "a"]), &["--tokenizer"]);
    let json =
        succeeds(&mut tool(&["compile", "--json", "--regex", "[0-9]{4}", "--tokenizer", "models/tiny"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["least_tokens"], &json["form"]), (&Value::from(5), &Value::from("token-level")));
    assert!(json["bytes"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn a_corpus_is_counted_and_held_against_a_baseline() {
    let Some(tool) = tool() else { return };
    // A passing row, a row with wrong verdicts, an unreadable row, and a regex.
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    let lines = file(
        "corpus.jsonl",
        &[
            format!(r#"{{"id": "right", "schema": {schema}, "tests": [{{"valid": true, "data": {{"a": 1}}}}, {{"valid": false, "data": {{"a": "1"}}}}]}}"#),
            format!(r#"{{"id": "wrong", "schema": {schema}, "tests": [{{"valid": true, "data": {{}}}}, {{"valid": false, "data": {{"a": 7}}}}]}}"#),
            r#"{"id": "refused", "schema": {"type": "no such type"}, "tests": [{"valid": true, "data": 1}]}"#.to_owned(),
            r#"{"id": "regex", "regex": "a{2,3}", "accepts": ["aa", "aaa"], "rejects": ["a", "aaaa"]}"#.to_owned(),
        ]
        .join("\n"),
    );
    let (lines, rows) = (lines.to_str().unwrap(), file("corpus-rows.jsonl", ""));
    let baseline = file("corpus-baseline.json", "");
    let (rows, baseline) = (rows.to_str().unwrap(), baseline.to_str().unwrap());
    let run = |more: &[&str]| {
        tool(
            &[&["corpus", "--tokenizer", "models/tiny", "--samples", "2", "--jobs", "2", lines], more]
                .concat(),
        )
    };
    let stdout = succeeds(&mut run(&["--output", rows, "--baseline", baseline, "--update"]));
    let last = stdout.lines().last().unwrap();
    let counts = "passing=2/4 refused=1 valid_rejected=1/4 invalid_accepted=1/4 ttfm_us_p50=";
    assert!(last.starts_with(counts), "{last}");
    let written = std::fs::read_to_string(rows).unwrap();
    let written: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let classes: Vec<_> = written.iter().map(|row| row["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["pass", "invalid_accepted", "refused", "pass"]);
    assert!(written[0]["ttfm_us"].as_f64().unwrap() > 0.0 && written[2]["ttfm_us"].is_null());
    assert_eq!(written.iter().map(|row| row["samples"].as_u64().unwrap()).sum::<u64>(), 6);
    succeeds(&mut run(&["--baseline", baseline]));
    let better = std::fs::read_to_string(baseline).unwrap();
    std::fs::write(baseline, better.replace("\"invalid_accepted\": 1", "\"invalid_accepted\": 0")).unwrap();
    let worse = run(&["--baseline", baseline]).output().unwrap();
    assert_eq!(worse.status.code(), Some(1));
    assert!(text(&worse.stdout).contains("invalid_accepted 0 → 1"), "{}", text(&worse.stdout));
    fails(&mut run(&["--baseline", "nowhere.json"]), &["nowhere.json"]);
}

/// Numbers in rows keep all digits.
#[test]
fn a_corpus_rounds_no_number() {
    let Some(tool) = tool() else { return };
    let lines = file(
        "digits.jsonl",
        r#"
        {"id": "long", "schema": {"minimum": 18446744073709551616}, "tests": [{"valid": true, "data": 18446744073709551616}, {"valid": false, "data": 18446744073709551615}]}
        {"id": "fine", "schema": {"const": 0.1000000000000000000001}, "tests": [{"valid": true, "data": 0.1000000000000000000001}, {"valid": false, "data": 0.1}]}
        {"id": "great", "schema": {"maximum": 1e25}, "tests": [{"valid": true, "data": 1e25}, {"valid": false, "data": 1.00000000000000000001e25}]}
        {"id": "text", "schema": {"enum": [0.30000000000000000001]}, "accepts": ["0.30000000000000000001"], "rejects": ["0.3"]}
        "#,
    );
    let corpus =
        |path: &Path| succeeds(&mut tool(&["corpus", "--tokenizer", "models/tiny", path.to_str().unwrap()]));
    let said = corpus(&lines);
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("passing=4/4 refused=0 valid_rejected=0/4 invalid_accepted=0/4 "), "{said}");
    // The folder names of the official suite determine the draft of the schemas.
    let suite = file("digits.jsonl", "").with_file_name("draft4").join("suite.json");
    std::fs::create_dir_all(suite.parent().unwrap()).unwrap();
    let rows = r#"[
        {"description": "flag", "schema": {"type": "integer", "maximum": 3, "exclusiveMaximum": true}, "tests": [{"valid": true, "data": 2}, {"valid": false, "data": 3}]},
        {"description": "spelled as no integer", "schema": {"type": "integer"}, "tests": [{"valid": false, "data": 1.0}]},
        {"description": "empty", "schema": {}, "tests": [{"valid": true, "data": 1.0}]}
    ]"#;
    std::fs::write(&suite, rows).unwrap();
    let said = corpus(&suite);
    assert!(said.lines().last().unwrap().starts_with("passing=3/3 "), "{said}");
}

/// Numbers in rows are checked as spelled.
#[test]
fn a_corpus_respells_no_number() {
    let Some(tool) = tool() else { return };
    let lines = file(
        "spellings.jsonl",
        r#"
        {"id": "number", "schema": {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}}, "tests": [{"valid": true, "data": {"a": 10.0, "b": 1.0e2}}, {"valid": true, "data": {"a": -0.0}}]}
        {"id": "digits", "schema": {"items": {"type": "integer"}}, "tests": [{"valid": true, "data": [10, 3]}, {"valid": true, "data": [10.0]}]}
        {"id": "text", "kind": "schema", "schema": "{\"const\": 1.0e1}", "accepts": ["10", " 10.0", "1e1"], "rejects": ["10.", "1e2", " [10]"]}
        {"id": "spaces", "kind": "schema", "schema": {"properties": {"a": {"const": [1, "x"]}}, "additionalProperties": false}, "accepts": ["{\"a\":[1.0,\"x\"]}"], "rejects": ["{\"a\":[2,\"x\"]}"]}
        {"id": "refused", "kind": "schema", "schema": {"type": 7}, "accepts": [], "rejects": ["1"], "compiles": false}
        "#,
    );
    let corpus = ["corpus", "--tokenizer", "models/tiny", lines.to_str().unwrap()];
    let said = succeeds(&mut tool(&corpus));
    let last = said.lines().last().unwrap();
    // An integer not written as plain digits is rejected, unless `--any-integers` is given.
    assert!(last.starts_with("passing=4/5 refused=0 valid_rejected=1/8 invalid_accepted=0/5 "), "{said}");
    let said = succeeds(&mut tool(&[&corpus[..], &["--any-integers"]].concat()));
    assert!(said.lines().last().unwrap().starts_with("passing=5/5 "), "{said}");
    let schema = r#"{"type":"object","properties":{"price":{"type":"number"}},"required":["price"]}"#;
    let schema = file("price.json", schema);
    let check = ["check", "--tokenizer", "models/tiny", "--schema", schema.to_str().unwrap()];
    succeeds(&mut tool(&[&check[..], &[r#"{"price": 10.0}"#, r#"{"price": 1.0e2}"#]].concat()));
}

#[test]
fn a_mismatch_is_shown_with_possible_continuations() {
    let Some(tool) = tool() else { return };
    let check = |texts: &[&str]| {
        let args = ["check", "--json", "--tokenizer", "models/tiny", "--regex", "[0-9]{4}-[0-9]{2}(é|[^x])?"];
        let output = tool(&[&args, texts].concat()).output().unwrap();
        let rows: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code(), rows)
    };
    let (code, rows) = check(&["2026-1-01", "2026-", "2026-01x", "2026-01éé", "2026-01é"]);
    assert_eq!(code, Some(1));
    let location = |row: &Value| (row["byte"].as_u64(), row["character"].as_u64(), row["expected"].clone());
    assert_eq!(location(&rows[0]), (Some(6), Some(6), "[0-9]".into()));
    assert_eq!(rows[0]["token_count"], 10);
    assert_eq!(location(&rows[1]), (Some(5), Some(5), "[0-9]".into()));
    assert_eq!(location(&rows[2]), (Some(7), Some(7), "[^x]".into()));
    assert_eq!(rows[2]["may_end"], true);
    // Only the end, after a character of two bytes.
    assert_eq!(location(&rows[3]), (Some(9), Some(8), Value::Null));
    assert_eq!(rows[3]["tokens"][0]["text"], Value::Null);
    assert_eq!(rows[4]["matches"], true);
    assert_eq!(check(&["2026-01"]).0, Some(0));
}

#[test]
fn automata_are_drawn() {
    let Some(tool) = tool() else { return };
    let dot = succeeds(&mut tool(&["draw", "--regex", "(cat|dog)s?"]));
    assert_eq!(dot.matches("doublecircle").count(), 2, "{dot}");
    assert_eq!(dot.matches(" -> ").count(), 8, "{dot}");
    let path = file("automaton.svg", "");
    let path = path.to_str().unwrap();
    for (regex, states, accepting, edges) in
        [("(cat|dog)s?", 7, 2, 7), ("(a|b)*abb", 4, 1, 8), ("[a-z]+(<[&\"]*>)*", 4, 2, 6), ("", 1, 1, 0)]
    {
        succeeds(&mut tool(&["draw", "--regex", regex, "-o", path]));
        let svg = std::fs::read_to_string(path).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        let circles: Vec<(f64, f64)> = svg
            .split("<circle ")
            .skip(1)
            .map(|circle| {
                let value = |name: &str| circle.split(name).nth(1)?.split('"').nth(1)?.parse().ok();
                (value("cx=").unwrap(), value("cy=").unwrap())
            })
            .collect();
        assert_eq!(circles.len(), states + accepting, "{regex}: {svg}");
        // The two circles of an accepting state are concentric, all others are apart.
        for (at, one) in circles.iter().enumerate() {
            for other in &circles[..at] {
                let distance = (one.0 - other.0).hypot(one.1 - other.1);
                assert!(distance == 0.0 || distance > 36.0, "{regex}: {one:?} and {other:?}");
            }
        }
        // The arrow at the start counts as well.
        assert_eq!(svg.matches("marker-end").count(), edges + 1, "{regex}: {svg}");
        let bare = svg.split(['<', '>']).any(|part| part.contains("& ") || part.contains("&\""));
        assert!(!bare, "{regex}: {svg}");
    }
    let args = ["draw", "--regex", "[0-9]{3}", "--table", "--tokenizer", "models/tiny", "-o", path];
    succeeds(&mut tool(&args));
    // Four states and two classes, digits and the end, and the background.
    assert_eq!(std::fs::read_to_string(path).unwrap().matches("<rect ").count(), 9);
    fails(&mut tool(&["draw", "--regex", "a{300}"]), &["301 states", "--max-nodes"]);
    fails(&mut tool(&["draw", "--regex", "a", "-o", "a.png"]), &[".svg or .dot"]);
}

#[test]
fn artifacts_are_written_and_inspected() {
    let Some(tool) = tool() else { return };
    let path = file("date.safetensors", "");
    let path = path.to_str().unwrap();
    for form in ["token-level", "byte-level"] {
        let args = [
            "compile",
            "--regex",
            "[0-9]{4}-[0-9]{2}",
            "--tokenizer",
            "models/tiny",
            "--form",
            form,
            "-o",
            path,
        ];
        let said = succeeds(&mut tool(&args));
        assert!(said.contains(&format!("form           {form}")) && said.contains("written to"), "{said}");
        let shown = succeeds(&mut tool(&["inspect", path]));
        assert!(shown.contains(r#"constraint       {"regex":"[0-9]{4}-[0-9]{2}"}"#), "{shown}");
        assert!(shown.contains("sound            checked without its vocabulary"), "{shown}");
        let json = succeeds(&mut tool(&["inspect", "--json", "--tokenizer", "models/tiny", path]));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["sound"], &json["least_tokens"]), (&true.into(), &8.into()), "{json}");
        assert_eq!(json["metadata"]["constraint"]["regex"], "[0-9]{4}-[0-9]{2}");
        assert_eq!(json["tensors"]["next"]["dtype"], "I32");
        let elsewhere =
            tool(&["inspect", path, "--tokenizer", "models/tiny", "--eos", "1"]).output().unwrap();
        assert_eq!(elsewhere.status.code(), Some(1));
        assert!(text(&elsewhere.stdout).contains("compile the constraint for it"));
    }
    let mut damaged = std::fs::read(path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(path, damaged).unwrap();
    let output = tool(&["inspect", path]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("the file is damaged"), "{}", text(&output.stdout));
    std::fs::write(path, "not an artifact at all").unwrap();
    fails(&mut tool(&["inspect", path]), &["date.safetensors", "no safetensors file"]);
    fails(&mut tool(&["inspect", "nowhere", "--json"]), &["{\"error\":\"cannot read nowhere"]);
}

#[test]
fn values_and_files_are_checked_as_well() {
    let Some(tool) = tool() else { return };
    let schema =
        file("pair.json", r#"{"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}"#);
    let schema = schema.to_str().unwrap();
    let laid_out = file("laid-out.json", "{ \"b\": [ ],\n \"a\": 1.0 }\n");
    let laid_out = laid_out.to_str().unwrap();
    let checked = succeeds(&mut tool(&["check", "--schema", schema, "--value", "--file", laid_out]));
    assert_eq!(checked, "match    {\"a\": 1, \"b\": []}\n");
    let as_text = tool(&["check", "--schema", schema, "--file", laid_out]).output().unwrap();
    assert_eq!(as_text.status.code(), Some(1));
    let wrong = tool(&["check", "--schema", schema, "--value", r#"{"a": "x"}"#]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    let said = text(&wrong.stdout);
    assert!(said.contains("at byte 6") && said.contains("as bytes:   [\\-0-9]"), "{said}");
    fails(&mut tool(&["check", "--schema", schema, "--value", "{"]), &["is not JSON"]);
    fails(&mut tool(&["check", "--regex", "a", "--value", "1"]), &["--value is for JSON schemas"]);
}

#[test]
fn every_command_helps_with_examples() {
    let Some(tool) = tool() else { return };
    let help = succeeds(&mut tool(&["--help"]));
    for name in [
        "compile",
        "check",
        "explain",
        "inspect",
        "draw",
        "sample",
        "vocab",
        "corpus",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(name), "{help}");
        let own = succeeds(&mut tool(&[name, "--help"]));
        assert!(own.contains("Example") && own.contains(&format!("\n  burn-dfa {name} ")), "{own}");
    }
}

#[test]
fn random_texts_match_and_a_seed_repeats() {
    let Some(tool) = tool() else { return };
    let regex = "[a-z]{2,5}(-[0-9]+)?";
    let args = ["sample", "--regex", regex, "--count", "20", "--max-tokens", "12"];
    let pattern = regex_automata::meta::Regex::new(&format!("^(?:{regex})$")).unwrap();
    for more in [&["--seed", "1"][..], &["--seed", "1", "--tokenizer", "models/tiny"]] {
        let first = succeeds(&mut tool(&[&args, more].concat()));
        assert_eq!(first.lines().count(), 20);
        assert!(first.lines().all(|line| pattern.is_match(line)), "{first}");
        let distinct: std::collections::HashSet<_> = first.lines().collect();
        assert!(distinct.len() > 15, "{first}");
        assert_eq!(first, succeeds(&mut tool(&[&args, more].concat())));
    }
    fails(
        &mut tool(&["sample", "--regex", "a{40}", "--max-tokens", "10"]),
        &["41 tokens", "raise --max-tokens to 41"],
    );
}

#[test]
fn vocabularies_are_written_as_others_read_them() {
    let Some(tool) = tool() else { return };
    for name in ["smollm2", "gpt2", "mistral_v1"] {
        let tokenizer = data::find(&format!("tokenizers/{name}/tokenizer.json"));
        let expected = data::find(&format!("tokenizers/token-bytes/{name}.tsv.gz"));
        let (Some(tokenizer), Some(expected)) = (tokenizer, expected) else { return };
        let mut tsv = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(expected).unwrap())
            .read_to_string(&mut tsv)
            .unwrap();
        let written = succeeds(&mut tool(&["vocab", "--tokenizer", tokenizer.to_str().unwrap()]));
        assert!(written == tsv, "{name} differs");
    }
}

#[test]
fn completions_include_every_subcommand() {
    let Some(tool) = tool() else { return };
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeeds(&mut tool(&["completions", shell]));
        for name in [
            "compile", "check", "explain", "inspect", "draw", "sample", "vocab", "corpus", "generate",
            "doctor",
        ] {
            assert!(script.contains(name), "{shell}: {name} is missing");
        }
    }
}

#[test]
fn the_doctor_checks_devices() {
    let Some(tool) = tool() else { return };
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let [burn, cubecl] = ["burn", "cubecl"].map(|name| {
        let version = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1).unwrap();
        version.split('"').next().unwrap()
    });
    let said = succeeds(&mut tool(&["doctor", "--device", "flex"]));
    let version = env!("CARGO_PKG_VERSION");
    let head = format!("burn-dfa   {version}\nburn       {burn}, cubecl {cubecl}\nfeatures   flex");
    assert!(said.starts_with(&head), "{said}");
    assert!(said.contains("\nflex\n  device:  CPU, ") && said.ends_with("  masks:   equal\n"), "{said}");
    let json = succeeds(&mut tool(&["doctor", "--device", "flex", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["burn"], &json["cubecl"]), (&burn.into(), &cubecl.into()), "{json}");
    assert_eq!(json["devices"][0]["masks"], "equal", "{json}");
    assert_eq!(json["devices"][0]["dtypes"], Value::from(vec!["f32", "f16", "bf16"]), "{json}");
    // Without the option, every local device of the build is checked. A device that fails has a
    // remedy.
    let output = tool(&["doctor", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let devices = json["devices"].as_array().unwrap();
    let works = |device: &Value| device["masks"] == "equal";
    assert!(devices.iter().all(|device| works(device) || device["remedy"].is_string()), "{json}");
    assert_eq!(output.status.code(), Some(i32::from(!devices.iter().all(works))), "{json}");
    fails(&mut tool(&["doctor", "--device", "tpu"]), &["no device of this name"]);
    if !cfg!(feature = "cuda") {
        fails(&mut tool(&["doctor", "--device", "cuda"]), &["build it with `--features cuda`"]);
    }
}
