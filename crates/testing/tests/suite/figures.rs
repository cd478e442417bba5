//! Figures quoted in prose are the figures of the run that made them: `benches/results/peers.txt`;
//! on the page on schema design, the figures of the pages that it names.
//!
//! A template names each figure with its decimals, `{flex_step_p50_ratio_llguidance:2}`, and may scale it,
//! `{memory_growth_kib/1024:1}`. The page must contain the template with the figures filled in; white space counts as one space.

use std::collections::BTreeMap;
use std::path::Path;

const RESULTS: &str = "benches/results/peers.txt";

const QUOTES: [(&str, &str); 17] = [
    (
        "benches/results/README.md",
        "| refused; burn-dfa {refused_burn_dfa:0} | {refused_llguidance:0} | {refused_xgrammar:0} | {refused_outlines:0} |",
    ),
    (
        "benches/results/README.md",
        "| {flex_step_p50_ratio_llguidance:2}; {flex_step_p90_ratio_llguidance:2}; {flex_step_p999_ratio_llguidance:2} | {flex_step_p50_ratio_xgrammar:2}; {flex_step_p90_ratio_xgrammar:2}; {flex_step_p999_ratio_xgrammar:2} | {flex_step_p50_ratio_outlines:2}; {flex_step_p90_ratio_outlines:2}; {flex_step_p999_ratio_outlines:2} |",
    ),
    (
        "benches/results/README.md",
        "| {v200k_flex_step_p50_ratio_llguidance:2}; {v200k_flex_step_p90_ratio_llguidance:2}; {v200k_flex_step_p999_ratio_llguidance:2} | {v200k_flex_step_p50_ratio_xgrammar:2}; {v200k_flex_step_p90_ratio_xgrammar:2}; {v200k_flex_step_p999_ratio_xgrammar:2} |",
    ),
    (
        "benches/results/README.md",
        "| {b32_per_row_ratio_llguidance:2} | {b32_per_row_ratio_xgrammar:2} | {b32_per_row_ratio_outlines:2} |",
    ),
    (
        "benches/results/README.md",
        "| {v200k_b32_per_row_ratio_llguidance:2} | {v200k_b32_per_row_ratio_xgrammar:2} |",
    ),
    (
        "benches/results/README.md",
        "| {first_mask_p50_ratio_llguidance:2}; {first_mask_p90_ratio_llguidance:2}; {first_mask_p99_ratio_llguidance:2} | {first_mask_p50_ratio_xgrammar:2}; {first_mask_p90_ratio_xgrammar:2}; {first_mask_p99_ratio_xgrammar:2} | {first_mask_p50_ratio_outlines:2}; {first_mask_p90_ratio_outlines:2}; {first_mask_p99_ratio_outlines:2} |",
    ),
    (
        "benches/results/README.md",
        "takes {flex_step_p50_ratio_llguidance:2}, {flex_step_p90_ratio_llguidance:2}, {flex_step_p99_ratio_llguidance:2} and {flex_step_p999_ratio_llguidance:2} of llguidance's time at p50, p90, p99 and p99.9: {flex_step_p50_us:1}, {flex_step_p90_us:0}, {flex_step_p99_us:0} and {flex_step_p999_us:0} µs. With 100,277 ids it takes {v100k_flex_step_p50_ratio_llguidance:2}, {v100k_flex_step_p90_ratio_llguidance:2}, {v100k_flex_step_p99_ratio_llguidance:2} and {v100k_flex_step_p999_ratio_llguidance:2}: {v100k_flex_step_p50_us:0}, {v100k_flex_step_p90_us:0}, {v100k_flex_step_p99_us:0} and {v100k_flex_step_p999_us:0} µs. With 200,019 ids it takes {v200k_flex_step_p50_ratio_llguidance:2}, {v200k_flex_step_p90_ratio_llguidance:2}, {v200k_flex_step_p99_ratio_llguidance:2} and {v200k_flex_step_p999_ratio_llguidance:2}: {v200k_flex_step_p50_us:0}, {v200k_flex_step_p90_us:0}, {v200k_flex_step_p99_us:0} and {v200k_flex_step_p999_us:0} µs.",
    ),
    (
        "benches/results/README.md",
        "p50 and p90 are {flex_step_p50_ratio_llguidance_without_long:2} and {flex_step_p90_ratio_llguidance_without_long:2} at 49,152 ids",
    ),
    (
        "benches/results/README.md",
        "a first visit takes {flex_step_p50_ratio_llguidance_warm:2}, {flex_step_p90_ratio_llguidance_warm:2}, {flex_step_p99_ratio_llguidance_warm:2} and {flex_step_p999_ratio_llguidance_warm:2} of the time of llguidance with a warm lexer. If both engines have read the texts before, a step takes {flex_step_kept_p50_ratio_llguidance_warm:2}, {flex_step_kept_p90_ratio_llguidance_warm:2}, {flex_step_kept_p99_ratio_llguidance_warm:2} and {flex_step_kept_p999_ratio_llguidance_warm:2} of llguidance's time: {flex_step_kept_p50_us:1}, {flex_step_kept_p90_us:1}, {flex_step_kept_p99_us:1} and {flex_step_kept_p999_us:0} µs",
    ),
    (
        "benches/results/README.md",
        "The ratios are {v100k_flex_step_kept_p50_ratio_llguidance_warm:2}, {v100k_flex_step_kept_p90_ratio_llguidance_warm:2}, {v100k_flex_step_kept_p99_ratio_llguidance_warm:2} and {v100k_flex_step_kept_p999_ratio_llguidance_warm:2} with 100,277 ids, and {v200k_flex_step_kept_p50_ratio_llguidance_warm:2}, {v200k_flex_step_kept_p90_ratio_llguidance_warm:2}, {v200k_flex_step_kept_p99_ratio_llguidance_warm:2} and {v200k_flex_step_kept_p999_ratio_llguidance_warm:2} with 200,019.",
    ),
    (
        "benches/results/README.md",
        "take {first_mask_p50_ratio_llguidance:2}, {first_mask_p90_ratio_llguidance:2} and {first_mask_p99_ratio_llguidance:2} of llguidance's time at p50, p90 and p99, on the schemas that both compile. The ratios at p50 and p90 are {v100k_first_mask_p50_ratio_llguidance:2} and {v100k_first_mask_p90_ratio_llguidance:2} with 100,277 ids, and {v200k_first_mask_p50_ratio_llguidance:2} and {v200k_first_mask_p90_ratio_llguidance:2} with 200,019.",
    ),
    (
        "benches/results/README.md",
        "takes {first_mask_v100k_over_v49k:2} and {first_mask_v200k_over_v49k:2} times as long as with 49,152",
    ),
    (
        "benches/results/README.md",
        "takes {memory_growth_kib/1024:1} MiB, **{memory_growth_ratio_llguidance:1}** times llguidance's memory on the cases that both compile. With 100,277 ids it takes {v100k_memory_growth_kib/1024:1} MiB, {v100k_memory_growth_ratio_llguidance:1} times, and with 200,019 ids {v200k_memory_growth_kib/1024:1} MiB, **{v200k_memory_growth_ratio_llguidance:1}** times.",
    ),
    (
        "benches/results/README.md",
        "a row takes {b32_per_row_ratio_llguidance:2} of llguidance's time at the median and {b32_per_row_ratio_xgrammar:2} of XGrammar's; with 200,019 ids {v200k_b32_per_row_ratio_llguidance:2} and {v200k_b32_per_row_ratio_xgrammar:2}. With 128 rows the ratios are {b128_per_row_ratio_llguidance:2} and {b128_per_row_ratio_xgrammar:2}, and with 200,019 ids {v200k_b128_per_row_ratio_llguidance:2} and {v200k_b128_per_row_ratio_xgrammar:2}.",
    ),
    (
        "benches/results/README.md",
        "- **first masks** take {grammar_first_mask_p50_ratio_llguidance:2} of llguidance's time at the median. They",
    ),
    (
        "benches/results/README.md",
        "- **steps** take {grammar_step_p50_ratio_llguidance:2}, {grammar_step_p99_ratio_llguidance:2} and {grammar_step_p999_ratio_llguidance:2} of llguidance's time at p50, p99 and p99.9 over all grammars: {grammar_step_p50_us:1}, {grammar_step_p99_us:0} and {grammar_step_p999_us:0} µs.",
    ),
    (
        "benches/results/README.md",
        "steps take {v200k_grammar_step_p50_ratio_llguidance:2}, {v200k_grammar_step_p99_ratio_llguidance:2} and {v200k_grammar_step_p999_ratio_llguidance:2} of llguidance's time at p50, p99 and p99.9; first masks take {v200k_grammar_first_mask_p50_ratio_llguidance:2} of llguidance's time",
    ),
];

