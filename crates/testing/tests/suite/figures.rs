//! Figures quoted in prose are the figures of the runs that made them: `benches/results/peers.txt`,
//! the tables of `ablation.md`, `instances.md` and `quality.md` in `benches/results`, and the lines
//! `name=value` of its `README.md`; on the page on schema design, the figures of the pages that it
//! names.
//!
//! A template names each figure with its decimals, `{flex_step_p50_ratio_llguidance:2}`, and may
//! scale it, `{memory_growth_kib/1024:1}`. `{masks_llguidance_positions:,}` is an integer with
//! separators. The page must contain the template with the figures filled in; white space counts as
//! one space.
//!
//! `BURN_DFA_REWRITE=1 cargo test-core --test core quoted_figures` writes the figures into the
//! pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex_automata::meta::Regex;

const ABLATION: &str = "benches/results/ablation.md";
const PEERS: &str = "benches/results/peers.txt";
const INSTANCES: &str = "benches/results/instances.md";
const QUALITY: &str = "benches/results/quality.md";
const RESULTS: &str = "benches/results/README.md";

const QUOTES: &[(&str, &str)] = &[
    ("README.md", "the median mask takes {flex_step_p50_ratio_llguidance:2} of llguidance's time"),
    (
        "README.md",
        "judged without error | {instances_150_burn_dfa_passed:0} | {instances_150_llguidance_passed:0} | {instances_150_xgrammar_passed:0} | {instances_150_llama_cpp_passed:0} | {instances_150_glrmask_passed:0} | {instances_50_outlines_core_passed:0} of 50 |",
    ),
    (
        "README.md",
        "an invalid instance accepted | {instances_150_burn_dfa_accepts_invalid:0} | {instances_150_llguidance_accepts_invalid:0} | {instances_150_xgrammar_accepts_invalid:0} | {instances_150_llama_cpp_accepts_invalid:0} | {instances_150_glrmask_accepts_invalid:0} | {instances_50_outlines_core_accepts_invalid:0} of 50 |",
    ),
    ("README.md", "burn-dfa refuses the other {instances_150_burn_dfa_refused:0} schemas."),
    (
        "README.md",
        "gets {function_calls_spaced_right:0} % of {function_calls_prompts:0} function calls fully right, and {function_calls_llama_cpp__its_json_schema_right:0} % in llama.cpp with its grammar. It extracts fields at {speed_2_json_schema_burn_dfa:0} tokens/s on 2 threads, and at {speed_2_json_schema_llama_cpp:0} in llama.cpp",
    ),
    (
        "DESIGN.md",
        "visits take {flex_step_p50_us:1} µs at p50 and {flex_step_p999_us:0} µs at p99.9 with 49,152 ids",
    ),
    (
        "DESIGN.md",
        "| token slices at all | {ablation_49152_token_slices_at_all_p50:1}; {ablation_49152_token_slices_at_all_p90:1}; {ablation_49152_token_slices_at_all_p99:0}; {ablation_49152_token_slices_at_all_p999:0} | {ablation_200019_token_slices_at_all_p50:1}; {ablation_200019_token_slices_at_all_p90:1}; {ablation_200019_token_slices_at_all_p99:0}; {ablation_200019_token_slices_at_all_p999:0} |",
    ),
    (
        "DESIGN.md",
        "| known steps between characters | {ablation_49152_known_steps_between_characters_p50:1}; {ablation_49152_known_steps_between_characters_p90:1}; {ablation_49152_known_steps_between_characters_p99:1}; {ablation_49152_known_steps_between_characters_p999:1} | {ablation_200019_known_steps_between_characters_p50:1}; {ablation_200019_known_steps_between_characters_p90:1}; {ablation_200019_known_steps_between_characters_p99:1}; {ablation_200019_known_steps_between_characters_p999:1} |",
    ),
    (
        "DESIGN.md",
        "| several known steps at once | {ablation_49152_several_known_steps_at_once_p50:1}; {ablation_49152_several_known_steps_at_once_p90:1}; {ablation_49152_several_known_steps_at_once_p99:1}; {ablation_49152_several_known_steps_at_once_p999:1} | {ablation_200019_several_known_steps_at_once_p50:1}; {ablation_200019_several_known_steps_at_once_p90:1}; {ablation_200019_several_known_steps_at_once_p99:1}; {ablation_200019_several_known_steps_at_once_p999:1} |",
    ),
    (
        "DESIGN.md",
        "| positions near another one | {ablation_49152_positions_near_another_one_p50:1}; {ablation_49152_positions_near_another_one_p90:1}; {ablation_49152_positions_near_another_one_p99:1}; {ablation_49152_positions_near_another_one_p999:1} | {ablation_200019_positions_near_another_one_p50:1}; {ablation_200019_positions_near_another_one_p90:1}; {ablation_200019_positions_near_another_one_p99:1}; {ablation_200019_positions_near_another_one_p999:1} |",
    ),
    (
        "DESIGN.md",
        "| characters that differ from a slice | {ablation_49152_characters_that_differ_from_a_slice_p50:1}; {ablation_49152_characters_that_differ_from_a_slice_p90:1}; {ablation_49152_characters_that_differ_from_a_slice_p99:1}; {ablation_49152_characters_that_differ_from_a_slice_p999:1} | {ablation_200019_characters_that_differ_from_a_slice_p50:1}; {ablation_200019_characters_that_differ_from_a_slice_p90:1}; {ablation_200019_characters_that_differ_from_a_slice_p99:1}; {ablation_200019_characters_that_differ_from_a_slice_p999:1} |",
    ),
    (
        "DESIGN.md",
        "| subtrees that stay in one state | {ablation_49152_subtrees_that_stay_in_one_state_p50:1}; {ablation_49152_subtrees_that_stay_in_one_state_p90:1}; {ablation_49152_subtrees_that_stay_in_one_state_p99:1}; {ablation_49152_subtrees_that_stay_in_one_state_p999:1} | {ablation_200019_subtrees_that_stay_in_one_state_p50:1}; {ablation_200019_subtrees_that_stay_in_one_state_p90:1}; {ablation_200019_subtrees_that_stay_in_one_state_p99:1}; {ablation_200019_subtrees_that_stay_in_one_state_p999:1} |",
    ),
    (
        "DESIGN.md",
        "| token sets shared by positions | {ablation_49152_token_sets_shared_by_positions_p50:1}; {ablation_49152_token_sets_shared_by_positions_p90:1}; {ablation_49152_token_sets_shared_by_positions_p99:1}; {ablation_49152_token_sets_shared_by_positions_p999:1} | {ablation_200019_token_sets_shared_by_positions_p50:1}; {ablation_200019_token_sets_shared_by_positions_p90:1}; {ablation_200019_token_sets_shared_by_positions_p99:1}; {ablation_200019_token_sets_shared_by_positions_p999:1} |",
    ),
    (
        "docs/json-schema.md",
        "| compact | {function_calls_compact_right:0} % | {function_calls_compact_values:0} % | {function_calls_compact_tokens:1} | | spaced | {function_calls_spaced_right:0} % | {function_calls_spaced_values:0} % | {function_calls_spaced_tokens:1} |",
    ),
    (
        "docs/models.md",
        "under a schema decodes {speed_1_json_schema_ratio:2} times as fast as in llama.cpp, with two threads {speed_2_json_schema_ratio:2} times. A prompt is read {speed_1_prompt_ratio:2} and {speed_2_prompt_ratio:2} times as fast.",
    ),
    (
        "docs/models.md",
        "in the default style, {extraction_spaced_right:0} % of whole answers and {extraction_spaced_values:0} % of values; llama.cpp with its grammar has {extraction_llama_cpp__its_json_schema_right:0} and {extraction_llama_cpp__its_json_schema_values:0} %.",
    ),
    (
        "docs/models.md",
        "takes {speed_1_memory___file__after_loading_burn_dfa:2} times the size of the file, and that of llama.cpp {speed_1_memory___file__after_loading_llama_cpp:2} times.",
    ),
    (
        "COMPARE.md",
        "For 100 tools with different schemas it takes {tools_100_schemas_first_mask_ratio_llguidance:0} times as long",
    ),
    (
        "COMPARE.md",
        "With 200,019 ids, compiled constraints take {v200k_memory_growth_ratio_llguidance:1} times llguidance's memory.",
    ),
    ("COMPARE.md", "with {instances_150_valid:0} valid and {instances_150_invalid:0} invalid instances."),
    (
        "COMPARE.md",
        "| burn-dfa | **{instances_150_burn_dfa_passed:0}** | {instances_150_burn_dfa_refused:0} | {instances_150_burn_dfa_late:0} | {instances_150_burn_dfa_accepts_invalid:0} | {instances_150_burn_dfa_rejects_valid:0} |",
    ),
    (
        "COMPARE.md",
        "| glrmask | **{instances_150_glrmask_passed:0}** | {instances_150_glrmask_refused:0} | {instances_150_glrmask_late:0} | {instances_150_glrmask_accepts_invalid:0} | {instances_150_glrmask_rejects_valid:0} |",
    ),
    (
        "COMPARE.md",
        "| llguidance | **{instances_150_llguidance_passed:0}** | {instances_150_llguidance_refused:0} | {instances_150_llguidance_late:0} | {instances_150_llguidance_accepts_invalid:0} | {instances_150_llguidance_rejects_valid:0} |",
    ),
    (
        "COMPARE.md",
        "| XGrammar | **{instances_150_xgrammar_passed:0}** | {instances_150_xgrammar_refused:0} | {instances_150_xgrammar_late:0} | {instances_150_xgrammar_accepts_invalid:0} | {instances_150_xgrammar_rejects_valid:0} |",
    ),
    (
        "COMPARE.md",
        "| llama.cpp | **{instances_150_llama_cpp_passed:0}** | {instances_150_llama_cpp_refused:0} | {instances_150_llama_cpp_late:0} | {instances_150_llama_cpp_accepts_invalid:0} | {instances_150_llama_cpp_rejects_valid:0} |",
    ),
    (
        "COMPARE.md",
        "Of the first 50 schemas it passes {instances_50_outlines_core_passed:0}, and {instances_50_outlines_core_late:0} take longer than 10 s. burn-dfa passes all {instances_50_burn_dfa_passed:0}.",
    ),
    (
        "COMPARE.md",
        "along {masks_llguidance_schemas:0} valid instances, at {masks_llguidance_positions:,} positions.",
    ),
    (
        "COMPARE.md",
        "a step of burn-dfa takes {flex_step_p50_ratio_llguidance:2} of llguidance's time at the median",
    ),
    (
        "benches/results/README.md",
        "| refused; burn-dfa {refused_burn_dfa:0} | {refused_llguidance:0} | {refused_xgrammar:0} | {refused_outlines:0} |",
    ),
    (
        "benches/results/README.md",
        "| step at 49,152 ids, median; p90; p99.9, nothing kept of earlier texts | {flex_step_p50_ratio_llguidance:2}; {flex_step_p90_ratio_llguidance:2}; {flex_step_p999_ratio_llguidance:2} | {flex_step_p50_ratio_xgrammar:2}; {flex_step_p90_ratio_xgrammar:2}; {flex_step_p999_ratio_xgrammar:2} | {flex_step_p50_ratio_outlines:2}; {flex_step_p90_ratio_outlines:2}; {flex_step_p999_ratio_outlines:2} |",
    ),
    (
        "benches/results/README.md",
        "| step at 200,019 ids, likewise | {v200k_flex_step_p50_ratio_llguidance:2}; {v200k_flex_step_p90_ratio_llguidance:2}; {v200k_flex_step_p999_ratio_llguidance:2} | {v200k_flex_step_p50_ratio_xgrammar:2}; {v200k_flex_step_p90_ratio_xgrammar:2}; {v200k_flex_step_p999_ratio_xgrammar:2} |",
    ),
    (
        "benches/results/README.md",
        "| step of 32 rows, median a row | {b32_per_row_ratio_llguidance:2} | {b32_per_row_ratio_xgrammar:2} | {b32_per_row_ratio_outlines:2} |",
    ),
    (
        "benches/results/README.md",
        "| the same at 200,019 ids | {v200k_b32_per_row_ratio_llguidance:2} | {v200k_b32_per_row_ratio_xgrammar:2} |",
    ),
    (
        "benches/results/README.md",
        "| first mask, median; p90; p99 | {first_mask_p50_ratio_llguidance:2}; {first_mask_p90_ratio_llguidance:2}; {first_mask_p99_ratio_llguidance:2} | {first_mask_p50_ratio_xgrammar:2}; {first_mask_p90_ratio_xgrammar:2}; {first_mask_p99_ratio_xgrammar:2} | {first_mask_p50_ratio_outlines:2}; {first_mask_p90_ratio_outlines:2}; {first_mask_p99_ratio_outlines:2} |",
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
    (
        "benches/results/README.md",
        "have {corpus_states_p50:0} states at the median, {corpus_states_p90:,} at p90, {corpus_states_p99:,} at p99",
    ),
    (
        "docs/scale.md",
        "{corpus_states_p50:0} states at the median of MaskBench's schemas, {corpus_states_p99:,} at p99",
    ),
    ("docs/scale.md", "if each has the {corpus_states_p99:,} states of p99"),
    (
        "docs/schema-design.md",
        "has {corpus_states_p50:0} states at the median and {corpus_states_p99:,} at p99",
    ),
];

/// The figures by their names.
type Figures = BTreeMap<String, f64>;

/// The lines `name=value` of a page. In prose, a line may have an equals sign as well.
fn named(page: &str) -> impl Iterator<Item = (String, f64)> {
    let lines = page.lines().filter_map(|line| line.split_once('='));
    lines.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
}

/// The number at the start of a cell, which may have separators and be bold.
fn number(cell: &str) -> Option<f64> {
    cell.split_whitespace().next()?.replace(['*', ','], "").parse().ok()
}

/// The figures in the tables of the page on instances: `instances_150_llama_cpp_passed` for the
/// table of 150 schemas, and `masks_glrmask_positions` for the table of masks.
fn instances(page: &str) -> Figures {
    let mut figures = Figures::new();
    let mut table = String::new();
    let mut columns: &[&str] = &[];
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let numbers: Vec<f64> = title.split_whitespace().filter_map(number).collect();
            match numbers[..] {
                [schemas, valid, invalid] => {
                    table = format!("instances_{schemas}");
                    columns = &["passed", "refused", "late", "crashed", "accepts_invalid", "rejects_valid"];
                    figures.insert(format!("{table}_valid"), valid);
                    figures.insert(format!("{table}_invalid"), invalid);
                }
                _ => {
                    table = title.to_lowercase();
                    columns = &["schemas", "positions"];
                }
            }
        }
        let Some(row) = line.strip_prefix("| ") else { continue };
        let mut cells = row.split('|');
        let engine = cells.next().and_then(|name| name.split_whitespace().next()).unwrap_or_default();
        let engine = engine.to_lowercase().replace(['-', '.'], "_");
        for (column, value) in columns.iter().zip(cells.map(number)) {
            figures.extend(value.map(|value| (format!("{table}_{engine}_{column}"), value)));
        }
    }
    figures
}

