//! What compiled grammars take of the memory of a process.
//!
//! Engines count their bytes differently or not at all, so that each engine compiles all cases in a process of its
//! own, keeps them, walks their texts, and the growth of resident memory is taken after each. The figure holds what
//! the allocator keeps back of temporary memory as well.

use std::process::Command;

use crate::cases::Case;
use crate::engines::Engine;
use crate::measure::{check, logits};
use crate::tokens::Tokens;

/// The growth over each of `cases` in KiB, of the engine at `index`, measured in another process.
pub fn growth(tokens: &Tokens, index: usize, cases: &[&str]) -> Option<Vec<f64>> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args([
        "--vocabulary",
        tokens.flag,
        "--memory-of",
        &index.to_string(),
        "--cases",
        &cases.join(";"),
    ]);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().filter_map(|line| line.strip_prefix("KiB ")?.parse().ok()).collect())
}

/// Prints the growth of this process over each case.
pub fn print(engine: &dyn Engine, tokens: &Tokens, cases: &[Case]) {
    let logits = logits(tokens.width());
    let texts: Vec<Vec<Vec<u32>>> =
        cases.iter().map(|case| case.texts.iter().map(|text| tokens.encode(text)).collect()).collect();
    let mut kept = Vec::new();
    for (case, texts) in cases.iter().zip(&texts) {
        let before = resident();
        let Ok(grammar) = engine.compile(&case.grammar) else { continue };
        for text in texts {
            // A text that is rejected is walked as far as it goes.
            let _ = check(grammar.as_ref(), text, tokens.eos, &logits);
        }
        kept.push(grammar);
        if let (Some(before), Some(after)) = (before, resident()) {
            println!("KiB {}", after.saturating_sub(before));
        }
    }
}

/// Resident memory of this process in KiB; `None` where the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