/// The template with its figures.
fn filled(template: &str, figures: &BTreeMap<&str, f64>) -> String {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (figure, rest) = part.split_once('}').expect("a figure ends with a brace");
        let (name, decimals) = figure.split_once(':').expect("a figure has decimals");
        let (name, divisor) = name.split_once('/').unwrap_or((name, "1"));
        let value = figures.get(name).unwrap_or_else(|| panic!("{RESULTS} has no {name}"));
        let (divisor, decimals): (f64, usize) = (divisor.parse().unwrap(), decimals.parse().unwrap());
        text += &format!("{:.decimals$}{rest}", value / divisor);
    }
    text
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn quoted_figures_are_those_of_the_run() {
    let results = read(RESULTS);
    let figures: BTreeMap<&str, f64> = results
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    let mut wrong = Vec::new();
    for (page, template) in QUOTES {
        let text = read(page).split_whitespace().collect::<Vec<_>>().join(" ");
        let quote = filled(template, &figures);
        if !text.contains(&quote) {
            wrong.push(format!("{page}: {quote}"));
        }
    }
    assert!(wrong.is_empty(), "not in the pages:\n{}", wrong.join("\n"));
}

/// The numbers of a page with at least three digits or a fraction.
fn numbers(page: &str) -> Vec<&str> {
    let words = page.split(|c: char| !c.is_ascii_digit() && !",.".contains(c));
    let numbers = words.map(|word| word.trim_matches([',', '.']));
    numbers.filter(|number| number.len() > 2).collect()
}

#[test]
fn figures_on_schema_design_are_on_the_pages_that_it_names() {
    let sources = ["benches/results/README.md", "docs/limits.md", "docs/json-schema.md"].map(read);
    let known: Vec<&str> = sources.iter().flat_map(|source| numbers(source)).collect();
    let page = read("docs/schema-design.md");
    let unknown: Vec<&str> = numbers(&page).into_iter().filter(|number| !known.contains(number)).collect();
    assert!(unknown.is_empty(), "no page has measured {unknown:?}");
}
