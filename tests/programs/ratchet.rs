//! The corpora, token by token, against earlier counts.

use burn_dfa_testing::data;

use super::{succeeds, tool};

/// The counts.
const BASELINE: &str = "benches/results/corpus.json";

/// Files of MaskBench that take seconds, not minutes.
const MASKBENCH: [&str; 9] = [
    "BFCL",
    "Github_easy",
    "Github_trivial",
    "Glaiveai2K",
    "Handwritten",
    "MCPspec",
    "Snowplow",
    "Synthesized",
    "WashingtonPost",
];

/// The last line of the tool, with the accepted and rejected counts.
fn last_line(output: &str) -> &str {
    output.lines().last().unwrap()
}

#[test]
fn every_row_of_the_sample_passes() {
    let Some(tool) = tool() else { return };
    let [schemas, regexes] = [data::schemas(), data::regexes()].map(|mut corpora| corpora.remove(0));
    let [schemas, regexes] = [&schemas, &regexes].map(|corpus| corpus.path.to_str().unwrap());
    let args = [
        "corpus",
        "--tokenizer",
        "models/tiny",
        "--any-integers",
        "--jobs",
        "2",
        "--samples",
        "2",
        schemas,
        regexes,
    ];
    let output = succeeds(&mut tool(&args));
    let line = last_line(&output);
    let counts = line.split(' ').next().and_then(|passing| passing.strip_prefix("passing="));
    let (passing, rows) =
        counts.and_then(|counts| counts.split_once('/')).unwrap_or_else(|| panic!("{line}"));
    assert!(passing == rows && rows.parse::<usize>().unwrap() > 80, "{line}");
    assert!(line.contains("refused=0 valid_rejected=0/") && line.contains("invalid_accepted=0/"), "{line}");
    assert!(!output.contains("not JSON") || output.contains("not JSON 0"), "{output}");
}

#[test]
fn no_count_of_the_corpora_is_worse_than_before() {
    let Some(tool) = tool() else { return };
    let Some(tokenizer) = data::find("tokenizers/smollm2/tokenizer.json") else { return };
    let maskbench = MASKBENCH.iter().filter_map(|name| data::find(&format!("maskbench/{name}.jsonl")));
    let drafts = ["draft7", "draft2020-12"];
    let drafts = drafts.iter().flat_map(|draft| data::draft(draft).split_off(1));
    let regexes = data::regexes().split_off(1);
    let others = drafts.chain(regexes).map(|corpus| corpus.path);
    let files: Vec<_> = maskbench.chain(others).map(|path| path.to_str().unwrap().to_owned()).collect();
    // The default time of `Limits`, so a slow machine has the same counts.
    let limits = ["--max-seconds", "30"];
    let args = ["corpus", "--jobs", "2", "--any-integers", "--baseline", BASELINE, "--tokenizer"];
    let mut command = tool(&[&args[..1], &limits, &args[1..]].concat());
    println!("{}", last_line(&succeeds(command.arg(tokenizer).args(files))));
}
