//! Memory growth of a process by compiled grammars.
//!
//! Engines count their bytes differently or not at all. So each engine compiles all cases in a
//! separate process, keeps them and runs their texts, and the process records the growth of its
//! resident memory after each case. Several processes do this per engine. The figure includes
//! temporary memory that the allocator retains. Data that depends on the vocabulary alone is
//! prepared first and counted separately.

use serde_json::{Value, json};

use crate::engines::{Grammar, Make};
use crate::first_mask::{compile, prepare};
use crate::measure::check;
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// Processes per engine: the memory that an allocator retains differs between processes.
pub const PROCESSES: usize = 3;

/// The growth of resident memory, in KiB.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// By the data that depends on the vocabulary alone.
    pub vocabulary: Option<f64>,
    /// By each case; `None` if the engine does not compile it.
    pub cases: Vec<Option<f64>>,
}

impl Growth {
    /// The total over all cases.
    fn sum(&self) -> f64 {
        self.cases.iter().flatten().sum()
    }
}

/// The growth by the cases of the folder, for the engine at `index`. Returns the process with the
/// median total.
pub fn growth(folder: &Folder, index: usize) -> Option<Growth> {
    let process = || {
        let report = folder.run(index, None, 0.0).ok()?;
        let cases = report["cases"].as_array()?.iter().map(Value::as_f64).collect();
        Some(Growth { vocabulary: report["vocabulary"].as_f64(), cases })
    };
    let mut all: Vec<Growth> = (0..PROCESSES).map(|_| process()).collect::<Option<_>>()?;
    all.sort_by(|a, b| a.sum().total_cmp(&b.sum()));
    Some(all.swap_remove(PROCESSES / 2))
}

/// The work of a process: prints its growth.
pub fn print(make: Make, tokens: &Tokens, grammars: &[Grammar], walks: &[(usize, Vec<Vec<u32>>)]) {
    let before = resident();
    let engine = make(tokens);
    prepare(engine.as_ref(), tokens);
    let vocabulary = grown(before);
    let logits = logits(tokens.vocab_size());
    let mut kept = Vec::new();
    let mut growth = Vec::new();
    for (case, texts) in walks {
        let before = resident();
        let Ok(grammar) = compile(engine.as_ref(), &grammars[*case]) else {
            growth.push(None);
            continue;
        };
        for text in texts {
            // If the engine rejects the text, this runs the steps before the rejection.
            let _ = check(grammar.as_ref(), text, tokens.eos, &logits, usize::MAX);
        }
        kept.push(grammar);
        growth.push(grown(before));
    }
    println!("{}", json!({"vocabulary": vocabulary, "cases": growth}));
}

/// The growth since `before`.
fn grown(before: Option<u64>) -> Option<u64> {
    before.zip(resident()).map(|(before, after)| after.saturating_sub(before))
}

/// Resident memory of this process in KiB; `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
