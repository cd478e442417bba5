//! What compiled grammars take of the memory of a process.
//!
//! Engines count their bytes differently or not at all, so that each engine compiles all cases in a process of its
//! own, keeps them, walks their texts, and the growth of resident memory is taken after each. The figure holds what
//! the allocator keeps back of temporary memory as well.

use serde_json::{Value, json};

use crate::engines::{Engine, Grammar};
use crate::first_mask::compile;
use crate::measure::check;
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// The growth over each of the cases that the folder names, in KiB, of the engine at `index`; `None` for a case that it does not
/// compile there.
pub fn growth(folder: &Folder, index: usize) -> Option<Vec<Option<f64>>> {
    let report = folder.run(index, None, 0.0).ok()?;
    Some(report.as_array()?.iter().map(Value::as_f64).collect())
}

/// The part of the process of its own: prints its growth over each case.
pub fn print(engine: &dyn Engine, tokens: &Tokens, grammars: &[Grammar], walks: &[(usize, Vec<Vec<u32>>)]) {
    let logits = logits(tokens.width());
    let mut kept = Vec::new();
    let mut growth = Vec::new();
    for (case, texts) in walks {
        let before = resident();
        let Ok(grammar) = compile(engine, &grammars[*case]) else {
            growth.push(None);
            continue;
        };
        for text in texts {
            // A text that is rejected is walked as far as it goes.
            let _ = check(grammar.as_ref(), text, tokens.eos, &logits, usize::MAX);
        }
        kept.push(grammar);
        growth.push(before.zip(resident()).map(|(before, after)| after.saturating_sub(before)));
    }
    println!("{}", json!(growth));
}

/// Resident memory of this process in KiB; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
