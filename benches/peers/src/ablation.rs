//! Masks in the memory of the host without each part of the search: first and later visits of each
//! position, compared with the search with all parts.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use burn_dfa::tokens::{RowPosition, Thresholds};
use burn_dfa::{CompiledConstraint, Limits, Masker};

use crate::args::Args;
use crate::cases::{Case, Kind};
use crate::machine;
use crate::masks;
use crate::measure::order;
use crate::statistics::{QUANTILES, medians, quantile};
use crate::tokens::Tokens;

/// Maximum number of steps of a text. Without token slices, a step takes milliseconds.
const STEPS: usize = 300;

/// The parts of the search, each with a threshold and the value that takes the part out.
const PARTS: [(&str, &str, usize); 11] = [
    ("token slices at all", "few_nodes", usize::MAX),
    ("known steps between characters", "max_steps", 0),
    ("several known steps at once", "worth_at_once", usize::MAX),
    ("positions near another one", "near_few_nodes", usize::MAX),
    ("a limit on the difference from another position", "near_max_nodes", usize::MAX),
    ("characters that differ from a slice", "max_except", usize::MAX),
    ("subtrees that stay in one state", "min_subtree", usize::MAX),
    ("token sets shared by positions", "max_shared", 0),
    ("minimum of nodes for slices", "few_nodes", 0),
    ("minimum of characters for slices", "broad", usize::MAX),
    ("a known slice or step before a new one", "few_characters", 0),
];

/// A search with all parts but one.
struct Variant {
    /// The missing part.
    without: &'static str,
    /// The change that takes the part out.
    change: String,
    thresholds: Thresholds,
    cache_bytes: usize,
}

/// The search with all parts, then without each of them, then with all parts again as a control.
fn variants() -> Vec<Variant> {
    let variant = |without, change: String, thresholds, cache_bytes| Variant {
        without,
        change,
        thresholds,
        cache_bytes,
    };
    let (usual, bytes) = (Thresholds::default(), Masker::CACHE_BYTES);
    let parts = PARTS.iter().map(|&(without, name, value)| {
        let shown = if value == 0 { "0" } else { "∞" };
        variant(without, format!("`{name}` = {shown}"), usual.with(name, value), bytes)
    });
    let all = |name| variant(name, String::new(), usual, bytes);
    let uncached = variant("the cache of masks", "0 bytes".to_owned(), usual, 0);
    [all("nothing")].into_iter().chain(parts).chain([uncached, all("nothing (control)")]).collect()
}

/// The microseconds at each position: on first visits, then on later visits.
type Visits = [Vec<f64>; 2];

/// Measures all vocabularies, which share the time limit equally. Writes the page after each of
/// them.
///
/// # Errors
/// If the page cannot be written.
pub fn write(path: &Path, cases: &[Case], vocabularies: &[Tokens], args: &Args) -> std::io::Result<()> {
    let limit = Duration::from_secs(args.seconds) / vocabularies.len().max(1) as u32;
    let runs = args.runs.max(1);
    let mut page = head(runs);
    print!("{page}");
    for tokens in vocabularies {
        let tables = tables(cases, tokens, runs, limit);
        print!("{tables}");
        page += &tables;
        std::fs::write(path, &page)?;
    }
    Ok(())
}

/// The beginning of the page.
fn head(runs: usize) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let load = machine::load().map_or(String::new(), |load| format!(";\n  load before the run: {load:.1}"));
    format!(
        "# The mask search without each of its parts\n\n\
         `cargo run --release -p peers -- {}`\n\n\
         - Machine: {}{load}\n\
         - A time is the microseconds of a mask at one position of a text, the median of {runs} runs. All\n  \
         variants of a case take turns, each with a new compiled constraint. A text has at most {STEPS}\n  \
         steps. A run before these is not timed: it finds the token sets that the vocabulary shares.\n\
         - A ratio is the quantile without the part, divided by the quantile with all parts. A ratio\n  \
         above 1 means that the part saves time.\n\
         - The control is a second measurement with all parts. Its ratios are the noise of the other\n  \
         ratios: without noise they are 1.\n",
        arguments.join(" "),
        machine::machine()
    )
}

