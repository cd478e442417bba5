//! What compiled grammars take of the memory of a process.
//!
//! Engines count their bytes differently or not at all, so that each engine compiles all cases in a process of its
//! own, keeps them, walks their texts, and the growth of resident memory is taken after each. It does so in several processes. The figure holds what
//! the allocator keeps back of temporary memory as well. What an engine prepares of the vocabulary alone is made before, and counted apart.

use serde_json::{Value, json};

use crate::engines::{Grammar, Make};
use crate::first_mask::{compile, prepare};
use crate::measure::check;
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// So many processes of each engine: what an allocator keeps back differs from one to the next.
pub const PROCESSES: usize = 3;

/// How resident memory grew, in KiB.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// Over what the engine prepares of the vocabulary alone.
    pub vocabulary: Option<f64>,
    /// Over each case; `None` where it does not compile it.
    pub cases: Vec<Option<f64>>,
}

impl Growth {
    /// Over all cases.
    fn sum(&self) -> f64 {
        self.cases.iter().flatten().sum()
    }
}

/// The growth over the cases that the folder names, of the engine at `index`: that of the process whose sum is the median.
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

/// The part of the process of its own: prints its growth.
pub fn print(make: Make, tokens: &Tokens, grammars: &[Grammar], walks: &[(usize, Vec<Vec<u32>>)]) {
    let before = resident();
    let engine = make(tokens);
    prepare(engine.as_ref(), tokens);
    let vocabulary = grown(before);
    let logits = logits(tokens.width());
    let mut kept = Vec::new();
    let mut growth = Vec::new();
    for (case, texts) in walks {
        let before = resident();
        let Ok(grammar) = compile(engine.as_ref(), &grammars[*case]) else {
            growth.push(None);
            continue;
        };
        for text in texts {
            // A text that is rejected is walked as far as it goes.
            let _ = check(grammar.as_ref(), text, tokens.eos, &logits, usize::MAX);
        }
        kept.push(grammar);
        growth.push(grown(before));
    }
    println!("{}", json!({"vocabulary": vocabulary, "cases": growth}));
}

/// How much more there is than `before`.
fn grown(before: Option<u64>) -> Option<u64> {
    before.zip(resident()).map(|(before, after)| after.saturating_sub(before))
}

/// Resident memory of this process in KiB; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
