//! The main figures, one `name=value` each.

use crate::cases::Kind;
use crate::measure::BATCHES;
use crate::results::{Pair, Results};
use crate::statistics::{median, quantile};

/// Engine names as used in figures.
const PEERS: [(&str, &str); 8] = [
    ("llguidance", "llguidance"),
    ("llguidance_warm", "llguidance, warm lexer"),
    ("xgrammar", "XGrammar (port)"),
    ("xgrammar_no_apply", "XGrammar (port), no apply"),
    ("xgrammar_original", "XGrammar (original)"),
    ("xgrammar_original_no_apply", "XGrammar (original), no apply"),
    ("outlines", "outlines-core"),
    ("glrmask_no_apply", "glrmask (no apply)"),
];

/// Quantiles of steps, with their names in figures.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// Figures with their names.
pub type Figures = Vec<(String, f64)>;

/// All figures that `results` contain. A vocabulary's prefix precedes the names of its figures;
/// SmolLM2's prefix is empty.
pub fn all(results: &[Results]) -> Figures {
    let mut figures = Figures::new();
    let narrow = results.iter().find(|results| results.prefix.is_empty());
    for results in results {
        let mut add = |name: String, value: Option<f64>| {
            figures.extend(value.map(|value| (format!("{}{name}", results.prefix), value)));
        };
        of_one(results, &mut add);
        if let Some(narrow) = narrow.filter(|_| !results.prefix.is_empty()) {
            let ratio = same_schemas(narrow, results);
            figures.extend(ratio.map(|ratio| (format!("first_mask_{}over_v49k", results.prefix), ratio)));
        }
    }
    figures
}

/// The figures of one vocabulary.
fn of_one(results: &Results, add: &mut impl FnMut(String, Option<f64>)) {
    // Figures over all cases, and figures without the schema of a long string.
    let has_long = results.cases.iter().any(|case| case.kind == Kind::Long);
    for (with_long, suffix) in
        [(true, ""), (false, "_without_long")].into_iter().take(1 + usize::from(has_long))
    {
        let ours = results.steps(0, with_long).ours;
        for (name, q) in QUANTILES {
            add(format!("flex_step_{name}_us{suffix}"), quantile(&ours, q));
        }
        let [middle, tail] = [0.5, 0.999].map(|q| quantile(&ours, q));
        add(format!("flex_step_p999_over_p50{suffix}"), tail.zip(middle).map(|(tail, middle)| tail / middle));
        for (peer, pair) in peers(results, |peer| results.steps(peer, with_long)) {
            for (name, q) in QUANTILES {
                add(format!("flex_step_{name}_ratio_{peer}{suffix}"), ratio(&pair, q));
            }
        }
    }
    // Steps with a warm mask cache, compared with llguidance with a warm and with a fresh lexer.
    if let Some(cached) = results.engine("burn-dfa, kept masks") {
        let ours = results.steps(cached, true).theirs;
        for (name, q) in QUANTILES {
            add(format!("flex_step_kept_{name}_us"), quantile(&ours, q));
        }
        for (peer, engine) in [("llguidance_warm", "llguidance, warm lexer"), ("llguidance", "llguidance")] {
            let pair = results.engine(engine).map(|peer| results.steps_beside(cached, peer, true));
            for (name, q) in QUANTILES {
                let ratio = pair.as_ref().and_then(|pair| ratio(pair, q));
                add(format!("flex_step_kept_{name}_ratio_{peer}"), ratio);
            }
        }
        let [middle, tail] = [0.5, 0.999].map(|q| quantile(&ours, q));
        add("flex_step_kept_p999_over_p50".to_owned(), tail.zip(middle).map(|(tail, middle)| tail / middle));
    }
    let ours = results.own_first_masks(0);
    add("first_mask_p50_us".to_owned(), quantile(&ours, 0.5));
    add("first_mask_p90_us".to_owned(), quantile(&ours, 0.9));
    add("first_mask_p99_us".to_owned(), quantile(&ours, 0.99));
    for (peer, pair) in peers(results, |peer| Results::first_masks(peer, results.schemas())) {
        add(format!("first_mask_p50_ratio_{peer}"), ratio(&pair, 0.5));
        add(format!("first_mask_p90_ratio_{peer}"), ratio(&pair, 0.9));
        add(format!("first_mask_p99_ratio_{peer}"), ratio(&pair, 0.99));
    }
    for (size, rows) in BATCHES.iter().enumerate() {
        for (peer, pair) in peers(results, |peer| results.batches(peer, size).0) {
            add(format!("b{rows}_per_row_ratio_{peer}"), ratio(&pair, 0.5));
        }
    }
    let bytes = results.bytes(0);
    add("table_bytes_p50".to_owned(), quantile(&bytes, 0.5));
    add("table_bytes_max".to_owned(), quantile(&bytes, 1.0));
    let sum = |growth: &[f64]| growth.iter().sum::<f64>();
    let ours = results.growths(0).ours;
    add("memory_growth_kib".to_owned(), (!ours.is_empty()).then(|| sum(&ours)));
    add("memory_vocabulary_kib".to_owned(), results.growth[0].vocabulary);
    for (peer, pair) in peers(results, |peer| results.growths(peer)) {
        let theirs = Some(sum(&pair.theirs)).filter(|&theirs| theirs > 0.0);
        add(format!("memory_growth_ratio_{peer}"), theirs.map(|theirs| sum(&pair.ours) / theirs));
    }
    if results.schemas().next().is_some() {
        refusals(results, add);
    }
    grammars(results, add);
}

