//! The tables.

use crate::measure::{BATCHES, Outcome};
use crate::results::{Pair, Results};
use crate::statistics::{QUANTILES, quantile};

/// Prints all tables of one vocabulary.
pub fn print(results: &Results) {
    println!("\n# {}, {} ids\n", results.vocabulary, results.width);
    reasons(results);
    first_masks(results);
    instances(results);
    masks(results);
    comparison(results, "Mask + apply + advance per token, batch 1, µs", |peer| {
        (results.steps(peer, true), "")
    });
    let title = "The same without the schema of a long string";
    comparison(results, title, |peer| (results.steps(peer, false), ""));
    for (size, rows) in BATCHES.iter().enumerate() {
        let title = format!("Mask + apply + advance per token, batch {rows}, µs per row");
        comparison(results, &title, |peer| {
            let (pair, on_all_cores) = results.batches(peer, size);
            (pair, if on_all_cores { ", all cores" } else { "" })
        });
    }
    memory(results);
}

/// Why engines have no mask for a case, or none for a text.
fn reasons(results: &Results) {
    println!("What was refused or rejected\n");
    for case in &results.cases {
        for (engine, outcome) in results.engines.iter().zip(&case.outcomes) {
            let refusal = outcome.first_mask.as_ref().and_then(|first| first.refusal.as_ref());
            if let Some(why) = refusal.or(outcome.failure.as_ref()) {
                let why: String = why.lines().next().unwrap_or_default().chars().take(100).collect();
                println!("  {:40} {engine:26} {why}", case.name);
            }
        }
    }
}

/// The first masks of each engine beside its refusals, then beside burn-dfa's on the schemas that both compiled.
fn first_masks(results: &Results) {
    println!(
        "\nFirst mask: from the text of a schema to masked logits, µs, with the schemas that have none\n"
    );
    println!("  {:30}{:>8}{:>10}{}", "", "refused", "too long", header());
    for (index, engine) in results.engines.iter().enumerate() {
        let (times, counts) = (results.own_first_masks(index), results.counts(index));
        if !times.is_empty() {
            let (refused, too_long) = (counts.refused - counts.too_long, counts.too_long);
            println!("  {engine:30}{refused:8}{too_long:10}{}", quantiles(&times, 0));
        }
    }
    comparison(results, "The same, of the schemas that burn-dfa and the peer compiled", |peer| {
        (results.first_masks(peer), "")
    });
}

/// What became of the instances of the schemas with steps.
fn instances(results: &Results) {
    println!(
        "\nInstances of the schemas along which steps are timed; of a schema that is refused all are rejected\n"
    );
    let header = ["schemas", "refused", "valid", "rejected", "invalid", "accepted"];
    println!("  {:30}{}", "", header.map(|name| format!("{name:>10}")).concat());
    for (index, engine) in results.engines.iter().enumerate() {
        // Variants and what runs through Python read no invalid instances.
        let counts = results.counts(index);
        if counts.invalid > 0 {
            let row = [
                counts.step_schemas,
                counts.step_refused,
                counts.valid,
                counts.valid_rejected,
                counts.invalid,
                counts.invalid_accepted,
            ];
            println!("  {engine:30}{}", row.map(|count| format!("{count:10}")).concat());
        }
    }
}

/// How often the masks are those of burn-dfa.
fn masks(results: &Results) {
    println!("\nMasks along the texts that both accept, beside burn-dfa's\n");
    println!("  {:38}{:>8}{:>8}{:>8}", "", "equal", "wider", "other");
    for (index, engine) in results.engines.iter().enumerate().skip(1) {
        let sum = |count: fn(&Outcome) -> usize| {
            results.cases.iter().map(|case| count(&case.outcomes[index])).sum::<usize>()
        };
        let [equal, wider, other] = [sum(|o| o.equal), sum(|o| o.wider), sum(|o| o.other)];
        if equal + wider + other > 0 {
            println!("  {engine:38}{equal:8}{wider:8}{other:8}");
        }
    }
}

/// The quantiles of burn-dfa and of each peer on what both did, and their ratios.
fn comparison(results: &Results, title: &str, pair: impl Fn(usize) -> (Pair, &'static str)) {
    println!("\n{title}\n");
    println!("  {:38}{:>8}{}", "", "of", header());
    line("burn-dfa", &pair(0).0.ours, 1);
    for (peer, engine) in results.engines.iter().enumerate().skip(1) {
        let (pair, way) = pair(peer);
        if pair.is_empty() {
            continue;
        }
        line(&format!("{engine}{way}"), &pair.theirs, 1);
        let ratio = |q: f64| Some(quantile(&pair.ours, q)? / quantile(&pair.theirs, q)?);
        println!("  {:46}{}", "  burn-dfa ÷ it, on the same", cells(ratio, 3));
    }
}

fn line(name: &str, values: &[f64], decimals: usize) {
    println!("  {name:38}{:8}{}", values.len(), quantiles(values, decimals));
}

fn header() -> String {
    QUANTILES.iter().map(|(name, _)| format!("{name:>10}")).collect()
}

fn quantiles(values: &[f64], decimals: usize) -> String {
    cells(|q| quantile(values, q), decimals)
}

/// A cell for each quantile; empty where there are too few values for it.
fn cells(value: impl Fn(f64) -> Option<f64>, decimals: usize) -> String {
    let cell = |(_, q): &(&str, f64)| match value(*q) {
        Some(value) => format!("{value:10.decimals$}"),
        None => format!("{:>10}", "-"),
    };
    QUANTILES.iter().map(cell).collect()
}

/// What the engines say that their grammars take.
fn memory(results: &Results) {
    println!("\nMemory of a compiled schema, KiB, as the engine says it\n");
    println!("  {:38}{:>8}{}", "", "of", header());
    for (index, engine) in results.engines.iter().enumerate() {
        let bytes: Vec<f64> = results.bytes(index).iter().map(|bytes| bytes / 1024.0).collect();
        if !bytes.is_empty() {
            line(engine, &bytes, 0);
        }
    }
    println!(
        "\nGrowth of resident memory over the cases with steps, compiled, walked and kept, one process per engine, KiB\n"
    );
    println!("  {:38}{:>8}{:>10}{:>10}", "", "of", "sum", "max");
    for (engine, growth) in results.engines.iter().zip(&results.growth) {
        let growth = growth.as_deref().unwrap_or_default();
        if growth.is_empty() {
            continue;
        }
        let (sum, max) = (growth.iter().sum::<f64>(), growth.iter().copied().fold(0.0, f64::max));
        println!("  {engine:38}{:8}{sum:10.0}{max:10.0}", growth.len());
    }
}
