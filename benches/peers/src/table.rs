//! The tables.

use crate::measure::{BATCHES, Outcome};
use crate::results::{Pair, Results};
use crate::statistics::{QUANTILES, quantile};

/// Prints all tables of one vocabulary.
pub fn print(results: &Results) {
    println!("\n# {}, {} ids\n", results.vocabulary, results.width);
    cases(results);
    comparison(results, "First mask: from the text of a schema to masked logits, µs", |peer| {
        (results.first_masks(peer), "")
    });
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

/// What each engine made of each case.
fn cases(results: &Results) {
    println!("Cases: first mask in µs, and what went otherwise\n");
    for case in &results.cases {
        let states = case.outcomes[0].states.unwrap_or(0);
        let steps: usize = case.outcomes[0].texts.iter().flatten().map(Vec::len).sum();
        println!("  {} ({states} states, {steps} steps)", case.name);
        for (engine, outcome) in results.engines.iter().zip(&case.outcomes) {
            let time =
                if outcome.is_compiled() { format!("{:12.1}", outcome.first_mask) } else { " ".repeat(12) };
            let why: String = outcome
                .refusal
                .iter()
                .flat_map(|why| why.lines().next())
                .flat_map(|why| why.chars().take(90))
                .collect();
            println!("    {engine:26}{time}  {why}");
        }
    }
    println!("\nMasks along the texts that both accept, beside burn-dfa's\n");
    println!("  {:38}{:>8}{:>8}{:>8}", "", "equal", "wider", "other");
    for (index, engine) in results.engines.iter().enumerate().skip(1) {
        let sum = |count: fn(&Outcome) -> usize| {
            results.cases.iter().map(|case| count(&case.outcomes[index])).sum::<usize>()
        };
        let [equal, wider, other] = [sum(|o| o.equal), sum(|o| o.wider), sum(|o| o.other)];
        if equal + wider + other == 0 {
            continue;
        }
        println!("  {engine:38}{equal:8}{wider:8}{other:8}");
    }
}

/// The quantiles of burn-dfa and of each peer on what both did, and their ratios.
fn comparison(results: &Results, title: &str, pair: impl Fn(usize) -> (Pair, &'static str)) {
    println!("\n{title}\n");
    let header: String = QUANTILES.iter().map(|(name, _)| format!("{name:>10}")).collect();
    println!("  {:38}{:>8}{header}", "", "of");
    line("burn-dfa", &pair(0).0.ours, 1);
    for (peer, engine) in results.engines.iter().enumerate().skip(1) {
        let (pair, way) = pair(peer);
        if pair.is_empty() {
            continue;
        }
        line(&format!("{engine}{way}"), &pair.theirs, 1);
        let ratios: String = QUANTILES
            .iter()
            .map(|(_, q)| format!("{:10.3}", quantile(&pair.ours, *q) / quantile(&pair.theirs, *q)))
            .collect();
        println!("  {:46}{ratios}", "  burn-dfa ÷ it, on the same");
    }
}

fn line(name: &str, values: &[f64], decimals: usize) {
    let values_of: String =
        QUANTILES.iter().map(|(_, q)| format!("{:10.decimals$}", quantile(values, *q))).collect();
    println!("  {name:38}{:8}{values_of}", values.len());
}

/// What the engines say that their grammars take.
fn memory(results: &Results) {
    println!("\nMemory of a compiled schema, KiB, as the engine says it\n");
    for (index, engine) in results.engines.iter().enumerate() {
        let bytes: Vec<f64> = results.bytes(index).iter().map(|bytes| bytes / 1024.0).collect();
        if !bytes.is_empty() {
            line(engine, &bytes, 0);
        }
    }
    println!(
        "\nGrowth of resident memory over all cases, compiled, walked and kept, one process per engine, KiB\n"
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