/// The numbers of refusals, rejections and wrong acceptances.
fn refusals(results: &Results, add: &mut impl FnMut(String, Option<f64>)) {
    let counts = Results::counts(0, results.schemas());
    add("schemas".to_owned(), Some(counts.schemas as f64));
    add("step_schemas".to_owned(), Some(counts.step_schemas as f64));
    add("valid_instances".to_owned(), Some(counts.valid as f64));
    let engines = [("burn_dfa", "burn-dfa")].into_iter().chain(PEERS.iter().copied());
    let variants = ["llguidance_warm", "xgrammar_no_apply", "xgrammar_original_no_apply"];
    for (name, engine) in engines.filter(|(name, _)| !variants.contains(name)) {
        let Some(index) = results.engine(engine) else { continue };
        let counts = Results::counts(index, results.schemas());
        add(format!("refused_{name}"), Some(counts.refused as f64));
        add(format!("refused_for_time_{name}"), Some(counts.too_long as f64));
        add(format!("valid_rejected_{name}"), Some(counts.valid_rejected as f64));
        add(format!("invalid_{name}"), Some(counts.invalid as f64));
        add(format!("invalid_accepted_{name}"), Some(counts.invalid_accepted as f64));
    }
}

/// Steps, first masks and refusals of context-free grammars.
fn grammars(results: &Results, add: &mut impl FnMut(String, Option<f64>)) {
    if results.grammars().next().is_none() {
        return;
    }
    let ours = Results::steps_of(0, results.grammars()).ours;
    for (name, q) in QUANTILES {
        add(format!("grammar_step_{name}_us"), quantile(&ours, q));
    }
    for (peer, pair) in peers(results, |peer| Results::steps_of(peer, results.grammars())) {
        for (name, q) in QUANTILES {
            add(format!("grammar_step_{name}_ratio_{peer}"), ratio(&pair, q));
        }
    }
    for (peer, pair) in peers(results, |peer| Results::first_masks(peer, results.grammars())) {
        add(format!("grammar_first_mask_p50_ratio_{peer}"), ratio(&pair, 0.5));
    }
    add("grammars".to_owned(), Some(results.grammars().count() as f64));
    for (name, engine) in
        [("burn_dfa", "burn-dfa"), ("llguidance", "llguidance"), ("xgrammar", "XGrammar (port)")]
    {
        let counts = results.engine(engine).map(|index| Results::counts(index, results.grammars()));
        add(format!("grammars_refused_{name}"), counts.map(|counts| counts.refused as f64));
        add(format!("grammar_texts_rejected_{name}"), counts.map(|counts| counts.valid_rejected as f64));
        add(format!("grammar_texts_too_long_{name}"), counts.map(|counts| counts.valid_late as f64));
    }
}

/// The median of burn-dfa's first masks with the wide vocabulary over the median with the narrow
/// one, on the same schemas.
fn same_schemas(narrow: &Results, wide: &Results) -> Option<f64> {
    let time = |results: &Results, name: &str| {
        results.schemas().find(|case| case.name == name).and_then(|case| case.outcomes[0].time())
    };
    let pairs = wide.schemas().filter_map(|case| Some((time(narrow, &case.name)?, time(wide, &case.name)?)));
    let (narrow, wide): (Vec<f64>, Vec<f64>) = pairs.unzip();
    (!wide.is_empty()).then(|| median(&wide) / median(&narrow))
}

/// Prints the figures in which a peer is faster than burn-dfa.
pub fn print_what_is_ahead(figures: &[(String, f64)]) {
    let ahead: Vec<String> = figures
        .iter()
        .filter(|(name, value)| name.contains("_ratio_") && !name.ends_with("_to_pytorch") && *value > 1.0)
        .map(|(name, value)| format!("  {name:60}{value:8.2}"))
        .collect();
    match ahead.is_empty() {
        true => println!("\nNo peer is ahead of burn-dfa in any ratio."),
        false => println!("\nAhead of burn-dfa, by so many times:\n\n{}", ahead.join("\n")),
    }
}

/// Each peer by its name in figures, paired with burn-dfa's results.
fn peers(results: &Results, pair: impl Fn(usize) -> Pair) -> Vec<(&'static str, Pair)> {
    let all = PEERS.iter().filter_map(|(name, engine)| Some((*name, pair(results.engine(engine)?))));
    all.filter(|(_, pair)| !pair.is_empty()).collect()
}

/// A quantile of burn-dfa over the same quantile of the peer.
fn ratio(pair: &Pair, q: f64) -> Option<f64> {
    Some(quantile(&pair.ours, q)? / quantile(&pair.theirs, q)?)
}