/// The tables of one vocabulary. No case begins after the time limit.
fn tables(cases: &[Case], tokens: &Tokens, runs: usize, limit: Duration) -> String {
    tokens.vocabulary.prepare();
    let (began, variants) = (Instant::now(), variants());
    let mut times: Vec<Visits> = variants.iter().map(|_| Visits::default()).collect();
    let mut counts = [0; 2];
    // Grammars come first, because they are few.
    for (kind, count) in [Kind::Grammar, Kind::Row].into_iter().zip(&mut counts) {
        for case in cases.iter().filter(|case| case.kind == kind) {
            if began.elapsed() >= limit {
                break;
            }
            let Some(measured) = measure(case, tokens, &variants, runs) else { continue };
            *count += 1;
            for (all, own) in times.iter_mut().flatten().zip(measured.into_iter().flatten()) {
                all.extend(own);
            }
        }
    }
    let [grammars, schemas] = counts;
    let mut page = format!(
        "\n## {}, {} ids: {grammars} grammars, {schemas} schemas, {} positions\n",
        tokens.name,
        tokens.vocab_size(),
        times[0][0].len()
    );
    for (at, visits) in ["first visits", "later visits"].into_iter().enumerate() {
        let names = QUANTILES[..4].iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let [quantiles, ratios] = [names.join(" | "), names.join(" | ÷ ")];
        let _ = writeln!(page, "\n| {visits} without | change | {quantiles} | ÷ {ratios} |");
        let _ = writeln!(page, "|---|---|{}", "---:|".repeat(2 * names.len()));
        for (variant, own) in variants.iter().zip(&times) {
            let Variant { without, change, .. } = variant;
            let _ = writeln!(page, "| {without} | {change} | {} |", cells(&own[at], &times[0][at]));
        }
    }
    page
}

/// The quantiles of times, then their ratios to the quantiles of `all`.
fn cells(times: &[f64], all: &[f64]) -> String {
    let quantiles = |times: &[f64]| -> Vec<Option<f64>> {
        QUANTILES[..4].iter().map(|&(_, of)| quantile(times, of)).collect()
    };
    let (own, all) = (quantiles(times), quantiles(all));
    let cell = |value: Option<f64>, decimals: usize| match value {
        Some(value) => format!("{value:.decimals$}"),
        None => "–".to_owned(),
    };
    let ratios = own.iter().zip(all).map(|(own, all)| Some((*own)? / all?));
    let times = own.iter().map(|&time| cell(time, 1));
    times.chain(ratios.map(|ratio| cell(ratio, 2))).collect::<Vec<_>>().join(" | ")
}

/// The times of each variant; `None` if the constraint does not compile or accepts none of its
/// texts.
fn measure(case: &Case, tokens: &Tokens, variants: &[Variant], runs: usize) -> Option<Vec<Visits>> {
    let constraint = masks::constraint(&case.grammar).ok()?;
    let compile = || CompiledConstraint::compile(&constraint, &tokens.vocabulary, &Limits::default()).ok();
    let mut texts = masks::texts(case, tokens, &compile()?);
    texts.iter_mut().for_each(|text| text.truncate(STEPS));
    if texts.is_empty() {
        return None;
    }
    let mut passes = vec![[Vec::new(), Vec::new()]; variants.len()];
    // Run 0 is not timed, so that no variant pays for the token sets that the vocabulary shares.
    for run in 0..=runs {
        for index in order(variants.len(), run) {
            let Variant { thresholds, cache_bytes, .. } = variants[index];
            // A new constraint has no rows and steps of other variants.
            let compiled = compile()?;
            let masker = Masker::with_thresholds(&compiled, cache_bytes, thresholds);
            masker.tokens(&RowPosition::unlimited(compiled.start()));
            let visits = masks::walk(&masker, &texts);
            if run > 0 {
                for (pass, times) in passes[index].iter_mut().zip(visits) {
                    pass.push(times);
                }
            }
        }
    }
    Some(passes.into_iter().map(|passes| passes.map(|runs| medians(&runs))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_takes_a_part_out() {
        for (name, _) in Thresholds::default().fields() {
            assert!(PARTS.iter().any(|&(_, threshold, _)| threshold == name), "{name}");
        }
        assert_eq!(variants().len(), PARTS.len() + 3);
    }

    #[test]
    fn ratios_follow_the_times() {
        let times: Vec<f64> = (1..=1000).map(f64::from).collect();
        let twice: Vec<f64> = times.iter().map(|time| 2.0 * time).collect();
        assert_eq!(cells(&twice, &times), "1000.0 | 1800.0 | 1980.0 | 1998.0 | 2.00 | 2.00 | 2.00 | 2.00");
        assert_eq!(cells(&twice[..20], &times[..20]), "20.0 | 36.0 | – | – | 2.00 | 2.00 | – | –");
    }
}