/// The ratios of first visits in the tables of the ablation, such as
/// `ablation_49152_token_slices_at_all_p90`.
fn ablation(page: &str) -> Figures {
    let mut figures = Figures::new();
    let (mut ids, mut is_first) = (0.0, false);
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            ids = title.split_whitespace().find_map(number).unwrap_or_default();
        }
        let Some(row) = line.strip_prefix("| ") else { continue };
        let (part, cells) = row.split_once(" | ").unwrap_or((row, ""));
        match part {
            "first visits without" => is_first = true,
            "later visits without" => is_first = false,
            _ => {}
        }
        // Before the ratios are the change and four times.
        let ratios = cells.split(" | ").skip(5).map(number);
        for (quantile, ratio) in ["p50", "p90", "p99", "p999"].into_iter().zip(ratios).filter(|_| is_first) {
            let name = format!("ablation_{ids}_{}_{quantile}", part.replace(' ', "_"));
            figures.extend(ratio.map(|ratio| (name, ratio)));
        }
    }
    figures
}

/// The figures in the tables of the page on quality: `function_calls_spaced_right` for a
/// constraint, `speed_2_json_schema_burn_dfa` for a number of threads, and `block_types_q8_0_ratio`
/// for a file.
fn quality(page: &str) -> Figures {
    let name = |text: &str| text.trim().to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let mut figures = Figures::new();
    let mut table = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let (title, prompts) = title.split_once(": ").unwrap_or((title, ""));
            table = name(title);
            figures.extend(number(prompts).map(|prompts| (format!("{table}_prompts"), prompts)));
        }
        let Some(row) = line.strip_prefix("| ") else { continue };
        let mut cells = row.split(" | ");
        let mut of = name(cells.next().unwrap_or_default());
        let columns: &[&str] = match table.as_str() {
            "speed" => {
                of = format!("{of}_{}", name(cells.next().unwrap_or_default()));
                &["burn_dfa", "llama_cpp", "ratio"]
            }
            "block_types" => &["megabytes", "free", "constrained", "ratio"],
            _ => &["json", "fitting", "right", "values", "tokens"],
        };
        for (column, value) in columns.iter().zip(cells.map(number)) {
            figures.extend(value.map(|value| (format!("{table}_{of}_{column}"), value)));
        }
    }
    figures
}

