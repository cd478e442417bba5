//! Runs every example briefly and checks its output.

use regex_automata::meta::Regex;
use serde_json::Value;

use super::{example, succeeds};

/// Checks that each line of an example's output matches its regex.
fn assert_lines(output: &str, expected: &[&str]) {
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{output}");
    for (line, expected) in lines.iter().zip(expected) {
        let regex = Regex::new(&format!(r"\A(?:{expected})\z")).unwrap();
        assert!(regex.is_match(line), "{line:?} is not {expected:?} in {output}");
    }
}

#[test]
fn minimal_writes_two_rows_that_match() {
    let output = succeeds(&mut example("minimal"));
    assert_lines(&output, &[r"\[.*\] \d{3}-\d{3}"; 2]);
}

#[test]
fn own_model_writes_dates_and_an_answer() {
    let output = succeeds(&mut example("own_model"));
    let date = r"row \d: \d{4}-\d\d-\d\d";
    assert_lines(&output, &[date, date, "Answer: (Yes|No|Perhaps)"]);
}

#[test]
fn no_letter_e_keeps_the_schema_and_avoids_the_letter() {
    let output = succeeds(&mut example("no_letter_e"));
    let text = "\"[^\"eE]*\"";
    let person = format!(r#"\{{"name":{text},"age":\d+,"city":{text}(,"job":{text})?\}}"#);
    assert_lines(&output, &["with every letter", r"\{.*\}", "", "without e", &person]);
}

#[test]
fn dfa_123123_writes_these_digits() {
    let output = succeeds(&mut example("dfa_123123"));
    assert_lines(&output, &["free +\".*\"", "constrained +\"123123\""]);
}

#[test]
fn own_transformer_writes_the_same_dates_in_every_loop() {
    let output = succeeds(&mut example("own_transformer"));
    let dates = r" +\d{4}-\d\d-\d\d \d{4}-\d\d-\d\d \d{4}-\d\d-\d\d";
    let steps = ["without a cache", "with a cache", "recorded", "a continuous batch", "with drafts"];
    let expected = steps.map(|step| format!("{step}{dates}"));
    assert_lines(&output, &expected.each_ref().map(String::as_str));
}

#[test]
fn own_sampler_writes_names() {
    let output = succeeds(&mut example("own_sampler"));
    let name = "[A-Z][a-z]{2,9} [A-Z][a-z]{2,9}";
    assert_lines(
        &output,
        &[0, 1, 3].map(|n| format!("{n} σ: {name}, {name}, {name}")).each_ref().map(|line| &line[..]),
    );
    // Without a spread every row takes the likeliest tokens.
    let names: Vec<&str> = output.lines().next().unwrap().trim_start_matches("0 σ: ").split(", ").collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn watermark_is_found_in_its_text_alone() {
    let output = succeeds(&mut example("watermark"));
    let text = "standard deviations: [A-Za-z ,.]{120,160}";
    assert_lines(
        &output,
        &[&format!(r"plain +-?[0-2]\.\d {text}"), &format!(r"watermark +([5-9]|\d\d)\.\d {text}")],
    );
}

#[test]
fn nanogpt_format_writes_names_and_lines_for_ten_seeds() {
    let output = succeeds(&mut example("nanogpt_format"));
    let seeds: Vec<&str> = output.lines().filter(|line| line.contains("seed")).collect();
    assert_lines(&seeds.join("\n"), &[r#"  seed \d: "[A-Z]+: [a-z]+\\n""#; 10]);
}

#[test]
fn tools_are_called_and_answered_from() {
    let output = succeeds(example("tools").args(["What is 17 times 23?", "Good morning!"]));
    assert_lines(
        &output,
        &[
            r"user   What is 17 times 23\?",
            r#"model  calculate \{"a":17,"op":"times","b":23\}"#,
            r#"tool   \{"result":391\}"#,
            r"model  17 times 23 is 391\.",
            "",
            "user   Good morning!",
            r"model  Hello! How can I help\?",
            "",
        ],
    );
}

/// Checks each verdict of the demonstration with the crate jsonschema; returns their number.
fn verdicts_of_the_demonstration(demo: &str) -> usize {
    let mut validator = None;
    let mut verdicts = 0;
    for line in demo.lines() {
        if let Some((_, kind)) = line.split_once(" → ") {
            let schema = serde_json::from_str(burn_dfa_tiny::schema(kind).unwrap().json).unwrap();
            validator = Some(jsonschema::validator_for(&schema).unwrap());
        }
        let Some((_, rest)) = line.split_once("constrained ").filter(|_| line.starts_with("  ")) else {
            continue;
        };
        let rest = rest.trim_start();
        let fits = rest.strip_prefix("fits the schema");
        let text = fits.or(rest.strip_prefix("breaks the schema")).or(rest.strip_prefix("not JSON")).unwrap();
        let value = serde_json::from_str::<Value>(text.trim());
        let is_valid = value.is_ok_and(|value| validator.as_ref().unwrap().is_valid(&value));
        assert_eq!(fits.is_some(), is_valid, "{line}");
        verdicts += 1;
    }
    verdicts
}

#[test]
fn smollm2_keeps_every_schema_and_reports_correct_verdicts() {
    let output = succeeds(&mut example("smollm2"));
    assert!(output.contains("constrained   4 of 4 fit their schema"), "{output}");
    assert_eq!(verdicts_of_the_demonstration(&output), 8);
}

#[test]
fn continuous_batching_serves_every_request() {
    let args = ["--requests", "12", "--rows", "4", "--every", "0"];
    let output = succeeds(example("continuous_batching").args(args));
    assert_lines(
        &output,
        &[
            r"12 requests, one every 0 ms, in 4 rows: [1-9]\d* tokens in .* s, [1-9]\d* tokens/s",
            r"latency from arrival: p50 \d+ ms, p90 \d+ ms, max \d+ ms",
            r"a request waited for space for its constraint \d+ times",
            "All outputs satisfy their constraints, and are what each request writes alone.",
        ],
    );
}

#[test]
fn speculative_shows_each_call_and_measures_every_drafter() {
    let drafters = [
        "draft model, masked",
        "draft model, unmasked",
        "prompt lookup",
        "automaton, longest token",
        "automaton, the model's choice",
        "automaton, then draft model",
        "automaton, then prompt lookup",
        "tree: draft model beside prompt lookup",
    ];
    let shown = succeeds(&mut example("speculative"));
    let calls = shown.lines().filter_map(|line| line.strip_suffix(" calls")?.rsplit_once(": "));
    let calls: Vec<(&str, usize)> =
        calls.map(|(name, calls)| (name.trim(), calls.parse().unwrap())).collect();
    assert!(calls.len() == 4 * drafters.len() && calls.iter().all(|&(_, calls)| calls > 0), "{shown}");
    // All drafters of a prompt write the same text.
    let pieces = shown.lines().filter_map(|line| line.strip_prefix("    "));
    let texts: Vec<String> = pieces.map(|pieces| pieces.replace('|', "")).collect();
    for texts in texts.chunks(drafters.len()) {
        assert!(texts.len() == drafters.len() && texts.iter().all(|text| *text == texts[0]), "{shown}");
    }
    let table = succeeds(example("speculative").args(["--table", "--prompts", "2"]));
    for drafter in drafters {
        let row = table.lines().find(|line| line.starts_with(&format!("| {drafter} |")));
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{drafter}: {table}")).split('|').collect();
        let tokens_a_call: f64 = cells[2].trim().parse().unwrap();
        assert!((1.0..=16.0).contains(&tokens_a_call), "{drafter}: {table}");
    }
    assert!(table.contains("outputs were valid and complete within their budgets"), "{table}");
}
