//! Counts that were measured before, and what got worse since.

use std::collections::BTreeMap;
use std::path::Path;

use burn_dfa::Vocabulary;
use serde::{Deserialize, Serialize};

use super::summary::Summary;
use crate::Result;

/// The counts of several files for one vocabulary.
#[derive(Serialize, Deserialize)]
struct Baseline {
    vocabulary: String,
    files: BTreeMap<String, Counts>,
}

/// The counts of a file.
#[derive(Serialize, Deserialize)]
struct Counts {
    rows: usize,
    passing: usize,
    invalid_accepted: usize,
    valid_rejected: usize,
    split: usize,
    not_json: usize,
    refused: usize,
    over_limit: usize,
}

impl From<&Summary> for Counts {
    fn from(summary: &Summary) -> Self {
        Self {
            rows: summary.rows,
            passing: summary.passing,
            invalid_accepted: summary.invalid_accepted,
            valid_rejected: summary.valid_rejected,
            split: summary.split,
            not_json: summary.not_json,
            refused: summary.refused,
            over_limit: summary.over_limit,
        }
    }
}

/// Writes the counts.
pub fn write(path: &Path, vocabulary: &Vocabulary, summaries: &[(String, Summary)]) -> Result<()> {
    let files = summaries.iter().map(|(name, summary)| (name.clone(), summary.into())).collect();
    let baseline = Baseline { vocabulary: vocabulary.fingerprint().to_string(), files };
    let text = serde_json::to_string_pretty(&baseline)? + "\n";
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    Ok(())
}

/// Every count that is worse than in the file, false accepts first.
pub fn worse(path: &Path, vocabulary: &Vocabulary, summaries: &[(String, Summary)]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let baseline: Baseline =
        serde_json::from_str(&text).map_err(|e| format!("{} is no baseline: {e}", path.display()))?;
    let fingerprint = vocabulary.fingerprint().to_string();
    if baseline.vocabulary != fingerprint {
        return Err(format!(
            "{} is of vocabulary {}, not {fingerprint}",
            path.display(),
            baseline.vocabulary
        )
        .into());
    }
    let mut worse = Vec::new();
    for (name, summary) in summaries {
        let then = baseline.files.get(name);
        let then = then.ok_or_else(|| format!("{} has no file {name}: give --update", path.display()))?;
        let now = Counts::from(summary);
        if now.rows != then.rows {
            return Err(format!("{name}: {} rows, {} in {}", now.rows, then.rows, path.display()).into());
        }
        let rises = [
            ("invalid_accepted", then.invalid_accepted, now.invalid_accepted),
            ("not_json", then.not_json, now.not_json),
            ("split", then.split, now.split),
            ("failing", then.rows - then.passing.min(then.rows), now.rows - now.passing),
            ("valid_rejected", then.valid_rejected, now.valid_rejected),
            ("refused", then.refused, now.refused),
            ("over_limit", then.over_limit, now.over_limit),
        ];
        let rises = rises.iter().enumerate().filter(|(_, (_, then, now))| now > then);
        worse.extend(
            rises.map(|(order, (what, then, now))| (order, format!("{name}: {what} {then} → {now}"))),
        );
    }
    worse.sort_by_key(|&(order, _)| order);
    Ok(worse.into_iter().map(|(_, line)| line).collect())
}