/// An integer with separators.
fn separated(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The text of a template before each figure, with the figure; and the text after the last one.
fn parts<'t>(template: &'t str, figures: &Figures) -> (Vec<(&'t str, String)>, &'t str) {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, part)) = rest.split_once('{') {
        let (figure, after) = part.split_once('}').expect("a figure ends with a brace");
        let (name, decimals) = figure.split_once(':').expect("a figure has decimals");
        let (name, divisor) = name.split_once('/').unwrap_or((name, "1"));
        let value = figures.get(name).unwrap_or_else(|| panic!("no results have {name}"));
        let value = value / divisor.parse::<f64>().unwrap();
        let value = match decimals.parse::<usize>() {
            Ok(decimals) => format!("{value:.decimals$}"),
            Err(_) => separated(value),
        };
        parts.push((text, value));
        rest = after;
    }
    (parts, rest)
}

/// Writes the figures into the text of a page that fits the template; `None` if no text or several
/// do.
fn rewritten(page: &str, (parts, end): &(Vec<(&str, String)>, &str)) -> Option<String> {
    let escape = |text: &str| -> String {
        let words: Vec<String> = text.split(' ').map(regex_syntax::escape).collect();
        words.join(r"\s+")
    };
    let pattern: String = parts.iter().map(|(text, _)| escape(text) + r"([0-9]+(?:[.,][0-9]+)*)").collect();
    let regex = Regex::new(&(pattern + &escape(end))).unwrap();
    if regex.find_iter(page).count() != 1 {
        return None;
    }
    let mut captures = regex.create_captures();
    regex.captures(page, &mut captures);
    let mut page = page.to_owned();
    for (group, (_, value)) in parts.iter().enumerate().rev() {
        page.replace_range(captures.get_group(group + 1)?.range(), value);
    }
    Some(page)
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(page)
}

fn read(page: &str) -> String {
    std::fs::read_to_string(path(page)).unwrap()
}

#[test]
fn quoted_figures_are_those_of_the_run() {
    let mut figures = instances(&read(INSTANCES));
    figures.extend(ablation(&read(ABLATION)));
    figures.extend(quality(&read(QUALITY)));
    figures.extend(named(&read(RESULTS)));
    figures.extend(named(&read(PEERS)));
    let mut wrong = Vec::new();
    for &(page, template) in QUOTES {
        let text = read(page);
        let parts = parts(template, &figures);
        let quote = parts.0.iter().fold(String::new(), |quote, (text, value)| quote + text + value) + parts.1;
        if text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&quote) {
            continue;
        }
        match rewritten(&text, &parts) {
            Some(text) if std::env::var_os("BURN_DFA_REWRITE").is_some() => {
                std::fs::write(path(page), text).unwrap();
            }
            _ => wrong.push(format!("{page}: {quote}")),
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
