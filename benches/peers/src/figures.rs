//! The figures that the program is judged by, one `name=value` each.

use crate::results::{Pair, Results};
use crate::statistics::{median, quantile};
use crate::upstream;

/// Names of engines in figures.
const PEERS: [(&str, &str); 6] = [
    ("llguidance", "llguidance"),
    ("llguidance_warm", "llguidance, warm lexer"),
    ("xgrammar", "XGrammar (port)"),
    ("xgrammar_original", upstream::NAMES[0]),
    ("xgrammar_original_no_apply", upstream::NAMES[1]),
    ("outlines", "outlines-core"),
];

/// All figures that `results` allow.
pub fn all(results: &[Results]) -> Vec<(String, f64)> {
    let of = |name: &str| results.iter().find(|results| results.vocabulary == name);
    let (narrow, wide) = (of("SmolLM2"), of("o200k"));
    let mut figures = Vec::new();
    if let Some(results) = narrow {
        // The figures over all cases, and without the schema of a long string, which is a case of its own.
        for (with_long, suffix) in [(true, ""), (false, "_without_long")] {
            let ours = results.steps(0, with_long).ours;
            let (median, tail) = (median(&ours), quantile(&ours, 0.999));
            figures.push((format!("flex_step_p50_us{suffix}"), median));
            figures.push((format!("flex_step_p999_us{suffix}"), tail));
            figures.push((format!("flex_step_p999_over_p50{suffix}"), tail / median));
            for (peer, pair) in peers(results, |peer| results.steps(peer, with_long)) {
                figures.push((format!("flex_step_p50_ratio_{peer}{suffix}"), ratio(&pair, 0.5)));
                figures.push((format!("flex_step_p999_ratio_{peer}{suffix}"), ratio(&pair, 0.999)));
            }
        }
        for (peer, pair) in peers(results, |peer| results.first_masks(peer)) {
            figures.push((format!("first_mask_p50_ratio_{peer}"), ratio(&pair, 0.5)));
            figures.push((format!("first_mask_p99_ratio_{peer}"), ratio(&pair, 0.99)));
        }
        let bytes = results.bytes(0);
        if !bytes.is_empty() {
            figures.push(("table_bytes_p50".to_owned(), median(&bytes)));
            figures.push(("table_bytes_max".to_owned(), quantile(&bytes, 1.0)));
        }
    }
    if let Some(results) = wide {
        for (size, rows) in [(0, 8), (1, 32)] {
            for (peer, pair) in peers(results, |peer| results.batches(peer, size).0) {
                figures.push((format!("v200k_b{rows}_per_row_ratio_{peer}"), ratio(&pair, 0.5)));
            }
        }
    }
    if let (Some(narrow), Some(wide)) = (narrow, wide) {
        let [narrow, wide] = [narrow, wide].map(|results| results.first_masks(0).ours);
        if !narrow.is_empty() && !wide.is_empty() {
            figures.push(("first_mask_v200k_over_v49k".to_owned(), median(&wide) / median(&narrow)));
        }
    }
    figures
}

/// Each peer by its name in figures with what it and burn-dfa did.
fn peers(results: &Results, pair: impl Fn(usize) -> Pair) -> Vec<(&'static str, Pair)> {
    let all = PEERS.iter().filter_map(|(name, engine)| Some((*name, pair(results.engine(engine)?))));
    all.filter(|(_, pair)| !pair.is_empty()).collect()
}

/// A quantile of burn-dfa over that of the peer.
fn ratio(pair: &Pair, q: f64) -> f64 {
    quantile(&pair.ours, q) / quantile(&pair.theirs, q)
}
